#!/bin/sh
# ndt-bag: exit codes, messages, files left on the disk.
#   test_ndt_bag.sh BIN_DIR      0: all as expected
# Uses only files that it makes itself: KITTI .bin scans of a few points, written with printf.
set -u
bag=${1:?the folder with the programs}/ndt-bag
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/cli/one_line.sh
. "$here/one_line.sh"

expect() {
    expect_of "$bag" "$@"
}

gone() {
    for file in "$@"; do
        [ ! -e "$file" ] || fail "$file was left behind"
    done
}

# Points (1 2 3) and (-1 0.5 2) with intensity 0 and 1, float32 little endian.
point_a='\000\000\200\077\000\000\000\100\000\000\100\100\000\000\000\000'
point_b='\000\000\200\277\000\000\000\077\000\000\000\100\000\000\200\077'
mkdir scans
for n in 0 1 2 3 4 5; do
    # shellcheck disable=SC2059
    printf "$point_a$point_b" >scans/00000$n.bin
    echo "100.${n}00000" >>times.txt
    echo "1 0 0 $n 0 1 0 0 0 0 1 0" >>truth.kitti
    echo "100.${n}00000 $n 0 0 0 0 0 1" >>truth.tum
    echo "100.${n}50000 $n.5 0 0 0 0 0 1" >>odometry.tum
done

# ---- usage ----
expect 2 "a command is missing"
expect 2 "'pakc' is not a command; did you mean 'pack'?" pakc
expect 2 "--scnas: pack has no such option; did you mean --scans?" pack --scnas scans
expect 2 "pack needs --scans DIR" pack --times times.txt --out a.bag
expect 2 "--out: its value is missing" pack --out
expect 2 "--force=1: takes no value" pack --force=1
expect 2 "info needs a BAG" info
expect 2 "one argument too many" check a b
expect 2 "--every: '0' is not a whole number from 1" pack --scans scans --times times.txt --out a.bag --every 0
expect 2 "--offset: '2' is not a whole number from 0 to 1" \
    pack --scans scans --times times.txt --out a.bag --every 2 --offset 2
expect 2 "'csv' is not tum or kitti" pack --scans scans --times times.txt --out a.bag --format csv
expect 2 "--initial first needs --truth" pack --scans scans --times times.txt --out a.bag --initial first
expect 2 "is not x,y,z,qx,qy,qz,qw or x,y,z,yaw" pack --scans scans --times times.txt --out a.bag --initial 1,2,3
expect 2 "the quaternion has length 2" pack --scans scans --times times.txt --out a.bag --initial 1,2,3,0,0,0,2
expect 0 "" --help
says "pack"
for command in pack info check cut restamp dump; do
    expect 0 "" $command --help
    says "Usage: ndt-bag $command"
done
expect 0 "" help
says "Usage: ndt-bag COMMAND"
expect 0 "" help cut
says "Usage: ndt-bag cut BAG --out FILE"
expect 2 "'cat' is not a command; did you mean 'cut'?" help cat
gone a.bag a.bag.tmp

# ---- pack ----
expect 0 "" pack --scans scans --times times.txt --truth truth.kitti --format kitti --every 2 --offset 1 \
    --initial first --out odd.bag
says "odd.bag: 7 records: 3 scans with 6 points, 3 true poses, 0 odometry, an initial pose; 0.400 s"
expect 0 "" dump odd.bag --points 2
says '"type":"initial_pose","stamp_ns":100100000000,"frame_id":"map","pose":[1,0,0,0,0,0,1],"twist":[10,0,0,0,0,0]'
says '"seq":3,"stamp_ns":100300000000,"frame_id":"lidar","points":2,"xyz_m":[[1,2,3],[-1,0.5,2]],"intensity":[0,1]'
[ "$(cut -d'"' -f10 out | tr '\n' ' ')" = "initial_pose truth scan truth scan truth scan " ] || fail "order of records"
expect 0 "" dump odd.bag --type truth --limit 2
[ "$(wc -l <out)" -eq 2 ] || fail "dump --type truth --limit 2"
expect 2 "'scna' is not a message type" dump odd.bag --type scna

# TUM by stamps, with odometry up to each scan; the first pose is missing, one in the middle is interpolated
sed -e 1d -e 4d truth.tum >gaps.tum
expect 0 "2 scans have no true pose" pack --scans scans --times times.txt --truth gaps.tum --odometry odometry.tum \
    --initial 0,0,1,0,0,0,1 --out tum.bag
says "6 scans with 12 points, 4 true poses, 5 odometry, an initial pose"
sed 's/^100\.3/100.31/' truth.tum >late.tum
expect 0 "" pack --scans scans --times times.txt --truth late.tum --out late.bag
expect 0 "" dump late.bag --type truth
says '"stamp_ns":100300000000,"frame_id":"map","pose":[2.9090909090909'
expect 3 "has no true pose" pack --scans scans --times times.txt --truth gaps.tum --initial first --out a.bag
sed 's/^100/900/' truth.tum >other.tum
expect 3 "other.tum: no pose is near the stamp of any scan" pack --scans scans --times times.txt --truth other.tum --out a.bag

# errors name the missing part
head -n 4 times.txt >short.txt
expect 3 "000004.bin: its stamp is number 4 (from 0) of short.txt, which has 4" \
    pack --scans scans --times short.txt --out a.bag
head -n 4 truth.kitti >short.kitti
expect 3 "000004.bin: its pose is number 4 (from 0) of short.kitti, which has 4" \
    pack --scans scans --times times.txt --truth short.kitti --format kitti --out a.bag
expect 3 "nosuch: cannot list it" pack --scans nosuch --times times.txt --out a.bag
mkdir empty named
expect 3 "empty: no scan" pack --scans empty --times times.txt --out a.bag
cp scans/000000.bin named/scan.bin
expect 3 "named/scan.bin: no number in its name" pack --scans named --times times.txt --out a.bag
mv named/scan.bin named/0.bin
cp named/0.bin named/000.bin
expect 3 "have the same number" pack --scans named --times times.txt --out a.bag
# a damaged scan in the middle: no file is left
cp -r scans damaged
printf x >>damaged/000004.bin
expect 3 "000004.bin" pack --scans damaged --times times.txt --out a.bag
gone a.bag a.bag.tmp
# a bag is overwritten with --force only, and only by a complete one
cp odd.bag keep.bag
expect 2 "keep.bag: exists already; --force overwrites it" pack --scans scans --times times.txt --out keep.bag
expect 3 "000004.bin" pack --scans damaged --times times.txt --out keep.bag --force
cmp -s odd.bag keep.bag || fail "keep.bag was changed"
expect 0 "" pack --scans scans --times times.txt --out keep.bag --force
cmp -s odd.bag keep.bag && fail "keep.bag was not overwritten"
expect 2 "is not a regular file" pack --scans scans --times times.txt --out /dev/null --force
gone keep.bag.tmp

# ---- info, check ----
expect 0 "" info odd.bag
says "records         7"
says "points per scan 2 to 2, mean 2"
expect 0 "" check odd.bag
says "odd.bag: undamaged: 7 records, 3 scans"
expect 3 "nosuch.bag" check nosuch.bag
expect 3 "not a bag" check times.txt
size=$(wc -c <odd.bag)
head -c $((size - 1)) odd.bag >cut.bag
expect 3 "cut.bag: record 7 at byte" check cut.bag
expect 0 "" info cut.bag
says "damaged         cut.bag: record 7 at byte"
says "records         6"
head -c 40 odd.bag >flipped.bag
printf '\377' >>flipped.bag
tail -c +42 odd.bag >>flipped.bag
expect 3 "flipped.bag: record 1 at byte 16: damaged: CRC" check flipped.bag

# ---- cut ----
expect 0 "" cut odd.bag --scans 2-3 --initial first --out part.bag
says "part.bag: 5 records"
expect 0 "" dump part.bag
says '"type":"initial_pose","stamp_ns":100300000000,"frame_id":"map","pose":[3,0,0,0,0,0,1],"twist":[10,0,0,0,0,0]'
expect 0 "" cut odd.bag --records 4- --out tail.bag
says "tail.bag: 4 records"
expect 0 "" cut odd.bag --from 0.1 --to 0.3 --out middle.bag
says "middle.bag: 2 records"
expect 0 "" cut odd.bag --out same.bag
cmp -s odd.bag same.bag || fail "a cut of everything is not the same"
expect 3 "no record is in this part (7 records, 3 scans)" cut odd.bag --records 9- --out a.bag
expect 3 "this part has no true pose" cut odd.bag --records 3-3 --initial first --out a.bag
expect 2 "is not a range" cut odd.bag --records 5-3 --out a.bag
expect 2 "'-1' is not a number of seconds" cut odd.bag --from -1 --out a.bag
expect 3 "cut.bag: record 7 at byte" cut cut.bag --out a.bag
gone a.bag a.bag.tmp
expect 0 "the rest is left out: cut.bag: record 7" cut cut.bag --salvage --out a.bag
expect 0 "" check a.bag

expect 0 "" cut tum.bag --without odometry,initial_pose --out bare.bag
expect 0 "" info bare.bag
says "scan          6"
says "truth         4"
grep -qE "odometry|initial" out && fail "cut --without left them in"
expect 2 "--without: 'imo' is not a message type" cut tum.bag --without odometry,imo --out a.bag
expect 3 "no record is in this part" cut odd.bag --without scan,truth,initial_pose --out b.bag

# thinned and disturbed
expect 0 "" cut tum.bag --every 2 --out thin.bag --force
# no command overwrites its own input, by whatever name
ln -s tum.bag alias.bag
for command in "cut tum.bag" "restamp tum.bag --stamp begin" "join tum.bag"; do
    # shellcheck disable=SC2086
    expect 2 "alias.bag: is an input" $command --out alias.bag --force
done
expect 0 "" dump thin.bag --type scan
[ "$(sed 's/.*"seq":\([0-9]*\),.*/\1/' out | tr '\n' ' ')" = "0 2 4 " ] || fail "cut --every 2: $(cat out)"
expect 0 "" info thin.bag
says "odometry      5"
expect 0 "" cut tum.bag --drop 2:3 --out thin.bag --force
expect 0 "" dump thin.bag --type scan
[ "$(sed 's/.*"seq":\([0-9]*\),.*/\1/' out | tr '\n' ' ')" = "0 4 5 " ] || fail "cut --drop 2:3: $(cat out)"
expect 0 "" cut odd.bag --scans 2-3 --initial first --offset-pose 1,-2,0.5,180 --out thin.bag --force
expect 0 "" dump thin.bag --type initial_pose
says '"pose":[4,-2,0.5,0,0,1,'
expect 0 "" cut odd.bag --offset-pose 0,0,3,0 --out thin.bag --force
expect 0 "" dump thin.bag --type initial_pose
says '"pose":[1,0,3,0,0,0,1],"twist":[10,0,0,0,0,0]'
expect 0 "" cut odd.bag --wall 0.1:0.2 --out thin.bag --force
expect 0 "" dump thin.bag --type scan --points 2
[ "$(grep -c '"xyz_m":\[\[1.25,2.5,3.75\],\[-5,2.5,10\]\]' out)" = 1 ] || fail "cut --wall: $(cat out)"
[ "$(grep -c '"xyz_m":\[\[1,2,3\],\[-1,0.5,2\]\]' out)" = 2 ] || fail "cut --wall: $(cat out)"
expect 2 "--drop: '3' is not two numbers with a colon" cut odd.bag --drop 3 --out a.bag --force
expect 2 "--wall: '-1' is not a number" cut odd.bag --wall -1:2 --out a.bag --force
expect 2 "--offset-pose: 2 numbers; x,y,z,yaw" cut odd.bag --offset-pose 1,2 --out a.bag --force

# ---- restamp ----
expect 3 "odd.bag: record 3: the scan has no times; --times gives it" restamp odd.bag --stamp begin --out b.bag
gone b.bag b.bag.tmp
expect 2 "'start' is not begin, middle or end" restamp odd.bag --stamp start --out b.bag
expect 2 "--sweep: '0' is not a number from 1e-06 to 10" restamp odd.bag --sweep 0 --out b.bag
expect 0 "" restamp odd.bag --stamp end --times azimuth_cw --sweep 0.2 --out b.bag
says "b.bag: 7 records, 0.001 MB, 3 scans stamped at their end"
# azimuths of the points: 63.4 and 153.4 deg, hence -35242 and -85242 us from the middle
expect 0 "" dump b.bag --points 2 --type scan
says '"seq":3,"stamp_ns":100264758000,"frame_id":"lidar","points":2,"xyz_m":[[1,2,3],[-1,0.5,2]],"intensity":[0,1],"time_s":['
says ',-0.0500000'
expect 0 "" dump b.bag --type truth
cp out moved
expect 0 "" dump odd.bag --type truth
sed 's/"offset":[0-9]*,//' out >truths
sed 's/"offset":[0-9]*,//' moved | cmp -s - truths || fail "restamp changed the truth"
expect 0 "" restamp b.bag --stamp begin --out c.bag
expect 0 "" dump c.bag --points 2 --type scan --limit 1
says '"stamp_ns":100014758000'
says '"time_s":[0.05'
expect 0 "" restamp odd.bag --shift -0.05 --out d.bag
says "3 scans stamped anew"
expect 0 "" dump d.bag --points 2 --type scan --limit 1
says '"stamp_ns":100050000000'
grep -q time_s out && fail "restamp --shift invented times"
expect 2 "c.bag: exists already" restamp b.bag --out c.bag

# ---- help ----
expect 0 "" help
says "  join "
expect 0 "" help join
says "Usage: ndt-bag join BAG"

# ---- calibration of KITTI: the camera looks along z, the LiDAR along x ----
printf 'P0: 1 0 0 0 0 1 0 0 0 0 1 0\nTr: 0 -1 0 0.1 0 0 -1 -0.2 1 0 0 -0.3\n' >calib.txt
expect 0 "" pack --scans scans --times times.txt --truth truth.kitti --format kitti --calib calib.txt --initial first --out cam.bag
expect 0 "" dump cam.bag --type truth
# line n of the camera: n m along its x, to the right; of the LiDAR: n m along -y
awk -F '[][,]' '{for (i = 1; i <= NF; i++) if ($i ~ /"pose":/) {n++; d = $(i + 1) ^ 2 + ($(i + 2) + n - 1) ^ 2 + $(i + 3) ^ 2; bad += d > 1e-18}}
    END {exit !(n == 6 && bad == 0)}' out || fail "the truth is not along -y"
printf 'calib_time: 1\nR: 1 0 0 0 1 0 0 0 1\nT: -0.8 0.3 -0.7\n' >calib_imu_to_velo.txt
expect 0 "" pack --scans scans --times times.txt --truth truth.tum --calib calib_imu_to_velo.txt --out imu.bag
expect 0 "" dump imu.bag --type truth --limit 1
says '"pose":[0.80000000000000004,-0.29999999999999999,0.69999999999999996,0,0,0,1]'
expect 2 "--calib needs --truth or --odometry" pack --scans scans --times times.txt --calib calib.txt --out x.bag
expect 3 "nosuch.txt: cannot open" pack --scans scans --times times.txt --truth truth.tum --calib nosuch.txt --out x.bag
expect 3 "times.txt: neither 'Tr:' with 12 numbers, nor 'R:' with 9 and 'T:' with 3" \
    pack --scans scans --times times.txt --truth truth.tum --calib times.txt --out x.bag
printf 'Tr: 1 0 0 0 0 1 0 0 0 0 1\n' >short.txt
expect 3 "'Tr:' has 11 numbers, not 12" pack --scans scans --times times.txt --truth truth.tum --calib short.txt --out x.bag
printf 'Tr: 2 0 0 0 0 1 0 0 0 0 1 0\n' >long.txt
expect 3 "no rotation" pack --scans scans --times times.txt --truth truth.tum --calib long.txt --out x.bag
gone x.bag x.bag.tmp

# ---- join ----
expect 0 "" pack --scans scans --times times.txt --truth truth.tum --odometry odometry.tum --initial first --out whole.bag
expect 0 "" cut whole.bag --scans -3 --out first.bag
expect 0 "" cut whole.bag --scans 4- --out second.bag
expect 0 "" cut whole.bag --without scan --out rest.bag
expect 0 "" cut whole.bag --without initial_pose,odometry,truth --out scans.bag
expect 0 "" join rest.bag scans.bag --out joined.bag
says "joined.bag: 2 bags, "
says "6 scans"
cmp -s whole.bag joined.bag || fail "messages that were apart are not joined in order"
expect 0 "" join second.bag first.bag --out joined.bag --force # by time, not by their order here
expect 0 "" dump joined.bag --type scan
mv out scans.json
expect 0 "" dump whole.bag --type scan
[ "$(sed 's/"offset.*stamp_ns/stamp_ns/' out)" = "$(sed 's/"offset.*stamp_ns/stamp_ns/' scans.json)" ] || fail "scans of parts"
expect 2 "joined.bag: exists already; --force overwrites it" join first.bag second.bag --out joined.bag
expect 3 "the bags overlap, or a clock went back" join first.bag whole.bag --out overlap.bag
gone overlap.bag overlap.bag.tmp
expect 0 "3 scans that were not later than the one before are left out" join first.bag whole.bag --skip-repeated --out overlap.bag
says "6 scans"
# a second drive with the same numbers, an hour later
awk '{print $1 + 3600}' times.txt >later.txt
expect 0 "" pack --scans scans --times later.txt --out later.bag
expect 3 "scan 0 of lidar follows scan 5: --renumber numbers the scans anew" join whole.bag later.bag --out two.bag
expect 0 "" join whole.bag later.bag --renumber --out two.bag
says "12 scans"
expect 0 "" dump two.bag --type scan
[ "$(sed 's/.*"seq":\([0-9]*\),.*/\1/' out | tr '\n' ' ')" = "0 1 2 3 4 5 6 7 8 9 10 11 " ] || fail "numbers after --renumber"
expect 3 "nosuch.bag: cannot open" join whole.bag nosuch.bag --out x.bag
head -c 300 whole.bag >cut.bag
expect 3 "cut.bag" join cut.bag later.bag --out x.bag
gone x.bag x.bag.tmp
expect 2 "join needs a BAG" join --out x.bag

[ "$failures" -eq 0 ] || exit 1
echo "ndt-bag: all as expected"
