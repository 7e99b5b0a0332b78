#!/usr/bin/env bash
# ndt-demo: a short drive to the report and to the address of the page; wrong use.
#   test_ndt_demo.sh BIN_DIR      0: as expected
set -uo pipefail
bin=$(cd "${1:?the folder with the programs}" && pwd)
source "$(dirname "$0")/steps.sh"
cd "$dir" || exit 1

# Without a report, and with one.
export PATH=/usr/bin:/bin
"$bin/ndt-demo" --scans 10 --no-page >said 2>&1 || fail "ndt-demo: exit status $?: $(tail -n 5 said)"
grep -qx '  converged        10' said || fail "not every scan converged: $(cat said)"
command -v ndt-report >/dev/null || grep -q '^left out: ndt-report is not installed' said || fail "no word of the report: $(cat said)"
mkdir path
printf '#!/bin/sh\nwhile [ "$1" != --out ]; do shift; done\necho page >"$2"\n' >path/ndt-report
chmod +x path/ndt-report
if [ -x "$bin/ndt-web" ]; then
    mkfifo lines
    PATH=$dir/path:$PATH "$bin/ndt-demo" --scans 10 --out "a b" >lines 2>&1 &
    demo=$!
    address=$(timeout 120 sed -n '/^ndt-web: http/{p;q}' <lines)
    [[ $address = "ndt-web: http://127.0.0.1:"*/ ]] || fail "no address: $address"
    kill $demo
    wait $demo
    [ "$(cat 'a b/report.html')" = page ] || fail "no report"
fi

for wrong in "--scans 9" "--scans 1x" "--scans" "--port 65536" "--out ''" "drive"; do
    eval "'$bin/ndt-demo' $wrong" >said 2>&1
    [ $? -eq 2 ] && [ "$(wc -l <said)" -eq 1 ] || fail "ndt-demo $wrong: $(cat said)"
done
: >file
"$bin/ndt-demo" --out file/x --no-page >said 2>&1
[[ $? -eq 3 && $(cat said) = "ndt-demo: file/x: cannot be made: Not a directory" ]] || fail "ndt-demo --out file/x: $(cat said)"
[ "$failures" = 0 ] && echo "ndt-demo: all good"
exit $((failures > 0))
