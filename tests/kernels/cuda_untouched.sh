#!/usr/bin/env bash
# cuda_untouched.sh BIN_DIR: a program with the CUDA backend in it looks for the driver's library only when that
# backend is asked for. The loader itself says which libraries are looked for.
set -uo pipefail
bin=$1
log=$(mktemp)
trap 'rm -f "$log"' EXIT

looks() { # PROGRAM ARGUMENTS...: how often the driver's library is looked for
    LD_DEBUG=libs "$@" >"$log" 2>&1
    grep -c 'find library=libcuda' "$log"
}

looks "$bin/check_kernels" --list --backend cpu >/dev/null
grep -q 'find library=libc\.' "$log" || { echo "skipped: this loader does not tell what it looks for"; exit 77; }
with=$(looks "$bin/check_kernels" --list --backend cuda)
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
