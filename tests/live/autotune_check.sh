#!/usr/bin/env bash
# autotune_check.sh BIN_DIR [ROUNDS]: compares the choice of auto with full replays. For each case (points, map, budget) a
# drive is replayed with 1, 2, 3 and 4 threads in turns, and the daemon is started with auto and a fresh cache. It prints
# the p95 of whole alignments of every candidate in ms (median over the rounds), the choice, and the ratio of its p95 to the
# best one. Not a test: other load on the machine moves the numbers (`sudo nice -n -20` helps). With NDT_SHARED_DATA it
# includes a real drive.
source "$(dirname "$0")/common.sh" "$1"
rounds=${2:-5}
data=${NDT_SHARED_DATA:-}/kitti0005_lite
most=4

simulate --beams 32 --columns 1800 --map-spacing 0.15 --scans 60
mv "$work/drive" "$work/street"
simulate --beams 32 --columns 1800 --map-spacing 0.3 --scans 60 --world utm --seed 4
mv "$work/drive" "$work/utm"
if [ -f "$data/times.txt" ]; then
    mkdir "$work/kitti"
    "$bin/ndt-bag" pack --scans "$data/scans" --times "$data/times.txt" --truth "$data/poses_velo_lidar_refined.txt" \
        --format kitti --every 2 --offset 1 --initial first --out "$work/kitti/drive.bag" >/dev/null || exit 1
    ln -s "$data/map_from_even_scans_0.20m.pcd" "$work/kitti/map.pcd"
fi

# p95 FILE: of all alignments in this timing file [us]; that of the first scan, which wakes everything, left out
p95() {
    awk -F, '
        NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        $1 == "scan" && seen++ { print $at["align_us"] + $at["upload_us"] }' "$1" |
        sort -n | awk '{v[NR] = $1} END {print v[int(0.95 * (NR - 1)) + 1]}'
}

median() { # of the numbers on standard input
    sort -n | awk '{v[NR] = $1} END {print v[int((NR + 1) / 2)]}'
}

printf '%-34s' "points, map, budget"
for ((t = 1; t <= most; t++)); do printf ' %9s' "cpu $t"; done
printf ' %9s %9s %8s\n' auto best factor
good=0 cases=0

# compare POINTS MAP BUDGET_MS
compare() {
    local points=$1 map=$2 budget=$3 deskew=time t round chosen best=1 values=()
    local options=(--set "preprocess.sample_count=$points" --set preprocess.voxel_m=0 --set "live.budget_ms=$budget")
    [ -d "$work/$map" ] || return
    [ "$map" = kitti ] && deskew=azimuth_cw
    options+=(--map "$work/$map/map.pcd" --set "preprocess.deskew=$deskew")
    for ((round = 1; round <= rounds; round++)); do
        for ((t = 1; t <= most; t++)); do
            "$bin/ndtd" --replay "$work/$map/drive.bag" "${options[@]}" --backend cpu --threads "$t" \
                --timing "$work/timing.csv" >/dev/null 2>&1 || { echo "FAIL: a replay of $map"; exit 1; }
            p95 "$work/timing.csv" >>"$work/p95.$t"
        done
    done
    : >"$work/ndtd.log"
    start_daemon "${options[@]}" --set "autotune.max_threads=$most" --set autotune.cache=refresh
    stop_daemon TERM
    chosen=$(sed -n 's/.*autotune: cpu, \([0-9]*\) thread.*/\1/p' "$work/ndtd.log" | head -n 1)
    printf '%-34s' "$points, $map, $budget ms"
    for ((t = 1; t <= most; t++)); do
        values[t]=$(median <"$work/p95.$t")
        printf ' %9.3f' "$(awk -v us="${values[t]}" 'BEGIN {print us / 1000}')"
        awk -v a="${values[t]}" -v b="${values[best]}" 'BEGIN {exit !(a < b)}' && best=$t
    done
    awk -v chosen="${chosen:-none}" -v best="$best" -v a="${values[${chosen:-1}]}" -v b="${values[best]}" \
        'BEGIN {printf " %9s %9s %8.3f\n", chosen, best, a / b; exit !(a <= 1.1 * b)}' && good=$((good + 1))
    cases=$((cases + 1))
    rm -f "$work"/p95.*
}

compare 756 street 100
compare 1500 street 100
compare 1500 street 1
compare 5000 street 5
compare 20000 street 100
compare 756 utm 5
compare 1500 utm 100
compare 5000 utm 100
compare 1500 kitti 100
compare 5000 kitti 5
compare 10000 kitti 100
echo "$good of $cases within 10 % of the best"
