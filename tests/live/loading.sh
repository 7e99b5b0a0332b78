#!/usr/bin/env bash
# loading.sh BIN_DIR: while the first map loads, the control socket answers, and a request to shut down is heard.
source "$(dirname "$0")/common.sh" "$1"
sanitized && { echo "skipped: the sanitizer's library has to be the first one"; exit 77; }
simulate --scans 2
ask() {
    timeout 25 "$bin/live_ask" "$control" "$@"
}
start() {
    touch "$work/gate"
    : >"$work/ndtd.log"
    STALL_MAP=$work/gate LD_PRELOAD=$bin/libstalls.so "$bin/ndtd" -c "$work/ndtd.yaml" 2>>"$work/ndtd.log" &
    daemon=$!
}
write_config
start
ask hello >"$work/out"
check "hello is answered" "$(grep -c '^name ndtd' "$work/out")" == 1
ask status >"$work/out"
check "status says that it loads" "$(grep -c '^state loading' "$work/out")" == 1
check "and which map" "$(grep -c '^map.path .*map.pcd' "$work/out")" == 1
check "which is busy" "$(value map.busy "$work/out")" == 1
ask load_map other.pcd >"$work/out" && failed=1
check "other requests are refused" "$(grep -c 'the map is loading' "$work/out")" == 1
check "it is not ready" "$(grep -c ' ready ' "$work/ndtd.log")" == 0
rm "$work/gate"
for _ in $(seq 3000); do
    grep -q ' ready ' "$work/ndtd.log" && break
    sleep 0.1
done
ask status >"$work/out"
check "then it waits for a pose" "$(grep -c '^state no_guess' "$work/out")" == 1
stop_daemon TERM
check "exit code of SIGTERM" "$code" == 0

start
ask shutdown >"$work/out"
check "shutdown is answered" "$(grep -c '^ok 1' "$work/out")" == 1
rm "$work/gate"
wait "$daemon"
check "exit code" $? == 0
daemon=
check "the log does not claim a map" "$(grep -c 'points,' "$work/ndtd.log")" == 0
exit $failed
