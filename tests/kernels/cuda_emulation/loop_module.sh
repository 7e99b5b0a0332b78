#!/usr/bin/env bash
# Which modules of kernels set the condition of a graph: only that of the loop may, because drivers before CUDA 12.4
# cannot load it. The function is an undefined symbol of the objects of the emulation as it is of the machine code.
#   loop_module.sh OBJECT...
set -uo pipefail
found=0 failed=0
for object; do
    nm -u "$object" 2>/dev/null | grep -q emulated_set_condition || continue
    case $object in
    *kernels_loop.cu.*) found=1 ;;
    *) echo "FAIL ${object##*/}: sets the condition of a graph; only kernels_loop may" && failed=1 ;;
    esac
done
[ "$found" = 1 ] || { echo "FAIL kernels_loop: does not set the condition of its graph" && failed=1; }
[ "$failed" = 1 ] || echo "ok   only the module of the loop sets the condition of a graph ($# modules)"
exit "$failed"
