#!/usr/bin/env bash
# The Python client against the C programs: what it publishes, read by ndt-bag; its scans, matched by a live ndtd.
#   test_python_client.sh BIN_DIR      0: all as expected, 77: no Python with zmq, msgpack and numpy
set -uo pipefail
bin=$(cd "${1:?folder of the programs}" && pwd) || exit 1
here=$(cd "$(dirname "$0")" && pwd)
python=
for candidate in python3 /usr/bin/python3; do # system packages are available to the system's Python only
    if "$candidate" -c 'import zmq, msgpack, numpy' 2>/dev/null; then
        python=$candidate
        break
    fi
done
[ -n "$python" ] || { echo "no Python with zmq, msgpack and numpy"; exit 77; }
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
export PYTHONPATH=$here/../../tools/python PYTHONDONTWRITEBYTECODE=1

"$python" "$here/python_client_check.py" codec "$bin" "$dir" || exit 1
"$bin/ndt-sim" --seed 5 --out "$dir/drive" --scans 20 --beams 16 --columns 600 --map-spacing 0.3 >/dev/null || exit 1
"$python" "$here/python_client_check.py" live "$bin" "$dir" || exit 1
echo "python client: all as expected"
