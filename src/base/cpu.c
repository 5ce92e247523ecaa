#define _GNU_SOURCE
#include "base/cpu.h"

#include "base/log.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#endif

static pthread_once_t once = PTHREAD_ONCE_INIT, features_once = PTHREAD_ONCE_INIT, cache_once = PTHREAD_ONCE_INIT;
static dp_isa best = DP_ISA_GENERIC, chosen = DP_ISA_GENERIC;
static unsigned features;
static size_t cache_bytes;

static dp_isa probe(void) {
#if defined(__x86_64__)
    __builtin_cpu_init();
    unsigned eax, ebx, ecx = 0, edx; /* clang 14's __builtin_cpu_supports does not know f16c */
    bool f16c = __get_cpuid(1, &eax, &ebx, &ecx, &edx) && (ecx & bit_F16C);
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !f16c)
        return DP_ISA_GENERIC;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512dq"))
        return DP_ISA_AVX512;
    return DP_ISA_AVX2;
#else
    return DP_ISA_GENERIC;
#endif
}

#if defined(__x86_64__)
/* The tile data's state component, whose use has to be asked for (Documentation/arch/x86/xstate.rst of Linux). */
static bool may_use_tiles(void) {
    enum { ARCH_GET_XCOMP_PERM = 0x1022, ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };
    unsigned long granted = 0;
    return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0 &&
           syscall(SYS_arch_prctl, ARCH_GET_XCOMP_PERM, &granted) == 0 && granted >> XFEATURE_XTILEDATA & 1;
}
#endif

static unsigned probe_features(void) {
    unsigned found = 0;
#if defined(__x86_64__)
    unsigned eax, ebx, ecx, edx;
    if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) && (ecx & 1u << 11))
        found |= DP_CPU_AVX512_VNNI;
    if (__get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) && (eax & 1u << 5))
        found |= DP_CPU_AVX512_BF16;
    if ((found & DP_CPU_AVX512_BF16) && __builtin_cpu_is("amd"))
        found |= DP_CPU_BF16_FAST;
    const unsigned tiles = 1u << 22 | 1u << 24 | 1u << 25; /* AMX-BF16, AMX-TILE, AMX-INT8 */
    if ((found & DP_CPU_AVX512_VNNI) && __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) && (edx & tiles) == tiles &&
        may_use_tiles())
        found |= DP_CPU_AMX;
#endif
    return found;
}

static void detect(void) {
    best = chosen = probe();
    const char *wish = getenv("DOPPEL_ISA");
    if (!wish || !*wish)
        return;
    for (int i = 0; i < DP_ISA_COUNT; i++) {
        if (strcmp(wish, dp_isa_name((dp_isa)i)) == 0) {
            if ((dp_isa)i > best)
                dp_log("cpu", DP_LOG_ERROR, "DOPPEL_ISA=%s: this processor stops at %s; using %s", wish,
                       dp_isa_name(best), dp_isa_name(best));
            else
                chosen = (dp_isa)i;
            return;
        }
    }
    dp_log("cpu", DP_LOG_ERROR, "DOPPEL_ISA=%s is not one of generic, avx2, avx512; using %s", wish, dp_isa_name(best));
}

dp_isa dp_cpu_isa(void) {
    pthread_once(&once, detect);
    return chosen;
}

dp_isa dp_cpu_best_isa(void) {
    pthread_once(&once, detect);
    return best;
}

static void detect_features(void) {
    features = dp_cpu_isa() >= DP_ISA_AVX512 ? probe_features() : 0;
}

unsigned dp_cpu_features(void) {
    pthread_once(&features_once, detect_features);
    return features;
}

const char *dp_isa_name(dp_isa isa) {
    static const char *const names[DP_ISA_COUNT] = {"generic", "avx2", "avx512"};
    return isa < DP_ISA_COUNT ? names[isa] : "unknown";
}

unsigned dp_cpu_count(void) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return 1;
    int n = CPU_COUNT(&set);
    return n > 0 ? (unsigned)n : 1;
}

static void detect_cache(void) {
    long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
    cache_bytes = bytes > 0 ? (size_t)bytes : (size_t)512 << 10;
}

size_t dp_cpu_cache_bytes(void) {
    pthread_once(&cache_once, detect_cache);
    return cache_bytes;
}
