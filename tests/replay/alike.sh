#!/usr/bin/env bash
# alike.sh BIN_DIR [--worlds LIST] [--seeds LIST] [--starts LIST] [--inputs LIST] [--scans N] [--lost N] [--untimed]
#
# Places that look alike one step aside: along a corridor, a tunnel, an aisle of racks, rows of parked cars, a street of
# equal houses. Drives from first poses that are wrong along the way; prints, for each world: scans, converged, off (the
# pose is more than 1 m or 5 deg from the truth), and wrong: off, and `converged`, `tracking` or `coasting` all the same.
# The exit status is 1 where a scan is wrong, or where a drive from the true pose in a corridor loses more than LOST scans.
#   --starts   first poses as ALONG:ACROSS:YAW, metres and degrees (default: a few from 0 to 5 m and 0 to 30 deg)
#   --inputs   none: scans alone; both: with odometry and IMU
#   --lost     LOST (default: 3)
#   --untimed  times of points that fit no unit: nothing undoes the motion within the sweep
set -uo pipefail
bin=$(cd "$1" && pwd) || exit 2
here=$(cd "$(dirname "$0")" && pwd)
shift
worlds="corridor shelves parking terrace tunnel" seeds="1" inputs="none" scans=60 lost=3
starts="0:0:0 -3:0:0 -2:0:0 2:0:0 3:0.4:12 5:-0.3:-30"
deskew="time"
while [ $# -gt 0 ]; do
    case $1 in
        --worlds) worlds=$2; shift ;;
        --seeds) seeds=$2; shift ;;
        --starts) starts=$2; shift ;;
        --inputs) inputs=$2; shift ;;
        --scans) scans=$2; shift ;;
        --lost) lost=$2; shift ;;
        --untimed) deskew=auto ;;
        *) echo "no such option: $1"; exit 2 ;;
    esac
    shift
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

report() { python3 "$here/stress_report.py" "$@"; }

# drive START FILE: replays $work/drive from this first pose and adds the figures to FILE
drive() {
    local offset start
    IFS=: read -ra start <<<"$1"
    offset=$(report offset "$bin" "$work/drive/drive.bag" "${start[@]}") || exit 1
    "$bin/ndt-bag" cut "$work/drive/drive.bag" --offset-pose "$offset" --out "$work/start.bag" --force >/dev/null || exit 1
    if ! "$bin/ndtd" --replay "$work/start.bag" --map "$work/drive/map.ndtmap" --timing "$work/timing.csv" --threads 1 \
        --set "preprocess.deskew=$deskew" >/dev/null 2>"$work/err"; then
        echo "FAIL $1: $(tail -n 1 "$work/err")"
        failed=1
        return
    fi
    report one "$bin" "$work/start.bag" "$work/timing.csv" "$2" || failed=1
}

simulate() { # WORLD SEED INPUT
    local options=()
    [ "$3" = none ] || options=(--odometry --imu 100)
    "$bin/ndt-sim" --world "$1" --seed "$2" --scans "$scans" --columns 600 "${options[@]}" --out "$work/drive" --force \
        >/dev/null || exit 1
    if [ "$deskew" = auto ]; then
        "$bin/ndt-bag" cut "$work/drive/drive.bag" --point-times 19.5,0 --out "$work/untimed.bag" --force >/dev/null || exit 1
        mv "$work/untimed.bag" "$work/drive/drive.bag"
    fi
    "$bin/ndtd" --compile-map "$work/drive/map.ndtmap" --map "$work/drive/map.pcd" >/dev/null 2>&1 || exit 1
}

for world in $worlds; do
    for input in $inputs; do
        rm -f "$work/exact" "$work/off"
        for seed in $seeds; do
            simulate "$world" "$seed" "$input"
            for start in $starts; do
                kind=off
                [ "$start" != 0:0:0 ] || kind=exact
                drive "$start" "$work/$kind"
            done
        done
        for kind in exact off; do
            [ -e "$work/$kind" ] || continue
            report sum "$world, $input, $kind" "$work/$kind"
            most=$scans
            [ "$world$kind" != corridorexact ] || most=$lost
            report check "$work/$kind" "$most" || failed=1
        done
    done
done
exit $failed
