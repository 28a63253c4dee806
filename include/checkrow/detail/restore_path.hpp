// The restore path: find the newest whole checkpoint, verify it, apply it.
#pragma once

#include <checkrow/detail/restore_crew.hpp>
#include <checkrow/detail/save_path.hpp>
#include <checkrow/detail/small_items.hpp>
#include <checkrow/huge_pages.hpp>

namespace checkrow::inline v0::detail {

/// One restore into the model of a save_path, whose scopes are closed and whose background thread is idle.
class restore_path {
 public:
  /// `used`: the model has been touched, saved or restored before in this process.
  restore_path(save_path& path, const restore_options& asked, bool used)
      : path_(path),
        asked_(asked),
        verify_first_(asked.verify_first.value_or(used)),
        huge_pages_(asked.huge_pages.value_or(!used)) {}

  [[nodiscard]] result<std::optional<restored>> run() {
    if (status sound = check_asked(asked_, path_.model); !sound) return std::move(sound).error();
    for (int looks = 0;; ++looks) {
      bool outrun = false;
      if (status done = look(outrun); !done) return with_tables(std::move(done).error());
      if (restored_) return std::optional(std::move(found_));
      if (!outrun) break;  // otherwise a trainer beside us collected what we had listed: look again
      if (looks == 100)
        return with_tables(make_error(error_kind::not_found,
                                      {"checkpoints are collected faster than they can be read"},
                                      {path_.sink().where()}, {"keep more of them: options::keep"}));
      found_.passed_over.clear();
      steps_.clear();
      other_steps_ = 0;
    }
    if (asked_.step && !step_found_) return no_such_step();
    if (found_.passed_over.empty()) return std::optional<restored>();
    error none = found_.passed_over.front();
    none.what = "no checkpoint is whole; of the newest: " + none.what;
    none.next = "look at the storage, or start anew in another folder";
    return with_tables(std::move(none));
  }

 private:
  /// Goes through the candidates, newest first. `outrun`: one was collected between listing and reading it.
  [[nodiscard]] status look(bool& outrun) {
    auto blobs = list_blobs(path_.sink());
    if (!blobs) return std::move(blobs).error();
    for (const named_blob& candidate : *blobs) {
      if (!candidate.name.is_manifest) break;
      const auto lease = path_.sink().lease(candidate.stored.name);  // nothing that it lists is collected
      outrun |= !lease && lease.error().kind == error_kind::not_found;
      if (outrun) return {};
      if (!lease) return lease.error();
      auto manifest = load_manifest(path_.sink(), candidate.stored.name);
      if (manifest && asked_.step && manifest->step != *asked_.step) {
        note_step(*manifest);
        continue;
      }
      status done = manifest ? restore(*std::move(manifest), *blobs) : status(std::move(manifest).error());
      restored_ = done.ok();
      if (restored_) return {};
      const bool damaged =
          done.error().kind == error_kind::corrupt || done.error().kind == error_kind::not_found;
      if (!damaged) return done;
      path_.notify(
          {.kind = event_kind::passed_over, .sequence = candidate.name.sequence, .why = &done.error()});
      found_.passed_over.push_back(std::move(done).error());
    }
    return {};
  }

  void note_step(const format::manifest& manifest) {
    constexpr std::size_t few = 8;
    if (other_steps_ < few) steps_ += (other_steps_ == 0 ? "" : ", ") + std::to_string(manifest.step);
    if (other_steps_ == few) steps_ += ", ...";
    ++other_steps_;
  }
  [[nodiscard]] error no_such_step() const {
    error none = make_error(error_kind::not_found, {"there is no checkpoint of step ", *asked_.step},
                            {path_.sink().where()});
    none.next =
        other_steps_ == 0 ? "nothing readable is saved there" : "there are, newest first, steps " + steps_;
    if (!found_.passed_over.empty())
      none.next += "; some manifests cannot be read: " + found_.passed_over.front().text();
    return none;
  }

  [[nodiscard]] error with_tables(error failed) const {
    if (touched_model_)
      failed.next += "; the model's contents are undefined: restore again, or initialise it";
    return failed;
  }

  /// One candidate. Corrupt or not_found: go on with the one before. Anything else ends the restore.
  [[nodiscard]] status restore(format::manifest manifest, const blob_list& blobs) {
    step_found_ = true;
    auto plan = schema_matcher(asked_, path_.model).match(manifest);
    if (!plan) return std::move(plan).error();
    if (status listed = check_segments_listed(manifest, blobs); !listed) return listed;
    std::vector<segment_reader> segments;
    for (const format::segment_entry& entry : manifest.segments) {
      auto opened = segment_reader::open(path_.sink(), entry);
      if (!opened) return std::move(opened).error();
      segments.push_back(*std::move(opened));
    }
    for (const segment_reader& segment : segments)
      if (status decodable = check_segment(segment, manifest, *plan); !decodable) return decodable;
    const bool has_base =
        std::any_of(manifest.segments.begin(), manifest.segments.end(), [](const auto& s) { return s.full; });
    if (touched_model_ && !has_base)
      return make_error(
          error_kind::corrupt,
          {"it does not hold every row, and a damaged newer checkpoint has been applied in part"},
          {manifest.segments.empty() ? "" : manifest.segments.back().name},
          {"initialise the model and restore with .verify_first = true"});

    small_items small(manifest, *plan);
    found_.rows = found_.bytes = 0;
    if (plan->small)
      if (status read = small.read(segments, found_.bytes); !read) return read;
    if (status done = restore_rows(segments, manifest, *plan); !done) return done;
    if (plan->small)
      if (status applied = small.apply(path_.model); !applied) return applied;
    finish(std::move(manifest), *plan);
    return {};
  }

  /// Of the chunks that will be read: their kind and codec are known. And a full segment holds every row.
  [[nodiscard]] status check_segment(const segment_reader& segment, const format::manifest& manifest,
                                     const restore_plan& plan) const {
    std::vector<std::uint64_t> rows(manifest.tables.size(), 0);
    for (std::uint32_t t = 0; t < rows.size(); ++t)
      for (const format::column_schema& column : manifest.tables[t].columns)
        if (plan.target(t) != nullptr)
          if (status known = check_codec_known(path_.codecs(), column.codec, manifest, segment.entry().name);
              !known)
            return known;
    for (const format::footer_entry& chunk : segment.chunks()) {
      if (small_items::is_small(chunk)) continue;
      if (chunk.kind != format::chunk_kind::rows)
        return make_error(error_kind::unsupported, {"a chunk is of a kind that this version does not know"},
                          {segment.entry().name}, {"read it with a checkrow that knows it"});
      if (chunk.table >= rows.size())
        return segment.corrupt(chunk, "a chunk belongs to a table that the manifest does not list");
      if (chunk.first > chunk.last || chunk.last >= manifest.tables[chunk.table].rows ||
          chunk.rows - 1 > chunk.last - chunk.first)  // else it could pass for one that nobody asked for
        return segment.corrupt(chunk, "a chunk's row ids are out of order or out of range");
      rows[chunk.table] += chunk.rows;
      if (plan.target(chunk.table) == nullptr) continue;
      if (status known = check_codec_known(path_.codecs(), chunk.codec, manifest, segment.entry().name);
          !known)
        return known;
    }
    if (!segment.entry().full) return {};
    for (std::size_t t = 0; t < rows.size(); ++t)
      if (rows[t] != manifest.tables[t].rows)
        return make_error(error_kind::corrupt,
                          {"a full segment lacks rows of table ", manifest.tables[t].name},
                          {segment.entry().name}, {"restore falls back to the checkpoint before it"});
    return {};
  }

  /// Verifies, if it was asked for, then applies.
  [[nodiscard]] status restore_rows(const std::vector<segment_reader>& segments,
                                    const format::manifest& manifest, const restore_plan& plan) {
    chunk_decoder decoder(path_.codecs(), manifest, plan);
    restore_crew crew(decoder, plan, asked_.threads, asked_.memory_limit);
    const bool newest_first = is_newest_first(manifest);
    if (newest_first) decoder.skip_restored_rows();
    crew.plan_runs(segments, newest_first, verify_first_ || newest_first || asked_.rows.has_value());
    found_.bytes += crew.bytes();
    found_.rows += crew.rows();
    event told{.kind = event_kind::progress, .sequence = manifest.sequence, .step = manifest.step};
    told.total = crew.bytes() * (verify_first_ ? 2 : 1);
    crew.progress = [&](std::uint64_t bytes) {
      told.bytes = bytes;
      told.seconds = seconds_since(start_);
      path_.notify(told);
    };
    if (verify_first_) {
      if (status sound = crew.run(decode_mode::verify); !sound) return sound;
      crew.progress = [&, report = crew.progress](std::uint64_t bytes) { report(crew.bytes() + bytes); };
    }
    begin_writing(plan);
    if (plan.complete)  // rows of a delta have changed since the base
      crew.applied = [&](const segment_reader& segment, checked_chunk& chunk) {
        if (!segment.entry().full) mark(*path_.model.tables[plan.target(chunk.header.table)->table], chunk);
      };
    return crew.run(decode_mode::apply);
  }

  [[nodiscard]] bool is_newest_first(const format::manifest& manifest) const noexcept {
    if (asked_.order != restore_order::fastest) return asked_.order == restore_order::newest_first;
    std::uint64_t base = 0, deltas = 0;
    for (const format::segment_entry& segment : manifest.segments)
      (segment.full ? base : deltas) += segment.rows;
    return base != 0 && deltas / 2 > base;
  }

  /// From here on the model is not what it was: nothing that was saved can be built upon until a restore is
  /// done.
  void begin_writing(const restore_plan& plan) {
    touched_model_ = true;
    path_.parent = nullptr;
    for (const auto& target : plan.tables) {
      if (!target) continue;
      model_table& table = *path_.model.tables[target->table];
      table.clear();
      table.audited.clear();
      if (!huge_pages_) continue;
      for (const registered_column* column : target->columns)
        if (column != nullptr)
          advise_huge_pages(column->data + column->stride * target->first,
                            column->stride * (target->end - target->first));
    }
  }

  static void mark(model_table& table, checked_chunk& chunk) {
    if (chunk.ids.empty())
      for (std::uint64_t id = chunk.header.first; id <= chunk.header.last; ++id) chunk.ids.push_back(id);
    table.mark(cursor::base, chunk.ids);
  }

  void finish(format::manifest manifest, const restore_plan& plan) {
    if (plan.small && asked_.columns.empty()) path_.restores = manifest.restores + 1;
    found_.seconds = seconds_since(start_);
    found_.step = manifest.step;
    found_.sequence = manifest.sequence;
    found_.full = manifest.full;
    found_.restores = path_.restores;
    found_.strategy = manifest.strategy;
    found_.metadata = manifest.user;
    found_.complete = plan.complete;
    path_.notify({.kind = event_kind::restored,
                  .sequence = manifest.sequence,
                  .step = manifest.step,
                  .full = manifest.full,
                  .rows = found_.rows,
                  .bytes = found_.bytes,
                  .seconds = found_.seconds});
    if (plan.complete) path_.parent = std::make_shared<const format::manifest>(std::move(manifest));
  }

  save_path& path_;
  const restore_options& asked_;
  bool verify_first_, huge_pages_;
  bool touched_model_ = false;
  bool restored_ = false, step_found_ = false;
  std::size_t other_steps_ = 0;
  std::string steps_;  ///< the newest few, for a message
  steady_clock::time_point start_ = steady_clock::now();
  restored found_;
};

}  // namespace checkrow::inline v0::detail
