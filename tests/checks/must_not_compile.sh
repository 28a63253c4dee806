#!/usr/bin/env bash
# Misuse is stopped, by a message that helps. Each file of tests/must_not_compile begins with
#     // expect: <extended regular expression>
# It must fail to compile, with a diagnostic that matches, and must compile with -DCHECKROW_FIXED, which shows
# that it failed for its misuse and nothing else.
. "$(dirname "$0")/common.sh"

misuse() {
  local expected out
  expected=$(sed -n '1s|^// expect: ||p' "$1")
  [ -n "$expected" ] || { echo "$1: the first line must be // expect: <regular expression>"; return 1; }
  if out=$($command_line -fsyntax-only "$1" 2>&1); then
    echo "$1 compiles, and must not"
    return 1
  fi
  if ! grep -qE -- "$expected" <<<"$out"; then
    printf '%s\n' "$1: the diagnostic does not match '$expected':" "$(head -30 <<<"$out")"
    return 1
  fi
  if ! out=$($command_line -fsyntax-only -DCHECKROW_FIXED "$1" 2>&1); then
    printf '%s\n' "$1 does not compile with -DCHECKROW_FIXED either:" "$(head -30 <<<"$out")"
    return 1
  fi
}

without_bodies
ls tests/must_not_compile/*.cpp | in_parallel misuse || fail "not every misuse is stopped as it should be"
echo "$(ls tests/must_not_compile/*.cpp | wc -l) kinds of misuse are stopped"
