#!/usr/bin/env bash
# Every program: --help and --version, man page and completion for bash and zsh, unknown options; the commit.
#   test_help.sh BIN_DIR      0: all as expected
set -uo pipefail
bin=$(cd "${1:?the folder with the programs}" && pwd)
root=$(cd "$(dirname "$0")/../.." && pwd)
describe=$root/tools/cmake/describe_program.sh
names=(ndtd)
for folder in "$root"/tools/ndt-*/; do names+=("$(basename "$folder")"); done
[ -x "$bin/ndt-web" ] || for i in "${!names[@]}"; do [ "${names[i]}" != ndt-web ] || unset "names[i]"; done # built without libmicrohttpd
source "$(dirname "$0")/steps.sh"
cd "$dir" || exit 1

# quietly COMMAND...: exit status 0, something on stdout, nothing on stderr
quietly() {
    "$@" >out 2>err || fail "$*: exit status $?: $(cat err)"
    [ -s out ] || fail "$*: prints nothing"
    [ ! -s err ] || fail "$*: prints on stderr: $(cat err)"
}

for name in "${names[@]}"; do
    program=$bin/$name
    quietly "$program" --help
    grep -qi "^usage: $name" out || fail "$name --help: no line of usage"
    quietly "$program" --version
    [ "$(wc -l <out)" -eq 1 ] || fail "$name --version: not one line"
    grep -qE "^$name (\(ndtd\) )?[0-9]+\.[0-9]+\.[0-9]+ \(commit ([0-9a-f]{12}|unknown)\)$" out || fail "$name --version: $(cat out)"
    "$program" --no-such-option >out 2>err
    [ $? -eq 2 ] || fail "$name --no-such-option: exit status is not 2"
    [ "$(wc -l <err)" -eq 1 ] || fail "$name --no-such-option: not one line on stderr"

    quietly bash "$describe" bash 1.2 "$program" /dev/stdout
    mv out "$name.completion"
    bash -n "$name.completion" || fail "$name: the completion is not a bash script"
    quietly bash "$describe" zsh 1.2 "$program" /dev/stdout
    mv out "_$name"
    ! command -v zsh >/dev/null || zsh -f -n "_$name" || fail "$name: the completion is not a zsh script"
    command -v help2man >/dev/null || continue
    quietly help2man --no-info "$program"
    bash "$describe" man 1.2 "$program" "$name.1" 2>err || fail "man page of $name: $(cat err)"
    [ ! -s err ] || fail "man page of $name: $(cat err)"
    grep -q '^\\fB\\-\\-version\\fR' "$name.1" || fail "man page of $name: no --version"
    grep -q "^$name \\\\- .* " "$name.1" || fail "man page of $name: no summary"
    ! command -v groff >/dev/null || [ -z "$(groff -man -Tascii -ww -z "$name.1" 2>&1)" ] ||
        fail "man page of $name: $(groff -man -Tascii -ww -z "$name.1" 2>&1 | head -n 3)"
done
[ ! -e ndt-bag.1 ] || grep -q '\\-\\-salvage' ndt-bag.1 || fail "man page of ndt-bag: nothing about its commands"

# completes "words of the command line" "completions"; the last word is the one to complete
completes() {
    local words
    read -ra words <<<"$1"
    [[ $1 != *' ' ]] || words+=("")
    # shellcheck disable=SC2034 # COMP_*: read by the completion
    COMP_WORDS=("${words[@]}") COMP_CWORD=$((${#words[@]} - 1)) COMPREPLY=()
    "_${words[0]//-/_}"
    [ "${COMPREPLY[*]}" = "$2" ] || fail "completion of '$1': '${COMPREPLY[*]}', not '$2'"
}
for name in "${names[@]}"; do
    # shellcheck disable=SC1090
    . "./$name.completion"
done
completes 'ndt-bag ' '--help --version pack info check cut join restamp dump'
completes 'ndt-bag c' 'check cut'
completes 'ndt-bag cut --s' '--scans --salvage'
completes 'ndt-bag cut ' ''
completes 'ndt-bag pack --out -' ''
completes 'ndt-sim --map-sp' '--map-spacing'
completes 'ndt-echo --format t' ''
completes 'ndt-ctl re' 'record reload'
completes 'ndt-ctl localize --h' '--heading --heading-deviation --help'
completes 'ndtd --repl' '--replay'
completes 'ndtd --print' '--print-config'
completes 'ndtd --set preprocess.des' 'preprocess.deskew= preprocess.deskew_passes='
completes 'ndt-bench drain --set ndt.lev' 'ndt.levels='

# zsh_gives "words of the command line" "text": what the completion tells zsh's functions
zsh_gives() {
    zsh -f -c 'words=(${(s: :)1}); CURRENT=$2; fpath=("$PWD" $fpath); autoload -Uz _${words[1]}
        _arguments() { print -rl -- "$@"; } ; _describe() { print -rl -- ${(P)2}; } ; _${words[1]}' \
        zsh "$1" "$(wc -w <<<"$1")" >out 2>&1 || fail "zsh completion of '$1': $(cat out)"
    grep -qF -- "$2" out || fail "zsh completion of '$1': no '$2' in $(cat out)"
}
if command -v zsh >/dev/null; then
    zsh_gives 'ndt-bag c' 'cut:copies a part of a bag'
    zsh_gives 'ndt-bag cut --s' '*--salvage['
    zsh_gives 'ndtd --repl' '*--replay[Localise the scans of a bag'
    zsh_gives 'ndtd --set' ':KEY=VALUE:{compadd'
fi

# The commit: of the repository, of an archive, of neither.
if command -v git >/dev/null && command -v cmake >/dev/null; then
    commit_of() { # FOLDER: with tools/cmake in it
        # shellcheck disable=SC2016 # for CMake
        printf 'set(PROJECT_SOURCE_DIR "%s")\ninclude("%s/tools/cmake/commit.cmake")\nmessage("${NDT_COMMIT}")\n' "$1" "$1" >commit_of.cmake
        cmake -P commit_of.cmake 2>&1
    }
    git_here() { git -C tree -c user.name=test -c user.email=test@localhost "$@"; }
    mkdir -p tree/tools/cmake
    cp "$root"/tools/cmake/{commit.cmake,commit.txt,.gitattributes} tree/tools/cmake
    [ "$(commit_of "$dir/tree")" = unknown ] || fail "commit without a repository: $(commit_of "$dir/tree")"
    git -c init.defaultBranch=main init -q tree && git_here add . && git_here commit -qm test
    head=$(git_here rev-parse --short=12 HEAD)
    [ "$(commit_of "$dir/tree")" = "$head" ] || fail "commit of a repository: $(commit_of "$dir/tree"), not $head"
    git_here archive --prefix=archive/ HEAD | tar -x
    [ "$(commit_of "$dir/archive")" = "$head" ] || fail "commit of an archive: $(commit_of "$dir/archive"), not $head"
fi

[ "$failures" -eq 0 ] || exit 1
echo "--help, --version, man pages and completion: all as expected"
