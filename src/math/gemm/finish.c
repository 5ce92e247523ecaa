/* finish.c - the epilogue: a row of sums, still in the first level cache, goes through registers once and out to C. */
#include "math/activation.h"
#include "math/gemm/rung.h"

DP_INLINE vf activate(vf x, const dp_gemm_epilogue *e) {
    switch (e->activation) {
    case DP_GEMM_RELU:
        return vf_relu(x);
    case DP_GEMM_GELU_TANH:
        return gelu_tanh_of(x);
    case DP_GEMM_GELU_ERF:
        return gelu_erf_of(x);
    case DP_GEMM_SILU:
        return x * sigmoid_of(x);
    case DP_GEMM_SIGMOID:
        return sigmoid_of(x);
    case DP_GEMM_TANH:
        return tanh_of(x);
    case DP_GEMM_CLIP:
        return vf_min(vf_max(x, vf_set(e->clip_low)), vf_set(e->clip_high));
    default:
        return x;
    }
}

static vf load_any(const void *p, dp_dtype dtype, size_t i, size_t n) {
    if (dtype == DP_I8)
        return vf_from_vi(n == DP_LANES ? vi_load_i8(p, i) : vi_load_i8_n(p, i, n));
    if (n == DP_LANES)
        return dtype == DP_F32 ? vf_load_f32(p, i) : dtype == DP_F16 ? vf_load_f16(p, i) : vf_load_bf16(p, i);
    return dtype == DP_F32   ? vf_load_f32_n(p, i, n)
           : dtype == DP_F16 ? vf_load_f16_n(p, i, n)
                             : vf_load_bf16_n(p, i, n);
}

/* n elements of a matrix from (i, j), whatever their stride */
static vf load_part_of(const dp_gemm_matrix *m, size_t i, size_t j, size_t n) {
    ptrdiff_t first = (ptrdiff_t)i * m->row_stride + (ptrdiff_t)j * m->column_stride;
    size_t size = dp_dtype_bits(m->dtype) / 8;
    const char *p = (const char *)m->data + first * (ptrdiff_t)size;
    if (m->column_stride == 1)
        return load_any(p, m->dtype, 0, n);
    uint32_t room[DP_LANES] = {0};
    for (size_t t = 0; t < n; t++)
        memcpy((char *)room + t * size, p + (ptrdiff_t)(t * size) * m->column_stride, size);
    return load_any(room, m->dtype, 0, DP_LANES);
}

static void store_any(void *p, dp_dtype dtype, size_t n, vf x) {
    if (dtype == DP_I8) {
        vi q = vi_from_vf(vf_rint(vf_least(vf_greatest(x, vf_set(-128)), vf_set(127))));
        if (n == DP_LANES)
            vi_store_i8(p, 0, q);
        else
            vi_store_i8_n(p, 0, n, q);
        return;
    }
    if (dtype == DP_F32 && n == DP_LANES)
        vf_store_f32(p, 0, x);
    else if (dtype == DP_F32)
        vf_store_f32_n(p, 0, n, x);
    else if (dtype == DP_F16 && n == DP_LANES)
        vf_store_f16(p, 0, x);
    else if (dtype == DP_F16)
        vf_store_f16_n(p, 0, n, x);
    else if (n == DP_LANES)
        vf_store_bf16(p, 0, x);
    else
        vf_store_bf16_n(p, 0, n, x);
}

static void store_part_of(const dp_gemm_matrix *m, size_t i, size_t j, size_t n, vf x) {
    ptrdiff_t first = (ptrdiff_t)i * m->row_stride + (ptrdiff_t)j * m->column_stride;
    size_t size = dp_dtype_bits(m->dtype) / 8;
    char *p = (char *)(uintptr_t)m->data + first * (ptrdiff_t)size;
    if (m->column_stride == 1) {
        store_any(p, m->dtype, n, x);
        return;
    }
    uint32_t room[DP_LANES];
    store_any(room, m->dtype, DP_LANES, x);
    for (size_t t = 0; t < n; t++)
        memcpy(p + (ptrdiff_t)(t * size) * m->column_stride, (char *)room + t * size, size);
}

static void finish_int(const dp_gemm_plan *plan, dp_gemm_spot spot, const int32_t *sums, size_t stride) {
    const dp_gemm_problem *p = &plan->problem;
    const int32_t *bias = p->epilogue.bias;
    const dp_gemm_matrix *source = p->source.data ? &p->source : &p->c;
    for (size_t i = 0; i < spot.rows; i++) {
        int32_t *row = (int32_t *)(uintptr_t)p->c.data + (ptrdiff_t)(spot.i + i) * p->c.row_stride;
        for (size_t j = 0; j < spot.columns; j++) {
            int32_t *at = row + (ptrdiff_t)(spot.j + j) * p->c.column_stride;
            uint32_t x = (uint32_t)sums[i * stride + j];
            if (bias)
                x += (uint32_t)bias[p->epilogue.bias_per_row ? spot.i + i : spot.j + j];
            if (p->beta != 0)
                x += ((const uint32_t *)source->data)[(ptrdiff_t)(spot.i + i) * source->row_stride +
                                                      (ptrdiff_t)(spot.j + j) * source->column_stride];
            *at = (int32_t)x;
        }
    }
}

typedef struct {
    float scale, bias; /* of this row */
    bool integer;      /* sums are int32 */
} row_terms;

DP_INLINE void finish_part(const dp_gemm_plan *plan, size_t row, size_t column, size_t n, const uint32_t *sums,
                           row_terms terms) {
    const dp_gemm_problem *p = &plan->problem;
    const dp_gemm_epilogue *e = &p->epilogue;
    bool per_column = e->bias && !e->bias_per_row, whole = n == DP_LANES;
    vf x;
    if (terms.integer) {
        vi s = whole ? vi_load_i32(sums, 0) : vi_load_i32_n(sums, 0, n);
        if (e->bias && e->bias_dtype == DP_I32)
            s = s + (!per_column ? vi_set(((const int32_t *)e->bias)[row])
                     : whole     ? vi_load_i32(e->bias, column)
                                 : vi_load_i32_n(e->bias, column, n));
        x = vf_from_vi(s);
    } else {
        x = load_any(sums, DP_F32, 0, n);
    }
    x = x * vf_set(terms.scale);
    if (e->column_scale)
        x = x * load_any(e->column_scale, DP_F32, column, n);
    if (p->beta != 0)
        x = vf_fma(vf_set(p->beta), load_part_of(p->source.data ? &p->source : &p->c, row, column, n), x);
    if (per_column && e->bias_dtype != DP_I32)
        x = x + load_any(e->bias, e->bias_dtype, column, n);
    else
        x = x + vf_set(terms.bias);
    x = activate(x, e);
    if (e->residual.data)
        x = x + load_part_of(&e->residual, row, column, n);
    store_part_of(&p->c, row, column, n, x);
}

/*
 * What quantised layers ask for, without the questions of the general way between the vectors: int32 sums to int8, scales and a
 * float bias per column, an int8 source, bounds.
 */
static bool is_requantisation(const dp_gemm_plan *plan) {
    const dp_gemm_problem *p = &plan->problem;
    const dp_gemm_epilogue *e = &p->epilogue;
    return p->c.dtype == DP_I8 && plan->kind != DP_GEMM_F32 && plan->kind != DP_GEMM_BF16 && p->c.column_stride == 1 &&
           e->column_scale && e->bias && e->bias_dtype == DP_F32 && !e->bias_per_row && !e->row_scale && p->alpha == 1 &&
           !e->residual.data && (e->activation == DP_GEMM_NONE || e->activation == DP_GEMM_CLIP) &&
           (p->beta == 0 || (p->source.data && p->source.dtype == DP_I8 && p->source.column_stride == 1));
}

DP_INLINE void requantise_row(const dp_gemm_problem *p, const bool add, size_t row, size_t column, size_t columns,
                              const int32_t *sums) {
    const dp_gemm_epilogue *e = &p->epilogue;
    const bool clip = e->activation == DP_GEMM_CLIP;
    const vf low = vf_set(clip && e->clip_low > -128 ? e->clip_low : -128), beta = vf_set(p->beta);
    const vf high = vf_set(clip && e->clip_high < 127 ? e->clip_high : 127);
    const float *scale = e->column_scale + column, *bias = (const float *)e->bias + column;
    int8_t *to = (int8_t *)(uintptr_t)p->c.data + (ptrdiff_t)row * p->c.row_stride + (ptrdiff_t)column;
    const int8_t *source = add ? (const int8_t *)p->source.data + (ptrdiff_t)row * p->source.row_stride + (ptrdiff_t)column : NULL;
    size_t j = 0;
    for (; j + DP_LANES <= columns; j += DP_LANES) {
        vf x = vf_fma(vf_from_vi(vi_load_i32(sums, j)), vf_load_f32(scale, j), vf_load_f32(bias, j));
        if (add)
            x = vf_fma(beta, vf_from_vi(vi_load_i8(source, j)), x);
        vi_store_i8(to, j, vi_from_vf(vf_rint(vf_least(vf_greatest(x, low), high))));
    }
    if (DP_LANES > 1 && j < columns) {
        const size_t rest = columns - j;
        vf x = vf_fma(vf_from_vi(vi_load_i32_n(sums, j, rest)), vf_load_f32_n(scale, j, rest), vf_load_f32_n(bias, j, rest));
        if (add)
            x = vf_fma(beta, vf_from_vi(vi_load_i8_n(source, j, rest)), x);
        vi_store_i8_n(to, j, rest, vi_from_vf(vf_rint(vf_least(vf_greatest(x, low), high))));
    }
}

void DP_RUNG(dp_gemm_finish)(const dp_gemm_plan *plan, dp_gemm_spot spot, const uint32_t *sums, size_t stride) {
    const dp_gemm_problem *p = &plan->problem;
    const dp_gemm_epilogue *e = &p->epilogue;
    if (p->c.dtype == DP_I32) {
        finish_int(plan, spot, (const int32_t *)sums, stride);
        return;
    }
    if (is_requantisation(plan)) {
        for (size_t i = 0; i < spot.rows; i++) {
            const int32_t *row = (const int32_t *)sums + i * stride;
            if (p->beta != 0)
                requantise_row(p, true, spot.i + i, spot.j, spot.columns, row);
            else
                requantise_row(p, false, spot.i + i, spot.j, spot.columns, row);
        }
        return;
    }
    for (size_t i = 0; i < spot.rows; i++) {
        row_terms terms = {.scale = p->alpha, .integer = plan->kind != DP_GEMM_F32 && plan->kind != DP_GEMM_BF16};
        size_t row = spot.i + i;
        if (e->row_scale)
            terms.scale *= e->row_scale[row];
        if (e->bias && e->bias_per_row && e->bias_dtype != DP_I32) {
            const uint16_t *half = (const uint16_t *)e->bias + row;
            terms.bias = e->bias_dtype == DP_F32   ? ((const float *)e->bias)[row]
                         : e->bias_dtype == DP_F16 ? dp_f32_from_f16(*half)
                                                   : dp_f32_from_bf16(*half);
        }
        size_t j = 0;
        for (; j + DP_LANES <= spot.columns; j += DP_LANES)
            finish_part(plan, row, spot.j + j, DP_LANES, sums + i * stride + j, terms);
        if (j < spot.columns)
            finish_part(plan, row, spot.j + j, spot.columns - j, sums + i * stride + j, terms);
    }
}
