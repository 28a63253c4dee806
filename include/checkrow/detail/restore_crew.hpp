// The threads of a restore: they read runs of chunks and decode them, segment by segment, in bounded memory.
#pragma once

#include <checkrow/detail/chunk_decoder.hpp>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace checkrow::inline v0::detail {

/// Chunks of one segment that follow each other: read at once, by one thread.
struct chunk_run {
  std::size_t stage = 0;  ///< of the order in which segments are applied
  const segment_reader* segment = nullptr;
  std::span<const format::footer_entry> chunks;

  [[nodiscard]] std::uint64_t bytes() const noexcept {
    return chunks.back().offset + chunks.back().bytes - chunks.front().offset;
  }
  /// What is read: whole pages, as direct I/O asks for, within the segment.
  [[nodiscard]] std::uint64_t read_first() const noexcept {
    return chunks.front().offset / page_buffer::page * page_buffer::page;
  }
  [[nodiscard]] std::uint64_t read_end() const noexcept {
    const std::uint64_t end = chunks.back().offset + chunks.back().bytes;
    return std::min((end / page_buffer::page + 1) * page_buffer::page, segment->entry().bytes);
  }
};

/// One pass over the rows of a checkpoint. Twice as many threads as decode take part, each with a buffer of
/// its own: while some decode, others read. A segment's rows are decoded once all segments before it are
/// done.
class restore_crew {
 public:
  restore_crew(const chunk_decoder& decoder, const restore_plan& plan, std::uint32_t threads,
               std::uint64_t memory_limit)
      : decoder_(decoder),
        plan_(plan),
        decoders_(threads != 0 ? threads : std::max(1u, std::thread::hardware_concurrency())),
        memory_limit_(memory_limit) {}

  /// Called with each chunk that has been applied, one at a time; set before run().
  std::function<void(const segment_reader&, checked_chunk&)> applied;
  /// Called in the calling thread with the bytes read so far; set before run().
  std::function<void(std::uint64_t)> progress;

  /// The segments, oldest first. `scratch`: rows are decoded there, not only into the tables.
  void plan_runs(const std::vector<segment_reader>& segments, bool newest_first, bool scratch) {
    chunks_bytes_ = largest_rows_ = 0;
    for (const segment_reader& segment : segments)
      for (const format::footer_entry& chunk : segment.chunks()) {
        if (!wanted(chunk)) continue;
        chunks_bytes_ = std::max(chunks_bytes_, chunk.bytes);
        for (const registered_column* column : plan_.target(chunk.table)->columns)
          if (column != nullptr && scratch)
            largest_rows_ = std::max<std::uint64_t>(largest_rows_, chunk.rows * column->shape.row_bytes());
      }
    share_memory();
    for (std::size_t s = 0; s < segments.size(); ++s)
      add_runs(segments[newest_first ? segments.size() - 1 - s : s]);
  }

  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::uint64_t rows() const noexcept { return rows_; }

  /// Every chunk is read and checked, and decoded into the model or (verify) into scratch memory. The error
  /// is that of the first chunk that is not sound; what comes after it may or may not have been applied.
  [[nodiscard]] status run(decode_mode mode) {
    mode_ = mode;
    next_ = stage_ = decoding_ = 0;
    done_bytes_ = 0;
    failed_at_ = runs_.size();
    failure_ = {};
    left_ = in_stage_;
    skip_empty_stages();
    std::vector<std::thread> others;
    const std::size_t wanted = std::min<std::size_t>(members_, runs_.size());
    for (std::size_t i = 1; i < wanted; ++i)  // where the system gives fewer, fewer take part
      swallowed([&] { others.emplace_back([this] { work(false); }); });
    work(true);
    for (std::thread& other : others) other.join();
    if (failure_.ok() && progress) progress(done_bytes_);
    return std::move(failure_);
  }

 private:
  static constexpr std::uint64_t run_bytes_wanted = std::uint64_t{4} << 20;

  [[nodiscard]] bool wanted(const format::footer_entry& chunk) const noexcept {
    const table_target* const target = plan_.target(chunk.table);
    return chunk.kind == format::chunk_kind::rows && target != nullptr &&
           target->wants(chunk.first, chunk.last);
  }

  /// Long runs first; where memory is scarce shorter ones, then fewer threads.
  void share_memory() {
    members_ = std::size_t{2} * decoders_;
    const std::uint64_t edges = 2 * page_buffer::page, least = chunks_bytes_ + edges + largest_rows_;
    const std::uint64_t each = memory_limit_ / members_;
    if (each < least)
      members_ = std::max<std::size_t>(1, std::size_t(memory_limit_ / std::max<std::uint64_t>(least, 1)));
    const std::uint64_t room = memory_limit_ / members_;
    run_limit_ =
        std::max(chunks_bytes_, std::min(run_bytes_wanted, room - std::min(room, edges + largest_rows_)));
  }

  void add_runs(const segment_reader& segment) {
    in_stage_.push_back(0);
    const std::span<const format::footer_entry> all(segment.chunks());
    for (std::size_t i = 0; i < all.size();) {
      if (!wanted(all[i])) {
        ++i;
        continue;
      }
      std::size_t n = 0;
      for (std::uint64_t so_far = 0; i + n < all.size() && wanted(all[i + n]); ++n) {
        so_far += all[i + n].bytes;
        if (n != 0 && so_far > run_limit_) break;
      }
      runs_.push_back({in_stage_.size() - 1, &segment, all.subspan(i, n)});
      ++in_stage_.back();
      for (const auto& chunk : runs_.back().chunks) bytes_ += chunk.bytes, rows_ += chunk.rows;
      i += n;
    }
  }

  void work(bool reports) {
    page_buffer buffer;
    decode_scratch scratch;
    checked_chunk chunk;
    for (;;) {
      std::unique_lock lock(mutex_);
      const std::size_t mine = next_;
      if (mine >= runs_.size() || mine > failed_at_) return;
      ++next_;
      lock.unlock();
      const chunk_run& run = runs_[mine];
      status done = guarded("restoring", run.segment->entry().name, [&] { return read(run, buffer); });
      lock.lock();
      changed_.wait(
          lock, [&] { return mine > failed_at_ || !done || (stage_ == run.stage && decoding_ < decoders_); });
      if (mine > failed_at_) return;
      if (done) {
        ++decoding_;
        lock.unlock();
        done = guarded("restoring", run.segment->entry().name,
                       [&] { return decode(run, buffer, scratch, chunk); });
        lock.lock();
        --decoding_;
      }
      leave(mine, std::move(done));
      const std::uint64_t so_far = done_bytes_;
      lock.unlock();
      changed_.notify_all();
      if (reports && progress) progress(so_far);
    }
  }

  void leave(std::size_t mine, status done) {
    if (!done) {
      if (mine < failed_at_) failed_at_ = mine, failure_ = std::move(done);
      return;
    }
    done_bytes_ += runs_[mine].bytes();
    --left_[runs_[mine].stage];
    skip_empty_stages();
  }
  void skip_empty_stages() {
    while (stage_ < left_.size() && left_[stage_] == 0) ++stage_;
  }

  [[nodiscard]] static status read(const chunk_run& run, page_buffer& buffer) {
    const std::uint64_t bytes = run.read_end() - run.read_first();
    if (!buffer.reserve(bytes))
      return make_error(error_kind::io, {"no memory for ", bytes, " bytes of chunks"},
                        {run.segment->entry().name}, {"lower restore_options::threads"});
    return run.segment->read(run.read_first(), {buffer.data(), std::size_t(bytes)});
  }

  [[nodiscard]] status decode(const chunk_run& run, page_buffer& buffer, decode_scratch& scratch,
                              checked_chunk& chunk) {
    for (const format::footer_entry& entry : run.chunks) {
      const std::span<std::byte> whole(buffer.data() + (entry.offset - run.read_first()), entry.bytes);
      if (status sound = run.segment->check(entry, whole, chunk); !sound) return sound;
      if (const char* wrong = decoder_.rows(chunk, mode_, scratch)) return run.segment->corrupt(entry, wrong);
      if (mode_ == decode_mode::verify || !applied) continue;
      const std::lock_guard lock(applying_);
      applied(*run.segment, chunk);
    }
    return {};
  }

  const chunk_decoder& decoder_;
  const restore_plan& plan_;
  std::uint32_t decoders_;
  std::uint64_t memory_limit_;
  std::uint64_t chunks_bytes_ = 0, largest_rows_ = 0, run_limit_ = 0;  ///< bytes
  std::size_t members_ = 1;
  std::vector<chunk_run> runs_;
  std::vector<std::size_t> in_stage_;
  std::uint64_t bytes_ = 0, rows_ = 0;
  decode_mode mode_ = decode_mode::verify;

  std::mutex applying_;
  std::mutex mutex_;  ///< of what follows
  std::condition_variable changed_;
  std::size_t next_ = 0, stage_ = 0, decoding_ = 0, failed_at_ = 0;
  std::vector<std::size_t> left_;  ///< runs of each stage that are not done
  std::uint64_t done_bytes_ = 0;
  status failure_;
};

}  // namespace checkrow::inline v0::detail
