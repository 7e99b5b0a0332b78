#!/usr/bin/env bash
# make_features.sh BIN_DIR OUT_DIR: features of alignments on simulated drives and, with NDT_SHARED_DATA, on KITTI drives.
# Writes OUT_DIR/sim/DRIVE-VIEW.csv and OUT_DIR/kitti/DRIVE-VIEW.csv for fit.py. Takes about ten minutes.
set -euo pipefail
bin=${1:?folder of the programs}
out=${2:?output folder}
data=${NDT_SHARED_DATA:-}
mkdir -p "$out/sim" "$out/kitti" "$out/drives"
seed=0

# features FOLDER DRIVE VIEW SEED OPTIONS...
features() {
    local file=$out/$1/$2-$3.csv
    [ -s "$file" ] || "$bin/ndt-bench" confidence --csv "$file" --seed "$4" --threads 1 \
        --offsets 0.2/0.6,0.5/3,1/5,3/15,10/45,10/180 "${@:5}" >"${file%.csv}.txt"
}

# views FOLDER DRIVE SEED OPTIONS...: parts of the circle, other leaf sizes
views() {
    features "$1" "$2" front "$3" "${@:4}" --set "preprocess.crop_min_m=[0,-100,-100]"
    features "$1" "$2" narrow "$3" "${@:4}" --set "preprocess.crop_min_m=[2,-8,-100]" \
        --set "preprocess.crop_max_m=[100,8,100]"
    features "$1" "$2" coarse "$3" "${@:4}" --levels 4-2
    features "$1" "$2" fine "$3" "${@:4}" --levels 2-1-0.5
}

# simulate DRIVE OPTIONS...
simulate() {
    [ -d "$out/drives/$1" ] || "$bin/ndt-sim" --out "$out/drives/$1" --scans 120 "${@:2}" >/dev/null
}

# drive NAME OPTIONS of ndt-sim...
drive() {
    seed=$((seed + 1))
    simulate "$1" --seed "$seed" "${@:2}"
    input=(--map "$out/drives/$1/map.pcd" --bag "$out/drives/$1/drive.bag" --set preprocess.deskew=time)
    features sim "$1" all "$seed" "${input[@]}" --scans 40 --rounds 3
}

drive street1
drive street2
views sim street2 2 "${input[@]}" --scans 40
drive street3
drive street4 --beams 16 --columns 900
views sim street4 4 "${input[@]}" --scans 40
drive street5 --beams 64 --columns 900
drive street6 --noise 0.06 --dropout 0.3
drive street7 --beams 16 --noise 0.1 --dropout 0.5
drive street8 --columns 900 --map-spacing 0.4
drive utm --world utm
drive corridor1 --world corridor
drive corridor2 --world corridor --beams 16
drive tunnel1 --world tunnel
drive tunnel2 --world tunnel --beams 64 --columns 900
# The map of another street: no pose is right.
features sim street1 elsewhere 1 --map "$out/drives/street2/map.pcd" --bag "$out/drives/street1/drive.bag" \
    --set preprocess.deskew=time --scans 40 --elsewhere

[ -d "$data" ] || exit 0
for number in 0005 0001; do
    folder=$data/kitti${number}_lite bag=$out/drives/kitti$number.bag
    [ -s "$bag" ] || "$bin/ndt-bag" pack --scans "$folder/scans" --times "$folder/times.txt" --truth \
        "$folder/poses_velo_lidar_refined.txt" --format kitti --every 2 --offset 1 --initial first --out "$bag"
    input=(--map "$folder/map_from_even_scans_0.20m.pcd" --bag "$bag" --set preprocess.deskew=azimuth_cw)
    features kitti kitti$number all 1 "${input[@]}" --scans 0 --rounds 4
    views kitti kitti$number 2 "${input[@]}" --scans 0
done
features kitti kitti0005 elsewhere 1 "${input[@]}" --bag "$out/drives/kitti0005.bag" --scans 40 --elsewhere
