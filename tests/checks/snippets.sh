#!/usr/bin/env bash
# Every ```cpp block of the guide and the README compiles.
. "$(dirname "$0")/common.sh"

[ -e docs/guide.md ] || skip "docs/guide.md does not exist yet"
for document in docs/guide.md README.md; do
  python3 tests/snippets.py "$document" "$scratch" || fail "$document could not be taken apart"
done
[ "$(ls "$scratch" | grep -c guide)" -gt 0 ] || fail "docs/guide.md has no cpp block"

snippet() {
  if ! $command_line -Itests -Wall -Wno-unused -fsyntax-only "$1"; then
    echo "a snippet in ${1##*/} does not compile; the lines named above are the document's"
    return 1
  fi
}
without_bodies
ls "$scratch"/*.cpp | in_parallel snippet || fail "not every snippet compiles"
