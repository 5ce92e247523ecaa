#!/usr/bin/env bash
# sdk_test.sh BUILD SOURCE: installs to a fresh prefix and builds what users build, from there.
. "$(dirname "$0")/check.sh"
build=$1
samples=$2/tests/ascc/samples
unset CXX CC CMAKE_CXX_COMPILER_LAUNCHER CMAKE_C_COMPILER_LAUNCHER

expect 0 "cmake --install" cmake --install "$build" --prefix "$work/first"
# The prefix moves before it is used: nothing may remember where it was.
mkdir -p "$work/a b"
mv "$work/first" "$work/a b/sdk"
sdk="$work/a b/sdk"

for file in bin/ascc bin/bisheng lib64/libascendcl.so lib64/stub/libascendcl.so runtime/include/acl/acl.h set_env.sh \
    acllib/lib64/libascendcl.so compiler/tikcpp/ascendc_kernel_cmake/ascendc.cmake include/kernel_operator.h include/tikicpulib.h \
    lib64/libruntime.so lib64/libopapi.so share/cmake/ASC/ASCConfig.cmake bin/setenv.bash \
    opp/built-in/op_proto/libopsproto.so opp/vendors; do
    expect 0 "installed: $file" test -e "$sdk/$file"
done
expect 1 "no file of the SDK names the build folder" grep -rIl -- "$build" "$sdk"

expect 0 "set_env.sh" bash -c "set -eu; . '$sdk/set_env.sh'; . '$sdk/bin/setenv.bash'; [ \"\$ASCEND_HOME_PATH\" = '$sdk' ] && \
[ \"\$ASCEND_TOOLKIT_HOME\" = '$sdk' ] && [ \"\$(command -v ascc)\" = '$sdk/bin/ascc' ] && case \"\$LD_LIBRARY_PATH\" in \
'$sdk/lib64') ;; *) exit 3 ;; esac"
expect 0 "set_env.sh in a plain shell" sh -c "DOPPEL_HOME='$sdk'; . '$sdk/set_env.sh'; [ \"\$ASCEND_HOME_PATH\" = '$sdk' ]"
. "$sdk/set_env.sh"
if command -v pkg-config >/dev/null; then
    printf '#include "acl/acl.h"\nint main(void) { return aclrtSetDevice(0); }\n' >"$work/pc.c"
    expect 0 "pkg-config" bash -c "eval cc '$work/pc.c' -o '$work/pc' \$(pkg-config --cflags --libs doppel) && '$work/pc'"
    expect 0 "examples/aclnn_matmul.c" bash -c "eval cc -Wall -Werror '$2/examples/aclnn_matmul.c' -o '$work/matmul' \
\$(pkg-config --cflags --libs doppel) && '$work/matmul' | tee '$work/matmul.txt'"
    expect 0 "it names the wrong dimension" grep -q 'mat2: dimension 0 is 1024, but must be 768' "$work/matmul.txt"
fi

expect 0 "packages" cpack --config "$build/CPackConfig.cmake" -G "TGZ;DEB" -B "$work/packages"
expect 0 "tarball: a folder with the SDK" bash -c "tar tzf '$work'/packages/doppel-*.tar.gz | grep -q '^doppel-[^/]*/bin/ascc$'"
expect 0 "Debian package: below /opt/doppel" bash -c "dpkg-deb -c '$work'/packages/doppel_*.deb | grep -q './opt/doppel/bin/ascc$'"

configure() { cmake -G Ninja "$@"; }
expect 0 "project(LANGUAGES ASC CXX): configure" configure -S "$samples/language" -B "$work/l"
expect 0 "build" cmake --build "$work/l" -j2
expect 0 "executable with objects of both languages, static and shared library" "$work/l/demo"
expect 0 "C++ program with a kernel library" "$work/l/cxx_only"
expect 0 "install" cmake --install "$work/l" --prefix "$work/lp"
expect 0 "the header is a dependency" bash -c "touch '$samples/language/host.h'; cmake --build '$work/l' -- -n | grep -q main.asc"
expect 0 "project(CXX), then find_package: configure" cmake -G "Unix Makefiles" -DLANGUAGE_FIRST=ON -S "$samples/language" -B "$work/m"
expect 0 "build with make" cmake --build "$work/m" -j2
expect 0 "run" "$work/m/demo"

expect 0 "ascendc_library: configure" configure -DASCEND_CANN_PACKAGE_PATH="$sdk" -S "$samples/library" -B "$work/k"
expect 0 "build" cmake --build "$work/k" -j2
expect 0 "run" "$work/k/main"
expect 0 "header below include/<library>" test -s "$work/k/include/kernels/aclrtlaunch_scale.h"
expect 0 "nothing to do again" bash -c "cmake --build '$work/k' | grep -q 'no work to do'"
expect 0 "ascendc_library with make: configure" cmake -G "Unix Makefiles" -DASCEND_CANN_PACKAGE_PATH="$sdk" -S "$samples/library" -B "$work/km"
expect 0 "build" cmake --build "$work/km" -j2
expect 0 "run" "$work/km/main"

for cxx in g++ clang++; do
    command -v $cxx >/dev/null || { echo "skipped: no $cxx"; continue; }
    expect 0 "tikicpulib with $cxx" $cxx -std=c++17 -Wall -Wextra "-I$sdk/include" "$samples/tikicpulib/main.cpp" \
        "-L$sdk/lib64" -lascendcl "-Wl,-rpath,$sdk/lib64" -o "$work/cpu_$cxx"
    expect 0 "it runs" "$work/cpu_$cxx"
done
expect 0 "find_package(tikicpulib)" configure -S "$samples/tikicpulib" -B "$work/t"
expect 0 "build" cmake --build "$work/t"
expect 0 "run" "$work/t/main"
finish
