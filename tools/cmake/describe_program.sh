#!/usr/bin/env bash
# Writes the man page or the shell completion of a program from its --help.
#   describe_program.sh man VERSION PROGRAM OUT          (needs help2man)
#   describe_program.sh bash|zsh VERSION PROGRAM OUT
# An option --set is completed with the names of `ndtd --help-options`. A sub-command (a line under "Commands:") becomes a section of the man page and has options of its own in the
# completion.
set -euo pipefail
what=$1 version=$2 program=$3 out=$4
name=${program##*/}

# A script runs as it is, also where programs of another processor need an emulator.
[ "$(head -c 2 "$program")" != '#!' ] || NDT_EMULATOR=''

run() { # ARGUMENTS...; NDT_EMULATOR: for programs of another processor
    ${NDT_EMULATOR:-} "$program" "$@"
}

commands() {
    run --help | awk '/^Commands:/ { inside = 1; next } /^$/ { inside = 0 } inside { print $1 }'
}

# options ARGUMENTS...: for each option in the help text its name, what its value is called, and what it does, between
# separators
options() {
    run "$@" --help | awk '/^  --?[a-z]/ {
        name = $1; value = ""; text = $0
        sub(/^  [^ ]+/, "", text)
        if (text ~ /^ [^ ]/) { value = $2; sub(/^ [^ ]+/, "", text) }
        sub(/^ +/, "", text)
        printf "%s\037%s\037%s\n", name, value, text
    }'
}

# settings ARGUMENTS...: what --set takes, if there is such an option
settings() {
    ! options "$@" | grep -q '^--set'$'\037' ||
        ${NDT_EMULATOR:-} "$(dirname "$program")/ndtd" --help-options --all | sed -n 's/^\([a-z0-9_]*\.[a-z0-9_.]*\) = .*/\1=/p'
}

man_page() {
    local summary sections command folder started=$program
    summary=$(run --help | sed -nE "s/^$name ([0-9.]+: )?(.*[^.])\.?$/\2/p" | head -n 1)
    folder=$(mktemp -d)
    # shellcheck disable=SC2064
    trap "rm -rf '$folder'" EXIT
    sections=$folder/sections
    if [ -n "${NDT_EMULATOR:-}" ]; then # for help2man, which starts the program
        started=$folder/$name
        printf '#!/bin/sh\nexec %s "%s" "$@"\n' "$NDT_EMULATOR" "$program" >"$started"
        chmod +x "$started"
    fi
    for command in $(commands); do
        printf '[%s %s]\n.nf\n' "$name" "$command"
        run "$command" --help | sed -e 's/\\/\\e/g' -e 's/-/\\-/g' -e "s/^[.']/\\\\\&&/"
        printf '.fi\n\n'
    done | sed 's/^\[.*\]$/\U&/' >"$sections"
    [ -s "$sections" ] || printf '[SEE ALSO]\nThe README of ndtd.\n' >"$sections"
    help2man --no-info --section=1 --name="${summary:-$name}" --source="ndtd $version" --version-string="$version" \
        --include="$sections" --output="$out" "$started"
}

# ---- bash

bash_words() { # ARGUMENTS...: names of options; those that take a value; what --set takes
    echo "words='$(options "$@" | cut -d $'\037' -f 1 | paste -sd' ')'"
    echo "valued=' $(options "$@" | awk -F '\037' '$2 != "" { print $1 }' | paste -sd' ') '"
    echo "settings='$(settings "$@" | paste -sd' ')'"
}

bash_completion() {
    local command function=_${name//-/_} all
    all=$(commands | paste -sd' ')
    echo "# bash completion of $name, generated from its --help"
    echo "$function()"
    echo "{"
    echo "    local cur=\${COMP_WORDS[COMP_CWORD]} words valued settings"
    echo "    COMPREPLY=()"
    echo "    case \${COMP_WORDS[1]} in"
    for command in $all; do
        echo "    $command)"
        bash_words "$command" | sed 's/^/        /'
        echo "        ;;"
    done
    echo "    *)"
    bash_words | sed 's/^/        /'
    echo "        ;;"
    echo "    esac"
    echo "    # values and operands are completed as file names (complete -o default)"
    echo "    case \$valued in *\" \${COMP_WORDS[COMP_CWORD - 1]} \"*)"
    echo "        [ \"\${COMP_WORDS[COMP_CWORD - 1]}\" = --set ] || return"
    echo "        mapfile -t COMPREPLY < <(compgen -W \"\$settings\" -- \"\$cur\")"
    echo "        compopt -o nospace 2>/dev/null"
    echo "        return ;;"
    echo "    esac"
    if [ -n "$all" ]; then
        echo "    [ \$COMP_CWORD -ne 1 ] || words+=' $all'"
        echo "    if [[ \$cur == -* || \$COMP_CWORD -eq 1 ]]; then"
    else
        echo "    if [[ \$cur == -* ]]; then"
    fi
    echo "        mapfile -t COMPREPLY < <(compgen -W \"\$words\" -- \"\$cur\")"
    echo "    fi"
    echo "}"
    echo "complete -o default -F $function $name"
}

# ---- zsh

zsh_arguments() { # ARGUMENTS...: the specifications of _arguments
    local option value text action
    options "$@" | sed -e "s/'/'\\\\''/g" -e 's/[][]/\\&/g' | while IFS=$'\037' read -r option value text; do
        action=_files
        # shellcheck disable=SC2016 # for zsh
        [ "$option" != --set ] || action='{compadd -S "" -- $settings}'
        echo "'*${option}[$text]${value:+:${value//:/}:$action}'"
    done
}

zsh_completion() {
    local command
    echo "#compdef $name"
    echo "# zsh completion of $name, generated from its --help"
    echo "local -a commands arguments settings"
    echo "settings=($({ settings; for command in $(commands); do settings "$command"; done; } | sort -u | paste -sd' '))"
    echo "commands=("
    run --help | awk '/^Commands:/ { inside = 1; next } /^$/ { inside = 0 } inside' |
        sed -e "s/'/'\\\\''/g" -e "s/^ *\([^ ]*\) *\(.*\)/    '\1:\2'/"
    echo ")"
    echo "case \${words[2]} in"
    for command in $(commands); do
        echo "$command) arguments=("
        zsh_arguments "$command" | sed 's/^/    /'
        echo ") ;;"
    done
    echo "*) arguments=("
    zsh_arguments | sed 's/^/    /'
    echo ") ;;"
    echo "esac"
    echo "if (( CURRENT == 2 && \$#commands )) && [[ \${words[2]} != -* ]]; then"
    echo "    _describe command commands"
    echo "else"
    echo "    (( \$#commands == 0 || CURRENT == 2 )) || { shift words; (( CURRENT-- )); }"
    echo "    _arguments \$arguments '*:file:_files'"
    echo "fi"
}

case $what in
man) man_page ;;
bash | zsh) "${what}_completion" >"$out" ;;
*) echo "describe_program.sh: '$what' is none of man, bash and zsh" >&2; exit 2 ;;
esac
