/*
 * abi.h - linkage macros and the source location every call of the kernel face carries.
 *
 * Included by C11 and C++17 code alike. Nothing here depends on the rest of Doppel.
 */
#ifndef DOPPEL_ABI_H
#define DOPPEL_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define DP_EXTERN_C extern "C"
#define DP_BEGIN_DECLS extern "C" {
#define DP_END_DECLS }
#else
#define DP_EXTERN_C extern
#define DP_BEGIN_DECLS
#define DP_END_DECLS
#endif

#define DP_API __attribute__((visibility("default")))
#define DP_LIKELY(x) __builtin_expect(!!(x), 1)
#define DP_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define DP_PRINTF(format_index, first_arg) __attribute__((format(printf, format_index, first_arg)))

/* Place in the user's program. `file` is a string literal (never freed, compared by content); line 0 = unknown. */
typedef struct dp_loc {
    const char *file;
    uint32_t line;
#ifdef __cplusplus
    /* As a default argument this names the caller, like std::source_location::current(). */
    static constexpr dp_loc current(const char *f = __builtin_FILE(), uint32_t l = __builtin_LINE()) {
        return dp_loc{f, l};
    }
#endif
} dp_loc;

#ifdef __cplusplus
#define DP_HERE (dp_loc{__FILE__, (uint32_t)__LINE__})
#else
#define DP_HERE ((dp_loc){__FILE__, (uint32_t)__LINE__})
#endif

#endif
