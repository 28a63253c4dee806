// A click log in Criteo's format, plain or gzip, streamed: memory is one buffer, whatever the file's size.
#pragma once

#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "criteo_line.hpp"
#include "sample.hpp"

namespace dlrm {

/// Lines of a plain or gzip file. A position is an offset in uncompressed bytes: seeking in a plain file
/// costs nothing, in a gzip file it reads up to there again.
class line_reader {
 public:
  static constexpr std::size_t longest_line = 64 * 1024;  ///< of a longer one only this much is handed out

  explicit line_reader(const std::string& path)
      : path_(path), file_(gzopen(path.c_str(), "rb")), buffer_(1 << 18) {
    if (!file_) throw std::runtime_error("cannot open " + path_ + ": " + std::strerror(errno));
    gzbuffer(file_.get(), 1 << 17);
  }

  /// The next line without its newline, valid until the next call; false at the end of the file.
  bool next(std::string_view& line) {
    long_line_.clear();
    bool in_long_line = false;
    for (;;) {
      const char* const from = buffer_.data() + begin_;
      if (const void* const newline = std::memchr(from, '\n', end_ - begin_)) {
        const auto size = static_cast<std::size_t>(static_cast<const char*>(newline) - from);
        line = take(size, in_long_line);
        ++begin_, ++offset_;
        return true;
      }
      if (end_ - begin_ > longest_line ||
          in_long_line) {  // no sample is so long: keep its head, drop the rest
        line = take(end_ - begin_, in_long_line);
        in_long_line = true;
      }
      if (!fill()) {
        if (begin_ == end_ && !in_long_line) return false;
        line = take(end_ - begin_, in_long_line);
        return true;
      }
    }
  }

  [[nodiscard]] std::uint64_t offset() const noexcept { return offset_; }

  void seek(std::uint64_t offset) {
    if (gzseek(file_.get(), static_cast<z_off_t>(offset), SEEK_SET) < 0)
      throw std::runtime_error("cannot go to byte " + std::to_string(offset) + " of " + path_);
    begin_ = end_ = 0;
    offset_ = offset;
  }

 private:
  struct close {
    void operator()(gzFile_s* file) const noexcept { gzclose_r(file); }
  };

  std::string_view take(std::size_t size, bool into_long_line) {
    const std::string_view piece(buffer_.data() + begin_, size);
    begin_ += size, offset_ += size;
    if (!into_long_line && size <= longest_line) return piece;
    if (!into_long_line) long_line_ = piece.substr(0, longest_line);
    return long_line_;
  }

  bool fill() {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_, begin_ = 0;
    const int got = gzread(file_.get(), buffer_.data() + end_, static_cast<unsigned>(buffer_.size() - end_));
    int code = Z_OK;
    const char* const text = gzerror(file_.get(), &code);
    if (got < 0 || (got == 0 && code != Z_OK))
      throw std::runtime_error("cannot read " + path_ + " after byte " + std::to_string(offset_) + ": " +
                               (code == Z_ERRNO ? std::strerror(errno) : text));
    end_ += static_cast<std::size_t>(got);
    return got > 0;
  }

  std::string path_;
  std::unique_ptr<gzFile_s, close> file_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0, end_ = 0;  ///< what of the buffer is still to be handed out
  std::uint64_t offset_ = 0;
  std::string long_line_;
};

/// A Criteo file as a source. Lines that are no samples are counted, the first few reported by number; once
/// a bad line after line 1,000 makes them more than one in a hundred, reading stops with an exception.
class criteo_file final : public sample_source {
 public:
  static constexpr std::uint64_t reports = 10;        ///< bad lines that are reported one by one
  static constexpr std::uint64_t judged_from = 1000;  ///< lines before the share of bad ones is judged
  static constexpr std::uint64_t one_bad_in = 100;

  struct options {
    std::string path;
    part which = part::train;
    table_sizes sizes = default_table_sizes;
    std::uint64_t end = ~std::uint64_t{0};  ///< lines from here on are not read
    std::function<void(const std::string&)> report = [](const std::string& text) {
      std::cerr << text + '\n';
    };
  };

  explicit criteo_file(const options& chosen) : options_(chosen), lines_(chosen.path) {}

  bool read(sample& to) override {
    std::string_view line;
    while (at_.next < options_.end && lines_.next(line)) {
      const std::uint64_t index = at_.next++;
      at_.offset = lines_.offset();
      if (!parse_criteo_line(line, options_.sizes, to)) {
        count_malformed();
        continue;
      }
      to.index = index;
      if (is_held_out(index) == (options_.which == part::held_out)) return true;
    }
    return false;
  }

  [[nodiscard]] log_position position() const override { return at_; }

  void seek(const log_position& to) override {
    lines_.seek(to.offset);
    at_ = to;
  }

 private:
  void count_malformed() {
    ++at_.malformed;
    if (at_.malformed <= reports)
      options_.report(options_.path + ":" + std::to_string(at_.next) +
                      ": not a sample (label, 13 integers, 26 " + "hexadecimal words), skipped" +
                      (at_.malformed == reports ? "; further ones are only counted" : ""));
    if (at_.next >= judged_from && at_.malformed * one_bad_in > at_.next)
      throw std::runtime_error(options_.path + ": " + std::to_string(at_.malformed) + " of the first " +
                               std::to_string(at_.next) + " lines are no samples, more than 1 in " +
                               std::to_string(one_bad_in) + ": is this Criteo's format?");
  }

  options options_;
  line_reader lines_;
  log_position at_;
};

}  // namespace dlrm
