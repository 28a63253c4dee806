#!/usr/bin/env bash
# How the codecs, and whole saves, of other libraries do on this machine, beside our codecs in the same run, on one
# core. Makes a virtual environment in build/peers with torch, fbgemm-gpu-cpu and torchsnapshot from PyPI (5 GB,
# since torch there comes with CUDA); writes build/bench/peers.json and prints a table of ratios.
#   bash bench/peers/run.sh [--gib N] [--no-saves] [--quick]     N: size of the saved model, default 4
set -euo pipefail
cd "$(dirname "$0")/../.."
. tests/install.sh

gib=4 quick=()
while [ $# -gt 0 ]; do
  case $1 in
    --gib) gib=${2-} && shift ;;
    --no-saves) gib=0 ;;
    --quick) quick=(--quick) ;;
    *) sed -n 2,5p "$0" >&2 && exit 2 ;;
  esac
  shift || exit 2
done

skip() {
  echo "skipped: $*"
  exit 77
}

packages=(torch==2.14.0 fbgemm-gpu-cpu==1.9.0 torchsnapshot==0.1.0 numpy)
python=build/peers/venv/bin/python
mkdir -p build/peers build/bench
if ! "$python" -c 'import torch, fbgemm_gpu, torchsnapshot' 2>/dev/null; then
  say "Installing ${packages[*]} in build/peers/venv"
  python3 -m venv build/peers/venv >build/peers/install.log 2>&1 ||
    skip "no virtual environment can be made (Debian: python3-venv); see build/peers/install.log"
  "$python" -m pip install -q "${packages[@]}" >>build/peers/install.log 2>&1 ||
    skip "PyPI cannot be reached, or lacks ${packages[*]}; see build/peers/install.log"
fi

install_missing need_library
if ! { cmake --preset release -DCMAKE_CXX_COMPILER=g++ -DCHECKROW_BUILD_TESTS=OFF -DCHECKROW_BUILD_EXAMPLES=OFF &&
  cmake --build build/release --parallel "$(jobs_that_fit)" --target bench_codecs; } >build/bench.log 2>&1; then
  cat build/bench.log
  exit 1
fi

say "codecs, one core: load $(cut -d ' ' -f 1 /proc/loadavg) before it began"
core=$(($(nproc) - 1))
for dim in 64 128; do
  taskset -c $core build/release/bench/bench_codecs "${quick[@]}" --only " dim $dim " --json build/peers/ours-$dim.json \
    >/dev/null
done
cat build/peers/ours-*.json >build/peers/ours.json
taskset -c $core "$python" bench/peers/codecs.py "${quick[@]}" build/peers/codecs.json
"$python" bench/peers/ratios.py build/peers/ours.json build/peers/codecs.json

: >build/peers/saves.json
if [ "$gib" != 0 ]; then
  say "whole saves of $gib GiB in build/peers/saves"
  "$python" bench/peers/saves.py build/peers/saves "$gib" build/peers/saves.json
  rm -rf build/peers/saves
fi
cat build/peers/ours.json build/peers/codecs.json build/peers/saves.json >build/bench/peers.json
