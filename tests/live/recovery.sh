#!/usr/bin/env bash
# recovery.sh BIN_DIR: the way to a pose, as a client sees it: a start without one, a kidnapping, a stall of the sender
# and of the daemon, the request `localize`, a map exchanged and a daemon ended while a search runs, and
# recovery.enable: false. Checked are states and answers, never how long anything takes: scans wait for the daemon.
source "$(dirname "$0")/common.sh" "$1"
rate=10 # the search takes what other processes leave
if sanitized; then rate=4; fi
simulate --scans 200
cut() { # OUT SCANS [OPTION]...: without poses and odometry: only the scans tell where the vehicle is
    "$bin/ndt-bag" cut "$work/drive/drive.bag" --without initial_pose,odometry --scans "$2" --out "$work/$1" \
        --force "${@:3}" >/dev/null || exit 1
}
cut begin.bag 1-40
cut later.bag 110-150
cut stall.bag 151-160
cut strange.bag 1-8 # in a wrong world every scan is searched for in vain
cut end.bag 161-168
await() { # WHAT COMMAND...: until the command succeeds; the limit ends a test that waits in vain
    local what=$1 end=$((SECONDS + 300))
    shift
    until "$@"; do
        [ "$SECONDS" -lt "$end" ] || { echo "FAIL: not within 300 s: $what"; failed=1; return; }
        sleep 0.05
    done
}
has_subscribers() { # COUNT
    "$bin/live_ask" "$control" status >"$work/status"
    [ "$(value publisher.subscribers "$work/status")" = "$1" ]
}
has_results_of() { [ "$(wc -l <"$work/results")" -ge "$1" ]; }
has_requests() { [ "$(grep -c 'control: localize' "$work/ndtd.log")" -gt "$1" ]; }
listen() { # the results from now on are in $work/results
    sent=0
    await "former subscribers leave" has_subscribers 0
    "$bin/ndt-echo" --endpoint "$poses" --format json >"$work/results" 2>/dev/null &
    listener=$!
    await "ndt-echo subscribes" has_subscribers 1
}
hush() {
    await "$sent results" has_results_of "$sent"
    kill "$listener" 2>/dev/null
    wait "$listener" 2>/dev/null
}
send() { # BAG [RATE]
    "$bin/live_probe" answers "$scans" "$poses" "$work/$1" "${2:-$rate}" "$daemon" >"$work/out" || failed=1
    sent=$((sent + $(value answered "$work/out")))
}
ask_localize() { # OPTION...
    "$bin/ndt-ctl" localize --json --control "$control" --timeout 300 "$@" >"$work/answer" 2>"$work/refusal"
}
begin_localize() { # OPTION...: in the background, $asking; returns when the daemon has the request, which the next scans answer
    local before
    before=$(grep -c 'control: localize' "$work/ndtd.log")
    ask_localize "$@" &
    asking=$!
    await "the request localize" has_requests "$before"
}
send_for_localize() { # FIRST LAST: one scan a second while ndt-ctl waits: a slow search finds others that confirm it
    local at
    for ((at = $1; at <= $2; at++)); do
        cut part.bag "$at-$at"
        send part.bag
        for _ in $(seq 20); do
            kill -0 "$asking" 2>/dev/null || break 2
            sleep 0.05
        done
    done
    [ "$at" -ge "$2" ] || { cut part.bag "$((at + 1))-$2" && send part.bag; }
}
note_answer() {
    echo "note $(head -c 160 "$work/answer") $(cat "$work/refusal")"
}
count() { # WORD FILE: lines that contain it
    grep -c -- "$1" "$2"
}
last_state() {
    tail -n 1 "$work/results" | grep -o '"state":"[a-z]*"'
}
ends() { # WHAT STATE: the state after the last scan
    await "$sent results" has_results_of "$sent"
    if [ "$(last_state)" = "\"state\":\"$2\"" ]; then
        echo "ok   $1: $2"
    else
        echo "FAIL $1: $(last_state), expected $2: $(tail -n 3 "$work/ndtd.log")"
        failed=1
    fi
}
errors() { # WHAT: of converged poses against the truth, after the first
    python3 - "$work/results" "$work/truth" <<'PY' >"$work/errors"
import json, sys
truth = {}
for line in open(sys.argv[2]):
    message = json.loads(line)
    if message["type"] == "truth":
        truth[message["stamp_ns"]] = message["pose"]
wrong = 0
for line in open(sys.argv[1]):
    result = json.loads(line)
    if result["outcome"] == "converged":
        wrong += sum((a - b) ** 2 for a, b in zip(result["pose"][:3], truth[result["stamp_ns"]][:3])) > 1
print("wrong", wrong)
PY
    check "$1: converged more than 1 m from the truth" "$(value wrong "$work/errors")" == 0
}
"$bin/ndt-bag" dump "$work/drive/drive.bag" --type truth >"$work/truth" || exit 1

echo "-- a start without a pose, a kidnapping, stalls"
start_daemon "${roomy[@]}"
listen
send begin.bag
hush
cp "$work/results" "$work/all"
check "first scan without a pose" "$(head -n 1 "$work/results" | grep -c no_guess)" == 1
ends "after a start without a pose" tracking
listen
send later.bag
hush
ends "after a kidnapping" tracking
cat "$work/results" >>"$work/all"
check "scans that were told as not tracked after it" "$(grep -vc '"state":"tracking"' "$work/results")" ">=" 1
listen
"$bin/ndt-send" --bag "$work/stall.bag" --endpoint "$scans" >/dev/null &
sender=$!
sent=10
await "two scans of the stalled sender" has_results_of 2
kill -STOP "$sender"
sleep 3
kill -CONT "$sender"
wait "$sender"
kill -STOP "$daemon"
sleep 2
kill -CONT "$daemon"
hush
cat "$work/results" >>"$work/all"
ends "after a stall" tracking
listen
begin_localize --search-only
send_for_localize 161 200
wait "$asking"
hush
note_answer
check "localize while tracking: accepted" "$(count '"accepted":true' "$work/answer")" == 1
check "localize --search-only: applied" "$(count '"applied":false' "$work/answer")" == 1
stop_daemon TERM
check "exit code of SIGTERM" "$code" == 0
mv "$work/all" "$work/results"
errors "whole run"
check "log lines of changes" "$(count ' state: ' "$work/ndtd.log")" ">=" 2

echo "-- recovery.enable: false: nothing is searched, except on request"
: >"$work/ndtd.log"
start_daemon "${roomy[@]}" --set recovery.enable=false
listen
send begin.bag
ends "without recovery" initialising
begin_localize
send_for_localize 110 150
wait "$asking"
send stall.bag # the pose is there: what follows it
hush
note_answer
check "localize: accepted" "$(count '"accepted":true' "$work/answer")" == 1
check "localize: applied" "$(count '"applied":true' "$work/answer")" == 1
ends "after localize" tracking
errors "localize"
stop_daemon TERM

echo "-- the map is exchanged while searches run, and the daemon ended during one"
: >"$work/ndtd.log"
"$bin/ndt-sim" --seed 9 --out "$work/other" --beams 16 --columns 900 --map-spacing 0.25 --scans 2 >/dev/null || exit 1
start_daemon "${roomy[@]}" --set "map.path=$work/other/map.pcd"
listen
send strange.bag
check "converged in another world" "$(count '"outcome":"converged"' "$work/results")" == 0
"$bin/live_probe" load "$control" "$work/drive/map.pcd" || failed=1
send later.bag
ends "after the right map has come" tracking
hush
errors "the right map"
"$bin/live_probe" load "$control" "$work/other/map.pcd" || failed=1
listen
send end.bag
check "converged in another world, after the right one" "$(count '"outcome":"converged"' "$work/results")" "<=" 2
hush
stop_daemon TERM
check "exit code of SIGTERM during a search" "$code" == 0

sanitized && exit $failed
echo "-- latency, without and with searches that run all the time"
for searches in 0 1; do
    start_daemon
    : >"$work/answers"
    while [ "$searches" = 1 ]; do
        ask_localize --search-only && cat "$work/answer" >>"$work/answers"
    done &
    asking=$!
    send drive/drive.bag 20
    kill "$asking" 2>/dev/null
    wait "$asking" 2>/dev/null
    note_latency "$work/out"
    echo "note $(wc -l <"$work/answers") searches accepted; stages p99 $(value stages_p99_ms "$work/out") ms"
    check "answered" "$(value answered "$work/out")" == 200
    stop_daemon TERM
done
exit $failed
