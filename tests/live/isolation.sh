#!/usr/bin/env bash
# isolation.sh BIN_DIR: under security.isolation every thread has the filter of system calls, a drive, map swap, tiles,
# reload and recording work, and files outside of the allowed directories cannot be read. What this machine lacks is
# skipped.
source "$(dirname "$0")/common.sh" "$1"
# The leak check traces the process at its end, which the isolation forbids.
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
simulate --scans 30
# $work has the configuration and may be read, therefore.
outside=$(mktemp -d)
trap 'stop_daemon KILL; rm -rf "$work" "$outside"' EXIT
mkdir "$outside/shelf" "$outside/private" "$outside/second" "$work/recordings"
echo 'live: {queue_depth: 3}' >"$outside/second/more.yaml" # its directory is read again by a reload
cp "$work/drive/map.pcd" "$outside/shelf/shelf.pcd"
cp "$work/drive/map.pcd" "$outside/private/map.pcd"
ln -s "$outside/private/map.pcd" "$outside/shelf/link.pcd"

says() { # WHAT PATTERN TEXT
    if grep -qE -- "$2" <<<"$3"; then
        echo "ok   $1: $3"
    else
        echo "FAIL $1: '$3' does not say '$2'"
        failed=1
    fi
}
request() { # ok, or the error
    "$bin/live_ask" "$control" "$@" 2>&1 | sed -n 's/^ok 1$/ok/p; s/^error //p'
}
load() { "$bin/live_probe" load "$control" "$1"; }
state_of() { sed -n "s/^$1:\t*//p" /proc/"$daemon"/task/*/status | sort -u | tr '\n' ' '; }

cd "$work" || exit 1 # recordings with a relative name
start_daemon -c "$outside/second/more.yaml" --set security.isolation=on --set security.map_paths="$outside/shelf" \
    --set recording.directory="$outside/recordings" --record "$work/recordings/all.bag" "${roomy[@]}"
line=$(grep 'isolation:' "$work/ndtd.log")
echo "$line"
check "log lines about the isolation" "$(grep -c 'isolation:' "$work/ndtd.log")" == 1
if grep -q 'built without libseccomp' <<<"$line"; then
    echo "no libseccomp: system calls are left out"
else
    says "Seccomp of all threads" '^2 $' "$(state_of Seccomp)"
    says "NoNewPrivs of all threads" '^1 $' "$(state_of NoNewPrivs)"
fi
answered "in isolation" 30
check "converged" "$(value converged "$work/out")" ">=" 28

# Maps and tiles of the allowed directories.
load "$outside/shelf/shelf.pcd" || { echo "FAIL: a map of security.map_paths is refused"; failed=1; }
says "tile" '^ok$' "$(request load_tile "$work/drive/map.pcd")"
load "$work/drive/map.pcd" || { echo "FAIL: the map of map.path is refused"; failed=1; }
answered "after map swaps" 30

# Recordings by request, into a directory that the daemon makes.
says "stop_recording" '^ok$' "$(request stop_recording)"
says "start_recording" '^ok$' "$(request start_recording second.bag)"
"$bin/live_probe" answers "$scans" "$poses" "$work/drive/drive.bag" 20 >"$work/out" || failed=1
says "stop_recording" '^ok$' "$(request stop_recording)"
"$bin/ndt-bag" info "$outside/recordings/second.bag" >"$work/info" 2>&1
check "scans in the second recording" "$(awk '$1 == "scan" && $2 ~ /^[0-9]+$/ {print $2; exit}' "$work/info")" == 30

# A changed configuration, replaced as an editor does.
sed 's/^map:/log: {level: debug}\nmap:/' "$work/ndtd.yaml" >"$work/new.yaml" && mv "$work/new.yaml" "$work/ndtd.yaml"
says "reload" '^ok$' "$(request reload)"
kill -HUP "$daemon"
sleep 0.3
check "reloads in the log" "$(grep -c 'configuration reloaded' "$work/ndtd.log")" == 2

# Files outside.
if grep -q 'files are restricted' <<<"$line"; then
    for path in private/map.pcd shelf/link.pcd; do
        says "load_map of $path" "$path: may not be read.*security.map_paths" "$(request load_map "$outside/$path")"
        says "load_tile of $path" "$path: may not be read.*security.map_paths" "$(request load_tile "$outside/$path")"
    done
else
    echo "no Landlock: files are left out"
fi
grep -q 'Bad system call\|Operation not permitted' "$work/ndtd.log" && { echo "FAIL: $(cat "$work/ndtd.log")"; failed=1; }
stop_daemon TERM
check "exit code of SIGTERM" "$code" == 0
[ -e "$work/scans.ipc" ] && { echo "FAIL: the socket file remains"; failed=1; }
"$bin/ndt-bag" info "$work/recordings/all.bag" >"$work/info" 2>&1
check "scans in the recording" "$(awk '$1 == "scan" && $2 ~ /^[0-9]+$/ {print $2; exit}' "$work/info")" == 60

# Tiles that come into reach are read while the daemon runs.
"$bin/ndt-sim" --seed 3 --world city --extent 300 --out "$work/city" --beams 16 --columns 600 --map-spacing 0.4 \
    --scans 30 --force >/dev/null || failed=1
mv "$work/city/map.pcd/pointcloud_map_metadata.yaml" "$work/city/" || failed=1 # above the tiles, as Autoware has it
start_daemon --set security.isolation=on --map "$work/city/map.pcd" "${roomy[@]}" --set dynamic_map_loading.map_radius=20 \
    --set dynamic_map_loading.lidar_radius=20 --set dynamic_map_loading.update_distance=2
loads=0
for _ in $(seq 10); do # a loader that is slower than the whole drive loads once; the next drive begins elsewhere
    "$bin/live_probe" answers "$scans" "$poses" "$work/city/drive.bag" 10 >"$work/out" || failed=1
    loads=$("$bin/ndt-ctl" status --all --control "$control" | sed -n 's/^map .* loads \([0-9]*\).*/\1/p')
    [ "${loads:-0}" -ge 2 ] && break
done
check "answered over tiles" "$(value answered "$work/out")" == 30
check "loads of tiles" "${loads:-0}" ">=" 2
stop_daemon TERM

# For a GPU less is taken away; without one the CPU is used, and the log says why.
start_daemon --set security.isolation=gpu "${roomy[@]}"
for _ in $(seq 1200); do # it answers before its backend is chosen
    grep -q 'for a GPU' "$work/ndtd.log" && break
    sleep 0.1
done
says "isolation for a GPU" 'for a GPU' "$(grep 'isolation:' "$work/ndtd.log" | tail -n 1)"
stop_daemon TERM

# What cannot be isolated is refused at the start.
refuse() { # PATTERN OPTIONS...
    local pattern=$1
    shift
    "$bin/ndtd" -c "$work/ndtd.yaml" --set security.isolation=on "$@" >"$work/said" 2>&1
    check "exit code of $*" $? == 2
    says "$*" "$pattern" "$(tail -n 1 "$work/said")"
}
refuse "security.map_paths: '/no/such': No such file" --set "security.map_paths=$outside/shelf:/no/such"
if "$bin/ndtd" --list-backends | grep -q '^ *cuda'; then
    refuse 'backend.name: cuda needs devices that security.isolation' --set backend.name=cuda
fi
exit $failed
