// Bodies of sinks/directory.hpp.
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <checkrow/detail/file_calls.hpp>
#include <checkrow/detail/file_lease.hpp>
#include <checkrow/detail/write_behind.hpp>
#include <checkrow/sinks/directory.hpp>

namespace checkrow::inline v0 {

// --------------------------------------------------------------------------------------------------- writer

CHECKROW_INLINE directory::writer::writer(detail::file file, std::string final_path, const directory& to)
    : behind_(std::make_unique<detail::write_behind>(std::move(file), to.shared, to.write,
                                                     to.sync == sync_discipline::full)),
      final_path_(std::move(final_path)),
      to_(to) {}

CHECKROW_INLINE directory::writer::writer(writer&&) noexcept = default;

CHECKROW_INLINE directory::writer& directory::writer::operator=(writer&& other) noexcept {
  abandon();
  behind_ = std::move(other.behind_);
  final_path_ = std::move(other.final_path_);
  to_ = std::move(other.to_);
  return *this;
}

CHECKROW_INLINE directory::writer::~writer() { abandon(); }

CHECKROW_INLINE status directory::writer::append(std::span<const std::byte> bytes) {
  return behind_->append(bytes);
}

CHECKROW_INLINE status directory::writer::commit() {
  if (status written = behind_->finish(); !written) return written;
  if (to_.write.calls->rename(behind_->path().c_str(), final_path_.c_str()) != 0)
    return detail::system_error("cannot rename", behind_->path());
  behind_.reset();
  status named = to_.sync == sync_discipline::full ? to_.sync_folder(to_.path) : status{};
  if (!named) ::unlink(final_path_.c_str());  // a name that may not last is none
  return named;
}

CHECKROW_INLINE std::uint64_t directory::writer::queued_bytes() const noexcept {
  return behind_->queued_bytes();
}

CHECKROW_INLINE void directory::writer::abandon() noexcept {
  if (behind_ == nullptr) return;
  ::unlink(behind_->path().c_str());
  behind_.reset();
}

// ---------------------------------------------------------------------------------------------------- store

CHECKROW_INLINE std::shared_ptr<detail::write_shared> directory::new_shared() {
  return std::make_shared<detail::write_shared>();
}

CHECKROW_INLINE std::vector<error> directory::notes() const { return shared->take_notes(); }

CHECKROW_INLINE status directory::sync_folder(const std::string& folder) const {
  auto opened = detail::file::open(folder, O_RDONLY | O_DIRECTORY, "cannot open the folder");
  if (!opened) return std::move(opened).error();
  while (write.calls->fsync(opened->descriptor()) != 0)
    if (errno != EINTR) return detail::system_error("cannot make durable", folder);
  return {};
}

CHECKROW_INLINE status directory::make_folder() const {
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

CHECKROW_INLINE result<directory::writer> directory::create(std::string_view name) const {
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

CHECKROW_INLINE result<directory::reader> directory::open(std::string_view name) const {
  return detail::file_reader::open(file_of(name));
}

CHECKROW_INLINE result<directory::lease_type> directory::lease(std::string_view name) const {
  auto locked = detail::lease_file(file_of(name));
  if (!locked) return std::move(locked).error();
  return lease_type(*std::move(locked));
}

CHECKROW_INLINE result<bool> directory::remove_unleased(std::string_view name) const {
  return detail::remove_unleased(file_of(name));
}

CHECKROW_INLINE result<std::vector<blob>> directory::list() const {
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

CHECKROW_INLINE status directory::remove(std::string_view name) const {
  if (::unlink(file_of(name).c_str()) != 0) return detail::system_error("cannot remove", file_of(name));
  return {};
}

CHECKROW_INLINE result<directory::claim_type> directory::claim(std::uint32_t part) const {
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
CHECKROW_INLINE status directory::sweep(std::uint32_t part) const {
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

}  // namespace checkrow::inline v0
