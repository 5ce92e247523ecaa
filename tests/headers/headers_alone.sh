#!/bin/sh
# headers_alone.sh INCLUDE CC CXX [MORE]: compiles every header below INCLUDE alone (headers below MORE may be included):
# acl/, aclnn/, aclnnop/ and doppel/*.h as C11 and C++17,
# c_api/ as C11 and C++17, everything else (the kernel language) as C++17 only. Included twice, it must not complain.
set -u
include=$1 cc=$2 cxx=$3 more=${4:-$1}
failures=0 count=0
output=$(mktemp)
trap 'rm -f "$output"' EXIT

try() { # language standard compiler header extra-flags...
    language=$1 standard=$2 compiler=$3 header=$4
    shift 4
    count=$((count + 1))
    if ! printf '#include "%s"\n#include "%s"\n' "$header" "$header" |
        "$compiler" -x "$language" "-std=$standard" "$@" -Wall -Wextra -I"$include" -I"$more" -fsyntax-only - >"$output" 2>&1 ||
        [ -s "$output" ]; then
        echo "FAIL $header as $standard:"
        head -20 "$output"
        failures=$((failures + 1))
    fi
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
echo "$count compilations, $failures failed"
[ "$count" -gt 0 ] && [ "$failures" -eq 0 ]
