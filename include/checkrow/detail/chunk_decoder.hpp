// Decodes checked chunks of rows into a model, or into scratch memory to see that they can be.
#pragma once

#include <checkrow/codecs/builtin.hpp>
#include <checkrow/detail/page_buffer.hpp>
#include <checkrow/detail/restore_plan.hpp>
#include <checkrow/detail/segment_reader.hpp>
#include <checkrow/detail/zeroed_words.hpp>

namespace checkrow::inline v0::detail {

/// Where a restore writes: the model itself, or nowhere (verification).
enum class decode_mode : bool { verify, apply };

/// The rows of one table that have been restored already: what newest first goes by. A row is claimed once,
/// from any thread.
class restored_rows {
 public:
  restored_rows() = default;
  explicit restored_rows(std::uint64_t rows) : words_((rows + 63) / 64) {}

  [[nodiscard]] bool used() const noexcept { return words_.size() != 0; }
  /// Those of `bits`, rows of one block of 64, that were not claimed before.
  [[nodiscard]] std::uint64_t claim(std::uint64_t block, std::uint64_t bits) const noexcept {
    return bits & ~std::atomic_ref(words_[block]).fetch_or(bits, std::memory_order_relaxed);
  }

 private:
  zeroed_words words_;
};

/// What a thread decodes with.
struct decode_scratch {
  page_buffer rows;                  ///< of one column, before those wanted are copied
  std::vector<std::uint32_t> slots;  ///< the rows of a chunk that are wanted, if not all are
};

/// Shared by the threads of a restore.
class chunk_decoder {
 public:
  chunk_decoder(const any_codecs& codecs, const format::manifest& saved, const restore_plan& plan)
      : codecs_(codecs), saved_(saved), plan_(plan), restored_(saved.tables.size()) {}

  /// From now on a row is written by the first chunk that has it.
  void skip_restored_rows() {
    for (std::size_t t = 0; t < restored_.size(); ++t)
      if (plan_.tables[t]) restored_[t] = restored_rows(saved_.tables[t].rows);
  }

  /// A chunk of rows of a table that is wanted. Null, or what is wrong with it.
  [[nodiscard]] const char* rows(const checked_chunk& chunk, decode_mode mode,
                                 decode_scratch& scratch) const {
    const format::chunk_header& header = chunk.header;
    if (header.table >= saved_.tables.size())
      return "a chunk belongs to a table that the manifest does not list";
    const format::table_schema& schema = saved_.tables[header.table];
    if (header.last >= schema.rows) return "a chunk has a row id out of range";
    if (header.columns.size() != schema.columns.size()) return "a chunk has not the table's columns";
    for (std::size_t c = 0; c < schema.columns.size(); ++c)
      if (header.columns[c].shape != schema.columns[c].shape) return "a chunk's column is not the table's";
    const table_target& target = *plan_.tables[header.table];
    const bool whole = mode == decode_mode::verify || choose(chunk, target, scratch.slots);
    if (!whole && scratch.slots.empty()) return nullptr;
    for (std::size_t c = 0; c < schema.columns.size(); ++c) {
      const registered_column* const column = target.columns[c];
      if (column == nullptr) continue;
      const column_shape& shape = header.columns[c].shape;
      row_span to{nullptr, shape.row_bytes()};
      if (mode == decode_mode::apply && whole)
        to = in_table(*column, chunk);
      else if (scratch.rows.reserve(header.rows * shape.row_bytes()))
        to.base = scratch.rows.data();
      else
        return "a chunk's rows do not fit the memory";
      if (!decode(header.columns[c], chunk.section(c), header.rows, to))
        return "a chunk's column cannot be decoded";
      if (whole) continue;
      for (const std::uint32_t slot : scratch.slots)
        std::memcpy(column->data + column->stride * chunk.id(slot), to.row(slot), shape.row_bytes());
    }
    return nullptr;
  }

 private:
  [[nodiscard]] static row_span in_table(const registered_column& column,
                                         const checked_chunk& chunk) noexcept {
    if (chunk.ids.empty())  // a long run of rows that training will not read at once
      return {column.data + column.stride * chunk.header.first, column.stride, nullptr, true};
    return {column.data, column.stride, chunk.ids.data()};
  }

  /// Which rows of a chunk are wanted, and not restored yet: all (true), or those in `slots`.
  [[nodiscard]] bool choose(const checked_chunk& chunk, const table_target& target,
                            std::vector<std::uint32_t>& slots) const {
    slots.clear();
    const format::chunk_header& header = chunk.header;
    const restored_rows& restored = restored_[header.table];
    const bool inside = header.first >= target.first && header.last < target.end;
    if (inside && !restored.used()) return true;
    for (std::uint64_t i = 0; i < header.rows;) {
      const std::uint64_t block = chunk.id(i) / 64, start = i;
      std::uint64_t bits = 0;
      for (; i < header.rows && chunk.id(i) / 64 == block; ++i)
        if (const std::uint64_t id = chunk.id(i); id >= target.first && id < target.end)
          bits |= std::uint64_t{1} << (id % 64);
      if (restored.used() && bits != 0) bits = restored.claim(block, bits);
      for (std::uint64_t k = start; bits != 0 && k < i; ++k)
        if ((bits >> (chunk.id(k) % 64) & 1) != 0) slots.push_back(std::uint32_t(k));
    }
    return slots.size() == header.rows;
  }

  [[nodiscard]] bool decode(const format::chunk_column& column, std::span<const std::byte> section,
                            std::uint64_t rows, row_span to) const {
    const decode_outcome outcome = decode_builtin(column.codec, column.shape, section, rows, to);
    if (outcome != decode_outcome::unknown) return outcome == decode_outcome::decoded;
    return codecs_.decode(column.codec, column.shape, section, rows, to);
  }

  const any_codecs& codecs_;
  const format::manifest& saved_;
  const restore_plan& plan_;
  std::vector<restored_rows> restored_;
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
