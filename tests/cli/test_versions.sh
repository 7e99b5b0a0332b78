#!/usr/bin/env bash
# One version, that of CMakeLists.txt, everywhere: programs, pkg-config, CMake package, Debian packages, Python package,
# changelog. And one list of programs: the Python package has a command for each.
#   test_versions.sh BIN_DIR      (the build folder is the one above it)
set -uo pipefail
bin=$(cd "${1:?BIN_DIR}" && pwd)
build=$(dirname "$bin")
source "$(dirname "$0")/steps.sh"
cd "$(dirname "$0")/../.." || exit 1

version=$(sed -n 's/^project(ndtd VERSION \([0-9]*\.[0-9]*\.[0-9]*\) .*/\1/p' CMakeLists.txt)
[ -n "$version" ] || fail "no version MAJOR.MINOR.PATCH in CMakeLists.txt"
# says TEXT FILE: a fixed text
says() { grep -qF -- "$1" "$2" || fail "$2 does not say $1"; }
names=(ndtd)
for folder in tools/ndt-*/; do names+=("$(basename "$folder")"); done
for name in "${names[@]}"; do
    [ -x "$bin/$name" ] || { [ "$name" = ndt-web ] || fail "no $name"; continue; } # built without libmicrohttpd
    [[ $("$bin/$name" --version) =~ ^$name\ (\(ndtd\)\ )?${version//./\\.}\ \(commit ]] || fail "$name --version: $("$bin/$name" --version)"
    grep -qx "$name = \"ndtd_programs:main\"" tools/python/pyproject.toml || fail "$name is no command of the Python package"
done
[ "$(grep -c '"ndtd_programs:main"' tools/python/pyproject.toml)" = ${#names[@]} ] || fail "the Python package has commands that are no programs"
for file in "$build"/ndt*.pc; do says "Version: $version" "$file"; done
says "set(PACKAGE_VERSION \"$version\")" "$build/ndtdConfigVersion.cmake"
says "set(CPACK_PACKAGE_VERSION \"$version\")" "$build/CPackConfig.cmake"
says "ndtd ($version) " "$build/debian/ndtd/changelog"
says "__version__ = \"$version\"" "$build/python/_version.py"
# The Python package takes it by this pattern, and names no version of its own.
says "regex = 'project\\(ndtd VERSION (?P<value>[0-9.]+)'" tools/python/pyproject.toml
! grep -n '^version *=' tools/python/pyproject.toml || fail "tools/python/pyproject.toml has a version of its own"
grep -qE "^## (Unreleased|${version//./\\.}( |$))" CHANGELOG.md || fail "CHANGELOG.md has neither Unreleased nor $version"
[ "$failures" = 0 ] && echo "version $version everywhere"
exit $((failures > 0))
