#!/usr/bin/env bash
# overload.sh BIN_DIR: 100 scans/s of 120k points into a matcher slowed to 50 ms per scan: the receiver keeps up, the
# oldest scans are dropped and answered, memory stays constant, and scans are answered again after the overload (the
# time is printed).
source "$(dirname "$0")/common.sh" "$1"
simulate --scans 2
start_daemon --set debug.align_delay_ms=50 --set preprocess.deskew=off "${roomy[@]}" \
    --set sockets.high_water_mark=2000 --initial-pose 0,0,1.8,0,0,0,1
points=120000 rounds=60
sanitized && points=20000 rounds=1 # the warm-up is for the memory, which nothing compares there
"$bin/live_probe" overload "$scans" "$poses" "$daemon" $points 100 5 $rounds >"$work/out" || failed=1
stop_daemon TERM
tr '\n' ' ' <"$work/out"
echo
check "answered" "$(value answered "$work/out")" ">=" "$(($(value sent "$work/out") * 99 / 100))"
check "answered twice" "$(value twice "$work/out")" == 0
check "dropped" "$(value dropped "$work/out")" ">" 100
sanitized || check "memory after - before [KiB]" \
    "$(($(value resident_after_kib "$work/out") - $(value resident_before_kib "$work/out")))" "<" 8192
check "answered of 5 scans after the overload" "$(value recovered_of_5 "$work/out")" == 5
echo "note first answer $(value recovered_after_ms "$work/out") ms after the overload"
check "exit code of SIGTERM" "$code" == 0
exit $failed
