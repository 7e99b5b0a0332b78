#!/usr/bin/env bash
# The numbers of the two fits in C headers are those that tools/dev/fits/fit.py finds for the committed tables.
set -uo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)
for python in python3 /usr/bin/python3 ''; do # system packages are available to the system's Python only
    [ -n "$python" ] || { echo "skipped: no Python with numpy"; exit 77; }
    "$python" -c 'import numpy' 2>/dev/null && break
done
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT

# check MODEL HEADER: it has the numbers of the fit, and one with other numbers is found out
check() {
    local fit=("$python" "$here/tools/dev/fits/fit.py" "$1" "$here/tools/dev/fits/$1.csv.gz")
    "${fit[@]}" --verify "$here/$2" >"$dir/out" || { echo "FAIL: $(cat "$dir/out")"; exit 1; }
    sed 's/FIT_ONE = -/FIT_ONE = -1/' "$here/$2" >"$dir/other.h"
    "${fit[@]}" --verify "$dir/other.h" >/dev/null 2>&1 && { echo "FAIL: $1: other numbers are accepted"; exit 1; }
}

check confidence src/track/confidence_fit.h
check hypothesis src/search/hypothesis_fit.h
exit 0
