#!/usr/bin/env bash
# A user's own xxhash.h, plain or inlined, before or after ours, does no harm.
. "$(dirname "$0")/common.sh"

# One header includes it, and one JSON: so most cases need just that header, which compiles quickly.
ours=checkrow/format/hash.hpp
for dependency in '<xxhash.h>' '<nlohmann/'; do
  users=$(grep -rlF "#include $dependency" include | wc -l)
  [ "$users" = 1 ] || fail "$users headers include $dependency...; one should"
done

cat >"$scratch/use.inc" <<'CPP'
unsigned long long users_hash(const void* data) { return XXH3_64bits(data, 8) + XXH64(data, 8, 0); }
CPP

together() {
  local out
  if ! out=$($command_line -Wall -Wextra -fsyntax-only "$1" 2>&1); then
    printf '%s\n' "this does not compile:" "$(cat "$1")" "$(head -20 <<<"$out")"
    return 1
  fi
}

case_of() {  # name, lines...
  printf '%s\n' "${@:2}" '#include "use.inc"' >"$scratch/$1.cpp"
}
for define in "" "#define XXH_INLINE_ALL" "#define XXH_STATIC_LINKING_ONLY"; do
  case_of "before${define#* }" "$define" '#include <xxhash.h>' "#include <$ours>"
  case_of "after${define#* }" "#include <$ours>" "$define" '#include <xxhash.h>'
done
case_of umbrella '#include <xxhash.h>' '#include <checkrow/checkrow.hpp>' '#define XXH_INLINE_ALL' \
  '#include <xxhash.h>'
ls "$scratch"/*.cpp | in_parallel together || fail "a user's own xxhash.h and checkrow do not get on"
echo "$(ls "$scratch"/*.cpp | wc -l) ways to include xxhash.h compile"
