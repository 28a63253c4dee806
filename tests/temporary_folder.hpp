// A folder of a test's own, removed with everything in it.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>

class temporary_folder {
 public:
  temporary_folder() {
    std::string made = (std::filesystem::temp_directory_path() / "checkrow-test-XXXXXX").string();
    if (::mkdtemp(made.data()) != nullptr) path_ = made;
  }
  temporary_folder(const temporary_folder&) = delete;
  temporary_folder& operator=(const temporary_folder&) = delete;
  ~temporary_folder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }

  /// Of the folder, or of something in it.
  [[nodiscard]] std::string path(const std::string& name = "") const {
    return name.empty() ? path_ : path_ + "/" + name;
  }

 private:
  std::string path_;
};
