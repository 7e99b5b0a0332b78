#!/usr/bin/env bash
# ndtd --replay --output and --report, with a stand-in for ndt-report: the folder is complete or absent, foreign files
# stay, and the trajectory is that of a replay without it.
#   test_replay_output.sh BIN_DIR
set -uo pipefail
bin=$(cd "${1:?folder of the programs}" && pwd)
source "$(dirname "$0")/replay_steps.sh"
export TMPDIR=$dir/tmp
mkdir tmp

# holds FOLDER NAMES: exactly these files
holds() {
    local found
    found=$(cd "$1" && printf '%s ' .[!.]* * | sed 's/\.\[!\.\]\* //; s/\* $//')
    [ "$found" = "$2 " ] || fail "$1 holds $found, not $2"
}
whole=".ndtd-replay config.yaml points.bag poses.tum results.jsonl summary.json timing.csv truth.tum"

bag=$dir/sim/drive.bag replay=(--map sim/map.pcd --set preprocess.sample_count=500)
expect 0 "" --replay "$bag" "${replay[@]}" --out alone.tum --results alone.jsonl
hash=$(hash_of)
[ -n "$hash" ] || fail "no trajectory hash"

# ---- the folder ----

expect 0 "" --replay "$bag" "${replay[@]}" --output out
[ "$(hash_of)" = "$hash" ] || fail "--output gives another trajectory"
holds out "$whole"
cmp -s alone.tum out/poses.tum || fail "poses.tum is not that of --out"
[ "$(wc -l <out/results.jsonl)" = 12 ] || fail "results.jsonl has $(wc -l <out/results.jsonl) lines"
grep -q "\"trajectory_hash\": \"$hash\"" out/summary.json || fail "summary.json: $(cat out/summary.json)"
[ "$(grep -c ^scan, out/timing.csv)" = 12 ] || fail "timing.csv has not 12 scans"
"$bin/ndtd" --check-config -c out/config.yaml >/dev/null || fail "config.yaml is not a configuration"
grep -q 'sample_count: 500' out/config.yaml || fail "config.yaml is not that of the replay"
"$bin/ndt-bag" dump out/points.bag >points.jsonl || fail "points.bag cannot be read"
[ "$(grep -c '"type":"points"' points.jsonl)" = 12 ] || fail "points.bag has not 12 messages"
awk -F'"points":' '{n = $2 + 0; if (n < 2000 || n > 4000) exit 1}' points.jsonl || fail "not 2000 to 4000 points each"
grep -qxF "  \"map\": \"$dir/sim/map.pcd\"," out/summary.json || fail "the summary has no path of the map from the root: $(grep '"map"' out/summary.json)"
(cd / && "$bin/ndtd" --replay "$bag" -c "$dir/out/config.yaml") >stdout 2>stderr
[ "$(hash_of)" = "$hash" ] || fail "config.yaml gives another trajectory"

# ---- once more, and what is not overwritten ----

echo kept >out/notes.txt
expect 0 "" --replay "$bag" "${replay[@]}" --limit 5 --output out
holds out "${whole/points.bag/notes.txt points.bag}"
[ "$(wc -l <out/results.jsonl)" = 5 ] || fail "an earlier replay is not replaced"
expect 3 'no/such.bag: ' --replay no/such.bag "${replay[@]}" --output out
[ "$(wc -l <out/results.jsonl)" = 5 ] || fail "a replay that fails changes the files of the one before"
mkdir foreign empty
echo mine >foreign/summary.json
expect 2 'foreign: has files and is not a folder of a replay' --replay "$bag" "${replay[@]}" --output foreign
holds foreign summary.json
expect 2 'alone.tum: is not a folder' --replay "$bag" "${replay[@]}" --output alone.tum
expect 3 'no/such: No such file or directory' --replay "$bag" "${replay[@]}" --output no/such
expect 0 "" --replay "$bag" "${replay[@]}" --limit 2 --output empty
holds empty "$whole"
expect 3 'no/such.bag: ' --replay no/such.bag "${replay[@]}" --output absent
[ ! -e absent ] || fail "a replay that fails leaves a folder"
expect 3 'no/map.pcd' --replay "$bag" --map no/map.pcd --output absent
[ ! -e absent ] || fail "a replay without a map leaves a folder"
exec 9<>out/.ndtd-replay
if flock -n 9; then
    echo 'of the other one' >out/points.bag.tmp
    expect 2 'out: another replay is writing to it' --replay "$bag" "${replay[@]}" --output out
    [ -s out/points.bag.tmp ] || fail "what the other replay writes is removed"
    rm -f out/points.bag.tmp
fi
exec 9>&-
expect 2 '--summary and --output cannot be combined' --replay "$bag" "${replay[@]}" --output out --summary s.json
expect 2 '--out and --report cannot be combined' --replay "$bag" "${replay[@]}" --report r.html --out o.tum
expect 2 '--output goes with --replay only' --map sim/map.pcd --output out

# ---- the report ----

cat >reporter <<'PROGRAM'
#!/bin/sh
[ $# = 2 ] || exit 9
ls "$1" >"${2#--out=}" && echo "$1" >folder
[ -s "$1/summary.json" ] || exit 8
exit "${REPORT_EXIT:-0}"
PROGRAM
chmod +x reporter
with=(PATH=/nonexistent)
expect 3 'ndt-report, which writes it, is not installed: .*pip install' --replay "$bag" "${replay[@]}" --report r.html
[ ! -s stdout ] || fail "without ndt-report the replay runs"
with=(NDT_REPORT=/etc/passwd)
expect 3 '--report: NDT_REPORT=/etc/passwd is not a program' --replay "$bag" "${replay[@]}" --report r.html
with=(NDT_REPORT="$dir/reporter")
expect 3 '--report no/such/r.html: there is no folder no/such/' --replay "$bag" "${replay[@]}" --report no/such/r.html
[ ! -s stdout ] || fail "without a place for the report the replay runs"
expect 0 "" --replay "$bag" "${replay[@]}" --limit 3 --report r.html
grep -q points.bag r.html || fail "the report is not made of the folder: $(cat r.html)"
[ ! -e "$(cat folder)" ] || fail "the temporary folder is left"
[ "$(ls tmp)" = "" ] || fail "left in TMPDIR: $(ls tmp)"
expect 0 "" --replay "$bag" "${replay[@]}" --limit 3 --output kept --report -r.html
[ "$(cat folder)$([ -s ./-r.html ] && echo .)" = kept. ] || fail "with --output: $(cat folder)"
holds kept "$whole"
with=(NDT_REPORT="$dir/reporter" REPORT_EXIT=3)
expect 3 'ndt-report failed \(exit status 3\)' --replay "$bag" "${replay[@]}" --limit 3 --report r.html
[ "$(ls tmp)" = "" ] || fail "left in TMPDIR: $(ls tmp)"
expect 3 'ndt-report failed' --replay "$bag" "${replay[@]}" --limit 3 --output kept --report r.html
holds kept "$whole"

[ "$failures" = 0 ] && echo "all passed"
exit "$failures"
