#!/usr/bin/env bash
# The regions of detail/canonical.hpp: each ends in its header, and what is always inlined is called from within one,
# since elsewhere it would be compiled by its caller's flags. (gcc 14 with -ffast-math then wrote other bytes.)
. "$(dirname "$0")/common.sh"

# Prints "header:line: text" of each line `inside` (1) or outside (0) the regions, without comments.
lines() {  # inside, headers...
  awk -v wanted="$1" '
    FNR == 1 { if (inside) print last ": a region does not end"; inside = 0 }
    { last = FILENAME }
    /^ *CHECKROW_CANONICAL_BEGIN/ { if (inside) print FILENAME ":" FNR ": a region begins in another"; inside = 1 }
    /^ *CHECKROW_CANONICAL_END/ { if (!inside) print FILENAME ":" FNR ": no region ends here"; inside = 0 }
    inside == wanted { sub("//.*", ""); print FILENAME ":" FNR ": " $0 }
    END { if (inside) print last ": a region does not end" }' "${@:2}"
}

mapfile -t headers < <(grep -rlE 'float_row|small_type' include/checkrow --include='*.hpp' | sort)
[ ${#headers[@]} -gt 10 ] || fail "the headers that compute on rows were not found"

lines 1 "${headers[@]}" >"$scratch/inside"
names=$(sed -nE 's/.*gnu::always_inline.*[ *&]([a-z_0-9]+)\(.*/\1/p' "$scratch/inside" | sort -u | paste -sd '|')
[[ $names == *fused* && $names == *widen* ]] || fail "the functions that are always inlined were not found"

{ lines 0 "${headers[@]}" | grep -E "(^|[^a-z_0-9])($names)\(" || true; grep -E 'a region|no region' "$scratch/inside" || true; } >"$scratch/wrong"
[ ! -s "$scratch/wrong" ] || { cat "$scratch/wrong"; fail "arithmetic outside of its regions"; }
echo "${#headers[@]} headers; ${names//|/, } are called in canonical regions only"
