#!/usr/bin/env bash
# The installed libraries from outside: the examples by pkg-config and by CMake, shared and static, in C and in C++,
# with the numbers of ndtd itself; what the shared library exports and needs; wrong use.
#   test_library.sh BIN_DIR      (the build folder is the one above it)
# Exit codes: 0 passed, 1 failed, 77 skipped: a sanitizer build, or a tool is missing.
set -uo pipefail
bin=$(cd "${1:?BIN_DIR}" && pwd)
build=$(dirname "$bin")
[ -f "$build/cmake_install.cmake" ] || { echo "no build folder above $bin"; exit 77; }
cached() { sed -n "s/^$1:[^=]*=//p" "$build/CMakeCache.txt"; }
[ -z "$(cached NDT_SANITIZE)" ] || { echo "sanitizer builds are not installed"; exit 77; }
for tool in cmake pkg-config cc nm readelf; do
    command -v "$tool" >/dev/null || { echo "skipped: no $tool"; exit 77; }
done
source "$(dirname "$0")/steps.sh"
cd "$dir" || exit 1
unset DESTDIR CFLAGS CXXFLAGS LDFLAGS

cmake --install "$build" --prefix "$dir/moved" >log 2>&1 || { fail "cmake --install: $(tail -n 5 log)"; exit 1; }
mv moved usr # pkg-config and CMake files locate the libraries relative to themselves
lib=$dir/usr/$(cached CMAKE_INSTALL_LIBDIR)
version=$(cached CMAKE_PROJECT_VERSION)
examples=$dir/usr/share/doc/ndtd/examples
export PKG_CONFIG_PATH=$lib/pkgconfig
is_shared=$([ "$(cached NDT_SHARED)" = ON ] && echo 1 || echo 0)

# The numbers of ndtd.
"$bin/ndt-sim" --seed 5 --scans 15 --odometry --out drive >log 2>&1 || fail "ndt-sim: $(cat log)"
options=(preprocess.deskew=time cpu.threads=2)
sets=()
for option in "${options[@]}"; do sets+=(--set "$option"); done
"$bin/ndtd" --replay drive/drive.bag --map drive/map.pcd "${sets[@]}" --out told.tum >log 2>&1 || fail "ndtd --replay: $(tail -n 3 log)"
grep -v '^#' told.tum >expected.tum
[ "$(wc -l <expected.tum)" -ge 14 ] || fail "ndtd localised $(wc -l <expected.tum) of 15 scans"
# A scan and its true pose, as files.
scan=scan.pcd
"$bin/ndt-bag" dump --type scan --limit 5 --points 100000 drive/drive.bag | tail -n 1 >scan.json
sed 's/.*"xyz_m":\[\[//; s/\]\].*//; s/\],\[/\n/g; s/,/ /g' scan.json >points
count=$(wc -l <points)
{
    printf '%s\n' 'VERSION 0.7' 'FIELDS x y z' 'SIZE 4 4 4' 'TYPE F F F' 'COUNT 1 1 1' "WIDTH $count" 'HEIGHT 1' "POINTS $count" 'DATA ascii'
    cat points
} >$scan
stamp=$(sed 's/.*"stamp_ns":\([0-9]*\).*/\1/' scan.json)
truth=$("$bin/ndt-bag" dump --type truth drive/drive.bag | grep "\"stamp_ns\":$stamp," | sed 's/.*"pose":\[//; s/\].*//')
guess=$(awk -F, '{ printf "%.2f,%.2f,%.2f,%.1f", $1 + 0.4, $2 - 0.3, $3, 2 * atan2($6, $7) * 57.29578 + 1 }' <<<"$truth")

# run_session NAME PROGRAM: the poses of ndtd, bit for bit
run_session() {
    "$2" drive/drive.bag 2>said && fail "$1: one argument is enough"
    "$2" drive/map.pcd drive/drive.bag "${options[@]}" >poses.tum 2>said || { fail "$1: $(cat said)"; return; }
    cmp -s poses.tum expected.tum || fail "$1: other poses than ndtd: $(diff poses.tum expected.tum | head -n 2)"
}

# run_align NAME PROGRAM: converges beside the truth, the same everywhere
run_align() {
    "$2" drive/map.pcd "$scan" "$guess" >aligned 2>said || { fail "$1: $(cat said aligned)"; return; }
    [ "$(grep -c '^covariance' aligned)" -eq 6 ] || fail "$1: $(cat aligned)"
    awk -v truth="$truth" '/^pose/ { split(truth, t, ","); d = sqrt(($2 - t[1])^2 + ($3 - t[2])^2); exit !(d < 0.3) }' aligned ||
        fail "$1: $(grep ^pose aligned), the truth is $truth"
    [ -e aligned.first ] || cp aligned aligned.first
    cmp -s aligned aligned.first || fail "$1: $(cat aligned), before $(cat aligned.first)"
}

# try NAME COMPILER LIBRARY-FLAGS...: both examples
try() {
    local name=$1 compiler=$2 example
    shift 2
    for example in align session; do
        if $compiler "$examples/example_$example.c" "$@" -o "$example" 2>log; then
            "run_$example" "$name" "./$example"
        else
            fail "$name: $(head -n 10 log)"
        fi
    done
}

has_cxx=$(command -v c++ >/dev/null && echo 1 || echo 0)
# shellcheck disable=SC2034 # by name
c='cc -std=c17 -Wall -Wextra -Wpedantic -Werror' cxx='c++ -std=c++17 -Wall -Wextra -Wpedantic -Werror -x c++'
# shellcheck disable=SC2046 # flags are words
for language in c cxx; do
    [ $language = c ] || [ "$has_cxx" = 1 ] || { echo "no C++ compiler here: left out"; continue; }
    [ "$is_shared" = 0 ] || LD_LIBRARY_PATH=$lib try "pkg-config, shared, $language" "${!language}" -x none $(pkg-config --cflags --libs ndtd)
    try "pkg-config, static, $language" "${!language}" -x none $(pkg-config --static --cflags --libs ndt-localizer)
done

# CMake; programs in a build tree find the shared library by themselves.
for static in ON OFF; do
    [ $static"$is_shared" != OFF0 ] || continue
    if cmake -S "$examples" -B "cmake-$static" -DCMAKE_PREFIX_PATH="$dir/usr" -DNDTD_STATIC=$static >log 2>&1 &&
        cmake --build "cmake-$static" >>log 2>&1; then
        run_session "CMake, static $static" "cmake-$static/example_session"
        run_align "CMake, static $static" "cmake-$static/example_align"
        [ "$has_cxx" = 0 ] || run_session "CMake, C++, static $static" "cmake-$static/example_localizer"
    else
        fail "CMake, static $static: $(tail -n 20 log)"
    fi
done

# refused STATUS "TEXT" ARGUMENT...: of the last example_session, in one line
refused() {
    local status=$1 text=$2
    shift 2
    ./session "$@" >poses.tum 2>said
    [ $? -eq "$status" ] || fail "example_session $*: another status than $status: $(cat said)"
    { [ "$(wc -l <said)" -eq 1 ] && grep -q "$text" said; } || fail "example_session $*: $(cat said)"
}
refused 3 'nowhere.pcd' nowhere.pcd drive/drive.bag
refused 3 'map.pcd' drive/map.pcd drive/map.pcd
refused 2 'did you mean' drive/map.pcd drive/drive.bag preprocess.deskev=time
refused 2 'cpu.threads' drive/map.pcd drive/drive.bag cpu.threads=many
refused 2 'NAME=VALUE' drive/map.pcd drive/drive.bag cpu.threads

# ndtd/localizer.hpp: exceptions with the line and the kind of failure, objects that move, points with times and without.
cat >localizer.cpp <<'END'
#include <ndtd/localizer.hpp>

int main(int argc, char **argv)
{
    try {
        ndtd::Localizer().set_option("cpu.threads", "many");
        return 1;
    } catch (const ndtd::Error &error) {
        if (error.status() != NDT_ERR_ARGUMENT || !std::string(error.what()).size())
            return 2;
    }
    ndtd::Cloud points;
    points.add(1, 2, 3);
    points.add(4, 5, 6, 0.5f);
    if (points.get()->time_s[0] != 0 || points.get()->time_s[1] != 0.5f)
        return 3;
    for (int i = 0; i < 5000; i++)
        points.add(float(i), 0, 0, 0);
    ndtd::Cloud taken = std::move(points);
    if (taken.size() != 5002 || points.size() != 0 || taken.get()->x_m[5001] != 4999)
        return 4;
    ndtd::Localizer first;
    ndtd::Localizer second = std::move(first);
    second.set_option("map.path", argv[argc - 1]).set_option("initial_pose.mode", "given").start();
    std::string reason;
    if (second.pose_at(0, &reason) || reason.rfind("no_pose", 0) != 0)
        return 5;
    if (second.scan(1000000000, "lidar", taken).result.outcome != NDT_NO_GUESS || second.is_pose_trusted())
        return 6;
    try {
        second.start();
    } catch (const ndtd::Error &) {
        return 0;
    }
    return 7;
}
END
if [ "$has_cxx" = 1 ]; then
    # shellcheck disable=SC2046 # flags are words
    if c++ -std=c++17 -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror localizer.cpp $(pkg-config --static --cflags --libs ndt-localizer) -o localizer 2>log; then
        ./localizer drive/map.pcd 2>said || fail "ndtd/localizer.hpp: step $?: $(cat said)"
    else
        fail "ndtd/localizer.hpp: $(head -n 10 log)"
    fi
fi

# Wrong use of a session: an error, and the session can still be used.
cat >wrong_use.c <<'END'
#include <stdio.h>
#include <string.h>
#include <ndtd/session.h>

int main(void)
{
    struct ndt_error err;
    struct ndtd_session *session;
    struct ndt_pose_message pose;
    struct ndt_result_message result;
    struct ndt_cloud cloud;
    struct ndt_scan_message scan;
    int is_scan;
    memset(&pose, 0, sizeof(pose));
    memset(&scan, 0, sizeof(scan));
    ndt_cloud_init(&cloud);
    if (ndtd_session_create(&session, &err) != NDT_OK)
        return 1;
#define REFUSED(call)                                                                                              \
    if ((call) != NDT_ERR_ARGUMENT || !*err.text)                                                                  \
        return printf("line %d: %s\n", __LINE__, err.text)
    REFUSED(ndtd_session_scan(session, &scan, &cloud, &result, &err));
    REFUSED(ndtd_session_message(session, "x", 1, &is_scan, &result, &err));
    REFUSED(ndtd_session_start(session, NULL, &err));
    REFUSED(ndtd_session_set_option(session, "nothing", "1", &err));
    if (ndtd_session_set_option(session, "map.path", "drive/map.pcd", &err) != NDT_OK ||
        ndtd_session_start(session, NULL, &err) != NDT_OK)
        return printf("start: %s\n", err.text);
    REFUSED(ndtd_session_start(session, NULL, &err));
    REFUSED(ndtd_session_set_option(session, "cpu.threads", "1", &err));
    REFUSED(ndtd_session_pose(session, NDT_MESSAGE_TRUTH, &pose, &err));
    REFUSED(ndtd_session_pose(session, NDT_MESSAGE_ODOMETRY, &pose, &err));
    if (ndtd_session_message(session, "x", 1, &is_scan, &result, &err) != NDT_ERR_FORMAT || is_scan)
        return printf("bytes that are no message: %s\n", err.text);
    if (ndtd_session_scan(session, &scan, &cloud, &result, &err) != NDT_OK || result.result.outcome == NDT_CONVERGED)
        return printf("a scan without points: %s\n", ndt_outcome_name(result.result.outcome));
    if (ndtd_session_is_pose_trusted(session))
        return printf("its pose is trusted\n");
    ndtd_session_destroy(session);
    ndtd_session_destroy(NULL);
    return 0;
}
END
# shellcheck disable=SC2046
$c wrong_use.c $(pkg-config --static --cflags --libs ndt-localizer) -o wrong_use 2>log || fail "wrong_use.c: $(head -n 10 log)"
./wrong_use >said 2>&1 || fail "wrong use: $(cat said)"

# Every header alone in C++, but for the templates, whose user defines a type.
if [ "$has_cxx" = 1 ]; then
    find usr/include -name '*.h' | while read -r header; do
        ! grep -q '#error "define NDT_REAL' "$header" || continue
        echo "#include \"$dir/$header\"" >header.cpp
        c++ -std=c++17 -fsyntax-only -Wall -Wextra -Werror -Iusr/include header.cpp >log 2>&1 || echo "$header: $(head -n 3 log)"
    done >bad-headers
    [ ! -s bad-headers ] || fail "in C++: $(cat bad-headers)"
fi

# The shared library.
if [ "$is_shared" = 1 ]; then
    so=$lib/libndtd.so.$version
    [ "$(readlink -f "$lib/libndtd.so.${version%.*}")" = "$(readlink -f "$so")" ] || fail "no libndtd.so.${version%.*}"
    readelf -d "$so" >dynamic
    grep -q "SONAME.*\[libndtd.so.${version%.*}\]" dynamic || fail "soname: $(grep SONAME dynamic)"
    ! grep -qE 'RPATH|RUNPATH|TEXTREL|libzmq|libseccomp' dynamic || fail "of the library: $(grep -E 'PATH|TEXTREL|NEEDED' dynamic)"
    nm -D --defined-only "$so" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort >exported
    find usr/include -name '*.h' -exec cat {} + >all-headers
    while read -r symbol; do
        grep -qw "$symbol" all-headers || fail "$symbol is exported and in no header"
    done <exported
    for symbol in ndt_align ndt_cpu_backend ndt_map_load ndt_track_predict ndtd_session_scan; do
        grep -qx $symbol exported || fail "$symbol is not exported"
    done
    ! grep -qE '^(ndtd_pipeline|ndtd_option|ndt_wire)' exported || fail "private symbols: $(grep -E '^(ndtd_pipeline|ndtd_option|ndt_wire)' exported)"
    for program in usr/bin/* session; do
        ! readelf -d "$program" 2>/dev/null | grep -qE 'RPATH|RUNPATH' || fail "$program has an RPATH"
    done
    echo "libndtd.so: $(wc -l <exported) symbols"
else
    echo "NDT_SHARED=OFF: the shared library is left out"
fi
[ "$failures" = 0 ] && echo "libraries: all good"
exit $((failures > 0))
