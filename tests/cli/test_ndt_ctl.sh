#!/bin/sh
# ndt-ctl from the outside: usage, no daemon, and every command with a running ndtd and a simulated drive.
#   test_ndt_ctl.sh BIN_DIR      0: all as expected
set -u
bin=$(cd "${1:?the folder with the programs}" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/cli/one_line.sh
. "$here/one_line.sh"

expect() {
    expect_of "$bin/ndt-ctl" "$@"
}

# ---- usage, and no daemon ----
expect 2 "a command is missing"
expect 2 "'statsu' is not a command; did you mean 'status'?" statsu
expect 2 "pose needs a POSE" pose
expect 2 "'1,2' is not x,y,z,qx,qy,qz,qw or x,y,z,yaw [m, deg]" pose 1,2
expect 2 "the quaternion has length 2, not 1" pose -1,2,3,0,0,0,2
expect 2 "one argument too many" pose 1,2,3,4 5
expect 2 "pose-at needs a STAMP" pose-at
expect 2 "STAMP 'soon' is neither a stamp in nanoseconds nor 'now'" pose-at soon
expect 2 "map needs a FILE, or --unload" map
expect 2 "tile needs a load|unload FILE" tile load
expect 2 "tile 'lod': it is load FILE or unload FILE" tile lod x
expect 2 "record needs a FILE" record
expect 2 "--expect: 'well' is not alive, map or pose" health --expect well
expect 2 "--count: '0' is not a whole number from 1 to 1000" timings --count 0
expect 2 "--position: 2 numbers, but x,y,z are three" localize --position 1,2
expect 2 "operation 'localize': field 'position' is missing" localize --deviation 1,2,3
expect 2 "--heading: '400' is not a number from -360 to 360" localize --heading 400
expect 2 "is not an endpoint" status --control nowhere
expect 2 "belong together" status --curve-keys nosuch
for command in status health start "pose 1,2,3,4" "map x.pcd" localize "record stop"; do
    # shellcheck disable=SC2086
    expect 3 "no answer within 0.1 s; is ndtd running?" $command --timeout 0.1
done

# ---- with a daemon ----
"$bin/ndt-sim" --seed 1 --out sim --scans 20 --beams 16 --columns 300 >out 2>err || fail "ndt-sim"
"$bin/ndtd" --map sim/map.pcd --set recording.directory="$work/recordings" --set initial_pose.mode=given \
    --set live.budget_ms=20000 >ndtd.log 2>&1 &
daemon=$!
expect 0 "" status --timeout 60
expect 0 "" health --expect alive
expect 0 "" status --all
says "row_not_converged 0"
# the map loads: other requests are refused until then
for _ in $(seq 600); do
    "$bin/ndt-ctl" health --expect map >out 2>err && break
    sleep 0.1
done
expect 0 "" hello
says "operations"
expect 0 "" hello --json
python=$(command -v python3)
if [ -n "$python" ]; then
    "$python" - out "$bin/ndt-ctl" <<'CHECK' || fail "commands and operations"
import json, subprocess, sys
reply = json.load(open(sys.argv[1]))
assert reply["ok"] is True and reply["name"] == "ndtd", reply
text = subprocess.run([sys.argv[2], "--help"], capture_output=True, text=True).stdout
for op in reply["operations"]:  # each has a command
    command = {"initial_pose": "pose", "load_map": "map", "unload_map": "map", "load_tile": "tile", "unload_tile": "tile",
               "start_recording": "record", "stop_recording": "record", "cancel_search": "cancel", "pose_at": "pose-at"}.get(op, op)
    assert f"\n  {command} " in text, op
CHECK
fi
expect 1 "the daemon does not localise: its state is no_guess" health
expect 0 "" health --expect map
says "no_guess, initialising; 0 scans"
expect 1 "no scan arrived within 0.1 s" health --expect alive --scans-within 0.1
expect 0 "" record drive.bag
expect 3 "drive.bag" record drive.bag
# the true pose of the first scan
start_pose=$("$bin/ndt-bag" dump sim/drive.bag --type truth --limit 1 | sed -n 's/.*"pose":\[\([^]]*\)\].*/\1/p')
expect 0 "" pose "$start_pose"
# Two scans a second, so that a busy machine has the time for them; what it drops all the same does not matter.
"$bin/ndt-send" --bag sim/drive.bag --rate 0.2 >send.out 2>&1
for _ in $(seq 3000); do
    "$bin/ndt-ctl" health 2>err | grep -Eq "tracking; ([3-9]|1[0-9]|20) scans" && break
    sleep 0.1
done
expect 0 "" health
says "localising, tracking; "
expect 0 "" pose-at now
says "filtered, tracking: x "
expect 3 "before_window: the stamp is" pose-at 1
expect 0 "" timings --count 3
[ "$(grep -c "nvtl" out)" -eq 3 ] || fail "timings of 3 scans"
expect 0 "" record stop
[ -s recordings/drive.bag ] || fail "no recording"
expect 0 "" stop
expect 1 "its state is stopped" health
expect 0 "" start
expect 0 "" reload
says "config_hash"
expect 0 "" search
says "search_id 0"
expect 3 "nosuch.pcd: cannot open" map nosuch.pcd
expect 3 "$work/sim/nosuch.pcd: is not in the map" tile unload sim/nosuch.pcd
expect 0 "" map sim/map.pcd
says "$work/sim/map.pcd: "
expect 0 "" map sim/map.pcd --json
says '"map":{"path":"'
# a search takes the scans that come; without any it can only be given up
expect 3 "no result within 0.2 s; a search begins with the next scan: the search is cancelled" localize -1,2,0,90 --timeout 0.2
"$bin/ndt-send" --bag sim/drive.bag --rate 5 --loop 0 >send.out 2>&1 &
send=$!
expect 0 "" health --expect alive --scans-within 20
expect 1 "the pose is not accepted" localize 5000,2,3,0 --timeout 60
expect 0 "" localize --no-wait --json --search-only
says '"running":true'
expect 3 "is running" localize
expect 0 "" cancel
expect 0 "" health --expect alive --scans-within 20
# where the loop begins anew, scans of two places follow one another: that search agrees on none
for _ in $(seq 60); do
    "$bin/ndt-ctl" localize "$start_pose" --timeout 60 >out 2>err && break
    sleep 0.5
done
says "applied"
kill $send
expect 0 "" health
expect 0 "" map --unload # no scan follows
says "no map"
expect 1 "the daemon has no map" health
expect 0 "" shutdown
wait $daemon || fail "ndtd: exit code $?"
daemon=

# replies to other requests do not prolong the waiting
if [ -n "$python" ] && "$python" -c 'import msgpack, zmq' 2>err; then
    "$python" - "ipc://$work/other.ipc" <<'OTHER' &
import sys, time
import msgpack, zmq
socket = zmq.Context().socket(zmq.ROUTER)
socket.bind(sys.argv[1])
client = socket.recv_multipart()[0]
for _ in range(150):
    socket.send_multipart([client, msgpack.packb({"v": 1, "type": "reply", "id": 999, "ok": True})])
    time.sleep(0.1)
OTHER
    other=$!
    begin=$(date +%s)
    expect 3 "no answer within 2 s" status --control "ipc://$work/other.ipc" --timeout 2
    [ $(($(date +%s) - begin)) -lt 10 ] || fail "replies to other requests prolong the waiting"
    kill $other
fi

[ "$failures" -eq 0 ] || exit 1
echo "ndt-ctl: all as expected"
