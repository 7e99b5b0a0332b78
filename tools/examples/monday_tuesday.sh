#!/usr/bin/env bash
# A map from Monday's drive, and Tuesday's drive localised in it, both simulated: the scans alone, as a recording of a
# sensor has them. ndt-map build is a command of the Python package.
#   monday_tuesday.sh BIN_DIR DIR        writes to DIR, which must not exist
set -euo pipefail
bin=$(cd "${1:?folder with the programs}" && pwd)
out=${2:?folder to write to}
mkdir -p "$(dirname "$out")"
mkdir "$out" # fails where it exists
cd "$out"

# drive NAME OPTIONS...: NAME.bag, without the pose of its start and the truth.
drive() {
    local name=$1
    shift
    "$bin/ndt-sim" --seed 1 --world street --out "$name" "$@" >/dev/null
    "$bin/ndt-bag" cut "$name/drive.bag" --without initial_pose,truth --out "$name.bag"
}

drive monday
drive tuesday --noise 0.03 --columns 1500 # another sensor in the same street
"$bin/ndt-map" build monday.bag -o map
"$bin/ndtd" --replay tuesday.bag --map map/map.pcd --out tuesday.tum
