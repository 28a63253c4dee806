// The same rows give the same bytes from object files of different flags, and they are the bytes of all
// releases. This program is linked with -ffast-math, so that denormals are flushed from its start on (x86).
#include <checkrow/codecs/engine.hpp>

#include "../catch_shim.hpp"
#include "golden.hpp"

TEST_CASE("Bytes do not depend on compiler flags", "[codec]") {
  REQUIRE(codec_flags::fast_math.fast_math);
  REQUIRE_FALSE(codec_flags::o3.fast_math);
#if defined(__x86_64__)
  REQUIRE((__builtin_ia32_stmxcsr() & 0x8040u) == 0x8040u);  // flushing is on here
#endif
  for (const codec_flags::flavour* flavour :
       {&codec_flags::o0, &codec_flags::o3, &codec_flags::fast_math, &codec_flags::no_fma}) {
    for (const checkrow::codec_engine of_cpu : checkrow::codec_engines) {
      if (!checkrow::has_codec_engine(of_cpu)) continue;
      const int engine = static_cast<int>(of_cpu);
      for (int codec = 0; codec < codec_flags::codecs; ++codec) {
        CAPTURE(flavour->name, engine, codec);
        CHECK(codec_flags::hash_of(*flavour, engine, codec) == codec_flags::golden[codec]);
      }
    }
  }
}
