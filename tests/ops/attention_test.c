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

/* name, without "Optional" if the operator spells it so; NULL when it has neither. */
static caller_value *find(arguments *a, const char *name, size_t length) {
    const char *p = a->op->params;
    for (int i = 0; *p; i++) {
        const char *colon = strchr(p, ':'), *comma = strchr(p, ',');
        if ((size_t)(comma - colon - 1) == length && memcmp(colon + 1, name, length) == 0)
            return &a->values[i];
        p = comma + 1;
    }
    return NULL;
}

static caller_value *at(arguments *a, const char *name) {
    static const char ending[] = "Optional";
    size_t length = strlen(name), cut = sizeof ending - 1;
    caller_value *found = find(a, name, length);
    if (!found && length > cut && strcmp(name + length - cut, ending) == 0)
        found = find(a, name, length - cut);
    if (!found)
        fail_msg("%s has no parameter %s", a->op->name, name);
    return found;
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

/* In a stream of its own: a failed one stays failed. */
static void fails_when_run(arguments *a, const char *word) {
    aclrtStream stream;
    uint64_t size = 0;
    aclOpExecutor *executor = NULL;
    assert_int_equal(aclrtCreateStream(&stream), 0);
    assert_int_equal(a->op->prepare(a->values, &size, &executor), 0);
    assert_int_equal(a->op->run(NULL, size, executor, stream), 0);
    assert_int_not_equal(aclrtSynchronizeStream(stream), 0);
    if (!strstr(sentence(), word))
        fail_msg("%s says: %s; expected: %s", a->op->name, sentence(), word);
    aclrtDestroyStream(stream);
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
    bool packed; /* sequences one after the other: these are their first rows */
    int64_t q_first[8], k_first[8];
    tensor max, sum;          /* of training */
    bool has_max, bias_first; /* the bias is added before the scale */
} problem;

/* Element of the tensor of queries (or of results), or of keys (or values). */
static double of_query(const problem *p, const tensor *t, const char *letters, int64_t b, int64_t s, int64_t n,
                       int64_t d, int64_t depth) {
    return get_element(t, index_in(t, letters, p->packed ? 0 : b, s + p->q_first[b], n, d, depth));
}
static double of_key(const problem *p, const tensor *t, int64_t b, int64_t s, int64_t n, int64_t d, int64_t depth) {
    return get_element(t, index_in(t, p->layout, p->packed ? 0 : b, s + p->k_first[b], n, d, depth));
}

static double score_of(const problem *p, int64_t b, int64_t n, int64_t i, int64_t j) {
    double s = 0;
    int64_t kv = n / (p->n / p->nkv);
    for (int64_t d = 0; d < p->d; d++)
        s += of_query(p, &p->q, p->layout, b, i, n, d, p->d) * of_key(p, &p->k, b, j, kv, d, p->d);
    for (int64_t d = 0; d < p->dr && p->has_rope; d++)
        s += of_query(p, &p->q_rope, p->layout, b, i, n, d, p->dr) * of_key(p, &p->k_rope, b, j, kv, d, p->dr);
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
                double v = of_key(p, &p->v, b, j, kv, d, p->dv);
                want += weight[j] * v;
                size += weight[j] * fabs(v);
            }
        want = sum == 0 ? 0 : want / sum;
        size = sum == 0 ? 0 : size / sum;
        near(FUSED, of_query(p, &p->out, p->out_layout, b, i, n, d, p->dv), want,
             unit(p->type) * fabs(want) + unit(ACL_FLOAT) * size, b, n, i, d);
    }
    int64_t row = p->packed ? (p->q_first[b] + i) * p->n + n : (b * p->n + n) * p->sq + i;
    double bound = unit(ACL_FLOAT) * (1 + fabs(max));
    if (p->has_lse)
        near("lse", get_element(&p->lse, row), sum == 0 ? -INFINITY : max + log(sum), bound, b, n, i, 0);
    for (int64_t c = 0; c < 8 && p->has_max; c++) {
        near("maximum", get_element(&p->max, row * 8 + c), max, bound, b, n, i, c);
        near("sum", get_element(&p->sum, row * 8 + c), sum, 4 * bound * sum, b, n, i, c);
    }
}

static void check_all(const problem *p) {
    double *weight = malloc((size_t)(p->sk + 1) * sizeof *weight);
    for (int64_t b = 0; b < p->b; b++)
        for (int64_t n = 0; n < p->n; n++)
            for (int64_t i = 0; i < (p->packed ? p->q_lengths[b] : p->sq); i++)
                check_row(p, b, n, i, weight);
    free(weight);
    assert_true(untouched_outside(&p->out));
}

static void make_inputs(problem *p) {
    int64_t queries = p->packed ? p->q_first[p->b - 1] + p->q_lengths[p->b - 1] : p->sq;
    int64_t keys = p->packed ? p->k_first[p->b - 1] + p->k_lengths[p->b - 1] : p->sk;
    p->q = grid(p->type, p->layout, p->b, queries, p->n, p->d);
    p->k = grid(p->type, p->layout, p->b, keys, p->nkv, p->d);
    p->v = grid(p->type, p->layout, p->b, keys, p->nkv, p->dv);
    p->out = grid(p->type, p->out_layout, p->b, queries, p->n, p->dv);
    if (p->has_rope) {
        p->q_rope = grid(p->type, p->layout, p->b, queries, p->n, p->dr);
        p->k_rope = grid(p->type, p->layout, p->b, keys, p->nkv, p->dr);
        fill(&p->q_rope, -1, 1);
        fill(&p->k_rope, -1, 1);
    }
    if (p->has_sink) {
        p->sink = make_tensor(ACL_BF16, 1, &p->n, (enum layout)(random_bits() % LAYOUTS));
        fill(&p->sink, -1, 3);
    }
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
        int64_t dims[] = {p->b, p->n, p->sq, 1}, packed[] = {queries, p->n, 1};
        p->lse = make_tensor(ACL_FLOAT, p->packed ? 3 : 4, p->packed ? packed : dims,
                             (enum layout)(random_bits() % LAYOUTS));
    }
    if (p->has_max) {
        int64_t dims[] = {p->b, p->n, p->sq, 8}, packed[] = {queries, p->n, 8};
        tensor *both[] = {&p->max, &p->sum};
        for (int i = 0; i < 2; i++)
            *both[i] = make_tensor(ACL_FLOAT, p->packed ? 3 : 4, p->packed ? packed : dims,
                                   (enum layout)(random_bits() % LAYOUTS));
    }
}

static void drop_inputs(problem *p) {
    tensor *all[] = {&p->q,   &p->k,      &p->v,      &p->out,  &p->bias, &p->mask,
                     &p->lse, &p->q_rope, &p->k_rope, &p->sink, &p->max,  &p->sum};
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

/* A call of another operator on the same problem, whose names differ in spelling only. */
static void run_other(problem *p, const char *name, bool lists, const char *lengths, const char *key_lengths) {
    make_inputs(p);
    aclTensorList *keys = lists ? list_of(&p->k) : NULL, *values = lists ? list_of(&p->v) : NULL;
    arguments a = begin(name);
    char text[40];
    snprintf(text, sizeof text, "%s", p->layout);
    const struct {
        const char *name;
        const void *pointer;
    } tensors[] = {{"query", p->q.handle},
                   {"key", lists ? (void *)keys : (void *)p->k.handle},
                   {"value", lists ? (void *)values : (void *)p->v.handle},
                   {"pseShiftOptional", p->bias.handle},
                   {"realShiftOptional", p->bias.handle},
                   {"attenMaskOptional", p->mask.handle},
                   {"queryRopeOptional", p->q_rope.handle},
                   {"keyRopeOptional", p->k_rope.handle},
                   {"learnableSinkOptional", p->sink.handle},
                   {"sinkOptional", p->sink.handle},
                   {"inputLayout", text},
                   {"attentionOut", p->out.handle},
                   {"attentionOutOut", p->out.handle},
                   {"softmaxLse", p->lse.handle},
                   {"softmaxMaxOut", p->max.handle},
                   {"softmaxSumOut", p->sum.handle}};
    const struct {
        const char *name;
        int64_t value;
    } numbers[] = {
        {"numHeads", p->n},    {"headNum", p->n},       {"numKeyValueHeads", p->nkv},   {"sparseMode", p->sparse},
        {"preTokens", p->pre}, {"nextTokens", p->next}, {"softmaxLseFlag", p->has_lse}, {"pseType", p->bias_first}};
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++)
        if (tensors[i].pointer) {
            size_t length = strlen(tensors[i].name),
                   cut = length > 8 && strcmp(tensors[i].name + length - 8, "Optional") == 0 ? 8 : 0;
            caller_value *place = find(&a, tensors[i].name, length);
            place = place ? place : find(&a, tensors[i].name, length - cut);
            if (place)
                place->pointer = tensors[i].pointer;
        }
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        caller_value *place = find(&a, numbers[i].name, strlen(numbers[i].name));
        if (place)
            place->integer = numbers[i].value;
    }
    if (p->bias_first)
        p->bias_scale = p->scale;
    put_real(&a, "scaleValue", p->scale);
    if (find(&a, "keepProb", 8))
        put_real(&a, "keepProb", 1);
    int64_t ends[2][8];
    for (int64_t b = 0; b < p->b; b++) {
        ends[0][b] = p->q_first[b] + p->q_lengths[b];
        ends[1][b] = p->k_first[b] + p->k_lengths[b];
    }
    aclIntArray *q_lengths = aclCreateIntArray(ends[0], (uint64_t)p->b),
                *k_lengths = aclCreateIntArray(ends[1], (uint64_t)p->b);
    if (lengths && p->has_q_lengths)
        put(&a, lengths, q_lengths);
    if (key_lengths && p->has_k_lengths)
        put(&a, key_lengths, k_lengths);
    must(&a);
    check_all(p);
    aclDestroyIntArray(q_lengths);
    aclDestroyIntArray(k_lengths);
    if (lists) {
        aclDestroyTensorList(keys);
        aclDestroyTensorList(values);
    }
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

/* Sequences of different lengths one after the other. */
static problem packed_problem(unsigned c) {
    problem p = {.b = 1 + (int64_t)(c % 4),
                 .n = 4,
                 .nkv = 2,
                 .d = 24,
                 .dv = 16,
                 .type = types[c % 3],
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
                     .type = types[c % 3],
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
                     .type = types[c % 3],
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
                     .type = types[c % 3],
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
        cmocka_unit_test(random_problems),  cmocka_unit_test(long_decode),  cmocka_unit_test(zero_sizes),
        cmocka_unit_test(packed_sequences), cmocka_unit_test(entry_points), cmocka_unit_test(pages_and_lists),
        cmocka_unit_test(malformed),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    test_end();
    return failed;
}
