#!/usr/bin/env bash
# ndt-bench: tables and JSON over a simulated drive, and what it says to wrong options.
#   test_ndt_bench.sh BIN_DIR
set -uo pipefail
bin=${1:?folder of the programs}
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
failures=0

fail() {
    echo "FAIL: $*"
    failures=$((failures + 1))
}

# expect CODE PATTERN ARGUMENTS...: exit code, and one line on standard error that matches.
expect() {
    local code=$1 pattern=$2 rc
    shift 2
    "$bin/ndt-bench" "$@" >"$dir/stdout" 2>"$dir/stderr" </dev/null
    rc=$?
    [ "$rc" = "$code" ] || fail "ndt-bench $*: exit code $rc instead of $code: $(cat "$dir/stderr")"
    if [ -z "$pattern" ]; then
        [ ! -s "$dir/stderr" ] || fail "ndt-bench $*: stderr is not empty: $(cat "$dir/stderr")"
        return
    fi
    [ "$(wc -l <"$dir/stderr")" = 1 ] || fail "ndt-bench $*: not one line: $(cat "$dir/stderr")"
    grep -qE -- "$pattern" "$dir/stderr" || fail "ndt-bench $*: '$(cat "$dir/stderr")' does not say '$pattern'"
}

says() {
    grep -qE -- "$1" "$dir/stdout" || fail "no '$1' in: $(cat "$dir/stdout")"
}

is_json() {
    if command -v python3 >/dev/null; then
        python3 -m json.tool "$1" >/dev/null || fail "$1 is not JSON"
    fi
}

"$bin/ndt-sim" --seed 2 --out "$dir/sim" --scans 12 --columns 900 --map-spacing 0.25 >/dev/null || {
    echo "FAIL: ndt-sim made no drive"
    exit 1
}
map=$dir/sim/map.pcd bag=$dir/sim/drive.bag
common=(--map "$map" --bag "$bag" --set preprocess.deskew=time --scans 4 --starts 8)

# Every combination gets its row, in the table and in the file.
expect 0 "" "${common[@]}" --points 400,800 --threads 1,2 --levels 2,4-2-1 --json "$dir/grid.json"
says '^map .*points, read in'
says '^4-2-1 +unbiased'
says '^preprocess to +400 points: median 400'
says 'times one thread'
[ "$(grep -c '^robust .* cpu ' "$dir/stdout")" -ge 8 ] || fail "fewer than 8 rows: $(cat "$dir/stdout")"
[ "$(grep -c '"variant": "robust"' "$dir/grid.json")" = 8 ] || fail "not 8 rows in the JSON"
is_json "$dir/grid.json"

# The same seed, the same starts: everything that is no time is equal, for any number of threads.
numbers() { sed -E 's/.*("recovered": [0-9]+).*("evaluations": \{[^}]*\}).*("error_m": \{[^}]*\}).*/\1 \2 \3/;t;d' "$1"; }
expect 0 "" "${common[@]}" --threads 1 --levels 2 --json "$dir/a.json"
expect 0 "" "${common[@]}" --threads 2 --levels 2 --json "$dir/b.json"
[ -n "$(numbers "$dir/a.json")" ] || fail "no figures in a.json"
[ "$(numbers "$dir/a.json")" = "$(numbers "$dir/b.json")" ] || fail "one and two threads give other figures"

# Small errors of the start are recovered on a drive whose truth is exact.
expect 0 "" "${common[@]}" --basin --offsets 0.2/1 --threads 1 --json "$dir/basin.json"
says '^robust .*0.2 m 1 deg +100.0 %'
says '^autoware +2 +radius'
is_json "$dir/basin.json"

expect 0 "" "${common[@]}" --variant robust,autoware --backend cpu,reference --points 200
says '^autoware .*reference'
expect 0 "" --map "$map" --scan "$map" "$map" --points 300 --starts 2 --pose 0,0,0,0,0,0,2
says '2 scans, 2 starts'
# One evaluation and its overheads: separate rows where there is a device, else a line that says why there are none.
expect 0 "" --map "$map" --bag "$bag" --set preprocess.deskew=time --scans 1 --overheads --threads 1 \
    --points 756,1500,60000 --json "$dir/overheads.json"
[ "$(grep -cE '^cpu +evaluation +(756|1500|60000) +[0-9.]+$' "$dir/stdout")" = 3 ] || fail "no 3 rows of the CPU: $(cat "$dir/stdout")"
says 'launch-only.* (not here: .+|[0-9.]+)$'
says 'its points are repeated, each moved by up to 2 cm'
is_json "$dir/overheads.json"
grep -q '"points": 60000, "repeated_points": true' "$dir/overheads.json" || fail "the JSON does not tell repeated points"
if [ -x "$bin/ndt-bench_emulated" ]; then
    "$bin/ndt-bench_emulated" --map "$map" --bag "$bag" --scans 1 --overheads --threads 1 --points 200 \
        --json "$dir/emulated.json" >"$dir/stdout" 2>"$dir/stderr" || fail "ndt-bench_emulated: $(cat "$dir/stderr")"
    for pipeline in staged fused resident; do
        for row in evaluation kernel-only copy-only launch-only synchronise-only; do
            says "^cuda-emulated $pipeline +$row +200 +[0-9.]+$"
        done
    done
    is_json "$dir/emulated.json"
    "$bin/ndt-bench_emulated" "${common[@]}" --starts 2 --points 200 --threads 1,2 --levels 2 \
        --backend cpu,cuda-emulated:staged,cuda-emulated:fused,cuda-emulated:resident >"$dir/stdout" 2>"$dir/stderr" ||
        fail "ndt-bench_emulated: $(cat "$dir/stderr")"
    [ "$(grep -c '^robust .*\(staged\|fused\|resident\)' "$dir/stdout")" = 3 ] || fail "no row per pipeline: $(cat "$dir/stdout")"
fi
# Batches: a row per backend and size, queued scans beside guesses, and every result the bits of the item alone.
expect 0 "" "${common[@]}" --starts 3 --points 300 --levels 2 --threads 1,2 --batch 1,3,9 --json "$dir/batch.json"
[ "$(grep -cE '^cpu .*(guess|guesses|scans) .* as one ' "$dir/stdout")" = 8 ] || fail "no 8 rows: $(cat "$dir/stdout")"
[ "$(grep -c '"of": "scans", "points": 300, "items": 3' "$dir/batch.json")" = 2 ] || fail "no scans in the JSON"
is_json "$dir/batch.json"
bits() { sed -E 's/.*("evaluations": .*)/\1/;t;d' "$dir/batch.json"; }
[ "$(bits | grep -c '"recovered": [1-9].*"same_bits": true')" = 8 ] || fail "not 8 rows that recover: $(bits)"
if [ -x "$bin/ndt-bench_emulated" ]; then
    "$bin/ndt-bench_emulated" "${common[@]}" --starts 2 --points 200 --levels 2 --threads 1 --batch 1,2 --json "$dir/batch.json" \
        --backend cpu,cuda-emulated:fused,cuda-emulated:resident,cuda-emulated:resident-block >"$dir/stdout" \
        2>"$dir/stderr" || fail "ndt-bench_emulated --batch: $(cat "$dir/stderr")"
    [ "$(grep -cE '^cuda-emulated resident.* 1\.0 .* as one ' "$dir/stdout")" = 6 ] || fail "not one launch per batch: $(cat "$dir/stdout")"
    is_json "$dir/batch.json"
    "$bin/ndt-bench_emulated" "${common[@]}" --starts 2 --basin --offsets 0.2/1 --backend cuda-emulated:resident \
        >"$dir/stdout" 2>"$dir/stderr" || fail "ndt-bench_emulated --basin: $(cat "$dir/stderr")"
    says '^robust .*0.2 m 1 deg +100.0 %'
fi
# Decoding and preprocessing by themselves: every step has its row, the modes by time only where scans have times.
expect 0 "" --front --points 700,20000 --json "$dir/front.json"
for step in decode crop 'deskew time' 'deskew azimuth' 'voxel filter' sampling whole 'whole, by times' 'whole, by azimuths'; do
    says "^ +700 +[0-9]+  $step  +-?[0-9.]+ +-?[0-9.]+ +-?[0-9.]+$"
    grep -q "\"step\": \"$step\", \"points\": 20000, .*\"synthetic\": true" "$dir/front.json" || fail "no '$step' in the JSON"
done
is_json "$dir/front.json"
expect 0 "" --front --bag "$bag" --scans 2
says '^given scans'
says 'whole, by times +[0-9.]+'
expect 0 "" --front --scan "$map" "$map"
says 'whole, by times +not here: the scans have no times'
expect 2 'front matches nothing' --front --map "$map"
expect 2 'either --points of synthetic scans, or' --front --bag "$bag" --points 100
expect 2 'batch compares backends' --map "$map" --bag "$bag" --batch 2 --overheads
expect 2 'at least one item' --map "$map" --bag "$bag" --batch 1,0
expect 2 'a number from 0 to 4096' --map "$map" --bag "$bag" --batch 5000
expect 2 'single commas' --map "$map" --bag "$bag" --batch 1,,2
expect 2 '1000 batches of each size' --map "$map" --bag "$bag" --batch 2 --starts 1001
expect 2 'front matches nothing' --front --batch 2
expect 2 "'x' is not a whole number" --front --points x
# Maps by themselves: 7 sizes x 2 threads and 9 cells; and drives over made-up tiles, of which none is left behind.
expect 0 "" --map "$map" --map-cost --json "$dir/cost.json"
[ "$(grep -c '^points ' "$dir/stdout")" = 14 ] || fail "not 14 rows of points: $(cat "$dir/stdout")"
[ "$(grep -c '^voxels ' "$dir/stdout")" = 9 ] || fail "not 9 rows of voxels: $(cat "$dir/stdout")"
is_json "$dir/cost.json"
mkdir "$dir/tmp"
TMPDIR=$dir/tmp expect 0 "" --tiles 16,25 --tile-size 20 --tile-points 500 --radius 15,30 --json "$dir/tiles.json"
[ "$(grep -c '"tiles": [0-9]' "$dir/tiles.json")" = 4 ] || fail "not 4 drives: $(cat "$dir/tiles.json")"
is_json "$dir/tiles.json"
[ -z "$(ls "$dir/tmp")" ] || fail "left behind: $(ls "$dir/tmp")"
# Files read on the way are those that came or went.
sed -nE 's/.*"moved": ([0-9]+), "reads": ([0-9]+),.*/\1 \2/p' "$dir/tiles.json" >"$dir/reads"
[ "$(awk '$1 == $2 && $1 > 0' "$dir/reads" | wc -l)" = 4 ] || fail "moved and read differ: $(cat "$dir/reads")"

expect 0 "" --help
says '^usage: ndt-bench'

expect 2 '--map is missing' --bag "$bag"
expect 2 'either --scan or --bag' --map "$map"
expect 2 'either --scan or --bag' --map "$map" --bag "$bag" --scan "$map"
expect 2 'did you mean --points' --map "$map" --bag "$bag" --pionts 3
expect 2 'its value is missing' --map "$map" --bag
expect 2 'not expected here' --map "$map" --bag "$bag" again
expect 2 'single commas' --map "$map" --bag "$bag" --levels 2,,4
expect 2 'metres/degrees' --map "$map" --bag "$bag" --basin --offsets 1
expect 2 'several only with --basin' --map "$map" --bag "$bag" --offsets 1/2,2/3
expect 2 'basin compares' --map "$map" --bag "$bag" --basin --threads 1,2
expect 2 'did you mean' --map "$map" --bag "$bag" --set ndt.level=[2]
expect 2 'ndt.levels: ' --map "$map" --bag "$bag" --levels 0.01
expect 2 'only cuda has pipelines' --map "$map" --bag "$bag" --backend cpu:fused
expect 2 'overheads takes every backend' --map "$map" --bag "$bag" --overheads --basin
expect 2 "'x' is not a whole number" --map "$map" --bag "$bag" --points x
expect 2 'quaternion' --map "$map" --scan "$map" --pose 0,0,0,0,0,0,0
expect 2 'the only one is pcl' --map "$map" --bag "$bag" --peer icp
expect 2 'a number from 0' --map "$map" --bag "$bag" --starts -1
expect 2 'matches nothing' --map "$map" --map-cost --bag "$bag"
expect 2 'of which cloud' --map-cost
expect 2 'makes its own maps' --tiles 16 --map "$map"
expect 2 'such as of 16 tiles' --tiles 15
expect 2 '--radius x: numbers above 0' --tiles 16 --radius x
expect 2 'must be above 0' --tiles 16 --tile-size 0
expect 2 'the map has' --map "$map" --map-cost --points 16777216
expect 2 'no cloud file' --map "$dir/sim" --map-cost
expect 3 'none.pcd: ' --map "$dir/none.pcd" --bag "$bag"
expect 3 'none.bag: ' --map "$map" --bag "$dir/none.bag"
expect 3 'map.pcd: ' --map "$map" --bag "$map"
expect 3 "no/x.json: " "${common[@]}" --points 200 --json "$dir/no/x.json"

[ "$failures" = 0 ] || echo "$failures failures"
[ "$failures" = 0 ]
