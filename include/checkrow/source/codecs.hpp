// The bodies of all codecs.
#pragma once

#include <checkrow/source/adaptive.hpp>
#include <checkrow/source/builtin.hpp>
#include <checkrow/source/sections.hpp>
