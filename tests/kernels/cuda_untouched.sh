#!/usr/bin/env bash
# cuda_untouched.sh BIN_DIR: a program with the CUDA backend loads the library of the driver only when it uses that
# backend. LD_DEBUG shows which libraries the loader looks for.
set -uo pipefail
bin=$1
log=$(mktemp)
trap 'rm -f "$log"' EXIT

looks() { # PROGRAM ARGUMENTS...: prints how often the loader looks for the library of the driver
    LD_DEBUG=libs "$@" >"$log" 2>&1
    grep -c 'find library=libcuda' "$log"
}

looks "$bin/check_kernels" --backend cpu --case sizes/32/ >/dev/null
grep -q 'find library=libc\.' "$log" || { echo "skipped: this loader has no LD_DEBUG=libs"; exit 77; }
with=$(looks "$bin/check_kernels" --backend cuda --case contract)
[ "$with" -gt 0 ] || { echo "FAIL: not even the CUDA backend looks for the driver's library"; exit 1; }
failed=0
for backend in cpu reference; do
    without=$(looks "$bin/check_kernels" --backend "$backend" --case sizes/32/)
    if [ "$without" -eq 0 ] && grep -q '4 passed, 0 failed' "$log"; then
        echo "ok   $backend looks for no library of CUDA; cuda does"
    else
        echo "FAIL $backend: looked for the driver's library $without times"
        failed=1
    fi
done
exit "$failed"
