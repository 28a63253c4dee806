// checkrow: the version, the ABI namespace and the few facts about the compiler that every header needs.
#pragma once

#include <bit>

#define CHECKROW_VERSION_MAJOR 0
#define CHECKROW_VERSION_MINOR 1
#define CHECKROW_VERSION_PATCH 0
/// 100 * (100 * major + minor) + patch: comparable in an #if.
#define CHECKROW_VERSION \
  (CHECKROW_VERSION_MAJOR * 10000 + CHECKROW_VERSION_MINOR * 100 + CHECKROW_VERSION_PATCH)
#define CHECKROW_VERSION_STRING "0.1.0"

/// 1 where exceptions are on. Without them the throwing calls are absent and the try_ forms remain.
#if defined(__cpp_exceptions)
#define CHECKROW_EXCEPTIONS 1
#else
#define CHECKROW_EXCEPTIONS 0
#endif

/// By default every body is inline. A program of many files may compile those that depend on no template
/// argument once: define CHECKROW_SEPARATE_COMPILATION for all of its files (the CMake target
/// checkrow::compiled does), and include <checkrow/source.hpp> in one. (Files that do not define it go with
/// these, and compile all by themselves.) Bodies are in checkrow/source/, marked CHECKROW_INLINE.
#if defined(CHECKROW_SEPARATE_COMPILATION)
#define CHECKROW_HEADER_ONLY 0
#define CHECKROW_INLINE
#else
#define CHECKROW_HEADER_ONLY 1
#define CHECKROW_INLINE inline
#endif

static_assert(std::endian::native == std::endian::little,
              "checkrow: the format is little-endian and is written from memory; this target is not");

/// Everything lives in an inline namespace that changes with the ABI, so two versions can be linked together.
namespace checkrow::inline v0 {}
