#!/usr/bin/env bash
# The numbers in src/search/evidence_fit.h are those that tools/evidence/fit_evidence.py finds for the committed table.
set -uo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)
for python in python3 /usr/bin/python3 ''; do # system packages are available to the system's Python only
    [ -n "$python" ] || { echo "skipped: no Python with numpy"; exit 77; }
    "$python" -c 'import numpy' 2>/dev/null && break
done
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
fit=("$python" "$here/tools/evidence/fit_evidence.py" "$here/tools/evidence/features.csv.gz")
"${fit[@]}" --verify "$here/src/search/evidence_fit.h" >"$dir/out" || { echo "FAIL: $(cat "$dir/out")"; exit 1; }
sed 's/FIT_ONE = -/FIT_ONE = -1/' "$here/src/search/evidence_fit.h" >"$dir/other.h"
"${fit[@]}" --verify "$dir/other.h" >/dev/null 2>&1 && { echo "FAIL: other numbers are accepted"; exit 1; }
exit 0
