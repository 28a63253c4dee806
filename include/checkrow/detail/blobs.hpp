// The blobs of a sink as checkpoints: reading manifests, finding them in order, collecting what none needs.
#pragma once

#include <checkrow/detail/erased.hpp>
#include <checkrow/format/manifest_json.hpp>
#include <checkrow/options.hpp>
#include <list>
#include <map>
#include <set>

namespace checkrow::inline v0::detail {

struct named_blob {
  blob stored;
  format::blob_name name;
};

using blob_list = std::list<named_blob>;  // sorted by relinking: less code than moving strings about

/// The blobs of this format, manifests of the greatest sequence first; other files are not listed.
[[nodiscard]] inline result<blob_list> list_blobs(any_sink& sink) {
  auto listed = sink.list();
  if (!listed) return std::move(listed).error();
  blob_list out;
  for (blob& one : *listed) {
    named_blob named{std::move(one), {}};
    if (format::parse_blob_name(named.stored.name, named.name)) out.push_back(std::move(named));
  }
  out.sort([](const named_blob& a, const named_blob& b) {
    if (a.name.is_manifest != b.name.is_manifest) return a.name.is_manifest;
    return std::tie(a.name.sequence, a.stored.name) > std::tie(b.name.sequence, b.stored.name);
  });
  return out;
}

/// A manifest is a few hundred bytes a segment; anything beyond this is none.
inline constexpr std::uint64_t manifest_bytes_limit = std::uint64_t{1} << 30;

[[nodiscard]] inline result<format::manifest> load_manifest(any_sink& sink, const std::string& name) {
  auto reader = sink.open(name);
  if (!reader) return std::move(reader).error();
  if ((*reader)->bytes() > manifest_bytes_limit)
    return make_error(error_kind::corrupt, {"the manifest is too large to be one"}, {name},
                      {"restore falls back to the checkpoint before it"});
  std::string text((*reader)->bytes(), '\0');
  if (status read = (*reader)->read(0, std::as_writable_bytes(std::span(text))); !read)
    return std::move(read).error();
  auto manifest = format::read_manifest(text, name);
  format::blob_name named;
  if (manifest && (!format::parse_blob_name(name, named) || named.sequence != manifest->sequence ||
                   named.attempt != format::hex(manifest->attempt)))
    return make_error(error_kind::corrupt, {"the manifest belongs to another checkpoint"}, {name},
                      {"restore falls back to the checkpoint before it"});
  return manifest;
}

/// Are all segments that the manifest lists there, with the sizes it says?
[[nodiscard]] inline status check_segments_listed(const format::manifest& manifest, const blob_list& blobs) {
  std::map<std::string_view, std::uint64_t> sizes;
  for (const named_blob& one : blobs) sizes.emplace(one.stored.name, one.stored.bytes);
  for (const format::segment_entry& segment : manifest.segments) {
    const auto found = sizes.find(segment.name);
    if (found == sizes.end())
      return make_error(error_kind::not_found, {"a segment of the checkpoint is missing"}, {segment.name},
                        {"restore falls back to the checkpoint before it"});
    if (found->second != segment.bytes)
      return make_error(
          error_kind::corrupt,
          {"a segment of the checkpoint has ", found->second, " bytes instead of ", segment.bytes},
          {segment.name}, {"restore falls back to the checkpoint before it"});
  }
  return {};
}

struct collected {
  std::uint64_t blobs = 0;
  std::uint64_t bytes = 0;
};

/// Does the n-th readable manifest, newest first, stay? `now`: Unix seconds.
[[nodiscard]] inline bool is_kept(const retention& keep, const format::manifest& manifest, std::uint64_t n,
                                  std::uint64_t now) noexcept {
  return n < std::max<std::uint64_t>(keep.last, 1) ||
         (keep.every != 0 && manifest.sequence % keep.every == 0) ||
         (keep.newer_than != 0 && (manifest.created >= now || now - manifest.created < keep.newer_than));
}

/// Removes the checkpoints that `keep` does not name and nobody reads, and the segments of `part` that no
/// manifest lists any more: also those of dead runs, so only the holder of the part's claim may call this. A
/// damaged manifest and its own segments are left alone: somebody may mend them. One that this version cannot
/// read could list anything, so then nothing is collected.
[[nodiscard]] inline result<collected> collect_garbage(any_sink& sink, const retention& keep,
                                                       std::uint32_t part, std::uint64_t now) {
  auto blobs = list_blobs(sink);
  if (!blobs) return std::move(blobs).error();
  struct candidate {
    const named_blob* named;
    format::manifest manifest;
  };
  std::list<candidate> old;
  std::set<std::string> needed;   // segments, by name
  std::set<std::string> damaged;  // attempts
  const auto need = [&](const format::manifest& manifest) {
    for (const format::segment_entry& segment : manifest.segments) needed.insert(segment.name);
  };
  std::uint64_t readable = 0;
  for (const named_blob& one : *blobs) {
    if (!one.name.is_manifest) break;
    auto manifest = load_manifest(sink, one.stored.name);
    if (!manifest && manifest.error().kind == error_kind::corrupt)
      damaged.insert(one.name.attempt);
    else if (!manifest)
      return std::move(manifest).error();
    else if (is_kept(keep, *manifest, readable++, now))
      need(*manifest);
    else
      old.push_back({&one, *std::move(manifest)});
  }
  collected out;
  const auto gone = [&](const named_blob& one) { ++out.blobs, out.bytes += one.stored.bytes; };
  for (const candidate& one : old) {  // manifests first: what a reader has leased is whole
    auto removed = sink.remove_unleased(one.named->stored.name);
    if (!removed) return std::move(removed).error();
    *removed ? gone(*one.named) : need(one.manifest);
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

}  // namespace checkrow::inline v0::detail
