#!/usr/bin/env bash
# What including checkrow costs: seconds of one core at -O2. The figures are printed always; a machine that does other
# things takes a third longer or more, so what fails lies well above what was measured.
#     compile_time.sh [bodies]      also the bodies, which a program compiles once where it has them apart
. "$(dirname "$0")/common.sh"
export CCACHE_DISABLE=1

failed=0
measure() {  # what, source, target in seconds, most in seconds, options...
  local spent
  TIMEFORMAT='%U'
  if ! { time "${compile[@]}" -O2 "${@:5}" -c "$2" -o "$scratch/object" 2>"$scratch/log"; } 2>"$scratch/spent"; then
    head -30 "$scratch/log"
    fail "$2 does not compile"
  fi
  spent=$(cat "$scratch/spent")
  echo "figure: compiling $1 at -O2: $spent s (target $3 s)"
  if awk -v spent="$spent" -v most="$4" 'BEGIN { exit spent <= most }'; then
    echo "that is more than $4 s"
    failed=1
  fi
}

measure "the umbrella and one checkpointer" tests/compile_time/umbrella.cpp 8 32
measure "the same, with the library's bodies compiled apart" tests/compile_time/umbrella.cpp 8 16 \
  -DCHECKROW_SEPARATE_COMPILATION
measure "table.hpp alone" tests/compile_time/table.cpp 1.5 1.5
if [ "${1-}" = bodies ]; then
  measure "all codecs' bodies, once a program" tests/compile_time/codecs.cpp 15 30 -DCHECKROW_SEPARATE_COMPILATION
  measure "the other bodies, once a program" tests/compile_time/core.cpp 15 30 -DCHECKROW_SEPARATE_COMPILATION
fi
[ $failed = 0 ] || fail "compiling takes too long"
