#!/usr/bin/env bash
# log.sh BIN_DIR: standard error that is not read, and one whose reader goes. Nothing waits for it; what is lost is
# counted, and said once there is a reader again.
source "$(dirname "$0")/common.sh" "$1"
simulate --scans 10

# A sanitizer would wait for the reader of its report.
export ASAN_OPTIONS="${ASAN_OPTIONS:-}:log_path=$work/sanitizer" TSAN_OPTIONS="${TSAN_OPTIONS:-}:log_path=$work/sanitizer"

# The pipe is full before the daemon starts.
mkfifo "$work/unread"
exec 9<>"$work/unread"
head -c 65536 /dev/zero >&9
write_config
"$bin/ndtd" -c "$work/ndtd.yaml" "${roomy[@]}" --set "recording.directory=$work/recordings" 2>&9 &
daemon=$!
check "unread: hello is answered" "$(ask hello | grep -c '^name ndtd')" == 1
answered "unread" 10
for i in $(seq 140); do # two lines each
    ask start_recording "$i.bag" >/dev/null && ask stop_recording >/dev/null
done
ask status >"$work/status"
check "unread: lines lost" "$(value log_lines_lost "$work/status")" ">=" 1
timeout 1 cat <&9 >"$work/read" # there is a reader again
for _ in $(seq 100); do
    ask unload_map >/dev/null
    timeout 0.2 cat <&9 >>"$work/read"
    grep -aq 'lines of the log are lost' "$work/read" && break
done
check "read again: the first lines are there" "$(grep -ac ' ready ' "$work/read")" == 1
check "read again: the loss is said" "$(grep -ac 'lines of the log are lost' "$work/read")" ">=" 1
head -c 65536 /dev/zero >&9 & # full again, if the rest is not read
filler=$!
sleep 0.2
stop_daemon TERM
check "unread: exit code of SIGTERM" "$code" == 0
kill "$filler" 2>/dev/null
exec 9>&-

# The reader goes.
write_config
"$bin/ndtd" -c "$work/ndtd.yaml" "${roomy[@]}" 2> >(head -n 1 >/dev/null) &
daemon=$!
check "reader gone: hello is answered" "$(ask hello | grep -c '^name ndtd')" == 1
for _ in 1 2 3; do
    ask reload >/dev/null
    sleep 0.1
done
answered "reader gone" 10
stop_daemon TERM
check "reader gone: exit code of SIGTERM" "$code" == 0

# No standard error at all: files and sockets do not take its place.
write_config
"$bin/ndtd" -c "$work/ndtd.yaml" "${roomy[@]}" --record "$work/a.bag" 0<&- 1>&- 2>&- &
daemon=$!
check "closed: hello is answered" "$(ask hello | grep -c '^name ndtd')" == 1
answered "closed" 10
stop_daemon TERM
check "closed: exit code of SIGTERM" "$code" == 0
"$bin/ndt-bag" info "$work/a.bag" >"$work/info" 2>&1 || { echo "FAIL: $(cat "$work/info")"; failed=1; }
cat "$work"/sanitizer.* 2>/dev/null && failed=1
exit $failed
