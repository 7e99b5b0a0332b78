#!/usr/bin/env bash
# replay_emulated.sh BIN_DIR [--quick]: replays a short simulated drive with ndtd on the emulated CUDA device. Each pipeline has
# to give the CPU's trajectory within 1 mm and 0.01 deg, and the same hash for every order of the threads; a device
# that fails during the replay must not change that. Also checks the timing columns and --dump-derivatives. --quick: fewer
# points, settings of the preprocessing, and launches at which a device is lost.
set -uo pipefail
bin=$1
here=$(cd "$(dirname "$0")" && pwd)
[ -x "$bin/ndt-sim" ] && [ -x "$bin/ndtd_emulated" ] || { echo "skipped: ndt-sim or ndtd_emulated is not built"; exit 77; }
modes=("deskew=time deskew_passes=2" "deskew=azimuth_cw voxel_m=0")
losses="18 22" sample=500
if [ "${2:-}" != --quick ]; then
    modes+=("deskew=off" "deskew=time" "deskew=azimuth_cw sample_count=0" "deskew=time voxel_m=0.3 deskew_passes=2 sample_count=700")
    losses="18 19 20 21 22 23 24 25" sample=1500
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

fail() {
    echo "FAIL $*"
    failed=1
}

"$bin/ndt-sim" --seed 7 --out "$work/drive" --world street --scans 5 --beams 16 --columns 450 --map-spacing 0.25 \
    >/dev/null || exit 1

replay() { # BACKEND OUT OPTIONS...: prints the hash
    "$bin/ndtd_emulated" --replay "$work/drive/drive.bag" --map "$work/drive/map.pcd" --backend "$1" --out "$2" \
        --set preprocess.deskew=time --set "preprocess.sample_count=$sample" "${@:3}" 2>"$work/err" >"$work/table" || cat "$work/err" >&2
    sed -n 's/^trajectory hash *//p' "$work/table"
}

# same_trajectory NAME FILE: largest differences to the CPU's trajectory
same_trajectory() {
    paste -d' ' <(grep -v '^#' "$work/cpu.tum") <(grep -v '^#' "$2") | awk -v name="$1" -f "$here/../same_trajectory.awk" || failed=1
}

replay cpu "$work/cpu.tum" >/dev/null
for pipeline in fused staged; do
    first=$(NDT_EMULATION_SEED=1 replay cuda-emulated "$work/$pipeline.tum" --set "cuda.pipeline=$pipeline" \
        --timing "$work/$pipeline.csv")
    again=$(NDT_EMULATION_SEED=99 replay cuda-emulated "$work/again.tum" --set "cuda.pipeline=$pipeline")
    [[ $first =~ ^[0-9a-f]{16}$ ]] || fail "$pipeline: no hash: $(cat "$work/err")"
    [ "$first" = "$again" ] && echo "ok   $pipeline: hash $first twice" || fail "$pipeline: hash $first, then $again"
    same_trajectory "$pipeline" "$work/$pipeline.tum"
    awk -F, -v name="$pipeline" '
        NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i }
        $1 == "iteration" {
            n = $at["evaluations"]
            rows++
            if ($at["h2d_bytes"] != 24 * n || $at["d2h_bytes"] != 248 * n || $at["allocations"] != 0 ||
                $at["launches"] != n * (name == "fused" ? 1 : 5) || (n > 0 && $at["kernel_us"] <= 0)) { bad++; print }
        }
        END {
            printf "%s %s: %d rows with 24 bytes up and 248 down per evaluation, no allocation\n",
                rows && !bad ? "ok  " : "FAIL", name, rows
            exit !(rows && !bad)
        }' "$work/$pipeline.csv" || failed=1
done

# How results come and how threads wait change no bit.
first=$(replay cuda-emulated "$work/again.tum" --set cuda.pipeline=fused)
for way in NDT_EMULATION_MAPPED=0 wait=spin wait=block; do
    case $way in
    wait=*) again=$(replay cuda-emulated "$work/again.tum" --set cuda.pipeline=fused --set "cuda.$way") ;;
    *) again=$(export "${way?}" && replay cuda-emulated "$work/again.tum" --set cuda.pipeline=fused) ;;
    esac
    [ "$again" = "$first" ] && [ ! -s "$work/err" ] && echo "ok   fused, $way: the same hash" ||
        fail "fused, $way: hash ${again:-none}, else $first: $(cat "$work/err")"
done

# Solves on the device: every shape gives the same trajectory; per solve two launches, the second for the information,
# and one upload, download and wait.
resident=
for pipeline in resident resident-block resident-cluster resident-graph resident-chain; do
    shape=${pipeline#resident}
    hash=$(NDT_EMULATION_SEED=5 replay cuda-emulated "$work/$pipeline.tum" --set cuda.pipeline=resident ${shape:+--set "cuda.shape=${shape#-}"} \
        --timing "$work/$pipeline.csv")
    [[ $hash =~ ^[0-9a-f]{16}$ ]] || fail "$pipeline: no hash: $(cat "$work/err")"
    resident=${resident:-$hash}
    [ "$hash" = "$resident" ] && echo "ok   $pipeline: hash $hash" || fail "$pipeline: hash $hash, resident has $resident"
    same_trajectory "$pipeline" "$work/$pipeline.tum"
    awk -F, -v name="$pipeline" '
        NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i }
        $1 == "iteration" {
            first = $at["iteration"] == 0
            rows++
            if ($at["launches"] != 2 * first || $at["synchronisations"] != first || $at["allocations"] != 0 ||
                (!first && $at["h2d_bytes"] + $at["d2h_bytes"] != 0)) { bad++; print }
        }
        END {
            printf "%s %s: %d rows, two launches and one wait per solve, nothing moved between iterations\n",
                rows && !bad ? "ok  " : "FAIL", name, rows
            exit !(rows && !bad)
        }' "$work/$pipeline.csv" || failed=1
done

# A device lost once is opened again and gives the same trajectory; lost for good, the CPU takes over.
# The launches before the eleventh are those that open the backend.
NDT_EMULATION_FAIL=11,1 replay cuda-emulated "$work/once.tum" --set cuda.pipeline=resident >/dev/null
grep -q 'opened again' "$work/err" || fail "resident, a device lost once: $(cat "$work/err")"
cmp "$work/once.tum" "$work/resident.tum" && echo "ok   resident, a device lost once: the same trajectory" || failed=1
NDT_EMULATION_FAIL=11,2 replay cuda-emulated "$work/lost.tum" --set cuda.pipeline=resident >/dev/null
grep -q 'the CPU took over' "$work/err" || fail "resident, a device lost twice: $(cat "$work/err")"
same_trajectory "resident, a device lost for good" "$work/lost.tum"

fused=$(replay cuda-emulated "$work/again.tum")
once=$(NDT_EMULATION_FAIL=6,1 replay cuda-emulated "$work/once.tum")
[ "$once" = "$fused" ] && grep -q 'opened again' "$work/err" && echo "ok   a device lost once: the same hash" ||
    fail "a device lost once: hash ${once:-none}, $(cat "$work/err")"
NDT_EMULATION_FAIL=6,2 replay cuda-emulated "$work/lost.tum" >/dev/null
grep -q 'the CPU took over' "$work/err" || fail "a device lost twice: $(cat "$work/err")"
grep -q 'the CPU took over' "$work/table" || fail "the table does not report that the CPU took over"
same_trajectory "a device lost for good" "$work/lost.tum"

# Preprocessing on the device: the same points, so the same hash as with the host's for every order of the threads, and
# within 1e-4 m of the CPU. Only the result comes back, and the number of points is the CPU's.
column() { # FILE NAME: of the scans, line by line
    awk -F, -v name="$2" 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i } $1 == "scan" { print $at[name] }' "$1"
}
near() { # FILE A B: largest distance of the positions
    paste -d' ' <(grep -v '^#' "$1") <(grep -v '^#' "$2") | awk '
        { for (i = 2; i <= 4; i++) { d = $i - $(i + 8); if (d * d > most) most = d * d } n++ }
        END {
            good = n > 0 && most <= 1e-8
            printf "%s preprocessing on the device: %d poses within %.1e m of the CPU\n", good ? "ok  " : "FAIL", n, sqrt(most)
            exit !good
        }' || failed=1
}
seed=2
for mode in "${modes[@]}"; do
    options=(--set cuda.pipeline=resident)
    for option in $mode; do options+=(--set "preprocess.$option"); done
    host=$(replay cuda-emulated "$work/host.tum" "${options[@]}" --timing "$work/host.csv")
    seed=$((seed + 1))
    device=$(NDT_EMULATION_SEED=$seed replay cuda-emulated "$work/device.tum" "${options[@]}" --set cuda.preprocess=on \
        --timing "$work/device.csv")
    [[ $device =~ ^[0-9a-f]{16}$ ]] && [ "$device" = "$host" ] &&
        cmp -s <(column "$work/host.csv" points_used) <(column "$work/device.csv" points_used) &&
        echo "ok   preprocessing on the device, $mode: hash $device as on the host" ||
        fail "preprocessing on the device, $mode: $device, on the host $host: $(cat "$work/err")"
    replay cpu "$work/again.tum" "${options[@]}" >/dev/null
    near "$work/device.tum" "$work/again.tum"
    awk -F, -v name="$mode" '
        FNR == 1 { for (i = 1; i <= NF; i++) at[$i] = i }
        NR == FNR { if ($1 == "scan" && $at["hypotheses"] > 1) sought[$at["seq"]] = 1; next }
        # A scan that contradicts its prediction is aligned from other guesses, too, and its points are moved anew.
        $1 == "iteration" && $at["iteration"] == 0 && !sought[$at["seq"]] {
            solves++
            # A second solve, with the same launches and wait: the finest level is tried again.
            waits = $at["synchronisations"]
            if ((waits != 1 && waits != 2) || $at["launches"] != 3 * waits || $at["allocations"] != 0) bad++
        }
        END {
            good = solves && !bad
            printf "%s preprocessing on the device, %s: %d solves with one wait each\n", good ? "ok  " : "FAIL", name, solves
            exit !good
        }' "$work/device.csv" "$work/device.csv" || failed=1
done
options=(--set cuda.pipeline=resident --set cuda.preprocess=on --set preprocess.deskew_passes=2)
whole=$(replay cuda-emulated "$work/device.tum" "${options[@]}")
again=$(NDT_EMULATION_SEED=77 replay cuda-emulated "$work/again.tum" "${options[@]}")
[[ $whole =~ ^[0-9a-f]{16}$ ]] && [ "$again" = "$whole" ] && echo "ok   preprocessing on the device: hash $whole twice" ||
    fail "preprocessing on the device: hash $whole, then $again"
for shape in block cluster graph chain; do
    other=$(replay cuda-emulated "$work/again.tum" "${options[@]}" --set "cuda.shape=$shape")
    [ "$other" = "$whole" ] && echo "ok   preprocessing on the device, resident-$shape: the same hash" ||
        fail "preprocessing on the device, resident-$shape: hash ${other:-none}, resident has $whole"
done
for after in $losses; do
    once=$(NDT_EMULATION_FAIL=$after,1 replay cuda-emulated "$work/once.tum" "${options[@]}")
    [ "$once" = "$whole" ] && grep -q 'opened again' "$work/err" ||
        fail "preprocessing on a device lost at launch $after: hash ${once:-none}, whole $whole, $(cat "$work/err")"
done
echo "ok   preprocessing on a device lost at launch $losses: the same hash"
NDT_EMULATION_FAIL=22,2 replay cuda-emulated "$work/lost.tum" "${options[@]}" >/dev/null
grep -q 'the CPU took over' "$work/err" || fail "preprocessing on a device lost twice: $(cat "$work/err")"
replay cpu "$work/again.tum" --set preprocess.deskew_passes=2 >/dev/null
near "$work/lost.tum" "$work/again.tum"

replay cuda-emulated "$work/again.tum" --set cuda.pipeline=staged --dump-derivatives "$work/dump.csv" --dump-scan 3 \
    --dump-iteration 1 >/dev/null
awk -F, '
    NR == 1 { columns = NF; for (i = 1; i <= NF; i++) at[$i] = i }
    NR > 1 { rows++; if (NF != columns || $at["J_x_tx"] != 1 || $at["J_y_tx"] != 0) bad++; pairs += $at["pairs"] }
    END {
        good = rows > 100 && !bad && columns == 74 && pairs > 100
        printf "%s --dump-derivatives: %d points, %d columns, %d pairs\n", good ? "ok  " : "FAIL", rows, columns, pairs
        exit !good
    }' "$work/dump.csv" || failed=1
replay cuda-emulated "$work/again.tum" --set cuda.pipeline=fused --dump-derivatives "$work/none.csv" >/dev/null 2>&1
[ ! -e "$work/none.csv" ] && grep -q 'keeps no intermediates' "$work/err" || fail "a dump of fused is not refused"
exit "$failed"
