/*
 * kernels.c - the loops of kernels.h. Compiled once per rung.
 */
#include "ops/reduce/kernels.h"

#include <math.h>
#include <string.h>

#include "math/math.h"
#include "ops/rung.h"

typedef float f32;
typedef double f64;
typedef int64_t i64;
typedef double acc_f32;
typedef double acc_f64;
typedef int64_t acc_i64;

#define LANE_f32 real
#define LANE_f64 real
#define LANE_i64 integer

#define STEP_OF(TYPE, LANE, name, EXPRESSION)                                                                          \
    static void name##_##TYPE(dp_lanes *lanes, const void *tile, const dp_reduce_step *step) {                         \
        const TYPE *row = tile;                                                                                        \
        const double parameter = step->parameter;                                                                      \
        (void)parameter;                                                                                               \
        for (size_t r = 0; r < step->rows; r++, row += step->lanes) {                                                  \
            DP_IVDEP for (size_t i = 0; i < step->lanes; i++) {                                                        \
                const acc_##TYPE x = row[i], v = lanes->value[i].LANE;                                                 \
                const double aux = lanes->aux[i];                                                                      \
                (void)aux;                                                                                             \
                lanes->value[i].LANE = (EXPRESSION);                                                                   \
            }                                                                                                          \
        }                                                                                                              \
    }
#define STEP_OF_EXPAND(TYPE, LANE, name, EXPRESSION) STEP_OF(TYPE, LANE, name, EXPRESSION)
#define STEP(TYPE, name, EXPRESSION) STEP_OF_EXPAND(TYPE, LANE_##TYPE, name, EXPRESSION)
#define REALS(name, EXPRESSION) STEP(f32, name, EXPRESSION) STEP(f64, name, EXPRESSION)
#define ALL(name, REAL, INTEGER) REALS(name, REAL) STEP(i64, name, INTEGER)

ALL(sum, v + x, (i64)((uint64_t)v + (uint64_t)x))
REALS(nansum, x == x ? v + x : v)
ALL(prod, v *x, (i64)((uint64_t)v *(uint64_t)x))
ALL(max, x <= v || v != v ? v : x, x > v ? x : v)
ALL(min, x >= v || v != v ? v : x, x < v ? x : v)
ALL(any, x != 0 ? 1 : v, x != 0 ? 1 : v)
ALL(all, x == 0 ? 0 : v, x == 0 ? 0 : v)
REALS(squares, v + (x - aux) * (x - aux))
REALS(abs_sum, v + fabs(x))
REALS(power, v + pow(fabs(x), parameter))
REALS(count_not0, v + (x != 0))
REALS(max_abs, fabs(x) <= v || v != v ? v : fabs(x))
REALS(min_abs, fabs(x) >= v || v != v ? v : fabs(x))
STEP(f64, exp_sum, v + exp(x - aux))

static void exp_sum_f32(dp_lanes *lanes, const void *tile, const dp_reduce_step *step) {
    const f32 *row = tile;
    f32 u[DP_TILE];
    const dp_math *math = dp_math_current();
    for (size_t r = 0; r < step->rows; r++, row += step->lanes) {
        DP_IVDEP for (size_t i = 0; i < step->lanes; i++) u[i] = (f32)(row[i] - lanes->aux[i]);
        math->unary[DP_MATH_EXP][DP_F32](u, u, step->lanes);
        DP_IVDEP for (size_t i = 0; i < step->lanes; i++) lanes->value[i].real += u[i];
    }
}

#define ARG(TYPE, LANE, name, BETTER)                                                                                  \
    static void name##_##TYPE(dp_lanes *lanes, const void *tile, const dp_reduce_step *step) {                         \
        const TYPE *row = tile;                                                                                        \
        for (size_t r = 0; r < step->rows; r++, row += step->lanes) {                                                  \
            i64 index = step->index + (i64)r * step->index_row;                                                        \
            for (size_t i = 0; i < step->lanes; i++) {                                                                 \
                const acc_##TYPE x = row[i], v = lanes->value[i].LANE;                                                 \
                i64 at = index + (i64)i * step->index_lane;                                                            \
                bool better = lanes->index[i] < 0 || (BETTER);                                                         \
                lanes->value[i].LANE = better ? x : v;                                                                 \
                lanes->index[i] = better ? at : lanes->index[i];                                                       \
            }                                                                                                          \
        }                                                                                                              \
    }
ARG(f32, real, argmax, v == v && !(x <= v))
ARG(f64, real, argmax, v == v && !(x <= v))
ARG(i64, integer, argmax, x > v)
ARG(f32, real, argmin, v == v && !(x >= v))
ARG(f64, real, argmin, v == v && !(x >= v))
ARG(i64, integer, argmin, x < v)

#define PUT_REALS(id, name)                                                                                            \
    table->run[id][DP_COMPUTE_F32] = name##_f32;                                                                       \
    table->run[id][DP_COMPUTE_F64] = name##_f64;
#define PUT(id, name) PUT_REALS(id, name) table->run[id][DP_COMPUTE_I64] = name##_i64;

void DP_RUNG(dp_reduce_fill)(dp_reduce_table *table) {
    memset(table, 0, sizeof *table);
    PUT(DP_REDUCE_SUM, sum)
    PUT_REALS(DP_REDUCE_NANSUM, nansum)
    PUT(DP_REDUCE_PROD, prod)
    PUT(DP_REDUCE_MAX, max)
    PUT(DP_REDUCE_MIN, min)
    PUT(DP_REDUCE_ANY, any)
    PUT(DP_REDUCE_ALL, all)
    PUT(DP_REDUCE_ARGMAX, argmax)
    PUT(DP_REDUCE_ARGMIN, argmin)
    PUT_REALS(DP_REDUCE_SQUARES, squares)
    PUT_REALS(DP_REDUCE_ABS, abs_sum)
    PUT_REALS(DP_REDUCE_POWER, power)
    PUT_REALS(DP_REDUCE_COUNT_NOT0, count_not0)
    PUT_REALS(DP_REDUCE_MAX_ABS, max_abs)
    PUT_REALS(DP_REDUCE_MIN_ABS, min_abs)
    PUT_REALS(DP_REDUCE_EXP, exp_sum)
}
