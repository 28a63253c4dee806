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

static_assert(std::endian::native == std::endian::little,
              "checkrow: the format is little-endian and is written from memory; this target is not");

/// Everything lives in an inline namespace that changes with the ABI, so two versions can be linked together.
namespace checkrow::inline v0 {}
