#!/usr/bin/env bash
# stamps.sh BIN_DIR [--seeds LIST] [--scans N]: stamps at the begin, middle and end of the sweep, times of the points as a
# field and by azimuth, one and two passes, with and without odometry: the trajectories are those of stamps in the
# middle with a field, within 1 mm and 0.01 deg, and no scan is lost. Simulated drives (seeds "1 2", 40 scans each),
# and with NDT_SHARED_DATA the odd scans of KITTI 2011_09_26_0005, whose times follow from the azimuth.
#
# compare_timings.py compares poses at the reference moment of the sweep, not at the stamps: it undoes the carrying
# to the stamp with the twist of the same result. Poses at stamps 50 ms apart cannot be compared with each other, and
# each carries the error of its velocity.
set -uo pipefail
bin=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
shift
seeds="1 2" scans=40 limit_mm=1 limit_deg=0.01
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

# compare NAME A B: checks and prints the differences of two files of --timing
compare() {
    local count lost mm deg us verdict=ok
    if ! read -r count lost mm deg us < <(python3 "$here/compare_timings.py" "$2" "$3"); then
        echo "FAIL $1: not comparable"
        failed=1
        return
    fi
    if ! awk -v mm="$mm" -v deg="$deg" -v lost="$lost" -v a="$limit_mm" -v b="$limit_deg" \
        'BEGIN {exit !(mm <= a && deg <= b && lost == 0)}'; then
        verdict=FAIL
        failed=1
    fi
    echo "$verdict $1: $count scans, $lost not converged, largest difference $mm mm, $deg deg; reference moments within $us us"
}

# all_stamps NAME MAP: the bags $work/{field,azimuth}_{begin,middle,end}.bag, with and without odometry
all_stamps() {
    local passes stamp times odometry bag base
    for passes in 1 2; do
        for odometry in without with; do
            base=$work/base.csv
            for times in field azimuth; do
                for stamp in middle begin end; do
                    bag=$work/${times}_$stamp.bag
                    [ "$odometry" = with ] || bag=$work/without.bag
                    [ "$odometry" = with ] || "$bin/ndt-bag" cut "$work/${times}_$stamp.bag" --without odometry \
                        --force --out "$bag" >/dev/null || failed=1
                    local options=(--set "preprocess.deskew_passes=$passes" --set preprocess.deskew=time)
                    [ $times = field ] || options+=(--set preprocess.deskew=azimuth_cw --set "preprocess.sweep_stamp=$stamp")
                    if [ $times = field ] && [ $stamp = middle ]; then
                        replay "$bag" "$2" "$base" "${options[@]}"
                        compare "$1, $passes pass(es), $odometry odometry, $times, $stamp" "$base" "$base"
                        continue
                    fi
                    replay "$bag" "$2" "$work/other.csv" "${options[@]}"
                    compare "$1, $passes pass(es), $odometry odometry, $times, $stamp" "$base" "$work/other.csv"
                done
            done
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
