#!/usr/bin/env bash
# planted_front_faults.sh SOURCE_DIR CXX FLAGS OBJECT-OR-LIBRARY...: as planted_faults.sh, for the kernels that
# preprocess: one fault at a time goes into a copy of them, and check_front has to see it. Objects are those of
# check_front_emulated; its kernels are replaced.
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
    *kernels_front.cu.o) ;;
    *) objects+=("$object") ;;
    esac
done

build() {
    # shellcheck disable=SC2086
    "$cxx" -x c++ -std=gnu++17 -O1 $flags -I"$emulation" -I"$emulation/include" -I"$work/gpu" -I"$work/core/include" \
        -c "$work/gpu/kernels_front.cu" -o "$work/front.o" &&
        "$cxx" $flags -o "$work/check" "$work/front.o" "${objects[@]}" -lpthread -lm
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

front=gpu/kernels_front.cu
math=core/include/ndt/front_math.h
caught "the last point is left out" $front 's/if (i >= front->count)/if (i + 1 >= front->count)/'
caught "a cell begins with any of its points" $front 's/if (mine < seen)/if (mine < 0)/'
caught "slots of rounds before are taken for full" $front 's/if (seen >> 32 != front->round)/if (seen == 0)/'
caught "the sums of the scan before stay" $front 's/(size_t)k\] = 0;/(size_t)k] += 0;/'
caught "the numbers of points of the scan before stay" $front 's/front->sizes\[i\] = 0;/;/'
caught "no barrier before the stretches are added up" $front 's/__syncthreads(); .* all stretches are there .*/;/'
caught "no barrier before the warps are added up" $front 's/__syncthreads(); .* all warps have counted .*/;/'
caught "no barrier before the lanes are added up" $front 's/__syncthreads(); .* all lanes are there .*/;/'
caught "no barrier before a block is counted as done" $front 's/__syncthreads(); .* every thread has written its part .*/;/'
caught "the ticket is not set back" $front 's/state->ticket = 0;/;/'
caught "the sample begins one later" $front 's/ndt_sample_pick(front->rules.seed, j,/ndt_sample_pick(front->rules.seed, j + 1,/'
caught "again moves what was moved" $front 's/float p_m\[3\] = {front->sampled\[0\]\[j\]/float p_m[3] = {front->scan[j]/'
caught "a cell's number is cut towards zero" $math 's/cell = cut - ((float)cut > at)/cell = cut/'
caught "ranges are judged in float only" $math 's/return exact >= front->near_m2 .*/return 1;/'
caught "a point moves with the knot before" $math 's/front->knots\[knot + 1\]/front->knots[knot]/'
exit "$failed"
