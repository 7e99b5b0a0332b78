#!/bin/sh
# Writes the version script of a shared library: functions and data that the headers declare are public.
#   public_symbols.sh VERSION OUT HEADER...
set -eu
version=$1 out=$2
shift 2
{
    echo "$version {"
    echo "global:"
    {
        cat "$@" | grep -oE '\bndtd?_[a-z0-9_]+ ?\(' | tr -d ' ('
        cat "$@" | tr '\n' ' ' | grep -oE 'extern const [^;(]*;' | grep -oE 'ndtd?_[a-z0-9_]+(\[[^]]*\])?;' | sed 's/[[;].*//'
    } | sort -u | sed 's/.*/    &;/'
    echo "local:"
    echo "    *;"
    echo "};"
} >"$out"
