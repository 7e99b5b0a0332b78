#!/usr/bin/env bash
# Every module of kernels has machine code for each architecture of the build, and PTX of one for newer devices: without,
# a service without a cache directory compiles at each start. Prints the bytes of machine code per architecture.
#   machine_code.sh "ARCHITECTURES" PTX OBJECT...     exit status 77: built for this machine only, or no cuobjdump here
set -uo pipefail
archs=$1 ptx=$2
shift 2
[ -n "$archs" ] || { echo "skipped: NDT_CUDA_ARCH=native"; exit 77; }
of_venv=$(dirname "$(dirname "$(command -v python3)")")
PATH=$PATH:/usr/local/cuda/bin:$(printf '%s:' "$of_venv"/lib/python3*/site-packages/nvidia/*/bin)
command -v cuobjdump >/dev/null || { echo "skipped: cuobjdump is neither in the toolkit nor from PyPI"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
for object; do
    name=$(basename "$object" .o)
    has=$(cuobjdump --list-elf --list-ptx "$object" 2>&1)
    for arch in $archs; do
        grep -q "\.sm_$arch\.cubin" <<<"$has" || { echo "FAIL $name: no machine code for sm_$arch" && failed=1; }
    done
    grep -q "\.sm_$ptx\.ptx" <<<"$has" || { echo "FAIL $name: no PTX of $ptx" && failed=1; }
    mkdir "$work/$name" && (cd "$work/$name" && cuobjdump -xelf all "$object" >/dev/null)
done
for arch in $archs; do
    echo "sm_$arch: $(cat "$work"/*/*.sm_"$arch".cubin 2>/dev/null | wc -c) bytes of machine code and line numbers, as loaded"
done
echo "$(cat "$@" | wc -c) bytes in all, compressed, with PTX"
[ "$failed" = 0 ] && echo "ok   $# modules for sm_${archs// /, sm_}, PTX of $ptx"
exit "$failed"
