/*
 * memory.c - bench_ops_memory [rounds [megabytes]]: operators on data larger than the caches, in GB/s of what they must
 * read and write, as a share of a loop that reads and writes as much. On one thread and on two (a process each); the
 * sides take turns, minima and medians of the rounds.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "acl/acl.h"
#include "aclnnop/aclnn_add.h"
#include "aclnnop/aclnn_cast.h"
#include "aclnnop/aclnn_exp.h"
#include "aclnnop/aclnn_gather_v2.h"
#include "aclnnop/aclnn_gelu.h"
#include "aclnnop/aclnn_layer_norm.h"
#include "aclnnop/aclnn_max.h"
#include "aclnnop/aclnn_mean.h"
#include "aclnnop/aclnn_mul.h"
#include "aclnnop/aclnn_reduce_sum.h"
#include "aclnnop/aclnn_relu.h"
#include "aclnnop/aclnn_rms_norm.h"
#include "aclnnop/aclnn_softmax.h"
#include "math/math.h"
#include "runtime/pool.h"

enum { COLUMNS = 1024, PIECE = 1 << 18, ROUNDS_MAX = 1000 };

/* With one thread, time of the process: other programs on the machine then disturb less. */
static clockid_t watch = CLOCK_PROCESS_CPUTIME_ID;
static double now_us(void) {
    struct timespec t;
    clock_gettime(watch, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static void *room(size_t bytes) {
    void *p;
    if (aclrtMalloc(&p, bytes, ACL_MEM_MALLOC_HUGE_FIRST)) {
        fprintf(stderr, "%s\n", aclGetRecentErrMsg());
        exit(1);
    }
    memset(p, 0, bytes);
    return p;
}

/* ---- the machine: pieces that are copied past the caches, and pieces that are only read ---- */

typedef struct traffic {
    char *to;
    const char *from, *more;
    size_t copied, read; /* bytes */
} traffic;

static void copy_pieces(void *context, size_t begin, size_t end) {
    const traffic *t = context;
    dp_math_current()->copy_stream(t->to + begin * PIECE, t->from + begin * PIECE, (end - begin) * PIECE);
}

static void read_pieces(void *context, size_t begin, size_t end) {
    const traffic *t = context;
    const uint64_t *p = (const uint64_t *)(t->more + begin * PIECE);
    uint64_t sum[16] = {0};
    for (size_t i = 0; i < (end - begin) * (PIECE / 8); i += 16) {
        __builtin_prefetch(p + i + 256);
        __builtin_prefetch(p + i + 264);
        for (int k = 0; k < 16; k++)
            sum[k] += p[i + (size_t)k];
    }
    __asm__ volatile("" ::"r"(sum) : "memory");
}

/* ---- the operators ---- */

typedef struct data {
    aclTensor *a, *b, *out, *half, *rows, *column, *line, *other_line, *one, *indices;
    aclScalar *scalar;
    aclIntArray *last, *all, *normalized;
} data;

typedef struct row {
    const char *name;
    aclnnStatus (*plan)(const data *d, uint64_t *size, aclOpExecutor **executor);
    aclnnStatus (*run)(void *workspace, uint64_t size, aclOpExecutor *executor, aclrtStream stream);
    double reads, writes; /* in arrays of floats */
} row;

#define PLAN(name, call)                                                                                               \
    static aclnnStatus plan_##name(const data *d, uint64_t *size, aclOpExecutor **executor) {                          \
        return call;                                                                                                   \
    }
PLAN(add, aclnnAddGetWorkspaceSize(d->a, d->b, d->scalar, d->out, size, executor))
PLAN(muls, aclnnMulsGetWorkspaceSize(d->a, d->scalar, d->out, size, executor))
PLAN(relu, aclnnReluGetWorkspaceSize(d->a, d->out, size, executor))
PLAN(exp, aclnnExpGetWorkspaceSize(d->a, d->out, size, executor))
PLAN(gelu, aclnnGeluGetWorkspaceSize(d->a, d->out, size, executor))
PLAN(cast, aclnnCastGetWorkspaceSize(d->a, ACL_FLOAT16, d->half, size, executor))
PLAN(uncast, aclnnCastGetWorkspaceSize(d->half, ACL_FLOAT, d->out, size, executor))
PLAN(sum, aclnnReduceSumGetWorkspaceSize(d->a, d->all, false, ACL_FLOAT, d->one, size, executor))
PLAN(max, aclnnMaxGetWorkspaceSize(d->a, d->one, size, executor))
PLAN(mean, aclnnMeanGetWorkspaceSize(d->a, d->last, true, ACL_FLOAT, d->column, size, executor))
PLAN(softmax, aclnnSoftmaxGetWorkspaceSize(d->a, 1, d->out, size, executor))
PLAN(layer, aclnnLayerNormGetWorkspaceSize(d->a, d->normalized, d->line, d->other_line, 1e-5, d->out, NULL, NULL, size,
                                           executor))
PLAN(rms, aclnnRmsNormGetWorkspaceSize(d->a, d->line, 1e-5, d->out, d->column, size, executor))
PLAN(gather, aclnnGatherV2GetWorkspaceSize(d->a, 0, d->indices, d->out, size, executor))

static const row rows[] = {{"add", plan_add, aclnnAdd, 2, 1},
                           {"muls", plan_muls, aclnnMuls, 1, 1},
                           {"relu", plan_relu, aclnnRelu, 1, 1},
                           {"exp", plan_exp, aclnnExp, 1, 1},
                           {"gelu", plan_gelu, aclnnGelu, 1, 1},
                           {"cast to half", plan_cast, aclnnCast, 1, .5},
                           {"cast from half", plan_uncast, aclnnCast, .5, 1},
                           {"sum of all", plan_sum, aclnnReduceSum, 1, 0},
                           {"max of all", plan_max, aclnnMax, 1, 0},
                           {"mean of rows", plan_mean, aclnnMean, 1, 0},
                           {"softmax of rows", plan_softmax, aclnnSoftmax, 1, 1},
                           {"layer norm", plan_layer, aclnnLayerNorm, 1, 1},
                           {"RMS norm", plan_rms, aclnnRmsNorm, 1, 1},
                           {"gather of rows", plan_gather, aclnnGatherV2, 1, 1}};

static aclTensor *tensor(int64_t n_rows, int64_t columns, aclDataType type, void *memory) {
    const int64_t dims[] = {n_rows, columns};
    const int rank = n_rows ? 2 : 1;
    const int64_t *from = n_rows ? dims : dims + 1;
    return aclCreateTensor(from, (uint64_t)rank, type, NULL, 0, ACL_FORMAT_ND, from, (uint64_t)rank, memory);
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(const row *r, const data *d, traffic t, size_t bytes, int rounds) {
    static double ours[ROUNDS_MAX], theirs[ROUNDS_MAX];
    const double both = r->reads < r->writes ? r->reads : r->writes;
    const double more = r->reads > r->writes ? r->reads - r->writes : 0;
    void *workspace = NULL;
    uint64_t room_bytes = 0;
    for (int i = -1; i < rounds; i++) {
        uint64_t size;
        aclOpExecutor *executor;
        double begin = now_us();
        if (r->plan(d, &size, &executor)) {
            fprintf(stderr, "%s: %s\n", r->name, aclGetRecentErrMsg());
            exit(1);
        }
        if (size > room_bytes)
            workspace = room(room_bytes = size);
        if (r->run(workspace, size, executor, NULL) || aclrtSynchronizeStream(NULL)) {
            fprintf(stderr, "%s: %s\n", r->name, aclGetRecentErrMsg());
            exit(1);
        }
        double middle = now_us();
        /* What is written without being read is counted as copied: a store past the caches and a load that is one more.
         */
        dp_pool_for((size_t)((r->writes > both ? r->writes : both) * (double)bytes) / PIECE, 1, copy_pieces, &t);
        if (more > 0)
            dp_pool_for((size_t)(more * (double)bytes) / PIECE, 1, read_pieces, &t);
        double end = now_us();
        if (i >= 0) {
            ours[i] = middle - begin;
            theirs[i] = end - middle;
        }
    }
    qsort(ours, (size_t)rounds, sizeof *ours, by_size);
    qsort(theirs, (size_t)rounds, sizeof *theirs, by_size);
    printf("%-16s %9.1f %9.1f us   loop %9.1f %9.1f us   share %5.2f (min) %5.2f (median)\n", r->name, ours[0],
           ours[rounds / 2], theirs[0], theirs[rounds / 2], theirs[0] / ours[0], theirs[rounds / 2] / ours[rounds / 2]);
    fflush(stdout);
    aclrtFree(workspace);
}

static int bench(int rounds, size_t megabytes) {
    if (aclInit(NULL) || aclrtSetDevice(0))
        return 1;
    const int64_t n_rows = (int64_t)(megabytes << 20) / 4 / COLUMNS;
    const size_t bytes = (size_t)n_rows * COLUMNS * 4;
    float *a = room(bytes), *b = room(bytes), *out = room(bytes);
    void *half = room(bytes / 2);
    int64_t *indices = room((size_t)n_rows * 8), last = 1, all[] = {0, 1}, normalized = COLUMNS;
    for (size_t i = 0; i < bytes / 4; i++)
        a[i] = b[i] = (float)(i * 2654435761u % 4096) / 2048 - 1;
    for (int64_t i = 0; i < n_rows; i++)
        indices[i] = (i * 2654435761) % n_rows;
    float one = 1;
    const data d = {.a = tensor(n_rows, COLUMNS, ACL_FLOAT, a),
                    .b = tensor(n_rows, COLUMNS, ACL_FLOAT, b),
                    .out = tensor(n_rows, COLUMNS, ACL_FLOAT, out),
                    .half = tensor(n_rows, COLUMNS, ACL_FLOAT16, half),
                    .column = tensor(n_rows, 1, ACL_FLOAT, room((size_t)n_rows * 4)),
                    .line = tensor(0, COLUMNS, ACL_FLOAT, room(COLUMNS * 4)),
                    .other_line = tensor(0, COLUMNS, ACL_FLOAT, room(COLUMNS * 4)),
                    .one = aclCreateTensor(NULL, 0, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, NULL, 0, room(64)),
                    .indices = tensor(0, n_rows, ACL_INT64, indices),
                    .scalar = aclCreateScalar(&one, ACL_FLOAT),
                    .last = aclCreateIntArray(&last, 1),
                    .all = aclCreateIntArray(all, 2),
                    .normalized = aclCreateIntArray(&normalized, 1)};
    printf("%u thread%s, arrays of %zu MB\n", dp_pool_width(), dp_pool_width() == 1 ? "" : "s", bytes >> 20);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        measure(&rows[i], &d, (traffic){.to = (char *)out, .from = (const char *)a, .more = (const char *)b}, bytes,
                rounds);
    return 0;
}

int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 21, megabytes = argc > 2 ? atoi(argv[2]) : 64;
    if (rounds < 1 || rounds > ROUNDS_MAX || megabytes < 1 || megabytes > 4096) {
        fprintf(stderr, "usage: bench_ops_memory [rounds, 1 to %d [megabytes, 1 to 4096]]\n", ROUNDS_MAX);
        return 2;
    }
    for (int threads = 1; threads <= 2; threads++) {
        pid_t child = fork(); /* before the library starts: the number of workers is read once */
        if (child == 0) {
            setenv("DOPPEL_WORKERS", threads == 1 ? "1" : "2", 1);
            if (threads > 1)
                watch = CLOCK_MONOTONIC;
            _exit(bench(rounds, (size_t)megabytes));
        }
        int status;
        if (child < 0 || waitpid(child, &status, 0) != child || status)
            return 1;
    }
    return 0;
}
