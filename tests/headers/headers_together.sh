#!/bin/sh
# headers_together.sh FOLDER MORE CC CXX: all headers of one folder in one file, as C and as C++.
set -eu
folder=$1 more=$2 cc=$3 cxx=$4
file=$(mktemp)
trap 'rm -f "$file"' EXIT
(cd "$folder" && ls ./*.h) | sed "s|^\./\(.*\)|#include \"$(basename "$folder")/\1\"|" >"$file"
echo "$(wc -l <"$file") headers"
for one in "$cc -x c -std=c11 -pedantic" "$cxx -x c++ -std=c++17"; do
    $one -Wall -Wextra -Werror -I"$folder/.." -I"$more" -fsyntax-only "$file"
done
