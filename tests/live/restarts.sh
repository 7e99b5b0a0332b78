#!/usr/bin/env bash
# restarts.sh BIN_DIR: publisher, subscriber and daemon restart in turn; the others continue without a restart.
source "$(dirname "$0")/common.sh" "$1"
simulate --scans 20
start_daemon
"$bin/ndt-echo" --endpoint "$poses" --format json >"$work/echo" 2>/dev/null & # runs during the whole test
listener=$!
for publisher in 1 2; do # the publisher and a second subscriber restart (live_probe is both)
    answered "to publisher $publisher" 20
done
before=$(wc -l <"$work/echo")
check "results received by the listener" "$before" ">=" 40
stop_daemon TERM
check "exit code of SIGTERM" "$code" == 0
[ -e "$work/scans.ipc" ] && { echo "FAIL: the socket file remains"; failed=1; }
start_daemon
answered "after a restart" 20
sleep 0.5
check "more results for the first listener" "$(($(wc -l <"$work/echo") - before))" ">=" 20
stop_daemon KILL # like a crash: the socket files remain and must not prevent the next start
start_daemon
answered "after a crash" 20
stop_daemon TERM
kill "$listener" 2>/dev/null
exit $failed
