// A sink of the tests' own that is slow, hangs or fails when a test says so.
#pragma once

#include <atomic>
#include <checkrow/sinks/memory.hpp>
#include <chrono>
#include <thread>

/// Memory, but an append may be slow, block, or fail.
struct moody {
  struct moods {
    std::atomic<int> microseconds{0};
    std::atomic<bool> hangs{false};
    std::atomic<int> fails_in{-1};
  };
  checkrow::memory inner{};
  std::shared_ptr<moods> mood = std::make_shared<moods>();

  struct writer {
    checkrow::memory::writer inner;
    std::shared_ptr<moods> mood;
    checkrow::status append(std::span<const std::byte> bytes) {
      while (mood->hangs) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      if (mood->microseconds != 0) std::this_thread::sleep_for(std::chrono::microseconds(mood->microseconds));
      if (mood->fails_in >= 0 && mood->fails_in-- == 0)
        return checkrow::error{checkrow::error_kind::io, "no", "moody", "", 5};
      return inner.append(bytes);
    }
    checkrow::status commit() { return inner.commit(); }
    void abandon() noexcept { inner.abandon(); }
  };
  using reader = checkrow::memory::reader;
  checkrow::result<writer> create(std::string_view name) {
    auto made = inner.create(name);
    return writer{*std::move(made), mood};
  }
  checkrow::result<reader> open(std::string_view name) const { return inner.open(name); }
  checkrow::result<std::vector<checkrow::blob>> list() const { return inner.list(); }
  checkrow::status remove(std::string_view name) { return inner.remove(name); }
  std::string where() const { return "moody"; }
};
static_assert(checkrow::sink<moody>);
