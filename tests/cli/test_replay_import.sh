#!/usr/bin/env bash
# ndtd --replay of pipes and of recordings that are no bag.bin, with a stand-in for ndt-import: the results are those of
# the file, and what goes wrong is said in one line.
#   test_replay_import.sh BIN_DIR
set -uo pipefail
bin=$(cd "${1:?folder of the programs}" && pwd)
source "$(dirname "$0")/replay_steps.sh"

bag=$dir/sim/drive.bag replay=(--map sim/map.pcd --set preprocess.sample_count=500)
expect 0 "" --replay "$bag" "${replay[@]}"
hash=$(hash_of)
[ -n "$hash" ] || fail "no trajectory hash"

# ---- pipes ----

"$bin/ndtd" --replay - "${replay[@]}" <"$bag" >stdout 2>stderr || fail "a file as standard input: $(cat stderr)"
[ "$(hash_of)" = "$hash" ] || fail "standard input gives another trajectory"
# shellcheck disable=SC2002
cat "$bag" | "$bin/ndtd" --replay - "${replay[@]}" >stdout 2>stderr || fail "a pipe: $(cat stderr)"
[ "$(hash_of)" = "$hash" ] || fail "a pipe gives another trajectory"
mkfifo fifo
cat "$bag" >fifo &
expect 0 "" --replay fifo "${replay[@]}" --summary fifo.json --out fifo.tum
wait $!
[ "$(hash_of)" = "$hash" ] || fail "a FIFO gives another trajectory"
head -c -5 "$bag" | "$bin/ndtd" --replay - "${replay[@]}" >stdout 2>stderr || fail "a truncated pipe: $(cat stderr)"
grep -q "^ndtd: warning: standard input: record .* truncated" stderr || fail "truncated: $(cat stderr)"
expect 3 'standard input: not a bag: 0 bytes' --replay - "${replay[@]}"
"$bin/ndtd" --replay - "${replay[@]}" --skip 3 <"$bag" >stdout 2>stderr
[ $? = 2 ] || fail "--skip of a pipe, which needs its ground truth: $(cat stderr)"
grep -q 'read once' stderr || fail "--skip of a pipe: $(cat stderr)"
"$bin/ndtd" --replay fifo "${replay[@]}" >stdout 2>stderr &
waiting=$!
exec 3>fifo # waits for the reader
kill -INT $waiting
wait $waiting
[ $? = 3 ] || fail "a replay that waits for its pipe does not end by SIGINT"
exec 3>&-

# ---- a stand-in for ndt-import ----

mkdir tools drive
cat >tools/ndt-import <<'SCRIPT'
#!/bin/sh
printf '%s|' "$@" >"$STAND_IN/arguments"
echo $$ >"$STAND_IN/process"
case $1 in
*.mcap | *drive | *twice.bag) cat "$STAND_IN/sim/drive.bag" ;;
*part.db3) head -c 100000 "$STAND_IN/sim/drive.bag"; echo 'first line' >&2; echo 'ndt-import: part.db3: message 7 is damaged' >&2; exit 1 ;;
*ambiguous.db3) echo 'ndt-import: two topics of scans: /left, /right; choose with --scan' >&2; exit 2 ;;
*note.db3) echo 'ndt-import: 3 messages were left' >&2; cat "$STAND_IN/sim/drive.bag" ;;
*slow.db3) head -c "$STAND_IN_BYTES" "$STAND_IN/sim/drive.bag"; sleep 600 ;;
*killed.db3) head -c 100000 "$STAND_IN/sim/drive.bag"; kill -9 $$ ;;
*empty.db3) ;;
*endless.db3) head -c 300000 "$STAND_IN/sim/drive.bag"; exec yes ;;
*garbage.db3) exec yes ;;
*orphan.db3) sleep 600 & head -c 100000 "$STAND_IN/sim/drive.bag"; echo $! >"$STAND_IN/process"; kill -9 $$ ;;
*helper.db3) sleep 600 >/dev/null 2>&1 & echo $! >"$STAND_IN/process"; cat "$STAND_IN/sim/drive.bag" ;;
*verbose.db3) seq 5000 >&2; exit 1 ;;
esac
SCRIPT
chmod +x tools/ndt-import
export STAND_IN=$dir STAND_IN_BYTES=$(($(wc -c <"$bag") / 2))
for name in drive.mcap part.db3 ambiguous.db3 note.db3 slow.db3 killed.db3 empty.db3 endless.db3 garbage.db3 orphan.db3 helper.db3 verbose.db3 -dash.mcap "two words.mcap"; do
    echo recording >"./$name"
done
echo "#ROSBAG V2.0" >twice.bag

# Not installed: nothing beside ndtd and nothing on PATH. Programs that a user has there would be found.
if ! [ -x "$bin/ndt-import" ]; then
    with=(PATH=/nowhere)
    expect 3 "drive.mcap: is not a bag.bin, .* pip install './tools/python\[ros\]'" --replay drive.mcap "${replay[@]}"
    echo points >cloud.pcd
    expect 3 "cloud.pcd: a map or a point cloud, not a recording; ndt-bag pack makes a bag of scans" --replay cloud.pcd "${replay[@]}"
fi
with=(NDT_IMPORT=/nowhere/at/all)
expect 3 'NDT_IMPORT=/nowhere/at/all is not a program' --replay drive.mcap "${replay[@]}"

with=()
export NDT_IMPORT=$dir/tools/ndt-import
for recording in drive.mcap drive twice.bag ./-dash.mcap "two words.mcap"; do
    expect 0 "" --replay "$recording" "${replay[@]}" --out import.tum
    [ "$(hash_of)" = "$hash" ] || fail "$recording: the import gives another trajectory"
done
unset NDT_IMPORT
if ! [ -x "$bin/ndt-import" ]; then
    with=(PATH="$dir/tools:$PATH")
    expect 0 "" --replay drive.mcap "${replay[@]}"
    with=()
    [ "$(hash_of)" = "$hash" ] || fail "found on PATH: another trajectory"
fi
export NDT_IMPORT=$dir/tools/ndt-import

# Arguments: the recording as one word, then ours, then the user's.
expect 0 "" --replay "two words.mcap" "${replay[@]}" -- --scan "/top lidar"
[ "$(cat arguments)" = 'two words.mcap|-o|-|--quiet|--scan|/top lidar|' ] || fail "arguments: $(cat arguments)"
expect 0 "" --replay=-dash.mcap "${replay[@]}"
[ "$(cut -d'|' -f1 arguments)" = './-dash.mcap' ] || fail "a name with a dash: $(cat arguments)"
expect 2 'options of ndt-import follow after --' --replay drive.mcap "${replay[@]}" --scam /top
expect 2 'goes with --replay only' "${replay[@]}" --check-config -- --scan /top
expect 2 'which a bag does not need' --replay "$bag" "${replay[@]}" -- --scan /top

# The summary names what the run was given.
echo 'ndt: {max_iterations: 40}' >a.yaml
expect 0 "" --replay drive.mcap "${replay[@]}" -c a.yaml --threads 1 --summary summary.json
for line in '^bag  *drive.mcap$' '^map file  *sim/map.pcd$' '^settings  *a.yaml, preprocess.sample_count=500, cpu.threads=1$'; do
    grep -q "$line" stdout || fail "no '$line' in $(cat stdout)"
done
for line in '"bag": "drive.mcap"' '"map": "sim/map.pcd"' \
    '"settings": {"files": \["a.yaml"\], "overrides": \["preprocess.sample_count=500", "cpu.threads=1"\]}'; do
    grep -q "$line" summary.json || fail "no '$line' in $(cat summary.json)"
done

# A start in the middle reads the recording twice.
"$bin/ndtd" --replay "$bag" "${replay[@]}" --skip 4 >stdout 2>stderr || fail "--skip: $(cat stderr)"
skipped=$(hash_of)
expect 0 "" --replay drive.mcap "${replay[@]}" --skip 4
[ "$(hash_of)" = "$skipped" ] || fail "--skip: the import gives another trajectory"

# A failed import is a failed replay with its reason, and leaves no file.
expect 3 'part.db3: ndt-import failed \(exit status 1\): message 7 is damaged' \
    --replay part.db3 "${replay[@]}" --out part.tum --summary part.json
grep -q '^ndt-import: first line' stderr || fail "the lines before the reason are not shown: $(cat stderr)"
[ ! -e part.tum ] && [ ! -e part.json ] || fail "a failed import leaves files"
expect 2 'ambiguous.db3: .*two topics of scans: /left, /right; choose with --scan' --replay ambiguous.db3 "${replay[@]}"
[ "$(wc -l <stderr)" = 1 ] || fail "not one line: $(cat stderr)"
expect 3 'killed.db3: ndt-import was ended by signal 9' --replay killed.db3 "${replay[@]}"
for alone in -o --out --out=x.bin --list --json -h --help; do
    echo content >drive.mcap
    expect 2 "drive.mcap: $alone is not for a replay: ndt-import drive.mcap $alone" --replay drive.mcap "${replay[@]}" -- "$alone"
done
expect 2 "--replay is given twice" --replay drive.mcap --replay drive.mcap "${replay[@]}"
expect 3 'empty.db3: not a bag: 0 bytes' --replay empty.db3 "${replay[@]}"
"$bin/ndtd" --replay note.db3 "${replay[@]}" >stdout 2>stderr || fail "a note: $(cat stderr)"
[ "$(cat stderr)" = 'ndt-import: 3 messages were left' ] || fail "a note of a good import: $(cat stderr)"

# Started by a process that ignores SIGCHLD.
python3 -c 'import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])' \
    "$bin/ndtd" --replay drive.mcap "${replay[@]}" >stdout 2>stderr || fail "with SIGCHLD ignored: $(cat stderr)"

# The import ends with the replay: at its limit, and by a signal.
ended() { # NAME
    local process
    process=$(cat process)
    # One whose parent has ended may wait for its reaper.
    ! grep -qvE '^[0-9]+ \(.*\) [ZX] ' "/proc/$process/stat" 2>/dev/null || fail "$1: the import still runs"
}
expect 0 "" --replay slow.db3 "${replay[@]}" --limit 2
ended "--limit"
rm process
"$bin/ndtd" --replay slow.db3 "${replay[@]}" >stdout 2>stderr </dev/null &
replaying=$!
until [ -s process ]; do sleep 0.1; done
kill -TERM $replaying
wait $replaying
[ $? = 3 ] || fail "a replay that waits for an import does not end by SIGTERM"
ended "SIGTERM"

rm process
"$bin/ndtd" --replay slow.db3 "${replay[@]}" >stdout 2>stderr </dev/null &
replaying=$!
until [ -s process ]; do sleep 0.1; done
kill -HUP $replaying
wait $replaying
[ $? = 3 ] || fail "a replay that waits for an import does not end by SIGHUP"
ended "SIGHUP"

# A map that loads for long can be interrupted.
mkdir many
for i in $(seq 400); do ln -s ../sim/map.pcd "many/$i.pcd"; done
"$bin/ndtd" --replay "$bag" --map many >stdout 2>stderr </dev/null &
replaying=$!
sleep 0.3
begin=$(date +%s%N)
kill -INT $replaying
wait $replaying
[ $? = 3 ] || fail "a replay whose map loads does not end by SIGINT"
[ $((($(date +%s%N) - begin) / 1000000)) -lt 1500 ] || fail "SIGINT while a map loads takes long"

# An import that goes on behind damage does not hold the replay up, and neither does what a dead one has started.
limit=$(command -v timeout)
damaged() { # NAME PATTERN
    "$limit" 60 "$bin/ndtd" --replay "$1" "${replay[@]}" --out "$1.tum" >stdout 2>stderr </dev/null
    [ $? = 3 ] || fail "$1: another exit code than 3: $(cat stderr)"
    tail -n 1 stderr | grep -qE "^ndtd: $1: $2" || fail "$1: '$(cat stderr)' does not say '$2'"
    [ ! -e "$1.tum" ] || fail "$1: leaves a file"
}
damaged endless.db3 'record .*(damaged|truncated).* \(what ndt-import wrote\)'
ended "endless.db3"
damaged garbage.db3 'not a bag: does not begin with NDTBAG.* \(what ndt-import wrote\)'
damaged orphan.db3 'ndt-import was ended by signal 9'
ended "what orphan.db3 started"
expect 0 "" --replay helper.db3 "${replay[@]}"
ended "what helper.db3 started"
damaged verbose.db3 'ndt-import failed \(exit status 1\): 5000'
[ "$(wc -l <stderr)" -lt 1100 ] || fail "$(wc -l <stderr) lines of an import"
grep -q '^ndt-import: 3999 more lines$' stderr || fail "verbose.db3: $(tail -n 2 stderr)"

[ "$failures" = 0 ] && echo "all good"
exit $((failures > 0))
