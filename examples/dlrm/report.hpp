// What a run leaves for other programs: a file of JSON objects, one flat object a line.
#pragma once

#include <cerrno>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

namespace dlrm {

/// One line of a report.
class json_line {
 public:
  explicit json_line(const std::string& event) { add("event", event); }

  json_line& add(const std::string& name, const std::string& plain_text) {
    return put(name, '"' + plain_text + '"');
  }
  json_line& add(const std::string& name, std::uint64_t value) { return put(name, std::to_string(value)); }
  json_line& add(const std::string& name, double value) {
    char text[40];
    std::snprintf(text, sizeof text, "%.9g", value);
    return put(name, text);
  }

  [[nodiscard]] std::string text() const { return "{" + members_ + "}\n"; }

 private:
  json_line& put(const std::string& name, const std::string& value) {
    members_ += (members_.empty() ? "\"" : ",\"") + name + "\":" + value;
    return *this;
  }

  std::string members_;
};

/// Lines are appended, so that a run that is killed and resumed tells one story, and each reaches the kernel
/// before write() returns. Used by one thread at a time.
class report {
 public:
  /// An empty path: nothing is written.
  explicit report(const std::string& path)
      : path_(path), file_(path.empty() ? nullptr : std::fopen(path.c_str(), "a")) {
    if (!path.empty() && !file_)
      throw std::runtime_error("cannot write " + path + ": " + std::strerror(errno));
  }

  void write(const json_line& line) {
    if (!file_) return;
    std::fputs(line.text().c_str(), file_.get());
    if (std::fflush(file_.get()) != 0) throw std::runtime_error("cannot write " + path_);
  }

 private:
  struct close {
    void operator()(std::FILE* file) const noexcept { std::fclose(file); }
  };
  std::string path_;
  std::unique_ptr<std::FILE, close> file_;
};

}  // namespace dlrm
