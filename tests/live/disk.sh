#!/usr/bin/env bash
# disk.sh BIN_DIR: a disk that stands still, and one that takes 200 ms per write. Every scan is answered, requests
# are answered, what does not fit into the queue is counted and said, and the recordings are whole.
source "$(dirname "$0")/common.sh" "$1"
sanitized && { echo "skipped: the sanitizer's library has to be the first one"; exit 77; }
simulate --scans 40
shim=$bin/libstalls.so
gate=$work/gate
preloaded() { # as start_daemon, with the shim
    STALL_DISK=$gate LD_PRELOAD=$shim start_daemon --set "recording.directory=$work/recordings" "${roomy[@]}" "$@"
}

# It stands still from the second frame on.
preloaded --set recording.queue_mb=2
ask start_recording a.bag >"$work/reply" || failed=1
touch "$gate"
"$bin/live_probe" answers "$scans" "$poses" "$work/drive/drive.bag" 20 >"$work/out" || failed=1
check "answered while the disk stands still" "$(value answered "$work/out")" == 40
ask stop_recording >"$work/stop" & # its reply waits for the disk
stopper=$!
sleep 0.3
ask status >"$work/status" || failed=1 # and this one does not
check "requests are answered meanwhile" "$(grep -c finishing "$work/status")" == 1
check "frames that wait for the disk" "$(value recorder.waiting "$work/status")" ">=" 1
missing=$(value recorder.missing "$work/status")
check "frames that do not fit into 2 MB" "$missing" ">=" 1
check "lines about them" "$(grep -c 'the recording lacks a frame' "$work/ndtd.log")" == 1
kill -0 "$stopper" 2>/dev/null || { echo "FAIL: stop_recording is answered before the disk has all"; failed=1; }
rm "$gate"
wait "$stopper" || { echo "FAIL: stop_recording: $(cat "$work/stop")"; failed=1; }
ask status >"$work/status"
check "no frame waits" "$(value recorder.waiting "$work/status")" == 0
"$bin/ndt-bag" info "$work/recordings/a.bag" >"$work/info" || failed=1
seen=$(awk '$1 == "scan" && $2 ~ /^[0-9]+$/ {print $2; exit}' "$work/info")
check "the recording is whole and has some scans" "${seen:-0}" ">=" 1
check "and lacks some" "${seen:-40}" "<" 40
stop_daemon TERM
check "exit code of SIGTERM" "$code" == 0

# It takes 200 ms per write.
export STALL_DISK_MS=200
preloaded --record "$work/slow.bag"
"$bin/live_probe" answers "$scans" "$poses" "$work/drive/drive.bag" 20 "$daemon" >"$work/out" || failed=1
check "answered with 200 ms per write" "$(value answered "$work/out")" == 40
check "none dropped" "$(value dropped "$work/out")" == 0
note_latency "$work/out"
stop_daemon TERM
check "exit code of SIGTERM" "$code" == 0
"$bin/ndt-bag" info "$work/slow.bag" >/dev/null || failed=1
unset STALL_DISK_MS
exit $failed
