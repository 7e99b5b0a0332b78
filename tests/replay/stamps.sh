#!/usr/bin/env bash
# stamps.sh BIN_DIR [--seeds LIST] [--scans N]: with stamps at the begin, middle and end of the sweep the trajectories
# are equal within 1 mm and 0.01 deg and no scan is lost, for times of the points as a field and by azimuth, one and two
# passes, with and without odometry. Field and azimuth give the same trajectory too if all points are matched: times
# that differ by less than a microsecond can put a point into another cell, and then another random sample is drawn.
# Simulated drives (seeds "1 2", 30 scans each), and with NDT_SHARED_DATA the odd scans of KITTI 2011_09_26_0005, whose
# times follow from the azimuth and whose odometry is a GNSS/INS with jumps of centimetres.
#
# compare_timings.py compares poses at the reference moment of the sweep, not at the stamps: those are 50 ms apart, and
# each carries the error of its velocity.
set -uo pipefail
bin=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
shift
seeds="1 2" scans=30 limit_mm=1 limit_deg=0.01
while [ $# -gt 1 ]; do
    case $1 in
        --seeds) seeds=$2 ;;
        --scans) scans=$2 ;;
        *) echo "no such option: $1"; exit 2 ;;
    esac
    shift 2
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# replay BAG MAP TIMING OPTIONS...
replay() {
    "$bin/ndtd" --replay "$1" --map "$2" --timing "$3" "${@:4}" >/dev/null 2>"$work/err" && return
    echo "FAIL $1: $(tail -n 1 "$work/err")"
    failed=1
}

# compare KIND NAME A B: prints the differences of two files of --timing; KIND note: without a limit on them
compare() {
    local count lost mm deg us verdict=ok limits="$limit_mm $limit_deg"
    [ "$1" = check ] || limits="1e9 360"
    if ! read -r count lost mm deg us < <(python3 "$here/compare_timings.py" "$3" "$4"); then
        echo "FAIL $2: not comparable"
        failed=1
        return
    fi
    if ! awk -v mm="$mm" -v deg="$deg" -v lost="$lost" -v limits="$limits" \
        'BEGIN {split(limits, a, " "); exit !(mm <= a[1] && deg <= a[2] && lost == 0)}'; then
        verdict=FAIL
        failed=1
    fi
    [ "$1" = check ] || verdict=note
    echo "$verdict $2: $count scans, $lost not converged, largest difference $mm mm, $deg deg; moments within $us us"
}

# run TIMES STAMP ODOMETRY MAP TIMING OPTIONS...
run() {
    local bag=$work/$1_$2.bag options=(--set preprocess.deskew=time)
    [ "$1" = field ] || options=(--set preprocess.deskew=azimuth_cw --set "preprocess.sweep_stamp=$2")
    if [ "$3" = without ]; then
        "$bin/ndt-bag" cut "$bag" --without odometry --force --out "$work/without.bag" >/dev/null || failed=1
        bag=$work/without.bag
    fi
    replay "$bag" "$4" "$5" "${options[@]}" "${@:6}"
}

# all_stamps NAME MAP OPTIONS...: the bags $work/{field,azimuth}_{begin,middle,end}.bag
all_stamps() {
    local passes odometry times stamp what options
    for passes in 1 2; do
        for odometry in without with; do
            what="$1, $passes pass(es), $odometry odometry,"
            options=("${@:3}" --set "preprocess.deskew_passes=$passes")
            for times in field azimuth; do
                run $times middle $odometry "$2" "$work/$times.csv" "${options[@]}"
                for stamp in begin end; do
                    run $times $stamp $odometry "$2" "$work/other.csv" "${options[@]}"
                    compare check "$what $times, $stamp and middle" "$work/$times.csv" "$work/other.csv"
                done
            done
            compare note "$what field and azimuth, sampled" "$work/field.csv" "$work/azimuth.csv"
            for times in field azimuth; do
                run $times middle $odometry "$2" "$work/$times.csv" "${options[@]}" --set preprocess.sample_count=0
            done
            compare check "$what field and azimuth, all points" "$work/field.csv" "$work/azimuth.csv"
        done
    done
}

for seed in $seeds; do
    for stamp in begin middle end; do
        "$bin/ndt-sim" --seed "$seed" --scans "$scans" --odometry --stamp $stamp --out "$work/$stamp" --force >/dev/null || exit 1
        ln -sf "$work/$stamp/drive.bag" "$work/field_$stamp.bag"
        ln -sf "$work/$stamp/drive.bag" "$work/azimuth_$stamp.bag"
    done
    all_stamps "street $seed" "$work/middle/map.pcd"
done

data=${NDT_SHARED_DATA:-}/kitti0005_lite
if [ -f "$data/times.txt" ]; then
    rm -f "$work"/*.bag
    "$bin/ndt-bag" pack --scans "$data/scans" --times "$data/times.txt" --truth "$data/poses_velo_lidar_refined.txt" \
        --odometry "$data/poses_velo.txt" --format kitti --every 2 --offset 1 --initial first \
        --out "$work/azimuth_middle.bag" >/dev/null || exit 1
    for stamp in begin middle end; do
        "$bin/ndt-bag" restamp "$work/azimuth_middle.bag" --times azimuth_cw --stamp $stamp \
            --out "$work/field_$stamp.bag" >/dev/null || exit 1
    done
    "$bin/ndt-bag" restamp "$work/azimuth_middle.bag" --shift -0.05 --out "$work/azimuth_begin.bag" >/dev/null || exit 1
    "$bin/ndt-bag" restamp "$work/azimuth_middle.bag" --shift 0.05 --out "$work/azimuth_end.bag" >/dev/null || exit 1
    all_stamps "KITTI 0005" "$data/map_from_even_scans_0.20m.pcd"
else
    echo "note: NDT_SHARED_DATA names no folder with kitti0005_lite, the real drive was left out"
fi
exit $failed
