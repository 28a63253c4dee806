// What makes the trainer's work last: its checkpointer, and the three calls that the training loop makes.
#pragma once

#include <array>
#include <checkrow/checkrow.hpp>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "deadly_directory.hpp"
#include "model.hpp"
#include "progress.hpp"
#include "reader.hpp"
#include "report.hpp"
#include "sample.hpp"

namespace dlrm {

/// All codecs that --codec names: which one a table uses is a value, so one type of checkpointer has them
/// all.
using codecs = checkrow::codec_set<checkrow::exact, checkrow::uniform<8>, checkrow::uniform<4>,
                                   checkrow::adaptive<4>, checkrow::adaptive<3>, checkrow::adaptive<2>>;

struct codec_name {
  std::string_view name;
  checkrow::codec_choice choice;
};
inline constexpr std::array<codec_name, codecs::size> codec_names = {{
    {"exact", checkrow::exact{}},
    {"uniform8", checkrow::uniform<8>{}},
    {"uniform4", checkrow::uniform<4>{}},
    {"adaptive4", checkrow::adaptive<4>{}},
    {"adaptive3", checkrow::adaptive<3>{}},
    {"adaptive2", checkrow::adaptive<2>{}},
}};

/// One of the names above.
[[nodiscard]] inline checkrow::codec_choice codec_of(std::string_view name) {
  for (const auto& known : codec_names)
    if (known.name == name) return known.choice;
  throw std::invalid_argument("no codec is named " + std::string(name));
}

/// The strategies that --strategy names. A strategy is a type, and the checkpointer another for each.
struct strategy_name {
  std::string_view name;
};
inline constexpr std::array<strategy_name, 4> strategy_names = {{
    {checkrow::full::name},
    {checkrow::one_shot::name},
    {checkrow::consecutive::name},
    {checkrow::intermittent::name},
}};

/// Calls f with the strategy of that name.
void with_strategy(std::string_view name, const auto& f) {
  const auto one = [&](auto strategy) {
    if (strategy.name == name) f(strategy);
  };
  one(checkrow::full{}), one(checkrow::one_shot{}), one(checkrow::consecutive{}),
      one(checkrow::intermittent{});
}

struct checkpoint_settings {
  std::string folder;
  checkrow::codec_choice codec = checkrow::adaptive<4>{};
  std::uint64_t kill_in_save = 0;  ///< see deadly_directory
};

template <checkrow::strategy Strategy>
class checkpoints {
 public:
  using checkpointer = checkrow::checkpointer<checkrow::policies<codecs, Strategy, deadly_directory>>;

  checkpoints(const checkpoint_settings& chosen, model<float>& trained, reader& log, progress& shown,
              report& told)
      : shown_(shown),
        report_(told),
        ckpt_(codecs{}, Strategy{}, deadly_directory(checkrow::directory{chosen.folder}, chosen.kill_in_save),
              checkrow::observer{[this](const checkrow::event& what) { hear(what); }}) {
    for (auto& table : trained.tables) {
      handles_.push_back(ckpt_.table(table.name, table.weights, table.dim,
                                     {.columns = {{"adagrad", table.adagrad}}, .codec = chosen.codec}));
      full_bytes_ += (table.weights.size() + table.adagrad.size()) * sizeof(float);
    }
    ckpt_.dense("mlp", trained.dense);
    ckpt_.dense("mlp_adagrad", trained.dense_adagrad);
    ckpt_.state("reader", log);
    full_bytes_ += (trained.dense.size() + trained.dense_adagrad.size()) * sizeof(float);
    total_rows_ = trained.total_rows();
  }

  /// Brings back the newest checkpoint, if there is one.
  [[nodiscard]] std::optional<checkrow::restored> restore() {
    auto found = ckpt_.restore();
    if (found)
      report_.write(json_line("resumed")
                        .add("sequence", found->sequence)
                        .add("step", found->step)
                        .add("restores", found->restores)
                        .add("rows", found->rows)
                        .add("bytes", found->bytes)
                        .add("seconds", found->seconds));
    return found;
  }

  [[nodiscard]] checkrow::batch_scope begin_batch() { return ckpt_.batch(); }

  void touch(const batch& of) {
    for (std::size_t t = 0; t < handles_.size(); ++t) handles_[t].touch(of.rows[t]);
  }

  void boundary(std::uint64_t step) {
    touched_next_ = 0;
    for (const auto& table : handles_) touched_next_ += table.dirty_rows();
    asked_ = clock::now();
    ckpt_.save(step);  // a failure is told to hear(); the next save has the rows
  }

  /// Waits until the last checkpoint is durable; throws if it isn't.
  void finish() { ckpt_.finish(); }

 private:
  using clock = std::chrono::steady_clock;

  /// One call at a time, from the trainer's thread or the checkpointer's own: pieces of one save's story.
  void hear(const checkrow::event& what) {
    using enum checkrow::event_kind;
    if (what.kind == sealed) touched_ = touched_next_;
    if (what.kind == captured) {  // the trainer goes on
      stall_ = std::chrono::duration<double>(clock::now() - asked_).count();
      copy_ = what.seconds;
    }
    if (what.kind == encoded) encode_ = what.seconds, rows_ = what.rows;
    if (what.kind == written) write_ = what.seconds;
    if (what.kind == committed) committed_checkpoint(what);
    if (what.kind == failed)
      std::fprintf(stderr, "\ncheckpoint at step %s failed: %s\n", with_commas(what.step).c_str(),
                   what.why->text().c_str());
  }

  void committed_checkpoint(const checkrow::event& what) {
    shown_.saved(what.step, what.bytes, 1e3 * stall_);
    report_.write(json_line("checkpoint")
                      .add("sequence", what.sequence)
                      .add("step", what.step)
                      .add("kind", what.full ? "full" : "delta")
                      .add("touched_rows", touched_)
                      .add("rows", rows_)
                      .add("total_rows", total_rows_)
                      .add("bytes", what.bytes)
                      .add("full_bytes", full_bytes_)
                      .add("stall_ms", 1e3 * stall_)
                      .add("copy_ms", 1e3 * copy_)
                      .add("encode_s", encode_)
                      .add("write_s", write_)
                      .add("total_s", what.seconds));
  }

  progress& shown_;
  report& report_;
  std::uint64_t total_rows_ = 0;
  std::uint64_t full_bytes_ = 0;                          ///< of the model in memory: a full fp32 checkpoint
  clock::time_point asked_;                               ///< when save() was called
  std::uint64_t touched_next_ = 0;                        ///< rows, since the save before
  std::uint64_t touched_ = 0, rows_ = 0;                  ///< of the save that runs
  double stall_ = 0, copy_ = 0, encode_ = 0, write_ = 0;  ///< seconds
  checkpointer ckpt_;
  std::vector<typename checkpointer::table_type> handles_;
};

}  // namespace dlrm
