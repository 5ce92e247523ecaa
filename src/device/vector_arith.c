/* Executors of the lane-by-lane families BINARY, UNARY, SCALAR, TERNARY and AXPY. */
#include "device/ahead.h"
#include "device/count.h"
#include "device/vector.h"

#define FOLLOWS(last, first, math_last, math_first)                                                                    \
    _Static_assert((int)DP_OP_##last - (int)DP_OP_##first == (int)math_last - (int)math_first,                         \
                   "rows of insn.def follow the order of math.h")
FOLLOWS(SUB_RELU, ADD, DP_MATH_SUB_RELU, DP_MATH_ADD);
FOLLOWS(NOT, ABS, DP_MATH_NOT, DP_MATH_ABS);
FOLLOWS(SHIFT_RIGHT, ADDS, DP_MATH_SHIFT_RIGHT, DP_MATH_ADDS);
FOLLOWS(FUSED_MUL_ADD_RELU, MUL_ADD_DST, DP_MATH_FUSED_MUL_ADD_RELU, DP_MATH_MUL_ADD_DST);

void dp_fault_dtype(dp_core *core, const dp_insn *insn, uint32_t types) {
    char list[160];
    dp_fault(core, insn, insn->loc, "element type %s is not offered; use %s", dp_dtype_name(insn->operand[0].dtype),
             dp_dtype_list(types, list, sizeof list));
}

void dp_fault_pair(dp_core *core, const dp_insn *insn, unsigned dst, unsigned src, const char *legal) {
    dp_fault(core, insn, insn->loc, "%s to %s is not offered; legal are %s", dp_dtype_name(src), dp_dtype_name(dst), legal);
}

/* One offered type for all operands. Every offered type has a loop (the tester walks the table). */
static inline bool is_offered(uint32_t code) {
    return dp_code_dst(code) == dp_code_src(code) && dp_insn_types(dp_code_op(code)) >> dp_code_dst(code) & 1;
}

static inline uint8_t *at_byte(const dp_local *tensor, size_t skip_bytes) { return (uint8_t *)tensor->addr + skip_bytes; }

/* ---- BINARY ---- */

static void run_binary(const void *context, uint8_t *const at[DP_WALK_OPERANDS], size_t lane, size_t lanes) {
    (void)lane;
    (*(const dp_binary_fn *)context)(at[0], at[1], at[2], lanes);
}

/* And, Or on 32-bit tensors exist in the count form only, as twice as many 16-bit lanes (same bits either way). */
static bool is_wide_bits(const dp_insn *insn, unsigned dtype) {
    return (insn->op == DP_OP_AND || insn->op == DP_OP_OR) && insn->mask_kind == DP_MASK_COUNT &&
           (dtype == DP_I32 || dtype == DP_U32);
}

void dp_exec_binary(dp_core *core, dp_insn *insn) {
    unsigned dtype = insn->operand[0].dtype;
    if (DP_UNLIKELY(!dp_vector_offered(insn, dtype) && !is_wide_bits(insn, dtype)))
        dp_fault_dtype(core, insn, dp_insn_types(insn->op));
    dp_same_dtype(core, insn, 0, 3);
    dp_binary_fn fn = core->math->binary[insn->op - DP_OP_ADD][dtype];
    dp_need_loop(core, insn, fn != NULL);
    size_t n = dp_walk_contiguous(core, insn, 3);
    if (DP_LIKELY(n)) {
        fn(insn->operand[0].addr, insn->operand[1].addr, insn->operand[2].addr, n);
        return;
    }
    dp_walk walk;
    if (dp_walk_begin(core, insn, &dp_walk_3, &walk))
        dp_walk_run(&walk, run_binary, &fn);
}

/* Loop of a three-operand instruction, NULL when the short form does not know it. Both tables hold the same kind of function. */
static inline dp_binary_fn loop_of_three(const dp_core *core, uint32_t code) {
    unsigned op = dp_code_op(code), dtype = dp_code_dst(code);
    if (op - DP_OP_ADD <= DP_OP_SUB_RELU - DP_OP_ADD)
        return is_offered(code) ? core->math->binary[op - DP_OP_ADD][dtype] : NULL;
    if (op - DP_OP_MUL_ADD_DST <= DP_OP_FUSED_MUL_ADD_RELU - DP_OP_MUL_ADD_DST)
        return is_offered(code) ? core->math->ternary[op - DP_OP_MUL_ADD_DST][dtype] : NULL;
    return NULL;
}

void dp_count_binary(uint32_t code, const dp_local *dst, const dp_local *src0, const dp_local *src1, uint32_t n,
                     dp_loc loc) {
    dp_core *core = dp_quiet_core();
    unsigned width = dp_dtype_bits(dp_code_dst(code)) / 8; /* offered types have whole bytes */
    uint64_t bytes = (uint64_t)n * width;
    dp_binary_fn fn = core ? loop_of_three(core, code) : NULL;
    if (DP_LIKELY(fn && n && dp_in_ub(core, dst, bytes, DP_BLOCK_BYTES) && dp_in_ub(core, src0, bytes, DP_BLOCK_BYTES) &&
                  dp_in_ub(core, src1, bytes, DP_BLOCK_BYTES) && dp_no_overlap(dst, bytes, src0, bytes) &&
                  dp_no_overlap(dst, bytes, src1, bytes))) {
        dp_count_done(core);
        size_t piece = dp_ahead_piece(core, n, dp_code_op(code) == DP_OP_DIV ? DP_AHEAD_SLOW_PIECE : DP_AHEAD_PIECE);
        for (size_t i = 0; i < n; i += piece) {
            size_t skip = i * width;
            fn(at_byte(dst, skip), at_byte(src0, skip), at_byte(src1, skip), n - i < piece ? n - i : piece);
            dp_ahead_step(core);
        }
        return;
    }
    dp_count_issue(code, (const dp_local *const[]){dst, src0, src1}, 3, 0, n, loc);
}

void dp_visit_binary(const dp_core *core, const dp_insn *insn, dp_access_fn visit, void *context) {
    dp_walk_visit(core, insn, &dp_walk_3, DP_WRITE, visit, context);
}

/* ---- UNARY ---- */

static void run_unary(const void *context, uint8_t *const at[DP_WALK_OPERANDS], size_t lane, size_t lanes) {
    (void)lane;
    (*(const dp_unary_fn *)context)(at[0], at[1], lanes);
}

void dp_exec_unary(dp_core *core, dp_insn *insn) {
    unsigned dtype = insn->operand[0].dtype;
    if (DP_UNLIKELY(!dp_vector_offered(insn, dtype)))
        dp_fault_dtype(core, insn, dp_insn_types(insn->op));
    dp_same_dtype(core, insn, 0, 2);
    dp_unary_fn fn = core->math->unary[insn->op - DP_OP_ABS][dtype];
    dp_need_loop(core, insn, fn != NULL);
    size_t n = dp_walk_contiguous(core, insn, 2);
    if (DP_LIKELY(n)) {
        fn(insn->operand[0].addr, insn->operand[1].addr, n);
        return;
    }
    dp_walk walk;
    if (dp_walk_begin(core, insn, &dp_walk_2, &walk))
        dp_walk_run(&walk, run_unary, &fn);
}

void dp_count_unary(uint32_t code, const dp_local *dst, const dp_local *src, uint32_t n, dp_loc loc) {
    unsigned op = dp_code_op(code), dtype = dp_code_dst(code);
    dp_core *core = dp_quiet_core();
    unsigned width = dp_dtype_bits(dtype) / 8; /* offered types have whole bytes */
    uint64_t bytes = (uint64_t)n * width;
    dp_unary_fn fn = core && op - DP_OP_ABS <= DP_OP_NOT - DP_OP_ABS && is_offered(code)
                        ? core->math->unary[op - DP_OP_ABS][dtype] : NULL;
    if (DP_LIKELY(fn && n && dp_in_ub(core, dst, bytes, DP_BLOCK_BYTES) && dp_in_ub(core, src, bytes, DP_BLOCK_BYTES) &&
                  dp_no_overlap(dst, bytes, src, bytes))) {
        dp_count_done(core);
        bool slow = op != DP_OP_ABS && op != DP_OP_RELU && op != DP_OP_NOT;
        size_t piece = dp_ahead_piece(core, n, slow ? DP_AHEAD_SLOW_PIECE : DP_AHEAD_PIECE);
        for (size_t i = 0; i < n; i += piece) {
            size_t skip = i * width;
            fn(at_byte(dst, skip), at_byte(src, skip), n - i < piece ? n - i : piece);
            dp_ahead_step(core);
        }
        return;
    }
    dp_count_issue(code, (const dp_local *const[]){dst, src}, 2, 0, n, loc);
}

void dp_visit_unary(const dp_core *core, const dp_insn *insn, dp_access_fn visit, void *context) {
    dp_walk_visit(core, insn, &dp_walk_2, DP_WRITE, visit, context);
}

/* ---- SCALAR ---- */

typedef struct scalar_run {
    dp_scalar_fn fn;
    const void *scalar;
} scalar_run;

static void run_scalar(const void *context, uint8_t *const at[DP_WALK_OPERANDS], size_t lane, size_t lanes) {
    (void)lane;
    const scalar_run *run = context;
    run->fn(at[0], at[1], run->scalar, lanes);
}

/* Shifts: the count comes in the element type, the loops want 31 bits and a rounding bit (u.vec.flag0). */
static uint64_t shift_word(dp_core *core, const dp_insn *insn, unsigned dtype) {
    int64_t count = dtype == DP_I16   ? (int16_t)insn->scalar_bits
                    : dtype == DP_U16 ? (uint16_t)insn->scalar_bits
                    : dtype == DP_I32 ? (int32_t)insn->scalar_bits
                                      : (int64_t)(uint32_t)insn->scalar_bits;
    if (DP_UNLIKELY(count < 0))
        dp_fault(core, insn, insn->loc, "the shift count is %lld; it must not be negative", (long long)count);
    bool rounds = insn->op == DP_OP_SHIFT_RIGHT && insn->u.vec.flag0;
    return ((uint64_t)count > 0x7fffffffu ? 0x7fffffffu : (uint64_t)count) | (rounds ? 0x80000000u : 0);
}

void dp_exec_scalar(dp_core *core, dp_insn *insn) {
    unsigned dtype = insn->operand[0].dtype;
    if (DP_UNLIKELY(!dp_vector_offered(insn, dtype)))
        dp_fault_dtype(core, insn, dp_insn_types(insn->op));
    dp_same_dtype(core, insn, 0, 2);
    bool shifts = insn->op == DP_OP_SHIFT_LEFT || insn->op == DP_OP_SHIFT_RIGHT;
    uint64_t scalar = shifts ? shift_word(core, insn, dtype) : insn->scalar_bits;
    scalar_run run = {core->math->scalar[insn->op - DP_OP_ADDS][dtype], &scalar};
    dp_need_loop(core, insn, run.fn != NULL);
    size_t n = dp_walk_contiguous(core, insn, 2);
    if (DP_LIKELY(n)) {
        run.fn(insn->operand[0].addr, insn->operand[1].addr, &scalar, n);
        return;
    }
    dp_walk walk;
    if (dp_walk_begin(core, insn, &dp_walk_2, &walk))
        dp_walk_run(&walk, run_scalar, &run);
}

/* Loop of an instruction on a tensor and a scalar, NULL when the short form does not know it. */
static inline dp_scalar_fn loop_of_scalar(const dp_core *core, uint32_t code) {
    unsigned op = dp_code_op(code), dtype = dp_code_dst(code);
    if (op - DP_OP_ADDS < DP_OP_SHIFT_LEFT - DP_OP_ADDS)
        return is_offered(code) ? core->math->scalar[op - DP_OP_ADDS][dtype] : NULL;
    return op == DP_OP_AXPY && is_offered(code) ? core->math->axpy[dtype][dtype] : NULL;
}

void dp_count_scalar(uint32_t code, const dp_local *dst, const dp_local *src, uint64_t scalar_bits, uint32_t n,
                     dp_loc loc) {
    dp_core *core = dp_quiet_core();
    unsigned width = dp_dtype_bits(dp_code_dst(code)) / 8; /* offered types have whole bytes */
    uint64_t bytes = (uint64_t)n * width;
    dp_scalar_fn fn = core ? loop_of_scalar(core, code) : NULL;
    if (DP_LIKELY(fn && n && dp_in_ub(core, dst, bytes, DP_BLOCK_BYTES) && dp_in_ub(core, src, bytes, DP_BLOCK_BYTES) &&
                  dp_no_overlap(dst, bytes, src, bytes))) {
        dp_count_done(core);
        size_t piece = dp_ahead_piece(core, n, DP_AHEAD_PIECE);
        for (size_t i = 0; i < n; i += piece) {
            size_t skip = i * width;
            fn(at_byte(dst, skip), at_byte(src, skip), &scalar_bits, n - i < piece ? n - i : piece);
            dp_ahead_step(core);
        }
        return;
    }
    dp_count_issue(code, (const dp_local *const[]){dst, src}, 2, scalar_bits, n, loc);
}

void dp_visit_scalar(const dp_core *core, const dp_insn *insn, dp_access_fn visit, void *context) {
    dp_walk_visit(core, insn, &dp_walk_2, DP_WRITE, visit, context);
}

/* ---- TERNARY ---- */

static void run_ternary(const void *context, uint8_t *const at[DP_WALK_OPERANDS], size_t lane, size_t lanes) {
    (void)lane;
    (*(const dp_ternary_fn *)context)(at[0], at[1], at[2], lanes);
}

void dp_exec_ternary(dp_core *core, dp_insn *insn) {
    unsigned dst = insn->operand[0].dtype, src = insn->operand[1].dtype;
    if (DP_UNLIKELY(!dp_vector_offered(insn, dst)))
        dp_fault_dtype(core, insn, dp_insn_types(insn->op));
    dp_same_dtype(core, insn, 1, 3);
    bool widens = dst == DP_F32 && src == DP_F16 && insn->op == DP_OP_MUL_ADD_DST;
    if (DP_UNLIKELY(dst != src && !widens))
        dp_fault_pair(core, insn, dst, src,
                      insn->op == DP_OP_MUL_ADD_DST ? "half to half, float to float and half to float"
                                                    : "half to half and float to float");
    dp_ternary_fn fn =
        widens ? core->math->mul_add_dst_wide : core->math->ternary[insn->op - DP_OP_MUL_ADD_DST][dst];
    dp_need_loop(core, insn, fn != NULL);
    size_t n = dp_walk_contiguous(core, insn, 3);
    if (DP_LIKELY(n)) {
        fn(insn->operand[0].addr, insn->operand[1].addr, insn->operand[2].addr, n);
        return;
    }
    dp_walk walk;
    if (dp_walk_begin(core, insn, &dp_walk_3, &walk))
        dp_walk_run(&walk, run_ternary, &fn);
}

void dp_visit_ternary(const dp_core *core, const dp_insn *insn, dp_access_fn visit, void *context) {
    dp_walk_visit(core, insn, &dp_walk_3, DP_READ_WRITE, visit, context);
}

/* ---- AXPY: scalar_bits in the type of the source ---- */

typedef struct axpy_run {
    dp_axpy_fn fn;
    const void *scalar;
} axpy_run;

static void run_axpy(const void *context, uint8_t *const at[DP_WALK_OPERANDS], size_t lane, size_t lanes) {
    (void)lane;
    const axpy_run *run = context;
    run->fn(at[0], at[1], run->scalar, lanes);
}

void dp_exec_axpy(dp_core *core, dp_insn *insn) {
    unsigned dst = insn->operand[0].dtype, src = insn->operand[1].dtype;
    bool legal = (dst == DP_F16 && src == DP_F16) || (dst == DP_F32 && (src == DP_F32 || src == DP_F16));
    if (DP_UNLIKELY(!legal))
        dp_fault_pair(core, insn, dst, src, "half to half, float to float and half to float");
    axpy_run run = {core->math->axpy[dst][src], &insn->scalar_bits};
    dp_need_loop(core, insn, run.fn != NULL);
    size_t n = dp_walk_contiguous(core, insn, 2);
    if (DP_LIKELY(n)) {
        run.fn(insn->operand[0].addr, insn->operand[1].addr, run.scalar, n);
        return;
    }
    dp_walk walk;
    if (dp_walk_begin(core, insn, &dp_walk_2, &walk))
        dp_walk_run(&walk, run_axpy, &run);
}

void dp_visit_axpy(const dp_core *core, const dp_insn *insn, dp_access_fn visit, void *context) {
    dp_walk_visit(core, insn, &dp_walk_2, DP_READ_WRITE, visit, context);
}
