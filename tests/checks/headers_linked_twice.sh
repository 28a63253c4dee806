#!/usr/bin/env bash
# Two units that include every header link into one program: a missing `inline` would not. Again with separate
# compilation, where a third unit has the bodies: one that is not left out elsewhere would not. (One that is missing
# there would where this uses it; the unit tests use them all.)
. "$(dirname "$0")/common.sh"

headers | sed 's/.*/#include <&>/' | cat - tests/compile_time/umbrella.cpp >"$scratch/inline.cpp"
grep -v 'checkrow/source[./]' "$scratch/inline.cpp" >"$scratch/separate.cpp"
for header in $(headers | grep '^checkrow/source/'); do
  grep -qF "<$header>" include/checkrow/source.hpp include/checkrow/source/codecs.hpp include/checkrow/source/core.hpp ||
    fail "$header is not included by source.hpp"
done

bodies=$BUILD/libcheckrow_compiled.a # where the build has them
if [ ! -e "$bodies" ]; then
  bodies=$scratch/bodies.o
  echo '#include <checkrow/source.hpp>' >"$scratch/bodies.cpp"
fi

object() {
  case $1 in *inline.cpp) ;; *) command_line+=" -DCHECKROW_SEPARATE_COMPILATION" ;; esac
  $command_line -O0 -c "$1" -o "${1%.cpp}.o"
}
ls "$scratch"/*.cpp | in_parallel object || fail "the headers do not compile together"

linked() {  # how, bodies...: the unit's object, and the same object with another main, make a program
  objcopy --redefine-sym main=another "$scratch/$1.o" "$scratch/$1_again.o"
  "${compile[@]}" "$scratch/$1.o" "$scratch/$1_again.o" "${@:2}" -o "$scratch/$1" || fail "the headers do not link twice ($1)"
  (cd "$scratch" && "./$1") || fail "the program does not run ($1)"
}
linked inline
linked separate "$bodies"
echo "two units with $(headers | wc -l) headers each link into one program, with inline and with separate bodies"
