#!/bin/sh
# Static shared memory of each kernel: at most 48 KiB, what a block may have without asking ("Static shared memory" of
# the CUDA programming guide). nvcc refuses a kernel with more; this finds it without nvcc. The limit is one of a kernel,
# not of its file: a variable counts for the kernel that declares it (_ZZ<length>NAME..., its mangled name, says which),
# that of another function for every kernel of its file.
#   shared_limit.sh OBJECT...        exit status 77: there is no `objdump` here
command -v objdump >/dev/null || exit 77
status=0 kernels=0
for object; do
    found=$(objdump -t "$object" | awk '
        function value(hex,    i, sum) {
            for (i = 1; i <= length(hex); i++)
                sum = 16 * sum + index("0123456789abcdef", substr(hex, i, 1)) - 1
            return sum
        }
        NF < 4 || $(NF - 2) != "emulated_shared" || $NF == "emulated_shared" { next }
        $NF ~ /^_ZZ[0-9]+ndt_/ {
            size = substr($NF, 4) + 0
            kernel[substr($NF, 4 + length(size ""), size)] += value($(NF - 1))
            next
        }
        { common += value($(NF - 1)) }
        END {
            if (common > 0)
                kernel["others"] += 0
            for (name in kernel)
                print name, kernel[name] + common
        }')
    [ -n "$found" ] || continue
    kernels=$((kernels + $(printf '%s\n' "$found" | wc -l)))
    printf '%s\n' "$found" | awk -v object="${object##*/}" '
        $2 > 49152 { print object ", " $1 ": " $2 " bytes of shared memory; the limit is 49152"; failed = 1 }
        END { exit failed }' || status=1
done
[ "$kernels" -gt 0 ] || { echo "no kernel with shared memory was found" && exit 1; }
[ "$status" = 0 ] && echo "ok   $kernels kernels with at most 48 KiB of shared memory"
exit $status
