#!/usr/bin/env bash
# Writes the man page or the bash completion of a program from its --help.
#   describe_program.sh man VERSION PROGRAM OUT          (needs help2man)
#   describe_program.sh completion VERSION PROGRAM OUT
# A sub-command (a line under "Commands:") becomes a section of the man page and has options of its own in the
# completion.
set -euo pipefail
what=$1 version=$2 program=$3 out=$4
name=${program##*/}

commands() {
    "$program" --help | awk '/^Commands:/ { inside = 1; next } /^$/ { inside = 0 } inside { print $1 }'
}

# options ARGUMENTS...: names in the help text, with '=' behind those that take a value
options() {
    "$program" "$@" --help | sed -nE 's/^  (--?[a-z][a-z-]*) [^ ].*/\1=/p; t; s/^  (--?[a-z][a-z-]*)( .*)?$/\1/p'
}

man_page() {
    local summary sections command
    summary=$("$program" --help | sed -nE "s/^$name ([0-9.]+: )?(.*[^.])\.?$/\2/p" | head -n 1)
    sections=$(mktemp)
    # shellcheck disable=SC2064
    trap "rm -f '$sections'" EXIT
    for command in $(commands); do
        printf '[%s %s]\n.nf\n' "$name" "$command"
        "$program" "$command" --help | sed -e 's/\\/\\e/g' -e 's/-/\\-/g' -e "s/^[.']/\\\\\&&/"
        printf '.fi\n\n'
    done | sed 's/^\[.*\]$/\U&/' >"$sections"
    [ -s "$sections" ] || printf '[SEE ALSO]\nThe README of ndtd.\n' >"$sections"
    help2man --no-info --section=1 --name="${summary:-$name}" --source="ndtd $version" --version-string="$version" \
        --include="$sections" --output="$out" "$program"
}

completion() {
    local command function=_${name//-/_} taken="" list
    {
        echo "# bash completion of $name, generated from its --help"
        echo "$function()"
        echo "{"
        echo "    local cur=\${COMP_WORDS[COMP_CWORD]} words valued"
        echo "    COMPREPLY=()"
        echo "    case \${COMP_WORDS[1]} in"
        for command in $(commands); do
            list=$(options "$command")
            echo "    $command)"
            echo "        words='$(tr -d = <<<"$list" | paste -sd' ')' valued=' $(sed -n 's/=$//p' <<<"$list" | paste -sd' ') ' ;;"
            taken+=" $command"
        done
        list=$(options)
        echo "    *)"
        echo "        words='$(tr -d = <<<"$list" | paste -sd' ')' valued=' $(sed -n 's/=$//p' <<<"$list" | paste -sd' ') ' ;;"
        echo "    esac"
        echo "    # values and operands are completed as file names (complete -o default)"
        echo "    case \$valued in *\" \${COMP_WORDS[COMP_CWORD - 1]} \"*) return ;; esac"
        if [ -n "$taken" ]; then
            echo "    [ \$COMP_CWORD -ne 1 ] || words+='$taken'"
            echo "    if [[ \$cur == -* || \$COMP_CWORD -eq 1 ]]; then"
        else
            echo "    if [[ \$cur == -* ]]; then"
        fi
        echo "        mapfile -t COMPREPLY < <(compgen -W \"\$words\" -- \"\$cur\")"
        echo "    fi"
        echo "}"
        echo "complete -o default -F $function $name"
    } >"$out"
}

case $what in
man) man_page ;;
completion) completion ;;
*) echo "describe_program.sh: '$what' is neither man nor completion" >&2; exit 2 ;;
esac
