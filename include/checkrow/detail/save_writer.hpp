// Encodes the rows of a save and writes them to one segment of the sink, with any number of workers.
#pragma once

#include <atomic>
#include <checkrow/detail/background.hpp>
#include <checkrow/detail/chunk_encoder.hpp>
#include <checkrow/detail/model.hpp>
#include <checkrow/detail/row_ranges.hpp>
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
};

/// The largest buffer that a chunk's encoding may take, bounds being pessimistic: a chunk has fewer rows
/// instead.
inline constexpr std::size_t encode_buffer_limit = std::size_t{8} << 20;

/// Each worker takes a batch of rows from the capture, encodes it into a buffer of its own, and appends the
/// chunk to the sink's blob under a mutex: positions are given in that order. Memory is a batch and a chunk a
/// worker; a slow sink holds the workers back.
class save_writer {
 public:
  save_writer(any_sink& sink, const any_codecs& codecs, any_capture& capture,
              const format::attempt_id& attempt, const options& set, const std::atomic<bool>& cancelled,
              save_figures& figures)
      : sink_(sink),
        codecs_(codecs),
        capture_(capture),
        attempt_(attempt),
        set_(set),
        cancelled_(cancelled),
        figures_(figures) {}

  /// Writes everything to a segment of this name and makes it durable. On failure nothing of that name
  /// exists, and the capture is cancelled.
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
    entry.part = set_.part;
    entry.attempt = attempt_;
    entry.bytes = position_;
    entry.footer_hash = footer_hash_;
    entry.rows = figures_.rows;
    entry.errors = errors_.all(set_.error_sample);
    for (const format::column_error& e : entry.errors)
      figures_.errors.push_back({tables[e.table].table->name, tables[e.table].table->columns[e.column].name,
                                 e.rows, e.mean, e.largest, e.worst_row});
    return entry;
  }

  std::function<void()> progress{};  ///< called now and then, from any worker; the figures are as of then

 private:
  [[nodiscard]] status write_all(const std::vector<table_job>& tables, const std::vector<small_copy>& small) {
    const auto header = format::segment_header(attempt_, set_.part);
    if (status done = append(header); !done) return done;
    if (status done = write_rows(tables); !done) return done;
    chunk_encoder encoder(codecs_, attempt_, set_.error_sample);
    for (const small_copy& one : small)
      if (status done = write_small(encoder, one); !done) return done;
    const format::segment_end end = format::write_footer(entries_, attempt_, position_);
    footer_hash_ = end.footer_hash;
    if (status done = append(end.bytes); !done) return done;
    if (status wanted = check_cancelled(); !wanted) return wanted;
    const auto start = steady_clock::now();
    status durable = writer_->commit();
    figures_.queued_bytes = 0;
    figures_.write_seconds += seconds_since(start);
    return durable;
  }

  [[nodiscard]] status write_rows(const std::vector<table_job>& tables) {
    run_on_threads(std::max(set_.workers, 1u), [&] { work(tables); });
    if (!failed_) return std::move(failed_);
    if (status whole = capture_.outcome(); !whole) return whole;
    return check_cancelled();
  }

  /// One worker, until no rows are left or something failed.
  void work(const std::vector<table_job>& tables) noexcept {
    double seconds = 0;
    status done = guarded("saving", "", [&] {
      chunk_encoder encoder(codecs_, attempt_, set_.error_sample);
      row_batch batch;
      status written;
      while (written && capture_.next(batch)) {
        written = write_batch(encoder, tables[batch.table], batch, seconds);
      }
      return written;
    });
    if (!done) capture_.cancel();
    const std::lock_guard lock(mutex_);
    if (failed_ && !done) failed_ = std::move(done);
    figures_.encode_seconds += seconds;
  }

  /// One batch, as a chunk, or as more where a chunk would pass a limit.
  [[nodiscard]] status write_batch(chunk_encoder& encoder, const table_job& job, const row_batch& batch,
                                   double& seconds) {
    const auto& columns = job.table->columns;
    const std::size_t per_row = encoder.bound(columns, job.codec, 1024) / 1024 + 1;
    std::uint64_t most =
        std::clamp<std::uint64_t>(encode_buffer_limit / per_row, 1, std::max<std::uint64_t>(batch.rows, 1));
    for (row_ranges ranges; ranges.row < batch.rows;) {
      const row_ranges before = ranges;
      const std::uint64_t rows =
          ranges.next(batch.ids, batch.rows, batch.aside ? format::largest_range_shift : batch.range_shift,
                      most, batch.first);
      const auto start = steady_clock::now();
      const result<std::size_t> encoded = encoder.encode_rows(columns, job.codec, batch, before.row, rows,
                                                              batch.aside ? format::no_range : ranges.shift);
      seconds += seconds_since(start);
      if (!encoded) return encoded.error();
      if (*encoded > format::chunk_payload_limit && rows > 1) {
        most = std::clamp<std::uint64_t>(rows * format::chunk_payload_limit / *encoded, 1, rows - 1);
        ranges = before;
        continue;
      }
      if (status done = append(encoder); !done) return done;
    }
    return {};
  }

  [[nodiscard]] status write_small(chunk_encoder& encoder, const small_copy& one) {
    const std::uint64_t most = format::chunk_payload_limit / one.element.element_bytes;
    for (std::uint64_t first = 0; first < one.count; first += most) {
      const std::uint64_t n = std::min(most, one.count - first);
      encoder.encode_bytes(one.kind, one.item, one.element, first, n,
                           one.bytes.data() + first * one.element.element_bytes);
      if (status done = append(encoder); !done) return done;
    }
    return {};
  }

  [[nodiscard]] status check_cancelled() const {
    if (!cancelled_) return {};
    return make_error(error_kind::cancelled, {"a later save ended this one"}, {},
                      {"its rows are in the later one"});
  }

  /// Appends the chunk that this encoder holds.
  [[nodiscard]] status append(chunk_encoder& encoder) {
    const std::lock_guard lock(mutex_);
    const encoded_chunk chunk = encoder.place(position_);
    entries_.push_back(chunk.entry);
    if (chunk.entry.kind == format::chunk_kind::rows) {
      figures_.rows += chunk.entry.rows;
      errors_.add(chunk.entry.table, chunk.errors);
    }
    status done = append(chunk.bytes);
    const auto now = steady_clock::now();
    if (progress && now - told_ > std::chrono::milliseconds(50)) {
      told_ = now;
      figures_.queued_bytes = writer_->queued_bytes();
      progress();
    }
    return done;
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
  const any_codecs& codecs_;
  any_capture& capture_;
  format::attempt_id attempt_;
  const options& set_;
  const std::atomic<bool>& cancelled_;
  any_writer* writer_ = nullptr;
  std::mutex mutex_;  ///< over what follows
  save_figures& figures_;
  error_totals errors_;
  std::vector<format::footer_entry> entries_;
  std::uint64_t position_ = 0;
  steady_clock::time_point told_ = steady_clock::now();
  std::uint64_t footer_hash_ = 0;
  status failed_;
};

}  // namespace checkrow::inline v0::detail
