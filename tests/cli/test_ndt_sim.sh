#!/usr/bin/env bash
# ndt-sim: its files, which are bit-identical for equal seeds, and errors for wrong options.
#   test_ndt_sim.sh BIN_DIR
set -uo pipefail
bin=${1:?folder of the programs}
sim=$bin/ndt-sim
here=$(dirname "$0")
source "$(dirname "$0")/steps.sh"
program=$sim

small=(--scans 2 --beams 16 --columns 90 --map-spacing 0.6)

for world in street utm corridor tunnel; do
    expect 0 "" --seed 3 --world "$world" --out "$dir/$world" "${small[@]}" --odometry
    [ "$(ls "$dir/$world" | paste -sd' ')" = "drive.bag map.pcd" ] || fail "$world: wrote $(ls "$dir/$world")"
    [ "$(head -c 6 "$dir/$world/drive.bag")" = NDTBAG ] || fail "$world: drive.bag is not a bag"
    grep -aq '^DATA binary' "$dir/$world/map.pcd" || fail "$world: map.pcd is not a cloud"
done
grep -aq '^SIZE 8 8 8' "$dir/utm/map.pcd" || fail "utm: the map needs doubles"
grep -aq '^SIZE 4 4 4' "$dir/street/map.pcd" || fail "street: the map needs no doubles"

# Equal seeds give equal bytes, different seeds different ones.
expect 0 "" --seed 3 --world street --out "$dir/again" "${small[@]}" --odometry
cmp -s "$dir/street/map.pcd" "$dir/again/map.pcd" || fail "the same seed gave another map"
cmp -s "$dir/street/drive.bag" "$dir/again/drive.bag" || fail "the same seed gave another drive"
expect 0 "" --seed 4 --world street --out "$dir/other" "${small[@]}" --odometry
cmp -s "$dir/street/map.pcd" "$dir/other/map.pcd" && fail "another seed gave the same map"
cmp -s "$dir/street/drive.bag" "$dir/other/drive.bag" && fail "another seed gave the same drive"

# Stamps, mounts, sensors, IMU. Times, poses and errors are checked in Python, whose standard library suffices.
check() {
    python3 "$here/bag_check.py" "$1" "$bin" "${@:2}" >"$dir/stdout" 2>&1 || fail "bag_check.py $*: $(tail -n 3 "$dir/stdout")"
}
sparse=(--seed 6 --beams 16 --columns 90 --map-spacing 2)
for stamp in begin middle end; do
    expect 0 "" "${sparse[@]}" --scans 3 --stamp $stamp --odometry --imu 100 --out "$dir/$stamp"
    expect 0 "" "${sparse[@]}" --scans 3 --stamp $stamp --sensors 2 --out "$dir/parts_$stamp"
done
expect 0 "" "${sparse[@]}" --scans 3 --odometry --imu 100 --out "$dir/default"
cmp -s "$dir/middle/drive.bag" "$dir/default/drive.bag" || fail "the stamp is not the middle by default"
cmp -s "$dir/begin/map.pcd" "$dir/end/map.pcd" || fail "the stamp changed the map"
check stamps "$dir/begin/drive.bag" "$dir/middle/drive.bag" "$dir/end/drive.bag"
check sensors "$dir/middle/drive.bag" "$dir/parts_middle/drive.bag"
check sensors "$dir/begin/drive.bag" "$dir/parts_begin/drive.bag"
for stamp in begin middle end; do
    "$bin/ndt-bag" restamp "$dir/middle/drive.bag" --stamp $stamp --out "$dir/$stamp.bag" >/dev/null || fail "restamp $stamp"
    check restamp "$dir/middle/drive.bag" "$dir/$stamp.bag" $stamp
done
sparse+=(--scans 5 --rate 20 --noise 0)
mount=1.2,-0.3,0.8,4,-3,30
expect 0 "" "${sparse[@]}" --world corridor --map-spacing 1 --columns 180 --out "$dir/plain"
expect 0 "" "${sparse[@]}" --world corridor --map-spacing 1 --columns 180 --out "$dir/mounted" --mount $mount
cmp -s "$dir/plain/map.pcd" "$dir/mounted/map.pcd" || fail "the mount changed the map"
check mount "$dir/plain/drive.bag" "$dir/mounted/drive.bag" $mount
expect 0 "" "${sparse[@]}" --scans 150 --rate 50 --columns 36 --imu 100 --gyro-noise 0 --gyro-bias 0 --accel-noise 0 \
    --accel-bias 0 --out "$dir/exact"
expect 0 "" "${sparse[@]}" --scans 150 --rate 50 --columns 36 --imu 100 --gyro-noise 0.001 --gyro-bias 0.01 \
    --accel-noise 0.01 --accel-bias 0.1 --out "$dir/noisy"
check imu "$dir/exact/drive.bag" "$dir/noisy/drive.bag"

# On foot: in every world; narrow view, range and gaps.
for world in street corridor tunnel hall; do
    expect 0 "" --seed 3 --world "$world" --carrier handheld --out "$dir/walk_$world" "${small[@]}"
done
walk=(--world hall --carrier handheld --seed 8 --scans 40 --columns 360 --beams 128 --map-spacing 1)
expect 0 "" "${walk[@]}" --odometry --imu 100 --view 70 --range 15 --gaps 6 --out "$dir/walk"
expect 0 "" "${walk[@]}" --odometry --imu 100 --view 70 --range 15 --gaps 6 --out "$dir/walk_again"
cmp -s "$dir/walk/drive.bag" "$dir/walk_again/drive.bag" || fail "the same seed gave another walk"
cmp -s "$dir/walk/map.pcd" "$dir/walk_again/map.pcd" || fail "the same seed gave another hall"
check walk "$dir/walk/drive.bag" 70 15 6
expect 2 "--world: no vehicle fits into the hall" --world hall --out "$dir/x"
expect 2 "--view: '5' is not a number from 10 to 360" --view 5 --out "$dir/x"

# A city is a folder of tiles; the place of the drive is cut out of its map, is there twice, or mirrored.
city=(--world city --extent 400 --seed 8 --scans 4 --columns 180 --beams 64 --map-spacing 0.4)
points() { # CITY: of all tiles
    cat "$dir/$1/map.pcd/"*.pcd | grep -a '^POINTS' | awk '{sum += $2} END {print sum}'
}
for change in whole same "cut --cut-out 60" "twin --twin 40" "mirror --mirror"; do
    # shellcheck disable=SC2086 # the words of an option
    set -- $change
    expect 0 "" "${city[@]}" --out "$dir/$1" "${@:2}"
    [ "$(ls "$dir/$1" | paste -sd' ')" = "drive.bag map.pcd" ] || fail "$1: wrote $(ls "$dir/$1")"
    cmp -s "$dir/whole/drive.bag" "$dir/$1/drive.bag" || fail "$1: the map changed the drive"
    "$bin/ndtd" --replay "$dir/$1/drive.bag" --map "$dir/$1/map.pcd" --set preprocess.deskew=time \
        --summary "$dir/$1.json" >"$dir/stdout" 2>&1 || fail "$1: replay: $(tail -n 1 "$dir/stdout")"
done
diff -r "$dir/whole" "$dir/same" >/dev/null || fail "the same seed gave another city"
converged() { sed -n 's/.*"converged": \([0-9]*\).*/\1/p' "$dir/$1.json"; }
[ "$(converged whole)" = 4 ] || fail "city: $(converged whole) of 4 scans converged"
[ "$(converged twin)" = 4 ] || fail "twin: $(converged twin) of 4 scans converged"
[ "$(converged cut)" = 0 ] || fail "cut out: $(converged cut) scans converged"
[ "$(converged mirror)" = 0 ] || fail "mirror: $(converged mirror) scans converged"
[ "$(points cut)" -lt "$(($(points whole) - 20000))" ] || fail "cut out: $(points cut) of $(points whole) points"
expect 2 'map\.pcd: exists already; --force' "${city[@]}" --out "$dir/whole"
expect 0 "" "${city[@]}" --out "$dir/whole" --force --extent 200
[ "$(points whole)" -lt "$(($(points same) / 2))" ] || fail "--force kept tiles of the larger city"
expect 2 "--twin: a copy of [0-9]* m does not fit into the map" "${city[@]}" --extent 200 --twin 90 --out "$dir/x"

# Existing files are kept without --force.
before=$(cksum "$dir/other/map.pcd" "$dir/other/drive.bag")
expect 2 'map\.pcd: exists already; --force' --seed 5 --out "$dir/other" "${small[@]}"
[ "$before" = "$(cksum "$dir/other/map.pcd" "$dir/other/drive.bag")" ] || fail "a refused run changed the files"
expect 0 "" --seed 5 --out "$dir/other" "${small[@]}" --force
[ "$before" = "$(cksum "$dir/other/map.pcd" "$dir/other/drive.bag")" ] && fail "--force did not overwrite"
[ "$(ls "$dir/other" | paste -sd' ')" = "drive.bag map.pcd" ] || fail "left behind: $(ls "$dir/other")"

# The day of the survey changes the map and not the drive; a map of one scan is smaller than one of two.
walk=(--world office --carrier handheld --scans 4 --beams 16 --columns 90 --seed 3)
for day in 0 0.5; do
    "$sim" "${walk[@]}" --changed $day --out "$dir/day$day" >/dev/null || fail "--changed $day fails"
done
"$sim" "${walk[@]}" --changed 0.5 --drive-later --out "$dir/later" >/dev/null || fail "--drive-later fails"
cmp -s "$dir/day0/map.pcd" "$dir/later/map.pcd" || fail "--drive-later changes the map"
cmp -s "$dir/day0/drive.bag" "$dir/later/drive.bag" && fail "--drive-later leaves the drive as it was"
cmp -s "$dir/day0/drive.bag" "$dir/day0.5/drive.bag" || fail "--changed changes the drive"
cmp -s "$dir/day0/map.pcd" "$dir/day0.5/map.pcd" && fail "--changed leaves the map as it was"
for count in 1 2; do
    "$sim" "${walk[@]}" --world dormitory --map-scans $count --out "$dir/of$count" >/dev/null || fail "--map-scans $count fails"
done
[ "$(stat -c %s "$dir/of1/map.pcd")" -lt "$(stat -c %s "$dir/of2/map.pcd")" ] || fail "--map-scans 1 is as large as 2"
# Marks change intensities alone.
expect 0 "" --seed 3 --world street --out "$dir/marked" "${small[@]}" --odometry --mark-movers
cmp -s "$dir/street/map.pcd" "$dir/marked/map.pcd" || fail "--mark-movers changes the map"
cmp -s "$dir/street/drive.bag" "$dir/marked/drive.bag" && fail "--mark-movers marks nothing"
[ "$(stat -c %s "$dir/street/drive.bag")" = "$(stat -c %s "$dir/marked/drive.bag")" ] || fail "--mark-movers changes the points"
"$sim" "${walk[@]}" --rate 0.2 --out "$dir/slow" >/dev/null || fail "--rate 0.2 fails"
expect 2 "--world: no vehicle fits into the office; it needs --carrier handheld" --world office --out "$dir/x"
expect 2 "--map-scans: a city has a map of tiles, not of scans" --world city --map-scans 1 --out "$dir/x"
expect 2 "--drive-later: the other day is that of --changed, which is missing" --drive-later --out "$dir/x"
expect 2 "--wheel-scale: nothing tells the speed without --odometry" --wheel-scale 0.5 --out "$dir/x"
expect 2 "--changed: '2' is not a number from 0 to 1" --changed 2 --out "$dir/x"

expect 2 'ndt-sim needs --out DIR' --seed 1
expect 2 "--seed: '-1' is not" --seed -1 --out "$dir/x"
expect 2 "--seed: '1x' is not" --seed 1x --out "$dir/x"
expect 2 "--scans: '0' is not a whole number from 1 to 40000" --scans 0 --out "$dir/x"
expect 2 "--scans: '1.5'" --scans 1.5 --out "$dir/x"
expect 2 "--rate: 'nan'" --rate nan --out "$dir/x"
expect 2 "--beams: no LiDAR has 17 beams" --beams 17 --out "$dir/x"
expect 2 "--world: 'moon' is not street, utm, corridor, tunnel, hall, office, dormitory, furnished, city, shelves, parking or terrace" --world moon --out "$dir/x"
expect 2 "--scans: a tunnel is built for drives of up to 600 s" --world tunnel --scans 7000 --out "$dir/x"
expect 2 "--stamp: 'first' is not begin, middle or end" --stamp first --out "$dir/x"
expect 2 "--imu: '2000' is not a number from 0 to 1000" --imu 2000 --out "$dir/x"
expect 2 "--gyro-bias: '-1'" --gyro-bias -1 --out "$dir/x"
expect 2 "--sensors: '5' is not a whole number from 1 to 4" --sensors 5 --out "$dir/x"
expect 2 "--mount: 3 numbers; 6 .* or 6 for each of 1 sensors" --mount 1,2,3 --out "$dir/x"
expect 2 "--mount: 12 numbers" --mount 1,1,1,0,0,0,1,1,1,0,0,0 --sensors 3 --out "$dir/x"
expect 2 "--mount: z is 1.8 m, not from -0.7 to 1.5 m in this world" --mount 1,0,1.8,0,0,0 --world corridor --out "$dir/x"
expect 2 "--speed: ndt-sim has no such option; did you mean --seed" --speed 3 --out "$dir/x"
expect 2 "extra: one argument too many" --out "$dir/x" extra
expect 2 "--out: its value is missing" --out
[ -e "$dir/x" ] && fail "a refused run made its folder"
expect 3 "missing/x: cannot be made: No such file" --out "$dir/missing/x"
touch "$dir/file"
expect 3 "file: is not a folder" --out "$dir/file" "${small[@]}"

# Interrupted: no files remain, not even the folder.
"$sim" --out "$dir/stopped" --scans 20000 --beams 16 --columns 90 --map-spacing 2 >/dev/null 2>"$dir/stderr" &
pid=$!
until [ -e "$dir/stopped" ] || ! kill -0 "$pid" 2>/dev/null; do sleep 0.05; done
kill -TERM "$pid"
wait "$pid"
rc=$?
[ "$rc" = 3 ] || fail "interrupted: exit code $rc: $(cat "$dir/stderr")"
[ -e "$dir/stopped" ] && fail "interrupted: left $(ls "$dir/stopped")"

expect 0 "" --help
grep -q '^Usage: ndt-sim' "$dir/stdout" || fail "--help has no usage"

[ "$failures" = 0 ] && echo "ndt-sim: all good"
exit $((failures > 0))
