/*
 * Many threads call operators at once, each on streams of its own and on one that all share; every result is checked.
 * And nothing is left behind: neither device memory nor the library's own.
 */
#include "ops/ops_test.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#if defined(__SANITIZE_THREAD__)
enum { THREADS = 8, ROUNDS = 40, SMALL_CALLS = 1000 };
#else
enum { THREADS = 8, ROUNDS = 200, SMALL_CALLS = 10000 };
#endif
enum { ROWS = 6, COLUMNS = 37, COUNT = ROWS * COLUMNS };

static aclrtStream shared;

/* Device memory seen as a contiguous float matrix. */
static aclTensor *matrix(float *data, int64_t rows, int64_t columns) {
    int64_t dims[] = {rows, columns}, storage = rows * columns;
    return aclCreateTensor(dims, 2, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, &storage, 1, data);
}

/* Runs both phases on the stream; objects may be gone when this returns. */
static bool call_on(aclrtStream stream, const char *name, const caller_value *values) {
    const caller *op = find_caller(name);
    uint64_t size = 0;
    aclOpExecutor *executor = NULL;
    void *workspace = NULL;
    if (op->prepare(values, &size, &executor) || (size && aclrtMalloc(&workspace, size, ACL_MEM_MALLOC_HUGE_FIRST)))
        return false;
    bool ok = op->run(workspace, size, executor, stream) == 0;
    if (workspace)
        aclrtFree(workspace);
    return ok;
}

typedef struct work {
    float *a, *b, *c; /* ROWS x COLUMNS, device memory */
    aclrtStream stream;
    unsigned seed;
} work;

static float value(unsigned seed, int i) {
    return (float)((seed * 31 + (unsigned)i * 7) % 23) / 8 - 1;
}

static bool near(float got, double want) {
    return fabs((double)got - want) <= 1e-4 * (1 + fabs(want));
}

/* Adds, multiplies, reduces, normalises, permutes and sorts what the seed gives, and looks at all of it. */
static const char *one_round(const work *w) {
    for (int i = 0; i < COUNT; i++) {
        w->a[i] = value(w->seed, i);
        w->b[i] = value(w->seed + 1, i);
    }
    float two = 2;
    int64_t last = -1, order[] = {1, 0};
    aclScalar *alpha = aclCreateScalar(&two, ACL_FLOAT);
    aclIntArray *dims = aclCreateIntArray(&last, 1), *turned = aclCreateIntArray(order, 2);
    aclTensor *a = matrix(w->a, ROWS, COLUMNS), *b = matrix(w->b, ROWS, COLUMNS), *c = matrix(w->c, ROWS, COLUMNS);
    aclTensor *t = matrix(w->c, COLUMNS, ROWS), *sums = matrix(w->c, ROWS, 1);
    const char *wrong = NULL;
    bool ok =
        call_on(w->stream, "Add", (caller_value[]){P(a), P(b), P(alpha), P(c)}) && !aclrtSynchronizeStream(w->stream);
    for (int i = 0; i < COUNT && ok && !wrong; i++)
        wrong = near(w->c[i], (double)w->a[i] + 2.0 * (double)w->b[i]) ? NULL : "Add";
    ok = ok && call_on(w->stream, "Permute", (caller_value[]){P(a), P(turned), P(t)}) &&
         !aclrtSynchronizeStream(w->stream);
    for (int i = 0; i < COUNT && ok && !wrong; i++)
        wrong = near(w->c[i % COLUMNS * ROWS + i / COLUMNS], (double)w->a[i]) ? NULL : "Permute";
    ok = ok && call_on(w->stream, "Softmax", (caller_value[]){P(a), I(-1), P(c)}) && /* in stream order, no wait */
         call_on(w->stream, "InplaceMul", (caller_value[]){P(c), P(a)}) && !aclrtSynchronizeStream(w->stream);
    for (int r = 0; r < ROWS && ok && !wrong; r++) {
        double sum = 0;
        for (int k = 0; k < COLUMNS; k++)
            sum += exp((double)w->a[r * COLUMNS + k]);
        for (int k = 0; k < COLUMNS && !wrong; k++) {
            double x = (double)w->a[r * COLUMNS + k];
            wrong = near(w->c[r * COLUMNS + k], exp(x) / sum * x) ? NULL : "Softmax, InplaceMul";
        }
    }
    ok = ok && call_on(w->stream, "ReduceSum", (caller_value[]){P(b), P(dims), I(1), I(ACL_FLOAT), P(sums)}) &&
         !aclrtSynchronizeStream(w->stream);
    for (int r = 0; r < ROWS && ok && !wrong; r++) {
        double sum = 0;
        for (int k = 0; k < COLUMNS; k++)
            sum += (double)w->b[r * COLUMNS + k];
        wrong = near(w->c[r], sum) ? NULL : "ReduceSum";
    }
    ok = ok && call_on(w->stream, "Mm", (caller_value[]){P(a), P(t), P(sums), I(0)}) == false; /* refused: shapes */
    aclTensor *all[] = {a, b, c, t, sums};
    for (int i = 0; i < 5; i++)
        aclDestroyTensor(all[i]);
    aclDestroyScalar(alpha);
    aclDestroyIntArray(dims);
    aclDestroyIntArray(turned);
    return wrong ? wrong : ok ? NULL : "a call failed";
}

static void *work_thread(void *argument) {
    unsigned index = (unsigned)(uintptr_t)argument;
    work w = {.seed = index * 1000};
    aclrtStream own;
    const char *wrong = NULL;
    if (aclrtSetDevice(0) || aclrtCreateStream(&own) ||
        aclrtMalloc((void **)&w.a, COUNT * 4, ACL_MEM_MALLOC_HUGE_FIRST) ||
        aclrtMalloc((void **)&w.b, COUNT * 4, ACL_MEM_MALLOC_HUGE_FIRST) ||
        aclrtMalloc((void **)&w.c, COUNT * 4, ACL_MEM_MALLOC_HUGE_FIRST))
        return "no stream or memory";
    for (int round = 0; round < ROUNDS && !wrong; round++, w.seed++) {
        w.stream = round % 3 ? own : shared;
        wrong = one_round(&w);
    }
    aclrtFree(w.a);
    aclrtFree(w.b);
    aclrtFree(w.c);
    aclrtDestroyStream(own);
    return (void *)(uintptr_t)wrong;
}

static void run_threads(void) {
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work_thread, (void *)i), 0);
    for (int i = 0; i < THREADS; i++) {
        void *wrong = NULL;
        assert_int_equal(pthread_join(threads[i], &wrong), 0);
        if (wrong)
            fail_msg("thread %d: %s: %s", i, (const char *)wrong, sentence());
    }
}

static void many_threads_and_streams(void **state) {
    (void)state;
    test_begin();
    assert_int_equal(aclrtCreateStream(&shared), 0);
    run_threads();
    assert_int_equal(aclrtDestroyStream(shared), 0);
    test_end();
}

typedef struct usage {
    size_t free_bytes, own_bytes, own_blocks;
} usage;

static usage usage_now(void) {
    usage u = {0};
    size_t total;
    assert_int_equal(aclrtGetMemInfo(ACL_HBM_MEM, &u.free_bytes, &total), 0);
    for (int kind = 0; kind < DP_MEM_KIND_COUNT; kind++) {
        dp_mem_stats stats = dp_mem_stats_of((dp_mem_kind)kind);
        u.own_bytes += stats.live_bytes;
        u.own_blocks += stats.live_blocks;
    }
    return u;
}

/* Accepted, refused, failing in the stream, abandoned between the phases. */
static void small_call(float *a, float *b, int i) {
    static const char *const names[] = {"Exp", "Neg", "Relu", "Sigmoid", "Cos"};
    aclTensor *x = matrix(a, 3, 5), *y = matrix(b, 3, 5), *odd = matrix(b, 5, 3);
    const caller *op = find_caller(names[i % 5]);
    uint64_t size = 0;
    aclOpExecutor *executor = NULL;
    assert_int_equal(call_op(op->name, (caller_value[]){P(x), P(y)}), 0);
    assert_int_not_equal(call_op(op->name, (caller_value[]){P(x), P(odd)}), 0);
    if (i % 7 == 0) {
        assert_int_equal(op->prepare((caller_value[]){P(x), P(y)}, &size, &executor), 0);
        assert_int_equal(aclDestroyAclOpExecutor(executor), 0);
    }
    if (i % 50 == 0) { /* an index that is outside */
        int64_t dims[] = {1}, *index;
        assert_int_equal(aclrtMalloc((void **)&index, 8, ACL_MEM_MALLOC_HUGE_FIRST), 0);
        *index = 99;
        aclrtStream stream;
        assert_int_equal(aclrtCreateStream(&stream), 0);
        aclTensor *at = aclCreateTensor(dims, 1, ACL_INT64, NULL, 0, ACL_FORMAT_ND, dims, 1, index);
        aclTensor *row = matrix(b, 1, 5);
        assert_true(call_on(stream, "IndexSelect", (caller_value[]){P(x), I(0), P(at), P(row)}));
        assert_int_not_equal(aclrtSynchronizeStream(stream), 0);
        aclDestroyTensor(at);
        aclDestroyTensor(row);
        assert_int_equal(aclrtDestroyStream(stream), 0);
        assert_int_equal(aclrtFree(index), 0);
    }
    aclDestroyTensor(x);
    aclDestroyTensor(y);
    aclDestroyTensor(odd);
}

static void nothing_is_left_behind(void **state) {
    (void)state;
    test_begin();
    float *a, *b;
    assert_int_equal(aclrtMalloc((void **)&a, 256, ACL_MEM_MALLOC_HUGE_FIRST), 0);
    assert_int_equal(aclrtMalloc((void **)&b, 256, ACL_MEM_MALLOC_HUGE_FIRST), 0);
    for (int i = 0; i < 100; i++) /* what is made once and kept */
        small_call(a, b, i);
    usage before = usage_now();
    for (int i = 0; i < SMALL_CALLS; i++)
        small_call(a, b, i);
    usage after = usage_now();
    assert_int_equal(after.free_bytes, before.free_bytes);
    assert_int_equal(after.own_bytes, before.own_bytes);
    assert_int_equal(after.own_blocks, before.own_blocks);
    assert_int_equal(aclrtFree(a), 0);
    assert_int_equal(aclrtFree(b), 0);
    test_end();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_threads_and_streams),
        cmocka_unit_test(nothing_is_left_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
