# Shared by the scripts beside it. From ctest: CXX, BUILD, DEPENDENCY_FLAGS, CMAKE; by hand the defaults do.
# They run in the repository's root.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

CXX=${CXX:-g++}
CMAKE=${CMAKE:-cmake}
BUILD=${BUILD:-build/dev}
compile=("$CXX" -std=c++20 -Iinclude -pthread)
read -r -a more <<<"${DEPENDENCY_FLAGS:-}"
compile+=("${more[@]}")
jobs=$(nproc)

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# The library's headers, as they are included; the cuda folder has a target and checks of its own.
headers() { (cd include && find checkrow -name '*.hpp' -not -path 'checkrow/cuda/*' | sort); }

skip() {
  echo "skipped: $*"
  exit 77
}

# From here on the bodies that separate compilation leaves out are not compiled: faster, where they don't matter.
without_bodies() { compile+=(-DCHECKROW_SEPARATE_COMPILATION); }

fail() {
  echo "failed: $*"
  exit 1
}

# in_parallel FUNCTION: runs it once for each line of the input; fails if any call does.
in_parallel() {
  export -f "$1"
  export scratch command_line="${compile[*]}"
  xargs -r -d '\n' -P "$jobs" -I {} bash -c "$1"' "$1"' _ {}
}
