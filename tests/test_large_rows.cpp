// Row ids above 2^33: a table far larger than memory, of which only the touched rows are ever there.
#include <sys/mman.h>
#include <sys/resource.h>

#include <checkrow/checkpointer.hpp>
#include <checkrow/sinks/memory.hpp>
#include <chrono>
#include <cstdio>

#include "catch_shim.hpp"

using namespace checkrow;

namespace {

/// Dirty rows only, never a base: the table's other rows are zero and need no saving.
struct touched_rows_only {
  static constexpr std::string_view name = "touched rows only";
  static constexpr cursor_set cursors = checkrow::cursors(cursor::last_save);
  [[nodiscard]] save_plan plan(const history& past, const boundary&) const {
    save_plan plan{.rows = row_selection::dirty, .since = cursor::last_save};
    for (std::uint32_t i = 0; i < past.segments.size(); ++i) plan.keep.push_back(i);
    return plan;
  }
};

/// Zeroes, backed only where they are written to. Empty where the system refuses.
class reserved_floats {
 public:
  explicit reserved_floats(std::uint64_t count) : bytes_(count * sizeof(float)) {
    at_ = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at_ == MAP_FAILED) return;
    ::madvise(at_, bytes_, MADV_NOHUGEPAGE);
    values_ = {static_cast<float*>(at_), count};
  }
  reserved_floats(const reserved_floats&) = delete;
  reserved_floats& operator=(const reserved_floats&) = delete;
  ~reserved_floats() {
    if (at_ != MAP_FAILED) ::munmap(at_, bytes_);
  }
  [[nodiscard]] std::span<float> values() const { return values_; }

 private:
  std::size_t bytes_;
  void* at_;
  std::span<float> values_;
};

double peak_mebibytes() {
  ::rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return double(usage.ru_maxrss) / 1024;
}

#if defined(__SANITIZE_THREAD__)
constexpr bool shadows_reads = true;
#elif defined(__has_feature)
constexpr bool shadows_reads = __has_feature(thread_sanitizer);
#else
constexpr bool shadows_reads = false;
#endif

}  // namespace

TEST_CASE("row ids above 2^33 are saved and restored", "[large]") {
  constexpr std::uint64_t rows = (std::uint64_t{1} << 33) + 1000;
  if (shadows_reads) {
    std::puts("skipped: row ids above 2^33: the thread sanitizer backs what is only read");
    SUCCEED("skipped");
    return;
  }
  const reserved_floats trained(rows), reading(rows);
  if (trained.values().empty() || reading.values().empty()) {
    std::puts("skipped: row ids above 2^33: this system reserves no 64 GiB of address space");
    SUCCEED("skipped");
    return;
  }
  const auto start = std::chrono::steady_clock::now();
  const double peak_before = peak_mebibytes();

  memory store;
  checkpointer ckpt{exact{}, touched_rows_only{}, store};
  auto table = ckpt.table("huge", trained.values(), 1);
  CHECK(table.rows() == rows);
  std::vector<std::uint64_t> ids;
  for (const std::uint64_t around : {std::uint64_t{1}, std::uint64_t{1} << 31, std::uint64_t{1} << 32,
                                     (std::uint64_t{1} << 32) + (std::uint64_t{1} << 31), rows - 2})
    for (std::uint64_t id = around - 1; id <= around + 1; ++id) ids.push_back(id);
  ids.push_back(std::uint64_t{1} << 33);
  ids.push_back((std::uint64_t{1} << 33) + 64);
  table.touch(ids);
  table.touch_range((std::uint64_t{1} << 33) - 100, 200);  // with two of the ids before
  CHECK(table.dirty_rows() == ids.size() + 198);
  for (std::uint64_t id = (std::uint64_t{1} << 33) - 100; id < (std::uint64_t{1} << 33) + 100; ++id)
    if (id != std::uint64_t{1} << 33 && id != (std::uint64_t{1} << 33) + 64) ids.push_back(id);
  for (const std::uint64_t id : ids) trained.values()[id] = float(id % 1000003) + 0.5f;

  for (const std::uint64_t wrong : {rows, rows + (std::uint64_t{1} << 32), ~std::uint64_t{0}}) {
    const status touched = table.try_touch(std::array{wrong});
    REQUIRE_FALSE(touched.ok());
    CHECK(touched.error().what.find(std::to_string(wrong)) != std::string::npos);
  }
  CHECK_FALSE(table.try_touch(std::array{std::int64_t{-1}}).ok());
  CHECK_FALSE(table.try_touch(std::array{-1}).ok());

  ticket saved = ckpt.save(1);
  saved.wait();
  CHECK(saved.figures().rows == ids.size());
  CHECK(saved.figures().total_rows == rows);
  CHECK(saved.figures().bytes < 20'000);

  table.touch(std::array{std::uint64_t{7}, rows - 1});  // and once more, over what was saved
  trained.values()[7] = -7;
  trained.values()[rows - 1] = -1;
  ids.push_back(7);
  saved = ckpt.save(2);
  saved.wait();
  CHECK(saved.figures().rows == 2);

  checkpointer reader{exact{}, touched_rows_only{}, store};
  reader.table("huge", reading.values(), 1);
  const auto found = reader.restore();
  REQUIRE(found.has_value());
  CHECK(found->step == 2);
  CHECK(found->rows == ids.size() + 1);
  std::uint64_t wrong = 0;
  for (const std::uint64_t id : ids) wrong += reading.values()[id] != trained.values()[id];
  CHECK(wrong == 0);
  CHECK(reading.values()[rows - 1] == -1);
  // Nothing lands where an id would land that lost its upper bits.
  for (const std::uint64_t id : {std::uint64_t{3}, std::uint64_t{64}, std::uint64_t{99}, std::uint64_t{998},
                                 (std::uint64_t{1} << 32) + 64, (std::uint64_t{1} << 32) - 100})
    CHECK(reading.values()[id] == 0);

  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::printf(
      "figure: 2^33 rows, two saves of few of them and a restore: %.1f s, peak %.0f MiB (%.0f before)\n",
      seconds, peak_mebibytes(), peak_before);
  CHECK(peak_mebibytes() - peak_before < 1500);
}
