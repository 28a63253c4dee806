// Catch2, whichever of its two headers the system has: v3 (Ubuntu 24.04) or v2 (Debian 12).
#pragma once

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;  // as in v2
#else
#include <catch2/catch.hpp>
#endif
