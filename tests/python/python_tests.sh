#!/usr/bin/env bash
# Runs pytest on the Python package that install.sh has put into WORK_DIR/venv.
#   python_tests.sh BIN_DIR WORK_DIR [FILE_OR_PYTEST_OPTION...]      0: passed, 77: install.sh was skipped
set -uo pipefail
bin=$(cd "${1:?folder of the programs}" && pwd) || exit 1
work=$(cd "${2:?folder of install.sh}" && pwd) || exit 1
shift 2
[ -e "$work/ready" ] || { echo "skipped: the package is not installed, see python_install"; exit 77; }
unset PYTHONDONTWRITEBYTECODE # hundreds of processes start: each would compile what it imports
export NDT_BIN=$bin PATH=$work/venv/bin:$bin:$PATH MPLBACKEND=Agg PYTHONPYCACHEPREFIX=$work/pycache
cd "$(dirname "$0")/../.." || exit 1
exec "$work/venv/bin/python" -m pytest -c tools/python/pyproject.toml -q -p no:cacheprovider "$@"
