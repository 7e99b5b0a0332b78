#!/usr/bin/env bash
# tools/gpu-check without a GPU: the same steps on the emulated device, into a folder of its own.
#   test_gpu_check.sh BIN_DIR
set -uo pipefail
bin=${1:?folder of the programs}
root=$(cd "$(dirname "$0")/../.." && pwd)
[ -x "$bin/gpu_bench_emulated" ] && [ -x "$bin/ndt-bench_emulated" ] || { echo "skipped: the emulated device is not built here"; exit 77; }
if grep -q '^NDT_SANITIZE:[A-Z]*=.' "$bin/../CMakeCache.txt" 2>/dev/null; then
    echo "skipped: too slow under sanitizers"
    exit 77
fi
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
failures=0

fail() {
    echo "FAIL: $*"
    failures=$((failures + 1))
}

"$root/tools/gpu-check" --emulated --programs "$bin" --out "$dir/bench" >"$dir/stdout" 2>"$dir/stderr" ||
    fail "exit code $?: $(cat "$dir/stdout" "$dir/stderr")"
[ ! -s "$dir/stderr" ] || fail "stderr is not empty: $(cat "$dir/stderr")"
for name in check_kernels check_counters 'drive and benchmark' 'ndtd --replay' 'ndt-bench --overheads' ndt-bench; do
    grep -qE "^ok +$name +[0-9]+ s" "$dir/stdout" || fail "'$name' is not ok: $(cat "$dir/stdout")"
done
result=$dir/bench/emulation-on-the-cpu
[ "$(ls "$result")" = $'gpu-check.json\ngpu-check.md' ] || fail "not the two files: $(ls "$dir/bench" "$result")"
for row in evaluation kernel-only copy-only launch-only synchronise-only; do
    for pipeline in staged fused; do
        grep -qE "^\| cuda-emulated $pipeline \| $row \| 300 \| [0-9.]+ \|" "$result/gpu-check.md" ||
            fail "no row '$row' of $pipeline in: $(cat "$result/gpu-check.md")"
    done
done
grep -qE '^\| cpu \| evaluation \| 300 \| [0-9.]+ \|' "$result/gpu-check.md" || fail "no row of the CPU"
if command -v python3 >/dev/null; then
    python3 - "$result/gpu-check.json" <<'END' || fail "the JSON is not as it should be"
import json, sys
result = json.load(open(sys.argv[1]))
assert result["gpu"] == "emulation on the CPU" and len(result["steps"]) >= 8, result["steps"]
drive = {row["backend"]: row for row in result["gpu_bench"]["drive"]}
for name in ("cpu", "cuda-emulated staged", "cuda-emulated fused"):
    row = drive[name]
    assert row["verdict"] == "ok" and row["hash"] == row["hash_again"] and row["off_m"] < 1e-3, row
assert len(result["overheads"]["overheads"]) == 11 and result["grid"]["align"]
END
fi

# A kernel check that fails is told, the results are written all the same, and the exit code says so.
mkdir "$dir/broken"
ln -s "$bin"/* "$dir/broken/"
rm "$dir/broken/check_counters_emulated"
printf '#!/bin/sh\necho "FAIL: planted"\nexit 1\n' >"$dir/broken/check_counters_emulated"
chmod +x "$dir/broken/check_counters_emulated"
rm "$dir/broken/ndtd_emulated"
"$root/tools/gpu-check" --emulated --programs "$dir/broken" --out "$dir/second" >"$dir/stdout" 2>&1
[ $? = 1 ] || fail "a failing check does not lead to exit code 1: $(cat "$dir/stdout")"
grep -q '"verdict": "FAIL"' "$dir/second/emulation-on-the-cpu/gpu-check.json" || fail "the JSON does not tell the failure"
grep -qE '^skipped +ndtd --replay' "$dir/stdout" || fail "a missing ndtd is not skipped"

# Building everything itself, from nothing but the core.
"$root/tools/gpu-check" --emulated --out "$dir/built" >"$dir/stdout" 2>&1 || fail "exit code $?: $(cat "$dir/stdout")"
grep -qE '^ok +build ' "$dir/stdout" && grep -qE '^ok +drive and benchmark' "$dir/stdout" ||
    fail "the build from the core is not ok: $(cat "$dir/stdout")"

if ! nvidia-smi -L >/dev/null 2>&1 && ! compgen -G '/dev/nvidia[0-9]*' >/dev/null; then
    "$root/tools/gpu-check" --out "$dir/third" >"$dir/stdout" 2>&1
    [ $? = 3 ] && [ "$(wc -l <"$dir/stdout")" = 1 ] && [ ! -e "$dir/third" ] ||
        fail "without a GPU: not one line and exit code 3: $(cat "$dir/stdout")"
fi
"$root/tools/gpu-check" --nonsense >/dev/null 2>&1
[ $? = 2 ] || fail "an unknown option does not lead to exit code 2"
[ "$failures" = 0 ] || echo "$failures failures"
[ "$failures" = 0 ]
