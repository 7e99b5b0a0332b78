#!/usr/bin/env bash
# drive.sh BIN_DIR: a drive at 10 Hz with the default budget and at 20 Hz with a generous one: every scan answered
# exactly once; with the generous one all converge. The latency is printed; its median, less the scheduling delay of
# the threads, must be below 100 ms.
source "$(dirname "$0")/common.sh" "$1"

# drive NAME RATE_HZ SCANS BAG OPTIONS...
drive() {
    local name=$1 rate=$2 count=$3 bag=$4
    shift 4
    start_daemon "$@"
    "$bin/live_probe" answers "$scans" "$poses" "$bag" "$rate" "$daemon" >"$work/out" || failed=1
    stop_daemon TERM
    echo "-- $name at $rate Hz: $(tr '\n' ' ' <"$work/out")"
    note_latency "$work/out"
    check "answered" "$(value answered "$work/out")" == "$count"
    check "answered twice" "$(value twice "$work/out")" == 0
    if [ "$rate" = 10 ]; then
        # Scans without time to be aligned are answered from the prediction; after some of them it is wrong, which the
        # next scans say, or the pose is lost.
        late=$(value deadline "$work/out")
        behind=$(($(value low_score "$work/out") + $(value lost "$work/out")))
        check "converged, deadline, or behind it low_score or lost" \
            "$(($(value converged "$work/out") + late + (late > 0 ? behind : 0)))" == "$count"
    else
        check "converged" "$(value converged "$work/out")" == "$count"
    fi
    sanitized || check "median of send to result, less scheduling delay [ms]" "$(value running_p50_ms "$work/out")" "<" 100
    check "exit code of SIGTERM" "$code" == 0
}

simulate --scans 60
drive "simulated drive" 10 60 "$work/drive/drive.bag"
drive "simulated drive" 20 60 "$work/drive/drive.bag" "${roomy[@]}"
check "largest error to the ground truth [m]" "$(value error_max_m "$work/out")" "<" 0.15

data=${NDT_SHARED_DATA:-}/kitti0005_lite
if sanitized; then
    exit $failed # the same threads with more points
elif [ -f "$data/times.txt" ]; then
    "$bin/ndt-bag" pack --scans "$data/scans" --times "$data/times.txt" --truth "$data/poses_velo_lidar_refined.txt" \
        --format kitti --every 2 --offset 1 --initial first --out "$work/odd.bag" >/dev/null || exit 1
    kitti=(--set preprocess.deskew=azimuth_cw --set "map.path=$data/map_from_even_scans_0.20m.pcd")
    drive "KITTI 0005" 10 77 "$work/odd.bag" "${kitti[@]}"
    drive "KITTI 0005" 20 77 "$work/odd.bag" "${kitti[@]}" "${roomy[@]}"
else
    echo "note: NDT_SHARED_DATA is not set, the real drive was left out"
fi
exit $failed
