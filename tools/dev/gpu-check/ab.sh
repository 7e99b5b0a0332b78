#!/usr/bin/env bash
# Part of tools/gpu-check: two builds, measured in turns. Pairs of runs differ by what else happens on
# the machine less than two runs far apart.
# shellcheck disable=SC2034,SC2154 # variables of gpu-check

# bench_of NUMBER WHAT: builds `WHAT` and leaves the path of its ndt-bench in other_bench. A revision, a folder with sources, or
# one with programs.
bench_of() {
    local folder=$work/other-$1 tree=$2
    other_bench=''
    if [ -x "$2/ndt-bench$suffix" ]; then
        other_bench=$2/ndt-bench$suffix
        return 0
    fi
    if [ ! -f "$2/CMakeLists.txt" ]; then
        tree=$work/tree-$1
        mkdir -p "$tree" && git -C "$root" archive "$2" 2>/dev/null | tar -x -C "$tree" || return 1
    fi
    tree=$tree build "$folder" -DNDT_CORE_ONLY=ON "ndt-bench$suffix" || return
    other_bench=$folder/bin/ndt-bench$suffix
}

# in_turns NAME WHAT THIS OTHER WORDS...: pairs of runs of `ndt-bench WHAT WORDS`; THIS and OTHER are a program and words of its
# own, in one string. Adds rows to ab.md.
in_turns() {
    local name=$1 what=$2 this=$3 other=$4 pair side files=()
    shift 4
    for ((pair = 1; pair <= pairs; pair++)); do
        local turn=(this other)
        [ $((pair % 2)) = 1 ] || turn=(other this)
        for side in "${turn[@]}"; do
            local words=${!side} out=$work/ab-$pair-$side.json
            # shellcheck disable=SC2086
            limited ${words%% *} "$what" "$@" ${words#* } --json "$out" >/dev/null || return
        done
        [ -s "$work/ab-$pair-this.json" ] && [ -s "$work/ab-$pair-other.json" ] || { echo "no figures"; return 77; }
        files+=("$work/ab-$pair-this.json" "$work/ab-$pair-other.json")
    done
    local rows
    rows=$(awk -f "$root/tools/dev/gpu-check/pairs.awk" -v name="$name" -v open="$no_verdict" "${files[@]}")
    [ -n "$rows" ] || { echo "no rows that both have"; return 1; }
    printf '%s\n' "$rows" >>"$work/ab.md"
    echo "$(wc -l <<<"$rows") rows, $pairs pairs"
}

# Every revision of --against: what alignments, evaluations, fixed cost and batches take, as ratios of this build to that one.
against_all() {
    local number=0 what one words
    for one in "${against[@]}"; do
        number=$((number + 1))
        step "build of $one" 900 bench_of $number "$one" || continue
        for what in align evaluations batch; do
            [ $emulated = 0 ] || [ $what = align ] || continue
            words=(--backend "$backend:fused,$backend:resident" --need-device --levels 2 --scans "$scans"
                --points "${points:-756,1500,5000,20000,100000}" --rounds "$((rounds / 5 > 2 ? rounds / 5 : 2))")
            [ $what != batch ] || words+=(--points "${batch_points:-1500}" --sizes "$batches")
            step "$what, against $one" 300 in_turns "$one" $what "$core/ndt-bench$suffix " "$other_bench " "${words[@]}"
        done
    done
}

write_ab() {
    if [ -s "$work/ab.md" ]; then
        printf '\n## In turns\n\nPairs of runs one after the other; ratio: this build to the other one, below 1 is faster.\n\n'
        printf '| against | row | other | this | ratio | range | verdict |\n|---|---|---|---|---|---|---|\n'
        cat "$work/ab.md"
    fi
    echo
}
