#!/usr/bin/env bash
# Fuzzes what reads untrusted bytes: each target first takes the inputs that once failed (cases/TARGET), then
# runs from seeds that it has made itself. Needs clang and its libFuzzer (Debian: clang, libclang-rt-dev).
#   bash tests/fuzz/run.sh [SECONDS A TARGET, default 6] [TARGET...]
. "$(dirname "$0")/../checks/common.sh"

seconds=${1:-6}
shift || true
targets=("$@")
[ ${#targets[@]} -gt 0 ] || targets=(decode round_trip chunk segment manifest)

compile[0]=clang++
command -v clang++ >/dev/null || skip "fuzzing needs clang"
sanitize=(-fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all)
echo 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }' >"$scratch/none.cpp"
"${compile[@]}" "${sanitize[@]}" "$scratch/none.cpp" -o "$scratch/none" 2>/dev/null ||
  skip "fuzzing needs clang's libFuzzer (Debian: libclang-rt-dev)"

folder=$BUILD/fuzz
mkdir -p "$folder"
objects() { $launcher $command_line $sanitize_line -O1 -g1 -c "tests/fuzz/$1.cpp" -o "$folder/$1.o"; }
launcher=$(command -v ccache || true)
export folder launcher sanitize_line="${sanitize[*]}"
printf '%s\n' segments "${targets[@]}" | in_parallel objects || fail "a target does not compile"

for target in "${targets[@]}"; do
  seeds=$folder/seeds/$target corpus=$folder/corpus/$target cases=tests/fuzz/cases/$target
  shared=()
  case $target in chunk | segment | manifest) shared=("$folder/segments.o") ;; esac
  "${compile[@]}" "${sanitize[@]}" "$folder/$target.o" "${shared[@]}" -o "$folder/$target" || fail "$target does not link"
  rm -rf "$seeds"
  mkdir -p "$seeds" "$corpus"
  "$folder/$target" --seeds "$seeds"
  log=$folder/$target.log
  # A crash leaves its input in the folder: mend the fault, and keep the input in cases/TARGET.
  limits=(-timeout=100 -rss_limit_mb=1500 -malloc_limit_mb=300 -max_len=20000)
  if [ -d "$cases" ]; then
    "$folder/$target" "${limits[@]}" "$cases"/* >"$log" 2>&1 || { tail -40 "$log" && fail "$target: a known case"; }
  fi
  if ! "$folder/$target" "${limits[@]}" -max_total_time="$seconds" -print_final_stats=1 \
    -artifact_prefix="$folder/$target-" "$corpus" "$seeds" >"$log" 2>&1; then
    tail -60 "$log"
    fail "$target"
  fi
  runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
  coverage=$(sed -n 's/^#.* cov: \([0-9]*\) .*/\1/p' "$log" | tail -1)
  echo "figure: fuzz $target: $runs inputs in $seconds s, $coverage places reached, no fault"
done
