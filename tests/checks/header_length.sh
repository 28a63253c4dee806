#!/usr/bin/env bash
# No header is longer than 300 lines: its parts would have names already.
. "$(dirname "$0")/common.sh"

long=$(find include -name '*.hpp' -o -name '*.inc' -o -name '*.cuh' | xargs wc -l | awk '$2 != "total" && $1 > 300')
[ -z "$long" ] || fail "these headers are longer than 300 lines:"$'\n'"$long"
# (sed, since head would end before sort does, which pipefail takes for a failure.)
find include -name '*.hpp' -o -name '*.inc' -o -name '*.cuh' | xargs wc -l | awk '$2 != "total"' | sort -rn | sed -n 1,3p
