#!/usr/bin/env bash
# watchdog.sh BIN_DIR: the service manager's watchdog is fed while all threads work, also without scans, and not while
# any one of receiver, matcher and main thread stands still.
source "$(dirname "$0")/common.sh" "$1"
sanitized && { echo "skipped: the sanitizer's library has to be the first one"; exit 77; }
simulate --scans 2
cat >"$work/manager.py" <<'PYTHON'
import socket, sys
manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
manager.bind(sys.argv[1])
print("bound", flush=True)
while True:
    print(manager.recv(4096).decode().split("\n")[0], flush=True)
PYTHON
python3 "$work/manager.py" "$work/manager" >"$work/notes" &
manager=$!
until grep -q bound "$work/notes"; do
    sleep 0.05
done
fed() {
    grep -c 'WATCHDOG=1' "$work/notes"
}
is_fed() { # WHAT
    local before
    before=$(fed)
    for _ in $(seq 3000); do
        [ "$(fed)" -gt "$((before + 1))" ] && break
        sleep 0.1
    done
    check "$1: fed" "$(fed)" ">" "$((before + 1))"
}
export NOTIFY_SOCKET=$work/manager WATCHDOG_USEC=300000 STALL_THREAD=$work/gate
LD_PRELOAD=$bin/libstalls.so start_daemon
is_fed "all threads work"
for thread in ndtd ndt-receive ndt-match; do
    echo $thread >"$work/next"
    mv "$work/next" "$work/gate"
    sleep 1 # until it stands still
    before=$(fed)
    sleep 1.5
    check "$thread stands still: fed" "$(fed)" == "$before"
    rm "$work/gate"
    is_fed "$thread goes on"
done
check "the log names them" "$(grep -c 'stands still' "$work/ndtd.log")" ">=" 1
unset NOTIFY_SOCKET
stop_daemon TERM
check "exit code of SIGTERM" "$code" == 0
kill "$manager"
exit $failed
