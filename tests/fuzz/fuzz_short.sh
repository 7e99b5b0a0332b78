#!/usr/bin/env bash
# One target over its seeds and a few seconds of mutations, with a fixed seed:
#   fuzz_short.sh TARGET SECONDS BIN_DIR SEED_DIR
# Exit codes: 0 every oracle held, 1 a crash; its input is printed as base64.
set -uo pipefail
name=${1:?target} seconds=${2:?seconds} bin=${3:?bin folder} committed=${4:?folder of seeds}
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
export TMPDIR=$folder
seeds=()
[ ! -d "$committed/$name" ] || seeds+=("$committed/$name")
"$bin/fuzz_seeds" "$folder/seeds" || exit 1
[ ! -d "$folder/seeds/$name" ] || seeds+=("$folder/seeds/$name")
mkdir "$folder/corpus"
if ! "$bin/fuzz_$name" -seed=1 -timeout=60 -rss_limit_mb=3072 -malloc_limit_mb=1024 -max_total_time="$seconds" \
    -print_final_stats=1 -artifact_prefix="$folder/" "$folder/corpus" "${seeds[@]}" >"$folder/log" 2>&1; then
    grep -vE '^#[0-9]+' "$folder/log" | tail -n 60
    exit 1
fi
grep -E 'Done [0-9]+ runs' "$folder/log"
