/*
 * tikicpulib.h - kernels called from a host program that a plain C++17 compiler builds (no ascc).
 *
 *     AscendC::SetKernelMode(KernelMode::AIV_MODE);
 *     auto *x = (uint8_t *)AscendC::GmAlloc(bytes);
 *     ICPU_RUN_KF(add_custom, 8, x, y, z);
 *     AscendC::GmFree(x);
 *
 * Blocks run in this process, on the runtime's worker threads. Words like KERNEL_TASK_TYPE_DEFAULT are not visible to the
 * launch here: which cores a block occupies is what SetKernelMode said last, one vector core before that.
 */
#ifndef DOPPEL_TIKICPULIB_H
#define DOPPEL_TIKICPULIB_H

#ifndef ASCENDC_CPU_DEBUG
#define ASCENDC_CPU_DEBUG 1
#endif

#include <cstdio>
#include <map>
#include <mutex>

#include "acl/acl.h"
#include "doppel/kernel_rt.h"
#include "doppel/launcher.hpp"
#include "kernel_operator.h"

/* Cores of one block. */
enum class KernelMode { MIX_MODE = 0, AIC_MODE = 1, AIV_MODE = 2, MIX_AIC_1_1 = 3 };

namespace dp {

struct icpu_state {
    std::mutex lock;
    std::map<uint64_t, size_t> sizes; /* of GmAlloc, by address */
    dp_core_mix mix = DP_MIX_AIV;

    static icpu_state &get() {
        static icpu_state state;
        return state;
    }
};

/* Host programs of this kind do not know devices: device 0 is taken when the thread has none. */
inline bool icpu_use_device() {
    aclrtContext context = nullptr;
    if (aclrtGetCurrentContext(&context) == ACL_SUCCESS && context)
        return true;
    return aclrtSetDevice(0) == ACL_SUCCESS;
}

inline void icpu_report(dp_loc where, const char *what, int status) {
    const char *reason = aclGetRecentErrMsg();
    std::fprintf(stderr, "%s:%u: error: %s failed (%d): %s\n", where.file, where.line, what, status,
                 reason ? reason : "no reason was recorded");
}

template <class T> struct icpu_identity {
    using type = T;
};

template <class... P>
void icpu_run(const char *name, dp_loc where, void (*kernel)(P...), uint32_t blocks,
              typename icpu_identity<P>::type... args) {
    dp_kernel_info info = {};
    info.core_mix = static_cast<uint8_t>(icpu_state::get().mix);
    int status = icpu_use_device() ? ACL_SUCCESS : ACL_ERROR_RT_CONTEXT_NULL;
    if (status == ACL_SUCCESS)
        status = launch(info, name, where, kernel, blocks, nullptr, nullptr).run(args...);
    if (status == ACL_SUCCESS)
        status = aclrtSynchronizeStream(nullptr);
    if (status != ACL_SUCCESS)
        icpu_report(where, name, status);
}

} // namespace dp

namespace AscendC {

/* Zeroed device memory that host code may also touch directly; nullptr with a message when there is none. */
inline void *GmAlloc(size_t size, dp_loc where = dp_loc::current()) {
    void *block = nullptr;
    int status = dp::icpu_use_device() ? ACL_SUCCESS : ACL_ERROR_RT_CONTEXT_NULL;
    if (status == ACL_SUCCESS)
        status = aclrtMalloc(&block, size, ACL_MEM_MALLOC_HUGE_FIRST);
    if (status == ACL_SUCCESS)
        status = aclrtMemset(block, size, 0, size);
    if (status != ACL_SUCCESS) {
        dp::icpu_report(where, "GmAlloc", status);
        return nullptr;
    }
    auto &state = dp::icpu_state::get();
    const std::lock_guard<std::mutex> guard(state.lock);
    state.sizes[reinterpret_cast<uint64_t>(block)] = size;
    return block;
}

inline void GmFree(void *block, dp_loc where = dp_loc::current()) {
    if (!block)
        return;
    const int status = aclrtFree(block);
    if (status != ACL_SUCCESS)
        dp::icpu_report(where, "GmFree", status);
    auto &state = dp::icpu_state::get();
    const std::lock_guard<std::mutex> guard(state.lock);
    state.sizes.erase(reinterpret_cast<uint64_t>(block));
}

/* Size that GmAlloc was asked for, 0 if the address is none of its blocks. */
inline size_t GmGetUserSize(uint64_t address) {
    auto &state = dp::icpu_state::get();
    const std::lock_guard<std::mutex> guard(state.lock);
    const auto found = state.sizes.find(address);
    return found == state.sizes.end() ? 0 : found->second;
}

inline void SetKernelMode(::KernelMode mode) {
    static constexpr dp_core_mix mixes[] = {DP_MIX_AIC_1_2, DP_MIX_AIC, DP_MIX_AIV, DP_MIX_AIC_1_1};
    dp::icpu_state::get().mix = mixes[static_cast<int>(mode)];
}

} // namespace AscendC

/* Runs `blkdim` blocks of the kernel and waits for them. */
#define ICPU_RUN_KF(func, blkdim, ...) ::dp::icpu_run(#func, DP_HERE, func, (blkdim), ##__VA_ARGS__)
#define ICPU_SET_TILING_KEY(key) ::dp_tiling_key_set(static_cast<uint64_t>(key))

#endif
