/* Attention against the formula in double: layouts, groups of heads, masks, biases, lengths, pages, types. */
#include "ops_test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FUSED "FusedInferAttentionScoreV2"
enum { PARAMS = 48 };

/* A call with its parameters by name; what is not set is NULL or 0. */
typedef struct arguments {
    const caller *op;
    caller_value values[PARAMS];
} arguments;

static arguments begin(const char *name) {
    arguments a = {.op = find_caller(name)};
    return a;
}

static caller_value *at(arguments *a, const char *name) {
    const char *p = a->op->params;
    size_t length = strlen(name);
    for (int i = 0; *p; i++) {
        const char *colon = strchr(p, ':'), *comma = strchr(p, ',');
        if ((size_t)(comma - colon - 1) == length && memcmp(colon + 1, name, length) == 0)
            return &a->values[i];
        p = comma + 1;
    }
    fail_msg("%s has no parameter %s", a->op->name, name);
    return NULL;
}

static void put(arguments *a, const char *name, const void *pointer) {
    at(a, name)->pointer = pointer;
}
static void put_integer(arguments *a, const char *name, int64_t value) {
    at(a, name)->integer = value;
}
static void put_real(arguments *a, const char *name, double value) {
    at(a, name)->real = value;
}

static void must(arguments *a) {
    if (call_op(a->op->name, a->values))
        fail_msg("%s: %s", a->op->name, sentence());
}

static void refused(arguments *a, const char *word) {
    aclnnStatus status = call_op(a->op->name, a->values);
    if (status != ACLNN_ERR_PARAM_INVALID && status != ACLNN_ERR_PARAM_NULLPTR)
        fail_msg("%s gives %d instead of an argument error, \"%s\"", a->op->name, status, word);
    if (!strstr(sentence(), word))
        fail_msg("%s says: %s; expected: %s", a->op->name, sentence(), word);
}

/* Letters of the dims: B, S, N, D, T, and H for N times D. */
static tensor grid(aclDataType type, const char *letters, int64_t b, int64_t s, int64_t n, int64_t d) {
    int64_t dims[4];
    int rank = (int)strlen(letters);
    for (int i = 0; i < rank; i++)
        dims[i] = letters[i] == 'B'                        ? b
                  : letters[i] == 'S' || letters[i] == 'T' ? s
                  : letters[i] == 'N'                      ? n
                  : letters[i] == 'D'                      ? d
                                                           : n * d;
    return make_tensor(type, rank, dims, strchr(letters, 'H') ? CONTIGUOUS : (enum layout)(random_bits() % LAYOUTS));
}

static int64_t index_in(const tensor *t, const char *letters, int64_t b, int64_t s, int64_t n, int64_t d,
                        int64_t depth) {
    int64_t index = 0;
    for (int i = 0; letters[i]; i++) {
        int64_t at_dim = letters[i] == 'B'                        ? b
                         : letters[i] == 'S' || letters[i] == 'T' ? s
                         : letters[i] == 'N'                      ? n
                         : letters[i] == 'D'                      ? d
                                                                  : n * depth + d;
        index = index * t->dims[i] + at_dim;
    }
    return index;
}

static void fill(tensor *t, double low, double high) {
    for (int64_t i = 0; i < t->count; i++)
        set_element(t, i, random_between(low, high));
}

/* How the reference finds numbers: everything in plain terms of batch, head, query, key. */
typedef struct problem {
    int64_t b, sq, sk, n, nkv, d, dv, dr;
    char layout[16]; /* of the inputs; of the output */
    char out_layout[16];
    aclDataType type;
    double scale, bias_scale;
    int64_t pre, next, sparse;
    tensor q, k, v, q_rope, k_rope, bias, mask, out, lse, sink;
    bool has_bias, has_mask, has_lse, has_rope, has_sink, flat_bias;
    int64_t q_lengths[8], k_lengths[8];
    bool has_q_lengths, has_k_lengths;
} problem;

static double value_of(const tensor *t, const char *letters, int64_t b, int64_t s, int64_t n, int64_t d,
                       int64_t depth) {
    return get_element(t, index_in(t, letters, b, s, n, d, depth));
}

static double score_of(const problem *p, int64_t b, int64_t n, int64_t i, int64_t j) {
    double s = 0;
    int64_t kv = n / (p->n / p->nkv);
    for (int64_t d = 0; d < p->d; d++)
        s += value_of(&p->q, p->layout, b, i, n, d, p->d) * value_of(&p->k, p->layout, b, j, kv, d, p->d);
    for (int64_t d = 0; d < p->dr && p->has_rope; d++)
        s += value_of(&p->q_rope, p->layout, b, i, n, d, p->dr) * value_of(&p->k_rope, p->layout, b, j, kv, d, p->dr);
    s *= p->scale;
    if (p->has_bias) {
        const tensor *t = &p->bias;
        int64_t bb = t->dims[0] == 1 ? 0 : b, nn = t->dims[1] == 1 ? 0 : n, ii = t->dims[2] == 1 ? 0 : i;
        s += p->bias_scale * get_element(t, ((bb * t->dims[1] + nn) * t->dims[2] + ii) * t->dims[3] + j);
    }
    return s;
}

static bool sees(const problem *p, int64_t b, int64_t i, int64_t j) {
    int64_t queries = p->has_q_lengths ? p->q_lengths[b] : p->sq, keys = p->has_k_lengths ? p->k_lengths[b] : p->sk;
    if (i >= queries || j >= keys)
        return false;
    if (!p->has_mask)
        return true;
    int64_t shift = p->sparse >= 3 ? keys - queries : 0, place = i + shift;
    if ((p->sparse == 0 || p->sparse == 4) && (j < place - p->pre || j > place + p->next))
        return false;
    if ((p->sparse == 2 || p->sparse == 3) && j > place)
        return false;
    if (p->sparse >= 2)
        return true;
    const tensor *t = &p->mask;
    int64_t bb = t->dims[0] == 1 ? 0 : b;
    return get_element(t, (bb * t->dims[2] + i) * t->dims[3] + j) == 0;
}

static double unit(aclDataType type) {
    return type == ACL_FLOAT ? 0x1p-17 : type == ACL_FLOAT16 ? 0x1p-10 : 0x1p-7;
}

static void near(const char *what, double got, double want, double bound, int64_t b, int64_t n, int64_t i, int64_t d) {
    if (got == want || (isnan(got) && isnan(want)) || fabs(got - want) <= bound)
        return;
    fail_msg("%s: batch %lld head %lld row %lld column %lld is %.9g, but must be %.9g", what, (long long)b,
             (long long)n, (long long)i, (long long)d, got, want);
}

/* One row of the reference, compared. */
static void check_row(const problem *p, int64_t b, int64_t n, int64_t i, double *weight) {
    double max = -INFINITY, sum = 0;
    int64_t kv = n / (p->n / p->nkv);
    for (int64_t j = 0; j < p->sk; j++) {
        weight[j] = sees(p, b, i, j) ? score_of(p, b, n, i, j) : -INFINITY;
        max = weight[j] > max ? weight[j] : max;
    }
    double sink = p->has_sink ? get_element(&p->sink, n) : -INFINITY;
    max = sink > max ? sink : max;
    if (p->has_sink)
        sum = exp(sink - max);
    for (int64_t j = 0; j < p->sk; j++) {
        weight[j] = weight[j] == -INFINITY ? 0 : exp(weight[j] - max);
        sum += weight[j];
    }
    for (int64_t d = 0; d < p->dv; d++) {
        double want = 0, size = 0;
        for (int64_t j = 0; j < p->sk; j++)
            if (weight[j] != 0) {
                double v = value_of(&p->v, p->layout, b, j, kv, d, p->dv);
                want += weight[j] * v;
                size += weight[j] * fabs(v);
            }
        want = sum == 0 ? 0 : want / sum;
        size = sum == 0 ? 0 : size / sum;
        near(FUSED, value_of(&p->out, p->out_layout, b, i, n, d, p->dv), want,
             unit(p->type) * fabs(want) + unit(ACL_FLOAT) * size, b, n, i, d);
    }
    if (p->has_lse)
        near("lse", get_element(&p->lse, (b * p->n + n) * p->sq + i), sum == 0 ? -INFINITY : max + log(sum),
             unit(ACL_FLOAT) * (1 + fabs(max)), b, n, i, 0);
}

static void check_all(const problem *p) {
    double *weight = malloc((size_t)(p->sk + 1) * sizeof *weight);
    for (int64_t b = 0; b < p->b; b++)
        for (int64_t n = 0; n < p->n; n++)
            for (int64_t i = 0; i < p->sq; i++)
                check_row(p, b, n, i, weight);
    free(weight);
    assert_true(untouched_outside(&p->out));
}

static void make_inputs(problem *p) {
    p->q = grid(p->type, p->layout, p->b, p->sq, p->n, p->d);
    p->k = grid(p->type, p->layout, p->b, p->sk, p->nkv, p->d);
    p->v = grid(p->type, p->layout, p->b, p->sk, p->nkv, p->dv);
    p->out = grid(p->type, p->out_layout, p->b, p->sq, p->n, p->dv);
    fill(&p->q, -2, 2);
    fill(&p->k, -2, 2);
    fill(&p->v, -1, 1);
    p->scale = 1 / sqrt((double)p->d);
    p->bias_scale = 1;
    if (p->has_bias) {
        int64_t dims[] = {random_bits() & 1 ? 1 : p->b, p->flat_bias ? 1 : p->n, p->sq,
                          p->sk + (int64_t)(random_bits() % 3)};
        p->bias =
            make_tensor(random_bits() & 1 ? p->type : ACL_FLOAT16, 4, dims, (enum layout)(random_bits() % LAYOUTS));
        for (int64_t i = 0; i < p->bias.count; i++)
            set_element(&p->bias, i, random_bits() % 5 == 0 ? -INFINITY : random_between(-2, 2));
    }
    if (p->has_mask && p->sparse < 2) {
        int64_t dims[] = {random_bits() & 1 ? 1 : p->b, 1, p->sq, p->sk};
        const aclDataType types[] = {ACL_BOOL, ACL_UINT8, ACL_INT8};
        p->mask = make_tensor(types[random_bits() % 3], 4, dims, (enum layout)(random_bits() % LAYOUTS));
        for (int64_t i = 0; i < p->mask.count; i++) {
            int64_t row = p->sk ? i / p->sk : 0;
            set_element(&p->mask, i, row % 7 == 3 || random_bits() % 3 == 0); /* some rows see nothing */
        }
    } else if (p->has_mask) {
        int64_t dims[] = {1, 1, 2048, 2048};
        p->mask = make_tensor(ACL_BOOL, 4, dims, CONTIGUOUS);
        for (int64_t i = 0; i < p->mask.count; i++)
            ((uint8_t *)p->mask.data)[i] = i % 2048 > i / 2048;
    }
    if (p->has_lse) {
        int64_t dims[] = {p->b, p->n, p->sq, 1};
        p->lse = make_tensor(ACL_FLOAT, 4, dims, (enum layout)(random_bits() % LAYOUTS));
    }
}

static void drop_inputs(problem *p) {
    tensor *all[] = {&p->q, &p->k, &p->v, &p->out, &p->bias, &p->mask, &p->lse, &p->q_rope, &p->k_rope, &p->sink};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i]->data)
            free_tensor(all[i]);
}

static arguments call_of(problem *p, aclTensorList *keys, aclTensorList *values) {
    static char name[8][40];
    static int turn;
    arguments a = begin(FUSED);
    char *text = name[turn++ % 8];
    snprintf(text, sizeof name[0], "%s%s%s", p->layout, strcmp(p->layout, p->out_layout) ? "_" : "",
             strcmp(p->layout, p->out_layout) ? p->out_layout : "");
    put(&a, "query", p->q.handle);
    put(&a, "key", keys);
    put(&a, "value", values);
    if (p->has_bias)
        put(&a, "pseShiftOptional", p->bias.handle);
    if (p->has_mask)
        put(&a, "attenMaskOptional", p->mask.handle);
    put_integer(&a, "numHeads", p->n);
    put_real(&a, "scaleValue", p->scale);
    put_integer(&a, "preTokens", p->pre);
    put_integer(&a, "nextTokens", p->next);
    put(&a, "inputLayout", text);
    put_integer(&a, "numKeyValueHeads", p->nkv == p->n ? 0 : p->nkv);
    put_integer(&a, "sparseMode", p->sparse);
    put_integer(&a, "softmaxLseFlag", p->has_lse);
    put(&a, "attentionOut", p->out.handle);
    if (p->has_lse)
        put(&a, "softmaxLse", p->lse.handle);
    return a;
}

/* The lists own the tensors put into them, but tests keep the memory. */
static aclTensorList *list_of(tensor *t) {
    aclTensorList *list = aclCreateTensorList((const aclTensor *const[]){t->handle}, 1);
    assert_non_null(list);
    t->handle = NULL;
    return list;
}

static void run_problem(problem *p) {
    make_inputs(p);
    aclTensorList *keys = list_of(&p->k), *values = list_of(&p->v);
    arguments a = call_of(p, keys, values);
    aclIntArray *q_lengths = NULL, *k_lengths = NULL;
    if (p->has_q_lengths)
        put(&a, "actualSeqLengthsOptional", q_lengths = aclCreateIntArray(p->q_lengths, (uint64_t)p->b));
    if (p->has_k_lengths)
        put(&a, "actualSeqLengthsKvOptional", k_lengths = aclCreateIntArray(p->k_lengths, (uint64_t)p->b));
    must(&a);
    check_all(p);
    if (q_lengths)
        aclDestroyIntArray(q_lengths);
    if (k_lengths)
        aclDestroyIntArray(k_lengths);
    aclDestroyTensorList(keys);
    aclDestroyTensorList(values);
    drop_inputs(p);
}

static const char *const layouts[][2] = {
    {"BSND", "BSND"}, {"BNSD", "BNSD"}, {"BSH", "BSH"}, {"BNSD", "BSND"}, {"SBH", "SBH"}};
static const aclDataType types[] = {ACL_FLOAT16, ACL_FLOAT, ACL_BF16};

static void choose_layout(problem *p, unsigned which) {
    strcpy(p->layout, layouts[which % 5][0]);
    strcpy(p->out_layout, layouts[which % 5][1]);
}

/* All head sizes, sequence lengths and options, in random company. */
static void random_problems(void **state) {
    (void)state;
    static const int64_t depths[] = {40, 64, 80, 128, 192, 256, 1, 7}, queries[] = {1, 2, 3, 17, 33, 130, 1, 5},
                         keys[] = {1, 5, 77, 130, 513, 600, 1100, 2};
    for (unsigned c = 0; c < 120; c++) {
        problem p = {.type = types[c % 3], .pre = 1 << 20, .next = 1 << 20};
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
                     .type = types[c % 3],
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
        cmocka_unit_test(random_problems),
        cmocka_unit_test(long_decode),
        cmocka_unit_test(zero_sizes),
        cmocka_unit_test(malformed),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    test_end();
    return failed;
}
