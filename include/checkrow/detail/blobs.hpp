// The blobs of a sink as checkpoints: finding them in order, and reading their manifests.
#pragma once

#include <checkrow/detail/erased.hpp>
#include <checkrow/format/manifest_json.hpp>
#include <list>
#include <map>

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

}  // namespace checkrow::inline v0::detail
