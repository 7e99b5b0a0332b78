#!/usr/bin/env bash
# planted_faults.sh SOURCE_DIR CXX FLAGS OBJECT-OR-LIBRARY...: puts one fault at a time into a copy of the kernels,
# compiles that for the emulated device and demands that check_kernels fails, and says which check it was. The
# untouched copy must pass. Objects are those of check_kernels_emulated; its kernels are replaced.
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
    *.cu.o) ;;
    *) objects+=("$object") ;;
    esac
done

# build: kernels of $work/gpu into $work/check
build() {
    local kernel
    for kernel in "$work"/gpu/*.cu; do
        # shellcheck disable=SC2086
        "$cxx" -x c++ -std=gnu++17 -O1 $flags -I"$emulation" -I"$emulation/include" -I"$work/gpu" -I"$work/core/include" \
            -I"$source/src/core/include" -c "$kernel" -o "$work/$(basename "$kernel" .cu).o" || return 1
    done
    # shellcheck disable=SC2086
    "$cxx" $flags -o "$work/check" "$work"/*.o "${objects[@]}" -lpthread -lm
}

check() {
    NDT_EMULATION_SEED=${seed:-1} timeout 60 "$work/check" --backend cuda-emulated --largest 257 --oracle 257 --case "$1" 2>&1
}

# caught WHAT CASES FILE SED-EXPRESSION: the fault is really there, and a check sees it
caught() {
    local what=$1 cases=$2 file=$3 edit=$4 out
    rm -rf "$work/gpu" "$work/core"
    cp -r "$source/gpu" "$work/gpu"
    mkdir -p "$work/core"
    cp -r "$source/src/core/include" "$work/core/include"
    sed -i "$edit" "$work/$file"
    if cmp -s "$work/$file" "$source/${file/#core/src/core}"; then
        echo "FAIL $what: the fault could not be planted"
        failed=1
    elif ! build; then
        echo "FAIL $what: does not compile"
        failed=1
    elif out=$(check "$cases"); then
        echo "FAIL $what: no check sees it"
        failed=1
    else
        echo "ok   $what: $(grep -m1 -E '^FAIL|emulation:|CRASH' <<<"$out" || echo 'the program ended')"
    fi
}

cp -r "$source/gpu" "$work/gpu"
build || { echo "FAIL: the kernels do not compile"; exit 1; }
if ! check sizes/257 >"$work/log"; then
    echo "FAIL: the untouched kernels do not pass: $(head -3 "$work/log")"
    exit 1
fi
echo "ok   untouched: $(tail -1 "$work/log")"

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
exit "$failed"
