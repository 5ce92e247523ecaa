#include "attention_problem.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Letters of the dims: B, S, N, D, T, and H for N times D. */
tensor grid(aclDataType type, const char *letters, int64_t b, int64_t s, int64_t n, int64_t d) {
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

int64_t index_in(const tensor *t, const char *letters, int64_t b, int64_t s, int64_t n, int64_t d, int64_t depth) {
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

void fill(tensor *t, double low, double high) {
    for (int64_t i = 0; i < t->count; i++)
        set_element(t, i, random_between(low, high));
}

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

void check_all(const problem *p) {
    double *weight = malloc((size_t)(p->sk + 1) * sizeof *weight);
    for (int64_t b = 0; b < p->b; b++)
        for (int64_t n = 0; n < p->n; n++)
            for (int64_t i = 0; i < (p->packed ? p->q_lengths[b] : p->sq); i++)
                check_row(p, b, n, i, weight);
    free(weight);
    assert_true(untouched_outside(&p->out));
}

void make_inputs(problem *p) {
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

void drop_inputs(problem *p) {
    tensor *all[] = {&p->q,   &p->k,      &p->v,      &p->out,  &p->bias, &p->mask,
                     &p->lse, &p->q_rope, &p->k_rope, &p->sink, &p->max,  &p->sum};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i]->data)
            free_tensor(all[i]);
}

arguments call_of(problem *p, aclTensorList *keys, aclTensorList *values) {
    static char name[8][40];
    static int turn;
    arguments a = begin_call(FUSED);
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
aclTensorList *list_of(tensor *t) {
    aclTensorList *list = aclCreateTensorList((const aclTensor *const[]){t->handle}, 1);
    assert_non_null(list);
    t->handle = NULL;
    return list;
}

void run_problem(problem *p) {
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
void run_other(problem *p, const char *name, bool lists, const char *lengths, const char *key_lengths) {
    make_inputs(p);
    aclTensorList *keys = lists ? list_of(&p->k) : NULL, *values = lists ? list_of(&p->v) : NULL;
    arguments a = begin_call(name);
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
            caller_value *place = find_argument(&a, tensors[i].name);
            if (place)
                place->pointer = tensors[i].pointer;
        }
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        caller_value *place = find_argument(&a, numbers[i].name);
        if (place)
            place->integer = numbers[i].value;
    }
    if (p->bias_first)
        p->bias_scale = p->scale;
    put_real(&a, "scaleValue", p->scale);
    if (find_argument(&a, "keepProb"))
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
const aclDataType attention_types[] = {ACL_FLOAT16, ACL_FLOAT, ACL_BF16};

void choose_layout(problem *p, unsigned which) {
    strcpy(p->layout, layouts[which % 5][0]);
    strcpy(p->out_layout, layouts[which % 5][1]);
}
