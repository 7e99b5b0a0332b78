#!/usr/bin/env bash
# A parameter file with the keys of Autoware's ndt_scan_matcher, as it is: what is said about it, what it means, several
# files, and a drive. With NDT_SHARED_DATA the drive is KITTI 2011_09_26_0005, otherwise a simulated one.
#   test_autoware.sh BIN_DIR
set -uo pipefail
bin=$(cd "${1:?folder of the programs}" && pwd)
page=$(cd "$(dirname "$0")/../../docs" && pwd)/from-autoware.md
source "$(dirname "$0")/steps.sh"
cd "$dir" || exit 1

# run CODE ARGUMENTS...: standard output and error in files
run() {
    local code=$1 rc
    shift
    "$bin/ndtd" "$@" >stdout 2>stderr </dev/null
    rc=$?
    [ "$rc" = "$code" ] || fail "ndtd $*: exit code $rc instead of $code: $(cat stderr)"
}

says() {
    grep -qE -- "$2" "$1" || fail "no '$2' in $1: $(head -n 30 "$1")"
}

cat >theirs.yaml <<'EOF'
/**:
  ros__parameters:
    frame:
      base_frame: "base_link"
      ndt_base_frame: "ndt_base_link"
      map_frame: "map"
    sensor_points:
      timeout_sec: 1.0
      required_distance: 10.0
    ndt:
      trans_epsilon: 0.01
      step_size: 0.1
      resolution: 2.0
      max_iterations: 30
      num_threads: 4
      regularization:
        enable: false
        scale_factor: 0.01
    initial_pose_estimation:
      particles_num: 200
      n_startup_trials: 100
    validation:
      initial_pose_timeout_sec: 1.0
      initial_pose_distance_tolerance_m: 10.0
      initial_to_result_distance_tolerance_m: 3.0
      critical_upper_bound_exe_time_ms: 100.0
      skipping_publish_num: 5
    score_estimation:
      converged_param_type: 1
      converged_param_transform_probability: 3.0
      converged_param_nearest_voxel_transformation_likelihood: 2.3
      no_ground_points:
        enable: false
        z_margin_for_ground_removal: 0.8
    covariance:
      output_pose_covariance:
        [
          0.0225, 0.0, 0.0, 0.0, 0.0, 0.0,
          0.0, 0.0225, 0.0, 0.0, 0.0, 0.0,
          0.0, 0.0, 0.0225, 0.0, 0.0, 0.0,
          0.0, 0.0, 0.0, 0.000625, 0.0, 0.0,
          0.0, 0.0, 0.0, 0.0, 0.000625, 0.0,
          0.0, 0.0, 0.0, 0.0, 0.0, 0.000625,
        ]
      covariance_estimation:
        covariance_estimation_type: 0
        initial_pose_offset_model_x: [0.0, 0.0, 0.5, -0.5, 1.0, -1.0]
        initial_pose_offset_model_y: [0.5, -0.5, 0.0, 0.0, 0.0, 0.0]
        temperature: 0.05
        scale_factor: 1.0
    dynamic_map_loading:
      update_distance: 20.0
      map_radius: 150.0
      lidar_radius: 100.0
      publish_loaded_map: false
EOF

# One line says how many keys there are, -v has a line for each.
run 0 --check-config -c theirs.yaml
[ "$(wc -l <stderr)" = 1 ] || fail "not one line: $(cat stderr)"
says stderr "theirs.yaml: parameters of Autoware's ndt_scan_matcher: 23 honoured, 11 without effect; -v names each"
run 0 --check-config -c theirs.yaml -v
[ "$(grep -cE 'theirs.yaml:[0-9]+: [a-z_.]+: honoured$' stderr)" = 23 ] || fail "-v: not 23 keys honoured: $(cat stderr)"
[ "$(grep -cE 'theirs.yaml:[0-9]+: [a-z_.]+: without effect: ' stderr)" = 11 ] || fail "-v: not 11 notes: $(cat stderr)"
says stderr 'theirs.yaml:8: sensor_points.timeout_sec: without effect: warns there; here live.budget_ms'
says stderr 'theirs.yaml: ndt.variant: autoware, as there$'

# docs/from-autoware.md has every key in a row of its table.
sed -nE 's/.*theirs.yaml:[0-9]+: ([a-z_.]+): .*/\1/p' stderr | while read -r key; do
    grep -qE "^\| .*[.\`]${key##*.}\`" "$page" || echo "$key"
done >undocumented
[ ! -s undocumented ] || fail "not in docs/from-autoware.md: $(tr '\n' ' ' <undocumented)"

# What it means; later files and --set win, key by key.
run 0 --print-config -c theirs.yaml
for line in '  variant: autoware' '  levels: \[2\.0\]' '  covariance: autoware' '  neighbours: \[radius\]' '  threads: 4' \
    '  converged_param_type: nvtl' '  required_distance: 10\.0' '    covariance_estimation_type: fixed' \
    '    scale_factor: 1\.0'; do
    says stdout "^$line\$"
done
printf 'ndt: {variant: robust, step_size: 0.3}\ncovariance.covariance_estimation.covariance_estimation_type: posterior\n' >mine.yaml
printf 'ndt: {step_size: 0.4}\n' >last.yaml
run 0 --print-config -c theirs.yaml -c mine.yaml --config last.yaml --set ndt.trans_epsilon=0.02
for line in '  variant: robust' '  step_size: 0\.4' '  trans_epsilon: 0\.02' '    covariance_estimation_type: posterior'; do
    says stdout "^$line\$"
done
run 0 --print-config -c last.yaml -c theirs.yaml
says stdout '^  step_size: 0\.1$'
run 0 --check-config -c theirs.yaml -c mine.yaml
says stdout '^theirs.yaml, mine.yaml: ok$'

# Names of another release: a warning each, and the file counts; in a file of ours they are mistakes.
sed 's/map_frame/map_fram/; s/particles_num/particle_num/' theirs.yaml >later.yaml
run 0 --check-config -c later.yaml
says stderr "warning: later.yaml:6: 'frame.map_fram' is not an option; did you mean 'frame.map_frame'. .no effect.$"
says stderr "warning: later.yaml:20: 'initial_pose_estimation.particle_num' is not an option; did you mean .*no effect.$"
[ "$(wc -l <stderr)" = 3 ] || fail "not two warnings and the summary: $(cat stderr)"
{ cat theirs.yaml; printf '    later:\n      deep: {er: {key: x}}\n      rows: [[1, 2], [3]]\n      many: [%s 1]\n' "$(printf '1, %.0s' {1..100})"; } >newer.yaml
run 0 --check-config -c newer.yaml
for key in later.deep.er.key later.rows later.many; do
    says stderr "warning: newer.yaml:[0-9]*: '$key' is not an option .no effect.$"
done
[ "$(wc -l <stderr)" = 4 ] || fail "not three warnings and the summary: $(cat stderr)"
printf '/**:\n  ros__parameters:\n    ndt: {step_sise: 0.3}\n' >typo.yaml
run 2 --check-config -c typo.yaml
says stderr "typo.yaml:3: 'ndt.step_sise' is not an option; did you mean 'ndt.step_size'"

# All mistakes at once, of every file and the command line; suggestions only of what is near.
sed 's/map_frame/map_fram/; s/2\.3$/high/; s/particles_num/particle_num/' theirs.yaml >wrong.yaml
printf 'ndt: {foo: 1}\nfoo: {enable: true}\nfilter: {voxel_m: 1}\n' >other.yaml
run 2 --check-config -c wrong.yaml -c other.yaml -c missing.yaml --set log.level=infoo --backend gpu --nonsense
{
    echo "ndtd: --nonsense is not known; --help lists the flags"
    echo "ndtd: wrong.yaml:31: score_estimation.converged_param_nearest_voxel_transformation_likelihood: 'high' is not a number"
    echo "ndtd: other.yaml:1: 'ndt.foo' is not an option"
    echo "ndtd: other.yaml:2: 'foo.enable' is not an option"
    echo "ndtd: other.yaml:3: 'filter.voxel_m' is not an option; did you mean 'preprocess.voxel_m'?"
    echo "ndtd: missing.yaml: cannot open: No such file or directory"
    echo "ndtd: --set: log.level: 'infoo' is not one of error, warning, info, debug; did you mean 'info'?"
} >wanted
grep -v ' ndtd: warning: ' stderr | diff wanted - || fail "not all mistakes as expected"
seq -f 'a%g: 1' 30 >many.yaml
run 2 --check-config -c many.yaml
[ "$(wc -l <stderr)" = 21 ] || fail "$(wc -l <stderr) lines for 30 mistakes"
says stderr '^ndtd: and 10 more$'

# A drive with it.
shared=${NDT_SHARED_DATA:-}/kitti0005_lite
if [ -f "$shared/times.txt" ]; then
    "$bin/ndt-bag" pack --scans "$shared/scans" --times "$shared/times.txt" --truth "$shared/poses_velo_lidar_refined.txt" \
        --format kitti --every 2 --offset 1 --initial first --out bag.bin >/dev/null || fail "pack"
    map=$shared/map_from_even_scans_0.20m.pcd
elif [ -x "$bin/ndt-sim" ]; then
    "$bin/ndt-sim" --seed 7 --out sim --scans 30 --beams 32 --columns 900 --map-spacing 0.2 >/dev/null 2>&1 || fail "ndt-sim"
    cp sim/drive.bag bag.bin
    map=sim/map.pcd
else
    echo "skipped: no drive"
    exit 77
fi
run 0 --replay bag.bin --map "$map" -c theirs.yaml --set preprocess.deskew=azimuth_cw --results results.jsonl --max-untrusted 0
says stdout 'variant autoware'
says stdout '^  off +0 of '
# "covariance": its first number is the fixed one, turned into the map
[ "$(grep -c '"covariance":\[0\.022[45]' results.jsonl)" -ge 20 ] || fail "not the covariance of the file: $(head -n 2 results.jsonl | cut -c 1-600)"
# With the lines of docs/from-autoware.md behind it the method is that of ndtd.
sed -n '/put this behind it/,/^Two differences/s/^    //p' "$page" >own.yaml
run 0 --replay bag.bin --map "$map" -c theirs.yaml -c own.yaml --set preprocess.deskew=azimuth_cw --set initial_pose.mode=search --max-untrusted 2
says stdout 'variant robust'
says stdout '^  off +0 of '
# A threshold that no pose reaches.
run 0 --replay bag.bin --map "$map" -c theirs.yaml --limit 5 --results results.jsonl \
    --set score_estimation.converged_param_nearest_voxel_transformation_likelihood=9
[ "$(grep -c '"low_score".*is not above the threshold 9' results.jsonl)" = 5 ] || fail "the threshold has no effect"
says stderr 'several in a row have not converged \(1 times so far; the longest row: 5 scans\)'
# A distance that no scan has.
run 0 --replay bag.bin --map "$map" -c theirs.yaml --limit 5 --set sensor_points.required_distance=5000 --results results.jsonl
[ "$(grep -c '"rejected".*sensor_points.required_distance is 5000 m' results.jsonl)" = 5 ] || fail "the distance has no effect"

[ "$failures" = 0 ] && echo "autoware: all good"
[ "$failures" = 0 ]
