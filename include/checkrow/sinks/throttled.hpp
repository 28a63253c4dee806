// A sink that is no faster than it is told to be: a slow storage to try things out with, or a trainer's share
// of one that others need too.
#pragma once

#include <checkrow/concepts.hpp>
#include <chrono>
#include <memory>
#include <mutex>
#include <thread>

namespace checkrow::inline v0 {

namespace detail {

struct real_clock : std::chrono::steady_clock {
  static void sleep_until(time_point when) { std::this_thread::sleep_until(when); }
};

/// Hands out a resource of so many bytes a second: each pass waits for its end. Thread-safe.
template <class Clock>
class pace {
 public:
  void pass(std::size_t bytes, double bytes_per_second) {
    if (bytes == 0 || !(bytes_per_second > 0)) return;
    const auto takes = std::chrono::duration_cast<typename Clock::duration>(
        std::chrono::duration<double>(double(bytes) / bytes_per_second));
    typename Clock::time_point end;
    {
      const std::lock_guard lock(mutex_);
      const auto now = Clock::now();
      free_ = (free_ < now ? now : free_) + takes;
      end = free_;
    }
    Clock::sleep_until(end);
  }

 private:
  std::mutex mutex_;
  typename Clock::time_point free_{};  ///< when everything handed out will have passed
};

template <class Clock>
struct paces {
  pace<Clock> written, read;
};

}  // namespace detail

/// All writers of the sink and its copies together append at most `bytes_per_second`, all its readers
/// together read at most `read_bytes_per_second`; 0: as fast as it goes. Everything else is the inner sink's.
/// `Clock` is for tests.
template <sink Sink, class Clock = detail::real_clock>
struct throttled {
  Sink to;
  double bytes_per_second = 0;
  double read_bytes_per_second = 0;

  class writer {
   public:
    writer(typename Sink::writer inner, const throttled& by)
        : inner_(std::move(inner)), paces_(by.paces), rate_(by.bytes_per_second) {}
    [[nodiscard]] status append(std::span<const std::byte> bytes) {
      paces_->written.pass(bytes.size(), rate_);
      return inner_.append(bytes);
    }
    [[nodiscard]] std::uint64_t queued_bytes() const noexcept requires
        requires(const typename Sink::writer w) {
      w.queued_bytes();
    }
    { return inner_.queued_bytes(); }
    [[nodiscard]] status commit() { return inner_.commit(); }
    void abandon() noexcept { inner_.abandon(); }

   private:
    typename Sink::writer inner_;
    std::shared_ptr<detail::paces<Clock>> paces_;
    double rate_;
  };

  class reader {
   public:
    reader(typename Sink::reader inner, const throttled& by)
        : inner_(std::move(inner)), paces_(by.paces), rate_(by.read_bytes_per_second) {}
    [[nodiscard]] std::uint64_t bytes() const noexcept { return inner_.bytes(); }
    [[nodiscard]] status read(std::uint64_t offset, std::span<std::byte> out) {
      paces_->read.pass(out.size(), rate_);
      return inner_.read(offset, out);
    }

   private:
    typename Sink::reader inner_;
    std::shared_ptr<detail::paces<Clock>> paces_;
    double rate_;
  };

  [[nodiscard]] result<writer> create(std::string_view name) {
    auto made = to.create(name);
    if (!made) return std::move(made).error();
    return writer(*std::move(made), *this);
  }
  [[nodiscard]] result<reader> open(std::string_view name) {
    auto made = to.open(name);
    if (!made) return std::move(made).error();
    return reader(*std::move(made), *this);
  }
  [[nodiscard]] result<std::vector<blob>> list() { return to.list(); }
  [[nodiscard]] status remove(std::string_view name) { return to.remove(name); }
  [[nodiscard]] std::string where() const { return to.where(); }

  // What a sink may have, where the inner one has it.
  [[nodiscard]] auto claim(std::uint32_t part) requires requires(Sink s) { s.claim(part); }
  { return to.claim(part); }
  [[nodiscard]] status sweep(std::uint32_t part) requires requires(Sink s) { s.sweep(part); }
  { return to.sweep(part); }
  [[nodiscard]] auto lease(std::string_view name) requires requires(Sink s) { s.lease(name); }
  { return to.lease(name); }
  [[nodiscard]] result<bool> remove_unleased(std::string_view name) requires requires(Sink s) {
    s.remove_unleased(name);
  }
  { return to.remove_unleased(name); }
  [[nodiscard]] auto writer_bytes() const noexcept requires requires(const Sink s) { s.writer_bytes(); }
  { return to.writer_bytes(); }
  [[nodiscard]] auto notes() requires requires(Sink s) { s.notes(); }
  { return to.notes(); }

  std::shared_ptr<detail::paces<Clock>> paces = std::make_shared<detail::paces<Clock>>();
};

template <class Sink>
throttled(Sink, double) -> throttled<Sink>;
template <class Sink>
throttled(Sink, double, double) -> throttled<Sink>;

}  // namespace checkrow::inline v0
