/* DataCopy, DataCopyPad, Nd2Nz, Nz2Nd, InitConstValue against byte-by-byte references. */
#include "data_host.h"

static const unsigned plain_types[] = {DP_I8,  DP_U8,  DP_I16, DP_U16, DP_F16, DP_BF16,
                                       DP_I32, DP_U32, DP_F32, DP_I64, DP_F64, DP_I4};
enum { N_TYPES = sizeof plain_types / sizeof *plain_types };

static dp_insn copy_insn(unsigned op) {
    dp_insn insn = {.op = (uint16_t)op, .n_operands = 2};
    return insn;
}

/* Largest offset for `bytes` in the space, cut down to `align`. */
static size_t place(data_host *h, unsigned space, size_t bytes, size_t align) {
    size_t room = data_bytes(h, space) - bytes;
    return data_below(h, (uint32_t)(room / align) + 1) * align;
}

static void plain_copies(void **state) {
    (void)state;
    static const uint8_t paths[][2] = {{DP_SPACE_UB, DP_SPACE_GM}, {DP_SPACE_L1, DP_SPACE_GM},
                                       {DP_SPACE_GM, DP_SPACE_UB}, {DP_SPACE_GM, DP_SPACE_L1},
                                       {DP_SPACE_L1, DP_SPACE_UB}, {DP_SPACE_UB, DP_SPACE_UB}};
    data_host *h = data_host_new(1);
    for (int round = 0; round < ROUNDS(120); round++) {
        unsigned dtype = plain_types[data_below(h, N_TYPES)];
        unsigned dst = paths[round % 6][0], src = paths[round % 6][1];
        size_t element = dp_dtype_bits(dtype) < 8 ? 1 : dp_dtype_bits(dtype) / 8;
        size_t count = 1 + data_below(h, round % 3 ? 9 : 1), run = data_below(h, 40) * 32;
        size_t src_gap = data_below(h, 4) * 32 * (round % 2), dst_gap = data_below(h, 4) * 32 * (round % 4 == 1);
        size_t src_bytes = (count - 1) * (run + src_gap) + run, dst_bytes = (count - 1) * (run + dst_gap) + run;
        data_noise(h);
        size_t half = src == dst ? data_bytes(h, dst) / 2 : 0; /* UB to UB: halves, so that they never overlap */
        size_t d = half ? half + data_below(h, 100) * 32 : place(h, dst, dst_bytes, dst == DP_SPACE_GM ? element : 32);
        size_t s = half ? data_below(h, 100) * 32 : place(h, src, src_bytes, src == DP_SPACE_GM ? element : 32);
        for (size_t i = 0; i < count; i++)
            for (size_t b = 0; b < run; b++)
                h->expect[dst][d + i * (run + dst_gap) + b] = h->before[src][s + i * (run + src_gap) + b];
        dp_insn insn = copy_insn(DP_OP_DATA_COPY);
        insn.operand[0] = data_operand(h, dst, d, dtype);
        insn.operand[1] = data_operand(h, src, s, dtype);
        size_t tail = dtype == DP_I8 ? data_below(h, 32) : 0; /* less than a block: cut */
        insn.u.copy = (dp_copy_params){.block_count = (uint32_t)count,
                                       .block_bytes = (uint32_t)(run + tail),
                                       .src_gap_bytes = (int64_t)(src_gap),
                                       .dst_gap_bytes = (int64_t)(dst_gap)};
        if (tail && count > 1)
            insn.u.copy.block_bytes = (uint32_t)run;
        data_run(h, &insn, "plain copy");
    }
    data_host_free(h);
}

static void overlapping_copy_reads_first(void **state) {
    (void)state;
    data_host *h = data_host_new(2);
    for (int shift = -3; shift <= 3; shift++) {
        data_noise(h);
        size_t s = 4096, d = (size_t)(4096 + shift * 32);
        for (size_t b = 0; b < 512; b++)
            h->expect[DP_SPACE_UB][d + b] = h->before[DP_SPACE_UB][s + b];
        dp_insn insn = copy_insn(DP_OP_DATA_COPY);
        insn.operand[0] = data_operand(h, DP_SPACE_UB, d, DP_F32);
        insn.operand[1] = data_operand(h, DP_SPACE_UB, s, DP_F32);
        insn.u.copy = (dp_copy_params){.block_count = 1, .block_bytes = 512};
        assert_null(data_issue(h, &insn));
        data_compare(h, "overlapping copy");
    }
    data_host_free(h);
}

static void pad_in(void **state) {
    (void)state;
    static const unsigned types[] = {DP_I8, DP_U16, DP_F16, DP_F32, DP_I32, DP_I64};
    data_host *h = data_host_new(3);
    for (int round = 0; round < ROUNDS(200); round++) {
        unsigned dtype = types[round % 6];
        size_t element = dp_dtype_bits(dtype) / 8, most = 32 / element;
        size_t count = 1 + data_below(h, 7), run = (1 + data_below(h, 150)) * element;
        bool pad = round & 1, sides = round % 3;
        size_t left = sides ? data_below(h, (uint32_t)most + 1) : 0,
               right = sides ? data_below(h, (uint32_t)most + 1) : 0;
        size_t src_gap = data_below(h, 3) * 7, dst_gap = data_below(h, 3) * 32;
        size_t row = (left * element + run + right * element + 31) / 32 * 32;
        uint64_t value = element == 8 ? 0 : data_random(h), in_register = data_random(h);
        data_noise(h);
        size_t s = place(h, DP_SPACE_GM, count * (run + src_gap), 1);
        size_t d = place(h, DP_SPACE_UB, count * (row + dst_gap), 32);
        uint8_t *e = h->expect[DP_SPACE_UB];
        const uint8_t *from = h->before[DP_SPACE_GM];
        for (size_t i = 0; i < count; i++) {
            size_t r = d + i * (row + dst_gap);
            for (size_t b = 0; b < row; b++) {
                const uint8_t *fill =
                    left || right ? (const uint8_t *)(pad ? &value : &in_register) : from + s + i * (run + src_gap);
                bool data = b >= left * element && b < left * element + run;
                e[r + b] = data ? from[s + i * (run + src_gap) + b - left * element] : fill[b % element];
            }
        }
        h->core->pad_value = in_register;
        dp_insn insn = copy_insn(DP_OP_DATA_COPY_PAD);
        insn.operand[0] = data_operand(h, DP_SPACE_UB, d, dtype);
        insn.operand[1] = data_operand(h, DP_SPACE_GM, s, dtype);
        insn.u.copy = (dp_copy_params){.block_count = (uint32_t)count,
                                       .block_bytes = (uint32_t)run,
                                       .src_gap_bytes = (int64_t)src_gap,
                                       .dst_gap_bytes = (int64_t)dst_gap,
                                       .is_pad = pad,
                                       .left_pad = (uint8_t)left,
                                       .right_pad = (uint8_t)right,
                                       .pad_form = 1,
                                       .pad_value = value};
        data_run(h, &insn, "pad in");
    }
    data_host_free(h);
}

static void pad_out(void **state) {
    (void)state;
    data_host *h = data_host_new(4);
    for (int round = 0; round < ROUNDS(100); round++) {
        size_t count = 1 + data_below(h, 7), run = 1 + data_below(h, 300);
        size_t src_gap = data_below(h, 3) * 32, dst_gap = data_below(h, 3) * 5;
        size_t row = (run + 31) / 32 * 32;
        data_noise(h);
        size_t s = place(h, DP_SPACE_UB, count * (row + src_gap), 32);
        size_t d = place(h, DP_SPACE_GM, count * (run + dst_gap), 1);
        for (size_t i = 0; i < count; i++)
            for (size_t b = 0; b < run; b++)
                h->expect[DP_SPACE_GM][d + i * (run + dst_gap) + b] =
                    h->before[DP_SPACE_UB][s + i * (row + src_gap) + b];
        dp_insn insn = copy_insn(DP_OP_DATA_COPY_PAD);
        insn.operand[0] = data_operand(h, DP_SPACE_GM, d, DP_U8);
        insn.operand[1] = data_operand(h, DP_SPACE_UB, s, DP_U8);
        insn.u.copy = (dp_copy_params){.block_count = (uint32_t)count,
                                       .block_bytes = (uint32_t)run,
                                       .pad_form = 1,
                                       .src_gap_bytes = (int64_t)src_gap,
                                       .dst_gap_bytes = (int64_t)dst_gap};
        data_run(h, &insn, "pad out");
    }
    data_host_free(h);
}

static int32_t combine_i32(unsigned op, int32_t a, int32_t b) {
    return op == 1 ? (int32_t)((uint32_t)a + (uint32_t)b) : op == 2 ? (a > b ? a : b) : (a < b ? a : b);
}
static float combine_f32(unsigned op, float a, float b) {
    return op == 1 ? a + b : op == 2 ? (a > b ? a : b) : (a < b ? a : b);
}

static void atomic_writes(void **state) {
    (void)state;
    data_host *h = data_host_new(5);
    for (unsigned round = 0; round < ROUNDS(24); round++) {
        unsigned op = 1 + round % 3, dtype = round % 2 ? DP_I32 : DP_F32;
        size_t n = 8 * (1 + data_below(h, 20)), rows = 1 + round % 4, gap = 32 * (round % 3);
        data_noise(h);
        for (size_t i = 0; i < data_bytes(h, DP_SPACE_GM) / 4 && dtype == DP_F32; i++) { /* plain numbers */
            float f = (float)((int)data_below(h, 2000) - 1000) / 8;
            memcpy(h->gm + i * 4, &f, 4);
        }
        for (size_t i = 0; i < 4096 && dtype == DP_F32; i++) {
            float f = (float)((int)data_below(h, 2000) - 1000) / 16;
            memcpy(data_base(h, DP_SPACE_UB) + i * 4, &f, 4);
        }
        for (unsigned i = 0; i < DATA_SPACES; i++) {
            memcpy(h->expect[data_space[i]], data_base(h, data_space[i]), data_bytes(h, data_space[i]));
            memcpy(h->before[data_space[i]], data_base(h, data_space[i]), data_bytes(h, data_space[i]));
        }
        size_t d = 4 * data_below(h, 1000);
        for (size_t r = 0; r < rows; r++) {
            for (size_t i = 0; i < n; i++) {
                uint8_t *at = h->expect[DP_SPACE_GM] + d + r * (n * 4 + gap) + i * 4;
                const uint8_t *from = h->before[DP_SPACE_UB] + r * n * 4 + i * 4;
                if (dtype == DP_I32) {
                    int32_t a, b;
                    memcpy(&a, at, 4), memcpy(&b, from, 4);
                    a = combine_i32(op, a, b);
                    memcpy(at, &a, 4);
                } else {
                    float a, b;
                    memcpy(&a, at, 4), memcpy(&b, from, 4);
                    a = combine_f32(op, a, b);
                    memcpy(at, &a, 4);
                }
            }
        }
        h->core->atomic_op = (uint8_t)op;
        h->core->atomic_dtype = (uint8_t)dtype;
        dp_insn insn = copy_insn(DP_OP_DATA_COPY);
        insn.operand[0] = data_operand(h, DP_SPACE_GM, d, dtype);
        insn.operand[1] = data_operand(h, DP_SPACE_UB, 0, dtype);
        insn.u.copy = (dp_copy_params){
            .block_count = (uint32_t)rows, .block_bytes = (uint32_t)n * 4, .dst_gap_bytes = (int64_t)gap};
        data_run(h, &insn, "atomic copy");
        /* the mode does not touch copies into the core */
        insn.operand[1] = data_operand(h, DP_SPACE_GM, 0, dtype);
        insn.operand[0] = data_operand(h, DP_SPACE_UB, 0, dtype);
        assert_null(data_issue(h, &insn));
        assert_memory_equal(data_base(h, DP_SPACE_UB), h->gm, n * 4);
        h->core->atomic_op = 0;
    }
    data_host_free(h);
}

static void nd_to_nz(void **state) {
    (void)state;
    static const unsigned types[] = {DP_I8, DP_F16, DP_F32, DP_I4};
    data_host *h = data_host_new(6);
    for (int round = 0; round < ROUNDS(60); round++) {
        unsigned dtype = types[round % 4], bits = dp_dtype_bits(dtype), even = dtype == DP_I4 ? 2 : 1;
        size_t c0 = 256 / bits;
        uint32_t nd = 1 + data_below(h, 3), n = 1 + data_below(h, 20), d = (1 + data_below(h, 60)) * even;
        uint32_t src_d = d + even * data_below(h, 5), src_m = src_d * n + even * data_below(h, 9);
        uint32_t groups = (uint32_t)((d + c0 - 1) / c0), n_stride = 1 + data_below(h, 2),
                 c0_stride = n * n_stride + data_below(h, 3);
        uint32_t dst_m = (uint32_t)(c0_stride * groups * c0);
        unsigned space = round % 2 ? DP_SPACE_GM : DP_SPACE_UB;
        data_noise(h);
        size_t s = place(h, space, (size_t)nd * src_m * bits / 8 + 64, space == DP_SPACE_GM ? 1 : 32);
        size_t to = place(h, DP_SPACE_L1, (size_t)nd * dst_m * bits / 8 + 64, 32);
        for (uint32_t i = 0; i < nd; i++) {
            for (uint32_t r = 0; r < n; r++) {
                for (size_t col = 0; col < groups * c0; col += even) { /* a byte at least */
                    size_t at = to + i * dst_m * bits / 8 + col / c0 * c0_stride * 32 + (size_t)r * n_stride * 32 +
                                col % c0 * bits / 8;
                    size_t from = s + ((size_t)i * src_m + (size_t)r * src_d + col) * bits / 8;
                    for (size_t b = 0; b < (bits < 8 ? 1 : bits / 8); b++)
                        h->expect[DP_SPACE_L1][at + b] = col < d ? h->before[space][from + b] : 0;
                }
            }
        }
        dp_insn insn = copy_insn(DP_OP_DATA_COPY_ND2NZ);
        insn.operand[0] = data_operand(h, DP_SPACE_L1, to, dtype);
        insn.operand[1] = data_operand(h, space, s, dtype);
        insn.u.nd2nz = (dp_nd2nz_params){nd, n, d, src_m, src_d, c0_stride, n_stride, dst_m};
        data_run(h, &insn, "nd to nz");
    }
    data_host_free(h);
}

static void nz_to_nd(void **state) {
    (void)state;
    data_host *h = data_host_new(7);
    for (int round = 0; round < ROUNDS(40); round++) {
        unsigned dtype = round % 2 ? DP_F16 : DP_I32;
        size_t size = dp_dtype_bits(dtype) / 8;
        uint32_t nd = 1 + data_below(h, 3), n = 1 + data_below(h, 30), d = 16 * (1 + data_below(h, 4));
        uint32_t src_n = n + data_below(h, 4), src_m = (src_n * 16 * (d / 16) + 255) / 256,
                 dst_d = d + data_below(h, 7);
        uint32_t dst_m = dst_d * n + data_below(h, 5);
        data_noise(h);
        size_t s = place(h, DP_SPACE_UB, nd * src_m * 256 * size + 64, 32),
               to = place(h, DP_SPACE_GM, nd * dst_m * size + 64, size);
        for (uint32_t i = 0; i < nd; i++)
            for (uint32_t r = 0; r < n; r++)
                for (uint32_t col = 0; col < d; col++)
                    memcpy(h->expect[DP_SPACE_GM] + to + ((size_t)i * dst_m + (size_t)r * dst_d + col) * size,
                           h->before[DP_SPACE_UB] + s +
                               ((size_t)i * src_m * 256 + col / 16 * src_n * 16 + r * 16 + col % 16) * size,
                           size);
        dp_insn insn = copy_insn(DP_OP_DATA_COPY_NZ2ND);
        insn.operand[0] = data_operand(h, DP_SPACE_GM, to, dtype);
        insn.operand[1] = data_operand(h, DP_SPACE_UB, s, dtype);
        insn.u.nz2nd = (dp_nz2nd_params){nd, n, d, src_m, src_n, dst_d, dst_m};
        data_run(h, &insn, "nz to nd");
    }
    data_host_free(h);
}

static void fills_l1(void **state) {
    (void)state;
    data_host *h = data_host_new(8);
    data_noise(h);
    for (size_t i = 0; i < 3; i++)
        for (size_t b = 0; b < 4 * 32; b++)
            h->expect[DP_SPACE_L1][640 + i * 6 * 32 + b] = b % 2 ? 0x12 : 0x34;
    dp_insn insn = {.op = DP_OP_INIT_CONST, .n_operands = 1, .scalar_bits = 0x1234};
    insn.operand[0] = data_operand(h, DP_SPACE_L1, 640, DP_F16);
    insn.u.copy = (dp_copy_params){.block_count = 3, .block_bytes = 128, .dst_gap_bytes = 64};
    data_run(h, &insn, "InitConstValue");
    data_host_free(h);
}

static void scalar_accesses(void **state) {
    (void)state;
    data_host *h = data_host_new(9);
    data_noise(h);
    for (unsigned i = 0; i < N_TYPES; i++) {
        unsigned bits = dp_dtype_bits(plain_types[i]), bytes = bits < 8 ? 1 : bits / 8, high = i & 1;
        size_t at = 64 * (i + 1);
        uint64_t value = data_random(h), got = 0;
        dp_insn insn = {.op = DP_OP_SCALAR_STORE, .n_operands = 1, .scalar_bits = value};
        insn.operand[0] = data_operand(h, i % 2 ? DP_SPACE_UB : DP_SPACE_GM, at, plain_types[i]);
        insn.u.vec.flag0 = (uint8_t)high;
        uint8_t *e = h->expect[insn.operand[0].space] + at;
        if (bits == 4)
            *e = (uint8_t)(high ? (*e & 0x0f) | (value & 0xf) << 4 : (*e & 0xf0) | (value & 0xf));
        else
            memcpy(e, &value, bytes);
        assert_null(data_issue(h, &insn));
        data_compare(h, "SetValue");
        dp_insn load = {.op = DP_OP_SCALAR_LOAD, .n_operands = 2};
        load.operand[1] = insn.operand[0];
        load.u.vec.flag0 = (uint8_t)high;
        assert_null(data_issue(h, &load));
        memcpy(&got, &value, bytes);
        assert_int_equal(load.result, bits == 4 ? value & 0xf : got);
    }
    dp_insn dcci = {.op = DP_OP_DCCI, .n_operands = 1};
    dcci.operand[0] = data_operand(h, DP_SPACE_GM, 0, DP_F32);
    assert_null(data_issue(h, &dcci));
    data_compare(h, "DataCacheCleanAndInvalid");
    data_host_free(h);
}

/* Programs read whole blocks out of small allocations; the vendor's allocator leaves room for it, the checker still objects. */
static void padding_is_there_unless_bounds_are_exact(void **state) {
    (void)state;
    static const dp_observer strict = {.name = "strict", .exact_bounds = true};
    uint8_t *small = aligned_alloc(64, 64);
    assert_non_null(small);
    memset(small, 7, 64);
    assert_int_equal(dp_gm_add(small, 12, 0, NULL), DP_OK);
    assert_int_equal(dp_gm_set_padding(small, 64), DP_OK);
    data_host *h = data_host_new(10);
    dp_insn insn = copy_insn(DP_OP_DATA_COPY);
    insn.operand[0] = data_operand(h, DP_SPACE_UB, 0, DP_F32);
    insn.operand[1] = data_operand(h, DP_SPACE_GM, 0, DP_F32);
    insn.operand[1].addr = small;
    insn.operand[1].size_bytes = 0;
    insn.u.copy = (dp_copy_params){.block_count = 1, .block_bytes = 32};
    assert_null(data_issue(h, &insn));
    insn.u.copy.block_bytes = 96;
    data_expect_fault(h, &insn, "past its end");
    data_host_free(h);
    dp_observer_install(&strict);
    h = data_host_new(10);
    insn.operand[0] = data_operand(h, DP_SPACE_UB, 0, DP_F32);
    insn.u.copy.block_bytes = 32;
    data_expect_fault(h, &insn, "20 bytes past its end");
    data_host_free(h);
    dp_observer_install(NULL);
    assert_int_equal(dp_gm_remove(small), DP_OK);
    free(small);
}

static void refused_copies(void **state) {
    (void)state;
    data_host *h = data_host_new(10);
    data_noise(h);
    dp_insn good = copy_insn(DP_OP_DATA_COPY), insn;
    good.operand[0] = data_operand(h, DP_SPACE_UB, 0, DP_F32);
    good.operand[1] = data_operand(h, DP_SPACE_GM, 0, DP_F32);
    good.u.copy = (dp_copy_params){.block_count = 2, .block_bytes = 64};
    assert_null(data_issue(h, &good));
    memcpy(h->expect[DP_SPACE_UB], h->gm, 128);

    insn = good;
    insn.operand[1].addr = h->gm + DATA_GM_BYTES - 112;
    data_expect_fault(h, &insn, "16 bytes past its end");
    insn.operand[1].addr = h->gm + DATA_GM_BYTES + 16;
    data_expect_fault(h, &insn, "starts 16 bytes past the end of a device allocation of 98304 bytes");
    uint8_t outside[256];
    insn.operand[1].addr = (uint8_t *)(((uintptr_t)outside + 3) & ~(uintptr_t)3);
    data_expect_fault(h, &insn, "not in device memory");
    insn.operand[1].addr = h->gm + 2;
    data_expect_fault(h, &insn, "not a multiple of 4");
    insn = good;
    insn.operand[0].addr = data_base(h, DP_SPACE_UB) + 16;
    data_expect_fault(h, &insn, "not a multiple of 32 bytes");
    insn.operand[0].addr = data_base(h, DP_SPACE_UB) + data_bytes(h, DP_SPACE_UB) - 96;
    data_expect_fault(h, &insn, "32 bytes past the end of UB");
    insn = good;
    insn.operand[0].size_bytes = 96;
    data_expect_fault(h, &insn, "its tensor has only 96 bytes");
    insn = good;
    insn.u.copy.block_count = 4096;
    data_expect_fault(h, &insn, "blockCount is 4096");
    insn = good;
    insn.u.copy.src_gap_bytes = -64;
    data_expect_fault(h, &insn, "gaps between runs");
    insn = good;
    insn.operand[1].space = DP_SPACE_L0C;
    data_expect_fault(h, &insn, "no path from L0C to UB");
    insn.operand[1].space = 77;
    data_expect_fault(h, &insn, "no path");

    dp_insn pad = good;
    pad.op = DP_OP_DATA_COPY_PAD;
    pad.u.copy.pad_form = 1;
    insn = pad;
    insn.u.copy.left_pad = 9;
    data_expect_fault(h, &insn, "at most 32 bytes");
    insn = pad;
    insn.u.copy.block_bytes = 30;
    data_expect_fault(h, &insn, "multiple of the element size 4");
    insn.u.copy.block_bytes = 2097152;
    data_expect_fault(h, &insn, "at most 2097151");
    insn = pad;
    insn.operand[0].dtype = insn.operand[1].dtype = DP_I64;
    insn.u.copy.is_pad = insn.u.copy.left_pad = 1;
    insn.u.copy.pad_value = 5;
    data_expect_fault(h, &insn, "must be 0 for 8-byte types");

    insn = copy_insn(DP_OP_SCALAR_LOAD);
    insn.operand[1] = data_operand(h, DP_SPACE_GM, DATA_GM_BYTES, DP_I32);
    data_expect_fault(h, &insn, "GetValue");
    data_compare(h, "after refused copies");
    data_host_free(h);
}

static void copies_nothing(void **state) {
    (void)state;
    data_host *h = data_host_new(11);
    for (unsigned i = 0; i < 3; i++) {
        data_noise(h);
        dp_insn insn = copy_insn(i == 2 ? DP_OP_DATA_COPY_PAD : DP_OP_DATA_COPY);
        insn.operand[0] = data_operand(h, DP_SPACE_UB, 0, DP_F32);
        insn.operand[1] = data_operand(h, DP_SPACE_GM, 0, DP_F32);
        insn.u.copy = (dp_copy_params){.block_count = i != 1,
                                       .block_bytes = i == 1   ? 64
                                                      : i == 0 ? 31
                                                               : 0,
                                       .pad_form = i == 2};
        data_run(h, &insn, "copy of nothing");
    }
    data_host_free(h);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_copies),     cmocka_unit_test(overlapping_copy_reads_first),
        cmocka_unit_test(pad_in),           cmocka_unit_test(pad_out),
        cmocka_unit_test(atomic_writes),    cmocka_unit_test(nd_to_nz),
        cmocka_unit_test(nz_to_nd),         cmocka_unit_test(fills_l1),
        cmocka_unit_test(scalar_accesses),  cmocka_unit_test(padding_is_there_unless_bounds_are_exact),
        cmocka_unit_test(refused_copies),
        cmocka_unit_test(copies_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
