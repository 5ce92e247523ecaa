/* Executors of CAST (Cast, CastDeq) and WIDTH2 (AddReluCast, SubReluCast, MulCast, AddDeqRelu). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/half.h"
#include "device/count.h"
#include "device/vector.h"

enum { CHUNK = 256, NONE = 0, DEQ_LANES = 16 };

/* Legal rounding modes of a conversion: bit = RoundMode. Facts: kernel-semantics section 3. */
#define M_NONE 0x01u
#define M_FIVE 0x3eu
#define M_ODD 0x40u

static const uint8_t legal_modes[DP_DTYPE_COUNT][DP_DTYPE_COUNT] = { /* [source][destination] */
    [DP_F16] = {[DP_F32] = M_NONE, [DP_I32] = M_FIVE, [DP_I16] = M_FIVE, [DP_I8] = M_FIVE | M_NONE,
                [DP_U8] = M_FIVE | M_NONE, [DP_I4] = M_FIVE | M_NONE},
    [DP_F32] = {[DP_F16] = M_FIVE | M_ODD | M_NONE, [DP_BF16] = M_FIVE, [DP_I16] = M_FIVE, [DP_I32] = M_FIVE,
                [DP_I64] = M_FIVE, [DP_F32] = M_FIVE},
    [DP_BF16] = {[DP_F32] = M_NONE, [DP_I32] = M_FIVE},
    [DP_I4] = {[DP_F16] = M_NONE},
    [DP_I8] = {[DP_F16] = M_NONE},
    [DP_U8] = {[DP_F16] = M_NONE},
    [DP_I16] = {[DP_F16] = M_FIVE | M_NONE, [DP_F32] = M_NONE},
    [DP_I32] = {[DP_F32] = M_FIVE | M_NONE, [DP_F16] = M_NONE, [DP_I16] = M_NONE, [DP_I64] = M_NONE},
    [DP_I64] = {[DP_I32] = M_NONE, [DP_F32] = M_FIVE},
};

static const char *const mode_names[DP_ROUND_COUNT] = {"CAST_NONE", "CAST_RINT",  "CAST_FLOOR", "CAST_CEIL",
                                                       "CAST_ROUND", "CAST_TRUNC", "CAST_ODD"};

static __attribute__((noinline, cold, noreturn)) void fault_cast(dp_core *core, const dp_insn *insn, unsigned dst,
                                                                  unsigned src) {
    unsigned modes = dst < DP_DTYPE_COUNT && src < DP_DTYPE_COUNT ? legal_modes[src][dst] : 0;
    unsigned mode = insn->u.vec.round_mode;
    char list[160];
    if (!modes) {
        uint32_t types = 0;
        for (unsigned t = 0; src < DP_DTYPE_COUNT && t < DP_DTYPE_COUNT; t++)
            types |= legal_modes[src][t] ? 1u << t : 0;
        if (!types)
            dp_fault(core, insn, insn->loc, "nothing can be cast from %s; go through another type", dp_dtype_name(src));
        dp_fault(core, insn, insn->loc, "%s cannot be cast to %s; %s casts to %s", dp_dtype_name(src), dp_dtype_name(dst),
                 dp_dtype_name(src), dp_dtype_list(types, list, sizeof list));
    }
    size_t used = 0;
    for (unsigned m = 0; m < DP_ROUND_COUNT; m++) {
        if (modes >> m & 1)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", used ? ", " : "", mode_names[m]);
    }
    dp_fault(core, insn, insn->loc, "%s to %s does not take rounding mode %s; legal: %s", dp_dtype_name(src),
             dp_dtype_name(dst), mode < DP_ROUND_COUNT ? mode_names[mode] : "(unknown)", list);
}

typedef struct cast_run {
    const dp_math *math;
    dp_cast_fn fn;
    float scale; /* int32 to half: through the dequantisation scale */
} cast_run;

static void run_cast(const void *context, uint8_t *const at[DP_WALK_OPERANDS], size_t lane, size_t lanes) {
    (void)lane;
    ((const cast_run *)context)->fn(at[0], at[1], lanes);
}

static void run_cast_scaled(const void *context, uint8_t *const at[DP_WALK_OPERANDS], size_t lane, size_t lanes) {
    (void)lane;
    const cast_run *run = context;
    float value[CHUNK];
    for (size_t i = 0; i < lanes; i += CHUNK) {
        size_t n = lanes - i < CHUNK ? lanes - i : CHUNK;
        run->math->cast[DP_F32][DP_I32][NONE](value, at[1] + 4 * i, n);
        run->math->scalar[DP_MATH_MULS][DP_F32](value, value, &run->scale, n);
        run->math->cast[DP_F16][DP_F32][NONE](at[0] + 2 * i, value, n);
    }
}

static void exec_plain_cast(dp_core *core, dp_insn *insn) {
    unsigned dst = insn->operand[0].dtype, src = insn->operand[1].dtype, mode = insn->u.vec.round_mode;
    bool legal = dst < DP_DTYPE_COUNT && src < DP_DTYPE_COUNT && mode < DP_ROUND_COUNT && (legal_modes[src][dst] >> mode & 1);
    if (DP_UNLIKELY(!legal))
        fault_cast(core, insn, dst, src);
    bool scaled = src == DP_I32 && dst == DP_F16;
    cast_run run = {core->math, scaled ? NULL : core->math->cast[dst][src][mode], dp_f32_from_bits((uint32_t)core->deq_scale)};
    dp_need_loop(core, insn, run.fn || (scaled && core->math->cast[DP_F16][DP_F32][NONE]));
    size_t n = scaled ? 0 : dp_walk_contiguous(core, insn, 2);
    if (DP_LIKELY(n)) {
        run.fn(insn->operand[0].addr, insn->operand[1].addr, n);
        return;
    }
    dp_walk walk;
    if (dp_walk_begin(core, insn, &dp_walk_2, &walk))
        dp_walk_run(&walk, scaled ? run_cast_scaled : run_cast, &run);
}

void dp_count_cast(uint32_t code, const dp_local *dst, const dp_local *src, uint32_t n, dp_loc loc) {
    unsigned to = dp_code_dst(code), from = dp_code_src(code), mode = dp_code_round(code);
    dp_core *core = dp_quiet_core();
    unsigned to_bits = dp_dtype_bits(to), from_bits = dp_dtype_bits(from);
    bool plain = core && dp_code_op(code) == DP_OP_CAST && to_bits >= 8 && from_bits >= 8 && mode < DP_ROUND_COUNT &&
                 (legal_modes[from][to] >> mode & 1) && !(from == DP_I32 && to == DP_F16);
    dp_cast_fn fn = plain ? core->math->cast[to][from][mode] : NULL;
    uint64_t to_bytes = (uint64_t)n * to_bits / 8, from_bytes = (uint64_t)n * from_bits / 8;
    if (DP_LIKELY(fn && n && dp_in_ub(core, dst, to_bytes, DP_BLOCK_BYTES) &&
                  dp_in_ub(core, src, from_bytes, DP_BLOCK_BYTES) && dp_no_overlap(dst, to_bytes, src, from_bytes))) {
        dp_count_done(core);
        fn(dst->addr, src->addr, n);
        return;
    }
    dp_count_issue(code, (const dp_local *const[]){dst, src}, 2, 0, n, loc);
}

/*
 * CastDeq: int16 to 8 bits; u.vec.flag0: scales from the table (one per lane of a block), flag1: which half of each
 * destination block is written (1 = its upper 16 bytes). 16 source lanes, one block, go to one destination block.
 */
static uint8_t deq_value(int16_t x, uint64_t word, bool is_signed) {
    float scaled = (float)x * dp_f32_from_bits((uint32_t)word);
    int32_t offset = (int32_t)((word >> 37 & 0x1ff) ^ 0x100) - 0x100; /* 9 bits, signed */
    float value = rintf(scaled) + (float)offset;
    float low = is_signed ? -128.0f : 0.0f, high = is_signed ? 127.0f : 255.0f;
    if (!(value > low)) /* NaN goes to 0 where 0 is in range */
        value = value != value ? 0.0f : low;
    return (uint8_t)(int32_t)(value > high ? high : value);
}

/* The destination as seen by masks and strides: lanes of 16 bits, of which the lower 16 bytes of a block count. */
static void deq_lanes(const dp_core *core, const dp_insn *insn, dp_lanes *out_lanes, dp_operand *out_dst) {
    dp_lanes_resolve(core, insn, 2, out_lanes);
    *out_dst = insn->operand[0];
    if (out_lanes->flat) {
        out_dst->block_stride = 1;
        out_dst->repeat_stride = 8;
    }
}

static void exec_cast_deq(dp_core *core, dp_insn *insn) {
    unsigned dst_type = insn->operand[0].dtype;
    if (DP_UNLIKELY(insn->operand[1].dtype != DP_I16 || (dst_type != DP_I8 && dst_type != DP_U8)))
        dp_fault_pair(core, insn, dst_type, insn->operand[1].dtype, "int16 to int8 and int16 to uint8");
    dp_lanes lanes;
    dp_operand dst;
    deq_lanes(core, insn, &lanes, &dst);
    const dp_operand *src = &insn->operand[1];
    size_t src_extent = dp_lanes_extent(&lanes, src, 16);
    size_t dst_extent = (dp_lanes_extent(&lanes, &dst, 16) + DP_BLOCK_BYTES - 1) / DP_BLOCK_BYTES * DP_BLOCK_BYTES;
    for (unsigned k = 0; k < 2; k++) {
        dp_operand_in_space(core, insn, k, DP_SPACE_UB);
        dp_operand_check(core, insn, k, k ? src_extent : dst_extent, DP_BLOCK_BYTES);
    }
    dp_mask_commit(core, insn, 2);
    size_t src_block = lanes.flat ? DP_BLOCK_BYTES : (size_t)src->block_stride * DP_BLOCK_BYTES;
    size_t src_repeat = lanes.flat ? DP_REPEAT_BYTES : (size_t)src->repeat_stride * DP_BLOCK_BYTES;
    for (uint32_t r = 0; r < lanes.repeats; r++) {
        uint32_t n = r + 1 == lanes.repeats ? lanes.last : lanes.per_repeat;
        for (uint32_t i = 0; i < n; i++) {
            if (!(lanes.mask[i / 64] >> (i % 64) & 1))
                continue;
            uint32_t block = i / DEQ_LANES, lane = i % DEQ_LANES;
            int16_t x;
            memcpy(&x, (const uint8_t *)src->addr + r * src_repeat + block * src_block + lane * 2, sizeof x);
            uint64_t word = insn->u.vec.flag0 ? core->deq_table[lane] : core->deq_scale;
            uint8_t *out = (uint8_t *)dst.addr + (size_t)r * dst.repeat_stride * DP_BLOCK_BYTES +
                           (size_t)block * dst.block_stride * DP_BLOCK_BYTES + (insn->u.vec.flag1 ? DEQ_LANES : 0) + lane;
            *out = deq_value(x, word, dst_type == DP_I8);
        }
    }
}

void dp_exec_cast(dp_core *core, dp_insn *insn) {
    if (insn->op == DP_OP_CAST)
        exec_plain_cast(core, insn);
    else
        exec_cast_deq(core, insn);
}

void dp_visit_cast(const dp_core *core, const dp_insn *insn, dp_access_fn visit, void *context) {
    if (insn->op == DP_OP_CAST) {
        dp_walk_visit(core, insn, &dp_walk_2, DP_WRITE, visit, context);
        return;
    }
    if (insn->repeat > 255 && insn->mask_kind != DP_MASK_COUNT && !core->counter_mode)
        return;
    dp_lanes lanes;
    dp_operand dst;
    deq_lanes(core, insn, &lanes, &dst);
    dp_lanes_visit(&lanes, insn, 1, 16, DP_READ, visit, context);
    for (uint32_t r = 0; r < lanes.repeats; r++) {
        uint32_t n = r + 1 == lanes.repeats ? lanes.last : lanes.per_repeat;
        for (uint32_t i = 0; i < n; i++) {
            if (lanes.mask[i / 64] >> (i % 64) & 1)
                visit(context, 0, DP_WRITE,
                      (uint8_t *)dst.addr + (size_t)r * dst.repeat_stride * DP_BLOCK_BYTES +
                          (size_t)(i / DEQ_LANES) * dst.block_stride * DP_BLOCK_BYTES +
                          (insn->u.vec.flag1 ? DEQ_LANES : 0) + i % DEQ_LANES, 1);
        }
    }
}

/* ---- WIDTH2 ---- */

typedef struct width2_run {
    const dp_math *math;
    dp_binary_fn fn;   /* in the source type */
    dp_cast_fn narrow; /* NULL: int16 to int8 */
    unsigned src_bytes, dst_bytes;
    float scale;
} width2_run;

static void narrow_i16(int8_t *dst, const int16_t *src, size_t n) {
    for (size_t i = 0; i < n; i++)
        dst[i] = (int8_t)(src[i] > 127 ? 127 : src[i] < -128 ? -128 : src[i]);
}

static void run_width2(const void *context, uint8_t *const at[DP_WALK_OPERANDS], size_t lane, size_t lanes) {
    (void)lane;
    const width2_run *run = context;
    uint8_t value[CHUNK * 4] __attribute__((aligned(64)));
    for (size_t i = 0; i < lanes; i += CHUNK) {
        size_t n = lanes - i < CHUNK ? lanes - i : CHUNK;
        run->fn(value, at[1] + i * run->src_bytes, at[2] + i * run->src_bytes, n);
        if (run->narrow)
            run->narrow(at[0] + i * run->dst_bytes, value, n);
        else
            narrow_i16((int8_t *)at[0] + i, (const int16_t *)value, n);
    }
}

/* Facts: kernel-semantics section 2: (a + b) to float, x 2^-17, x scale, x 2^17, to half, max with 0. */
static void run_add_deq_relu(const void *context, uint8_t *const at[DP_WALK_OPERANDS], size_t lane, size_t lanes) {
    (void)lane;
    static const float down = 0x1p-17f, up = 0x1p17f;
    const width2_run *run = context;
    dp_scalar_fn multiply = run->math->scalar[DP_MATH_MULS][DP_F32];
    int32_t sum[CHUNK];
    float value[CHUNK];
    for (size_t i = 0; i < lanes; i += CHUNK) {
        size_t n = lanes - i < CHUNK ? lanes - i : CHUNK;
        uint8_t *out = at[0] + 2 * i;
        run->fn(sum, at[1] + 4 * i, at[2] + 4 * i, n);
        run->math->cast[DP_F32][DP_I32][NONE](value, sum, n);
        multiply(value, value, &down, n);
        multiply(value, value, &run->scale, n);
        multiply(value, value, &up, n);
        run->narrow(out, value, n);
        run->math->unary[DP_MATH_RELU][DP_F16](out, out, n);
    }
}

void dp_exec_width2(dp_core *core, dp_insn *insn) {
    unsigned dst = insn->operand[0].dtype, src = insn->operand[1].dtype;
    dp_same_dtype(core, insn, 1, 3);
    bool legal, deq = insn->op == DP_OP_ADD_DEQ_RELU;
    const char *pairs;
    dp_math_binary op;
    if (deq) {
        legal = src == DP_I32 && dst == DP_F16;
        pairs = "int32 to half";
        op = DP_MATH_ADD;
    } else if (insn->op == DP_OP_MUL_CAST) {
        legal = src == DP_F16 && (dst == DP_I8 || dst == DP_U8);
        pairs = "half to int8 and half to uint8";
        op = DP_MATH_MUL;
    } else {
        legal = (src == DP_F16 && dst == DP_I8) || (src == DP_F32 && dst == DP_F16) || (src == DP_I16 && dst == DP_I8);
        pairs = "half to int8, float to half and int16 to int8";
        op = insn->op == DP_OP_ADD_RELU_CAST ? DP_MATH_ADD_RELU : DP_MATH_SUB_RELU;
    }
    if (DP_UNLIKELY(!legal))
        dp_fault_pair(core, insn, dst, src, pairs);
    dp_cast_fn narrow = deq ? core->math->cast[DP_F16][DP_F32][NONE]
                            : src == DP_I16 ? NULL : core->math->cast[dst][src][NONE];
    width2_run run = {core->math, core->math->binary[op][src], narrow, dp_dtype_bits(src) / 8, dp_dtype_bits(dst) / 8,
                      dp_f32_from_bits((uint32_t)core->deq_scale)};
    dp_need_loop(core, insn, run.fn && (narrow || src == DP_I16));
    dp_walk walk;
    if (dp_walk_begin(core, insn, &dp_walk_3, &walk))
        dp_walk_run(&walk, deq ? run_add_deq_relu : run_width2, &run);
}

void dp_visit_width2(const dp_core *core, const dp_insn *insn, dp_access_fn visit, void *context) {
    dp_walk_visit(core, insn, &dp_walk_3, DP_WRITE, visit, context);
}
