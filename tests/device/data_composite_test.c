/* Calls of several instructions: slice copies, full sorts, extraction, InitOutput, DataCopyPad to NZ. */
#include "data_host.h"
#include "doppel/data_rt.h"

enum { UB = DP_SPACE_UB, GM = DP_SPACE_GM };

/* Runs `call` with faults caught; the sentence of a fault, or NULL. */
typedef struct slice_call {
    dp_operand dst, src;
    const dp_slice *to, *from;
    uint32_t dims;
} slice_call;

static const char *call_slices(data_host *h, const slice_call *c) {
    h->sentence[0] = '\0';
    if (setjmp(h->escape))
        return h->sentence;
    dp_copy_slices(c->dst, c->src, c->to, c->from, c->dims, DP_HERE);
    return NULL;
}

static const char *quietly(data_host *h, const slice_call *c) {
    int keep = dup(2), null = open("/dev/null", O_WRONLY);
    dup2(null, 2);
    const char *sentence = call_slices(h, c);
    dup2(keep, 2);
    close(keep);
    close(null);
    return sentence ? sentence : "no fault";
}

/* The example of the public documentation: rows 0 and 2, columns 16..39 and 47..70 of [3, 87] become [2, 48]. */
static void slices(void **state) {
    (void)state;
    data_host *h = data_host_new(41);
    static const dp_slice from[] = {{16, 70, 7, 3, 87}, {0, 2, 1, 1, 3}}, to[] = {{0, 47, 0, 3, 48}, {0, 1, 0, 1, 2}};
    data_noise(h);
    for (size_t r = 0; r < 2; r++)
        for (size_t c = 0; c < 48; c++)
            memcpy(h->expect[UB] + 640 + (r * 48 + c) * 4,
                   h->before[GM] + 4 + (r * 2 * 87 + 16 + c + (c >= 24 ? 7 : 0)) * 4, 4);
    slice_call c = {data_operand(h, UB, 640, DP_F32), data_operand(h, GM, 4, DP_F32), to, from, 2};
    assert_null(call_slices(h, &c));
    data_compare(h, "slice in");
    /* and back to where it came from, three dimensions with a third of one step */
    static const dp_slice from3[] = {{0, 47, 0, 3, 48}, {0, 1, 0, 1, 2}, {0, 0, 0, 1, 1}},
                          to3[] = {{16, 70, 7, 3, 87}, {0, 2, 1, 1, 3}, {1, 1, 0, 1, 2}};
    for (size_t r = 0; r < 2; r++)
        for (size_t col = 0; col < 48; col++)
            memcpy(h->expect[GM] + 4 + (3 * 87 + r * 2 * 87 + 16 + col + (col >= 24 ? 7 : 0)) * 4,
                   h->expect[UB] + 640 + (r * 48 + col) * 4, 4);
    slice_call back = {c.src, c.dst, to3, from3, 3};
    assert_null(call_slices(h, &back));
    data_compare(h, "slice out");

    back.dims = 9;
    assert_non_null(strstr(quietly(h, &back), "dimValue is 9"));
    static const dp_slice wrong_rows[] = {{0, 47, 0, 3, 48}, {0, 2, 0, 1, 3}},
                          wrong_burst[] = {{0, 47, 0, 6, 48}, {0, 1, 0, 1, 2}};
    c.to = wrong_rows;
    assert_non_null(
        strstr(quietly(h, &c), "dimension 1 has 3 steps in the destination slice and 2 in the source slice"));
    c.to = wrong_burst;
    assert_non_null(strstr(quietly(h, &c), "burstLen is 6 blocks for the destination and 3"));
    data_host_free(h);
}

static int by_score_then_position(const void *a, const void *b) {
    const uint32_t *x = a, *y = b;
    float fx = dp_f32_from_bits(x[0]), fy = dp_f32_from_bits(y[0]);
    return fx < fy ? 1 : fx > fy ? -1 : x[1] < y[1] ? -1 : 1;
}

static void full_sorts(void **state) {
    (void)state;
    data_host *h = data_host_new(42);
    static const uint32_t repeats[] = {0, 1, 2, 3, 4, 5, 7, 16, 17, 21, 64, 65, 100, 255};
    for (size_t k = 0; k < sizeof repeats / sizeof *repeats; k++) {
        for (int half = 0; half < 2; half++) {
            uint32_t repeat = repeats[k], n = repeat * 32;
            size_t bytes = half ? 2 : 4, entries = 0, scores = 65536, indices = 98304, tmp = 131072 - 256;
            if (n > 255 * 32 / 8 * 7 + 1000) /* the four tensors must fit */
                scores = 66560, indices = 131072 - 32768 + 1024, tmp = 131072;
            data_noise(h);
            uint32_t(*reference)[2] = calloc(n + 1, sizeof *reference);
            for (uint32_t i = 0; i < n; i++) {
                float f = (float)(int)data_below(h, repeat * 20) - 100; /* many ties */
                uint16_t as_half = dp_f16_from_f32(f);
                uint32_t bits = half ? dp_f32_bits(dp_f32_from_f16(as_half)) : dp_f32_bits(f);
                reference[i][0] = bits, reference[i][1] = i;
                memcpy(data_base(h, UB) + scores + i * bytes, half ? (void *)&as_half : (void *)&bits, bytes);
                memcpy(data_base(h, UB) + indices + i * 4, &i, 4);
            }
            qsort(reference, n, sizeof *reference, by_score_then_position);
            unsigned dtype = half ? DP_F16 : DP_F32;
            dp_sort_entries(data_operand(h, UB, entries, dtype), data_operand(h, UB, scores, dtype),
                            data_operand(h, UB, indices, DP_U32), data_operand(h, UB, tmp, dtype), repeat, true,
                            DP_HERE);
            for (uint32_t i = 0; i < n; i++) {
                uint32_t got[2];
                memcpy(got, data_base(h, UB) + i * 8, 8);
                if (got[1] != reference[i][1])
                    fail_msg("%u groups of %s: entry %u has index %u, expected %u", repeat, half ? "half" : "float", i,
                             got[1], reference[i][1]);
            }
            dp_extract_entries(data_operand(h, UB, scores, dtype), data_operand(h, UB, indices, DP_U32),
                               data_operand(h, UB, entries, dtype), repeat, DP_HERE);
            for (uint32_t i = 0; i < n; i++) {
                uint16_t as_half = dp_f16_from_f32(dp_f32_from_bits(reference[i][0]));
                assert_memory_equal(data_base(h, UB) + scores + i * bytes,
                                    half ? (void *)&as_half : (void *)&reference[i][0], bytes);
                assert_memory_equal(data_base(h, UB) + indices + i * 4, &reference[i][1], 4);
            }
            free(reference);
        }
    }
    data_host_free(h);
}

static void fills_device_memory(void **state) {
    (void)state;
    data_host *h = data_host_new(43);
    static const uint64_t counts[] = {0, 1, 15, 2048, 4096, 4097, 20000};
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
        for (int half = 0; half < 2; half++) {
            size_t bytes = half ? 2 : 4;
            uint32_t value = half ? 0x3c00 : 0x12345678;
            data_noise(h);
            for (uint64_t i = 0; i < counts[k]; i++)
                memcpy(h->expect[GM] + 8 + i * bytes, &value, bytes);
            dp_init_output(data_operand(h, GM, 8, half ? DP_F16 : DP_I32), counts[k], value, DP_HERE);
            assert_memory_equal(h->gm, h->expect[GM], DATA_GM_BYTES);
            size_t own = h->core->chip->ub_reserved_offset; /* only the library's part of UB may change */
            assert_memory_equal(data_base(h, UB), h->expect[UB], own);
        }
    }
    data_host_free(h);
}

static void pads_to_nz(void **state) {
    (void)state;
    data_host *h = data_host_new(44);
    data_noise(h);
    /* 10 rows of 20 halves, packed; UB rows take 64 bytes and have a gap of 32 */
    for (size_t r = 0; r < 10; r++)
        for (size_t c = 0; c < 32; c++) {
            uint16_t zero = 0;
            memcpy(h->expect[DP_SPACE_L1] + 512 + c / 16 * 12 * 32 + r * 32 + c % 16 * 2,
                   c < 20 ? h->before[UB] + 256 + r * 96 + c * 2 : (void *)&zero, 2);
        }
    dp_copy_params copy = {.block_count = 10, .block_bytes = 40, .src_gap_bytes = 32, .pad_form = 1};
    dp_nd2nz_params matrix = {.nd_num = 1, .n = 10, .d = 20, .src_d = 20, .dst_c0_stride = 12, .dst_n_stride = 1};
    dp_copy_pad_nd2nz(data_operand(h, DP_SPACE_L1, 512, DP_F16), data_operand(h, UB, 256, DP_F16), &copy, &matrix,
                      DP_HERE);
    data_compare(h, "DataCopyPad to NZ");
    data_host_free(h);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slices),
        cmocka_unit_test(full_sorts),
        cmocka_unit_test(fills_device_memory),
        cmocka_unit_test(pads_to_nz),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
