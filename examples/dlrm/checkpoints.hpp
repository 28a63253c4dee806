// What makes the trainer's work last: its checkpointer, and the three calls that the training loop makes.
#pragma once

#include <array>
#include <checkrow/checkrow.hpp>
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
    }
    ckpt_.dense("mlp", trained.dense);
    ckpt_.dense("mlp_adagrad", trained.dense_adagrad);
    ckpt_.state("reader", log);
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
    ckpt_.save(step);  // a failure is told to hear(); the next save has the rows
  }

  /// Waits until the last checkpoint is durable; throws if it isn't.
  void finish() { ckpt_.finish(); }

 private:
  /// One call at a time, from the trainer's thread or the checkpointer's own.
  void hear(const checkrow::event& what) {
    if (what.kind == checkrow::event_kind::committed) committed(*what.figures);
    if (what.kind == checkrow::event_kind::failed)
      std::fprintf(stderr, "\ncheckpoint at step %s failed: %s\n", with_commas(what.step).c_str(),
                   what.why->text().c_str());
  }

  /// The mean relative error of embedding rows, of those that the save has measured.
  [[nodiscard]] static double error_of(const checkrow::save_figures& save) {
    double sum = 0, rows = 0;
    for (const checkrow::column_error& one : save.errors) {
      if (one.column != "weights") continue;
      sum += one.mean * static_cast<double>(one.rows);
      rows += static_cast<double>(one.rows);
    }
    return rows > 0 ? sum / rows : 0;
  }

  void committed(const checkrow::save_figures& save) {
    const double stall_ms = 1e3 * (save.wait_seconds + save.stall_seconds);
    shown_.saved(save.step, save.bytes, stall_ms, error_of(save));
    report_.write(json_line("checkpoint")
                      .add("sequence", save.sequence)
                      .add("step", save.step)
                      .add("kind", save.full ? "full" : "delta")
                      .add("touched_rows", save.touched_rows)
                      .add("rows", save.rows)
                      .add("total_rows", save.total_rows)
                      .add("bytes", save.bytes)
                      .add("full_bytes", save.full_bytes)
                      .add("error", error_of(save))
                      .add("stall_ms", stall_ms)
                      .add("copy_ms", 1e3 * save.stall_seconds)
                      .add("encode_s", save.encode_seconds)
                      .add("write_s", save.write_seconds)
                      .add("total_s", save.total_seconds));
  }

  progress& shown_;
  report& report_;
  checkpointer ckpt_;
  std::vector<typename checkpointer::table_type> handles_;
};

}  // namespace dlrm
