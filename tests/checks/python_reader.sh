#!/usr/bin/env bash
# The Python reader, written from docs/format.md alone, reads byte for byte what the library restores, and finds
# the errors that manifests state.
# Argument: the path of a built reader_oracle; else it is compiled here.
. "$(dirname "$0")/common.sh"

python=${PYTHON:-$(bash tests/find_python.sh 2>/dev/null)} ||
  skip "no python3 has numpy and xxhash (Debian: python3-numpy, python3-xxhash)"
export PYTHONDONTWRITEBYTECODE=1

oracle=${1:-}
if [ -z "$oracle" ]; then
  oracle=$scratch/reader_oracle
  "${compile[@]}" -O1 tests/reader_oracle.cpp -o "$oracle" || fail "tests/reader_oracle.cpp does not compile"
fi

compared=0
for strategy in full one_shot consecutive intermittent; do
  here=$scratch/$strategy
  "$oracle" "$here/blobs" "$here/library" "$here/saved" "$strategy" || fail "the library does not restore ($strategy)"
  "$python" tests/read_checkpoint.py "$here/blobs" --dump "$here/python" >"$here/log" 2>&1 ||
    { cat "$here/log" && fail "the Python reader does not read it ($strategy)"; }
  if grep damaged "$here/log"; then fail "the Python reader takes it for damaged ($strategy)"; fi
  diff -rq "$here/library" "$here/python" || fail "the library and the Python reader differ ($strategy)"
  "$python" tests/check_errors.py "$here/blobs" "$here/saved" || fail "the manifest states other errors ($strategy)"
  compared=$((compared + $(find "$here/library" -type f | wc -l)))
  rm -rf "$here"
done

"$python" tests/read_checkpoint.py tests/golden/format1-provisional/blobs >"$scratch/log" 2>&1 && grep -q '^checkpoint 1, step 7$' "$scratch/log" ||
  { cat "$scratch/log" && fail "a checkpoint from before the freeze cannot be read"; }
golden=tests/golden/format1
"$python" tests/read_checkpoint.py "$golden/blobs" --dump "$scratch/golden" >/dev/null || fail "$golden cannot be read"
diff -rq "$golden/expected" "$scratch/golden" || fail "$golden and the Python reader differ"

# The newest damaged: the older one, and why.
cp -r "$golden/blobs" "$scratch/damaged"
truncate -s -1 "$scratch"/damaged/000000000002-*.segment
"$python" tests/read_checkpoint.py "$scratch/damaged" >"$scratch/log" 2>&1 || fail "no fallback"
grep -q '^checkpoint 1, step 1$' "$scratch/log" && grep -q 'checkpoint 2 is damaged: .* bytes rather than' "$scratch/log" ||
  { cat "$scratch/log" && fail "the fallback is not what it should be"; }

"$python" tests/test_format_example.py || fail "the worked example of docs/format.md"
echo "$compared columns, dense parameters and states of four strategies are the same"
