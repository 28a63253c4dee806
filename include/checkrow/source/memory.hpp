// Bodies of sinks/memory.hpp.
#pragma once

#include <algorithm>
#include <checkrow/sinks/memory.hpp>
#include <map>
#include <mutex>
#include <set>

namespace checkrow::inline v0 {

struct memory::store {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<const bytes>> blobs;
  std::set<std::uint32_t> claimed;
};

namespace detail {

[[nodiscard]] inline error not_in_memory(std::string_view name) {
  return make_error(error_kind::not_found, {"no such blob"}, {"memory, ", name},
                    {"list() names those that exist"});
}

}  // namespace detail

CHECKROW_INLINE memory::memory() : store_(std::make_shared<store>()) {}

CHECKROW_INLINE result<memory::writer> memory::create(std::string_view name) {
  return writer(*this, std::string(name));
}

CHECKROW_INLINE result<memory::reader> memory::open(std::string_view name) const {
  if (auto content = find(name)) return reader(std::move(content));
  return detail::not_in_memory(name);
}

CHECKROW_INLINE result<std::vector<blob>> memory::list() const {
  const std::lock_guard lock(store_->mutex);
  std::vector<blob> out;
  for (const auto& [name, content] : store_->blobs) out.push_back({name, content->size()});
  return out;
}

CHECKROW_INLINE status memory::remove(std::string_view name) {
  const std::lock_guard lock(store_->mutex);
  if (store_->blobs.erase(std::string(name)) == 0) return detail::not_in_memory(name);
  return {};
}

CHECKROW_INLINE result<memory::claim_type> memory::claim(std::uint32_t part) {
  const std::lock_guard lock(store_->mutex);
  if (!store_->claimed.insert(part).second)
    return detail::make_error(error_kind::misuse, {"part ", part, " has a writer already"}, {"memory"},
                              {"one checkpointer writes a part; end the other one first"});
  return claim_type(*this, part);
}

CHECKROW_INLINE memory::claim_type::~claim_type() {
  if (of_.store_ == nullptr) return;
  const std::lock_guard lock(of_.store_->mutex);
  of_.store_->claimed.erase(part_);
}

CHECKROW_INLINE std::shared_ptr<const memory::bytes> memory::find(std::string_view name) const {
  const std::lock_guard lock(store_->mutex);
  const auto found = store_->blobs.find(std::string(name));
  return found == store_->blobs.end() ? nullptr : found->second;
}

CHECKROW_INLINE void memory::put(std::string_view name, bytes content) {
  const std::lock_guard lock(store_->mutex);
  store_->blobs[std::string(name)] = std::make_shared<const bytes>(std::move(content));
}

CHECKROW_INLINE status memory::writer::append(std::span<const std::byte> more) {
  content_.insert(content_.end(), more.begin(), more.end());
  return {};
}

CHECKROW_INLINE status memory::writer::commit() {
  to_.put(name_, std::move(content_));
  return {};
}

CHECKROW_INLINE status memory::reader::read(std::uint64_t offset, std::span<std::byte> out) const {
  if (offset > content_->size() || out.size() > content_->size() - offset)
    return detail::make_error(error_kind::corrupt, {"the blob ends before the bytes asked for"}, {"memory"},
                              {"it was truncated"});
  std::copy_n(content_->data() + offset, out.size(), out.data());
  return {};
}

}  // namespace checkrow::inline v0
