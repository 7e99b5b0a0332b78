#!/usr/bin/env bash
# Recordings and maps of earlier versions: what each of them wrote is read, and localised to the same poses.
#   test_kept.sh BIN_DIR
# tests/kept/MAJOR.MINOR/ has drive.bag.gz and map.pcd.gz of ndt-sim, and poses.tum of ndtd --replay. A release of a new
# MAJOR.MINOR adds its own; none is made again.
set -uo pipefail
bin=$(cd "${1:?BIN_DIR}" && pwd)
source "$(dirname "$0")/steps.sh"
kept=$(cd "$(dirname "$0")/../kept" && pwd)
minor=$("$bin/ndtd" --version | sed -n 's/^ndtd \([0-9]*\.[0-9]*\)\..*/\1/p')
[ -e "$kept/$minor" ] || fail "tests/kept has no files of version $minor"
for folder in "$kept"/*/; do
    version=$(basename "$folder")
    for file in drive.bag map.pcd; do gunzip -c "$folder/$file.gz" >"$dir/$file" || fail "$version: $file"; done
    "$bin/ndtd" --replay "$dir/drive.bag" --map "$dir/map.pcd" --max-untrusted 0 --out "$dir/poses.tum" >"$dir/log" 2>&1 ||
        fail "$version: $(tail -n 1 "$dir/log")"
    # Stamps are the same; positions within 1 cm: bits may change between minor versions.
    paste -d ' ' <(grep -v '^#' "$folder/poses.tum") <(grep -v '^#' "$dir/poses.tum") | awk '
        NF != 16 || $1 != $9 || ($2 - $10) ^ 2 + ($3 - $11) ^ 2 + ($4 - $12) ^ 2 > 1e-4 { print "line " NR ": " $0; wrong = 1 }
        END { exit wrong || NR == 0 }' >"$dir/differences" || fail "$version: $(head -n 1 "$dir/differences")"
    "$bin/ndt-bag" info "$dir/drive.bag" >"$dir/log" 2>&1 || fail "$version: ndt-bag info: $(tail -n 1 "$dir/log")"
done
[ "$failures" = 0 ] && echo "files of $(find "$kept" -mindepth 1 -maxdepth 1 | wc -l) version: read, and localised as they were"
exit $((failures > 0))
