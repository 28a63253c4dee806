#!/usr/bin/env bash
# The sources are as .clang-format says. Only version 14 is asked, since others disagree about details.
. "$(dirname "$0")/common.sh"

for tool in clang-format-14 clang-format; do
  if command -v $tool >/dev/null && $tool --version | grep -q 'version 14\.'; then
    export tool
    # (--dry-run also reports replacements that change nothing.)
    formatted() { $tool "$1" | cmp -s "$1" || { echo "$1" && return 1; }; }
    find include tests examples bench \( -name '*.hpp' -o -name '*.inc' -o -name '*.cpp' -o -name '*.cuh' -o -name '*.cu' \) |
      sort | in_parallel formatted || fail "run clang-format -i, version 14, over these files"
    exit 0
  fi
done
skip "no clang-format 14 here"
