/* pack.c - from matrices of any type and stride to rows and panels of units, and expanding quantised weights on the
 * way. */
#include "math/gemm/rung.h"
#include "math/vec.h"

enum { CHUNK = 64 /* units of one column on the way to a panel */ };

#define RUN_TO_F32(load, n)                                                                                            \
    { DP_LANE_LOOP(n, vf_store_f32(dst, i, load(src, i)), vf_store_f32_n(dst, i, rest, load##_n(src, i, rest))) }
#define LOAD_I8(p, i) vf_from_vi(vi_load_i8(p, i))
#define LOAD_I8_n(p, i, n) vf_from_vi(vi_load_i8_n(p, i, n))
#define LOAD_U8(p, i) vf_from_vi(vi_load_u8(p, i))
#define LOAD_U8_n(p, i, n) vf_from_vi(vi_load_u8_n(p, i, n))

static void run_to_f32(float *dst, const void *src, dp_dtype dtype, size_t n) {
    switch (dtype) {
    case DP_F32:
        RUN_TO_F32(vf_load_f32, n) break;
    case DP_F16:
        RUN_TO_F32(vf_load_f16, n) break;
    case DP_BF16:
        RUN_TO_F32(vf_load_bf16, n) break;
    case DP_I8:
        RUN_TO_F32(LOAD_I8, n) break;
    default:
        RUN_TO_F32(LOAD_U8, n) break;
    }
}

void DP_RUNG(dp_gemm_widen)(float *dst, const void *src, dp_dtype dtype, size_t n) {
    run_to_f32(dst, src, dtype, n);
}

static const void *element(const dp_gemm_view *v, ptrdiff_t index) {
    return (const char *)v->data + index * (ptrdiff_t)(dp_dtype_bits(v->dtype) / 8);
}

static float element_f32(const void *p, dp_dtype dtype) {
    switch (dtype) {
    case DP_F32:
        return *(const float *)p;
    case DP_F16:
        return dp_f32_from_f16(*(const uint16_t *)p);
    case DP_BF16:
        return dp_f32_from_bf16(*(const uint16_t *)p);
    case DP_I8:
        return *(const int8_t *)p;
    default:
        return *(const uint8_t *)p;
    }
}

/* n nibbles from nibble offset first, step nibbles apart, sign extended */
static void unpack_nibbles(int8_t *dst, const uint8_t *src, ptrdiff_t first, ptrdiff_t step, size_t n) {
    if (step == 1 && first % 2 == 0) {
        src += first / 2;
        for (size_t i = 0; i < n / 2; i++) {
            dst[2 * i] = (int8_t)((int8_t)(src[i] << 4) >> 4);
            dst[2 * i + 1] = (int8_t)((int8_t)src[i] >> 4);
        }
        if (n % 2)
            dst[n - 1] = (int8_t)((int8_t)(src[n / 2] << 4) >> 4);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        ptrdiff_t at = first + (ptrdiff_t)i * step;
        uint8_t byte = src[at >> 1];
        dst[i] = (int8_t)((int8_t)(at & 1 ? byte : byte << 4) >> 4);
    }
}

/* n elements, step apart, to float, unscaled; n <= 4 * CHUNK for int4 */
static void elements_to_f32(float *dst, const dp_gemm_view *v, ptrdiff_t first, ptrdiff_t step, size_t n) {
    if (v->dtype == DP_I4) {
        int8_t q[4 * CHUNK];
        unpack_nibbles(q, v->data, first, step, n);
        run_to_f32(dst, q, DP_I8, n);
    } else if (step == 1) {
        run_to_f32(dst, element(v, first), v->dtype, n);
    } else {
        for (size_t i = 0; i < n; i++)
            dst[i] = element_f32(element(v, first + (ptrdiff_t)i * step), v->dtype);
    }
}

static float quant_entry(const dp_gemm_quant *q, const void *table, size_t group, size_t j) {
    ptrdiff_t at = (ptrdiff_t)group * q->group_stride + (ptrdiff_t)j * q->column_stride;
    return element_f32((const char *)table + at * (ptrdiff_t)(dp_dtype_bits(q->dtype) / 8), q->dtype);
}

static size_t group_of(const dp_gemm_quant *q, size_t k) {
    return q->group_size ? k / q->group_size : 0;
}

/* A run along k of column j: one scale per group. */
static void scale_k_run(float *dst, const dp_gemm_quant *q, size_t k, size_t j, size_t n) {
    for (size_t done = 0; done < n;) {
        size_t group = group_of(q, k + done), count = n - done;
        if (q->group_size && count > (group + 1) * q->group_size - (k + done))
            count = (group + 1) * q->group_size - (k + done);
        float scale = quant_entry(q, q->scale, group, j), offset = q->offset ? quant_entry(q, q->offset, group, j) : 0;
        for (size_t i = 0; i < count; i++)
            dst[done + i] = (dst[done + i] + offset) * scale;
        done += count;
    }
}

/* count elements along k, step apart, to units, the last one filled up with zeros */
static void row_to_units(dp_gemm_kind kind, const dp_gemm_view *v, ptrdiff_t first, size_t count, uint32_t *dst) {
    ptrdiff_t step = v->k_stride;
    const void *src = v->dtype == DP_I4 ? v->data : element(v, first);
    if (kind == DP_GEMM_F32) {
        elements_to_f32((float *)dst, v, first, step, count);
    } else if (kind == DP_GEMM_BF16) {
        uint16_t *to = (uint16_t *)dst;
        if (step == 1)
            memcpy(to, src, 2 * count);
        else
            for (size_t i = 0; i < count; i++)
                to[i] = ((const uint16_t *)src)[(ptrdiff_t)i * step];
        if (count % 2)
            to[count] = 0;
    } else if (kind == DP_GEMM_I16) {
        int16_t *to = (int16_t *)dst;
        if (v->dtype == DP_I8)
            for (size_t i = 0; i < count; i++)
                to[i] = ((const int8_t *)src)[(ptrdiff_t)i * step];
        else
            for (size_t i = 0; i < count; i++)
                to[i] = ((const uint8_t *)src)[(ptrdiff_t)i * step];
        if (count % 2)
            to[count] = 0;
    } else {
        uint8_t *to = (uint8_t *)dst, flip = v->flip ? 0x80 : 0;
        if (step == 1)
            for (size_t i = 0; i < count; i++)
                to[i] = ((const uint8_t *)src)[i] ^ flip;
        else
            for (size_t i = 0; i < count; i++)
                to[i] = ((const uint8_t *)src)[(ptrdiff_t)i * step] ^ flip;
        for (size_t i = count; i % 4; i++)
            to[i] = 0;
    }
}

#if DP_MATH_RUNG == DP_RUNG_AVX512
/* 16 x 16 units: pairs, then quadruples of rows interleaved, then the 128-bit quarters put in place. */
DP_INLINE void transpose_block(uint32_t *dst, size_t dst_stride, const uint32_t *src, size_t src_stride) {
    __m512i t[16], r[16];
    _Pragma("GCC unroll 8") for (size_t i = 0; i < 8; i++) {
        __m512i x = _mm512_loadu_si512(src + 2 * i * src_stride),
                y = _mm512_loadu_si512(src + (2 * i + 1) * src_stride);
        t[2 * i] = _mm512_unpacklo_epi32(x, y);
        t[2 * i + 1] = _mm512_unpackhi_epi32(x, y);
    }
    _Pragma("GCC unroll 4") for (size_t i = 0; i < 4; i++) {
        r[4 * i] = _mm512_unpacklo_epi64(t[4 * i], t[4 * i + 2]);
        r[4 * i + 1] = _mm512_unpackhi_epi64(t[4 * i], t[4 * i + 2]);
        r[4 * i + 2] = _mm512_unpacklo_epi64(t[4 * i + 1], t[4 * i + 3]);
        r[4 * i + 3] = _mm512_unpackhi_epi64(t[4 * i + 1], t[4 * i + 3]);
    }
    _Pragma("GCC unroll 4") for (size_t i = 0; i < 4; i++) { /* columns i, 4 + i, 8 + i, 12 + i */
        __m512i a = _mm512_shuffle_i32x4(r[i], r[4 + i], 0x88), b = _mm512_shuffle_i32x4(r[8 + i], r[12 + i], 0x88);
        __m512i c = _mm512_shuffle_i32x4(r[i], r[4 + i], 0xdd), d = _mm512_shuffle_i32x4(r[8 + i], r[12 + i], 0xdd);
        _mm512_storeu_si512(dst + i * dst_stride, _mm512_shuffle_i32x4(a, b, 0x88));
        _mm512_storeu_si512(dst + (4 + i) * dst_stride, _mm512_shuffle_i32x4(c, d, 0x88));
        _mm512_storeu_si512(dst + (8 + i) * dst_stride, _mm512_shuffle_i32x4(a, b, 0xdd));
        _mm512_storeu_si512(dst + (12 + i) * dst_stride, _mm512_shuffle_i32x4(c, d, 0xdd));
    }
}
#elif DP_MATH_RUNG == DP_RUNG_AVX2
DP_INLINE void transpose_block(uint32_t *dst, size_t dst_stride, const uint32_t *src, size_t src_stride) {
    __m256i t[8], r[8];
    _Pragma("GCC unroll 4") for (size_t i = 0; i < 4; i++) {
        __m256i x = _mm256_loadu_si256((const void *)(src + 2 * i * src_stride));
        __m256i y = _mm256_loadu_si256((const void *)(src + (2 * i + 1) * src_stride));
        t[2 * i] = _mm256_unpacklo_epi32(x, y);
        t[2 * i + 1] = _mm256_unpackhi_epi32(x, y);
    }
    _Pragma("GCC unroll 2") for (size_t i = 0; i < 2; i++) {
        r[4 * i] = _mm256_unpacklo_epi64(t[4 * i], t[4 * i + 2]);
        r[4 * i + 1] = _mm256_unpackhi_epi64(t[4 * i], t[4 * i + 2]);
        r[4 * i + 2] = _mm256_unpacklo_epi64(t[4 * i + 1], t[4 * i + 3]);
        r[4 * i + 3] = _mm256_unpackhi_epi64(t[4 * i + 1], t[4 * i + 3]);
    }
    _Pragma("GCC unroll 4") for (size_t i = 0; i < 4; i++) {
        _mm256_storeu_si256((void *)(dst + i * dst_stride), _mm256_permute2x128_si256(r[i], r[4 + i], 0x20));
        _mm256_storeu_si256((void *)(dst + (4 + i) * dst_stride), _mm256_permute2x128_si256(r[i], r[4 + i], 0x31));
    }
}
#else
DP_INLINE void transpose_block(uint32_t *dst, size_t dst_stride, const uint32_t *src, size_t src_stride) {
    (void)dst_stride;
    (void)src_stride;
    *dst = *src;
}
#endif

/* dst[j][i] = src[i][j], rows x columns of src */
static void transpose_units(uint32_t *dst, size_t dst_stride, const uint32_t *src, size_t src_stride, size_t rows,
                            size_t columns) {
    size_t whole_rows = rows / DP_LANES * DP_LANES, whole_columns = columns / DP_LANES * DP_LANES;
    for (size_t i = 0; i < whole_rows; i += DP_LANES)
        for (size_t j = 0; j < whole_columns; j += DP_LANES)
            transpose_block(dst + j * dst_stride + i, dst_stride, src + i * src_stride + j, src_stride);
    for (size_t j = 0; j < columns; j++)
        for (size_t i = j < whole_columns ? whole_rows : 0; i < rows; i++)
            dst[j * dst_stride + i] = src[i * src_stride + j];
}

/* rows side by side in memory: convert across the rows, then turn blocks round */
static void pack_rows_across(const dp_gemm_view *v, size_t rows, size_t k_count, uint32_t *dst, size_t dst_stride) {
    uint32_t block[CHUNK][DP_GEMM_COLUMNS_MAX];
    for (size_t k = 0; k < k_count; k += CHUNK) {
        size_t count = k_count - k < CHUNK ? k_count - k : CHUNK;
        for (size_t p = 0; p < count; p++)
            run_to_f32((float *)block[p], element(v, v->first + (ptrdiff_t)(k + p) * v->k_stride), v->dtype, rows);
        transpose_units(dst + k, dst_stride, block[0], DP_GEMM_COLUMNS_MAX, count, rows);
    }
}

void DP_RUNG(dp_gemm_pack_rows)(dp_gemm_kind kind, const dp_gemm_view *view, size_t rows, size_t k_count, uint32_t *dst,
                                size_t dst_stride) {
    if (kind == DP_GEMM_F32 && view->other_stride == 1 && view->k_stride != 1 && rows > 1) {
        pack_rows_across(view, rows, k_count, dst, dst_stride);
        return;
    }
    for (size_t i = 0; i < rows; i++)
        row_to_units(kind, view, view->first + (ptrdiff_t)i * view->other_stride, k_count, dst + i * dst_stride);
}

/* Columns side by side in memory, float units: one row of the panel for every k. A whole panel goes in vectors. */
enum { PANEL_WIDTH = DP_LANES > 1 ? 2 * DP_LANES : 8, ROWS_AHEAD = 12 };

/* left: columns there are; the vectors behind them become zeros */
DP_INLINE void vector_panel(vf (*load)(const void *, size_t), vf (*load_n)(const void *, size_t, size_t), size_t size,
                            const char *src, ptrdiff_t step, size_t left, size_t k_count, float *dst) {
    for (size_t p = 0; p < k_count; p++, dst += PANEL_WIDTH, src += step) {
        __builtin_prefetch(src + ROWS_AHEAD * step);
        __builtin_prefetch(src + ROWS_AHEAD * step + left * size - 1);
        for (size_t j = 0; j < PANEL_WIDTH; j += DP_LANES)
            vf_store_f32(dst, j, j + DP_LANES <= left ? load(src, j) : j < left ? load_n(src, j, left - j) : vf_set(0));
    }
}

#define VECTOR_PANEL(load, size)                                                                                       \
    if (columns == PANEL_WIDTH)                                                                                        \
        vector_panel(load, load##_n, size, src, size * v->k_stride, PANEL_WIDTH, k_count, dst);                        \
    else                                                                                                               \
        vector_panel(load, load##_n, size, src, size * v->k_stride, columns, k_count, dst)

static void panel_across_f32(const dp_gemm_view *v, size_t columns, size_t k_count, float *dst) {
    const char *src = v->dtype == DP_I4 ? NULL : element(v, v->first);
    if (v->dtype == DP_F32) {
        VECTOR_PANEL(vf_load_f32, 4);
    } else if (v->dtype == DP_F16) {
        VECTOR_PANEL(vf_load_f16, 2);
    } else if (v->dtype == DP_BF16) {
        VECTOR_PANEL(vf_load_bf16, 2);
    } else {
        for (size_t p = 0; p < k_count; p++) {
            elements_to_f32(dst + p * PANEL_WIDTH, v, v->first + (ptrdiff_t)p * v->k_stride, 1, columns);
            for (size_t j = columns; j < PANEL_WIDTH; j++)
                dst[p * PANEL_WIDTH + j] = 0;
        }
    }
}

static void scale_panel(const dp_gemm_view *v, size_t columns, size_t k_count, float *dst) {
    float scale[PANEL_WIDTH] = {0}, offset[PANEL_WIDTH] = {0};
    for (size_t p = 0; p < k_count; p++, dst += PANEL_WIDTH) {
        size_t group = group_of(v->quant, v->k_first + p);
        if (p == 0 || group != group_of(v->quant, v->k_first + p - 1))
            for (size_t j = 0; j < columns; j++) {
                scale[j] = quant_entry(v->quant, v->quant->scale, group, v->j_first + j);
                offset[j] = v->quant->offset ? quant_entry(v->quant, v->quant->offset, group, v->j_first + j) : 0;
            }
        for (size_t j = 0; j < PANEL_WIDTH; j++)
            dst[j] = (dst[j] + offset[j]) * scale[j];
    }
}

/* The same for kinds of several elements a unit: the elements of rows k, k + 1, ... side by side in every word. */
#define PANEL_ACROSS(name, group, from, word)                                                                          \
    DP_INLINE void name##_columns(const from *const *row, size_t columns, uint32_t *dst) {                             \
        DP_IVDEP for (size_t j = 0; j < columns; j++) dst[j] = word;                                                   \
    }                                                                                                                  \
    static void name(const dp_gemm_view *v, size_t columns, size_t k_count, uint32_t *dst) {                           \
        static const from zeros[DP_GEMM_COLUMNS_MAX];                                                                  \
        for (size_t p = 0; p < k_count; p += group, dst += PANEL_WIDTH) {                                              \
            const from *row[group];                                                                                    \
            for (size_t t = 0; t < group; t++) {                                                                       \
                row[t] =                                                                                               \
                    p + t < k_count ? (const from *)v->data + v->first + (ptrdiff_t)(p + t) * v->k_stride : zeros;     \
                __builtin_prefetch((const from *)v->data + v->first + (ptrdiff_t)(p + t + 24) * v->k_stride);          \
            }                                                                                                          \
            if (columns == PANEL_WIDTH) {                                                                              \
                name##_columns(row, PANEL_WIDTH, dst);                                                                 \
            } else {                                                                                                   \
                name##_columns(row, columns, dst);                                                                     \
                memset(dst + columns, 0, (PANEL_WIDTH - columns) * sizeof *dst);                                       \
            }                                                                                                          \
        }                                                                                                              \
    }
PANEL_ACROSS(panel_across_bf16, 2, uint16_t, (uint32_t)row[0][j] | (uint32_t)row[1][j] << 16)
PANEL_ACROSS(panel_across_i16, 2, int8_t, (uint32_t)(uint16_t)row[0][j] | (uint32_t)row[1][j] << 16)
PANEL_ACROSS(panel_across_u8, 4, uint8_t,
             (uint32_t)row[0][j] | (uint32_t)row[1][j] << 8 | (uint32_t)row[2][j] << 16 | (uint32_t)row[3][j] << 24)

static void subtract_column_sums(const uint32_t *panel, size_t units, int32_t *sums) {
    int32_t total[PANEL_WIDTH] = {0};
    for (size_t u = 0; u < units; u++)
        for (size_t j = 0; j < PANEL_WIDTH; j++) {
            uint32_t x = panel[u * PANEL_WIDTH + j];
            total[j] += ((int32_t)x >> 24) + ((int32_t)(x << 8) >> 24) + ((int32_t)(x << 16) >> 24) +
                        ((int32_t)(x << 24) >> 24);
        }
    for (size_t j = 0; j < PANEL_WIDTH; j++)
        sums[j] -= 128 * total[j];
}

static void panel_along(dp_gemm_kind kind, size_t group, const dp_gemm_view *v, size_t columns, size_t k_count,
                        uint32_t *dst, size_t width) {
    uint32_t block[DP_GEMM_COLUMNS_MAX][CHUNK];
    for (size_t j = columns; j < width; j++)
        memset(block[j], 0, sizeof block[j]);
    for (size_t k = 0; k < k_count; k += CHUNK * group) {
        size_t count = k_count - k < CHUNK * group ? k_count - k : CHUNK * group, units = dp_gemm_ceil(count, group);
        for (size_t j = 0; j < columns; j++) {
            ptrdiff_t first = v->first + (ptrdiff_t)j * v->other_stride + (ptrdiff_t)k * v->k_stride;
            row_to_units(kind, v, first, count, block[j]);
            if (v->quant)
                scale_k_run((float *)block[j], v->quant, v->k_first + k, v->j_first + j, count);
        }
        transpose_units(dst + k / group * width, width, block[0], CHUNK, width, units);
    }
}

void DP_RUNG(dp_gemm_pack_panel)(dp_gemm_kind kind, const dp_gemm_view *view, size_t columns, size_t k_count,
                                 uint32_t *dst, int32_t *sums) {
    static const uint8_t groups[DP_GEMM_KIND_COUNT] = {1, 2, 2, 4, 4};
    const size_t width = PANEL_WIDTH;
    if (view->other_stride != 1)
        panel_along(kind, groups[kind], view, columns, k_count, dst, width);
    else if (kind == DP_GEMM_F32)
        panel_across_f32(view, columns, k_count, (float *)dst);
    else if (kind == DP_GEMM_BF16)
        panel_across_bf16(view, columns, k_count, dst);
    else if (kind == DP_GEMM_I16)
        panel_across_i16(view, columns, k_count, dst);
    else
        panel_across_u8(view, columns, k_count, dst);
    if (view->quant && view->other_stride == 1)
        scale_panel(view, columns, k_count, (float *)dst);
    if (sums)
        subtract_column_sums(dst, dp_gemm_ceil(k_count, groups[kind]), sums);
}

DP_INLINE void wide(vf (*load)(const void *, size_t), size_t size, const char *src, ptrdiff_t step, size_t panels,
                    size_t k_count, float *dst, size_t panel_stride) {
    for (size_t p = 0; p < k_count; p++, dst += PANEL_WIDTH, src += step) {
        for (size_t at = 0; at < panels * PANEL_WIDTH * size; at += 64)
            __builtin_prefetch(src + ROWS_AHEAD * step + at);
        for (size_t q = 0; q < panels; q++)
            for (size_t j = 0; j < PANEL_WIDTH; j += DP_LANES)
                vf_store_f32(dst + q * panel_stride, j, load(src, q * PANEL_WIDTH + j));
    }
}

void DP_RUNG(dp_gemm_pack_wide)(const dp_gemm_view *view, size_t panels, size_t k_count, float *dst,
                                size_t panel_stride) {
    const char *src = element(view, view->first);
    if (view->dtype == DP_F32)
        wide(vf_load_f32, 4, src, 4 * view->k_stride, panels, k_count, dst, panel_stride);
    else if (view->dtype == DP_F16)
        wide(vf_load_f16, 2, src, 2 * view->k_stride, panels, k_count, dst, panel_stride);
    else
        wide(vf_load_bf16, 2, src, 2 * view->k_stride, panels, k_count, dst, panel_stride);
}
