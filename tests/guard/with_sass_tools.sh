#!/usr/bin/env bash
# Runs a command with a Python that has what tools/dev/sass-guard/sass-guard requires, in a virtual environment that is kept for the
# next run. Without nvcc, venv or PyPI the command runs with the Python of the machine and says what it lacks.
#   with_sass_tools.sh REQUIREMENTS WORK_DIR COMMAND...
set -uo pipefail
requirements=${1:?file of requirements} work=${2:?folder to write to}
here=$(cd "$(dirname "$0")" && pwd)
shift 2
export PATH=$PATH:/usr/local/cuda/bin
command -v nvcc >/dev/null || exec "$@"
mkdir -p "$work" || exit 1
exec 9>"$work/lock" && flock 9 || exit 1 # tests that run at the same time wait for one another
wanted=$(python3 -VV && sha256sum <"$requirements")
install() {
    rm -rf "$work/venv"
    python3 -m venv "$work/venv" && "$here/../python/install_packages.sh" "$work/venv" -r "$requirements" &&
        echo "$wanted" >"$work/installed"
}
if [ "$wanted" != "$(cat "$work/installed" 2>/dev/null)" ] && ! install >"$work/log" 2>&1; then
    exec "$@"
fi
exec 9>&-
unset PYTHONDONTWRITEBYTECODE # the packages are compiled when they are first imported
PATH=$work/venv/bin:$PATH exec "$@"
