/*
 * Philox against the vectors published with Random123, every distribution against its mapping written out here (so that
 * nothing depends on strides or workers), and bounds of statistics.
 */
#include "ops/random/kernels.h"
#include "ops_test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const aclDataType floats[] = {ACL_FLOAT, ACL_FLOAT16, ACL_BF16, ACL_DOUBLE};
static const aclDataType integers[] = {ACL_INT32, ACL_INT64, ACL_INT8, ACL_UINT8, ACL_INT16, ACL_UINT16, ACL_UINT32};

static layout any_layout(void) {
    return (layout)(random_bits() % LAYOUTS);
}

static void must(const char *name, const caller_value *values) {
    if (call_op(name, values))
        fail_msg("%s: %s", name, sentence());
}

static void refused(const char *name, const caller_value *values, const char *word) {
    assert_int_equal(call_op(name, values), ACLNN_ERR_PARAM_INVALID);
    const char *text = sentence();
    if (!strstr(text, word))
        fail_msg("%s says %s", name, text);
}

static void fails_later(const char *name, const caller_value *values, const char *word) {
    const caller *op = find_caller(name);
    uint64_t size;
    aclOpExecutor *executor;
    aclrtStream stream;
    assert_int_equal(aclrtCreateStream(&stream), 0);
    if (op->prepare(values, &size, &executor))
        fail_msg("%s: %s", name, sentence());
    assert_int_equal(op->run(NULL, 0, executor, stream), 0);
    assert_int_not_equal(aclrtSynchronizeStream(stream), 0);
    const char *text = sentence();
    if (!strstr(text, word))
        fail_msg("%s says %s", name, text);
    assert_int_equal(aclrtDestroyStream(stream), 0);
}

/* Word `index` of the stream, by the definition. */
static uint32_t word_at(uint64_t seed, uint64_t offset, uint64_t index) {
    uint32_t c[4] = {(uint32_t)(index / 4), (uint32_t)(index / 4 >> 32), (uint32_t)offset, (uint32_t)(offset >> 32)},
             k[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    for (int r = 0; r < 10; r++) {
        uint64_t a = 0xD2511F53ull * c[0], b = 0xCD9E8D57ull * c[2];
        uint32_t next[4] = {(uint32_t)(b >> 32) ^ c[1] ^ k[0], (uint32_t)b, (uint32_t)(a >> 32) ^ c[3] ^ k[1],
                            (uint32_t)a};
        memcpy(c, next, sizeof c);
        k[0] += 0x9E3779B9;
        k[1] += 0xBB67AE85;
    }
    return c[index % 4];
}

static uint64_t pair_at(uint64_t seed, uint64_t offset, uint64_t index) {
    return (uint64_t)word_at(seed, offset, 2 * index + 1) << 32 | word_at(seed, offset, 2 * index);
}

static void known_answers(void **state) {
    (void)state;
    static const struct {
        uint64_t block, offset, seed;
        uint32_t words[4];
    } vectors[] = {
        {0, 0, 0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {UINT64_MAX, UINT64_MAX, UINT64_MAX, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {0x85a308d3243f6a88, 0x0370734413198a2e, 0x299f31d0a4093822, {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (int v = 0; v < 3; v++) {
        uint32_t words[4];
        dp_philox_current()(words, vectors[v].seed, vectors[v].offset, vectors[v].block, 1);
        assert_memory_equal(words, vectors[v].words, sizeof words);
    }
    uint32_t many[4 * 100];
    dp_philox_current()(many, 7, 9, UINT32_MAX - 20, 100);
    for (uint64_t i = 0; i < 400; i++)
        assert_int_equal(many[i], word_at(7, 9, (UINT32_MAX - 20) * 4ull + i));
}

static const uint64_t seeds[] = {0, 1234567, 0xfedcba9876543210};

static tensor one(int64_t value) {
    int64_t dims[] = {1};
    tensor t = make_tensor(ACL_INT64, 1, dims, CONTIGUOUS);
    *(int64_t *)t.data = value;
    return t;
}

static void uniforms(void **state) {
    (void)state;
    int64_t dims[] = {3, 70, 11};
    for (int t = 0; t < 4; t++)
        for (int s = 0; s < 3; s++) {
            tensor out = make_tensor(floats[t], 3, dims, any_layout()),
                   again = make_tensor(floats[t], 3, dims, any_layout());
            tensor seed = one((int64_t)seeds[s]), offset = one(40);
            must("InplaceUniform", (caller_value[]){T(out), R(-3.0), R(5.0), I((int64_t)seeds[s]), I(50)});
            must("InplaceUniformTensor", (caller_value[]){T(again), R(-3.0), R(5.0), T(seed), T(offset), I(10)});
            for (int64_t i = 0; i < out.count; i++) {
                double u = floats[t] == ACL_DOUBLE ? (double)(pair_at(seeds[s], 50, (uint64_t)i) >> 11) * 0x1p-53
                                                   : (double)(word_at(seeds[s], 50, (uint64_t)i) >> 8) * 0x1p-24;
                double want = round_to(floats[t], floats[t] == ACL_DOUBLE ? -3 + 8 * u : (double)(float)(-3 + 8 * u));
                want = want < 5 ? want : -3;
                assert_true(get_element(&out, i) == want && get_element(&again, i) == want);
            }
            assert_true(untouched_outside(&out) && untouched_outside(&again));
            free_tensor(&out);
            free_tensor(&again);
            free_tensor(&seed);
            free_tensor(&offset);
        }
}

static void normals(void **state) {
    (void)state;
    static const char *const names[] = {"InplaceNormal", "NormalFloatFloat", "NormalTensorFloat", "NormalFloatTensor",
                                        "NormalTensorTensor"};
    int64_t dims[] = {5, 223}, row = 223;
    for (int t = 0; t < 4; t++)
        for (int form = 0; form < 5; form++) {
            tensor out = make_tensor(floats[t], 2, dims, any_layout()),
                   mean = make_tensor(ACL_FLOAT, 1, &row, any_layout()),
                   deviation = make_tensor(floats[t], 2, dims, any_layout());
            for (int64_t i = 0; i < 223; i++)
                set_element(&mean, i, (double)(i % 9));
            for (int64_t i = 0; i < deviation.count; i++)
                set_element(&deviation, i, (double)(i % 3));
            caller_value m = {.real = 2}, d = {.real = 0.5};
            if (form == 2 || form == 4)
                m = (caller_value)T(mean);
            if (form == 3 || form == 4)
                d = (caller_value)T(deviation);
            caller_value inplace[] = {T(out), m, d, I(99), I(3)}, apart[] = {m, d, I(99), I(3), T(out)};
            must(names[form], form ? apart : inplace);
            bool wide = floats[t] == ACL_DOUBLE;
            for (int64_t i = 0; i < out.count; i++) {
                uint64_t k = (uint64_t)i / 2;
                double radius = wide ? (double)((pair_at(99, 3, 2 * k) >> 11) + 1) * 0x1p-53
                                     : ((double)word_at(99, 3, 2 * k) + 1) * 0x1p-32;
                double angle = wide ? (double)(pair_at(99, 3, 2 * k + 1) >> 11) * 0x1p-53
                                    : (double)(word_at(99, 3, 2 * k + 1) >> 8) * 0x1p-24;
                double z = sqrt(-2 * log(radius)) * (i % 2 ? sin(2 * M_PI * angle) : cos(2 * M_PI * angle));
                double mu = form == 2 || form == 4 ? (double)(i % 223 % 9) : 2,
                       sigma = form == 3 || form == 4 ? (double)(i % 3) : 0.5, want = mu + sigma * z;
                double unit = wide ? 1e-13 : floats[t] == ACL_FLOAT ? 1e-5 : floats[t] == ACL_FLOAT16 ? 2e-3 : 2e-2;
                if (!(fabs(get_element(&out, i) - want) <= unit * (1 + fabs(want))))
                    fail_msg("%s type %d, element %lld: %g, but must be %g", names[form], floats[t], (long long)i,
                             get_element(&out, i), want);
            }
            assert_true(untouched_outside(&out));
            free_tensor(&out);
            free_tensor(&mean);
            free_tensor(&deviation);
        }
}

static void bernoullis(void **state) {
    (void)state;
    int64_t dims[] = {40, 51};
    float half = 0.25f;
    aclScalar *p = aclCreateScalar(&half, ACL_FLOAT);
    for (int t = 0; t < 6; t++) {
        aclDataType type = t < 4 ? floats[t] : t == 4 ? ACL_BOOL : ACL_INT64;
        tensor out = make_tensor(type, 2, dims, any_layout()), odds = make_tensor(ACL_FLOAT, 2, dims, any_layout());
        for (int64_t i = 0; i < odds.count; i++)
            set_element(&odds, i, (double)(i % 5) / 4);
        must("InplaceBernoulli", (caller_value[]){T(out), P(p), I(8), I(10)});
        for (int64_t i = 0; i < out.count; i++)
            assert_true(get_element(&out, i) == ((double)word_at(8, 10, (uint64_t)i) * 0x1p-32 < 0.25));
        must("InplaceBernoulliTensor", (caller_value[]){T(out), T(odds), I(8), I(11)});
        for (int64_t i = 0; i < out.count; i++)
            assert_true(get_element(&out, i) == ((double)word_at(8, 11, (uint64_t)i) * 0x1p-32 < (double)(i % 5) / 4));
        assert_true(untouched_outside(&out));
        set_element(&odds, 7, 1.5);
        fails_later("InplaceBernoulliTensor", (caller_value[]){T(out), T(odds), I(8), I(11)},
                    "element 7 is no probability");
        free_tensor(&out);
        free_tensor(&odds);
    }
    aclDestroyScalar(p);
}

static void whole_numbers(void **state) {
    (void)state;
    int64_t dims[] = {9, 300};
    for (int t = 0; t < 7; t++) {
        tensor out = make_tensor(integers[t], 2, dims, any_layout());
        int64_t low = integers[t] == ACL_UINT8 || integers[t] == ACL_UINT16 || integers[t] == ACL_UINT32 ? 3 : -60;
        must("InplaceRandom", (caller_value[]){T(out), I(low), I(117), I(5), I(6)});
        for (int64_t i = 0; i < out.count; i++) {
            uint64_t scaled = (uint64_t)((unsigned __int128)pair_at(5, 6, (uint64_t)i) * (uint64_t)(117 - low) >> 64);
            assert_true(get_element(&out, i) == (double)(low + (int64_t)scaled));
        }
        must("InplaceRandomWithoutFromTo", (caller_value[]){T(out), I(5), I(7)});
        double most = 0;
        for (int64_t i = 0; i < out.count; i++) {
            assert_true(get_element(&out, i) >= 0);
            most = fmax(most, get_element(&out, i));
        }
        double limit = integers[t] == ACL_INT32    ? 0x1p31
                       : integers[t] == ACL_INT64  ? 0x1p63
                       : integers[t] == ACL_INT8   ? 0x1p7
                       : integers[t] == ACL_UINT8  ? 0x1p8
                       : integers[t] == ACL_INT16  ? 0x1p15
                       : integers[t] == ACL_UINT16 ? 0x1p16
                                                   : 0x1p32;
        assert_true(most < limit && most > limit * 0.98);
        assert_true(untouched_outside(&out));
        free_tensor(&out);
    }
    tensor small = make_tensor(ACL_INT8, 2, dims, CONTIGUOUS), wide = make_tensor(ACL_INT64, 2, dims, CONTIGUOUS);
    refused("InplaceRandom", (caller_value[]){T(small), I(0), I(129), I(0), I(0)}, "cannot hold");
    refused("InplaceRandom", (caller_value[]){T(small), I(4), I(4), I(0), I(0)}, "from is 4, but must be below to, 4");
    must("InplaceRandom", (caller_value[]){T(wide), I(INT64_MIN), I(INT64_MAX), I(0), I(0)});
    free_tensor(&small);
    free_tensor(&wide);
}

static void masks(void **state) {
    (void)state;
    int64_t dims[] = {7, 331}, bytes = 304;
    aclIntArray *shape = aclCreateIntArray(dims, 2);
    for (int t = 0; t < 4; t++) {
        tensor self = make_tensor(floats[t], 2, dims, any_layout()),
               out = make_tensor(floats[t], 2, dims, any_layout()),
               mask = make_tensor(ACL_UINT8, 1, &bytes, CONTIGUOUS),
               other = make_tensor(ACL_UINT8, 1, &bytes, CONTIGUOUS);
        tensor seed = one(77), offset = one(1);
        for (int64_t i = 0; i < self.count; i++)
            set_element(&self, i, random_between(-9, 9));
        must("DropoutGenMaskV2", (caller_value[]){P(shape), R(0.75), I(77), I(4), I(ACL_FLOAT), T(mask)});
        must("DropoutGenMaskV2Tensor",
             (caller_value[]){P(shape), R(0.75), T(seed), T(offset), I(3), I(ACL_FLOAT), T(other)});
        assert_memory_equal(mask.data, other.data, 304);
        must("DropoutGenMask", (caller_value[]){P(shape), R(0.75), I(77), I(4), T(other)});
        assert_memory_equal(mask.data, other.data, 304);
        must("DropoutDoMask", (caller_value[]){T(self), T(mask), R(0.75), T(out)});
        const uint8_t *bits = mask.data;
        for (int64_t i = 0; i < 304 * 8; i++) {
            bool keep = i < self.count && (double)word_at(77, 4, (uint64_t)i) * 0x1p-32 < 0.25;
            assert_int_equal(bits[i / 8] >> i % 8 & 1, keep);
            if (i < self.count)
                assert_true(get_element(&out, i) == (keep ? round_to(floats[t], 4 * get_element(&self, i)) : 0));
        }
        must("DropoutV3", (caller_value[]){T(self), P(NULL), R(0.75), I(77), I(4), T(out), T(other)});
        assert_memory_equal(mask.data, other.data, 304);
        must("DropoutDoMask", (caller_value[]){T(self), T(mask), R(1.0), T(out)});
        for (int64_t i = 0; i < out.count; i++)
            assert_true(get_element(&out, i) == 0);
        assert_true(untouched_outside(&out) && untouched_outside(&mask) && untouched_outside(&other));
        int64_t fewer = 303;
        tensor small = make_tensor(ACL_UINT8, 1, &fewer, CONTIGUOUS);
        refused("DropoutDoMask", (caller_value[]){T(self), T(small), R(0.5), T(out)}, "must have at least 304");
        refused("DropoutGenMask", (caller_value[]){P(shape), R(1.25), I(0), I(0), T(mask)}, "p is 1.25");
        free_tensor(&self);
        free_tensor(&out);
        free_tensor(&mask);
        free_tensor(&other);
        free_tensor(&small);
        free_tensor(&seed);
        free_tensor(&offset);
    }
    int64_t hostile[] = {INT64_MAX, 3};
    aclIntArray *huge = aclCreateIntArray(hostile, 2);
    tensor mask = make_tensor(ACL_UINT8, 1, &bytes, CONTIGUOUS);
    refused("DropoutGenMask", (caller_value[]){P(huge), R(0.5), I(0), I(0), T(mask)}, "shapeArray[1] is 3");
    free_tensor(&mask);
    aclDestroyIntArray(huge);
    aclDestroyIntArray(shape);
}

typedef struct keyed {
    uint64_t key;
    int64_t index;
} keyed;

static int by_key(const void *a, const void *b) {
    const keyed *x = a, *y = b;
    return x->key < y->key ? -1 : x->key > y->key ? 1 : x->index < y->index ? -1 : 1;
}

static void permutations(void **state) {
    (void)state;
    static const int64_t sizes[] = {0, 1, 5, 128, 5000};
    static keyed keys[5000];
    for (int s = 0; s < 5; s++)
        for (int t = 0; t < 3; t++) {
            int64_t n = sizes[s];
            tensor out = make_tensor(t == 0 ? ACL_INT64 : t == 1 ? ACL_INT32 : ACL_DOUBLE, 1, &n, any_layout());
            must("Randperm", (caller_value[]){I(n), I(31), I(2), T(out)});
            for (int64_t i = 0; i < n; i++)
                keys[i] = (keyed){pair_at(31, 2, (uint64_t)i), i};
            qsort(keys, (size_t)n, sizeof *keys, by_key);
            for (int64_t i = 0; i < n; i++)
                assert_true(get_element(&out, i) == (double)keys[i].index);
            assert_true(untouched_outside(&out));
            free_tensor(&out);
        }
    int64_t n = 3;
    tensor out = make_tensor(ACL_INT64, 1, &n, CONTIGUOUS);
    refused("Randperm", (caller_value[]){I(-1), I(0), I(0), T(out)}, "n is -1");
    refused("Randperm", (caller_value[]){I(4), I(0), I(0), T(out)}, "dimension 0 is 3, but must be 4");
    free_tensor(&out);
}

static void categories(void **state) {
    (void)state;
    enum { LINES = 3, CLASSES = 6, SAMPLES = 20000 };
    int64_t dims[] = {LINES, CLASSES}, many[] = {LINES, SAMPLES}, few[] = {LINES, 4};
    for (int t = 0; t < 4; t++) {
        tensor weights = make_tensor(floats[t], 2, dims, any_layout()),
               out = make_tensor(ACL_INT64, 2, many, any_layout()),
               apart = make_tensor(ACL_INT64, 2, few, any_layout());
        for (int64_t i = 0; i < weights.count; i++)
            set_element(&weights, i, (double)(i % CLASSES == 2 ? 0 : i % CLASSES + 1));
        must("Multinomial", (caller_value[]){T(weights), I(SAMPLES), I(1), I(12), I(13), T(out)});
        for (int line = 0; line < LINES; line++) {
            double counts[CLASSES] = {0};
            for (int64_t k = 0; k < SAMPLES; k++) {
                double v = get_element(&out, line * SAMPLES + k);
                assert_true(v >= 0 && v < CLASSES && v != 2);
                counts[(int)v]++;
            }
            double chi = 0; /* 4 degrees of freedom: above 30 once in 200,000 */
            for (int c = 0; c < CLASSES; c++) {
                double expected = c == 2 ? 0 : SAMPLES * (c + 1) / 18.0;
                chi += c == 2 ? 0 : (counts[c] - expected) * (counts[c] - expected) / expected;
            }
            assert_true(chi < 30);
        }
        double first[CLASSES] = {0};
        for (int round = 0; round < 600; round++) {
            must("Multinomial", (caller_value[]){T(weights), I(4), I(0), I(round), I(0), T(apart)});
            for (int line = 0; line < LINES; line++) {
                unsigned seen = 0;
                for (int k = 0; k < 4; k++) {
                    unsigned bit = 1u << (unsigned)get_element(&apart, line * 4 + k);
                    assert_true(!(seen & bit) && bit != 4);
                    seen |= bit;
                }
                first[(int)get_element(&apart, line * 4)]++;
            }
        }
        for (int c = 0; c < CLASSES; c++) { /* the first of four has the weights' distribution: five deviations */
            double p = c == 2 ? 0 : (c + 1) / 18.0;
            assert_true(fabs(first[c] - 1800 * p) <= 5 * sqrt(1800 * p * (1 - p)));
        }
        assert_true(untouched_outside(&out) && untouched_outside(&apart));
        set_element(&weights, CLASSES, -1);
        fails_later("Multinomial", (caller_value[]){T(weights), I(4), I(0), I(0), I(0), T(apart)},
                    "self: line 1 must hold");
        refused("Multinomial", (caller_value[]){T(weights), I(7), I(0), I(0), I(0), T(out)}, "7 for 6 categories");
        free_tensor(&weights);
        free_tensor(&out);
        free_tensor(&apart);
    }
}

static void leaky(void **state) {
    (void)state;
    int64_t n = 3000;
    float limits[] = {0.125f, 0.25f};
    aclScalar *low = aclCreateScalar(&limits[0], ACL_FLOAT), *high = aclCreateScalar(&limits[1], ACL_FLOAT);
    for (int t = 0; t < 4; t++)
        for (int training = 0; training < 2; training++) {
            tensor self = make_tensor(floats[t], 1, &n, any_layout()),
                   noise = make_tensor(floats[t], 1, &n, any_layout()),
                   out = make_tensor(floats[t], 1, &n, any_layout());
            for (int64_t i = 0; i < n; i++)
                set_element(&self, i, i % 7 == 0 ? 0 : random_between(-4, 4));
            must("RReluWithNoise",
                 (caller_value[]){T(self), T(noise), P(low), P(high), I(training), I(1), I(2), T(out)});
            for (int64_t i = 0; i < n; i++) {
                double x = get_element(&self, i), u = (double)(pair_at(1, 2, (uint64_t)i) >> 11) * 0x1p-53;
                double slope = x > 0 ? 1 : training ? 0.125 + 0.125 * u : 0.1875;
                assert_true(get_element(&out, i) == round_to(floats[t], x * slope));
                if (training)
                    assert_true(get_element(&noise, i) == round_to(floats[t], slope));
            }
            assert_true(untouched_outside(&out));
            must("InplaceRReluWithNoise",
                 (caller_value[]){T(self), T(noise), P(low), P(high), I(training), I(1), I(2)});
            for (int64_t i = 0; i < n; i++)
                assert_true(get_element(&self, i) == get_element(&out, i));
            free_tensor(&self);
            free_tensor(&noise);
            free_tensor(&out);
        }
    aclDestroyScalar(low);
    aclDestroyScalar(high);
}

/* Mean and variance within five deviations of what they must be, and no correlation of neighbours. */
static void check_moments(const char *name, const tensor *t, double mean, double variance, double fourth) {
    double n = (double)t->count, sum = 0, squares = 0, product = 0, before = 0;
    for (int64_t i = 0; i < t->count; i++) {
        double x = get_element(t, i) - mean;
        sum += x;
        squares += x * x;
        product += x * before;
        before = x;
    }
    bool ok = fabs(sum / n) < 5 * sqrt(variance / n) && fabs(squares / n - variance) < 5 * sqrt(fourth / n) &&
              fabs(product / n) < 5 * variance / sqrt(n);
    if (!ok)
        fail_msg("%s: mean off by %g, variance %g instead of %g, neighbours %g", name, sum / n, squares / n, variance,
                 product / n);
}

static void moments(void **state) {
    (void)state;
    int64_t n = 1 << 19;
    for (int t = 0; t < 4; t += 3)
        for (int s = 0; s < 3; s++) {
            tensor x = make_tensor(floats[t], 1, &n, CONTIGUOUS);
            must("InplaceUniform", (caller_value[]){T(x), R(0.0), R(1.0), I((int64_t)seeds[s]), I(0)});
            check_moments("uniform", &x, 0.5, 1.0 / 12, 1.0 / 180);
            must("InplaceNormal", (caller_value[]){T(x), R(3.0), R(2.0), I((int64_t)seeds[s]), I(10)});
            check_moments("normal", &x, 3, 4, 32);
            must("SimThreadExponential", (caller_value[]){T(x), I(n), R(0.5), I((int64_t)seeds[s]), I(20)});
            check_moments("exponential", &x, 2, 4, 128);
            for (int64_t i = 0; i < n; i++)
                assert_true(get_element(&x, i) >= 0);
            must("InplaceRandom", (caller_value[]){T(x), I(0), I(10), I((int64_t)seeds[s]), I(30)});
            check_moments("integers", &x, 4.5, 8.25, 53);
            free_tensor(&x);
        }
}

static void wrong_calls(void **state) {
    (void)state;
    int64_t n = 4, two = 2;
    tensor x = make_tensor(ACL_FLOAT, 1, &n, CONTIGUOUS), i = make_tensor(ACL_INT32, 1, &n, CONTIGUOUS),
           seeds_of = make_tensor(ACL_INT64, 1, &two, CONTIGUOUS), seed = one(1);
    refused("InplaceUniform", (caller_value[]){T(x), R(2.0), R(1.0), I(0), I(0)}, "from is 2 and to 1");
    refused("InplaceUniform", (caller_value[]){T(i), R(0.0), R(1.0), I(0), I(0)}, "self has elements of type i32");
    refused("InplaceUniformTensor", (caller_value[]){T(x), R(0.0), R(1.0), T(seeds_of), T(seed), I(0)},
            "seed_ptr has 2 elements");
    refused("InplaceNormal", (caller_value[]){T(x), R(0.0), R(-1.0), I(0), I(0)}, "rstd_cast is -1");
    refused("NormalTensorFloat", (caller_value[]){T(x), R(1.0), I(0), I(0), T(seeds_of)},
            "out has elements of type i64");
    refused("SimThreadExponential", (caller_value[]){T(x), I(5), R(1.0), I(0), I(0)}, "count is 5");
    refused("SimThreadExponential", (caller_value[]){T(x), I(4), R(0.0), I(0), I(0)}, "lambd is 0");
    free_tensor(&x);
    free_tensor(&i);
    free_tensor(&seeds_of);
    free_tensor(&seed);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_answers), cmocka_unit_test(uniforms),      cmocka_unit_test(normals),
        cmocka_unit_test(bernoullis),    cmocka_unit_test(whole_numbers), cmocka_unit_test(masks),
        cmocka_unit_test(permutations),  cmocka_unit_test(categories),    cmocka_unit_test(leaky),
        cmocka_unit_test(moments),       cmocka_unit_test(wrong_calls),
    };
    return cmocka_run_group_tests(tests, test_setup, test_teardown);
}
