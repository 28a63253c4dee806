#!/usr/bin/env bash
# No header is longer than 300 lines: its parts would have names already.
. "$(dirname "$0")/common.sh"

long=$(find include -name '*.hpp' -o -name '*.inc' -o -name '*.cuh' | xargs wc -l | awk '$2 != "total" && $1 > 300')
[ -z "$long" ] || fail "these headers are longer than 300 lines:"$'\n'"$long"
find include -name '*.hpp' -o -name '*.inc' -o -name '*.cuh' | xargs wc -l | awk '$2 != "total"' | sort -rn | head -3
