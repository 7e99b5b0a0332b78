#!/usr/bin/env bash
# motion.sh BIN_DIR: poses between scans, on request and as a stream at the stamps of odometry and IMU. Every scan is
# answered as without them, and without a subscriber nothing is published.
source "$(dirname "$0")/common.sh" "$1"
motion=$poses.motion
simulate --scans 40 --imu 100
await() { # KEY OPERATOR NUMBER: the limit ends a test that waits in vain
    for _ in $(seq 3000); do
        awk -v a="$(status "$1")" -v b="$3" "BEGIN {exit !(a $2 b)}" && return
        sleep 0.05
    done
}
pose_at() { # STAMP: the reply, or the refusal
    "$bin/ndt-ctl" pose-at "$1" --json --control "$control" >"$work/pose" 2>"$work/why"
}
number() { # KEY: of the reply
    grep -o "\"$1\":-\?[0-9]*" "$work/pose" | cut -d: -f2
}

start_daemon "${roomy[@]}" --set output.rate_hz=50
pose_at now
check "refused before the first scan" "$(grep -c 'no_pose: no scan has left a pose yet' "$work/why")" == 1
answered "without a subscriber" 40
check "poses without a subscriber" "$(status motion.published)" == 0

"$bin/live_probe" motion "$motion" >"$work/follow" &
follower=$!
await motion.subscribers == 1
answered "with a subscriber" 40
await motion.published ">=" 40
kill "$follower"
wait "$follower"
# 4 s at 50 of the 150 stamps per second, but for the begin, where no scan has been tracked yet; a thread that gets no
# core for more than a second leaves out the oldest
check "poses" "$(value messages "$work/follow")" ">=" 30
check "poses at most at the rate" "$(value messages "$work/follow")" "<=" 215
# the second drive begins at the time of the first
check "poses in disorder" "$(value disorder "$work/follow")" "<=" 1
check "poses that are not trusted" "$(value untrusted "$work/follow")" == 0
check "poses beyond all data, by the clock before and after the drive" "$(value predicted "$work/follow")" "<" "$(value messages "$work/follow")"
await motion.subscribers == 0

pose_at now
check "pose now" "$(grep -c '"kind":"filtered"' "$work/pose")" == 1
now_ns=$(number stamp_ns)
pose_at "$((now_ns - 1000000000))"
check "pose a second ago" "$(grep -c '"kind":"smoothed"' "$work/pose")" == 1
pose_at "$((now_ns + 100000000))"
check "pose ahead" "$(grep -c '"kind":"predicted"' "$work/pose")" == 1
pose_at "$((now_ns + 900000000))"
check "too far ahead" "$(grep -c too_far_ahead "$work/why")" == 1
pose_at "$((now_ns - 100000000000))"
check "before the window" "$(grep -c before_window "$work/why")" == 1
check "samples lost" "$(status motion.lost)" == 0
stop_daemon TERM
check "exit code of SIGTERM" "$code" == 0

start_daemon "${roomy[@]}"
answered "with output.rate_hz: 0" 40
[ ! -e "${motion#ipc://}" ]
check "no socket" $? == 0
pose_at now
check "pose now" "$(grep -c '"kind":"filtered"' "$work/pose")" == 1
stop_daemon TERM
check "exit code of SIGTERM" "$code" == 0
exit $failed
