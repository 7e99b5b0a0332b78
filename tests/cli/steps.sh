# shellcheck shell=bash
# For tests of programs, to be read with `source`: a folder of the test's own, $dir, and a count of failures.
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
failures=0

fail() {
    echo "FAIL: $*"
    failures=$((failures + 1))
}
