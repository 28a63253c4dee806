#!/usr/bin/env bash
# Every header compiles by itself, without a warning. (Bodies, which header-only use includes at a header's end,
# are headers of source/ here.)
. "$(dirname "$0")/common.sh"

alone() {
  local out
  if ! out=$(echo "#include <$1>" | $command_line -Wall -Wextra -Wpedantic -Werror -fsyntax-only -x c++ - 2>&1); then
    printf '%s\n' "$1 does not compile alone:" "$out"
    return 1
  fi
}

without_bodies
headers | in_parallel alone || fail "not every header compiles alone"
echo "$(headers | wc -l) headers compile alone"
