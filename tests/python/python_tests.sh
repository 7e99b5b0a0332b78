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
"$here/test_venv.sh" "$work" || exit $?
work=$(cd "$work" && pwd) || exit 1
python=$work/venv/bin/python
log=$work/pip.log
pip() { "$python" -m pip --disable-pip-version-check "$@" >"$log" 2>&1; }

# The package: the build folder is kept, so that unchanged sources are not compiled again.
! command -v ccache >/dev/null || export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache
! command -v ninja >/dev/null || export CMAKE_GENERATOR=Ninja
PATH=$work/venv/bin:$PATH pip install --no-build-isolation --no-deps --force-reinstall \
    -C build-dir="$work/build" "$package" || { tail -n 40 "$log"; exit 1; }

export NDT_BIN=$bin PATH=$work/venv/bin:$bin:$PATH MPLBACKEND=Agg PYTHONPYCACHEPREFIX=$work/pycache
cd "$here/../.." || exit 1
exec "$python" -m pytest tools/python -q -n 2 -p no:cacheprovider "$@"
