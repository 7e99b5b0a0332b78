#!/usr/bin/env bash
# Installs packages from PyPI into a virtual environment: by uv, which takes a sixth of the processor time of pip, or by
# pip where uv cannot be had or does not get through.
#   install_packages.sh VENV ARGUMENT...      ARGUMENTs that `pip install` and `uv pip install` both know
# uv is told what the variables PIP_INDEX_URL, PIP_EXTRA_INDEX_URL, PIP_FIND_LINKS and PIP_CERT tell pip.
set -uo pipefail
venv=${1:?virtual environment}
shift
pip() { "$venv/bin/python" -m pip --disable-pip-version-check "$@"; }
tell() { [ -z "$2" ] || export "$1=$2"; }

tell UV_DEFAULT_INDEX "${PIP_INDEX_URL:-}"
tell UV_INDEX "${PIP_EXTRA_INDEX_URL:-}"
tell UV_FIND_LINKS "${PIP_FIND_LINKS:-}"
tell SSL_CERT_FILE "${PIP_CERT:-}"
export UV_NO_PROGRESS=1 UV_HTTP_TIMEOUT=60
[ -x "$venv/bin/uv" ] || pip --retries 1 --timeout 15 install -q --no-compile --no-deps --only-binary :all: uv
if [ -x "$venv/bin/uv" ] && "$venv/bin/uv" --no-config pip install -q --python "$venv/bin/python" "$@"; then
    exit 0
fi
pip --retries 1 --timeout 15 install -q --no-compile "$@"
