// The memory sink: blobs in this process's memory, shared by all copies of one sink.
#pragma once

#include <checkrow/concepts.hpp>
#include <memory>

namespace checkrow::inline v0 {

/// For tests, and for checkpoints that need to survive a model but not its process. Copies share their blobs.
/// Thread-safe.
class memory {
 public:
  using bytes = std::vector<std::byte>;
  class writer;
  class reader;
  class claim_type;

  memory();
  [[nodiscard]] result<writer> create(std::string_view name);
  [[nodiscard]] result<reader> open(std::string_view name) const;
  [[nodiscard]] result<std::vector<blob>> list() const;
  [[nodiscard]] status remove(std::string_view name);
  [[nodiscard]] result<claim_type> claim(std::uint32_t part);
  [[nodiscard]] std::string where() const { return "memory"; }

  /// The bytes of a blob, for tests that damage it. Null where there is none.
  [[nodiscard]] std::shared_ptr<const bytes> find(std::string_view name) const;
  /// Puts a blob there, or replaces it.
  void put(std::string_view name, bytes content);

 private:
  struct store;
  std::shared_ptr<store> store_;
};

class memory::writer {
 public:
  writer(memory to, std::string name) : to_(std::move(to)), name_(std::move(name)) {}

  [[nodiscard]] status append(std::span<const std::byte> more);
  [[nodiscard]] status commit();
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
  [[nodiscard]] status read(std::uint64_t offset, std::span<std::byte> out) const;

 private:
  std::shared_ptr<const memory::bytes> content_;
};

/// The right to write one part, until destroyed.
class memory::claim_type {
 public:
  claim_type(memory of, std::uint32_t part) : of_(std::move(of)), part_(part) {}
  claim_type(claim_type&&) noexcept = default;
  claim_type& operator=(claim_type&&) noexcept = default;
  ~claim_type();

 private:
  memory of_;
  std::uint32_t part_;
};

static_assert(sink<memory>);

}  // namespace checkrow::inline v0

#if CHECKROW_HEADER_ONLY
#include <checkrow/source/memory.hpp>
#endif
