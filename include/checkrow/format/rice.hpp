// Rice codes: of each value the upper part, value >> k, in unary in one bitmap, the lowest k bits packed in
// another. For geometric gaps within a few percent of the entropy.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <checkrow/format/bytes.hpp>

namespace checkrow::inline v0::format {

/// The largest k: values are below 2^32.
inline constexpr unsigned rice_limit = 32;

/// Sums of value >> k over some values, for k, k + 1 and k + 2.
using rice_sums = std::array<std::uint64_t, 3>;

/// A k and the sum of value >> k.
struct rice_choice {
  unsigned k = 0;
  std::uint64_t upper = 0;
};

/// The k for which `count` > 0 values with that sum take the fewest bits. sums_at(k) -> rice_sums. Bits are
/// convex in k (sum(k) - sum(k + 1) = sum of ceil((value >> k) / 2) only falls), so a local minimum is the
/// least; from the guess it is found at once for geometric values.
template <class SumsAt>
[[nodiscard]] rice_choice choose_rice(std::uint64_t count, std::uint64_t sum, SumsAt sums_at) noexcept {
  const unsigned mean_bits = unsigned(std::bit_width(sum / count));
  for (unsigned k = std::min(mean_bits > 2 ? mean_bits - 2 : 0, rice_limit - 2);;) {
    const rice_sums upper = sums_at(k);
    const std::uint64_t a = upper[0], b = upper[1] + count, c = upper[2] + 2 * count;
    if (a <= b) {
      if (k == 0) return {k, upper[0]};
      --k;
    } else if (b <= c) {
      return {k + 1, upper[1]};
    } else {
      if (k + 2 == rice_limit) return {k + 2, upper[2]};
      ++k;
    }
  }
}

/// Adds bits to the end of zeroed bytes.
class rice_writer {
 public:
  rice_writer(std::byte* upper, std::byte* lower) noexcept : upper_(upper), lower_(lower) {}

  void add(std::uint64_t value, unsigned k) noexcept {
    end_ += value >> k;
    upper_[end_ / 8] |= std::byte(1u << (end_ % 8));
    ++end_;
    waiting_ |= (value & ((std::uint64_t{1} << k) - 1)) << bits_;
    for (bits_ += k; bits_ >= 32; bits_ -= 32, waiting_ >>= 32, lower_ += 4)
      store(lower_, std::uint32_t(waiting_));
  }
  /// After the last value.
  void finish() noexcept {
    for (; bits_ > 0; bits_ -= std::min(bits_, 8u), waiting_ >>= 8) *lower_++ = std::byte(waiting_ & 0xff);
  }

 private:
  std::byte* upper_;
  std::byte* lower_;
  std::uint64_t end_ = 0, waiting_ = 0;
  unsigned bits_ = 0;
};

/// Up to 8 bytes from offset `at`; those behind the end are zero.
[[nodiscard]] inline std::uint64_t load_some(std::span<const std::byte> bytes, std::size_t at) noexcept {
  if (bytes.size() >= 8 && at <= bytes.size() - 8) return load<std::uint64_t>(bytes.data() + at);
  std::uint64_t word = 0;
  if (at < bytes.size()) std::memcpy(&word, bytes.data() + at, std::min<std::size_t>(8, bytes.size() - at));
  return word;
}

/// The two bitmaps of `count` values in untrusted bytes, whose lower parts take `lower_bits` in all.
struct rice_code {
  std::span<const std::byte> upper, lower;
  bool valid = false;

  rice_code(std::span<const std::byte> bytes, std::uint64_t count, std::uint64_t lower_bits) noexcept {
    const std::uint64_t lower_bytes = (lower_bits + 7) / 8;
    if (lower_bytes > bytes.size()) return;
    upper = bytes.first(bytes.size() - lower_bytes);
    lower = bytes.last(lower_bytes);
    // As many bytes as are used, and unused bits zero. 2^27 bytes, so that no sum below comes near 2^64.
    if (upper.size() > std::size_t{1} << 27 || upper.empty() != (count == 0)) return;
    if (!upper.empty() && upper.back() == std::byte{0}) return;
    valid = lower_bits % 8 == 0 || std::to_integer<unsigned>(lower.back()) >> (lower_bits % 8) == 0;
  }
};

/// For each byte: the number of its ones, and before each of them the number of its zeros, one a byte.
struct ones_table {
  std::array<std::uint64_t, 256> zeros{};
  std::array<std::uint8_t, 256> count{};

  constexpr ones_table() noexcept {
    for (unsigned byte = 0; byte < 256; ++byte)
      for (unsigned bit = 0; bit < 8; ++bit)
        if ((byte >> bit & 1) != 0) {
          zeros[byte] |= std::uint64_t{bit - count[byte]} << (8 * count[byte]);
          ++count[byte];
        }
  }
};
inline constexpr ones_table ones_of_byte;

/// `n` ids from their upper parts (upper_before + upper[i]) and the lower ones from value `done` on.
/// sum: the id before + 1 + the lower part before that ..., kept up to date.
inline void write_rice_ids(const rice_code& code, unsigned k, std::uint64_t done, std::uint64_t upper_before,
                           const std::uint8_t* upper, std::size_t n, std::uint64_t& sum,
                           std::uint64_t* to) noexcept {
  const std::uint64_t one = std::uint64_t{1} << k, mask = one - 1;
  std::size_t i = 0;
  const auto some = [&](auto many) noexcept {
    for (; i + many <= n; i += many) {
      const std::uint64_t bit = (done + i) * k;
      std::uint64_t low = load_some(code.lower, bit / 8) >> (bit % 8);
      for (std::size_t j = 0; j < many; ++j, low >>= k) {
        sum += (low & mask) + 1;
        to[i + j] = (upper_before + upper[i + j]) * one + sum;
      }
    }
  };
  if (k <= 8) some(std::integral_constant<std::size_t, 8>());  // 57 bits, or 64 where they begin at a byte
  if (k <= 14) some(std::integral_constant<std::size_t, 4>());
  some(std::integral_constant<std::size_t, 1>());
}

/// `count` ids from gaps less 1: to[i] = before + i + 1 + the sum of the first i + 1 values. False where the
/// bitmap has not as many values; what has been written is then of no use.
[[nodiscard]] inline bool read_rice_gaps(const rice_code& code, std::uint64_t count, unsigned k,
                                         std::uint64_t before, std::uint64_t* to) noexcept {
  constexpr std::uint64_t every_byte = 0x0101010101010101;
  std::uint64_t done = 0, zeros_before = 0, sum = before;
  for (std::size_t at = 0; at < code.upper.size();) {
    std::byte zeros[256 + 8];  // before each one, from this block of 256 bits on
    const std::size_t end = std::min<std::size_t>(code.upper.size(), at + 32);
    std::size_t n = 0;
    for (std::uint64_t bits = 0; at < end; ++at, bits += 8) {
      const auto byte = std::to_integer<std::uint8_t>(code.upper[at]);
      store(zeros + n, ones_of_byte.zeros[byte] + (bits - n) * every_byte);
      n += ones_of_byte.count[byte];
    }
    if (n > count - done) return false;
    write_rice_ids(code, k, done, zeros_before, reinterpret_cast<const std::uint8_t*>(zeros), n, sum,
                   to + done);
    done += n;
    zeros_before = at * 8 - done;
  }
  return done == count;
}

/// Reads values one after the other.
class rice_reader {
 public:
  explicit rice_reader(const rice_code& code) noexcept : code_(code) {}

  /// False behind the last one.
  [[nodiscard]] bool next(unsigned k, std::uint64_t& value) noexcept {
    std::uint64_t zeros = 0;
    while (word_ == 0) {
      if (at_ >= code_.upper.size()) return false;
      zeros += left_;
      word_ = load_some(code_.upper, at_);
      at_ += 8;
      left_ = 64;
    }
    const auto place = unsigned(std::countr_zero(word_));
    word_ = word_ >> place >> 1;
    left_ -= place + 1;
    const std::uint64_t low = load_some(code_.lower, bit_ / 8) >> (bit_ % 8);
    value = (zeros + place) << k | (low & ((std::uint64_t{1} << k) - 1));
    bit_ += k;
    return true;
  }
  [[nodiscard]] bool at_end() const noexcept { return word_ == 0 && at_ >= code_.upper.size(); }

 private:
  const rice_code& code_;
  std::uint64_t word_ = 0, bit_ = 0;
  std::size_t at_ = 0;
  unsigned left_ = 0;
};

}  // namespace checkrow::inline v0::format
