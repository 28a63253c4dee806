#!/usr/bin/env bash
# Trains a recommendation model on a click log twice, once undisturbed and once killed twice by SIGKILL, and
# compares. Installs and builds what that takes.
set -euo pipefail
cd "$(dirname "$0")/.."
. tests/install.sh

usage() {
  cat <<'TEXT'
usage: bash examples/run.sh [options]
Without --codec, two jobs: a small one with the exact codec, whose runs must end with the same bytes, then the
default job (26 tables, 837,565 rows, 10,000 batches) with adaptive4.
  --quick         the small job for both
  --codec C       one job, with this codec: exact, uniform8, uniform4, adaptive4, adaptive3, adaptive2
  --strategy S    full, one_shot, consecutive or intermittent (the default)
  --data FILE     a click log in Criteo's format, plain or .gz, instead of the built-in one
  --steps N       batches to train: 10,000, or 1,280 for the small job, or to the file's end
  --every N       batches between checkpoints: 500, or 64 for the small job
TEXT
}

quick=0 codec="" strategy=intermittent shared=()
while [ $# -gt 0 ]; do
  case $1 in
    --quick) quick=1 ;;
    --codec | --strategy | --data | --steps | --every)
      [ $# -gt 1 ] || { usage >&2 && exit 2; }
      case $1 in
        --codec) codec=$2 ;;
        --strategy) strategy=$2 ;;
        *) shared+=("$1" "$2") ;;
      esac
      shift
      ;;
    -h | --help) usage && exit 0 ;;
    *) usage >&2 && exit 2 ;;
  esac
  shift
done

# ------------------------------------------------------------------------------------------ install and build

look() {
  need_library
  need libeigen3-dev has_header eigen3/Eigen/Core
  need libcli11-dev has_header CLI/CLI.hpp
  need zlib1g-dev has_header zlib.h
  need python3 command -v python3
  need gnuplot-nox command -v gnuplot
}
install_missing look

say "Building"
started=$SECONDS
mkdir -p build
if ! { cmake --preset release -DCMAKE_CXX_COMPILER=g++ -DCHECKROW_BUILD_TESTS=OFF &&
  cmake --build build/release --parallel "$(jobs_that_fit)" --target dlrm; } >build/run.log 2>&1; then
  cat build/run.log
  exit 1
fi
echo "built in $((SECONDS - started)) s"
dlrm=build/release/examples/dlrm/dlrm

# ------------------------------------------------------------------------------------------------- one job

child=""
trap '[ -z "$child" ] || kill -KILL "$child" 2>/dev/null || true' EXIT

start() { "$dlrm" "${job[@]}" --checkpoints "$work/checkpoints" --report "$work/killed.json" "$@" & child=$!; }
ended() {  # waits for the child; its exit code
  local code=0
  wait "$child" 2>/dev/null || code=$?
  child=""
  return $code
}
saved() { local n; n=$(grep -c '"event":"checkpoint"' "$work/killed.json" 2>/dev/null) || true; echo "${n:-0}"; }
half_written() { compgen -G "$work/checkpoints/*.partial" >/dev/null; }
too_short() {
  echo "the run ended before it could be killed: give it more --steps, or a smaller --every"
  exit 1
}

# Kills the run between two saves: once `enough` checkpoints are there and nothing is being written.
kill_between_saves() {
  local enough=$1 code
  for _ in 1 2 3 4 5; do
    start
    while kill -0 "$child" 2>/dev/null; do
      if [ "$(saved)" -ge "$enough" ] && ! half_written; then break; fi
      sleep 0.02
    done
    kill -KILL "$child" 2>/dev/null || true
    code=0
    ended || code=$?
    case $code in 137) ;; 0) too_short ;; *) exit 1 ;; esac
    if ! half_written; then
      printf '\n** killed by SIGKILL, between two saves\n'
      return
    fi
    printf '\n** killed by SIGKILL, but a save had just begun: once more\n'
    enough=$(($(saved) + 2))
  done
  echo "no kill fell between two saves"
  exit 1
}

# Kills the run while its `which`th save is half-written.
kill_inside_save() {
  local code=0
  start --kill-in-save "$1"
  ended || code=$?
  case $code in 137) ;; 0) too_short ;; *) exit 1 ;; esac
  half_written || { echo "no half-written checkpoint is left: was it killed inside a save?" && exit 1; }
  printf '\n** killed by SIGKILL, inside a save; half-written: %s\n' \
    "$(cd "$work/checkpoints" && du -h --apparent-size ./*.partial | tr '\t' ' ')"
}

run_job() {  # title, codec, more flags of dlrm
  local title=$1 codec=$2
  shift 2
  job=("${shared[@]}" --codec "$codec" --strategy "$strategy" "$@")
  work=build/examples/$codec
  rm -rf "$work"
  mkdir -p "$work"

  say "$title: undisturbed, without checkpoints"
  "$dlrm" "${job[@]}" --report "$work/reference.json"
  say "$title: with checkpoints, and killed"
  kill_between_saves 6
  kill_inside_save 5
  start
  ended || exit 1

  say "$title: what became of it"
  python3 examples/summary.py "$work/reference.json" "$work/killed.json" "$codec" "$work/checkpoints.dat"
  gnuplot -e "data='$work/checkpoints.dat'; picture='$work/bytes_per_checkpoint.svg'" \
    examples/bytes_per_checkpoint.gnuplot
  rm -rf "$work/checkpoints"
  echo "picture: $work/bytes_per_checkpoint.svg"
}

# --------------------------------------------------------------------------------------------------- the jobs

size=()
[ $quick = 0 ] || size=(--quick)
if [ -n "$codec" ]; then
  run_job "$codec" "$codec" "${size[@]}"
else
  run_job "exact, small" exact --quick
  run_job "adaptive4" adaptive4 "${size[@]}"
fi
