#!/usr/bin/env bash
# Builds the image of the Dockerfile with buildah, without a registry, and tries it: as its user, with its entry point.
#   tools/docker/check_image.sh [BASE.tar]     BASE.tar: root file system of Debian 12; default: made with mmdebstrap
# Needs root, buildah, and mmdebstrap or BASE.tar. Exit codes: 0 all good, 1 failed, 3 could not be tried.
set -euo pipefail
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
export STORAGE_DRIVER=vfs BUILDAH_ISOLATION=chroot
here() { buildah --root "$work/storage" --runroot "$work/run" "$@"; }
trap 'here rm -a >/dev/null 2>&1 || true; rm -rf "$work"' EXIT
command -v buildah >/dev/null || { echo "check_image: no buildah" >&2; exit 3; }

base=${1:-$work/base.tar}
[ -e "$base" ] || mmdebstrap --quiet --mode=root --variant=minbase \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
    bookworm "$base" || exit 3
scratch=$(here from scratch)
here add -q "$scratch" "$base" / >/dev/null
here commit -q "$scratch" localhost/debian:12 >/dev/null
here rm "$scratch" >/dev/null
commit=$(git -c safe.directory='*' rev-parse --short=12 HEAD 2>/dev/null || echo unknown)
# PyPI may be behind a proxy that this machine trusts.
cp /etc/ssl/certs/ca-certificates.crt "$work/ca.crt" 2>/dev/null || exit 3
printf '[global]\ncert = /ca.crt\n' >"$work/pip.conf"
here bud -q --layers --volume "$work/ca.crt:/ca.crt:ro" --volume "$work/pip.conf:/etc/pip.conf:ro" --format docker -f tools/docker/Dockerfile --build-arg BASE=localhost/debian:12 --build-arg COMMIT="$commit" \
    --ignorefile .dockerignore -t ndtd . >"$work/log" 2>&1 || { tail -n 30 "$work/log"; echo "check_image: the image was not built"; exit 1; }

image=$(here from localhost/ndtd)
failures=0
check() { # "WHAT" COMMAND...
    local what=$1
    shift
    if "$@" >"$work/said" 2>&1; then echo "ok: $what"; else
        echo "FAILED: $what: $(tail -n 5 "$work/said")"
        failures=$((failures + 1))
    fi
}
inside() { here run "$image" -- "$@"; }
not() { ! "$@"; }
says() { # TEXT COMMAND...
    local text=$1
    shift
    "$@" 2>&1 | tee "$work/said" | grep -q -- "$text"
}
configured() { here inspect --type image --format "{{.Docker.Config.$1}}" localhost/ndtd; }
check "the version names the commit" says "(commit $commit)" inside ndtd --version
check "the user is ndtd" says '^ndtd$' inside id -un
check "no compiler" not inside sh -c 'command -v cc gcc c++ cmake'
check "no headers" not inside test -e /usr/include/ndt
check "the entry point is ndtd" says '^\[ndtd\]$' configured Entrypoint
check "there is a health check" says 'ndt-ctl' configured Healthcheck
check "sockets and recordings can be written" inside sh -c 'touch /run/ndtd/x /var/lib/ndtd/x && rm /run/ndtd/x /var/lib/ndtd/x'
check "a simulated drive" inside ndt-sim --seed 3 --scans 20 --out /tmp/drive
check "replays" inside ndtd --replay /tmp/drive/drive.bag --map /tmp/drive/map.pcd --max-untrusted 0
grep 'hash' "$work/said" || true
# shellcheck disable=SC2016 # expands inside
check "lives, is healthy, ends" inside sh -c 'ndtd --map /tmp/drive/map.pcd & pid=$!
    for i in $(seq 100); do ndt-ctl health --expect map && break; sleep 0.1; done
    ndt-ctl health --expect map && kill $pid && wait $pid'
check "importers, exporters and reports" inside sh -c 'ndt-import --version && ndt-export --version && ndt-report --version'
check "a map of the drive" inside ndt-map build /tmp/drive/drive.bag -o /tmp/map.pcd
check "a report" inside sh -c 'cd /tmp && ndtd --replay drive/drive.bag --map drive/map.pcd --output run && ndt-report run --out report.html'
# shellcheck disable=SC2016
check "the page" inside sh -c 'ndt-web --listen 127.0.0.1:18080 & pid=$!
    for i in $(seq 100); do python3 -c "import urllib.request; urllib.request.urlopen(\"http://127.0.0.1:18080/healthz\")" 2>/dev/null && break; sleep 0.1; done
    python3 -c "import urllib.request; urllib.request.urlopen(\"http://127.0.0.1:18080/healthz\")" && kill $pid'
# What a registry tells is the compressed size.
for target in '' daemon; do
    [ -z "$target" ] || here bud -q --layers --volume "$work/ca.crt:/ca.crt:ro" --volume "$work/pip.conf:/etc/pip.conf:ro" --format docker \
        -f tools/docker/Dockerfile --target $target --build-arg BASE=localhost/debian:12 --build-arg COMMIT="$commit" --ignorefile .dockerignore \
        -t ndtd-$target . >"$work/log" 2>&1 || { echo "FAILED: $target: $(tail -n 5 "$work/log")"; failures=$((failures + 1)); }
    name=ndtd${target:+-$target}
    here push -q "localhost/$name" "docker-archive:$work/$name.tar" >/dev/null 2>&1
    packed=$(gzip -c "$work/$name.tar" | wc -c)
    echo "image $name: $(here images --format '{{.Size}}' "localhost/$name"), compressed $((packed / 1000000)) MB"
    [ "$packed" -lt 250000000 ] || { echo "FAILED: $name is larger than 250 MB, compressed"; failures=$((failures + 1)); }
done
echo "$failures failures"
[ "$failures" = 0 ]
