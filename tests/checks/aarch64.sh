#!/usr/bin/env bash
# On 64-bit Arm, as qemu emulates it, the codecs write the same bytes, with -ffast-math and what it does at start too, and everything compiles.
# tests/run.sh --long installs what it takes.
. "$(dirname "$0")/common.sh"

cross=aarch64-linux-gnu-g++
qemu=$(command -v qemu-aarch64-static || command -v qemu-aarch64) && command -v $cross >/dev/null ||
  skip "no Arm compiler and emulator (Debian: g++-aarch64-linux-gnu, qemu-user-static)"

# The dependencies' headers are the same on all machines; the others in /usr/include must not come first.
arm=($cross "${compile[@]:1}" -idirafter /usr/include -Wall -Wextra -Wpedantic -Werror)
(cd "$scratch" && echo '#include <checkrow/checkrow.hpp>' >umbrella.cpp)
"${arm[@]}" -fsyntax-only "$scratch/umbrella.cpp" || fail "the umbrella does not compile for aarch64"

"${arm[@]}" -O3 -DCHECKROW_FLAVOUR=o3 -c tests/codec_flags/encode_some.cpp -o "$scratch/o3.o" &&
  "${arm[@]}" -O3 -ffast-math -DCHECKROW_FLAVOUR=fast_math -c tests/codec_flags/encode_some.cpp -o "$scratch/fast.o" &&
  "${arm[@]}" -O2 -ffast-math -static tests/codec_flags/another_cpu.cpp "$scratch/o3.o" "$scratch/fast.o" -o "$scratch/codecs" ||
  fail "the codecs do not compile for aarch64"
"$qemu" "$scratch/codecs" || fail "other bytes on aarch64"
