#!/usr/bin/env bash
# The one door to every figure: builds benchmarks (release), prints tables, writes build/bench/SUITE.json, a flat
# JSON object a line.
set -euo pipefail
cd "$(dirname "$0")/.."
. tests/install.sh

suites=()
for source in bench/*.cpp; do suites+=("$(basename "$source" .cpp)"); done
usage() {
  echo "usage: bash bench/run.sh SUITE... [--quick] [--gib N]     (--gib: of save and restore)"
  echo "suites: ${suites[*]}"
}

wanted=() passed=()
while [ $# -gt 0 ]; do
  word=$1
  shift
  case $word in
    --quick) passed+=(--quick) ;;
    --gib)
      [ $# -gt 0 ] || { usage >&2 && exit 2; }
      passed+=(--gib "$1")
      shift
      ;;
    -h | --help) usage && exit 0 ;;
    *)
      [[ " ${suites[*]} " == *" $word "* ]] || { usage >&2 && exit 2; }
      wanted+=("$word")
      ;;
  esac
done
[ ${#wanted[@]} -gt 0 ] || { usage >&2 && exit 2; }

look() {
  need_library
  need libeigen3-dev has_header eigen3/Eigen/Core
  need liburing-dev has_header liburing.h
}
install_missing look

mkdir -p build/bench
if ! { cmake --preset release -DCMAKE_CXX_COMPILER=g++ -DCHECKROW_BUILD_TESTS=OFF &&
  cmake --build build/release --parallel "$(jobs_that_fit)" --target "${wanted[@]/#/bench_}"; } >build/bench.log 2>&1; then
  cat build/bench.log
  exit 1
fi

for suite in "${wanted[@]}"; do
  say "$suite: $(nproc) cores, load $(cut -d ' ' -f 1 /proc/loadavg) before it began"
  "build/release/bench/bench_$suite" "${passed[@]}" --json "build/bench/$suite.json"
  if [ "$suite" = errors ] && command -v gnuplot >/dev/null; then
    gnuplot -e "data='build/bench/errors.json'; rows='Gaussian'; dim=64; picture='build/bench/errors.svg'" bench/errors.gnuplot
    gnuplot -e "data='build/bench/errors.json'; picture='build/bench/metadata.svg'" bench/metadata.gnuplot
    echo "pictures: build/bench/errors.svg, build/bench/metadata.svg"
  fi
done
