#!/usr/bin/env bash
# Runs a long check once for the sources it depends on.
#   once_per_change.sh RECORD COMMAND... -- SOURCE...      0: passed, now or before
# RECORD holds the sum of the sources with which the command has passed; while they are the same, nothing runs. After a
# change the command runs every time until its sum is recorded: NDT_UPDATE=1 writes it, once the command has passed.
set -euo pipefail
record=$1
shift
command=()
while [ "$1" != -- ]; do
  command+=("$1")
  shift
done
shift
sum=$(cat "$@" | sha256sum | cut -d' ' -f1)
if [ "$sum" = "$(cat "$record")" ]; then
  echo "passed before with these sources ($sum)"
  exit 0
fi
"${command[@]}"
if [ -n "${NDT_UPDATE:-}" ]; then
  echo "$sum" > "$record"
else
  echo "passed with changed sources: record it in $record with NDT_UPDATE=1, or write $sum there"
fi
