// Any rows: every engine writes the same bytes within the bound, they decode, and what they decode to gives
// the same bytes again.
#include "codecs.hpp"

namespace {

using namespace checkrow;
using namespace fuzz;

constexpr std::size_t row_limit = 80;  // more than one batch of an engine, and a part of one

template <class Codec>
bytes encode(const Codec& codec, const column_case& column, row_view rows, std::size_t count) {
  const exact_buffer out(codec.bound(column.shape(), count));
  const std::size_t written = codec.encode(column.shape(), rows, count, out.data());
  require(written <= out.size(), "a section is not larger than its bound");
  return {out.data(), out.data() + written};
}

template <class Codec>
void check(const Codec& codec, const column_case& column, input_bytes given) {
  const std::size_t count = column.rows % (row_limit + 1);
  exact_buffer rows(column.memory(count), std::byte{0});
  std::copy_n(given.data(), std::min(given.size(), rows.size()), rows.data());
  const auto index = column.index(count);
  const std::uint64_t* const gather = column.gathered() ? index.data() : nullptr;

  require(use_codec_engine(codec_engine::scalar), "the scalar engine is there");
  const bytes expected = encode(codec, column, {rows.data(), column.stride(), gather}, count);
  exact_buffer first(rows.size(), std::byte{0});
  const row_span to{first.data(), column.stride(), gather, column.streaming()};
  require(codec.decode(column.shape(), expected, count, to), "what was encoded is decoded");
  for (const codec_engine engine : codec_engines) {
    if (!use_codec_engine(engine)) continue;
    require(encode(codec, column, {rows.data(), column.stride(), gather}, count) == expected,
            "engines write the same bytes");
    require(encode(codec, column, {first.data(), column.stride(), gather}, count) == expected,
            "decoded rows give the same bytes again");
  }
}

}  // namespace

void fuzz::make_seeds(seed_folder& folder) {
  for_each_column([&](const column_case& column, const auto&) {
    bytes seed;
    append(seed, column);
    append(seed, some_rows(column, column.rows));
    folder.add(seed);
  });
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  input in(data, size);
  const auto column = in.take<column_case>();
  with_codec(column, [&](const auto& codec) {
    if (codec.accepts(column.shape())) check(codec, column, in.rest());
  });
  return 0;
}
