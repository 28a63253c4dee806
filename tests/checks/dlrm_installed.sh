#!/usr/bin/env bash
# examples/dlrm is a project by itself, which finds checkrow installed; killed inside a save it resumes, and ends with
# the bytes of a run that never was.
. "$(dirname "$0")/common.sh"

for header in CLI/CLI.hpp eigen3/Eigen/Core zlib.h; do
  echo "#include <$header>" | "$CXX" -std=c++20 -E -x c++ - >"$scratch/log" 2>&1 ||
    skip "examples/dlrm needs CLI11, Eigen and zlib (Debian: libcli11-dev, libeigen3-dev, zlib1g-dev)"
done

"$CMAKE" --install "$BUILD" --prefix "$scratch/prefix" >"$scratch/log" || { cat "$scratch/log"; fail "install"; }
{ "$CMAKE" -G Ninja -S examples/dlrm -B "$scratch/build" -DCMAKE_PREFIX_PATH="$scratch/prefix" \
  -DCMAKE_CXX_COMPILER="$CXX" -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=-O1 &&
  "$CMAKE" --build "$scratch/build"; } >"$scratch/log" 2>&1 || { cat "$scratch/log"; fail "the build"; }

dlrm=("$scratch/build/dlrm" --quick --dim 16 --batch 32 --steps 50 --every 8 --codec exact)
"${dlrm[@]}" >"$scratch/undisturbed" || fail "an undisturbed run"
code=0
"${dlrm[@]}" --checkpoints "$scratch/run" --kill-in-save 3 >"$scratch/log" 2>&1 &
wait $! 2>/dev/null || code=$?
[ $code = 137 ] || { cat "$scratch/log"; fail "--kill-in-save: exit code $code, not that of a SIGKILL"; }
"${dlrm[@]}" --checkpoints "$scratch/run" >"$scratch/resumed" || fail "the run that resumes"
cat "$scratch/resumed"
grep -q '^resumed from checkpoint 2, at step 16' "$scratch/resumed" || fail "it did not resume from the second checkpoint"
for line in parameters 'held out'; do
  [ "$(grep "^$line: " "$scratch/resumed")" = "$(grep "^$line: " "$scratch/undisturbed")" ] ||
    fail "$line: not as in the undisturbed run"
done
