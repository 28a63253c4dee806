// All codecs that the library brings, and a decoder for whatever they wrote.
#pragma once

#include <checkrow/codecs/adaptive.hpp>
#include <checkrow/codecs/codec_set.hpp>
#include <checkrow/codecs/engine.hpp>
#include <checkrow/codecs/exact.hpp>
#include <checkrow/codecs/two_bytes.hpp>
#include <checkrow/codecs/uniform.hpp>
#include <cstddef>
#include <span>

namespace checkrow::inline v0 {

/// The codecs among which the Check-N-Run paper chooses by the number of restores that it expects.
using check_n_run_codecs = codec_set<adaptive<2>, adaptive<3>, adaptive<4>, uniform<8>>;

namespace detail {

enum class decode_outcome : unsigned char {
  decoded,
  malformed,  ///< not what that codec writes for that shape
  unknown,    ///< no built-in codec has that id and bits
};

/// Every built-in id and bits. Decoding depends on neither the search nor its settings.
using builtin_codecs =
    codec_set<exact, two_bytes, uniform<2>, uniform<3>, uniform<4>, uniform<8>, uniform<2, symmetric>,
              uniform<3, symmetric>, uniform<4, symmetric>, uniform<8, symmetric>, adaptive<2, greedy>,
              adaptive<3, greedy>, adaptive<4, greedy>, adaptive<8, greedy>, adaptive<2, refit>,
              adaptive<3, refit>, adaptive<4, refit>, adaptive<8, refit>>;

/// Decodes n rows that any built-in codec wrote; `bytes` is untrusted.
[[nodiscard]] decode_outcome decode_builtin(codec_choice choice, const column_shape& shape,
                                            std::span<const std::byte> bytes, std::size_t n,
                                            row_span rows) noexcept;

}  // namespace detail

}  // namespace checkrow::inline v0

#if CHECKROW_HEADER_ONLY
#include <checkrow/source/builtin.hpp>
#endif
