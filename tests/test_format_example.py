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
        _, arrays = reader.load(folder)
        values = {name.removeprefix("dense/"): array for name, array in arrays.items()}
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
        check_lies(folder, blobs)
    check_multiply_add()
    print(f"the worked example: {sum(map(len, blobs.values()))} bytes, and every one counts")


def check_multiply_add():
    """docs/format.md's example of a sum that double arithmetic would round twice: no row of a test needs it."""
    q, s, o = np.array([177]), np.array([3033169 * 2.0**-53], np.float32), np.array([1], np.float32)
    assert reader.multiply_add(q, s, o) == 1 + 2.0**-23, "q*s + o is rounded twice"


# -------------------------------------------------------------------------------------------- lies with good hashes


# A byte of the segment, what it becomes, and how the reader has to refuse that.
LIES = [
    (72, 2, "an unknown chunk"), (74, 4, "an unknown chunk"), (75, 2, "an unknown chunk"), (84, 1, "an unknown chunk"),
    (104, 3, "row ids are beyond"), (112, 2, "row ids are not"), (74, 1, "row ids are not"), (120, 65, "the head"),
    (192, 7, "codec 7"), (200, 5, "other columns"), (195, 4, "other columns"), (216, 0xcf, "a section"),
    (256, 2, "a section"), (384, 0x29, "exception data"), (384, 0x33, "exception data"), (384, 0x01, "exception data"),
    (852, 1, "features"), (840, 1, "no chunk at 576"), (1016, 0, "no chunk at 576"),
]


def check_lies(folder, blobs):
    """What a writer must not write is refused too, and no array comes of it."""
    manifest, segment = sorted(blobs, key=len)
    for at, byte, message in LIES:
        data = bytearray(blobs[segment])
        data[at] = byte
        footer_hash = hash_again(data)
        text = re.sub(rb'(?<="footer_hash":")\w+', b"%016x" % footer_hash, blobs[manifest])
        check_refusal(folder, {manifest: text, segment: bytes(data)}, message)
    text = blobs[manifest].replace(b'{"count":2,"element"', b'{"count":3,"element"')
    check_refusal(folder, {manifest: text, segment: blobs[segment]}, "lack rows")


def hash_again(data):
    """All hashes of the segment are what they should be; returns the footer's."""
    for entry in 896, 976:
        position, size, head_size = struct.unpack_from("<QQQ", data, entry + 40)
        if data[position:position + 4] == b"CRCK":
            payload_hash = reader.hash_of(bytes(data[position + head_size:position + size]))
            struct.pack_into("<QQ", data, position + 96, payload_hash, 0)
            head_hash = reader.hash_of(bytes(data[position:position + head_size]))
            struct.pack_into("<Q", data, position + 104, head_hash)
            struct.pack_into("<QQ", data, entry + 64, head_hash, payload_hash)
    footer_hash = reader.hash_of(bytes(data[832:1056]))
    struct.pack_into("<Q", data, 1072, footer_hash)
    return footer_hash


def check_refusal(folder, blobs, message):
    """The manifest's checksum is made anew."""
    texts = {name: data[:-32] for name, data in blobs.items() if name.endswith(".manifest")}
    blobs = blobs | {name: text + b',"checksum":"%016x"}\n' % reader.hash_of(text) for name, text in texts.items()}
    reader.read_blob = lambda _, asked: blobs[asked]
    complaints = []
    try:
        reader.load(folder, complain=complaints.append)
    except (reader.Damaged, reader.Unsupported) as error:
        complaints.append(str(error))
    assert any(message in complaint for complaint in complaints), f"{message!r} rather than {complaints}"


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
    entries = reader.records(data[footer_at + 64:], reader.ENTRY_FIELDS, 80, (footer_size - 64) // 80)
    yield from fields((8, '"CHECKROW"'), (2, "size of the header"), (2, "version"), (4, "provisional"),
                      (16, "attempt id"), (4, "part"), (28, "zero"))
    for number, entry in enumerate(entries):
        position, head_size = entry.offset, entry.head_size
        chunk, = reader.records(data[position:], reader.CHUNK_FIELDS, 128)
        what = {reader.ROWS: "rows of table 0", reader.DENSE: "dense parameter 0"}[chunk.kind]
        yield from fields(
            (4, f'chunk {number}: {what}. "CRCK"'), (2, "size of this header"), (2, "version"), (1, "kind"),
            (1, "id space: ordinal"), (1, "index kind: range"), (1, "flags"), (2, "columns"),
            (1, "size of a descriptor"), (1, "k"), (8, "feature bits"), (4, "table"), (4, "zero"),
            (8, "smallest id"), (8, "largest id"), (8, "rows"), (8, "size of the row ids"), (8, "size of the payload"),
            (8, "position"), (16, "attempt id"), (8, "hash of the payload"), (8, "hash of the head"), (16, "zero"))
        columns = reader.records(data[at:], reader.COLUMN_FIELDS, 32, chunk.columns)
        for i in range(len(columns)):
            yield from fields((2, f"column {i}: codec"), (1, "bits"), (1, "element code: float32"),
                              (1, "bytes of an element"), (3, "zero"), (4, "width"), (4, "zero"),
                              (8, "offset of the section"), (8, "size of the section"))
        yield from padding(position + head_size, "padding; a range has no row ids")
        for i, column in enumerate(columns):
            begin, bits, width, size = position + head_size + column.offset, column.bits, column.width, column.size
            if column.codec == reader.EXACT:  # of width 1 here
                for r in range(chunk.rows):
                    value, = struct.unpack_from("<f", data, at)
                    yield from fields((column.element_size, f"column {i}, element {r}: {value}"))
            else:
                exceptions = struct.unpack_from("<I", data, begin)[0]
                scale_bits, m_bits, shift, _, lowest, lowest_m = struct.unpack_from("<BBBBHh", data, begin + 16)
                yield from fields((4, f"column {i}: exceptions"), (4, "zero"), (8, "bytes of exception data"),
                                  (1, "bits of a scale field"), (1, "bits of an offset field"), (1, "shift"),
                                  (1, "zero"), (2, f"lowest scale code: {lowest}"), (2, f"lowest m: {lowest_m}"),
                                  (40, "zero"))
                stride = -(-width * bits // 8)
                for r in range(chunk.rows):
                    q = int.from_bytes(data[at:at + stride], "little")
                    codes = [q >> bits * i & (1 << bits) - 1 for i in range(width)]
                    yield from fields((stride, f"row {r}: codes {', '.join(map(str, codes))}"))
                yield from padding(begin + reader.aligned(64 + chunk.rows * stride))
                size_of_all = reader.bytes_for(chunk.rows * (scale_bits + m_bits))
                packed, meanings = int.from_bytes(data[at:at + size_of_all], "little"), []
                for r in range(chunk.rows):
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
    (_, name), = reader.list_manifests(folder)
    text = reader.read_blob(folder, name).decode()
    manifest, arrays = reader.load(folder)
    listed = manifest["segments"][0]["name"]
    segment = reader.read_blob(folder, listed)
    scale_bits, m_bits, shift, _, lowest, lowest_m = struct.unpack_from("<BBBBHh", segment, 272)
    fields = struct.unpack_from("<I", segment, 384)[0]
    f, m_field, q = fields & (1 << scale_bits) - 1, fields >> scale_bits & (1 << m_bits) - 1, segment[320] & 15
    scale, m = lowest + (f - 1 << shift), lowest_m + m_field
    s = struct.unpack("<f", struct.pack("<I", (scale + 15872) << 14))[0]
    values = (" ".join([name.removeprefix("dense/")] + [np.format_float_positional(x, trim="-") for x in array.ravel()])
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
{chr(10).join(broken(text[:-1]))}
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
