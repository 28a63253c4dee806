// The golden hashes on a CPU of another kind, and its engines against the scalar one at every width; see
// checks/aarch64.sh. A program that needs nothing but the headers.
#include <checkrow/codecs/engine.hpp>
#include <cstdio>

#include "golden.hpp"

using checkrow::codec_engine;

namespace {

constexpr const codec_flags::flavour* flavours[] = {
    &codec_flags::o0,         &codec_flags::o3,  &codec_flags::fast_math,
    &codec_flags::ofast,      &codec_flags::sve, &codec_flags::clang_o2,
#if defined(CLANG_FAST)
    &codec_flags::clang_fast,
#endif
};

/// Those of greedy searches take long, and are tested by their golden hashes.
bool is_quick(int codec) { return (codec < 8 || codec > 10) && codec != 17; }

int golden_differ(const codec_flags::flavour& flavour, codec_engine engine) {
  int wrong = 0;
  for (int codec = 0; codec < codec_flags::codecs; ++codec) {
    if (codec_flags::hash_of(flavour, static_cast<int>(engine), codec) == codec_flags::golden[codec])
      continue;
    std::printf("other bytes: flags %s, engine %d, codec %d\n", flavour.name, static_cast<int>(engine),
                codec);
    ++wrong;
  }
  return wrong;
}

int widths_differ(const codec_flags::flavour& flavour, codec_engine engine) {
  int wrong = 0;
  for (std::size_t width = 2; width <= 10007; width = width == 300 ? 10007 : width + 1) {
    const std::vector<float> rows = codec_flags::rows_of_all_kinds(width, width > 300 ? 1 : 3);
    for (int codec = 0; codec < codec_flags::codecs; ++codec) {
      if (!is_quick(codec)) continue;
      const auto encode = [&](codec_engine by) {
        return flavour.encode(static_cast<int>(by), codec, rows, rows.size() / width, width);
      };
      const std::uint64_t expected = encode(codec_engine::scalar);
      if (expected != 0 && encode(engine) == expected) continue;
      std::printf("not as the scalar engine: flags %s, engine %d, codec %d, width %zu\n", flavour.name,
                  static_cast<int>(engine), codec, width);
      ++wrong;
    }
  }
  return wrong;
}

/// Linked with -ffast-math, this program starts so.
bool flushes_denormals() {
#if defined(__aarch64__)
  std::uint64_t environment;
  asm volatile("mrs %0, fpcr" : "=r"(environment));
  return (environment >> 24 & 1) != 0;
#else
  return true;
#endif
}

}  // namespace

int main() {
  if (!flushes_denormals()) {
    std::puts("denormals are not flushed here: link with -ffast-math");
    return 1;
  }
  int engines = 0, wrong = 0;
  for (const codec_flags::flavour* flavour : flavours)
    for (const codec_engine engine : checkrow::codec_engines) {
      if (!checkrow::has_codec_engine(engine)) continue;
      ++engines;
      wrong += golden_differ(*flavour, engine);
      if (engine != codec_engine::scalar) wrong += widths_differ(*flavour, engine);
    }
  std::printf("%d engines and flags, %d codecs, %d differ\n", engines, codec_flags::codecs, wrong);
  return wrong == 0 && engines > 0 ? 0 : 1;
}
