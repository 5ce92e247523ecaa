/* The other forms of attention: packed sequences, all entry points, pages and lists of tensors. */
#include "attention_problem.h"

#include <math.h>
#include <string.h>

/* Sequences of different lengths one after the other. */
static problem packed_problem(unsigned c) {
    problem p = {.b = 1 + (int64_t)(c % 4),
                 .n = 4,
                 .nkv = 2,
                 .d = 24,
                 .dv = 16,
                 .type = attention_types[c % 3],
                 .pre = 7,
                 .next = 5,
                 .layout = "TND",
                 .out_layout = "TND",
                 .packed = true,
                 .has_q_lengths = true,
                 .has_k_lengths = true};
    if (c % 5 == 4)
        strcpy(p.layout, "NTD");
    for (int64_t b = 0; b < p.b; b++) {
        p.q_lengths[b] = (int64_t)(random_bits() % 40);
        p.k_lengths[b] = (int64_t)(random_bits() % 90);
        if (b) {
            p.q_first[b] = p.q_first[b - 1] + p.q_lengths[b - 1];
            p.k_first[b] = p.k_first[b - 1] + p.k_lengths[b - 1];
        }
        p.sq = p.q_lengths[b] > p.sq ? p.q_lengths[b] : p.sq;
        p.sk = p.k_lengths[b] > p.sk ? p.k_lengths[b] : p.sk;
    }
    return p;
}

static void packed_sequences(void **state) {
    (void)state;
    for (unsigned c = 0; c < 24; c++) {
        problem p = packed_problem(c);
        strcpy(p.out_layout, p.layout);
        p.has_mask = c % 3 != 0;
        p.sparse = p.has_mask ? 2 + (int64_t)(c % 3) : 0;
        p.has_lse = c & 1;
        run_other(&p, "FusedInferAttentionScoreV2", true, "actualSeqLengthsOptional", "actualSeqLengthsKvOptional");
    }
    for (unsigned c = 0; c < 10; c++) {
        static const char *const names[] = {"FlashAttentionVarLenScore", "FlashAttentionVarLenScoreV2",
                                            "FlashAttentionVarLenScoreV3", "FlashAttentionVarLenScoreV4",
                                            "FlashAttentionVarLenScoreV5"};
        problem p = packed_problem(c % 4);
        p.has_max = true;
        p.has_rope = c % 5 == 2 || c % 5 == 4;
        p.dr = 8;
        p.has_sink = c % 5 == 4;
        run_other(&p, names[c % 5], false, "actualSeqQLenOptional", "actualSeqKvLenOptional");
    }
}

/* All entry points reach the engine with the right arguments. */
static void entry_points(void **state) {
    (void)state;
    static const char *const fused[] = {"FusedInferAttentionScore", "FusedInferAttentionScoreV2",
                                        "FusedInferAttentionScoreV3", "FusedInferAttentionScoreV4"};
    static const char *const prompt[] = {"PromptFlashAttention", "PromptFlashAttentionV2", "PromptFlashAttentionV3"};
    static const char *const step[] = {"IncreFlashAttention", "IncreFlashAttentionV2", "IncreFlashAttentionV3",
                                       "IncreFlashAttentionV4"};
    static const char *const training[] = {"FlashAttentionScore", "FlashAttentionScoreV2", "FlashAttentionScoreV3"};
    for (unsigned c = 0; c < 24; c++) {
        problem p = {.b = 2,
                     .sq = 9,
                     .sk = 21,
                     .n = 4,
                     .nkv = 2,
                     .d = 16,
                     .dv = 16,
                     .dr = 8,
                     .type = attention_types[c % 3],
                     .pre = 12,
                     .next = 6,
                     .has_bias = c & 1,
                     .has_mask = c >> 1 & 1,
                     .has_q_lengths = true,
                     .has_k_lengths = true,
                     .q_lengths = {9, 5},
                     .k_lengths = {21, 13}};
        strcpy(p.layout, c % 2 ? "BNSD" : "BSH");
        strcpy(p.out_layout, p.layout);
        problem f = p;
        f.sparse = f.has_mask ? c % 5 : 0;
        f.has_lse = c & 1;
        f.has_rope = c % 4 >= 2;
        f.has_sink = c % 4 == 3;
        run_other(&f, fused[c % 4], true, "actualSeqLengthsOptional", "actualSeqLengthsKvOptional");
        problem q = p;
        q.has_k_lengths = c % 3;
        run_other(&q, prompt[c % 3], false, "actualSeqLengthsOptional", c % 3 ? "actualSeqLengthsKvOptional" : NULL);
        problem s = p;
        s.sq = s.q_lengths[0] = s.q_lengths[1] = 1;
        s.pre = s.next = 1 << 20;
        run_other(&s, step[c % 4], true, NULL, "actualSeqLengthsOptional");
        problem t = p;
        t.has_q_lengths = t.has_k_lengths = false;
        t.has_max = true;
        t.has_sink = c % 3 == 2;
        t.sparse = t.has_mask ? c % 5 : 0;
        t.bias_first = c % 3 == 0 || c & 2;
        run_other(&t, training[c % 3], false, NULL, NULL);
    }
}

/* Keys in pages in any order; and keys as a list of tensors of different lengths. */
static void pages_and_lists(void **state) {
    (void)state;
    for (unsigned c = 0; c < 18; c++) {
        problem p = {.b = 3,
                     .sq = c % 3 ? 1 : 6,
                     .sk = 70,
                     .n = 4,
                     .nkv = 2,
                     .d = 20,
                     .dv = 20,
                     .type = attention_types[c % 3],
                     .has_k_lengths = true,
                     .k_lengths = {70, 1, 33},
                     .layout = "BSND",
                     .out_layout = "BSND"};
        make_inputs(&p);
        const int64_t page = c % 2 ? 16 : 7, per = (p.sk + page - 1) / page, count = per * p.b + 2;
        bool by_head = c % 4 >= 2;
        tensor pages[2], table;
        int64_t flat[] = {count, page, p.nkv * p.d}, heads[] = {count, p.nkv, page, p.d}, table_dims[] = {p.b, per};
        table = make_tensor(ACL_INT32, 2, table_dims, (enum layout)(random_bits() % LAYOUTS));
        for (int64_t i = 0; i < table.count; i++)
            set_element(&table, i, (double)((i * 5 + 3) % (count % 5 ? count : count - 1)));
        for (int s = 0; s < 2; s++) {
            pages[s] = by_head ? make_tensor(p.type, 4, heads, (enum layout)(random_bits() % LAYOUTS))
                               : make_tensor(p.type, 3, flat, CONTIGUOUS);
            fill(&pages[s], -9, 9);
            const tensor *from = s ? &p.v : &p.k;
            for (int64_t b = 0; b < p.b; b++)
                for (int64_t j = 0; j < p.k_lengths[b]; j++)
                    for (int64_t n = 0; n < p.nkv; n++)
                        for (int64_t d = 0; d < p.d; d++) {
                            int64_t at_page = (int64_t)get_element(&table, b * per + j / page), row = j % page;
                            int64_t to = by_head ? ((at_page * p.nkv + n) * page + row) * p.d + d
                                                 : (at_page * page + row) * p.nkv * p.d + n * p.d + d;
                            set_element(&pages[s], to, get_element(from, ((b * p.sk + j) * p.nkv + n) * p.d + d));
                        }
        }
        aclTensorList *keys = list_of(&pages[0]), *values = list_of(&pages[1]);
        arguments a = call_of(&p, keys, values);
        aclIntArray *lengths = aclCreateIntArray(p.k_lengths, 3);
        put(&a, "blockTableOptional", table.handle);
        put_integer(&a, "blockSize", page);
        refused(&a, "actualSeqLengthsKvOptional is NULL");
        put(&a, "actualSeqLengthsKvOptional", lengths);
        must(&a);
        check_all(&p);
        put_integer(&a, "blockSize", page + 1);
        refused(&a, "pages of");
        put_integer(&a, "blockSize", page);
        double kept = get_element(&table, 0);
        set_element(&table, 0, (double)count);
        fails_when_run(&a, "row 0 names page");
        set_element(&table, 0, kept);
        aclDestroyIntArray(lengths);
        aclDestroyTensorList(keys);
        aclDestroyTensorList(values);
        free_tensor(&table);
        free_tensor(&pages[0]);
        free_tensor(&pages[1]);
        drop_inputs(&p);
    }
    for (unsigned c = 0; c < 6; c++) {
        problem p = {.b = 3,
                     .sq = 4,
                     .sk = 40,
                     .n = 4,
                     .nkv = 2,
                     .d = 20,
                     .dv = 12,
                     .type = attention_types[c % 3],
                     .has_k_lengths = true,
                     .k_lengths = {40, 3, 17}};
        choose_layout(&p, c % 2);
        make_inputs(&p);
        tensor parts[2][3];
        const aclTensor *handles[2][3];
        for (int s = 0; s < 2; s++)
            for (int64_t b = 0; b < 3; b++) {
                int64_t depth = s ? p.dv : p.d;
                const tensor *from = s ? &p.v : &p.k;
                parts[s][b] = grid(p.type, p.layout, 1, p.k_lengths[b], p.nkv, depth);
                for (int64_t j = 0; j < p.k_lengths[b]; j++)
                    for (int64_t n = 0; n < p.nkv; n++)
                        for (int64_t d = 0; d < depth; d++)
                            set_element(&parts[s][b], index_in(&parts[s][b], p.layout, 0, j, n, d, depth),
                                        get_element(from, index_in(from, p.layout, b, j, n, d, depth)));
                handles[s][b] = parts[s][b].handle;
                parts[s][b].handle = NULL;
            }
        aclTensorList *keys = aclCreateTensorList(handles[0], 3), *values = aclCreateTensorList(handles[1], 3);
        arguments a = call_of(&p, keys, values);
        must(&a);
        check_all(&p);
        aclDestroyTensorList(keys);
        aclDestroyTensorList(values);
        for (int s = 0; s < 2; s++)
            for (int b = 0; b < 3; b++)
                free_tensor(&parts[s][b]);
        drop_inputs(&p);
    }
}

/* Parts of an attention over different keys make the whole. */
static void joined_parts(void **state) {
    (void)state;
    enum { ROWS = 7, N = 24, PARTS = 3 };
    for (unsigned c = 0; c < 12; c++) {
        const aclDataType type = attention_types[c % 3];
        int64_t rows = ROWS, dims[] = {ROWS, N};
        tensor lse[PARTS], part[PARTS],
            out = make_tensor(type, 2, dims, (enum layout)(random_bits() % LAYOUTS)),
            total = make_tensor(ACL_FLOAT, 1, &rows, (enum layout)(random_bits() % LAYOUTS));
        const aclTensor *handles[2][PARTS];
        for (int p = 0; p < PARTS; p++) {
            lse[p] = make_tensor(ACL_FLOAT, 1, &rows, (enum layout)(random_bits() % LAYOUTS));
            part[p] = make_tensor(type, 2, dims, (enum layout)(random_bits() % LAYOUTS));
            fill(&lse[p], -3, 3);
            fill(&part[p], -1, 1);
            set_element(&lse[p], 2, -INFINITY); /* a row that saw nothing */
            handles[0][p] = lse[p].handle;
            handles[1][p] = part[p].handle;
            lse[p].handle = part[p].handle = NULL;
        }
        set_element(&lse[1], 4, -INFINITY);
        aclTensorList *sums = aclCreateTensorList(handles[0], PARTS), *parts = aclCreateTensorList(handles[1], PARTS);
        arguments a = begin_call("AttentionUpdate");
        put(&a, "lse", sums);
        put(&a, "localOut", parts);
        put_integer(&a, "updateType", c & 1);
        put(&a, "out", out.handle);
        if (c & 1)
            put(&a, "lseOut", total.handle);
        must(&a);
        for (int64_t r = 0; r < ROWS; r++) {
            double whole = 0;
            for (int p = 0; p < PARTS; p++)
                whole += exp(get_element(&lse[p], r));
            if (c & 1 && fabs(get_element(&total, r) - log(whole)) > 1e-5 && whole != 0)
                fail_msg("lse %g, but must be %g", get_element(&total, r), log(whole));
            for (int64_t i = 0; i < N; i++) {
                double want = 0;
                for (int p = 0; p < PARTS && whole != 0; p++)
                    want += exp(get_element(&lse[p], r)) / whole * get_element(&part[p], r * N + i);
                if (fabs(get_element(&out, r * N + i) - want) > (type == ACL_FLOAT     ? 1e-6
                                                                 : type == ACL_FLOAT16 ? 1e-3
                                                                                       : 8e-3))
                    fail_msg("row %lld is %g, but must be %g", (long long)r, get_element(&out, r * N + i), want);
            }
        }
        put_integer(&a, "updateType", 2);
        refused(&a, "updateType is 2");
        put_integer(&a, "updateType", 1);
        put(&a, "lseOut", NULL);
        refused(&a, "lseOut is NULL");
        aclDestroyTensorList(sums);
        aclDestroyTensorList(parts);
        for (int p = 0; p < PARTS; p++) {
            free_tensor(&lse[p]);
            free_tensor(&part[p]);
        }
        free_tensor(&out);
        free_tensor(&total);
    }
}

static void cache_rows(void **state) {
    (void)state;
    enum { TOKENS = 9, HEADS = 2, DEPTH = 12, VALUE = 8, PAGES = 4, PAGE = 5 };
    static const int64_t slots[TOKENS] = {19, 0, -1, 7, 3, 4, 5, 12, 11};
    for (unsigned c = 0; c < 12; c++) {
        int64_t kd[] = {TOKENS, HEADS, DEPTH}, vd[] = {TOKENS, HEADS, VALUE}, kcd[] = {PAGES, PAGE, HEADS, DEPTH},
                vcd[] = {PAGES, PAGE, HEADS, VALUE}, tokens = TOKENS;
        const aclDataType type = c & 1 ? ACL_INT8 : ACL_FLOAT16;
        tensor key = make_tensor(type, 3, kd, (enum layout)(c % LAYOUTS)),
               value = make_tensor(type, 3, vd, (enum layout)(c % LAYOUTS)),
               keys = make_tensor(type, 4, kcd, (enum layout)(c / 2 % LAYOUTS)),
               values = make_tensor(type, 4, vcd, (enum layout)(c / 2 % LAYOUTS)),
               slot = make_tensor(c & 2 ? ACL_INT64 : ACL_INT32, 1, &tokens, STRIDED);
        tensor *all[] = {&key, &value, &keys, &values, &slot};
        for (int i = 0; i < 4; i++)
            for (int64_t e = 0; e < all[i]->count; e++)
                set_element(all[i], e, i < 2 ? (double)(e % 100) + 1 : 0);
        for (int i = 0; i < TOKENS; i++)
            set_element(&slot, i, (double)slots[i]);
        arguments a = begin_call("ScatterPaKvCache");
        put(&a, "key", key.handle);
        put(&a, "value", value.handle);
        put(&a, "keyCacheRef", keys.handle);
        put(&a, "valueCacheRef", values.handle);
        put(&a, "slotMapping", slot.handle);
        put(&a, "cacheModeOptional", c % 3 ? "Norm" : NULL);
        must(&a);
        for (int side = 0; side < 2; side++) {
            const tensor *from = side ? &value : &key, *to = side ? &values : &keys;
            const int64_t row = HEADS * (side ? VALUE : DEPTH);
            for (int64_t s = 0; s < PAGES * PAGE; s++) {
                int64_t token = -1;
                for (int i = 0; i < TOKENS; i++)
                    token = slots[i] == s ? i : token;
                for (int64_t e = 0; e < row; e++)
                    if (get_element(to, s * row + e) != (token < 0 ? 0 : get_element(from, token * row + e)))
                        fail_msg("slot %lld element %lld is %g", (long long)s, (long long)e,
                                 get_element(to, s * row + e));
            }
            assert_true(untouched_outside(to));
        }
        set_element(&slot, 3, PAGES * PAGE);
        fails_when_run(&a, "slotMapping: element 3 is 20, but must be -1 to 19");
        put(&a, "cacheModeOptional", "PA_NZ");
        refused(&a, "cacheModeOptional is \"PA_NZ\"");
        put(&a, "cacheModeOptional", NULL);
        put(&a, "valueCacheRef", keys.handle);
        refused(&a, "valueCacheRef: dimension 3 is 12, but must be 8");
        put(&a, "seqLensOptional", slot.handle);
        refused(&a, "seqLensOptional is given");
        for (int i = 0; i < 5; i++)
            free_tensor(all[i]);
    }
}

int main(void) {
    test_begin();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packed_sequences), cmocka_unit_test(entry_points), cmocka_unit_test(pages_and_lists),
        cmocka_unit_test(joined_parts),     cmocka_unit_test(cache_rows),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    test_end();
    return failed;
}
