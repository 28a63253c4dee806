// Policies as a user would write them: a codec, a tracker, a strategy and a sink, none of which the library
// knows. The contract suites and test_custom_policies.cpp hold them to what they hold ours to.
#pragma once

#include <array>
#include <bit>
#include <checkrow/concepts.hpp>
#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <set>

namespace own {

/// 8 bits an element, one power of two a row: [exponent int16][width x int8] for each row. The power is the
/// least at which the row's largest code is at most 127, hence at least 64: encoding what was decoded finds
/// the same one. What is not finite comes back as 0.
struct int8_rows {
  static constexpr std::uint16_t id = 0x8001;
  static constexpr std::uint8_t bits = 8;
  static constexpr std::string_view name = "int8 rows";
  static constexpr std::uint32_t version = 1;

  [[nodiscard]] bool accepts(const checkrow::column_shape& shape) const noexcept {
    return shape.element == checkrow::element_type::float32 && shape.element_bytes == 4;
  }
  [[nodiscard]] std::size_t bound(const checkrow::column_shape& shape, std::size_t n) const noexcept {
    return n * (sizeof(std::int16_t) + shape.width);
  }

  [[nodiscard]] std::size_t encode(const checkrow::column_shape& shape, checkrow::row_view rows,
                                   std::size_t n, std::byte* out) const noexcept {
    const auto element = [&](std::size_t i, std::size_t d) {
      float value;
      std::memcpy(&value, rows.row(i) + 4 * d, 4);
      return std::isfinite(value) ? value : 0.0f;
    };
    std::byte* to = out;
    for (std::size_t i = 0; i < n; ++i) {
      float largest = 0;
      for (std::size_t d = 0; d < shape.width; ++d) largest = std::fmax(largest, std::fabs(element(i, d)));
      int exponent = 0;
      if (largest > 0) {
        exponent = std::ilogb(largest) - 6;
        if (std::ldexp(double(largest), -exponent) >= 127.5) ++exponent;
      }
      const auto stored = static_cast<std::int16_t>(exponent);
      std::memcpy(to, &stored, sizeof stored);
      to += sizeof stored;
      for (std::size_t d = 0; d < shape.width; ++d)
        *to++ =
            std::byte(static_cast<std::int8_t>(std::lround(std::ldexp(double(element(i, d)), -exponent))));
    }
    return std::size_t(to - out);
  }

  [[nodiscard]] bool decode(const checkrow::column_shape& shape, std::span<const std::byte> bytes,
                            std::size_t n, checkrow::row_span rows) const noexcept {
    const std::size_t row_bytes = sizeof(std::int16_t) + shape.width;
    if (bytes.size() / row_bytes != n || bytes.size() % row_bytes != 0) return false;
    for (std::size_t i = 0; i < n; ++i) {
      const std::byte* from = bytes.data() + i * row_bytes;
      std::int16_t exponent;
      std::memcpy(&exponent, from, sizeof exponent);
      if (exponent < -160 || exponent > 121) return false;
      for (std::size_t d = 0; d < shape.width; ++d) {
        const auto code = static_cast<std::int8_t>(from[sizeof exponent + d]);
        const auto value = static_cast<float>(std::ldexp(double(code), exponent));
        std::memcpy(rows.row(i) + 4 * d, &value, 4);
      }
    }
    return true;
  }
};
static_assert(checkrow::row_codec<int8_rows>);

/// Sets of row ids and one mutex: slow and obvious.
struct set_tracker {
  class table_rows {
   public:
    table_rows(const set_tracker&, std::uint64_t rows, checkrow::cursor_set kept)
        : rows_(rows), kept_(kept) {}

    template <class Id>
    std::size_t touch(std::span<const Id> ids) noexcept {
      const std::lock_guard lock(mutex_);
      std::size_t marked = 0;
      for (; marked < ids.size(); ++marked) {
        if (std::uint64_t(ids[marked]) >= rows_) break;  // a negative id is a huge one
        touched_.insert(std::uint64_t(ids[marked]));
      }
      return marked;
    }
    void touch_range(std::uint64_t first, std::uint64_t count) noexcept {
      const std::lock_guard lock(mutex_);
      for (std::uint64_t i = 0; i < count; ++i) touched_.insert(first + i);
    }
    [[nodiscard]] std::uint64_t dirty() const noexcept {
      const std::lock_guard lock(mutex_);
      return touched_.size();
    }
    void begin(checkrow::row_selection rows, checkrow::cursor since) noexcept {
      selection_ = rows, since_ = std::size_t(since);
    }
    [[nodiscard]] std::uint64_t blocks() const noexcept { return rows_ / 64 + (rows_ % 64 != 0); }
    [[nodiscard]] std::uint64_t take(std::uint64_t block) noexcept {
      const std::lock_guard lock(mutex_);
      const std::uint64_t end = std::min(block * 64 + 64, rows_);
      const auto from = touched_.lower_bound(block * 64), to = touched_.lower_bound(end);
      for (std::size_t c = 0; c < changed_.size(); ++c)
        if (kept_ >> c & 1) changed_[c].insert(from, to);
      touched_.erase(from, to);
      std::uint64_t bits = 0;
      for (std::uint64_t id = block * 64; id < end; ++id)
        if (selection_ == checkrow::row_selection::all || changed_[since_].contains(id))
          bits |= std::uint64_t{1} << (id % 64);
      return bits;
    }
    void commit(checkrow::cursor_set moved) noexcept {
      const std::lock_guard lock(mutex_);
      for (std::size_t c = 0; c < changed_.size(); ++c)
        if (moved >> c & 1) changed_[c].clear();
    }
    void mark(checkrow::cursor since, std::span<const std::uint64_t> ids) noexcept {
      const std::lock_guard lock(mutex_);
      if (kept_ & checkrow::cursors(since)) changed_[std::size_t(since)].insert(ids.begin(), ids.end());
    }
    void clear() noexcept {
      const std::lock_guard lock(mutex_);
      touched_.clear();
      for (auto& one : changed_) one.clear();
    }

   private:
    std::uint64_t rows_;
    checkrow::cursor_set kept_;
    mutable std::mutex mutex_;
    std::set<std::uint64_t> touched_;
    std::array<std::set<std::uint64_t>, checkrow::cursor_count> changed_;
    checkrow::row_selection selection_ = checkrow::row_selection::all;
    std::size_t since_ = 0;
  };
};
static_assert(checkrow::row_tracker<set_tracker>);

/// Dirty rows only, never a base: for tables whose other rows can be made again from a seed.
struct dirty_only {
  static constexpr std::string_view name = "dirty only";
  static constexpr checkrow::cursor_set cursors = checkrow::cursors(checkrow::cursor::last_save);

  [[nodiscard]] checkrow::save_plan plan(const checkrow::history& past, const checkrow::boundary&) const {
    checkrow::save_plan plan{.rows = checkrow::row_selection::dirty, .since = checkrow::cursor::last_save};
    for (std::uint32_t i = 0; i < past.segments.size(); ++i) plan.keep.push_back(i);
    return plan;
  }
};
static_assert(checkrow::strategy<dirty_only>);

/// One file, to which each committed blob is appended as [name length u64][size u64][name][bytes]; a size of
/// all ones removes that name. Copies share the file; so does no second process.
class log_file {
 public:
  class writer;
  class reader;

  explicit log_file(const std::string& path) : log_(std::make_shared<log>()) {
    log_->path = path;
    std::ofstream(path, std::ios::app | std::ios::binary);
    log_->file.open(path, std::ios::in | std::ios::out | std::ios::binary);
    for (std::uint64_t head[2]; log_->file.read(reinterpret_cast<char*>(head), sizeof head);) {
      std::string name(head[0], '\0');
      const std::uint64_t at = log_->end + sizeof head + head[0], size = head[1] == removed ? 0 : head[1];
      log_->file.read(name.data(), std::streamsize(name.size())).seekg(std::streamoff(at + size));
      if (!log_->file) break;
      log_->end = at + size;
      log_->index.erase(name);
      if (head[1] != removed) log_->index[name] = {at, size};
    }
    log_->file.clear();
  }

  [[nodiscard]] checkrow::result<writer> create(std::string_view name);
  [[nodiscard]] checkrow::result<reader> open(std::string_view name) const;
  [[nodiscard]] checkrow::result<std::vector<checkrow::blob>> list() const {
    const std::lock_guard lock(log_->mutex);
    std::vector<checkrow::blob> out;
    for (const auto& [name, place] : log_->index) out.push_back({name, place.second});
    return out;
  }
  [[nodiscard]] checkrow::status remove(std::string_view name) {
    const std::lock_guard lock(log_->mutex);
    if (log_->index.erase(std::string(name)) == 0) return missing(name);
    return append(name, removed, {});
  }
  [[nodiscard]] std::string where() const { return log_->path; }

 private:
  static constexpr std::uint64_t removed = ~std::uint64_t{0};
  struct log {
    std::mutex mutex;
    std::string path;
    std::fstream file;
    std::uint64_t end = 0;
    std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> index;  ///< offset, size
  };
  [[nodiscard]] checkrow::error missing(std::string_view name) const {
    return {checkrow::error_kind::not_found, "no such blob", log_->path + ", " + std::string(name), ""};
  }
  checkrow::status append(std::string_view name, std::uint64_t size, std::span<const std::byte> bytes) {
    const std::uint64_t head[2] = {name.size(), size};
    log_->file.seekp(std::streamoff(log_->end));
    log_->file.write(reinterpret_cast<const char*>(head), sizeof head)
        .write(name.data(), std::streamsize(name.size()))
        .write(reinterpret_cast<const char*>(bytes.data()), std::streamsize(bytes.size()))
        .flush();
    if (!log_->file) {
      log_->file.clear();
      return checkrow::error{checkrow::error_kind::io, "cannot append", log_->path, "look at the disk"};
    }
    log_->end += sizeof head + name.size() + bytes.size();
    return {};
  }

  std::shared_ptr<log> log_;
};

class log_file::writer {
 public:
  writer(log_file to, std::string name) : to_(std::move(to)), name_(std::move(name)) {}
  [[nodiscard]] checkrow::status append(std::span<const std::byte> more) {
    bytes_.insert(bytes_.end(), more.begin(), more.end());
    return {};
  }
  [[nodiscard]] checkrow::status commit() {
    const std::lock_guard lock(to_.log_->mutex);
    const std::uint64_t at = to_.log_->end + 2 * sizeof(std::uint64_t) + name_.size();
    if (checkrow::status done = to_.append(name_, bytes_.size(), bytes_); !done) return done;
    to_.log_->index[name_] = {at, bytes_.size()};
    return {};
  }
  void abandon() noexcept { bytes_.clear(); }

 private:
  log_file to_;
  std::string name_;
  std::vector<std::byte> bytes_;
};

class log_file::reader {
 public:
  reader(log_file of, std::uint64_t at, std::uint64_t size) : of_(std::move(of)), at_(at), size_(size) {}
  [[nodiscard]] std::uint64_t bytes() const noexcept { return size_; }
  [[nodiscard]] checkrow::status read(std::uint64_t offset, std::span<std::byte> out) const {
    const std::lock_guard lock(of_.log_->mutex);
    std::fstream& file = of_.log_->file;
    if (offset <= size_ && out.size() <= size_ - offset &&
        file.seekg(std::streamoff(at_ + offset))
            .read(reinterpret_cast<char*>(out.data()), std::streamsize(out.size())))
      return {};
    file.clear();
    return checkrow::error{checkrow::error_kind::corrupt, "the blob ends before the bytes asked for",
                           of_.where(), ""};
  }

 private:
  log_file of_;
  std::uint64_t at_, size_;
};

inline checkrow::result<log_file::writer> log_file::create(std::string_view name) {
  return writer(*this, std::string(name));
}
inline checkrow::result<log_file::reader> log_file::open(std::string_view name) const {
  const std::lock_guard lock(log_->mutex);
  const auto found = log_->index.find(std::string(name));
  if (found == log_->index.end()) return missing(name);
  return reader(*this, found->second.first, found->second.second);
}
static_assert(checkrow::sink<log_file>);

}  // namespace own
