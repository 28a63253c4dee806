// The save path: seal, plan, capture, then behind the trainer encode, write, commit and collect.
#pragma once

#include <checkrow/detail/attempt.hpp>
#include <checkrow/detail/audit.hpp>
#include <checkrow/detail/background.hpp>
#include <checkrow/detail/garbage_collector.hpp>
#include <checkrow/detail/journal.hpp>
#include <checkrow/detail/save_checks.hpp>
#include <checkrow/detail/save_request.hpp>
#include <checkrow/detail/save_writer.hpp>
#include <checkrow/options.hpp>

namespace checkrow::inline v0::detail {

/// Everything that saving needs. All members are used by one thread at a time: the one that saves, or, from
/// post() until wait_idle(), the background thread.
class save_path {
 public:
  save_path(std::unique_ptr<any_codecs> codec_policies, any_strategy strategy_policy,
            std::unique_ptr<any_sink> sink_policy, std::unique_ptr<any_capture> capture_policy,
            options chosen, observer watching)
      : settings(std::move(chosen)),
        events(std::move(watching)),
        codecs_(std::move(codec_policies)),
        strategy_(std::move(strategy_policy)),
        sink_(std::move(sink_policy)),
        capture_(std::move(capture_policy)) {}

  /// Saves at the boundary between two batches; see checkpointer::save().
  [[nodiscard]] ticket save(std::uint64_t step, steady_clock::time_point asked) {
    const auto job = std::make_shared<save_request>();
    last_ticket = job->outcome;
    job->manifest.step = job->figures.step = step;
    cancelled_ = false;
    if (status claimed = guarded("saving", sink_->where(), [&] { return claim(); }); !claimed)
      return refuse(*job, std::move(claimed));
    job->manifest.sequence = job->figures.sequence = next_sequence_++;
    bool behind = background_.ready();
    {
      const closed_gate boundary(gate);
      job->sealed = steady_clock::now();
      job->figures.wait_seconds = std::chrono::duration<double>(job->sealed - asked).count();
      event told = event_of(*job, event_kind::sealed);
      told.seconds = job->figures.wait_seconds;
      notify(told);
      status taken = take_guarded(*job, behind);
      if (!taken) return refuse(*job, std::move(taken));
      running_ = job;
      if (!behind) run();
    }
    if (behind) background_.post([this] { run(); });
    return ticket(job->outcome);
  }

  void wait_idle() { background_.wait_idle(); }

  /// Before a save: lets an unfinished one end as options::overlap says. False where this one is to be
  /// skipped.
  [[nodiscard]] bool make_way() {
    if (!background_.idle() && !ticket(last_ticket).done()) {  // done, it only tidies up
      if (settings.overlap == overlap_rule::skip) return false;
      if (settings.overlap == overlap_rule::cancel) {
        cancelled_ = true;
        capture_->cancel();
      }
    }
    background_.wait_idle();
    return true;
  }
  [[nodiscard]] ticket skip(std::uint64_t step) {
    const auto outcome = std::make_shared<ticket_state>();
    outcome->finish({}, {.step = step, .skipped = true});
    notify({.kind = event_kind::skipped, .step = step});
    return ticket(outcome);
  }

  /// The codec that a table's weights are written with.
  [[nodiscard]] codec_choice codec_of(const registered_table& table) const noexcept {
    return table.codec.value_or(codecs_->first());
  }

  [[nodiscard]] status check_codec(const registered_table& table, codec_choice codec) const {
    return detail::check_codec(*codecs_, table, codec);
  }

  void notify(const event& what) noexcept { events.tell(what); }

  [[nodiscard]] any_sink& sink() noexcept { return *sink_; }
  /// Where the checkpoints are, for guarded().
  [[nodiscard]] auto where() const noexcept {
    return [this] { return sink_->where(); };
  }
  [[nodiscard]] const any_codecs& codecs() const noexcept { return *codecs_; }

  options settings;
  journal events;
  registered_model model;
  batch_gate gate;
  std::shared_ptr<const format::manifest> parent;  ///< what the next delta builds on; null: nothing
  std::uint64_t restores = 0;
  std::shared_ptr<ticket_state> last_ticket;

 private:
  /// Before the first save: the right to write, the next sequence number, and whether the restored checkpoint
  /// is still whole.
  [[nodiscard]] status claim() {
    if (claimed_) return {};
    if (status claimed = sink_->claim(settings.part); !claimed) return claimed;
    auto blobs = list_blobs(*sink_);
    if (!blobs) return std::move(blobs).error();
    for (const named_blob& one : *blobs) next_sequence_ = std::max(next_sequence_, one.name.sequence + 1);
    if (parent != nullptr && !check_segments_listed(*parent, *blobs)) parent = nullptr;
    claimed_ = true;
    return {};
  }

  /// take(), or nothing of it. `behind`: may the trainer go on meanwhile? (No where it may not already.)
  [[nodiscard]] status take_guarded(save_request& job, bool& behind) {
    bool staged = false;
    status taken = guarded("the strategy or a state", "at step " + std::to_string(job.figures.step),
                           [&] { return take(job, staged); });
    behind = behind && staged;
    if (taken) return taken;
    capture_->cancel();
    capture_->end();
    if (job.sealing)  // some touches may be folded by now: untouched rows cannot be told from others
      for (const auto& table : model.tables) table->audited.clear();
    return taken;
  }

  /// At the boundary: the plan, the small exact things, the rows.
  [[nodiscard]] status take(save_request& job, bool& staged) {
    std::vector<table_counts> counts;
    for (const auto& table : model.tables) {
      if (settings.audit_rows != 0)
        if (status untouched = check_untouched(*table); !untouched) return untouched;
      counts.push_back({table->rows, table->dirty()});
      job.figures.touched_rows += table->dirty();
    }
    const history past = history_of(parent.get());
    job.plan = strategy_.plan(past, {.tables = counts, .step = job.figures.step});
    if (status sound = check_plan(job.plan, past, strategy_, *codecs_, model); !sound) return sound;
    job.figures.full = job.manifest.full = job.plan.rows == row_selection::all;
    take_small(model, job, std::move(spare_));

    job.sealing = true;
    staged = capture_->begin(model.tables, job.plan,
                             memory_for_copies(job, model, settings, sink_->writer_bytes()));
    for (std::size_t t = 0; t < model.tables.size(); ++t) {
      const auto& table = *model.tables[t];
      const codec_choice codec = job.plan.codecs.empty() ? codec_of(table) : job.plan.codecs[t];
      job.tables.push_back({&table, codec});
      job.manifest.tables.push_back(schema_of(table, codec));
      if (settings.audit_rows != 0) sample_rows(*model.tables[t], settings.audit_rows);
    }
    job.figures.total_rows = model.rows();
    job.figures.full_bytes = bytes_in_memory(model);
    event told = event_of(job, event_kind::planned);
    job.figures.stall_seconds = seconds_since(job.sealed);
    notify(told);
    told.kind = event_kind::captured;
    told.bytes = capture_->figures().bytes_staged;
    told.seconds = job.figures.stall_seconds;
    notify(told);
    return {};
  }

  /// The save could not begin: nothing was sealed.
  [[nodiscard]] ticket refuse(save_request& job, status why) {
    event failed = event_of(job, event_kind::failed);
    failed.why = &why.error();
    failed.figures = &job.figures;
    notify(failed);
    job.outcome->finish(std::move(why), std::move(job.figures));
    return ticket(job.outcome);
  }

  /// Encodes, writes and commits. On failure every blob of the attempt is removed and the rows stay dirty,
  /// since no cursor moves.
  void run() noexcept {
    const std::shared_ptr<save_request> request = std::move(running_);
    save_request& job = *request;
    status done = guarded("saving", where(), [&] { return write_and_commit(job); });
    if (!done) capture_->cancel();
    capture_->end();
    const capture_figures captured = capture_->figures();
    job.figures.aside_rows = captured.rows_aside;
    job.figures.aside_bytes = captured.aside_bytes;
    job.figures.total_seconds = seconds_since(job.sealed);
    for (const error& note : sink_->notes()) {
      event fell_back = event_of(job, event_kind::fell_back);
      fell_back.why = &note;
      notify(fell_back);
    }
    event last = event_of(job, done ? event_kind::committed : event_kind::failed);
    last.rows = job.figures.rows;
    last.bytes = job.figures.bytes;
    last.seconds = job.figures.total_seconds;
    last.figures = &job.figures;
    if (done) {
      for (auto& table : model.tables) table->commit(job.plan.moves);
      parent = {request, &job.manifest};
    } else {
      last.why = &done.error();
    }
    notify(last);
    if (done) collect(last);
    spare_ = std::move(job.small);
    job.outcome->finish(std::move(done), std::move(job.figures));
  }

  [[nodiscard]] status write_and_commit(save_request& job) {
    format::manifest& manifest = job.manifest;
    manifest.attempt = new_attempt();
    const std::string attempt = format::hex(manifest.attempt),
                      name = format::segment_name(manifest.sequence, attempt, settings.part);
    save_writer writer(*sink_, *codecs_, *capture_, manifest.attempt, settings, cancelled_, job.figures);
    writer.progress = [&] {
      event so_far = event_of(job, event_kind::progress);
      so_far.rows = job.figures.rows;
      so_far.bytes = job.figures.bytes;
      so_far.seconds = seconds_since(job.sealed);
      so_far.figures = &job.figures;
      so_far.total = manifest.full ? job.figures.total_rows : 0;
      notify(so_far);
    };
    auto segment = writer.write(name, job.tables, job.small);
    if (!segment) return std::move(segment).error();
    event told = event_of(job, event_kind::encoded);
    told.rows = job.figures.rows;
    told.bytes = segment->bytes;
    told.seconds = job.figures.encode_seconds;
    notify(told);
    told.kind = event_kind::written;
    told.seconds = job.figures.write_seconds;
    notify(told);
    segment->sequence = manifest.sequence;
    segment->full = manifest.full;
    complete(job, parent.get(), *std::move(segment));
    manifest.strategy = strategy_.name;
    manifest.codecs = codecs_->describe();
    manifest.restores = restores;
    manifest.user = settings.metadata;
    status committed = guarded("saving", name, [&] { return commit(manifest, attempt, job.figures); });
    if (!committed) (void)sink_->remove(name);
    return committed;
  }

  /// The manifest's appearance makes the checkpoint. What it builds on has to be there still.
  [[nodiscard]] status commit(const format::manifest& manifest, const std::string& attempt,
                              save_figures& figures) {
    auto blobs = list_blobs(*sink_);
    if (!blobs) return std::move(blobs).error();
    if (status whole = check_segments_listed(manifest, *blobs); !whole) {
      parent = nullptr;
      error gone = std::move(whole).error();
      gone.next = "the next save writes every row";
      return gone;
    }
    const std::string text = format::write_manifest(manifest);
    const auto start = steady_clock::now();
    auto created = sink_->create(format::manifest_name(manifest.sequence, attempt));
    if (!created) return std::move(created).error();
    status written = (*created)->append(std::as_bytes(std::span(text)));
    if (written) written = (*created)->commit();
    if (!written) (*created)->abandon();
    figures.write_seconds += seconds_since(start);
    figures.bytes += text.size();
    return written;
  }

  void collect(event told) {
    told.kind = event_kind::collected;
    const auto gone = guarded_result("the sink", where(), [&] {
      return garbage_.collect(*sink_, settings.keep, settings.part, std::uint64_t(std::time(nullptr)));
    });
    if (gone)
      told.rows = gone->blobs, told.bytes = gone->bytes;
    else
      told.why = &gone.error();
    notify(told);
  }

  std::unique_ptr<any_codecs> codecs_;
  any_strategy strategy_;
  std::unique_ptr<any_sink> sink_;
  std::unique_ptr<any_capture> capture_;
  garbage_collector garbage_;
  std::atomic<bool> cancelled_{false};  ///< the running save, by a later one
  std::vector<small_copy> spare_;       ///< the last save's, for their memory
  std::shared_ptr<save_request> running_;
  bool claimed_ = false;
  std::uint64_t next_sequence_ = 1;
  background background_;  // last: it finishes its job before anything else goes
};

}  // namespace checkrow::inline v0::detail
