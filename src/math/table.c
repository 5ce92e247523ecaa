/* table.c - builds the table of every rung once. */
#include "math/fill.h"

#include <pthread.h>
#include <string.h>

#define DP_MATH_FILL_ALL(rung)                                                                                         \
    static void fill_##rung(dp_math *table) {                                                                          \
        dp_math_fill_elementwise_##rung(table);                                                                        \
        dp_math_fill_transcendental_##rung(table);                                                                     \
        dp_math_fill_integer_##rung(table);                                                                            \
        dp_math_fill_cast_##rung(table);                                                                               \
        dp_math_fill_compare_##rung(table);                                                                            \
        dp_math_fill_reduce_##rung(table);                                                                             \
        dp_math_fill_move_##rung(table);                                                                               \
    }

DP_MATH_FILL_ALL(generic)
#if defined(DP_MATH_HAVE_X86)
DP_MATH_FILL_ALL(avx2)
DP_MATH_FILL_ALL(avx512)
#endif

static dp_math tables[DP_ISA_COUNT];
static const dp_math *in_force;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void build(void) {
    fill_generic(&tables[DP_ISA_GENERIC]);
    dp_math_fill_cast_wide_generic(&tables[DP_ISA_GENERIC]);
    dp_math_fill_atomic_generic(&tables[DP_ISA_GENERIC]);
    tables[DP_ISA_AVX2] = tables[DP_ISA_AVX512] = tables[DP_ISA_GENERIC];
#if defined(DP_MATH_HAVE_X86)
    if (dp_cpu_best_isa() >= DP_ISA_AVX2) {
        fill_avx2(&tables[DP_ISA_AVX2]);
        tables[DP_ISA_AVX512] = tables[DP_ISA_AVX2];
    }
    if (dp_cpu_best_isa() >= DP_ISA_AVX512)
        fill_avx512(&tables[DP_ISA_AVX512]);
#endif
    in_force = &tables[dp_cpu_isa()];
}

const dp_math *dp_math_table(dp_isa isa) {
    pthread_once(&once, build);
    return &tables[isa < DP_ISA_COUNT ? isa : DP_ISA_GENERIC];
}

const dp_math *dp_math_current(void) {
    pthread_once(&once, build);
    return in_force;
}
