#!/usr/bin/env bash
# Wheels in roots of Debian that have nothing but Python: installed without a compiler, a drive, the module, removed; a table.
#   NDT_WHEELS=DIR test_wheel_roots.sh BIN_DIR       DIR: what tools/package-wheel made
# Exit codes: 0 passed, 1 failed, 77 skipped: no wheels, not root, or a tool or Debian's packages are missing.
set -uo pipefail
[ -n "${NDT_WHEELS:-}" ] || { echo "skipped: NDT_WHEELS is not set"; exit 77; }
[ "$(id -u)" = 0 ] || { echo "skipped: not root"; exit 77; }
command -v debootstrap >/dev/null || { echo "skipped: no debootstrap"; exit 77; }
source "$(dirname "$0")/steps.sh"
# debootstrap mounts /proc for some releases, and here it is for the others.
release() { while umount "$1/proc" 2>/dev/null; do :; done; }
trap 'for root in "$dir"/*/; do release "$root"; done; rm -rf --one-file-system "$dir"' EXIT
wheels=$(cd "$NDT_WHEELS" && pwd)
module='import numpy, ndtd; p = numpy.random.default_rng(1).uniform(0, 20, (20000, 3)) * [1, 1, 0.05]
print(ndtd.align(ndtd.Map(p), p, numpy.eye(4)).outcome)'

try_root() { # SUITE
    local root=$dir/$1
    debootstrap --variant=minbase --include=python3,python3-venv "$1" "$root" >"$dir/log" 2>&1 ||
        { echo "$1: skipped: debootstrap: $(tail -n 1 "$dir/log")"; return; }
    inside() { env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 chroot "$root" "$@"; }
    mountpoint -q "$root/proc" || mount --bind /proc "$root/proc" || { echo "$1: skipped: no /proc in it, by which programs find their libraries"; return; }
    try_inside "$1" "$root"
    release "$root"
    rm -rf --one-file-system "$root"
}

try_inside() { # SUITE ROOT
    local root=$2 minor begin installed demo before
    minor=$(inside python3 -c 'import sys; print("3.%d" % sys.version_info[1])')
    mkdir "$root/wheels"
    python3 -m pip -q download --dest "$root/wheels" --python-version "$minor" --implementation cp --only-binary :all: \
        --platform manylinux_2_17_x86_64 --platform manylinux_2_27_x86_64 --platform manylinux_2_28_x86_64 'numpy>=1.22' >"$dir/log" 2>&1 ||
        { fail "$1: numpy for $minor: $(tail -n 2 "$dir/log")"; return; }
    cp "$wheels"/ndtd-*x86_64.whl "$root/wheels" || { fail "$wheels has no wheel for x86-64"; return; }
    tried=$((tried + 1))
    inside python3 -m venv /venv >"$dir/log" 2>&1 || { fail "$1: venv: $(tail -n 2 "$dir/log")"; return; }
    before=$(du -sm "$root/venv" | cut -f1) begin=$SECONDS
    inside /venv/bin/pip -q install --no-index --find-links /wheels ndtd >"$dir/log" 2>&1 || { fail "$1: pip: $(tail -n 3 "$dir/log")"; return; }
    installed=$((SECONDS - begin)) begin=$SECONDS
    inside /venv/bin/ndt-demo --no-page --out /demo >"$dir/log" 2>&1 && grep -qx '  converged        150' "$dir/log" ||
        fail "$1: ndt-demo: $(tail -n 3 "$dir/log")"
    demo=$((SECONDS - begin))
    [ "$(inside /venv/bin/python -c "$module")" = converged ] || fail "$1: ndtd.align"
    echo "$(inside sh -c '. /etc/os-release && echo "$PRETTY_NAME"'), Python $minor, $(inside ldd --version | sed -n '1s/.*) /glibc /p'):" \
        "installed in $installed s with numpy, $(($(du -sm "$root/venv" | cut -f1) - before)) MiB of which ndtd" \
        "$(du -scm "$root"/venv/lib/python*/site-packages/ndtd* | tail -n 1 | cut -f1), ndt-demo $demo s"
    inside /venv/bin/pip -q uninstall -y ndtd && [ -z "$(find "$root/venv" -name 'ndt*')" ] || fail "$1: uninstall leaves $(find "$root/venv" -name 'ndt*')"
}

tried=0
for suite in bullseye bookworm trixie sid; do try_root $suite; done
[ $tried -gt 0 ] || { echo "skipped: no root could be made"; exit 77; }
[ "$failures" = 0 ] && echo "wheels in $tried roots: all good"
exit $((failures > 0))
