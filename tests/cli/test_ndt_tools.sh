#!/bin/sh
# ndt-send, ndt-echo and ndt-top from the outside: usage, errors without a daemon, and all three with a running ndtd
# and a simulated drive.
#   test_ndt_tools.sh BIN_DIR      0: all as expected
set -u
bin=${1:?the folder with the programs}
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/cli/one_line.sh
. "$here/one_line.sh"

# expect CODE "words on stderr" TOOL arguments...
expect() {
    code=$1 words=$2 tool=$3
    shift 3
    expect_of "$bin/$tool" "$code" "$words" "$@"
}

# ---- usage ----
for tool in ndt-send ndt-echo ndt-top; do
    expect 0 "" $tool --help
    says "Usage: $tool"
    says "--curve-keys FILE"
    expect 2 "--endpiont=x: $tool has no such option; did you mean --endpoint?" $tool --endpiont=x
    expect 2 "--endpoint: its value is missing" $tool --endpoint
    expect 2 "one argument too many" $tool a b
done
printf 'NDTBAG\r\n\001\000\000\000\000\000\000\000' >empty.bag
expect 2 "ndt-send needs --bag FILE" ndt-send
expect 2 "--rate: 'fast' is neither max nor a number" ndt-send --bag empty.bag --rate fast
expect 2 "--rate: '0' is neither max nor a number" ndt-send --bag empty.bag --rate 0
expect 2 "--rate: 'nan' is neither max nor a number" ndt-send --bag empty.bag --rate nan
expect 2 "--loop: '-1' is not a whole number" ndt-send --bag empty.bag --loop -1
expect 2 "--limit: '0' is not a whole number from 1" ndt-send --bag empty.bag --limit 0
expect 2 "--wait: 'x' is not a number of seconds" ndt-send --bag empty.bag --wait x
expect 2 "--push=1: takes no value" ndt-send --bag empty.bag --push=1
expect 2 "is not an endpoint" ndt-send --bag empty.bag --endpoint nowhere
expect 2 "belong together" ndt-send --bag empty.bag --curve-keys nosuch
expect 3 "nosuch.bag" ndt-send --bag nosuch.bag
expect 3 "no daemon connected within 0.1 s" ndt-send --bag empty.bag --wait 0.1
expect 3 "no daemon connected within 0.1 s" ndt-send --bag empty.bag --wait 0.1 --push
expect 3 "no record of the bag is to be sent" ndt-send --bag empty.bag --wait 0
expect 2 "--format: 'jsno' is not text, json or tum; did you mean 'json'?" ndt-echo --format jsno
expect 2 "--count: '0' is not a whole number from 1" ndt-echo --count 0
expect 2 "is not an endpoint" ndt-echo --endpoint tcp://x
expect 3 "no result within 0.1 s" ndt-echo --timeout 0.1
expect 3 "nosuch: cannot be opened" ndt-echo --curve-server-key nosuch --curve-keys nosuch
expect 2 "--interval: '0.01' is not a number of seconds from 0.1 to 3600" ndt-top --interval 0.01
for once in "" --once; do
    # shellcheck disable=SC2086
    expect 3 "no answer from ipc://$RUNTIME_DIRECTORY/control.ipc within 0.1 s" ndt-top --interval 0.1 $once
    [ ! -s out ] || fail "ndt-top reports about a daemon that is not there"
done

# ---- against a daemon ----
"$bin/ndt-sim" --seed 1 --out sim --scans 20 --beams 16 --columns 300 >out 2>err || fail "ndt-sim"
printf 'map:\n  path: %s/sim/map.pcd\n' "$work" >ndtd.yaml
# start CONFIG: 0 when the daemon is ready
start() {
    "$bin/ndtd" -c "$1" >ndtd.log 2>&1 &
    daemon=$!
    for _ in $(seq 3000); do
        grep -q " ready " ndtd.log && return 0
        kill -0 $daemon 2>/dev/null || return 1
        sleep 0.1
    done
    return 1
}
start ndtd.yaml || { cat ndtd.log >&2; fail "ndtd did not get ready"; exit 1; }
"$bin/ndt-echo" --count 20 --timeout 300 --format json >echo.json 2>echo.err &
echo_json=$!
"$bin/ndt-echo" --count 20 --timeout 300 >echo.txt 2>echo.err &
echo_text=$!
until "$bin/ndt-ctl" status | grep -q 'subscribers of poses 2'; do sleep 0.1; done
expect 0 "" ndt-send --bag sim/drive.bag --rate 2
says "20 scans, 21 messages"
says "late"
wait $echo_json || fail "ndt-echo --format json: exit code $?"
wait $echo_text || fail "ndt-echo: exit code $?"
[ "$(wc -l <echo.json)" -eq 20 ] || fail "not 20 lines of JSON"
for seq in 0 7 19; do
    grep -q "^{\"seq\":$seq,\"stamp_ns\":[0-9]*,\"frame_id\":\"map\",\"outcome\":\"[a-z_]*\"" echo.json ||
        fail "no result $seq in echo.json"
    grep -q "^$seq [0-9]* ns [a-z_]* " echo.txt || fail "no result $seq in echo.txt"
done
# a late subscriber gets the last result
expect 0 "" ndt-echo --count 1 --timeout 300 --format tum
[ "$(wc -w <out)" -eq 8 ] || fail "no TUM line of 8 numbers"
expect 0 "" ndt-top --once --interval 1
says "1 in all"
says "nvtl"
says "received    21 frames"
[ "$(wc -c <out)" -eq "$(tr -d '\033' <out | wc -c)" ] || fail "escape sequences without a terminal"
# a part of the bag, twice, without pace
expect 0 "" ndt-send --bag sim/drive.bag --rate max --skip 5 --limit 4 --loop 2
says "8 scans, 8 messages"
kill $daemon
wait $daemon || fail "ndtd: exit code $?"
daemon=
[ -z "$(ls run)" ] || fail "left in the runtime directory: $(ls run)"

# ---- keys over tcp on the loopback; a PULL socket ----
for name in server friend stranger; do
    "$bin/ndtd" --make-keys $name >out 2>err || fail "ndtd --make-keys $name"
done
{ echo "# allowed clients"; cat friend.public; } >clients
for port in 21731 32173 43217 54321 0; do # the first free one
    [ $port -ne 0 ] || break
    cp ndtd.yaml tcp.yaml
    cat >>tcp.yaml <<EOF
sockets:
  scans: tcp://127.0.0.1:$port
  scans_kind: pull
  server_secret_key_file: $work/server.secret
  allowed_clients_file: $work/clients
EOF
    start tcp.yaml && break
    grep -q "is in use" ndtd.log || { cat ndtd.log >&2; fail "ndtd did not get ready with keys"; port=0; break; }
done
if [ $port -ne 0 ]; then
    scans=tcp://127.0.0.1:$port
    expect 3 "no daemon connected" ndt-send --bag sim/drive.bag --endpoint $scans --push --wait 0.5
    expect 3 "no daemon connected" ndt-send --bag sim/drive.bag --endpoint $scans --push --wait 0.5 \
        --curve-server-key friend.public --curve-keys friend.secret
    expect 0 "" ndt-send --bag sim/drive.bag --endpoint $scans --push --rate 4 --limit 5 \
        --curve-server-key server.public --curve-keys friend.secret
    says "5 scans, 6 messages"
    expect 0 "" ndt-echo --count 1 --timeout 10
    # frames of a client that is not in the list do not arrive
    "$bin/ndt-send" --bag sim/drive.bag --endpoint $scans --push --wait 0.5 --limit 5 \
        --curve-server-key server.public --curve-keys stranger.secret >out 2>err
    expect 0 "" ndt-top --once --interval 1
    says "received    6 frames"
    kill $daemon
    wait $daemon || fail "ndtd with keys: exit code $?"
    daemon=
fi

[ "$failures" -eq 0 ] || exit 1
echo "ndt-send, ndt-echo, ndt-top: all as expected"
