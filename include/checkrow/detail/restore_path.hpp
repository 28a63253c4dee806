// The restore path: find the newest whole checkpoint, verify it, apply it.
#pragma once

#include <checkrow/detail/chunk_decoder.hpp>
#include <checkrow/detail/save_path.hpp>

namespace checkrow::inline v0::detail {

/// One restore into the model of a save_path, whose scopes are closed and whose background thread is idle.
class restore_path {
 public:
  restore_path(save_path& path, const restore_options& options, bool verify_first)
      : path_(path), options_(options), verify_first_(verify_first) {}

  [[nodiscard]] result<std::optional<restored>> run() {
    if (status supported = check_options(); !supported) return std::move(supported).error();
    auto blobs = list_blobs(path_.sink());
    if (!blobs) return std::move(blobs).error();
    for (const named_blob& candidate : *blobs) {
      if (!candidate.name.is_manifest) break;
      auto manifest = load_manifest(path_.sink(), candidate.stored.name);
      status done = manifest ? restore(*std::move(manifest), *blobs) : status(std::move(manifest).error());
      if (done) return std::optional(std::move(found_));
      const bool damaged =
          done.error().kind == error_kind::corrupt || done.error().kind == error_kind::not_found;
      if (!damaged) return with_tables(std::move(done).error());
      path_.notify(
          {.kind = event_kind::passed_over, .sequence = candidate.name.sequence, .why = &done.error()});
      found_.passed_over.push_back(std::move(done).error());
    }
    if (found_.passed_over.empty()) return std::optional<restored>();
    error none = found_.passed_over.front();
    none.what = "no checkpoint is whole; of the newest: " + none.what;
    none.next = "look at the storage, or start anew in another folder";
    return with_tables(std::move(none));
  }

 private:
  [[nodiscard]] status check_options() const {
    const char* field = !options_.tables.empty()                                ? ".tables"
                        : options_.rows                                         ? ".rows"
                        : !options_.rename.empty()                              ? ".rename"
                        : options_.allow_more_rows                              ? ".allow_more_rows"
                        : options_.step                                         ? ".step"
                        : options_.consistency != consistency_level::consistent ? ".consistency"
                                                                                : nullptr;
    if (field == nullptr) return {};
    return make_error(error_kind::unsupported, {"this restore option is not built yet"}, {field},
                      {"leave it at its default"});
  }

  [[nodiscard]] error with_tables(error failed) const {
    if (touched_model_)
      failed.next += "; the model's contents are undefined: restore again, or initialise it";
    return failed;
  }

  /// One candidate. Corrupt or not_found: go on with the one before. Anything else ends the restore.
  [[nodiscard]] status restore(format::manifest manifest, const blob_list& blobs) {
    auto plan = schema_matcher(options_.columns).match(manifest, path_.model);
    if (!plan) return std::move(plan).error();
    if (status listed = check_segments_listed(manifest, blobs); !listed) return listed;
    std::vector<segment_reader> segments;
    for (const format::segment_entry& entry : manifest.segments) {
      auto opened = segment_reader::open(path_.sink(), entry);
      if (!opened) return std::move(opened).error();
      segments.push_back(*std::move(opened));
    }
    for (const segment_reader& segment : segments)
      if (status decodable = check_segment(segment, manifest); !decodable) return decodable;

    chunk_decoder decoder(path_.codecs(), manifest, *plan);
    found_.rows = found_.bytes = 0;
    const bool has_base =
        std::any_of(manifest.segments.begin(), manifest.segments.end(), [](const auto& s) { return s.full; });
    if (touched_model_ && !has_base)
      return make_error(
          error_kind::corrupt,
          {"it does not hold every row, and a damaged newer checkpoint has been applied in part"},
          {manifest.segments.empty() ? "" : manifest.segments.back().name},
          {"initialise the model and restore with .verify_first = true"});
    if (verify_first_)
      if (status sound = walk(segments, manifest, *plan, decoder, decode_mode::verify); !sound) return sound;
    begin_writing();
    if (status applied = walk(segments, manifest, *plan, decoder, decode_mode::apply); !applied)
      return applied;
    if (status applied = decoder.apply_small(path_.model); !applied) return applied;
    finish(std::move(manifest));
    return {};
  }

  /// Every chunk's codec is known, and a full segment holds every row.
  [[nodiscard]] status check_segment(const segment_reader& segment, const format::manifest& manifest) const {
    std::vector<std::uint64_t> rows(manifest.tables.size(), 0);
    for (const format::footer_entry& chunk : segment.chunks()) {
      if (status known = check_codec_known(path_.codecs(), chunk.codec, manifest, segment.entry().name);
          !known)
        return known;
      if (chunk.kind == format::chunk_kind::rows && chunk.table < rows.size())
        rows[chunk.table] += chunk.rows;
    }
    if (!segment.entry().full) return {};
    for (std::size_t t = 0; t < rows.size(); ++t)
      if (rows[t] != manifest.tables[t].rows)
        return make_error(error_kind::corrupt,
                          {"a full segment lacks rows of table ", manifest.tables[t].name},
                          {segment.entry().name}, {"restore falls back to the checkpoint before it"});
    return {};
  }

  /// From here on the model is not what it was: nothing that was saved can be built upon until a restore is
  /// done.
  void begin_writing() {
    touched_model_ = true;
    path_.parent = nullptr;
    for (auto& table : path_.model.tables) {
      table->clear();
      table->audited.clear();
    }
  }

  /// All segments in order of application: later ones overwrite earlier ones.
  [[nodiscard]] status walk(std::vector<segment_reader>& segments, const format::manifest& manifest,
                            const restore_plan& plan, chunk_decoder& decoder, decode_mode mode) {
    decoder.forget_small();
    checked_chunk chunk;
    for (segment_reader& segment : segments)
      for (const format::footer_entry& entry : segment.chunks()) {
        const bool rows = entry.kind == format::chunk_kind::rows;
        const bool small = entry.kind == format::chunk_kind::dense || entry.kind == format::chunk_kind::state;
        if (small && segment.entry().sequence != manifest.sequence)
          continue;  // of the save that it was written by
        if (status read = segment.read(entry, chunk); !read) return read;
        const char* wrong = rows    ? decoder.rows(chunk, mode)
                            : small ? decoder.small(chunk)
                                    : "a chunk of a kind that this version does not know";
        if (wrong != nullptr) return segment.corrupt(entry, wrong);
        if (mode == decode_mode::verify) continue;
        found_.bytes += entry.bytes;
        if (!rows) continue;
        found_.rows += entry.rows;
        if (!segment.entry().full) mark(*path_.model.tables[plan.tables[entry.table].table], chunk);
      }
    if (const char* wrong = decoder.check_small())
      return make_error(error_kind::corrupt, {wrong},
                        {manifest.segments.empty() ? "" : manifest.segments.back().name},
                        {"restore falls back to the checkpoint before it"});
    return {};
  }

  /// Rows of a delta have changed since the base.
  static void mark(model_table& table, checked_chunk& chunk) {
    if (chunk.ids.empty())
      for (std::uint64_t id = chunk.header.first; id <= chunk.header.last; ++id) chunk.ids.push_back(id);
    table.mark(cursor::base, chunk.ids);
  }

  void finish(format::manifest manifest) {
    path_.restores = manifest.restores + (options_.columns.empty() ? 1 : 0);
    found_.seconds = seconds_since(start_);
    found_.step = manifest.step;
    found_.sequence = manifest.sequence;
    found_.full = manifest.full;
    found_.restores = path_.restores;
    found_.strategy = manifest.strategy;
    found_.metadata = manifest.user;
    path_.notify({.kind = event_kind::restored,
                  .sequence = manifest.sequence,
                  .step = manifest.step,
                  .full = manifest.full,
                  .rows = found_.rows,
                  .bytes = found_.bytes,
                  .seconds = found_.seconds});
    if (options_.columns.empty())
      path_.parent = std::make_shared<const format::manifest>(std::move(manifest));
  }

  save_path& path_;
  const restore_options& options_;
  bool verify_first_;
  bool touched_model_ = false;
  steady_clock::time_point start_ = steady_clock::now();
  restored found_;
};

}  // namespace checkrow::inline v0::detail
