#!/usr/bin/env bash
# fetch.sh FOLDER - the real models of models.tsv, 30 MB, by npm; checked against package-lock.json. Exit status 3: npm cannot fetch them.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
for package in $(tail -n +2 "$here/models.tsv" | cut -f 2 | sort -u); do
    files=$(awk -F '\t' -v package="$package" '$2 == package { print $3 }' "$here/models.tsv")
    # shellcheck disable=SC2086 # one word per file
    "$here/../../examples/detect/fetch.sh" "$here/package-lock.json" "$1" "$package" $files
done
