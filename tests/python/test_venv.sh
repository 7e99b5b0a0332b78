#!/usr/bin/env bash
# A virtual environment WORK_DIR/venv with what the tests of Python and of the browser need; kept for the next run.
#   test_venv.sh WORK_DIR         0: it is there, 77: no Python with venv, or no PyPI
# NDT_PYTHON: the interpreter, python3 unless set. Tests that run at the same time wait for one another.
set -uo pipefail
work=${1:?folder to write to}
here=$(cd "$(dirname "$0")" && pwd)
package=$here/../../tools/python
base=${NDT_PYTHON:-python3}
skip() {
    echo "skipped: $*"
    exit 77
}
"$base" -c 'import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 9))' 2>/dev/null ||
    skip "no Python 3.9 or later with venv ($base; Debian: python3-venv)"
"$base" -c 'import os, sys, sysconfig; sys.exit(not os.path.exists(sysconfig.get_path("include") + "/Python.h"))' ||
    skip "no headers of Python (Debian: python3-dev)"
mkdir -p "$work" && work=$(cd "$work" && pwd) || exit 1
python=$work/venv/bin/python
log=$work/venv.log
exec 9>"$work/venv.lock" && flock 9 || exit 1
pip() { "$python" -m pip --disable-pip-version-check "$@" >"$log" 2>&1; }
install() { "$here/install_packages.sh" "$work/venv" "$@" >"$log" 2>&1; }

# The packages: installed again when the interpreter or the requirements change.
wanted=$("$base" -VV && cat "$package/pyproject.toml" "$here/test_venv.sh" "$here/install_packages.sh" | sha256sum)
if [ "$wanted" != "$(cat "$work/installed" 2>/dev/null)" ] || ! "$python" -c '' 2>/dev/null; then
    rm -rf "$work/venv" "$work/installed" "$work/probe"
    "$base" -m venv "$work/venv" || exit 1
    pip --retries 1 --timeout 15 download -q --no-deps -d "$work/probe" iniconfig ||
        skip "PyPI cannot be reached: $(grep -v '^$' "$log" | tail -n 1)"
    # The requirements of the extra alone: the package itself is built below.
    "$python" - "$package/pyproject.toml" >"$work/requirements.txt" <<'PYTHON' || exit 1
import re
import sys

text = open(sys.argv[1], encoding="utf-8").read()
section = text.split("[project.optional-dependencies]")[1].split("\n[")[0]
extras = {name: re.findall(r'"([^"]*)"', row) for name, row in re.findall(r"^(\w+) = \[(.*?)\]$", section, re.M | re.S)}


def rows(name):
    for row in extras[name]:
        group = re.fullmatch(r"ndtd\[(.*)\]", row)
        for other in group.group(1).split(",") if group else ():
            yield from rows(other.strip())
        if not group:
            yield row


system = re.search(r"requires = \[(.*?)\]", text).group(1)
base = re.search(r"^dependencies = \[(.*?)\]", text, re.M).group(1)
print("\n".join(sorted({*rows("test"), *re.findall(r'"([^"]*)"', system + base)})))
PYTHON
    install -r "$work/requirements.txt" || { cat "$log"; exit 1; }
    # What ouster-sdk wants besides, one version of rosbags and others, is not that of the tests; they skip without it.
    install --no-deps --only-binary :all: 'ouster-sdk>=1' || echo "left out: ouster-sdk: $(tail -n 1 "$log")"
    echo "$wanted" >"$work/installed"
fi
