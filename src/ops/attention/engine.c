/*
 * engine.c - attention by tiles. A unit of work is a few queries of all heads that share a key head (rows), against all
 * their keys or, when there are few units, a part of them. For every tile of KEYS keys: scores by the matrix engine,
 * bias, mask and softmax in the cache, values by the matrix engine onto the running sums.
 */
#include "ops/attention/attention.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/memory.h"
#include "base/scratch.h"
#include "math/gemm/gemm.h"
#include "ops/attention/kernels.h"
#include "ops/elementwise/kernels.h"
#include "runtime/pool.h"

enum {
    ROWS = 126,   /* of a tile, at most: whole panels of 14 and of 6 rows in the matrix engine */
    KEYS = 512,   /* of a tile: 126 x 512 scores are 252 KiB */
    FEW_ROWS = 8, /* the matrix engine reads B once for so many, without packing it */
    FEW_UNITS = 32,
    SPLIT_KEYS_LEAST = 512
};

static dp_attention_kernels kernels;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static void fill_kernels(void) {
#if defined(DP_MATH_HAVE_X86)
    if (dp_cpu_isa() == DP_ISA_AVX512) {
        dp_attention_fill_avx512(&kernels);
        return;
    }
    if (dp_cpu_isa() == DP_ISA_AVX2) {
        dp_attention_fill_avx2(&kernels);
        return;
    }
#endif
    dp_attention_fill_generic(&kernels);
}

const dp_attention_kernels *dp_attention_current(void) {
    pthread_once(&once, fill_kernels);
    return &kernels;
}

typedef struct job {
    dp_plan *plan;
    const dp_attention *s;
    size_t units;
    float *partial; /* of split keys: per unit, per row: out_depth sums, the maximum, the total */
    _Atomic size_t next;
    _Atomic bool no_memory, no_plan;
    _Atomic int64_t bad_row, bad_page; /* bad_row -1: none */
} job;

/* Where one thread works. Rows have strides that do not fall on the same sets of the cache. */
typedef struct worker {
    job *job;
    const dp_attention *s;
    float *q, *q_rope, *scores, *sums, *max, *total;
    void *gemm;
    size_t gemm_bytes, q_stride, q_rope_stride, sums_stride;
} worker;

enum { SCORES_STRIDE = KEYS + 16 };

typedef struct tile {
    const dp_attention_sequence *seq;
    int64_t kv_head, head, heads, query, queries, rows;
    int64_t first_key, last_key; /* of the unit */
    bool first_split;
} tile;

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}
static int64_t most(int64_t a, int64_t b) {
    return a > b ? a : b;
}
static int64_t ceil_div(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

void dp_attention_cut(dp_attention *s) {
    int64_t group = s->heads / s->kv_heads, queries = 0, keys = 0;
    for (int64_t i = 0; i < s->n_sequences; i++) {
        queries = most(queries, s->sequences[i].queries);
        keys = most(keys, s->sequences[i].keys);
    }
    s->tile_heads = least(group, ROWS);
    s->head_chunks = ceil_div(group, s->tile_heads);
    s->tile_queries = most(1, least(queries, ROWS / s->tile_heads));
    s->query_tiles = ceil_div(queries, s->tile_queries);
    int64_t units = s->n_sequences * s->kv_heads * s->head_chunks * s->query_tiles;
    s->splits = 1;
    s->split_keys = most(keys, 1);
    /* by the shape alone, so that results do not depend on the number of threads */
    if (units && units < FEW_UNITS && keys >= 2 * SPLIT_KEYS_LEAST) {
        s->splits = least(ceil_div(FEW_UNITS, units), keys / SPLIT_KEYS_LEAST);
        s->split_keys = ceil_div(ceil_div(keys, s->splits), KEYS) * KEYS;
        s->splits = ceil_div(keys, s->split_keys);
    }
}

static tile tile_of(const dp_attention *s, size_t unit) {
    int64_t u = (int64_t)unit, split = u % s->splits, group = s->heads / s->kv_heads;
    u /= s->splits;
    int64_t query_tile = s->query_tiles - 1 - u % s->query_tiles; /* under a causal mask the last have most to do */
    u /= s->query_tiles;
    int64_t chunk = u % s->head_chunks;
    u /= s->head_chunks;
    tile t = {.seq = &s->sequences[u / s->kv_heads], .kv_head = u % s->kv_heads, .first_split = split == 0};
    t.head = t.kv_head * group + chunk * s->tile_heads;
    t.heads = least(s->tile_heads, group - chunk * s->tile_heads);
    t.query = query_tile * s->tile_queries;
    t.queries = most(0, least(s->tile_queries, t.seq->queries - t.query));
    t.rows = t.heads * t.queries;
    t.first_key = split * s->split_keys;
    t.last_key = least(t.seq->keys, t.first_key + s->split_keys);
    return t;
}

static const char *address(dp_plan *plan, const dp_attention_span *span, int64_t head, int64_t row) {
    return (const char *)dp_plan_data(plan, span->slot) +
           (span->at + head * span->head + row * span->row) *
               (int64_t)dp_element_bytes(plan->tensors[span->slot].view.element);
}

/* n elements `stride` apart as floats. */
static void load_row(float *to, const char *from, int element, int64_t stride, int64_t n) {
    dp_convert_fn load = dp_elementwise_current()->load[element][DP_COMPUTE_F32];
    size_t width = dp_element_bytes(element);
    if (stride == 1)
        load(to, from, (size_t)n);
    else
        for (int64_t i = 0; i < n; i++)
            load(to + i, from + i * stride * (int64_t)width, 1);
}

static void store_row(char *to, const float *from, int element, int64_t stride, int64_t n) {
    dp_convert_fn store = dp_elementwise_current()->store[element][DP_COMPUTE_F32];
    size_t width = dp_element_bytes(element);
    if (stride == 1)
        store(to, from, (size_t)n);
    else
        for (int64_t i = 0; i < n; i++)
            store(to + i * stride * (int64_t)width, from + i, 1);
}

/* Runs the product on this thread. */
static void multiply(worker *w, const dp_gemm_problem *problem) {
    dp_gemm_plan plan;
    if (dp_gemm_plan_make(problem, 1, &plan) != DP_OK || plan.scratch_bytes > w->gemm_bytes) {
        atomic_store(&w->job->no_plan, true);
        return;
    }
    for (size_t i = 0; i < plan.tiles_m; i++)
        for (size_t j = 0; j < plan.tiles_n; j++)
            dp_gemm_tile(&plan, i, j, w->gemm);
}

/* scores (+)= q k^T */
static dp_gemm_problem score_problem(const float *q, size_t q_stride, int64_t rows, int64_t keys, int64_t depth,
                                     const void *k, int element, int64_t row, int64_t column, float *scores, bool add) {
    return (dp_gemm_problem){.m = (size_t)rows,
                             .n = (size_t)keys,
                             .k = (size_t)depth,
                             .a = {.data = q, .row_stride = (ptrdiff_t)q_stride, .column_stride = 1, .dtype = DP_F32},
                             .b = {.data = k, .row_stride = column, .column_stride = row, .dtype = (dp_dtype)element},
                             .c = {.data = scores, .row_stride = SCORES_STRIDE, .column_stride = 1, .dtype = DP_F32},
                             .alpha = 1,
                             .beta = add};
}

/* sums += scores v */
static dp_gemm_problem value_problem(const float *scores, int64_t rows, int64_t keys, int64_t depth, const void *v,
                                     int element, int64_t row, int64_t column, float *sums, size_t sums_stride) {
    return (dp_gemm_problem){
        .m = (size_t)rows,
        .n = (size_t)depth,
        .k = (size_t)keys,
        .a = {.data = scores, .row_stride = SCORES_STRIDE, .column_stride = 1, .dtype = DP_F32},
        .b = {.data = v, .row_stride = row, .column_stride = column, .dtype = (dp_dtype)element},
        .c = {.data = sums, .row_stride = (ptrdiff_t)sums_stride, .column_stride = 1, .dtype = DP_F32},
        .alpha = 1,
        .beta = 1};
}

/* Keys that lie in one run in memory, from key j on. */
typedef struct run_of_keys {
    const void *k, *k_rope, *v;
    int64_t count;
} run_of_keys;

static bool run_at(worker *w, const tile *t, int64_t key, int64_t last, run_of_keys *out) {
    const dp_attention *s = w->s;
    const dp_attention_sequence *q = t->seq;
    dp_plan *plan = w->job->plan;
    int64_t row = key, k_page = 0, v_page = 0, k_rope_page = 0;
    out->count = last - key;
    if (s->table >= 0) {
        const int32_t *table = dp_plan_data(plan, s->table);
        int64_t page = table[q->page_row * s->table_row + key / s->page_keys * s->table_column];
        if (page < 0 || page >= s->pages) {
            atomic_store(&w->job->bad_page, page);
            atomic_store(&w->job->bad_row, q->page_row);
            return false;
        }
        row = key % s->page_keys;
        out->count = least(out->count, s->page_keys - row);
        k_page = page * s->k_page;
        v_page = page * s->v_page;
        k_rope_page = page * s->k_rope_page;
    }
    int64_t width = (int64_t)dp_element_bytes(s->kv_element);
    out->k = address(plan, &q->k, t->kv_head, row) + k_page * width;
    out->v = address(plan, &q->v, t->kv_head, row) + v_page * width;
    out->k_rope = s->rope_depth ? address(plan, &q->k_rope, t->kv_head, row) + k_rope_page * width : NULL;
    return true;
}

static void load_queries(worker *w, const tile *t) {
    const dp_attention *s = w->s;
    const dp_attention_kernels *run = dp_attention_current();
    dp_plan *plan = w->job->plan;
    for (int64_t h = 0; h < t->heads; h++)
        for (int64_t i = 0; i < t->queries; i++) {
            int64_t r = h * t->queries + i;
            float *q = w->q + (size_t)r * w->q_stride;
            load_row(q, address(plan, &t->seq->q, t->head + h, t->query + i), s->q_element, t->seq->q.column, s->depth);
            run->scale(q, (size_t)s->depth, s->scale);
            if (!s->rope_depth)
                continue;
            q = w->q_rope + (size_t)r * w->q_rope_stride;
            load_row(q, address(plan, &t->seq->q_rope, t->head + h, t->query + i), s->q_element, t->seq->q_rope.column,
                     s->rope_depth);
            run->scale(q, (size_t)s->rope_depth, s->scale);
        }
}

static void start_sums(worker *w, const tile *t) {
    const dp_attention *s = w->s;
    for (int64_t r = 0; r < t->rows; r++) {
        memset(w->sums + (size_t)r * w->sums_stride, 0, (size_t)s->out_depth * sizeof(float));
        w->max[r] = -INFINITY;
        w->total[r] = 0;
        if (s->sink >= 0 && t->first_split) {
            const char *sink = dp_plan_data(w->job->plan, s->sink);
            int64_t head = t->head + r / t->queries;
            load_row(&w->max[r], sink + head * s->sink_stride * (int64_t)dp_element_bytes(s->sink_element),
                     s->sink_element, 1, 1);
            w->total[r] = isinf(w->max[r]) && w->max[r] < 0 ? 0 : 1;
        }
    }
}

/* Keys that query i may see: [*out_first, *out_last), within [first, last). */
static void visible(const dp_attention *s, const dp_attention_sequence *q, int64_t i, int64_t first, int64_t last,
                    int64_t *out_first, int64_t *out_last) {
    *out_first = *out_last = first;
    if (i >= q->queries_valid)
        return;
    int64_t low = most(first, i + q->shift - s->pre), high = least(last, i + q->shift + s->next + 1);
    if (low < high) {
        *out_first = low;
        *out_last = high;
    }
}

/* Row r of the tile against keys [key, key + keys): its scores become weights, its sums are brought to the new maximum.
 */
static void weigh_row(worker *w, const tile *t, int64_t r, int64_t key, int64_t keys) {
    const dp_attention *s = w->s;
    const dp_attention_sequence *q = t->seq;
    const dp_attention_kernels *run = dp_attention_current();
    dp_plan *plan = w->job->plan;
    float *scores = w->scores + r * SCORES_STRIDE;
    int64_t head = t->head + r / t->queries, i = t->query + r % t->queries, first, last;
    visible(s, q, i, key, key + keys, &first, &last);
    float *from = scores + (first - key);
    size_t n = (size_t)(last - first);
    float max = -INFINITY;
    if (n) {
        if (q->bias.slot >= 0) {
            const char *bias =
                address(plan, &q->bias, head, i) + first * q->bias.column * (int64_t)dp_element_bytes(s->bias_element);
            float spread[KEYS];
            if (q->bias.column == 1) {
                run->add(from, bias, s->bias_element, n, s->bias_factor);
            } else {
                load_row(spread, bias, s->bias_element, q->bias.column, (int64_t)n);
                run->add(from, spread, DP_F32, n, s->bias_factor);
            }
        }
        if (q->mask.slot >= 0) {
            const uint8_t *mask = (const uint8_t *)address(plan, &q->mask, head, i) + first * q->mask.column;
            uint8_t spread[KEYS];
            if (q->mask.column != 1) {
                for (size_t k = 0; k < n; k++)
                    spread[k] = mask[(int64_t)k * q->mask.column];
                mask = spread;
            }
            run->mask(from, mask, n);
        }
        max = run->max(from, n);
    }
    bool none = max == -INFINITY; /* and a row of NaN only: it stays NaN */
    for (size_t k = 0; none && k < n; k++)
        none = from[k] == -INFINITY;
    if (none) {
        memset(scores, 0, (size_t)keys * sizeof *scores);
        return;
    }
    float old = w->max[r], factor = 1;
    if (max > old) {
        factor = old == -INFINITY ? 0 : expf(old - max);
        w->max[r] = max;
        if (factor != 1 && w->total[r] != 0)
            run->scale(w->sums + (size_t)r * w->sums_stride, (size_t)s->out_depth, factor);
    }
    w->total[r] = w->total[r] * factor + run->exp(from, n, w->max[r]);
    memset(scores, 0, (size_t)(first - key) * sizeof *scores);
    memset(scores + (last - key), 0, (size_t)(key + keys - last) * sizeof *scores);
}

/* One tile of keys. False when a page does not exist. */
static bool attend(worker *w, const tile *t, int64_t key, int64_t keys) {
    const dp_attention *s = w->s;
    const dp_attention_sequence *q = t->seq;
    run_of_keys run;
    for (int64_t done = 0; done < keys; done += run.count) {
        if (!run_at(w, t, key + done, key + keys, &run))
            return false;
        dp_gemm_problem p = score_problem(w->q, w->q_stride, t->rows, run.count, s->depth, run.k, s->kv_element,
                                          q->k.row, q->k.column, w->scores + done, false);
        multiply(w, &p);
        if (!s->rope_depth)
            continue;
        p = score_problem(w->q_rope, w->q_rope_stride, t->rows, run.count, s->rope_depth, run.k_rope, s->kv_element,
                          q->k_rope.row, q->k_rope.column, w->scores + done, true);
        multiply(w, &p);
    }
    for (int64_t r = 0; r < t->rows; r++)
        weigh_row(w, t, r, key, keys);
    for (int64_t done = 0; done < keys; done += run.count) {
        if (!run_at(w, t, key + done, key + keys, &run))
            return false;
        dp_gemm_problem p = value_problem(w->scores + done, t->rows, run.count, s->out_depth, run.v, s->kv_element,
                                          q->v.row, q->v.column, w->sums, w->sums_stride);
        multiply(w, &p);
    }
    return true;
}

static void put_number(dp_plan *plan, const dp_attention_span *span, int64_t head, int64_t row, int64_t copies,
                       float value) {
    if (span->slot < 0)
        return;
    float *to = (float *)(uintptr_t)address(plan, span, head, row);
    for (int64_t c = 0; c < copies; c++)
        to[c * span->column] = value;
}

/* Writes one row. A row that saw no key is 0, with a logarithm of -infinity. */
static void finish_row(dp_plan *plan, const dp_attention *s, const dp_attention_sequence *q, int64_t head, int64_t i,
                       float *sums, float max, float total) {
    dp_attention_current()->scale(sums, (size_t)s->out_depth, total == 0 ? 0 : 1 / total);
    store_row((char *)(uintptr_t)address(plan, &q->out, head, i), sums, s->out_element, q->out.column, s->out_depth);
    put_number(plan, &q->lse, head, i, 1, total == 0 ? -INFINITY : max + logf(total));
    put_number(plan, &q->max, head, i, s->copies, max);
    put_number(plan, &q->sum, head, i, s->copies, total);
}

static float *partial_row(const job *j, size_t unit, int64_t row) {
    const dp_attention *s = j->s;
    size_t rows = (size_t)(s->tile_heads * s->tile_queries);
    return j->partial + (unit * rows + (size_t)row) * (size_t)(s->out_depth + 2);
}

static void run_unit(worker *w, size_t unit) {
    const dp_attention *s = w->s;
    tile t = tile_of(s, unit);
    if (!t.rows)
        return;
    int64_t low = t.last_key, high = t.first_key;
    for (int64_t i = 0; i < t.queries; i++) {
        int64_t first, last;
        visible(s, t.seq, t.query + i, t.first_key, t.last_key, &first, &last);
        if (first < last) {
            low = least(low, first);
            high = most(high, last);
        }
    }
    start_sums(w, &t);
    if (low < high)
        load_queries(w, &t);
    for (int64_t key = low; key < high; key += KEYS)
        if (!attend(w, &t, key, least(KEYS, high - key)))
            return;
    for (int64_t r = 0; r < t.rows; r++) {
        float *sums = w->sums + (size_t)r * w->sums_stride;
        if (w->job->partial) {
            float *to = partial_row(w->job, unit, r);
            memcpy(to, sums, (size_t)s->out_depth * sizeof *to);
            to[s->out_depth] = w->max[r];
            to[s->out_depth + 1] = w->total[r];
        } else {
            finish_row(w->job->plan, s, t.seq, t.head + r / t.queries, t.query + r % t.queries, sums, w->max[r],
                       w->total[r]);
        }
    }
}

/* An odd number of cache lines, so that rows do not fall on the same sets of the cache. */
static size_t padded(int64_t floats) {
    return (((size_t)floats + 15) / 16 | 1) * 16;
}

static bool columns_lie_together(const dp_attention *s) {
    bool together = true;
    for (int64_t i = 0; i < s->n_sequences; i++)
        together = together && s->sequences[i].k.column == 1 && s->sequences[i].v.column == 1 &&
                   (!s->rope_depth || s->sequences[i].k_rope.column == 1);
    return together;
}

/*
 * What the matrix engine may ask for in attend(), however short the run of keys. The last tile may have fewer rows, and
 * goes another way then; what it asks for must be counted only if it can be more.
 */
static dp_status gemm_bytes(const dp_attention *s, int64_t rows, size_t *out_bytes) {
    static const int fewer[] = {ROWS, FEW_ROWS, FEW_ROWS / 2};
    static float any[1];
    dp_gemm_plan plan;
    const int ways = columns_lie_together(s) ? 3 : 6;
    *out_bytes = 0;
    for (int way = 0; way < ways; way++) {
        const int64_t m = least(rows, fewer[way % 3]), stride = way < 3 ? 1 : 2, row = 4 * stride;
        const int64_t depth = most(s->depth, s->rope_depth);
        const dp_gemm_problem problems[] = {
            score_problem(any, padded(depth), m, KEYS, depth, any, s->kv_element, row, stride, any, false),
            value_problem(any, m, KEYS, s->out_depth, any, s->kv_element, row, stride, any, padded(s->out_depth))};
        for (int i = 0; i < 2; i++) {
            dp_status status = dp_gemm_plan_make(&problems[i], 1, &plan);
            if (status != DP_OK)
                return status;
            if (plan.scratch_bytes > *out_bytes)
                *out_bytes = plan.scratch_bytes;
        }
    }
    *out_bytes = (*out_bytes + 63) & ~(size_t)63;
    return DP_OK;
}

static void *worker_begin(worker *w, job *j) {
    const dp_attention *s = j->s;
    const int64_t rows = s->tile_heads * s->tile_queries;
    *w = (worker){.job = j, .s = s};
    w->q_stride = padded(s->depth);
    w->q_rope_stride = s->rope_depth ? padded(s->rope_depth) : 0;
    w->sums_stride = padded(s->out_depth);
    if (gemm_bytes(s, rows, &w->gemm_bytes) != DP_OK) {
        atomic_store(&j->no_plan, true);
        return NULL;
    }
    const size_t floats = (size_t)rows * (w->q_stride + w->q_rope_stride + SCORES_STRIDE + w->sums_stride + 2);
    char *memory = dp_scratch(w->gemm_bytes + floats * sizeof(float));
    if (!memory) {
        atomic_store(&j->no_memory, true);
        return NULL;
    }
    w->gemm = memory;
    w->q = (float *)(memory + w->gemm_bytes);
    w->q_rope = w->q + (size_t)rows * w->q_stride;
    w->scores = w->q_rope + (size_t)rows * w->q_rope_stride;
    w->sums = w->scores + rows * SCORES_STRIDE;
    w->max = w->sums + (size_t)rows * w->sums_stride;
    w->total = w->max + rows;
    return memory;
}

/* Each piece is a thread that takes units until none is left. */
static void run_worker(void *context, size_t begin, size_t end) {
    job *j = context;
    worker w;
    (void)begin;
    (void)end;
    if (atomic_load(&j->next) >= j->units)
        return;
    void *memory = worker_begin(&w, j);
    if (!memory)
        return;
    for (size_t unit; (unit = atomic_fetch_add(&j->next, 1)) < j->units;)
        run_unit(&w, unit);
}

/* Units [begin, end) count without their splits, whose partial sums become one row. */
static void merge_range(void *context, size_t begin, size_t end) {
    job *j = context;
    const dp_attention *s = j->s;
    const dp_attention_kernels *run = dp_attention_current();
    for (size_t unit = begin; unit < end; unit++) {
        tile t = tile_of(s, unit * (size_t)s->splits);
        for (int64_t r = 0; r < t.rows; r++) {
            float *first = partial_row(j, unit * (size_t)s->splits, r), max = -INFINITY, total = 0;
            for (int64_t k = 0; k < s->splits; k++)
                max = fmaxf(max, partial_row(j, unit * (size_t)s->splits + (size_t)k, r)[s->out_depth]);
            for (int64_t k = 0; k < s->splits; k++) {
                float *row = partial_row(j, unit * (size_t)s->splits + (size_t)k, r);
                float factor = row[s->out_depth + 1] == 0 ? 0 : expf(row[s->out_depth] - max);
                total += row[s->out_depth + 1] * factor;
                if (k == 0)
                    run->scale(first, (size_t)s->out_depth, factor);
                else
                    run->add(first, row, DP_F32, (size_t)s->out_depth, factor);
            }
            finish_row(j->plan, s, t.seq, t.head + r / t.queries, t.query + r % t.queries, first, max, total);
        }
    }
}

static dp_status verdict(job *j) {
    if (atomic_load(&j->no_memory))
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "%s: no host memory for tiles of %lld rows: free some", j->plan->op->name,
                       (long long)(j->s->tile_heads * j->s->tile_queries));
    if (atomic_load(&j->no_plan))
        return dp_fail(DP_ERR_INTERNAL, "%s: the matrix engine refused a tile", j->plan->op->name);
    int64_t row = atomic_load(&j->bad_row);
    if (row < 0)
        return DP_OK;
    return dp_fail(DP_ERR_ARGUMENT, "%s: row %lld names page %lld, but pages are 0 to %lld",
                   j->plan->tensors[j->s->table].name, (long long)row, (long long)atomic_load(&j->bad_page),
                   (long long)j->s->pages - 1);
}

dp_status dp_attention_run(dp_plan *plan) {
    const dp_attention *s = dp_plan_state(plan);
    job j = {.plan = plan, .s = s, .bad_row = -1};
    j.units = (size_t)(s->n_sequences * s->kv_heads * s->head_chunks * s->query_tiles * s->splits);
    if (!j.units || !s->out_depth)
        return DP_OK;
    if (s->splits > 1) {
        size_t floats = j.units * (size_t)(s->tile_heads * s->tile_queries) * (size_t)(s->out_depth + 2);
        j.partial = dp_alloc(DP_MEM_RUNTIME, floats * sizeof(float));
        if (!j.partial) {
            atomic_store(&j.no_memory, true);
            return verdict(&j);
        }
    }
    dp_pool_for(j.units < dp_pool_width() ? j.units : dp_pool_width(), 1, run_worker, &j);
    dp_status status = verdict(&j);
    if (status == DP_OK && j.partial)
        dp_pool_for(j.units / (size_t)s->splits, 1, merge_range, &j);
    dp_free(j.partial);
    return status;
}
