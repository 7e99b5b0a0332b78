# shellcheck shell=bash
# For tests of programs, to be read with `source`: a folder of the test's own, $dir, and a count of failures.
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
failures=0

fail() {
    echo "FAIL: $*"
    failures=$((failures + 1))
}

# expect CODE PATTERN ARGUMENTS...: exit code of $program, and one line on standard error that matches; no pattern: none.
# $dir/stdout and $dir/stderr are what it wrote.
expect() {
    local code=$1 pattern=$2 name=${program##*/} rc
    shift 2
    "$program" "$@" >"$dir/stdout" 2>"$dir/stderr" </dev/null
    rc=$?
    [ "$rc" = "$code" ] || fail "$name $*: exit code $rc instead of $code: $(cat "$dir/stderr")"
    if [ -z "$pattern" ]; then
        [ ! -s "$dir/stderr" ] || fail "$name $*: stderr is not empty: $(cat "$dir/stderr")"
        return
    fi
    [ "$(wc -l <"$dir/stderr")" = 1 ] || fail "$name $*: not one line: $(cat "$dir/stderr")"
    grep -qE -- "^$name: .*$pattern" "$dir/stderr" || fail "$name $*: '$(cat "$dir/stderr")' does not say '$pattern'"
}
