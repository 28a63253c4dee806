#!/usr/bin/env python3
"""Reads the checkpoints of checkrow: an independent program, written from docs/format.md alone.

    read_checkpoint.py FOLDER [--dump OUT]      reads the newest whole checkpoint; OUT gets every array, raw

Hashes vouch for the bytes; of what the page promises of a writer, it checks what it relies on.
Needs numpy and xxhash (Debian: python3-numpy, python3-xxhash).
"""
import argparse
import json
import re
import struct
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from xxhash import xxh3_64_intdigest as hash_of

ROWS, DENSE, STATE = 1, 3, 4
RANGE, BITMAP, GAPS, RUNS = 0, 1, 2, 3
EXACT, SYMMETRIC, TWO_BYTES = 1, 3, 6
FLOAT32, FLOAT16, BFLOAT16 = 1, 2, 3
ELEMENTS = {1: "<f4", 2: "<f2", 3: "<u2", 4: "<i4", 5: "<i8", 6: "u1", 7: "<f8", 8: "<u4", 9: "<u8"}

# Of each record the fields that are read here: where they stand, and their types.
FOOTER_FIELDS = {"header_size": (4, "<u2"), "entry_size": (6, "<u2"), "entries": (8, "<u8"),
                 "features": (20, "<u4")}
ENTRY_FIELDS = {"kind": (4, "u1"), "offset": (40, "<u8"), "size": (48, "<u8"), "head_size": (56, "<u8"),
                "head_hash": (64, "<u8"), "payload_hash": (72, "<u8")}
CHUNK_FIELDS = {"header_size": (4, "<u2"), "version": (6, "<u2"), "kind": (8, "u1"), "id_space": (9, "u1"),
                "index_kind": (10, "u1"), "flags": (11, "u1"), "columns": (12, "<u2"),
                "column_size": (14, "u1"), "features": (20, "<u4"), "table": (24, "<u4"),
                "smallest": (32, "<u8"), "largest": (40, "<u8"), "rows": (48, "<u8"), "ids_size": (56, "<u8")}
COLUMN_FIELDS = {"codec": (0, "<u2"), "bits": (2, "u1"), "element": (3, "u1"), "element_size": (4, "u1"),
                 "width": (8, "<u4"), "offset": (16, "<u8"), "size": (24, "<u8")}
RUNS_FIELDS = {"length_k": (0, "u1"), "gap_k": (1, "u1"), "runs": (2, "<u4")}
QUANTISED_FIELDS = {"exceptions": (0, "<u4"), "exception_size": (8, "<u8"), "scale_bits": (16, "u1"),
                    "offset_bits": (17, "u1"), "shift": (18, "u1"), "lowest_scale": (20, "<u2"),
                    "lowest_m": (22, "<i2")}


class Damaged(Exception):
    """The checkpoint is not what was written; an older one may be."""


class Unsupported(Exception):
    """The checkpoint needs another reader; an older one would be a silent step back."""


def check(condition, message, error=Damaged):
    if not condition:
        raise error(message)


def records(data, fields, size, count=1):
    """`count` records of `size` bytes, with their fields as attributes."""
    offsets, formats = zip(*fields.values())
    layout = np.dtype({"names": list(fields), "offsets": offsets, "formats": formats, "itemsize": size})
    values = np.frombuffer(data, layout, count).tolist()
    return [SimpleNamespace(**dict(zip(fields, of_one))) for of_one in values]


def aligned(size):
    return -(-size // 64) * 64


def bytes_for(bits):
    return -(-bits // 8)


def bits_of(data):
    return np.unpackbits(data, axis=-1, bitorder="little")


def numbers_of(bits):
    """The numbers whose bits stand along the last axis."""
    return bits @ (1 << np.arange(bits.shape[-1]))


# ------------------------------------------------------------------------------------------------ row ids


def rice_values(data, ks):
    lower_size = bytes_for(int(ks.sum()))
    check(lower_size <= len(data), "Rice codes are cut short")
    upper, lower = (bits_of(part) for part in np.split(data, [len(data) - lower_size]))
    ends = np.flatnonzero(upper)
    check(len(ends) == len(ks), f"{len(ends)} Rice codes rather than {len(ks)}")
    values = np.diff(ends, prepend=-1) - 1 << ks
    begins = np.cumsum(ks) - ks
    for i in range(ks.max(initial=0)):
        longer = ks > i
        values[longer] |= lower[begins[longer] + i].astype(np.int64) << i
    return values


def row_ids(chunk, data):
    steps = np.ones(chunk.rows, np.int64)  # from the id before; the first one's counts for nothing
    if chunk.index_kind == BITMAP:
        steps = np.diff(np.flatnonzero(bits_of(data)), prepend=0)
    elif chunk.index_kind == GAPS:
        steps[1:] += rice_values(data[1:], np.full(chunk.rows - 1, int(data[0])))
    elif chunk.index_kind == RUNS:
        header, = records(data, RUNS_FIELDS, 6)
        check(header.runs <= chunk.rows, "more runs than rows")
        values = rice_values(data[6:], np.resize([header.length_k, header.gap_k], 2 * header.runs - 1))
        lengths, gaps = values[0::2] + 1, values[1::2]
        steps[np.cumsum(lengths[:-1])] = gaps + 2
    ids = chunk.smallest + np.cumsum(steps) - steps[:1]
    check(len(ids) == chunk.rows and chunk.largest in ids[-1:], "row ids are not what the chunk states")
    return ids


# ------------------------------------------------------------------------------------------------- codecs


def dtype_of(element, size):
    """bfloat16 stays as it is stored; an element of a user's own is bytes."""
    return np.dtype(ELEMENTS.get(element, f"V{size}"))


def multiply_add(q, s, o):
    """q*s + o, rounded once to float32."""
    product = q * s.astype(np.float64)  # exact: 8 + 24 bits
    total = product + o
    part = total - product
    lost = (product - (total - part)) + (o - part)
    # An inexact sum is made odd: it is then no tie of float32, which would be rounded a second time.
    towards = np.nextafter(total, np.copysign(np.inf, lost))
    return np.where((lost != 0) & (total.view("<u8") % 2 == 0), towards, total).astype("<f4")


def widened(bits, element):
    return bits.view("<f2").astype("<f4") if element == FLOAT16 else (bits.astype("<u4") << 16).view("<f4")


def narrowed(values, element):
    """The nearest of float16 or bfloat16, half to even, +0 in place of -0."""
    bits = values.view("<u4")
    upper = bits + 0x7fff + (bits >> 16 & 1) >> 16
    rounded = values.astype("<f2").view("<u2") if element == FLOAT16 else upper.astype("<u2")
    return np.where(rounded == 0x8000, np.uint16(0), rounded)


def narrow_rows(column, q, scale, m):
    """q has the shape (rows, width), scale and m (rows, 1)."""
    most = 2**column.bits - 1
    if column.element == FLOAT32:
        s = (scale + 15872 << 14).astype("<u4").view("<f4")
        grid = 8 if column.bits == 8 else 16
        return (2 * q - most) * (s / 2) if column.codec == SYMMETRIC else (m + q * grid) * (s / grid)

    def grid_end(v):
        return widened(np.where(v >= 32768, v - 32768, 65535 - v).astype("<u2"), column.element)

    high = grid_end(scale)
    low = -high if column.codec == SYMMETRIC else grid_end(m + 32768)
    s = (high - low) * (np.float32(1) / np.float32(most))
    return narrowed(multiply_add(q, s, low), column.element).view(dtype_of(column.element, 2))


def quantised_rows(column, data, rows):
    header, = records(data, QUANTISED_FIELDS, 64)
    code_bits, row_size = column.width * column.bits, column.width * column.element_size
    stride, field_bits = bytes_for(code_bits), header.scale_bits + header.offset_bits
    parameters_at = aligned(64 + rows * stride)
    directory_at = aligned(parameters_at + bytes_for(rows * field_bits))
    exceptions_at = directory_at + 8 * header.exceptions
    check(len(data) == exceptions_at + header.exception_size, "a section has another size")

    codes = bits_of(data[64:64 + rows * stride].reshape(rows, stride))[:, :code_bits]
    q = numbers_of(codes.reshape(rows, column.width, column.bits))
    fields = bits_of(data[parameters_at:directory_at])[:rows * field_bits].reshape(rows, field_bits)
    f, g = (numbers_of(field) for field in np.split(fields, [header.scale_bits], axis=1))

    result = np.zeros((rows, column.width), dtype_of(column.element, column.element_size))
    narrow, wide, raw = f > 0, (f == 0) & (g == 1), (f == 0) & (g == 2)
    may_be_wide = column.element == FLOAT32 and column.codec != SYMMETRIC
    check((narrow | (g == 0) | raw | wide & may_be_wide).all(), "a row is of an unknown class")
    scale = header.lowest_scale + (f[narrow, None] - 1 << header.shift)
    check(scale.max(initial=0) <= 65535, "a scale code is beyond 65535")
    result[narrow] = narrow_rows(column, q[narrow], scale, header.lowest_m + g[narrow, None])

    sizes = np.where(wide, 8, np.where(raw, row_size, 0))
    begins = exceptions_at + np.cumsum(sizes) - sizes  # what the directory says too
    check(sizes.sum() == header.exception_size, "exception data has another size")
    result[raw] = data[begins[raw, None] + np.arange(row_size)].view(result.dtype)
    s, o = np.split(data[begins[wide, None] + np.arange(8)].view("<f4"), 2, axis=1)
    result[wide] = multiply_add(q[wide], s, o)
    return result


def section_rows(column, data, rows):
    """An array of the shape (rows, width)."""
    if column.codec == EXACT:
        return data.view(dtype_of(column.element, column.element_size)).reshape(rows, column.width)
    if column.codec == TWO_BYTES and column.element == FLOAT32:
        return widened(data.view("<u2"), BFLOAT16).reshape(rows, column.width)
    check(column.codec in (2, 3, 4, 5) and column.bits in (2, 3, 4, 8) and column.element <= BFLOAT16,
          f"codec {column.codec} with {column.bits} bits, of elements {column.element}", Unsupported)
    return quantised_rows(column, data, rows)


# ----------------------------------------------------------------------------------------------- segments


def read_chunk(head, payload, model):
    """Its kind, table, row ids, and an array of the shape (rows, width) for each column."""
    chunk, = records(head, CHUNK_FIELDS, 128)
    known = chunk.kind in (ROWS, DENSE, STATE) and chunk.index_kind in (RANGE, BITMAP, GAPS, RUNS)
    check(known and chunk.version == 1 and chunk.features == 0 and chunk.id_space == 0 and chunk.flags <= 1,
          f"an unknown chunk: {chunk}", Unsupported)
    ids_at = aligned(chunk.header_size + chunk.columns * chunk.column_size)
    check(len(head) == aligned(ids_at + chunk.ids_size), "the head of a chunk has another size")
    columns = records(head[chunk.header_size:], COLUMN_FIELDS, chunk.column_size, chunk.columns)
    arrays = list(model[chunk.kind, chunk.table].values())
    stored = [(dtype_of(column.element, column.element_size), column.width) for column in columns]
    check(stored == [(array.dtype, array.shape[1]) for array in arrays], "a chunk has other columns")
    check(chunk.rows - 1 <= chunk.largest < len(arrays[0]), "row ids are beyond the table")
    head, payload = np.frombuffer(head, np.uint8), np.frombuffer(payload, np.uint8)
    ids = row_ids(chunk, head[ids_at:ids_at + chunk.ids_size])
    decoded = [section_rows(c, payload[c.offset:c.offset + c.size], chunk.rows) for c in columns]
    return chunk.kind, chunk.table, ids, decoded


def read_segment(data, listed, model, skipped_kinds=()):
    """Checks all hashes; then yields what read_chunk gives."""
    check(len(data) == listed["bytes"], f"{listed['name']}: {len(data)} bytes rather than {listed['bytes']}")
    attempt, footer_hash = bytes.fromhex(listed["attempt"]), int(listed["footer_hash"], 16)
    headers = [struct.pack("<8sHHI16sI28x", b"CHECKROW", 64, 1, provisional, attempt, listed["part"])
               for provisional in (0, 1)]
    check(data[:64] in headers, f"{listed['name']} has another header")
    footer_at = int.from_bytes(data[-32:-24], "little")
    footer = data[footer_at:-32]
    trailer = struct.pack("<QQQ8s", footer_at, len(footer), footer_hash, b"CRSEGEND")
    check(data[-32:] == trailer and hash_of(footer) == footer_hash, f"{listed['name']} has another footer")
    header, = records(footer, FOOTER_FIELDS, 64)
    check(header.features == 0, f"{listed['name']} has features {header.features:#x}", Unsupported)

    chunks, end = [], 64
    for entry in records(footer[header.header_size:], ENTRY_FIELDS, header.entry_size, header.entries):
        check(entry.offset == end, f"{listed['name']}: no chunk at {end}")
        end += entry.size
        payload_at = entry.offset + entry.head_size
        head, payload = data[entry.offset:payload_at], data[payload_at:end]
        stated, found = int.from_bytes(head[104:112], "little"), hash_of(head[:104] + bytes(8) + head[112:])
        check(stated == found == entry.head_hash and hash_of(payload) == entry.payload_hash,
              f"{listed['name']}: the chunk at {entry.offset} has another hash")
        if entry.kind not in skipped_kinds:
            chunks.append((head, payload))
    check(end == footer_at, f"{listed['name']}: no chunk at {end}")
    return (read_chunk(head, payload, model) for head, payload in chunks)


# -------------------------------------------------------------------------------------------- checkpoints


def read_blob(folder, name):
    return Path(folder, name).read_bytes()


def list_manifests(folder):
    """(sequence, name) of each, the newest first."""
    names = (re.fullmatch(r"(\d{12,})-[0-9a-f]{32}\.manifest", path.name) for path in Path(folder).iterdir())
    return sorted(((int(name[1]), name[0]) for name in names if name), reverse=True)


def read_manifest(folder, name):
    data = read_blob(folder, name)
    check(data[-32:] == b',"checksum":"%016x"}\n' % hash_of(data[:-32]), "the manifest has another checksum")
    manifest = json.loads(data)
    check(manifest["format"] == "checkrow", "the manifest is of another format")
    check(manifest["version"] == 1 and not manifest["incompatible_features"] and len(manifest["parts"]) == 1,
          "the manifest is of another version, or has features or parts", Unsupported)
    expected = f"{manifest['sequence']:012}-{manifest['attempt']}.manifest"
    check(name == expected, f"the manifest is that of {expected}")
    return manifest


def new_model(manifest):
    """{(kind, table): {name: array of the shape (rows, width)}}"""
    def zeros(rows, width, element):
        return np.zeros((rows, width), dtype_of(element["code"], element["bytes"]))

    model = {}
    for i, table in enumerate(manifest["tables"]):
        model[ROWS, i] = {f"{table['name']}.{c['name']}": zeros(table["rows"], c["width"], c["element"])
                          for c in table["columns"]}
    for i, dense in enumerate(manifest["dense"]):
        model[DENSE, i] = {f"dense/{dense['name']}": zeros(dense["count"], 1, dense["element"])}
    for i, state in enumerate(manifest["states"]):
        model[STATE, i] = {f"states/{state['name']}": np.zeros((state["bytes"], 1), np.uint8)}
    return model


def read_checkpoint(folder, name):
    manifest = read_manifest(folder, name)
    model = new_model(manifest)
    missing = {key: np.ones(len(array), bool) for key, arrays in model.items() for array in arrays.values()}
    for listed in manifest["segments"]:
        skipped_kinds = () if listed["sequence"] == manifest["sequence"] else (DENSE, STATE)
        blob = read_blob(folder, listed["name"])
        for kind, table, ids, columns in read_segment(blob, listed, model, skipped_kinds):
            missing[kind, table][ids] = False
            for array, column in zip(model[kind, table].values(), columns):
                array[ids] = column
    check(not any(rows.any() for rows in missing.values()), "the segments lack rows")
    return manifest, {name: array for arrays in model.values() for name, array in arrays.items()}


def load(folder, complain=lambda message: print(message, file=sys.stderr)):
    """The newest whole checkpoint: its manifest, and {name: array of the shape (rows, width)}."""
    for sequence, name in list_manifests(folder):
        try:
            return read_checkpoint(folder, name)
        except (Damaged, FileNotFoundError, LookupError, ValueError) as error:  # the last two: of a wrong size
            complain(f"checkpoint {sequence} is damaged: {error}")
    raise Damaged(f"no whole checkpoint is in {folder}")


def main():
    parser = argparse.ArgumentParser(description="Reads the newest whole checkpoint of a folder.")
    parser.add_argument("folder")
    parser.add_argument("--dump", metavar="OUT", help="write every array to this folder, raw")
    arguments = parser.parse_args()
    try:
        manifest, arrays = load(arguments.folder)
    except (Damaged, Unsupported) as error:
        sys.exit(f"{type(error).__name__}: {error}")
    print(f"checkpoint {manifest['sequence']}, step {manifest['step']}")
    for name, array in arrays.items():
        print(f"{name}: {array.dtype} {array.shape}")
        if arguments.dump:
            path = Path(arguments.dump, f"{name}.bin")
            path.parent.mkdir(parents=True, exist_ok=True)
            array.tofile(path)


if __name__ == "__main__":
    main()
