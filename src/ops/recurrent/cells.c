/*
 * cells.c - recurrent layers by the ONNX operator specification, in float:
 *   lstm, gru, rnn(x, w, r, b, lengths, h, c, p, alpha, beta, activations, clip, direction, hidden, variant, layout)
 *       -> y, y_h, y_c
 * x [steps, batch, inputs]; w [directions, gates * hidden, inputs]; r [directions, gates * hidden, hidden]; b
 * [directions, 2 * gates * hidden]; lengths [batch] (absent: all steps); h, c [directions, batch, hidden]; p
 * [directions, 3 * hidden]; y [steps, directions, batch, hidden]. With layout 1 the batch comes first in x, y, h and c.
 * variant: lstm: input and forget gate are coupled; gru: the reset gate works behind the product. activations: names,
 * one per line, 3, 2 or 1 per direction; alpha and beta go to those that want them, in order. b, lengths, h, c, p and
 * any output may be absent.
 *
 * The inputs' part of all gates of all steps is one product on the matrix engine; then each step adds the state's part.
 */
#include "ops/recurrent/cells.h"

#include <math.h>
#include <string.h>

#include "ops/elementwise/kernels.h"
#include "ops/matmul/products.h"

typedef struct part {
    float *gates;        /* [steps * batch][gates * hidden], rows in x's order */
    float *step, *again; /* [batch][gates * hidden], [batch][hidden] */
    float *h, *c;        /* [batch][hidden] */
    float *bias;         /* [gates * hidden] */
    const float *after;  /* gru, variant: bias of the state's part of the last gate */
    const float *x, *w, *r, *p;
} part;

typedef struct job {
    dp_plan *plan;
    const dp_cells *s;
    part own;
    int64_t *lengths;
} job;

static const float *floats_of(const job *j, const dp_cell_input *input) {
    if (input->slot < 0)
        return NULL;
    const dp_tensor *t = &j->plan->tensors[input->slot].view;
    if (t->element == DP_F32)
        return dp_tensor_data(t);
    float *to = dp_workspace_at(j->plan, input->copy);
    dp_elementwise_current()->load[t->element][DP_COMPUTE_F32](to, dp_tensor_data(t), (size_t)dp_tensor_count(t));
    return to;
}

/* ---- activations ---- */

static void apply_table(int id, float *x, size_t n, double first, double second, double third) {
    double params[4] = {first, second, third};
    for (size_t at = 0, some; at < n; at += some) {
        some = n - at < DP_TILE ? n - at : DP_TILE;
        dp_elementwise_current()->run[id][DP_COMPUTE_F32](x + at, x + at, x + at, x + at, params, some);
    }
}

static void scale_and_shift(float *x, size_t n, float a, float b) {
    for (size_t i = 0; i < n; i++)
        x[i] = x[i] * a + b;
}

static void activate(const dp_cells *s, const dp_cell_activation *f, float *x, size_t n) {
    float a = f->alpha, b = f->beta;
    for (size_t i = 0; s->clip > 0 && i < n; i++)
        x[i] = x[i] > s->clip ? s->clip : x[i] < -s->clip ? -s->clip : x[i];
    switch (f->kind) {
    case DP_CELL_RELU:
        apply_table(DP_ELEMENTWISE_relu, x, n, 0, 0, 0);
        break;
    case DP_CELL_TANH:
        apply_table(DP_ELEMENTWISE_tanh, x, n, 0, 0, 0);
        break;
    case DP_CELL_SIGMOID:
        apply_table(DP_ELEMENTWISE_sigmoid, x, n, 0, 0, 0);
        break;
    case DP_CELL_AFFINE:
        scale_and_shift(x, n, a, b);
        break;
    case DP_CELL_LEAKY_RELU:
        apply_table(DP_ELEMENTWISE_leaky_relu, x, n, (double)a, 0, 0);
        break;
    case DP_CELL_THRESHOLDED_RELU:
        for (size_t i = 0; i < n; i++)
            x[i] = x[i] >= a ? x[i] : 0;
        break;
    case DP_CELL_SCALED_TANH:
        scale_and_shift(x, n, b, 0);
        apply_table(DP_ELEMENTWISE_tanh, x, n, 0, 0, 0);
        scale_and_shift(x, n, a, 0);
        break;
    case DP_CELL_HARD_SIGMOID:
        scale_and_shift(x, n, a, b);
        for (size_t i = 0; i < n; i++)
            x[i] = x[i] < 0 ? 0 : x[i] > 1 ? 1 : x[i];
        break;
    case DP_CELL_ELU:
        apply_table(DP_ELEMENTWISE_elu, x, n, (double)a, 1, 1);
        break;
    case DP_CELL_SOFTSIGN:
        for (size_t i = 0; i < n; i++)
            x[i] = x[i] / (1 + fabsf(x[i]));
        break;
    default:
        apply_table(DP_ELEMENTWISE_softplus, x, n, 1, 40, 0);
    }
}

/* ---- products ---- */

dp_gemm_problem dp_cells_product(int64_t m, int64_t n, int64_t k) {
    dp_gemm_problem g = {.m = (size_t)m, .n = (size_t)n, .k = (size_t)k, .alpha = 1};
    g.a = (dp_gemm_matrix){.row_stride = k, .column_stride = 1, .dtype = DP_F32};
    g.b = (dp_gemm_matrix){.row_stride = 1, .column_stride = k, .dtype = DP_F32};
    g.c = (dp_gemm_matrix){.row_stride = n, .column_stride = 1, .dtype = DP_F32};
    return g;
}

/* c [m, n] = a [m, k] x b^T [n, k] + bias, or with `add` c + a x b^T. packed: b as the engine wants it, or NULL. */
typedef struct operands {
    const float *a, *b, *bias;
    const void *packed;
    float *c;
    int64_t c_row;
    bool add;
} operands;

static dp_status product(const operands *o, int64_t m, int64_t n, int64_t k) {
    dp_gemm_problem g = dp_cells_product(m, n, k);
    g.beta = o->add;
    g.a.data = o->a;
    g.b.data = o->packed ? o->packed : o->b;
    g.b.packed = o->packed != NULL;
    g.c.data = o->c;
    g.c.row_stride = o->c_row;
    g.epilogue.bias = o->bias;
    g.epilogue.bias_dtype = DP_F32;
    return dp_problems_run(&g, 1);
}

static dp_status pack(const job *j, int which, const float *b, int64_t n) {
    const dp_cells *s = j->s;
    dp_gemm_problem g = dp_cells_product(s->batch, n, s->hidden);
    g.b.data = b;
    return s->packed_bytes[which] ? dp_gemm_pack_b(&g, dp_workspace_at(j->plan, s->packed_at[which])) : DP_OK;
}

static const void *packed_of(const job *j, int which) {
    return j->s->packed_bytes[which] ? dp_workspace_at(j->plan, j->s->packed_at[which]) : NULL;
}

/* ---- one step of one sequence: the gates' sums are in `g`, h and c are changed ---- */

static void lstm_row(const dp_cells *s, const dp_cell_activation *f, const part *own, float *g, float *h, float *c) {
    size_t n = (size_t)s->hidden;
    float *i = g, *o = g + n, *forget = g + 2 * n, *cell = g + 3 * n;
    const float *p = own->p;
    for (size_t k = 0; p && k < n; k++) {
        i[k] += p[k] * c[k];
        forget[k] += p[2 * n + k] * c[k];
    }
    activate(s, &f[0], i, n);
    activate(s, &f[1], cell, n);
    if (s->variant)
        for (size_t k = 0; k < n; k++)
            forget[k] = 1 - i[k];
    else
        activate(s, &f[0], forget, n);
    for (size_t k = 0; k < n; k++)
        c[k] = forget[k] * c[k] + i[k] * cell[k];
    for (size_t k = 0; p && k < n; k++)
        o[k] += p[n + k] * c[k];
    activate(s, &f[0], o, n);
    memcpy(cell, c, n * sizeof *c);
    dp_cells free_of_clip = *s;
    free_of_clip.clip = 0;
    activate(&free_of_clip, &f[2], cell, n);
    for (size_t k = 0; k < n; k++)
        h[k] = o[k] * cell[k];
}

static void gru_row(const dp_cells *s, const dp_cell_activation *f, float *g, float *h) {
    size_t n = (size_t)s->hidden;
    activate(s, &f[1], g + 2 * n, n);
    for (size_t k = 0; k < n; k++)
        h[k] = (1 - g[k]) * g[2 * n + k] + g[k] * h[k];
}

/* The update and reset gates, then the state's part of the last gate. */
static dp_status gru_gates(const job *j, const dp_cell_activation *f) {
    const dp_cells *s = j->s;
    const part *own = &j->own;
    int64_t n = s->hidden, row = 3 * n;
    const float *last = own->r + 2 * n * n;
    operands both = {.a = own->h, .b = own->r, .packed = packed_of(j, 0), .c = own->step, .c_row = row, .add = true};
    operands apart = {
        .a = own->h, .b = last, .packed = packed_of(j, 1), .bias = own->after, .c = own->again, .c_row = n};
    operands reset = {
        .a = own->again, .b = last, .packed = packed_of(j, 1), .c = own->step + 2 * n, .c_row = row, .add = true};
    dp_status status = product(&both, s->batch, 2 * n, n);
    for (int64_t b = 0; b < s->batch && status == DP_OK; b++)
        activate(s, &f[0], own->step + b * row, (size_t)(2 * n));
    if (status == DP_OK && s->variant)
        status = product(&apart, s->batch, n, n);
    for (int64_t i = 0; i < s->batch * n && status == DP_OK; i++) {
        float *g = own->step + i / n * row + i % n;
        if (s->variant)
            g[2 * n] += g[n] * own->again[i];
        else
            own->again[i] = g[n] * own->h[i];
    }
    if (status == DP_OK && !s->variant)
        status = product(&reset, s->batch, n, n);
    return status;
}

/* ---- one direction ---- */

static void write_floats(const job *j, int slot, int64_t at, const float *from, int64_t n) {
    if (slot < 0)
        return;
    const dp_tensor *t = &j->plan->tensors[slot].view;
    dp_elementwise_current()->store[t->element][DP_COMPUTE_F32](
        (char *)dp_tensor_data(t) + at * (int64_t)dp_element_bytes(t->element), from, (size_t)n);
}

/* Where row (direction, batch) of a state, or (step, direction, batch) of y begins, in elements. */
static int64_t state_at(const dp_cells *s, int64_t d, int64_t b) {
    return (s->batch_first ? b * s->directions + d : d * s->batch + b) * s->hidden;
}
static int64_t y_at(const dp_cells *s, int64_t t, int64_t d, int64_t b) {
    return (s->batch_first ? (b * s->steps + t) * s->directions + d : (t * s->directions + d) * s->batch + b) *
           s->hidden;
}

static void begin_direction(job *j, int64_t d) {
    const dp_cells *s = j->s;
    part *own = &j->own;
    int64_t row = s->gates * s->hidden;
    const float *b = floats_of(j, &s->b), *h = floats_of(j, &s->h), *c = floats_of(j, &s->c), *p = floats_of(j, &s->p);
    own->w = floats_of(j, &s->w) + d * row * s->inputs;
    own->r = floats_of(j, &s->r) + d * row * s->hidden;
    own->p = p ? p + d * 3 * s->hidden : NULL;
    bool apart = s->kind == DP_CELLS_GRU && s->variant;
    own->after = b && apart ? b + d * 2 * row + row + 2 * s->hidden : NULL;
    for (int64_t i = 0; i < row; i++) {
        own->bias[i] = b ? b[d * 2 * row + i] : 0;
        if (b && !(apart && i >= 2 * s->hidden))
            own->bias[i] += b[d * 2 * row + row + i];
    }
    for (int64_t i = 0; i < s->batch; i++) {
        size_t bytes = (size_t)s->hidden * sizeof(float);
        if (h)
            memcpy(own->h + i * s->hidden, h + state_at(s, d, i), bytes);
        else
            memset(own->h + i * s->hidden, 0, bytes);
        if (c)
            memcpy(own->c + i * s->hidden, c + state_at(s, d, i), bytes);
        else
            memset(own->c + i * s->hidden, 0, bytes);
    }
}

static dp_status run_step(job *j, int64_t step, int64_t d, bool backward) {
    const dp_cells *s = j->s;
    part *own = &j->own;
    const dp_cell_activation *f = s->activations + d * 3;
    int64_t n = s->hidden, row = s->gates * n;
    for (int64_t b = 0; b < s->batch; b++) {
        int64_t t = backward ? j->lengths[b] - 1 - step : step;
        if (step < j->lengths[b])
            memcpy(own->step + b * row, own->gates + (s->batch_first ? b * s->steps + t : t * s->batch + b) * row,
                   (size_t)row * sizeof(float));
    }
    operands all = {.a = own->h, .b = own->r, .packed = packed_of(j, 0), .c = own->step, .c_row = row, .add = true};
    dp_status status = s->kind == DP_CELLS_GRU ? gru_gates(j, f) : product(&all, s->batch, row, n);
    for (int64_t b = 0; b < s->batch && status == DP_OK; b++) {
        float *g = own->step + b * row, *h = own->h + b * n;
        int64_t t = backward ? j->lengths[b] - 1 - step : step;
        if (step >= j->lengths[b])
            continue;
        if (s->kind == DP_CELLS_LSTM)
            lstm_row(s, f, own, g, h, own->c + b * n);
        else if (s->kind == DP_CELLS_GRU)
            gru_row(s, f, g, h);
        else {
            activate(s, &f[0], g, (size_t)n);
            memcpy(h, g, (size_t)n * sizeof *h);
        }
        write_floats(j, s->y, y_at(s, t, d, b), h, n);
    }
    return status;
}

static dp_status run_direction(job *j, int64_t d) {
    const dp_cells *s = j->s;
    part *own = &j->own;
    int64_t row = s->gates * s->hidden, steps = 0;
    begin_direction(j, d);
    operands inputs = {.a = own->x, .b = own->w, .bias = own->bias, .c = own->gates, .c_row = row};
    dp_status status = product(&inputs, s->steps * s->batch, row, s->inputs);
    if (status == DP_OK)
        status = pack(j, 0, own->r, s->kind == DP_CELLS_GRU ? 2 * s->hidden : row);
    if (status == DP_OK && s->kind == DP_CELLS_GRU)
        status = pack(j, 1, own->r + 2 * s->hidden * s->hidden, s->hidden);
    for (int64_t b = 0; b < s->batch; b++)
        steps = j->lengths[b] > steps ? j->lengths[b] : steps;
    for (int64_t step = 0; step < steps && status == DP_OK; step++)
        status = run_step(j, step, d, s->backward || d == 1);
    for (int64_t b = 0; b < s->batch && status == DP_OK; b++) {
        write_floats(j, s->y_h, state_at(s, d, b), own->h + b * s->hidden, s->hidden);
        write_floats(j, s->y_c, state_at(s, d, b), own->c + b * s->hidden, s->hidden);
    }
    return status;
}

static dp_status read_lengths(job *j) {
    const dp_cells *s = j->s;
    for (int64_t b = 0; b < s->batch; b++)
        j->lengths[b] = s->steps;
    if (s->lengths < 0)
        return DP_OK;
    const dp_tensor *t = &j->plan->tensors[s->lengths].view;
    dp_elementwise_current()->load[t->element][DP_COMPUTE_I64](j->lengths, dp_tensor_data(t), (size_t)s->batch);
    for (int64_t b = 0; b < s->batch; b++)
        if (j->lengths[b] < 0 || j->lengths[b] > s->steps)
            return dp_fail(DP_ERR_ARGUMENT, "%s: element %lld is %lld, but must be 0 to %lld",
                           j->plan->tensors[s->lengths].name, (long long)b, (long long)j->lengths[b],
                           (long long)s->steps);
    return DP_OK;
}

dp_status dp_cells_run(dp_plan *plan) {
    job j = {.plan = plan, .s = dp_plan_state(plan)};
    const dp_cells *s = j.s;
    j.lengths = dp_workspace_at(plan, s->lengths_at);
    j.own = (part){.gates = dp_workspace_at(plan, s->gates_at),
                   .step = dp_workspace_at(plan, s->step_at),
                   .again = dp_workspace_at(plan, s->again_at),
                   .h = dp_workspace_at(plan, s->h_at),
                   .c = dp_workspace_at(plan, s->c_at),
                   .bias = dp_workspace_at(plan, s->bias_at)};
    dp_status status = read_lengths(&j);
    if (status != DP_OK)
        return status;
    if (s->y >= 0) /* steps beyond a sequence's end stay 0 */
        memset(dp_plan_data(plan, s->y), 0,
               (size_t)dp_tensor_count(&plan->tensors[s->y].view) * dp_element_bytes(plan->tensors[s->y].view.element));
    if (s->batch == 0)
        return DP_OK;
    memset(j.own.step, 0, (size_t)(s->batch * s->gates * s->hidden) * sizeof(float));
    j.own.x = floats_of(&j, &s->x);
    for (int64_t d = 0; d < s->directions && status == DP_OK; d++)
        status = run_direction(&j, d);
    return status;
}
