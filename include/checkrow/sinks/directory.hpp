// The directory sink: a file per blob in one folder of a POSIX file system.
#pragma once

#include <checkrow/concepts.hpp>
#include <checkrow/detail/file.hpp>
#include <checkrow/detail/file_reader.hpp>
#include <checkrow/sinks/write_options.hpp>
#include <memory>

namespace checkrow::inline v0 {

namespace detail {
class write_behind;
class write_shared;
}  // namespace detail

/// How far a commit goes before it reports success.
enum class sync_discipline : std::uint8_t {
  full,  ///< the file, its name and the folder are on the device
  none,  ///< the kernel has them: for tests, and for storage that is durable by itself
};

/// Blobs are files of `path`, which is created at the first write, with its parents. A blob is written under
/// a temporary name, synced, renamed, and the folder synced: what has a blob's name is whole. A part has one
/// writer, by a lock that the kernel frees however its process ends; readers need no lock.
///
/// Appends are copied into a few large buffers, which are written behind the caller's back: past the page
/// cache where the file system lets us, through it where not. A failed write is told by the next append() or
/// by commit(). Copies share the buffers that lie idle between blobs.
struct directory {
  std::string path;
  sync_discipline sync = sync_discipline::full;
  write_options write{};
  std::shared_ptr<detail::write_shared> shared = new_shared();

  class writer;
  using reader = detail::file_reader;
  class claim_type;
  class lease_type;

  [[nodiscard]] result<writer> create(std::string_view name) const;
  [[nodiscard]] result<reader> open(std::string_view name) const;
  [[nodiscard]] result<std::vector<blob>> list() const;
  [[nodiscard]] status remove(std::string_view name) const;
  [[nodiscard]] result<claim_type> claim(std::uint32_t part) const;
  [[nodiscard]] status sweep(std::uint32_t part) const;
  [[nodiscard]] result<lease_type> lease(std::string_view name) const;
  [[nodiscard]] result<bool> remove_unleased(std::string_view name) const;
  [[nodiscard]] std::string where() const { return path; }
  [[nodiscard]] std::uint64_t writer_bytes() const noexcept { return write.memory(); }
  [[nodiscard]] std::vector<error> notes() const;

 private:
  /// Ends the name of a blob that is still being written: no list() shows it.
  static constexpr std::string_view temporary = ".partial";

  [[nodiscard]] static std::shared_ptr<detail::write_shared> new_shared();

  [[nodiscard]] std::string file_of(std::string_view name) const { return path + "/" + std::string(name); }
  [[nodiscard]] status make_folder() const;
  [[nodiscard]] status sync_folder(const std::string& folder) const;
};

/// Writes one file. Used by one thread at a time.
class directory::writer {
 public:
  writer(detail::file file, std::string final_path, const directory& to);
  writer(writer&& other) noexcept;
  writer& operator=(writer&& other) noexcept;
  ~writer();

  [[nodiscard]] status append(std::span<const std::byte> bytes);
  [[nodiscard]] status commit();
  [[nodiscard]] std::uint64_t queued_bytes() const noexcept;
  void abandon() noexcept;

 private:
  std::unique_ptr<detail::write_behind> behind_;  ///< null once committed, abandoned or moved from
  std::string final_path_;
  directory to_;
};

/// The lock of one part: the kernel frees it with the descriptor, however the process ends.
class directory::claim_type {
 public:
  explicit claim_type(detail::file lock) : lock_(std::move(lock)) {}

 private:
  detail::file lock_;
};

/// Keeps one blob, and what it lists, from being collected: a shared lock, which the kernel frees as well.
class directory::lease_type {
 public:
  explicit lease_type(detail::file locked) : locked_(std::move(locked)) {}

 private:
  detail::file locked_;
};

static_assert(sink<directory>);

}  // namespace checkrow::inline v0

#if CHECKROW_HEADER_ONLY
#include <checkrow/source/directory.hpp>
#endif
