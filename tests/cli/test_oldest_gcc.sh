#!/usr/bin/env bash
# The oldest gcc that is promised, that of Ubuntu 22.04, builds daemon and simulator, and they compute the same drive.
#   test_oldest_gcc.sh BIN_DIR
set -uo pipefail
bin=$(cd "$1" && pwd)
cd "$(dirname "$0")/../.." || exit 1
command -v gcc-11 >/dev/null || { echo "skipped: no gcc-11"; exit 77; }
dir=$(mktemp -d) && trap 'rm -rf "$dir"' EXIT
launcher=()
! command -v ccache >/dev/null || launcher=(-DCMAKE_C_COMPILER_LAUNCHER=ccache)

# Without optimisation: seconds instead of minutes, and the same bits.
CC=gcc-11 cmake -G Ninja -S . -B "$dir/build" -DCMAKE_BUILD_TYPE=None -DNDT_TESTS=OFF -DNDT_CUDA=OFF -DNDT_WERROR=ON "${launcher[@]}" >"$dir/log" 2>&1 &&
    cmake --build "$dir/build" --target ndtd ndt-sim >"$dir/log" 2>&1 ||
    { grep -m 20 -E "error|warning" "$dir/log" || tail -n 20 "$dir/log"; exit 1; }
"$dir/build/bin/ndt-sim" --seed 2 --scans 8 --beams 16 --columns 300 --map-spacing 0.4 --out "$dir/drive" >/dev/null || exit 1
for isa in baseline auto; do
    for build in "$bin" "$dir/build/bin"; do
        "$build/ndtd" --replay "$dir/drive/drive.bag" --map "$dir/drive/map.pcd" --set cpu.isa=$isa --summary "$dir/summary.json" >"$dir/log" 2>&1 ||
            { tail -n 3 "$dir/log"; exit 1; }
        grep -o '"trajectory_hash": *"[0-9a-f]*"' "$dir/summary.json"
    done
done | sort -u >"$dir/hashes" || { echo "a replay failed:"; cat "$dir/hashes" "$dir/log"; exit 1; }
[ "$(wc -l <"$dir/hashes")" = 1 ] || { echo "other poses, or none:"; cat "$dir/hashes"; exit 1; }
