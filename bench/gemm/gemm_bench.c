/*
 * gemm_bench [repeats [threads [word]]] - the matrix engine against oneDNN's dnnl_sgemm on one and two (or only one)
 * threads, both sides taking turns in one run. Columns: time of sgemm (minimum), then for every type ours / theirs as a
 * ratio of speeds: of the minima, and of the medians in brackets. Half, bfloat16 and int8 are compared with the float
 * dnnl_sgemm. B is packed by us inside the measured time except in the columns "packed". Then products of one row with
 * a large B in GB/s against a loop that only reads. With a word only what has it in its name, like 784x128x1152.
 */
#define _GNU_SOURCE
#include "math/gemm/gemm.h"
#include "math/math.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#if defined(HAVE_DNNL)
#include <omp.h>
#include <oneapi/dnnl/dnnl.h>
#endif

enum { RUNS_MAX = 101, WAYS = 7 };

/* With one thread, time of this thread: other programs on the machine then disturb less. With two, time on the wall. */
static clockid_t watch = CLOCK_THREAD_CPUTIME_ID;
static double now_s(void) {
    struct timespec t;
    clock_gettime(watch, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/*
 * ---- a second thread that spins while a measurement goes on, as OpenMP's does ----
 *
 * Between our turns it sleeps, and before them we wait until OpenMP's has stopped spinning: else each side would be
 * measured while the other's idle thread holds a processor.
 */

static struct {
    const dp_gemm_plan *plan;
    char *scratch[2];
    atomic_size_t next;
    atomic_uint start, done;
    atomic_bool awake, spins, quit;
    sem_t wake;
} team;

static void work(char *scratch) {
    const dp_gemm_plan *p = team.plan;
    size_t tiles = p->tiles_m * p->tiles_n;
    for (size_t t; (t = atomic_fetch_add(&team.next, 1)) < tiles;)
        dp_gemm_tile(p, t / p->tiles_n, t % p->tiles_n, scratch);
}

static void *second(void *unused) {
    (void)unused;
    for (unsigned seen = 0; !atomic_load(&team.quit);) {
        if (!atomic_load(&team.awake)) {
            atomic_store(&team.spins, false);
            sem_wait(&team.wake);
            atomic_store(&team.spins, true);
        }
        unsigned now = atomic_load(&team.start);
        if (now == seen)
            continue;
        seen = now;
        work(team.scratch[1]);
        atomic_fetch_add(&team.done, 1);
    }
    return NULL;
}

enum { OPENMP_SPINS_NS = 15000000 }; /* libgomp gives up after some milliseconds */

static void take_turn(int threads) {
    if (threads < 2)
        return;
    nanosleep(&(struct timespec){.tv_nsec = OPENMP_SPINS_NS}, NULL);
    atomic_store(&team.awake, true);
    sem_post(&team.wake);
    while (!atomic_load(&team.spins))
        ;
}

static void end_turn(int threads) {
    if (threads < 2)
        return;
    atomic_store(&team.awake, false);
    while (atomic_load(&team.spins))
        ;
}

static void run_plan(const dp_gemm_plan *plan, int threads) {
    team.plan = plan;
    atomic_store(&team.next, 0);
    if (threads > 1) {
        unsigned before = atomic_load(&team.done);
        atomic_fetch_add(&team.start, 1);
        work(team.scratch[0]);
        while (atomic_load(&team.done) == before)
            ;
    } else {
        work(team.scratch[0]);
    }
}

/* In huge pages where it is large, as device memory is. */
static void *room(size_t bytes) {
    enum { HUGE_BYTES = 2 << 20 };
    const size_t unit = bytes < 4 * HUGE_BYTES ? 64 : HUGE_BYTES, whole = (bytes + 64 + unit - 1) / unit * unit;
    void *p = aligned_alloc(unit, whole);
    if (!p)
        exit(1);
    if (unit == HUGE_BYTES)
        madvise(p, whole, MADV_HUGEPAGE);
    memset(p, 0, bytes);
    return p;
}

typedef struct {
    double time[RUNS_MAX];
    int count;
} series;

static void add(series *s, double t) {
    if (s->count < RUNS_MAX)
        s->time[s->count++] = t;
}
static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}
static double minimum(series *s) {
    qsort(s->time, (size_t)s->count, sizeof *s->time, by_value);
    return s->time[0];
}
static double median(series *s) {
    qsort(s->time, (size_t)s->count, sizeof *s->time, by_value);
    return s->time[s->count / 2];
}

static const struct {
    const char *name;
    dp_dtype type, c;
    bool packed;
} ways[WAYS] = {{"float", DP_F32, DP_F32, false},      {"float packed", DP_F32, DP_F32, true},
                {"half", DP_F16, DP_F16, false},       {"half packed", DP_F16, DP_F16, true},
                {"bfloat16", DP_BF16, DP_BF16, false}, {"int8", DP_I8, DP_I32, false},
                {"int8 packed", DP_I8, DP_I32, true}};

static void fill(void *p, dp_dtype t, size_t n) {
    static uint32_t seed = 12345;
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        float x = (float)(seed >> 8) / (float)(1 << 23) - 1;
        if (t == DP_F32)
            ((float *)p)[i] = x;
        else if (t == DP_I8)
            ((int8_t *)p)[i] = (int8_t)(seed >> 24);
        else
            ((uint16_t *)p)[i] = (uint16_t)((t == DP_F16 ? 0x3800 : 0x3f00) | (seed >> 31 << 15) | (seed >> 24 & 0x7f));
    }
}

typedef struct {
    size_t m, n, k;
} shape;

static const char *wanted = "";

static void compare(shape s, int threads, int repeats) {
    char name[40];
    snprintf(name, sizeof name, "%zux%zux%zu", s.m, s.n, s.k);
    if (!strstr(name, wanted))
        return;
    static series theirs[WAYS], ours[WAYS];
    dp_gemm_plan plan[WAYS];
    void *a[WAYS], *b[WAYS], *c[WAYS], *packed[WAYS] = {0};
    size_t scratch_bytes = 64;
    for (int w = 0; w < WAYS; w++) {
        ours[w].count = theirs[w].count = 0;
        a[w] = room(s.m * s.k * 4);
        b[w] = room(s.k * s.n * 4);
        c[w] = room(s.m * s.n * 4);
        fill(a[w], ways[w].type, s.m * s.k);
        fill(b[w], ways[w].type, s.k * s.n);
        dp_gemm_problem p = {
            .m = s.m,
            .n = s.n,
            .k = s.k,
            .alpha = 1,
            .a = {.data = a[w], .row_stride = (ptrdiff_t)s.k, .column_stride = 1, .dtype = ways[w].type},
            .b = {.data = b[w], .row_stride = (ptrdiff_t)s.n, .column_stride = 1, .dtype = ways[w].type},
            .c = {.data = c[w], .row_stride = (ptrdiff_t)s.n, .column_stride = 1, .dtype = ways[w].c}};
        if (ways[w].packed) {
            packed[w] = room(dp_gemm_pack_b_bytes(&p));
            if (dp_gemm_pack_b(&p, packed[w]) != DP_OK)
                exit(1);
            p.b.data = packed[w];
            p.b.packed = true;
        }
        if (dp_gemm_plan_make(&p, (unsigned)threads, &plan[w]) != DP_OK) {
            fprintf(stderr, "%s\n", dp_fail_message());
            exit(1);
        }
        scratch_bytes = plan[w].scratch_bytes > scratch_bytes ? plan[w].scratch_bytes : scratch_bytes;
    }
    team.scratch[0] = room(scratch_bytes);
    team.scratch[1] = room(scratch_bytes);
    for (int w = 0; w < WAYS; w++)
        for (int r = 0; r < repeats; r++) {
            double t;
#if defined(HAVE_DNNL)
            for (int warm = threads > 1; warm >= 0; warm--) { /* the first wakes its threads */
                t = now_s();
                dnnl_sgemm('N', 'N', (dnnl_dim_t)s.m, (dnnl_dim_t)s.n, (dnnl_dim_t)s.k, 1, a[0], (dnnl_dim_t)s.k, b[0],
                           (dnnl_dim_t)s.n, 0, c[0], (dnnl_dim_t)s.n);
                t = now_s() - t;
            }
            add(&theirs[w], t);
#endif
            take_turn(threads);
            for (int warm = threads > 1; warm >= 0; warm--) {
                t = now_s();
                run_plan(&plan[w], threads);
                t = now_s() - t;
            }
            add(&ours[w], t);
            end_turn(threads);
        }
    double flops = 2.0 * (double)s.m * (double)s.n * (double)s.k;
    printf("%-15s %d ", name, threads);
    if (theirs[0].count)
        printf("%8.1f us %6.1f GF", 1e6 * minimum(&theirs[0]), flops / minimum(&theirs[0]) / 1e9);
    for (int w = 0; w < WAYS; w++)
        if (theirs[w].count)
            printf("  %5.2f (%4.2f)", minimum(&theirs[w]) / minimum(&ours[w]), median(&theirs[w]) / median(&ours[w]));
        else
            printf("  %7.1f GF", flops / minimum(&ours[w]) / 1e9);
    printf("\n");
    fflush(stdout);
    for (int w = 0; w < WAYS; w++) {
        free(a[w]);
        free(b[w]);
        free(c[w]);
        free(packed[w]);
    }
    free(team.scratch[0]);
    free(team.scratch[1]);
}

/* ---- one row: bytes of B a second ---- */

static double read_sum; /* keeps the reading loop alive */
static void read_all(const char *p, size_t bytes) {
    typedef int64_t v8 __attribute__((vector_size(64)));
    v8 sum[4] = {{0}};
    const size_t quarter = bytes / 4; /* four streams: one alone does not reach the memory's speed */
    for (size_t i = 0; i + 64 <= quarter; i += 64)
        for (int t = 0; t < 4; t++) {
            v8 x;
            memcpy(&x, p + quarter * (size_t)t + i, 64);
            __builtin_prefetch(p + quarter * (size_t)t + i + 1024);
            sum[t] ^= x;
        }
    read_sum += (double)((sum[0] ^ sum[1] ^ sum[2] ^ sum[3])[0] & 1);
}

static void decode(const char *name, dp_dtype type, bool along_k, bool packed, size_t m, size_t group, int repeats) {
    if (!strstr(name, wanted))
        return;
    size_t k = 4096, n = type == DP_F32 ? 4096 : type == DP_I4 ? 32768 : type == DP_I8 ? 16384 : 8192; /* 64 MiB */
    size_t bytes = n * k * dp_dtype_bits(type) / 8;
    char *b = room(bytes), *x = room(m * k * 4), *c = room(m * n * 4), *scale = room(n * k / 16 + 64), *store = NULL;
    memset(b, 0x35, bytes);
    dp_gemm_problem p = {.m = m,
                         .n = n,
                         .k = k,
                         .alpha = 1,
                         .a = {.data = x, .row_stride = (ptrdiff_t)k, .column_stride = 1, .dtype = DP_F32},
                         .b = {.data = b,
                               .row_stride = along_k ? 1 : (ptrdiff_t)n,
                               .column_stride = along_k ? (ptrdiff_t)k : 1,
                               .dtype = type},
                         .c = {.data = c, .row_stride = (ptrdiff_t)n, .column_stride = 1, .dtype = DP_F32}};
    if (group)
        p.quant = (dp_gemm_quant){.scale = scale,
                                  .dtype = DP_F16,
                                  .group_size = group,
                                  .group_stride = along_k ? 1 : (ptrdiff_t)n,
                                  .column_stride = along_k ? (ptrdiff_t)(k / group) : 1};
    if (packed) {
        store = room(dp_gemm_pack_b_bytes(&p));
        dp_gemm_pack_b(&p, store);
        p.b.data = store;
        p.b.packed = true;
    }
    dp_gemm_plan plan;
    if (dp_gemm_plan_make(&p, 1, &plan) != DP_OK) {
        fprintf(stderr, "%s\n", dp_fail_message());
        exit(1);
    }
    team.scratch[0] = room(plan.scratch_bytes);
    series ours = {.count = 0}, reading = {.count = 0};
    for (int r = 0; r < repeats; r++) {
        double t = now_s();
        read_all(b, bytes);
        add(&reading, now_s() - t);
        t = now_s();
        run_plan(&plan, 1);
        add(&ours, now_s() - t);
    }
    printf("%-28s %zu x %5zu x %5zu %-11s %6.1f GB/s  reading %6.1f GB/s  ratio %4.2f (%4.2f)\n", name, m, n, k,
           plan.path, (double)bytes / minimum(&ours) / 1e9, (double)bytes / minimum(&reading) / 1e9,
           minimum(&reading) / minimum(&ours), median(&reading) / median(&ours));
    fflush(stdout);
    free(team.scratch[0]);
    free(b);
    free(x);
    free(c);
    free(scale);
    free(store);
}

int main(int argc, char **argv) {
    int repeats = argc > 1 ? atoi(argv[1]) : 15, most_threads = argc > 2 ? atoi(argv[2]) : 2;
    if (repeats < 1 || repeats > RUNS_MAX) {
        fprintf(stderr, "gemm_bench: %s repeats; expected 1 to %d\n", argv[1], RUNS_MAX);
        return 2;
    }
    wanted = argc > 3 ? argv[3] : "";
    static const shape shapes[] = {{1344, 1024, 1024}, {448, 4096, 1024}, {3136, 64, 576}, {784, 128, 1152},
                                   {196, 256, 2304},   {56, 512, 4608},   {333, 777, 555}, {1, 4096, 4096},
                                   {7, 1000, 1000},    {17, 33, 4097}};
    pthread_t thread;
    sem_init(&team.wake, 0, 0);
    printf("m x n x k, threads, dnnl_sgemm, then speed of ours / dnnl_sgemm, minimum (median):");
    for (int w = 0; w < WAYS; w++)
        printf(" | %s", ways[w].name);
    printf("\n");
    for (int threads = 1; threads <= most_threads; threads++) {
        watch = threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
#if defined(HAVE_DNNL)
        omp_set_num_threads(threads);
#endif
        if (threads == 2 && pthread_create(&thread, NULL, second, NULL) != 0)
            return 1;
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
            compare(shapes[i], threads, repeats);
    }
    atomic_store(&team.quit, true);
    if (most_threads > 1)
        sem_post(&team.wake);
    if (most_threads > 1)
        pthread_join(thread, NULL);
    watch = CLOCK_THREAD_CPUTIME_ID;
    repeats = repeats < 7 ? repeats : 7;
    decode("float [n][k]", DP_F32, true, false, 1, 0, repeats);
    decode("float [k][n]", DP_F32, false, false, 1, 0, repeats);
    decode("float packed", DP_F32, false, true, 1, 0, repeats);
    decode("half [n][k]", DP_F16, true, false, 1, 0, repeats);
    decode("half [k][n]", DP_F16, false, false, 1, 0, repeats);
    decode("half packed", DP_F16, false, true, 1, 0, repeats);
    decode("bfloat16 [n][k]", DP_BF16, true, false, 1, 0, repeats);
    decode("int8 groups of 32 [n][k]", DP_I8, true, false, 1, 32, repeats);
    decode("int8 groups of 128 [k][n]", DP_I8, false, false, 1, 128, repeats);
    decode("int4 groups of 32 [n][k]", DP_I4, true, false, 1, 32, repeats);
    decode("int4 groups of 128 [n][k]", DP_I4, true, false, 1, 128, repeats);
    decode("int4 groups of 128 [k][n]", DP_I4, false, false, 1, 128, repeats);
    decode("half [n][k]", DP_F16, true, false, 4, 0, repeats);
    decode("int4 groups of 32 [n][k]", DP_I4, true, false, 4, 32, repeats);
    return read_sum < 0;
}
