#!/usr/bin/env bash
# ndt-web from the outside: usage, what it refuses, its answers without a daemon, a finished replay, the end.
#   test_ndt_web.sh BIN_DIR      0: all as expected, 77: ndt-web is not built
set -u
bin=$(cd "${1:?the folder with the programs}" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
[ -x "$bin/ndt-web" ] || { echo "skipped: no ndt-web (libmicrohttpd is not found)"; exit 77; }
# shellcheck source=tests/cli/one_line.sh
. "$here/one_line.sh"
touch out err

expect() {
    expect_of "$bin/ndt-web" "$@"
}

# ---- usage ----
expect 2 "'here' is not an address to listen on" --listen here
expect 2 "--listen 0.0.0.0:0: other machines can reach this address; give --token-file" --listen 0.0.0.0:0
expect 2 "--listen [::]:0: other machines can reach this address" --listen '[::]:0'
expect 2 "--allow-host: 'a b' is not the name of a host" --allow-host 'a b'
expect 2 "--scan-points: '1' is not a whole number from 100 to 200000" --scan-points 1
expect 2 "is not an endpoint" --listen 127.0.0.1:0 --poses here
expect 2 "--curve-server-key and --curve-keys belong together" --listen 127.0.0.1:0 --curve-keys secret
expect 2 "--allow-control is for a daemon, --replay-dir for a replay" --replay-dir . --allow-control
expect 3 "results.jsonl: cannot open: No such file or directory" --replay-dir .
expect 3 "--token-file missing: No such file or directory" --token-file missing
printf '0123456789abcdef\n' >token
chmod 644 token
expect 2 "others may read it (chmod 600)" --token-file token
chmod 600 token
printf 'short\n' >short
chmod 600 short
expect 2 "expected one line of 16 to 128 letters" --token-file short
expect 0 "" --list-metrics
says "ndtd_up"

# ---- a server ----

trap '' PIPE # the server may end a connection first
# start OPTIONS...: on a free port, with the address in $address and $port
start() {
    : >served
    "$bin/ndt-web" --listen 127.0.0.1:0 "$@" >served 2>said &
    daemon=$!
    for _ in $(seq 3000); do
        grep -q http served && break
        kill -0 "$daemon" 2>/dev/null || break
        sleep 0.1
    done
    address=$(sed -n 's#^ndt-web: http://\([^/]*\)/.*#\1#p' served | head -n 1)
    port=${address##*:}
    [ -n "$port" ] || { cat served said; fail "ndt-web $*: does not start"; exit 1; }
}

# ask "request line" [header...]: the whole answer in `out`
ask() {
    local line=$1
    shift
    exec 3<>"/dev/tcp/127.0.0.1/$port" || { fail "no connection"; return 1; }
    { printf '%s HTTP/1.1\r\n' "$line" && printf '%s\r\n' "$@" "Connection: close" ""; } >&3
    cat <&3 >out
    exec 3>&-
}

# answers CODE "words": of the last answer
answers() {
    head -n 1 out | grep -q "^HTTP/1.1 $1 " || fail "not status $1"
    grep -qF -- "$2" out || fail "no '$2' in the answer"
}

stop() {
    kill "$daemon"
    wait "$daemon"
    code=$?
    daemon=
    [ $code -eq 0 ] || fail "exit code $code at the end: $(cat said)"
}

start
home="Host: $address"
expect 3 "--listen $address: another program listens there" --listen "$address"
ask "GET /healthz" "$home" && answers 200 ok
ask "GET /readyz" "$home" && answers 503 "no daemon"
ask "GET /" "$home" && answers 200 "<!doctype html>"
for header in "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'" \
    "X-Content-Type-Options: nosniff" "Referrer-Policy: no-referrer" "Cross-Origin-Resource-Policy: same-origin"; do
    says "$header"
done
! grep -qi '^Access-Control' out || fail "another origin may read the page"
ask "GET /metrics" "$home" && answers 200 "ndtd_up 0"
ask "GET /api/history" "$home" && answers 200 '{"first":0,"results":[]}'
ask "GET /api/status" "$home" && answers 503 "no daemon has answered yet"
ask "GET /api/map" "$home" && answers 200 '"state":"none"'
ask "GET /api/scan?seq=1" "$home" && answers 404 error
ask "GET /api/scan" "$home" && answers 400 "the parameter seq is missing"
ask "GET /api/history?from=-1" "$home" && answers 400 "from: expected a whole number"
ask "GET /../../etc/passwd" "$home" && answers 404 error
ask "GET /%2e%2e/%2e%2e/etc/passwd" "$home" && answers 404 error
ask "GET /" "Host: evil.example" && answers 403 "--allow-host"
ask "GET /" "Host: localhost:1" && answers 200 "<!doctype html>"
ask "GET /" "$home" "$home" && answers 403 Host
ask "PUT /" "$home" && answers 405 "Allow: GET, HEAD"
ask "GET /api/request" "$home" && answers 405 "Allow: POST"
ask "POST /api/request" "$home" "Content-Length: 0" && answers 403 "--allow-control"
stop

expect_request() { # CODE WORDS BODY HEADER...: a request to the daemon
    local code=$1 words=$2 body=$3
    shift 3
    exec 3<>"/dev/tcp/127.0.0.1/$port"
    { printf 'POST /api/request HTTP/1.1\r\n' && printf '%s\r\n' "$@" "$home" "Connection: close" "Content-Length: ${#body}" "" &&
        printf '%s' "$body"; } >&3 2>/dev/null
    cat <&3 >out
    exec 3>&-
    answers "$code" "$words"
}

# ---- control ----
start --allow-control --token-file token --allow-host viewer.example
home="Host: $address"
! grep -q 0123456789abcdef served said || fail "the token of a file is printed"
json="Content-Type: application/json" right="Authorization: Bearer 0123456789abcdef"
expect_request 401 "the token is missing or wrong" '{"op":"stop"}' "$json"
expect_request 401 "the token is missing or wrong" '{"op":"stop"}' "$json" "Authorization: Bearer 0123456789abcdeg"
expect_request 415 "not application/json" '{"op":"stop"}' "$right"
expect_request 403 "another site" '{"op":"stop"}' "$json" "$right" "Origin: http://evil.example"
expect_request 403 "another site" '{"op":"stop"}' "$json" "$right" "Origin: null"
expect_request 403 "another site" '{"op":"stop"}' "$json" "$right" "Sec-Fetch-Site: cross-site"
expect_request 400 "'op' is missing" '{}' "$json" "$right"
expect_request 400 "3 numbers, 7 are expected" '{"op":"initial_pose","pose":[1,2,3]}' "$json" "$right"
expect_request 403 "may not ask for this operation" '{"op":"shutdown"}' "$json" "$right"
expect_request 503 "no daemon answers" '{"op":"stop"}' "$json" "$right" "Origin: http://$address"
expect_request 413 "longer than 4096 bytes" "$(printf '%5000s' '{}')" "$json" "$right"
ask "GET /" "Host: VIEWER.example" && answers 200 "<!doctype html>"
# A stream and half a request are open at the end.
exec 3<>"/dev/tcp/127.0.0.1/$port" 4<>"/dev/tcp/127.0.0.1/$port"
printf 'GET /api/events HTTP/1.1\r\n%s\r\n\r\n' "$home" >&3
printf 'GET / HTTP/1.1\r\n' >&4
while read -r line <&3 && [[ $line != *'"mode":"live"'* ]]; do :; done
[[ $line = *'"allow_control":true'* ]] || fail "the stream begins with: $line"
stop
exec 3>&- 4>&-

start --allow-control
grep -qE '^ndt-web: http://127\.0\.0\.1:[0-9]+/#token=[A-Za-z0-9._~]{32}$' served || fail "the token is not printed: $(cat served)"
stop

# ---- a finished replay ----
"$bin/ndt-sim" --seed 3 --out drive --scans 20 --beams 16 --columns 900 --map-spacing 0.25 --force >/dev/null || fail "ndt-sim"
"$bin/ndtd" --replay drive/drive.bag --map drive/map.pcd --set preprocess.deskew=time --output replay >/dev/null 2>&1 || fail "ndtd --output"
start --replay-dir replay
home="Host: $address"
ask "GET /api/replay" "$home" && answers 200 '"begin_ns":'
ask "GET /api/history?from=19" "$home" && answers 200 '{"first":19,"results":[{'
says '"seq":19,'
ask "GET /api/timing?seq=0" "$home" && answers 200 '"iterations":[{"iteration":0,'
ask "GET /api/scan?seq=19" "$home" && answers 200 NDTS
ask "GET /api/scan?seq=20" "$home" && answers 404 "nothing is kept of scan 20"
ask "GET /readyz" "$home" && answers 200 ok
stop
printf '{"seq":0,"stamp_ns":1}\n{"seq":1,\n' >replay/results.jsonl
expect 3 "replay/results.jsonl: line 2: JSON: byte" --replay-dir replay

[ "$failures" -eq 0 ] && echo "ndt-web: all good"
exit $((failures > 0))
