// Any bytes as a segment, with right hashes and attempts wherever its footer can be made out: refused, or
// read and decoded within bounds.
#include "segments.hpp"

using namespace fuzz;

// An input: the size of the footer, then the segment without its trailer.

namespace {

/// Makes the chunks right that the footer lists, as far as they lie within the segment.
void mend(std::span<std::byte> segment, std::size_t footer, const format::attempt_id& attempt) {
  std::byte* const from = segment.data() + footer;
  if (segment.size() - footer < format::footer_header_bytes) return;
  format::store(from + 24, attempt);
  format::store(from + 40, std::uint64_t{footer});
  const std::size_t first = format::footer_header_bytes, size = format::footer_entry_bytes;
  for (std::size_t at = first; at + size <= segment.size() - footer; at += size) {
    std::byte* const entry = from + at;
    const auto offset = format::load<std::uint64_t>(entry + 40),
               whole = format::load<std::uint64_t>(entry + 48);
    const auto head = format::load<std::uint64_t>(entry + 56);
    if (offset > footer || whole > footer - offset || head > whole || head < 192) continue;
    const auto mended = mend_chunk(segment.subspan(offset, whole), head, attempt, offset);
    format::store(entry + 64, mended.head_hash);
    format::store(entry + 72, mended.payload_hash);
  }
}

}  // namespace

void fuzz::make_seeds(seed_folder& folder) {
  for (const format::segment_entry& one : saved().manifest.segments) {
    const bytes& whole = *saved().sink.find(one.name);
    const auto end = input_bytes(whole).last(format::trailer_bytes);
    bytes seed;
    append(seed, static_cast<std::uint16_t>(format::load<std::uint64_t>(end.data() + 8)));
    append(seed, input_bytes(whole).first(whole.size() - end.size()));
    folder.add(seed);
  }
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  input in(data, size);
  const std::size_t footer_bytes = in.take<std::uint16_t>();
  bytes segment(in.rest().begin(), in.rest().end());
  if (segment.size() < format::segment_header_bytes || footer_bytes > segment.size()) return 0;
  const format::manifest& manifest = saved().manifest;
  const auto header = format::segment_header(manifest.attempt, 0);
  std::copy(header.begin(), header.end(), segment.begin());
  const std::uint64_t footer = segment.size() - footer_bytes;
  mend(segment, footer, manifest.attempt);
  const std::uint64_t footer_hash = format::hash(input_bytes(segment).subspan(footer));
  for (const std::uint64_t word :
       {footer, std::uint64_t{footer_bytes}, footer_hash, std::uint64_t{format::segment_end_magic}})
    append(segment, word);
  const format::segment_entry entry{saved().manifest.segments[0].name,
                                    0,
                                    manifest.sequence,
                                    manifest.attempt,
                                    segment.size(),
                                    footer_hash,
                                    0,
                                    false};
  static_cast<void>(restores(std::move(segment), entry));
  return 0;
}
