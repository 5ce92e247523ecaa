#include "ops/lines.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/cpu.h"
#include "base/memory.h"
#include "math/math.h"
#include "runtime/pool.h"

enum { PAST_LINE_BYTES = 64 << 10 };

static dp_line_table table;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static void fill_table(void) {
#if defined(DP_MATH_HAVE_X86)
    if (dp_cpu_isa() == DP_ISA_AVX512) {
        dp_line_fill_avx512(&table);
        return;
    }
    if (dp_cpu_isa() == DP_ISA_AVX2) {
        dp_line_fill_avx2(&table);
        return;
    }
#endif
    dp_line_fill_generic(&table);
}

const dp_line_table *dp_line_current(void) {
    pthread_once(&once, fill_table);
    return &table;
}

void dp_lines_begin(dp_lines *lines, const int64_t *dims, int rank, const bool *in_line) {
    int64_t outer[DP_TENSOR_DIMS], inner[DP_TENSOR_DIMS];
    int n_outer = 0, n_inner = 0;
    for (int d = 0; d < rank; d++) {
        if (in_line[d])
            inner[n_inner++] = dims[d];
        else
            outer[n_outer++] = dims[d];
    }
    dp_loop_begin(&lines->outer, outer, n_outer);
    dp_loop_begin(&lines->inner, inner, n_inner);
}

int dp_lines_add(dp_lines *lines, const dp_arg *tensor, const int64_t *strides, const bool *in_line, int rank) {
    int64_t outer[DP_TENSOR_DIMS] = {0}, inner[DP_TENSOR_DIMS] = {0};
    int n_outer = 0, n_inner = 0, view = lines->outer.n_views;
    for (int d = 0; d < rank; d++) {
        if (in_line[d])
            inner[n_inner++] = strides[d];
        else
            outer[n_outer++] = strides[d];
    }
    dp_loop_add_strides(&lines->outer, outer);
    dp_loop_add_strides(&lines->inner, inner);
    const dp_elementwise_table *convert = dp_elementwise_current();
    lines->slot[view] = tensor->slot;
    lines->element[view] = tensor->as.tensor->element;
    lines->load[view] = convert->load[lines->element[view]][DP_COMPUTE_F32];
    lines->store[view] = convert->store[lines->element[view]][DP_COMPUTE_F32];
    return view;
}

void dp_lines_end(dp_lines *lines) {
    dp_loop_merge(&lines->outer, false);
    dp_loop_merge(&lines->inner, false);
    lines->ahead = lines->outer.n_views > 1 && lines->element[1] == DP_F32 && lines->outer.rank == 1 && lines->inner.rank == 1 &&
                           lines->inner.strides[1][0] == 1 && lines->outer.strides[1][0] == lines->inner.count
                       ? 1
                       : -1;
}

/* Of no lines at all, what all lines share still has a place: where the view begins. */
static char *line_data(const dp_lines *lines, dp_plan *plan, int view, int64_t line) {
    int64_t offset = lines->outer.count ? dp_loop_offset(&lines->outer, view, line) : 0;
    return (char *)dp_plan_data(plan, lines->slot[view]) + offset * (int64_t)dp_element_bytes(lines->element[view]);
}

static bool in_place(const dp_lines *lines, int view) {
    return lines->element[view] == DP_F32 && lines->inner.rank == 1 &&
           (lines->inner.strides[view][0] == 1 || lines->inner.dims[0] == 1);
}

const float *dp_lines_load(const dp_lines *lines, dp_plan *plan, int view, int64_t line, float *buffer) {
    char *data = line_data(lines, plan, view, line);
    if (in_place(lines, view))
        return (const float *)data;
    size_t width = dp_element_bytes(lines->element[view]);
    double raw[DP_TILE];
    for (int64_t at = 0, n; at < lines->inner.count; at += n) {
        n = lines->inner.count - at < DP_TILE ? lines->inner.count - at : DP_TILE;
        lines->load[view](buffer + at, dp_loop_gather(&lines->inner, view, data, width, at, (size_t)n, raw), (size_t)n);
    }
    return buffer;
}

/* Short lines of a result that is larger than the caches are made in a buffer and written past them. */
static bool past_caches(const dp_lines *lines) {
    const size_t line_bytes = (size_t)lines->inner.count * sizeof(float);
    return line_bytes <= PAST_LINE_BYTES && (size_t)lines->outer.count * line_bytes >= DP_STREAM_BYTES;
}

float *dp_lines_place(const dp_lines *lines, dp_plan *plan, int view, int64_t line) {
    return in_place(lines, view) && !past_caches(lines) ? (float *)line_data(lines, plan, view, line) : NULL;
}

void dp_lines_store(const dp_lines *lines, dp_plan *plan, int view, int64_t line, const float *from) {
    char *data = line_data(lines, plan, view, line);
    if (in_place(lines, view)) {
        const size_t bytes = (size_t)lines->inner.count * sizeof(float);
        if (past_caches(lines))
            dp_math_current()->copy_stream(data, from, bytes);
        else
            memcpy(data, from, bytes);
        return;
    }
    size_t width = dp_element_bytes(lines->element[view]);
    double raw[DP_TILE];
    for (int64_t at = 0, n; at < lines->inner.count; at += n) {
        n = lines->inner.count - at < DP_TILE ? lines->inner.count - at : DP_TILE;
        lines->store[view](raw, from + at, (size_t)n);
        dp_loop_scatter(&lines->inner, view, data, width, at, (size_t)n, raw);
    }
}

void dp_lines_store_affine(const dp_lines *lines, dp_plan *plan, int view, int64_t line, const float *from,
                           const dp_line_affine *a, float *buffer, size_t steps, dp_lines_tail *tail) {
    const size_t n = (size_t)lines->inner.count;
    if (!in_place(lines, view) || !past_caches(lines)) {
        float *place = dp_lines_place(lines, plan, view, line), *y = place ? place : buffer;
        dp_line_current()->affine(y, from, n, a->mean, a->factor, a->gamma, a->beta);
        if (!place)
            dp_lines_store(lines, plan, view, line, y);
        return;
    }
    const char *next = (const char *)from; /* nothing new */
    if (lines->ahead >= 0)
        next = line_data(lines, plan, lines->ahead, line) + DP_AHEAD_BYTES;
    *tail = (dp_lines_tail){(float *)line_data(lines, plan, view, line), from, next, n, ((steps ? n / steps : n) + 15) / 16 * 16, *a};
}

void dp_lines_tail_write(dp_lines_tail *tail, size_t n) {
    n = n < tail->left ? n : tail->left;
    dp_line_current()->affine_past(tail->to, tail->from, n, &tail->affine, tail->next);
    tail->to += n;
    tail->from += n;
    tail->next += n * sizeof(float);
    tail->left -= n;
    if (tail->affine.gamma)
        tail->affine.gamma += n;
    if (tail->affine.beta)
        tail->affine.beta += n;
}

double dp_lines_load_one(const dp_lines *lines, dp_plan *plan, int view, int64_t line) {
    float value;
    lines->load[view](&value, line_data(lines, plan, view, line), 1);
    return value;
}

void dp_lines_store_one(const dp_lines *lines, dp_plan *plan, int view, int64_t line, float value) {
    lines->store[view](line_data(lines, plan, view, line), &value, 1);
}

bool dp_lines_side_by_side(const dp_lines *lines) {
    int last = lines->outer.rank - 1;
    if (lines->inner.rank != 1 || lines->outer.dims[last] < 16)
        return false;
    for (int view = 0; view < lines->outer.n_views; view++)
        if (lines->outer.strides[view][last] != 1 || lines->inner.strides[view][0] == 1)
            return false;
    return true;
}

char *dp_lines_row(const dp_lines *lines, dp_plan *plan, int view, int64_t line, int64_t element) {
    return line_data(lines, plan, view, line) +
           element * lines->inner.strides[view][0] * (int64_t)dp_element_bytes(lines->element[view]);
}

typedef struct job {
    dp_plan *plan;
    const dp_lines *lines;
    dp_lines_fn fn;
    int buffers;
    _Atomic bool failed;
} job;

static void run_range(void *context, size_t begin, size_t end) {
    job *j = context;
    float *buffers = NULL;
    size_t bytes = (size_t)j->buffers * (size_t)j->lines->inner.count * sizeof(float);
    if (bytes && !(buffers = dp_alloc(DP_MEM_RUNTIME, bytes))) {
        atomic_store(&j->failed, true);
        return;
    }
    j->fn(j->plan, j->lines, begin, end, buffers);
    dp_math_current()->stream_fence();
    dp_free(buffers);
}

dp_status dp_lines_run(dp_plan *plan, const dp_lines *lines, int buffers, dp_lines_fn fn) {
    if (!lines->outer.count || !lines->inner.count)
        return DP_OK;
    job j = {.plan = plan, .lines = lines, .fn = fn, .buffers = buffers};
    int64_t grain = (1 << 14) / lines->inner.count;
    dp_pool_for((size_t)lines->outer.count, (size_t)(grain < 1 ? 1 : grain), run_range, &j);
    if (atomic_load(&j.failed))
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for lines of %lld elements",
                       (long long)lines->inner.count);
    return DP_OK;
}
