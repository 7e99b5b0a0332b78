#!/usr/bin/env bash
# tools/dev/instruction-guard fails where it must: doctored baselines, first with valgrind on two small cases, then with a
# stand-in for valgrind that reports a fixed count per case, so that the rest takes no time.
#   guard_selftest.sh BIN_DIR
set -uo pipefail
bin=${1:?folder of the programs}
guard=$(cd "$(dirname "$0")/../../tools/dev" && pwd)/instruction-guard
source "$(dirname "$0")/../cli/steps.sh"
case=result_encode other=bag_checksum_120k # the two cheapest

# expect RC "PATTERN" ARGUMENTS...: exit code, and a line that matches, on either stream.
expect() {
    local want=$1 pattern=$2 rc
    shift 2
    "$guard" --baseline "$dir/baseline" "$@" >"$dir/out" 2>&1 </dev/null
    rc=$?
    [ $rc -eq "$want" ] || fail "instruction-guard $*: exit code $rc, not $want: $(cat "$dir/out")"
    grep -qE -- "$pattern" "$dir/out" || fail "instruction-guard $*: no line '$pattern' in: $(cat "$dir/out")"
}

# doctor PART: the case's row times PART, the other row as it is.
doctor() {
    awk -v name="$case" -v part="$1" '$1 == name { $2 = sprintf("%d", $2 * part) } { print }' "$dir/right" \
        >"$dir/baseline"
}

"$guard" --baseline "$dir/baseline" --update --only $case --only $other "$bin" >"$dir/out" 2>&1
rc=$?
if [ $rc -eq 77 ]; then
    tail -n 1 "$dir/out"
    exit 77
fi
[ $rc -eq 0 ] || fail "instruction-guard --update: exit code $rc: $(cat "$dir/out")"
cp "$dir/baseline" "$dir/right"
printf '%s\n' '[key]' "$case count" "$other count" >"$dir/want"
sed 's/^\[.*\]$/[key]/; s/ [1-9][0-9]*$/ count/' "$dir/right" | cmp -s - "$dir/want" ||
    fail "the baseline written is not one: $(cat "$dir/right")"

doctor 0.9
expect 1 "^$case .* 1\.11[0-9]+ +MORE$" --only $case "$bin"

# From here on without valgrind. The case itself runs, so that one that fails still fails.
mkdir "$dir/stand-in"
cat >"$dir/stand-in/valgrind" <<'END'
#!/usr/bin/env bash
out=/dev/null
while [[ $1 == -* ]]; do
    case $1 in --version) echo stand-in; exit ;; --callgrind-out-file=*) out=${1#*=} ;; esac
    shift
done
"$@" || exit
echo "totals: $((100000 + ${#2}))" >"$out"
END
chmod +x "$dir/stand-in/valgrind"
PATH=$dir/stand-in:$PATH
rm "$dir/baseline"
expect 0 "^written to " --update --only $case --only $other "$bin"
cp "$dir/baseline" "$dir/right"
expect 0 "^$case .* ok$" --only $case --only $other "$bin"
doctor 1.02
expect 0 "^$case .* ok$" --only $case "$bin"
doctor 0.96
expect 1 "^$case .* 1\.04[0-9]+ +MORE$" --only $case "$bin"
expect 1 "^$other .* 1\.0000 +ok$" --only $case --only $other "$bin"
expect 0 "^$other .* ok$" --only $other "$bin"
doctor 1.05
expect 1 "^$case .* FEWER: update the baseline$" --only $case "$bin"

# --update of one row restores it byte for byte and leaves other sections and comments unchanged.
{ echo '# a comment'; echo '[another compiler]'; echo "$case 5"; echo; cat "$dir/baseline"; } >"$dir/two"
cp "$dir/two" "$dir/baseline"
expect 0 "^written to " --update --only $case "$bin"
{ echo '# a comment'; echo '[another compiler]'; echo "$case 5"; echo; cat "$dir/right"; } >"$dir/want"
cmp -s "$dir/want" "$dir/baseline" || fail "--update wrote: $(cat "$dir/baseline")"

grep -v "^$case " "$dir/right" >"$dir/baseline"
expect 1 "^$case .* NEW" --only $case "$bin"
sed 's/^\[.*/[gcc 1.0, on nothing]/' "$dir/right" >"$dir/baseline"
expect 77 '^skipped: no baseline for: ' --only $case "$bin"
{ cat "$dir/right"; echo "$other many"; } >"$dir/baseline"
expect 3 ':[0-9]+: not "name instructions"' --only $case "$bin"
{ cat "$dir/right"; echo "$other 7"; } >"$dir/baseline"
expect 3 "$other is there twice" --only $case "$bin"
rm "$dir/baseline"
expect 3 'there is no baseline' --only $case "$bin"
cp "$dir/right" "$dir/baseline"
expect 2 "no case matches 'nothing'" --only nothing "$bin"
expect 2 'is not known' --faster "$bin"
expect 2 '--only needs a value' "$bin" --only
expect 2 'folder of the programs is missing'
expect 3 'there is no .*guard_cases' "$dir"
echo "no_such_case 5" >>"$dir/baseline"
expect 1 '^no_such_case .* GONE' "$bin"

# A case that fails is an error, and leaves the baseline unchanged.
mkdir "$dir/broken"
printf '#!/bin/sh\ncase $1 in --*) exec "%s" "$1" ;; esac\nexit 1\n' "$(cd "$bin" && pwd)/guard_cases" \
    >"$dir/broken/guard_cases"
chmod +x "$dir/broken/guard_cases"
cp "$dir/right" "$dir/baseline"
expect 3 "$case could not be counted" --update --only $case "$dir/broken"
cmp -s "$dir/right" "$dir/baseline" || fail "--update wrote although a case had failed: $(cat "$dir/baseline")"
[ $failures -eq 0 ] && echo "instruction-guard fails where it must"
exit $((failures > 0))
