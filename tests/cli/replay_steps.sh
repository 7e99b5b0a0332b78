# shellcheck shell=bash
# For tests of ndtd --replay with a stand-in for a program of the Python package, to be read with `source`: $bin, a folder of
# its own as the current one, and a simulated drive in sim/.
source "$(dirname "${BASH_SOURCE[0]}")/steps.sh"
unset NDT_IMPORT NDT_REPORT
cd "$dir" || exit 1

with=() # the environment of `expect`
# expect CODE PATTERN ARGUMENTS...: exit code, and the last line on standard error matches; no pattern: there is none.
expect() {
    local code=$1 pattern=$2 rc
    shift 2
    env "${with[@]}" "$bin/ndtd" "$@" >stdout 2>stderr </dev/null
    rc=$?
    [ "$rc" = "$code" ] || fail "ndtd $*: exit code $rc instead of $code: $(cat stderr)"
    if [ -z "$pattern" ]; then
        [ ! -s stderr ] || fail "ndtd $*: said $(cat stderr)"
    else
        tail -n 1 stderr | grep -qE -- "^ndtd: .*$pattern" || fail "ndtd $*: '$(cat stderr)' does not say '$pattern'"
    fi
}

hash_of() {
    sed -n 's/^trajectory hash *//p' stdout
}

[ -x "$bin/ndt-sim" ] || exit 77
"$bin/ndt-sim" --out sim --seed 3 --scans 12 --odometry >/dev/null || exit 1
