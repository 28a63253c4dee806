#!/usr/bin/env python3
"""Reads checkrow checkpoints: a second implementation of format 1, written from docs/format.md alone.

    read_checkpoint.py FOLDER [--list] [--dump OUTDIR]

It checks everything that the page states and falls back to an older checkpoint where the newest is damaged.
As a module: load(folder) -> {"sequence", "step", "manifest", "tables": {name: {column: array}}, "dense", "states"}.
Needs numpy and xxhash (Debian: python3-numpy, python3-xxhash).
"""
import argparse
import json
import os
import re
import struct
import sys

import numpy as np
import xxhash

DTYPES = {1: "<f4", 2: "<f2", 3: "<u2", 4: "<i4", 5: "<i8", 6: "u1", 7: "<f8", 8: "<u4", 9: "<u8"}  # bfloat16: bits
QUANTISED = dict.fromkeys((2, 3, 4, 5), (2, 3, 4, 8))
ROWS, DENSE, STATE = 1, 3, 4
SEGMENT_HEADER = struct.Struct("<QHHI16sI28s")
FOOTER_HEADER = struct.Struct("<IHHQII16sQ16s")
ENTRY = struct.Struct("<IBBHB7sQQQQQQQQ")
TRAILER = struct.Struct("<QQQQ")
CHUNK_HEADER = struct.Struct("<IHHBBBBHBBIIIIQQQQQQ16sQQ16s")
COLUMN = struct.Struct("<HBBB3sIIQQ")


class Damaged(Exception):
    """This checkpoint can't be read; an older one may be."""


class Unsupported(Exception):
    """The checkpoint was written by a newer checkrow or with a user's own codec: falling back would lose work."""


def need(condition, what):
    if not condition:
        raise Damaged(what)


def dtype_of(element):
    return np.dtype(DTYPES.get(element["code"], f"V{element['bytes']}"))


def xxh3(data):
    return xxhash.xxh3_64_intdigest(data)


def aligned(size):
    return (size + 63) // 64 * 64


def need_zero(data, what):
    need(not any(data), f"{what} isn't zero")


# ------------------------------------------------------------------------------------------------------- manifest


def read_manifest(data, sequence, attempt):
    need(re.fullmatch(rb'.*,"checksum":"[0-9a-f]{16}"\}\n', data, re.DOTALL), "the manifest doesn't end in a checksum")
    need(int(data[-19:-3], 16) == xxh3(data[:-32]), "the manifest's checksum is wrong")
    manifest = json.loads(data)
    need(manifest["format"] == "checkrow", "the manifest is of another format")
    if manifest["version"] != 1 or manifest["incompatible_features"] or len(manifest["parts"]) > 1:
        raise Unsupported(f"version {manifest['version']}, features {manifest['incompatible_features']}, "
                          f"{len(manifest['parts'])} parts")
    need(manifest["sequence"] == sequence and manifest["attempt"] == attempt, "the manifest has another blob's name")
    lists = [manifest["dense"], manifest["states"], manifest["tables"]]
    for group in lists + [table["columns"][1:] for table in manifest["tables"]]:
        names = [item["name"].encode() for item in group]
        need(names == sorted(set(names)), "names are out of order")
    for listed in manifest["segments"]:
        places = [(e["table"], e["column"]) for e in listed["errors"]]
        need(places == sorted(set(places)), "errors are out of order")
        for e in listed["errors"]:
            need(e["column"] < len(manifest["tables"][e["table"]]["columns"]), "an error of no column")
            need(0 < e["rows"] <= listed["rows"] and 0 <= e["mean"] <= e["largest"] * (1 + 1e-9), "an odd error")
    return manifest


# -------------------------------------------------------------------------------------------------------- segment


def read_segment(data, listed, manifest):
    """Yields (kind, index, ids, arrays of the columns) of each chunk. `listed`: the segment in the manifest."""
    attempt = bytes.fromhex(listed["attempt"])
    need(listed["name"] == f"{listed['sequence']:012}-{listed['attempt']}-p{listed['part']:04}.segment", "odd name")
    need(len(data) == listed["bytes"], f"{len(data)} bytes rather than {listed['bytes']}")
    headers = [SEGMENT_HEADER.pack(0x574F524B43454843, 64, 1, provisional, attempt, listed["part"], bytes(28))
               for provisional in (0, 1)]
    need(data[:64] in headers, "the header is wrong")

    footer_at, footer_size, footer_hash, magic = TRAILER.unpack(data[-32:])
    need(magic == 0x444E454745535243 and footer_at + footer_size + 32 == len(data), "the trailer is wrong")
    footer = data[footer_at:-32]
    need(xxh3(footer) == footer_hash == int(listed["footer_hash"], 16), "the footer's hash is wrong")
    magic, head, size, count, _, incompatible, of_attempt, at, zero = FOOTER_HEADER.unpack_from(footer)
    need((magic, of_attempt, at) == (0x54465243, attempt, footer_at), "the footer is wrong")
    need(head >= 64 and size >= 80 and footer_size == head + size * count, "the footer has another size than its entries")
    need_zero(zero, "the end of the footer's header")
    if incompatible:
        raise Unsupported(f"segment feature bits {incompatible:#x}")

    position, rows = 64, 0
    for entry in (ENTRY.unpack_from(footer, head + size * i) for i in range(count)):
        need(entry[9] == position and entry[10] % 64 == 0, "chunks don't follow each other")
        yield read_chunk(data[position:position + entry[10]], entry, attempt, manifest)
        position += entry[10]
        rows += entry[8] if entry[1] == ROWS else 0
    need(position == footer_at, "the footer doesn't follow the last chunk")
    need(rows == listed["rows"], f"{rows} rows rather than {listed['rows']}")


def read_chunk(chunk, entry, attempt, manifest):
    table, kind, flags, codec, bits, zero, first, last, rows, position, size, head_size, head_hash, payload_hash = entry
    (magic, header_size, version, h_kind, id_space, index_kind, h_flags, columns, column_size, k, _, incompatible,
     h_table, reserved, h_first, h_last, h_rows, ids_size, payload_size, h_position, h_attempt, h_payload_hash,
     h_head_hash, end) = CHUNK_HEADER.unpack_from(chunk)
    head, payload = chunk[:head_size], chunk[head_size:]
    need(magic == 0x4B435243 and header_size >= 128 and column_size >= 32, "a chunk's header is wrong")
    need(xxh3(head[:104] + bytes(8) + head[112:]) == head_hash == h_head_hash, "the hash of a chunk's head is wrong")
    need(xxh3(payload) == payload_hash == h_payload_hash, "the hash of a chunk's payload is wrong")
    if version != 1 or incompatible or id_space != 0 or flags > 1 or kind not in (ROWS, DENSE, STATE) or index_kind > 3:
        raise Unsupported(f"chunk of version {version}, kind {kind}, id space {id_space}, flags {flags}, "
                          f"index kind {index_kind}, feature bits {incompatible:#x}")
    need((h_table, h_kind, h_flags, h_first, h_last, h_rows, h_position, h_attempt)
         == (table, kind, flags, first, last, rows, position, attempt), "a chunk and its footer entry differ")
    need_zero(zero + end + bytes([reserved != 0]), "a reserved byte")
    need(rows and len(payload) == payload_size, "a chunk's sizes are wrong")
    need(payload_size <= 1 << 20 or rows == 1, "a payload is too large")

    ids_at = aligned(header_size + column_size * columns)
    need(head_size == aligned(ids_at + ids_size), "the size of a chunk's head is wrong")
    need_zero(head[header_size + column_size * columns:ids_at] + head[ids_at + ids_size:], "padding of a chunk's head")
    ids = read_ids(index_kind, head[ids_at:ids_at + ids_size], first, last, rows)
    need(len(ids) == rows and ids[0] == first and ids[-1] == last, "row ids don't match the chunk's header")
    need(k == 255 or first >> k == last >> k, "ids lie outside the range of 2^k")

    if kind == ROWS:
        schema = manifest["tables"][table]
        expected = [(c["element"], c["width"]) for c in schema["columns"]]
        limit = schema["rows"]
    else:
        element = manifest["dense"][table]["element"] if kind == DENSE else {"code": 6, "bytes": 1}
        expected = [(element, 1)]
        limit = manifest["dense"][table]["count"] if kind == DENSE else manifest["states"][table]["bytes"]
        need(index_kind == 0 and k == 255, "dense parameters and states have ranges")
    need(columns == len(expected) and last < limit, "a chunk doesn't fit its table")

    arrays, at = [], 0
    for i, (element, width) in enumerate(expected):
        code, element_bytes = element["code"], element["bytes"]
        c_codec, c_bits, c_code, c_bytes, zero3, c_width, zero4, offset, c_size = COLUMN.unpack_from(
            head, header_size + column_size * i)
        need((c_code, c_bytes, c_width, offset) == (code, element_bytes, width, at), "a column descriptor is wrong")
        need_zero(zero3 + bytes([zero4 != 0]), "a reserved byte")
        need(i or (c_codec, c_bits) == (codec, bits), "the footer entry has another codec")
        section, at = payload[at:at + c_size], aligned(at + c_size)
        need(len(section) == c_size, "a section is cut off")
        need_zero(payload[offset + c_size:at], "padding of a payload")
        if c_codec == 1:
            need(c_bits == 0 and c_size == rows * width * element_bytes, "a section has the wrong size")
            arrays.append(np.frombuffer(section, dtype_of(element)).reshape(rows, width))
        elif c_codec >= 0x8000:
            raise Unsupported(f"a user's own codec {c_codec:#x}")
        else:
            need(kind == ROWS and (width > 1 or c_codec == 6), "only rows of several elements are quantised")
            if c_codec == 6:
                need(c_bits == 16 and (code, element_bytes) == (1, 4), "two bytes of something else")
                need(c_size == rows * width * 2, "a section has the wrong size")
                upper = np.frombuffer(section, "<u2").astype(np.uint32) << 16
                arrays.append(upper.view(np.float32).reshape(rows, width))
                continue
            need((code, element_bytes) in ((1, 4), (2, 2), (3, 2)), "elements that can't be quantised")
            need(c_bits in QUANTISED.get(c_codec, ()), f"unknown codec {c_codec} with {c_bits} bits")
            arrays.append(read_quantised(section, c_codec, c_bits, rows, width, code))
    need(at == payload_size, "the payload has another size than its sections")
    return kind, table, ids, arrays


def read_ids(kind, data, first, last, rows):
    need(first <= last, "ids are out of order")
    if kind == 0:  # range
        need(len(data) == 0, "a range has bytes")
        return np.arange(first, last + 1)
    if kind == 1:  # bitmap
        need(len(data) == (last - first) // 8 + 1, "a bitmap has the wrong size")
        return first + np.flatnonzero(bits_of(data))
    if kind == 2:  # gaps
        values = read_rice(data[1:], np.full(rows - 1, data[0]))
        return first + np.concatenate([[0], np.cumsum(values + 1)])
    length_k, gap_k, runs = struct.unpack_from("<BBI", data)
    need(0 < runs <= rows <= 1 << 20, "more ids than runs may have")
    values = read_rice(data[6:], np.array([length_k, gap_k] * runs)[:-1])
    lengths, gaps = values[0::2] + 1, values[1::2] + 2
    begins = first + np.concatenate([[0], np.cumsum(lengths[:-1] - 1 + gaps)])
    need(lengths.sum() == rows, "runs have another number of ids")
    return np.concatenate([np.arange(begin, begin + length) for begin, length in zip(begins, lengths)])


def bits_of(data):
    return np.unpackbits(np.frombuffer(data, "u1"), bitorder="little")


def read_fields(bits, begins, sizes):
    """Unsigned integers of sizes[i] bits from bits[begins[i]] on."""
    sizes = np.broadcast_to(sizes, np.shape(begins))
    values = np.zeros(len(begins), np.int64)
    for i in range(int(sizes.max(initial=0))):
        has = sizes > i
        values[has] |= bits[begins[has] + i].astype(np.int64) << i
    return values


def read_rice(data, ks):
    """Values with those k."""
    need(ks.max(initial=0) <= 32, "k is too large")
    ks = ks.astype(np.int64)
    lower_bytes = (int(ks.sum()) + 7) // 8
    need(lower_bytes <= len(data), "Rice codes are cut off")
    upper, lower = bits_of(data[:len(data) - lower_bytes]), bits_of(data[len(data) - lower_bytes:])
    need(not lower[int(ks.sum()):].any(), "unused bits of lower parts aren't zero")
    ones = np.flatnonzero(upper)
    need(len(ones) == len(ks) and (len(ones) + 7) // 8 <= len(upper) // 8, "Rice codes of another number of values")
    need(len(upper) == (int(ones[-1]) // 8 + 1) * 8 if len(ones) else not len(upper), "unused bytes of upper parts")
    zeros = np.diff(ones, prepend=-1) - 1
    return (zeros << ks) + read_fields(lower, np.cumsum(ks) - ks, ks)


def read_quantised(section, codec, bits, rows, width, element):
    stride, qm = -(-width * bits // 8), (1 << bits) - 1
    exceptions, zero, extra, scale_bits, offset_bits, shift, zero1, lowest_scale, lowest_m, zero40 = \
        struct.unpack_from("<IIQBBBBHh40s", section)
    parameters_at = aligned(64 + rows * stride)
    parameters_bits = rows * (scale_bits + offset_bits)
    parameters_end = parameters_at + -(-parameters_bits // 8)
    directory_at = aligned(parameters_end)
    extra_at = directory_at + 8 * exceptions
    need(zero == 0 and zero1 == 0 and scale_bits <= 16 and offset_bits <= 16 and scale_bits + shift <= 17,
         "a quantised section's header is wrong")
    need(scale_bits == 0 or lowest_scale > 0, "there is no scale code 0")
    need(len(section) == extra_at + extra, "a quantised section has the wrong size")
    need_zero(zero40 + section[64 + rows * stride:parameters_at] + section[parameters_end:directory_at], "padding")

    fields = bits_of(section[parameters_at:parameters_end])
    need(not fields[parameters_bits:].any(), "unused bits of parameters aren't zero")
    begins = np.arange(rows) * (scale_bits + offset_bits)
    f, m = read_fields(fields, begins, scale_bits), read_fields(fields, begins + scale_bits, offset_bits)
    narrow = f > 0
    need(np.all(narrow | (m <= 2)), "a row of unknown class")
    wide, raw = ~narrow & (m == 1), ~narrow & (m == 2)
    scale = np.where(narrow, lowest_scale + ((f - 1) << shift), 0)
    m = np.where(narrow, lowest_m + m, 0)
    grid = 8 if bits == 8 else 16
    need(np.all(scale <= 65535), "a scale code is too large")
    limit = 32767 if element != 1 else (1 << 14) - qm * grid
    need(np.all(abs(m) <= (0 if codec == 3 else limit)), "an offset is too large")
    slots = np.frombuffer(section, "u1", rows * stride, 64).reshape(rows, stride)
    unpacked = np.unpackbits(slots, axis=1, bitorder="little")
    need(not unpacked[:, width * bits:].any(), "unused bits of codes aren't zero")
    q = unpacked[:, :width * bits].reshape(rows, width, bits) @ (1 << np.arange(bits))

    # All rows as NARROW ones first; a float32's products and sums below are exact in double.
    if element != 1:
        y = small_elements(q, scale, m, codec, qm, element)
    else:
        y = float_elements(q, scale, m, codec, qm, grid)

    need(codec != 3 and element == 1 or not wide.any(), "a row that can't be WIDE is")
    y[~narrow] = 0
    need(not slots[~narrow & ~wide].any(), "a zero or RAW row has codes")
    directory = np.frombuffer(section, "<u4", 2 * exceptions, directory_at).reshape(-1, 2)
    need(np.array_equal(directory[:, 0], np.flatnonzero(wide | raw)), "the directory of exceptions is wrong")
    at = 0
    for slot, offset in directory.tolist():
        need(offset == at, "exception data doesn't follow each other")
        floats = np.frombuffer(section, "<f4" if wide[slot] else y.dtype, 2 if wide[slot] else width, extra_at + offset)
        y[slot] = q[slot] * np.float64(floats[0]) + np.float64(floats[1]) if wide[slot] else floats
        at += floats.nbytes
    need(at == extra, "exception data has another size")
    return y


def float_elements(q, scale, m, codec, qm, grid):
    s = ((scale + 15872) << 14).astype(np.uint32).view(np.float32).astype(np.float64)
    if codec == 3:
        y = (2 * q - qm) * (s / 2)[:, None]
    else:
        y = (m[:, None] + q * grid) * (s / grid)[:, None]
    return y.astype(np.float32)


def small_elements(q, scale, m, codec, qm, element):
    def value_of(order):
        bits = np.where(order >= 32768, order - 32768, 65535 - order).astype(np.uint16)
        return bits.view(np.float16).astype(np.float32) if element == 2 else (bits.astype(np.uint32) << 16).view(np.float32)
    high = value_of(scale)
    low = -high if codec == 3 else value_of(m + 32768)
    with np.errstate(all="ignore"):  # rows that aren't NARROW have parameters of no meaning
        s = (high - low) * (np.float32(1) / np.float32(qm))
        # fma: the product is exact in double; its sum with low is rounded to odd, so that rounding to float32 is the only one.
        product, addend = q * s.astype(np.float64)[:, None], low.astype(np.float64)[:, None]
        total = product + addend
        part = total - product
        error = (product - (total - part)) + (addend - part)
        bits = total.view(np.int64)
        away = np.where((error > 0) == (total > 0), 1, -1)
        y = np.where((error != 0) & (bits & 1 == 0), bits + away, bits).view(np.float64).astype(np.float32)
        if element == 2:
            return (y.astype(np.float16) + np.float16(0)).astype("<f2")
        bits = y.view(np.uint32)
        rounded = ((bits.astype(np.uint64) + 0x7FFF + (bits >> 16 & 1)) >> 16).astype("<u2")
        return np.where(rounded == 0x8000, 0, rounded).astype("<u2")


# ----------------------------------------------------------------------------------------------------- checkpoint


def list_manifests(folder):
    """(sequence, attempt, name), the newest first."""
    matches = (re.fullmatch(r"(\d{12,})-([0-9a-f]{32})\.manifest", name) for name in os.listdir(folder))
    return sorted(((int(m[1]), m[2], m[0]) for m in matches if m), reverse=True)


def read_blob(folder, name):
    with open(os.path.join(folder, name), "rb") as file:
        return file.read()


def load_one(folder, sequence, attempt, name):
    try:
        where = "manifest"
        manifest = read_manifest(read_blob(folder, name), sequence, attempt)
        tables = [[np.zeros((t["rows"], c["width"]), dtype_of(c["element"])) for c in t["columns"]]
                  for t in manifest["tables"]]
        dense = [[np.zeros((d["count"], 1), dtype_of(d["element"]))] for d in manifest["dense"]]
        states = [[np.zeros((s["bytes"], 1), "u1")] for s in manifest["states"]]
        items = {ROWS: tables, DENSE: dense, STATE: states}
        filled = {(kind, i): 0 for kind in (DENSE, STATE) for i in range(len(items[kind]))}
        for listed in manifest["segments"]:
            where = listed["name"]
            own = listed["sequence"] == sequence
            written = [np.zeros(t["rows"], bool) for t in manifest["tables"]]
            for kind, index, ids, arrays in read_segment(read_blob(folder, where), listed, manifest):
                if kind == ROWS:
                    need(not written[index][ids].any(), "a segment has a row twice")
                    written[index][ids] = True
                elif own:
                    need(filled[kind, index] == ids[0], "dense parameters or states have a gap")
                    filled[kind, index] = int(ids[-1]) + 1
                else:
                    continue  # dense parameters and states of an older save
                for array, values in zip(items[kind][index], arrays):
                    array[ids] = values
            need(not listed["full"] or all(w.all() for w in written), "a full segment lacks rows")
        where = "segments"
        need(all(n == len(items[kind][i][0]) for (kind, i), n in filled.items()), "dense parameters or states are cut")
    except Damaged as error:
        raise Damaged(f"{where}: {error}") from None
    except (OSError, LookupError, TypeError, ValueError, AttributeError, ArithmeticError, MemoryError,
            struct.error) as error:
        raise Damaged(f"{where}: {type(error).__name__}: {error}") from error
    return {
        "sequence": sequence, "step": manifest["step"], "manifest": manifest,
        "tables": {t["name"]: {c["name"]: a for c, a in zip(t["columns"], arrays)}
                   for t, arrays in zip(manifest["tables"], tables)},
        "dense": {d["name"]: a[0][:, 0] for d, a in zip(manifest["dense"], dense)},
        "states": {s["name"]: a[0].tobytes() for s, a in zip(manifest["states"], states)},
    }


def load(folder, complain=lambda message: print(message, file=sys.stderr)):
    for sequence, attempt, name in list_manifests(folder):
        try:
            return load_one(folder, sequence, attempt, name)
        except Damaged as error:
            complain(f"checkpoint {sequence} is damaged: {error}")
    raise Damaged(f"no whole checkpoint in {folder}")


def main():
    parser = argparse.ArgumentParser(description="Reads checkrow checkpoints (format 1).")
    parser.add_argument("folder")
    parser.add_argument("--list", action="store_true", help="list all checkpoints and whether they are whole")
    parser.add_argument("--dump", metavar="OUTDIR", help="write every column, dense parameter and state, raw")
    arguments = parser.parse_args()
    if arguments.list:
        for sequence, attempt, name in list_manifests(arguments.folder):
            try:
                manifest = load_one(arguments.folder, sequence, attempt, name)["manifest"]
                print(f"{sequence}: step {manifest['step']}, {'full' if manifest['full'] else 'delta'}, "
                      f"{len(manifest['segments'])} segments, {sum(s['bytes'] for s in manifest['segments'])} bytes")
            except (Damaged, Unsupported) as error:
                print(f"{sequence}: {error}")
        return
    try:
        checkpoint = load(arguments.folder)
    except (Damaged, Unsupported, OSError) as error:
        sys.exit(str(error))
    files = {f"{t}.{c}": a for t, columns in checkpoint["tables"].items() for c, a in columns.items()}
    files.update((f"dense/{name}", a) for name, a in checkpoint["dense"].items())
    files.update((f"states/{name}", np.frombuffer(s, "u1")) for name, s in checkpoint["states"].items())
    print(f"checkpoint {checkpoint['sequence']}, step {checkpoint['step']}")
    for name, array in files.items():
        print(f"{name}: {array.dtype} {list(array.shape)}")
        if arguments.dump:
            path = os.path.join(arguments.dump, name + ".bin")
            os.makedirs(os.path.dirname(path), exist_ok=True)
            array.tofile(path)


if __name__ == "__main__":
    main()
