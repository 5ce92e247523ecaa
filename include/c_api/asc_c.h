/*
 * asc_c.h - the names of asc_simd.h in C11: macros that choose the element type by _Generic and the form by the number of
 * arguments, and carry the calling line. Included through asc_simd.h.
 */
#ifndef DOPPEL_C_API_ASC_C_H
#define DOPPEL_C_API_ASC_C_H

#include "c_api/asc_issue.h"

/* Element type of a pointer; a pointer to anything else does not compile. */
#define DP_C_TYPE(p)                                                                                                  \
    _Generic((p), half *: DP_F16, const half *: DP_F16, bfloat16_t *: DP_BF16, const bfloat16_t *: DP_BF16,           \
             float *: DP_F32, const float *: DP_F32, int8_t *: DP_I8, const int8_t *: DP_I8, uint8_t *: DP_U8,        \
             const uint8_t *: DP_U8, int16_t *: DP_I16, const int16_t *: DP_I16, uint16_t *: DP_U16,                  \
             const uint16_t *: DP_U16, int32_t *: DP_I32, const int32_t *: DP_I32, uint32_t *: DP_U32,                \
             const uint32_t *: DP_U32, int64_t *: DP_I64, const int64_t *: DP_I64, uint64_t *: DP_U64,                \
             const uint64_t *: DP_U64)
/* The pointer itself, after checking at compile time that it has the element type of `like`. */
#define DP_C_SAME(p, like)                                                                                            \
    ((void)sizeof(char[DP_C_TYPE(p) == DP_C_TYPE(like) ? 1 : -1]), (const void *)(p))

/* The form with as many arguments as the call has. */
#define DP_C_PICK(a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, form, ...) form
#define DP_C_NONE(...) no_form_of_this_call_takes_so_many_arguments
#define DP_C_2(op, a, b, c, n) dp_c_binary(op, DP_C_TYPE(a), a, DP_C_SAME(b, a), DP_C_SAME(c, a), n, DP_HERE)
#define DP_C_2R(op, a, b, c, n, s0, s1, s2, r0, r1, r2)                                                               \
    dp_c_binary_repeat(op, DP_C_TYPE(a), a, DP_C_SAME(b, a), DP_C_SAME(c, a), n, s0, s1, s2, r0, r1, r2, DP_HERE)
#define DP_C_BINARY(op, ...)                                                                                          \
    DP_C_PICK(__VA_ARGS__, DP_C_2R, DP_C_NONE, DP_C_NONE, DP_C_NONE, DP_C_NONE, DP_C_NONE, DP_C_2, DP_C_NONE,         \
              DP_C_NONE, DP_C_NONE)                                                                                   \
    (op, __VA_ARGS__)
#define DP_C_1(op, a, b, n) dp_c_unary(op, DP_C_TYPE(a), DP_C_TYPE(a), 0, a, DP_C_SAME(b, a), n, DP_HERE)
#define DP_C_1R(op, a, b, n, s0, s1, r0, r1)                                                                          \
    dp_c_unary_repeat(op, DP_C_TYPE(a), DP_C_TYPE(a), 0, a, DP_C_SAME(b, a), n, s0, s1, r0, r1, DP_HERE)
#define DP_C_UNARY(op, ...)                                                                                           \
    DP_C_PICK(__VA_ARGS__, DP_C_NONE, DP_C_NONE, DP_C_NONE, DP_C_1R, DP_C_NONE, DP_C_NONE, DP_C_NONE, DP_C_1,         \
              DP_C_NONE, DP_C_NONE)                                                                                   \
    (op, __VA_ARGS__)
#define DP_C_S(op, a, b, v, n) dp_c_with_scalar(op, DP_C_TYPE(a), a, DP_C_SAME(b, a), v, n, DP_HERE)
#define DP_C_SR(op, a, b, v, n, s0, s1, r0, r1)                                                                       \
    dp_c_with_scalar_repeat(op, DP_C_TYPE(a), a, DP_C_SAME(b, a), v, n, s0, s1, r0, r1, DP_HERE)
#define DP_C_SCALAR(op, ...)                                                                                          \
    DP_C_PICK(__VA_ARGS__, DP_C_NONE, DP_C_NONE, DP_C_SR, DP_C_NONE, DP_C_NONE, DP_C_NONE, DP_C_S, DP_C_NONE,         \
              DP_C_NONE, DP_C_NONE)                                                                                   \
    (op, __VA_ARGS__)
#define DP_C_REDUCE(op, a, b, work, n)                                                                                \
    dp_c_reduce(op, DP_C_TYPE(a), a, DP_C_SAME(b, a), DP_C_SAME(work, a), n, DP_HERE)
#define DP_C_CONVERT(to, from, round, ...)                                                                            \
    DP_C_PICK(__VA_ARGS__, DP_C_NONE, DP_C_NONE, DP_C_NONE, DP_C_CR, DP_C_NONE, DP_C_NONE, DP_C_NONE, DP_C_C,         \
              DP_C_NONE, DP_C_NONE)                                                                                   \
    (to, from, round, __VA_ARGS__)
#define DP_C_IS(p, type) ((void)sizeof(char[DP_C_TYPE(p) == (type) ? 1 : -1]), (const void *)(p))
#define DP_C_C(to, from, round, a, b, n)                                                                              \
    dp_c_unary(DP_OP_CAST, to, from, round, DP_C_IS(a, to), DP_C_IS(b, from), n, DP_HERE)
#define DP_C_CR(to, from, round, a, b, n, s0, s1, r0, r1)                                                             \
    dp_c_unary_repeat(DP_OP_CAST, to, from, round, DP_C_IS(a, to), DP_C_IS(b, from), n, s0, s1, r0, r1, DP_HERE)
#define DP_C_THEN_SYNC(call) (call, dp_c_flag(DP_OP_BARRIER, PIPE_ALL, PIPE_ALL, 0, 0, DP_HERE))

#define asc_add(...) DP_C_BINARY(DP_OP_ADD, __VA_ARGS__)
#define asc_add_sync(...) DP_C_THEN_SYNC(DP_C_BINARY(DP_OP_ADD, __VA_ARGS__))
#define asc_sub(...) DP_C_BINARY(DP_OP_SUB, __VA_ARGS__)
#define asc_sub_sync(...) DP_C_THEN_SYNC(DP_C_BINARY(DP_OP_SUB, __VA_ARGS__))
#define asc_mul(...) DP_C_BINARY(DP_OP_MUL, __VA_ARGS__)
#define asc_mul_sync(...) DP_C_THEN_SYNC(DP_C_BINARY(DP_OP_MUL, __VA_ARGS__))
#define asc_div(...) DP_C_BINARY(DP_OP_DIV, __VA_ARGS__)
#define asc_div_sync(...) DP_C_THEN_SYNC(DP_C_BINARY(DP_OP_DIV, __VA_ARGS__))
#define asc_max(...) DP_C_BINARY(DP_OP_MAX, __VA_ARGS__)
#define asc_max_sync(...) DP_C_THEN_SYNC(DP_C_BINARY(DP_OP_MAX, __VA_ARGS__))
#define asc_min(...) DP_C_BINARY(DP_OP_MIN, __VA_ARGS__)
#define asc_min_sync(...) DP_C_THEN_SYNC(DP_C_BINARY(DP_OP_MIN, __VA_ARGS__))
#define asc_and(...) DP_C_BINARY(DP_OP_AND, __VA_ARGS__)
#define asc_and_sync(...) DP_C_THEN_SYNC(DP_C_BINARY(DP_OP_AND, __VA_ARGS__))
#define asc_or(...) DP_C_BINARY(DP_OP_OR, __VA_ARGS__)
#define asc_or_sync(...) DP_C_THEN_SYNC(DP_C_BINARY(DP_OP_OR, __VA_ARGS__))
#define asc_add_relu(...) DP_C_BINARY(DP_OP_ADD_RELU, __VA_ARGS__)
#define asc_add_relu_sync(...) DP_C_THEN_SYNC(DP_C_BINARY(DP_OP_ADD_RELU, __VA_ARGS__))
#define asc_sub_relu(...) DP_C_BINARY(DP_OP_SUB_RELU, __VA_ARGS__)
#define asc_sub_relu_sync(...) DP_C_THEN_SYNC(DP_C_BINARY(DP_OP_SUB_RELU, __VA_ARGS__))

#define asc_abs(...) DP_C_UNARY(DP_OP_ABS, __VA_ARGS__)
#define asc_abs_sync(...) DP_C_THEN_SYNC(DP_C_UNARY(DP_OP_ABS, __VA_ARGS__))
#define asc_exp(...) DP_C_UNARY(DP_OP_EXP, __VA_ARGS__)
#define asc_exp_sync(...) DP_C_THEN_SYNC(DP_C_UNARY(DP_OP_EXP, __VA_ARGS__))
#define asc_ln(...) DP_C_UNARY(DP_OP_LN, __VA_ARGS__)
#define asc_ln_sync(...) DP_C_THEN_SYNC(DP_C_UNARY(DP_OP_LN, __VA_ARGS__))
#define asc_sqrt(...) DP_C_UNARY(DP_OP_SQRT, __VA_ARGS__)
#define asc_sqrt_sync(...) DP_C_THEN_SYNC(DP_C_UNARY(DP_OP_SQRT, __VA_ARGS__))
#define asc_rsqrt(...) DP_C_UNARY(DP_OP_RSQRT, __VA_ARGS__)
#define asc_rsqrt_sync(...) DP_C_THEN_SYNC(DP_C_UNARY(DP_OP_RSQRT, __VA_ARGS__))
#define asc_reciprocal(...) DP_C_UNARY(DP_OP_RECIPROCAL, __VA_ARGS__)
#define asc_reciprocal_sync(...) DP_C_THEN_SYNC(DP_C_UNARY(DP_OP_RECIPROCAL, __VA_ARGS__))
#define asc_relu(...) DP_C_UNARY(DP_OP_RELU, __VA_ARGS__)
#define asc_relu_sync(...) DP_C_THEN_SYNC(DP_C_UNARY(DP_OP_RELU, __VA_ARGS__))
#define asc_not(...) DP_C_UNARY(DP_OP_NOT, __VA_ARGS__)
#define asc_not_sync(...) DP_C_THEN_SYNC(DP_C_UNARY(DP_OP_NOT, __VA_ARGS__))

#define asc_adds(...) DP_C_SCALAR(DP_OP_ADDS, __VA_ARGS__)
#define asc_adds_sync(...) DP_C_THEN_SYNC(DP_C_SCALAR(DP_OP_ADDS, __VA_ARGS__))
#define asc_muls(...) DP_C_SCALAR(DP_OP_MULS, __VA_ARGS__)
#define asc_muls_sync(...) DP_C_THEN_SYNC(DP_C_SCALAR(DP_OP_MULS, __VA_ARGS__))
#define asc_maxs(...) DP_C_SCALAR(DP_OP_MAXS, __VA_ARGS__)
#define asc_maxs_sync(...) DP_C_THEN_SYNC(DP_C_SCALAR(DP_OP_MAXS, __VA_ARGS__))
#define asc_mins(...) DP_C_SCALAR(DP_OP_MINS, __VA_ARGS__)
#define asc_mins_sync(...) DP_C_THEN_SYNC(DP_C_SCALAR(DP_OP_MINS, __VA_ARGS__))
#define asc_leaky_relu(...) DP_C_SCALAR(DP_OP_LEAKY_RELU, __VA_ARGS__)
#define asc_leaky_relu_sync(...) DP_C_THEN_SYNC(DP_C_SCALAR(DP_OP_LEAKY_RELU, __VA_ARGS__))

#define asc_reduce_sum(...) DP_C_REDUCE(DP_OP_REDUCE_SUM, __VA_ARGS__)
#define asc_reduce_sum_sync(...) DP_C_THEN_SYNC(DP_C_REDUCE(DP_OP_REDUCE_SUM, __VA_ARGS__))
#define asc_reduce_max(...) DP_C_REDUCE(DP_OP_REDUCE_MAX, __VA_ARGS__)
#define asc_reduce_max_sync(...) DP_C_THEN_SYNC(DP_C_REDUCE(DP_OP_REDUCE_MAX, __VA_ARGS__))
#define asc_reduce_min(...) DP_C_REDUCE(DP_OP_REDUCE_MIN, __VA_ARGS__)
#define asc_reduce_min_sync(...) DP_C_THEN_SYNC(DP_C_REDUCE(DP_OP_REDUCE_MIN, __VA_ARGS__))

#define asc_duplicate(a, value, n) dp_c_duplicate(DP_C_TYPE(a), a, value, n, DP_HERE)
#define asc_duplicate_sync(...) DP_C_THEN_SYNC(asc_duplicate(__VA_ARGS__))

#define asc_half2float(...) DP_C_CONVERT(DP_F32, DP_F16, 0, __VA_ARGS__)
#define asc_half2int32_rint(...) DP_C_CONVERT(DP_I32, DP_F16, 1, __VA_ARGS__)
#define asc_half2int32_floor(...) DP_C_CONVERT(DP_I32, DP_F16, 2, __VA_ARGS__)
#define asc_half2int32_ceil(...) DP_C_CONVERT(DP_I32, DP_F16, 3, __VA_ARGS__)
#define asc_half2int32_round(...) DP_C_CONVERT(DP_I32, DP_F16, 4, __VA_ARGS__)
#define asc_half2int32_trunc(...) DP_C_CONVERT(DP_I32, DP_F16, 5, __VA_ARGS__)
#define asc_half2int16_rint(...) DP_C_CONVERT(DP_I16, DP_F16, 1, __VA_ARGS__)
#define asc_half2int16_floor(...) DP_C_CONVERT(DP_I16, DP_F16, 2, __VA_ARGS__)
#define asc_half2int16_ceil(...) DP_C_CONVERT(DP_I16, DP_F16, 3, __VA_ARGS__)
#define asc_half2int16_round(...) DP_C_CONVERT(DP_I16, DP_F16, 4, __VA_ARGS__)
#define asc_half2int16_trunc(...) DP_C_CONVERT(DP_I16, DP_F16, 5, __VA_ARGS__)
#define asc_half2int8(...) DP_C_CONVERT(DP_I8, DP_F16, 0, __VA_ARGS__)
#define asc_half2int8_rint(...) DP_C_CONVERT(DP_I8, DP_F16, 1, __VA_ARGS__)
#define asc_half2int8_floor(...) DP_C_CONVERT(DP_I8, DP_F16, 2, __VA_ARGS__)
#define asc_half2int8_ceil(...) DP_C_CONVERT(DP_I8, DP_F16, 3, __VA_ARGS__)
#define asc_half2int8_round(...) DP_C_CONVERT(DP_I8, DP_F16, 4, __VA_ARGS__)
#define asc_half2int8_trunc(...) DP_C_CONVERT(DP_I8, DP_F16, 5, __VA_ARGS__)
#define asc_half2uint8(...) DP_C_CONVERT(DP_U8, DP_F16, 0, __VA_ARGS__)
#define asc_half2uint8_rint(...) DP_C_CONVERT(DP_U8, DP_F16, 1, __VA_ARGS__)
#define asc_half2uint8_floor(...) DP_C_CONVERT(DP_U8, DP_F16, 2, __VA_ARGS__)
#define asc_half2uint8_ceil(...) DP_C_CONVERT(DP_U8, DP_F16, 3, __VA_ARGS__)
#define asc_half2uint8_round(...) DP_C_CONVERT(DP_U8, DP_F16, 4, __VA_ARGS__)
#define asc_half2uint8_trunc(...) DP_C_CONVERT(DP_U8, DP_F16, 5, __VA_ARGS__)
#define asc_float2half(...) DP_C_CONVERT(DP_F16, DP_F32, 0, __VA_ARGS__)
#define asc_float2half_rint(...) DP_C_CONVERT(DP_F16, DP_F32, 1, __VA_ARGS__)
#define asc_float2half_floor(...) DP_C_CONVERT(DP_F16, DP_F32, 2, __VA_ARGS__)
#define asc_float2half_ceil(...) DP_C_CONVERT(DP_F16, DP_F32, 3, __VA_ARGS__)
#define asc_float2half_round(...) DP_C_CONVERT(DP_F16, DP_F32, 4, __VA_ARGS__)
#define asc_float2half_trunc(...) DP_C_CONVERT(DP_F16, DP_F32, 5, __VA_ARGS__)
#define asc_float2half_odd(...) DP_C_CONVERT(DP_F16, DP_F32, 6, __VA_ARGS__)
#define asc_float2bfloat16_rint(...) DP_C_CONVERT(DP_BF16, DP_F32, 1, __VA_ARGS__)
#define asc_float2bfloat16_floor(...) DP_C_CONVERT(DP_BF16, DP_F32, 2, __VA_ARGS__)
#define asc_float2bfloat16_ceil(...) DP_C_CONVERT(DP_BF16, DP_F32, 3, __VA_ARGS__)
#define asc_float2bfloat16_round(...) DP_C_CONVERT(DP_BF16, DP_F32, 4, __VA_ARGS__)
#define asc_float2bfloat16_trunc(...) DP_C_CONVERT(DP_BF16, DP_F32, 5, __VA_ARGS__)
#define asc_float2int16_rint(...) DP_C_CONVERT(DP_I16, DP_F32, 1, __VA_ARGS__)
#define asc_float2int16_floor(...) DP_C_CONVERT(DP_I16, DP_F32, 2, __VA_ARGS__)
#define asc_float2int16_ceil(...) DP_C_CONVERT(DP_I16, DP_F32, 3, __VA_ARGS__)
#define asc_float2int16_round(...) DP_C_CONVERT(DP_I16, DP_F32, 4, __VA_ARGS__)
#define asc_float2int16_trunc(...) DP_C_CONVERT(DP_I16, DP_F32, 5, __VA_ARGS__)
#define asc_float2int32_rint(...) DP_C_CONVERT(DP_I32, DP_F32, 1, __VA_ARGS__)
#define asc_float2int32_floor(...) DP_C_CONVERT(DP_I32, DP_F32, 2, __VA_ARGS__)
#define asc_float2int32_ceil(...) DP_C_CONVERT(DP_I32, DP_F32, 3, __VA_ARGS__)
#define asc_float2int32_round(...) DP_C_CONVERT(DP_I32, DP_F32, 4, __VA_ARGS__)
#define asc_float2int32_trunc(...) DP_C_CONVERT(DP_I32, DP_F32, 5, __VA_ARGS__)
#define asc_float2int64_rint(...) DP_C_CONVERT(DP_I64, DP_F32, 1, __VA_ARGS__)
#define asc_float2int64_floor(...) DP_C_CONVERT(DP_I64, DP_F32, 2, __VA_ARGS__)
#define asc_float2int64_ceil(...) DP_C_CONVERT(DP_I64, DP_F32, 3, __VA_ARGS__)
#define asc_float2int64_round(...) DP_C_CONVERT(DP_I64, DP_F32, 4, __VA_ARGS__)
#define asc_float2int64_trunc(...) DP_C_CONVERT(DP_I64, DP_F32, 5, __VA_ARGS__)
#define asc_bfloat162float(...) DP_C_CONVERT(DP_F32, DP_BF16, 0, __VA_ARGS__)
#define asc_bfloat162int32_rint(...) DP_C_CONVERT(DP_I32, DP_BF16, 1, __VA_ARGS__)
#define asc_bfloat162int32_floor(...) DP_C_CONVERT(DP_I32, DP_BF16, 2, __VA_ARGS__)
#define asc_bfloat162int32_ceil(...) DP_C_CONVERT(DP_I32, DP_BF16, 3, __VA_ARGS__)
#define asc_bfloat162int32_round(...) DP_C_CONVERT(DP_I32, DP_BF16, 4, __VA_ARGS__)
#define asc_bfloat162int32_trunc(...) DP_C_CONVERT(DP_I32, DP_BF16, 5, __VA_ARGS__)
#define asc_int82half(...) DP_C_CONVERT(DP_F16, DP_I8, 0, __VA_ARGS__)
#define asc_uint82half(...) DP_C_CONVERT(DP_F16, DP_U8, 0, __VA_ARGS__)
#define asc_int162half(...) DP_C_CONVERT(DP_F16, DP_I16, 0, __VA_ARGS__)
#define asc_int162half_rint(...) DP_C_CONVERT(DP_F16, DP_I16, 1, __VA_ARGS__)
#define asc_int162half_floor(...) DP_C_CONVERT(DP_F16, DP_I16, 2, __VA_ARGS__)
#define asc_int162half_ceil(...) DP_C_CONVERT(DP_F16, DP_I16, 3, __VA_ARGS__)
#define asc_int162half_round(...) DP_C_CONVERT(DP_F16, DP_I16, 4, __VA_ARGS__)
#define asc_int162half_trunc(...) DP_C_CONVERT(DP_F16, DP_I16, 5, __VA_ARGS__)
#define asc_int162float(...) DP_C_CONVERT(DP_F32, DP_I16, 0, __VA_ARGS__)
#define asc_int322float(...) DP_C_CONVERT(DP_F32, DP_I32, 0, __VA_ARGS__)
#define asc_int322float_rint(...) DP_C_CONVERT(DP_F32, DP_I32, 1, __VA_ARGS__)
#define asc_int322float_floor(...) DP_C_CONVERT(DP_F32, DP_I32, 2, __VA_ARGS__)
#define asc_int322float_ceil(...) DP_C_CONVERT(DP_F32, DP_I32, 3, __VA_ARGS__)
#define asc_int322float_round(...) DP_C_CONVERT(DP_F32, DP_I32, 4, __VA_ARGS__)
#define asc_int322float_trunc(...) DP_C_CONVERT(DP_F32, DP_I32, 5, __VA_ARGS__)
#define asc_int322half(...) DP_C_CONVERT(DP_F16, DP_I32, 0, __VA_ARGS__)
#define asc_int322int16(...) DP_C_CONVERT(DP_I16, DP_I32, 0, __VA_ARGS__)
#define asc_int322int64(...) DP_C_CONVERT(DP_I64, DP_I32, 0, __VA_ARGS__)
#define asc_int642int32(...) DP_C_CONVERT(DP_I32, DP_I64, 0, __VA_ARGS__)
#define asc_int642float_rint(...) DP_C_CONVERT(DP_F32, DP_I64, 1, __VA_ARGS__)
#define asc_int642float_floor(...) DP_C_CONVERT(DP_F32, DP_I64, 2, __VA_ARGS__)
#define asc_int642float_ceil(...) DP_C_CONVERT(DP_F32, DP_I64, 3, __VA_ARGS__)
#define asc_int642float_round(...) DP_C_CONVERT(DP_F32, DP_I64, 4, __VA_ARGS__)
#define asc_int642float_trunc(...) DP_C_CONVERT(DP_F32, DP_I64, 5, __VA_ARGS__)

#define DP_C_BYTES(to, from, a, b, n) dp_c_copy(to, a, from, b, 1, n, 0, 0, DP_HERE)
#define DP_C_BURSTS(to, from, a, b, count, length, src_gap, dst_gap)                                                  \
    dp_c_copy(to, a, from, b, count, (length) * 32u, (int64_t)(src_gap) * 32, (int64_t)(dst_gap) * 32, DP_HERE)
#define DP_C_COPY(to, from, ...)                                                                                      \
    DP_C_PICK(__VA_ARGS__, DP_C_NONE, DP_C_NONE, DP_C_NONE, DP_C_NONE, DP_C_BURSTS, DP_C_NONE, DP_C_NONE, DP_C_BYTES, \
              DP_C_NONE, DP_C_NONE)                                                                                   \
    (to, from, __VA_ARGS__)
#define asc_copy_gm2ub(...) DP_C_COPY(DP_SPACE_UB, DP_SPACE_GM, __VA_ARGS__)
#define asc_copy_gm2ub_sync(...) DP_C_THEN_SYNC(asc_copy_gm2ub(__VA_ARGS__))
#define asc_copy_ub2gm(...) DP_C_COPY(DP_SPACE_GM, DP_SPACE_UB, __VA_ARGS__)
#define asc_copy_ub2gm_sync(...) DP_C_THEN_SYNC(asc_copy_ub2gm(__VA_ARGS__))
#define asc_copy_ub2ub(...) DP_C_COPY(DP_SPACE_UB, DP_SPACE_UB, __VA_ARGS__)
#define asc_copy_gm2ub_align(a, b, count, bytes, left, right, src_gap, dst_gap)                                       \
    dp_c_copy_align(DP_SPACE_UB, a, DP_SPACE_GM, b, DP_C_TYPE(a), count, bytes, left, right, src_gap,                 \
                    (int64_t)(dst_gap) * 32, DP_HERE)
#define asc_copy_ub2gm_align(a, b, count, bytes, src_gap, dst_gap)                                                    \
    dp_c_copy_align(DP_SPACE_GM, a, DP_SPACE_UB, b, DP_C_TYPE(a), count, bytes, 0, 0, (int64_t)(src_gap) * 32,        \
                    dst_gap, DP_HERE)

#define asc_sync_notify(src, dst, id) dp_c_flag(DP_OP_SET_FLAG, src, dst, id, 0, DP_HERE)
#define asc_sync_wait(src, dst, id) dp_c_flag(DP_OP_WAIT_FLAG, src, dst, id, 0, DP_HERE)
#define asc_sync_pipe(pipe) dp_c_flag(DP_OP_BARRIER, pipe, pipe, 0, 0, DP_HERE)
#define asc_sync() asc_sync_pipe(PIPE_ALL)
#define asc_sync_vec() asc_sync_pipe(PIPE_V)
#define asc_sync_mte2() asc_sync_pipe(PIPE_MTE2)
#define asc_sync_mte3() asc_sync_pipe(PIPE_MTE3)
#define asc_sync_block_arrive(pipe, flag) dp_c_flag(DP_OP_CROSS_SET, pipe, pipe, flag, 0, DP_HERE)
#define asc_sync_block_wait(pipe, flag) dp_c_flag(DP_OP_CROSS_WAIT, pipe, pipe, flag, 0, DP_HERE)
#define asc_sync_subblock_arrive(pipe, flag) dp_c_flag(DP_OP_CROSS_SET, pipe, pipe, flag, 1, DP_HERE)
#define asc_sync_subblock_wait(pipe, flag) dp_c_flag(DP_OP_CROSS_WAIT, pipe, pipe, flag, 1, DP_HERE)
#define asc_sync_intra_arrive(pipe, flag) dp_c_flag(DP_OP_CROSS_SET, pipe, pipe, flag, 2, DP_HERE)
#define asc_sync_intra_wait(pipe, flag) dp_c_flag(DP_OP_CROSS_WAIT, pipe, pipe, flag, 2, DP_HERE)

#define asc_set_mask_norm() dp_c_state(DP_OP_SET_MASK_MODE, 0, 0, 0, 0, DP_HERE)
#define asc_set_mask_count() dp_c_state(DP_OP_SET_MASK_MODE, 1, 0, 0, 0, DP_HERE)
#define asc_set_vector_mask(high, low) dp_c_state(DP_OP_SET_MASK, 0, 0, low, high, DP_HERE)
#define asc_reset_mask() dp_c_state(DP_OP_RESET_MASK, 0, 0, 0, 0, DP_HERE)
#define asc_set_atomic_add_float() dp_c_state(DP_OP_SET_ATOMIC, 1, DP_F32, 0, 0, DP_HERE)
#define asc_set_atomic_add_half() dp_c_state(DP_OP_SET_ATOMIC, 1, DP_F16, 0, 0, DP_HERE)
#define asc_set_atomic_add_int32() dp_c_state(DP_OP_SET_ATOMIC, 1, DP_I32, 0, 0, DP_HERE)
#define asc_set_atomic_none() dp_c_state(DP_OP_SET_ATOMIC, 0, 0, 0, 0, DP_HERE)

#define asc_get_block_idx() ((int64_t)dp_block_index())
#define asc_get_block_num() ((int64_t)dp_block_count())

#endif
