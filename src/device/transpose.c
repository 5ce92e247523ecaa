/*
 * transpose.c - Transpose and TransDataTo5HD, BilinearInterpolation.
 *
 * TRANSPOSE  [0] destination, [1] source, dense. u.vec.aux[0] = TransposeType of the face (0: one 16x16 tile of 16-bit
 *            elements), aux[1..4] = N, C, H, W. n_operands 3: [2] scratch the chip may use, untouched here
 * TRANS_DATA_TO_5HD  scalar_bits = address of a dp_row_list that lives as long as the call; [0] and [1] carry the type
 * and row 0 of each side; repeat; repeat_stride of [0] and [1]; u.vec.flag0 = dstHighHalf, flag1 = srcHighHalf BILINEAR
 * [0] destination, [1] values, [2] uint32 byte offsets of blocks, [3] weights (half); mask; aux[0] = horizontal
 * repeats, aux[1] = 1: one weight per block (0: per repeat), aux[2] = elements from one vertical repeat to the next,
 * aux[3] = vertical repeats
 */
#include "device/runs.h"
#include "base/half.h"

#include <inttypes.h>
#include <string.h>

enum { ROWS = 16, TILE_BYTES = 512, BLOCKS = 8, HALVES = 16 };
enum { TYPE_TILE = 0, TYPE_ND2ND_B16 = 10, TYPE_NCHW2NHWC = 11, TYPE_NHWC2NCHW = 12 };

/* --- Transpose --- */

/* A dense transposition of `batches` matrices of rows x columns. */
typedef struct matrix_plan {
    size_t batches, rows, columns, bytes;
} matrix_plan;

static matrix_plan plan_of(const dp_insn *insn) {
    const uint32_t *aux = insn->u.vec.aux;
    size_t bytes = dp_operand_bytes(insn, 0), area = (size_t)aux[3] * aux[4];
    if (aux[0] == TYPE_NCHW2NHWC)
        return (matrix_plan){aux[1], aux[2], area, bytes};
    if (aux[0] == TYPE_NHWC2NCHW)
        return (matrix_plan){aux[1], area, aux[2], bytes};
    return (matrix_plan){1, ROWS, ROWS, 2};
}

static size_t plan_bytes(const matrix_plan *plan) {
    return plan->batches * plan->rows * plan->columns * plan->bytes;
}

static void check_transpose(dp_core *core, const dp_insn *insn, const matrix_plan *plan) {
    uint32_t type = insn->u.vec.aux[0];
    unsigned bits = dp_dtype_bits(insn->operand[0].dtype);
    if (type != TYPE_TILE && type != TYPE_ND2ND_B16 && type != TYPE_NCHW2NHWC && type != TYPE_NHWC2NCHW)
        dp_fault(core, insn, insn->loc,
                 "transposeType %" PRIu32 " is not offered: use TRANSPOSE_ND2ND_B16, TRANSPOSE_NCHW2NHWC or "
                 "TRANSPOSE_NHWC2NCHW",
                 type);
    if ((type == TYPE_TILE || type == TYPE_ND2ND_B16) && bits != 16)
        dp_fault(core, insn, insn->loc, "a 16x16 tile of %s cannot be transposed: only 16-bit elements",
                 dp_dtype_name(insn->operand[0].dtype));
    if (bits < 8 || bits > 32)
        dp_fault(core, insn, insn->loc, "elements of %s cannot be transposed: only 8-, 16- and 32-bit ones",
                 dp_dtype_name(insn->operand[0].dtype));
    dp_operand_in_space(core, insn, 0, DP_SPACE_UB);
    dp_operand_in_space(core, insn, 1, DP_SPACE_UB);
    dp_operand_check(core, insn, 0, plan_bytes(plan), DP_BLOCK_BYTES);
    dp_operand_check(core, insn, 1, plan_bytes(plan), DP_BLOCK_BYTES);
    const uint8_t *dst = insn->operand[0].addr, *src = insn->operand[1].addr;
    if (plan_bytes(plan) > TILE_BYTES && dst < src + plan_bytes(plan) && src < dst + plan_bytes(plan))
        dp_fault(core, insn, insn->loc, "destination and source overlap: only a 16x16 tile may be transposed in place");
}

static void transpose(dp_core *core, const dp_insn *insn) {
    matrix_plan plan = plan_of(insn);
    check_transpose(core, insn, &plan);
    uint8_t tile[TILE_BYTES];
    const uint8_t *src = insn->operand[1].addr;
    if (plan_bytes(&plan) <= sizeof tile)
        src = memcpy(tile, src, plan_bytes(&plan));
    uint8_t *dst = insn->operand[0].addr;
    for (size_t b = 0; b < plan.batches; b++, src += plan.rows * plan.columns * plan.bytes)
        for (size_t c = 0; c < plan.columns; c++)
            for (size_t r = 0; r < plan.rows; r++, dst += plan.bytes)
                memcpy(dst, src + (r * plan.columns + c) * plan.bytes, plan.bytes);
}

/* --- TransDataTo5HD --- */

static const dp_row_list *rows_of(const dp_insn *insn) {
    return (const dp_row_list *)(uintptr_t)insn->scalar_bits;
}

/* One row as an operand of its own. */
static void check_row(dp_core *core, const dp_insn *insn, unsigned k, void *addr) {
    dp_insn probe = *insn;
    probe.operand[k].addr = addr;
    probe.operand[k].size_bytes = 0;
    dp_operand_check(core, &probe, k,
                     ((size_t)(insn->repeat - 1) * insn->operand[k].repeat_stride + 1) * DP_BLOCK_BYTES,
                     DP_BLOCK_BYTES);
}

/* bytes of lane `lane` of source row `row` go to `at` of destination row `to`. */
static void to_5hd(const dp_insn *insn, size_t r) {
    const dp_row_list *list = rows_of(insn);
    size_t bytes = dp_operand_bytes(insn, 0), lanes = bytes == 1 ? ROWS : DP_BLOCK_BYTES / bytes;
    size_t src_at = r * insn->operand[1].repeat_stride * DP_BLOCK_BYTES + (bytes == 1 && insn->u.vec.flag1 ? 16 : 0);
    size_t dst_at = r * insn->operand[0].repeat_stride * DP_BLOCK_BYTES + (bytes == 1 && insn->u.vec.flag0 ? 16 : 0);
    uint8_t tile[ROWS][DP_BLOCK_BYTES];
    for (size_t row = 0; row < ROWS; row++)
        memcpy(tile[row], (const uint8_t *)list->src[row] + src_at, lanes * bytes);
    for (size_t lane = 0; lane < lanes; lane++) {
        for (size_t row = 0; row < ROWS; row++) { /* 32-bit: a column needs two destination blocks */
            size_t to = bytes == 4 ? 2 * lane + row / 8 : lane, place = bytes == 4 ? row % 8 : row;
            memcpy((uint8_t *)list->dst[to] + dst_at + place * bytes, tile[row] + lane * bytes, bytes);
        }
    }
}

static void trans_data(dp_core *core, const dp_insn *insn) {
    unsigned bits = dp_dtype_bits(insn->operand[0].dtype);
    if (bits != 8 && bits != 16 && bits != 32)
        dp_fault(core, insn, insn->loc, "elements of %s are not possible: only 8-, 16- and 32-bit ones",
                 dp_dtype_name(insn->operand[0].dtype));
    if (insn->repeat > 255)
        dp_fault(core, insn, insn->loc, "repeatTimes is %" PRIu32 ": at most 255 are possible", insn->repeat);
    if (!insn->repeat)
        return;
    dp_operand_in_space(core, insn, 0, DP_SPACE_UB);
    dp_operand_in_space(core, insn, 1, DP_SPACE_UB);
    for (size_t row = 0; row < ROWS; row++) {
        check_row(core, insn, 0, rows_of(insn)->dst[row]);
        check_row(core, insn, 1, rows_of(insn)->src[row]);
    }
    for (size_t r = 0; r < insn->repeat; r++)
        to_5hd(insn, r);
}

void dp_exec_transpose(dp_core *core, dp_insn *insn) {
    if (insn->op == DP_OP_TRANSPOSE)
        transpose(core, insn);
    else
        trans_data(core, insn);
}

void dp_visit_transpose(const dp_core *core, const dp_insn *insn, dp_access_fn visit, void *context) {
    (void)core;
    if (insn->op == DP_OP_TRANSPOSE) {
        matrix_plan plan = plan_of(insn);
        if (!plan_bytes(&plan))
            return;
        visit(context, 0, DP_WRITE, insn->operand[0].addr, plan_bytes(&plan));
        visit(context, 1, DP_READ, insn->operand[1].addr, plan_bytes(&plan));
        return;
    }
    size_t half = dp_operand_bytes(insn, 0) == 1 ? 16 : 0, bytes = DP_BLOCK_BYTES - half;
    for (size_t r = 0; r < insn->repeat && insn->repeat <= 255; r++) {
        for (size_t row = 0; row < ROWS; row++) {
            visit(context, 0, DP_WRITE,
                  (const uint8_t *)rows_of(insn)->dst[row] + r * insn->operand[0].repeat_stride * DP_BLOCK_BYTES +
                      (insn->u.vec.flag0 ? half : 0),
                  bytes);
            visit(context, 1, DP_READ,
                  (const uint8_t *)rows_of(insn)->src[row] + r * insn->operand[1].repeat_stride * DP_BLOCK_BYTES +
                      (insn->u.vec.flag1 ? half : 0),
                  bytes);
        }
    }
}

/* --- BilinearInterpolation --- */

static uint32_t block_offset(const dp_insn *insn, size_t i) {
    uint32_t offset;
    memcpy(&offset, (const uint8_t *)insn->operand[2].addr + i * sizeof offset, sizeof offset);
    return offset;
}

static size_t iterations(const dp_insn *insn) {
    return (size_t)insn->u.vec.aux[0] * insn->u.vec.aux[3];
}
static size_t weights(const dp_insn *insn) {
    return iterations(insn) * (insn->u.vec.aux[1] ? BLOCKS : 1);
}

/* The mask of one iteration as a 16-lane bit set per block. */
static void block_lanes(const dp_core *core, const dp_insn *insn, uint16_t out_lanes[BLOCKS]) {
    dp_insn one = *insn;
    dp_lanes lanes;
    one.repeat = 1;
    dp_lanes_resolve(core, &one, 2, &lanes);
    for (unsigned b = 0; b < BLOCKS; b++)
        out_lanes[b] = lanes.repeats ? (uint16_t)(lanes.mask[b / 4] >> (b % 4 * 16)) : 0;
}

static void check_bilinear(dp_core *core, const dp_insn *insn) {
    const uint32_t *aux = insn->u.vec.aux;
    if (insn->operand[0].dtype != DP_F16)
        dp_fault(core, insn, insn->loc, "elements of %s are not possible: only half",
                 dp_dtype_name(insn->operand[0].dtype));
    if (aux[0] > 255 || aux[3] > 255)
        dp_fault(core, insn, insn->loc, "hRepeat is %" PRIu32 " and vRepeat is %" PRIu32 ": at most 255 are possible",
                 aux[0], aux[3]);
    if (aux[3] > 1 && aux[2] % 128)
        dp_fault(core, insn, insn->loc, "vROffset is %" PRIu32 " elements: it must be a multiple of 128", aux[2]);
    for (unsigned k = 0; k < 4; k++)
        dp_operand_in_space(core, insn, k, DP_SPACE_UB);
    size_t n = iterations(insn);
    if (!n)
        return;
    dp_operand_check(core, insn, 0,
                     (size_t)(aux[3] - 1) * aux[2] * 2 +
                         ((BLOCKS - 1) * (size_t)insn->operand[0].block_stride + 1) * DP_BLOCK_BYTES,
                     DP_BLOCK_BYTES);
    dp_operand_check(core, insn, 1, 0, DP_BLOCK_BYTES);
    dp_operand_check(core, insn, 2, n * BLOCKS * sizeof(uint32_t), DP_BLOCK_BYTES);
    dp_operand_check(core, insn, 3, weights(insn) * 2, DP_BLOCK_BYTES);
    for (size_t i = 0; i < n * BLOCKS; i++) {
        uint32_t offset = block_offset(insn, i);
        if (offset % DP_BLOCK_BYTES || !dp_operand_readable(core, insn, 1, (size_t)offset + DP_BLOCK_BYTES))
            dp_fault(core, insn, insn->loc,
                     "offset %zu of the offset tensor is %" PRIu32 ": it must be a multiple of 32 bytes inside UB", i,
                     offset);
    }
}

/* dst = value * weight + (first ? 0 : dst), each operation rounded to half. */
static void accumulate_block(uint8_t *dst, const uint8_t *src, float weight, uint16_t lanes, bool first) {
    for (unsigned i = 0; i < HALVES; i++) {
        if (!(lanes >> i & 1))
            continue;
        uint16_t value, sum;
        memcpy(&value, src + i * 2, 2);
        uint16_t product = dp_f16_from_f32(dp_f32_from_f16(value) * weight);
        memcpy(&sum, dst + i * 2, 2);
        sum = first ? product : dp_f16_from_f32(dp_f32_from_f16(product) + dp_f32_from_f16(sum));
        memcpy(dst + i * 2, &sum, 2);
    }
}

void dp_exec_bilinear(dp_core *core, dp_insn *insn) {
    const uint32_t *aux = insn->u.vec.aux;
    uint16_t lanes[BLOCKS];
    check_bilinear(core, insn);
    block_lanes(core, insn, lanes);
    dp_mask_commit(core, insn, 2);
    for (size_t i = 0; i < iterations(insn); i++) {
        size_t v = i / aux[0], h = i % aux[0];
        for (size_t b = 0; b < BLOCKS; b++) {
            uint16_t weight;
            memcpy(&weight, (const uint8_t *)insn->operand[3].addr + (aux[1] ? i * BLOCKS + b : i) * 2, 2);
            accumulate_block((uint8_t *)insn->operand[0].addr + v * aux[2] * 2 +
                                 b * insn->operand[0].block_stride * DP_BLOCK_BYTES,
                             (const uint8_t *)insn->operand[1].addr + block_offset(insn, i * BLOCKS + b),
                             dp_f32_from_f16(weight), lanes[b], h == 0);
        }
    }
}

void dp_visit_bilinear(const dp_core *core, const dp_insn *insn, dp_access_fn visit, void *context) {
    const uint32_t *aux = insn->u.vec.aux;
    size_t n = iterations(insn);
    if (!n || n > 255 * 255 || !dp_operand_readable(core, insn, 2, n * BLOCKS * sizeof(uint32_t)))
        return;
    uint16_t lanes[BLOCKS];
    block_lanes(core, insn, lanes);
    dp_runs reads = {.visit = visit, .context = context, .operand = 1, .mode = DP_READ};
    dp_runs writes = {.visit = visit, .context = context, .operand = 0, .mode = DP_WRITE};
    for (size_t i = 0; i < n * BLOCKS; i++)
        for (unsigned lane = 0; lane < HALVES; lane++)
            if (lanes[i % BLOCKS] >> lane & 1)
                dp_runs_add(&reads, (const uint8_t *)insn->operand[1].addr + block_offset(insn, i) + lane * 2, 2);
    for (size_t v = 0; v < aux[3]; v++)
        for (size_t b = 0; b < BLOCKS; b++)
            for (unsigned lane = 0; lane < HALVES; lane++)
                if (lanes[b] >> lane & 1)
                    dp_runs_add(&writes,
                                (const uint8_t *)insn->operand[0].addr + v * aux[2] * 2 +
                                    b * insn->operand[0].block_stride * DP_BLOCK_BYTES + lane * 2,
                                2);
    dp_runs_end(&reads);
    dp_runs_end(&writes);
    visit(context, 2, DP_READ, insn->operand[2].addr, n * BLOCKS * sizeof(uint32_t));
    visit(context, 3, DP_READ, insn->operand[3].addr, weights(insn) * 2);
}
