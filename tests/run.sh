#!/usr/bin/env bash
# Installs what is missing, builds the tests and runs them all. The last line says how they went, and the exit
# code goes by it.
set -euo pipefail
cd "$(dirname "$0")/.."
. tests/install.sh

usage() {
  cat <<'TEXT'
usage: bash tests/run.sh [options]
  --compiler gcc|clang         default gcc
  --sanitize address|thread    the unit tests under address + undefined, or thread sanitizer
  --short                      only what is worth repeating with another compiler or sanitizer
  --long                       the long form: 200 kills, ten million rows a codec, ten minutes of fuzzing a
                               target, the codecs on an emulated Arm
  --jobs N                     default: the cores, and one for each 1.5 GB of free memory
TEXT
}

compiler=gcc sanitizer="" short=0 long=OFF jobs=""
while [ $# -gt 0 ]; do
  case $1 in
    --compiler) compiler=${2-} && shift ;;
    --sanitize) sanitizer=${2-} && shift ;;
    --jobs) jobs=${2-} && shift ;;
    --short) short=1 ;;
    --long) long=ON ;;
    -h | --help) usage && exit 0 ;;
    *) usage >&2 && exit 2 ;;
  esac
  shift || { usage >&2 && exit 2; }
done
case $compiler in gcc) cxx=g++ ;; clang) cxx=clang++ ;; *) usage >&2 && exit 2 ;; esac
case $sanitizer in "") preset=dev ;; address) preset=asan ;; thread) preset=tsan ;; *) usage >&2 && exit 2 ;; esac
[ -n "$jobs" ] || jobs=$(jobs_that_fit)
build=build/$preset
[ $compiler = gcc ] || build=build/$preset-$compiler
compiled=ON # but clang's unit tests are header-only throughout
[ $compiler = gcc ] || compiled=OFF

# The closing line; exits by it.
finish() {  # passed failed skipped
  printf '\n%d passed, %d failed, %d skipped\n' "$1" "$2" "$3"
  [ "$2" = 0 ] && [ "$1" -gt 0 ]
  exit
}

# ----------------------------------------------------------------------------------------- what is missing

has_clang_runtime() { echo 'int main() {}' | clang++ -fsanitize="$sanitizer" -x c++ - -o /dev/null; }
has_libfuzzer() {
  echo 'extern "C" int LLVMFuzzerTestOneInput(const char*, long) { return 0; }' |
    clang++ -fsanitize=fuzzer -x c++ - -o /dev/null
}
has_catch() { has_header catch2/catch_all.hpp || has_header catch2/catch.hpp; }

look() {
  need_library
  need catch2 has_catch
  need libeigen3-dev has_header eigen3/Eigen/Core # for the tests of the DLRM example
  need zlib1g-dev has_header zlib.h
  need liburing-dev has_header liburing.h
  need libcli11-dev has_header CLI/CLI.hpp
  need python3 command -v python3
  bash tests/find_python.sh >/dev/null 2>&1 || missing+=(python3-numpy python3-xxhash)
  [ $compiler = gcc ] && [ $long = OFF ] || need clang command -v clang++
  [ $long = OFF ] || need libclang-rt-dev has_libfuzzer
  [ $long = OFF ] || need g++-aarch64-linux-gnu command -v aarch64-linux-gnu-g++
  [ $long = OFF ] || need qemu-user-static command -v qemu-aarch64-static
  [ $compiler = gcc ] || [ -z "$sanitizer" ] || need libclang-rt-dev has_clang_runtime
}
install_missing look || finish 0 1 0

# --------------------------------------------------------------------------------------------------- build

say "Building with $compiler, $jobs at a time, in $build"
started=$SECONDS
log=$(mktemp)
# (The examples and benchmarks need more packages; their own run.sh build them.)
if ! cmake --preset $preset -B "$build" -DCMAKE_CXX_COMPILER=$cxx -DCHECKROW_LONG_TESTS=$long \
  -DCHECKROW_TESTS_COMPILED=$compiled \
  -DCHECKROW_BUILD_EXAMPLES=OFF -DCHECKROW_BUILD_BENCH=OFF >"$log" 2>&1; then
  cat "$log"
  finish 0 1 0
fi
if ! cmake --build "$build" --parallel "$jobs" -- --quiet >"$log" 2>&1; then
  head -150 "$log"
  finish 0 1 0
fi
rm -f "$log"
echo "built in $((SECONDS - started)) s"

# ----------------------------------------------------------------------------------------------------- run

say "Running the tests"
runner=(ctest --test-dir "$build" --parallel "$jobs" --output-on-failure --no-label-summary --no-tests=error)
[ $short = 0 ] || runner+=(--label-regex '^short$')
[ -z "$sanitizer" ] || runner+=(--label-regex '^short$')
# gcc's thread sanitizer cannot place its shadow where the kernel scatters mappings widely.
if [ "$sanitizer" = thread ] && setarch -R true 2>/dev/null; then
  runner=(setarch -R "${runner[@]}")
fi
log=$(mktemp)
code=0
"${runner[@]}" 2>&1 | tee "$log" || code=$?

details=$build/Testing/Temporary/LastTest.log
if grep -qE '^(figure|skipped): ' "$details"; then
  say "Figures, and why tests were skipped"
  grep -E '^(figure|skipped): ' "$details"
fi

# ctest's total counts skipped tests as passed; here they are not.
read -r failed total < <(sed -nE 's/^.*tests passed, ([0-9]+) tests? failed out of ([0-9]+)$/\1 \2/p' "$log") ||
  read -r failed total <<<"1 1"
skipped=$(grep -c '\*\*\*Skipped' "$log" || true)
rm -f "$log"
[ $code = 0 ] || [ "$failed" -gt 0 ] || failed=1 total=$((total + 1))
finish $((total - failed - skipped)) "$failed" "$skipped"
