// Shared by the targets that read chunks. What takes long to compile, saving and restoring a model, is in
// segments.cpp, once for all of them.
#pragma once

#include <checkrow/format/manifest_json.hpp>
#include <checkrow/format/segment.hpp>
#include <checkrow/restore.hpp>
#include <checkrow/sinks/memory.hpp>

#include "fuzz.hpp"

namespace fuzz {

using checkrow::memory;
namespace format = checkrow::format;

/// A full checkpoint and a delta of a model: the same bytes in every run, so that seeds stay good. What saves
/// draw at random, their attempt ids, is replaced.
struct checkpoint {
  memory sink;
  std::string manifest_name;
  format::manifest manifest;

  checkpoint();
  [[nodiscard]] memory copy_of_segments() const;
};

/// The same one at every call.
const checkpoint& saved();

/// Restores the model from the one checkpoint in that sink: checked first, and then again at once and in the
/// other order. True if it was taken. Aborts where what must hold does not.
bool restores(const memory& sink, const checkrow::restore_options& asked);

/// The same from a segment, which is all that its manifest lists; without dense parameters and states.
bool restores(bytes segment, const format::segment_entry& entry);

/// Makes the hashes of a chunk right that has at least a head of `head_bytes`, and its place and attempt.
inline format::footer_entry mend_chunk(std::span<std::byte> chunk, std::size_t head_bytes,
                                       const format::attempt_id& attempt, std::uint64_t position) {
  namespace at = format::chunk_at;
  const auto head = chunk.first(head_bytes);
  const std::uint64_t payload_hash = format::hash(chunk.subspan(head_bytes));
  format::store(head.data() + at::position, position);
  format::store(head.data() + at::attempt, attempt);
  format::store(head.data() + at::payload_hash, payload_hash);
  const std::uint64_t head_hash = format::hash_head(head);
  format::store(head.data() + at::head_hash, head_hash);
  const std::byte* const from = head.data();
  return {format::load<std::uint32_t>(from + at::table),
          format::load<format::chunk_kind>(from + at::kind),
          format::load<std::uint8_t>(from + at::flags),
          {format::load<std::uint16_t>(from + 128), format::load<std::uint8_t>(from + 130)},
          format::load<std::uint64_t>(from + at::first),
          format::load<std::uint64_t>(from + at::last),
          format::load<std::uint64_t>(from + at::rows),
          position,
          chunk.size(),
          head_bytes,
          head_hash,
          payload_hash};
}

/// The chunks of a segment that was just written.
inline std::vector<format::footer_entry> chunks_of(input_bytes segment, const format::attempt_id& attempt) {
  const auto place = *format::read_trailer(segment.last(format::trailer_bytes), segment.size());
  std::vector<format::footer_entry> chunks;
  require(format::read_footer(segment.subspan(place.offset, place.bytes), attempt, place.offset, chunks) ==
              nullptr,
          "a new segment's footer can be read");
  return chunks;
}

}  // namespace fuzz
