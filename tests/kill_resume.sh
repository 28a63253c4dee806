#!/usr/bin/env bash
# Kills the minimal trainer with SIGKILL at random instants; each time it has to resume and end with the bytes of a
# run that was never killed, in every column.
#   kill_resume.sh PROGRAM [KILLS = 20] [SEED]
set -euo pipefail
program=$1 kills=${2:-20} seed=${3:-$(date +%s)}
steps=6000
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
RANDOM=$seed

"$program" "$work/never" $steps "$work/never.bytes" >"$work/never.out"
microseconds=""
for _ in 1 2 3 4 5; do # the shortest of several: a kill that comes after the end is none
  rm -rf "$work/timed"
  start=$(date +%s%N)
  "$program" "$work/timed" $steps "$work/timed.bytes" >"$work/timed.out"
  took=$((($(date +%s%N) - start) / 1000))
  [ -n "$microseconds" ] && [ "$microseconds" -lt $took ] || microseconds=$took
  cmp "$work/never.bytes" "$work/timed.bytes"
done

killed=0 resumed=0 inside=0 tries=0
while ((killed < kills)); do
  ((++tries <= 3 * kills + 10)) || { echo "FAILED: the runs end before they can be killed"; exit 1; }
  run=$work/run
  rm -rf "$run" "$run.bytes"
  "$program" "$run" $steps "$run.bytes" >"$run.out" &
  pid=$!
  sleep "$(awk -v r=$RANDOM -v t=$microseconds 'BEGIN { printf "%.4f", r / 32768 * t / 1e6 }')"
  kill -KILL $pid 2>/dev/null || true
  wait $pid 2>/dev/null && continue # it had ended already
  killed=$((killed + 1))
  compgen -G "$run/*.partial" >/dev/null && inside=$((inside + 1))
  "$program" "$run" $steps "$run.bytes" >"$run.out"
  grep -q '^from step 0$' "$run.out" || resumed=$((resumed + 1))
  if ! cmp "$work/never.bytes" "$run.bytes" || [ "$(tail -n 1 "$run.out")" != "$(tail -n 1 "$work/never.out")" ]; then
    echo "FAILED: after kill $killed (seed $seed): $(head -n 1 "$run.out")"
    exit 1
  fi
  if compgen -G "$run/*.partial" >/dev/null; then echo "FAILED: half-written blobs are left (seed $seed)"; exit 1; fi
done
echo "figure: $killed kills (seed $seed), $inside of them while a blob was half-written; $resumed resumed from a checkpoint, the others from the start; all ended with the same bytes"
