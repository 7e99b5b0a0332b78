#!/usr/bin/env bash
# hostile.sh BIN_DIR: 100 000 malformed, truncated, huge and random frames between the scans of a drive: no crash,
# malformed frames are counted and logged once per kind, valid scans are answered. NDT_HOSTILE_FRAMES sets another
# number.
source "$(dirname "$0")/common.sh" "$1"
simulate --scans 50
frames=${NDT_HOSTILE_FRAMES:-100000}
start_daemon --set sockets.scans_kind=pull --set sockets.high_water_mark=20000 "${roomy[@]}" # 20 000 answers may wait
"$bin/live_probe" hostile "$scans" "$poses" "$work/drive/drive.bag" $((frames / 50)) 42 >"$work/out" || failed=1
kill -0 "$daemon" 2>/dev/null || { echo "FAIL: ndtd has ended: $(tail -n 20 "$work/ndtd.log")"; failed=1; }
stop_daemon TERM
tr '\n' ' ' <"$work/out"
echo
echo "log lines: $(wc -l <"$work/ndtd.log")"
check "valid scans answered" "$(value answered "$work/out")" == 50
check "malformed frames with readable seq, answered as rejected" "$(value refused "$work/out")" ">" $((frames / 10))
check "converged" "$(value converged "$work/out")" ">=" 48
check "log lines for $frames malformed frames" "$(wc -l <"$work/ndtd.log")" "<" 200
check "exit code of SIGTERM" "$code" == 0
exit $failed
