// The bodies that separate compilation leaves out of every other file: see version.hpp. For one file of a
// program.
#pragma once

#include <checkrow/checkrow.hpp>
#include <checkrow/source/paths.hpp>
