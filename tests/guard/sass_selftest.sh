#!/usr/bin/env bash
# tools/dev/sass-guard/sass-guard fails where it has to: faults planted into small kernels and into a copy of the tree.
#   sass_selftest.sh SOURCE_DIR
# Exit codes: 0 every fault is seen, 1 one is not, 77 skipped (no nvcc, no disassembler).
set -uo pipefail
source=${1:?folder of the sources}
guard=$source/tools/dev/sass-guard/sass-guard arch=90
source "$source/tests/cli/steps.sh"

# tree NAME: a tree with the headers of the project and one file of kernels from stdin, gpu/kernels_planted.cu.
tree() {
    mkdir -p "$dir/$1/gpu" "$dir/$1/src/core" && cp -r "$source/src/core/include" "$dir/$1/src/core/" &&
        cat >"$dir/$1/gpu/kernels_planted.cu"
}

# counts NAME OPTIONS...: sass-guard of that tree, against the baseline of tree `good`.
counts() {
    local name=$1
    shift
    "$guard" --tree "$dir/$name" --arch $arch --baseline "$dir/baseline.tsv" --case kernels "$@" >"$dir/$name.out" 2>&1
}

# sees NAME TEXT: the fault of that tree is reported.
sees() {
    counts "$1" && fail "$1 passes: $(cat "$dir/$1.out")"
    grep -q "$2" "$dir/$1.out" || fail "$1: no '$2': $(cat "$dir/$1.out")"
}

rows='#include <cuda_runtime.h>
extern "C" __global__ void add(const double *rows, double *sum, int count)
{
    double part = 0;'
tree good <<<"$rows
#pragma unroll 1
    for (int i = 0; i < count; i += 8) {
        double ahead[8];
        for (int k = 0; k < 8; k++)
            ahead[k] = __ldcg(rows + i + k);
        for (int k = 0; k < 8; k++)
            part += ahead[k];
    }
    *sum = part;
}"
counts good --update
case $? in
77) cat "$dir/good.out"; exit 77 ;;
0) ;;
*) fail "the good kernel does not pass: $(cat "$dir/good.out")" ;;
esac
counts good || fail "the good kernel does not pass twice: $(cat "$dir/good.out")"

tree chain <<<"$rows
    const volatile double *seen = rows;
#pragma unroll 1
    for (int i = 0; i < count; i++)
        part += seen[i];
    *sum = part;
}"
sees chain 'waits for each load'

tree undefined <<<"$rows
    part = rows[threadIdx.x];
    if (part < 0)
        cudaGraphSetConditional(1, 0);
    *sum = part;
}"
sees undefined 'undefined symbol cudaGraphSetConditional'

tree spill <<<"$(sed 's/void add/void __launch_bounds__(1024, 2) add/' <<<"$rows")
    double many[60];
#pragma unroll
    for (int k = 0; k < 60; k++)
        many[k] = __ldcg(rows + k * 64 + threadIdx.x);
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 60; k++)
        many[k] = many[k] * many[(k * 7 + 3) % 60] + sqrt(many[(k * 11 + 5) % 60]);
#pragma unroll
    for (int k = 0; k < 60; k++)
        sum[k * 64 + threadIdx.x] = many[k];
}"
sees spill 'MORE .*spills'

# The tree itself, with a Newton step that is slower than its baseline, and one that is wrong on the device.
newton() { # NAME
    "$guard" --tree "$dir/$1" --arch $arch --baseline "$dir/newton.tsv" --case newton "${@:2}" >"$dir/$1.out" 2>&1
}
copy() {
    mkdir -p "$dir/$1/src/core" && cp -r "$source/gpu" "$dir/$1/" && cp -r "$source/src/core/include" "$dir/$1/src/core/"
}
copy same
newton same --update || fail "the Newton step does not pass: $(cat "$dir/same.out")"
copy slow
sed -i 's/^NDT_APART void newton_step(/static __device__ double slow_sum(const double *x)\n{\n    double sum = 0;\n#pragma unroll 1\n    for (int i = 0; i < 300; i++)\n        sum += sqrt(fabs(x[i % 21]));\n    return sum;\n}\n&/
    s/^    struct ndt_eval eval = \*sums;$/&\n#ifdef __CUDACC__\n    if (slow_sum(sums->hessian) < 0)\n        return;\n#endif/' \
    "$dir/slow/src/core/include/ndt/newton_steps.h"
sed -i '1i #ifndef __CUDACC__\n#define __device__\n#endif' "$dir/slow/src/core/include/ndt/newton_steps.h"
newton slow && fail "a slow Newton step passes: $(cat "$dir/slow.out")"
grep -q 'MORE .*cycles' "$dir/slow.out" || fail "slow: $(cat "$dir/slow.out")"
copy wrong
sed -i 's/^    struct ndt_eval eval = \*sums;$/&\n#ifdef __CUDACC__\n    eval.gradient[2] *= 1 + 1e-9;\n#endif/' \
    "$dir/wrong/src/core/include/ndt/newton_steps.h"
newton wrong && fail "a wrong Newton step passes: $(cat "$dir/wrong.out")"
grep -q "differs from the host's" "$dir/wrong.out" || fail "wrong: $(cat "$dir/wrong.out")"

"$guard" --nonsense >/dev/null 2>&1
[ $? = 2 ] || fail "--nonsense does not lead to exit code 2"
[ "$failures" = 0 ] && echo "ok: a chain, an undefined symbol, a spill, a slow and a wrong Newton step are seen"
[ "$failures" = 0 ]
