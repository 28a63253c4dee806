# Sourced by the scripts that a person runs first: finds out what is missing and installs it. Defines say, jobs_that_fit,
# need, tests of what is there, and install_missing.

say() { printf '\n== %s\n' "$*"; }

# The cores, but no more than one job for each 1.5 GB of free memory.
jobs_that_fit() {
  awk -v cores="$(nproc)" '/^MemAvailable/ { fit = int($2 / 1.5e6) }
                           END { print fit < 1 ? 1 : fit < cores ? fit : cores }' /proc/meminfo
}

missing=()
need() {  # package, then a command that succeeds where it is there
  local package=$1
  shift
  "$@" >/dev/null 2>&1 || missing+=("$package")
}
at_least() { [ "$(printf '%s\n' "$1" "$2" | sort -V | sed -n 1p)" = "$1" ]; }
has_cmake() { at_least 3.25 "$(cmake --version | awk 'NR == 1 { print $3 }')"; }
has_gcc() { at_least 12 "$(g++ -dumpversion)"; }
has_header() { echo "#include <$1>" | g++ -std=c++20 -E -x c++ -; }

need_library() {  # what it takes to build anything with checkrow
  need g++ has_gcc
  need cmake has_cmake
  need ninja-build command -v ninja
  need nlohmann-json3-dev has_header nlohmann/json.hpp
  need libxxhash-dev has_header xxhash.h
}

# install_missing LOOK, where LOOK is a function that calls need. Fails, having said why, if something stays missing.
install_missing() {
  local look=$1 as_root=() log
  missing=()
  $look
  [ ${#missing[@]} -gt 0 ] || return 0
  say "Installing what is missing: ${missing[*]}"
  [ "$(id -u)" = 0 ] || as_root=(sudo -n)
  apt() { "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300 "$@" </dev/null; }
  log=$(mktemp)
  if ! { apt update && apt install -y --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
    tail -20 "$log"
    echo "apt-get could not install ${missing[*]}: do it by hand (as root), then run this again"
    return 1
  fi
  rm -f "$log"
  missing=()
  $look
  [ ${#missing[@]} -eq 0 ] && return 0
  echo "installed, yet not found or too old: ${missing[*]} (needed: gcc 12, CMake 3.25)"
  return 1
}
