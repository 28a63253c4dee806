#!/usr/bin/env bash
# No build system is needed: the examples of one file compile as the README says.
. "$(dirname "$0")/common.sh"

[ -e examples/minimal.cpp ] || fail "examples/minimal.cpp does not exist"

example() {
  echo "$command_line $1"
  $command_line -Wall -Wextra "$1" -o "$scratch/$(basename "$1" .cpp)"
}
ls examples/*.cpp | in_parallel example || fail "not every example compiles"
