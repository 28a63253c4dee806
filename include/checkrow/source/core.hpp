// The bodies of everything but the codecs.
#pragma once

#include <checkrow/source/checkpointer_core.hpp>
#include <checkrow/source/directory.hpp>
#include <checkrow/source/error.hpp>
#include <checkrow/source/file.hpp>
#include <checkrow/source/file_calls.hpp>
#include <checkrow/source/file_reader.hpp>
#include <checkrow/source/guarded.hpp>
#include <checkrow/source/instances.hpp>
#include <checkrow/source/journal.hpp>
#include <checkrow/source/memory.hpp>
#include <checkrow/source/statistics.hpp>
#include <checkrow/source/stop_and_copy.hpp>
#include <checkrow/source/touch_capture.hpp>
#include <checkrow/source/touch_guard.hpp>
