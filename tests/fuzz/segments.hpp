// Shared by the targets that read chunks: a model, a checkpoint of it, and the path from a segment to its
// rows.
#pragma once

#include <checkrow/checkrow.hpp>

#include "fuzz.hpp"

namespace fuzz {

using checkrow::memory;
namespace format = checkrow::format;
using memory_sink = checkrow::detail::erased_sink<memory>;

/// Tables of several widths and codecs, a dense parameter and a state.
struct model {
  static constexpr std::size_t rows = 90;
  std::vector<float> narrow = std::vector<float>(rows * 5), wide = std::vector<float>(rows * 70);
  std::vector<float> adagrad = std::vector<float>(rows);
  std::vector<std::uint16_t> half = std::vector<std::uint16_t>(rows * 16);
  std::vector<double> mlp = std::vector<double>(11);
  std::uint64_t reader = 7;

  model() {
    std::uint32_t bits = 1;
    for (std::vector<float>* column : {&narrow, &wide, &adagrad})
      for (float& x : *column) x = static_cast<float>((bits = bits * 1664525 + 1013904223) >> 8) * 1e-7f;
    narrow[5] = 1e30f, wide[70 * 3] = -INFINITY;
    std::fill_n(wide.begin() + 70 * 5, 70, 0.0f);
    for (std::size_t i = 0; i < 70; ++i) wide[70 * 7 + i] = 1000 + 1e-4f * static_cast<float>(i);
  }

  template <class Checkpointer>
  auto attach(Checkpointer& ckpt) {
    auto first = ckpt.table("a", narrow, 5, {.columns = {{"adagrad", adagrad}}});
    auto second = ckpt.table("b", wide, 70, {.codec = checkrow::adaptive<3>{}});
    ckpt.dense("mlp", mlp);
    ckpt.state("reader", reader);
    return std::pair(first, second);
  }
};

/// Makes the hashes of a chunk right that has at least a head of `head_bytes`, and its place and attempt.
inline format::footer_entry mend_chunk(std::span<std::byte> chunk, std::size_t head_bytes,
                                       const format::attempt_id& attempt, std::uint64_t position) {
  namespace at = format::chunk_at;
  const auto head = chunk.first(head_bytes);
  const std::uint64_t payload_hash = format::hash(chunk.subspan(head_bytes));
  format::store(head.data() + at::position, position);
  format::store(head.data() + at::attempt, attempt);
  format::store(head.data() + at::payload_hash, payload_hash);
  const std::uint64_t head_hash = format::hash_head(head);
  format::store(head.data() + at::head_hash, head_hash);
  const std::byte* const from = head.data();
  return {format::load<std::uint32_t>(from + at::table),
          format::load<format::chunk_kind>(from + at::kind),
          format::load<std::uint8_t>(from + at::flags),
          {format::load<std::uint16_t>(from + 128), format::load<std::uint8_t>(from + 130)},
          format::load<std::uint64_t>(from + at::first),
          format::load<std::uint64_t>(from + at::last),
          format::load<std::uint64_t>(from + at::rows),
          position,
          chunk.size(),
          head_bytes,
          head_hash,
          payload_hash};
}

/// A full checkpoint and a delta: the same bytes in every run, so that seeds stay good. What saves draw at
/// random, their attempt ids, is replaced.
struct checkpoint {
  memory sink;
  std::string manifest_name;
  format::manifest manifest;

  checkpoint() {
    save();
    manifest.created = 1;
    manifest.attempt.fill(2);
    for (std::size_t i = 0; i < manifest.segments.size(); ++i)
      rename(manifest.segments[i], std::uint8_t(i + 1));
    manifest_name = format::manifest_name(manifest.sequence, format::hex(manifest.attempt));
  }

  [[nodiscard]] memory copy_of_segments() const {
    memory copy;
    for (const format::segment_entry& one : manifest.segments) copy.put(one.name, *sink.find(one.name));
    return copy;
  }

 private:
  void save() {
    model values;
    checkrow::checkpointer ckpt{checkrow::codec_set{checkrow::uniform<4>{}, checkrow::adaptive<3>{}}, sink,
                                checkrow::one_shot{}};
    auto tables = values.attach(ckpt);
    ckpt.save(1);
    for (const int id : {1, 2, 3, 10, 11, 30, 31, 32, 33, 80}) {
      tables.first.touch(std::span(&id, 1));
      values.narrow[static_cast<std::size_t>(id) * 5] += 1;
    }
    tables.second.touch(std::vector<int>{4, 20, 60});
    values.wide[4 * 70] += 1;
    ckpt.save(2);
    ckpt.finish();
    for (const checkrow::blob& one : *sink.list()) {
      if (!one.name.ends_with(".manifest")) continue;
      const auto text = sink.find(one.name);  // of the two, the delta's is listed last
      manifest =
          *format::read_manifest({reinterpret_cast<const char*>(text->data()), text->size()}, one.name);
    }
  }

  void rename(format::segment_entry& entry, std::uint8_t attempt) {
    bytes content = *sink.find(entry.name);
    const auto place =
        *format::read_trailer(input_bytes(content).last(format::trailer_bytes), content.size());
    std::vector<format::footer_entry> chunks;
    require(format::read_footer(input_bytes(content).subspan(place.offset, place.bytes), entry.attempt,
                                place.offset, chunks) == nullptr,
            "a new segment's footer can be read");
    entry.attempt.fill(attempt);
    for (format::footer_entry& chunk : chunks)
      chunk = mend_chunk(std::span(content).subspan(chunk.offset, chunk.bytes), chunk.head_bytes,
                         entry.attempt, chunk.offset);
    const auto header = format::segment_header(entry.attempt, entry.part);
    std::copy(header.begin(), header.end(), content.begin());
    content.resize(place.offset);
    const auto end = format::write_footer(chunks, entry.attempt, place.offset);
    append(content, input_bytes(end.bytes));
    entry.footer_hash = end.footer_hash;
    entry.name = format::segment_name(entry.sequence, format::hex(entry.attempt), entry.part);
    sink.put(entry.name, std::move(content));
  }
};

inline const checkpoint& saved() {
  static const checkpoint one;
  return one;
}

/// Tables in memory of exactly their size, as a restore's targets.
class target {
 public:
  explicit target(const format::manifest& manifest) {
    for (const format::table_schema& table : manifest.tables) {
      auto& columns = columns_.emplace_back();
      for (const format::column_schema& column : table.columns) {
        const std::size_t row_bytes = column.shape.row_bytes();
        memory_.emplace_back(row_bytes * table.rows);
        columns.push_back({column.name, column.shape, memory_.back().data(), row_bytes});
      }
    }
    for (std::size_t t = 0; t < columns_.size(); ++t) {
      auto& table = plan.tables.emplace_back();
      table.table = t;
      for (const auto& column : columns_[t]) table.columns.push_back(&column);
    }
    plan.dense.resize(manifest.dense.size());
    plan.states.resize(manifest.states.size());
  }

  checkrow::detail::restore_plan plan;

 private:
  std::vector<std::vector<checkrow::detail::registered_column>> columns_;
  std::vector<exact_buffer> memory_;
};

/// Reads every chunk of a segment, and decodes it as a restore does: to nowhere, then into a model.
inline void read_segment(memory& sink, const format::manifest& manifest, const format::segment_entry& entry) {
  namespace detail = checkrow::detail;
  memory_sink erased(sink);
  auto opened = detail::segment_reader::open(erased, entry);
  if (!opened) return;
  const detail::erased_codecs codecs{checkrow::codec_set{checkrow::exact{}}};
  target rows(manifest);
  detail::chunk_decoder decoder(codecs, manifest, rows.plan);
  detail::checked_chunk chunk;
  for (const format::footer_entry& at : opened->chunks()) {
    if (!opened->read(at, chunk)) continue;
    require(chunk.ids.empty() || chunk.ids.size() == chunk.header.rows, "as many row ids as rows");
    for (std::size_t i = 1; i < chunk.ids.size(); ++i)
      require(chunk.ids[i - 1] < chunk.ids[i], "row ids ascend");
    if (at.kind != format::chunk_kind::rows) {
      static_cast<void>(decoder.small(chunk));
    } else if (decoder.rows(chunk, detail::decode_mode::verify) == nullptr) {
      require(decoder.rows(chunk, detail::decode_mode::apply) == nullptr, "what was verified can be applied");
    }
  }
  static_cast<void>(decoder.check_small());
}

}  // namespace fuzz
