/* elementwise.c - arithmetic of one result lane per source lane, for half, bfloat16 and float; see math.h and docs/numerics.md. */
#include "math/vec.h"

#define DP_UNARY(op, type, formula)                                                                                    \
    static void op##_##type(void *dst, const void *a, size_t n) {                                                      \
        DP_LANE_LOOP(n, vf x = vf_load_##type(a, i); vf_store_##type(dst, i, formula),                                 \
                     vf x = vf_load_##type##_n(a, i, rest); vf_store_##type##_n(dst, i, rest, formula))                \
    }

#define DP_BINARY(op, type, formula)                                                                                   \
    static void op##_##type(void *dst, const void *a, const void *b, size_t n) {                                       \
        DP_LANE_LOOP(n, vf x = vf_load_##type(a, i); vf y = vf_load_##type(b, i); vf_store_##type(dst, i, formula),    \
                     vf x = vf_load_##type##_n(a, i, rest); vf y = vf_load_##type##_n(b, i, rest);                     \
                     vf_store_##type##_n(dst, i, rest, formula))                                                       \
    }

#define DP_SCALAR(op, type, formula)                                                                                   \
    static void op##_##type(void *dst, const void *a, const void *scalar, size_t n) {                                  \
        vf y = vf_set(DP_ELEMENT_##type(scalar));                                                                      \
        DP_LANE_LOOP(n, vf x = vf_load_##type(a, i); vf_store_##type(dst, i, formula),                                 \
                     vf x = vf_load_##type##_n(a, i, rest); vf_store_##type##_n(dst, i, rest, formula))                \
    }

/* d is the old destination */
#define DP_TERNARY(op, type, source, formula)                                                                          \
    static void op##_##type##_##source(void *dst, const void *a, const void *b, size_t n) {                            \
        DP_LANE_LOOP(n, vf x = vf_load_##source(a, i); vf y = vf_load_##source(b, i); vf d = vf_load_##type(dst, i);   \
                     vf_store_##type(dst, i, formula), vf x = vf_load_##source##_n(a, i, rest);                        \
                     vf y = vf_load_##source##_n(b, i, rest); vf d = vf_load_##type##_n(dst, i, rest);                 \
                     vf_store_##type##_n(dst, i, rest, formula))                                                       \
    }

#define DP_AXPY(type, source)                                                                                          \
    static void axpy_##type##_##source(void *dst, const void *a, const void *scalar, size_t n) {                       \
        vf y = vf_set(DP_ELEMENT_##source(scalar));                                                                    \
        DP_LANE_LOOP(n, vf x = vf_load_##source(a, i); vf_store_##type(dst, i, vf_fma(x, y, vf_load_##type(dst, i))),  \
                     vf x = vf_load_##source##_n(a, i, rest);                                                          \
                     vf_store_##type##_n(dst, i, rest, vf_fma(x, y, vf_load_##type##_n(dst, i, rest))))                \
    }

DP_INLINE float element_f32(const void *p) {
    float x;
    memcpy(&x, p, sizeof x);
    return x;
}
DP_INLINE uint16_t element_bits16(const void *p) {
    uint16_t x;
    memcpy(&x, p, sizeof x);
    return x;
}
#define DP_ELEMENT_f32(p) element_f32(p)
#define DP_ELEMENT_f16(p) dp_f32_from_f16(element_bits16(p))
#define DP_ELEMENT_bf16(p) dp_f32_from_bf16(element_bits16(p))

DP_INLINE vf leaky_relu_of(vf x, vf slope) { return vf_blend(vf_ge(x, vf_set(0.0f)), x, x * slope); }

#define DP_ALL_OPERATIONS(type)                                                                                        \
    DP_UNARY(abs, type, vf_abs(x))                                                                                     \
    DP_UNARY(sqrt, type, vf_sqrt(x))                                                                                   \
    DP_UNARY(rsqrt, type, vf_set(1.0f) / vf_sqrt(x))                                                                   \
    DP_UNARY(reciprocal, type, vf_set(1.0f) / x)                                                                       \
    DP_UNARY(relu, type, vf_relu(x))                                                                                   \
    DP_BINARY(add, type, x + y)                                                                                        \
    DP_BINARY(sub, type, x - y)                                                                                        \
    DP_BINARY(mul, type, x *y)                                                                                         \
    DP_BINARY(div, type, x / y)                                                                                        \
    DP_BINARY(max, type, vf_max(x, y))                                                                                 \
    DP_BINARY(min, type, vf_min(x, y))                                                                                 \
    DP_BINARY(add_relu, type, vf_relu(x + y))                                                                          \
    DP_BINARY(sub_relu, type, vf_relu(x - y))                                                                          \
    DP_SCALAR(adds, type, x + y)                                                                                       \
    DP_SCALAR(muls, type, x *y)                                                                                        \
    DP_SCALAR(maxs, type, vf_max(x, y))                                                                                \
    DP_SCALAR(mins, type, vf_min(x, y))                                                                                \
    DP_SCALAR(leaky_relu, type, leaky_relu_of(x, y))                                                                   \
    DP_TERNARY(mul_add_dst, type, type, vf_fma(x, y, d))                                                               \
    DP_TERNARY(fused_mul_add, type, type, vf_fma(x, d, y))                                                             \
    DP_TERNARY(fused_mul_add_relu, type, type, vf_relu(vf_fma(x, d, y)))                                               \
    DP_AXPY(type, type)

DP_ALL_OPERATIONS(f32)
DP_ALL_OPERATIONS(f16)
DP_ALL_OPERATIONS(bf16)
DP_TERNARY(mul_add_dst, f32, f16, vf_fma(x, y, d))
DP_AXPY(f32, f16)

#define DP_ENTER(type, dtype)                                                                                          \
    table->unary[DP_MATH_ABS][dtype] = abs_##type;                                                                     \
    table->unary[DP_MATH_SQRT][dtype] = sqrt_##type;                                                                   \
    table->unary[DP_MATH_RSQRT][dtype] = rsqrt_##type;                                                                 \
    table->unary[DP_MATH_RECIPROCAL][dtype] = reciprocal_##type;                                                       \
    table->unary[DP_MATH_RELU][dtype] = relu_##type;                                                                   \
    table->binary[DP_MATH_ADD][dtype] = add_##type;                                                                    \
    table->binary[DP_MATH_SUB][dtype] = sub_##type;                                                                    \
    table->binary[DP_MATH_MUL][dtype] = mul_##type;                                                                    \
    table->binary[DP_MATH_DIV][dtype] = div_##type;                                                                    \
    table->binary[DP_MATH_MAX][dtype] = max_##type;                                                                    \
    table->binary[DP_MATH_MIN][dtype] = min_##type;                                                                    \
    table->binary[DP_MATH_ADD_RELU][dtype] = add_relu_##type;                                                          \
    table->binary[DP_MATH_SUB_RELU][dtype] = sub_relu_##type;                                                          \
    table->scalar[DP_MATH_ADDS][dtype] = adds_##type;                                                                  \
    table->scalar[DP_MATH_MULS][dtype] = muls_##type;                                                                  \
    table->scalar[DP_MATH_MAXS][dtype] = maxs_##type;                                                                  \
    table->scalar[DP_MATH_MINS][dtype] = mins_##type;                                                                  \
    table->scalar[DP_MATH_LEAKY_RELU][dtype] = leaky_relu_##type;                                                      \
    table->ternary[DP_MATH_MUL_ADD_DST][dtype] = mul_add_dst_##type##_##type;                                          \
    table->ternary[DP_MATH_FUSED_MUL_ADD][dtype] = fused_mul_add_##type##_##type;                                      \
    table->ternary[DP_MATH_FUSED_MUL_ADD_RELU][dtype] = fused_mul_add_relu_##type##_##type;                            \
    table->axpy[dtype][dtype] = axpy_##type##_##type;

void DP_RUNG(dp_math_fill_elementwise)(dp_math *table) {
    DP_ENTER(f32, DP_F32)
    DP_ENTER(f16, DP_F16)
    DP_ENTER(bf16, DP_BF16)
    table->mul_add_dst_wide = mul_add_dst_f32_f16;
    table->axpy[DP_F32][DP_F16] = axpy_f32_f16;
}
