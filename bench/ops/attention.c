/*
 * attention.c - bench_ops_attention [rounds [setting]]: FusedInferAttentionScoreV2 on one thread and on two (a process
 * each). Decoding (one query) in GB/s of keys and values, as a share of a loop that reads as much memory; prefill in
 * GFLOP/s as a share of the matrix engine's speed on a float product of 1024 x 1024 x 1024. All sides take turns;
 * minima of the rounds.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "acl/acl.h"
#include "aclnnop/aclnn_fused_infer_attention_score_v2.h"
#include "math/gemm/gemm.h"
#include "runtime/pool.h"

enum { GEMM = 1024, CHUNK = 1 << 20, FAR = 1 << 30 };

/* With one thread, time of the process: other programs on the machine then disturb less. */
static clockid_t watch = CLOCK_PROCESS_CPUTIME_ID;
static double now_s(void) {
    struct timespec t;
    clock_gettime(watch, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
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

/* ---- what the machine can do ---- */

/* Four streams, a quarter of the range apart, as the matrix engine reads. */
static void read_range(void *context, size_t begin, size_t end) {
    const size_t quarter = (end - begin) * (CHUNK / 8 / 4);
    const uint64_t *p = (const uint64_t *)context + begin * (CHUNK / 8);
    uint64_t sum[4][8] = {{0}};
    for (size_t i = 0; i < quarter; i += 8)
        for (size_t s = 0; s < 4; s++) {
            const uint64_t *line = p + s * quarter + i;
            __builtin_prefetch(line + 128);
            for (int k = 0; k < 8; k++)
                sum[s][k] += line[k];
        }
    __asm__ volatile("" ::"r"(sum) : "memory");
}

typedef struct gemm_job {
    dp_gemm_plan plan;
} gemm_job;

static void gemm_range(void *context, size_t begin, size_t end) {
    const dp_gemm_plan *plan = &((gemm_job *)context)->plan;
    char *scratch = aligned_alloc(64, (plan->scratch_bytes + 63) / 64 * 64);
    for (size_t t = begin; scratch && t < end; t++)
        dp_gemm_tile(plan, t / plan->tiles_n, t % plan->tiles_n, scratch);
    free(scratch);
}

static gemm_job gemm_of(float *memory) {
    gemm_job j;
    const size_t square = (size_t)GEMM * GEMM;
    dp_gemm_problem p = {.m = GEMM, .n = GEMM, .k = GEMM, .alpha = 1};
    p.a = (dp_gemm_matrix){.data = memory, .row_stride = GEMM, .column_stride = 1, .dtype = DP_F32};
    p.b = p.c = p.a;
    p.b.data = memory + square;
    p.c.data = memory + 2 * square;
    if (dp_gemm_plan_make(&p, dp_pool_width(), &j.plan))
        exit(1);
    return j;
}

/* ---- attention ---- */

typedef struct setting {
    const char *name;
    aclDataType type;
    int64_t batch, queries, keys, heads, kv_heads, depth;
    bool causal;
} setting;

static const char *type_name(aclDataType t) {
    return t == ACL_FLOAT16 ? "half" : t == ACL_BF16 ? "bfloat16" : "float";
}

static aclTensor *tensor_of(const setting *s, int64_t heads, int64_t rows, void **out_data, size_t *out_bytes) {
    const int64_t dims[] = {s->batch, heads, rows, s->depth};
    size_t count = (size_t)(s->batch * heads * rows * s->depth), width = aclDataTypeSize(s->type);
    *out_bytes = count * width;
    *out_data = room(*out_bytes + CHUNK);
    for (size_t i = 0; i < count; i++) /* about +-1 in every type */
        if (width == 2)
            ((uint16_t *)*out_data)[i] = (uint16_t)(0x3800 + i * 2654435761u % 1024 + (i % 3 ? 0x8000 : 0));
        else
            ((float *)*out_data)[i] = (float)(i * 2654435761u % 1024) / 512 - 1;
    return aclCreateTensor(dims, 4, s->type, NULL, 0, ACL_FORMAT_ND, dims, 4, *out_data);
}

static void measure(const setting *s, int rounds, const float *gemm_memory) {
    void *data[4], *mask_data = NULL;
    size_t bytes[4];
    aclTensor *q = tensor_of(s, s->heads, s->queries, &data[0], &bytes[0]),
              *k = tensor_of(s, s->kv_heads, s->keys, &data[1], &bytes[1]),
              *v = tensor_of(s, s->kv_heads, s->keys, &data[2], &bytes[2]),
              *out = tensor_of(s, s->heads, s->queries, &data[3], &bytes[3]), *mask = NULL;
    aclTensorList *keys = aclCreateTensorList((const aclTensor *const[]){k}, 1),
                  *values = aclCreateTensorList((const aclTensor *const[]){v}, 1);
    if (s->causal) {
        const int64_t dims[] = {2048, 2048};
        mask_data = room(2048 * 2048);
        mask = aclCreateTensor(dims, 2, ACL_BOOL, NULL, 0, ACL_FORMAT_ND, dims, 2, mask_data);
    }
    const bool decode = s->queries == 1;
    gemm_job gemm = gemm_of((float *)(uintptr_t)gemm_memory);
    double best = 1e9, peer = 1e9;
    for (int r = 0; r < rounds; r++) {
        uint64_t size;
        aclOpExecutor *executor;
        double begin = now_s();
        if (aclnnFusedInferAttentionScoreV2GetWorkspaceSize(
                q, keys, values, NULL, mask, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
                NULL, NULL, NULL, NULL, NULL, NULL, NULL, s->heads, 1 / sqrt((double)s->depth), FAR, FAR, "BNSD",
                s->kv_heads, s->causal ? 3 : 0, 0, 0, 0, false, 0, 0, out, NULL, &size, &executor) ||
            aclnnFusedInferAttentionScoreV2(NULL, size, executor, NULL) || aclrtSynchronizeStream(NULL)) {
            fprintf(stderr, "%s\n", aclGetRecentErrMsg());
            exit(1);
        }
        double middle = now_s();
        if (decode) {
            dp_pool_for(bytes[1] / CHUNK, 1, read_range, data[1]);
            dp_pool_for(bytes[2] / CHUNK, 1, read_range, data[2]);
        } else {
            dp_pool_for(gemm.plan.tiles_m * gemm.plan.tiles_n, 1, gemm_range, &gemm);
        }
        double end = now_s();
        best = fmin(best, middle - begin);
        peer = fmin(peer, end - middle);
    }
    double pairs = (double)(s->batch * s->heads * s->queries) * (double)s->keys;
    if (s->causal)
        pairs -= (double)(s->batch * s->heads) * (double)s->queries * (double)(s->queries - 1) / 2;
    double gflop = 4e-9 * pairs * (double)s->depth, gbytes = 1e-9 * (double)(bytes[1] + bytes[2]);
    double ours = decode ? gbytes / best : gflop / best,
           theirs = (decode ? gbytes : 2e-9 * GEMM * GEMM * (double)GEMM) / peer;
    printf("%-8s %-9s %2lld heads %2lld kv %5lld x %-6lld depth %3lld%s: %8.3f ms  %7.2f %s, %.2f of %.2f\n", s->name,
           type_name(s->type), (long long)s->heads, (long long)s->kv_heads, (long long)s->queries, (long long)s->keys,
           (long long)s->depth, s->causal ? " causal" : "", best * 1e3, ours, decode ? "GB/s" : "GFLOP/s",
           ours / theirs, theirs);
    fflush(stdout);
    aclDestroyTensor(q);
    aclDestroyTensor(out);
    aclDestroyTensorList(keys);
    aclDestroyTensorList(values);
    if (mask)
        aclDestroyTensor(mask);
    aclrtFree(mask_data);
    for (int i = 0; i < 4; i++)
        aclrtFree(data[i]);
}

/* only < 0: all settings. */
static int bench(int rounds, int only) {
    static const setting settings[] = {{"decode", ACL_FLOAT16, 1, 1, 16384, 32, 32, 128, false},
                                       {"decode", ACL_FLOAT16, 1, 1, 32768, 32, 8, 128, false},
                                       {"decode", ACL_BF16, 1, 1, 32768, 32, 8, 128, false},
                                       {"decode", ACL_FLOAT, 1, 1, 16384, 32, 8, 128, false},
                                       {"decode", ACL_FLOAT16, 1, 1, 65536, 28, 4, 128, false},
                                       {"decode", ACL_FLOAT16, 1, 1, 262144, 16, 1, 64, false},
                                       {"prefill", ACL_FLOAT16, 1, 1024, 1024, 8, 8, 128, false},
                                       {"prefill", ACL_FLOAT16, 1, 1024, 1024, 16, 4, 128, true},
                                       {"prefill", ACL_BF16, 1, 1024, 1024, 8, 2, 128, true},
                                       {"prefill", ACL_FLOAT, 1, 1024, 1024, 8, 8, 64, false},
                                       {"prefill", ACL_FLOAT16, 1, 64, 4096, 8, 8, 128, false},
                                       {"prefill", ACL_FLOAT16, 4, 16, 2048, 8, 8, 128, false}};
    if (aclInit(NULL) || aclrtSetDevice(0))
        return 1;
    float *gemm = room((size_t)GEMM * GEMM * 3 * sizeof *gemm);
    printf("%u threads\n", dp_pool_width());
    for (int i = 0; i < (int)(sizeof settings / sizeof *settings); i++)
        if (only < 0 || only == i)
            measure(&settings[i], rounds, gemm);
    return 0;
}

int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 12, only = argc > 2 ? atoi(argv[2]) : -1;
    if (rounds < 1)
        rounds = 1;
    for (int threads = 1; threads <= 2; threads++) {
        pid_t child = fork(); /* before the library starts: the number of workers is read once */
        if (child == 0) {
            setenv("DOPPEL_WORKERS", threads == 1 ? "1" : "2", 1);
            if (threads > 1)
                watch = CLOCK_MONOTONIC;
            _exit(bench(rounds, only));
        }
        int status;
        if (child < 0 || waitpid(child, &status, 0) != child || status)
            return 1;
    }
    return 0;
}
