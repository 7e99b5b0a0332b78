#!/usr/bin/env bash
# drive.sh BIN_DIR: a drive at 10 Hz and at 20 Hz: every scan answered exactly once, p99 from send to result under 100 ms.
source "$(dirname "$0")/common.sh" "$1"
simulate --scans 60
bags=("$work/drive/drive.bag")
for rate in 10 20; do
    start_daemon
    "$bin/live_probe" answers "$scans" "$poses" "$work/drive/drive.bag" $rate >"$work/out" || failed=1
    stop_daemon TERM
    echo "-- simulated drive at $rate Hz: $(tr '\n' ' ' <"$work/out")"
    check "answered" "$(value answered "$work/out")" == 60
    check "converged" "$(value converged "$work/out")" == 60
    check "farthest pose from the truth [m]" "$(value error_max_m "$work/out")" "<" 0.15
    check "answered twice" "$(value twice "$work/out")" == 0
    sanitized || check "p99 of send to result [ms]" "$(value latency_p99_ms "$work/out")" "<" 100
    check "exit code of SIGTERM" "$code" == 0
done

data=${NDT_SHARED_DATA:-}/kitti0005_lite
if [ -f "$data/times.txt" ]; then
    "$bin/ndt-bag" pack --scans "$data/scans" --times "$data/times.txt" --truth "$data/poses_velo_lidar_refined.txt" \
        --format kitti --every 2 --offset 1 --initial first --out "$work/odd.bag" >/dev/null || exit 1
    for rate in 10 20; do
        start_daemon --set preprocess.deskew=azimuth_cw --set "map.path=$data/map_from_even_scans_0.20m.pcd"
        "$bin/live_probe" answers "$scans" "$poses" "$work/odd.bag" $rate >"$work/out" || failed=1
        stop_daemon TERM
        echo "-- KITTI 0005 at $rate Hz: $(tr '\n' ' ' <"$work/out")"
        check "answered" "$(value answered "$work/out")" == 77
        check "converged" "$(value converged "$work/out")" == 77
        sanitized || check "p99 of send to result [ms]" "$(value latency_p99_ms "$work/out")" "<" 100
    done
else
    echo "note: NDT_SHARED_DATA is not set, the real drive was left out"
fi
exit $failed
