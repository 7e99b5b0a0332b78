# Shared by the scripts of this folder: `source common.sh BIN_DIR`. A simulated drive in $work/drive, sockets in
# $work.
set -uo pipefail
bin=$(cd "$1" && pwd)
work=$(mktemp -d)
scans=ipc://$work/scans.ipc poses=ipc://$work/poses.ipc control=ipc://$work/control.ipc
daemon= failed=0
trap 'stop_daemon KILL; rm -rf "$work"' EXIT

# simulate OPTIONS...: a short drive with little data, fast also under sanitizers.
simulate() {
    "$bin/ndt-sim" --seed 3 --out "$work/drive" --beams 16 --columns 900 --map-spacing 0.25 --odometry --force "$@" \
        >/dev/null || exit 1
}

write_config() {
    cat >"$work/ndtd.yaml" <<YAML
map: {path: $work/drive/map.pcd}
preprocess: {deskew: time}
sockets: {scans: "$scans", poses: "$poses", control: "$control"}
YAML
}

# start_daemon OPTIONS...: with the drive's map; returns when it answers on its control socket.
start_daemon() {
    write_config
    "$bin/ndtd" -c "$work/ndtd.yaml" "$@" 2>>"$work/ndtd.log" &
    daemon=$!
    for _ in $(seq 3000); do
        [ -S "$work/control.ipc" ] && grep -q ready "$work/ndtd.log" && return
        kill -0 "$daemon" 2>/dev/null || break
        sleep 0.1
    done
    echo "FAIL: ndtd did not become ready: $(tail -n 5 "$work/ndtd.log")"
    exit 1
}

stop_daemon() { # SIGNAL; leaves the exit code in $code
    [ -n "$daemon" ] || return
    kill -s "$1" "$daemon" 2>/dev/null
    wait "$daemon" 2>/dev/null
    code=$?
    daemon=
}

value() { # KEY FILE: a number printed by live_probe, 0 if missing
    awk -v key="$1" '$1 == key {v = $2} END {print v + 0}' "$2"
}

check() { # WHAT NUMBER OPERATOR LIMIT
    if awk -v a="$2" -v b="$4" "BEGIN {exit !(a $3 b)}"; then
        echo "ok   $1: $2 $3 $4"
    else
        echo "FAIL $1: $2, expected $3 $4"
        failed=1
    fi
}

# answered WHEN COUNT [POINTS]: the drive, sent at 20 Hz, its scans with so many points; COUNT of them are answered. What
# live_probe prints is in $work/out.
answered() {
    local mode=answers
    [ $# -lt 3 ] || mode=dense
    "$bin/live_probe" "$mode" "$scans" "$poses" "$work/drive/drive.bag" 20 "${@:3}" >"$work/out" || failed=1
    check "scans answered $1" "$(value answered "$work/out")" == "$2"
}

ask() { # REQUEST [ARGUMENT]: the reply of the daemon, by keys and values
    "$bin/live_ask" "$control" "$@"
}

status() { # KEY: of the status
    ask status >"$work/status" || failed=1
    value "$1" "$work/status"
}

# Settings for runs whose outcome must not depend on the load of the machine.
roomy=(--set live.budget_ms=20000)

# note_latency FILE: prints the latencies measured by live_probe; they are not checked.
note_latency() {
    echo "note send to result: p50 $(value latency_p50_ms "$1"), p99 $(value latency_p99_ms "$1") ms; p50" \
        "$(value running_p50_ms "$1") ms without the time in which threads waited for a core"
}

sanitized() {
    [[ $(nm "$bin/ndtd" 2>/dev/null) =~ __(asan|tsan)_init ]]
}
