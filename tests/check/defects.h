/*
 * defects.h - frame of the seeded-defect programs: `program <name>` runs a kernel with one mistake, `program <name> fixed`
 * its corrected twin, `program` lists the names.
 *
 * The lines a report must name carry the marks `@name` (the place) and `@name:other` (the other place).
 */
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "acl/acl.h"
#include "kernel_operator.h"

using namespace AscendC;

struct Defect {
    const char *name;
    void (*run)(bool fixed, aclrtStream stream);
};

#define OK(call)                                                                                                       \
    do {                                                                                                               \
        if ((call) != ACL_SUCCESS)                                                                                     \
            std::printf("refused: %s\n", #call);                                                                       \
    } while (0)

/* Device memory of n elements, filled with `value` unless it is to stay empty. */
template <typename T> struct Device {
    void *ptr = nullptr;
    size_t bytes;
    explicit Device(size_t n) : bytes(n * sizeof(T)) { OK(aclrtMalloc(&ptr, bytes, ACL_MEM_MALLOC_HUGE_FIRST)); }
    Device(size_t n, T value) : Device(n) {
        std::vector<T> host(n, value);
        OK(aclrtMemcpy(ptr, bytes, host.data(), bytes, ACL_MEMCPY_HOST_TO_DEVICE));
    }
    ~Device() { aclrtFree(ptr); }
    Device(const Device &) = delete;
    operator GM_ADDR() const { return reinterpret_cast<GM_ADDR>(ptr); }
};

inline int RunDefect(const Defect *defects, size_t count, int argc, char **argv) {
    if (argc < 2) {
        for (size_t i = 0; i < count; i++)
            std::printf("%s\n", defects[i].name);
        return 0;
    }
    bool fixed = argc > 2 && std::strcmp(argv[2], "fixed") == 0;
    for (size_t i = 0; i < count; i++) {
        if (std::strcmp(defects[i].name, argv[1]) != 0)
            continue;
        aclrtStream stream = nullptr;
        OK(aclInit(nullptr));
        OK(aclrtSetDevice(0));
        OK(aclrtCreateStream(&stream));
        defects[i].run(fixed, stream);
        aclrtSynchronizeStream(stream);
        aclrtDestroyStream(stream);
        aclrtResetDevice(0);
        aclFinalize();
        return 0;
    }
    std::fprintf(stderr, "no defect named %s\n", argv[1]);
    return 2;
}
