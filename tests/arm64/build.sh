#!/bin/sh
# build.sh SOURCE BUILD: cross-builds the library for arm64, once for all tests of this folder: the loops with the flags that users get
# (vectorised by the compiler), the rest with -O1.
set -eu
source=$1 build=$2
mkdir -p "$build"
if [ ! -f "$build/library/build.ninja" ]; then
    cmake -G Ninja -S "$source" -B "$build/library" -DCMAKE_TOOLCHAIN_FILE="$source/tests/arm64/toolchain.cmake" \
        -DDOPPEL_TESTS=OFF -DDOPPEL_BENCH=OFF -DDOPPEL_EXAMPLES=OFF -DCMAKE_BUILD_TYPE=None -DCMAKE_C_FLAGS=-O1 >"$build/configure.log" 2>&1 ||
        { cat "$build/configure.log"; exit 1; }
fi
ninja -C "$build/library" --quiet ascendcl doppel_internal
