/* Gathers, GatherMask, sorts, transpositions, broadcasts and interpolation against plain references. */
#include <math.h>

#include "data_host.h"

enum { UB = DP_SPACE_UB, DST = 0, SRC = 65536, THIRD = 131072, FOURTH = 163840 };

static const unsigned types[] = {DP_F16, DP_BF16, DP_I16, DP_U16, DP_F32, DP_I32, DP_U32};
enum { N_TYPES = sizeof types / sizeof *types };

static dp_insn three(data_host *h, unsigned op, unsigned dtype, unsigned n) {
    static const size_t at[] = {DST, SRC, THIRD, FOURTH};
    dp_insn insn = {.op = (uint16_t)op, .n_operands = (uint8_t)n};
    for (unsigned k = 0; k < n; k++)
        insn.operand[k] = data_operand(h, UB, at[k], dtype);
    return insn;
}

/* Puts a value into the images before the run. */
static void set(data_host *h, size_t at, const void *value, size_t bytes) {
    memcpy(data_base(h, UB) + at, value, bytes);
    memcpy(h->before[UB] + at, value, bytes);
    memcpy(h->expect[UB] + at, value, bytes);
}
static void set_u32(data_host *h, size_t at, uint32_t value) {
    set(h, at, &value, 4);
}
static uint32_t get_u32(const uint8_t *image, size_t at) {
    uint32_t value;
    memcpy(&value, image + at, 4);
    return value;
}

/* A random lane set in one of the mask forms; lane(r, i) tells whether lane i of repeat r takes part. */
typedef struct mask_form {
    unsigned kind, per, repeats, count;
    uint64_t bits[2];
} mask_form;

static bool lane(const mask_form *m, unsigned r, unsigned i) {
    if (m->kind == DP_MASK_COUNT)
        return r * m->per + i < m->count;
    if (m->kind == DP_MASK_LEADING)
        return i < m->count;
    return m->bits[i / 64] >> (i % 64) & 1;
}

static mask_form random_mask(data_host *h, unsigned per, dp_insn *insn) {
    static const unsigned kinds[] = {DP_MASK_COUNT, DP_MASK_LEADING, DP_MASK_BITS, DP_MASK_REGISTER};
    mask_form m = {.kind = kinds[data_below(h, 4)], .per = per, .repeats = 1 + data_below(h, 4)};
    m.bits[0] = data_random(h), m.bits[1] = data_random(h);
    m.count = m.kind == DP_MASK_COUNT ? 1 + data_below(h, per * 4) : 1 + data_below(h, per);
    insn->mask_kind = (uint8_t)m.kind;
    insn->repeat = m.kind == DP_MASK_COUNT ? 1 : m.repeats;
    insn->mask[0] = m.kind == DP_MASK_BITS ? m.bits[0] : m.count;
    insn->mask[1] = m.kind == DP_MASK_BITS ? m.bits[1] : 0;
    if (m.kind == DP_MASK_REGISTER) {
        h->core->mask[0] = m.bits[0];
        h->core->mask[1] = m.bits[1];
    }
    if (m.kind == DP_MASK_COUNT)
        m.repeats = (m.count + per - 1) / per;
    return m;
}

static void gathers(void **state) {
    (void)state;
    data_host *h = data_host_new(21);
    for (int round = 0; round < ROUNDS(120); round++) {
        unsigned dtype = types[round % N_TYPES], bytes = dp_dtype_bits(dtype) / 8;
        dp_insn insn = three(h, DP_OP_GATHER, dtype, 3);
        data_noise(h);
        mask_form m = random_mask(h, 256 / bytes, &insn);
        size_t stride = m.kind == DP_MASK_COUNT ? 8 : 8 + data_below(h, 3);
        insn.operand[0].repeat_stride = (uint16_t)stride;
        insn.scalar_bits = data_below(h, 50) * bytes;
        for (unsigned r = 0; r < m.repeats; r++) {
            for (unsigned i = 0; i < m.per; i++) {
                if (!lane(&m, r, i))
                    continue;
                uint32_t offset = data_below(h, 20000) / 4 * 4;
                set_u32(h, THIRD + (r * m.per + i) * 4, offset);
                memcpy(h->expect[UB] + DST + r * stride * 32 + i * bytes,
                       h->before[UB] + SRC + insn.scalar_bits + offset, bytes);
            }
        }
        data_run(h, &insn, "Gather");
    }
    /* misuse */
    data_noise(h);
    dp_insn insn = three(h, DP_OP_GATHER, DP_F32, 3);
    insn.mask_kind = DP_MASK_COUNT, insn.mask[0] = 8;
    for (unsigned i = 0; i < 8; i++)
        set_u32(h, THIRD + i * 4, i * 4);
    set_u32(h, THIRD + 5 * 4, 131072);
    data_expect_fault(h, &insn, "offset 5 of the offset tensor leads to byte 131072");
    set_u32(h, THIRD + 5 * 4, 6);
    data_expect_fault(h, &insn, "byte 6 of the source, which is not a multiple of 4");
    insn.operand[1].size_bytes = 16;
    set_u32(h, THIRD + 5 * 4, 0);
    data_expect_fault(h, &insn, "offset 4 of the offset tensor leads to byte 16 of the source, which has 16 bytes");
    insn.operand[0].dtype = DP_I8;
    data_expect_fault(h, &insn, "16-bit and 32-bit");
    insn = three(h, DP_OP_SCATTER, DP_F32, 3);
    data_expect_fault(h, &insn, "no scatter instruction");
    data_host_free(h);
}

static void gathers_blocks(void **state) {
    (void)state;
    data_host *h = data_host_new(22);
    for (int round = 0; round < ROUNDS(20); round++) {
        dp_insn insn = three(h, DP_OP_GATHERB, round % 2 ? DP_U16 : DP_U32, 3);
        data_noise(h);
        insn.repeat = data_below(h, 20);
        insn.operand[0].block_stride = (uint16_t)(1 + data_below(h, 2));
        insn.operand[0].repeat_stride = (uint16_t)(insn.operand[0].block_stride * 8 + data_below(h, 2));
        for (unsigned i = 0; i < insn.repeat * 8; i++) {
            uint32_t offset = data_below(h, 2000) * 32;
            set_u32(h, THIRD + i * 4, offset);
            memcpy(h->expect[UB] + DST +
                       (i / 8 * insn.operand[0].repeat_stride + i % 8 * insn.operand[0].block_stride) * 32,
                   h->before[UB] + SRC + offset, 32);
        }
        h->core->mask[0] = 5;
        data_run(h, &insn, "Gatherb");
        assert_true(h->core->mask[0] == ~0ull && h->core->mask[1] == ~0ull);
    }
    data_host_free(h);
}

static bool pattern_keeps(unsigned pattern, size_t i) {
    switch (pattern) {
    case 1:
        return i % 2 == 0;
    case 2:
        return i % 2 == 1;
    case 7:
        return true;
    default:
        return i % 4 == pattern - 3;
    }
}

static void gathers_by_mask(void **state) {
    (void)state;
    data_host *h = data_host_new(23);
    for (int round = 0; round < ROUNDS(160); round++) {
        unsigned dtype = types[round % N_TYPES], bytes = dp_dtype_bits(dtype) / 8, pattern = (unsigned)round % 8;
        dp_insn insn = three(h, DP_OP_GATHER_MASK, dtype, pattern ? 2 : 3);
        bool counted = data_below(h, 2);
        size_t per = counted ? 1 + data_below(h, 300) : 256 / bytes, kept = 0;
        data_noise(h);
        insn.repeat = data_below(h, 6);
        insn.mask[0] = counted ? per : 77;
        insn.u.vec.flag0 = (uint8_t)pattern;
        insn.u.vec.flag1 = counted;
        insn.operand[1].block_stride = (uint16_t)(per * bytes > 256 ? 1 + data_below(h, 2) : data_below(h, 3));
        insn.operand[1].repeat_stride = (uint16_t)data_below(h, 20);
        insn.operand[2].repeat_stride = (uint16_t)data_below(h, 3);
        for (size_t r = 0; r < insn.repeat; r++) {
            for (size_t i = 0; i < per; i++) {
                size_t bit = (THIRD + r * insn.operand[2].repeat_stride * 32) * 8 + i;
                bool keep = pattern ? pattern_keeps(pattern, i) : h->before[UB][bit / 8] >> (bit % 8) & 1;
                if (!keep)
                    continue;
                size_t block = i / (32 / bytes), in_block = i % (32 / bytes);
                memcpy(h->expect[UB] + DST + kept++ * bytes,
                       h->before[UB] + SRC +
                           (r * insn.operand[1].repeat_stride + block * insn.operand[1].block_stride) * 32 +
                           in_block * bytes,
                       bytes);
            }
        }
        h->core->counter_mode = 1;
        data_run(h, &insn, "GatherMask");
        assert_int_equal(insn.result, kept);
        assert_int_equal(h->core->counter_mode, 0);
        dp_insn get = {.op = DP_OP_GET_KEPT};
        assert_null(data_issue(h, &get));
        assert_int_equal(get.result, kept);
    }
    dp_insn insn = three(h, DP_OP_GATHER_MASK, DP_F32, 2);
    insn.repeat = 1;
    insn.u.vec.flag0 = 8;
    data_expect_fault(h, &insn, "pattern 8 does not exist");
    insn.u.vec.flag0 = 7;
    insn.repeat = 60000;
    data_expect_fault(h, &insn, "past the end of UB");
    insn.u.vec.flag1 = 1;
    insn.mask[0] = UINT32_MAX;
    insn.operand[1].block_stride = 0;
    data_expect_fault(h, &insn, "src0BlockStride is 0");
    data_host_free(h);
}

/* --- sorting --- */

/* Larger sorts earlier: NaN, then by value. */
static double score_of(uint32_t bits, bool half) {
    float f = half ? dp_f32_from_f16((uint16_t)bits) : dp_f32_from_bits(bits);
    return isnan(f) ? (double)INFINITY * 1 : (double)f;
}
static bool is_nan(uint32_t bits, bool half) {
    return isnan(half ? dp_f32_from_f16((uint16_t)bits) : dp_f32_from_bits(bits));
}
static bool before(uint32_t a, uint32_t b, bool half) {
    if (is_nan(a, half) || is_nan(b, half))
        return is_nan(a, half) && !is_nan(b, half);
    return score_of(a, half) > score_of(b, half);
}

/* Stable selection: repeatedly takes the first of the best that are left. */
static void reference_sort(const uint32_t *scores, const uint32_t *indices, size_t n, bool half, uint64_t *out) {
    bool *used = calloc(n, 1);
    for (size_t k = 0; k < n; k++) {
        size_t best = n;
        for (size_t i = 0; i < n; i++)
            if (!used[i] && (best == n || before(scores[i], scores[best], half)))
                best = i;
        used[best] = true;
        out[k] = (uint64_t)indices[best] << 32 | scores[best];
    }
    free(used);
}

static uint32_t random_score(data_host *h, bool half) {
    static const float special[] = {0.0f, -0.0f, INFINITY, -INFINITY, NAN, 1.0f, -1.0f, 1e-30f};
    unsigned pick = data_below(h, 10);
    float f = pick < 3   ? special[data_below(h, 8)]
              : pick < 6 ? (float)data_below(h, 8) - 4
                         : (float)((int)data_below(h, 60000) - 30000);
    return half ? dp_f16_from_f32(f) : dp_f32_bits(f);
}

static void sorts_groups(void **state) {
    (void)state;
    data_host *h = data_host_new(24);
    for (int round = 0; round < ROUNDS(30); round++) {
        bool half = round & 1;
        size_t bytes = half ? 2 : 4, repeat = data_below(h, 9);
        dp_insn insn = three(h, DP_OP_SORT32, half ? DP_F16 : DP_F32, 3);
        insn.operand[2].dtype = DP_U32;
        insn.repeat = (uint32_t)repeat;
        data_noise(h);
        for (size_t g = 0; g < repeat; g++) {
            uint32_t scores[32], indices[32];
            uint64_t sorted[32];
            for (size_t i = 0; i < 32; i++) {
                scores[i] = random_score(h, half);
                indices[i] = (uint32_t)data_random(h);
                set(h, SRC + (g * 32 + i) * bytes, &scores[i], bytes);
                set_u32(h, THIRD + (g * 32 + i) * 4, indices[i]);
            }
            reference_sort(scores, indices, 32, half, sorted);
            memcpy(h->expect[UB] + DST + g * 256, sorted, 256);
        }
        data_run(h, &insn, "Sort32");
    }
    dp_insn insn = three(h, DP_OP_SORT32, DP_I16, 3);
    insn.repeat = 1;
    data_expect_fault(h, &insn, "only half and float");
    insn.operand[0].dtype = DP_F16;
    insn.repeat = (uint32_t)-1;
    data_expect_fault(h, &insn, "repeatTimes is -1");
    data_host_free(h);
}

/* A descending list of entries at `at`. */
static void put_list(data_host *h, size_t at, size_t n, bool half) {
    uint32_t scores[600], indices[600];
    uint64_t sorted[600];
    for (size_t i = 0; i < n; i++) {
        scores[i] = random_score(h, half);
        indices[i] = (uint32_t)data_random(h);
    }
    reference_sort(scores, indices, n, half, sorted);
    set(h, at, sorted, n * 8);
}

static uint64_t get_u64(const uint8_t *image, size_t at) {
    uint64_t value;
    memcpy(&value, image + at, 8);
    return value;
}

/* Takes the best head again and again; the earlier list wins ties. */
static void reference_merge(uint8_t *image, size_t to, const size_t *lists, const uint16_t *lengths, bool half,
                            bool suspend, uint32_t *taken) {
    memset(taken, 0, 4 * sizeof *taken);
    for (;;) {
        int best = -1;
        for (int i = 0; i < 4; i++) {
            if (taken[i] == lengths[i])
                continue;
            uint32_t mask = half ? 0xffff : 0xffffffff;
            if (best < 0 || before((uint32_t)get_u64(image, lists[i] + taken[i] * 8) & mask,
                                   (uint32_t)get_u64(image, lists[best] + taken[best] * 8) & mask, half))
                best = i;
        }
        if (best < 0)
            return;
        memmove(image + to, image + lists[best] + taken[best] * 8, 8);
        to += 8;
        if (++taken[best] == lengths[best] && suspend)
            return;
    }
}

static dp_insn merge_insn(data_host *h, bool half, const size_t *lists, const uint16_t *lengths) {
    dp_insn insn = {.op = DP_OP_MRG_SORT, .n_operands = 4, .repeat = 1};
    unsigned dtype = half ? DP_F16 : DP_F32;
    insn.operand[0] = data_operand(h, UB, DST, dtype);
    for (unsigned i = 0; i < 3; i++)
        insn.operand[1 + i] = data_operand(h, UB, lists[i], dtype);
    uint64_t fourth = (uint64_t)(uintptr_t)(data_base(h, UB) + lists[3]);
    insn.u.vec.aux[0] = (uint32_t)fourth;
    insn.u.vec.aux[1] = (uint32_t)(fourth >> 32);
    for (unsigned i = 0; i < 4; i++)
        insn.scalar_bits |= (uint64_t)lengths[i] << (16 * i);
    insn.u.vec.flag0 = 15;
    return insn;
}

static void merges_lists(void **state) {
    (void)state;
    data_host *h = data_host_new(25);
    const size_t lists[4] = {SRC, SRC + 8192, SRC + 16384, THIRD};
    for (int round = 0; round < ROUNDS(60); round++) {
        bool half = round & 1, suspend = round % 3 == 0;
        unsigned valid = round % 4 == 0 ? 3 : round % 4 == 1 ? 7 : 15;
        uint16_t lengths[4], effective[4];
        uint32_t taken[4];
        data_noise(h);
        for (unsigned i = 0; i < 4; i++) {
            lengths[i] = (uint16_t)(suspend ? 1 + data_below(h, 100) : data_below(h, 100));
            effective[i] = valid >> i & 1 ? lengths[i] : 0;
            put_list(h, lists[i], lengths[i], half);
        }
        reference_merge(h->expect[UB], DST, lists, effective, half, suspend, taken);
        dp_insn insn = merge_insn(h, half, lists, lengths);
        insn.u.vec.flag0 = (uint8_t)valid;
        insn.u.vec.flag1 = suspend;
        assert_null(data_issue(h, &insn));
        data_compare(h, "MrgSort");
        dp_insn get = {.op = DP_OP_GET_MRG_SORT_RESULT};
        assert_null(data_issue(h, &get));
        for (unsigned i = 0; i < 4; i++) {
            assert_int_equal(insn.result >> (16 * i) & 0xffff, taken[i]);
            assert_int_equal(get.result >> (16 * i) & 0xffff, taken[i]);
        }
    }
    for (int round = 0; round < ROUNDS(10); round++) { /* neighbouring groups of four */
        bool half = round & 1;
        uint16_t n = (uint16_t)(4 * (1 + data_below(h, 20))), lengths[4] = {n, n, n, n};
        unsigned repeat = 1 + data_below(h, 4);
        data_noise(h);
        for (unsigned i = 0; i < repeat * 4; i++)
            put_list(h, SRC + i * n * 8u, n, half);
        for (unsigned r = 0; r < repeat; r++) {
            uint32_t taken[4];
            size_t at[4];
            for (unsigned i = 0; i < 4; i++)
                at[i] = SRC + (r * 4 + i) * n * 8u;
            reference_merge(h->expect[UB], DST + r * 4 * n * 8u, at, lengths, half, false, taken);
        }
        const size_t first[4] = {SRC, SRC + n * 8u, SRC + n * 16u, SRC + n * 24u};
        dp_insn insn = merge_insn(h, half, first, lengths);
        insn.repeat = repeat;
        data_run(h, &insn, "MrgSort with repeats");
    }
    uint16_t lengths[4] = {32, 32, 32, 31};
    dp_insn insn = merge_insn(h, true, lists, lengths);
    insn.u.vec.flag0 = 5;
    data_expect_fault(h, &insn, "validBit is 5");
    insn.u.vec.flag0 = 15;
    insn.repeat = 2;
    data_expect_fault(h, &insn, "four lists of equal length");
    lengths[0] = 4096;
    insn = merge_insn(h, true, lists, lengths);
    data_expect_fault(h, &insn, "list 1 has 4096 entries");
    insn = (dp_insn){.op = DP_OP_RP_SORT16, .n_operands = 2};
    data_expect_fault(h, &insn, "first chip generation");
    data_host_free(h);
}

/* --- layouts --- */

static void transposes_tiles(void **state) {
    (void)state;
    data_host *h = data_host_new(26);
    for (int in_place = 0; in_place < 2; in_place++) {
        dp_insn insn = three(h, DP_OP_TRANSPOSE, DP_F16, 2);
        data_noise(h);
        if (in_place)
            insn.operand[0] = insn.operand[1];
        for (size_t r = 0; r < 16; r++)
            for (size_t c = 0; c < 16; c++)
                memcpy(h->expect[UB] + (in_place ? SRC : DST) + (c * 16 + r) * 2,
                       h->before[UB] + SRC + (r * 16 + c) * 2, 2);
        assert_null(data_issue(h, &insn));
        data_compare(h, "Transpose");
    }
    static const unsigned wide[] = {DP_I8, DP_F16, DP_F32};
    for (int round = 0; round < ROUNDS(24); round++) {
        unsigned dtype = wide[round % 3], bytes = dp_dtype_bits(dtype) / 8;
        uint32_t n = 1 + data_below(h, 3), c = 1 + data_below(h, 9),
                 area[2] = {1 + data_below(h, 8), 1 + data_below(h, 8)};
        bool to_nhwc = round & 1;
        size_t hw = area[0] * area[1];
        dp_insn insn = three(h, DP_OP_TRANSPOSE, dtype, 3);
        insn.u.vec.aux[0] = to_nhwc ? 11 : 12;
        insn.u.vec.aux[1] = n, insn.u.vec.aux[2] = c, insn.u.vec.aux[3] = area[0], insn.u.vec.aux[4] = area[1];
        data_noise(h);
        for (size_t b = 0; b < n; b++) {
            for (size_t ch = 0; ch < c; ch++) {
                for (size_t p = 0; p < hw; p++) {
                    size_t nchw = (b * c + ch) * hw + p, nhwc = (b * hw + p) * c + ch;
                    memcpy(h->expect[UB] + DST + (to_nhwc ? nhwc : nchw) * bytes,
                           h->before[UB] + SRC + (to_nhwc ? nchw : nhwc) * bytes, bytes);
                }
            }
        }
        data_run(h, &insn, "Transpose NCHW/NHWC");
    }
    dp_insn insn = three(h, DP_OP_TRANSPOSE, DP_F32, 3);
    insn.u.vec.aux[0] = 3;
    data_expect_fault(h, &insn, "transposeType 3 is not offered");
    insn.u.vec.aux[0] = 11;
    for (unsigned i = 1; i < 5; i++)
        insn.u.vec.aux[i] = 16;
    insn.operand[0].addr = insn.operand[1].addr;
    insn.u.vec.aux[1] = 1;
    data_expect_fault(h, &insn, "overlap");
    data_host_free(h);
}

static void transposes_to_5hd(void **state) {
    (void)state;
    static const unsigned all[] = {DP_U8, DP_F16, DP_I32};
    data_host *h = data_host_new(27);
    for (int round = 0; round < ROUNDS(60); round++) {
        unsigned dtype = all[round % 3], bytes = dp_dtype_bits(dtype) / 8, repeat = data_below(h, 4);
        bool dst_high = data_below(h, 2), src_high = data_below(h, 2);
        dp_row_list rows;
        size_t dst_at[16], src_at[16];
        dp_insn insn = three(h, DP_OP_TRANS_DATA_TO_5HD, dtype, 2);
        data_noise(h);
        for (unsigned i = 0; i < 16; i++) {
            dst_at[i] = DST + i * 1024 + data_below(h, 8) * 32;
            src_at[i] = SRC + (15 - i) * 1024 + data_below(h, 8) * 32;
            rows.dst[i] = data_base(h, UB) + dst_at[i];
            rows.src[i] = data_base(h, UB) + src_at[i];
        }
        insn.repeat = repeat;
        insn.scalar_bits = (uint64_t)(uintptr_t)&rows;
        insn.operand[0].repeat_stride = (uint16_t)(1 + data_below(h, 4));
        insn.operand[1].repeat_stride = (uint16_t)(1 + data_below(h, 4));
        insn.u.vec.flag0 = dst_high, insn.u.vec.flag1 = src_high;
        for (unsigned r = 0; r < repeat; r++) {
            size_t d = r * insn.operand[0].repeat_stride * 32, s = r * insn.operand[1].repeat_stride * 32;
            for (unsigned row = 0; row < 16; row++) {
                if (bytes == 1)
                    for (unsigned j = 0; j < 16; j++)
                        h->expect[UB][dst_at[j] + d + dst_high * 16 + row] =
                            h->before[UB][src_at[row] + s + src_high * 16 + j];
                if (bytes == 2)
                    for (unsigned j = 0; j < 16; j++)
                        memcpy(h->expect[UB] + dst_at[j] + d + row * 2, h->before[UB] + src_at[row] + s + j * 2, 2);
                if (bytes == 4)
                    for (unsigned j = 0; j < 8; j++)
                        memcpy(h->expect[UB] + dst_at[2 * j + (row >= 8)] + d + row % 8 * 4,
                               h->before[UB] + src_at[row] + s + j * 4, 4);
            }
        }
        data_run(h, &insn, "TransDataTo5HD");
    }
    dp_row_list rows = {{0}, {0}};
    dp_insn insn = three(h, DP_OP_TRANS_DATA_TO_5HD, DP_F16, 2);
    insn.repeat = 1;
    insn.scalar_bits = (uint64_t)(uintptr_t)&rows;
    data_expect_fault(h, &insn, "outside this core's UB");
    data_host_free(h);
}

static void broadcasts(void **state) {
    (void)state;
    data_host *h = data_host_new(28);
    for (int round = 0; round < ROUNDS(30); round++) {
        unsigned dtype = types[round % N_TYPES], bytes = dp_dtype_bits(dtype) / 8;
        dp_insn insn = three(h, DP_OP_BRCB, dtype, 2);
        data_noise(h);
        insn.repeat = data_below(h, 10);
        insn.operand[0].block_stride = (uint16_t)(1 + data_below(h, 3));
        insn.operand[0].repeat_stride = (uint16_t)(8 * insn.operand[0].block_stride + data_below(h, 3));
        for (unsigned i = 0; i < insn.repeat * 8; i++)
            for (unsigned b = 0; b < 32; b++)
                h->expect[UB][DST +
                              (i / 8 * insn.operand[0].repeat_stride + i % 8 * insn.operand[0].block_stride) * 32 + b] =
                    h->before[UB][SRC + i * bytes + b % bytes];
        data_run(h, &insn, "Brcb");
    }
    data_host_free(h);
}

static void indices(void **state) {
    (void)state;
    static const unsigned all[] = {DP_F16, DP_I16, DP_F32, DP_I32};
    data_host *h = data_host_new(29);
    for (int round = 0; round < ROUNDS(80); round++) {
        unsigned dtype = all[round % 4], bytes = dp_dtype_bits(dtype) / 8;
        dp_insn insn = three(h, DP_OP_CREATE_VEC_INDEX, dtype, 1);
        data_noise(h);
        mask_form m = random_mask(h, 256 / bytes, &insn);
        unsigned blk = m.kind == DP_MASK_COUNT ? 1 : 1 + data_below(h, 2),
                 rep = blk * 8 + (m.kind == DP_MASK_COUNT ? 0 : data_below(h, 3));
        int first = (int)data_below(h, 500) - 250;
        uint32_t bits = (uint32_t)first;
        if (dtype == DP_F16)
            bits = dp_f16_from_f32((float)first);
        if (dtype == DP_F32)
            bits = dp_f32_bits((float)first);
        insn.scalar_bits = bits;
        insn.operand[0].block_stride = (uint16_t)blk, insn.operand[0].repeat_stride = (uint16_t)rep;
        for (unsigned r = 0; r < m.repeats; r++) {
            for (unsigned i = 0; i < m.per; i++) {
                if (!lane(&m, r, i))
                    continue;
                int value = first + (int)(r * m.per + i);
                uint32_t out = dtype == DP_F16   ? dp_f16_from_f32((float)value)
                               : dtype == DP_F32 ? dp_f32_bits((float)value)
                                                 : (uint32_t)value;
                memcpy(h->expect[UB] + DST + (r * rep + i / (32 / bytes) * blk) * 32 + i % (32 / bytes) * bytes, &out,
                       bytes);
            }
        }
        data_run(h, &insn, "CreateVecIndex");
    }
    dp_insn insn = three(h, DP_OP_CREATE_VEC_INDEX, DP_U16, 1);
    data_expect_fault(h, &insn, "half, float, int16_t or int32_t");
    insn = three(h, DP_OP_VECTOR_PADDING, DP_F16, 2);
    data_expect_fault(h, &insn, "does not have this instruction");
    data_host_free(h);
}

static void interpolates(void **state) {
    (void)state;
    data_host *h = data_host_new(30);
    for (int round = 0; round < ROUNDS(40); round++) {
        unsigned hr = 1 + data_below(h, 3), vr = 1 + data_below(h, 3), per_block = data_below(h, 2),
                 blk = 1 + data_below(h, 2);
        dp_insn insn = three(h, DP_OP_BILINEAR, DP_F16, 4);
        data_noise(h);
        for (size_t i = 0; i < 16384; i++) {
            uint16_t value = dp_f16_from_f32(((float)data_below(h, 400) - 200) / 16);
            set(h, SRC + i * 2, &value, 2);
            if (i < 256)
                set(h, FOURTH + i * 2, &value, 2);
        }
        for (unsigned i = 0; i < hr * vr * 8; i++)
            set_u32(h, THIRD + i * 4, data_below(h, 1000) * 32);
        mask_form m = random_mask(h, 128, &insn);
        if (m.kind == DP_MASK_COUNT) {
            insn.mask_kind = m.kind = DP_MASK_LEADING;
            insn.mask[0] = m.count = 1 + m.count % 128;
        }
        unsigned v_offset = 128 * (blk + 1);
        insn.operand[0].block_stride = (uint16_t)blk;
        insn.u.vec.aux[0] = hr, insn.u.vec.aux[1] = per_block, insn.u.vec.aux[2] = v_offset, insn.u.vec.aux[3] = vr;
        for (unsigned v = 0; v < vr; v++) {
            for (unsigned i = 0; i < 128; i++) {
                if (!lane(&m, 0, i))
                    continue;
                uint16_t sum = 0;
                for (unsigned k = 0; k < hr; k++) {
                    unsigned it = v * hr + k;
                    uint16_t w, x;
                    memcpy(&w, h->before[UB] + FOURTH + (per_block ? it * 8 + i / 16 : it) * 2, 2);
                    memcpy(&x, h->before[UB] + SRC + get_u32(h->before[UB], THIRD + (it * 8 + i / 16) * 4) + i % 16 * 2,
                           2);
                    uint16_t product = dp_f16_from_f32(dp_f32_from_f16(w) * dp_f32_from_f16(x));
                    sum = k ? dp_f16_from_f32(dp_f32_from_f16(sum) + dp_f32_from_f16(product)) : product;
                }
                memcpy(h->expect[UB] + DST + v * v_offset * 2 + i / 16 * blk * 32 + i % 16 * 2, &sum, 2);
            }
        }
        data_run(h, &insn, "BilinearInterpolation");
    }
    data_host_free(h);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gathers),           cmocka_unit_test(gathers_blocks), cmocka_unit_test(gathers_by_mask),
        cmocka_unit_test(sorts_groups),      cmocka_unit_test(merges_lists),   cmocka_unit_test(transposes_tiles),
        cmocka_unit_test(transposes_to_5hd), cmocka_unit_test(broadcasts),     cmocka_unit_test(indices),
        cmocka_unit_test(interpolates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
