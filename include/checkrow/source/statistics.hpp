// Bodies of statistics.hpp: a snapshot as Prometheus text.
#pragma once

#include <checkrow/statistics.hpp>
#include <utility>

namespace checkrow::inline v0 {

namespace detail {

/// One line of Prometheus's text format 0.0.4, with its help and type.
class prometheus_writer {
 public:
  explicit prometheus_writer(std::string labels) : labels_(std::move(labels)) {}

  void counter(const char* name, const char* help, double value) { add(name, help, "counter", value); }
  void gauge(const char* name, const char* help, double value) { add(name, help, "gauge", value); }
  [[nodiscard]] std::string text() && { return std::move(text_); }

 private:
  void add(const char* name, const char* help, const char* type, double value);

  std::string labels_;
  std::string text_;
};

inline void prometheus_writer::add(const char* name, const char* help, const char* type, double value) {
  const std::string full = std::string("checkrow_") + name;
  text_ += "# HELP " + full + " " + help + "\n# TYPE " + full + " " + type + "\n" + full + labels_ + " ";
  const auto whole = static_cast<std::uint64_t>(value);
  if (static_cast<double>(whole) == value) {
    text_ += std::to_string(whole);
  } else {  // to the microsecond: to_string() has six digits behind a point, whatever the locale's is
    std::string digits = std::to_string(static_cast<std::uint64_t>(value * 1e6) % 1'000'000);
    text_ += std::to_string(whole) + "." + std::string(6 - digits.size(), '0') + digits;
  }
  text_ += "\n";
}

/// A label's value, with what the format asks to be escaped.
[[nodiscard]] inline std::string prometheus_escaped(const std::string& value) {
  std::string out;
  for (const char c : value) {
    if (c == '\\' || c == '"') out += '\\';
    if (c == '\n')
      out += "\\n";
    else
      out += c;
  }
  return out;
}

}  // namespace detail

CHECKROW_INLINE std::string prometheus_text(const statistics& s, const std::string& job) {
  detail::prometheus_writer out(job.empty() ? "" : "{job=\"" + detail::prometheus_escaped(job) + "\"}");
  const auto number = [](std::uint64_t of) { return static_cast<double>(of); };
  out.counter("saves_started_total", "Saves begun", number(s.saves_started));
  out.counter("saves_committed_total", "Saves that are durable", number(s.saves_committed));
  out.counter("full_saves_total", "Durable saves of every row", number(s.full_saves));
  out.counter("saves_failed_total", "Saves that failed; their rows are saved by the next one",
              number(s.saves_failed));
  out.counter("saves_cancelled_total", "Saves cancelled by a later one", number(s.saves_cancelled));
  out.counter("saves_skipped_total", "Saves skipped while another one ran", number(s.saves_skipped));
  out.counter("rows_written_total", "Row records written", number(s.rows_written));
  out.counter("bytes_written_total", "Bytes given to the sink", number(s.bytes_written));
  out.counter("blobs_collected_total", "Old blobs removed", number(s.blobs_collected));
  out.counter("stall_seconds_total", "Time inside save() with no scope open", s.stall_seconds);
  out.gauge("largest_stall_seconds", "The longest of these", s.largest_stall_seconds);
  out.counter("wait_seconds_total", "Time save() waited for an unfinished save and for scopes",
              s.wait_seconds);
  out.counter("encode_seconds_total", "Time of all workers in encoding", s.encode_seconds);
  out.counter("write_seconds_total", "Time in the sink", s.write_seconds);
  out.counter("save_seconds_total", "Time from boundary to durable", s.total_seconds);
  out.counter("aside_rows_total", "Rows copied by touches while a save ran", number(s.aside_rows));
  out.gauge("saving", "1 while a save runs", s.saving ? 1 : 0);
  out.gauge("rows_so_far", "Rows written by the running or last save", number(s.rows_so_far));
  out.gauge("bytes_so_far", "Bytes written by the running or last save", number(s.bytes_so_far));
  out.gauge("queued_bytes", "Bytes of the running save in the sink's buffers", number(s.queued_bytes));
  out.gauge("aside_peak_bytes", "Most aside memory of the last save", number(s.aside_peak_bytes));
  out.gauge("last_step", "Step of the last durable save", number(s.last_step));
  out.gauge("last_sequence", "Sequence number of the last durable save", number(s.last_sequence));
  out.gauge("last_bytes", "Bytes of the last durable save", number(s.last_bytes));
  out.gauge("last_save_seconds", "Time from boundary to durable of the last one", s.last_seconds);
  out.gauge("last_stall_seconds", "Stall of the last save", s.last_stall_seconds);
  out.counter("restores_total", "Restores", number(s.restores));
  out.counter("restore_failures_total", "Restores that failed", number(s.restore_failures));
  out.counter("checkpoints_passed_over_total", "Damaged checkpoints that a restore passed over",
              number(s.checkpoints_passed_over));
  out.counter("bytes_restored_total", "Bytes read by restores", number(s.bytes_restored));
  out.counter("restore_seconds_total", "Time in restores", s.restore_seconds);
  return std::move(out).text();
}

}  // namespace checkrow::inline v0
