// Which functions pack and unpack the parameters of eight rows at once, where there are such.
#pragma once

#include <checkrow/codecs/engine.hpp>
#include <checkrow/detail/parameters_avx2.hpp>
#include <checkrow/detail/parameters_neon.hpp>

#if defined(__x86_64__) || defined(__aarch64__)
#define CHECKROW_PARAMETER_VECTORS 1
#else
#define CHECKROW_PARAMETER_VECTORS 0
#endif

namespace checkrow::inline v0::detail {

#if defined(__x86_64__)
namespace parameter_vectors = avx2;
#elif defined(__aarch64__)
namespace parameter_vectors = neon;
#endif

/// Does the engine in use have them? All have, but the scalar one.
[[nodiscard]] inline bool use_parameter_vectors() noexcept {
  return current_codec_engine() != codec_engine::scalar;
}

}  // namespace checkrow::inline v0::detail
