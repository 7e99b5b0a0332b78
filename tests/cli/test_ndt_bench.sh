#!/usr/bin/env bash
# ndt-bench: tables and JSON over a simulated drive, and its errors for wrong options.
#   test_ndt_bench.sh BIN_DIR
set -uo pipefail
bin=${1:?folder of the programs}
source "$(dirname "$0")/steps.sh"
program=$bin/ndt-bench

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
common=(--map "$map" --bag "$bag" --set preprocess.deskew=time --scans 4 --rounds 8)

# Every combination gets its row, in the table and in the file.
expect 0 "" align "${common[@]}" --points 400,800 --threads 1,2 --levels 2,4-2-1 --json "$dir/grid.json" --markdown "$dir/grid.md"
says "map.pcd +[0-9]+ +[0-9.]+ +4 +8 +1$"
says '^4-2-1 +unbiased'
says '^ +400 +400 +[0-9.]+ +[0-9]+'
says 'times one thread'
[ "$(grep -c '^robust .* cpu ' "$dir/stdout")" = 8 ] || fail "not 8 rows: $(cat "$dir/stdout")"
[ "$(grep -c '"variant": "robust"' "$dir/grid.json")" = 8 ] || fail "not 8 rows in the JSON"
[ "$(grep -c '^| robust | ' "$dir/grid.md")" = 8 ] || fail "not 8 rows in the Markdown"
awk -F'|' '/^\|/ { if (NF != columns && columns) exit 1; columns = NF; next } { columns = 0 }' "$dir/grid.md" ||
    fail "rows of different length: $(cat "$dir/grid.md")"
is_json "$dir/grid.json"

# The same seed, the same starts: everything except the times is equal, for any number of threads.
numbers() { sed -nE 's/.*("success_percent": [0-9.]+).*("evaluations": [0-9.]+).*("hash": "[0-9a-f]+").*/\1 \2 \3/p' "$1"; }
expect 0 "" align "${common[@]}" --threads 1 --levels 2 --json "$dir/a.json"
expect 0 "" align "${common[@]}" --threads 2 --levels 2 --json "$dir/b.json"
[ -n "$(numbers "$dir/a.json")" ] || fail "no figures in a.json"
[ "$(numbers "$dir/a.json")" = "$(numbers "$dir/b.json")" ] || fail "one and two threads give other figures"

# Small errors of the start are recovered on a drive whose truth is exact, and on the synthetic street.
expect 0 "" basin "${common[@]}" --offsets 0.2/1,0.3/1 --threads 1 --json "$dir/basin.json"
says '^robust .*0.2 m 1 deg .* 100.0 '
[ "$(grep -cE '^autoware +2 +radius' "$dir/stdout")" = 2 ] || fail "not 2 rows of autoware: $(cat "$dir/stdout")"
is_json "$dir/basin.json"
expect 0 "" align --rounds 10 --points 756 --threads 1 --levels 2,4-2-1
says 'synthetic street'
[ "$(grep -c '^robust .* 756 .* 100\.0 ' "$dir/stdout")" = 2 ] || fail "the street is not recovered: $(cat "$dir/stdout")"

expect 0 "" align "${common[@]}" --variant robust,autoware --backend cpu,reference --points 200
says '^autoware .*reference'
expect 0 "" align --map "$map" --scan "$map" "$map" --points 300 --rounds 2 --pose 0,0,0,0,0,0,1
says 'map.pcd .* 2 +2 +1$'

# Where the time of an alignment goes.
expect 0 "" evaluations --levels 2 --points 300 --threads 1 --rounds 3 --json "$dir/evaluations.json"
grep -q '"per_evaluation_us": ' "$dir/evaluations.json" || fail "no slope: $(cat "$dir/evaluations.json")"
expect 2 'give one level' evaluations --rounds 1

# A drive, twice, next to the first backend: the same bits.
expect 0 "" drive --map "$map" --bag "$bag" --set preprocess.deskew=time --points 400 --backend cpu --threads 1,2 --json "$dir/drive.json"
[ "$(grep -c '"verdict": "ok".*"off_mm": 0,' "$dir/drive.json")" = 2 ] || fail "not 2 rows: $(cat "$dir/drive.json")"

# One evaluation and its overheads: columns of their own where there is a device, else a line that says why there are none.
expect 0 "" overheads --map "$map" --bag "$bag" --set preprocess.deskew=time --threads 1 --backend cpu \
    --neighbours radius,direct7 --points 756,1500,60000 --rounds 21 --json "$dir/overheads.json"
[ "$(grep -cE '^robust .* cpu .* (756|1500|60000) .*[0-9.]+$' "$dir/stdout")" = 6 ] || fail "no 6 rows of the CPU: $(cat "$dir/stdout")"
says 'its points are repeated, each moved by up to 2 cm'
says 'no backend on a device was measured'
is_json "$dir/overheads.json"
grep -q '"points": 60000, "repeated_points": true' "$dir/overheads.json" || fail "the JSON does not mark repeated points"
expect 77 "" overheads --backend cpu --points 100 --rounds 3 --need-device
says '^0 rows of a device: none works here'

# Batches: a row per backend and size, queued scans beside guesses, and every result the bits of the item alone.
expect 0 "" batch "${common[@]}" --rounds 3 --points 300 --levels 2 --threads 1,2 --sizes 1,3,9 --json "$dir/batch.json"
[ "$(grep -cE '^robust .* cpu .*(guesses|scans) .* true$' "$dir/stdout")" = 8 ] || fail "no 8 rows: $(cat "$dir/stdout")"
[ "$(grep -c '"points": 300, "items": 3, "of": "scans"' "$dir/batch.json")" = 2 ] || fail "no scans in the JSON"
is_json "$dir/batch.json"
[ "$(grep -c '"recovered": [1-9].*"same_bits": true' "$dir/batch.json")" = 8 ] || fail "not 8 rows that recover: $(cat "$dir/batch.json")"

# Poses and covariances of a drive next to the truth: a row per axis, every result in the JSON, the same figures again.
consistency=(--map "$map" --bag "$bag" --set preprocess.deskew=time --seeds 2)
expect 0 "" consistency "${consistency[@]}" --json "$dir/consistency.json" --markdown "$dir/consistency.md"
says '^ +2 +12 +[0-9.]+ .* converged 24$'
[ "$(grep -cE '^(along|across|up|roll|pitch|yaw) +(cm|deg) ' "$dir/stdout")" = 6 ] || fail "not 6 axes: $(cat "$dir/stdout")"
says '^pooled .* [0-9.]+ +[0-9.]+ +[0-9.]+$'
says '^confidence +0.500 +24 +100.00 +0 +-$'
says '^score +0.350 +24 +100.00 +0 +-$'
! grep -q '^Results' "$dir/stdout" || fail "every result is printed"
[ "$(grep -c '"seed": 2, .*"sigma_yaw": ' "$dir/consistency.json")" = 12 ] || fail "not 12 results: $(cat "$dir/consistency.json")"
is_json "$dir/consistency.json"
cp "$dir/stdout" "$dir/first"
expect 0 "" consistency "${consistency[@]}" --set cpu.threads=2
cmp -s "$dir/stdout" "$dir/first" || fail "two threads give other figures"
expect 0 "" consistency "${consistency[@]}" --set estimator.floor_m=0.05 --set estimator.floor_deg=1
says '^along +cm .* 100.0 +100.0 +100.0$'
expect 2 '--bag' consistency --map "$map"

expect 3 'none.bag: ' consistency --map "$map" --bag "$dir/none.bag"

# Scans that wait: a row per size; some are aligned ahead, the outcomes and nearly the poses are those of one after the other.
drain=(--map "$map" --bag "$bag" --set preprocess.deskew=time --set backend.name=cpu)
expect 0 "" drain "${drain[@]}" --set cpu.threads=2 --sizes 2,3 --json "$dir/drain.json"
[ "$(grep -cE '"waiting": [23], .*"ahead": [1-9].*"other_outcomes": 0, "converged": 12, "converged_alone": 12' "$dir/drain.json")" = 2 ] ||
    fail "not 2 rows: $(cat "$dir/drain.json")"
is_json "$dir/drain.json"
awk -F'"off_mm": ' '/"off_mm"/ && $2 + 0 > 50 {exit 1}' "$dir/drain.json" || fail "far apart: $(cat "$dir/drain.json")"
expect 0 "" drain "${drain[@]}" --set cpu.threads=1 --sizes 3 --json "$dir/drain.json"
grep -q '"ahead": 0, "same_bits": 12, ' "$dir/drain.json" || fail "one thread aligns ahead: $(cat "$dir/drain.json")"
expect 2 'at most 8 scans' drain "${drain[@]}" --sizes 9
expect 2 '--bag' drain --map "$map"

# Settings against each other, by name and by option.
expect 0 "" compare list
says '^vector-width +cpu.isa '
expect 0 "" compare --rounds 3 --points 200 threads ndt.neighbours=radius,direct7
says '^threads .* 4 threads .* (faster|slower|no difference)$'
says '^settings +ndt.neighbours +direct7 '
expect 0 "" compare --rounds 3 --points 200 vector-width --json "$dir/compare.json"
says '^vector-width: neon is not here: |^vector-width: avx2 is not here'
is_json "$dir/compare.json"
expect 2 "there is no 'nonsense'" compare nonsense
expect 2 'did you mean' compare cpu.thread=1,2
expect 2 'needs an EXPERIMENT' compare
expect 0 '' compare --rounds 3 --points 200 'ndt.levels=[2.0],[4.0,2.0,1.0]'
says '^settings +ndt.levels +\[4.0,2.0,1.0\] '

# The emulated device.
if [ -x "$bin/ndt-bench_emulated" ]; then
    emulated() {
        "$bin/ndt-bench_emulated" "$@" >"$dir/stdout" 2>"$dir/stderr" || fail "ndt-bench_emulated $*: $(cat "$dir/stdout" "$dir/stderr")"
    }
    devices=cuda-emulated:staged,cuda-emulated:fused,cuda-emulated:resident
    emulated overheads --map "$map" --bag "$bag" --threads 1 --points 200 --rounds 3 --need-device --wait spin
    says '^robust .* cuda-emulated fused +200 +false( +[0-9.]+){4} +-( +[0-9.]+){6}$'
    emulated overheads --map "$map" --bag "$bag" --threads 1 --points 200 --rounds 3 --need-device --kernel-times
    for pipeline in staged fused resident; do
        says "^robust .* cuda-emulated $pipeline +200 +false( +[0-9.]+){11}$"
    done
    ! grep -q 'resident-' "$dir/stdout" || fail "evaluations of every resident pipeline: $(cat "$dir/stdout")"
    emulated search --map "$map" --bag "$bag" --scans 1 --tier quick --backend cpu --csv "$dir/cpu.csv"
    emulated search --map "$map" --bag "$bag" --scans 1 --tier quick --backend cuda-emulated --csv "$dir/cuda.csv"
    cmp -s <(cut -d, -f1-15,17- "$dir/cpu.csv") <(cut -d, -f1-15,17- "$dir/cuda.csv") || fail "a search on a device differs"
    emulated align "${common[@]}" --rounds 2 --points 200 --threads 1,2 --levels 2 --backend cpu,$devices,cuda-emulated:resident-graph
    [ "$(grep -c '^robust .*\(staged\|fused\|resident\)' "$dir/stdout")" = 4 ] || fail "no row per pipeline: $(cat "$dir/stdout")"
    [ "$(grep -c '^robust .*resident.* true$' "$dir/stdout")" = 2 ] || fail "other bits: $(cat "$dir/stdout")"
    emulated batch "${common[@]}" --rounds 2 --points 200 --levels 2 --threads 1 --sizes 1,2 --json "$dir/batch.json" \
        --backend cpu,cuda-emulated:fused,cuda-emulated:resident,cuda-emulated:resident-block
    [ "$(grep -cE '^robust .*cuda-emulated resident.* 1\.0 .* true$' "$dir/stdout")" = 6 ] || fail "not one launch per batch: $(cat "$dir/stdout")"
    is_json "$dir/batch.json"
    emulated basin "${common[@]}" --rounds 2 --offsets 0.2/1 --backend cuda-emulated:resident
    says '^robust .*0.2 m 1 deg .* 100.0 '
fi

# Features of alignments: one line for each, the same bytes again, the truth in agreement with the errors.
features=(confidence --map "$map" --bag "$bag" --set preprocess.deskew=time --scans 3 --offsets "0.3/1,8/90")
expect 0 "" "${features[@]}" --threads 1 --rounds 2 --csv "$dir/features.csv"
says '^0.3 m 1 deg +0.000 +6 +100.0'
expect 0 "" "${features[@]}" --threads 2 --rounds 2 --csv "$dir/again.csv"
cmp -s "$dir/features.csv" "$dir/again.csv" || fail "two runs of confidence differ"
awk -F, 'NR == 1 {for (i = 1; i <= NF; i++) at[$i] = i; next}
    {rows++; right = $at["error_m"] <= 0.5 && $at["error_deg"] <= 3; if (right != $at["right"] || NF != length(at)) exit 1
     sum[right] += $at["confidence"]; count[right]++}
    END {if (rows != 36 || sum[1] / count[1] < 0.6 || sum[0] / count[0] > 0.3) exit 1}' "$dir/features.csv" ||
    fail "features: $(cat "$dir/features.csv")"
expect 0 "" "${features[@]}" --priors 0 --elsewhere --csv "$dir/elsewhere.csv"
! grep -q ',1,[0-9.]*$' "$dir/elsewhere.csv" || fail "right in the map of another place: $(cat "$dir/elsewhere.csv")"

# Options without a command belong to align; there are no options in place of commands.
expect 0 "" "${common[@]}" --rounds 2 --points 200
says '^Alignments'
for option in --basin --overheads --batch --front --map-cost; do
    expect 2 "$option: align has no such option" $option
done

# Every scan is found without a pose, in the whole map and in a window, with equal figures for any threads and variant.
search=(search --map "$map" --bag "$bag")
expect 0 "" "${search[@]}" --csv "$dir/one.csv" --threads 1 --json "$dir/search.json"
says '^ +12 +12 +12 +12 '
says ' built$'
is_json "$dir/search.json"
[ "$(wc -l <"$dir/one.csv")" = 13 ] || fail "not 12 rows: $(cat "$dir/one.csv")"
expect 0 "" "${search[@]}" --csv "$dir/two.csv" --threads 2 --set cpu.isa=baseline
without_times() { cut -d, -f1-15,17- "$1"; }
[ "$(without_times "$dir/one.csv")" = "$(without_times "$dir/two.csv")" ] || fail "threads or variants give other candidates"
expect 0 "" "${search[@]}" --window 10 --heading 20 --deskew
expect 0 "" "${search[@]}" --window 5 --alignments 20   # more than the places of the tier
expect 0 "" "${search[@]}" --tier thorough --places 24 # fewer than its alignments
says '^ +12 +12 +12 +12 +0 '
"$bin/ndtd" --compile-map "$dir/search.ndtmap" --map "$map" >/dev/null || fail "no compiled map"
expect 0 "" search --map "$dir/search.ndtmap" --bag "$bag" --elsewhere
says '^ +12 +0 +0 +0 '
says ' stored$' # the field comes with the map
# A sensor that hangs is found with its mounting, which the truth of the vehicle needs, too.
"$bin/ndt-sim" --out "$dir/hanging" --scans 4 --mount 0.5,0,-0.2,180,0,40 >/dev/null || fail "no drive of a hanging sensor"
hanging=(search --map "$dir/hanging/map.pcd" --bag "$dir/hanging/drive.bag" --set "frames.T_base_sensor=[0.5, 0, -0.2, 3.14159265, 0, 0.69813170]")
for options in "" "--deskew --tilt 8" "--up --tilt 60" "--window 10 --heading 20 --deskew"; do
    # shellcheck disable=SC2086 # words
    expect 0 "" "${hanging[@]}" $options
    says '^ +4 +4 +4 +4 '
done
expect 2 '--bag' search --map "$map"
expect 2 '--view' "${search[@]}" --view 0
expect 2 'tier' "${search[@]}" --tier slow

expect 0 "" --help
says '^Usage: ndt-bench'
for command in align basin evaluations batch overheads drive compare consistency confidence drain search; do
    says "^  $command "
done
for command in align basin evaluations batch overheads drive compare consistency confidence drain search; do
    expect 0 "" "$command" --help
    says "^Usage: ndt-bench $command .*\[OPTION\]"
    says '^  --set KEY=VALUE +one option of ndtd'
    ! grep -q '(default: .*(default' "$dir/stdout" || fail "two defaults in: $(cat "$dir/stdout")"
    cp "$dir/stdout" "$dir/help"
    expect 0 "" help "$command"
    cmp -s "$dir/stdout" "$dir/help" || fail "'help $command' differs from '$command --help'"
done

expect 2 '--peer: drive has no such option' drive --peer pcl
expect 2 'whole number from 1 to 4096' batch --sizes 1,0
expect 2 'whole number from 1 to 4096' batch --sizes 5000
expect 2 'sizes' batch --sizes 1,,2
expect 2 'whole number from 1 to 1000' batch --rounds 1001
expect 2 "'x' is not a whole number" batch --points x
expect 2 '--map is missing' align --bag "$bag"
expect 2 'give --scan or --bag' align --map "$map"
expect 2 'either --scan or --bag' align --map "$map" --bag "$bag" --scan "$map"
expect 2 'give its pose in the map, --pose' align --map "$map" --scan "$map"
expect 2 'a bag contains its true poses' align --map "$map" --bag "$bag" --pose 0,0,0,0,0,0,1
expect 2 'did you mean' align --map "$map" --bag "$bag" --pionts 3
expect 2 'bag' align --map "$map" --bag
expect 2 "'again' is not expected here; scans follow --scan" basin --scans 1 --bag "$bag" --map "$map" again
expect 2 'levels' align --levels 2,,4
expect 2 'metres/degrees' basin --offsets 1
expect 2 'this command takes one value' align --offsets 1/2,2/3
expect 2 'this command takes one value' basin --threads 1,2
expect 2 'did you mean' align --set ndt.level=[2]
expect 2 '--levels 0.01: ' align --levels 0.01
expect 2 '--levels 1-2: ' align --levels 1-2
expect 2 '--neighbours all: ' align --neighbours all
expect 2 '--variant fast: ' align --variant fast
expect 2 'only cuda has pipelines' align --backend cpu:fused
expect 2 "backend 'gpu' is not known" align --backend gpu
expect 2 'pose' align --map "$map" --scan "$map" --pose 0,0,0,0,0,0,0
expect 2 'pcl' align --peer icp
expect 2 'rounds' align --rounds -1
expect 3 'none.pcd: ' align --map "$dir/none.pcd" --bag "$bag"
expect 3 'none.bag: ' align --map "$map" --bag "$dir/none.bag"
expect 3 'map.pcd: ' align --map "$map" --bag "$map"
expect 3 "no/x.json: " align "${common[@]}" --points 200 --json "$dir/no/x.json"

[ "$failures" = 0 ] || echo "$failures failures"
[ "$failures" = 0 ]
