#!/usr/bin/env bash
# Installs the Python package into the virtual environment WORK_DIR/venv, which is kept for the next run.
#   install.sh WORK_DIR         0: it is there, 77: no Python with venv, or no PyPI
# Without the programs, which the tests take from the build.
# NDT_PYTHON: the interpreter, python3 unless set. CC, CXX, NDT_WERROR: as in the build, whose objects ccache then has.
set -uo pipefail
work=${1:?folder to write to}
here=$(cd "$(dirname "$0")" && pwd)
rm -f "$work/ready"
"$here/test_venv.sh" "$work" || exit $?
work=$(cd "$work" && pwd) || exit 1
log=$work/pip.log

# The build folder is kept, so that unchanged sources are not compiled again.
! command -v ccache >/dev/null || export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache
! command -v ninja >/dev/null || export CMAKE_GENERATOR=Ninja
PATH=$work/venv/bin:$PATH "$work/venv/bin/python" -m pip --disable-pip-version-check install --no-build-isolation --no-deps \
    --force-reinstall -C build-dir="$work/build" -C cmake.define.NDT_PROGRAMS=OFF \
    -C cmake.define.NDT_WERROR="${NDT_WERROR:-OFF}" "$here/../../tools/python" >"$log" 2>&1 || { tail -n 40 "$log"; exit 1; }
touch "$work/ready"
