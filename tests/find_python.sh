#!/usr/bin/env bash
# Prints a Python 3 that has numpy and xxhash, which the independent reader of checkpoints needs; 77 if none.
for python in python3 /usr/bin/python3; do
  if "$python" -c 'import numpy, xxhash' 2>/dev/null; then
    command -v "$python"
    exit 0
  fi
done
echo "skipped: no python3 has numpy and xxhash (Debian: python3-numpy, python3-xxhash)" >&2
exit 77
