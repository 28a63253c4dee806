// Any bytes as the one chunk of a segment, with right hashes: refused, or read and decoded within bounds.
#include "segments.hpp"

using namespace fuzz;

// An input: the blocks of 64 bytes of the head, then the chunk.

namespace {

/// A segment of that chunk alone, and what a manifest says of it.
struct one_chunk {
  bytes segment;
  format::segment_entry entry;

  one_chunk(bytes chunk, std::size_t head_bytes) {
    const format::attempt_id attempt{1};
    const auto listed = mend_chunk(chunk, head_bytes, attempt, format::segment_header_bytes);
    append(segment, format::segment_header(attempt, 0));
    append(segment, input_bytes(chunk));
    const auto end = format::write_footer({&listed, 1}, attempt, segment.size());
    append(segment, input_bytes(end.bytes));
    entry = {format::segment_name(1, format::hex(attempt), 0),
             0,
             1,
             attempt,
             segment.size(),
             end.footer_hash,
             listed.rows,
             false};
  }
};

}  // namespace

void fuzz::make_seeds(seed_folder& folder) {
  for (const format::segment_entry& one : saved().manifest.segments) {
    const bytes& content = *saved().sink.find(one.name);
    for (const format::footer_entry& at : chunks_of(content, one.attempt)) {
      const auto chunk = input_bytes(content).subspan(at.offset, at.bytes);
      const one_chunk made({chunk.begin(), chunk.end()}, at.head_bytes);
      require(restores(made.segment, made.entry), "a seed is a good chunk");
      bytes seed;
      append(seed, static_cast<std::uint8_t>(at.head_bytes / format::alignment));
      append(seed, chunk);
      folder.add(seed);
    }
  }
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  input in(data, size);
  const std::size_t head = in.take<std::uint8_t>() * format::alignment;
  if (head < format::chunk_header_bytes + format::alignment || head > in.rest().size()) return 0;
  one_chunk made({in.rest().begin(), in.rest().end()}, head);
  static_cast<void>(restores(std::move(made.segment), made.entry));
  return 0;
}
