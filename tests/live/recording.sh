#!/usr/bin/env bash
# recording.sh BIN_DIR: a replay of a recording is bit-identical to the live results; the recording of a killed daemon
# can be opened and misses at most its last record.
source "$(dirname "$0")/common.sh" "$1"
simulate --scans 40
replay() { # BAG OUT
    "$bin/ndtd" --replay "$1" --map "$work/drive/map.pcd" --set preprocess.deskew=time --out "$2" >/dev/null 2>&1
}
start_daemon --record "$work/live.bag" "${roomy[@]}"
"$bin/ndt-echo" --endpoint "$poses" --format tum >"$work/live.tum" 2>/dev/null &
echo_pid=$!
sleep 0.5
"$bin/live_probe" answers "$scans" "$poses" "$work/drive/drive.bag" 20 >"$work/out" || failed=1
sleep 0.5
kill "$echo_pid" 2>/dev/null
stop_daemon TERM
check "answered" "$(value answered "$work/out")" == 40
replay "$work/live.bag" "$work/replay.tum" || { echo "FAIL: the recording cannot be replayed"; failed=1; }
grep -v '^#' "$work/live.tum" >"$work/a"
grep -v '^#' "$work/replay.tum" >"$work/b"
check "poses received live" "$(wc -l <"$work/a")" == 40
if cmp -s "$work/a" "$work/b"; then
    echo "ok   live and replay are bit-identical"
else
    echo "FAIL live and replay differ: $(diff "$work/a" "$work/b" | head -n 4)"
    failed=1
fi

# Killed when a third of the drive is recorded; live_probe then prints the answers so far.
start_daemon --record "$work/killed.bag" "${roomy[@]}"
"$bin/live_probe" answers "$scans" "$poses" "$work/drive/drive.bag" 20 >"$work/out" &
probe=$!
size=$(stat -c %s "$work/drive/drive.bag")
for _ in $(seq 600); do
    [ "$(stat -c %s "$work/killed.bag")" -gt $((size / 3)) ] && break
    sleep 0.05
done
stop_daemon KILL
sleep 0.2 # until messages in transit arrive
kill "$probe"
wait "$probe"
"$bin/ndt-bag" info "$work/killed.bag" >"$work/info" 2>&1
check "exit code of ndt-bag info on a killed recording" $? == 0
seen=$(awk '$1 == "scan" && $2 ~ /^[0-9]+$/ {print $2; exit}' "$work/info")
# A scan is recorded before it is matched: all answered scans must be in the recording.
check "scans answered before the kill" "$(value answered "$work/out")" ">=" 5
check "scans in the killed recording" "${seen:-0}" ">=" "$(value answered "$work/out")"
replay "$work/killed.bag" "$work/killed.tum" || { echo "FAIL: the killed recording cannot be replayed"; failed=1; }
exit $failed
