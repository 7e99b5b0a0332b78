#!/usr/bin/env bash
# deadline.sh BIN_DIR: a budget of 5 ms and a matcher that never converges: every scan is answered, most as `deadline`
# with the best pose so far. Tracking and the stop in time are checked only if the threads were seldom preempted: a
# busy machine leaves the matcher less than its 5 ms.
source "$(dirname "$0")/common.sh" "$1"
simulate --scans 60
start_daemon --set live.budget_ms=5 --set ndt.max_iterations=512 --set ndt.fine_stop_m=0 --set ndt.fine_stop_deg=0 \
    --set ndt.fine_stop_gain=0 --set preprocess.sample_count=0 --set preprocess.voxel_m=0 --set ndt.max_line_search_steps=32
"$bin/live_probe" answers "$scans" "$poses" "$work/drive/drive.bag" 10 "$daemon" >"$work/out" || failed=1
stop_daemon TERM
tr '\n' ' ' <"$work/out"
echo
check "answered" "$(value answered "$work/out")" == 60
check "deadline" "$(value deadline "$work/out")" ">" 0
check "converged, deadline or iteration limit" \
    "$(($(value deadline "$work/out") + $(value converged "$work/out") + $(value iteration_limit "$work/out")))" == 60
note_latency "$work/out"
echo "note arrival to result inside the daemon: p99 $(value stages_p99_ms "$work/out") ms with a budget of 5 ms"
if sanitized; then
    echo "note sanitizers: accuracy and time are not checked"
elif awk -v a="$(value latency_p99_ms "$work/out")" -v b="$(value running_p99_ms "$work/out")" 'BEGIN {exit !(a - b < 5)}'; then
    check "largest error to the ground truth [m]" "$(value error_max_m "$work/out")" "<" 0.5
else
    echo "note threads were preempted: accuracy is not checked"
fi
sanitized || check "median of send to result, less scheduling delay [ms]" "$(value running_p50_ms "$work/out")" "<" 50
exit $failed
