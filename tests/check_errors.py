#!/usr/bin/env python3
"""Holds the errors that a manifest states against the rows that were saved.

    check_errors.py FOLDER TRUE     TRUE/TABLE.COLUMN.bin: rows as they were at the newest save, raw

As docs/format.md defines them; the segment is read by read_checkpoint.py.
"""
import os
import sys

import numpy as np

import read_checkpoint as reader


def widened(rows, code):
    return ((rows.astype(np.uint32) << 16).view(np.float32) if code == 3 else rows).astype(np.float64)


def total(squares):
    """Element d goes to partial d mod 32, in order; then the upper half of the partials to the lower, again and again."""
    partials = np.zeros((len(squares), 32))
    for first in range(0, squares.shape[1], 32):
        block = squares[:, first:first + 32]
        partials[:, :block.shape[1]] += block
    half = 16
    while half:
        partials[:, :half] += partials[:, half:2 * half]
        half //= 2
    return partials[:, 0]


def errors_of(had, read, code):
    same = (had.view("u1").reshape(len(had), -1) == read.view("u1").reshape(len(read), -1)).all(axis=1)
    with np.errstate(all="ignore"):
        x, y = widened(had, code), widened(read, code)
        elements, changes = total(x * x), total((y - x) * (y - x))
        quotient = np.sqrt(changes / elements)
    number = np.isfinite(elements) & np.isfinite(changes) & (elements > 0)
    return np.where(same | (changes == 0), 0, np.where(number, quotient, 1))


def main():
    folder, true = sys.argv[1:]
    manifest, _ = reader.load(folder)
    (listed,) = [s for s in manifest["segments"] if s["sequence"] == manifest["sequence"]]
    model = reader.new_model(manifest)
    had = [[np.fromfile(os.path.join(true, f"{name}.bin"), array.dtype).reshape(array.shape)
            for name, array in model[reader.ROWS, i].items()] for i in range(len(manifest["tables"]))]
    every = {e["every"] for e in listed["errors"]}
    assert len(every) == 1, f"several sizes of the sample: {every}"
    (every,) = every
    measured = {}
    for kind, table, ids, columns in reader.read_segment(reader.read_blob(folder, listed["name"]), listed, model):
        if kind != reader.ROWS:
            continue
        for c, read in enumerate(columns):
            schema = manifest["tables"][table]["columns"][c]
            if schema["codec"]["id"] == 1 or schema["width"] == 1 and c == 0:
                assert np.array_equal(read.view("u1"), had[table][c][ids].view("u1")), "an exact column is not exact"
                continue
            sample = ids[::every]
            found = errors_of(had[table][c][sample], np.ascontiguousarray(read[::every]), schema["element"]["code"])
            measured.setdefault((table, c), []).append((sample, found))
    stated = {(e["table"], e["column"]): e for e in listed["errors"]}
    assert stated.keys() == measured.keys(), f"errors of other columns: {stated.keys() ^ measured.keys()}"
    for place, chunks in measured.items():
        ids, found = (np.concatenate(parts) for parts in zip(*chunks))
        e = stated[place]
        expected = (len(ids), found.max(), ids[found == found.max()].min())
        assert (e["rows"], e["largest"], e["worst_row"]) == expected, f"{place}: {e} rather than {expected}"
        assert np.isclose(e["mean"], found.mean(), rtol=1e-12, atol=0), f"{place}: {e}, mean {found.mean()}"
    print(f"{len(measured)} columns, {sum(e['rows'] for e in stated.values())} rows: errors are what the manifest states, "
          f"largest {max(e['largest'] for e in stated.values()):.3f}")


if __name__ == "__main__":
    main()
