#!/usr/bin/env bash
# Lint rules. One rule per call, so that ctest shows which one is broken:
#   lint.sh RULE SOURCE_DIR BIN_DIR CC CXX     (CXX may be "none")
# Exit codes: 0 passed, 1 broken (one line per place), 77 skipped.
set -uo pipefail
rule=${1:?rule} source=${2:?source folder} bin=${3:?bin folder} cc=${4:?C compiler} cxx=${5:?C++ compiler}
here=$(cd "$(dirname "$0")" && pwd)
style=$here/../../.clang-format
rules=(layers headers_c headers_cxx functions names top_level paths circles includes format shell)
cd "$source" || exit 1
broken=0

complain() {
    echo "lint rule '$rule': $*"
    broken=1
}

# All files of the project, committed or not.
files() {
    git -c safe.directory='*' ls-files -co --exclude-standard -- "$@" 2>/dev/null | while read -r f; do
        [ -f "$f" ] && echo "$f"
    done
}
sources() { files . | grep -E '\.(c|h|cu|cuh|cpp)$'; }
[ "$rule" = selftest ] || [ -n "$(files .)" ] || { echo "not a git checkout: the list of files is not known"; exit 77; }

# No line in the files of FOLDER... may include a header that matches PATTERN.
no_include() {
    local pattern=$1 hits
    shift
    hits=$(files "$@" | grep -E '\.(c|h|cu|cuh|cpp)$' | xargs -r grep -nE "^[[:space:]]*#[[:space:]]*include[[:space:]]*[<\"]($pattern)")
    [ -z "$hits" ] || complain "a layer includes a higher or parallel one:"$'\n'"$hits"
}

# Names of headers that live in FOLDER itself or in its subfolders, as an include pattern.
private_headers() {
    files "$@" | grep -E '\.h$' | grep -v /include/ | sed 's#.*/##; s#\.#\\.#; s#$#[">]#' | paste -sd'|'
}

# Public and private headers of the parts of the daemon, as an include pattern.
headers_of() { # PART...
    local part
    for part in "$@"; do
        files "src/$part" | grep -E '/include/ndtd/.*\.h$' | sed 's#.*/#ndtd/#; s#\.#\\.#; s#$#[">]#'
        private_headers "src/$part" | tr '|' '\n'
    done | grep . | paste -sd'|'
}

# A part of the daemon, and those above it and beside it, which it does not include.
parts=("base config localizer replay live ndtd" "config localizer replay live ndtd" "localizer replay live ndtd"
    "replay live ndtd" "live replay ndtd")

check_layers() {
    local tools tests part others
    tools=$(private_headers tools) tests=$(private_headers tests)
    no_include 'ndt_track/|ndt_odometry/|ndt_search/|ndt_io/|ndt_proto/|ndtd/|ndt_cuda/|backends\.h' src/core
    no_include 'ndt_odometry/|ndt_search/|ndt_io/|ndt_proto/|ndtd/|ndt_cuda/|backends\.h' src/track
    no_include 'ndt_search/|ndt_io/|ndt_proto/|ndtd/|ndt_cuda/|backends\.h' src/odometry
    no_include 'ndt_track/|ndt_odometry/|ndt_io/|ndt_proto/|ndtd/|ndt_cuda/|backends\.h' src/search
    no_include 'ndt_track/|ndt_odometry/|ndt_search/|ndt_proto/|ndtd/|ndt_cuda/|backends\.h' src/io
    no_include 'ndt_track/|ndt_odometry/|ndt_search/|ndt_io/|ndtd/|ndt_cuda/|backends\.h' proto
    no_include 'ndt_track/|ndt_odometry/|ndt_search/|ndt_io/|ndt_proto/|ndtd/|backends\.h' gpu
    no_include 'ndt_track/|ndt_odometry/|ndt_search/|ndt_io/|ndt_proto/|ndtd/' src/backends
    no_include 'ndt_track/|ndt_odometry/|ndt_search/|ndt_io/|ndt_proto/|ndt_cuda/|backends\.h' src/base
    for part in "${parts[@]}"; do
        # shellcheck disable=SC2086
        others=$(headers_of ${part#* })
        [ -z "$others" ] || no_include "$others" "src/${part%% *}"
    done
    no_include '([^">]*/)?tools/' src proto gpu tests
    no_include '([^">]*/)?tests/' src proto gpu tools
    [ -z "$tools" ] || no_include "$tools" src proto gpu
    [ -z "$tests" ] || no_include "$tests" src proto gpu tools
}

public_headers() {
    files src gpu proto | grep -E '/include/.*\.h$'
}

# Definitions required before a header: point_math.h is a template over the real type.
before_header() {
    grep -q '#error "define NDT_REAL' "$1" || return 0
    echo '#define NDT_REAL float'
    echo '#define NDT_NAME(x) x##_f'
    echo '#define NDT_DEVICE'
    echo 'static inline float ndt_exp_f(float x) { return x; }'
    echo 'static inline float ndt_root_f(float x) { return x; }'
}

# Every public header, alone, with nothing but the public include folders.
compile_headers() {
    local flags header out
    flags=$(public_headers | grep /include/ | sed 's#/include/.*#/include#' | sort -u | sed 's/^/-I/')
    [ -n "$flags" ] || complain "no public header was found"
    for header in $(public_headers); do
        # shellcheck disable=SC2086
        out=$("$@" -fsyntax-only -Wall -Wextra -Wpedantic -Werror $flags -x "$language" - \
            <<<"$(before_header "$header")"$'\n'"#include \"$PWD/$header\""$'\n''struct a_header_may_hold_macros_only;' 2>&1) ||
            complain "$header does not compile alone:"$'\n'"$(head -n 6 <<<"$out")"
    done
}

check_headers_c() {
    language=c
    compile_headers "$cc" -std=gnu17
}

check_headers_cxx() {
    [ "$cxx" != none ] || { echo "skipped: no C++ compiler"; exit 77; }
    language=c++
    compile_headers "$cxx" -std=c++17
}

check_functions() {
    files src gpu proto tools tests | grep -E '\.(c|h|cu|cuh)$' | xargs -r awk -f "$here/function_length.awk" | sort -n |
        awk -v limit=80 '
            { length_of[NR] = $1; if ($1 > limit) { print "longer than " limit " lines: " $0; bad = 1 } }
            END {
                if (NR == 0) { print "no function was found"; exit 1 }
                printf "%d functions: median %d, 90th percentile %d, longest %d lines\n", NR,
                    length_of[int((NR + 1) / 2)], length_of[int(0.9 * NR + 0.5)], length_of[NR]
                exit bad
            }' || complain "see above"
}

# File names are unique, except CMakeLists.txt, __init__.py and data files.
check_names() {
    local twice
    twice=$(files . | grep -E '\.(c|h|cu|cuh|cpp|sh|py|awk|cmake|yaml)$' | sed 's#.*/##' | grep -v "^__init__.py$" | sort | uniq -d)
    [ -z "$twice" ] || complain "file names that occur twice:" $twice
}

check_top_level() {
    local name
    for name in CMakeLists.txt CMakePresets.json README.md CONTRIBUTING.md CHANGELOG.md LICENSE docs src gpu proto config tests tools; do
        [ -e "$name" ] || complain "$name is missing"
    done
    for name in $(files . | sed 's#/.*##' | sort -u); do
        case $name in
        CMakeLists.txt | CMakePresets.json | README.md | CONTRIBUTING.md | CHANGELOG.md | LICENSE | docs | src | gpu | proto | config | tests | tools | .*) ;;
        *) complain "$name does not belong to the top level" ;;
        esac
    done
}

# Paths of one machine.
check_paths() {
    local hits
    hits=$(files . | xargs grep -nIE '(^|[^][A-Za-z0-9_.)}*/-])/(work|root|home|Users)/' | cut -c1-200)
    [ -z "$hits" ] || complain "paths of one machine:"$'\n'"$hits"
}

# No circular dependencies: headers by their includes, sources by the symbols of their objects.
check_circles() {
    command -v python3 >/dev/null && command -v nm >/dev/null || { echo "skipped: no python3 or no nm"; exit 77; }
    sources | xargs python3 "$here/source_rules.py" circles "$bin/.." || complain "see above"
}

# Headers are found by the include folders of their library; a source is compiled, never included.
check_includes() {
    local hits
    hits=$(sources | xargs -r grep -nE '^[[:space:]]*#[[:space:]]*include[[:space:]]*[<"](\.\./|[^">]*/\.\./|[^">]*\.(c|cu|cpp)[">])')
    [ -z "$hits" ] || complain "a path upward, or a source that is included:"$'\n'"$hits"
}

check_format() {
    command -v clang-format >/dev/null || { echo "skipped: no clang-format"; exit 77; }
    local out
    out=$(sources | xargs -r clang-format --style=file:"$style" --dry-run -Werror 2>&1) ||
        complain "not as clang-format writes it:"$'\n'"$(grep error: <<<"$out" | cut -d: -f1,2 | head -n 40)"
}

# Every shell script, with shellcheck's errors and warnings.
check_shell() {
    command -v shellcheck >/dev/null || { echo "skipped: no shellcheck"; exit 77; }
    local scripts
    scripts=$(files . | while read -r f; do head -c 64 "$f" | head -n 1 | grep -aqE '^#!.*\b(ba)?sh\b' && echo "$f"; done)
    [ -n "$scripts" ] || { complain "no shell script was found"; return; }
    xargs shellcheck -x -P SCRIPTDIR -S warning <<<"$scripts" || complain "see above"
}

# The rules must be able to fail: a folder that violates all of them.
check_selftest() {
    local r
    broken_tree=$(mktemp -d) || exit 1
    trap 'rm -rf "$broken_tree"' EXIT
    mkdir -p "$broken_tree"/{src/core/include/ndt,src/io,config,extra} && cd "$broken_tree" || exit 1
    git init -q . || { echo "skipped: no git"; exit 77; }
    echo '#include "ndt_io/bag.h"' >src/core/twice.c
    cp src/core/twice.c src/io/twice.c
    echo 'struct missing field;' >src/core/include/ndt/alone.h
    { echo 'int main(void)'; echo '{'; yes '    ;' | head -n 90; echo '}'; } >extra/long.c
    mv extra/long.c src/io/long.c
    printf 'file: "/%s/someone/map.pcd"\n' home >extra/settings.txt
    printf '#include "../io/bag.h"\nint knot_count;\n' >src/core/up.c
    printf '#!/bin/bash\ncd /nowhere\n' >extra/script.sh
    # Every include that the parts of the daemon forbid each other, of a public header and of a private one.
    for r in "${parts[@]}"; do
        for other in ${r#* }; do
            mkdir -p "src/$other/include/ndtd" "src/${r%% *}"
            echo "int of_$other;" | tee "src/$other/include/ndtd/public_$other.h" >"src/$other/private_$other.h"
            echo "#include \"ndtd/public_$other.h\"" >"src/${r%% *}/${r%% *}_to_$other.c"
            echo "#include \"private_$other.h\"" >"src/${r%% *}/${r%% *}_into_$other.c"
        done
    done
    # A circle by headers, and one by functions only.
    echo '#include "egg.h"' >src/io/hen.h
    echo '#include "hen.h"' >src/io/egg.h
    echo 'int pong(int); int ping(int x) { return pong(x); }' >src/io/ping.c
    echo 'int ping(int); int pong(int x) { return ping(x); }' >src/io/pong.c
    mkdir -p objects/io.dir no_programs && printf 'objects\nno_programs\nreport\n' >.gitignore
    for r in ping pong; do "$cc" -O0 -c src/io/$r.c -o objects/io.dir/$r.c.o || exit 1; done
    for r in "${rules[@]}"; do
        if [ "$r" = headers_cxx ] && [ "$cxx" = none ]; then
            continue
        fi
        "$here/lint.sh" "$r" "$broken_tree" "$broken_tree/no_programs" "$cc" "$cxx" >report 2>&1
        case "$r $?" in
        "config 77" | "format 77" | "shell 77" | *" 1") ;;
        *) complain "rule '$r' does not see that it is broken: $(cat report)" ;;
        esac
        if [ "$r" = layers ]; then
            for other in src/*/*_to_*.c src/*/*_into_*.c; do
                grep -q "^$other:1:" report || complain "not the forbidden include of $other: $(cat report)"
            done
        fi
        if [ "$r" = circles ]; then
            grep -q 'circle of files: egg.h, hen.h' report && grep -q 'circle of files: ping, pong' report ||
                complain "not both circles: $(cat report)"
        fi
    done
}

[[ " ${rules[*]} selftest " = *" $rule "* ]] || { complain "there is no such rule"; exit 1; }
"check_$rule"
exit $broken
