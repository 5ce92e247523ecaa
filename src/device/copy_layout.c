/*
 * copy_layout.c - copies that change the layout: row-major (ND) to fractal (NZ) and back, and filling of L1, L0A, L0B.
 *
 * NZ of a matrix: columns are cut in groups of C0 = 32 bytes; a group is one 32-byte block a row, groups follow each
 * other.
 */
#include "device/runs.h"

#include <inttypes.h>
#include <string.h>

enum { NZ2ND_GROUP = 16, NZ2ND_FRACTAL = 256, MAX_MATRICES = 4095, MAX_ROWS = 16384, MAX_FILL = 32767 };

static void limit(dp_core *core, const dp_insn *insn, const char *name, uint32_t value, uint32_t low, uint32_t high) {
    if (DP_UNLIKELY(value < low || value > high))
        dp_fault(core, insn, insn->loc, "%s is %" PRIu32 ": it must be between %" PRIu32 " and %" PRIu32, name, value,
                 low, high);
}

/* --- ND -> NZ: [0] NZ in L1, [1] ND in GM or UB --- */

/* Everything of Nd2NzParams in bytes. */
typedef struct nd2nz {
    size_t matrices, rows, row_bytes, src_matrix, src_row, dst_group, dst_row, dst_matrix;
} nd2nz;

static nd2nz nd2nz_of(const dp_insn *insn) {
    const dp_nd2nz_params *p = &insn->u.nd2nz;
    size_t bits = dp_dtype_bits(insn->operand[0].dtype);
    return (nd2nz){.matrices = p->nd_num,
                   .rows = p->n,
                   .row_bytes = p->d * bits / 8,
                   .src_matrix = p->src_matrix_stride * bits / 8,
                   .src_row = p->src_d * bits / 8,
                   .dst_group = (size_t)p->dst_c0_stride * DP_BLOCK_BYTES,
                   .dst_row = (size_t)p->dst_n_stride * DP_BLOCK_BYTES,
                   .dst_matrix = p->dst_matrix_stride * bits / 8};
}

static void nd2nz_check(dp_core *core, const dp_insn *insn) {
    const dp_nd2nz_params *p = &insn->u.nd2nz;
    unsigned src = insn->operand[1].space;
    if (insn->operand[0].space != DP_SPACE_L1 || (src != DP_SPACE_GM && src != DP_SPACE_UB))
        dp_fault(core, insn, insn->loc, "a copy from %s to %s cannot change ND to NZ: only GM to L1 and UB to L1 can",
                 dp_space_name(src), dp_space_name(insn->operand[0].space));
    limit(core, insn, "ndNum", p->nd_num, 0, MAX_MATRICES);
    limit(core, insn, "nValue", p->n, 0, MAX_ROWS);
    limit(core, insn, "dValue", p->d, 0, UINT16_MAX);
    limit(core, insn, "srcNdMatrixStride", p->src_matrix_stride, 0, UINT16_MAX);
    limit(core, insn, "srcDValue", p->src_d, 1, UINT16_MAX);
    limit(core, insn, "dstNzC0Stride", p->dst_c0_stride, 1, MAX_ROWS);
    limit(core, insn, "dstNzNStride", p->dst_n_stride, 1, MAX_ROWS);
    limit(core, insn, "dstNzMatrixStride", p->dst_matrix_stride, 0, UINT16_MAX);
    if (insn->operand[0].dtype == DP_I4 && ((p->d | p->src_d | p->src_matrix_stride | p->dst_matrix_stride) & 1))
        dp_fault(core, insn, insn->loc,
                 "int4b_t matrices need even dValue, srcDValue and strides: two elements share a byte");
    if (p->nd_num > 1 && p->dst_matrix_stride * dp_dtype_bits(insn->operand[0].dtype) / 8 % DP_BLOCK_BYTES)
        dp_fault(core, insn, insn->loc,
                 "dstNzMatrixStride is %" PRIu32 " elements: matrices must start on 32 bytes of L1",
                 p->dst_matrix_stride);
}

void dp_exec_copy_nd2nz(dp_core *core, dp_insn *insn) {
    nd2nz_check(core, insn);
    nd2nz c = nd2nz_of(insn);
    if (!c.matrices || !c.rows || !c.row_bytes)
        return;
    size_t groups = (c.row_bytes + DP_BLOCK_BYTES - 1) / DP_BLOCK_BYTES;
    dp_operand_check(core, insn, 1, (c.matrices - 1) * c.src_matrix + (c.rows - 1) * c.src_row + c.row_bytes,
                     insn->operand[1].space == DP_SPACE_GM ? 1 : DP_BLOCK_BYTES);
    dp_operand_check(core, insn, 0,
                     (c.matrices - 1) * c.dst_matrix + (c.rows - 1) * c.dst_row + (groups - 1) * c.dst_group +
                         DP_BLOCK_BYTES,
                     DP_BLOCK_BYTES);
    for (size_t i = 0; i < c.matrices; i++) {
        for (size_t r = 0; r < c.rows; r++) {
            const uint8_t *src = (const uint8_t *)insn->operand[1].addr + i * c.src_matrix + r * c.src_row;
            uint8_t *dst = (uint8_t *)insn->operand[0].addr + i * c.dst_matrix + r * c.dst_row;
            for (size_t g = 0; g < groups; g++, src += DP_BLOCK_BYTES, dst += c.dst_group) {
                size_t rest = c.row_bytes - g * DP_BLOCK_BYTES;
                if (DP_LIKELY(rest >= DP_BLOCK_BYTES)) {
                    memcpy(dst, src, DP_BLOCK_BYTES);
                    continue;
                }
                memcpy(dst, src, rest);
                memset(dst + rest, 0, DP_BLOCK_BYTES - rest);
            }
        }
    }
}

void dp_visit_copy_nd2nz(const dp_core *core, const dp_insn *insn, dp_access_fn visit, void *context) {
    (void)core;
    nd2nz c = nd2nz_of(insn);
    if (c.matrices > MAX_MATRICES || c.rows > MAX_ROWS) /* refused by the executor */
        return;
    dp_runs reads = {.visit = visit, .context = context, .operand = 1, .mode = DP_READ};
    dp_runs writes = {.visit = visit, .context = context, .operand = 0, .mode = DP_WRITE};
    size_t groups = (c.row_bytes + DP_BLOCK_BYTES - 1) / DP_BLOCK_BYTES;
    for (size_t i = 0; i < c.matrices; i++)
        for (size_t r = 0; r < c.rows; r++)
            dp_runs_add(&reads, (const uint8_t *)insn->operand[1].addr + i * c.src_matrix + r * c.src_row, c.row_bytes);
    for (size_t i = 0; i < c.matrices; i++) /* down the rows of a group, where NZ is contiguous */
        for (size_t g = 0; g < groups; g++)
            for (size_t r = 0; r < c.rows; r++)
                dp_runs_add(&writes,
                            (const uint8_t *)insn->operand[0].addr + i * c.dst_matrix + g * c.dst_group + r * c.dst_row,
                            DP_BLOCK_BYTES);
    dp_runs_end(&reads);
    dp_runs_end(&writes);
}

/* --- NZ -> ND: [0] ND in GM, [1] NZ in UB or L1, column groups of 16 elements --- */

static size_t nz2nd_source(const dp_nz2nd_params *p, size_t matrix, size_t row, size_t group) {
    return matrix * p->src_matrix_stride * NZ2ND_FRACTAL + group * p->src_n_stride * NZ2ND_GROUP + row * NZ2ND_GROUP;
}

static size_t nz2nd_destination(const dp_nz2nd_params *p, size_t matrix, size_t row, size_t group) {
    return matrix * p->dst_matrix_stride + row * p->dst_d_stride + group * NZ2ND_GROUP;
}

static void nz2nd_check(dp_core *core, const dp_insn *insn) {
    const dp_nz2nd_params *p = &insn->u.nz2nd;
    unsigned src = insn->operand[1].space, bits = dp_dtype_bits(insn->operand[0].dtype);
    if (insn->operand[0].space != DP_SPACE_GM || (src != DP_SPACE_UB && src != DP_SPACE_L1))
        dp_fault(core, insn, insn->loc, "a copy from %s to %s cannot change NZ to ND: only UB to GM and L1 to GM can",
                 dp_space_name(src), dp_space_name(insn->operand[0].space));
    if (bits != 16 && bits != 32)
        dp_fault(core, insn, insn->loc, "elements of %u bits cannot go from NZ to ND: only 16-bit and 32-bit ones",
                 bits);
    limit(core, insn, "ndNum", p->nd_num, 0, MAX_MATRICES);
    limit(core, insn, "nValue", p->n, 1, 8192);
    limit(core, insn, "dValue", p->d, 1, 8192);
    limit(core, insn, "srcNdMatrixStride", p->src_matrix_stride, 1, 512);
    limit(core, insn, "srcNStride", p->src_n_stride, 0, 4095);
    limit(core, insn, "dstDStride", p->dst_d_stride, 1, UINT16_MAX);
    limit(core, insn, "dstNdMatrixStride", p->dst_matrix_stride, 1, UINT16_MAX);
    if (p->d % NZ2ND_GROUP)
        dp_fault(core, insn, insn->loc, "dValue is %" PRIu32 ": it must be a multiple of 16", p->d);
}

void dp_exec_copy_nz2nd(dp_core *core, dp_insn *insn) {
    const dp_nz2nd_params *p = &insn->u.nz2nd;
    nz2nd_check(core, insn);
    if (!p->nd_num)
        return;
    size_t element = dp_dtype_bits(insn->operand[0].dtype) / 8, groups = p->d / NZ2ND_GROUP;
    size_t run = NZ2ND_GROUP * element;
    dp_operand_check(core, insn, 1, nz2nd_source(p, p->nd_num - 1, p->n - 1, groups - 1) * element + run,
                     DP_BLOCK_BYTES);
    dp_operand_check(core, insn, 0, nz2nd_destination(p, p->nd_num - 1, p->n - 1, groups - 1) * element + run,
                     (unsigned)element);
    dp_atomic_fn atomic = core->atomic_op ? core->math->atomic[core->atomic_op - 1][core->atomic_dtype] : NULL;
    if (core->atomic_op && (!atomic || dp_dtype_bits(core->atomic_dtype) / 8 != element))
        dp_fault(core, insn, insn->loc, "the atomic mode is set to %s, which does not fit elements of %zu bytes",
                 dp_dtype_name(core->atomic_dtype), element);
    for (size_t i = 0; i < p->nd_num; i++) {
        for (size_t r = 0; r < p->n; r++) {
            for (size_t g = 0; g < groups; g++) {
                uint8_t *dst = (uint8_t *)insn->operand[0].addr + nz2nd_destination(p, i, r, g) * element;
                const uint8_t *src = (const uint8_t *)insn->operand[1].addr + nz2nd_source(p, i, r, g) * element;
                if (atomic)
                    atomic(dst, src, NZ2ND_GROUP);
                else
                    memcpy(dst, src, run);
            }
        }
    }
}

void dp_visit_copy_nz2nd(const dp_core *core, const dp_insn *insn, dp_access_fn visit, void *context) {
    const dp_nz2nd_params *p = &insn->u.nz2nd;
    size_t element = dp_dtype_bits(insn->operand[0].dtype) / 8, groups = p->d / NZ2ND_GROUP;
    if (p->nd_num > MAX_MATRICES || p->n > MAX_ROWS || p->d > MAX_ROWS) /* refused by the executor */
        return;
    dp_runs reads = {.visit = visit, .context = context, .operand = 1, .mode = DP_READ};
    dp_runs writes = {
        .visit = visit, .context = context, .operand = 0, .mode = core->atomic_op ? DP_READ_WRITE : DP_WRITE};
    for (size_t i = 0; i < p->nd_num; i++)
        for (size_t g = 0; g < groups; g++)
            for (size_t r = 0; r < p->n; r++)
                dp_runs_add(&reads, (const uint8_t *)insn->operand[1].addr + nz2nd_source(p, i, r, g) * element,
                            NZ2ND_GROUP * element);
    for (size_t i = 0; i < p->nd_num; i++)
        for (size_t r = 0; r < p->n; r++)
            for (size_t g = 0; g < groups; g++)
                dp_runs_add(&writes, (const uint8_t *)insn->operand[0].addr + nz2nd_destination(p, i, r, g) * element,
                            NZ2ND_GROUP * element);
    dp_runs_end(&reads);
    dp_runs_end(&writes);
}

/* --- InitConstValue: [0] in L1, L0A or L0B; u.copy: block_count runs of block_bytes with dst_gap_bytes between;
 * scalar_bits --- */

void dp_exec_fill_space(dp_core *core, dp_insn *insn) {
    const dp_copy_params *p = &insn->u.copy;
    const dp_operand *dst = &insn->operand[0];
    unsigned unit = dst->space == DP_SPACE_L1 ? DP_BLOCK_BYTES : 512;
    unsigned element = dp_dtype_bits(dst->dtype) / 8;
    if (dst->space != DP_SPACE_L1 && dst->space != DP_SPACE_L0A && dst->space != DP_SPACE_L0B)
        dp_fault(core, insn, insn->loc,
                 "the destination is in %s: only L1, L0A and L0B are filled this way; use Duplicate in UB",
                 dp_space_name(dst->space));
    if (element != 2 && element != 4)
        dp_fault(core, insn, insn->loc, "elements of %s cannot be filled: only 16-bit and 32-bit ones",
                 dp_dtype_name(dst->dtype));
    limit(core, insn, "repeatTimes", p->block_count, 0, MAX_FILL);
    limit(core, insn, "blockNum", p->block_bytes / unit, 0, MAX_FILL);
    if (p->dst_gap_bytes < 0 || p->dst_gap_bytes > (int64_t)MAX_FILL * unit)
        dp_fault(core, insn, insn->loc, "dstGap is %" PRId64 " bytes: it must be between 0 and %d blocks of %u bytes",
                 p->dst_gap_bytes, MAX_FILL, unit);
    if (!p->block_count || !p->block_bytes)
        return;
    size_t pitch = p->block_bytes + (size_t)p->dst_gap_bytes;
    dp_operand_check(core, insn, 0, (p->block_count - 1) * pitch + p->block_bytes, unit);
    for (size_t i = 0; i < p->block_count; i++)
        core->math->fill[dst->dtype]((uint8_t *)dst->addr + i * pitch, &insn->scalar_bits, p->block_bytes / element);
}

void dp_visit_fill_space(const dp_core *core, const dp_insn *insn, dp_access_fn visit, void *context) {
    (void)core;
    const dp_copy_params *p = &insn->u.copy;
    dp_runs writes = {.visit = visit, .context = context, .operand = 0, .mode = DP_WRITE};
    for (size_t i = 0; i < p->block_count && p->block_count <= MAX_FILL; i++)
        dp_runs_add(&writes, (const uint8_t *)insn->operand[0].addr + i * (p->block_bytes + (size_t)p->dst_gap_bytes),
                    p->block_bytes);
    dp_runs_end(&writes);
}
