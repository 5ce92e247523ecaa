#!/bin/sh
# run_kernels.sh ASCC EMULATOR SOURCE BUILD KERNEL...: builds kernel programs of tests/kernels for arm64 with the library that build.sh
# made, and runs them in an emulator.
set -eu
ascc=$1 emulator=$2 source=$3 build=$4
shift 4
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
