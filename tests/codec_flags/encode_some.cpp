// Compiled once per flavour, with CHECKROW_FLAVOUR = its name and other flags each time. The library's inline
// namespace is renamed, else the linker would keep one flavour of every inline function and drop the others.
#define CHECKROW_JOIN(a, b) a##b
#define CHECKROW_JOINED(a, b) CHECKROW_JOIN(a, b)
#define v0 CHECKROW_JOINED(flavour_, CHECKROW_FLAVOUR)
#define CHECKROW_TEXT(a) #a
#define CHECKROW_TEXT_OF(a) CHECKROW_TEXT(a)

#include "encode_some.hpp"

#include <checkrow/codecs/adaptive.hpp>
#include <checkrow/codecs/engine.hpp>
#include <checkrow/codecs/uniform.hpp>
#include <checkrow/detail/small_floats.hpp>
#include <cstring>
#include <memory>
#include <vector>

namespace codec_flags {
namespace {

using namespace checkrow;

std::uint64_t add_hash(std::uint64_t hash, const std::byte* bytes, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i)
    hash = (hash ^ std::to_integer<std::uint64_t>(bytes[i])) * 0x100000001b3;
  return hash;
}

/// Past the caches, and from the last row to the first: the same rows?
template <class Codec>
bool decodes_elsewhere(std::span<const std::byte> section, const column_shape& shape,
                       std::span<const std::byte> rows) {
  const std::size_t row_bytes = shape.row_bytes(), count = rows.size() / row_bytes;
  std::vector<std::byte> room(rows.size() + 64);
  void* at = room.data();
  std::size_t size = room.size();
  auto* const to = static_cast<std::byte*>(std::align(64, rows.size(), at, size));
  if (!Codec{}.decode(shape, section, count, {to, row_bytes, nullptr, true})) return false;
  if (std::memcmp(to, rows.data(), rows.size()) != 0) return false;
  std::vector<std::uint64_t> index(count);
  for (std::size_t i = 0; i < count; ++i) index[i] = count - 1 - i;
  if (!Codec{}.decode(shape, section, count, {to, row_bytes, index.data(), true})) return false;
  for (std::size_t i = 0; i < count; ++i)
    if (std::memcmp(to + row_bytes * index[i], rows.data() + row_bytes * i, row_bytes) != 0) return false;
  return true;
}

template <class Codec>
std::uint64_t encode_with(std::span<const float> rows, std::size_t count, std::size_t width) {
  const Codec codec;
  const column_shape shape{element_type::float32, 4, static_cast<std::uint32_t>(width)};
  std::vector<std::byte> out(codec.bound(shape, count)), back(4 * rows.size());
  const row_view from{reinterpret_cast<const std::byte*>(rows.data()), 4 * width};
  out.resize(codec.encode(shape, from, count, out.data()));
  if (!codec.decode(shape, out, count, {back.data(), 4 * width})) return 0;
  if (!decodes_elsewhere<Codec>(out, shape, back)) return 0;
  return add_hash(add_hash(0xcbf29ce484222325, out.data(), out.size()), back.data(), back.size());
}

/// The same of the rows as half, then as bfloat16.
template <class Codec>
std::uint64_t encode_small_with(std::span<const float> rows, std::size_t count, std::size_t width) {
  const Codec codec;
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const element_type element : {element_type::float16, element_type::bfloat16}) {
    const column_shape shape{element, 2, static_cast<std::uint32_t>(width)};
    std::vector<std::uint16_t> narrow(rows.size()), back(rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i)
      narrow[i] =
          element == element_type::float16 ? detail::narrow_half(rows[i]) : detail::narrow_bfloat16(rows[i]);
    std::vector<std::byte> out(codec.bound(shape, count));
    const row_view from{reinterpret_cast<const std::byte*>(narrow.data()), 2 * width};
    out.resize(codec.encode(shape, from, count, out.data()));
    if (!codec.decode(shape, out, count, {reinterpret_cast<std::byte*>(back.data()), 2 * width})) return 0;
    if (!decodes_elsewhere<Codec>(out, shape, std::as_bytes(std::span(back)))) return 0;
    hash = add_hash(hash, out.data(), out.size());
    hash = add_hash(hash, reinterpret_cast<const std::byte*>(back.data()), 2 * back.size());
  }
  return hash;
}

std::uint64_t encode(int engine, int codec, std::span<const float> rows, std::size_t count,
                     std::size_t width) {
  using encoder = std::uint64_t (*)(std::span<const float>, std::size_t, std::size_t);
  static constexpr encoder encoders[codecs] = {
      encode_with<uniform<2>>,
      encode_with<uniform<3>>,
      encode_with<uniform<4>>,
      encode_with<uniform<8>>,
      encode_with<uniform<2, symmetric>>,
      encode_with<uniform<3, symmetric>>,
      encode_with<uniform<4, symmetric>>,
      encode_with<uniform<8, symmetric>>,
      encode_with<adaptive<2, greedy>>,
      encode_with<adaptive<3, greedy>>,
      encode_with<adaptive<4, greedy>>,
      encode_with<adaptive<2, refit>>,
      encode_with<adaptive<3, refit>>,
      encode_with<adaptive<4, refit>>,
      encode_with<adaptive<8, refit>>,
      encode_small_with<uniform<8>>,
      encode_small_with<uniform<3, symmetric>>,
      encode_small_with<adaptive<4, greedy>>,
      encode_small_with<adaptive<2, refit>>,
      encode_small_with<adaptive<8, refit>>,
  };
  if (!use_codec_engine(static_cast<codec_engine>(engine))) return 0;
  return encoders[codec](rows, count, width);
}

}  // namespace

#if defined(__FAST_MATH__)
const flavour CHECKROW_FLAVOUR = {CHECKROW_TEXT_OF(CHECKROW_FLAVOUR), true, encode};
#else
const flavour CHECKROW_FLAVOUR = {CHECKROW_TEXT_OF(CHECKROW_FLAVOUR), false, encode};
#endif

}  // namespace codec_flags
