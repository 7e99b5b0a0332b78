#!/usr/bin/env bash
# real_drive.sh BIN_DIR [SEEDS]: KITTI 2011_09_26_0005 and 0001, odd scans against the map of the even ones, only the first
# pose and twist given. Every figure is the mean over SEEDS seeds of the sample of points (5). The limits are those
# that the project guarantees; skipped (77) without the data.
set -uo pipefail
bin=$1 seeds=${2:-5}
shared=${NDT_SHARED_DATA:-}
[ -f "$shared/kitti0005_lite/times.txt" ] || { echo "skipped: NDT_SHARED_DATA names no folder with kitti0005_lite"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# pack NAME: makes the bag of a drive in $data
pack() {
    data=$shared/$1
    "$bin/ndt-bag" pack --scans "$data/scans" --times "$data/times.txt" --truth "$data/poses_velo_lidar_refined.txt" \
        --format kitti --every 2 --offset 1 --initial first --force --out "$work/odd.bag" >/dev/null
}

# value KEY PART: the mean of a number of the summaries
value() {
    sed -n "s/^  \"$1\": {.*\"$2\": \([-0-9.e+]*\).*/\1/p" "$work"/summary*.json |
        awk '{sum += $1} END {if (NR) printf "%.5g", sum / NR}'
}

# at_most WHAT NUMBER LIMIT
at_most() {
    if awk -v a="$2" -v b="$3" 'BEGIN {exit !(a != "" && a + 0 <= b + 0)}'; then
        echo "ok   $1: $2 <= $3"
    else
        echo "FAIL $1: ${2:-nothing} > $3"
        failed=1
    fi
}

# drive NAME T_MEDIAN T_P95 T_MAX [m] R_MEDIAN R_P95 R_MAX [deg] EVALUATIONS OPTIONS...
drive() {
    local name=$1 limits=("${@:2:7}")
    for seed in $(seq "$seeds"); do
        "$bin/ndtd" --replay "$work/odd.bag" --map "$data/map_from_even_scans_0.20m.pcd" \
            --set preprocess.deskew=azimuth_cw --set "preprocess.seed=$seed" --summary "$work/summary$seed.json" \
            "${@:9}" >/dev/null || failed=1
    done
    at_most "$name off" "$(sed -n 's/^  "off": \([0-9]*\).*/\1/p' "$work"/summary*.json | sort -n | tail -n 1)" 0
    at_most "$name translation median" "$(value translation_error_m median)" "${limits[0]}"
    at_most "$name translation p95" "$(value translation_error_m p95)" "${limits[1]}"
    at_most "$name translation max" "$(value translation_error_m max)" "${limits[2]}"
    at_most "$name rotation median" "$(value rotation_error_deg median)" "${limits[3]}"
    at_most "$name rotation p95" "$(value rotation_error_deg p95)" "${limits[4]}"
    at_most "$name rotation max" "$(value rotation_error_deg max)" "${limits[5]}"
    at_most "$name evaluations mean" "$(value evaluations mean)" "${limits[6]}"
}

pack kitti0005_lite || exit 1
drive "0005, one pass," 0.011 0.024 0.04 0.035 0.07 0.12 8.5
drive "0005, two passes," 0.011 0.024 0.04 0.035 0.07 0.12 9 --set preprocess.deskew_passes=2
drive "0005, two passes without prior," 0.016 0.03 0.05 0.045 0.08 0.13 12 --set preprocess.deskew_passes=2 --set ndt.prior=off
if [ -f "$shared/kitti0001_lite/times.txt" ]; then
    pack kitti0001_lite || exit 1
    drive "0001, one pass," 0.0105 0.035 0.05 0.025 0.045 0.08 10
    drive "0001, two passes," 0.0105 0.035 0.05 0.025 0.045 0.08 10.5 --set preprocess.deskew_passes=2
else
    echo "note: there is no kitti0001_lite"
fi
exit "$failed"
