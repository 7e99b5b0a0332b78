#!/usr/bin/env bash
# tools/lab: every kind of experiment in small, the report from it, what it says to bad input. No figure is judged.
#   test_lab.sh BIN_DIR
set -uo pipefail
bin=$(cd "${1:?folder of the programs}" && pwd)
root=$(cd "$(dirname "$0")/../.." && pwd)
lab=$root/tools/lab
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
failures=0

fail() {
    echo "FAIL: $*"
    failures=$((failures + 1))
}

# refuse CODE PATTERN WORDS...: one line that matches, on stderr, and that exit code.
refuse() {
    local code=$1 pattern=$2 rc
    shift 2
    "$lab" "$@" >"$dir/stdout" 2>"$dir/stderr"
    rc=$?
    [ "$rc" = "$code" ] || fail "lab $*: exit code $rc instead of $code: $(cat "$dir/stderr")"
    [ "$(wc -l <"$dir/stderr")" = 1 ] && grep -qE -- "$pattern" "$dir/stderr" ||
        fail "lab $*: not one line with '$pattern': $(cat "$dir/stderr")"
}

names=(vector-width threads prefetch order lists layout accumulation fusing huge-pages solve batch chunking tiles queue
    front cost peer roofline)
sanitized=0
! grep -q '^NDT_SANITIZE:[A-Z]*=.' "$bin/../CMakeCache.txt" 2>/dev/null || sanitized=1
[ $sanitized = 1 ] || ! command -v valgrind >/dev/null || ! command -v objdump >/dev/null || names+=(count)
names+=(gpu-pipelines gpu-staging)
only=()
for name in "${names[@]}"; do
    only+=(--only "$name")
done
"$lab" run --quick --programs "$bin" --out "$dir/out" "${only[@]}" >"$dir/stdout" 2>"$dir/stderr" ||
    fail "run: exit code $?: $(cat "$dir/stdout" "$dir/stderr")"
[ ! -s "$dir/stderr" ] || fail "run: stderr is not empty: $(cat "$dir/stderr")"
[ "$(wc -l <"$dir/stdout")" = ${#names[@]} ] || fail "not a line per experiment: $(cat "$dir/stdout")"
"$lab" report "$dir/out" --out "$dir/page" >"$dir/stdout" 2>&1 || fail "report: $(cat "$dir/stdout")"

python3 - "$dir/out" "$dir/page" "${names[@]}" <<'END' || fail "the results are not as they should be"
import csv, json, os, re, sys, xml.dom.minidom
out, page, names = sys.argv[1], sys.argv[2], sys.argv[3:]
rows = list(csv.DictReader(open(os.path.join(out, "lab.csv"))))
head = json.load(open(os.path.join(out, "lab.json")))
assert [note["name"] for note in head["experiments"]] == names, head["experiments"]
device = head["device"] != "none"
for note in head["experiments"]:
    assert note["state"] == ("open" if note["name"].startswith("gpu-") and not device else "done"), note
for name in names:
    mine = [row for row in rows if row["experiment"] == name]
    if name.startswith("gpu-"):
        assert device or not mine, "figures without a device: %s" % mine
        continue
    assert mine, name
    for case in {row["case"] for row in mine}:
        roles = [row["role"] for row in mine if row["case"] == case]
        assert roles.count("base") <= 1 and set(roles) <= {"base", "variant", "fact", "curve"}, (name, case, roles)
for row in rows:
    samples = [float(word) for word in row["samples"].split()]
    assert samples and all(value == value for value in samples), row
    assert row["unit"].startswith("%") or row["role"] == "fact" or all(value > 0 for value in samples), row
text = open(os.path.join(page, "LAB.md")).read()
for word in ("# Performance laboratory", "--quick", "| lists |", "## Roofline", "## On a GPU", "## Cost", "gpu-staging"):
    assert word in text, word
shown = set(re.findall(r"\]\(([^)]*\.svg)\)", text))
there = {name for name in os.listdir(page) if name.endswith(".svg")}
assert shown == there and len(there) == 6, (shown, there)
for name in there:
    svg = xml.dom.minidom.parse(os.path.join(page, name)).documentElement
    assert svg.tagName == "svg" and svg.getElementsByTagName("polyline"), name
lines = text.splitlines()
for i, line in enumerate(lines): # every table has as many columns as its head
    if line.startswith("|---"):
        end = next((k for k in range(i, len(lines)) if not lines[k].startswith("|")), len(lines))
        assert {row.count("|") for row in lines[i - 1 : end]} == {line.count("|")}, lines[i - 1 : end]
END

"$lab" run --list --programs "$bin" >"$dir/stdout" 2>&1 || fail "--list: $(cat "$dir/stdout")"
for name in "${names[@]}"; do
    grep -q "^$name " "$dir/stdout" || fail "--list does not know $name"
done
if [ $sanitized = 1 ]; then
    echo "note: too slow under sanitizers: the emulated device"
elif [ -x "$bin/ndt-lab-device_emulated" ]; then
    "$lab" run --quick --emulated --programs "$bin" --out "$dir/emulated" --only gpu-pipelines --only gpu-overheads \
        --only gpu-batch --only gpu-staging --only gpu-streams --only gpu-reduction --only gpu-layout >"$dir/stdout" 2>&1
    [ "$(grep -c 'rows under emulation, thrown away' "$dir/stdout")" = 7 ] || fail "emulated: $(cat "$dir/stdout")"
    [ "$(wc -l <"$dir/emulated/lab.csv")" = 1 ] || fail "times of the emulation were kept"
fi

refuse 2 "there is no experiment 'nonsense'; there are: vector-width" run --programs "$bin" --out "$dir/x" --only nonsense
refuse 2 "--out is missing" run --programs "$bin"
refuse 2 "no such file" run --programs "$bin" --out "$dir/x" --map "$dir/none.pcd" --bag "$dir/none.bag"
refuse 2 "belong together" run --programs "$bin" --out "$dir/x" --map "$0"
refuse 2 "--help explains" run --nonsense
refuse 2 "--repetitions 0" run --programs "$bin" --out "$dir/x" --repetitions 0
refuse 3 "no such program" run --programs "$dir" --out "$dir/x"
refuse 3 "lab.json: no such file" report "$dir"
[ ! -e "$dir/x" ] || fail "a refused run left a folder"
mkdir "$dir/bad" && cp "$dir/out/lab.json" "$dir/bad/" && printf 'a,b\n1,2\n' >"$dir/bad/lab.csv"
refuse 3 "not what .* writes" report "$dir/bad"

for words in "nonsense" "lists" "lists --repetitions 0" "lists --bag" "lists --set x"; do
    # shellcheck disable=SC2086
    "$bin/ndt-lab" $words >"$dir/stdout" 2>"$dir/stderr"
    [ $? = 2 ] && [ "$(wc -l <"$dir/stderr")" = 1 ] || fail "ndt-lab $words: not one line and exit code 2"
done
[ "$failures" = 0 ] || echo "$failures failures"
[ "$failures" = 0 ]
