// Batch scopes: a touch and the update that follows it lie within one, and a save's boundary never does.
#pragma once

#include <atomic>
#include <checkrow/version.hpp>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace checkrow::inline v0 {

namespace detail {

/// Lets many threads be inside scopes, and one saver wait until none is. Each thread counts its scopes in a
/// cache line of its own; opening one costs an uncontended atomic add.
class batch_gate {
 public:
  struct alignas(64) slot {
    std::atomic<std::uint32_t> open{0};
    std::atomic<bool> owned{true};  ///< by a living thread
  };

  /// Opens a scope of the calling thread. Held while a save is at its boundary, unless the thread is inside
  /// one.
  [[nodiscard]] slot* enter() {
    slot* const mine = slot_of_this_thread();
    used_.store(true, std::memory_order_relaxed);
    while (mine->open.fetch_add(1) == 0 && closed_.load()) {
      leave(mine);
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return !closed_.load(); });
    }
    return mine;
  }

  void leave(slot* from) noexcept {
    if (from->open.fetch_sub(1) != 1 || !closed_.load()) return;
    { const std::lock_guard lock(mutex_); }
    changed_.notify_all();
  }

  /// A scope that was opened by another thread goes on in this one, so that this thread's nested scopes are
  /// known as such. Under the mutex: the saver must not see the count missing from both.
  [[nodiscard]] slot* adopt(slot* from) {
    slot* const mine = slot_of_this_thread();
    if (mine == from) return from;
    {
      const std::lock_guard lock(mutex_);
      mine->open.fetch_add(1);
      from->open.fetch_sub(1);
    }
    changed_.notify_all();
    return mine;
  }

  /// Is the calling thread inside a scope?
  [[nodiscard]] bool inside() { return slot_of_this_thread()->open.load(std::memory_order_relaxed) != 0; }

  /// Is any scope open, or has none ever been? (What a debug build asks of a touch.)
  [[nodiscard]] bool open_or_unused() {
    if (!used_.load(std::memory_order_relaxed)) return true;
    const std::lock_guard lock(mutex_);
    return !quiet();
  }

  /// Waits until no scope is open and holds new ones until reopen(). One caller at a time.
  void close() {
    closed_.store(true);
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return quiet(); });
  }
  void reopen() noexcept {
    {
      const std::lock_guard lock(mutex_);
      closed_.store(false);
    }
    changed_.notify_all();
  }

 private:
  /// A thread's slots, one for each gate it has met; given back when the thread ends.
  struct thread_slots {
    std::vector<std::pair<std::uint64_t, std::shared_ptr<slot>>> known;
    ~thread_slots() {
      for (auto& [gate, mine] : known) mine->owned.store(false);
    }
  };

  [[nodiscard]] bool quiet() const noexcept {
    for (const auto& one : slots_)
      if (one->open.load() != 0) return false;
    return true;
  }

  [[nodiscard]] slot* slot_of_this_thread() {
    static thread_local thread_slots mine;
    for (const auto& [gate, known] : mine.known)
      if (gate == id_) return known.get();
    std::erase_if(mine.known,
                  [](const auto& entry) { return entry.second.use_count() == 1; });  // of dead gates
    mine.known.emplace_back(id_, free_slot());
    return mine.known.back().second.get();
  }

  [[nodiscard]] std::shared_ptr<slot> free_slot() {
    const std::lock_guard lock(mutex_);
    for (const auto& one : slots_) {
      bool orphaned = false;
      if (one->open.load() == 0 && one->owned.compare_exchange_strong(orphaned, true)) return one;
    }
    slots_.push_back(std::make_shared<slot>());
    return slots_.back();
  }

  [[nodiscard]] static std::uint64_t next_id() noexcept {
    static std::atomic<std::uint64_t> last{0};
    return ++last;
  }

  const std::uint64_t id_ = next_id();
  std::atomic<bool> closed_{false};
  std::atomic<bool> used_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::shared_ptr<slot>> slots_;
};

/// The gate is closed as long as this lives.
class closed_gate {
 public:
  explicit closed_gate(batch_gate& gate) : gate_(gate) { gate.close(); }
  closed_gate(const closed_gate&) = delete;
  closed_gate& operator=(const closed_gate&) = delete;
  ~closed_gate() { gate_.reopen(); }

 private:
  batch_gate& gate_;
};

}  // namespace detail

/// One batch, from its first touch to the end of its update. Open one per thread and batch (Hogwild threads,
/// RPC handlers, pipelines); a trainer that saves from its only thread, between its batches, needs none.
/// Movable, also to another thread; a scope opened inside another one is never held by a save.
class batch_scope {
 public:
  explicit batch_scope(detail::batch_gate& gate) : gate_(&gate), slot_(gate.enter()) {}
  batch_scope(batch_scope&& other) noexcept
      : gate_(std::exchange(other.gate_, nullptr)),
        slot_(gate_ != nullptr ? gate_->adopt(other.slot_) : nullptr) {}
  batch_scope& operator=(batch_scope&& other) noexcept {
    if (this == &other) return *this;
    end();
    gate_ = std::exchange(other.gate_, nullptr);
    slot_ = gate_ != nullptr ? gate_->adopt(other.slot_) : nullptr;
    return *this;
  }
  ~batch_scope() { end(); }

  /// The batch's update is done. Ending twice is harmless.
  void end() noexcept {
    if (gate_ != nullptr) std::exchange(gate_, nullptr)->leave(slot_);
  }

 private:
  detail::batch_gate* gate_;
  detail::batch_gate::slot* slot_;
};

}  // namespace checkrow::inline v0
