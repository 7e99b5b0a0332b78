#!/usr/bin/env bash
# Every program: --help and --version, man page and bash completion, unknown options.
#   test_help.sh BIN_DIR      0: all as expected
set -uo pipefail
bin=$(cd "${1:?the folder with the programs}" && pwd)
describe=$(cd "$(dirname "$0")/../../tools/cmake" && pwd)/describe_program.sh
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failures=0

fail() {
    echo "FAILED: $*" >&2
    failures=$((failures + 1))
}

# quietly COMMAND...: exit status 0, something on stdout, nothing on stderr
quietly() {
    "$@" >out 2>err || fail "$*: exit status $?: $(cat err)"
    [ -s out ] || fail "$*: prints nothing"
    [ ! -s err ] || fail "$*: prints on stderr: $(cat err)"
}

for name in ndtd ndt-bag ndt-sim ndt-bench ndt-send ndt-echo ndt-top ndt-ctl ndt-map; do
    program=$bin/$name
    quietly "$program" --help
    grep -qi "^usage: $name" out || fail "$name --help: no line of usage"
    quietly "$program" --version
    [ "$(wc -l <out)" -eq 1 ] || fail "$name --version: not one line"
    "$program" --no-such-option >out 2>err
    [ $? -eq 2 ] || fail "$name --no-such-option: exit status is not 2"
    [ "$(wc -l <err)" -eq 1 ] || fail "$name --no-such-option: not one line on stderr"

    quietly bash "$describe" completion 1.2 "$program" /dev/stdout
    mv out "$name.completion"
    bash -n "$name.completion" || fail "$name: the completion is not a bash script"
    command -v help2man >/dev/null || continue
    quietly help2man --no-info "$program"
    bash "$describe" man 1.2 "$program" "$name.1" 2>err || fail "man page of $name: $(cat err)"
    [ ! -s err ] || fail "man page of $name: $(cat err)"
    grep -q '^\\fB\\-\\-version\\fR' "$name.1" || fail "man page of $name: no --version"
    grep -q "^$name \\\\- .* " "$name.1" || fail "man page of $name: no summary"
    ! command -v groff >/dev/null || [ -z "$(groff -man -Tascii -ww -z "$name.1" 2>&1)" ] ||
        fail "man page of $name: $(groff -man -Tascii -ww -z "$name.1" 2>&1 | head -n 3)"
done
[ ! -e ndt-bag.1 ] || grep -q '\\-\\-salvage' ndt-bag.1 || fail "man page of ndt-bag: nothing about its commands"

# completes "words of the command line" "completions"; the last word is the one to complete
completes() {
    local words
    read -ra words <<<"$1"
    [[ $1 != *' ' ]] || words+=("")
    # shellcheck disable=SC2034 # COMP_*: read by the completion
    COMP_WORDS=("${words[@]}") COMP_CWORD=$((${#words[@]} - 1)) COMPREPLY=()
    "_${words[0]//-/_}"
    [ "${COMPREPLY[*]}" = "$2" ] || fail "completion of '$1': '${COMPREPLY[*]}', not '$2'"
}
for name in ndtd ndt-bag ndt-sim ndt-echo ndt-ctl; do
    # shellcheck disable=SC1090
    . "./$name.completion"
done
completes 'ndt-bag ' '--help --version pack info check cut restamp dump'
completes 'ndt-bag c' 'check cut'
completes 'ndt-bag cut --s' '--scans --salvage'
completes 'ndt-bag cut ' ''
completes 'ndt-bag pack --out -' ''
completes 'ndt-sim --map' '--map-spacing'
completes 'ndt-echo --format t' ''
completes 'ndt-ctl re' 'record reload'
completes 'ndt-ctl localize --h' '--heading --heading-deviation --help'
completes 'ndtd --rep' '--replay'
completes 'ndtd --print' '--print-config'

[ "$failures" -eq 0 ] || exit 1
echo "--help, --version, man pages and completion: all as expected"
