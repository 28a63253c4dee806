// Any bytes as a column section: refused, or decoded within bounds to the same rows by every engine.
#include "codecs.hpp"

namespace {

using namespace checkrow;
using namespace fuzz;

struct outcome {
  bool decoded;
  exact_buffer rows;
};

outcome decode(const column_case& column, codec_engine engine, input_bytes section) {
  const std::size_t count = column.rows;
  outcome out{false, exact_buffer(column.memory(count))};
  const exact_buffer in(section);
  const auto index = column.index(count);
  const row_span to{out.rows.data(), column.stride(), column.gathered() ? index.data() : nullptr,
                    column.streaming()};
  require(use_codec_engine(engine), "the engine is there");
  const auto answer =
      detail::decode_builtin(column.choice(), column.shape(), {in.data(), in.size()}, count, to);
  require(answer != detail::decode_outcome::unknown, "a built-in codec is known");
  out.decoded = answer == detail::decode_outcome::decoded;
  return out;
}

}  // namespace

void fuzz::make_seeds(seed_folder& folder) {
  for_each_column([&](const column_case& column, const auto& codec) {
    const bytes rows = some_rows(column, column.rows);
    bytes section(codec.bound(column.shape(), column.rows));
    section.resize(codec.encode(column.shape(), {rows.data(), column.stride()}, column.rows, section.data()));
    bytes seed;
    append(seed, column);
    append(seed, section);
    folder.add(seed);
  });
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  input in(data, size);
  const auto column = in.take<column_case>();
  const outcome expected = decode(column, codec_engine::scalar, in.rest());
  if (!expected.decoded)
    require(expected.rows == exact_buffer(expected.rows.size()),
            "nothing is written where bytes are refused");
  for (const codec_engine engine : codec_engines) {
    if (!has_codec_engine(engine)) continue;
    const outcome found = decode(column, engine, in.rest());
    require(found.decoded == expected.decoded, "engines refuse the same bytes");
    require(found.rows == expected.rows, "engines decode the same rows");
  }
  return 0;
}
