#!/usr/bin/env bash
# frames.sh BIN_DIR [SCANS]: where a sensor is mounted, and how many there are, changes the trajectory of the base only by
# the noise of what they see. 5000 points, so that this noise is small against the limits.
set -uo pipefail
bin=$1 scans=${2:-150}
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

simulate() { # NAME OPTIONS...
    "$bin/ndt-sim" --out "$work/$1" --seed 5 --scans "$scans" --odometry --imu 100 "${@:2}" >/dev/null || exit 1
}

replay() { # NAME OPTIONS...
    "$bin/ndtd" --replay "$work/$1/drive.bag" --map "$work/$1/map.pcd" --set preprocess.deskew=time \
        --set preprocess.sample_count=5000 --timing "$work/$1.csv" "${@:2}" >"$work/$1.log" || {
        cat "$work/$1.log"
        exit 1
    }
}

# difference WHAT A B LIMIT_MM LIMIT_DEG
difference() {
    local count lost mm deg verdict=ok
    read -r count lost mm deg _ < <(python3 "$here/compare_timings.py" "$work/$2.csv" "$work/$3.csv") || exit 1
    if ! awk -v mm="$mm" -v deg="$deg" -v most_mm="$4" -v most_deg="$5" -v lost="$lost" \
        'BEGIN { exit !(lost == 0 && mm <= most_mm && deg <= most_deg) }'; then
        verdict=FAIL
        failed=1
    fi
    echo "$verdict $1: $count scans, $lost not converged, largest difference $mm mm (limit $4), $deg deg (limit $5)"
}

simulate base
simulate mounted --mount 1.2,0,1.8,0,0,30
simulate halves --sensors 2 --mount 0.8,0.3,1.8,0,0,20,-0.8,-0.3,1.8,0,0,-160
replay base
replay mounted --set "frames.T_base_sensor=[1.2, 0, 1.8, 0, 0, 0.5235987755982988]"
replay halves --set frames.merge_sensors=true --set preprocess.sweep_s=0.1 \
    --set "frames.sensors=[lidar_0 0.8 0.3 1.8 0 0 0.3490658503988659, lidar_1 -0.8 -0.3 1.8 0 0 -2.792526803190927]"
difference "a sensor 1.2 m ahead, 1.8 m up, yawed by 30 deg" base mounted 5 0.02
grep -v lidar "$work/halves.log" | grep -q "merged *$scans" || {
    echo "FAIL not every sweep was merged"
    failed=1
}
difference "two sensors of half the field of view each" base halves 10 0.05
exit "$failed"
