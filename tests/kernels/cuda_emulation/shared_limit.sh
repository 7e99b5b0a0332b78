#!/bin/sh
# Static shared memory of the kernels of a file: at most 48 KiB, what a block may have without asking ("Static shared
# memory" of the CUDA programming guide). nvcc refuses a kernel with more; this finds it without nvcc, per file.
#   shared_limit.sh OBJECT...        exit status 77: there is no `size` here
command -v size >/dev/null || exit 77
status=0
for object; do
    bytes=$(size -A "$object" | awk '$1 == "emulated_shared" { sum += $2 } END { print sum + 0 }')
    [ "$bytes" -le 49152 ] && continue
    echo "$object: $bytes bytes of shared memory; the limit is 49152"
    status=1
done
exit $status
