// Any bytes as the one chunk of a segment, with right hashes: refused, or read and decoded within bounds.
#include "segments.hpp"

using namespace fuzz;

// An input: the blocks of 64 bytes of the head, then the chunk.

void fuzz::make_seeds(seed_folder& folder) {
  memory sink = saved().sink;
  memory_sink erased(sink);
  for (const format::segment_entry& segment : saved().manifest.segments) {
    const auto opened = checkrow::detail::segment_reader::open(erased, segment);
    const auto content = sink.find(segment.name);
    for (const format::footer_entry& at : opened->chunks()) {
      bytes seed;
      append(seed, static_cast<std::uint8_t>(at.head_bytes / format::alignment));
      append(seed, input_bytes(*content).subspan(at.offset, at.bytes));
      folder.add(seed);
    }
  }
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  input in(data, size);
  const std::size_t head = in.take<std::uint8_t>() * format::alignment;
  if (head < format::chunk_header_bytes + format::alignment || head > in.rest().size()) return 0;
  const format::manifest& manifest = saved().manifest;
  bytes chunk(in.rest().begin(), in.rest().end());
  const format::footer_entry listed = mend_chunk(chunk, head, manifest.attempt, format::segment_header_bytes);

  bytes segment;
  append(segment, format::segment_header(manifest.attempt, 0));
  append(segment, input_bytes(chunk));
  const auto end = format::write_footer({&listed, 1}, manifest.attempt, segment.size());
  append(segment, input_bytes(end.bytes));
  format::segment_entry entry{"segment", 0, 1, manifest.attempt, segment.size(), end.footer_hash, 0, false};
  memory sink;
  sink.put(entry.name, std::move(segment));
  read_segment(sink, manifest, entry);
  return 0;
}
