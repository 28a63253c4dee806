#!/usr/bin/env bash
# On 64-bit Arm, as qemu emulates it: everything compiles; the codecs write the same bytes by the scalar code and by NEON,
# from objects of several flags and of both compilers, linked with -ffast-math and what it does at start; and the
# codecs' unit tests pass. tests/run.sh --long installs what it takes.
. "$(dirname "$0")/common.sh"

cross=aarch64-linux-gnu-g++
qemu=$(command -v qemu-aarch64-static || command -v qemu-aarch64) && command -v $cross >/dev/null ||
  skip "no Arm compiler and emulator (Debian: g++-aarch64-linux-gnu, qemu-user-static)"

# The dependencies' headers are the same on all machines; the others in /usr/include must not come first.
flags=("${compile[@]:1}" -idirafter /usr/include -Wall -Wextra -Wpedantic -Werror)
arm=($cross "${flags[@]}")
with_clang=()
if command -v clang++ >/dev/null; then with_clang=(clang++ --target=aarch64-linux-gnu "${flags[@]}"); fi

(cd "$scratch" && echo '#include <checkrow/checkrow.hpp>' >umbrella.cpp)
"${arm[@]}" -fsyntax-only "$scratch/umbrella.cpp" || fail "the umbrella does not compile for aarch64"
[ ${#with_clang[@]} = 0 ] || "${with_clang[@]}" -fsyntax-only "$scratch/umbrella.cpp" ||
  fail "the umbrella does not compile for aarch64 with clang"

# ------------------------------------------------------------------------------------ bytes, whatever the flags

flavour() { # name compiler... flags...
  local name=$1
  shift
  "$@" -DCHECKROW_FLAVOUR="$name" -c tests/codec_flags/encode_some.cpp -o "$scratch/$name.o" ||
    fail "the codecs do not compile for aarch64: $*"
}
flavour o0 "${arm[@]}" -O0
flavour o3 "${arm[@]}" -O3
flavour fast_math "${arm[@]}" -O3 -ffast-math
flavour ofast "${arm[@]}" -Ofast -mcpu=neoverse-v1
flavour sve "${arm[@]}" -Ofast -march=armv8.2-a+sve
define=()
if [ ${#with_clang[@]} != 0 ]; then
  flavour clang_o2 "${with_clang[@]}" -O2 -ffp-contract=fast
  # Before 16 it is refused: there is no pragma against it.
  if echo 'static_assert(__clang_major__ >= 16);' | clang++ -x c++ -fsyntax-only - 2>/dev/null; then
    flavour clang_fast "${with_clang[@]}" -O3 -ffast-math
    define=(-DCLANG_FAST)
  fi
else
  flavour clang_o2 "${arm[@]}" -O2
fi
"${arm[@]}" -O2 -ffast-math -static "${define[@]}" tests/codec_flags/another_cpu.cpp "$scratch"/*.o -o "$scratch/codecs" ||
  fail "the codecs do not link for aarch64"
"$qemu" -cpu max "$scratch/codecs" || fail "other bytes on aarch64"

# ------------------------------------------------------------------------------------------------- unit tests

# Catch2 3 is a library, and there is none for Arm.
[ -e /usr/include/catch2/catch.hpp ] || skip "only Catch2 2 has its unit tests in a header; the bytes are right"
unit() { ${command_line} -O2 -c "tests/$1.cpp" -o "$scratch/$1.unit"; }
compile=("${arm[@]}" "-DCHECKROW_TESTS_DIR=\"$PWD/tests\"")
units=(catch_main test_codecs test_small_floats test_metadata)
printf '%s\n' "${units[@]}" | in_parallel unit || fail "the unit tests do not compile for aarch64"
"${arm[@]}" -static "$scratch"/*.unit -o "$scratch/tests" || fail "the unit tests do not link for aarch64"
"$qemu" -cpu max "$scratch/tests" || fail "unit tests fail on aarch64"
