#!/usr/bin/env bash
# The installed files: programs, libraries by pkg-config and by find_package, each header alone, and the Debian packages.
#   test_install.sh BIN_DIR      (the build folder is the one above it)
# Exit codes: 0 passed, 1 failed, 77 skipped: a sanitizer build, or a tool is missing.
set -uo pipefail
bin=$(cd "${1:?BIN_DIR}" && pwd)
build=$(dirname "$bin")
[ -f "$build/cmake_install.cmake" ] || { echo "no build folder above $bin"; exit 77; }

cached() { sed -n "s/^$1:[^=]*=//p" "$build/CMakeCache.txt"; }
[ -z "$(cached NDT_SANITIZE)" ] || { echo "sanitizer builds are not installed"; exit 77; }
for tool in cmake pkg-config cc; do
    command -v "$tool" >/dev/null || { echo "skipped: no $tool"; exit 77; }
done
source "$(dirname "$0")/steps.sh"
cd "$dir" || exit 1
unset DESTDIR

has() { # FOLDER PATH...
    local folder=$1 path
    shift
    for path in "$@"; do
        [ -e "$folder/$path" ] || fail "$path is not installed"
    done
}

# Installed for /usr, staged; the folder of the libraries depends on the build. What is not built is built before, as
# after tools/quickstart, which builds the programs alone.
rm -f "$build/bash/ndtd"
DESTDIR=$dir/stage cmake --install "$build" --prefix /usr >log 2>&1 || { fail "cmake --install: $(tail -n 5 log)"; exit 1; }
lib=$(cached CMAKE_INSTALL_LIBDIR)
module=$build/$lib/ndtd/libndt_cuda.so # of a build with CUDA
usr=$dir/stage/usr
has stage etc/ndtd/ndtd.yaml usr/lib/systemd/system/ndtd.service usr/share/ndtd/{autoware.yaml,prometheus-scrape.yaml,prometheus-alerts.yaml,grafana-dashboard.json} \
    usr/share/doc/ndtd/{README.md,SCHEMA.md,LICENSE,docs/operations.md} usr/include/{ndt/map.h,ndt_track/track.h,ndt_search/search.h,ndt_io/bag.h,ndt_proto/message.h} \
    usr/"$lib"/{libndt_core.a,libndt_track.a,libndt_odometry.a,libndt_search.a,libndt_io.a,libndt_proto.a,libndt_base.a,libndt_config.a,libndt_localizer.a,cmake/ndtd/ndtdConfig.cmake,cmake/ndtd/ndtdConfigVersion.cmake}
[ ! -x "$bin/ndt-web" ] || has stage usr/lib/systemd/system/ndt-web.service
for program in "$bin"/ndtd "$bin"/ndt-*; do
    [[ -x $program && $program != *_emulated && $program != *_contracted ]] && { has "$usr" "bin/${program##*/}"; "$usr/bin/${program##*/}" --help >/dev/null || fail "${program##*/} --help"; }
done
has "$usr" share/bash-completion/completions/ndtd share/zsh/site-functions/_ndtd
! command -v help2man >/dev/null || has "$usr" share/man/man1/ndtd.1
grep -q '^ExecStart=/usr/bin/ndtd -c /etc/ndtd/ndtd.yaml --set security.isolation=gpu$' stage/usr/share/ndtd/ndtd-gpu.conf || fail "ExecStart of the drop-in for GPUs"
grep -q '^ExecStart=/usr/bin/ndtd -c /etc/ndtd/ndtd.yaml --set security.isolation=on$' stage/usr/lib/systemd/system/ndtd.service || fail "ExecStart for /usr"
# The template differs in what an instance has for itself, and in nothing else.
diff stage/usr/lib/systemd/system/ndtd.service stage/usr/lib/systemd/system/ndtd@.service | sed -n 's/^> //p' >template
cat >expected <<'END'
Description=NDT LiDAR localiser of %i
ExecStart=/usr/bin/ndtd -c /etc/ndtd/%i.yaml --set security.isolation=on
RuntimeDirectory=ndtd/%i
StateDirectory=ndtd/%i
WorkingDirectory=%S/ndtd/%i
END
cmp -s template expected || fail "ndtd@.service: $(diff template expected)"
"$usr/bin/ndtd" --check-config --config stage/etc/ndtd/ndtd.yaml >/dev/null || fail "the installed configuration is refused"
[ -z "$(find stage -name 'libndt_daemon*')" ] || fail "private parts were installed"
[ "$(ls "$usr/include/ndtd")" = $'localizer.hpp\nsession.h' ] || fail "of ndtd/ session.h and localizer.hpp alone are public: $(ls "$usr/include/ndtd")"

# Installed for another prefix, over an existing configuration.
mkdir -p other/etc/ndtd
echo '# mine' >other/etc/ndtd/ndtd.yaml
cmake --install "$build" --prefix "$dir/other" >log 2>&1 || fail "cmake --install --prefix: $(tail -n 5 log)"
grep -qx '# mine' other/etc/ndtd/ndtd.yaml || fail "an existing configuration was overwritten"
grep -q "^ExecStart=$dir/other/bin/ndtd -c $dir/other/etc/ndtd/ndtd.yaml --set security.isolation=on\$" other/lib/systemd/system/ndtd.service ||
    fail "ExecStart for another prefix"
grep -q "^ExecStart=$dir/other/bin/ndtd -c $dir/other/etc/ndtd/ndtd.yaml --set security.isolation=gpu\$" other/share/ndtd/ndtd-gpu.conf ||
    fail "ExecStart of the drop-in for another prefix"
[ ! -x "$bin/ndt-web" ] || grep -qx "ExecStart=$dir/other/bin/ndt-web" other/lib/systemd/system/ndt-web.service || fail "ExecStart of ndt-web"

# A consumer of all libraries: writes a cloud, builds a map from it, predicts a pose, encodes and decodes a message.
cat >consumer.c <<'END'
#include <math.h>
#include <stdio.h>
#include <ndt/align.h>
#include <ndt/backend.h>
#include <ndt/pose.h>
#include <ndt_io/cloud_file.h>
#include <ndt_io/map_file.h>
#include <ndt_proto/message.h>
#include <ndt_track/track.h>

static int fail(const struct ndt_error *err)
{
    fprintf(stderr, "%s\n", err->text);
    return 1;
}

int main(void)
{
    static struct ndt_result_message sent, got;
    static struct ndt_track track;
    struct ndt_track_params params;
    struct ndt_track_state predicted;
    const struct ndt_twist twist = {.v_mps = {10, 0, 0}};
    struct ndt_error err = {""};
    struct ndt_map_config config;
    struct ndt_cloud cloud;
    struct ndt_map *map;
    struct ndt_buffer frame;
    ndt_buffer_init(&frame);
    ndt_cloud_init(&cloud);
    if (ndt_cloud_reserve(&cloud, 10000, 0, &err) != NDT_OK)
        return fail(&err);
    for (cloud.count = 0; cloud.count < 10000; cloud.count++) {
        cloud.x_m[cloud.count] = 0.2f * (float)(cloud.count % 100);
        cloud.y_m[cloud.count] = 0.2f * (float)(cloud.count / 100);
        cloud.z_m[cloud.count] = sinf((float)cloud.count);
    }
    if (ndt_pcd_write(&cloud, "consumer.pcd", NDT_PCD_COMPRESSED, &err) != NDT_OK)
        return fail(&err);
    ndt_map_config_default(&config);
    if (ndt_map_load(&map, "consumer.pcd", &config, &err) != NDT_OK)
        return fail(&err);
    ndt_track_params_default(&params);
    ndt_track_init(&track, &params);
    sent.result.T_map_sensor = ndt_pose_identity();
    ndt_track_reset(&track, 0, &sent.result.T_map_sensor, &twist, NULL);
    if (!ndt_track_predict(&track, 4200000000 / 10, &predicted))
        return 1;
    sent.seq = (unsigned)lround(10 * predicted.T_map_base.t_m[0]);
    sent.map_id = map->id;
    sent.result.outcome = NDT_NO_MAP;
    if (ndt_cpu_backend.probe(0, &err) != NDT_OK || ndt_result_encode(&frame, &sent, &err) != NDT_OK ||
        ndt_result_decode(frame.data, frame.size, &got, &err) != NDT_OK)
        return fail(&err);
    printf("%u voxels, seq %u\n", map->levels[map->level_count - 1].voxel_count - 1, (unsigned)got.seq);
    ndt_buffer_free(&frame);
    ndt_map_release(map);
    ndt_cloud_free(&cloud);
    return got.map_id != sent.map_id;
}
END
run_consumer() { # NAME PROGRAM
    "$2" >said 2>&1 || { fail "consumer by $1: $(cat said)"; return; }
    grep -qE '^[1-9][0-9]* voxels, seq 42$' said || fail "consumer by $1 says: $(cat said)"
}

export PKG_CONFIG_PATH=$usr/$lib/pkgconfig
version=$(cached CMAKE_PROJECT_VERSION)
for name in core track io proto localizer; do
    [ "$(pkg-config --modversion "ndt-$name")" = "$version" ] || fail "ndt-$name.pc: another version than $version"
    pkg-config --validate "ndt-$name" || fail "ndt-$name.pc is not valid"
done
# shellcheck disable=SC2046
if cc -std=gnu17 -Wall -Wextra -Werror consumer.c $(pkg-config --static --cflags --libs ndt-track ndt-io ndt-proto) -o by-pkg-config 2>log; then
    run_consumer pkg-config ./by-pkg-config
else
    fail "pkg-config: $(head -n 10 log)"
fi

mkdir project && cat >project/CMakeLists.txt <<END
cmake_minimum_required(VERSION 3.22)
project(consumer LANGUAGES C)
find_package(ndtd ${version%.*} REQUIRED COMPONENTS core track io proto)
add_executable(consumer ../consumer.c)
target_link_libraries(consumer PRIVATE ndtd::track ndtd::io ndtd::proto)
END
if cmake -S project -B project/build -DCMAKE_PREFIX_PATH="$usr" >log 2>&1 && cmake --build project/build >>log 2>&1; then
    run_consumer find_package project/build/consumer
else
    fail "find_package: $(tail -n 20 log)"
fi
sed -i 's/COMPONENTS.*)/COMPONENTS nothing)/' project/CMakeLists.txt
cmake -S project -B project/none -DCMAKE_PREFIX_PATH="$usr" >/dev/null 2>&1 && fail "a missing component was found"
sed -i "s/find_package.*/find_package(ndtd 99.0 REQUIRED)/" project/CMakeLists.txt
cmake -S project -B project/none -DCMAKE_PREFIX_PATH="$usr" >/dev/null 2>&1 && fail "version 99 was found"

# Every header alone. point_math.h is a template: its user defines the type.
find "$usr/include" -name '*.h' | while read -r header; do
    { grep -q '#error "define NDT_REAL' "$header" &&
        printf '%s\n' '#define NDT_REAL float' '#define NDT_NAME(x) x##_f' '#define NDT_DEVICE' \
            'static inline float ndt_exp_f(float x) { return x; }' 'static inline float ndt_root_f(float x) { return x; }'
    echo "#include \"$header\""; } >header.c
    cc -std=gnu17 -fsyntax-only -Wall -Wextra -Werror -I"$usr/include" header.c >log 2>&1 || echo "$header: $(head -n 3 log)"
done >bad-headers
[ -s bad-headers ] && fail "$(cat bad-headers)"
[ "$(find "$usr/include" -name '*.h' | wc -l)" -ge 15 ] || fail "headers are missing"

# The packages, one for each component. Their names contain version and architecture.
if command -v dpkg-deb >/dev/null && command -v dpkg-shlibdeps >/dev/null && command -v file >/dev/null && command -v cpack >/dev/null; then
    if cpack -G DEB --config "$build/CPackConfig.cmake" -B "$dir/packages" >log 2>&1; then
        library=libndtd${version%.*}
        for name in ndtd libndtd-dev ndtd-doc "$library" ndtd-cuda; do
            deb=$(echo packages/"${name}_${version}"_*.deb)
            [ -e "$deb" ] || { [[ $name = "$library" && $(cached NDT_SHARED) != ON || $name = ndtd-cuda && ! -e $module ]] || fail "no package $name"; continue; }
            dpkg-deb --contents "$deb" >"$name.listing"
            awk '{print $6}' "$name.listing" >"$name.contents"
            dpkg-deb --extract "$deb" unpacked && dpkg-deb --control "$deb" "$name.control"
            grep -vE '^\./(usr|etc)/' "$name.contents" | grep -qvE '^\./((usr|etc)/)?$' && fail "$name: strange places: $(cat "$name.contents")"
            for path in usr/share/doc/"$name"/{copyright,changelog.gz}; do
                grep -qx "./$path" "$name.contents" || fail "$path is not in $name"
            done
            grep -q 'Apache-2.0' unpacked/usr/share/doc/"$name"/copyright || fail "the copyright file of $name names no licence"
            grep -qF "\"$(dpkg-deb --field "$deb" Maintainer)\"" "$build/CPackConfig.cmake" || fail "$name: another maintainer"
            echo "$(basename "$deb"): $(du -k "$deb" | cut -f1) KiB, Depends: $(dpkg-deb --field "$deb" Depends)"
        done
        in_package() { # PACKAGE PATH...
            local name=$1 path
            shift
            for path in "$@"; do grep -qx "./$path" "$name.contents" || fail "$path is not in the package $name"; done
        }
        in_package ndtd usr/bin/{ndtd,ndt-bag,ndt-demo} etc/ndtd/ndtd.yaml usr/lib/systemd/system/ndtd.service usr/share/ndtd/ndtd-gpu.conf usr/share/doc/ndtd/LICENSE \
            usr/share/bash-completion/completions/ndt-bag usr/share/zsh/vendor-completions/_ndt-bag usr/lib/sysusers.d/ndtd.conf
        in_package libndtd-dev usr/include/ndt/map.h "usr/$lib"/{libndt_core.a,pkgconfig/ndt-core.pc,cmake/ndtd/ndtdConfig.cmake} \
            usr/share/doc/ndtd/examples/example_align.c
        in_package ndtd-doc usr/share/doc/ndtd/{README.md,SCHEMA.md,docs/operations.md,docs/images/web-live.png}
        if [ "$(cached NDT_SHARED)" = ON ]; then
            in_package "$library" "usr/$lib/libndtd.so.$version"
            in_package libndtd-dev "usr/$lib/libndtd.so"
            [[ $(dpkg-deb --field packages/libndtd-dev_*.deb Depends) = "$library (= $version), "* ]] || fail "libndtd-dev needs another library"
            grep -qx "libndtd ${version%.*} $library (>= $version)" "$library.control/shlibs" || fail "shlibs: $(cat "$library.control/shlibs")"
        fi
        if [ -e "$module" ]; then
            in_package ndtd-cuda "usr/$lib/ndtd/libndt_cuda.so"
            [[ $(dpkg-deb --field packages/ndtd-cuda_*.deb Depends) = *"ndtd (= $version) | $library (= $version)"* ]] || fail "ndtd-cuda fits another version"
            ! grep -q cudart <(nm -D --defined-only "unpacked/usr/$lib/ndtd/libndt_cuda.so") || fail "the module exports the CUDA runtime"
        fi
        [ -z "$(cat ./*.contents | grep -v '/$' | sort | uniq -d)" ] || fail "in two packages: $(cat ./*.contents | grep -v '/$' | sort | uniq -d)"
        ! grep -E '\.(a|h|pc|so|cmake)$' ndtd.contents || fail "ndtd has what only compilers use"
        depends=$(dpkg-deb --field packages/ndtd_*.deb Depends)
        for needed in libc6 libyaml-0-2 libzmq5; do
            grep -q "$needed" <<<"$depends" || fail "Depends lacks $needed: $depends"
        done
        grep -q libpcl <<<"$depends" && fail "the package depends on PCL: $depends"
        grep -qx /etc/ndtd/ndtd.yaml ndtd.control/conffiles || fail "the configuration is not a conffile"
        unpacked/usr/bin/ndtd --version >/dev/null || fail "ndtd of the package does not run"
        grep -qx 'u ndtd - .*' unpacked/usr/lib/sysusers.d/ndtd.conf || fail "the package creates no user"
        grep -qx -- '-rw-r--r-- root/root .* ./usr/lib/systemd/system/ndtd.service' ndtd.listing ||
            fail "mode or owner of the unit: $(grep ndtd.service ndtd.listing)"
        for script in postinst prerm postrm; do
            if [ -x "ndtd.control/$script" ]; then sh -n "ndtd.control/$script" || fail "$script"; else fail "no $script in the package"; fi
        done
        # Scripts on a machine without systemd, with programs that write down how they are called.
        mkdir fakes
        for program in useradd getent systemd-sysusers; do
            printf '#!/bin/sh\necho "%s $*" >>%s/calls\nexit 1\n' "$program" "$dir" >"fakes/$program"
        done
        chmod +x fakes/*
        sed -i 's/exit 1/exit 0/' fakes/systemd-sysusers fakes/useradd
        PATH=$dir/fakes:$PATH ndtd.control/postinst configure "" || fail "postinst configure"
        grep -qx 'systemd-sysusers ndtd.conf' calls || fail "postinst does not create the user: $(cat calls)"
        ndtd.control/prerm upgrade 1 || fail "prerm upgrade"
        ndtd.control/postrm upgrade 1 || fail "postrm upgrade"
        if command -v lintian >/dev/null; then
            suppress=() # configured for another prefix than /usr, libraries are in /usr/lib of one architecture
            [[ $lib = *-linux-gnu ]] || suppress=(--suppress-tags pkg-config-unavailable-for-cross-compilation)
            lintian --allow-root "${suppress[@]}" packages/*.deb >tags 2>&1
            grep -qE '^[EW]:' tags && fail "lintian: $(grep -E '^[EW]:' tags)"
        else
            echo "no lintian here: left out"
        fi
    else
        fail "cpack: $(tail -n 10 log)"
    fi
else
    echo "no dpkg-deb, dpkg-shlibdeps, file or cpack here: the packages are left out"
fi
[ "$failures" = 0 ] && echo "installation: all good"
exit $((failures > 0))
