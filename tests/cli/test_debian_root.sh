#!/usr/bin/env bash
# The Debian packages in a root of their own: installed, tried, upgraded with a changed configuration, removed, purged.
#   test_debian_root.sh BIN_DIR      (the build folder is the one above it)
# NDT_DEBIAN_ROOT: an existing minimal root, which is copied; else debootstrap makes one of this machine's release.
# Exit codes: 0 passed, 1 failed, 77 skipped: not root, a sanitizer build, or a tool or Debian's packages are missing.
set -uo pipefail
bin=$(cd "${1:?BIN_DIR}" && pwd)
build=$(dirname "$bin")
grep -q '^NDT_SANITIZE:[A-Z]*=$' "$build/CMakeCache.txt" || { echo "sanitizer builds are not packaged"; exit 77; }
[ "$(id -u)" = 0 ] || { echo "skipped: not root"; exit 77; }
for tool in debootstrap cpack dpkg-deb dpkg-shlibdeps file; do
    command -v "$tool" >/dev/null || { echo "skipped: no $tool"; exit 77; }
done
source "$(dirname "$0")/steps.sh"
root=$dir/root

if [ -n "${NDT_DEBIAN_ROOT:-}" ]; then
    cp -a "$NDT_DEBIAN_ROOT" "$root" || exit 1
else
    # shellcheck source=/dev/null
    release=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
    debootstrap --variant=minbase "$release" "$root" >"$dir/log" 2>&1 || { echo "skipped: debootstrap: $(tail -n 1 "$dir/log")"; exit 77; }
fi
cp -a /etc/apt/. "$root/etc/apt/"
cp /etc/resolv.conf "$root/etc/resolv.conf"
printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d" # no services in a folder
chmod +x "$root/usr/sbin/policy-rc.d"
inside() { env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 chroot "$root" "$@"; }
apt_get() { inside apt-get -qq -o Dpkg::Use-Pty=0 -o APT::Sandbox::User=root "$@" >"$dir/log" 2>&1; }
files() { (cd "$root" && find etc usr lib var/lib/ndtd var/cache \( -name 'ndt*' -o -name 'libndt*' -o -name '_ndt*' \) ! -path 'usr/share/doc/*' 2>/dev/null | sort); }

cpack -G DEB --config "$build/CPackConfig.cmake" -B "$dir/packages" >"$dir/log" 2>&1 || { fail "cpack: $(tail -n 5 "$dir/log")"; exit 1; }
apt_get update || { echo "skipped: apt-get update: $(tail -n 1 "$dir/log")"; exit 77; }
mkdir "$root/new" "$root/newer"
cp "$dir"/packages/*.deb "$root/new"
"$(dirname "$0")/../../tools/apt-repository" "$root/new" >"$dir/log" 2>&1 || fail "apt-repository: $(tail -n 3 "$dir/log")"
echo 'deb [trusted=yes] file:/new ./' >"$root/etc/apt/sources.list.d/ndtd.list"
apt_get update || fail "apt-get update with the repository: $(tail -n 3 "$dir/log")"
before=$(files)
megabytes=$(du -sm "$root" | cut -f1) begin=$SECONDS
inside apt-get -qq install -y --no-install-recommends ndtd >"$dir/log" 2>&1 ||
    { fail "apt install: $(tail -n 5 "$dir/log")"; exit 1; }
echo "ndtd: installed in $((SECONDS - begin)) s, with what it needs $(($(du -sm "$root" | cut -f1) - megabytes)) MiB"
inside getent passwd ndtd >/dev/null || fail "there is no user ndtd"
(cd "$root/tmp" && inside sh -c 'cd /tmp && ndt-demo --scans 20 --no-page') >"$dir/log" 2>&1 && grep -qx '  converged        20' "$dir/log" ||
    fail "ndt-demo: $(tail -n 5 "$dir/log")"
inside ndtd --check-config -c /etc/ndtd/ndtd.yaml >"$dir/log" 2>&1 || fail "the configuration: $(cat "$dir/log")"
begin=$SECONDS
inside sh -c 'apt-get -qq install -y --no-install-recommends /new/*.deb' >"$dir/log" 2>&1 || fail "apt install of all: $(tail -n 5 "$dir/log")"
echo "all of them: installed in $((SECONDS - begin)) s, $(($(du -sm "$root" | cut -f1) - megabytes)) MiB"
! ls "$root"/new/libndtd0* >/dev/null 2>&1 || [ "$(inside ldconfig -p | grep -c 'libndtd\.so\.')" -gt 0 ] || fail "ldconfig does not know libndtd.so"

if [ -e "$root/usr/bin/ndt-report" ]; then # built with NDT_PYTHON
    inside ndt-report --version >/dev/null && [ "$(inside python3 -c 'import ndtd; print(ndtd.Map.__name__)')" = Map ] || fail "python3-ndtd"
fi

# The same packages with a higher version: a changed configuration stays.
for deb in "$root"/new/*.deb; do
    rm -rf "$dir/repack" && dpkg-deb -R "$deb" "$dir/repack" && sed -i -e 's/^Version: .*/&+1/' -e 's/(= \([0-9.]*\))/(= \1+1)/' "$dir/repack/DEBIAN/control" &&
        dpkg-deb -b --root-owner-group "$dir/repack" "$root/newer/$(basename "$deb")" >/dev/null || fail "cannot repack $deb"
done
echo '# mine' >>"$root/etc/ndtd/ndtd.yaml"
inside sh -c 'apt-get -qq install -y --no-install-recommends /newer/*.deb' >"$dir/log" 2>&1 || fail "upgrade: $(tail -n 5 "$dir/log")"
[[ $(inside dpkg-query -W -f '${Version}' ndtd) = *+1 ]] || fail "not upgraded"
[ "$(tail -n 1 "$root/etc/ndtd/ndtd.yaml")" = '# mine' ] || fail "the upgrade lost a changed configuration"
inside sh -c 'apt-get -qq remove -y "*ndtd*"' >"$dir/log" 2>&1 || fail "remove: $(tail -n 5 "$dir/log")"
[ -e "$root/etc/ndtd/ndtd.yaml" ] || fail "remove deleted the configuration"
[ ! -e "$root/usr/bin/ndtd" ] || fail "remove left /usr/bin/ndtd"
inside sh -c 'dpkg --purge ndtd $(dpkg-query -W -f "\${Package}\n" "libndtd*" ndtd-doc 2>/dev/null)' >"$dir/log" 2>&1 || fail "purge: $(tail -n 5 "$dir/log")"
[ "$(files | grep -v 'sources.list\|var/cache/apt')" = "$(grep -v 'sources.list\|var/cache/apt' <<<"$before")" ] || fail "purge left $(files)"
[ -z "$(inside dpkg --audit)" ] || fail "dpkg --audit: $(inside dpkg --audit)"
[ "$failures" = 0 ] && echo "packages in a root: all good"
exit $((failures > 0))
