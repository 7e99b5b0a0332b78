#!/usr/bin/env bash
# golden.sh BIN_DIR [--update]: simulates short drives and replays them with 1, 2 and 3 threads on every CPU variant:
# one hash each, equal to that of golden.txt. The simulation uses sin and cos of the C library; if it gives other
# bytes than the golden ones, a second simulation must give equal bytes, and the hash must be that of the previous run
# on this machine, stored as replay-golden.txt in the build folder (--update removes it).
set -uo pipefail
bin=$(cd "$1" && pwd)
own=$bin/../replay-golden.txt
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
variants=$("$bin/ndtd" --list-backends | sed -n 's/^CPU instruction sets.*: *//p' | tr ',' ' ')
[ -n "$variants" ] || { echo "FAIL: ndtd --list-backends names no CPU variant"; exit 1; }
failed=0
update=${2:-}

replay() { # OPTIONS...: prints the hash
    "$bin/ndtd" --replay "$drive/drive.bag" --map "$drive/map.pcd" "$@" 2>"$work/err" |
        sed -n 's/^trajectory hash *//p'
}

# same NAME OPTIONS...: all thread counts and variants give one hash; sets $hash
same() {
    local name=$1 other threads isa
    shift
    hash=$(replay "$@" --threads 1)
    if ! [[ $hash =~ ^[0-9a-f]{16}$ ]]; then
        echo "FAIL $name: no hash: $(cat "$work/err")"
        failed=1
        return
    fi
    for isa in auto $variants; do
        for threads in 1 2 3; do
            other=$(replay "$@" --threads "$threads" --set "cpu.isa=$isa")
            [ "$other" = "$hash" ] && continue
            echo "FAIL $name: $threads threads on $isa give ${other:-nothing}, 1 thread gives $hash"
            failed=1
        done
    done
}

# check_own NAME: compares with the previous run on this machine, if any
check_own() {
    local earlier
    earlier=$(awk -v name="$1" -v bytes="$bytes" '$1 == name && $2 == bytes {print $3}' "$own" 2>/dev/null)
    if [ -z "$earlier" ]; then
        echo "$1 $bytes $hash" >>"$own"
        echo "note $1: the simulated drive has other bytes here than the golden one; $hash is kept for later runs"
    elif [ "$earlier" != "$hash" ]; then
        echo "FAIL $1: hash $hash, an earlier run on this machine had $earlier ($own)"
        failed=1
    fi
}

# check NAME OPTIONS...: same, and equal to the golden row
check() {
    local name=$1 want
    same "$@"
    echo "$name $bytes $hash" >>"$work/golden.txt"
    want=$(awk -v name="$name" '$1 == name {print $2, $3}' "$here/golden.txt")
    if [ "${want% *}" != "$bytes" ]; then
        check_own "$name"
    elif [ "${want#* }" != "$hash" ] && [ "$update" != --update ]; then
        echo "FAIL $name: hash $hash, golden ${want#* }"
        failed=1
    fi
}

simulate() { # FOLDER WORLD: prints the checksum of the map and the bag
    "$bin/ndt-sim" --seed 7 --out "$1" --world "$2" --scans 16 --beams 16 --columns 900 --map-spacing 0.25 \
        >/dev/null && cat "$1/map.pcd" "$1/drive.bag" | cksum | awk '{print $1}'
}

[ "$update" != --update ] || rm -f "$own"
for world in street utm; do
    drive=$work/$world
    bytes=$(simulate "$drive" $world) && [ -n "$bytes" ] || { echo "FAIL: ndt-sim made no drive"; exit 1; }
    if [ "$(simulate "$work/again" $world)" != "$bytes" ]; then
        echo "FAIL $world: two simulations with one seed differ"
        failed=1
    fi
    rm -rf "$work/again"
    check "$world-one-pass" --set preprocess.deskew=time
    check "$world-two-passes" --set preprocess.deskew=time --set preprocess.deskew_passes=2
    check "$world-prior-off" --set preprocess.deskew=time --set preprocess.deskew_passes=2 --set ndt.prior=off
    check "$world-autoware" --set preprocess.deskew=time --set ndt.variant=autoware --set 'ndt.levels=[2.0]' \
        --set ndt.covariance=autoware
done
if [ "$update" = --update ]; then
    { grep '^#' "$here/golden.txt"; cat "$work/golden.txt"; } >"$work/new" && cp "$work/new" "$here/golden.txt"
    cat "$here/golden.txt"
    exit 0
fi
[ "$failed" -eq 0 ] && echo "every replay has one hash: variants $variants, 1 to 3 threads"
exit "$failed"
