#!/usr/bin/env bash
# tools/dev/mutation/mutate on a project of forty lines: every outcome occurs, known results are not run again, the score decides the
# exit code.   selftest.sh SOURCE_DIR
set -uo pipefail
source=${1:?source folder}
for program in git cmake ninja ctest gcov cc; do
    command -v $program >/dev/null || { echo "skipped: no $program"; exit 77; }
done
git -C "$source" -c safe.directory='*' rev-parse >/dev/null 2>&1 || { echo "skipped: not a git checkout"; exit 77; }
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failed=0

mutate() { # ARGUMENT...: with the project of this folder
    CC=cc "$source/tools/dev/mutation/mutate" --source "$source/tools/dev/mutation/project" --folders src --work "$work/mutants" "$@"
}

# expect CODE PATTERN ARGUMENT...: PATTERN matches the whole of a line of the output
expect() {
    local code=$1 pattern=$2 got
    shift 2
    mutate "$@" >"$work/out" 2>&1
    got=$?
    if [ $got != "$code" ] || ! grep -qxE -- "$pattern" "$work/out"; then
        echo "mutate $*: exit code $got, expected $code and a line '$pattern' in:"
        cat "$work/out"
        failed=1
    fi
}

file=src/mutated.c
before=$(cat "$source/tools/dev/mutation/project/$file")
expect 0 "1/1 $file:2:16:constant killed test_mutated *" --only $file:2
expect 0 "1/1 $file:14:12:constant survived *" --only $file:14:constant
expect 0 "survived $file:19:18:arith \(no test runs it\)" --only $file:19:arith
expect 0 "1/1 $file:24:8:never equivalent *" --only $file:24:never
expect 0 "1/1 $file:33:9:drop killed test_mutated \(timeout\)" --only $file:33:drop
expect 0 "1/1 $file:39:18:arith not compiled *" --only $file:39:arith
expect 0 '  \+ return value - 1;' --list --only $file:19:arith
expect 0 '6 mutants: 2 killed, 2 survived, 1 equivalent, 1 not compiled; score 50.0 %' --report
expect 1 '6 mutants: .* score 50.0 %' --report --least 51
cat >"$work/named" <<'EOF'
# Mutants that change nothing.
src/mutated.c: the reason
  - return 2 * value; /* tested with 0 only */
  + return (2 + 1) * value; /* tested with 0 only */
EOF
expect 0 '6 mutants: 2 killed, 1 survived, 2 equivalent, 1 not compiled; score 66.7 %' --report --equivalent "$work/named"
expect 0 '2 mutants: 0 killed, 2 survived, 0 equivalent, 0 not compiled; score 0.0 %' --again survived
expect 0 '4/4 .*' --seed 1 --count 4
lines=$(mutate --seed 1 --count 4 | grep -c '^[0-9]*/4 ')
[ "$lines" = 0 ] || { echo "$lines mutants were run again"; failed=1; }
[ "$before" = "$(cat "$source/tools/dev/mutation/project/$file")" ] || { echo "the work tree was changed"; failed=1; }
exit $failed
