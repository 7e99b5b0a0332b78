#!/bin/bash
# The programs are built with what protects them when a check was forgotten (tools/cmake/hardening.cmake).
set -u
bin=$(cd "$1" && pwd)
build=$(dirname "$bin")
failed=0

fail() {
    echo "FAIL: $*"
    failed=1
}

setting() { # NAME: from the cache of CMake
    sed -n "s/^$1:[A-Z]*=//p" "$build/CMakeCache.txt"
}

if ! command -v readelf >/dev/null; then
    echo "skipped: readelf (binutils) is missing"
    exit 77
fi
if [ -n "$(setting NDT_SANITIZE)" ] || [ "$(setting NDT_HARDEN)" != ON ]; then
    echo "skipped: this build is not hardened (NDT_SANITIZE or NDT_HARDEN=OFF)"
    exit 77
fi

count=0
for program in ndtd ndt-bag ndt-bench ndt-echo ndt-send ndt-sim ndt-top ndt-ctl ndt-map ndt-web "../$(setting CMAKE_INSTALL_LIBDIR)/ndtd/libndt_cuda.so"; do
    file=$bin/$program
    [ -x "$file" ] || continue
    count=$((count + 1))
    elf=$(readelf --wide --file-header --program-headers --dynamic "$file")
    symbols=$(readelf --wide --dyn-syms "$file")
    [[ $elf =~ Type:\ +DYN ]] || fail "$program is not position-independent"
    [[ $elf =~ GNU_RELRO ]] || fail "$program has no RELRO segment"
    [[ $elf =~ (BIND_NOW|Flags:.*NOW) ]] || fail "$program binds symbols lazily, so RELRO is not full"
    [[ $elf =~ GNU_STACK[^$'\n']*RWE ]] && fail "$program has an executable stack"
    [[ $symbols =~ __stack_chk_fail ]] || fail "$program has no stack protector"
    if [ "$(setting CMAKE_BUILD_TYPE)" != Debug ]; then
        [[ $symbols =~ __(memcpy|snprintf|vsnprintf|fprintf|memset|read|fread)_chk ]] ||
            fail "$program does not use the fortified library"
    fi
done
[ "$count" -gt 0 ] || fail "there are no programs in $bin"

# The final link drops the marks of control-flow protection where a foreign object lacks them (libcudart): the
# objects of the project have them. Stack-clash protection leaves no mark, so the command lines tell.
commands=$build/compile_commands.json
of_project=$(grep '"command"' "$commands" | grep -c '/src/\(base\|config\|core\|io\|live\|localizer\|ndtd\|replay\|search\|track\)/[a-z_/]*\.c"')
for flag in NDT_HAVE_fstack_protector_strong:-fstack-protector-strong NDT_HAVE_fcf_protection_full:-fcf-protection=full \
    NDT_HAVE_fstack_clash_protection:-fstack-clash-protection; do
    known=$(setting "${flag%%:*}")
    with=$(grep '"command"' "$commands" | grep '/src/\(base\|config\|core\|io\|live\|localizer\|ndtd\|replay\|search\|track\)/[a-z_/]*\.c"' | grep -c -e "${flag#*:}")
    if [ "$known" = 1 ] && [ "$with" != "$of_project" ]; then
        fail "${flag#*:}: $with of $of_project sources"
    fi
done
if [ "$(setting NDT_HAVE_fcf_protection_full)" = 1 ] && [ "$(uname -m)" = x86_64 ]; then
    for library in src/core/libndt_core.a src/io/libndt_io.a src/localizer/libndt_localizer.a src/live/libndt_live.a; do
        [ -f "$build/$library" ] || continue
        objects=$(readelf --wide --notes "$build/$library" | grep -c '^File: ')
        marked=$(readelf --wide --notes "$build/$library" | grep -c 'IBT, SHSTK')
        [ "$objects" = "$marked" ] || fail "$library: $marked of $objects objects have control-flow protection"
    done
fi
[ "$failed" = 0 ] && echo "ok: $count programs, $of_project sources"
exit "$failed"
