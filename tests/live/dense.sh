#!/usr/bin/env bash
# dense.sh BIN_DIR: scans of a million points into a budget of 20 ms, without a limit on points: each is answered, none is
# dropped, and they are thinned to what time suffices for, also the first, before anything was measured. Then with time
# and a low limit on points. Latencies are printed only.
source "$(dirname "$0")/common.sh" "$1"
simulate --scans 16
points=1000000

dense() { # NAME OPTIONS...
    local name=$1
    shift
    start_daemon "$@"
    "$bin/live_probe" dense "$scans" "$poses" "$work/drive/drive.bag" 10 $points >"$work/out" || failed=1
    ask status >"$work/status"
    stop_daemon TERM
    tr '\n' ' ' <"$work/out"
    echo
    check "$name: answered" "$(value answered "$work/out")" == 16
    check "$name: answered twice" "$(value twice "$work/out")" == 0
    # Where a sanitizer or a busy machine stops one scan after the other, the prediction ends lost.
    check "$name: converged, deadline or lost" \
        "$(($(value converged "$work/out") + $(value deadline "$work/out") + $(value lost "$work/out")))" == 16
    check "$name: exit code of SIGTERM" "$code" == 0
    note_latency "$work/out"
    echo "note $name: longest work on a scan inside the daemon: $(value work_max_ms "$work/out") ms"
}

dense "by time" --set preprocess.max_points=268435456 --set live.budget_ms=20
check "by time: scans thinned, by status" "$(value scans_thinned "$work/status")" ">=" 8
check "by time: the log says it" "$(grep -c 'large scans: they are thinned' "$work/ndtd.log")" ">" 0
dense "by points" --set preprocess.max_points=20000 "${roomy[@]}"
check "by points: scans thinned, by status" "$(value scans_thinned "$work/status")" == 16
check "by points: converged" "$(value converged "$work/out")" ">=" 15
check "by points: largest error to the ground truth [m]" "$(value error_max_m "$work/out")" "<" 0.5
exit $failed
