#!/usr/bin/env bash
# point_times.sh BIN_DIR: one simulated drive whose points have wrong times. Every unit gives the trajectory of the right
# times, bit by bit; times of another clock and strays lose no scan and cost no centimetre; each is told in one line. With
# no option the trajectory is that of preprocess.deskew=time; without times it follows from the order of the points.
set -uo pipefail
bin=$(cd "$1" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
most_cm=2

fail() {
    echo "FAIL $1"
    failed=1
}

# replay BAG OPTIONS...: sets $hash, $off, $max_cm and $lines (of warnings)
replay() {
    "$bin/ndtd" --replay "$1" --map "$work/drive/map.pcd" "${@:2}" >"$work/out" 2>"$work/err" || fail "$*: $(tail -n 1 "$work/err")"
    hash=$(sed -n 's/^trajectory hash *//p' "$work/out")
    off=$(sed -n 's/^  off *\([0-9]*\) .*/\1/p' "$work/out")
    max_cm=$(awk '/^  translation/ {print $5}' "$work/out")
    lines=$(grep -c 'warning' "$work/err")
}

# check NAME TIMES TEXT: as good as with the right times, told in one line
check() {
    "$bin/ndt-bag" cut "$work/drive/drive.bag" --out "$work/other.bag" --force --point-times "$2" >/dev/null ||
        fail "$1: ndt-bag"
    for mode in auto time; do
        replay "$work/other.bag" --set "preprocess.deskew=$mode"
        echo "$1, $mode: off $off, largest error $max_cm cm: $(sed -n 's/^ndtd: warning: //p' "$work/err")"
        [ "$off" = 0 ] && awk -v cm="$max_cm" -v most="$most_cm" 'BEGIN {exit !(cm <= most)}' || fail "$1, $mode"
        [ "$lines" = 1 ] && grep -q "$3" "$work/err" || fail "$1, $mode: $lines lines, one with '$3' is expected"
    done
}

"$bin/ndt-sim" --seed 3 --out "$work/drive" --scans 40 --beams 16 --columns 900 --map-spacing 0.25 >/dev/null || exit 1
replay "$work/drive/drive.bag" --set preprocess.deskew=time
right=$hash
[ "$lines" = 0 ] || fail "right times: $(cat "$work/err")"
replay "$work/drive/drive.bag"
[ "$hash" = "$right" ] || fail "no option: hash $hash, preprocess.deskew=time gives $right"
[ "$lines" = 0 ] || fail "no option: $(cat "$work/err")"
for unit in milli:1e3 micro:1e6 nano:1e9; do
    check "${unit%:*}seconds" "${unit#*:},0" "taken for ${unit%:*}seconds"
    [ "$hash" = "$right" ] || fail "${unit%:*}seconds: hash $hash, seconds give $right"
done
for offset_s in -5 -1 -0.2; do
    check "$offset_s s" "1,$offset_s" "lie ${offset_s#-} s before the stamps"
done
for offset_s in 0.2 3 10; do
    check "$offset_s s" "1,$offset_s" "lie $offset_s s after the stamps"
done
check "one stray" 1,0,8000,8 "far outside the sweep"
check "1 % of strays" 1,0,100,8 "far outside the sweep"
"$bin/ndt-bag" cut "$work/drive/drive.bag" --out "$work/other.bag" --force --point-times 0,0 >/dev/null
replay "$work/other.bag" --set preprocess.deskew=off
off_cm=$(awk '/^  translation/ {print $3}' "$work/out")
replay "$work/other.bag"
median_cm=$(awk '/^  translation/ {print $3}' "$work/out")
echo "no times: median $median_cm cm, off $off_cm cm: $(sed -n 's/^ndtd: warning: //p' "$work/err")"
grep -q 'turns clockwise' "$work/err" && awk -v a="$median_cm" -v b="$off_cm" 'BEGIN {exit !(2 * a < b)}' ||
    fail "the sense of rotation"
exit "$failed"
