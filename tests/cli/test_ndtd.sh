#!/usr/bin/env bash
# ndtd as a program: exit codes, one line for every error, no files left behind, and a complete drive if ndt-sim is
# built.
#   test_ndtd.sh BIN_DIR
set -uo pipefail
bin=$(cd "${1:?folder of the programs}" && pwd)
config=$(cd "$(dirname "$0")/../../config" && pwd)
source "$(dirname "$0")/steps.sh"
program=$bin/ndtd
cd "$dir" || exit 1

says() {
    grep -qE -- "$1" stdout || fail "no '$1' on standard output"
}

# A floor and two walls as a map, and invalid bags.
{
    printf 'VERSION 0.7\nFIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nCOUNT 1 1 1\nWIDTH 3200\nHEIGHT 1\nPOINTS 3200\n'
    printf 'DATA ascii\n'
    awk 'BEGIN { for (i = 0; i < 40; i++) for (k = 0; k < 40; k++) print i * 0.5, k * 0.5, (i * 7 + k * 3) % 5 * 0.01
                 for (i = 0; i < 40; i++) for (k = 0; k < 20; k++) print i * 0.5, (i + k) % 3 * 0.01, k * 0.25
                 for (i = 0; i < 40; i++) for (k = 0; k < 20; k++) print (i + k) % 3 * 0.01, i * 0.5, k * 0.25 }'
} >map.pcd
printf 'NDTBAG\r\n\1\0\0\0\0\0\0\0' >empty.bag
printf 'NDTBAG\r\n\1\0\0\0\0\0\0\0\1\0\0\0\377\377\377\17' >lying.bag
printf 'NDTBAG\r\n\11\0\0\0\0\0\0\0' >version.bag
printf 'hello' >text.bag
: >nothing.bag

# Help, version and configuration.
expect 0 "" --help
says '^Usage: ndtd --map FILE'
says '^  or:  ndtd --replay BAG'
says 'Exit status: 0 done, 1 differs from --expect or more scans without a'
expect 0 "" --replay --help
expect 0 "" -h
expect 0 "" --version
says '^ndtd [0-9]+\.[0-9]+\.[0-9]+ \(commit ([0-9a-f]{12}|unknown)\)$'
expect 0 "" --list-backends
says '^cpu +SIMD'
expect 0 "" --list-backends -v
says '^cpu +SIMD'
expect 0 "" --print-config -v
expect 2 '--dump-scan and --dump-iteration go with --dump-derivatives only' --replay empty.bag --dump-scan 3
expect 2 '--dump-derivatives goes with --replay only' --print-config --dump-derivatives out.csv
expect 2 "cuda.pipeline: 'nonsense'" --check-config --set cuda.pipeline=nonsense
expect 2 "cuda.shape: 'block' is for cuda.pipeline: resident, not fused" --check-config --set cuda.pipeline=fused --set cuda.shape=block
expect 0 "" --help-options
says '^preprocess\.deskew = auto$'
says '^[0-9]+ further options are for experts: --help-options --all$'
[ "$(grep -c '^[a-z_]*\.[A-Za-z_.]* = ' stdout)" -le 27 ] || fail "more options than users decide"
expect 0 "" --help-options --all
says '^ndt\.levels = \[4\.0, 2\.0, 1\.0\]$'
says '; for experts$'
says 'gradient_norm +iteration'
says '^    hypotheses +guesses that were aligned'
expect 0 "" --list-backends
says '^cpu '
says '^reference '
expect 0 "" --print-config
cp stdout printed.yaml
expect 0 "" --print-config --config "$config/ndtd.yaml"
cmp -s stdout printed.yaml || fail "config/ndtd.yaml does not have the defaults"
expect 0 "" --print-config --config printed.yaml
cmp -s stdout printed.yaml || fail "a printed configuration does not print as itself"
expect 0 "" --print-config --set ndt.levels=[3.0,1.5] --threads 2 --map "a b.pcd" --initial-pose 1,2,3,0,0,0,1
says '^  levels: \[3\.0, 1\.5\]$'
says '^  threads: 2$'
says '^  path: "a b\.pcd"$'
says '^  pose: \[1\.0, 2\.0, 3\.0, 0\.0, 0\.0, 0\.0, 1\.0\]$'
for profile in "$config"/*.yaml; do
    expect 0 "" --check-config --config "$profile"
    says "^$profile: ok$"
done

# The command line.
expect 2 'nothing to do: give --map FILE\|DIR or -c FILE to run the daemon, or --replay BAG; see --help'
expect 2 '--repaly is not known; did you mean .--replay.\?' --repaly x.bag
expect 2 "'drive.bag' is not expected here" drive.bag
expect 2 '-x is not known; --help lists the flags' -x
expect 2 '--replay needs BAG' --replay
expect 2 '--replay needs BAG' --replay=
expect 2 '--version takes no value' --version=1
expect 2 '--replay and --print-config cannot be combined' --replay a.bag --print-config
expect 2 '--threads is given twice' --threads 1 --threads 2 --print-config
expect 2 '--out goes with --replay only' --print-config --out x
expect 2 "--limit: 'many' is not a whole number" --replay a.bag --limit many
expect 2 "--limit: '-3' is not a whole number" --replay a.bag --limit -3
expect 2 '--limit: at least one scan' --replay a.bag --limit 0
expect 2 "--skip: '99999999999999999999' is not" --replay a.bag --skip 99999999999999999999
expect 2 '--timing times.txt: the name has to end in .csv or .jsonl' --replay a.bag --map map.pcd --timing times.txt
expect 2 'same.csv: one file for two outputs' --replay a.bag --map map.pcd --timing same.csv --out same.csv
expect 2 'same.csv: one file for two outputs' --replay a.bag --map map.pcd --results same.csv --summary same.csv
expect 2 '--out-all goes with --out or --output only' --replay a.bag --map map.pcd --out-all
expect 2 "--max-untrusted: '-1' is not a whole number" --replay a.bag --max-untrusted -1
expect 2 '--max-untrusted goes with --replay only' --print-config --max-untrusted 1
expect 2 "--threads: cpu.threads: 'x' is not a whole number" --threads x --print-config
expect 2 '--threads: cpu.threads: 65 is outside 0 .. 64' --threads=65 --print-config
expect 2 '--initial-pose: initial_pose.pose: 2 values; a pose is x,y,z,qx,qy,qz,qw or x,y,z,yaw' --initial-pose 1,2 --print-config
expect 2 "--set: 'ndt.levls' is not an option; did you mean .ndt.levels.\?" --set ndt.levls=1 --print-config
expect 2 "--set: 'ndt.levels' is not KEY=VALUE" --set ndt.levels --print-config
expect 2 "--set: ndt.variant: 'magic' is not one of robust, autoware" --set ndt.variant=magic --print-config
expect 2 'ndt.levels: 2 m after 1 m, but the order is from coarse to fine' --set ndt.levels=[1,2] --print-config
expect 2 "backend.name: 'gpu' is not one of auto, cpu" --backend gpu --print-config

# The configuration file.
printf 'ndt:\n  levels: [1.0\n' >broken.yaml
printf 'ndt:\n  trans_epsilon: 0.01\n  stepsize: 0.1\n' >unknown.yaml
printf 'ndt:\n  levels: [1.0, 2.0]\n' >order.yaml
expect 2 'missing.yaml: cannot open: No such file' --check-config --config missing.yaml
expect 2 'is a directory, not a file' --check-config --config .
expect 2 'broken.yaml:[23]: not YAML: ' --check-config --config broken.yaml
expect 2 "unknown.yaml:3: 'ndt.stepsize' is not an option; did you mean 'ndt.step_size'\?" --check-config --config unknown.yaml
expect 2 'order.yaml: ndt.levels: 2 m after 1 m' --check-config --config order.yaml
expect 2 "map.pcd:[0-9]+: " --check-config --config map.pcd

# Addresses of sockets: checked without binding them.
expect 2 'tcp://0.0.0.0:7000: other machines can reach it' --check-config --set sockets.scans=tcp://0.0.0.0:7000
expect 2 'ipc://: a path is missing' --check-config --set sockets.poses=ipc://
expect 2 "'carrier://pigeon' is not the address of a socket" --check-config --set sockets.control=carrier://pigeon
expect 2 'CURVE needs .*the list of clients is missing' --check-config --set sockets.server_secret_key_file=server.secret
expect 2 'tcp://127.0.0.1:7000: one address for two sockets' --check-config --set sockets.scans=tcp://127.0.0.1:7000 --set sockets.poses=tcp://127.0.0.1:7000
expect 2 'missing.secret' --check-config --set sockets.server_secret_key_file=missing.secret --set sockets.allowed_clients_file=missing.list
expect 0 "" --check-config --set sockets.scans=tcp://127.0.0.1:7000 --set sockets.poses=ipc:///tmp/x/poses
expect 2 'ipc:///tmp/x/p.points: one address for two sockets' --check-config --set sockets.scans=ipc:///tmp/x/p.points --set sockets.poses=ipc:///tmp/x/p
expect 2 "'on' is not the address of a socket" --check-config --set sockets.points=on
expect 2 'tcp://0.0.0.0:7003: ' --check-config --set sockets.points=tcp://0.0.0.0:7003
expect 0 "" --check-config --set sockets.points=off
expect 2 'sockets.points_max: 99 is outside 100' --check-config --set sockets.points_max=99
mkfifo pipe.yaml
expect 2 'pipe.yaml: is a pipe' --check-config --config pipe.yaml
expect 2 "did you mean 'ndt.max_iterations'?" --check-config --set ndt.max_iteration=3
expect 2 "'initial_pose' is a section, as in initial_pose.mode" --check-config --set initial_pose=3

# One option under two names.
printf 'cpu: {threads: 2}\nndt: {num_threads: 3}\n' >twice.yaml
"$bin/ndtd" --check-config --config twice.yaml >stdout 2>stderr && fail "one option under two names is accepted"
grep -q 'twice.yaml:2: cpu.threads was already set in line 1' stderr || fail "twice.yaml: $(cat stderr)"

# Thousands of faults are counted in a moment: the names that are not shown are compared with no others.
for i in $(seq 60000); do echo "k$i: {x: 1}"; done >faults.yaml
limit_s=5 limit_ms=60000 # for this, and for --autotune
[[ $(nm "$bin/ndtd" 2>/dev/null) =~ __(asan|tsan)_init ]] && limit_s=60 limit_ms=5000 # they are slow, and their figures nobody uses
(ulimit -t $limit_s && exec "$bin/ndtd" --check-config --config faults.yaml >stdout 2>stderr) # of processor time
[ $? = 2 ] || fail "60000 faults: not within $limit_s s of processor time"
[ "$(tail -n 1 stderr)" = "ndtd: and 59980 more" ] || fail "60000 faults: $(tail -n 1 stderr)"

# A map is enough for the daemon: defaults, and sockets in the runtime directory.
mkdir run
RUNTIME_DIRECTORY="$dir/run" "$bin/ndtd" --map map.pcd >stdout 2>log &
pid=$!
for _ in $(seq 6000); do
    grep -q ' ready ' log && break
    kill -0 "$pid" 2>/dev/null || break
    sleep 0.05
done
[ -S run/scans.ipc ] && [ -S run/poses.ipc ] && [ -S run/control.ipc ] || fail "ndtd --map map.pcd: $(cat log)"
kill -TERM "$pid"
wait "$pid" || fail "ndtd --map map.pcd: exit code $?: $(cat log)"

# The backend benchmark: as text and as numbers.
expect 2 '--autotune needs a map: give --map' --autotune
expect 2 '--table out.txt: the name has to end in .csv or .json' --autotune --map map.pcd --table out.txt
expect 2 '--table goes with --autotune only' --print-config --table out.csv
expect 3 'missing.pcd: .*No such file' --autotune --map missing.pcd
# A machine that is too busy, or a build that is too slow, for the time limit says so; the table is written all the same.
autotune() {
    "$bin/ndtd" --autotune --map map.pcd --set autotune.limit_ms=$limit_ms "$@" >stdout 2>stderr || fail "--autotune $*: exit code $?: $(cat stderr)"
    ! grep -v 'too slow to be measured$' stderr || fail "--autotune $*: $(cat stderr)"
}
autotune --table table.csv --set autotune.max_threads=2
says '^ +points  candidate'
says '^ +1500  cpu, 2 threads'
head -n 1 table.csv | grep -q '^points,backend,pipeline,threads,batch,chosen,samples,align_p50_us' || fail "table.csv: $(head -n 1 table.csv)"
awk -F, '$2 == "cpu" {rows++; chosen += $6} END {exit !(rows == 10 && chosen <= 5)}' table.csv || fail "table.csv: $(cat table.csv)"
if [ -s stderr ]; then
    echo "note: too slow here to choose a backend: $(cat stderr)"
else
    says '^autotune: cpu, [12] thread.*at 1500 points'
fi
autotune --table table.json --set cpu.threads=1
python3 -c 'import json; rows = json.load(open("table.json")); assert {r["points"] for r in rows} == {756, 1500, 5000, 20000, 100000}, rows' ||
    fail "table.json: $(cat table.json)"

# Input of the replay.
outputs=(--out poses.tum --timing timing.csv --summary summary.json)
expect 2 'no map: give --map' --replay empty.bag "${outputs[@]}"
expect 3 'missing.bag: .*No such file' --replay missing.bag --map map.pcd "${outputs[@]}"
expect 3 'text.bag: ' --replay text.bag --map map.pcd "${outputs[@]}"
expect 3 'nothing.bag: ' --replay nothing.bag --map map.pcd "${outputs[@]}"
expect 3 'version.bag: ' --replay version.bag --map map.pcd "${outputs[@]}"
expect 3 'lying.bag: .*no scan before it' --replay lying.bag --map map.pcd "${outputs[@]}"
expect 3 'empty.bag: no scan in it' --replay empty.bag --map map.pcd "${outputs[@]}"
expect 3 'missing.pcd: .*No such file' --replay empty.bag --map missing.pcd "${outputs[@]}"
expect 3 'text.bag: ' --replay empty.bag --map text.bag "${outputs[@]}"
expect 3 'missing.sum' --replay empty.bag --map map.pcd --expect missing.sum "${outputs[@]}"
expect 3 'nothing.bag: neither a hash nor poses' --replay empty.bag --map map.pcd --expect nothing.bag "${outputs[@]}"
expect 3 'no/where.tum' --replay empty.bag --map map.pcd --out no/where.tum
[ -z "$(ls poses.tum* timing.csv* summary.json* 2>/dev/null)" ] || fail "left behind: $(ls)"

# Compiled maps.
expect 2 'needs a map: give --map' --compile-map a.ndtmap
expect 2 'the name has to end in .ndtmap' --compile-map a.map --map map.pcd
expect 3 'missing.pcd: ' --compile-map a.ndtmap --map missing.pcd
[ -e a.ndtmap ] && fail "a failed compilation left a.ndtmap"
expect 0 "" --compile-map a.ndtmap --map map.pcd
says '^points +3200, id [0-9a-f]{16}$'
says '^levels +4 m: [0-9]+ voxels$'
says '^reopened +[0-9.]+ ms$'
expect 3 'empty.bag: no scan in it' --replay empty.bag --map a.ndtmap
expect 2 'a.ndtmap: compiled without a level of 3 m' --replay empty.bag --map a.ndtmap --set ndt.levels=3.0
head -c 1000 a.ndtmap >cut.ndtmap
expect 3 'cut.ndtmap: ' --replay empty.bag --map cut.ndtmap

# Standard output that cannot be written.
if [ -w /dev/full ]; then
    "$bin/ndtd" --print-config >/dev/full 2>stderr
    [ $? = 3 ] || fail "a full disk was not detected"
    grep -q 'No space left' stderr || fail "a full disk: $(cat stderr)"
fi

# A whole drive.
if [ -x "$bin/ndt-sim" ]; then
    "$bin/ndt-sim" --seed 7 --out sim --scans 12 --beams 16 --columns 360 --map-spacing 0.3 >/dev/null 2>&1 ||
        fail "ndt-sim does not run"
    drive=(--replay sim/drive.bag --map sim/map.pcd --set preprocess.deskew=time)
    expect 0 "" "${drive[@]}" "${outputs[@]}"
    says '^scans +12$'
    says '^  off +0 of 12 '
    says '^trajectory hash +[0-9a-f]{16}$'
    [ "$(grep -c '^[0-9]' poses.tum)" = 12 ] || fail "poses.tum has $(wc -l <poses.tum) lines"
    [ "$(grep -c '^scan,' timing.csv)" = 12 ] || fail "timing.csv has $(grep -c '^scan,' timing.csv) scans"
    grep -q '^  "off": 0,' summary.json || fail "summary.json: $(cat summary.json)"
    for threads in 1 2 3; do
        expect 0 "" "${drive[@]}" --threads "$threads" --expect summary.json
    done
    expect 0 "" "${drive[@]}" --expect poses.tum --timing timing.jsonl
    [ "$(grep -c '^{"row":"scan",' timing.jsonl)" = 12 ] || fail "timing.jsonl has other rows"
    expect 1 'poses.tum: differs: pose 1 \(stamp' "${drive[@]}" --set preprocess.seed=2 --expect poses.tum
    expect 1 'summary.json: differs: trajectory hash' "${drive[@]}" --limit 5 --expect summary.json
    says '^scans +5$'
    expect 0 "" "${drive[@]}" --skip 4 --limit 3
    says '^  off +0 of 3 '
    expect 2 '--skip 12: sim/drive.bag holds only 12 scans' "${drive[@]}" --skip 12
    head -c "$(($(wc -c <sim/drive.bag) / 2))" sim/drive.bag >cut.bag
    expect 0 'warning: cut.bag: .*replayed the [0-9]+ scans before it' --replay cut.bag --map sim/map.pcd --set preprocess.deskew=time
    expect 0 "" --compile-map sim.ndtmap --map sim/map.pcd
    expect 0 "" --replay sim/drive.bag --map sim.ndtmap --set preprocess.deskew=time --expect summary.json
else
    echo "ndt-sim is not built: the whole drive is left out"
fi

[ "$failures" = 0 ] && echo "ndtd: all good"
exit $((failures > 0))
