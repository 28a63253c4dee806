// Decodes checked chunks into a model, or into scratch memory to see that they can be.
#pragma once

#include <checkrow/codecs/builtin.hpp>
#include <checkrow/detail/restore_plan.hpp>
#include <checkrow/detail/segment_reader.hpp>

namespace checkrow::inline v0::detail {

/// Where a restore writes: the model itself, or nowhere (verification).
enum class decode_mode : bool { verify, apply };

class chunk_decoder {
 public:
  chunk_decoder(const any_codecs& codecs, const format::manifest& saved, const restore_plan& plan)
      : codecs_(codecs),
        saved_(saved),
        plan_(plan),
        dense_seen_(saved.dense.size()),
        states_(saved.states.size()) {}

  /// A chunk of rows. Null, or what is wrong with it.
  [[nodiscard]] const char* rows(const checked_chunk& chunk, decode_mode mode) {
    const format::chunk_header& header = chunk.header;
    if (header.table >= saved_.tables.size())
      return "a chunk belongs to a table that the manifest does not list";
    const format::table_schema& schema = saved_.tables[header.table];
    if (header.last >= schema.rows) return "a chunk has a row id out of range";
    if (header.columns.size() != schema.columns.size()) return "a chunk has not the table's columns";
    for (std::size_t c = 0; c < schema.columns.size(); ++c) {
      if (header.columns[c].shape != schema.columns[c].shape) return "a chunk's column is not the table's";
      const registered_column* const column = plan_.tables[header.table].columns[c];
      if (column == nullptr) continue;
      const row_span to =
          mode == decode_mode::apply ? target(*column, chunk) : scratch(header.columns[c].shape, header.rows);
      if (!decode(header.columns[c], chunk.section(c), header.rows, to))
        return "a chunk's column cannot be decoded";
    }
    return nullptr;
  }

  /// A chunk of a dense parameter or a state. Nothing is applied before finish_small().
  [[nodiscard]] const char* small(const checked_chunk& chunk) {
    const format::chunk_header& header = chunk.header;
    const bool dense = header.kind == format::chunk_kind::dense;
    const std::size_t items = dense ? saved_.dense.size() : saved_.states.size();
    if (header.table >= items) return "a chunk belongs to nothing that the manifest lists";
    std::vector<std::byte>& so_far = dense ? dense_seen_[header.table] : states_[header.table];
    const std::uint64_t size = dense ? saved_.dense[header.table].element_bytes : 1;
    const format::chunk_column& column = header.columns[0];
    if (column.codec.id != exact_id || column.shape.row_bytes() != size ||
        header.first * size != so_far.size() || column.bytes / size != header.rows ||
        column.bytes % size != 0 || !chunk.ids.empty())
      return "a chunk of a dense parameter or a state is not what was written";
    const auto bytes = chunk.section(0);
    so_far.insert(so_far.end(), bytes.begin(), bytes.end());
    return nullptr;
  }

  /// Every dense parameter and state has to be there in full.
  [[nodiscard]] const char* check_small() const {
    for (std::size_t i = 0; i < dense_seen_.size(); ++i)
      if (dense_seen_[i].size() != saved_.dense[i].count * saved_.dense[i].element_bytes)
        return "a dense parameter is not complete";
    for (std::size_t i = 0; i < states_.size(); ++i)
      if (states_[i].size() != saved_.states[i].bytes) return "a state is not complete";
    return nullptr;
  }

  /// Applies dense parameters, then hands the states back to the trainer.
  [[nodiscard]] status apply_small(const registered_model& model) const {
    for (std::size_t i = 0; i < dense_seen_.size(); ++i)
      if (plan_.dense[i])
        std::copy(dense_seen_[i].begin(), dense_seen_[i].end(), model.dense[*plan_.dense[i]].data);
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

  void forget_small() {
    for (auto& one : dense_seen_) one.clear();
    for (auto& one : states_) one.clear();
  }

 private:
  [[nodiscard]] static row_span target(const registered_column& column, const checked_chunk& chunk) noexcept {
    if (chunk.ids.empty())  // a long run of rows that training will not read at once
      return {column.data + column.stride * chunk.header.first, column.stride, nullptr, true};
    return {column.data, column.stride, chunk.ids.data()};
  }
  [[nodiscard]] row_span scratch(const column_shape& shape, std::uint64_t rows) {
    scratch_.reserve(rows * shape.row_bytes());
    return {scratch_.data(), shape.row_bytes()};
  }

  [[nodiscard]] bool decode(const format::chunk_column& column, std::span<const std::byte> section,
                            std::uint64_t rows, row_span to) {
    const decode_outcome outcome = decode_builtin(column.codec, column.shape, section, rows, to);
    if (outcome != decode_outcome::unknown) return outcome == decode_outcome::decoded;
    return codecs_.decode(column.codec, column.shape, section, rows, to);
  }

  const any_codecs& codecs_;
  const format::manifest& saved_;
  const restore_plan& plan_;
  raw_buffer scratch_;
  std::vector<std::vector<std::byte>> dense_seen_, states_;
};

/// Can this build decode whatever the checkpoint may hold? Otherwise an error that names the codec.
[[nodiscard]] inline status check_codec_known(const any_codecs& codecs, codec_choice codec,
                                              const format::manifest& saved, const std::string& where) {
  if (builtin_codecs::contains(codec)) return {};
  const auto is_this = [&](const format::codec_schema& one) { return one.codec == codec; };
  const auto text_of = [](const format::codec_schema& one) {
    return one.name + ", version " + std::to_string(one.version);
  };
  const auto known = codecs.describe();
  const auto mine = std::find_if(known.begin(), known.end(), is_this);
  const auto theirs = std::find_if(saved.codecs.begin(), saved.codecs.end(), is_this);
  std::string named = "codec id " + std::to_string(codec.id) + ", " + std::to_string(codec.bits) + " bits";
  if (theirs != saved.codecs.end()) named += " (" + text_of(*theirs) + ")";
  if (mine == known.end())
    return make_error(error_kind::unsupported,
                      {"the checkpoint needs a codec that this program does not have: ", named}, {where},
                      {"add that codec to the checkpointer's codec_set"});
  if (theirs != saved.codecs.end() && (theirs->name != mine->name || theirs->version != mine->version))
    return make_error(error_kind::unsupported,
                      {"the checkpoint was written with another codec of this id: ", named}, {where},
                      {"this program's is ", text_of(*mine)});
  return {};
}

}  // namespace checkrow::inline v0::detail
