#!/usr/bin/env bash
# deadline.sh BIN_DIR: a budget of 5 ms and a matcher that never converges: every scan is answered `deadline` with the best
# pose so far, and the drive is still followed. The time is printed; how far over the budget a busy machine pushes it is
# for the README, only a stop that does not work at all fails here.
source "$(dirname "$0")/common.sh" "$1"
simulate --scans 60
start_daemon --set live.budget_ms=5 --set ndt.max_iterations=512 --set ndt.fine_stop_m=0 --set ndt.fine_stop_deg=0 \
    --set ndt.fine_stop_gain=0 --set preprocess.sample_count=0 --set preprocess.voxel_m=0 --set ndt.max_line_search_steps=32
"$bin/live_probe" answers "$scans" "$poses" "$work/drive/drive.bag" 10 >"$work/out" || failed=1
stop_daemon TERM
tr '\n' ' ' <"$work/out"
echo
check "answered" "$(value answered "$work/out")" == 60
check "deadline" "$(value deadline "$work/out")" ">" 0
check "converged, deadline or iteration limit" \
    "$(($(value deadline "$work/out") + $(value converged "$work/out") + $(value iteration_limit "$work/out")))" == 60
sanitized || check "farthest pose from the truth [m]" "$(value error_max_m "$work/out")" "<" 0.5
echo "note arrival to result inside the daemon: p99 $(value stages_p99_ms "$work/out") ms with a budget of 5 ms"
sanitized || check "arrival to result inside the daemon, p99 [ms]" "$(value stages_p99_ms "$work/out")" "<" 50
exit $failed
