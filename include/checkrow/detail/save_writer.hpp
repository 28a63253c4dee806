// Encodes the rows of a save and writes them to one segment of the sink.
#pragma once

#include <checkrow/detail/chunk_encoder.hpp>
#include <checkrow/detail/model.hpp>
#include <checkrow/options.hpp>
#include <checkrow/ticket.hpp>
#include <chrono>

namespace checkrow::inline v0::detail {

using steady_clock = std::chrono::steady_clock;
[[nodiscard]] inline double seconds_since(steady_clock::time_point start) noexcept {
  return std::chrono::duration<double>(steady_clock::now() - start).count();
}

/// A dense parameter or a state as it was at the boundary.
struct small_copy {
  format::chunk_kind kind;
  std::uint32_t item = 0;
  column_shape element;
  std::uint64_t count = 0;
  std::vector<std::byte> bytes;
};

/// One table's share of a save.
struct table_job {
  const registered_table* table = nullptr;
  codec_choice codec;
  row_source source;
};

/// The largest buffer that a chunk's encoding may take, bounds being pessimistic: a chunk has fewer rows
/// instead.
inline constexpr std::size_t encode_buffer_limit = std::size_t{8} << 20;

class save_writer {
 public:
  save_writer(any_sink& sink, const any_codecs& codecs, const format::attempt_id& attempt, const options& set,
              save_figures& figures)
      : sink_(sink),
        encoder_(codecs, attempt, set.error_sample),
        attempt_(attempt),
        part_(set.part),
        error_sample_(set.error_sample),
        figures_(figures) {}

  /// Writes everything to a segment of this name and makes it durable. On failure nothing of that name
  /// exists.
  [[nodiscard]] result<format::segment_entry> write(const std::string& name,
                                                    const std::vector<table_job>& tables,
                                                    const std::vector<small_copy>& small) {
    auto created = sink_.create(name);
    if (!created) return std::move(created).error();
    writer_ = created->get();
    status written = write_all(tables, small);
    if (!written) {
      writer_->abandon();
      return std::move(written).error();
    }
    format::segment_entry entry;
    entry.name = name;
    entry.part = part_;
    entry.attempt = attempt_;
    entry.bytes = position_;
    entry.footer_hash = footer_hash_;
    entry.rows = figures_.rows;
    entry.errors = errors_.all(error_sample_);
    for (const format::column_error& e : entry.errors)
      figures_.errors.push_back({tables[e.table].table->name, tables[e.table].table->columns[e.column].name,
                                 e.rows, e.mean, e.largest, e.worst_row});
    return entry;
  }

 private:
  [[nodiscard]] status write_all(const std::vector<table_job>& tables, const std::vector<small_copy>& small) {
    const auto header = format::segment_header(attempt_, part_);
    if (status done = append(header); !done) return done;
    for (std::uint32_t t = 0; t < tables.size(); ++t)
      if (status done = write_table(t, tables[t]); !done) return done;
    for (const small_copy& one : small)
      if (status done = write_small(one); !done) return done;
    const format::segment_end end = format::write_footer(entries_, attempt_, position_);
    footer_hash_ = end.footer_hash;
    if (status done = append(end.bytes); !done) return done;
    const auto start = steady_clock::now();
    status durable = writer_->commit();
    figures_.write_seconds += seconds_since(start);
    return durable;
  }

  /// Chunks of one table: each as large an aligned range of rows as keeps it within the limits.
  [[nodiscard]] status write_table(std::uint32_t index, const table_job& job) {
    const auto& columns = job.table->columns;
    const std::size_t per_row = encoder_.bound(columns, job.codec, 1024) / 1024 + 1;
    std::uint64_t most = std::clamp<std::uint64_t>(encode_buffer_limit / per_row, 1,
                                                   std::uint64_t{1} << format::full_range_shift);
    std::uint64_t covered = 0;  // rows below this id are written
    for (std::uint64_t i = 0; i < job.source.rows;) {
      const auto [rows, shift] = next_range(job.source, i, covered, most);
      const auto start = steady_clock::now();
      const encoded_chunk chunk =
          encoder_.encode_rows(index, columns, job.codec, job.source, i, rows, shift, position_);
      figures_.encode_seconds += seconds_since(start);
      if (chunk.payload_bytes > format::chunk_payload_limit && rows > 1) {
        most =
            std::clamp<std::uint64_t>(rows * format::chunk_payload_limit / chunk.payload_bytes, 1, rows - 1);
        continue;
      }
      if (status done = append(chunk); !done) return done;
      errors_.add(index, chunk.errors);
      i += rows;
      covered = (chunk.entry.first >> shift << shift) + (std::uint64_t{1} << shift);
      figures_.rows += rows;
    }
    return {};
  }

  struct range {
    std::uint64_t rows;
    std::uint8_t shift;
  };
  /// The rows from i on that lie in the largest aligned range that starts at `covered` or later and holds at
  /// most `most` of them.
  [[nodiscard]] static range next_range(const row_source& source, std::uint64_t i, std::uint64_t covered,
                                        std::uint64_t most) noexcept {
    const std::uint64_t first = source.id(i);
    for (unsigned shift = source.all ? format::full_range_shift : format::largest_range_shift; shift > 0;
         --shift) {
      const std::uint64_t start = first >> shift << shift, last = start + ((std::uint64_t{1} << shift) - 1);
      if (start < covered) continue;
      std::uint64_t end = std::min(last, source.rows - 1) + 1;  // of all rows
      if (!source.all)
        end = std::uint64_t(std::upper_bound(source.ids.begin() + std::ptrdiff_t(i), source.ids.end(), last) -
                            source.ids.begin());
      if (end - i <= most) return {end - i, std::uint8_t(shift)};
    }
    return {1, 0};
  }

  [[nodiscard]] status write_small(const small_copy& one) {
    const std::uint64_t most = format::chunk_payload_limit / one.element.element_bytes;
    for (std::uint64_t first = 0; first < one.count; first += most) {
      const std::uint64_t n = std::min(most, one.count - first);
      const std::byte* const from = one.bytes.data() + first * one.element.element_bytes;
      if (status done =
              append(encoder_.encode_bytes(one.kind, one.item, one.element, first, n, from, position_));
          !done)
        return done;
    }
    return {};
  }

  [[nodiscard]] status append(const encoded_chunk& chunk) {
    entries_.push_back(chunk.entry);
    return append(chunk.bytes);
  }
  [[nodiscard]] status append(std::span<const std::byte> bytes) {
    const auto start = steady_clock::now();
    status done = writer_->append(bytes);
    figures_.write_seconds += seconds_since(start);
    figures_.bytes += bytes.size();
    position_ += bytes.size();
    return done;
  }

  any_sink& sink_;
  chunk_encoder encoder_;
  format::attempt_id attempt_;
  std::uint32_t part_;
  std::uint64_t error_sample_;
  error_totals errors_;
  save_figures& figures_;
  any_writer* writer_ = nullptr;
  std::vector<format::footer_entry> entries_;
  std::uint64_t position_ = 0;
  std::uint64_t footer_hash_ = 0;
};

}  // namespace checkrow::inline v0::detail
