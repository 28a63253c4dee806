// The policies behind virtual calls. Each is called once a chunk or less, so the save and restore paths are
// compiled once a program, not once a combination of policies.
#pragma once

#include <checkrow/concepts.hpp>
#include <checkrow/detail/guarded.hpp>
#include <checkrow/detail/registered.hpp>
#include <checkrow/format/manifest.hpp>
#include <functional>
#include <memory>

namespace checkrow::inline v0::detail {

// ----------------------------------------------------------------------------------------------------- sink

/// Like blob_writer, blob_reader and sink; what a user's sink throws has become an error.
class any_writer {
 public:
  virtual ~any_writer() = default;
  [[nodiscard]] virtual status append(std::span<const std::byte> bytes) = 0;
  [[nodiscard]] virtual status commit() = 0;
  virtual void abandon() noexcept = 0;
  /// Appended, and not written yet; 0 where the sink does not tell.
  [[nodiscard]] virtual std::uint64_t queued_bytes() const noexcept = 0;
};

class any_reader {
 public:
  virtual ~any_reader() = default;
  [[nodiscard]] virtual std::uint64_t bytes() const noexcept = 0;
  [[nodiscard]] virtual status read(std::uint64_t offset, std::span<std::byte> out) = 0;
};

class any_sink {
 public:
  virtual ~any_sink() = default;
  [[nodiscard]] virtual result<std::unique_ptr<any_writer>> create(std::string_view name) = 0;
  [[nodiscard]] virtual result<std::unique_ptr<any_reader>> open(std::string_view name) = 0;
  [[nodiscard]] virtual result<std::vector<blob>> list() = 0;
  [[nodiscard]] virtual status remove(std::string_view name) = 0;
  /// Takes the right to write a part, and sweeps what dead writers of it left.
  [[nodiscard]] virtual status claim(std::uint32_t part) = 0;
  /// Keeps a blob from being collected while the pointer lives. A sink without leases gives an empty one.
  [[nodiscard]] virtual result<std::shared_ptr<void>> lease(std::string_view name) = 0;
  /// True: the blob is gone. False: it stays, since somebody has a lease.
  [[nodiscard]] virtual result<bool> remove_unleased(std::string_view name) = 0;
  [[nodiscard]] virtual std::string where() const = 0;
  /// The most memory that one writer holds, as far as the sink says.
  [[nodiscard]] virtual std::uint64_t writer_bytes() const noexcept = 0;
  /// Where the sink fell back to something slower since the last call.
  [[nodiscard]] virtual std::vector<error> notes() = 0;
};

template <sink Sink>
class erased_sink final : public any_sink {
 public:
  explicit erased_sink(Sink sink) : sink_(std::move(sink)) {}

  [[nodiscard]] result<std::unique_ptr<any_writer>> create(std::string_view name) override {
    return wrap<any_writer, writer>([&] { return sink_.create(name); });
  }
  [[nodiscard]] result<std::unique_ptr<any_reader>> open(std::string_view name) override {
    return wrap<any_reader, reader>([&] { return sink_.open(name); });
  }
  [[nodiscard]] result<std::vector<blob>> list() override {
    return guarded_result("the sink", named(), [&] { return sink_.list(); });
  }
  [[nodiscard]] status remove(std::string_view name) override {
    return guarded("the sink", named(), [&] { return sink_.remove(name); });
  }
  [[nodiscard]] result<std::shared_ptr<void>> lease(std::string_view name) override {
    return guarded_result("the sink", named(), [&]() -> result<std::shared_ptr<void>> {
      std::shared_ptr<void> held;
      if constexpr (requires { sink_.lease(name); }) {
        auto given = sink_.lease(name);
        if (!given) return std::move(given).error();
        using lease_type = std::remove_cvref_t<decltype(*given)>;
        held = std::make_shared<lease_type>(*std::move(given));
      }
      return held;
    });
  }
  [[nodiscard]] result<bool> remove_unleased(std::string_view name) override {
    return guarded_result("the sink", named(), [&]() -> result<bool> {
      if constexpr (requires { sink_.remove_unleased(name); })
        return sink_.remove_unleased(name);
      else {
        status removed = sink_.remove(name);
        if (!removed && removed.error().kind != error_kind::not_found) return std::move(removed).error();
        return true;
      }
    });
  }
  [[nodiscard]] std::string where() const override {
    std::string out;
    swallowed([&] { out = sink_.where(); });
    return out;
  }
  [[nodiscard]] std::uint64_t writer_bytes() const noexcept override {
    if constexpr (requires { sink_.writer_bytes(); })
      return sink_.writer_bytes();
    else
      return 0;
  }
  [[nodiscard]] std::vector<error> notes() override {
    std::vector<error> out;
    if constexpr (requires { sink_.notes(); }) swallowed([&] { out = sink_.notes(); });
    return out;
  }

  [[nodiscard]] status claim(std::uint32_t part) override {
    return guarded("the sink", named(), [&]() -> status {
      if constexpr (requires { sink_.claim(part); })
        if (right_ == nullptr) {  // else from an attempt that failed after this
          auto right = sink_.claim(part);
          if (!right) return std::move(right).error();
          using right_type = std::remove_cvref_t<decltype(*right)>;
          right_ = std::make_shared<right_type>(*std::move(right));
        }
      if constexpr (requires { sink_.sweep(part); })
        return sink_.sweep(part);
      else
        return {};
    });
  }

 private:
  struct writer final : any_writer {
    explicit writer(typename Sink::writer from) : inner(std::move(from)) {}
    [[nodiscard]] status append(std::span<const std::byte> bytes) override {
      return guarded("the sink", "", [&] { return inner.append(bytes); });
    }
    [[nodiscard]] status commit() override {
      return guarded("the sink", "", [&] { return inner.commit(); });
    }
    void abandon() noexcept override { inner.abandon(); }
    [[nodiscard]] std::uint64_t queued_bytes() const noexcept override {
      if constexpr (requires { inner.queued_bytes(); })
        return inner.queued_bytes();
      else
        return 0;
    }
    typename Sink::writer inner;
  };
  struct reader final : any_reader {
    explicit reader(typename Sink::reader from) : inner(std::move(from)) {}
    [[nodiscard]] std::uint64_t bytes() const noexcept override { return inner.bytes(); }
    [[nodiscard]] status read(std::uint64_t offset, std::span<std::byte> out) override {
      return guarded("the sink", "", [&] { return inner.read(offset, out); });
    }
    typename Sink::reader inner;
  };

  template <class Any, class Erased, class Call>
  [[nodiscard]] result<std::unique_ptr<Any>> wrap(Call&& call) {
    return guarded_result("the sink", named(), [&]() -> result<std::unique_ptr<Any>> {
      auto made = call();
      if (!made) return std::move(made).error();
      return std::unique_ptr<Any>(std::make_unique<Erased>(*std::move(made)));
    });
  }

  [[nodiscard]] auto named() const {
    return [this] { return where(); };
  }

  Sink sink_;
  std::shared_ptr<void> right_;  ///< after the sink, so that it is given back while the sink lives
};

// --------------------------------------------------------------------------------------------------- codecs

/// Like codec_set: operations by choice. encode() and bound() only of a choice that it contains.
class any_codecs {
 public:
  virtual ~any_codecs() = default;
  [[nodiscard]] virtual bool contains(codec_choice codec) const noexcept = 0;
  [[nodiscard]] virtual codec_choice first() const noexcept = 0;
  [[nodiscard]] virtual bool accepts(codec_choice codec, column_shape shape) const noexcept = 0;
  [[nodiscard]] virtual std::size_t bound(codec_choice codec, column_shape shape,
                                          std::size_t rows) const noexcept = 0;
  [[nodiscard]] virtual std::size_t encode(codec_choice codec, column_shape shape, row_view from,
                                           std::size_t rows, std::byte* out) const noexcept = 0;
  [[nodiscard]] virtual bool decode(codec_choice codec, column_shape shape, std::span<const std::byte> bytes,
                                    std::size_t rows, row_span to) const noexcept = 0;
  /// Names and versions, for the manifest.
  [[nodiscard]] virtual std::vector<format::codec_schema> describe() const = 0;
};

template <class Codecs>
class erased_codecs final : public any_codecs {
 public:
  explicit erased_codecs(Codecs codecs) : codecs_(std::move(codecs)) {}

  [[nodiscard]] bool contains(codec_choice codec) const noexcept override { return Codecs::contains(codec); }
  [[nodiscard]] codec_choice first() const noexcept override { return Codecs::first(); }
  [[nodiscard]] bool accepts(codec_choice codec, column_shape shape) const noexcept override {
    bool answer = false;
    codecs_.visit(codec, [&](const auto& one) { answer = one.accepts(shape); });
    return answer;
  }
  [[nodiscard]] std::size_t bound(codec_choice codec, column_shape shape,
                                  std::size_t rows) const noexcept override {
    std::size_t answer = 0;
    codecs_.visit(codec, [&](const auto& one) { answer = one.bound(shape, rows); });
    return answer;
  }
  [[nodiscard]] std::size_t encode(codec_choice codec, column_shape shape, row_view from, std::size_t rows,
                                   std::byte* out) const noexcept override {
    std::size_t answer = 0;
    codecs_.visit(codec, [&](const auto& one) { answer = one.encode(shape, from, rows, out); });
    return answer;
  }
  [[nodiscard]] bool decode(codec_choice codec, column_shape shape, std::span<const std::byte> bytes,
                            std::size_t rows, row_span to) const noexcept override {
    bool answer = false;
    codecs_.visit(codec, [&](const auto& one) { answer = one.decode(shape, bytes, rows, to); });
    return answer;
  }
  [[nodiscard]] std::vector<format::codec_schema> describe() const override {
    std::vector<format::codec_schema> out;
    codecs_.for_each([&](const auto& codec) {
      out.push_back({codec_choice(codec), std::string(codec.name), codec.version});
    });
    return out;
  }

 private:
  Codecs codecs_;
};

// ------------------------------------------------------------------------------------- strategy and capture

struct any_strategy {
  std::function<save_plan(const history&, const boundary&)> plan;
  std::string name;
  cursor_set cursors = 0;
};

template <strategy Strategy>
[[nodiscard]] any_strategy erase(Strategy policy) {
  return {[policy](const history& past, const boundary& now) { return policy.plan(past, now); },
          std::string(Strategy::name), Strategy::cursors};
}

using model_tables = std::vector<std::unique_ptr<model_table>>;

/// How the rows of a plan are read as they were at the boundary.
class any_capture {
 public:
  virtual ~any_capture() = default;
  /// At the boundary: seals every table's touches and makes the plan's rows pending. False where next() reads
  /// the tables themselves, so that the trainer must not go on before end(). Copies of rows may take so many
  /// bytes at a time.
  [[nodiscard]] virtual bool begin(model_tables& tables, const save_plan& plan, std::uint64_t memory) = 0;
  /// More rows, for one of any number of workers; waits where none are ready but some may come. False: every
  /// row was handed out, or the capture was cancelled.
  [[nodiscard]] virtual bool next(row_batch& batch) = 0;
  /// Ends it early, from any thread: workers and touches that wait go on, next() yields nothing more.
  virtual void cancel() noexcept = 0;
  /// Why the capture cancelled itself, if it did.
  [[nodiscard]] virtual status outcome() { return {}; }
  /// No worker is in next() any more, and none comes: nothing is pending.
  virtual void end() noexcept {}
  [[nodiscard]] virtual capture_figures figures() const { return {}; }
};

}  // namespace checkrow::inline v0::detail
