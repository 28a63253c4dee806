// The bodies that separate compilation leaves out of every other file: see version.hpp. For one file of a
// program.
#pragma once

#include <checkrow/checkrow.hpp>
#include <checkrow/source/adaptive.hpp>
#include <checkrow/source/builtin.hpp>
#include <checkrow/source/checkrow.hpp>
#include <checkrow/source/directory.hpp>
#include <checkrow/source/error.hpp>
#include <checkrow/source/file.hpp>
#include <checkrow/source/file_calls.hpp>
#include <checkrow/source/file_reader.hpp>
#include <checkrow/source/guarded.hpp>
#include <checkrow/source/journal.hpp>
#include <checkrow/source/memory.hpp>
#include <checkrow/source/paths.hpp>
#include <checkrow/source/sections.hpp>
#include <checkrow/source/statistics.hpp>
#include <checkrow/source/stop_and_copy.hpp>
#include <checkrow/source/touch_capture.hpp>
#include <checkrow/source/touch_guard.hpp>
