#!/usr/bin/env bash
# peers.sh BIN_DIR: clients that leave while they send, that never read, that subscribe without end, that connect
# without end. The daemon lives, answers the others, and its memory stays below the sums of docs/operations.md.
source "$(dirname "$0")/common.sh" "$1"
simulate --scans 20
end() {
    kill -0 "$daemon" 2>/dev/null || { echo "FAIL: ndtd has ended: $(tail -n 5 "$work/ndtd.log")"; failed=1; }
    stop_daemon TERM
    check "exit code of SIGTERM" "$code" == 0
}
resident_kib() {
    awk '$1 == "VmRSS:" {print $2}' "/proc/$daemon/status"
}
check_mb() { # WHAT MB OPERATOR LIMIT; sanitizers keep what is freed
    sanitized || check "$@"
}
grown_mb() { # FILE
    echo $((($(value after_kib "$1") - $(value before_kib "$1")) / 1024))
}

start_daemon "${roomy[@]}"
timeout 60 "$bin/peer_storm" leave "$scans" 4 >"$work/leave"
check "clients that sent and left" "$(value clients "$work/leave")" ">=" 1
answered "after $(value clients "$work/leave") clients that sent and left" 20

# Before the memory of the daemon is at its highest.
before=$(resident_kib)
flooders=()
for _ in 1 2 3 4; do
    "$bin/peer_storm" topics "$poses" 60 &
    flooders+=($!)
done
answered "while four subscribers ask for more and more topics" 20
check_mb "MB for them" $((($(resident_kib) - before) / 1024)) "<" 100
kill "${flooders[@]}"
wait "${flooders[@]}"

# Replies of 1000 rows, about 0.45 MB each, for clients that never read.
"$bin/live_probe" overload "$scans" "$poses" "$daemon" 100 400 2 60 >/dev/null
timeout 100 "$bin/peer_storm" hoard "$control" 8 "$daemon" >"$work/hoard"
check_mb "MB for 8 clients that never read" "$(grown_mb "$work/hoard")" "<" 64
timeout 60 "$bin/peer_storm" scans "$scans" 6 60000000 "$daemon" >"$work/scans"
check_mb "MB for six senders of 60 MB" "$(grown_mb "$work/scans")" "<" 1000
answered "after all" 20
end

# 96 descriptors, and many more clients.
mkdir "$work/few"
printf '#!/bin/sh\nulimit -n 96\nexec "%s/ndtd" "$@"\n' "$bin" >"$work/few/ndtd"
chmod +x "$work/few/ndtd"
bin=$work/few start_daemon "${roomy[@]}" --set sockets.max_connections=1000 --set sockets.max_senders=1000
storms=()
for socket in "$scans" "$poses" "$control"; do
    "$bin/peer_storm" connect "$socket" 200 1 >/dev/null &
    storms+=($!)
done
wait "${storms[@]}"
answered "after 600 connections with 96 descriptors" 20
end
exit $failed
