"""Prints how many times as fast as the peers' our fastest engine is. usage: ratios.py OURS PEERS (JSON lines)."""
import json
import sys

ours, peers = ([json.loads(line) for line in open(path)] for path in sys.argv[1:3])
like = {"fbgemm fused rows": "uniform asymmetric", "torch optimized_qparams": "adaptive refit"}
target = {("fbgemm fused rows", 8): 10, ("fbgemm fused rows", 4): 20, ("fbgemm fused rows", 2): 20,
          ("torch optimized_qparams", 4): 150, ("torch optimized_qparams", 2): 150}

print(f"{'':34s}{'encode GB/s':>12s}{'ours':>8s}{'times':>8s}{'target':>8s}{'decode GB/s':>13s}{'ours':>8s}{'times':>8s}"
      f"{'error':>9s}{'ours':>9s}")
for peer in peers:
    mine = [one for one in ours if one["codec"] == like[peer["codec"]] and "encode_gb_per_s" in one and one["element"] == "float32" and
            (one["bits"], one["dim"]) == (peer["bits"], peer["dim"])][-1]  # engines come from slow to fast
    row = f"{peer['codec']} {peer['bits']} dim {peer['dim']}"
    print(f"{row:34s}{peer['encode_gb_per_s']:12.3f}{mine['encode_gb_per_s']:8.2f}"
          f"{mine['encode_gb_per_s'] / peer['encode_gb_per_s']:8.1f}{target[peer['codec'], peer['bits']]:8d}"
          f"{peer['decode_gb_per_s']:13.2f}{mine['decode_gb_per_s']:8.2f}"
          f"{mine['decode_gb_per_s'] / peer['decode_gb_per_s']:8.1f}"
          f"{peer['rel_error']:9.5f}{mine['rel_error']:9.5f}")
