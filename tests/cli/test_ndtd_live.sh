#!/usr/bin/env bash
# The daemon as a program: errors at start, signals, sockets, and a complete drive with ndt-send where it is built.
#   test_ndtd_live.sh BIN_DIR
set -uo pipefail
bin=$(cd "${1:?folder of the programs}" && pwd)
source "$(dirname "$0")/steps.sh"
pid=
cleanup() {
    [ -z "$pid" ] || kill -9 "$pid" 2>/dev/null
    rm -rf "$dir"
}
trap cleanup EXIT
cd "$dir" || exit 1
unset NOTIFY_SOCKET JOURNAL_STREAM WATCHDOG_USEC RUNTIME_DIRECTORY

# refuse CODE PATTERN ARGUMENTS...: ndtd ends with this code and a last line that matches.
refuse() {
    local code=$1 pattern=$2 rc
    shift 2
    timeout 300 "$bin/ndtd" "$@" >stdout 2>stderr </dev/null
    rc=$?
    [ "$rc" = "$code" ] || fail "ndtd $*: exit code $rc instead of $code: $(cat stderr)"
    tail -n 1 stderr | grep -qE -- "$pattern" || fail "ndtd $*: '$(cat stderr)' does not say '$pattern'"
}

# await PATTERN: until the daemon's log says it.
await() {
    for _ in $(seq 6000); do
        grep -qE -- "$1" log && return 0
        kill -0 "$pid" 2>/dev/null || break
        sleep 0.05
    done
    fail "the log never says '$1': $(cat log)"
    return 1
}

start() {
    : >log
    "$bin/ndtd" "$@" 2>>log &
    pid=$!
    await ' ready '
}

# end SIGNAL: ends with 0.
end() {
    kill "-$1" "$pid"
    wait "$pid"
    local rc=$?
    pid=
    [ "$rc" = 0 ] || fail "SIG$1: exit code $rc: $(cat log)"
}

cat >ndtd.yaml <<YAML
sockets:
  scans: "ipc://$dir/scans.ipc"
  poses: "ipc://$dir/poses.ipc"
  control: "ipc://$dir/control.ipc"
YAML

# Errors at start.
refuse 2 'missing.yaml: cannot open' -c missing.yaml
refuse 3 'missing.pcd' -c ndtd.yaml --map missing.pcd
refuse 2 '--record goes with the daemon only' --replay x.bag --record y.bag
refuse 2 '--out goes with --replay only' -c ndtd.yaml --out x
refuse 2 "'foo' is not the address of a socket" -c ndtd.yaml --map missing.pcd --set sockets.scans=foo # before the map
refuse 2 'CURVE|keys' -c ndtd.yaml --set sockets.scans=tcp://0.0.0.0:47311
refuse 3 'no/such' -c ndtd.yaml --set "sockets.poses=ipc://$dir/no/such/poses.ipc"
refuse 2 "rt.cpus: '1-' is not a list of cores" -c ndtd.yaml --set rt.cpus=1-
[ -z "$(ls ./*.ipc 2>/dev/null)" ] || fail "sockets were left: $(ls ./*.ipc)"

# Signals and reload.
start -c ndtd.yaml
grep -q '; no map' log || fail "the missing map is not reported: $(cat log)"
for name in scans poses control; do
    [ "$(stat -c %a $name.ipc)" = 600 ] || fail "$name.ipc has mode $(stat -c %a $name.ipc)"
done
refuse 3 'in use' -c ndtd.yaml
printf 'live: {budget_ms: 50, queue_depth: 4}\n' >>ndtd.yaml
kill -HUP "$pid"
await 'reloaded; these need a restart: live.queue_depth'
printf 'nonsense: 1\n' >>ndtd.yaml
kill -HUP "$pid"
await "is unchanged: ndtd.yaml:[0-9]+: 'nonsense' is not an option"
sed -i '/nonsense/d' ndtd.yaml
end TERM

# Several files: all of them are read again, the later ones win.
mkdir more
printf 'preprocess: {voxel_m: 0.4}\nlive: {budget_ms: 70}\n' >more/second.yaml
start -c ndtd.yaml -c more/second.yaml
printf 'live: {budget_ms: 70, queue_depth: 5}\n' >more/second.yaml
kill -HUP "$pid"
await 'reloaded; these need a restart: live.queue_depth'
printf 'live: {budget_ms: x}\nnonsense: 1\n' >more/second.yaml
kill -HUP "$pid"
await "is unchanged: more/second.yaml:1: live.budget_ms: 'x' is not a number \(and 1 more\)"
end TERM
[ -z "$(ls ./*.ipc 2>/dev/null)" ] || fail "sockets were left: $(ls ./*.ipc)"

# The system may refuse privileges; the daemon starts nevertheless.
start -c ndtd.yaml --set rt.priority=10 --set rt.cpus=0 --set rt.lock_memory=true --record first.bag
[ -s first.bag ] || fail "nothing was recorded"
end INT
refuse 3 'first.bag' -c ndtd.yaml --record first.bag

# The default directory.
mkdir run
RUNTIME_DIRECTORY="$dir/run" "$bin/ndtd" -c /dev/null 2>log &
pid=$!
await ' ready '
[ -S run/scans.ipc ] && [ -S run/control.ipc ] || fail "no sockets in the runtime directory: $(ls run)"
end TERM
[ -z "$(ls run)" ] || fail "sockets were left in the runtime directory"

# kill -9: the next daemon starts despite the stale sockets.
start -c ndtd.yaml --record killed.bag
{ kill -9 "$pid" && wait "$pid"; } 2>/dev/null
start -c ndtd.yaml
end TERM

# Keys.
"$bin/ndtd" --make-keys pair >/dev/null || fail "--make-keys"
[ -s pair.secret ] && [ -s pair.public ] || fail "no keys were made"

# A drive.
if [ -x "$bin/ndt-send" ] && [ -x "$bin/ndt-sim" ]; then
    "$bin/ndt-sim" --seed 3 --out sim --scans 30 --beams 16 --columns 900 >/dev/null || fail "ndt-sim"
    start -c ndtd.yaml --map sim/map.pcd --set live.budget_ms=5000 --set preprocess.deskew=time --record live.bag \
        --set sockets.scans_kind=pull
    if timeout 600 "$bin/ndt-send" --bag sim/drive.bag --endpoint "ipc://$dir/scans.ipc" --push >send.out 2>&1; then
        for _ in $(seq 3000); do # until all scans are recorded
            "$bin/ndt-bag" info live.bag 2>/dev/null | grep -qE '^ *scan +30$' && break
            sleep 0.1
        done
        end TERM
        "$bin/ndtd" --replay live.bag --map sim/map.pcd --set preprocess.deskew=time >replay.out 2>&1 ||
            fail "the recording does not replay: $(cat replay.out)"
        grep -qE 'scans +30' replay.out || fail "not 30 scans: $(cat replay.out)"
    else
        end TERM
        echo "ndt-send: $(tail -n 1 send.out); the drive is left out"
    fi
else
    echo "ndt-send is not built: the drive is left out"
fi

[ "$failures" = 0 ] && echo "ndtd live: all good"
exit $((failures > 0))
