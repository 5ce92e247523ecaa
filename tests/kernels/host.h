/*
 * host.h - what every kernel program of this folder does on the host: a device, a stream, arrays, comparing with plain C++.
 */
#ifndef DOPPEL_TESTS_KERNELS_HOST_H
#define DOPPEL_TESTS_KERNELS_HOST_H

#include <acl/acl.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                                                                                   \
    do {                                                                                                              \
        aclError error_ = (call);                                                                                     \
        if (error_ != ACL_SUCCESS) {                                                                                  \
            const char *why_ = aclGetRecentErrMsg();                                                                  \
            std::fprintf(stderr, "%s:%d: %s failed: %d %s\n", __FILE__, __LINE__, #call, error_, why_ ? why_ : "");   \
            std::exit(1);                                                                                             \
        }                                                                                                             \
    } while (0)

/* Device 0 and a stream, given back at the end of main. */
class Session {
public:
    Session() {
        CHECK(aclInit(nullptr));
        CHECK(aclrtSetDevice(0));
        CHECK(aclrtCreateStream(&stream));
    }
    ~Session() {
        CHECK(aclrtDestroyStream(stream));
        CHECK(aclrtResetDevice(0));
        CHECK(aclFinalize());
    }
    void wait() { CHECK(aclrtSynchronizeStream(stream)); }

    aclrtStream stream = nullptr;
};

/* An array in device memory. */
template <typename T>
class Array {
public:
    explicit Array(size_t count) : count_(count) {
        CHECK(aclrtMalloc(&memory_, count * sizeof(T), ACL_MEM_MALLOC_HUGE_FIRST));
        CHECK(aclrtMemset(memory_, count * sizeof(T), 0, count * sizeof(T)));
    }
    explicit Array(const std::vector<T> &values) : Array(values.size()) {
        CHECK(aclrtMemcpy(memory_, count_ * sizeof(T), values.data(), count_ * sizeof(T), ACL_MEMCPY_HOST_TO_DEVICE));
    }
    Array(const Array &) = delete;
    Array &operator=(const Array &) = delete;
    ~Array() { CHECK(aclrtFree(memory_)); }

    uint8_t *addr() const { return static_cast<uint8_t *>(memory_); }
    std::vector<T> read() const {
        std::vector<T> values(count_);
        CHECK(aclrtMemcpy(values.data(), count_ * sizeof(T), memory_, count_ * sizeof(T), ACL_MEMCPY_DEVICE_TO_HOST));
        return values;
    }

private:
    size_t count_;
    void *memory_ = nullptr;
};

/* A repeatable number in [low, high). */
inline float random_between(float low, float high) {
    static uint64_t state = 0x9e3779b97f4a7c15ull;
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return low + (high - low) * static_cast<float>(state >> 40) / 16777216.0f;
}
inline std::vector<float> random_floats(size_t count, float low, float high) {
    std::vector<float> values(count);
    for (float &v : values)
        v = random_between(low, high);
    return values;
}

/* 0 when all elements are within tolerance * max(1, |wanted|); else prints the first that is not and returns 1. */
template <typename T, typename U>
int compare(const char *what, const std::vector<T> &got, const std::vector<U> &wanted, double tolerance = 0) {
    if (got.size() != wanted.size()) {
        std::fprintf(stderr, "%s: %zu elements instead of %zu\n", what, got.size(), wanted.size());
        return 1;
    }
    for (size_t i = 0; i < got.size(); i++) {
        double g = static_cast<double>(got[i]), w = static_cast<double>(wanted[i]);
        if (!(std::fabs(g - w) <= tolerance * std::fmax(1.0, std::fabs(w)))) {
            std::fprintf(stderr, "%s: element %zu is %.9g instead of %.9g\n", what, i, g, w);
            return 1;
        }
    }
    std::fprintf(stderr, "%s: %zu elements are right\n", what, got.size());
    return 0;
}

#endif
