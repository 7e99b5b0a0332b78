#!/usr/bin/env bash
# The oldest CMake that CMakeLists.txt names, from PyPI: configures, lists presets and tests, builds the core library.
#   test_oldest_cmake.sh BIN_DIR
# Exit codes: 0 passed, 1 failed, 77 skipped: a sanitizer build, no venv or no PyPI.
set -uo pipefail
build=$(dirname "$(cd "${1:?BIN_DIR}" && pwd)")
source=$(cd "$(dirname "$0")/../.." && pwd)
grep -q '^NDT_SANITIZE:[A-Z]*=$' "$build/CMakeCache.txt" || { echo "one build is enough"; exit 77; }
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$source" || exit 1
least=$(sed -n '1s/cmake_minimum_required(VERSION \([0-9.]*\))/\1/p' CMakeLists.txt)
fail() {
    echo "FAILED: $*"
    exit 1
}

[ -n "$least" ] || fail "CMakeLists.txt names no version of CMake"
{ python3 -m venv "$work/venv" && "$work/venv/bin/pip" -q install "cmake==$least.*"; } >"$work/log" 2>&1 ||
    { echo "skipped: no CMake $least from PyPI: $(tail -n 1 "$work/log")"; exit 77; }
export PATH=$work/venv/bin:$PATH
export CMAKE_GENERATOR=Ninja
! command -v ccache >/dev/null || export CMAKE_C_COMPILER_LAUNCHER=ccache
[[ $(cmake --version) = "cmake version $least."* ]] || fail "another version: $(cmake --version)"
cmake --list-presets=all . >"$work/presets" 2>&1 && grep -q '"cross-aarch64"' "$work/presets" || fail "presets: $(cat "$work/presets")"
cmake -S . -B "$work/build" -DNDT_CUDA=OFF -DNDT_WERROR=ON >"$work/log" 2>&1 || fail "configure: $(tail -n 20 "$work/log")"
! grep -q '^CMake .*Warning' "$work/log" || fail "configure: $(grep -A 5 '^CMake .*Warning' "$work/log")"
cmake --build "$work/build" --target ndt_core >"$work/log" 2>&1 || fail "build: $(tail -n 20 "$work/log")"
ctest --test-dir "$work/build" -N >"$work/log" 2>&1 || fail "ctest: $(tail -n 5 "$work/log")"
[ "$(grep -c '^ *Test *#' "$work/log")" -gt 100 ] || fail "ctest lists $(grep -c '^ *Test *#' "$work/log") tests"
echo "CMake $least: $(tail -n 1 "$work/log")"
