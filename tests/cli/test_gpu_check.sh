#!/usr/bin/env bash
# tools/gpu-check without a GPU: the same steps on the emulated device, into a folder of its own.
#   test_gpu_check.sh BIN_DIR
# NDT_GPU_CHECK_FULL=1: on the device without a fault all of `--part checks` runs, as on hardware; several minutes.
set -uo pipefail
bin=$(cd "${1:?folder of the programs}" && pwd) || exit 1
root=$(cd "$(dirname "$0")/../.." && pwd)
[ -x "$bin/ndt-bench_emulated" ] || { echo "skipped: the emulated device is not built here"; exit 77; }
if grep -q '^NDT_SANITIZE:[A-Z]*=.' "$bin/../CMakeCache.txt" 2>/dev/null; then
    echo "skipped: too slow under sanitizers"
    exit 77
fi
source "$(dirname "$0")/steps.sh"

stand_in() { # NAME LINE...: a shell script
    rm -f "$1"
    printf '#!/bin/bash\n' >"$1"
    printf '%s\n' "${@:2}" >>"$1"
    chmod +x "$1"
}
with_words() { # NAME PROGRAM WORDS: the program, with words behind its own that override them
    stand_in "$1" "exec '$bin/$2' \"\$@\" $3"
}

# The checks are tests by themselves: here each runs a small case, and for check_counters, which has no options, a
# stand-in reports that it was run. Scans of drives have fewer points.
mkdir "$dir/programs"
ln -s "$bin"/* "$dir/programs/"
stand_in "$dir/programs/check_counters_emulated" 'echo counted'
with_words "$dir/programs/check_search_emulated" check_search_emulated '--case dense/quick'
with_words "$dir/programs/check_scores_emulated" check_scores_emulated '--case parts/direct7'
with_words "$dir/programs/ndt-sim" ndt-sim '--columns 56 --scans 3'
"$root/tools/gpu-check" --emulated --programs "$dir/programs" --out "$dir/bench" --minutes 30 --against "$dir/programs" >"$dir/stdout" 2>"$dir/stderr" ||
    fail "exit code $?: $(cat "$dir/stdout" "$dir/stderr")"
[ ! -s "$dir/stderr" ] || fail "stderr is not empty: $(cat "$dir/stderr")"
for name in check_kernels check_counters 'ndt-bench drive' 'ndt-bench align' 'ndt-bench rested' 'ndt-bench chain' 'ndt-bench evaluations' 'ndt-bench batch' \
    'ndt-bench overheads' check_search 'ndtd --replay' "align, against $dir/programs"; do
    grep -qE "^ok +$name +[0-9]+ s" "$dir/stdout" || fail "'$name' is not ok: $(cat "$dir/stdout")"
done
result=$dir/bench/emulation-on-the-cpu
[ "$(ls "$result")" = $'gpu-check.json\ngpu-check.md' ] || fail "not the two files: $(ls "$dir/bench" "$result")"
for heading in Drive 'Where the time goes' Batches 'One evaluation' 'In turns'; do
    [ "$(grep -c "^## $heading" "$result/gpu-check.md")" = 1 ] || fail "no table '$heading' in: $(cat "$result/gpu-check.md")"
done
for pipeline in fused staged resident resident-block resident-cluster resident-graph resident-chain; do
    for levels in 2 4-2-1; do
        grep -qE "^\| robust \| $levels \| [a-z0-9-]+ \| cuda-emulated $pipeline \| 300 \| [0-9.]+ \|" "$result/gpu-check.md" ||
            fail "no alignment of $pipeline at $levels in: $(cat "$result/gpu-check.md")"
    done
    grep -qE "^\| .* \| cuda-emulated $pipeline \| 200 \| 3 \| scans \| [0-9.]+ \|.* true \|" "$result/gpu-check.md" ||
        fail "no batch of $pipeline in: $(cat "$result/gpu-check.md")"
done
grep -q '0.10 ms at 756 points' "$result/gpu-check.md" || fail "the targets are missing"
grep -q '^ok   resident: ' "$result/gpu-check.md" || fail "the replay of resident is missing"
if command -v python3 >/dev/null; then
    python3 - "$result/gpu-check.json" <<'END' || fail "the JSON is not as it should be"
import json, sys
result = json.load(open(sys.argv[1]))
assert result["gpu"] == "emulation on the CPU" and len(result["steps"]) >= 8, result["steps"]
drive = {row["backend"]: row for row in result["drive"]["drive"]}
for name in ("staged", "fused", "resident"):
    row = drive["cuda-emulated " + name]
    assert row["verdict"] == "ok" and row["hash"] == row["hash_again"] and row["off_mm"] < 1, row
overheads = {row["backend"]: row for row in result["overheads"]["overheads"]}
assert [name for name in overheads if "cpu" in name], overheads
for name in ("staged", "fused", "resident"):
    for key in ("evaluation_us", "kernel_us", "copies_us", "launch_us", "synchronise_us", "stage_us", "upload_us", "pageable_us"):
        assert overheads["cuda-emulated " + name][key] > 0, overheads
aligns = {(row["backend"], row["levels"]): row for row in result["align"]["align"] + result["chain"]["align"]}
assert {levels for _, levels in aligns} == {"2", "4-2-1"}, aligns
for (name, levels), row in aligns.items():
    if "resident" in name:
        assert row["hash"] == aligns["cuda-emulated fused", levels]["hash"], row
        assert row["same_bits"] is True and "wanted" not in row, row
    assert row["upload_us"] > 0 and row["success_percent"] > 0, row
    assert row["kernel_us"] is None if "cuda" in name else row["kernel_us"] > 0, row
assert {row["rest_ms"] for row in result["rested"]["align"]} == {100}, result["rested"]
for row in result["evaluations"]["evaluations"]:
    assert row["per_evaluation_us"] != 0 and "once_us" in row and row["kernel_per_evaluation_us"] is not None, row
batches = result["batch"]["batch"]
assert {row["items"] for row in batches} == {1, 3} and {row["of"] for row in batches} == {"guesses", "scans"}
for row in batches:
    assert row["same_bits"] is True and row["tried"] > 0 and row["together_ms"] > 0, row
    if "resident" in row["backend"]:
        assert row["launches"] == 1 or "chain" in row["backend"], row
END
fi

grep -qE "^\| $dir/programs \| cuda-emulated resident, [0-9]+ points: align_ms \| .* \| open: no GPU \|$" "$result/gpu-check.md" ||
    fail "no row against '$dir/programs' in: $(cat "$result/gpu-check.md")"

# Verdicts of pairs: 5 % faster in all, slower in all, now this way and now that.
pairs() { # RATIO...: prints the verdict
    local i=0 ratio files=()
    for ratio; do
        i=$((i + 1))
        printf '{"align": [\n  {"backend": "cuda resident on X", "points": 756, "align_ms": %s}]}\n' "$ratio" >"$dir/this-$i.json"
        printf '{"align": [\n  {"backend": "cuda resident on X", "points": 756, "align_ms": 1}]}\n' >"$dir/other-$i.json"
        files+=("$dir/this-$i.json" "$dir/other-$i.json")
    done
    awk -f "$root/tools/dev/gpu-check/pairs.awk" -v name=x "${files[@]}" | sed 's/.*| \([a-z]*\) |$/\1/'
}
[ "$(pairs 0.95 0.94 0.96)" = faster ] && [ "$(pairs 1.05 1.1 1.2)" = slower ] && [ "$(pairs 0.9 1.1 0.95 1.2)" = equal ] &&
    [ "$(pairs 0.99 0.99 0.99)" = equal ] || fail "verdicts of pairs"

# A kernel check that fails is reported, the results are written all the same, and the exit code is 1.
mkdir "$dir/broken"
for name in check_kernels check_solver check_search check_device; do
    ln -s "$dir/programs/check_counters_emulated" "$dir/broken/${name}_emulated"
done
printf '#!/bin/sh\necho "FAIL: planted"\nexit 1\n' >"$dir/broken/check_counters_emulated"
chmod +x "$dir/broken/check_counters_emulated"
"$root/tools/gpu-check" --emulated --programs "$dir/broken" --part checks --out "$dir/second" >"$dir/stdout" 2>&1
[ $? = 1 ] || fail "a failing check does not lead to exit code 1: $(cat "$dir/stdout")"
[ "$(ls "$dir/second/emulation-on-the-cpu")" = $'gpu-check-checks.json\ngpu-check-checks.md' ] ||
    fail "not the two files: $(ls "$dir"/second/*)"
grep -q "FAIL: planted" "$dir/second/gpu-check-checks-logs/check_counters.log" || fail "no log of a step in: $(ls "$dir"/second/*)"
grep -q '"verdict": "FAIL"' "$dir/second/emulation-on-the-cpu/gpu-check-checks.json" || fail "the JSON does not report the failure"
! grep -q 'ndt-bench' "$dir/stdout" || fail "--part checks measures: $(cat "$dir/stdout")"

# The time limit ends before the steps begin.
mkdir -p "$dir/copy/tools/dev" && ln -s "$root/tests" "$dir/copy/tests" && ln -s "$root/tools/dev/gpu-check" "$dir/copy/tools/dev/gpu-check"
sed "s/^left() .*/left() { echo 4; }/" "$root/tools/gpu-check" >"$dir/copy/tools/gpu-check"
bash "$dir/copy/tools/gpu-check" --emulated --programs "$bin" --out "$dir/late-out" --part checks >"$dir/stdout" 2>&1 ||
    fail "exit code $?: $(cat "$dir/stdout")"
grep -qE '^skipped +check_kernels .*no time left' "$dir/stdout" || fail "a step began too late: $(cat "$dir/stdout")"

# The time limit ends steps that have begun: they are skipped, unless they had found a fault. A step that exceeds its own
# limit fails. `left` counts nothing here: every step gets six seconds, but for check_search, which has five of its own.
sed -e "s/^left() .*/left() { echo 6; }/" -e 's/"check_search" 60/"check_search" 5/' "$root/tools/gpu-check" >"$dir/copy/tools/gpu-check"
mkdir "$dir/endless"
for name in check_kernels check_solver check_search check_counters check_scores; do
    printf '#!/bin/sh\necho "ok   the first"\n%s\n' "$(case $name in
        check_kernels | check_search) echo 'exec sleep 600' ;;
        check_solver) echo 'echo "FAIL the second"; exec sleep 600' ;;
        esac)" >"$dir/endless/${name}_emulated"
    chmod +x "$dir/endless/${name}_emulated"
done
bash "$dir/copy/tools/gpu-check" --emulated --programs "$dir/endless" --out "$dir/cut" --part checks >"$dir/stdout" 2>&1
[ $? = 1 ] || fail "a fault that was found and a step that hangs do not lead to exit code 1: $(cat "$dir/stdout")"
for row in 'skipped +check_kernels .*cut after 6 s: no time left of 120 minutes' 'FAIL +check_solver .*not done after 6 s' \
    'FAIL +check_search .*not done after 5 s' 'ok +check_counters'; do
    grep -qE "^$row" "$dir/stdout" || fail "not '$row' in: $(cat "$dir/stdout")"
done
for name in solver search; do
    cp "$dir/endless/check_counters_emulated" "$dir/endless/check_${name}_emulated"
done
bash "$dir/copy/tools/gpu-check" --emulated --programs "$dir/endless" --out "$dir/cut" --part checks >"$dir/stdout" 2>&1 ||
    fail "a step that the time limit ends leads to exit code $?: $(cat "$dir/stdout")"

# A build that the time limit ends leaves nothing to check.
mkdir "$dir/slow"
# shellcheck disable=SC2016
printf '#!/bin/sh\n[ "$1" != --build ] || exec sleep 600\n' >"$dir/slow/cmake"
chmod +x "$dir/slow/cmake"
PATH=$dir/slow:$PATH bash "$dir/copy/tools/gpu-check" --emulated --out "$dir/cut" --part checks >"$dir/stdout" 2>&1
[ $? = 3 ] && [ "$(tail -n 1 "$dir/stdout")" = "gpu-check: the build takes more than --minutes 120" ] ||
    fail "a build that takes too long: $(cat "$dir/stdout")"

# The steps on a machine with a GPU without a fault, with stand-ins: programs with contracted kernels, which round as a device
# does and not as the host; they accept `cuda` and get small sizes. A compute-sanitizer that runs its arguments, and an ncu without
# permission to read the counters.
device=contracted quick=--quick
"$bin/check_scores_contracted" --list >/dev/null || device=emulated # no fused multiply-add here
stand_in_program() { # NAME PROGRAM MORE-WORDS: appended, so that they override
    # shellcheck disable=SC2016
    stand_in "$dir/gpu/$1" 'words=() more=""' \
        'for w; do case $w in cuda) w=cuda-emulated ;; *cuda:*) w=${w//cuda:/cuda-emulated:} ;; esac; words+=("$w"); done' \
        "more='$3'" '[ "${words[0]}" != batch ] || more+=" --sizes 1,3"' \
        'case ${words[0]} in align | evaluations | batch | overheads) more+=" --rounds 2" ;; esac' "exec '$bin/$2' \"\${words[@]}\" \$more"
}
mkdir -p "$dir/gpu" "$dir/tools"
if [ -n "${NDT_GPU_CHECK_FULL:-}" ]; then
    quick='' kernel_words='' solver_words='' search_words='' score_words=''
    stand_in_program check_counters check_counters_$device ''
else
    kernel_words='--largest 130 --oracle 33 --case sizes/' solver_words='--quick --case prior/gnss'
    search_words='--case dense/quick' score_words='--case parts/direct7'
    stand_in "$dir/gpu/check_counters" 'echo counted'
fi
stand_in_program check_kernels check_kernels_$device "$kernel_words"
stand_in_program check_solver check_solver_$device "$solver_words"
stand_in_program check_search check_search_$device "$search_words"
stand_in_program check_scores check_scores_$device "$score_words"
stand_in_program ndt-bench ndt-bench_$device '--points 130 --scans 2'
stand_in_program ndtd ndtd_$device ''
with_words "$dir/gpu/ndt-sim" ndt-sim '--columns 56 --scans 3'
# shellcheck disable=SC2016
stand_in "$dir/tools/nvidia-smi" 'case $* in *=name*) echo "Stand-In 1000" ;; *driver*) echo 1.2 ;; esac'
# shellcheck disable=SC2016
stand_in "$dir/tools/compute-sanitizer" '[ "$1 $3 $4" = "--tool --error-exitcode 9" ] || exit 5' \
    '[ "$2" = memcheck ] || [ "${5##*/}" = loop ] || { [ -x "$5" ]; exit; }' 'export TOOL=$2; shift 4; exec "$@"'
# shellcheck disable=SC2016
stand_in "$dir/gpu/loop" '[ "${TOOL:-}" != synccheck ]' # a graph that loops, which one of the tools cannot watch
stand_in "$dir/tools/ncu" 'echo "==ERROR== ERR_NVGPUCTRPERM"; exit 1'
# The rehearsal: both calls, in turn, with what a machine with a bare toolkit has.
mkdir "$dir/bare"
for folder in /bin /usr/bin /usr/local/bin; do ln -sf "$folder"/* "$dir/bare"; done
rm -f "$dir"/bare/{*pkg-config*,*pkgconf*,ninja*,python*,pip*,*zmq*,*yaml*}
for part in checks times; do
    PATH=$dir/tools:$dir/bare "$root/tools/gpu-check" $quick --part $part --minutes 120 --programs "$dir/gpu" --out "$dir/fourth" >"$dir/stdout-$part" 2>&1 ||
        fail "a device without a fault, --part $part: exit code $?: $(cat "$dir/stdout-$part")"
    [ -s "$dir/fourth/stand-in-1000/gpu-check-$part.json" ] && [ -s "$dir/fourth/stand-in-1000/gpu-check-$part.md" ] || fail "no results of --part $part"
    [ -n "$(ls "$dir/fourth/gpu-check-$part-logs")" ] || fail "no logs of --part $part"
done
cat "$dir/stdout-checks" "$dir/stdout-times" >"$dir/stdout"
PATH=$dir/bare cmake -G 'Unix Makefiles' -S "$root" -B "$dir/bare-build" -DCMAKE_BUILD_TYPE=Release -DNDT_CORE_ONLY=ON -DNDT_CUDA=OFF >"$dir/stdout-bare" 2>&1 ||
    fail "the core cannot be configured with what a bare machine has: $(tail -n 20 "$dir/stdout-bare")"
targets=$(PATH=$dir/bare cmake --build "$dir/bare-build" --target help)
for name in check_kernels check_counters check_search check_scores check_solver ndt-bench; do
    grep -q "^\.\.\. $name\$" <<<"$targets" || fail "no target $name on a bare machine"
done
[ -z "${NDT_GPU_CHECK_FULL:-}" ] || cat "$dir/stdout"
for name in check_kernels check_solver check_counters check_search check_scores 'compute-sanitizer memcheck, fused' 'compute-sanitizer racecheck, staged' \
    'compute-sanitizer synccheck, fused' 'compute-sanitizer initcheck, fused' 'ndt-bench align' 'ndt-bench rested' 'ndt-bench batch' \
    'ndtd --replay'; do
    grep -qE "^ok +$name +[0-9]+ s" "$dir/stdout" || fail "with stand-ins '$name' is not ok: $(cat "$dir/stdout")"
done
grep -qE '^skipped +compute-sanitizer synccheck, resident-graph .*loop.cu' "$dir/stdout" &&
    grep -qE '^ok +compute-sanitizer initcheck, resident-graph' "$dir/stdout" || fail "graphs that loop: $(cat "$dir/stdout")"
grep -qE '^skipped +ncu .*not permitted here: ERR_NVGPUCTRPERM' "$dir/stdout" || fail "ncu: $(cat "$dir/stdout")"

# Without --programs it builds the core by itself. Here cmake configures that build in earnest, a dry run proves that every
# target exists in it, and ndt-bench of the core alone is compiled; `true` stands in for the emulated programs, which are run above.
if command -v ccache >/dev/null; then
    export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache CCACHE_NOHASHDIR=1
fi
mkdir "$dir/builder"
# shellcheck disable=SC2016
stand_in "$dir/builder/cmake" "PATH=${PATH@Q}" '[ "$1" = --build ] || exec cmake "$@"' 'folder=$2' \
    'export CCACHE_BASEDIR=$folder' 'cmake "$@" -- -n >"$folder/dry-run" || exit 1' \
    'cmake --build "$folder" --parallel 2 --target ndt-bench || exit 1' \
    '[ "$("$folder/bin/ndt-bench" --help | grep -c "^  [a-z]")" -ge 6 ] || exit 1' \
    'while [ "$1" != --target ]; do shift; done; shift' 'for name; do ln -s /bin/true "$folder/bin/$name" || exit 1; done'
CMAKE_GENERATOR=Ninja PATH=$dir/builder:$PATH "$root/tools/gpu-check" --emulated --part times --out "$dir/built" >"$dir/stdout" 2>&1 ||
    fail "exit code $?: $(cat "$dir/stdout")"
grep -qE '^ok +build ' "$dir/stdout" && grep -qE '^ok +ndt-bench drive' "$dir/stdout" ||
    fail "the build from the core is not ok: $(cat "$dir/stdout")"
grep -qE '^skipped +ndtd --replay' "$dir/stdout" || fail "a missing ndtd is not skipped"

if ! nvidia-smi -L >/dev/null 2>&1 && ! compgen -G '/dev/nvidia[0-9]*' >/dev/null; then
    "$root/tools/gpu-check" --out "$dir/third" >"$dir/stdout" 2>&1
    [ $? = 3 ] && [ "$(wc -l <"$dir/stdout")" = 1 ] && [ ! -e "$dir/third" ] ||
        fail "without a GPU: not one line and exit code 3: $(cat "$dir/stdout")"
fi
for wrong in --nonsense '--part all' '--minutes x' '--pairs 0'; do
    # shellcheck disable=SC2086
    "$root/tools/gpu-check" $wrong >/dev/null 2>&1
    [ $? = 2 ] || fail "$wrong does not lead to exit code 2"
done
[ "$failures" = 0 ] || echo "$failures failures"
[ "$failures" = 0 ]
