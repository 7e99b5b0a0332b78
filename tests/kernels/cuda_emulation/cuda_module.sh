#!/usr/bin/env bash
# cuda_module.sh BIN_DIR: ndtd loads the module with the CUDA backend where there is a driver: found beside the program or where
# NDT_CUDA_MODULE says, refused in one line where it is absent or of another version, and loaded before the isolation, from
# a folder that this forbids. The module is that of the emulated device, and the driver an empty library.
source "$(dirname "$0")/../../live/common.sh" "$1"
simulate --scans 5
mkdir "$work/driver" "$work/alone"
echo 'int nothing;' | cc -shared -fPIC -x c -o "$work/driver/libcuda.so.1" - || { echo "skipped: no shared libraries here"; exit 77; }
emulated=$bin/libndt_emulated_module.so
cp "$bin/ndtd" "$work/alone/ndtd"

says() { # WHAT PATTERN FILE
    if grep -qE -- "$2" "$3"; then
        echo "ok   $1: $(grep -m 1 -E -- "$2" "$3")"
    else
        echo "FAIL $1: no '$2' in: $(cat "$3")"
        failed=1
    fi
}
replay() { # BACKEND PROGRAM: its output is in $work/said
    "$2" --replay "$work/drive/drive.bag" --map "$work/drive/map.pcd" --backend "$1" --out "$work/out.tum" >"$work/said" 2>&1
}

# Without a driver nothing is loaded.
LD_DEBUG=libs NDT_CUDA_MODULE=$emulated "$bin/ndtd" --list-backends >"$work/said" 2>&1
says "no driver" '^cuda .*not here: no NVIDIA driver' "$work/said"
check "modules loaded" "$(grep -c libndt_emulated_module "$work/said")" == 0

# With a driver: absent, of another version, no module at all.
export LD_LIBRARY_PATH=$work/driver
"$work/alone/ndtd" --list-backends >"$work/said" 2>&1
says "no module" '^cuda .*not here: the CUDA module libndt_cuda.so is not installed' "$work/said"
replay cuda "$work/alone/ndtd"
check "exit code of --backend cuda without it" "$?" == 3
check "lines about it" "$(grep -c . "$work/said")" == 1
says "demanded" 'backend cuda cannot be used here: the CUDA module' "$work/said"
NDT_CUDA_MODULE=$bin/libndt_other_module.so replay cuda "$bin/ndtd"
check "exit code with another version" "$?" == 3
check "lines about it" "$(grep -c . "$work/said")" == 1
says "another version" 'the CUDA module is of ndtd 99.0 \(of-another\), not [0-9.]+ \(' "$work/said"
NDT_CUDA_MODULE=$work/driver/libcuda.so.1 "$bin/ndtd" --list-backends >"$work/said" 2>&1
says "no module of ndtd" '^cuda .*libcuda.so.1 is no CUDA module of ndtd' "$work/said"

# The CPU's replay looks for none of it.
LD_DEBUG=libs NDT_CUDA_MODULE=$emulated replay auto "$bin/ndtd"
check "libraries of CUDA in a replay" "$(grep -cE 'libcuda|libndt_emulated' "$work/said")" == 0

# Loaded from where it is said to be, and from beside the program.
NDT_CUDA_MODULE=$emulated replay cuda "$bin/ndtd" || { echo "FAIL a replay with the module: $(cat "$work/said")"; failed=1; }
hash=$(sed -n 's/^trajectory hash *//p' "$work/said")
cp "$emulated" "$work/alone/libndt_cuda.so"
replay cuda "$work/alone/ndtd"
says "the module beside the program" "^trajectory hash *$hash" "$work/said"
mkdir -p "$work/site-packages/ndtd_programs/bin" "$work/site-packages/ndtd_cuda"
cp "$bin/ndtd" "$work/site-packages/ndtd_programs/bin"
cp "$emulated" "$work/site-packages/ndtd_cuda/libndt_cuda.so"
replay cuda "$work/site-packages/ndtd_programs/bin/ndtd"
says "the module of its wheel" "^trajectory hash *$hash" "$work/said"

# The log of a daemon under auto says why the device is left out.
NDT_CUDA_MODULE=$bin/libndt_other_module.so start_daemon "${roomy[@]}"
"$bin/live_probe" answers "$scans" "$poses" "$work/drive/drive.bag" 10 >"$work/out" || failed=1
says "auto" 'backend.name: auto does not use cuda: the CUDA module is of ndtd 99.0' "$work/ndtd.log"
stop_daemon TERM

# Isolated, with the module in a folder that the daemon may not read: it is loaded before.
outside=$(mktemp -d)
trap 'stop_daemon KILL; rm -rf "$work" "$outside"' EXIT
cp "$emulated" "$outside/module.so"
NDT_CUDA_MODULE=$outside/module.so start_daemon "${roomy[@]}" --set security.isolation=gpu --set backend.name=cuda
"$bin/live_probe" answers "$scans" "$poses" "$work/drive/drive.bag" 10 >"$work/out" || failed=1
check "answered on the isolated device" "$(value answered "$work/out")" == 5
"$bin/ndt-ctl" status --control "$control" >"$work/said" 2>&1
says "its backend" '^backend +cuda (fused|resident) on emulation' "$work/said"
says "isolated" 'isolation: .*for a GPU' "$work/ndtd.log"
stop_daemon TERM
exit $failed
