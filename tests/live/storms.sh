#!/usr/bin/env bash
# storms.sh BIN_DIR: thousands of SIGHUPs and reload requests load the configuration a few times, the last one counts,
# and none of them changes the exit status.
source "$(dirname "$0")/common.sh" "$1"
simulate --scans 2
reloads() {
    grep -c 'configuration reloaded' "$work/ndtd.log"
}

start_daemon
begin=$SECONDS
for _ in $(seq 200); do # pending SIGHUPs are one: the daemon runs between them
    for _ in $(seq 20); do
        kill -HUP "$daemon"
    done
    sleep 0.005
done
echo 'live: {budget_ms: 77}' >>"$work/ndtd.yaml"
before=$(ask status | awk '$1 == "config_hash" {print $2}')
kill -HUP "$daemon"
for _ in $(seq 200); do
    [ "$(ask status | awk '$1 == "config_hash" {print $2}')" != "$before" ] && break
    sleep 0.1
done
check "the last configuration is in force" "$(ask status | grep -c "config_hash $before")" == 0
check "reloads after 4000 SIGHUPs" "$(reloads)" "<=" $((5 + SECONDS - begin + 1))
for _ in $(seq 20); do
    ask reload >>"$work/replies"
done
check "reload requests that were refused" "$(grep -c 'try again' "$work/replies")" ">=" 5
kill -TERM "$daemon"
while kill -HUP "$daemon" 2>/dev/null; do
    :
done
wait "$daemon"
check "exit code of SIGTERM among SIGHUPs" $? == 0
daemon=
exit $failed
