#!/usr/bin/env bash
# The page of ndt-web in headless Chromium, with a running ndtd.
#   web_tests.sh BIN_DIR VENV_DIR [PYTEST_OPTION...]      0: passed, 77: no Chromium, or no virtual environment
# VENV_DIR: that of tests/python/test_venv.sh. NDT_CHROMIUM: the browser. NDT_SHARED_DATA: real recordings.
# NDT_WEB_SCANS: scans of the drive that watches memory. NDT_WEB_PICTURES: a folder for the screenshots.
set -uo pipefail
bin=$(cd "${1:?folder of the programs}" && pwd) || exit 1
venv=${2:?folder of the virtual environment}
shift 2
here=$(cd "$(dirname "$0")" && pwd)
skip() {
    echo "skipped: $*"
    exit 77
}
[ -x "$bin/ndt-web" ] || skip "no ndt-web (Debian: libmicrohttpd-dev)"
NDT_CHROMIUM=${NDT_CHROMIUM:-$(command -v chromium || command -v chromium-browser)} || skip "no Chromium (Debian: chromium)"
"$here/../python/test_venv.sh" "$venv" || exit $?
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
unset PYTHONDONTWRITEBYTECODE # the cache of modules is written to the folder of the build
export NDT_CHROMIUM NDT_BIN=$bin TMPDIR=$work PYTHONPATH=$here:$here/../../tools/python PYTHONPYCACHEPREFIX=$work/pycache
"$venv/venv/bin/python" -m pytest "$here" -q -p web_fixtures -p no:cacheprovider --rootdir "$here" "$@"
