#!/bin/sh
# run_kernels.sh ASCC EMULATOR SOURCE BUILD KERNEL...: cross-builds the library, then builds and runs kernel programs of
# tests/kernels for arm64 in an emulator.
set -eu
ascc=$1 emulator=$2 source=$3 build=$4
shift 4
if [ ! -f "$build/library/build.ninja" ]; then
    cmake -G Ninja -S "$source" -B "$build/library" -DCMAKE_TOOLCHAIN_FILE="$source/tests/arm64/toolchain.cmake" \
        -DDOPPEL_TESTS=OFF -DDOPPEL_BENCH=OFF -DDOPPEL_EXAMPLES=OFF -DCMAKE_BUILD_TYPE=None -DCMAKE_C_FLAGS=-O1 >"$build/configure.log" 2>&1 ||
        { cat "$build/configure.log"; exit 1; }
fi
ninja -C "$build/library" --quiet ascendcl
lib=$build/library/sdk/lib64
failed=0
for kernel in "$@"; do
    case $kernel in *.c) export CC=aarch64-linux-gnu-gcc ;; *) export CXX=aarch64-linux-gnu-g++ ;; esac
    "$ascc" "$source/tests/kernels/$kernel" -O1 -I"$source/tests/kernels" -L"$lib" -o "$build/program"
    if "$emulator" -L /usr/aarch64-linux-gnu -E LD_LIBRARY_PATH="$lib" "$build/program" >"$build/output" 2>&1; then
        echo "$kernel: passed"
    else
        echo "$kernel: failed with status $?"
        cat "$build/output"
        failed=1
    fi
done
exit $failed
