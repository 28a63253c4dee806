#!/usr/bin/env python3
"""Compares a run that was killed and resumed with one that wasn't.

usage: summary.py REFERENCE KILLED CODEC DATA

REFERENCE and KILLED are reports of dlrm (a JSON object a line). Prints tables, and writes DATA for the picture.
With the exact codec both runs must have ended with the same bytes in every parameter: exits 1 if not.
"""
import json
import sys


def read(path):
    with open(path) as lines:
        return [json.loads(line) for line in lines]


def megabytes(count):
    return f"{count / 1e6:,.1f} MB"


def print_checkpoints(events, data):
    print(f"{'':>4} {'step':>7}  {'kind':5} {'touched':>8} {'rows written':>13} {'bytes':>10} "
          f"{'of full fp32':>13} {'stall':>9}")
    for e in events:
        if e["event"] == "resumed":
            print(f"     ---- killed, resumed from checkpoint {e['sequence']}, step {e['step']:,} ----")
        if e["event"] != "checkpoint":
            continue
        touched, written = e["touched_rows"] / e["total_rows"], e["rows"] / e["total_rows"]
        print(f"{e['sequence']:4} {e['step']:7,}  {e['kind']:5} {touched:8.1%} {written:13.1%} "
              f"{megabytes(e['bytes']):>10} {e['bytes'] / e['full_bytes']:13.1%} {e['stall_ms']:6.1f} ms")
        print(e["step"], e["bytes"] / 1e6, e["full_bytes"] / 1e6, 100 * touched, 100 * written, file=data)


def print_totals(events):
    checkpoints = [e for e in events if e["event"] == "checkpoint"]
    written, full = (sum(e[name] for e in checkpoints) for name in ("bytes", "full_bytes"))
    stall = sum(e["stall_ms"] for e in checkpoints)
    print(f"\n{len(checkpoints)} checkpoints: {megabytes(written)}, {full / written:.1f} times less than the "
          f"{megabytes(full)} of full fp32 ones;\nthe trainer stood still for {stall:,.0f} ms in all")


def print_runs(reference, killed, codec):
    resumed = [e for e in killed if e["event"] == "resumed"]
    runs = [("undisturbed", reference[-1]), (f"killed {len(resumed)} times", killed[-1])]
    print(f"\n{'':16} {'held-out loss':>14} {'AUC':>8}  parameters")
    for name, end in runs:
        print(f"{name:16} {end['loss']:14.6f} {end['auc']:8.4f}  {end['parameters']}")
    (_, before), (_, after) = runs
    if before["parameters"] == after["parameters"]:
        print("\nBoth runs ended with the same bytes in every parameter.")
        return True
    left = 1 - resumed[-1]["step"] / after["step"]
    print(f"\nLoss changed by {after['loss'] / before['loss'] - 1:+.4%}: {codec}, {len(resumed)} restores, "
          f"{left:.0%} of the run left after the last.")
    return codec != "exact"


def main():
    reference, killed = read(sys.argv[1]), read(sys.argv[2])
    codec = sys.argv[3]
    with open(sys.argv[4], "w") as data:
        print_checkpoints(killed, data)
    print_totals(killed)
    if not print_runs(reference, killed, codec):
        sys.exit("FAILED: with the exact codec the two runs must end with the same bytes, and they don't")


main()
