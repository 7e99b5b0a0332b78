#!/usr/bin/env bash
# A build without CUDA, one without a toolkit, and the current one, which may have CUDA but no GPU: each works and
# reports its backends.
#   test_builds_without_cuda.sh BIN_DIR
set -uo pipefail
bin=${1:?folder of the programs}
root=$(cd "$(dirname "$0")/../.." && pwd)
cache=$bin/../CMakeCache.txt
setting() { sed -n "s/^$1:[A-Z]*=//p" "$cache" 2>/dev/null; }
[ -f "$cache" ] && command -v cmake >/dev/null || { echo "skipped: no build folder, or no cmake"; exit 77; }
[ -z "$(setting NDT_SANITIZE)$(setting CMAKE_TOOLCHAIN_FILE)" ] || { echo "skipped: sanitizers, or another machine's build"; exit 77; }
source "$(dirname "$0")/steps.sh"

# Uses the flags of the current build, so that ccache can provide the objects.
! command -v ccache >/dev/null || export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache
configure() { # FOLDER ARGUMENTS...
    cmake -S "$root" -B "$@" -G "$(setting CMAKE_GENERATOR)" -DCMAKE_C_COMPILER="$(setting CMAKE_C_COMPILER)" \
        -DCMAKE_BUILD_TYPE=Release -DNDT_WERROR="$(setting NDT_WERROR)" -DNDT_TESTS=OFF -DNDT_PEER_PCL=OFF >"$dir/configure" 2>&1 ||
        fail "cmake $*: $(tail -n 20 "$dir/configure")"
}

"$bin/ndt-sim" --seed 3 --out "$dir/sim" --scans 4 --beams 16 --columns 600 --map-spacing 0.3 >/dev/null ||
    fail "ndt-sim made no drive"
replay=(--replay "$dir/sim/drive.bag" --map "$dir/sim/map.pcd" --out "$dir/out.tum")

# CUDA disabled: the program contains no CUDA code.
configure "$dir/off" -DNDT_CUDA=OFF
grep -q 'CUDA backend: not built: NDT_CUDA=OFF' "$dir/configure" || fail "cmake does not say that CUDA is off"
cmake --build "$dir/off" --parallel 2 --target ndtd >"$dir/build" 2>&1 || fail "the build: $(tail -n 20 "$dir/build")"
off=$dir/off/bin/ndtd
"$off" --list-backends >"$dir/list" 2>&1 || fail "--list-backends: $(cat "$dir/list")"
grep -q '^cpu ' "$dir/list" && ! grep -qi cuda "$dir/list" || fail "the list of backends: $(cat "$dir/list")"
[ "$(nm "$off" 2>/dev/null | grep -c 'cuda[A-Z]')" = 0 ] || fail "the program contains CUDA symbols"
"$off" "${replay[@]}" >"$dir/stdout" 2>&1 || fail "a replay without CUDA: $(cat "$dir/stdout")"
"$off" "${replay[@]}" --backend cuda >"$dir/stdout" 2>&1
[ $? = 2 ] && grep -q "'cuda' is not one of auto, cpu" "$dir/stdout" || fail "--backend cuda: $(cat "$dir/stdout")"
echo "ok   NDT_CUDA=OFF: $(cut -d' ' -f1 "$dir/list" | head -n 2 | paste -sd' ')"

# No toolkit on the machine.
configure "$dir/none" -DNDT_CORE_ONLY=ON -DCMAKE_DISABLE_FIND_PACKAGE_CUDAToolkit=ON
grep -q 'CUDA backend: not built: no CUDA toolkit was found' "$dir/configure" ||
    fail "cmake does not say that there is no toolkit: $(grep CUDA "$dir/configure")"
cmake -S "$root" -B "$dir/on" -DNDT_CORE_ONLY=ON -DNDT_CUDA=ON -DCMAKE_DISABLE_FIND_PACKAGE_CUDAToolkit=ON \
    >"$dir/configure" 2>&1 && fail "NDT_CUDA=ON without a toolkit is not refused"
echo "ok   no toolkit: reported, and refused with NDT_CUDA=ON"

# The current build.
"$bin/ndtd" --list-backends >"$dir/list" 2>&1 || fail "--list-backends: $(cat "$dir/list")"
"$bin/ndtd" "${replay[@]}" >"$dir/stdout" 2>&1 || fail "a replay with the CPU: $(cat "$dir/stdout")"
line=$(grep '^cuda ' "$dir/list")
case $line in
'') echo "     this build has no CUDA backend" ;;
*'not here: '*)
    "$bin/ndtd" "${replay[@]}" --backend cuda >"$dir/stdout" 2>&1
    rc=$?
    [ $rc != 0 ] && grep -qF "${line##*not here: }" "$dir/stdout" ||
        fail "--backend cuda without a GPU: exit code $rc, $(cat "$dir/stdout")"
    echo "ok   a toolkit, no GPU: $line"
    ;;
*)
    "$bin/ndtd" "${replay[@]}" --backend cuda >"$dir/stdout" 2>&1 || fail "--backend cuda: $(cat "$dir/stdout")"
    echo "ok   a toolkit and a GPU: $line"
    ;;
esac
[ "$failures" = 0 ] || echo "$failures failures"
[ "$failures" = 0 ]
