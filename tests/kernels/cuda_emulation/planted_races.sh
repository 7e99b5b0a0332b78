#!/usr/bin/env bash
# Barriers, fences, atomics and volatile accesses of the kernels, each left out once: a race check has to notice.
#   planted_races.sh plant SOURCE_DIR COPY   copies the kernels and what they include to COPY; planted_races.awk puts
#                                            every call behind a switch and lists it in COPY/faults
#   planted_races.sh check BIN_DIR COPY [N]  runs the programs that are built from COPY once without a fault, which has
#                                            to pass, and once with each fault, or each N-th one, which has to fail
set -uo pipefail
mode=$1 copy=$3 every=${4:-1} met=0
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

bin=$2 failed=0 planted=0 caught=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The smallest cases that reach all kernels, the quick ones first. `many`: alignments that end in the same pass.
programs=(search kernels chain graph cluster block preprocess many)
arguments() { # PROGRAM
    local solver=(check_solver_raced --backend cuda-emulated --exact --quick --pipeline "resident-$1" --case)
    case $1 in
    kernels) echo check_kernels_raced --backend cuda-emulated --largest 257 --oracle 129 --case sizes/257/direct7 ;;
    cluster) echo "${solver[@]}" rows/700/421 ;;
    chain | graph | block) echo "${solver[@]}" batch/3 ;;
    many) echo "${solver[@]/resident-many/resident-chain}" batch/8 ;;
    preprocess) echo check_preprocess_raced --case rounds ;;
    search) echo check_search_raced --backend cuda-emulated --case dense/near ;;
    esac
}

run() { # PROGRAM SEED SECONDS: its output; fails if it does, or hangs
    local command
    read -ra command < <(arguments "$1")
    NDT_EMULATION_SEED=$2 timeout "$3" "$bin/${command[0]}" "${command[@]:1}" 2>&1
}

# Without a fault; notes what the program reaches.
untouched() { # PROGRAM
    local out
    touch "$work/$1.sites" "$work/$1.reached"
    out=$(NDT_RACE_REACHED=$work/$1.reached NDT_RACE_SITES=$work/$1.sites NDT_RACE_COUNTS=$work/counts run "$1" 1 1200) && return
    echo "FAIL: the untouched kernels do not pass in $1:"
    grep -m3 -E 'emulation:|^FAIL|reproduce' <<<"$out"
    failed=1
}

# Runs the program with a fault; sets `what` to what it noticed.
detects() { # PROGRAM SEED
    local out
    out=$(run "$1" "$2" 120) && return 1
    what=$(grep -m1 -oE 'race: .*|emulation: .*|^FAIL.*|CRASH.*' <<<"$out" || echo 'the program ended')
}

# What changes nothing: FILE, text of the line, reason.
harmless() { # FILE LINE-NUMBER
    local text
    text=$(sed -n "$2p" "$copy/gpu/$1")
    case $1:$text in
    "kernels_resident.cu:"*"no block ends while another writes to it"*)
        echo "every block waits for all words that are sent to it; the programming guide wants the barrier all the same" ;;
    "kernels_loop.cu:"*"for racecheck"*)
        echo "the next pass is another launch, which follows the end of all blocks; racecheck does not know" ;;
    "solve_device.cuh:"*"? source["* | "solve_device.cuh:"*"words["*"] = next"*)
        echo "copies what an earlier kernel or this block wrote" ;;
    *) return 1 ;;
    esac
}

report() { # WHAT WHERE PROGRAM: the outcome of a fault
    local reason
    if [ -z "$3" ] && reason=$(harmless "${2%%:*}" "${2#*:}"); then
        echo "--   without $1 at $2: no fault: $reason"
        return
    fi
    planted=$((planted + 1))
    if [ -n "$3" ]; then
        caught=$((caught + 1))
        echo "ok   without $1 at $2: $3: $what"
    else
        echo "FAIL without $1 at $2: nothing notices it"
        failed=1
    fi
}

seeds_for() { # WHERE: orders of the threads to try
    if harmless "${1%%:*}" "${1#*:}" >"$work/reason"; then echo 1; else echo 1 2 3 4; fi
}

for program in "${programs[@]}"; do
    untouched "$program"
done
[ "$failed" = 0 ] || exit 1

is_due() { # each N-th
    met=$((met + 1))
    [ $((met % every)) = 0 ]
}

while read -r number place call; do
    is_due || continue
    mapfile -t reaching < <(cd "$work" && grep -lx "$number" -- *.reached)
    by=
    for seed in $(seeds_for "$place"); do
        for program in "${programs[@]}"; do
            [[ " ${reaching[*]} " == *" $program.reached "* ]] || continue
            NDT_RACE_FAULT=$number detects "$program" "$seed" && by=$program && break 2
        done
    done
    report "$call" "$place" "$by"
done <"$copy/faults"

# Lines with volatile accesses: "FILE:LINE PROGRAM PLACES".
for program in "${programs[@]}"; do
    read -ra command < <(arguments "$program")
    sort -u "$work/$program.sites" | while read -r site; do
        echo "$(addr2line -s -e "$bin/${command[0]}" "$site" | sed 's/ .*//') $program $site"
    done
done | awk '{ at[$1 " " $2] = at[$1 " " $2] $3 "," } END { for (i in at) print i, at[i] }' | sort >"$work/lines"
for line in $(cut -d' ' -f1 "$work/lines" | uniq); do
    is_due || continue
    by=
    for seed in $(seeds_for "$line"); do
        while read -r _ program sites; do
            NDT_RACE_WEAK=$sites detects "$program" "$seed" </dev/null && by=$program && break 2
        done < <(grep -F "$line " "$work/lines")
    done
    report volatile "$line" "$by"
done

awk '{ for (i = 1; i < NF; i += 2) sum[$i] += $(i + 1) }
    END { print sum["loads"] + sum["stores"] + sum["atomics"], "accesses checked in", sum["launches"], "launches" }' "$work/counts"
echo "$planted faults planted, $caught caught"
exit "$failed"
