/* Every form of the vector functions of the kernel face: the instruction it issues, field by field. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel_operator.h"

extern "C" {
#include <cmocka.h>
}
#include "insn_capture.h"

using namespace AscendC;

static const uint64_t words[2] = {0x123456789abcdef0ull, 0x0fedcba987654321ull};
static uint64_t plain_words[2] = {words[0], words[1]};

template <typename T>
static LocalTensor<T> tensor(unsigned index) {
    return LocalTensor<T>(capture_ub() + index * 4096, 4096, index + 1, TPosition::VECCALC);
}

/* what every form has in common: line of the call, buffers and types in order */
static dp_insn taken(unsigned op, unsigned operands, uint32_t line) {
    dp_insn insn = capture_take();
    assert_int_equal(insn.op, op);
    assert_int_equal(insn.n_operands, operands);
    assert_int_equal(insn.loc.line, line);
    assert_non_null(insn.loc.file);
    for (unsigned k = 0; k < operands; k++) {
        if (insn.operand[k].space == DP_SPACE_NONE)
            continue;
        assert_int_equal(insn.operand[k].space, DP_SPACE_UB);
        assert_ptr_equal(insn.operand[k].addr, capture_ub() + k * 4096);
        assert_int_equal(insn.operand[k].size_bytes, 4096);
        assert_int_equal(insn.operand[k].buffer_id, k + 1);
    }
    return insn;
}
static void has_bits(const dp_insn &insn, uint32_t repeat) {
    assert_int_equal(insn.mask_kind, DP_MASK_BITS);
    assert_true(insn.mask[0] == words[0] && insn.mask[1] == words[1]);
    assert_int_equal(insn.repeat, repeat);
}
static void has_leading(const dp_insn &insn, uint64_t n, uint32_t repeat) {
    assert_int_equal(insn.mask_kind, DP_MASK_LEADING);
    assert_int_equal(insn.mask[0], n);
    assert_int_equal(insn.repeat, repeat);
}
static void has_register(const dp_insn &insn, uint32_t repeat) {
    assert_int_equal(insn.mask_kind, DP_MASK_REGISTER);
    assert_int_equal(insn.repeat, repeat);
}
static void has_count(const dp_insn &insn, uint64_t n) {
    assert_int_equal(insn.mask_kind, DP_MASK_COUNT);
    assert_int_equal(insn.mask[0], n);
}
static void has_strides(const dp_insn &insn, unsigned k, unsigned block, unsigned repeat, unsigned dtype) {
    assert_int_equal(insn.operand[k].block_stride, block);
    assert_int_equal(insn.operand[k].repeat_stride, repeat);
    assert_int_equal(insn.operand[k].dtype, dtype);
}
static void three_strides(const dp_insn &insn, unsigned d, unsigned s) {
    has_strides(insn, 0, 1, 4, d);
    has_strides(insn, 1, 2, 5, s);
    has_strides(insn, 2, 3, 6, s);
}
static void two_strides(const dp_insn &insn, unsigned d, unsigned s) {
    has_strides(insn, 0, 1, 4, d);
    has_strides(insn, 1, 2, 5, s);
}

/* ARGS: template arguments without isSetMask */
#define THREE(Name, OP, D, S, ...)                                                                                     \
    do {                                                                                                               \
        auto d = tensor<D>(0);                                                                                         \
        auto a = tensor<S>(1), b = tensor<S>(2);                                                                       \
        const BinaryRepeatParams p(1, 2, 3, 4, 5, 6);                                                                  \
        dp_insn i;                                                                                                     \
        Name(d, a, b, words, 7, p), i = taken(OP, 3, __LINE__), has_bits(i, 7);                                        \
        three_strides(i, dp_dtype_of<D>(), dp_dtype_of<S>());                                                          \
        Name(d, a, b, plain_words, 7, p), has_bits(taken(OP, 3, __LINE__), 7);                                         \
        Name(d, a, b, uint64_t(20), 300, p), i = taken(OP, 3, __LINE__), has_leading(i, 20, 300);                      \
        three_strides(i, dp_dtype_of<D>(), dp_dtype_of<S>());                                                          \
        Name<__VA_ARGS__, false>(d, a, b, MASK_PLACEHOLDER, 2, p), has_register(taken(OP, 3, __LINE__), 2);            \
        Name<__VA_ARGS__, false>(d, a, b, MASK_PLACEHOLDER_LIST, 2, p), has_register(taken(OP, 3, __LINE__), 2);       \
        Name(d, a, b, 77), has_count(taken(OP, 3, __LINE__), 77);                                                      \
    } while (0)

#define TWO(Name, OP, T)                                                                                               \
    do {                                                                                                               \
        auto d = tensor<T>(0), a = tensor<T>(1);                                                                       \
        const UnaryRepeatParams p(1, 2, 4, 5);                                                                         \
        dp_insn i;                                                                                                     \
        Name(d, a, words, 7, p), i = taken(OP, 2, __LINE__), has_bits(i, 7);                                           \
        two_strides(i, dp_dtype_of<T>(), dp_dtype_of<T>());                                                            \
        Name(d, a, uint64_t(20), 300, p), has_leading(taken(OP, 2, __LINE__), 20, 300);                                \
        Name<T, false>(d, a, MASK_PLACEHOLDER, 2, p), has_register(taken(OP, 2, __LINE__), 2);                         \
        Name(d, a, 77), has_count(taken(OP, 2, __LINE__), 77);                                                         \
    } while (0)

#define SCALAR(Name, OP, T)                                                                                            \
    do {                                                                                                               \
        auto d = tensor<T>(0), a = tensor<T>(1);                                                                       \
        const UnaryRepeatParams p(1, 2, 4, 5);                                                                         \
        const T s = static_cast<T>(3);                                                                                 \
        const uint64_t bits = dp_scalar_bits(s);                                                                       \
        dp_insn i;                                                                                                     \
        Name(d, a, s, words, 7, p), i = taken(OP, 2, __LINE__), has_bits(i, 7), assert_int_equal(i.scalar_bits, bits); \
        two_strides(i, dp_dtype_of<T>(), dp_dtype_of<T>());                                                            \
        Name<T, T>(d, a, s, words, 7, p), i = taken(OP, 2, __LINE__), assert_int_equal(i.scalar_bits, bits);           \
        Name(d, a, s, uint64_t(20), 9, p), i = taken(OP, 2, __LINE__), has_leading(i, 20, 9);                          \
        assert_int_equal(i.scalar_bits, bits);                                                                         \
        Name<T, T, false>(d, a, s, uint64_t(20), 9, p), has_register(taken(OP, 2, __LINE__), 9);                       \
        Name<T, false>(d, a, s, uint64_t(20), 9, p), has_register(taken(OP, 2, __LINE__), 9);                          \
        Name(d, a, s, 77), i = taken(OP, 2, __LINE__), has_count(i, 77), assert_int_equal(i.scalar_bits, bits);        \
        Name<T, T>(d, a, s, 78), i = taken(OP, 2, __LINE__), has_count(i, 78), assert_int_equal(i.scalar_bits, bits);  \
    } while (0)

static void test_binary(void **) {
    THREE(Add, DP_OP_ADD, float, float, float);
    THREE(Add, DP_OP_ADD, half, half, half);
    THREE(Sub, DP_OP_SUB, int16_t, int16_t, int16_t);
    THREE(Mul, DP_OP_MUL, int32_t, int32_t, int32_t);
    THREE(Div, DP_OP_DIV, half, half, half);
    THREE(Max, DP_OP_MAX, float, float, float);
    THREE(Min, DP_OP_MIN, float, float, float);
    THREE(And, DP_OP_AND, int16_t, int16_t, int16_t);
    THREE(Or, DP_OP_OR, uint16_t, uint16_t, uint16_t);
    THREE(AddRelu, DP_OP_ADD_RELU, int16_t, int16_t, int16_t);
    THREE(SubRelu, DP_OP_SUB_RELU, half, half, half);
    THREE(MulAddDst, DP_OP_MUL_ADD_DST, float, half, float, half);
    THREE(FusedMulAdd, DP_OP_FUSED_MUL_ADD, half, half, half);
    THREE(FusedMulAddRelu, DP_OP_FUSED_MUL_ADD_RELU, float, float, float);
    THREE(AddReluCast, DP_OP_ADD_RELU_CAST, half, float, half, float);
    THREE(SubReluCast, DP_OP_SUB_RELU_CAST, int8_t, int16_t, int8_t, int16_t);
    THREE(AddDeqRelu, DP_OP_ADD_DEQ_RELU, half, int32_t, half, int32_t);
    auto i32 = tensor<int32_t>(0), j32 = tensor<int32_t>(1), k32 = tensor<int32_t>(2);
    And(i32, j32, k32, 50), has_count(taken(DP_OP_AND, 3, __LINE__), 50);
    auto u = tensor<uint8_t>(0);
    auto a = tensor<half>(1), b = tensor<half>(2);
    MulCast(u, a, b, 64), has_count(taken(DP_OP_MUL_CAST, 3, __LINE__), 64);
    MulCast(u, a, b, words, 2, {1, 2, 3, 4, 5, 6}), has_bits(taken(DP_OP_MUL_CAST, 3, __LINE__), 2);
}

static void test_unary(void **) {
    TWO(Abs, DP_OP_ABS, half);
    TWO(Exp, DP_OP_EXP, float);
    TWO(Ln, DP_OP_LN, float);
    TWO(Sqrt, DP_OP_SQRT, half);
    TWO(Rsqrt, DP_OP_RSQRT, float);
    TWO(Reciprocal, DP_OP_RECIPROCAL, float);
    TWO(Relu, DP_OP_RELU, int32_t);
    TWO(Not, DP_OP_NOT, uint16_t);
}

static void test_scalar(void **) {
    SCALAR(Adds, DP_OP_ADDS, float);
    SCALAR(Muls, DP_OP_MULS, half);
    SCALAR(Maxs, DP_OP_MAXS, int16_t);
    SCALAR(Mins, DP_OP_MINS, int32_t);
    SCALAR(LeakyRelu, DP_OP_LEAKY_RELU, half);
    SCALAR(ShiftLeft, DP_OP_SHIFT_LEFT, uint16_t);
    SCALAR(ShiftRight, DP_OP_SHIFT_RIGHT, int32_t);
    auto d = tensor<int16_t>(0), s = tensor<int16_t>(1);
    ShiftRight(d, s, int16_t(2), 64, 1, {1, 1, 8, 8}, true);
    assert_int_equal(taken(DP_OP_SHIFT_RIGHT, 2, __LINE__ - 1).u.vec.flag0, 1);
    auto f = tensor<float>(0);
    auto h = tensor<half>(1);
    Axpy(f, h, half(2), 64);
    dp_insn insn = taken(DP_OP_AXPY, 2, __LINE__ - 1);
    assert_int_equal(insn.scalar_bits, 0x4000); /* in the type of the source */
    has_count(insn, 64);
    Axpy(f, h, half(2), words, 3, {1, 2, 4, 5}), insn = taken(DP_OP_AXPY, 2, __LINE__), has_bits(insn, 3);
    two_strides(insn, DP_F32, DP_F16);
    Axpy<float, half, false>(f, h, half(2), 64, 3, {1, 2, 4, 5}), has_register(taken(DP_OP_AXPY, 2, __LINE__), 3);
    /* an int for a float tensor converts */
    auto e = tensor<float>(0), g = tensor<float>(1);
    Adds(e, g, 1, 10);
    assert_int_equal(taken(DP_OP_ADDS, 2, __LINE__ - 1).scalar_bits, 0x3f800000);
}

static void test_fill(void **) {
    auto f = tensor<float>(0), g = tensor<float>(1);
    Duplicate(f, 1.0f, uint64_t(20), 5, 3, 9);
    dp_insn insn = taken(DP_OP_DUPLICATE, 1, __LINE__ - 1);
    has_leading(insn, 20, 5);
    has_strides(insn, 0, 3, 9, DP_F32);
    assert_int_equal(insn.scalar_bits, 0x3f800000);
    Duplicate(f, 1.0f, words, 5, 3, 9), has_bits(taken(DP_OP_DUPLICATE, 1, __LINE__), 5);
    Duplicate(f, 0, 100), has_count(taken(DP_OP_DUPLICATE, 1, __LINE__), 100);
    Duplicate(tensor<bfloat16_t>(0), bfloat16_t(1.0f), 16), assert_int_equal(capture_take().scalar_bits, 0x3f80);
    Copy(f, g, uint64_t(64), 2, {1, 2, 400, 500});
    insn = taken(DP_OP_VCOPY, 2, __LINE__ - 1);
    has_leading(insn, 64, 2);
    has_strides(insn, 0, 1, 400, DP_F32);
    has_strides(insn, 1, 2, 500, DP_F32);
    Copy(f, g, words, 2, {1, 2, 4, 5}), has_bits(taken(DP_OP_VCOPY, 2, __LINE__), 2);
}

static void test_cast(void **) {
    auto f = tensor<float>(0);
    auto h = tensor<half>(1);
    Cast(f, h, RoundMode::CAST_NONE, 64), has_count(taken(DP_OP_CAST, 2, __LINE__), 64);
    Cast(f, h, RoundMode::CAST_NONE, words, 3, {1, 2, 4, 5});
    dp_insn insn = taken(DP_OP_CAST, 2, __LINE__ - 1);
    has_bits(insn, 3);
    two_strides(insn, DP_F32, DP_F16);
    Cast<float, half, false>(f, h, RoundMode::CAST_NONE, 64, 3, {1, 2, 4, 5}), has_register(taken(DP_OP_CAST, 2, __LINE__), 3);
    Cast(tensor<int4b_t>(0), h, RoundMode::CAST_TRUNC, uint64_t(32), 3, {1, 2, 4, 5});
    insn = taken(DP_OP_CAST, 2, __LINE__ - 1);
    has_leading(insn, 32, 3);
    two_strides(insn, DP_I4, DP_F16);
    assert_int_equal(insn.u.vec.round_mode, 5);
    auto b = tensor<int8_t>(0);
    auto s = tensor<int16_t>(1);
    CastDeq(b, s, 100);
    insn = taken(DP_OP_CAST_DEQ, 2, __LINE__ - 1);
    assert_true(insn.u.vec.flag0 == 1 && insn.u.vec.flag1 == 1);
    CastDeq<int8_t, int16_t, false, false>(b, s, 100u);
    insn = taken(DP_OP_CAST_DEQ, 2, __LINE__ - 1);
    assert_true(insn.u.vec.flag0 == 0 && insn.u.vec.flag1 == 0);
    CastDeq<int8_t, int16_t, true, false, true>(b, s, words, 2, {1, 2, 4, 5});
    insn = taken(DP_OP_CAST_DEQ, 2, __LINE__ - 1);
    assert_true(insn.u.vec.flag0 == 0 && insn.u.vec.flag1 == 1);
    has_bits(insn, 2);
    CastDeq<int8_t, int16_t, false, true, false>(b, s, 64, 2, {1, 2, 4, 5}), has_register(taken(DP_OP_CAST_DEQ, 2, __LINE__), 2);
}

static void test_compare(void **) {
    auto u = tensor<uint8_t>(0);
    auto a = tensor<half>(1), b = tensor<half>(2);
    const BinaryRepeatParams p(1, 2, 3, 4, 5, 6);
    Compare(u, a, b, CMPMODE::GE, words, 7, p);
    dp_insn insn = taken(DP_OP_COMPARE, 3, __LINE__ - 1);
    has_bits(insn, 7);
    three_strides(insn, DP_U8, DP_F16);
    assert_int_equal(insn.u.vec.cmp_mode, 4);
    Compare(u, a, b, CMPMODE::LT, uint64_t(20), 7, p), has_leading(taken(DP_OP_COMPARE, 3, __LINE__), 20, 7);
    Compare(u, a, b, CMPMODE::LT, 128), has_count(taken(DP_OP_COMPARE, 3, __LINE__), 128);
    Compare(a, b, CMPMODE::EQ, words, p);
    insn = capture_take();
    assert_true(insn.operand[0].space == DP_SPACE_NONE && insn.operand[1].addr == a.GetPhyAddr() && insn.n_operands == 3);
    has_bits(insn, 1);
    has_strides(insn, 1, 2, 5, DP_F16);
    Compare(a, b, CMPMODE::EQ, uint64_t(16), p), has_leading(capture_take(), 16, 1);
    CompareScalar(u, a, half(1), CMPMODE::NE, 128);
    insn = taken(DP_OP_COMPARE_SCALAR, 2, __LINE__ - 1);
    assert_true(insn.scalar_bits == 0x3c00 && insn.u.vec.cmp_mode == 5);
    CompareScalar(u, a, half(1), CMPMODE::NE, words, 2, {1, 2, 4, 5});
    has_bits(taken(DP_OP_COMPARE_SCALAR, 2, __LINE__ - 1), 2);
    Compares(u, a, half(1), CMPMODE::NE, uint64_t(5), 2, {1, 2, 4, 5});
    insn = taken(DP_OP_COMPARE_SCALAR, 2, __LINE__ - 1);
    has_leading(insn, 5, 2);
    two_strides(insn, DP_U8, DP_F16);
}

static void test_select(void **) {
    auto d = tensor<float>(0), a = tensor<float>(2), b = tensor<float>(3);
    auto m = tensor<uint8_t>(1);
    const BinaryRepeatParams p(1, 2, 3, 4, 5, 6);
    Select(d, m, a, b, SELMODE::VSEL_TENSOR_TENSOR_MODE, words, 3, p);
    dp_insn insn = taken(DP_OP_SELECT, 4, __LINE__ - 1);
    has_bits(insn, 3);
    has_strides(insn, 0, 1, 4, DP_F32);
    has_strides(insn, 2, 2, 5, DP_F32);
    has_strides(insn, 3, 3, 6, DP_F32);
    assert_int_equal(insn.u.vec.sel_mode, 2);
    Select(d, m, a, b, SELMODE::VSEL_CMPMASK_SPR, uint64_t(9), 3, p), has_leading(taken(DP_OP_SELECT, 4, __LINE__), 9, 3);
    Select(d, m, a, b, SELMODE::VSEL_TENSOR_TENSOR_MODE, 90), has_count(taken(DP_OP_SELECT, 4, __LINE__), 90);
    Select(d, m, a, 1.0f, SELMODE::VSEL_TENSOR_SCALAR_MODE, 90);
    insn = taken(DP_OP_SELECT, 3, __LINE__ - 1);
    assert_int_equal(insn.scalar_bits, 0x3f800000);
    Select(d, m, a, 1.0f, SELMODE::VSEL_TENSOR_SCALAR_MODE, words, 2, p), has_bits(taken(DP_OP_SELECT, 3, __LINE__), 2);
    Select(d, m, a, 1.0f, SELMODE::VSEL_TENSOR_SCALAR_MODE, uint64_t(9), 2, p), has_leading(taken(DP_OP_SELECT, 3, __LINE__), 9, 2);
    Select<float, SELMODE::VSEL_CMPMASK_SPR>(d, a, b, 5, p);
    insn = taken(DP_OP_SELECT, 4, __LINE__ - 1);
    assert_int_equal(insn.operand[1].space, DP_SPACE_NONE);
    has_register(insn, 5);
    Select(d, m, a, 5, p);
    insn = taken(DP_OP_SELECT, 3, __LINE__ - 1);
    assert_true(insn.u.vec.flag0 == 1 && insn.u.vec.sel_mode == 1);
    has_register(insn, 5);
}

#define WHOLE(Name, OP)                                                                                                \
    Name(d, a, words, 7, 4, 2, 5), i = taken(OP, 2, __LINE__), has_bits(i, 7);                                         \
    has_strides(i, 0, 1, 4, DP_F16);                                                                                   \
    has_strides(i, 1, 2, 5, DP_F16);                                                                                   \
    Name(d, a, 20, 7, 4, 2, 5), has_leading(taken(OP, 2, __LINE__), 20, 7);                                            \
    Name<half, false>(d, a, 20, 7, 4, 2, 5), has_register(taken(OP, 2, __LINE__), 7)
#define GROUPS(Name, OP)                                                                                               \
    Name(d, a, 7, words, 4, 2, 5), i = taken(OP, 2, __LINE__), has_bits(i, 7);                                         \
    has_strides(i, 0, 1, 4, DP_F16);                                                                                   \
    has_strides(i, 1, 2, 5, DP_F16);                                                                                   \
    Name(d, a, 7, 20, 4, 2, 5), has_leading(taken(OP, 2, __LINE__), 20, 7)
#define RUNNING(Name, OP)                                                                                              \
    Name(d, a, w, words, 7, 5), i = taken(OP, 3, __LINE__), has_bits(i, 7), has_strides(i, 1, 1, 5, DP_F16);           \
    Name(d, a, w, 20, 7, 5), has_leading(taken(OP, 3, __LINE__), 20, 7);                                               \
    Name(d, a, w, 1000), has_count(taken(OP, 3, __LINE__), 1000)

static void test_reduce(void **) {
    auto d = tensor<half>(0), a = tensor<half>(1), w = tensor<half>(2);
    dp_insn i;
    WHOLE(WholeReduceSum, DP_OP_WHOLE_REDUCE_SUM);
    WHOLE(WholeReduceMax, DP_OP_WHOLE_REDUCE_MAX);
    WHOLE(WholeReduceMin, DP_OP_WHOLE_REDUCE_MIN);
    WholeReduceMax(d, a, 20, 7, 4, 2, 5, ReduceOrder::ORDER_ONLY_INDEX);
    assert_int_equal(capture_take().u.vec.reduce_order, 3);
    RepeatReduceSum(d, a, 7, 20, 1, 2, 4, 5), i = taken(DP_OP_REPEAT_REDUCE_SUM, 2, __LINE__), has_leading(i, 20, 7);
    has_strides(i, 0, 1, 4, DP_F16);
    has_strides(i, 1, 2, 5, DP_F16);
    GROUPS(BlockReduceSum, DP_OP_BLOCK_REDUCE_SUM);
    GROUPS(BlockReduceMax, DP_OP_BLOCK_REDUCE_MAX);
    GROUPS(BlockReduceMin, DP_OP_BLOCK_REDUCE_MIN);
    GROUPS(PairReduceSum, DP_OP_PAIR_REDUCE_SUM);
    RUNNING(ReduceSum, DP_OP_REDUCE_SUM);
    RUNNING(ReduceMax, DP_OP_REDUCE_MAX);
    RUNNING(ReduceMin, DP_OP_REDUCE_MIN);
    ReduceMax(d, a, w, 1000, true), assert_int_equal(capture_take().u.vec.cal_index, 1);
    ReduceMin(d, a, w, 20, 7, 5, true), assert_int_equal(capture_take().u.vec.cal_index, 1);
    assert_true(GetAccVal<float>() == 1.0f);
    assert_int_equal(capture_take().op, DP_OP_GET_ACC);
    float value = 0;
    GetReduceMaxMinCount<float>(value);
    assert_int_equal(capture_take().op, DP_OP_GET_REDUCE_INDEX);
    assert_true(value == 1.0f);
}

static void insn_is_inside(bool past_end) { assert_int_equal(capture_take().operand[0].past_end, past_end); }

static void test_operators(void **) {
    auto d = tensor<float>(0), a = tensor<float>(1), b = tensor<float>(2);
    d = a + b;
    has_count(capture_take(), 1024);
    Add(d[1000], a, b, 24), insn_is_inside(false);
    Add(d[1024], a, b, 1), insn_is_inside(true);
    d = a / b;
    assert_int_equal(capture_take().op, DP_OP_DIV);
    tensor<uint8_t>(0) = a < b;
    dp_insn insn = capture_take();
    assert_int_equal(insn.op, DP_OP_COMPARE);
    assert_int_equal(insn.u.vec.cmp_mode, 0);
}

static void test_trait(void **) {
    auto d = tensor<TensorTrait<half>>(0), a = tensor<TensorTrait<half>>(1), b = tensor<TensorTrait<half>>(2);
    Add(d, a, b, 10);
    dp_insn insn = taken(DP_OP_ADD, 3, __LINE__ - 1);
    for (unsigned k = 0; k < 3; k++)
        has_strides(insn, k, 1, 8, DP_F16);
    Muls(d, a, half(2), 10), has_count(taken(DP_OP_MULS, 2, __LINE__), 10);
}

static int set_up(void **) {
    capture_open();
    return 0;
}
static int tear_down(void **) {
    capture_close();
    return 0;
}

int main() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_binary),  cmocka_unit_test(test_unary),  cmocka_unit_test(test_scalar),
        cmocka_unit_test(test_fill),    cmocka_unit_test(test_cast),   cmocka_unit_test(test_compare),
        cmocka_unit_test(test_select),  cmocka_unit_test(test_reduce), cmocka_unit_test(test_operators),
        cmocka_unit_test(test_trait)};
    return cmocka_run_group_tests_name("insn_face", tests, set_up, tear_down);
}
