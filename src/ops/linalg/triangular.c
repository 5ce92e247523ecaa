/*
 * triangular.c - triangular_solve(b, A, upper, transpose, unitriangular) -> x, A's copy
 *   op(A) x = b by substitution, op(A) = A or its transpose. Only the triangle named by `upper` is read, with
 * unitriangular not its diagonal either. Leading dimensions are matrices one by one, broadcast. A zero on the diagonal
 * gives infinities. Float and narrower types work in float, blocks of rows at once by the matrix engine; double works
 * in double.
 */
#include <stdatomic.h>
#include <string.h>

#include "base/memory.h"
#include "math/gemm/gemm.h"
#include "ops/elementwise/kernels.h"
#include "ops/loop.h"
#include "ops/op.h"
#include "runtime/pool.h"

enum { BLOCK = 64, VIEW_X = 0, VIEW_B, VIEW_A, VIEW_COPY };

typedef struct matrix {
    int slot, element;
    int64_t row, column;
} matrix;

typedef struct state {
    dp_loop batch; /* views: x, b, A, A's copy */
    matrix x, b, a, copy;
    int64_t n, columns;
    dp_compute compute;
    bool upper, transpose, unit;
} state;

typedef struct job {
    dp_plan *plan;
    const state *s;
    _Atomic bool no_memory;
} job;

static char *matrix_at(const job *j, const matrix *m, int view, int64_t batch) {
    return (char *)dp_plan_data(j->plan, m->slot) +
           dp_loop_offset(&j->s->batch, view, batch) * (int64_t)dp_element_bytes(m->element);
}

/* Rows x columns numbers into a dense matrix of the compute type, or out of it. */
static void take(const state *s, void *to, const char *from, const matrix *m, int64_t rows, int64_t columns) {
    dp_convert_fn load = dp_elementwise_current()->load[m->element][s->compute];
    const int64_t width = (int64_t)dp_element_bytes(m->element),
                  step = (int64_t)dp_element_bytes(dp_compute_element(s->compute));
    for (int64_t i = 0; i < rows; i++) {
        char *row = (char *)to + i * columns * step;
        if (m->column == 1)
            load(row, from + i * m->row * width, (size_t)columns);
        else
            for (int64_t k = 0; k < columns; k++)
                load(row + k * step, from + (i * m->row + k * m->column) * width, 1);
    }
}

static void give(const state *s, char *to, const void *from, const matrix *m, int64_t rows, int64_t columns) {
    dp_convert_fn store = dp_elementwise_current()->store[m->element][s->compute];
    const int64_t width = (int64_t)dp_element_bytes(m->element),
                  step = (int64_t)dp_element_bytes(dp_compute_element(s->compute));
    for (int64_t i = 0; i < rows; i++) {
        const char *row = (const char *)from + i * columns * step;
        if (m->column == 1)
            store(to + i * m->row * width, row, (size_t)columns);
        else
            for (int64_t k = 0; k < columns; k++)
                store(to + (i * m->row + k * m->column) * width, row + k * step, 1);
    }
}

/*
 * Rows [first, last) of op(A) x = b, those solved before already subtracted. at(i, k) is op(A)'s element; `up`: the
 * last row first. One row after the other is taken from the rows still to come.
 */
#define SOLVE_BLOCK(type, name)                                                                                        \
    static void solve_block_##name(const state *s, const type *a, int64_t row, int64_t column, type *x, int64_t first, \
                                   int64_t last, bool up) {                                                            \
        const int64_t n = s->columns;                                                                                  \
        for (int64_t step = 0; step < last - first; step++) {                                                          \
            int64_t i = up ? last - 1 - step : first + step;                                                           \
            type *own = x + i * n, diagonal = a[i * row + i * column];                                                 \
            for (int64_t c = 0; c < n && !s->unit; c++)                                                                \
                own[c] /= diagonal;                                                                                    \
            for (int64_t k = up ? first : i + 1; k < (up ? i : last); k++) {                                           \
                const type factor = a[k * row + i * column];                                                           \
                type *other = x + k * n;                                                                               \
                for (int64_t c = 0; c < n; c++)                                                                        \
                    other[c] -= factor * own[c];                                                                       \
            }                                                                                                          \
        }                                                                                                              \
    }
SOLVE_BLOCK(float, f32)
SOLVE_BLOCK(double, f64)

/* x rows [to, to_last) -= op(A)[to.., from..] x rows [from, from_last). False without memory for the product. */
static bool subtract(const state *s, const float *a, int64_t row, int64_t column, float *x, int64_t to, int64_t to_last,
                     int64_t from, int64_t from_last) {
    const ptrdiff_t n = (ptrdiff_t)s->columns;
    dp_gemm_problem p = {
        .m = (size_t)(to_last - to),
        .n = (size_t)n,
        .k = (size_t)(from_last - from),
        .a = {.data = a + to * row + from * column, .row_stride = row, .column_stride = column, .dtype = DP_F32},
        .b = {.data = x + from * n, .row_stride = n, .column_stride = 1, .dtype = DP_F32},
        .c = {.data = x + to * n, .row_stride = n, .column_stride = 1, .dtype = DP_F32},
        .alpha = -1,
        .beta = 1};
    dp_gemm_plan plan;
    if (dp_gemm_plan_make(&p, 1, &plan) != DP_OK)
        return false;
    void *scratch = dp_alloc(DP_MEM_RUNTIME, plan.scratch_bytes ? plan.scratch_bytes : 1);
    if (!scratch)
        return false;
    for (size_t i = 0; i < plan.tiles_m; i++)
        for (size_t j = 0; j < plan.tiles_n; j++)
            dp_gemm_tile(&plan, i, j, scratch);
    dp_free(scratch);
    return true;
}

static bool solve(const state *s, const void *a, void *x) {
    const int64_t n = s->n, row = s->transpose ? 1 : n, column = s->transpose ? n : 1;
    const bool up = s->upper != s->transpose;
    if (s->compute == DP_COMPUTE_F64) {
        solve_block_f64(s, a, row, column, x, 0, n, up);
        return true;
    }
    for (int64_t done = 0, count; done < n; done += count) {
        count = n - done < BLOCK ? n - done : BLOCK;
        const int64_t first = up ? n - done - count : done, last = first + count;
        solve_block_f32(s, a, row, column, x, first, last, up);
        const int64_t to = up ? 0 : last, to_last = up ? first : n;
        if (to < to_last && !subtract(s, a, row, column, x, to, to_last, first, last))
            return false;
    }
    return true;
}

static void solve_range(void *context, size_t begin, size_t end) {
    job *j = context;
    const state *s = j->s;
    const size_t step = dp_element_bytes(dp_compute_element(s->compute)), square = (size_t)(s->n * s->n) * step;
    char *a = dp_alloc(DP_MEM_RUNTIME, square + (size_t)(s->n * s->columns) * step);
    if (!a) {
        atomic_store(&j->no_memory, true);
        return;
    }
    for (size_t i = begin; i < end; i++) {
        void *x = a + square;
        take(s, a, matrix_at(j, &s->a, VIEW_A, (int64_t)i), &s->a, s->n, s->n);
        take(s, x, matrix_at(j, &s->b, VIEW_B, (int64_t)i), &s->b, s->n, s->columns);
        if (!solve(s, a, x)) {
            atomic_store(&j->no_memory, true);
            break;
        }
        give(s, matrix_at(j, &s->x, VIEW_X, (int64_t)i), x, &s->x, s->n, s->columns);
        if (s->copy.slot >= 0)
            give(s, matrix_at(j, &s->copy, VIEW_COPY, (int64_t)i), a, &s->copy, s->n, s->n);
    }
    dp_free(a);
}

static dp_status run(dp_plan *plan) {
    job j = {.plan = plan, .s = dp_plan_state(plan)};
    if (!j.s->batch.count || !j.s->n)
        return DP_OK;
    dp_pool_for((size_t)j.s->batch.count, 1, solve_range, &j);
    if (atomic_load(&j.no_memory))
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "%s: no host memory for matrices of %lld by %lld", plan->op->name,
                       (long long)j.s->n, (long long)j.s->n);
    return DP_OK;
}

/* The last two dims of a tensor as a matrix; its leading dims join the loop. */
static dp_status add_matrix(state *s, const dp_arg *arg, int64_t rows, int64_t columns, bool exact, matrix *out) {
    const dp_tensor *t = arg->as.tensor;
    dp_tensor lead = *t;
    lead.rank -= 2;
    bool fits = t->rank >= 2 && t->dims[t->rank - 2] == rows && t->dims[t->rank - 1] == columns;
    for (int d = 0; fits && d < lead.rank; d++) {
        int to = d + s->batch.rank - lead.rank;
        fits = to >= 0 ? t->dims[d] == s->batch.dims[to] || (t->dims[d] == 1 && !exact) : t->dims[d] == 1;
    }
    if (!fits) {
        char found[160], dims[160];
        return dp_fail(
            DP_ERR_ARGUMENT,
            "%s has the shape %s, but must be of %lld by %lld, behind leading dimensions that fit those of the "
            "others, %s",
            arg->name, dp_dims_describe(t->dims, t->rank, found, sizeof found), (long long)rows, (long long)columns,
            dp_dims_describe(s->batch.dims, s->batch.rank, dims, sizeof dims));
    }
    dp_loop_add(&s->batch, &lead);
    *out = (matrix){arg->slot, t->element, t->strides[t->rank - 2], t->strides[t->rank - 1]};
    return DP_OK;
}

static dp_status prepare(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *b = &call->in[0], *a = &call->in[1], *x = &call->out[0], *copy = &call->out[1];
    const dp_arg *all[] = {b, a, x, copy};
    dp_status status = DP_OK;
    bool has_copy = copy->kind == DP_ARG_TENSOR;
    for (int i = 0; i < (has_copy ? 4 : 3) && status == DP_OK; i++) {
        status = dp_element_expect(all[i], call->op->elements);
        if (status == DP_OK && all[i]->as.tensor->rank < 2)
            status = dp_fail(DP_ERR_ARGUMENT, "%s has %d dimensions, but must have at least 2", all[i]->name,
                             all[i]->as.tensor->rank);
    }
    if (status != DP_OK)
        return status;
    const dp_tensor *tb = b->as.tensor, *ta = a->as.tensor;
    dp_tensor lead[2] = {*tb, *ta};
    const dp_tensor *leads[2] = {&lead[0], &lead[1]};
    const char *names[2] = {b->name, a->name};
    lead[0].rank -= 2;
    lead[1].rank -= 2;
    int64_t dims[DP_TENSOR_DIMS];
    int rank;
    status = dp_broadcast(leads, names, 2, dims, &rank);
    if (status != DP_OK)
        return status;
    state s = {.n = tb->dims[tb->rank - 2],
               .columns = tb->dims[tb->rank - 1],
               .compute = tb->element == DP_F64 || ta->element == DP_F64 ? DP_COMPUTE_F64 : DP_COMPUTE_F32,
               .upper = dp_arg_integer(&call->in[2], 0) != 0,
               .transpose = dp_arg_integer(&call->in[3], 0) != 0,
               .unit = dp_arg_integer(&call->in[4], 0) != 0,
               .copy = {.slot = -1}};
    dp_loop_begin(&s.batch, dims, rank);
    status = add_matrix(&s, x, s.n, s.columns, true, &s.x);
    if (status == DP_OK)
        status = add_matrix(&s, b, s.n, s.columns, false, &s.b);
    if (status == DP_OK)
        status = add_matrix(&s, a, s.n, s.n, false, &s.a);
    if (status == DP_OK && has_copy)
        status = add_matrix(&s, copy, s.n, s.n, true, &s.copy);
    if (status != DP_OK)
        return status;
    dp_plan *plan = dp_plan_new(call, run, sizeof s);
    if (!plan)
        return DP_ERR_OUT_OF_MEMORY;
    memcpy(dp_plan_state(plan), &s, sizeof s);
    plan->path = s.compute == DP_COMPUTE_F64 ? "substitution in double" : "substitution by blocks";
    *out_plan = plan;
    return DP_OK;
}

extern const dp_function dp_linalg_triangular_solve;
const dp_function dp_linalg_triangular_solve = {"triangular_solve", prepare, NULL, 0, 2};
