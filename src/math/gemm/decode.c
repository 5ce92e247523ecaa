/*
 * decode.c - products of few rows (up to 8) with a large B: every weight is read once, converted in registers, and used
 * for all rows. Three ways, by how B lies: columns contiguous (dot products), rows contiguous (rows added up), packed
 * panels.
 */
#include "math/gemm/rung.h"
#include "math/vec.h"

#define STRIDE DP_GEMM_DECODE_COLUMNS
#define UNROLL _Pragma("GCC unroll 8")
enum {
    AHEAD_BYTES = 1024,
    PANEL_AHEAD_BYTES = 4096, /* one stream instead of four */
    NIBBLE_CHUNK = 8 * DP_LANES
};

DP_INLINE float sum_lanes(vf x) {
    float lane[DP_LANES], sum[8] = {0};
    vf_store_f32(lane, 0, x);
    for (size_t i = 0; i < DP_LANES; i++)
        sum[i % 8] += lane[i];
    return ((sum[0] + sum[4]) + (sum[2] + sum[6])) + ((sum[1] + sum[5]) + (sum[3] + sum[7]));
}

/* The sums of the lanes of four vectors: a transposition takes less than four times sum_lanes. */
DP_INLINE void sum_lanes_of_four(const vf *x, float *out) {
#if DP_MATH_RUNG == DP_RUNG_AVX512
    __m512 ab = _mm512_add_ps(_mm512_unpacklo_ps(x[0], x[1]), _mm512_unpackhi_ps(x[0], x[1]));
    __m512 cd = _mm512_add_ps(_mm512_unpacklo_ps(x[2], x[3]), _mm512_unpackhi_ps(x[2], x[3]));
    __m512 all = _mm512_add_ps(_mm512_shuffle_ps(ab, cd, 0x44), _mm512_shuffle_ps(ab, cd, 0xee));
    __m256 half = _mm256_add_ps(_mm512_castps512_ps256(all), _mm512_extractf32x8_ps(all, 1));
    _mm_storeu_ps(out, _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1)));
#elif DP_MATH_RUNG == DP_RUNG_AVX2
    __m256 ab = _mm256_add_ps(_mm256_unpacklo_ps(x[0], x[1]), _mm256_unpackhi_ps(x[0], x[1]));
    __m256 cd = _mm256_add_ps(_mm256_unpacklo_ps(x[2], x[3]), _mm256_unpackhi_ps(x[2], x[3]));
    __m256 all = _mm256_add_ps(_mm256_shuffle_ps(ab, cd, 0x44), _mm256_shuffle_ps(ab, cd, 0xee));
    _mm_storeu_ps(out, _mm_add_ps(_mm256_castps256_ps128(all), _mm256_extractf128_ps(all, 1)));
#else
    for (size_t i = 0; i < 4; i++)
        out[i] = x[i];
#endif
}

/* The loops below are written once over the element type, a constant after inlining. */
DP_INLINE vf load(const void *p, dp_dtype t, size_t i) {
    switch (t) {
    case DP_F32:
        return vf_load_f32(p, i);
    case DP_F16:
        return vf_load_f16(p, i);
    case DP_BF16:
        return vf_load_bf16(p, i);
    default:
        return vf_from_vi(vi_load_i8(p, i));
    }
}
DP_INLINE vf load_n(const void *p, dp_dtype t, size_t i, size_t n) {
    switch (t) {
    case DP_F32:
        return vf_load_f32_n(p, i, n);
    case DP_F16:
        return vf_load_f16_n(p, i, n);
    case DP_BF16:
        return vf_load_bf16_n(p, i, n);
    default:
        return vf_from_vi(vi_load_i8_n(p, i, n));
    }
}
DP_INLINE size_t size_of(dp_dtype t) {
    return t == DP_F32 ? 4 : t == DP_I8 ? 1 : 2;
}

static float scalar_at(const void *p, dp_dtype t, ptrdiff_t i) {
    return t == DP_F32   ? ((const float *)p)[i]
           : t == DP_F16 ? dp_f32_from_f16(((const uint16_t *)p)[i])
                         : dp_f32_from_bf16(((const uint16_t *)p)[i]);
}

static const char *b_at(const dp_gemm_matrix *b, size_t k, size_t j) {
    ptrdiff_t at = (ptrdiff_t)k * b->row_stride + (ptrdiff_t)j * b->column_stride;
    return (const char *)b->data + (b->dtype == DP_I4 ? at / 2 : at * (ptrdiff_t)size_of(b->dtype));
}

/* ---- rows of A ---- */

/* The order the nibble loop meets them in: of 8 elements a lane, the first of every lane, then the second ... */
static void spread_for_nibbles(float *row, size_t k) {
    float chunk[NIBBLE_CHUNK];
    for (size_t c = 0; c < k; c += NIBBLE_CHUNK) {
        memcpy(chunk, row + c, sizeof chunk);
        for (size_t i = 0; i < NIBBLE_CHUNK; i++)
            row[c + i % 8 * DP_LANES + i / 8] = chunk[i];
    }
}

void DP_RUNG(dp_gemm_decode_rows)(const dp_gemm_plan *plan, float *rows) {
    const dp_gemm_problem *p = &plan->problem;
    const size_t stride = dp_gemm_decode_stride(p->k), groups = dp_gemm_decode_groups(plan);
    const size_t group_size = p->quant.group_size ? p->quant.group_size : p->k;
    dp_gemm_view v = {
        .data = p->a.data, .dtype = p->a.dtype, .k_stride = p->a.column_stride, .other_stride = p->a.row_stride};
    DP_RUNG(dp_gemm_pack_rows)(DP_GEMM_F32, &v, p->m, p->k, (uint32_t *)rows, stride);
    for (size_t i = 0; i < p->m; i++) {
        float *row = rows + i * stride;
        memset(row + p->k, 0, (stride - p->k) * sizeof *row);
        for (size_t g = 0; g < groups; g++) {
            float sum = 0;
            for (size_t k = g * group_size; k < p->k && k < (g + 1) * group_size; k++)
                sum += row[k];
            rows[p->m * stride + i * groups + g] = sum;
        }
        if (p->b.dtype == DP_I4 && plan->decode == DP_GEMM_DECODE_DOT)
            spread_for_nibbles(row, p->k);
    }
}

/* ---- columns contiguous: dot products, several columns at once so that a load of x serves them all ---- */

/* out[r * out_stride + c] = dot of x row r and column c, over n elements */
DP_INLINE void dot(const dp_dtype t, const size_t rows, const size_t columns, const float *x, size_t x_stride,
                   const char *const *b, size_t n, float *out, size_t out_stride) {
    vf sum[8][4];
    UNROLL for (size_t r = 0; r < rows; r++) UNROLL for (size_t c = 0; c < columns; c++) sum[r][c] = vf_set(0);
    size_t k = 0;
    for (; k + DP_LANES <= n; k += DP_LANES) {
        vf w[4];
        UNROLL for (size_t c = 0; c < columns; c++) {
            w[c] = load(b[c], t, k);
            __builtin_prefetch(b[c] + k * size_of(t) + AHEAD_BYTES);
        }
        UNROLL for (size_t r = 0; r < rows; r++) {
            vf y = vf_load_f32(x + r * x_stride, k);
            UNROLL for (size_t c = 0; c < columns; c++) sum[r][c] = vf_fma(w[c], y, sum[r][c]);
        }
    }
    if (k < n) /* x is padded with zeros */
        UNROLL for (size_t c = 0; c < columns; c++) {
            vf w = load_n(b[c], t, k, n - k);
            UNROLL for (size_t r = 0; r < rows; r++) sum[r][c] = vf_fma(w, vf_load_f32(x + r * x_stride, k), sum[r][c]);
        }
    UNROLL for (size_t r = 0; r < rows; r++) {
        if (columns == 4)
            sum_lanes_of_four(sum[r], out + r * out_stride);
        else
            UNROLL for (size_t c = 0; c < columns; c++) out[r * out_stride + c] = sum_lanes(sum[r][c]);
    }
}

typedef void (*dot_fn)(const float *x, size_t x_stride, const char *const *b, size_t n, float *out, size_t out_stride);
#define DOT(type, rows, columns)                                                                                       \
    static void dot_##type##_##rows##x##columns(const float *x, size_t x_stride, const char *const *b, size_t n,       \
                                                float *out, size_t out_stride) {                                       \
        dot(DP_##type, rows, columns, x, x_stride, b, n, out, out_stride);                                             \
    }
#define DOTS(type)                                                                                                     \
    DOT(type, 1, 1)                                                                                                    \
    DOT(type, 1, 4)                                                                                                    \
    DOT(type, 2, 1)                                                                                                    \
    DOT(type, 2, 4)                                                                                                    \
    DOT(type, 3, 1)                                                                                                    \
    DOT(type, 3, 4)                                                                                                    \
    DOT(type, 4, 1)                                                                                                    \
    DOT(type, 4, 4)                                                                                                    \
    static const dot_fn dots_##type[4][2] = {{dot_##type##_1x1, dot_##type##_1x4},                                     \
                                             {dot_##type##_2x1, dot_##type##_2x4},                                     \
                                             {dot_##type##_3x1, dot_##type##_3x4},                                     \
                                             {dot_##type##_4x1, dot_##type##_4x4}};
DOTS(F32)
DOTS(F16)
DOTS(BF16)

static const dot_fn *dots_of(dp_dtype t, size_t rows) {
    const dot_fn(*table)[2] = t == DP_F32 ? dots_F32 : t == DP_F16 ? dots_F16 : dots_BF16;
    return table[rows - 1];
}

/*
 * Columns taken together are a quarter of all apart: each of the four streams then runs on into its own next column,
 * and what is prefetched past the end of one is used. Of n columns, the c-th group: 4 of them `apart`, or one of the
 * last n % 4.
 */
typedef struct {
    size_t first, apart, wide;
} column_group;
static size_t column_groups(size_t n) {
    return n / 4 + n % 4;
}
static column_group column_group_at(size_t n, size_t c) {
    return c < n / 4 ? (column_group){c, n / 4, 4} : (column_group){n / 4 * 3 + c, 0, 1};
}

static size_t rows_at_once(size_t left) {
    return left >= 4 ? 4 : left;
}

static void decode_dot(const dp_gemm_plan *plan, size_t j, size_t columns, const float *rows, float *sums) {
    const dp_gemm_problem *p = &plan->problem;
    const size_t stride = dp_gemm_decode_stride(p->k);
    for (size_t c = 0; c < column_groups(columns); c++) {
        const column_group set = column_group_at(columns, c);
        const char *b[4];
        for (size_t t = 0; t < set.wide; t++)
            b[t] = b_at(&p->b, 0, j + set.first + t * set.apart);
        for (size_t r = 0, count; r < p->m; r += count) {
            float out[4][4];
            count = rows_at_once(p->m - r);
            dots_of(p->b.dtype, count)[set.wide == 4](rows + r * stride, stride, b, p->k, out[0], 4);
            for (size_t i = 0; i < count; i++)
                for (size_t t = 0; t < set.wide; t++)
                    sums[(r + i) * STRIDE + set.first + t * set.apart] = out[i][t];
        }
    }
}

/* Element t of the 8 int4 of every lane, as floats. */
DP_INLINE vf nibble(vi v, const size_t t) {
#if DP_MATH_RUNG == DP_RUNG_AVX512
    const __m512 values = _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2, -1);
    return _mm512_permutexvar_ps(_mm512_srli_epi32((__m512i)v, (unsigned)(4 * t)), values); /* the low 4 bits pick */
#elif DP_MATH_RUNG == DP_RUNG_AVX2
    return vf_from_vi((v << (int)(28 - 4 * t)) >> 28);
#else
    return (float)((int32_t)((uint32_t)v << (28 - 4 * t)) >> 28);
#endif
}

/* The scale of every lane of a chunk: lane l holds elements 8 l .. 8 l + 7 of it; a group is a power of two of at
 * least 32. */
DP_INLINE vf lane_scales(const float *scale, size_t group_size) {
#if DP_MATH_RUNG == DP_RUNG_AVX512
    const vi first = {0, 8, 16, 24, 32, 40, 48, 56, 64, 72, 80, 88, 96, 104, 112, 120};
    return _mm512_permutexvar_ps((__m512i)(first >> __builtin_ctzl(group_size)), _mm512_loadu_ps(scale));
#elif DP_MATH_RUNG == DP_RUNG_AVX2
    const vi first = {0, 8, 16, 24, 32, 40, 48, 56};
    return _mm256_permutevar8x32_ps(_mm256_loadu_ps(scale), (__m256i)(first >> __builtin_ctzl(group_size)));
#else
    (void)group_size;
    return *scale;
#endif
}

/*
 * n <= QUANT_RUN elements of some columns of a quantised B. scale[c] holds a float per group, and room for a vector
 * after the last. out[r * STRIDE + c * apart] += the sums.
 */
enum { QUANT_RUN = 8192, SCALES_ROOM = QUANT_RUN / 32 + DP_LANES };
typedef struct {
    const float *x;
    size_t x_stride;
    const uint8_t *b[4];
    size_t n, group_size, apart;
    float (*scale)[SCALES_ROOM];
} quant_run;

DP_INLINE vi nibbles_at(const uint8_t *b, size_t c, size_t n) {
    vi v;
    if (c + NIBBLE_CHUNK <= n) {
        memcpy(&v, b + c / 2, sizeof v);
    } else {
        uint8_t part[sizeof v] = {0};
        memcpy(part, b + c / 2, (n - c + 1) / 2);
        memcpy(&v, part, sizeof v);
    }
    return v;
}

DP_INLINE void dot_nibbles(const size_t rows, const size_t columns, const quant_run *q, float *out) {
    vf total[4][4];
    UNROLL for (size_t r = 0; r < rows; r++) UNROLL for (size_t i = 0; i < columns; i++) total[r][i] = vf_set(0);
    for (size_t c = 0; c < q->n; c += NIBBLE_CHUNK) {
        vi v[4];
        vf sum[4][4];
        UNROLL for (size_t i = 0; i < columns; i++) {
            v[i] = nibbles_at(q->b[i], c, q->n);
            __builtin_prefetch(q->b[i] + c / 2 + AHEAD_BYTES);
            UNROLL for (size_t r = 0; r < rows; r++) sum[r][i] = vf_set(0);
        }
        UNROLL for (size_t t = 0; t < 8; t++) {
            UNROLL for (size_t r = 0; r < rows; r++) {
                vf x = vf_load_f32(q->x + r * q->x_stride, c + t * DP_LANES);
                UNROLL for (size_t i = 0; i < columns; i++) sum[r][i] = vf_fma(nibble(v[i], t), x, sum[r][i]);
            }
        }
        UNROLL for (size_t i = 0; i < columns; i++) {
            vf s = lane_scales(q->scale[i] + c / q->group_size, q->group_size);
            UNROLL for (size_t r = 0; r < rows; r++) total[r][i] = vf_fma(sum[r][i], s, total[r][i]);
        }
    }
    UNROLL for (size_t r = 0; r < rows; r++) UNROLL for (size_t i = 0; i < columns; i++)
        out[r * STRIDE + i * q->apart] += sum_lanes(total[r][i]);
}

/* One vector of every column. */
DP_INLINE void dot_bytes_step(const size_t rows, const size_t columns, const quant_run *q, size_t c, vf sum[4][4]) {
    vf w[4];
    UNROLL for (size_t i = 0; i < columns; i++) w[i] = vf_from_vi(vi_load_i8(q->b[i], c));
    UNROLL for (size_t r = 0; r < rows; r++) {
        vf x = vf_load_f32(q->x + r * q->x_stride, c);
        UNROLL for (size_t i = 0; i < columns; i++) sum[r][i] = vf_fma(w[i], x, sum[r][i]);
    }
}

DP_INLINE void dot_bytes(const size_t rows, const size_t columns, const quant_run *q, float *out) {
    enum { GROUP_LEAST = 32 };
    vf total[4][4];
    UNROLL for (size_t r = 0; r < rows; r++) UNROLL for (size_t i = 0; i < columns; i++) total[r][i] = vf_set(0);
    for (size_t g = 0, c = 0; c < q->n; g++) {
        size_t end = q->n - c < q->group_size ? q->n : c + q->group_size;
        vf sum[4][4];
        UNROLL for (size_t r = 0; r < rows; r++) UNROLL for (size_t i = 0; i < columns; i++) sum[r][i] = vf_set(0);
        for (; c + GROUP_LEAST <= end; c += GROUP_LEAST) {
            UNROLL for (size_t i = 0; i < columns; i++) __builtin_prefetch(q->b[i] + c + AHEAD_BYTES);
            UNROLL for (size_t v = 0; v < GROUP_LEAST; v += DP_LANES) dot_bytes_step(rows, columns, q, c + v, sum);
        }
        for (; c + DP_LANES <= end; c += DP_LANES)
            dot_bytes_step(rows, columns, q, c, sum);
        if (c < end) { /* x is padded with zeros */
            UNROLL for (size_t i = 0; i < columns; i++) {
                vf w = vf_from_vi(vi_load_i8_n(q->b[i], c, end - c));
                UNROLL for (size_t r = 0; r < rows; r++) sum[r][i] =
                    vf_fma(w, vf_load_f32(q->x + r * q->x_stride, c), sum[r][i]);
            }
            c = end;
        }
        UNROLL for (size_t i = 0; i < columns; i++) {
            vf s = vf_set(q->scale[i][g]);
            UNROLL for (size_t r = 0; r < rows; r++) total[r][i] = vf_fma(sum[r][i], s, total[r][i]);
        }
    }
    UNROLL for (size_t r = 0; r < rows; r++) UNROLL for (size_t i = 0; i < columns; i++)
        out[r * STRIDE + i * q->apart] += sum_lanes(total[r][i]);
}

typedef void (*quant_fn)(const quant_run *q, float *out);
#define QUANT(name, rows, columns)                                                                                     \
    static void name##_##rows##x##columns(const quant_run *q, float *out) {                                            \
        name(rows, columns, q, out);                                                                                   \
    }
#define QUANTS(name)                                                                                                   \
    QUANT(name, 1, 1)                                                                                                  \
    QUANT(name, 1, 4)                                                                                                  \
    QUANT(name, 2, 1)                                                                                                  \
    QUANT(name, 2, 4)                                                                                                  \
    QUANT(name, 3, 1)                                                                                                  \
    QUANT(name, 3, 4)                                                                                                  \
    QUANT(name, 4, 1)                                                                                                  \
    QUANT(name, 4, 4)                                                                                                  \
    static const quant_fn name##_table[4][2] = {                                                                       \
        {name##_1x1, name##_1x4}, {name##_2x1, name##_2x4}, {name##_3x1, name##_3x4}, {name##_4x1, name##_4x4}};
QUANTS(dot_nibbles)
QUANTS(dot_bytes)

static void scales_to_f32(const dp_gemm_quant *q, const void *table, size_t group, size_t j, size_t n, float *out) {
    ptrdiff_t at = (ptrdiff_t)group * q->group_stride + (ptrdiff_t)j * q->column_stride;
    if (q->group_stride == 1)
        DP_RUNG(dp_gemm_widen)(out, (const char *)table + at * (ptrdiff_t)size_of(q->dtype), q->dtype, n);
    else
        for (size_t g = 0; g < n; g++)
            out[g] = scalar_at(table, q->dtype, at + (ptrdiff_t)g * q->group_stride);
}

/* sum over groups of scale * (dot + offset * sum of x) */
static void decode_dot_quant(const dp_gemm_plan *plan, size_t j, size_t columns, const float *rows, float *sums) {
    const dp_gemm_problem *p = &plan->problem;
    const dp_gemm_quant *q = &p->quant;
    const size_t stride = dp_gemm_decode_stride(p->k), groups = dp_gemm_decode_groups(plan);
    const size_t group_size = q->group_size ? q->group_size : (size_t)1 << 40;
    const size_t run =
        group_size < QUANT_RUN ? QUANT_RUN / group_size * group_size : QUANT_RUN; /* whole groups, or part of one */
    const quant_fn(*table)[2] = p->b.dtype == DP_I4 ? dot_nibbles_table : dot_bytes_table;
    const float *x_sums = rows + p->m * stride;
    float scale[4][SCALES_ROOM] = {{0}}, offset[SCALES_ROOM];
    for (size_t r = 0; r < p->m; r++)
        memset(sums + r * STRIDE, 0, columns * sizeof *sums);
    for (size_t c = 0; c < column_groups(columns); c++) {
        const column_group set = column_group_at(columns, c);
        for (size_t k = 0; k < p->k; k += run) {
            quant_run part = {.x_stride = stride, .group_size = group_size, .scale = scale, .apart = set.apart};
            part.n = p->k - k < run ? p->k - k : run;
            size_t first = k / group_size, count = (k + part.n - 1) / group_size - first + 1;
            for (size_t t = 0; t < set.wide; t++) {
                size_t column = j + set.first + t * set.apart;
                part.b[t] = (const uint8_t *)b_at(&p->b, k, column);
                scales_to_f32(q, q->scale, first, column, count, scale[t]);
            }
            for (size_t r = 0, at_once; r < p->m; r += at_once) {
                at_once = rows_at_once(p->m - r);
                part.x = rows + r * stride + k;
                table[at_once - 1][set.wide == 4](&part, sums + r * STRIDE + set.first);
            }
            if (!groups || k % group_size) /* a group that goes on has had its offset */
                continue;
            for (size_t t = 0; t < set.wide; t++) {
                scales_to_f32(q, q->offset, first, j + set.first + t * set.apart, count, offset);
                for (size_t r = 0; r < p->m; r++)
                    for (size_t g = 0; g < count; g++)
                        sums[r * STRIDE + set.first + t * set.apart] +=
                            scale[t][g] * offset[g] * x_sums[r * groups + first + g];
            }
        }
    }
}

/* ---- rows contiguous: several rows of B, times their x, are added to the row of sums ---- */

/* Rows of B taken together, and their x: `apart` from each other; what is to be prefetched lies `ahead` bytes after
 * each. */
typedef struct {
    const float *x;
    size_t x_stride, x_apart;
    const char *b;
    ptrdiff_t b_apart, ahead;
    size_t n;
} axpy_rows;

/* sums[r] += x[r][0], x[r][x_apart] ... * `count` rows of B */
DP_INLINE void axpy(const dp_dtype t, const size_t rows, const size_t count, const axpy_rows *a, float *sums) {
    vf y[4][4];
    UNROLL for (size_t r = 0; r < rows; r++) UNROLL for (size_t k = 0; k < count; k++) y[r][k] =
        vf_set(a->x[r * a->x_stride + k * a->x_apart]);
    const char *b = a->b;
    const ptrdiff_t apart = a->b_apart, ahead = a->ahead;
    const size_t n = a->n;
    size_t c = 0;
    for (; c + DP_LANES <= n; c += DP_LANES) {
        vf w[4];
        UNROLL for (size_t k = 0; k < count; k++) {
            const char *row = b + (ptrdiff_t)k * apart;
            w[k] = load(row, t, c);
            __builtin_prefetch(row + ahead + c * size_of(t));
        }
        UNROLL for (size_t r = 0; r < rows; r++) {
            vf sum = vf_load_f32(sums + r * STRIDE, c);
            UNROLL for (size_t k = 0; k < count; k++) sum = vf_fma(w[k], y[r][k], sum);
            vf_store_f32(sums + r * STRIDE, c, sum);
        }
    }
    if (c < n)
        UNROLL for (size_t r = 0; r < rows; r++) {
            vf sum = vf_load_f32_n(sums + r * STRIDE, c, n - c);
            UNROLL for (size_t k = 0; k < count; k++) sum =
                vf_fma(load_n(b + (ptrdiff_t)k * apart, t, c, n - c), y[r][k], sum);
            vf_store_f32_n(sums + r * STRIDE, c, n - c, sum);
        }
}

typedef void (*axpy_fn)(const axpy_rows *a, float *sums);
#define AXPY(type, rows, count)                                                                                        \
    static void axpy_##type##_##rows##x##count(const axpy_rows *a, float *sums) {                                      \
        axpy(DP_##type, rows, count, a, sums);                                                                         \
    }
#define AXPYS(type)                                                                                                    \
    AXPY(type, 1, 1)                                                                                                   \
    AXPY(type, 1, 4)                                                                                                   \
    AXPY(type, 2, 1)                                                                                                   \
    AXPY(type, 2, 4)                                                                                                   \
    AXPY(type, 3, 1)                                                                                                   \
    AXPY(type, 3, 4)                                                                                                   \
    AXPY(type, 4, 1)                                                                                                   \
    AXPY(type, 4, 4)                                                                                                   \
    static const axpy_fn axpys_##type[4][2] = {{axpy_##type##_1x1, axpy_##type##_1x4},                                 \
                                               {axpy_##type##_2x1, axpy_##type##_2x4},                                 \
                                               {axpy_##type##_3x1, axpy_##type##_3x4},                                 \
                                               {axpy_##type##_4x1, axpy_##type##_4x4}};
AXPYS(F32)
AXPYS(F16)
AXPYS(BF16)
AXPYS(I8)

/* For all m rows of x. */
static void axpy_all(dp_dtype t, size_t m, size_t count, axpy_rows a, float *sums) {
    const axpy_fn(*table)[2] = t == DP_F32 ? axpys_F32 : t == DP_F16 ? axpys_F16 : t == DP_BF16 ? axpys_BF16 : axpys_I8;
    for (size_t r = 0, at_once; r < m; r += at_once) {
        at_once = rows_at_once(m - r);
        table[at_once - 1][count == 4](&a, sums + r * STRIDE);
        a.x += at_once * a.x_stride;
    }
}

/* Rows of B taken together are a quarter of all apart, as the columns of dot products are: four streams. */
static void decode_axpy(const dp_gemm_plan *plan, size_t j, size_t columns, const float *rows, float *sums) {
    const dp_gemm_problem *p = &plan->problem;
    const size_t stride = dp_gemm_decode_stride(p->k), quarter = p->k / 4;
    const ptrdiff_t row_bytes = p->b.row_stride * (ptrdiff_t)size_of(p->b.dtype);
    const size_t used = columns * size_of(p->b.dtype);
    for (size_t r = 0; r < p->m; r++)
        memset(sums + r * STRIDE, 0, columns * sizeof *sums);
    axpy_rows a = {.x_stride = stride,
                   .x_apart = quarter,
                   .b_apart = (ptrdiff_t)quarter * row_bytes,
                   .ahead = row_bytes * (ptrdiff_t)(used < AHEAD_BYTES ? AHEAD_BYTES / (used ? used : 1) : 1),
                   .n = columns};
    for (size_t k = 0; k < quarter + p->k % 4; k++) {
        const size_t first = k < quarter ? k : 3 * quarter + k;
        a.x = rows + first;
        a.b = b_at(&p->b, first, j);
        axpy_all(p->b.dtype, p->m, k < quarter ? 4 : 1, a, sums);
    }
}

/* The same for int4, in chunks of 8 vectors: sums[t * DP_LANES + lane] of a chunk belongs to its column 8 * lane + t.
 */
DP_INLINE void axpy_nibbles(const size_t rows, const size_t count, const float *x, size_t x_stride, const uint8_t *b,
                            ptrdiff_t b_stride, size_t n, float *sums) {
    vf y[4][4];
    UNROLL for (size_t r = 0; r < rows; r++) UNROLL for (size_t k = 0; k < count; k++) y[r][k] =
        vf_set(x[r * x_stride + k]);
    for (size_t c = 0; c < n; c += NIBBLE_CHUNK) {
        vi v[4];
        UNROLL for (size_t k = 0; k < count; k++) {
            v[k] = nibbles_at(b + (ptrdiff_t)k * b_stride, c, n);
            __builtin_prefetch(b + (ptrdiff_t)(k + count) * b_stride + c / 2);
        }
        UNROLL for (size_t t = 0; t < 8; t++) {
            vf w[4];
            UNROLL for (size_t k = 0; k < count; k++) w[k] = nibble(v[k], t);
            UNROLL for (size_t r = 0; r < rows; r++) {
                float *at = sums + r * STRIDE + c + t * DP_LANES;
                vf sum = vf_load_f32(at, 0);
                UNROLL for (size_t k = 0; k < count; k++) sum = vf_fma(w[k], y[r][k], sum);
                vf_store_f32(at, 0, sum);
            }
        }
    }
}

static void axpy_nibble_rows(size_t m, size_t count, const float *x, size_t s, const uint8_t *b, ptrdiff_t b_stride,
                             size_t n, float *sums) {
    for (size_t r = 0, at_once; r < m; r += at_once, x += at_once * s, sums += at_once * STRIDE) {
        at_once = count == 1 ? 1 : rows_at_once(m - r);
        if (count == 1)
            axpy_nibbles(1, 1, x, s, b, b_stride, n, sums);
        else if (at_once == 4)
            axpy_nibbles(4, 4, x, s, b, b_stride, n, sums);
        else if (at_once == 3)
            axpy_nibbles(3, 4, x, s, b, b_stride, n, sums);
        else if (at_once == 2)
            axpy_nibbles(2, 4, x, s, b, b_stride, n, sums);
        else
            axpy_nibbles(1, 4, x, s, b, b_stride, n, sums);
    }
}

static void column_scales(const dp_gemm_quant *q, const void *table, size_t g, size_t j, size_t n, float *out) {
    ptrdiff_t at = (ptrdiff_t)g * q->group_stride + (ptrdiff_t)j * q->column_stride;
    if (q->column_stride == 1)
        DP_RUNG(dp_gemm_widen)(out, (const char *)table + at * (ptrdiff_t)size_of(q->dtype), q->dtype, n);
    else
        for (size_t t = 0; t < n; t++)
            out[t] = scalar_at(table, q->dtype, at + (ptrdiff_t)t * q->column_stride);
}

/* sums += scale * (part + offset * sum of x) for one group */
static void add_group(const dp_gemm_plan *plan, size_t g, size_t j, size_t columns, const float *x_sums,
                      const float *part, float *sums) {
    const dp_gemm_quant *q = &plan->problem.quant;
    const size_t groups = dp_gemm_decode_groups(plan), m = plan->problem.m;
    for (size_t c = 0, n; c < columns; c += n) {
        float scale[NIBBLE_CHUNK], offset[NIBBLE_CHUNK] = {0};
        n = columns - c < NIBBLE_CHUNK ? columns - c : NIBBLE_CHUNK;
        column_scales(q, q->scale, g, j + c, n, scale);
        if (groups)
            column_scales(q, q->offset, g, j + c, n, offset);
        for (size_t r = 0; r < m; r++) {
            float x_sum = groups ? x_sums[r * groups + g] : 0, *to = sums + r * STRIDE + c;
            const float *from = part + r * STRIDE + c;
            if (plan->problem.b.dtype == DP_I4)
                for (size_t t = 0; t < n; t++)
                    to[t] += scale[t] * (from[t % 8 * DP_LANES + t / 8] + offset[t] * x_sum);
            else
                for (size_t t = 0; t < n; t++)
                    to[t] += scale[t] * (from[t] + offset[t] * x_sum);
        }
    }
}

/* With scales: the unscaled sums of a group first. */
static void decode_axpy_quant(const dp_gemm_plan *plan, size_t j, size_t columns, const float *rows, float *sums) {
    const dp_gemm_problem *p = &plan->problem;
    const size_t stride = dp_gemm_decode_stride(p->k), group_size = p->quant.group_size ? p->quant.group_size : p->k;
    float part[DP_GEMM_DECODE_ROWS * STRIDE];
    for (size_t r = 0; r < p->m; r++)
        memset(sums + r * STRIDE, 0, columns * sizeof *sums);
    for (size_t first = 0, g = 0; first < p->k; first += group_size, g++) {
        size_t last = p->k - first < group_size ? p->k : first + group_size;
        for (size_t r = 0; r < p->m; r++)
            memset(part + r * STRIDE, 0, dp_gemm_round(columns, NIBBLE_CHUNK) * sizeof *part);
        for (size_t k = first, count; k < last; k += count) {
            count = last - k >= 4 ? 4 : 1;
            const char *b = b_at(&p->b, k, j);
            if (p->b.dtype == DP_I4)
                axpy_nibble_rows(p->m, count, rows + k, stride, (const uint8_t *)b, p->b.row_stride / 2, columns, part);
            else
                axpy_all(DP_I8, p->m, count,
                         (axpy_rows){.x = rows + k,
                                     .x_stride = stride,
                                     .x_apart = 1,
                                     .b = b,
                                     .b_apart = p->b.row_stride,
                                     .ahead = (ptrdiff_t)count * p->b.row_stride,
                                     .n = columns},
                         part);
        }
        add_group(plan, g, j, columns, rows + p->m * stride, part, sums);
    }
}

/* ---- bytes by bytes: summed in float as long as that is exact, then in int32 ---- */

enum { EXACT_RUN = 512 }; /* 512 * 255 * 128 < 2^24 */

static void dot_run(const dp_gemm_plan *plan, size_t j, size_t columns, size_t k, size_t n, const float *rows,
                    float *part) {
    const dp_gemm_problem *p = &plan->problem;
    const size_t stride = dp_gemm_decode_stride(p->k);
    float scale[4][SCALES_ROOM];
    for (size_t t = 0; t < 4; t++)
        scale[t][0] = 1;
    for (size_t c = 0; c < column_groups(columns); c++) {
        const column_group set = column_group_at(columns, c);
        quant_run run = {.x_stride = stride, .n = n, .group_size = EXACT_RUN, .scale = scale, .apart = set.apart};
        for (size_t t = 0; t < set.wide; t++)
            run.b[t] = (const uint8_t *)b_at(&p->b, k, j + set.first + t * set.apart);
        for (size_t r = 0, at_once; r < p->m; r += at_once) {
            at_once = rows_at_once(p->m - r);
            run.x = rows + r * stride + k;
            dot_bytes_table[at_once - 1][set.wide == 4](&run, part + r * STRIDE + set.first);
        }
    }
}

static void axpy_run(const dp_gemm_plan *plan, size_t j, size_t columns, size_t k, size_t n, const float *rows,
                     float *part) {
    const dp_gemm_problem *p = &plan->problem;
    for (size_t end = k + n, count; k < end; k += count) {
        count = end - k >= 4 ? 4 : 1;
        axpy_all(DP_I8, p->m, count,
                 (axpy_rows){.x = rows + k,
                             .x_stride = dp_gemm_decode_stride(p->k),
                             .x_apart = 1,
                             .b = b_at(&p->b, k, j),
                             .b_apart = p->b.row_stride,
                             .ahead = (ptrdiff_t)count * p->b.row_stride,
                             .n = columns},
                 part);
    }
}

static void decode_bytes(const dp_gemm_plan *plan, size_t j, size_t columns, const float *rows, float *sums) {
    const dp_gemm_problem *p = &plan->problem;
    float part[DP_GEMM_DECODE_ROWS * STRIDE];
    uint32_t *total = (uint32_t *)sums;
    for (size_t r = 0; r < p->m; r++)
        memset(total + r * STRIDE, 0, columns * sizeof *total);
    for (size_t k = 0; k < p->k; k += EXACT_RUN) {
        const size_t n = p->k - k < EXACT_RUN ? p->k - k : EXACT_RUN;
        for (size_t r = 0; r < p->m; r++)
            memset(part + r * STRIDE, 0, columns * sizeof *part);
        (plan->decode == DP_GEMM_DECODE_DOT ? dot_run : axpy_run)(plan, j, columns, k, n, rows, part);
        for (size_t r = 0; r < p->m; r++)
            for (size_t c = 0; c < columns; c++)
                total[r * STRIDE + c] += (uint32_t)(int32_t)part[r * STRIDE + c];
    }
}

/* ---- packed panels ---- */

enum { PANEL_VECTORS = DP_LANES > 1 ? 2 : 8 };

/*
 * One or two panels of n units; the second lies b_apart bytes further on and its sums sums_apart floats. Two streams,
 * and with one row twice the independent sums.
 */
DP_INLINE void panel(const dp_dtype t, const size_t rows, const size_t panels, const float *x, size_t x_stride,
                     const char *b, size_t b_apart, size_t n, float *sums, size_t sums_apart) {
    const size_t width = PANEL_VECTORS * DP_LANES;
    vf sum[2][4][PANEL_VECTORS];
    UNROLL for (size_t h = 0; h < panels; h++) UNROLL for (size_t r = 0; r < rows; r++)
        UNROLL for (size_t v = 0; v < PANEL_VECTORS; v++) sum[h][r][v] = vf_set(0);
    for (size_t k = 0; k < n; k++)
        UNROLL for (size_t h = 0; h < panels; h++) UNROLL for (size_t v = 0; v < PANEL_VECTORS; v++) {
            vf w = load(b + h * b_apart, t, k * width + v * DP_LANES);
            __builtin_prefetch(b + h * b_apart + (k * width + v * DP_LANES) * size_of(t) + PANEL_AHEAD_BYTES);
            UNROLL for (size_t r = 0; r < rows; r++) sum[h][r][v] =
                vf_fma(w, vf_set(x[r * x_stride + k]), sum[h][r][v]);
        }
    UNROLL for (size_t h = 0; h < panels; h++) UNROLL for (size_t r = 0; r < rows; r++)
        UNROLL for (size_t v = 0; v < PANEL_VECTORS; v++) {
        float *at = sums + r * STRIDE + h * sums_apart + v * DP_LANES;
        vf_store_f32(at, 0, vf_load_f32(at, 0) + sum[h][r][v]);
    }
}

typedef void (*panel_fn)(const float *x, size_t x_stride, const char *b, size_t b_apart, size_t n, float *sums,
                         size_t sums_apart);
#define PANEL(type, rows, panels)                                                                                      \
    static void panel_##type##_##rows##x##panels(const float *x, size_t x_stride, const char *b, size_t b_apart,       \
                                                 size_t n, float *sums, size_t sums_apart) {                           \
        panel(DP_##type, rows, panels, x, x_stride, b, b_apart, n, sums, sums_apart);                                  \
    }
#define PANELS(type)                                                                                                   \
    PANEL(type, 1, 1)                                                                                                  \
    PANEL(type, 1, 2)                                                                                                  \
    PANEL(type, 2, 1)                                                                                                  \
    PANEL(type, 2, 2)                                                                                                  \
    PANEL(type, 3, 1)                                                                                                  \
    PANEL(type, 3, 2)                                                                                                  \
    PANEL(type, 4, 1)                                                                                                  \
    PANEL(type, 4, 2)                                                                                                  \
    static const panel_fn panels_##type[4][2] = {{panel_##type##_1x1, panel_##type##_1x2},                             \
                                                 {panel_##type##_2x1, panel_##type##_2x2},                             \
                                                 {panel_##type##_3x1, panel_##type##_3x2},                             \
                                                 {panel_##type##_4x1, panel_##type##_4x2}};
PANELS(F32)
PANELS(F16)
PANELS(BF16)

static void decode_panel(const dp_gemm_plan *plan, size_t j, size_t columns, const float *rows, float *sums) {
    const dp_gemm_problem *p = &plan->problem;
    const size_t stride = dp_gemm_decode_stride(p->k), width = plan->rung->columns;
    const size_t first = j / width, count = dp_gemm_ceil(columns, width), half = count / 2;
    const panel_fn(*table)[2] = p->b.dtype == DP_F32 ? panels_F32 : p->b.dtype == DP_F16 ? panels_F16 : panels_BF16;
    for (size_t r = 0; r < p->m; r++)
        memset(sums + r * STRIDE, 0, count * width * sizeof *sums);
    for (size_t u = 0, block = 0; u < plan->units; u += plan->unit_block, block++) {
        size_t n = plan->units - u < plan->unit_block ? plan->units - u : plan->unit_block;
        size_t apart = dp_gemm_packed_b_at(plan, block, half) - dp_gemm_packed_b_at(plan, block, 0);
        for (size_t c = 0; c < half + count % 2; c++) {
            bool pair = c < half;
            size_t at = pair ? c : count - 1; /* an odd one out is the last */
            const char *b = (const char *)p->b.data + dp_gemm_packed_b_at(plan, block, first + at);
            for (size_t r = 0, at_once; r < p->m; r += at_once) {
                at_once = rows_at_once(p->m - r);
                table[at_once - 1][pair](rows + r * stride + u, stride, b, apart, n, sums + r * STRIDE + at * width,
                                         half * width);
            }
        }
    }
}

void DP_RUNG(dp_gemm_decode)(const dp_gemm_plan *plan, size_t j, size_t columns, const float *rows, float *sums) {
    dp_dtype t = plan->problem.b.dtype;
    if (plan->decode == DP_GEMM_DECODE_PANEL)
        decode_panel(plan, j, columns, rows, sums);
    else if (t == DP_I8 && !plan->problem.quant.scale)
        decode_bytes(plan, j, columns, rows, sums);
    else if (plan->decode == DP_GEMM_DECODE_DOT)
        (t == DP_I4 || t == DP_I8 ? decode_dot_quant : decode_dot)(plan, j, columns, rows, sums);
    else
        (plan->problem.quant.scale ? decode_axpy_quant : decode_axpy)(plan, j, columns, rows, sums);
}
