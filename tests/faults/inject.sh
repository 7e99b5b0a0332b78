#!/usr/bin/env bash
# inject.sh BIN_DIR SHIM [OPTION]...: faults by injection, see fault_driver.py. Exit code 77: no Python with zmq and
# msgpack.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
export PYTHONDONTWRITEBYTECODE=1
for python in python3 /usr/bin/python3; do # system packages are available to the system's Python only
    "$python" -c 'import zmq, msgpack' 2>/dev/null && exec "$python" "$here/fault_driver.py" "$@"
done
echo "skipped: no Python with zmq and msgpack"
exit 77
