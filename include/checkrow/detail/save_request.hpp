// One save on its way: what was taken at the boundary, and the manifest that grows out of it.
#pragma once

#include <checkrow/detail/save_writer.hpp>
#include <checkrow/observer.hpp>
#include <ctime>

namespace checkrow::inline v0::detail {

struct save_request {
  format::manifest manifest;
  save_plan plan;
  std::vector<table_job> tables;
  std::vector<small_copy> small;
  save_figures figures;
  bool sealing = false;  ///< the capture has begun
  steady_clock::time_point sealed;
  std::shared_ptr<ticket_state> outcome = std::make_shared<ticket_state>();
};

/// What every event of a save says.
[[nodiscard]] inline event event_of(const save_request& job, event_kind kind) noexcept {
  return {.kind = kind, .sequence = job.figures.sequence, .step = job.figures.step, .full = job.figures.full};
}

/// The committed past as a strategy sees it; empty without a manifest to build on.
[[nodiscard]] inline history history_of(const format::manifest* newest) {
  history past;
  if (newest == nullptr) return past;
  for (const format::segment_entry& s : newest->segments)
    past.segments.push_back({s.sequence, s.rows, s.bytes, s.full});
  past.deltas = newest->deltas;
  past.share_sum = newest->share_sum;
  past.last_share = newest->last_share;
  return past;
}

/// Copies dense parameters and states, exactly; the former into `spare`, the copies of an earlier save, since
/// memory that is written for the first time costs more than the copy.
inline void take_small(const registered_model& model, save_request& job, std::vector<small_copy> spare) {
  for (std::uint32_t i = 0; i < model.dense.size(); ++i) {
    const registered_dense& dense = model.dense[i];
    std::vector<std::byte> bytes;
    if (i < spare.size()) bytes = std::move(spare[i].bytes);
    bytes.assign(dense.data, dense.data + dense.bytes());
    job.small.push_back({format::chunk_kind::dense,
                         i,
                         {dense.element, dense.element_bytes, 1},
                         dense.count,
                         std::move(bytes)});
    job.manifest.dense.push_back(schema_of(dense));
  }
  for (std::uint32_t i = 0; i < model.states.size(); ++i) {
    std::vector<std::byte> bytes = model.states[i].save();
    const std::uint64_t count = bytes.size();
    job.small.push_back({format::chunk_kind::state, i, {element_type::uint8, 1, 1}, count, std::move(bytes)});
    job.manifest.states.push_back({model.states[i].name, count});
  }
}

/// What the memory limit leaves for copies of rows: the rest is for each worker's batch and chunk, the sink's
/// buffers, and dense parameters and states.
[[nodiscard]] inline std::uint64_t memory_for_copies(const save_request& job, const registered_model& model,
                                                     const options& set, std::uint64_t sink_bytes) noexcept {
  std::uint64_t row = 0;
  for (const auto& table : model.tables) row = std::max(row, record_bytes(table->columns));
  const std::uint64_t worker =
      std::max(batch_bytes, 64 * row) + std::max<std::uint64_t>(encode_buffer_limit, row);
  std::uint64_t taken = std::max(set.workers, 1u) * worker + sink_bytes;
  for (const small_copy& one : job.small) taken += one.bytes.size();
  return set.memory_limit - std::min(taken, set.memory_limit);
}

/// What the manifest says of parts, segments and history once the segment is written.
inline void complete(save_request& job, const format::manifest* parent, format::segment_entry written) {
  format::manifest& manifest = job.manifest;
  const std::uint32_t part = written.part;
  manifest.parent = manifest.full || parent == nullptr ? 0 : parent->sequence;
  manifest.created = std::uint64_t(std::time(nullptr));
  format::part_schema mine{part, {}};
  for (std::uint32_t t = 0; t < manifest.tables.size(); ++t)
    mine.tables.push_back(
        {t, 0, 1, manifest.tables[t].rows, 0, std::uint32_t(manifest.tables[t].columns.size())});
  manifest.parts.push_back(std::move(mine));
  if (parent != nullptr)
    for (const std::uint32_t i : job.plan.keep) manifest.segments.push_back(parent->segments[i]);
  manifest.segments.push_back(std::move(written));
  if (manifest.full) return;
  const double share =
      job.figures.total_rows == 0 ? 0 : double(job.figures.rows) / double(job.figures.total_rows);
  manifest.deltas = (parent == nullptr ? 0 : parent->deltas) + 1;
  manifest.share_sum = (parent == nullptr ? 0 : parent->share_sum) + share;
  manifest.last_share = share;
}

}  // namespace checkrow::inline v0::detail
