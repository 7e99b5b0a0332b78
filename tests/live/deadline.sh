#!/usr/bin/env bash
# deadline.sh BIN_DIR: a budget of 5 ms and a matcher that never converges: every scan is answered `deadline` within the
# budget, at most 2 ms over it at p99, with a pose no worse than the guess.
source "$(dirname "$0")/common.sh" "$1"
simulate --scans 60
start_daemon --set live.budget_ms=5 --set ndt.max_iterations=512 --set ndt.fine_stop_m=0 --set ndt.fine_stop_deg=0 \
    --set ndt.fine_stop_gain=0 --set preprocess.sample_count=0 --set preprocess.voxel_m=0 --set ndt.max_trials=32
"$bin/live_probe" answers "$scans" "$poses" "$work/drive/drive.bag" 10 >"$work/out" || failed=1
stop_daemon TERM
tr '\n' ' ' <"$work/out"
echo
check "answered" "$(value answered "$work/out")" == 60
check "deadline" "$(value deadline "$work/out")" ">" 0
sanitized || check "arrival to result inside the daemon, p99 [ms]" "$(value stages_p99_ms "$work/out")" "<" 7
exit $failed
