// Removes the checkpoints that retention does not keep, and the segments that none lists.
#pragma once

#include <checkrow/detail/blobs.hpp>
#include <checkrow/options.hpp>
#include <set>

namespace checkrow::inline v0::detail {

struct collected {
  std::uint64_t blobs = 0;
  std::uint64_t bytes = 0;
};

/// What collecting has to know of a manifest, which never changes once it is there.
struct kept_manifest {
  std::uint64_t sequence = 0;
  std::uint64_t created = 0;          ///< Unix seconds
  std::vector<std::string> segments;  ///< names
};

/// Does the n-th readable manifest, newest first, stay? `now`: Unix seconds.
[[nodiscard]] inline bool is_kept(const retention& keep, const kept_manifest& manifest, std::uint64_t n,
                                  std::uint64_t now) noexcept {
  return n < std::max<std::uint64_t>(keep.last, 1) ||
         (keep.every != 0 && manifest.sequence % keep.every == 0) ||
         (keep.newer_than != 0 && (manifest.created >= now || now - manifest.created < keep.newer_than));
}

/// One for each writer, asked after every commit.
class garbage_collector {
 public:
  /// Removes the checkpoints that `keep` does not name and nobody reads, and the segments of `part` that no
  /// manifest lists any more: also those of dead runs, so only the holder of the part's claim may call this.
  /// A damaged manifest and its own segments are left alone: somebody may mend them. One that this version
  /// cannot read could list anything, so then nothing is collected.
  [[nodiscard]] result<collected> collect(any_sink& sink, const retention& keep, std::uint32_t part,
                                          std::uint64_t now) {
    auto blobs = list_blobs(sink);
    if (!blobs) return std::move(blobs).error();
    std::set<std::string_view> needed;   // segments, by name
    std::set<std::string_view> damaged;  // attempts
    std::list<const named_blob*> old;
    const auto need = [&](const named_blob& manifest) {
      for (const std::string& segment : known_[manifest.stored.name].segments) needed.insert(segment);
    };
    forget_all_but(*blobs);
    std::uint64_t readable = 0;
    for (const named_blob& one : *blobs) {
      if (!one.name.is_manifest) break;
      const status read = look(sink, one.stored.name, readable < std::max<std::uint64_t>(keep.last, 1));
      if (!read && read.error().kind != error_kind::corrupt) return read.error();
      if (!read)
        damaged.insert(one.name.attempt);
      else if (is_kept(keep, known_[one.stored.name], readable++, now))
        need(one);
      else
        old.push_back(&one);
    }
    collected out;
    const auto gone = [&](const named_blob& one) { ++out.blobs, out.bytes += one.stored.bytes; };
    for (const named_blob* one : old) {  // manifests first: what a reader has leased is whole
      auto removed = sink.remove_unleased(one->stored.name);
      if (!removed) return std::move(removed).error();
      *removed ? gone(*one) : need(*one);
    }
    for (const named_blob& one : *blobs) {
      if (one.name.is_manifest || one.name.part != part || needed.contains(one.stored.name) ||
          damaged.contains(one.name.attempt))
        continue;
      status removed = sink.remove(one.stored.name);
      if (!removed && removed.error().kind != error_kind::not_found) return std::move(removed).error();
      gone(one);
    }
    return out;
  }

 private:
  /// Reads a manifest, unless that has been done and it need not be done again: the newest ones are, since a
  /// damaged one must not count as one of the last n.
  [[nodiscard]] status look(any_sink& sink, const std::string& name, bool again) {
    if (!again && known_.contains(name)) return {};
    auto manifest = load_manifest(sink, name);
    if (!manifest) return std::move(manifest).error();
    kept_manifest& known = known_[name];
    known = {manifest->sequence, manifest->created, {}};
    for (format::segment_entry& segment : manifest->segments)
      known.segments.push_back(std::move(segment.name));
    return {};
  }

  void forget_all_but(const blob_list& blobs) {
    std::map<std::string, kept_manifest> still;
    for (const named_blob& one : blobs)
      if (auto node = known_.extract(one.stored.name)) still.insert(std::move(node));
    known_ = std::move(still);
  }

  std::map<std::string, kept_manifest> known_;  ///< by name
};

}  // namespace checkrow::inline v0::detail
