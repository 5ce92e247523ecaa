#!/bin/sh
# run_math.sh COMPILER EMULATOR SOURCE BUILD: builds the testers of the math floor for arm64 with the library that build.sh made
# (generic rung), and runs them in the emulator.
set -eu
compiler=$1 emulator=$2 root=$3 build=$4
flags="-std=gnu11 -O2 -Wall -Wextra -I$root/include -I$root/src -I$root/tests/math -I$root/tests/arm64"
library="$build/library/libdoppel_internal.a"
for name in reference rung gemm rows; do
    count=1024
    [ $name = gemm ] && count=200
    [ $name = rows ] && count=60
    "$compiler" $flags -DDP_TEST_COUNT=$count -static "$root/tests/math/${name}_test.c" "$library" -o "$build/$name" -lm -lpthread
    echo "== $name"
    "$emulator" "$build/$name"
done
