#!/bin/sh
# run_math.sh <compiler> <emulator> <source root> <work folder>
# Builds base, math and their testers for arm64 (generic rung, vectorised by the compiler) and runs them in the emulator.
set -eu
compiler=$1 emulator=$2 root=$3 work=$4
mkdir -p "$work"
flags="-std=gnu11 -O2 -Wall -Wextra -I$root/include -I$root/src -I$root/tests/math -I$root/tests/arm64"
math_flags="-O3 -ffp-contract=off -fno-math-errno -fno-trapping-math" # as in src/math/CMakeLists.txt
objects=
base_objects=
for source in "$root"/src/base/*.c "$root"/src/math/*.c; do
    object=$work/$(basename "$source" .c).o
    case $source in
    */math/*) "$compiler" $flags $math_flags -c "$source" -o "$object" ;;
    *) "$compiler" $flags -c "$source" -o "$object" && base_objects="$base_objects $object" ;;
    esac
    objects="$objects $object"
done
for source in plan tile rung kernel pack finish decode; do # flags as in src/math/CMakeLists.txt
    "$compiler" $flags -O3 -ffp-contract=fast -fno-math-errno -fno-trapping-math -c "$root/src/math/gemm/$source.c" \
        -o "$work/gemm_$source.o"
done
"$compiler" $flags -DDP_TEST_COUNT=200 -static "$root/tests/math/gemm_test.c" "$work"/gemm_*.o $base_objects \
    -o "$work/gemm" -lm -lpthread
for name in reference rung; do
    "$compiler" $flags -DDP_TEST_COUNT=1024 -static "$root/tests/math/${name}_test.c" $objects -o "$work/$name" -lm -lpthread
done
for name in reference rung gemm; do
    echo "== $name"
    "$emulator" "$work/$name"
done
