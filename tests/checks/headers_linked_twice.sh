#!/usr/bin/env bash
# Two translation units that include every header link into one program: a missing `inline` would not.
. "$(dirname "$0")/common.sh"

headers | sed 's/.*/#include <&>/' >"$scratch/all.hpp"
for unit in a b; do
  { cat "$scratch/all.hpp"; [ $unit = a ] && echo 'int main() {}'; true; } >"$scratch/$unit.cpp"
done

object() { $command_line -O0 -c "$1" -o "$1.o"; }
printf '%s\n' "$scratch/a.cpp" "$scratch/b.cpp" | in_parallel object || fail "the headers do not compile together"
"${compile[@]}" "$scratch"/*.o -o "$scratch/linked" || fail "the headers do not link twice"
"$scratch/linked"
echo "two units with $(headers | wc -l) headers each link into one program"
