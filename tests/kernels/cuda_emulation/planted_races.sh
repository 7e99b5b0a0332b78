#!/usr/bin/env bash
# Barriers, fences, atomics and volatile accesses of the kernels, each left out once: a race check has to notice.
#   planted_races.sh plant SOURCE_DIR COPY   copies the kernels and what they include to COPY; planted_races.awk puts
#                                            every call behind a switch and lists it in COPY/faults
#   planted_races.sh check BIN_DIR COPY      runs the programs that are built from COPY once without a fault, which has
#                                            to pass, and once with each fault, which has to fail
set -uo pipefail
mode=$1 copy=$3
here=$(cd "$(dirname "$0")" && pwd)

if [ "$mode" = plant ]; then
    rm -rf "$copy"
    mkdir -p "$copy/core"
    cp -r "$2/src/core/include" "$copy/core/include"
    cp -r "$2/gpu" "$copy/gpu"
    : >"$copy/faults"
    for file in "$2"/gpu/*.cu "$2"/gpu/*.cuh; do
        name=$(basename "$file")
        first=$(($(wc -l <"$copy/faults") + 1))
        awk -v list="$copy/faults" -v first="$first" -v name="$name" -f "$here/planted_races.awk" "$file" \
            >"$copy/gpu/$name" || exit 1
    done
    exit 0
fi

bin=$2 failed=0 caught=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# NAME ARGUMENTS...: the smallest cases that reach all kernels.
programs=(kernels chain graph cluster block preprocess search)
arguments() {
    local solver=(--backend cuda-emulated --exact --quick --pipeline "resident-$1" --case)
    case $1 in
    kernels) echo check_kernels_raced --backend cuda-emulated --largest 257 --oracle 129 --case sizes/257/direct7 ;;
    cluster) echo check_solver_raced "${solver[@]}" rows/700 ;;
    chain | graph | block) echo check_solver_raced "${solver[@]}" batch/3 ;;
    preprocess) echo check_preprocess_raced --case rounds ;;
    search) echo check_search_raced --backend cuda-emulated --case dense/near ;;
    esac
}

run() { # PROGRAM SEED: its output; fails if it does
    local command
    read -ra command < <(arguments "$1")
    NDT_EMULATION_SEED=$2 timeout 120 "$bin/${command[0]}" "${command[@]:1}" 2>&1
}

# Without a fault; notes what each program reaches.
untouched() { # PROGRAM
    local out seed
    for seed in 1 2; do
        if ! out=$(NDT_RACE_REACHED=$work/$1.reached NDT_RACE_SITES=$work/$1.sites NDT_RACE_COUNTS=$work/counts run "$1" "$seed"); then
            echo "FAIL: the untouched kernels do not pass in $1, seed $seed:"
            grep -m3 -E 'emulation:|^FAIL|reproduce' <<<"$out"
            failed=1
        fi
    done
    touch "$work/$1.sites" "$work/$1.reached"
    sort -u -o "$work/$1.sites" "$work/$1.sites"
}

# Runs the program with a fault, in several orders if need be; prints what it noticed.
detects() { # PROGRAM
    local out seed
    for seed in 1 2 3 4; do
        if ! out=$(run "$1" "$seed"); then
            grep -m1 -oE 'race: .*|emulation: .*|^FAIL.*|CRASH.*' <<<"$out" || echo 'the program ended'
            return 0
        fi
    done
    return 1
}

for program in "${programs[@]}"; do
    untouched "$program"
done
[ "$failed" = 0 ] || exit 1

# The calls.
while read -r number place call; do
    found=0 reached=0
    for program in "${programs[@]}"; do
        grep -qx "$number" "$work/$program.reached" || continue
        reached=1
        if what=$(NDT_RACE_FAULT=$number detects "$program"); then
            echo "ok   without $call at $place: $program: $what"
            found=1
            break
        fi
    done
    caught=$((caught + found))
    [ "$found" = 1 ] || { echo "FAIL without $call at $place: $([ "$reached" = 1 ] && echo 'nothing notices it' || echo 'no case reaches it')"; failed=1; }
done <"$copy/faults"

# The lines with volatile accesses.
for program in "${programs[@]}"; do
    read -ra command < <(arguments "$program")
    while read -r site; do
        echo "$(addr2line -s -e "$bin/${command[0]}" "$site" | sed 's/ .*//') $site"
    done <"$work/$program.sites" | sort >"$work/$program.lines"
    while read -r line; do
        sites=$(awk -v line="$line" '$1 == line { printf "%s,", $2 }' "$work/$program.lines")
        if what=$(NDT_RACE_WEAK=$sites detects "$program"); then
            echo "$line" >>"$work/volatile_caught"
            echo "ok   without volatile at $line: $program: $what"
        else
            echo "$line" >>"$work/volatile_missed"
        fi
    done < <(awk '{ print $1 }' "$work/$program.lines" | sort -u | { [ -f "$work/volatile_caught" ] && grep -vxFf "$work/volatile_caught" || cat; })
done
awk '{ for (i = 1; i < NF; i += 2) sum[$i] += $(i + 1) } END { for (i in sum) printf "%s %d  ", i, sum[i]; print "" }' "$work/counts"
exit "$failed"
