// The bodies that separate compilation leaves out of every other file: see version.hpp. For one file of a
// program; or for two, which compile side by side, source/codecs.hpp in one and source/core.hpp in the other.
#pragma once

#include <checkrow/source/codecs.hpp>
#include <checkrow/source/core.hpp>
