#!/usr/bin/env python3
"""The worked example at the end of docs/format.md: does read_checkpoint.py read what the page says?

    test_format_example.py                  checks it, and that no byte of it may change
    test_format_example.py --write FOLDER   writes the section anew, from a checkpoint: see golden/README.md
"""
import os
import re
import struct
import sys
import tempfile

import numpy as np

import read_checkpoint as reader

DOCUMENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "docs", "format.md")
HEADING = "## Worked example\n"


# -------------------------------------------------------------------------------------------------------- reading


def blocks_of(document):
    """The section's code blocks: first line -> the others."""
    section = document[document.index(HEADING):]
    blocks = (block.splitlines() for block in re.findall(r"```\w*\n(.*?)```", section, re.DOTALL))
    return {lines[0]: lines[1:] for lines in blocks}


def segment_bytes(lines):
    data = bytearray()
    for line in lines:
        offset, dump, _ = (field.strip() for field in line.split("|"))
        assert int(offset) == len(data), f"offset {offset} stands at {len(data)}"
        some, _, times = dump.partition(" * ")
        data += bytes.fromhex(some) * int(times or 1)
    return bytes(data)


def blobs_of(blocks):
    return {name: "".join(line.strip() for line in lines).encode() + b"\n" if name.endswith(".manifest")
            else segment_bytes(lines) for name, lines in blocks.items() if name != "values"}


def check():
    with open(DOCUMENT, encoding="utf-8") as file:
        blocks = blocks_of(file.read())
    blobs = blobs_of(blocks)
    with tempfile.TemporaryDirectory() as folder:
        for name, data in blobs.items():
            with open(os.path.join(folder, name), "wb") as file:
                file.write(data)
        found = reader.load(folder)
        values = {f"{t}.{c}": array for t, columns in found["tables"].items() for c, array in columns.items()}
        values.update(found["dense"])
        stated = {line.split()[0]: np.array(line.split()[1:], np.float32) for line in blocks["values"]}
        assert stated.keys() == values.keys(), f"{stated.keys()} are stated, {values.keys()} were read"
        for name, array in values.items():
            assert array.tobytes() == stated[name].tobytes(), f"{name} is {array}, and {stated[name]} is stated"

        # Every byte counts, and so does the length. (From memory: writing each to a file takes long.)
        for name, data in blobs.items():
            for at in range(len(data)):
                for damaged in (data[:at] + bytes([data[at] ^ 1 << at % 8]) + data[at + 1:], data[:at]):
                    reader.read_blob = lambda _, asked: damaged if asked == name else blobs[asked]
                    try:
                        reader.load(folder, complain=lambda message: None)
                    except reader.Damaged:
                        continue
                    raise AssertionError(f"byte {at} of {name} may change")
    print(f"the worked example: {sum(map(len, blobs.values()))} bytes, and every one counts")


# -------------------------------------------------------------------------------------------------------- writing


def annotate(data):
    """Yields (offset, size, meaning) for all of a segment of this example, in order."""
    at = 0

    def fields(*described):
        nonlocal at
        for size, meaning in described:
            yield at, size, meaning
            at += size

    def padding(to, meaning="padding"):
        if to > at:
            yield from fields((to - at, meaning))

    footer_at, footer_size = struct.unpack_from("<QQ", data, len(data) - 32)
    entries = list(reader.ENTRY.iter_unpack(data[footer_at + 64:footer_at + footer_size]))
    yield from fields((8, '"CHECKROW"'), (2, "size of the header"), (2, "version"), (4, "provisional"),
                      (16, "attempt id"), (4, "part"), (28, "zero"))
    for number, entry in enumerate(entries):
        position, head_size = entry[9], entry[11]
        columns = struct.unpack_from("<H", data, position + 12)[0]
        what = {reader.ROWS: "rows of table 0", reader.DENSE: "dense parameter 0"}[entry[1]]
        yield from fields(
            (4, f'chunk {number}: {what}. "CRCK"'), (2, "size of this header"), (2, "version"), (1, "kind"),
            (1, "id space: ordinal"), (1, "index kind: range"), (1, "flags"), (2, "columns"),
            (1, "size of a descriptor"), (1, "k"), (8, "feature bits"), (4, "table"), (4, "zero"),
            (8, "smallest id"), (8, "largest id"), (8, "rows"), (8, "size of the row ids"), (8, "size of the payload"),
            (8, "position"), (16, "attempt id"), (8, "hash of the payload"), (8, "hash of the head"), (16, "zero"))
        sections = []
        for i in range(columns):
            codec, bits, _, element_bytes, _, width, _, offset, size = reader.COLUMN.unpack_from(data, at)
            sections.append((codec, bits, element_bytes * width, width, offset, size))
            yield from fields((2, f"column {i}: codec"), (1, "bits"), (1, "element code: float32"),
                              (1, "bytes of an element"), (3, "zero"), (4, "width"), (4, "zero"),
                              (8, "offset of the section"), (8, "size of the section"))
        yield from padding(position + head_size, "padding; a range has no row ids")
        for i, (codec, bits, row_bytes, width, offset, size) in enumerate(sections):
            begin = position + head_size + offset
            if codec == 1:
                for r in range(size // row_bytes):
                    value, = struct.unpack_from("<f", data, at)
                    yield from fields((row_bytes, f"column {i}, element {r}: {value}"))
            else:
                exceptions = struct.unpack_from("<I", data, begin)[0]
                scale_bits, m_bits, shift, _, lowest, lowest_m = struct.unpack_from("<BBBBHh", data, begin + 16)
                yield from fields((4, f"column {i}: exceptions"), (4, "zero"), (8, "bytes of exception data"),
                                  (1, "bits of a scale field"), (1, "bits of an offset field"), (1, "shift"),
                                  (1, "zero"), (2, f"lowest scale code: {lowest}"), (2, f"lowest m: {lowest_m}"),
                                  (40, "zero"))
                stride = -(-width * bits // 8)
                for r in range(entry[8]):
                    q = int.from_bytes(data[at:at + stride], "little")
                    codes = [q >> bits * i & (1 << bits) - 1 for i in range(width)]
                    yield from fields((stride, f"row {r}: codes {', '.join(map(str, codes))}"))
                yield from padding(begin + reader.aligned(64 + entry[8] * stride))
                size_of_all = -(-entry[8] * (scale_bits + m_bits) // 8)
                packed, meanings = int.from_bytes(data[at:at + size_of_all], "little"), []
                for r in range(entry[8]):
                    f, m = packed & (1 << scale_bits) - 1, packed >> scale_bits & (1 << m_bits) - 1
                    packed >>= scale_bits + m_bits
                    meanings.append(f"row {r}: NARROW, scale code {lowest + (f - 1 << shift)}, m {lowest_m + m}" if f
                                    else f"row {r}: {('zero', 'WIDE', 'RAW')[m]}")
                yield from fields((size_of_all, "; ".join(meanings)))
                yield from padding(begin + size - exceptions * 16)
                for _ in range(exceptions):  # all are WIDE here
                    slot, offset = struct.unpack_from("<II", data, at)
                    yield from fields((8, f"exception: row {slot}, its data at {offset}"))
                for _ in range(exceptions):
                    yield from fields((8, "s %.9g, o %.9g" % struct.unpack_from("<ff", data, at)))
            yield from padding(begin + reader.aligned(size))
    yield from fields((4, 'footer. "CRFT"'), (2, "size of this header"), (2, "size of an entry"), (8, "entries"),
                      (8, "feature bits"), (16, "attempt id"), (8, "offset of the footer"), (16, "zero"))
    for number in range(len(entries)):
        yield from fields((4, f"entry {number}: table"), (1, "kind"), (1, "flags"), (2, "codec"), (1, "bits"),
                          (7, "zero"), (8, "smallest id"), (8, "largest id"), (8, "rows"), (8, "offset of the chunk"),
                          (8, "size of the chunk"), (8, "size of its head"), (8, "hash of the head"),
                          (8, "hash of the payload"))
    yield from fields((8, "trailer. Offset of the footer"), (8, "size of the footer"), (8, "hash of the footer"),
                      (8, '"CRSEGEND"'))
    assert at == len(data)


def dump(data):
    for at, size, meaning in annotate(data):
        some = data[at:at + size]
        text = f"{some[:1].hex()} * {size}" if size > 8 and len(set(some)) == 1 else some.hex(" ")
        yield f"{at:4} | {text:<23} | {meaning}"


def broken(text):
    """A manifest's line, broken after some commas: each member of the outermost object begins a line."""
    depth, line = 0, ""
    for i, c in enumerate(text):
        depth += (c in "[{") - (c in "]}")
        line += c
        if c == "," and (depth == 1 or len(line) > 90):
            yield line
            line = "  " if depth > 1 else " "
    yield line


def write(folder):
    (_, _, name), = reader.list_manifests(folder)
    manifest = reader.read_blob(folder, name)
    found = reader.load(folder)
    listed = found["manifest"]["segments"][0]["name"]
    segment = reader.read_blob(folder, listed)
    scale_bits, m_bits, shift, _, lowest, lowest_m = struct.unpack_from("<BBBBHh", segment, 272)
    fields = struct.unpack_from("<I", segment, 384)[0]
    f, m_field, q = fields & (1 << scale_bits) - 1, fields >> scale_bits & (1 << m_bits) - 1, segment[320] & 15
    scale, m = lowest + (f - 1 << shift), lowest_m + m_field
    s = struct.unpack("<f", struct.pack("<I", (scale + 15872) << 14))[0]
    arrays = {f"{t}.{c}": a for t, columns in found["tables"].items() for c, a in columns.items()} | found["dense"]
    values = (name + " " + " ".join(np.format_float_positional(x, trim="-") for x in array.ravel())
              for name, array in arrays.items())
    with open(DOCUMENT, encoding="utf-8") as file:
        before = file.read().partition("\n" + HEADING)[0]
    section = f"""
{HEADING}
A whole checkpoint, as the library has written it: one full save at step 7 of a table `users` of 3 rows x 4 float32 by
uniform<4>, with a column `adagrad`, and of a dense parameter `bias`. The program had set the weights to

    0.5  -0.25     0.125    1
    0    0         0        0
    1000 1000.001  999.999  1000.0005

the first of which are NARROW, the last are WIDE. What is read from it is

```text
values
{chr(10).join(values)}
```

For instance the first weight: its row's fields are the first {scale_bits} + {m_bits} bits at offset 384, {f} and {m_field}, so its scale code is
{lowest} + (({f} - 1) << {shift}) = {scale}, m is {lowest_m} + {m_field} = {m}, and s is {s}; its code {q} is the lower half of the byte at 320;
and (m + q*16) * (s / 16) is {(m + q * 16) * (s / 16)}.

The manifest, all in one line that ends in a newline; the other line breaks, and indents, are not there:

```text
{name}
{chr(10).join(broken(manifest.decode()[:-1]))}
```

Its segment: offset, bytes, meaning. `00 * 28` stands for 28 such bytes.

```text
{listed}
{chr(10).join(dump(segment))}
```
"""
    with open(DOCUMENT, "w", encoding="utf-8") as file:
        file.write(before + section)


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "--write":
        write(sys.argv[2])
    check()
