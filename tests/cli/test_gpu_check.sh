#!/usr/bin/env bash
# tools/gpu-check without a GPU: the same steps on the emulated device, into a folder of its own.
#   test_gpu_check.sh BIN_DIR
set -uo pipefail
bin=$(cd "${1:?folder of the programs}" && pwd)
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

! command -v ccache >/dev/null || export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache

stand_in() { # NAME LINE...: a shell script
    rm -f "$1"
    printf '#!/bin/bash\n' >"$1"
    printf '%s\n' "${@:2}" >>"$1"
    chmod +x "$1"
}

# Programs that have a test of their own and take long: here it counts that they run and what is made of their verdict.
mkdir "$dir/programs"
ln -s "$(cd "$bin" && pwd)"/* "$dir/programs/"
stand_in "$dir/programs/check_counters_emulated" 'echo "ok   stand-in"'
cp -P -r "$dir/programs" "$dir/quick"
stand_in "$dir/quick/check_device_emulated" 'echo "ok   stand-in"'
stand_in "$dir/quick/check_solver_emulated" 'echo "ok   stand-in"'
stand_in "$dir/quick/gpu_bench_emulated" 'exit 77'

"$root/tools/gpu-check" --emulated --programs "$dir/programs" --out "$dir/bench" --minutes 30 >"$dir/stdout" 2>"$dir/stderr" ||
    fail "exit code $?: $(cat "$dir/stdout" "$dir/stderr")"
[ ! -s "$dir/stderr" ] || fail "stderr is not empty: $(cat "$dir/stderr")"
for name in check_kernels check_counters 'gpu_bench drive' 'gpu_bench align' 'gpu_bench batch' 'gpu_bench overheads' \
    'ndtd --replay' 'ndt-bench --overheads' ndt-bench 'ndt-bench --batch'; do
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
for pipeline in fused staged resident resident-block resident-cluster resident-graph resident-chain; do
    for levels in '2 m' '4-2-1 m'; do
        grep -qE "^\| cuda-emulated $pipeline \| $levels \| 300 \| [0-9.]+ \| [0-9.]+ \| - \|" "$result/gpu-check.md" ||
            fail "no alignment of $pipeline at $levels in: $(cat "$result/gpu-check.md")"
    done
    grep -qE "^\| cuda-emulated $pipeline \| 200 \| 3 scans \| [0-9.]+ \|.* as one \|" "$result/gpu-check.md" ||
        fail "no batch of $pipeline in: $(cat "$result/gpu-check.md")"
done
grep -q '0.10 ms at 756 points' "$result/gpu-check.md" || fail "what is wanted does not stand there"
grep -q '^ok   resident: ' "$result/gpu-check.md" || fail "the replay of resident does not stand there"
grep -qE '^\| cpu \| evaluation \| 300 \| [0-9.]+ \|' "$result/gpu-check.md" || fail "no row of the CPU"
if command -v python3 >/dev/null; then
    python3 - "$result/gpu-check.json" <<'END' || fail "the JSON is not as it should be"
import json, sys
result = json.load(open(sys.argv[1]))
assert result["gpu"] == "emulation on the CPU" and len(result["steps"]) >= 8, result["steps"]
drive = {row["backend"]: row for row in result["gpu_bench_drive"]["drive"]}
for name in ("cpu", "cuda-emulated staged", "cuda-emulated fused", "cuda-emulated resident"):
    row = drive[name]
    assert row["verdict"] == "ok" and row["hash"] == row["hash_again"] and row["off_m"] < 1e-3, row
assert len(result["overheads"]["overheads"]) == 16 and result["grid"]["align"]
aligns = {(row["backend"], row["levels"]): row for row in result["gpu_bench_align"]["align"]}
for (name, levels), row in aligns.items():
    if "resident" in name:
        assert row["hash"] == aligns["cuda-emulated fused", levels]["hash"], row
        assert row["same_bits_as_other_shapes"] is True and "wanted_us" not in row, row
    if levels == "2 m":
        assert row["per_evaluation_us"] != 0 and row["upload_us"] > 0 and row["kernel_us"] > 0, row
batches = result["gpu_bench_batch"]["batch"] + result["batches"]["batches"]
assert {row["items"] for row in batches} == {1, 3} and {row["of"] for row in batches} == {"guesses", "scans"}
for row in batches:
    assert row["same_bits"] is True and row["tried"] > 0 and row["together_ms"] > 0, row
    if "resident" in row["backend"]:
        assert row["launches"] == 1 or "chain" in row["backend"], row
END
fi

# A kernel check that fails is told, the results are written all the same, and the exit code says so.
cp -P -r "$dir/quick" "$dir/broken"
stand_in "$dir/broken/check_counters_emulated" 'echo "FAIL: planted"' 'exit 1'
rm "$dir/broken/ndtd_emulated"
"$root/tools/gpu-check" --emulated --programs "$dir/broken" --out "$dir/second" >"$dir/stdout" 2>&1
[ $? = 1 ] || fail "a failing check does not lead to exit code 1: $(cat "$dir/stdout")"
grep -q '"verdict": "FAIL"' "$dir/second/emulation-on-the-cpu/gpu-check.json" || fail "the JSON does not tell the failure"
grep -qE '^skipped +ndtd --replay' "$dir/stdout" || fail "a missing ndtd is not skipped"

# Half of it, into a file of its own; and an end that comes before its steps.
"$root/tools/gpu-check" --emulated --programs "$dir/quick" --out "$dir/half" --part checks >"$dir/stdout" 2>&1 ||
    fail "exit code $?: $(cat "$dir/stdout")"
[ "$(ls "$dir"/half/*)" = $'gpu-check-checks.json\ngpu-check-checks.md' ] || fail "not the two files: $(ls "$dir"/half/*)"
! grep -q 'gpu_bench' "$dir/stdout" || fail "--part checks measures: $(cat "$dir/stdout")"
mkdir -p "$dir/copy/tools" && ln -s "$root/tests" "$dir/copy/tests"
sed "s/^left() .*/left() { echo 4; }/" "$root/tools/gpu-check" >"$dir/copy/tools/gpu-check"
bash "$dir/copy/tools/gpu-check" --emulated --programs "$dir/quick" --out "$dir/late-out" --part checks >"$dir/stdout" 2>&1 ||
    fail "exit code $?: $(cat "$dir/stdout")"
grep -qE '^skipped +check_kernels .*no time left' "$dir/stdout" || fail "a step began too late: $(cat "$dir/stdout")"

# The steps of a machine with a GPU, with stand-ins: emulated programs that answer to `cuda` and get small sizes, a
# compute-sanitizer that runs what it is given, and an ncu that may not read the counters.
stand_in_program() { # NAME PROGRAM MORE-WORDS: at the end they win
    # shellcheck disable=SC2016
    stand_in "$dir/gpu/$1" 'words=() with_batch=0' \
        'for w; do case $w in cuda) w=cuda-emulated ;; *cuda:*) w=${w//cuda:/cuda-emulated:} ;; --batch) with_batch=1 ;; esac; words+=("$w"); done' \
        "more='$3'" '[ $with_batch = 0 ] || more=${more/--no-batch/--batch 1,3}' \
        "exec '$bin/$2' \"\${words[@]}\" \${more/--no-batch/}"
}
mkdir -p "$dir/gpu" "$dir/tools"
stand_in_program check_kernels check_kernels_emulated '--largest 130 --oracle 33 --case sizes/'
stand_in "$dir/gpu/check_counters" 'echo "ok   stand-in"'
stand_in_program gpu_bench gpu_bench_emulated '--points 130 --batch 1,3 --batch-points 130 --rounds 3 --scans 2'
stand_in_program ndtd ndtd_emulated ''
stand_in_program ndt-bench ndt-bench_emulated '--points 130 --scans 3 --starts 1 --no-batch'
[ ! -x "$bin/check_solver_emulated" ] || stand_in_program check_solver check_solver_emulated '--exact --quick --case limits/'
ln -s "$bin/ndt-sim" "$dir/gpu/ndt-sim"
# shellcheck disable=SC2016
stand_in "$dir/tools/nvidia-smi" 'case $* in *=name*) echo "Stand-In 1000" ;; *driver*) echo 1.2 ;; esac'
# shellcheck disable=SC2016
stand_in "$dir/tools/compute-sanitizer" '[ "$1 $3 $4" = "--tool --error-exitcode 9" ] || exit 5' 'shift 4; exec "$@"'
stand_in "$dir/tools/ncu" 'echo "==ERROR== ERR_NVGPUCTRPERM"; exit 1'
PATH=$dir/tools:$PATH "$root/tools/gpu-check" --quick --programs "$dir/gpu" --out "$dir/fourth" >"$dir/stdout" 2>&1 ||
    fail "with stand-ins: exit code $?: $(cat "$dir/stdout")"
for name in check_kernels check_counters 'compute-sanitizer memcheck, fused' 'compute-sanitizer racecheck, staged' \
    'compute-sanitizer synccheck, fused' 'compute-sanitizer initcheck, fused' 'gpu_bench align' 'gpu_bench batch' \
    'ndtd --replay' 'ndt-bench --batch'; do
    grep -qE "^ok +$name +[0-9]+ s" "$dir/stdout" || fail "with stand-ins '$name' is not ok: $(cat "$dir/stdout")"
done
grep -qE '^skipped +ncu .*not permitted here: ERR_NVGPUCTRPERM' "$dir/stdout" || fail "ncu: $(cat "$dir/stdout")"
[ -s "$dir/fourth/stand-in-1000/gpu-check.json" ] || fail "no results of a stand-in"

# Building everything itself, from nothing but the core.
"$root/tools/gpu-check" --emulated --part times --out "$dir/built" >"$dir/stdout" 2>&1 || fail "exit code $?: $(cat "$dir/stdout")"
grep -qE '^ok +build ' "$dir/stdout" && grep -qE '^ok +gpu_bench drive' "$dir/stdout" ||
    fail "the build from the core is not ok: $(cat "$dir/stdout")"

if ! nvidia-smi -L >/dev/null 2>&1 && ! compgen -G '/dev/nvidia[0-9]*' >/dev/null; then
    "$root/tools/gpu-check" --out "$dir/third" >"$dir/stdout" 2>&1
    [ $? = 3 ] && [ "$(wc -l <"$dir/stdout")" = 1 ] && [ ! -e "$dir/third" ] ||
        fail "without a GPU: not one line and exit code 3: $(cat "$dir/stdout")"
fi
for wrong in --nonsense '--part all' '--minutes x'; do
    # shellcheck disable=SC2086
    "$root/tools/gpu-check" $wrong >/dev/null 2>&1
    [ $? = 2 ] || fail "$wrong does not lead to exit code 2"
done
[ "$failures" = 0 ] || echo "$failures failures"
[ "$failures" = 0 ]
