#!/bin/sh
# headers_alone.sh INCLUDE CC CXX [MORE]: compiles every header below INCLUDE alone (headers below MORE may be included):
# acl/, aclnn/, aclnnop/ and doppel/*.h as C11 and C++17,
# c_api/ as C11 and C++17, everything else (the kernel language) as C++17 only. Included twice, it must not complain.
set -u
include=$1 cc=$2 cxx=$3 more=${4:-$1}
failures=0 count=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# GNU's front end takes one file; clang's takes many and forgets each before the next, which saves hundreds of starts.
"$cc" --version 2>/dev/null | grep -q clang && batch=yes || batch=no

# fail NAME: what the compiler said about it is in $work/output
fail() {
    echo "FAIL $1:"
    head -20 "$work/output"
    failures=$((failures + 1))
}

try() { # language standard compiler header extra-flags...
    language=$1 standard=$2 compiler=$3 header=$4
    shift 4
    count=$((count + 1))
    if [ $batch = yes ]; then
        folder="$work/$language $standard $*"
        [ -d "$folder" ] || mkdir "$folder"
        printf '#include "%s"\n#include "%s"\n' "$header" "$header" >"$folder/$count.c"
    elif ! printf '#include "%s"\n#include "%s"\n' "$header" "$header" |
        "$compiler" -x "$language" "-std=$standard" "$@" -Wall -Wextra -I"$include" -I"$more" -fsyntax-only - >"$work/output" 2>&1 ||
        [ -s "$work/output" ]; then
        fail "$header as $standard"
    fi
}

run_batches() {
    for folder in "$work"/*/; do
        name=$(basename "$folder")
        case $name in c\ *) compiler=$cc ;; *) compiler=$cxx ;; esac
        set -- $name # language standard flags...
        language=$1 standard=$2
        shift 2
        # the command of the front end itself; its last word is the input
        command=$("$compiler" '-###' -x "$language" "-std=$standard" "$@" -Wall -Wextra -I"$include" -I"$more" -fsyntax-only /dev/null 2>&1 |
            tail -n 1)
        eval "${command% *}" '"$folder"*.c' >"$work/output" 2>&1 && [ ! -s "$work/output" ] || fail "as $standard"
    done
}

headers=$(cd "$include" && find . -name '*.h' -o -name '*.hpp' | sed 's|^\./||' | sort)
for header in $headers; do
    case $header in
    doppel/*.hpp) try c++ c++17 "$cxx" "$header" ;;
    acl/* | doppel/* | aclnn/* | aclnnop/*)
        try c c11 "$cc" "$header" -Werror -pedantic -DENABLE_DVPP_INTERFACE
        try c++ c++17 "$cxx" "$header" -Werror -DENABLE_DVPP_INTERFACE
        ;;
    c_api/*)
        try c gnu11 "$cc" "$header"
        try c++ gnu++17 "$cxx" "$header"
        ;;
    *) try c++ gnu++17 "$cxx" "$header" ;;
    esac
done
[ $batch = no ] || run_batches
echo "$count compilations, $failures failed"
[ "$count" -gt 0 ] && [ "$failures" -eq 0 ]
