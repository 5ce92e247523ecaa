/* Attention against the formula in double: layouts, groups of heads, masks, biases, lengths, types; malformed calls. */
#include "attention_problem.h"

#include "base/memory.h"

#include <string.h>

/* All head sizes, sequence lengths and options, in random company. */
static void random_problems(void **state) {
    (void)state;
    static const int64_t depths[] = {40, 64, 80, 128, 192, 256, 1, 7}, queries[] = {1, 2, 3, 17, 33, 130, 1, 5},
                         keys[] = {1, 5, 77, 130, 513, 600, 1100, 2};
    for (unsigned c = 0; c < 120; c++) {
        problem p = {.type = attention_types[c % 3], .pre = 1 << 20, .next = 1 << 20};
        choose_layout(&p, (unsigned)random_bits());
        p.b = 1 + (int64_t)(random_bits() % 3);
        p.d = depths[c % 8];
        p.dv = random_bits() % 4 ? p.d : depths[random_bits() % 8];
        p.sq = queries[random_bits() % 8];
        p.sk = keys[random_bits() % 8];
        p.nkv = 1 + (int64_t)(random_bits() % 2);
        p.n = p.nkv * (1 + (int64_t)(random_bits() % 5));
        while (p.b * p.n * p.sq * p.sk * (p.d + p.dv) > 1500000 && p.sk > 1) {
            p.sk = (p.sk + 1) / 2;
            p.sq = (p.sq + 1) / 2;
        }
        p.has_bias = random_bits() % 3 == 0;
        p.flat_bias = random_bits() & 1;
        p.has_mask = random_bits() % 2;
        p.sparse = p.has_mask ? (int64_t)(random_bits() % 5) : 0;
        if (p.sparse == 0 || p.sparse == 4) {
            p.pre = (int64_t)(random_bits() % 40) - 5;
            p.next = (int64_t)(random_bits() % 40) - 5;
        }
        p.has_lse = random_bits() & 1;
        p.has_q_lengths = random_bits() % 4 == 0;
        p.has_k_lengths = random_bits() % 3 == 0;
        for (int64_t b = 0; b < p.b; b++) {
            p.q_lengths[b] = (int64_t)(random_bits() % (uint64_t)(p.sq + 1));
            p.k_lengths[b] = (int64_t)(random_bits() % (uint64_t)(p.sk + 1));
        }
        run_problem(&p);
    }
}

/* One query against many keys: the keys are split and merged. */
static void long_decode(void **state) {
    (void)state;
    for (unsigned c = 0; c < 6; c++) {
        problem p = {.b = 1,
                     .sq = 1 + c % 2,
                     .sk = 4500 + c,
                     .n = c < 3 ? 8 : 24,
                     .nkv = 2,
                     .d = 64,
                     .dv = 64,
                     .type = attention_types[c % 3],
                     .has_lse = true,
                     .has_bias = c % 2,
                     .flat_bias = true};
        choose_layout(&p, c);
        run_problem(&p);
    }
}

static void malformed(void **state) {
    (void)state;
    problem p = {.b = 2,
                 .sq = 3,
                 .sk = 5,
                 .n = 4,
                 .nkv = 2,
                 .d = 8,
                 .dv = 8,
                 .type = ACL_FLOAT16,
                 .has_lse = true,
                 .layout = "BSND",
                 .out_layout = "BSND"};
    make_inputs(&p);
    tensor wrong = grid(ACL_FLOAT, "BSND", 2, 3, 4, 8), small = grid(ACL_FLOAT16, "BSND", 2, 3, 4, 4),
           flat = grid(ACL_FLOAT16, "BSH", 2, 5, 2, 8);
    aclTensorList *keys = list_of(&p.k), *values = list_of(&p.v), *flats = list_of(&flat);
    const arguments good = call_of(&p, keys, values);
    arguments a;
#define WITH(statement, word)                                                                                          \
    a = good;                                                                                                          \
    statement;                                                                                                         \
    refused(&a, word)
    WITH(put(&a, "query", NULL), "query is NULL");
    WITH(put(&a, "value", NULL), "value is NULL");
    WITH(put(&a, "attentionOut", NULL), "attentionOut is NULL");
    WITH(put(&a, "inputLayout", NULL), "inputLayout is NULL");
    WITH(put(&a, "inputLayout", "BDNS"), "inputLayout is \"BDNS\"");
    WITH(put(&a, "inputLayout", "BNSD_TND"), "inputLayout is");
    WITH(put(&a, "inputLayout", ""), "inputLayout is");
    WITH(put(&a, "inputLayout", "BNSD"), "query: dimension 1 is 3, but must be 4");
    WITH(put(&a, "inputLayout", "BSH"), "query has 4 dimensions");
    WITH(put_integer(&a, "numHeads", 0), "numHeads is 0");
    WITH(put_integer(&a, "numHeads", -4), "numHeads is -4");
    WITH(put_integer(&a, "numHeads", INT64_MAX), "numHeads is");
    WITH(put_integer(&a, "numHeads", 5), "numKeyValueHeads is 2, but must divide");
    WITH(put_integer(&a, "numKeyValueHeads", 3), "numKeyValueHeads is 3");
    WITH(put_integer(&a, "numKeyValueHeads", 4), "key: dimension 2 is 2");
    WITH(put(&a, "attentionOut", wrong.handle), "attentionOut has elements of type f32");
    WITH(put(&a, "attentionOut", small.handle), "value has a head size of 8, but must have 4");
    WITH(put(&a, "query", wrong.handle), "attentionOut has elements of type f16, but must have f32");
    WITH(put(&a, "query", small.handle), "key has a head size of 8");
    WITH(put(&a, "key", flats), "key has 3 dimensions");
    WITH(put(&a, "deqScale1Optional", wrong.handle), "deqScale1Optional is given");
    WITH(put(&a, "keyAntiquantScaleOptional", wrong.handle), "keyAntiquantScaleOptional is given");
    WITH(put(&a, "keySharedPrefixOptional", wrong.handle), "keySharedPrefixOptional is given");
    WITH(put_integer(&a, "sparseMode", 5), "sparseMode is 5");
    WITH(put_integer(&a, "sparseMode", -1), "sparseMode is -1");
    WITH(put_integer(&a, "sparseMode", 3), "attenMaskOptional is NULL");
    WITH(put(&a, "attenMaskOptional", wrong.handle), "attenMaskOptional has elements of type f32");
    WITH(put(&a, "pseShiftOptional", small.handle), "pseShiftOptional has the shape [2,3,4,4]");
    WITH(put(&a, "softmaxLse", NULL), "softmaxLse is NULL");
    WITH(put(&a, "softmaxLse", wrong.handle), "softmaxLse");
    WITH(put(&a, "blockTableOptional", small.handle), "blockSize is 0");
#undef WITH
    static const int64_t too_long[] = {4, 2}, negative[] = {-1, 2}, three[] = {1, 1, 1};
    const struct {
        const int64_t *values;
        uint64_t count;
        const char *word;
    } lists[] = {{too_long, 2, "actualSeqLengthsOptional[0] is 4"},
                 {negative, 2, "actualSeqLengthsOptional[0] is -1"},
                 {three, 3, "has 3 lengths, but must have 2"}};
    for (int i = 0; i < 3; i++) {
        aclIntArray *list = aclCreateIntArray(lists[i].values, lists[i].count);
        a = good;
        put(&a, "actualSeqLengthsOptional", list);
        refused(&a, lists[i].word);
        aclDestroyIntArray(list);
    }
    a = good;
    must(&a);
    aclDestroyTensorList(keys);
    aclDestroyTensorList(values);
    aclDestroyTensorList(flats);
    drop_inputs(&p);
    tensor *rest[] = {&wrong, &small, &flat};
    for (int i = 0; i < 3; i++)
        free_tensor(rest[i]);
}

/* Every allocation of a call fails once: the call says so or succeeds, and the next one is right. */
static void memory_runs_out(void **state) {
    (void)state;
    problem p = {.b = 1,
                 .sq = 2,
                 .sk = 1100,
                 .n = 4,
                 .nkv = 2,
                 .d = 16,
                 .dv = 16,
                 .type = ACL_FLOAT16,
                 .layout = "BSND",
                 .out_layout = "BSND"};
    make_inputs(&p);
    aclTensorList *keys = list_of(&p.k), *values = list_of(&p.v);
    arguments a = call_of(&p, keys, values);
    int failed = 0;
    for (long n = 1; n < 60; n++) {
        aclrtStream stream;
        uint64_t size = 0;
        aclOpExecutor *executor = NULL;
        assert_int_equal(aclrtCreateStream(&stream), 0);
        dp_mem_fail_after(n);
        aclnnStatus status = a.op->prepare(a.values, &size, &executor);
        if (!status)
            status = a.op->run(NULL, size, executor, stream);
        if (!status)
            status = aclrtSynchronizeStream(stream);
        dp_mem_fail_after(0);
        failed += status != 0;
        if (status)
            assert_true(sentence()[0] != '\0');
        aclrtDestroyStream(stream);
    }
    assert_true(failed > 2);
    must(&a);
    check_all(&p);
    aclDestroyTensorList(keys);
    aclDestroyTensorList(values);
    drop_inputs(&p);
}

static void zero_sizes(void **state) {
    (void)state;
    static const int64_t sizes[][3] = {{0, 3, 4}, {2, 0, 4}, {2, 3, 0}};
    for (int c = 0; c < 3; c++) {
        problem p = {.b = sizes[c][0],
                     .sq = sizes[c][1],
                     .sk = sizes[c][2],
                     .n = 2,
                     .nkv = 1,
                     .d = 16,
                     .dv = 16,
                     .type = ACL_FLOAT16,
                     .has_lse = true};
        choose_layout(&p, (unsigned)c);
        run_problem(&p);
    }
}

int main(void) {
    test_begin();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_problems), cmocka_unit_test(long_decode), cmocka_unit_test(memory_runs_out),
        cmocka_unit_test(zero_sizes),      cmocka_unit_test(malformed),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    test_end();
    return failed;
}
