#include "ops/matmul/products.h"

#include <stdatomic.h>

#include "base/memory.h"
#include "base/scratch.h"
#include "runtime/pool.h"

enum {
    WORK_ALONE = 1 << 16, /* multiplications that are done before another thread has heard of them */
    PRODUCTS_UNCUT = 4    /* so many products a thread are spread whole */
};

static dp_gemm_matrix *matrix_of(dp_gemm_problem *problem, int view) {
    switch (view) {
    case DP_PRODUCTS_C:
        return &problem->c;
    case DP_PRODUCTS_A:
        return &problem->a;
    case DP_PRODUCTS_B:
        return &problem->b;
    default:
        return &problem->source;
    }
}

void dp_products_begin(dp_products *p, const int64_t *batch_dims, int batch_rank) {
    *p = (dp_products){.problem = {.alpha = 1}, .slot = {-1, -1, -1, -1}};
    dp_loop_begin(&p->batch, batch_dims, batch_rank);
}

void dp_products_set(dp_products *p, int view, const dp_arg *tensor, int64_t row_stride, int64_t column_stride,
                     const int64_t *batch_strides) {
    static const int64_t none[DP_TENSOR_DIMS] = {0};
    dp_loop_add_strides(&p->batch, tensor ? batch_strides : none);
    if (!tensor)
        return;
    p->slot[view] = tensor->slot;
    *matrix_of(&p->problem, view) = (dp_gemm_matrix){.row_stride = (ptrdiff_t)row_stride,
                                                     .column_stride = (ptrdiff_t)column_stride,
                                                     .dtype = (dp_dtype)tensor->as.tensor->element};
}

static bool rows_go_on(dp_products *p, int view, int dim) {
    return p->slot[view] < 0 || p->problem.m == 1 ||
           p->batch.strides[view][dim] == (int64_t)p->problem.m * matrix_of(&p->problem, view)->row_stride;
}

static void remove_dim(dp_loop *loop, int dim) {
    for (int d = dim; d + 1 < loop->rank; d++) {
        loop->dims[d] = loop->dims[d + 1];
        for (int v = 0; v < loop->n_views; v++)
            loop->strides[v][d] = loop->strides[v][d + 1];
    }
    if (loop->rank > 1) {
        loop->rank--;
        return;
    }
    loop->dims[0] = 1;
    for (int v = 0; v < loop->n_views; v++)
        loop->strides[v][0] = 0;
}

static void fold_rows(dp_products *p) {
    static const int with_rows[] = {DP_PRODUCTS_C, DP_PRODUCTS_A, DP_PRODUCTS_SOURCE};
    dp_loop *batch = &p->batch;
    for (int d = batch->rank - 1; d >= 0; d--) {
        if (batch->dims[d] <= 1 || batch->strides[DP_PRODUCTS_B][d] != 0 || !rows_go_on(p, DP_PRODUCTS_C, d) ||
            !rows_go_on(p, DP_PRODUCTS_A, d) || !rows_go_on(p, DP_PRODUCTS_SOURCE, d))
            continue;
        for (int i = 0; i < 3 && p->problem.m == 1; i++)
            matrix_of(&p->problem, with_rows[i])->row_stride = (ptrdiff_t)batch->strides[with_rows[i]][d];
        p->problem.m *= (size_t)batch->dims[d];
        batch->count /= batch->dims[d];
        remove_dim(batch, d);
        d = batch->rank; /* outer ones may continue these rows */
    }
}

static size_t multiplications(const dp_gemm_problem *p) {
    double all = (double)p->m * (double)p->n * (double)(p->k ? p->k : 1);
    return all < 1e15 ? (size_t)all : (size_t)1e15;
}

dp_status dp_products_end(dp_products *p, dp_way *out_way) {
    static const char placeholder[64]; /* the engine looks at addresses only to see that they are there */
    dp_loop_merge(&p->batch, false);
    if (!p->sum_batch && !p->problem.epilogue.row_scale)
        fold_rows(p);
    dp_gemm_problem asked = p->problem;
    asked.a.data = asked.b.data = asked.c.data = placeholder;
    asked.source.data = p->slot[DP_PRODUCTS_SOURCE] < 0 ? NULL : placeholder;
    dp_gemm_plan plan;
    dp_status status = dp_gemm_plan_make(&asked, 1, &plan);
    *out_way = status == DP_OK && p->batch.count ? (dp_way){plan.path, plan.why} : (dp_way){"empty", ""};
    return status;
}

typedef struct job {
    const dp_products *products;
    char *data[DP_PRODUCTS_VIEWS]; /* of the first product */
    const void **blocks;           /* with sum_batch: addresses of all A, then of all B */
    unsigned threads;              /* each product is planned for */
    size_t tiles;                  /* of each */
    _Atomic bool failed;
} job;

static char *address_of(const job *j, int view, const dp_gemm_matrix *matrix, int64_t index) {
    return j->data[view] + dp_loop_offset(&j->products->batch, view, index) * (int64_t)dp_dtype_bits(matrix->dtype) / 8;
}

static dp_status plan_product(const job *j, int64_t index, dp_gemm_plan *out_plan) {
    const dp_products *p = j->products;
    dp_gemm_problem problem = p->problem;
    for (int v = 0; v < DP_PRODUCTS_VIEWS; v++) {
        if (p->slot[v] < 0 || (p->sum_batch && (v == DP_PRODUCTS_A || v == DP_PRODUCTS_B)))
            continue;
        dp_gemm_matrix *matrix = matrix_of(&problem, v);
        matrix->data = p->sum_batch ? j->data[v] : address_of(j, v, matrix, index);
    }
    if (p->sum_batch) {
        problem.n_blocks = (size_t)p->batch.count;
        problem.a.blocks = j->blocks;
        problem.b.blocks = j->blocks + p->batch.count;
        problem.k = p->batch.count ? problem.k : 0;
    }
    return dp_gemm_plan_make(&problem, j->threads, out_plan);
}

static void run_range(void *context, size_t begin, size_t end) {
    job *j = context;
    dp_gemm_plan plan;
    void *scratch = NULL;
    for (size_t i = begin; i < end; i++) {
        size_t tile = i % j->tiles;
        if (i == begin || tile == 0) {
            if (plan_product(j, (int64_t)(i / j->tiles), &plan) != DP_OK ||
                !(scratch = dp_scratch(plan.scratch_bytes))) {
                atomic_store(&j->failed, true);
                return;
            }
        }
        dp_gemm_tile(&plan, tile / plan.tiles_n, tile % plan.tiles_n, scratch);
    }
}

static dp_status run_all(job *j, size_t count, size_t work) {
    const unsigned width = dp_pool_width();
    if (work >= WORK_ALONE && count < (size_t)width * PRODUCTS_UNCUT)
        j->threads = width;
    dp_gemm_plan first;
    dp_status status = plan_product(j, 0, &first);
    if (status != DP_OK)
        return status;
    j->tiles = first.tiles_m * first.tiles_n;
    size_t grain = WORK_ALONE / (work / j->tiles + 1);
    dp_pool_for(count * j->tiles, grain ? grain : 1, run_range, j);
    if (atomic_load(&j->failed))
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for a worker's part of a matrix product (%zu bytes)",
                       first.scratch_bytes);
    return DP_OK;
}

dp_status dp_products_run(dp_plan *plan, const dp_products *p) {
    const size_t count = (size_t)p->batch.count;
    if ((count == 0 && !p->sum_batch) || p->problem.m == 0 || p->problem.n == 0)
        return DP_OK;
    job j = {.products = p, .threads = 1};
    for (int v = 0; v < DP_PRODUCTS_VIEWS; v++)
        j.data[v] = p->slot[v] < 0 ? NULL : dp_plan_data(plan, p->slot[v]);
    if (!p->sum_batch)
        return run_all(&j, count, multiplications(&p->problem));
    j.blocks = dp_alloc(DP_MEM_RUNTIME, (2 * count + 1) * sizeof *j.blocks);
    if (!j.blocks)
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for the addresses of %zu matrices", 2 * count);
    for (size_t i = 0; i < count; i++) {
        j.blocks[i] = address_of(&j, DP_PRODUCTS_A, &p->problem.a, (int64_t)i);
        j.blocks[count + i] = address_of(&j, DP_PRODUCTS_B, &p->problem.b, (int64_t)i);
    }
    dp_status status = run_all(&j, 1, multiplications(&p->problem) * (count ? count : 1));
    dp_free(j.blocks);
    return status;
}

/* Products of different shapes: the tiles of product i are items [first[i], first[i + 1]) of all. */
typedef struct mixture {
    const dp_gemm_plan *plans;
    const size_t *first;
    size_t count;
    _Atomic bool failed;
} mixture;

static void run_mixture(void *context, size_t begin, size_t end) {
    mixture *x = context;
    size_t at = 0;
    for (size_t i = begin; i < end; i++) {
        while (i >= x->first[at + 1])
            at++;
        const dp_gemm_plan *plan = &x->plans[at];
        void *scratch = dp_scratch(plan->scratch_bytes);
        if (!scratch) {
            atomic_store(&x->failed, true);
            return;
        }
        const size_t tile = i - x->first[at];
        dp_gemm_tile(plan, tile / plan->tiles_n, tile % plan->tiles_n, scratch);
    }
}

static dp_status plan_mixture(const dp_gemm_problem *problems, size_t count, dp_gemm_plan *plans, size_t *first,
                              size_t *out_work) {
    const unsigned width = dp_pool_width();
    *out_work = 0;
    for (size_t i = 0; i < count; i++)
        *out_work += multiplications(&problems[i]);
    first[0] = 0;
    for (size_t i = 0; i < count; i++) {
        /* one that takes more than half of a worker's part is cut */
        const bool cut = multiplications(&problems[i]) > *out_work / (2 * width) && *out_work >= WORK_ALONE;
        dp_status status = dp_gemm_plan_make(&problems[i], cut ? width : 1, &plans[i]);
        if (status != DP_OK)
            return status;
        first[i + 1] = first[i] + plans[i].tiles_m * plans[i].tiles_n;
    }
    return DP_OK;
}

dp_status dp_problems_run(const dp_gemm_problem *problems, size_t count) {
    dp_gemm_plan *plans = dp_alloc(DP_MEM_RUNTIME, count * sizeof *plans + (count + 1) * sizeof(size_t));
    if (!plans)
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for the plans of %zu matrix products", count);
    size_t *first = (size_t *)(void *)(plans + count), work;
    mixture x = {.plans = plans, .first = first, .count = count};
    dp_status status = plan_mixture(problems, count, plans, first, &work);
    if (status == DP_OK && first[count]) {
        size_t grain = WORK_ALONE / (work / first[count] + 1);
        dp_pool_for(first[count], grain ? grain : 1, run_mixture, &x);
    }
    dp_free(plans);
    if (atomic_load(&x.failed))
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for a worker's part of a matrix product");
    return status;
}
