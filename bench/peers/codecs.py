"""Row codecs of FBGEMM and of torch, one thread, over float32 rows outside the caches: JSON lines as bench/codecs.cpp's.

usage: codecs.py [--quick] FILE. Each pass is timed in pieces, of which the best round counts, as there.
"""
import ctypes
import json
import sys
import time

import numpy as np
import torch
import fbgemm_gpu  # registers torch.ops.fbgemm

torch.set_num_threads(1)
quick = "--quick" in sys.argv
rounds = 3 if quick else 9
total_bytes = (64 if quick else 256) << 20
piece_bytes = 4 << 20


class Best:
    """The best time of each piece."""

    def __init__(self, pieces):
        self.times = [1e9] * len(pieces)
        self.pieces = pieces

    def round(self, work):
        for i, piece in enumerate(self.pieces):
            start = time.perf_counter()
            work(i, piece)
            self.times[i] = min(self.times[i], time.perf_counter() - start)

    def seconds(self):
        return sum(self.times)


def relative_error(x, y):
    return float(((x - y).norm(dim=1) / x.norm(dim=1)).mean())


def measure(codec, bits, dim, engine, encode, decode, x, out, most_pieces):
    """encode(rows) -> packed, decode(packed) -> rows, over pieces of x (rows, dim)."""
    rows = piece_bytes // (4 * dim)
    whole = [x[i : i + rows] for i in range(0, len(x), rows)]
    if most_pieces:  # a slow one: fewer rows, and few of each piece
        whole = [piece[:256] for piece in whole[:most_pieces]]
    encodes, decodes = Best(whole), Best(whole)
    packed = [None] * len(whole)

    def pack(i, piece):
        packed[i] = encode(piece)

    for _ in range(rounds):
        encodes.round(pack)
        decodes.round(lambda i, _: decode(packed[i]))
    megabytes = sum(4 * piece.numel() for piece in whole) / 1e6
    error = relative_error(whole[0], decode(packed[0]))
    bytes_per_row = packed[0].numel() * packed[0].element_size() / len(whole[0])
    line = {
        "codec": codec,
        "bits": bits,
        "dim": dim,
        "engine": engine,
        "encode_gb_per_s": megabytes / 1e3 / encodes.seconds(),
        "decode_gb_per_s": megabytes / 1e3 / decodes.seconds(),
        "encode_vs_memcpy": megabytes / 1e3 / encodes.seconds() / memcpy_speed[dim],
        "decode_vs_memcpy": megabytes / 1e3 / decodes.seconds() / memcpy_speed[dim],
        "rel_error": error,
        "bytes_per_row": bytes_per_row,
        "metadata_bytes_per_row": bytes_per_row - dim * bits / 8,
    }
    out.write(json.dumps(line) + "\n")
    out.flush()


def memcpy_of(x):
    """GB/s of memcpy from x to memory of the same size, by pieces of 32 MiB as in bench/codecs.cpp."""
    back = torch.zeros_like(x)
    size = 32 << 20
    best = Best(range(4 * x.numel() // size))
    for _ in range(rounds):
        best.round(lambda i, _: ctypes.memmove(back.data_ptr() + i * size, x.data_ptr() + i * size, size))
    return 4 * x.numel() / 1e9 / best.seconds()


memcpy_speed = {}
generator = np.random.default_rng(7)
with open(sys.argv[-1], "w") as out:
    for dim in (64, 128):
        some = generator.standard_normal(1 << 20, dtype=np.float32) * np.float32(0.05)
        x = torch.from_numpy(np.tile(some, total_bytes // 4 // len(some)).reshape(-1, dim))
        memcpy_speed[dim] = memcpy_of(x)
        ops = torch.ops.fbgemm
        fbgemm = "fbgemm-gpu-cpu " + fbgemm_gpu.__version__
        measure("fbgemm fused rows", 8, dim, fbgemm, ops.FloatToFused8BitRowwiseQuantized,
                ops.Fused8BitRowwiseQuantizedToFloat, x, out, 0)
        for bits in (4, 2):
            measure("fbgemm fused rows", bits, dim, fbgemm,
                    lambda rows, b=bits: ops.FloatToFusedNBitRowwiseQuantizedSBHalf(rows, b),
                    lambda packed, b=bits: ops.FusedNBitRowwiseQuantizedSBHalfToFloat(packed, b), x, out, 0)
        for bits in (4, 2):
            pack = getattr(torch.ops.quantized, f"embedding_bag_{bits}bit_prepack")
            unpack = getattr(torch.ops.quantized, f"embedding_bag_{bits}bit_unpack")
            measure("torch optimized_qparams", bits, dim, "torch " + torch.__version__,
                    lambda rows, pack=pack: pack(rows, True, 200, 0.16), unpack, x, out, 2)
