// The golden hashes on a CPU of another kind, see checks/aarch64.sh; a program that needs nothing but the
// headers.
#include <checkrow/codecs/engine.hpp>
#include <cstdio>

#include "golden.hpp"

int main() {
  int engines = 0, wrong = 0;
  for (const codec_flags::flavour* flavour : {&codec_flags::o3, &codec_flags::fast_math}) {
    for (int engine = 1; engine <= 3; ++engine) {
      if (!checkrow::has_codec_engine(static_cast<checkrow::codec_engine>(engine))) continue;
      ++engines;
      for (int codec = 0; codec < codec_flags::codecs; ++codec) {
        if (codec_flags::hash_of(*flavour, engine, codec) == codec_flags::golden[codec]) continue;
        std::printf("other bytes: flags %s, engine %d, codec %d\n", flavour->name, engine, codec);
        ++wrong;
      }
    }
  }
  std::printf("%d engines and flags, %d codecs, %d differ\n", engines, codec_flags::codecs, wrong);
  return wrong == 0 && engines > 0 ? 0 : 1;
}
