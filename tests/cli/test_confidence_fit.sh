#!/usr/bin/env bash
# The numbers in src/track/confidence_fit.h are those that tools/confidence/fit_confidence.py finds for the committed table.
set -uo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)
for python in python3 /usr/bin/python3 ''; do # system packages are available to the system's Python only
    [ -n "$python" ] || { echo "skipped: no Python with numpy"; exit 77; }
    "$python" -c 'import numpy' 2>/dev/null && break
done
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
fit=("$python" "$here/tools/confidence/fit_confidence.py" "$here/tools/confidence/features.csv.gz")
"${fit[@]}" --verify "$here/src/track/confidence_fit.h" >"$dir/out" || { echo "FAIL: $(cat "$dir/out")"; exit 1; }
sed 's/FIT_SLACK = -/FIT_SLACK = -1/' "$here/src/track/confidence_fit.h" >"$dir/other.h"
"${fit[@]}" --verify "$dir/other.h" >/dev/null 2>&1 && { echo "FAIL: other numbers are accepted"; exit 1; }
exit 0
