// The memory sink: blobs in this process's memory, shared by all copies of one sink.
#pragma once

#include <algorithm>
#include <checkrow/concepts.hpp>
#include <map>
#include <memory>
#include <mutex>
#include <set>

namespace checkrow::inline v0 {

/// For tests, and for checkpoints that need to survive a model but not its process. Copies share their blobs.
/// Thread-safe.
class memory {
 public:
  using bytes = std::vector<std::byte>;
  class writer;
  class reader;
  class claim_type;

  [[nodiscard]] result<writer> create(std::string_view name);
  [[nodiscard]] result<reader> open(std::string_view name) const;

  [[nodiscard]] result<std::vector<blob>> list() const {
    const std::lock_guard lock(store_->mutex);
    std::vector<blob> out;
    for (const auto& [name, content] : store_->blobs) out.push_back({name, content->size()});
    return out;
  }

  [[nodiscard]] status remove(std::string_view name) {
    const std::lock_guard lock(store_->mutex);
    if (store_->blobs.erase(std::string(name)) == 0) return not_here(name);
    return {};
  }

  [[nodiscard]] result<claim_type> claim(std::uint32_t part);
  [[nodiscard]] std::string where() const { return "memory"; }

  /// The bytes of a blob, for tests that damage it. Null where there is none.
  [[nodiscard]] std::shared_ptr<const bytes> find(std::string_view name) const {
    const std::lock_guard lock(store_->mutex);
    const auto found = store_->blobs.find(std::string(name));
    return found == store_->blobs.end() ? nullptr : found->second;
  }
  /// Puts a blob there, or replaces it.
  void put(std::string_view name, bytes content) {
    const std::lock_guard lock(store_->mutex);
    store_->blobs[std::string(name)] = std::make_shared<const bytes>(std::move(content));
  }

 private:
  struct store {
    std::mutex mutex;
    std::map<std::string, std::shared_ptr<const bytes>> blobs;
    std::set<std::uint32_t> claimed;
  };
  [[nodiscard]] static error not_here(std::string_view name) {
    return detail::make_error(error_kind::not_found, {"no such blob"}, {"memory, ", name},
                              {"list() names those that exist"});
  }

  std::shared_ptr<store> store_ = std::make_shared<store>();
};

class memory::writer {
 public:
  writer(memory to, std::string name) : to_(std::move(to)), name_(std::move(name)) {}

  [[nodiscard]] status append(std::span<const std::byte> more) {
    content_.insert(content_.end(), more.begin(), more.end());
    return {};
  }
  [[nodiscard]] status commit() {
    to_.put(name_, std::move(content_));
    return {};
  }
  void abandon() noexcept { content_.clear(); }

 private:
  memory to_;
  std::string name_;
  bytes content_;
};

class memory::reader {
 public:
  explicit reader(std::shared_ptr<const memory::bytes> content) : content_(std::move(content)) {}

  [[nodiscard]] std::uint64_t bytes() const noexcept { return content_->size(); }
  [[nodiscard]] status read(std::uint64_t offset, std::span<std::byte> out) const {
    if (offset > content_->size() || out.size() > content_->size() - offset)
      return detail::make_error(error_kind::corrupt, {"the blob ends before the bytes asked for"}, {"memory"},
                                {"it was truncated"});
    std::copy_n(content_->data() + offset, out.size(), out.data());
    return {};
  }

 private:
  std::shared_ptr<const memory::bytes> content_;
};

/// The right to write one part, until destroyed.
class memory::claim_type {
 public:
  claim_type(memory of, std::uint32_t part) : of_(std::move(of)), part_(part) {}
  claim_type(claim_type&&) noexcept = default;
  claim_type& operator=(claim_type&&) noexcept = default;
  ~claim_type() {
    if (of_.store_ == nullptr) return;
    const std::lock_guard lock(of_.store_->mutex);
    of_.store_->claimed.erase(part_);
  }

 private:
  memory of_;
  std::uint32_t part_;
};

inline result<memory::writer> memory::create(std::string_view name) {
  return writer(*this, std::string(name));
}

inline result<memory::reader> memory::open(std::string_view name) const {
  if (auto content = find(name)) return reader(std::move(content));
  return not_here(name);
}

inline result<memory::claim_type> memory::claim(std::uint32_t part) {
  const std::lock_guard lock(store_->mutex);
  if (!store_->claimed.insert(part).second)
    return detail::make_error(error_kind::misuse, {"part ", part, " has a writer already"}, {"memory"},
                              {"one checkpointer writes a part; end the other one first"});
  return claim_type(*this, part);
}

static_assert(sink<memory>);

}  // namespace checkrow::inline v0
