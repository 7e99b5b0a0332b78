#!/usr/bin/env bash
# Who may reach what: tcp without keys is said, key files of others are refused, a closed pipe ends a tool silently.
#   test_access.sh BIN_DIR
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

# start ARGUMENTS...: 0 when the daemon is ready
start() {
    : >log
    "$bin/ndtd" "$@" 2>>log &
    pid=$!
    for _ in $(seq 3000); do
        grep -q ' ready ' log && return 0
        kill -0 "$pid" 2>/dev/null || break
        sleep 0.1
    done
    return 1
}
end() {
    kill "$pid"
    wait "$pid" || fail "ndtd: exit code $?: $(cat log)"
    pid=
}

cat >ndtd.yaml <<YAML
autotune: {enable: false}
sockets:
  scans: "ipc://$dir/scans.ipc"
  poses: "ipc://$dir/poses.ipc"
  control: "ipc://$dir/control.ipc"
YAML

# tcp on the loopback without keys: one warning, for all sockets.
for port in 21741 32183 43227 54331 0; do
    [ $port -ne 0 ] || { echo "no free port: left out"; break; }
    start -c ndtd.yaml --set "sockets.scans=tcp://127.0.0.1:$port" --set "sockets.poses=tcp://127.0.0.1:$((port + 1))" && break
done
if [ $port -ne 0 ]; then
    [ "$(grep -c 'warning: .*without keys' log)" = 1 ] || fail "not one warning about tcp without keys: $(cat log)"
    end
fi

# Keys and lists that others could have written.
for name in server friend; do "$bin/ndtd" --make-keys $name >/dev/null || fail "--make-keys"; done
cp friend.public clients
chmod 666 clients
secured=(-c ndtd.yaml --set "sockets.server_secret_key_file=$dir/server.secret" --set "sockets.allowed_clients_file=$dir/clients")
check_refused() { # PATTERN
    "$bin/ndtd" --check-config "${secured[@]}" >said 2>&1 && fail "--check-config accepts it: $1"
    [ "$(wc -l <said)" = 1 ] || fail "not one line: $(cat said)"
    grep -qE "$1" said || fail "'$(cat said)' does not say '$1'"
}
check_refused "clients: owner $(id -u), mode 0666: every user can write"
chmod 644 clients
chmod 660 server.secret
check_refused "server.secret: owner $(id -u), mode 0660: other users have access"
chmod 600 server.secret
"$bin/ndtd" --check-config "${secured[@]}" >/dev/null || fail "good keys are refused"

# inproc:// is of no use to clients.
"$bin/ndtd" --check-config -c ndtd.yaml --set sockets.poses=inproc://poses >said 2>&1 && fail "inproc:// is accepted"
grep -q "'inproc://poses' is not the address of a socket" said || fail "inproc://: $(cat said)"

# A tool whose reader ends.
mkdir run
"$bin/ndt-sim" --seed 3 --out sim --scans 30 --beams 16 --columns 300 --force >/dev/null || fail "ndt-sim"
start -c ndtd.yaml --map sim/map.pcd --set live.budget_ms=20000 || fail "ndtd did not get ready: $(cat log)"
{ "$bin/ndt-echo" --endpoint "ipc://$dir/poses.ipc" --timeout 300 2>echo.err; echo $? >echo.code; } | head -n 1 >echo.out &
reader=$!
until "$bin/ndt-ctl" status --control "ipc://$dir/control.ipc" | grep -q 'subscribers of poses 1'; do sleep 0.1; done
"$bin/ndt-send" --bag sim/drive.bag --endpoint "ipc://$dir/scans.ipc" --rate 4 >/dev/null || fail "ndt-send"
wait $reader
[ "$(wc -l <echo.out)" = 1 ] || fail "ndt-echo printed nothing"
[ ! -s echo.err ] || fail "ndt-echo into a closed pipe says: $(cat echo.err)"
[ "$(cat echo.code)" = 141 ] || fail "ndt-echo into a closed pipe: exit code $(cat echo.code)"
{ "$bin/ndt-top" --once --interval 0.5 --endpoint "ipc://$dir/poses.ipc" --control "ipc://$dir/control.ipc" 2>top.err; } | :
[ ! -s top.err ] || fail "ndt-top into a closed pipe says: $(cat top.err)"
end

# Nothing answers: exit status 3.
"$bin/ndt-top" --once --interval 0.2 --endpoint "ipc://$dir/poses.ipc" --control "ipc://$dir/control.ipc" >out 2>&1
[ $? = 3 ] || fail "ndt-top --once without a daemon: exit code $?"

[ "$failures" = 0 ] && echo "access: all good"
exit $((failures > 0))
