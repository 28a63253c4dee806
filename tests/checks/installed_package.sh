#!/usr/bin/env bash
# A separate project uses checkrow installed (find_package; compiled apart, in a plugin) and in its tree
# (add_subdirectory; header-only), each with more warnings than checkrow promises to be free of.
. "$(dirname "$0")/common.sh"

"$CMAKE" --install "$BUILD" --prefix "$scratch/prefix" >"$scratch/log" || { cat "$scratch/log"; fail "install"; }

consume() {  # name, program, options...
  local name=$1 program=$2
  shift 2
  "$CMAKE" -G Ninja -S tests/consumer -B "$scratch/$name" -DCMAKE_CXX_COMPILER="$CXX" "$@" >"$scratch/log" 2>&1 &&
    "$CMAKE" --build "$scratch/$name" --target "$program" >>"$scratch/log" 2>&1 || { cat "$scratch/log"; fail "$name"; }
  (cd "$scratch" && "$scratch/$name/$program") || fail "the $program ($name) does not run"
}

consume find_package consumer_compiled -DCMAKE_PREFIX_PATH="$scratch/prefix"
consume add_subdirectory consumer -DCHECKROW_SOURCE="$PWD"

mkdir "$scratch/c" # a project that has no C++ yet may look for it
printf '%s\n' 'cmake_minimum_required(VERSION 3.25)' 'project(c LANGUAGES C)' 'find_package(checkrow REQUIRED)' >"$scratch/c/CMakeLists.txt"
"$CMAKE" -G Ninja -S "$scratch/c" -B "$scratch/c/build" -DCMAKE_PREFIX_PATH="$scratch/prefix" >"$scratch/log" 2>&1 ||
  { cat "$scratch/log"; fail "find_package without C++"; }
! find "$scratch/prefix" -type f | grep -vE 'checkrow/.*\.(hpp|inc)$|checkrow[A-Za-z]*\.cmake$|/LICENSE$' ||
  fail "more was installed than headers, package config and the license"
