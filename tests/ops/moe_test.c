/* Mixture of experts: choosing, routing, and joining, against plain loops in double. */
#include "arguments.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const aclDataType halves[] = {ACL_FLOAT, ACL_FLOAT16, ACL_BF16};

static layout any_layout(void) {
    return (layout)(random_bits() % LAYOUTS);
}

static void fill(tensor *t, double low, double high) {
    for (int64_t i = 0; i < t->count; i++)
        set_element(t, i, random_between(low, high));
}

static void near(const char *name, const tensor *t, int64_t i, double want) {
    double got = get_element(t, i), unit = t->type == ACL_FLOAT ? 0x1p-18 : t->type == ACL_FLOAT16 ? 0x1p-10 : 0x1p-7;
    if (fabs(got - want) > unit * (fabs(want) + 1e-3))
        fail_msg("%s: element %lld is %.9g, but must be %.9g", name, (long long)i, got, want);
}

/* Numbers of the k greatest, the lower first among equals. */
static void greatest(const double *x, int64_t n, int64_t k, int64_t *out) {
    bool *taken = calloc((size_t)n, 1);
    for (int64_t j = 0; j < k; j++) {
        out[j] = -1;
        for (int64_t i = 0; i < n; i++)
            if (!taken[i] && (out[j] < 0 || x[i] > x[out[j]]))
                out[j] = i;
        taken[out[j]] = true;
    }
    free(taken);
}

static void softmax(const double *x, double *y, int64_t n) {
    double max = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++)
        max = fmax(max, x[i]);
    for (int64_t i = 0; i < n; i++)
        sum += exp(x[i] - max);
    for (int64_t i = 0; i < n; i++)
        y[i] = exp(x[i] - max) / sum;
}

/* Scores far enough from each other that rounding cannot change their order. */
static void fill_apart(tensor *x, int64_t n) {
    for (int64_t r = 0; r < x->count / n; r++)
        for (int64_t i = 0; i < n; i++)
            set_element(x, r * n + i, (double)((i * 37 + r * 11) % n) * (8.0 / (double)n) - 4);
}

static void gating_softmax(void **state) {
    (void)state;
    enum { ROWS = 12, N = 32 };
    for (int c = 0; c < 36; c++) {
        const bool v2 = c & 1, finish = c & 2, renorm = v2 && c % 4 == 3, full = v2 && !renorm;
        int64_t dims[] = {3, 4, N}, k = 1 + c % 7, out_dims[] = {3, 4, k};
        tensor x = make_tensor(halves[c % 3], 3, dims, any_layout()),
               finished = make_tensor(ACL_BOOL, 2, dims, any_layout()),
               y = make_tensor(halves[c % 3], 3, out_dims, any_layout()),
               expert = make_tensor(ACL_INT32, 3, out_dims, any_layout()),
               row = make_tensor(ACL_INT32, 3, out_dims, any_layout()),
               all = make_tensor(ACL_FLOAT, 3, dims, any_layout());
        fill_apart(&x, N);
        for (int64_t i = 0; i < ROWS; i++)
            set_element(&finished, i, i % 3 == 0);
        arguments a = begin_call(v2 ? "MoeGatingTopKSoftmaxV2" : "MoeGatingTopKSoftmax");
        put(&a, "x", x.handle);
        if (finish)
            put(&a, "finishedOptional", finished.handle);
        put_integer(&a, "k", k);
        put(&a, "yOut", y.handle);
        put(&a, "expertIdxOut", expert.handle);
        if (v2) {
            put_integer(&a, "renorm", renorm);
            put_integer(&a, "outputSoftmaxResultFlag", full);
            if (full)
                put(&a, "softmaxResultOutOptional", all.handle);
        } else {
            put(&a, "rowIdxOut", row.handle);
        }
        must(&a);
        for (int64_t r = 0; r < ROWS; r++) {
            double s[N], soft[N], chosen[N];
            int64_t order[N];
            for (int64_t i = 0; i < N; i++)
                s[i] = get_element(&x, r * N + i);
            softmax(s, soft, N);
            greatest(s, N, k, order);
            for (int64_t j = 0; j < k; j++)
                chosen[j] = s[order[j]];
            softmax(chosen, chosen, k);
            for (int64_t j = 0; j < k; j++) {
                near(a.op->name, &y, r * k + j, renorm ? chosen[j] : soft[order[j]]);
                double want = finish && r % 3 == 0 ? N : (double)order[j];
                if (get_element(&expert, r * k + j) != want)
                    fail_msg("expert %g, but must be %g", get_element(&expert, r * k + j), want);
                if (!v2)
                    assert_true(get_element(&row, r * k + j) == (double)(j * ROWS + r));
            }
            for (int64_t i = 0; i < N && full; i++)
                near("softmax", &all, r * N + i, soft[i]);
        }
        put_integer(&a, "k", N + 1);
        refused(&a, "k is 33");
        put_integer(&a, "k", k + 1);
        refused(&a, "yOut: dimension 2");
        tensor *every[] = {&x, &finished, &y, &expert, &row, &all};
        for (int i = 0; i < 6; i++)
            free_tensor(every[i]);
    }
}

static void gating_groups(void **state) {
    (void)state;
    enum { ROWS = 9, N = 64 };
    for (int c = 0; c < 36; c++) {
        const bool biased = c & 1, two = c & 2, sigmoid = c & 4, full = c % 3 == 1;
        int64_t groups = c % 5 == 0 ? 1 : 8, taken = groups == 1 ? 1 : 3, dims[] = {ROWS, N}, k = 1 + c % 8,
                out_dims[] = {ROWS, k};
        tensor x = make_tensor(halves[c % 3], 2, dims, any_layout()),
               bias = make_tensor(halves[c % 3], 1, dims + 1, any_layout()),
               y = make_tensor(halves[c % 3], 2, out_dims, any_layout()),
               expert = make_tensor(ACL_INT32, 2, out_dims, any_layout()),
               norm = make_tensor(ACL_FLOAT, 2, dims, any_layout());
        fill_apart(&x, N);
        for (int64_t i = 0; i < N; i++)
            set_element(&bias, i, (double)((i * 5) % 64) / 64);
        arguments a = begin_call("MoeGatingTopK");
        put(&a, "x", x.handle);
        if (biased)
            put(&a, "biasOptional", bias.handle);
        const struct {
            const char *name;
            int64_t value;
        } numbers[] = {{"k", k},
                       {"kGroup", taken},
                       {"groupCount", groups},
                       {"groupSelectMode", two},
                       {"normType", sigmoid},
                       {"outFlag", full}};
        for (int i = 0; i < 6; i++)
            put_integer(&a, numbers[i].name, numbers[i].value);
        put_real(&a, "routedScalingFactor", 2.5);
        put_real(&a, "eps", 1e-20);
        put(&a, "yOut", y.handle);
        put(&a, "expertIdxOut", expert.handle);
        put(&a, "out", norm.handle);
        must(&a);
        for (int64_t r = 0; r < ROWS; r++) {
            double s[N], n[N], group[8], sum = 0;
            int64_t order[N], kept[8];
            for (int64_t i = 0; i < N; i++)
                s[i] = get_element(&x, r * N + i);
            softmax(s, n, N);
            for (int64_t i = 0; i < N; i++) {
                n[i] = sigmoid ? 1 / (1 + exp(-s[i])) : n[i];
                s[i] = n[i] + (biased ? get_element(&bias, i) : 0);
                if (full)
                    near("norm", &norm, r * N + i, n[i]);
            }
            for (int64_t g = 0; g < groups; g++) {
                int64_t best[2];
                greatest(s + g * (N / groups), N / groups, 2, best);
                group[g] = s[g * (N / groups) + best[0]] + (two ? s[g * (N / groups) + best[1]] : 0);
            }
            greatest(group, groups, taken, kept);
            for (int64_t i = 0; i < N; i++) {
                bool in = false;
                for (int64_t t = 0; t < taken; t++)
                    in = in || kept[t] == i / (N / groups);
                s[i] = in ? s[i] : -INFINITY;
            }
            greatest(s, N, k, order);
            for (int64_t j = 0; j < k; j++)
                sum += n[order[j]];
            for (int64_t j = 0; j < k; j++) {
                /* scores of two experts may be equal but for rounding: the expert given must have the score */
                int64_t got = (int64_t)get_element(&expert, r * k + j);
                assert_true(got >= 0 && got < N && fabs(s[got] - s[order[j]]) < 1e-5);
                near("MoeGatingTopK", &y, r * k + j, n[got] / (sigmoid ? sum + 1e-20 : 1) * 2.5);
            }
        }
        put_integer(&a, "groupCount", 7);
        refused(&a, "groupCount is 7");
        put_integer(&a, "groupCount", 8);
        put_integer(&a, "kGroup", 9);
        refused(&a, "kGroup is 9");
        put_integer(&a, "kGroup", 8);
        put_integer(&a, "renorm", 1);
        refused(&a, "renorm is 1");
        tensor *every[] = {&x, &bias, &y, &expert, &norm};
        for (int i = 0; i < 5; i++)
            free_tensor(every[i]);
    }
}

enum { R = 13, K = 3, H = 20, EXPERTS = 6, ENTRIES = R * K };

/* Entries in the order of their experts, stable. */
static void in_order(const tensor *expert, int64_t *order) {
    int64_t m = 0;
    for (int64_t e = 0; e < EXPERTS; e++)
        for (int64_t i = 0; i < ENTRIES; i++)
            if ((int64_t)get_element(expert, i) == e)
                order[m++] = i;
    assert_int_equal(m, ENTRIES);
}

static void check_row(const tensor *out, int64_t at, const tensor *x, int64_t token) {
    for (int64_t h = 0; h < H; h++)
        if (get_element(out, at * H + h) != (token < 0 ? 0 : get_element(x, token * H + h)))
            fail_msg("row %lld is not token %lld", (long long)at, (long long)token);
}

static void routing(void **state) {
    (void)state;
    for (int c = 0; c < 36; c++) {
        const bool v2 = c % 3 != 0, drop = c % 3 == 2, some = c & 1;
        const int64_t capacity = 4,
                      rows = drop   ? EXPERTS * capacity
                             : some ? 10
                                    : ENTRIES,
                      entries = ENTRIES, experts = EXPERTS;
        int64_t xd[] = {R, H}, ed[] = {R, K}, od[] = {rows, H}, cd[] = {EXPERTS, capacity, H}, order[ENTRIES];
        tensor x = make_tensor(halves[c / 3 % 3], 2, xd, any_layout()),
               expert = make_tensor(ACL_INT32, 2, ed, any_layout()),
               number = make_tensor(ACL_INT32, 2, ed, any_layout()),
               out = make_tensor(halves[c / 3 % 3], drop ? 3 : 2, drop ? cd : od, drop ? CONTIGUOUS : any_layout()),
               place = make_tensor(ACL_INT32, 1, &entries, any_layout()),
               sorted = make_tensor(ACL_INT32, 1, &entries, any_layout()),
               counts = make_tensor(ACL_INT32, 1, &experts, any_layout());
        fill(&x, -1, 1);
        for (int64_t i = 0; i < ENTRIES; i++) {
            set_element(&expert, i, (double)(random_bits() % EXPERTS));
            set_element(&number, i, (double)(i % K * R + i / K));
        }
        in_order(&expert, order);
        arguments a = begin_call(v2 ? "MoeInitRoutingV2" : "MoeInitRouting");
        put(&a, "x", x.handle);
        put(&a, "expertIdx", expert.handle);
        put_integer(&a, "activeNum", some ? 10 : R);
        put(&a, "expandedXOut", out.handle);
        put(&a, "expandedRowIdxOut", place.handle);
        if (v2) {
            put_integer(&a, "expertNum", EXPERTS);
            put_integer(&a, "expertCapacity", capacity);
            put_integer(&a, "dropPadMode", drop);
            put_integer(&a, "expertTokensCountOrCumsumFlag", drop ? 0 : 1 + some);
            put_integer(&a, "expertTokensBeforeCapacityFlag", drop);
            put(&a, drop ? "expertTokensBeforeCapacityOut" : "expertTokensCountOrCumsumOut", counts.handle);
        } else {
            put(&a, "rowIdx", number.handle);
            put(&a, "expandedExpertIdxOut", sorted.handle);
        }
        must(&a);
        int64_t total[EXPERTS] = {0}, filled = 0;
        for (int64_t m = 0; m < ENTRIES; m++) {
            const int64_t e = order[m], own = (int64_t)get_element(&expert, e),
                          r = v2 ? e : (int64_t)get_element(&number, e);
            const int64_t want = !drop ? m : total[own] < capacity ? own * capacity + total[own] : -1;
            if (get_element(&place, r) != (double)want)
                fail_msg("entry %lld is at %g, but must be at %lld", (long long)e, get_element(&place, r),
                         (long long)want);
            total[own]++;
            filled += want >= 0 && want < rows;
            if (want >= 0 && want < rows)
                check_row(&out, want, &x, e / K);
            if (!v2)
                assert_true(get_element(&sorted, m) == (double)own);
        }
        for (int64_t e = 0, sum = 0; e < EXPERTS; e++) {
            for (int64_t t = total[e]; t < capacity && drop; t++)
                check_row(&out, e * capacity + t, &x, -1);
            sum += total[e];
            if (v2)
                assert_true(get_element(&counts, e) == (double)(drop || some ? total[e] : sum));
        }
        assert_true(filled > 0 && untouched_outside(&out));
        if (v2) {
            set_element(&expert, 5, EXPERTS);
            fails_when_run(&a, "element 5 is 6, but must be 0 to 5");
            put_integer(&a, "expertNum", 0);
            refused(&a, "expertNum is 0");
        }
        put(&a, "expandedXOut", x.handle);
        put(&a, "x", out.handle);
        refused(&a, "has the shape");
        tensor *every[] = {&x, &expert, &number, &out, &place, &sorted, &counts};
        for (int i = 0; i < 7; i++)
            free_tensor(every[i]);
    }
}

static void joining(void **state) {
    (void)state;
    for (int c = 0; c < 48; c++) {
        const int mode = c % 4;
        const bool drop = mode & 1, v1 = mode == 0 && c & 4, biased = c & 8, scaled = c & 16, skip = c & 32;
        const int64_t rows = drop ? EXPERTS * 7 : ENTRIES, entries = ENTRIES;
        int64_t xd[] = {rows, H}, cd[] = {EXPERTS, 7, H}, od[] = {R, H}, bd[] = {EXPERTS, H}, sd[] = {R, K};
        aclDataType type = halves[c % 3];
        tensor x = make_tensor(type, drop ? 3 : 2, drop ? cd : xd, drop ? CONTIGUOUS : any_layout()),
               place = make_tensor(ACL_INT32, 1, &entries, any_layout()),
               skip1 = make_tensor(type, 2, od, any_layout()), skip2 = make_tensor(type, 2, od, any_layout()),
               bias = make_tensor(type, 2, bd, any_layout()), scale = make_tensor(type, 2, sd, any_layout()),
               expert = make_tensor(ACL_INT32, 2, sd, any_layout()), out = make_tensor(type, 2, od, any_layout());
        tensor *floats[] = {&x, &skip1, &skip2, &bias, &scale};
        for (int i = 0; i < 5; i++)
            fill(floats[i], -1, 1);
        for (int64_t i = 0; i < ENTRIES; i++) {
            set_element(&place, i, drop && i % 5 == 0 ? -1 : (double)(random_bits() % (uint64_t)rows));
            set_element(&expert, i, (double)(random_bits() % EXPERTS));
        }
        arguments a = begin_call(v1 ? "MoeFinalizeRouting" : "MoeFinalizeRoutingV2");
        put(&a, "expandedX", x.handle);
        put(&a, "expandedRowIdx", place.handle);
        if (skip) {
            put(&a, "x1Optional", skip1.handle);
            put(&a, "x2Optional", skip2.handle);
        }
        if (biased) {
            put(&a, "biasOptional", bias.handle);
            put(&a, "expertIdxOptional", expert.handle);
        }
        if (scaled)
            put(&a, "scalesOptional", scale.handle);
        if (!v1)
            put_integer(&a, "dropPadMode", mode);
        put(&a, "out", out.handle);
        must(&a);
        for (int64_t i = 0; i < R; i++)
            for (int64_t h = 0; h < H; h++) {
                double sum = skip ? get_element(&skip1, i * H + h) + get_element(&skip2, i * H + h) : 0;
                for (int64_t j = 0; j < K; j++) {
                    int64_t p = (int64_t)get_element(&place, mode < 2 ? j * R + i : i * K + j);
                    if (p < 0)
                        continue;
                    double v = get_element(&x, p * H + h);
                    v += biased ? get_element(&bias, (int64_t)get_element(&expert, i * K + j) * H + h) : 0;
                    sum += (scaled ? get_element(&scale, i * K + j) : 1) * v;
                }
                if (fabs(get_element(&out, i * H + h) - sum) > (type == ACL_FLOAT     ? 0x1p-19
                                                                : type == ACL_FLOAT16 ? 0x1p-10
                                                                                      : 0x1p-7) *
                                                                   (fabs(sum) + 0.1))
                    fail_msg("row %lld column %lld is %g, but must be %g", (long long)i, (long long)h,
                             get_element(&out, i * H + h), sum);
            }
        assert_true(untouched_outside(&out));
        set_element(&place, 4, (double)rows);
        fails_when_run(&a, "expandedRowIdx: element 4 is");
        put(&a, "expandedRowIdx", expert.handle);
        refused(&a, "expandedRowIdx has the shape [13,3]");
        put(&a, "expandedRowIdx", place.handle);
        if (biased) {
            put(&a, "expertIdxOptional", NULL);
            refused(&a, "expertIdxOptional is NULL");
        }
        tensor *every[] = {&x, &place, &skip1, &skip2, &bias, &scale, &expert, &out};
        for (int i = 0; i < 8; i++)
            free_tensor(every[i]);
    }
}

static void expert_tokens(void **state) {
    (void)state;
    static const double sorted[] = {0, 0, 1, 3, 3, 3, 7};
    static const double want[] = {2, 3, 3, 6, 6};
    int64_t n = 7, experts = 5;
    tensor in = make_tensor(ACL_INT32, 1, &n, STRIDED), out = make_tensor(ACL_INT32, 1, &experts, STRIDED);
    for (int i = 0; i < 7; i++)
        set_element(&in, i, sorted[i]);
    arguments a = begin_call("MoeComputeExpertTokens");
    put(&a, "sortedExperts", in.handle);
    put_integer(&a, "numExperts", 5);
    put(&a, "out", out.handle);
    must(&a);
    for (int i = 0; i < 5; i++)
        assert_true(get_element(&out, i) == want[i]);
    put_integer(&a, "numExperts", 6);
    refused(&a, "out has the shape [5], but must have 6 rows");
    put_integer(&a, "numExperts", -1);
    refused(&a, "numExperts is -1");
    free_tensor(&in);
    free_tensor(&out);
}

/* Tokens sorted by their experts, and back, with gradients; fewer rows than entries in some cases. */
static void permuting(void **state) {
    (void)state;
    enum { TOKENS = 7, WIDTH = 5, CHOICES = 3 };
    for (int c = 0; c < 24; c++) {
        aclDataType type = halves[c % 3];
        int64_t k = c / 3 % 2 ? CHOICES : 1, entries = TOKENS * k, rows = c / 6 % 2 ? entries - 4 : entries;
        bool flat = k == 1 && c / 12;
        tensor x = make_tensor(type, 2, (int64_t[]){TOKENS, WIDTH}, any_layout()),
               experts = make_tensor(c % 2 ? ACL_INT32 : ACL_INT64, flat ? 1 : 2, (int64_t[]){TOKENS, k}, any_layout()),
               permuted = make_tensor(type, 2, (int64_t[]){rows, WIDTH}, any_layout()),
               places = make_tensor(ACL_INT32, 1, &entries, any_layout()),
               probs = make_tensor(type, 2, (int64_t[]){TOKENS, k}, any_layout()),
               out = make_tensor(type, 2, x.dims, any_layout()), g = make_tensor(type, 2, x.dims, any_layout()),
               dtokens = make_tensor(type, 2, x.dims, any_layout()),
               drows = make_tensor(type, 2, permuted.dims, any_layout()),
               dprobs = make_tensor(type, 2, probs.dims, any_layout());
        fill(&x, -1, 1);
        fill(&g, -1, 1);
        fill(&probs, 0, 1);
        for (int64_t i = 0; i < entries; i++)
            set_element(&experts, i, (double)(random_bits() % 4));
        int64_t where[TOKENS * CHOICES], place = 0;
        for (int expert = 0; expert < 4; expert++)
            for (int64_t e = 0; e < entries; e++)
                if (get_element(&experts, e) == expert)
                    where[e] = place++;
        arguments call = begin_call("MoeTokenPermute"), back = begin_call("MoeTokenPermuteGrad"),
                  join = begin_call("MoeTokenUnpermute"), part = begin_call("MoeTokenUnpermuteGrad");
        put(&call, "tokens", x.handle);
        put(&call, "indices", experts.handle);
        put_integer(&call, "actual_num_out_tokens", rows);
        put(&call, "permuted_tokens", permuted.handle);
        put(&call, "sorted_indices", places.handle);
        must(&call);
        put(&back, "grad_permuted_tokens", permuted.handle);
        put(&back, "sorted_indices", places.handle);
        put_integer(&back, "num_topK", k);
        put(&back, "grad_tokens", dtokens.handle);
        must(&back);
        put(&join, "permuted_tokens", permuted.handle);
        put(&join, "sorted_indices", places.handle);
        put(&join, "probsOptional", k == 1 && c % 2 ? NULL : probs.handle);
        put(&join, "unpermuted_tokens", out.handle);
        must(&join);
        put(&part, "permuted_tokensOptional", permuted.handle);
        put(&part, "grad_unpermuted_tokens", g.handle);
        put(&part, "sorted_indices", places.handle);
        put(&part, "probsOptional", probs.handle);
        put(&part, "grad_permuted_tokens", drows.handle);
        put(&part, "grad_probs", dprobs.handle);
        must(&part);
        for (int64_t e = 0; e < entries; e++) {
            double sum = 0;
            assert_true(get_element(&places, e) == (double)where[e]);
            for (int64_t h = 0; h < WIDTH && where[e] < rows; h++) {
                double value = get_element(&x, e / k * WIDTH + h), gradient = get_element(&g, e / k * WIDTH + h);
                assert_true(get_element(&permuted, where[e] * WIDTH + h) == value);
                near("drows", &drows, where[e] * WIDTH + h, get_element(&probs, e) * gradient);
                sum += value * gradient;
            }
            near("dprobs", &dprobs, e, sum);
        }
        for (int64_t i = 0; i < x.count; i++) {
            double sum = 0, weighted = 0;
            for (int64_t e = i / WIDTH * k; e < (i / WIDTH + 1) * k; e++) {
                if (where[e] >= rows)
                    continue;
                sum += get_element(&x, i);
                weighted += get_element(&x, i) * (k == 1 && c % 2 ? 1 : get_element(&probs, e));
            }
            near("dtokens", &dtokens, i, sum);
            near("joined", &out, i, weighted);
        }
        put_integer(&call, "padded_mode", 1);
        uint64_t size;
        aclOpExecutor *executor;
        assert_int_not_equal(call.op->prepare(call.values, &size, &executor), 0);
        assert_non_null(strstr(sentence(), "without padding"));
        set_element(&places, 1, (double)entries);
        fails_when_run(&join, "element 1 is");
        tensor *all[] = {&x, &experts, &permuted, &places, &probs, &out, &g, &dtokens, &drows, &dprobs};
        for (int i = 0; i < 10; i++) {
            assert_true(untouched_outside(all[i]));
            free_tensor(all[i]);
        }
    }
}

int main(void) {
    test_begin();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gating_softmax), cmocka_unit_test(gating_groups), cmocka_unit_test(routing),
        cmocka_unit_test(joining),        cmocka_unit_test(permuting),     cmocka_unit_test(expert_tokens),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    test_end();
    return failed;
}
