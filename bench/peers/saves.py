"""Whole saves of one model of embedding tables by torch's distributed checkpoint and by torchsnapshot, to a folder.

usage: saves.py FOLDER GIB FILE. For each: GB/s until it says it is done and until it is durable, how long the
trainer stands still, extra memory at its peak; then loading it again (from the page cache). JSON lines to FILE.
"""
import json
import os
import shutil
import sys
import threading
import time

import torch
import torch.distributed.checkpoint as dcp

folder, gib, file = sys.argv[1], float(sys.argv[2]), sys.argv[3]
dim = 64
rows = int(gib * (1 << 30) / 4 / dim / 4)
torch.manual_seed(0)
state = {f"t{i}": torch.empty(rows, dim).normal_(0, 0.05) for i in range(4)}
gigabytes = sum(t.numel() * 4 for t in state.values()) / 1e9
out = open(file, "w")


def resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e9


class Peak(threading.Thread):
    """The most memory since it was made, beyond what there was."""

    def __init__(self):
        super().__init__(daemon=True)
        self.base = self.peak = resident()
        self.over = threading.Event()
        self.start()

    def run(self):
        while not self.over.wait(0.02):
            self.peak = max(self.peak, resident())

    def stop(self):
        self.over.set()
        self.join()
        return self.peak - self.base


def save(name, start):
    """start() begins a save, and returns what waits for its end or None."""
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    os.sync()
    peak = Peak()
    begin = time.perf_counter()
    wait = start()
    stall = time.perf_counter() - begin
    if wait is not None:
        wait()
    done = time.perf_counter() - begin
    os.sync()
    durable = time.perf_counter() - begin
    line = {"saver": name, "gib": gib, "done_gb_per_s": gigabytes / done, "durable_gb_per_s": gigabytes / durable,
            "stall_seconds": stall, "extra_memory_gb": peak.stop()}
    out.write(json.dumps(line) + "\n")
    print(f"{name:26s}{line['done_gb_per_s']:7.2f} GB/s done{line['durable_gb_per_s']:7.2f} GB/s durable, "
          f"stall{stall:8.3f} s, extra memory{line['extra_memory_gb']:6.2f} GB", flush=True)


def load(name, work):
    begin = time.perf_counter()
    work()
    speed = gigabytes / (time.perf_counter() - begin)
    out.write(json.dumps({"loader": name, "gib": gib, "gb_per_s": speed}) + "\n")
    print(f"{name:26s}{speed:7.2f} GB/s", flush=True)


def fresh():
    return {k: torch.empty_like(v) for k, v in state.items()}


save("torch DCP save", lambda: (dcp.save(state, checkpoint_id=folder + "/dcp"), None)[1])
load("torch DCP load", lambda: dcp.load(fresh(), checkpoint_id=folder + "/dcp"))
save("torch DCP async_save", lambda: dcp.async_save(state, checkpoint_id=folder + "/dcp").result)

try:
    import torchsnapshot
except Exception as why:  # it is old, and may not take this torch
    print("skipped: torchsnapshot:", why)
    sys.exit(0)


class Model(dict):
    """As torchsnapshot wants it."""

    def state_dict(self):
        return dict(self)

    def load_state_dict(self, values):
        self.update(values)


save("torchsnapshot take", lambda: (torchsnapshot.Snapshot.take(folder + "/s", {"m": Model(state)}), None)[1])
load("torchsnapshot restore", lambda: torchsnapshot.Snapshot(folder + "/s").restore({"m": Model(fresh())}))
save("torchsnapshot async_take",
     lambda: torchsnapshot.Snapshot.async_take(folder + "/s", {"m": Model(state)}).wait)
