// A sink of one's own: a directory that can kill its process while a checkpoint is half-written.
#pragma once

#include <checkrow/sinks/directory.hpp>
#include <csignal>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

namespace dlrm {

/// Passes everything on to checkrow::directory, but for the `kill_at`th segment that it is to write: when the
/// `kill_after`th piece of it comes, the process gets a SIGKILL, which no handler or destructor sees.
class deadly_directory {
 public:
  using reader = checkrow::directory::reader;

  class writer {
   public:
    writer(checkrow::directory::writer to, std::uint64_t pieces_to_live)
        : to_(std::move(to)), pieces_to_live_(pieces_to_live) {}

    [[nodiscard]] checkrow::status append(std::span<const std::byte> bytes) {
      if (pieces_to_live_ > 0 && --pieces_to_live_ == 0) std::raise(SIGKILL);
      return to_.append(bytes);
    }
    [[nodiscard]] checkrow::status commit() { return to_.commit(); }
    void abandon() noexcept { to_.abandon(); }

   private:
    checkrow::directory::writer to_;
    std::uint64_t pieces_to_live_;  ///< 0: for ever
  };

  explicit deadly_directory(checkrow::directory to, std::uint64_t kill_at = 0, std::uint64_t kill_after = 15)
      : to_(std::move(to)), kill_at_(kill_at), kill_after_(kill_after) {}

  [[nodiscard]] checkrow::result<writer> create(std::string_view name) {
    const bool deadly = name.ends_with(".segment") && kill_at_ > 0 && --kill_at_ == 0;
    auto created = to_.create(name);
    if (!created) return std::move(created).error();
    return writer(*std::move(created), deadly ? kill_after_ : 0);
  }
  [[nodiscard]] auto open(std::string_view name) const { return to_.open(name); }
  [[nodiscard]] auto list() const { return to_.list(); }
  [[nodiscard]] auto remove(std::string_view name) const { return to_.remove(name); }
  [[nodiscard]] auto claim(std::uint32_t part) const { return to_.claim(part); }
  [[nodiscard]] auto sweep(std::uint32_t part) const { return to_.sweep(part); }
  [[nodiscard]] std::string where() const { return to_.where(); }

 private:
  checkrow::directory to_;
  std::uint64_t kill_at_;
  std::uint64_t kill_after_;
};

static_assert(checkrow::sink<deadly_directory>);

}  // namespace dlrm
