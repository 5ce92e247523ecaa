/*
 * reduce.c - sums as pairwise trees over neighbours, maxima and minima with their index.
 *
 * One level of a tree turns two vectors into one: the sum of their even lanes and their odd lanes. With one lane per vector
 * the same code is the plain loop, so all rungs add in the same order. Levels of half and bfloat16 are rounded to the type.
 */
#include "math/vec.h"

DP_INLINE vf vf_round_f32(vf x) { return x; }
#if DP_MATH_RUNG == DP_RUNG_AVX512
DP_INLINE vf vf_round_f16(vf x) { return _mm512_cvtph_ps(DP_HALF_DOWN(x)); }
#elif DP_MATH_RUNG == DP_RUNG_AVX2
DP_INLINE vf vf_round_f16(vf x) { return _mm256_cvtph_ps(DP_HALF_DOWN(x)); }
#endif
#if DP_MATH_RUNG == DP_RUNG_GENERIC
DP_INLINE vf vf_round_f16(vf x) { return dp_f32_from_f16(dp_f16_from_f32(x)); }
DP_INLINE vf vf_round_bf16(vf x) { return dp_f32_from_bf16(dp_bf16_from_f32(x)); }
#else
DP_INLINE vf vf_round_bf16(vf x) { return vf_bits(bf16_of(x) << 16); }
#endif

DP_INLINE float float_f32(const void *p, size_t i) { return ((const float *)p)[i]; }
DP_INLINE float float_f16(const void *p, size_t i) { return dp_f32_from_f16(((const uint16_t *)p)[i]); }
DP_INLINE float float_bf16(const void *p, size_t i) { return dp_f32_from_bf16(((const uint16_t *)p)[i]); }
DP_INLINE float round_f32(float x) { return x; }
DP_INLINE float round_f16(float x) { return dp_f32_from_f16(dp_f16_from_f32(x)); }
DP_INLINE float round_bf16(float x) { return dp_f32_from_bf16(dp_bf16_from_f32(x)); }
DP_INLINE void put_f32(void *p, size_t i, float x) { ((float *)p)[i] = x; }
DP_INLINE void put_f16(void *p, size_t i, float x) { ((uint16_t *)p)[i] = dp_f16_from_f32(x); }
DP_INLINE void put_bf16(void *p, size_t i, float x) { ((uint16_t *)p)[i] = dp_bf16_from_f32(x); }

/* The first of two wins: it stays unless the second is beyond it, or is the first NaN. */
DP_INLINE vf first_max(vf a, vf b) {
    return vf_blend(vm_or(vf_gt(b, a), vm_and(vf_is_nan(b), vm_not(vf_is_nan(a)))), b, a);
}
DP_INLINE vf first_min(vf a, vf b) {
    return vf_blend(vm_or(vf_lt(b, a), vm_and(vf_is_nan(b), vm_not(vf_is_nan(a)))), b, a);
}
DP_INLINE vf sum(vf a, vf b) { return a + b; }

/* log2(count) levels: count vectors become one */
#define DP_TREE(v, count, combine, round)                                                                              \
    for (size_t left = (count); left > 1; left /= 2)                                                                   \
        for (size_t k = 0; k < left / 2; k++)                                                                          \
            (v)[k] = round(combine(vf_even((v)[2 * k], (v)[2 * k + 1]), vf_odd((v)[2 * k], (v)[2 * k + 1])));

/* lane k of the vectors is element k of a run of count elements; what is missing reads as 0 */
#define DP_LOAD_RUN(v, vectors, type, a, first, count)                                                                 \
    for (size_t k = 0; k < (vectors); k++) {                                                                           \
        size_t at = k * DP_LANES;                                                                                      \
        (v)[k] = at + DP_LANES <= (count) ? vf_load_##type(a, (first) + at)                                            \
                 : at < (count)           ? vf_load_##type##_n(a, (first) + at, (count)-at)                            \
                                          : vf_set(0.0f);                                                              \
    }

/* DP_LANES groups of `lanes` elements at a time make DP_LANES results */
#define DP_GROUP_REDUCE(name, type, lanes, combine, round)                                                             \
    static void name##_##type(void *dst, const void *a, size_t n_groups) {                                             \
        for (size_t g = 0; g < n_groups; g += DP_LANES) {                                                              \
            size_t groups = n_groups - g < DP_LANES ? n_groups - g : DP_LANES;                                         \
            vf v[lanes];                                                                                               \
            if (groups == DP_LANES) {                                                                                  \
                for (size_t k = 0; k < (lanes); k++)                                                                   \
                    v[k] = vf_load_##type(a, g * (lanes) + k * DP_LANES);                                              \
                DP_TREE(v, lanes, combine, round)                                                                      \
                vf_store_##type(dst, g, v[0]);                                                                         \
            } else {                                                                                                   \
                DP_LOAD_RUN(v, lanes, type, a, g *(lanes), groups *(lanes))                                            \
                DP_TREE(v, lanes, combine, round)                                                                      \
                vf_store_##type##_n(dst, g, groups, v[0]);                                                             \
            }                                                                                                          \
        }                                                                                                              \
    }

/*
 * Sums of whole repeats, as many at once as a vector has lanes. The first levels of all their trees go together: each turns the
 * vectors at the same place of two repeats (of two groups of repeats) into one, which keeps lane r for repeat r, at one shuffle
 * an addition. What is left are whole vectors to add. Repeats past `count` read as 0.
 */
static const float zeros[DP_LANES];
#define DP_REPEAT_SUM(type, lanes)                                                                                     \
    DP_INLINE vf fold_##type(vf a, vf b, unsigned d) {                                                                 \
        return vf_round_##type(vf_merge(a, b, d) + vf_partner(a, b, d));                                               \
    }                                                                                                                  \
    /* lane k: the sum of the vector's worth of elements at `first` of repeat k */                                     \
    DP_INLINE vf part_sums_##type(const void *a, size_t first, size_t count) {                                         \
        vf v[DP_LANES];                                                                                                \
        DP_UNROLL for (size_t k = 0; k < DP_LANES; k++)                                                 \
            v[k] = vf_load_##type(k < count ? a : zeros, k < count ? first + k * (lanes) : 0);                         \
        DP_UNROLL for (unsigned d = 1; d < DP_LANES; d *= 2)                                             \
            DP_UNROLL for (size_t k = 0; k < DP_LANES / 2 / d; k++)                                      \
                v[k] = fold_##type(v[2 * k], v[2 * k + 1], d);                                                         \
        return v[0];                                                                                                   \
    }                                                                                                                  \
    /* lane k: the sum of repeat r + k */                                                                              \
    DP_INLINE vf repeat_sums_##type(const void *a, size_t r, size_t count) {                                           \
        vf v[(lanes) / DP_LANES];                                                                                      \
        for (size_t k = 0; k < (lanes) / DP_LANES; k++)                                                                \
            v[k] = part_sums_##type(a, r * (lanes) + k * DP_LANES, count);                                             \
        for (size_t left = (lanes) / DP_LANES; left > 1; left /= 2)                                                    \
            for (size_t k = 0; k < left / 2; k++)                                                                      \
                v[k] = vf_round_##type(v[2 * k] + v[2 * k + 1]);                                                       \
        return v[0];                                                                                                   \
    }                                                                                                                  \
    static void repeat_sum_##type(void *dst, const void *a, size_t n_repeats) {                                        \
        size_t r = 0;                                                                                                  \
        for (; r + DP_LANES <= n_repeats; r += DP_LANES)                                                               \
            vf_store_##type(dst, r, repeat_sums_##type(a, r, DP_LANES));                                               \
        if (DP_LANES > 1 && r < n_repeats)                                                                             \
            vf_store_##type##_n(dst, r, n_repeats - r, repeat_sums_##type(a, r, n_repeats - r));                       \
    }                                                                                                                  \
    /* `count` lanes of v added to the total one after the other; the first of all is the total */                     \
    DP_INLINE float add_lanes_##type(float total, bool first, vf v, size_t count) {                                    \
        float lane[DP_LANES];                                                                                          \
        vf_store_f32(lane, 0, v);                                                                                      \
        total = first ? lane[0] : round_##type(total + lane[0]);                                                       \
        DP_UNROLL for (size_t k = 1; k < count; k++)                                                                   \
            total = round_##type(total + lane[k]);                                                                     \
        return total;                                                                                                  \
    }                                                                                                                  \
    static void running_sum_##type(void *out_value, const void *a, size_t n_repeats) {                                 \
        float total = 0.0f;                                                                                            \
        size_t r = 0;                                                                                                  \
        for (; r + DP_LANES <= n_repeats; r += DP_LANES)                                                               \
            total = add_lanes_##type(total, r == 0, repeat_sums_##type(a, r, DP_LANES), DP_LANES);                     \
        if (r < n_repeats)                                                                                             \
            total = add_lanes_##type(total, r == 0, repeat_sums_##type(a, r, n_repeats - r), n_repeats - r);           \
        put_##type(out_value, 0, total);                                                                               \
    }                                                                                                                  \
    static float repeat_total_##type(const void *a, size_t first) {                                                    \
        vf v[(lanes) / DP_LANES];                                                                                      \
        for (size_t k = 0; k < (lanes) / DP_LANES; k++)                                                                \
            v[k] = vf_load_##type(a, first + k * DP_LANES);                                                            \
        DP_TREE(v, (lanes) / DP_LANES, sum, vf_round_##type)                                                           \
        for (size_t left = DP_LANES; left > 1; left /= 2)                                                              \
            v[0] = vf_round_##type(vf_even(v[0], v[0]) + vf_odd(v[0], v[0]));                                          \
        float lane[DP_LANES];                                                                                          \
        vf_store_f32(lane, 0, v[0]);                                                                                   \
        return lane[0];                                                                                                \
    }

/*
 * Tree over any number of elements, the odd one of a level carried up. level[k] holds the sum of 2^k finished elements, like
 * the digits of a binary counter; whole repeats enter at their level.
 */
#define DP_TREE_SUM(type, lanes)                                                                                       \
    static void tree_sum_##type(void *out_value, const void *a, size_t n) {                                            \
        float level[64], total = 0.0f;                                                                                 \
        size_t done = 0;                                                                                               \
        while (done < n) {                                                                                             \
            size_t step = n - done >= (lanes) ? (lanes) : 1, digit = (size_t)__builtin_ctzll(step);                    \
            float carry = step > 1 ? repeat_total_##type(a, done) : float_##type(a, done);                             \
            for (; done >> digit & 1; digit++)                                                                         \
                carry = round_##type(level[digit] + carry);                                                            \
            level[digit] = carry;                                                                                      \
            done += step;                                                                                              \
        }                                                                                                              \
        bool started = false;                                                                                          \
        for (size_t digit = 0; n >> digit; digit++)                                                                    \
            if (n >> digit & 1) {                                                                                      \
                total = started ? round_##type(level[digit] + total) : level[digit];                                   \
                started = true;                                                                                        \
            }                                                                                                          \
        put_##type(out_value, 0, total);                                                                               \
    }

/*
 * Of every lane the greatest or least value, and the first group of 4 vectors in which it was met; then the first place in the
 * first group that has the best of all lanes. No step waits for a guess about where that is. best() of one instruction passes
 * NaNs over, so they are looked for beside it, and a NaN counts as beyond everything; zeros of both signs are equal to it. Both
 * are left to find().
 */
#define DP_EXTREME(name, type, T, best, beyond)                                                                        \
    static void name##_##type(void *out_value, uint32_t *out_index, const void *a, size_t n) {                         \
        enum { GROUP = 4 * DP_LANES };                                                                                 \
        if (n == 0)                                                                                                    \
            return;                                                                                                    \
        float value = float_##type(a, 0);                                                                              \
        uint32_t met = 0;                                                                                              \
        if (n >= DP_LANES) {                                                                                           \
            vf v = vf_load_##type(a, 0), x[4];                                                                         \
            vi group = vi_set(0), met_in = group;                                                                      \
            vm nan = vf_is_nan(v), more = nan;                                                                         \
            size_t i = 0;                                                                                              \
            for (; i + GROUP <= n; i += GROUP, group += 1) {                                                           \
                for (size_t k = 0; k < 4; k++)                                                                         \
                    x[k] = vf_load_##type(a, i + k * DP_LANES);                                                        \
                nan = vm_or(nan, vf_unordered(x[0], x[1]));                                                            \
                more = vm_or(more, vf_unordered(x[2], x[3]));                                                          \
                x[0] = best(best(x[0], x[1]), best(x[2], x[3]));                                                       \
                met_in = vi_blend(beyond(x[0], v), group, met_in);                                                     \
                v = best(x[0], v);                                                                                     \
            }                                                                                                          \
            for (; i < n; i += DP_LANES) { /* the last vector may count lanes twice */                                 \
                x[0] = vf_load_##type(a, i + DP_LANES <= n ? i : n - DP_LANES);                                        \
                nan = vm_or(nan, vf_is_nan(x[0]));                                                                     \
                met_in = vi_blend(beyond(x[0], v), group, met_in);                                                     \
                v = best(x[0], v);                                                                                     \
            }                                                                                                          \
            x[0] = v;                                                                                                  \
            for (size_t left = DP_LANES; left > 1; left /= 2)                                                          \
                x[0] = best(vf_even(x[0], x[0]), vf_odd(x[0], x[0]));                                                  \
            float lane[DP_LANES];                                                                                      \
            vf_store_f32(lane, 0, x[0]);                                                                               \
            value = vm_bits(vm_or(nan, more)) ? __builtin_nanf("") : lane[0];                                          \
            if (out_index && value == value)                                                                           \
                met = vi_least_of(vf_eq(v, vf_set(value)), met_in);                                                    \
        } else {                                                                                                       \
            for (size_t k = 1; k < n; k++)                                                                             \
                value = scalar_##name(value, float_##type(a, k));                                                      \
        }                                                                                                              \
        if (value != value || value == 0.0f) { /* NaNs and zeros come in several bit patterns */                       \
            size_t at = find_##type(a, n, value);                                                                      \
            memmove(out_value, (const T *)a + at, sizeof(T));                                                          \
            if (out_index)                                                                                             \
                *out_index = (uint32_t)at;                                                                             \
            return;                                                                                                    \
        }                                                                                                              \
        if (out_index)                                                                                                 \
            *out_index = met * GROUP + (uint32_t)find_near_##type(a, (size_t)met * GROUP, n, value);                   \
        put_##type(out_value, 0, value);                                                                               \
    }
DP_INLINE float scalar_max(float a, float b) { return b > a || (b != b && a == a) ? b : a; }
DP_INLINE float scalar_min(float a, float b) { return b < a || (b != b && a == a) ? b : a; }

#define DP_FIND(type)                                                                                                  \
    DP_INLINE vm found_##type(const void *a, size_t i, vf wanted, bool nan) {                                          \
        vf x = vf_load_##type(a, i);                                                                                   \
        return nan ? vf_is_nan(x) : vf_eq(x, wanted);                                                                  \
    }                                                                                                                  \
    /* Place of the first `wanted`, which is there. */                                                                 \
    DP_INLINE size_t find_in_##type(const void *a, size_t n, float wanted, bool nan) {                                 \
        vf w = vf_set(wanted);                                                                                         \
        size_t i = 0;                                                                                                  \
        for (; i + 4 * DP_LANES <= n; i += 4 * DP_LANES) {                                                             \
            vm early = vm_or(found_##type(a, i, w, nan), found_##type(a, i + DP_LANES, w, nan));                       \
            vm late = vm_or(found_##type(a, i + 2 * DP_LANES, w, nan), found_##type(a, i + 3 * DP_LANES, w, nan));     \
            if (vm_bits(vm_or(early, late)))                                                                           \
                break;                                                                                                 \
        }                                                                                                              \
        for (; i + DP_LANES <= n; i += DP_LANES) {                                                                     \
            uint32_t found = vm_bits(found_##type(a, i, w, nan));                                                      \
            if (found)                                                                                                 \
                return i + (size_t)__builtin_ctz(found);                                                               \
        }                                                                                                              \
        for (; i < n; i++) {                                                                                           \
            float x = float_##type(a, i);                                                                              \
            if (nan ? x != x : x == wanted)                                                                            \
                break;                                                                                                 \
        }                                                                                                              \
        return i;                                                                                                      \
    }                                                                                                                  \
    static size_t find_##type(const void *a, size_t n, float wanted) {                                                 \
        return wanted != wanted ? find_in_##type(a, n, wanted, true) : find_in_##type(a, n, wanted, false);            \
    }                                                                                                                  \
    /* Steps from `first` to the first `wanted`, which stands in the 4 vectors from there on; not a NaN. */            \
    DP_INLINE size_t find_near_##type(const void *a, size_t first, size_t n, float wanted) {                           \
        vf w = vf_set(wanted);                                                                                         \
        uint64_t found = 0;                                                                                            \
        if (first + 4 * DP_LANES <= n) {                                                                               \
            for (size_t k = 0; k < 4; k++)                                                                             \
                found |= (uint64_t)vm_bits(found_##type(a, first + k * DP_LANES, w, false)) << (k * DP_LANES);         \
            return (size_t)__builtin_ctzll(found);                                                                     \
        }                                                                                                              \
        size_t i = first;                                                                                              \
        while (float_##type(a, i) != wanted)                                                                           \
            i++;                                                                                                       \
        return i - first;                                                                                              \
    }

#define DP_FLOAT_REDUCE(type, T, block, repeat)                                                                        \
    DP_FIND(type)                                                                                                      \
    DP_EXTREME(max, type, T, vf_greatest, vf_gt)                                                                       \
    DP_EXTREME(min, type, T, vf_least, vf_lt)                                                                          \
    DP_GROUP_REDUCE(block_sum, type, block, sum, vf_round_##type)                                                      \
    DP_GROUP_REDUCE(block_max, type, block, first_max, vf_round_##type)                                                \
    DP_GROUP_REDUCE(block_min, type, block, first_min, vf_round_##type)                                                \
    DP_GROUP_REDUCE(pair_sum, type, 2, sum, vf_round_##type)                                                           \
    DP_REPEAT_SUM(type, repeat)                                                                                        \
    DP_TREE_SUM(type, repeat)

DP_FLOAT_REDUCE(f32, float, 8, 64)
DP_FLOAT_REDUCE(f16, uint16_t, 16, 128)
DP_FLOAT_REDUCE(bf16, uint16_t, 16, 128)

/* Integers: sums wrap around, so their order does not matter. */
#define DP_INT_GROUP(T, name, lanes, start, formula)                                                                   \
    static void name##_##T(void *dst, const void *a, size_t n_groups) {                                                \
        for (size_t g = 0; g < n_groups; g++) {                                                                        \
            const T *in = (const T *)a + g * (lanes);                                                                  \
            T total = start;                                                                                           \
            for (size_t k = 0; k < (lanes); k++)                                                                       \
                total = (T)(formula);                                                                                  \
            ((T *)dst)[g] = total;                                                                                     \
        }                                                                                                              \
    }
#define DP_INT_EXTREME(T, name, op)                                                                                    \
    static void name##_##T(void *out_value, uint32_t *out_index, const void *a, size_t n) {                            \
        const T *in = a;                                                                                               \
        size_t at = 0;                                                                                                 \
        for (size_t i = 1; i < n; i++)                                                                                 \
            at = in[i] op in[at] ? i : at;                                                                             \
        if (n == 0)                                                                                                    \
            return;                                                                                                    \
        *(T *)out_value = in[at];                                                                                      \
        if (out_index)                                                                                                 \
            *out_index = (uint32_t)at;                                                                                 \
    }
#define DP_INT_REDUCE(T, U)                                                                                            \
    static void tree_sum_##T(void *out_value, const void *a, size_t n) {                                               \
        U total = 0;                                                                                                   \
        for (size_t i = 0; i < n; i++)                                                                                 \
            total += (U)((const T *)a)[i];                                                                             \
        *(T *)out_value = (T)total;                                                                                    \
    }                                                                                                                  \
    DP_INT_EXTREME(T, max, >)                                                                                          \
    DP_INT_EXTREME(T, min, <)                                                                                          \
    DP_INT_GROUP(T, block_sum, 32 / sizeof(T), 0, (U)total + (U)in[k])                                                 \
    DP_INT_GROUP(T, block_max, 32 / sizeof(T), in[0], in[k] > total ? in[k] : total)                                   \
    DP_INT_GROUP(T, block_min, 32 / sizeof(T), in[0], in[k] < total ? in[k] : total)                                   \
    DP_INT_GROUP(T, pair_sum, 2, 0, (U)total + (U)in[k])                                                               \
    DP_INT_GROUP(T, repeat_sum, 256 / sizeof(T), 0, (U)total + (U)in[k])
DP_INT_REDUCE(int16_t, uint32_t)
DP_INT_REDUCE(int32_t, uint32_t)
DP_INT_REDUCE(int64_t, uint64_t)

#define DP_ENTER(dtype, type)                                                                                          \
    table->reduce[dtype] = (dp_reduce_fns){tree_sum_##type,  max_##type,       min_##type,      block_sum_##type,      \
                                           block_max_##type, block_min_##type, pair_sum_##type, repeat_sum_##type,     \
                                           NULL};
#define DP_ENTER_FLOAT(dtype, type)                                                                                    \
    DP_ENTER(dtype, type)                                                                                              \
    table->reduce[dtype].running_sum = running_sum_##type;

void DP_RUNG(dp_math_fill_reduce)(dp_math *table) {
    DP_ENTER_FLOAT(DP_F32, f32)
    DP_ENTER_FLOAT(DP_F16, f16)
    DP_ENTER_FLOAT(DP_BF16, bf16)
    DP_ENTER(DP_I16, int16_t)
    DP_ENTER(DP_I32, int32_t)
    DP_ENTER(DP_I64, int64_t)
}
