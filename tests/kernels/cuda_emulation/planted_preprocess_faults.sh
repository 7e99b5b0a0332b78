#!/usr/bin/env bash
# planted_preprocess_faults.sh SOURCE_DIR CXX FLAGS OBJECT-OR-LIBRARY...: as planted_faults.sh, for the kernels that
# preprocess: one fault at a time goes into a copy of them, and check_preprocess has to see it. Objects are those of
# check_preprocess_emulated; its kernels are replaced.
set -uo pipefail
source=$1 cxx=$2 flags=$3
shift 3
emulation=$source/tests/kernels/cuda_emulation
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
objects=()
for object in "$@"; do
    case $object in
    *kernels_preprocess.cu.o) ;;
    *) objects+=("$object") ;;
    esac
done

build() {
    # shellcheck disable=SC2086
    "$cxx" -x c++ -std=gnu++17 -O1 $flags -I"$emulation" -I"$emulation/include" -I"$work/gpu" -I"$work/core/include" \
        -c "$work/gpu/kernels_preprocess.cu" -o "$work/kernels.o" &&
        "$cxx" $flags -o "$work/check" "$work/kernels.o" "${objects[@]}" -lpthread -lm
}

copy() {
    rm -rf "$work/gpu" "$work/core"
    mkdir -p "$work/core"
    cp -r "$source/gpu" "$work/gpu"
    cp -r "$source/src/core/include" "$work/core/include"
}

# caught WHAT FILE SED-EXPRESSION: the fault is really there, and the check sees it
caught() {
    local what=$1 file=$2 edit=$3 out
    copy
    sed -i "$edit" "$work/$file"
    if cmp -s "$work/$file" "$source/${file/#core/src/core}"; then
        echo "FAIL $what: the fault could not be planted"
        failed=1
    elif ! build 2>"$work/log"; then
        echo "FAIL $what: does not compile: $(grep -m1 error "$work/log")"
        failed=1
    elif out=$(timeout 20 "$work/check" --quick 2>&1); then
        echo "FAIL $what: no check sees it"
        failed=1
    else
        echo "ok   $what: $(grep -m1 -E '^FAIL|emulation:' <<<"$out" || echo 'the program ended')"
    fi
}

copy
build && "$work/check" --quick >"$work/log" || { echo "FAIL: the untouched kernels do not pass: $(head -3 "$work/log")"; exit 1; }
echo "ok   untouched: $(tail -1 "$work/log")"

kernels=gpu/kernels_preprocess.cu
math=core/include/ndt/preprocess_math.h
caught "the last point is left out" $kernels 's/if (i >= plan->count)/if (i + 1 >= plan->count)/'
caught "a cell begins with any of its points" $kernels 's/if (mine < seen)/if (mine < 0)/'
caught "slots of rounds before are taken for full" $kernels 's/if (seen >> 32 != plan->round)/if (seen == 0)/'
caught "the sums of the scan before stay" $kernels 's/(size_t)k\] = 0;/(size_t)k] += 0;/'
caught "the numbers of points of the scan before stay" $kernels 's/plan->sizes\[i\] = 0;/;/'
caught "no barrier before the stretches are added up" $kernels 's/__syncthreads(); .* all stretches are there .*/;/'
caught "no barrier before the warps are added up" $kernels 's/__syncthreads(); .* all warps have counted .*/;/'
caught "no barrier before the lanes are added up" $kernels 's/__syncthreads(); .* all lanes are there .*/;/'
caught "no barrier before a block is counted as done" $kernels 's/__syncthreads(); .* every thread has written its part .*/;/'
caught "the ticket is not set back" $kernels 's/state->ticket = 0;/;/'
caught "the sample begins one later" $kernels 's/ndt_sample_pick(plan->rules.seed, j,/ndt_sample_pick(plan->rules.seed, j + 1,/'
caught "again moves what was moved" $kernels 's/float p_m\[3\] = {plan->sampled\[0\]\[j\]/float p_m[3] = {plan->scan[j]/'
caught "a cell's number is cut towards zero" $math 's/cell = cut - ((float)cut > at)/cell = cut/'
caught "ranges are decided in float only" $math 's/return exact >= plan->near_m2 .*/return 1;/'
caught "a point moves with the begin of its segment only" $math 's/plan->boundaries\[segment + 1\]/plan->boundaries[segment]/'
exit "$failed"
