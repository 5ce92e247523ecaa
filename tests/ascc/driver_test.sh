#!/usr/bin/env bash
# driver_test.sh SDK: ascc as a compiler driver - inputs, outputs, exit codes, messages, debugger.
. "$(dirname "$0")/check.sh"
sdk=$1
script=$(realpath "$0")
ascc=$sdk/bin/ascc
cd "$work" || exit 1

cat >main.asc <<'END'
#include <cstdio>
#include <cstdint>
#include "acl/acl.h"
#include "kernel_operator.h"
#include "part.h"

int main() {
    int *device = nullptr, host[4] = {1, 2, 3, 4};
    if (aclInit(nullptr) || aclrtSetDevice(0) || aclrtMalloc((void **)&device, 32, ACL_MEM_MALLOC_HUGE_FIRST)) return 2;
    aclrtStream stream = nullptr;
    aclrtCreateStream(&stream);
    aclrtMemcpy(device, 16, host, 16, ACL_MEMCPY_HOST_TO_DEVICE);
    for (int i = 0; i < 3; i++)
        twice<<<1, nullptr, stream>>>((uint8_t *)device, 4);
    plus_c<<<1, 256, stream>>>((uint8_t *)device, 4, Step{5, 0});
    with_template<int, 2><<<1, stream>>>((uint8_t *)device, 0);
    aclrtSynchronizeStream(stream);
    aclrtMemcpy(host, 16, device, 16, ACL_MEMCPY_DEVICE_TO_HOST);
    std::printf("%d %d %d %d\n", host[0], host[1], host[2], host[3]);
    return host[0] == 15 && host[1] == 23 && host[2] == 31 && host[3] == 39 ? 0 : 1;
}
END
cat >part.h <<'END'
#include <stdint.h>
#include "ascendc/qualifiers.h"
typedef struct Step { int first, second; } Step;
#ifdef __cplusplus
extern "C" {
#endif
__global__ __aicore__ void twice(GM_ADDR x, uint32_t n);
__global__ __aicore__ void plus_c(GM_ADDR x, uint32_t n, Step s);
void launch_plus_c(uint8_t *x, void *stream);
#ifdef __cplusplus
}
template <typename T, int N> __global__ __aicore__ void with_template(GM_ADDR x, GM_ADDR none) {
    if (none == nullptr)
        for (int i = 0; i < 4; i++)
            ((__gm__ T *)x)[i] += N;
}
#endif
END
cat >kernel.cpp <<'END'
#include "kernel_operator.h"
#include "part.h"
extern "C" __global__ __aicore__ void twice(GM_ADDR x, uint32_t n)
{
    __ubuf__ int scratch[8];
    auto *p = (__gm__ int *)x;
    for (uint32_t i = 0; i < n; i++) {
        scratch[i] = p[i] * 2;
        p[i] = scratch[i];
    }
}
END
cat >kernel_c.c <<'END'
#include "part.h"
__global__ __aicore__ void plus_c(GM_ADDR x, uint32_t n, Step s) {
    extern __ubuf__ int dynamic[];
    __ubuf__ int local[4];
    __gm__ int *p = (__gm__ int *)x;
    for (uint32_t i = 0; i < n; i++) {
        local[i] = s.first + s.second;
        dynamic[i] = p[i] + local[i];
        p[i] = dynamic[i];
    }
}
void launch_plus_c(uint8_t *x, void *stream) { plus_c<<<1, 0, stream>>>(x, 4, (Step){0, 0}); }
END

# --- building and running
expect 0 "several sources of three languages in one program" "$ascc" main.asc kernel.cpp kernel_c.c -Wall -Wextra -o whole
[ -s "$work/out" ] && fail "warnings in generated text: $(head -5 "$work/out")"
expect 0 "it runs and computes" ./whole
expect 0 "-c" "$ascc" -c main.asc kernel.cpp kernel_c.c
expect 0 "objects link" "$ascc" main.o kernel.o kernel_c.o -o linked
expect 0 "linked program runs" ./linked
ar cr libkernels.a kernel.o kernel_c.o
expect 0 "archive" "$ascc" main.asc -L. -lkernels -o archived -lm
expect 0 "program with archive runs" ./archived
expect 0 "shared library" "$ascc" -shared kernel.cpp kernel_c.c -o libkernels_so.so
expect 0 "program with shared library" "$ascc" main.asc ./libkernels_so.so -Wl,-rpath,"$work" -o sharing
expect 0 "it runs" ./sharing
expect 0 "default output" "$ascc" main.asc kernel.o kernel_c.o
expect 0 "a.out runs" ./a.out
expect 0 "vendor's name and flags" "$sdk/bin/bisheng" --cce-soc-version=Ascend910B3 --cce-soc-core-type=VecCore --cce-aicore-lang \
    -mllvm -cce-aicore-stack-size=0x8000 --npu-arch=dav-2201 -O3 -std=c++17 -xcce main.asc -xnone kernel.o kernel_c.o -o vendor
expect 0 "program of the vendor's name runs" ./vendor
for cxx in clang++ g++; do
    command -v $cxx >/dev/null || { echo "skipped: no $cxx"; continue; }
    expect 0 "with $cxx" env CXX=$cxx "$ascc" -std=c++11 -Wall -Wextra main.asc kernel.cpp kernel_c.c -o with_$cxx
    [ -s "$work/out" ] && fail "warnings with $cxx: $(head -5 "$work/out")"
    expect 0 "program of $cxx runs" ./with_$cxx
done

# --- kernels in unnamed and nested namespaces, static, with packs, launched by macros, lambdas and from another file
awkward=$(dirname "$script")/samples/awkward
expect 0 "awkward kernels" "$ascc" -Wall -Wextra "$awkward/main.asc" "$awkward/mixed.asc" -o awkward
[ -s "$work/out" ] && fail "warnings: $(head -5 "$work/out")"
expect 0 "they compute, the mixed one on its own cores" ./awkward
expect 0 "default arguments" "$ascc" -Wall -Wextra "$awkward/defaults.asc" -o defaults
expect 0 "they are filled in" ./defaults
sed 's/declared<<<1, stream>>>(x);/declared<<<1, stream>>>();/' "$awkward/defaults.asc" >no_default.asc
expect 1 "an argument without a default must be given" "$ascc" no_default.asc -o no_default
says "the line of the launch is named" "no_default.asc:32"

# --- stopping early
expect 0 "-E" "$ascc" -E kernel.cpp
says "-E is the preprocessed source" "__global__"
expect 0 "-S" "$ascc" -S kernel.cpp
expect 0 "-S wrote the file" test -s kernel.s
expect 0 "--rewrite" "$ascc" --rewrite kernel.cpp
says "--rewrite is plain C++" "::dp::local_array<int[8], ::DP_SPACE_UB>"
expect 0 "-fsyntax-only" "$ascc" -fsyntax-only main.asc
expect 0 "dependencies" "$ascc" -MD -MF deps.d -MT x.o -c main.asc -o x.o
expect 0 "they name the header" grep -q 'part.h' deps.d
mkdir -p sub
expect 0 "dependencies beside the output" "$ascc" -MD -c main.asc -o sub/y.o
expect 0 "they name the object" grep -q '^sub/y.o:' sub/y.d
printf -- '-c "main.asc"\n-o from_file.o' >arguments
expect 0 "arguments from a file" "$ascc" @arguments
expect 0 "made the object" test -s from_file.o

# --- information
expect 0 "--version" "$ascc" --version
says "--version names the program" "ascc (Doppel)"
expect 0 "--help" "$ascc" --help
says "--help" "usage: ascc"
expect 0 "-###" "$ascc" '-###' main.asc -o never
says "-### shows commands" "cpp-output"
[ -e never ] && fail "-### made a program"

# --- errors
expect 1 "no input" "$ascc"
says "no input" "no input files"
expect 1 "missing file" "$ascc" nowhere.asc
says "missing file" "nowhere.asc: No such file"
expect 1 "-o for several objects" "$ascc" -c main.asc kernel.cpp -o x.o
expect 1 "-o without value" "$ascc" main.asc -o
expect 1 "unknown language" "$ascc" -x fortran main.asc
expect 1 "unknown architecture" "$ascc" --npu-arch=dav-3510 main.asc
says "unknown architecture" "dav-2201"
expect 1 "unknown flag goes to the compiler" "$ascc" -fno-such-flag-at-all main.asc -c -o x.o
rm -f kernel.s
expect 127 "no compiler" env CXX=/nonexistent/c++ "$ascc" -c main.asc
says "no compiler" "set CXX"
rm -f broken
printf '#include "kernel_operator.h"\n\n\n\n\n\n\n\n\n\n__global__ __aicore__ void k(GM_ADDR x) {\n    int y = undeclared_name;\n}\n' >broken.asc
expect 1 "an error of the compiler" "$ascc" broken.asc -o broken
says "names the user's line" "broken.asc:12:"
printf '#include "kernel_operator.h"\n__global__ __aicore__ void k(GM_ADDR x);\nint main() {\n    k<<<1>>>(nullptr);\n}\n' >broken.asc
expect 1 "an error of the translator" "$ascc" broken.asc -o broken
says "names the user's line" "broken.asc:4: error: 1 value"
printf '#include "kernel_operator.h"\n#include <string>\n__global__ __aicore__ void k(std::string s);\nint main() {\n    k<<<1, 0, 0>>>("a");\n}\n' >broken.asc
expect 1 "a string as kernel argument" "$ascc" broken.asc -o broken
says "says what is wrong" "kernel arguments must be plain data"
printf '#include "kernel_operator.h"\n__global__ __aicore__ void k(GM_ADDR x);\nint main() {\n    k<<<1, 64, 0, nullptr>>>(nullptr);\n}\n' >broken.asc
expect 1 "a thread kernel" "$ascc" broken.asc -o broken
says "says what it needs" "needs the SIMT cores"
printf '#include "kernel_operator.h"\n__global__ __aicore__ void k(GM_ADDR x);\nint main() {\n    float *f = nullptr;\n    k<<<1, 64, nullptr>>>(f);\n}\n' >broken.asc
expect 1 "an argument of the wrong type" "$ascc" broken.asc -o broken
says "is the compiler's error at the launch" "broken.asc:5:"
printf '#include "kernel_operator.h"\n__global__ __mix__(1, 2) __aicore__ void k(GM_ADDR x) {\n#if  defined(__DAV_C220_VEC__)\n    *x = 1;\n#endif\n}\n' >broken.asc
expect 1 "a kernel for both cores that decides by a core macro" "$ascc" -c broken.asc -o broken
says "names kernel, macro's line and cure" 'broken.asc:2: error: kernel k runs on cube cores too, but broken.asc:3 decides by a core macro'
[ -e broken ] && fail "an error left a program"
sed -i 's/__mix__(1, 2)/__vector__/' broken.asc
expect 0 "the same for vector cores" "$ascc" -c broken.asc -o for_vector.o
expect 0 "no temporary files are left" bash -c "mkdir tmp && TMPDIR=$work/tmp $ascc -c kernel.cpp -o z.o && [ -z \"\$(ls tmp)\" ]"

# --- a launch the runtime refuses
printf '#include "acl/acl.h"\n#include "kernel_operator.h"\n__global__ __aicore__ void k(GM_ADDR x) {}\nint main() {\n    aclrtSetDevice(0);\n    k<<<0, 0, nullptr>>>(nullptr);\n}\n' >refused.asc
expect 0 "a launch of 0 blocks builds" "$ascc" refused.asc -o refused
expect 0 "it runs" ./refused
says "and is reported with its line" "refused.asc:6: error: launch of k failed"

# --- the debugger sees the user's lines
if command -v gdb >/dev/null; then
    expect 0 "build for the debugger" "$ascc" -g -O0 main.asc kernel.cpp kernel_c.c -o debugged
    expect 0 "gdb" gdb -q -batch -ex 'set breakpoint pending on' -ex 'break kernel.cpp:8' -ex run -ex 'print n' -ex next -ex next ./debugged
    says "breakpoint on a kernel line" "kernel.cpp:8"
    says "arguments are visible" '$1 = 4'
    says "a step goes to the next line" "p[i] = scratch[i];"
else
    echo "skipped: gdb is not installed"
fi
finish
