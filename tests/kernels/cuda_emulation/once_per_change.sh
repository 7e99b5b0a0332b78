#!/usr/bin/env bash
# Runs a long check once for the sources it depends on.
#   once_per_change.sh RECORD COMMAND... -- SOURCE...      0: passed, now or before
# RECORD holds the sum of the sources with which the command has passed. While they are the same nothing runs, except for
# tools/test --long. After a change the command runs every time until its sum is recorded: NDT_UPDATE=1 writes it.
set -euo pipefail
record=$1
shift
command=()
while [ "$1" != -- ]; do
  command+=("$1")
  shift
done
shift
[ $# -gt 0 ] || { echo "once_per_change.sh: no sources"; exit 1; }
sum=$(for source in "$@"; do basename "$source" && cat "$source"; done | sha256sum | cut -d' ' -f1)
if [ "$sum" = "$(cat "$record" 2>/dev/null)" ] && [ -z "${NDT_TEST_LONG:-}" ]; then
  echo "passed before with these sources ($sum)"
  exit 0
fi
"${command[@]}"
if [ -n "${NDT_UPDATE:-}" ]; then
  echo "$sum" > "$record"
else
  echo "passed; after a change, record it: NDT_UPDATE=1, or write $sum to $record"
fi
