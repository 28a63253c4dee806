#include "segments.hpp"

#include <checkrow/checkrow.hpp>

namespace fuzz {

namespace {

/// Tables of several widths and codecs, a dense parameter and a state.
struct model {
  static constexpr std::size_t rows = 90;
  std::vector<float> narrow = std::vector<float>(rows * 5), wide = std::vector<float>(rows * 70);
  std::vector<float> adagrad = std::vector<float>(rows);
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

  [[nodiscard]] bool operator==(const model& other) const {
    const auto same = [](const auto& a, const auto& b) {  // NaN too
      return std::memcmp(a.data(), b.data(), a.size() * sizeof a[0]) == 0;
    };
    return same(narrow, other.narrow) && same(wide, other.wide) && same(adagrad, other.adagrad) &&
           same(mlp, other.mlp) && reader == other.reader;
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

/// Puts a full save and a delta there; the delta's manifest.
format::manifest save(memory& sink) {
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
  format::manifest manifest;
  for (const checkrow::blob& one : *sink.list()) {
    if (!one.name.ends_with(".manifest")) continue;
    const auto text = sink.find(one.name);  // of the two, the delta's is listed last
    manifest = *format::read_manifest({reinterpret_cast<const char*>(text->data()), text->size()}, one.name);
  }
  return manifest;
}

/// Gives a segment another attempt id.
void rename(memory& sink, format::segment_entry& entry, std::uint8_t attempt) {
  bytes content = *sink.find(entry.name);
  auto chunks = chunks_of(content, entry.attempt);
  entry.attempt.fill(attempt);
  for (format::footer_entry& chunk : chunks)
    chunk = mend_chunk(std::span(content).subspan(chunk.offset, chunk.bytes), chunk.head_bytes, entry.attempt,
                       chunk.offset);
  const auto header = format::segment_header(entry.attempt, entry.part);
  std::copy(header.begin(), header.end(), content.begin());
  const std::size_t footer = chunks.back().offset + chunks.back().bytes;
  content.resize(footer);
  const auto end = format::write_footer(chunks, entry.attempt, footer);
  append(content, input_bytes(end.bytes));
  entry.footer_hash = end.footer_hash;
  entry.name = format::segment_name(entry.sequence, format::hex(entry.attempt), entry.part);
  sink.put(entry.name, std::move(content));
}

}  // namespace

checkpoint::checkpoint() : manifest(save(sink)) {
  manifest.created = 1;
  manifest.attempt.fill(2);
  for (std::size_t i = 0; i < manifest.segments.size(); ++i)
    rename(sink, manifest.segments[i], static_cast<std::uint8_t>(i + 1));
  manifest_name = format::manifest_name(manifest.sequence, format::hex(manifest.attempt));
}

memory checkpoint::copy_of_segments() const {
  memory copy;
  for (const format::segment_entry& one : manifest.segments) copy.put(one.name, *sink.find(one.name));
  return copy;
}

const checkpoint& saved() {
  static const checkpoint one;
  return one;
}

/// Restores the model from that one checkpoint: checked first, and then again at once and in the other order.
/// True if it was taken.
bool restores(const memory& sink, const checkrow::restore_options& asked) {
  const auto restored = [&](model& values, bool verify_first, checkrow::restore_order order) {
    checkrow::checkpointer ckpt{checkrow::codec_set{checkrow::uniform<4>{}, checkrow::adaptive<3>{}}, sink};
    static_cast<void>(values.attach(ckpt));
    checkrow::restore_options options = asked;
    options.verify_first = verify_first;
    options.order = order;
    options.threads = 1;
    options.huge_pages = false;
    const auto found = ckpt.try_restore(options);
    return found && *found;
  };
  model before, once, twice;
  const bool taken = restored(once, true, checkrow::restore_order::oldest_first);
  if (!taken) require(once == before, "what is refused leaves the model as it was");
  require(restored(twice, false, checkrow::restore_order::newest_first) == taken,
          "what is refused when it is checked first is refused at last");
  if (taken) require(once == twice, "the order of segments does not matter");
  return taken;
}

bool restores(bytes segment, const format::segment_entry& entry) {
  format::manifest manifest = saved().manifest;
  manifest.segments = {entry};
  memory sink;
  sink.put(entry.name, std::move(segment));
  const std::string text = format::write_manifest(manifest);
  const auto from = std::as_bytes(std::span(text));
  sink.put(saved().manifest_name, {from.begin(), from.end()});
  checkrow::restore_options tables_only;
  tables_only.tables = {"a", "b"};
  return restores(sink, tables_only);
}

}  // namespace fuzz
