#!/usr/bin/env python3
"""Takes the ```cpp blocks of a Markdown file apart into C++ files that compile.

usage: snippets.py DOCUMENT FOLDER

A block that begins with #include or has a main() is a file of its own, as it is. All others of a document share
one file, after tests/snippet_preamble.hpp: each in a namespace of its own, and in a function there unless it
begins with a type, a template or a namespace. Compiler messages name the document's lines.
"""
import pathlib
import re
import sys


def blocks(text):
    """Yields (number of the block's first line, its text)."""
    start, lines = None, []
    for number, line in enumerate(text.splitlines(), 1):
        fence = line.strip()
        if start is None and fence == "```cpp":
            start, lines = number + 1, []
        elif start is not None and fence == "```":
            yield start, "\n".join(lines) + "\n"
            start = None
        elif start is not None:
            lines.append(line)
    if start is not None:
        raise SystemExit(f"the block at line {start} has no end")


def main():
    document, folder = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    name = document.stem
    shared = ['#include "snippet_preamble.hpp"\n']
    for line, code in blocks(document.read_text()):
        position = f'#line {line} "{document}"\n'
        first = next((text for text in code.splitlines() if text.strip() and not text.startswith("//")), "")
        if first.startswith("#include") or re.search(r"\bint main\(", code):
            (folder / f"{name}_{line}.cpp").write_text(position + code)
        elif re.match(r"(struct|class|template|namespace|using namespace|enum)\b", first):
            shared.append(f"namespace snippet_{line} {{\n{position}{code}}}\n")
        else:
            shared.append(f"namespace snippet_{line} {{\nvoid body() {{\n{position}{code}}}\n}}\n")
    if len(shared) > 1:
        (folder / f"{name}.cpp").write_text("".join(shared))


main()
