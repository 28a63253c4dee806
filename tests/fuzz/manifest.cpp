// Any text as a manifest with a right checksum: refused, or it is written and read again as it was, and a
// restore of what it says ends in an error or in rows.
#include "segments.hpp"

using namespace fuzz;

namespace {

/// Does a model take what the manifest says, with the segments that are really there?
bool restores_from(std::string_view text) {
  memory sink = saved().copy_of_segments();
  const auto from = std::as_bytes(std::span(text));
  sink.put(saved().manifest_name, {from.begin(), from.end()});
  return restores(sink, {});
}

}  // namespace

void fuzz::make_seeds(seed_folder& folder) {
  const std::string text = format::write_manifest(saved().manifest);
  require(restores_from(text), "the seed is a good manifest");
  folder.add(std::as_bytes(std::span(text)).first(text.size() - format::detail::checksum_bytes));
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string body(reinterpret_cast<const char*>(data), size);
  const std::string text = body + format::detail::checksum_of(body);
  const auto read = format::read_manifest(text, "m");
  if (!read) return 0;
  const std::string written = format::write_manifest(*read);
  const auto again = format::read_manifest(written, "m");
  require(again.ok(), "a manifest that was written can be read");
  require(format::write_manifest(*again) == written, "and says what it said");
  static_cast<void>(restores_from(text));
  return 0;
}
