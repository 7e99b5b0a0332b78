#!/usr/bin/env bash
# The systemd units as systemd-analyze sees them: test_systemd_unit.sh BIN_DIR. Exit codes: 0 passed, 1 failed, 77
# skipped: no systemd-analyze.
set -uo pipefail
bin=$(cd "${1:?BIN_DIR}" && pwd)
unit=$(cd "$(dirname "$0")/../../config" && pwd)/ndtd.service
command -v systemd-analyze >/dev/null || { echo "skipped: no systemd-analyze"; exit 77; }
source "$(dirname "$0")/steps.sh"
cd "$dir" || exit 1

# systemd-analyze checks the path of the program: use that of the build.
sed "s#^ExecStart=[^ ]*#ExecStart=$bin/ndtd#" "$unit" >ndtd.service
grep -q "^ExecStart=$bin/ndtd -c /etc/ndtd/ndtd.yaml --set security.isolation=on\$" ndtd.service || fail "another ExecStart: $(grep ExecStart= "$unit")"
export SYSTEMD_LOG_LEVEL=warning SYSTEMD_UNIT_PATH="$dir:"

# Ignores lines about other units of this machine.
verify() {
    systemd-analyze --no-pager verify "$PWD/$1" >said 2>&1
    local code=$?
    grep -E "$1|Unknown|Failed" said >ours
    return $code
}
if grep -qE 'Failed to (initialize|create) manager|Failed to.*runtime directory' <(systemd-analyze verify ndtd.service 2>&1); then
    echo "systemd-analyze does not work here"
    exit 77
fi
verify ndtd.service || fail "systemd-analyze verify: $(cat said)"
[ -s ours ] && fail "systemd-analyze verify complains: $(cat ours)"

# The check must detect mistakes.
sed 's/^WatchdogSec=.*/WatchdogSec=soon/; s/^ProtectHome=/ProtectHouse=/' ndtd.service >ndtd-bad.service
verify ndtd-bad.service
grep -q ProtectHouse ours && grep -q soon ours || fail "two mistakes were not detected: $(cat said)"

# The exposure level from 0 to 10, if this version of systemd computes it without a running manager.
if systemd-analyze security --offline=yes --no-pager ndtd.service >report 2>/dev/null; then
    level=$(sed -n 's/.*exposure level[^:]*: \([0-9]*\)\.\([0-9]*\).*/\1\2/p' report)
    echo "exposure level: ${level:0:${#level}-1}.${level: -1}"
    [ "${level:-99}" -le 12 ] || fail "exposure: $(tail -n 1 report)"
fi

# With the drop-in for GPUs: what it takes back, and no more.
mkdir ndtd.service.d
sed "s#^ExecStart=/[^ ]*#ExecStart=$bin/ndtd#" "${unit%/*}/ndtd-gpu.conf" >ndtd.service.d/ndtd-gpu.conf
verify ndtd.service || fail "systemd-analyze verify with ndtd-gpu.conf: $(cat said)"
[ -s ours ] && fail "systemd-analyze verify complains about ndtd-gpu.conf: $(cat ours)"
"$bin/ndtd" --check-config --set security.isolation=gpu >/dev/null || fail "ndtd-gpu.conf: security.isolation=gpu is refused"
if systemd-analyze security --offline=yes --no-pager ndtd.service >report 2>/dev/null; then
    level=$(sed -n 's/.*exposure level[^:]*: \([0-9]*\)\.\([0-9]*\).*/\1\2/p' report)
    echo "exposure level with a GPU: ${level:0:${#level}-1}.${level: -1}"
    [ "${level:-99}" -le 16 ] || fail "exposure with ndtd-gpu.conf: $(tail -n 1 report)"
fi
rm -r ndtd.service.d

# That of the live page, which browsers reach: as narrow, and nothing of control in it.
sed "s#^ExecStart=[^ ]*#ExecStart=$bin/ndtd#" "${unit%/*}/ndt-web.service" >ndt-web.service
grep -qx 'ExecStart=/usr/bin/ndt-web' "${unit%/*}/ndt-web.service" || fail "another ExecStart of ndt-web"
verify ndt-web.service || fail "systemd-analyze verify: $(cat said)"
[ -s ours ] && fail "systemd-analyze verify complains: $(cat ours)"
if systemd-analyze security --offline=yes --no-pager ndt-web.service >report 2>/dev/null; then
    level=$(sed -n 's/.*exposure level[^:]*: \([0-9]*\)\.\([0-9]*\).*/\1\2/p' report)
    echo "exposure level of ndt-web: ${level:0:${#level}-1}.${level: -1}"
    [ "${level:-99}" -le 12 ] || fail "exposure: $(tail -n 1 report)"
fi
for line in TimeoutStopSec=10 WatchdogSec=10; do
    grep -qx "$line" "$unit" || fail "$line is missing"
done
grep -q '^# *MemoryMax=' "$unit" || fail "MemoryMax is not explained"
[ "$failures" = 0 ] && echo "systemd unit: all good"
exit $((failures > 0))
