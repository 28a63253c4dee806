// long_codec_idempotence [rows]: every codec over that many random rows of all kinds, of float32, half and
// bfloat16, in two threads.
// decode(encode(x)) has to encode to the same bytes, and those to decode to the same row; and each engine has
// to write the bytes of the scalar one.
#include <atomic>
#include <checkrow/codecs/builtin.hpp>
#include <checkrow/detail/small_floats.hpp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string_view>
#include <thread>
#include <vector>

#include "row_kinds.hpp"

namespace {

constexpr std::size_t batch_rows = 64;
constexpr std::size_t widths[] = {2, 3, 7, 16, 64, 100, 128};
constexpr std::size_t widest = 128;

std::size_t hash_of(const std::vector<std::byte>& bytes, std::size_t size) {
  return std::hash<std::string_view>{}({reinterpret_cast<const char*>(bytes.data()), size});
}

/// Rows of a batch that do not come back the same; encodes and decodes `n` rows at once, and
/// adds a hash of what it wrote.
template <class Codec>
std::size_t mismatches(const Codec& codec, const checkrow::column_shape& shape, const std::byte* rows,
                       std::size_t n, std::atomic<std::uint64_t>& hash) {
  const std::size_t row_bytes = shape.row_bytes();
  thread_local std::vector<std::byte> first, second;
  thread_local std::vector<std::byte> once(4 * batch_rows * widest), twice(4 * batch_rows * widest);
  first.resize(codec.bound(shape, batch_rows));
  second.resize(first.size());

  const std::size_t size = codec.encode(shape, {rows, row_bytes}, n, first.data());
  hash += hash_of(first, size);
  bool same = codec.decode(shape, {first.data(), size}, n, {once.data(), row_bytes});
  same = same && codec.encode(shape, {once.data(), row_bytes}, n, second.data()) == size;
  same = same && std::memcmp(first.data(), second.data(), size) == 0;
  same = same && codec.decode(shape, {second.data(), size}, n, {twice.data(), row_bytes});
  same = same && std::memcmp(once.data(), twice.data(), row_bytes * n) == 0;
  if (same) return 0;
  if (n == 1) return 1;
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < n; ++i) wrong += mismatches(codec, shape, rows + i * row_bytes, 1, hash);
  return wrong != 0 ? wrong : 1;
}

/// The elements as that type has them.
std::vector<std::byte> rounded(const std::vector<float>& values, checkrow::element_type element) {
  std::vector<std::byte> out(4 * values.size());
  if (element == checkrow::element_type::float32) {
    std::memcpy(out.data(), values.data(), out.size());
    return out;
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint16_t bits = element == checkrow::element_type::float16
                                   ? checkrow::detail::narrow_half(values[i])
                                   : checkrow::detail::narrow_bfloat16(values[i]);
    std::memcpy(&out[2 * i], &bits, sizeof bits);
  }
  return out;
}

std::uint8_t bytes_of(checkrow::element_type element) {
  return element == checkrow::element_type::float32 ? 4 : 2;
}

struct outcome {
  std::uint64_t wrong, hash;
};

/// Batches from a common counter, each of one kind and width, seeded by its number.
template <class Codec>
outcome run(const Codec& codec, checkrow::element_type element, std::uint64_t rows) {
  const std::uint64_t batches = (rows + batch_rows - 1) / batch_rows;
  std::atomic<std::uint64_t> next = 0, wrong = 0, hash = 0;
  const auto work = [&] {
    std::vector<float> values(batch_rows * widest);
    for (std::uint64_t batch = next++; batch < batches; batch = next++) {
      const std::size_t width = widths[batch % std::size(widths)];
      const int k = static_cast<int>(batch / std::size(widths) % row_kinds::kind_count);
      row_kinds::random_source random{batch * 0x2545f4914f6cdd1d + Codec::id * 16 + Codec::bits};
      for (std::size_t i = 0; i < batch_rows; ++i)
        row_kinds::fill_row(random, static_cast<row_kinds::kind>(k), std::span(&values[i * width], width));
      const checkrow::column_shape shape{element, bytes_of(element), static_cast<std::uint32_t>(width)};
      if (!codec.accepts(shape)) continue;
      const std::size_t bad = mismatches(codec, shape, rounded(values, element).data(), batch_rows, hash);
      if (bad != 0 && wrong.fetch_add(bad) == 0)
        std::printf("  first mismatch: batch %llu, kind %d, width %zu\n",
                    static_cast<unsigned long long>(batch), k, width);
    }
  };
  std::thread other(work);
  work();
  other.join();
  return {wrong, hash};
}

/// All engines that this CPU has. Returns the mismatches.
template <class Codec>
std::uint64_t run_engines(const Codec& codec, checkrow::element_type element, std::uint64_t rows) {
  static constexpr const char* names[] = {"", "scalar", "AVX2", "AVX-512", "NEON"};
  std::uint64_t wrong = 0, expected = 0;
  for (const checkrow::codec_engine engine : checkrow::codec_engines) {
    if (!checkrow::use_codec_engine(engine)) continue;
    const outcome got = run(codec, element, rows);
    if (engine == checkrow::codec_engine::scalar) expected = got.hash;
    const bool same = got.hash == expected;
    wrong += got.wrong + (same ? 0 : 1);
    std::printf("%.*s %d bits, %s, %s: %llu rows, %llu mismatches%s\n", static_cast<int>(Codec::name.size()),
                Codec::name.data(), int{Codec::bits}, checkrow::to_string(element),
                names[static_cast<int>(engine)], static_cast<unsigned long long>(rows),
                static_cast<unsigned long long>(got.wrong), same ? "" : ", other bytes than scalar");
    std::fflush(stdout);
  }
  return wrong;
}

}  // namespace

int main(int argc, char** argv) {
  const std::uint64_t rows = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 200000;
  if (rows == 0) {
    std::fprintf(stderr, "usage: long_codec_idempotence [rows]\n");
    return 2;
  }
  std::uint64_t wrong = 0;
  checkrow::detail::builtin_codecs{}.for_each([&](const auto& codec) {
    for (const checkrow::element_type element :
         {checkrow::element_type::float32, checkrow::element_type::float16, checkrow::element_type::bfloat16})
      if (codec.accepts({element, bytes_of(element), 2})) wrong += run_engines(codec, element, rows);
  });
  return wrong == 0 ? 0 : 1;
}
