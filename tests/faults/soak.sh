#!/usr/bin/env bash
# soak.sh BIN_DIR SHIM: a short tools/dev/soak passes; with a leak of memory, a leak of descriptors or a daemon that is
# killed it fails and says so.
set -uo pipefail
bin=$(cd "$1" && pwd) shim=$(realpath "$2") here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$here
unset RUNTIME_DIRECTORY NOTIFY_SOCKET
failed=0

soak() { # NAME OPTION...
    local name=$1
    shift
    "$here/../../tools/dev/soak" --bin "$bin" --every 5 "$@" >"$work/$name" 2>&1
    echo $? >"$work/$name.code"
}

expect() { # NAME CODE PATTERN: of the last line
    local code line
    code=$(<"$work/$1.code") line=$(tail -n 1 "$work/$1")
    if [ "$code" = "$2" ] && [[ $line =~ $3 ]]; then
        echo "ok   $1: $line"
    else
        echo "FAIL $1: exit code $code, expected $2 and '$3':"
        cat "$work/$1"
        failed=1
    fi
}

# page FILE KIND EVERY AMOUNT: a page on which every EVERY-th call of KIND leaks.
page() {
    python3 - "$@" <<'PY'
import sys
from fault_page import Page
page = Page(sys.argv[1])
page.set(sys.argv[2], 1, mode="leaks", every=int(sys.argv[3]), amount=int(sys.argv[4]))
page.arm()
PY
}

if [[ $(nm "$bin/ndtd" 2>/dev/null) =~ __asan_init ]]; then # whose quarantine grows
    soak short --minutes 0.4 --turn 2 --growth 100000
    [ "$(<"$work/short.code")" != 77 ] || exit 77
    expect short 0 'verdict: passed'
    exit $failed
fi
soak short --minutes 0.4 --turn 2 --growth 48
[ "$(<"$work/short.code")" != 77 ] || exit 77
cat "$work/short"
expect short 0 'verdict: passed'

page "$work/memory" memory 20 3000000
page "$work/files" open 1 0
soak leak --minutes 0.25 --turn 1 --growth 48 --prefix "env LD_PRELOAD=$shim NDT_FAULT_PAGE=$work/memory" &
soak descriptors --minutes 0.25 --turn 1 --growth 1000 --prefix "env LD_PRELOAD=$shim NDT_FAULT_PAGE=$work/files" &
soak killed --minutes 0.25 --turn 1 &
for _ in $(seq 300); do
    pid=$(sed -n 's/^daemon //p' "$work/killed" 2>/dev/null)
    [ -z "$pid" ] || break
    sleep 0.1
done
sleep 3
kill -9 "$pid"
wait
expect leak 1 'FAILED: .*resident MiB over the second half'
expect descriptors 1 'FAILED: .*descriptors over the second half'
expect killed 1 'FAILED: the daemon ended by itself with -9'
exit $failed
