# shellcheck shell=sh
# For tests of programs from the outside, to be read with `.`: they run in a folder of the test's own, $work, in which
# `out` and `err` are what the last program wrote. A process $daemon ends with the test.
failures=0
work=$(mktemp -d) || exit 1
daemon=
clean() {
    [ -z "$daemon" ] || kill "$daemon" 2>/dev/null
    wait
    rm -rf "$work"
}
trap clean EXIT
cd "$work" || exit 1
mkdir -m 700 run
export RUNTIME_DIRECTORY="$work/run"

fail() {
    echo "FAILED: $*" >&2
    sed 's/^/    /' out err >&2
    failures=$((failures + 1))
}

# expect_of PROGRAM CODE "words on stderr" arguments...   no words: nothing on stderr; a failure is one line
expect_of() {
    program=$1 name=${1##*/} code=$2 words=$3
    shift 3
    "$program" "$@" >out 2>err
    got=$?
    [ "$got" -eq "$code" ] || fail "$name $*: exit code $got, not $code"
    if [ -z "$words" ]; then
        [ ! -s err ] || fail "$name $*: stderr is not empty"
    else
        grep -qF -- "$words" err || fail "$name $*: no '$words' on stderr"
    fi
    if [ "$code" -ne 0 ] && [ "$(wc -l <err)" -ne 1 ]; then
        fail "$name $*: not one line on stderr"
    fi
}

# says "words": on stdout of the last program
says() {
    grep -qF -- "$1" out || fail "no '$1' on stdout"
}
