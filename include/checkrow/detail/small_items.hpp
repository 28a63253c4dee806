// The dense parameters and states of a checkpoint: read and checked as a whole before anything is applied.
#pragma once

#include <checkrow/codecs/exact.hpp>
#include <checkrow/detail/restore_plan.hpp>
#include <checkrow/detail/segment_reader.hpp>

namespace checkrow::inline v0::detail {

class small_items {
 public:
  small_items(const format::manifest& saved, const restore_plan& plan)
      : saved_(saved), plan_(plan), dense_(saved.dense.size()), states_(saved.states.size()) {}

  [[nodiscard]] static bool is_small(const format::footer_entry& entry) noexcept {
    return entry.kind == format::chunk_kind::dense || entry.kind == format::chunk_kind::state;
  }

  /// Reads all of them out of the segments that the checkpoint's own save wrote.
  [[nodiscard]] status read(const std::vector<segment_reader>& segments, std::uint64_t& bytes) {
    std::vector<std::byte> whole;
    checked_chunk chunk;
    for (const segment_reader& segment : segments) {
      if (segment.entry().sequence != saved_.sequence) continue;
      for (const format::footer_entry& entry : segment.chunks()) {
        if (!is_small(entry)) continue;
        whole.resize(entry.bytes);
        if (status read = segment.read(entry.offset, whole); !read) return read;
        if (status sound = segment.check(entry, whole, chunk); !sound) return sound;
        if (const char* wrong = take(chunk)) return segment.corrupt(entry, wrong);
        bytes += entry.bytes;
      }
    }
    if (const char* wrong = check_complete())
      return make_error(error_kind::corrupt, {wrong},
                        {saved_.segments.empty() ? "" : saved_.segments.back().name},
                        {"restore falls back to the checkpoint before it"});
    return {};
  }

  /// Copies dense parameters, then hands the states back to the trainer.
  [[nodiscard]] status apply(const registered_model& model) const {
    for (std::size_t i = 0; i < dense_.size(); ++i)
      if (plan_.dense[i]) std::copy(dense_[i].begin(), dense_[i].end(), model.dense[*plan_.dense[i]].data);
    for (std::size_t i = 0; i < states_.size(); ++i) {
      if (!plan_.states[i]) continue;
      const registered_state& state = model.states[*plan_.states[i]];
      if (status loaded =
              guarded("load_state()", "state " + state.name, [&] { return state.load(states_[i]); });
          !loaded)
        return loaded;
    }
    return {};
  }

 private:
  [[nodiscard]] const char* take(const checked_chunk& chunk) {
    const format::chunk_header& header = chunk.header;
    const bool dense = header.kind == format::chunk_kind::dense;
    if (header.table >= (dense ? dense_.size() : states_.size()))
      return "a chunk belongs to nothing that the manifest lists";
    std::vector<std::byte>& so_far = dense ? dense_[header.table] : states_[header.table];
    const std::uint64_t size = dense ? saved_.dense[header.table].element_bytes : 1;
    const format::chunk_column& column = header.columns[0];
    if (column.codec.id != exact::id || column.shape.row_bytes() != size ||
        header.first * size != so_far.size() || column.bytes / size != header.rows ||
        column.bytes % size != 0 || !chunk.ids.empty())
      return "a chunk of a dense parameter or a state is not what was written";
    const auto bytes = chunk.section(0);
    so_far.insert(so_far.end(), bytes.begin(), bytes.end());
    return nullptr;
  }

  [[nodiscard]] const char* check_complete() const {
    for (std::size_t i = 0; i < dense_.size(); ++i)
      if (dense_[i].size() != saved_.dense[i].count * saved_.dense[i].element_bytes)
        return "a dense parameter is not complete";
    for (std::size_t i = 0; i < states_.size(); ++i)
      if (states_[i].size() != saved_.states[i].bytes) return "a state is not complete";
    return nullptr;
  }

  const format::manifest& saved_;
  const restore_plan& plan_;
  std::vector<std::vector<std::byte>> dense_, states_;
};

}  // namespace checkrow::inline v0::detail
