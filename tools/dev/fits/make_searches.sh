#!/usr/bin/env bash
# make_searches.sh BIN_DIR OUT_DIR: searches in right and wrong worlds for fit.py: simulated drives and, with
# NDT_SHARED_DATA, KITTI drives. Writes OUT_DIR/sim/DRIVE__MAP__VIEW.csv and OUT_DIR/kitti/. Takes an hour on one core.
set -euo pipefail
bin=${1:?folder of the programs}
out=${2:?output folder}
data=${NDT_SHARED_DATA:-}
mkdir -p "$out/sim" "$out/kitti" "$out/drives"
views=(all v70 v120 v180 r20 thin tilt v70thin)
declare -A options=([all]="" [v70]="--view 70" [v120]="--view 120" [v180]="--view 180" [r20]="--range 20" [thin]="--keep 10"
    [tilt]="--tilt 8" [v70thin]="--view 70 --keep 4") maps=() bags=()

# drive NAME OPTIONS of ndt-sim...
drive() {
    [ -e "$out/drives/$1/drive.bag" ] || "$bin/ndt-sim" --out "$out/drives/$1" --force --columns 900 "${@:2}" >/dev/null
    maps[$1]=$out/drives/$1/map.pcd bags[$1]=$out/drives/$1/drive.bag
}

# mirrored NAME: the map of a drive, mirrored, as m_NAME
mirrored() {
    mkdir -p "$out/drives/m_$1"
    python3 - "${maps[$1]}" "$out/drives/m_$1/map.pcd" <<'PYTHON'
import sys
import numpy as np
text = open(sys.argv[1], "rb").read()
end = text.index(b"\n", text.index(b"DATA binary")) + 1
fields = dict(line.split(" ", 1) for line in text[:end].decode().splitlines())
points = np.frombuffer(text[end:], "<f4").reshape(int(fields["POINTS"]), -1).copy()
points[:, 1] *= -1
open(sys.argv[2], "wb").write(text[:end] + points.tobytes())
PYTHON
    maps[m_$1]=$out/drives/m_$1/map.pcd
}

# search DRIVE MAP VIEW SEED OPTIONS...
search() {
    local folder=sim file
    case $1$2 in *kitti*) folder=kitti ;; esac
    file=$out/$folder/$1__$2__$3.csv
    # shellcheck disable=SC2086
    [ -s "$file" ] || "$bin/ndt-bench" search --bag "${bags[$1]}" --map "${maps[$2]}" --steady --seed "$4" \
        ${options[${3%-*}]} --csv "$file" "${@:5}" >/dev/null
}

for s in 1 2 3 4 5 6 7; do
    drive hall30$s --world hall --carrier handheld --seed 30$s --scans 60
    drive hallv31$s --world hall --carrier handheld --seed 31$s --scans 80 --view 70 --gaps $((s < 4 ? 4 : 0))
    drive street10$s --world street --seed 10$s --scans 120 --beams $((16 << s % 4))
done
for s in 1 2 3; do
    drive city20$s --world city --extent $((300 + 100 * s)) --seed 20$s --scans 120
    drive corridor40$s --world corridor --seed 40$s --scans 60
    drive tunnel41$s --world tunnel --seed 41$s --scans 60
    drive cutcity22$s --world city --extent 300 --seed 22$s --scans 100 --cut-out 30
    drive mircity23$s --world city --extent 300 --seed 23$s --scans 100 --mirror
    drive twincity24$s --world city --extent 600 --seed 24$s --scans 60 --twin 40
    drive twinhall25$s --world hall --carrier handheld --seed 25$s --scans 60 --twin 15
    drive cuthall32$s --world hall --carrier handheld --seed 32$s --scans 60 --cut-out 8
    drive mirhall33$s --world hall --carrier handheld --seed 33$s --scans 60 --mirror
    drive cutstreet12$s --world street --seed 12$s --scans 100 --cut-out 15
    drive mirstreet13$s --world street --seed 13$s --scans 100 --mirror
done
[ ! -d "$data" ] || for number in 0005 0001; do
    folder=$data/kitti${number}_lite
    bags[kitti$number]=$out/drives/kitti$number.bag maps[kitti$number]=$folder/map_from_even_scans_0.20m.pcd
    [ -s "${bags[kitti$number]}" ] || "$bin/ndt-bag" pack --scans "$folder/scans" --times "$folder/times.txt" --truth \
        "$folder/poses_velo_lidar_refined.txt" --format kitti --every 2 --offset 1 --initial first --out "${bags[kitti$number]}"
done

# Right worlds, and sequences in mirrored ones.
for name in "${!bags[@]}"; do
    search "$name" "$name" all 1
    case $name in *city*) continue ;; esac
    case $name in hallv*) ;; *) search "$name" "$name" v70 1 ;; esac
    case $name in hall[3v]* | street* | kitti*) ;; *) continue ;; esac
    mirrored "$name"
    search "$name" "m_$name" all 1
    case $name in hallv*) ;; *) search "$name" "m_$name" v70 1 && search "$name" "m_$name" v120 7 ;; esac
done
# Single scans in other worlds: every drive in every small map and a few cities.
number=0
for name in $(printf '%s\n' "${!bags[@]}" | sort); do
    for world in $(printf '%s\n' "${!bags[@]}" | sort); do
        number=$((number + 1))
        case $name,$world in "$world,$world" | mir*,mir*) continue ;; *,*city*) [ $((number % 40)) = 0 ] || continue ;; esac
        search "$name" "$world" "${views[number % 8]}-12" "$number" --scans 12 --elsewhere
    done
done
