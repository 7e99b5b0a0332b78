#!/usr/bin/env bash
# points.sh BIN_DIR: viewers on the points socket: one that reads, some that never read, some that come and go. Every
# scan is answered as without them, and without any nothing is made.
source "$(dirname "$0")/common.sh" "$1"
points=$poses.points
simulate --scans 40
await() { # KEY NUMBER: until it has this value; the limit ends a test that waits in vain
    for _ in $(seq 3000); do
        [ "$(status "$1")" = "$2" ] && return
        sleep 0.05
    done
}
resident_mb() {
    echo $(($(status process.resident_bytes) / 1000000))
}

start_daemon "${roomy[@]}"
answered "without viewers" 40
check "messages without viewers" "$(status points.published)" == 0
check "viewers" "$(status points.subscribers)" == 0

"$bin/live_probe" view "$points" >"$work/view" &
viewer=$!
await points.subscribers 1
answered "with a viewer" 40
check "messages" "$(status points.published)" ">=" 35
kill "$viewer"
wait "$viewer"
check "messages that it got" "$(value messages "$work/view")" ">=" 30
check "points of a scan" "$(value most_points "$work/view")" ">" 1000
check "messages in disorder" "$(value disorder "$work/view")" == 0
await points.subscribers 0
check "viewers that have gone" "$(status points.subscribers)" == 0

before=$(resident_mb)
idle=()
for _ in 1 2 3 4; do
    "$bin/live_probe" idle "$points" >/dev/null &
    idle+=($!)
done
"$bin/live_probe" view "$points" >"$work/view" &
viewer=$!
await points.subscribers 5
answered "of 60000 points, with four viewers that never read" 40 60000
kill "$viewer"
wait "$viewer"
check "messages to the one that reads" "$(value messages "$work/view")" ">=" 10
check "points of a scan" "$(value most_points "$work/view")" "<=" 20000
sanitized || check "MB for the others" $(($(resident_mb) - before)) "<" 100

# The SIGCONT that timeout sends after SIGTERM may stop the leak check of an ending process for ever.
come_and_go() {
    local -x ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0
    for _ in $(seq 30); do
        timeout --preserve-status -s TERM 0.1 "$bin/live_probe" view "$points" >/dev/null
    done
}
come_and_go &
coming=$!
answered "while viewers come and go" 40
wait "$coming"
await points.subscribers 4
check "viewers that are left" "$(status points.subscribers)" == 4
check "results lost" "$(status publisher.lost)" == 0
stop_daemon TERM # with four viewers that never read
check "exit code of SIGTERM" "$code" == 0
kill "${idle[@]}"
wait "${idle[@]}"

start_daemon "${roomy[@]}" --set sockets.points=off
answered "with sockets.points: off" 40
[ ! -e "${points#ipc://}" ]
check "no socket" $? == 0
stop_daemon TERM
check "exit code of SIGTERM" "$code" == 0
exit $failed
