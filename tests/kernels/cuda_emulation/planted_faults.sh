#!/usr/bin/env bash
# planted_faults.sh SOURCE_DIR CXX FLAGS OBJECT-OR-LIBRARY...: puts one fault at a time into a copy of the kernels,
# compiles that for the emulated device and demands that check_kernels (evaluations) or check_solver (whole searches)
# fails, and says which check it was. The untouched copy must pass. Objects are those of check_kernels_emulated and of
# check_solver_emulated; their kernels are replaced.
set -uo pipefail
source=$1 cxx=$2 flags=$3
shift 3
emulation=$source/tests/kernels/cuda_emulation
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
evaluations=() searches=() shared=()
for object in "$@"; do
    case $object in
    *.cu.o) ;;
    */check_kernels_emulated.dir/*) evaluations+=("$object") ;;
    */check_solver_emulated.dir/*) searches+=("$object") ;;
    *) shared+=("$object") ;;
    esac
done

# fresh: an untouched copy of everything that kernels are made of
fresh() {
    rm -rf "$work/gpu" "$work/core"
    mkdir -p "$work/core"
    cp -r "$source/gpu" "$work/gpu"
    cp -r "$source/src/core/include" "$work/core/include"
}

# build PROGRAM KERNEL...: those kernels of $work/gpu, the others untouched, into $work/PROGRAM
build() {
    local program=$1 kernel objects=("${evaluations[@]}")
    shift
    [ "$program" = evaluations ] || objects=("${searches[@]}")
    cp "$work"/untouched/*.o "$work" 2>/dev/null
    for kernel in "$@"; do
        # shellcheck disable=SC2086
        "$cxx" -x c++ -std=gnu++17 -O1 $flags -I"$emulation" -I"$emulation/include" -I"$work/gpu" -I"$work/core/include" \
            -c "$work/gpu/$kernel.cu" -o "$work/$kernel.o" || return 1
    done
    # shellcheck disable=SC2086
    "$cxx" $flags -o "$work/$program" "$work"/*.o "${objects[@]}" "${shared[@]}" -lpthread -lm
}

check() { # PROGRAM CASES PIPELINE
    local options=(--largest 257 --oracle 257)
    [ "$1" = evaluations ] || options=(--exact --quick)
    [ -z "$3" ] || options+=(--pipeline "$3")
    NDT_EMULATION_SEED=${seed:-1} timeout 60 "$work/$1" --backend cuda-emulated "${options[@]}" --case "$2" 2>&1
}

# plant PROGRAM KERNELS PIPELINE WHAT CASES FILE SED-EXPRESSION: the fault is really there, and a check sees it
plant() {
    local program=$1 kernels=$2 pipeline=$3 what=$4 cases=$5 file=$6 edit=$7 out
    fresh
    sed -i "$edit" "$work/$file"
    # shellcheck disable=SC2086
    if cmp -s "$work/$file" "$source/${file/#core/src/core}"; then
        echo "FAIL $what: the fault could not be planted"
        failed=1
    elif ! build "$program" $kernels; then
        echo "FAIL $what: does not compile"
        failed=1
    elif out=$(check "$program" "$cases" "$pipeline"); then
        echo "FAIL $what: no check sees it"
        failed=1
    else
        echo "ok   $what: $(grep -m1 -E '^FAIL|emulation:|CRASH' <<<"$out" | cut -c1-200 || echo 'the program ended')"
    fi
}

caught() { # WHAT CASES FILE SED-EXPRESSION
    plant evaluations "kernels_fused kernels_staged" "" "$@"
}

caught_in() { # PIPELINE WHAT CASES FILE SED-EXPRESSION
    plant searches kernels_resident "$@"
}

untouched() { # PROGRAM CASES
    if check "$1" "$2" "" >"$work/log"; then
        echo "ok   untouched: $(tail -1 "$work/log")"
    else
        echo "FAIL: the untouched kernels do not pass: $(head -3 "$work/log")"
        exit 1
    fi
}

fresh
mkdir -p "$work/untouched"
kernels=()
for kernel in "$work"/gpu/*.cu; do kernels+=("$(basename "$kernel" .cu)"); done
build evaluations "${kernels[@]}" || { echo "FAIL: the kernels do not compile"; exit 1; }
mv "$work"/*.o "$work/untouched"
untouched evaluations sizes/257
build searches || exit 1
untouched searches rows/129/421

caught "a wrong sign in one second derivative (d1, as in old PCL)" poses/steep core/include/ndt/point_math.h \
    's/t->h\[6\], -cy \* cz, cy \* sz, -sy/t->h[6], -cy * cz, cy * sz, sy/'
caught "a wrong sign in one term of a pair" sizes/33/direct7 core/include/ndt/point_math.h \
    's/w \* B\[at\] - w \* u\[i\]/w * B[at] + w * u[i]/'
caught "the last point of a block is left out" sizes/257/direct7 gpu/kernels_fused.cu \
    's/if (i < job.count)/if (i < job.count \&\& threadIdx.x != 127)/'
caught "the last, part-filled block is not launched" sizes/257/direct7 gpu/kernels_fused.cu \
    's/const uint32_t i = point_index();/const uint32_t i = blockIdx.x == 2 ? job.count : point_index();/'
caught "a point beyond the last is evaluated" sizes/257/direct7 gpu/kernels_fused.cu \
    's/if (i < job.count)/if (i <= job.count)/'
caught "staged: one point too many in the reduction" sizes/257/direct7 gpu/kernels_staged.cu \
    's/i < job.count \&\& k/i <= job.count \&\& k/'
caught "no barrier after the tables" sizes/257/direct7 gpu/point_device.cuh \
    's/__syncthreads(); .* tables are complete .*/;/'
caught "no barrier before the rows of a block are added" sizes/257/direct7 gpu/reduce.cuh \
    's/__syncthreads(); .* all rows are there .*/;/'
caught "no barrier before the last block is known" sizes/257/direct7 gpu/kernels_fused.cu \
    's/__syncthreads(); .* place is known .*/;/'
caught "no barrier before a block is counted as done" poses/ gpu/kernels_fused.cu \
    's/__syncthreads(); .* every thread.s part of the row is written .*/;/'
caught "the ticket is not set back" sizes/257 gpu/kernels_fused.cu 's/\*job.ticket = 0;/;/'
caught "a shuffle goes to the wrong lane" sizes/257/direct7 gpu/reduce.cuh 's/give, HALF)/give, HALF ^ 1)/'

caught_in resident-block "a step that is too long is cut more" rows/33/421 core/include/ndt/newton_steps.h \
    's/return a \* fmax(NDT_CUT_LEAST/return 0.5 * a * fmax(NDT_CUT_LEAST/'
caught_in resident-block "weak directions are not held" batch/1 core/include/ndt/newton_steps.h \
    's/n->holding || n->weak.count == 0/n->holding || n->weak.count <= 3/'
caught_in resident-block "GNSS is left out" variant/gnss core/include/ndt/newton_steps.h \
    's/if (!rules->has_gnss || !heading(n, n->query_pose, h))/if (1)/'
caught_in resident-block "the look around is left out" batch/1 gpu/solve_device.cuh \
    's/: NDT_GPU_LOOK_AROUND;/: NDT_GPU_FINISHED;/'
caught_in resident-graph "a sector too many" batch/1 gpu/solve_device.cuh 's/__popc(seen)/__popc(seen | 1)/'
caught_in resident-block "the scan is not turned" batch/1 gpu/solve_device.cuh \
    's/(double)from\[0\], y = (double)from\[column\]/(double)from[column], y = (double)from[0]/'
caught_in resident-block "rows of the first search are everybody's" batch/2 gpu/solve_device.cuh \
    's/(size_t)(item - batch->items) \* (size_t)batch->row_capacity/(item != batch->items ? 1 : 0)/'
caught_in resident-block "nobody gives up" deadline/past gpu/solve_device.cuh \
    's/if (last \&\& newton->wants_eval)/if (false)/'
caught_in resident-block "later rows of a large scan are left out" rows/700 gpu/kernels_resident.cu \
    's/first += stride)/first += 2 * stride)/'
caught_in resident-cluster "two blocks of a cluster take the same rows" rows/700 gpu/kernels_resident.cu \
    's/first = team.rank \* (uint32_t)NDT_GPU_GROUPS/first = 0/'
caught_in resident-cluster "no barrier before the rows are added" rows/700 gpu/kernels_resident.cu \
    's/team_barrier(team); .* all rows of the item are there .*/;/'
caught_in resident-cluster "no barrier before orders are read" rows/700 gpu/kernels_resident.cu \
    's/team_barrier(team); .* the orders are given .*/;/'
caught_in resident-block "the answer is not written back" batch/1 gpu/kernels_resident.cu \
    's/copy_words(&team.item->newton, &share->newton, sizeof(share->newton));/;/'
caught_in resident-chain "the ticket of a search is not set back" batch/1 gpu/kernels_resident.cu \
    's/item->ticket = 0; .*/;/'
caught_in resident-chain "no barrier before a block is counted" rows/700 gpu/kernels_resident.cu \
    's/__syncthreads(); .* every thread.s part of the row is written .*/;/'
exit "$failed"
