#!/usr/bin/env bash
# What including checkrow costs: seconds of one core at -O2. Since a machine may be busy or slow, only three
# times the limit is a failure; the figures are printed always.
. "$(dirname "$0")/common.sh"

failed=0
measure() {  # what, source, limit in seconds
  local spent
  TIMEFORMAT='%U %S'
  if ! spent=$( { time "${compile[@]}" -O2 -c "$2" -o "$scratch/object" 2>"$scratch/log"; } 2>&1); then
    head -30 "$scratch/log"
    fail "$2 does not compile"
  fi
  spent=$(awk '{ printf "%.1f", $1 + $2 }' <<<"$spent")
  echo "figure: compiling $1 at -O2: $spent s (limit $3 s)"
  awk -v spent="$spent" -v limit="$3" 'BEGIN { exit spent > 3 * limit }' || failed=1
}

measure "the umbrella and one checkpointer" tests/compile_time/umbrella.cpp 8
measure "table.hpp alone" tests/compile_time/table.cpp 1.5
[ $failed = 0 ] || fail "more than three times the limit"
