#!/usr/bin/env bash
# tools/site builds the site without a warning, it is good (check_site.py), and a fault in a page or a header stops it.
#   site.sh WORK_DIR PYTHON_DIR      0: good, 77: PyPI, Doxygen or Python 3.11 are missing
# PYTHON_DIR: that of tests/python/install.sh, whose build makes the wheel. NDT_CHROMIUM: the browser.
set -uo pipefail
work=${1:?folder to write to} python=${2:?folder of install.sh}
here=$(cd "$(dirname "$0")" && pwd)
source=$(cd "$here/../.." && pwd)
source "$here/../cli/steps.sh"
[ -e "$python/ready" ] || { echo "skipped: the package is not installed, see python_install"; exit 77; }
mkdir -p "$work" && work=$(cd "$work" && pwd) && python=$(cd "$python" && pwd) || exit 1
rm -rf "$work/wheel" "$work/tree" "$work/site"
PATH=$python/venv/bin:$PATH "$python/venv/bin/python" -m pip --disable-pip-version-check wheel --no-build-isolation --no-deps -w "$work/wheel" \
    -C build-dir="$python/build" -C cmake.define.NDT_PROGRAMS=OFF "$source/tools/python" >"$work/wheel.log" 2>&1 ||
    { tail -n 30 "$work/wheel.log"; exit 1; }
wheel=$(echo "$work"/wheel/*.whl)

"$source/tools/site" --package "$wheel" --venv "$work/venv" "$work/site" || exit $?
"$python/venv/bin/python" "$here/check_site.py" "$work/site" "${NDT_CHROMIUM:-$(command -v chromium || command -v chromium-browser)}" ||
    fail "the site, see above"
for page in index docs/sizing docs/SECURITY CHANGELOG python-api c-api/session_8h; do
    [ -s "$work/site/$page.html" ] || fail "no $page.html"
done
grep -q 'ndtd\.Aligner\.align' "$work/site/python-api.html" || fail "the Python API is not in its page"
grep -q 'ndt-demo' "$work/site/index.html" || fail "the README is not in the first page"
cp -r "$work/site" "$work/broken" && rm "$work/broken/docs/web.html" && "$here/check_site.py" "$work/broken" >/dev/null &&
    fail "check_site.py does not see that a page is missing"
rm -rf "$work/broken"

# A fault stops it, and the site that is there stays.
mkdir "$work/tree"
cp -r "$source"/{README.md,CONTRIBUTING.md,CHANGELOG.md,CMakeLists.txt,config,docs,gpu,proto,src,tools} "$work/tree"
planted() { # WHAT FILE TEXT WORD...: each WORD is in what is said
    local word
    cp "$work/tree/$2" "$work/kept"
    printf '%s\n' "$3" >>"$work/tree/$2"
    if "$work/tree/tools/site" --package "$wheel" --venv "$work/venv" "$work/site" >"$work/planted.log" 2>&1; then
        fail "$1 goes through"
    fi
    for word in "${@:4}"; do
        grep -qF -- "$word" "$work/planted.log" || fail "$1: no '$word' in: $(cat "$work/planted.log")"
    done
    cp "$work/kept" "$work/tree/$2"
    [ -s "$work/site/index.html" ] || fail "$1: the earlier site is gone"
}
planted "a link to nowhere, a heading that is not there" docs/web.md '[x](nowhere.md) [x](operations.md#no-such-heading)' \
    nowhere.md no-such-heading
planted "a fault of Doxygen" src/core/include/ndt/map.h '/** @param nothing of no function */ int ndt_planted(void);' ndt_planted
mkdir -p "$work/other" && touch "$work/other/mine"
"$source/tools/site" --package "$wheel" --venv "$work/venv" "$work/other" 2>/dev/null
[[ $? = 2 && -e $work/other/mine ]] || fail "a folder with other files is not left alone"
rm -rf "$work/tree"
[ "$failures" = 0 ]
