// The directory sink: a file per blob in one folder of a POSIX file system.
#pragma once

#include <dirent.h>

#include <checkrow/concepts.hpp>
#include <checkrow/detail/file.hpp>
#include <checkrow/detail/file_lease.hpp>
#include <checkrow/detail/file_reader.hpp>
#include <checkrow/detail/write_behind.hpp>
#include <memory>

namespace checkrow::inline v0 {

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
  std::shared_ptr<detail::write_shared> shared = std::make_shared<detail::write_shared>();

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
  [[nodiscard]] std::vector<error> notes() const { return shared->take_notes(); }

 private:
  /// Ends the name of a blob that is still being written: no list() shows it.
  static constexpr std::string_view temporary = ".partial";

  [[nodiscard]] std::string file_of(std::string_view name) const { return path + "/" + std::string(name); }
  [[nodiscard]] status make_folder() const;
  [[nodiscard]] status sync_folder(const std::string& folder) const;
};

/// Writes one file. Used by one thread at a time.
class directory::writer {
 public:
  writer(detail::file file, std::string final_path, const directory& to)
      : behind_(std::make_unique<detail::write_behind>(std::move(file), to.shared, to.write,
                                                       to.sync == sync_discipline::full)),
        final_path_(std::move(final_path)),
        to_(to) {}
  writer(writer&&) noexcept = default;
  writer& operator=(writer&& other) noexcept {
    abandon();
    behind_ = std::move(other.behind_);
    final_path_ = std::move(other.final_path_);
    to_ = std::move(other.to_);
    return *this;
  }
  ~writer() { abandon(); }

  [[nodiscard]] status append(std::span<const std::byte> bytes) { return behind_->append(bytes); }

  [[nodiscard]] status commit() {
    if (status written = behind_->finish(); !written) return written;
    if (to_.write.calls->rename(behind_->path().c_str(), final_path_.c_str()) != 0)
      return detail::system_error("cannot rename", behind_->path());
    behind_.reset();
    status named = to_.sync == sync_discipline::full ? to_.sync_folder(to_.path) : status{};
    if (!named) ::unlink(final_path_.c_str());  // a name that may not last is none
    return named;
  }

  [[nodiscard]] std::uint64_t queued_bytes() const noexcept { return behind_->queued_bytes(); }
  void abandon() noexcept {
    if (behind_ == nullptr) return;
    ::unlink(behind_->path().c_str());
    behind_.reset();
  }

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

inline status directory::sync_folder(const std::string& folder) const {
  auto opened = detail::file::open(folder, O_RDONLY | O_DIRECTORY, "cannot open the folder");
  if (!opened) return std::move(opened).error();
  while (write.calls->fsync(opened->descriptor()) != 0)
    if (errno != EINTR) return detail::system_error("cannot make durable", folder);
  return {};
}

inline status directory::make_folder() const {
  for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string folder = path.substr(0, end);
    const bool made = ::mkdir(folder.c_str(), 0777) == 0;
    const int why = errno;  // of mkdir, where it failed
    struct ::stat found {};
    if (!made && (why != EEXIST || end == std::string::npos) &&
        (::stat(folder.c_str(), &found) != 0 || !S_ISDIR(found.st_mode)))
      return detail::system_error("cannot make the folder", folder, why == EEXIST ? ENOTDIR : why);
    if (made && sync == sync_discipline::full) {
      const std::size_t slash = folder.find_last_of('/');
      const std::string parent = slash == std::string::npos ? "."
                                 : slash == 0               ? "/"
                                                            : folder.substr(0, slash);
      if (status synced = sync_folder(parent); !synced) return synced;
    }
    if (end == std::string::npos) return {};
  }
}

inline result<directory::writer> directory::create(std::string_view name) const {
  const std::string final_path = file_of(name), on_the_way = final_path + std::string(temporary);
  constexpr int flags = O_WRONLY | O_CREAT | O_EXCL;  // a name has one writer at a time
  auto opened = detail::file::open(on_the_way, flags, "cannot create");
  if (!opened && opened.error().kind == error_kind::not_found) {
    if (status made = make_folder(); !made) return std::move(made).error();
    opened = detail::file::open(on_the_way, flags, "cannot create");
  }
  if (!opened) return std::move(opened).error();
  return writer(*std::move(opened), final_path, *this);
}

inline result<directory::reader> directory::open(std::string_view name) const {
  return detail::file_reader::open(file_of(name));
}

inline result<directory::lease_type> directory::lease(std::string_view name) const {
  auto locked = detail::lease_file(file_of(name));
  if (!locked) return std::move(locked).error();
  return lease_type(*std::move(locked));
}

inline result<bool> directory::remove_unleased(std::string_view name) const {
  return detail::remove_unleased(file_of(name));
}

inline result<std::vector<blob>> directory::list() const {
  std::vector<blob> out;
  const std::unique_ptr<::DIR, int (*)(::DIR*)> folder(::opendir(path.c_str()), &::closedir);
  if (folder == nullptr) {
    if (errno == ENOENT) return out;  // nothing was ever saved
    return detail::system_error("cannot list", path);
  }
  for (errno = 0; const ::dirent* entry = ::readdir(folder.get()); errno = 0) {
    const std::string name = entry->d_name;
    struct ::stat found {};
    if (name.ends_with(temporary) || ::stat(file_of(name).c_str(), &found) != 0 || !S_ISREG(found.st_mode))
      continue;
    out.push_back({name, std::uint64_t(found.st_size)});
  }
  if (errno != 0) return detail::system_error("cannot list", path);
  return out;
}

inline status directory::remove(std::string_view name) const {
  if (::unlink(file_of(name).c_str()) != 0) return detail::system_error("cannot remove", file_of(name));
  return {};
}

inline result<directory::claim_type> directory::claim(std::uint32_t part) const {
  if (status made = make_folder(); !made) return std::move(made).error();
  auto lock = detail::file::open(file_of("part-" + std::to_string(part) + ".lock"), O_RDWR | O_CREAT,
                                 "cannot open the lock");
  if (!lock) return std::move(lock).error();
  while (::flock(lock->descriptor(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) return detail::system_error("cannot lock", lock->path());
    return detail::make_error(
        error_kind::misuse, {"part ", part, " has a writer already"}, {lock->path()},
        {"one checkpointer writes a part: end the other one, or give this one another folder"}, errno);
  }
  return claim_type(*std::move(lock));
}

/// Blobs that a dead writer of this part left half-written. Their names end in "-pPART.segment" or
/// ".manifest"; only the holder of the part's claim calls this.
inline status directory::sweep(std::uint32_t part) const {
  const std::unique_ptr<::DIR, int (*)(::DIR*)> folder(::opendir(path.c_str()), &::closedir);
  if (folder == nullptr)
    return errno == ENOENT ? status{} : status(detail::system_error("cannot list", path));
  std::string number = std::to_string(part);
  if (number.size() < 4) number.insert(0, 4 - number.size(), '0');
  const std::string segment = "-p" + number + ".segment" + std::string(temporary);
  const std::string manifest = ".manifest" + std::string(temporary);
  while (const ::dirent* entry = ::readdir(folder.get())) {
    const std::string name = entry->d_name;
    if (!name.ends_with(segment) && !(part == 0 && name.ends_with(manifest))) continue;
    if (status removed = remove(name); !removed) return removed;
  }
  return {};
}

static_assert(sink<directory>);

}  // namespace checkrow::inline v0
