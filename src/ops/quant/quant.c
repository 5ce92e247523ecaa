#include "ops/quant/quant.h"

#include <pthread.h>
#include <string.h>

#include "base/cpu.h"

static dp_quant_table table;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static void fill_table(void) {
#if defined(DP_MATH_HAVE_X86)
    if (dp_cpu_isa() == DP_ISA_AVX512) {
        dp_quant_fill_avx512(&table);
        return;
    }
    if (dp_cpu_isa() == DP_ISA_AVX2) {
        dp_quant_fill_avx2(&table);
        return;
    }
#endif
    dp_quant_fill_generic(&table);
}

const dp_quant_table *dp_quant_current(void) {
    pthread_once(&once, fill_table);
    return &table;
}

dp_status dp_quant_add(dp_lines *lines, const dp_arg *arg, uint32_t others, const int64_t *dims, int rank,
                       const bool *in_line, dp_quant_side *out_side) {
    const dp_tensor *t = arg->as.tensor;
    const bool in_words = t->element == DP_I32 && !(others >> DP_I32 & 1), pairs = in_words || t->element == DP_I4;
    dp_status status = dp_element_expect(arg, others | DP_EL_BIT(DP_I8) | DP_EL_BIT(DP_I4) | DP_EL_BIT(DP_I32));
    int64_t stored[DP_TENSOR_DIMS];
    if (status != DP_OK)
        return status;
    memcpy(stored, dims, (size_t)rank * sizeof *dims);
    if (pairs && (!rank || dims[rank - 1] % (in_words ? 8 : 2)))
        return dp_fail(DP_ERR_ARGUMENT,
                       "%s holds 4-bit integers, so the last dimension must be a multiple of %d, but is %lld",
                       arg->name, in_words ? 8 : 2, rank ? (long long)dims[rank - 1] : 0);
    if (in_words)
        stored[rank - 1] /= 8;
    status = dp_shape_expect(t, arg->name, stored, rank, in_words ? "eight 4-bit integers in each" : "the other side");
    if (status != DP_OK)
        return status;
    if (pairs && (!dp_tensor_is_contiguous(t) || (t->element == DP_I4 && t->offset % 2)))
        return dp_fail(DP_ERR_UNSUPPORTED, "%s holds 4-bit integers and must be contiguous", arg->name);
    *out_side = (dp_quant_side){arg->slot, -1, -8, 7};
    if (pairs)
        return DP_OK;
    out_side->view = dp_lines_add(lines, arg, t->strides, in_line, rank);
    out_side->low = t->element == DP_U8 ? 0 : t->element == DP_I32 ? -0x1p31f : -128;
    out_side->high = t->element == DP_U8 ? 255 : t->element == DP_I32 ? 0x1.fffffep30f : 127;
    return DP_OK;
}

/* Where a line of 4-bit integers begins. */
static uint8_t *pairs_of(dp_plan *plan, const dp_quant_side *side, int64_t line, int64_t n) {
    const dp_tensor *t = &plan->tensors[side->slot].view;
    char *data = t->element == DP_I4 ? (char *)t->base + t->offset / 2 : dp_tensor_data(t);
    return (uint8_t *)data + line * (n / 2);
}

const float *dp_quant_load(const dp_lines *lines, dp_plan *plan, const dp_quant_side *side, int64_t line,
                           float *buffer) {
    if (side->view >= 0)
        return dp_lines_load(lines, plan, side->view, line, buffer);
    const int64_t n = lines->inner.count;
    const uint8_t *from = pairs_of(plan, side, line, n);
    for (int64_t i = 0; i < n / 2; i++) {
        buffer[2 * i] = (float)((from[i] & 15) ^ 8) - 8;
        buffer[2 * i + 1] = (float)((from[i] >> 4) ^ 8) - 8;
    }
    return buffer;
}

void dp_quant_store(const dp_lines *lines, dp_plan *plan, const dp_quant_side *side, int64_t line,
                    const float *values) {
    if (side->view >= 0) {
        dp_lines_store(lines, plan, side->view, line, values);
        return;
    }
    const int64_t n = lines->inner.count;
    uint8_t *to = pairs_of(plan, side, line, n);
    for (int64_t i = 0; i < n / 2; i++)
        to[i] = (uint8_t)(((int)values[2 * i] & 15) | ((int)values[2 * i + 1] & 15) << 4);
}

dp_status dp_quant_add_scale(dp_lines *lines, const dp_arg *arg, uint32_t elements, const int64_t *dims, int rank,
                             int axis, const bool *in_line, int *out_view) {
    *out_view = -1;
    if (arg->kind != DP_ARG_TENSOR)
        return DP_OK;
    const dp_tensor *t = arg->as.tensor;
    dp_status status = dp_element_expect(arg, elements);
    int64_t strides[DP_TENSOR_DIMS] = {0};
    bool fits = dp_tensor_count(t) == 1;
    if (!fits && t->rank == 1 && rank > 0) {
        fits = t->dims[0] == dims[axis];
        strides[axis] = t->strides[0];
    } else if (!fits && t->rank == rank) {
        fits = true;
        for (int d = 0; d < rank; d++) {
            fits = fits && (t->dims[d] == 1 || t->dims[d] == dims[d]);
            strides[d] = t->dims[d] == 1 ? 0 : t->strides[d];
        }
    }
    char found[160], whole[160];
    if (status == DP_OK && !fits)
        status = dp_fail(DP_ERR_ARGUMENT,
                         "%s has the shape %s, but must have 1 element, %lld, or dimensions of 1 or those of %s",
                         arg->name, dp_dims_describe(t->dims, t->rank, found, sizeof found),
                         rank ? (long long)dims[axis] : 1, dp_dims_describe(dims, rank, whole, sizeof whole));
    if (status == DP_OK)
        *out_view = dp_lines_add(lines, arg, strides, in_line, rank);
    return status;
}

dp_status dp_quant_type_expect(const dp_arg *number, const dp_arg *tensor) {
    /* by the vendor's numbers */
    static const struct {
        int64_t number;
        int element;
    } types[] = {{0, DP_F32}, {1, DP_F16}, {2, DP_I8}, {3, DP_I32}, {4, DP_U8}, {27, DP_BF16}, {29, DP_I4}};
    const int64_t n = dp_arg_integer(number, -1);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].number == n && types[i].element == tensor->as.tensor->element)
            return DP_OK;
    return dp_fail(DP_ERR_ARGUMENT, "%s is type number %lld, but %s has elements of type %s", number->name,
                   (long long)n, tensor->name, dp_element_name(tensor->as.tensor->element));
}
