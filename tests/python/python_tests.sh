#!/usr/bin/env bash
# The tests of the Python package, in a virtual environment of their own that is kept for the next run.
#   python_tests.sh BIN_DIR WORK_DIR [PYTEST_OPTION...]      0: passed, 77: no Python with venv, or no PyPI
# NDT_PYTHON: the interpreter, python3 unless set.
set -uo pipefail
bin=$(cd "${1:?folder of the programs}" && pwd) || exit 1
work=${2:?folder to write to}
shift 2
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
log=$work/pip.log
pip() { "$python" -m pip --disable-pip-version-check "$@" >"$log" 2>&1; }

# The packages: installed again when the interpreter or the requirements change.
wanted=$("$base" -VV && sha256sum <"$package/pyproject.toml")
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
    pip install -q --no-compile -r "$work/requirements.txt" || { cat "$log"; exit 1; }
    echo "$wanted" >"$work/installed"
fi

# The package: the build folder is kept, so that unchanged sources are not compiled again.
! command -v ccache >/dev/null || export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache
! command -v ninja >/dev/null || export CMAKE_GENERATOR=Ninja
PATH=$work/venv/bin:$PATH pip install --no-build-isolation --no-deps --force-reinstall \
    -C build-dir="$work/build" "$package" || { tail -n 40 "$log"; exit 1; }

export NDT_BIN=$bin PATH=$work/venv/bin:$bin:$PATH MPLBACKEND=Agg PYTHONPYCACHEPREFIX=$work/pycache
cd "$here/../.." || exit 1
exec "$python" -m pytest tools/python -q -n 2 -p no:cacheprovider "$@"
