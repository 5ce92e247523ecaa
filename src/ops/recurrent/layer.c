/* layer.c - checks recurrent layers (cells.c) and makes their plans. */
#include <string.h>

#include "ops/recurrent/cells.h"

enum { X, W, R, B, LENGTHS, H, C, P, ALPHA, BETA, ACTIVATIONS, CLIP, DIRECTION, HIDDEN, VARIANT, LAYOUT };

static const struct {
    const char *name;
    bool takes_alpha, takes_beta;
    float alpha, beta;
} functions[DP_CELL_FUNCTIONS] = {
    [DP_CELL_RELU] = {"Relu", false, false, 0, 0},
    [DP_CELL_TANH] = {"Tanh", false, false, 0, 0},
    [DP_CELL_SIGMOID] = {"Sigmoid", false, false, 0, 0},
    [DP_CELL_AFFINE] = {"Affine", true, true, 1, 0},
    [DP_CELL_LEAKY_RELU] = {"LeakyRelu", true, false, 0.01F, 0},
    [DP_CELL_THRESHOLDED_RELU] = {"ThresholdedRelu", true, false, 1, 0},
    [DP_CELL_SCALED_TANH] = {"ScaledTanh", true, true, 1, 1},
    [DP_CELL_HARD_SIGMOID] = {"HardSigmoid", true, true, 0.2F, 0.5F},
    [DP_CELL_ELU] = {"Elu", true, false, 1, 0},
    [DP_CELL_SOFTSIGN] = {"Softsign", false, false, 0, 0},
    [DP_CELL_SOFTPLUS] = {"Softplus", false, false, 0, 0},
};

/* The names in `list`, one per line; false when one is not known or there are not `count`. */
static bool read_names(const char *list, int count, dp_cell_function *out) {
    int n = 0;
    while (*list) {
        size_t length = strcspn(list, "\n");
        int k = 0;
        while (k < DP_CELL_FUNCTIONS &&
               (strlen(functions[k].name) != length || strncmp(functions[k].name, list, length) != 0))
            k++;
        if (k == DP_CELL_FUNCTIONS || n == count)
            return false;
        out[n++] = (dp_cell_function)k;
        list += length + (list[length] == '\n');
    }
    return n == count;
}

static dp_status take_activations(const dp_operator_call *call, dp_cells *s) {
    static const dp_cell_function usual[][3] = {[DP_CELLS_RNN] = {DP_CELL_TANH},
                                                [DP_CELLS_GRU] = {DP_CELL_SIGMOID, DP_CELL_TANH},
                                                [DP_CELLS_LSTM] = {DP_CELL_SIGMOID, DP_CELL_TANH, DP_CELL_TANH}};
    const dp_arg *names = &call->in[ACTIVATIONS], *alpha = &call->in[ALPHA], *beta = &call->in[BETA];
    int each = s->kind == DP_CELLS_LSTM ? 3 : s->kind == DP_CELLS_GRU ? 2 : 1, count = each * (int)s->directions;
    dp_cell_function list[6];
    bool given = names->kind == DP_ARG_TEXT && names->as.text[0];
    if (given && !read_names(names->as.text, count, list))
        return dp_fail(
            DP_ERR_UNSUPPORTED,
            "%s must be %d of Relu, Tanh, Sigmoid, Affine, LeakyRelu, ThresholdedRelu, ScaledTanh, HardSigmoid, "
            "Elu, Softsign and Softplus",
            names->name, count);
    int64_t a = 0, b = 0;
    for (int i = 0; i < count; i++) {
        dp_cell_activation *to = &s->activations[i / each * 3 + i % each];
        to->kind = given ? list[i] : usual[s->kind][i % each];
        to->alpha = functions[to->kind].alpha;
        to->beta = functions[to->kind].beta;
        if (functions[to->kind].takes_alpha && alpha->kind == DP_ARG_FLOAT_LIST && a < alpha->count)
            to->alpha = alpha->as.floats[a++];
        if (functions[to->kind].takes_beta && beta->kind == DP_ARG_FLOAT_LIST && b < beta->count)
            to->beta = beta->as.floats[b++];
    }
    return DP_OK;
}

static dp_status take_sizes(const dp_operator_call *call, dp_cells *s) {
    const dp_arg *in = call->in, *direction = &in[DIRECTION];
    const dp_tensor *x = in[X].as.tensor, *w = in[W].as.tensor;
    s->gates = s->kind == DP_CELLS_LSTM ? 4 : s->kind == DP_CELLS_GRU ? 3 : 1;
    s->batch_first = dp_arg_integer(&in[LAYOUT], 0) != 0;
    s->backward = strcmp(direction->as.text, "reverse") == 0;
    bool both = strcmp(direction->as.text, "bidirectional") == 0;
    if (!s->backward && !both && strcmp(direction->as.text, "forward") != 0)
        return dp_fail(DP_ERR_ARGUMENT, "%s is \"%.24s\", but must be forward, reverse or bidirectional",
                       direction->name, direction->as.text);
    s->directions = both ? 2 : 1;
    if (x->rank != 3 || w->rank != 3)
        return dp_fail(DP_ERR_ARGUMENT, "%s and %s have %d and %d dimensions, but must have 3", in[X].name, in[W].name,
                       x->rank, w->rank);
    s->steps = x->dims[s->batch_first];
    s->batch = x->dims[!s->batch_first];
    s->inputs = x->dims[2];
    s->hidden = dp_arg_integer(&in[HIDDEN], w->dims[1] / s->gates);
    if (s->hidden < 1 || s->inputs < 1 || s->hidden > 1 << 20 || s->inputs > 1 << 24 || s->steps > 1 << 24 ||
        s->batch > 1 << 24)
        return dp_fail(DP_ERR_ARGUMENT,
                       "%s is %lld, and %s has %lld inputs: they must be at least 1, and sizes no larger than "
                       "2^24",
                       in[HIDDEN].name, (long long)s->hidden, in[X].name, (long long)s->inputs);
    return DP_OK;
}

/* An input of these dims and its place; rooms for inputs of other types than float. */
static dp_status take_input(const dp_operator_call *call, const dp_arg *arg, const int64_t *dims, int rank,
                            const char *meaning, dp_workspace *room, dp_cell_input *out) {
    out->slot = -1;
    if (arg->kind != DP_ARG_TENSOR)
        return DP_OK;
    dp_status status = dp_element_expect(arg, call->op->elements);
    if (status == DP_OK)
        status = dp_shape_expect(arg->as.tensor, arg->name, dims, rank, meaning);
    if (status == DP_OK && !dp_tensor_is_contiguous(arg->as.tensor))
        status = dp_fail(DP_ERR_UNSUPPORTED, "%s must be contiguous", arg->name);
    out->slot = arg->slot;
    if (status == DP_OK && arg->as.tensor->element != DP_F32)
        out->copy = dp_workspace_take(room, dp_tensor_count(arg->as.tensor), sizeof(float));
    return status;
}

static dp_status take_inputs(const dp_operator_call *call, dp_cells *s, dp_workspace *room) {
    const dp_arg *in = call->in;
    int64_t row = s->gates * s->hidden;
    int64_t x[] = {in[X].as.tensor->dims[0], in[X].as.tensor->dims[1], s->inputs},
            w[] = {s->directions, row, s->inputs}, r[] = {s->directions, row, s->hidden},
            b[] = {s->directions, 2 * row}, p[] = {s->directions, 3 * s->hidden};
    int64_t h[] = {s->batch_first ? s->batch : s->directions, s->batch_first ? s->directions : s->batch, s->hidden};
    dp_status status = take_input(call, &in[X], x, 3, "steps, batch, inputs", room, &s->x);
    if (status == DP_OK)
        status = take_input(call, &in[W], w, 3, "directions, gates * hidden, inputs", room, &s->w);
    if (status == DP_OK)
        status = take_input(call, &in[R], r, 3, "directions, gates * hidden, hidden", room, &s->r);
    if (status == DP_OK)
        status = take_input(call, &in[B], b, 2, "directions, 2 * gates * hidden", room, &s->b);
    if (status == DP_OK)
        status = take_input(call, &in[H], h, 3, "directions, batch, hidden", room, &s->h);
    if (status == DP_OK)
        status = take_input(call, &in[C], h, 3, "directions, batch, hidden", room, &s->c);
    if (status == DP_OK)
        status = take_input(call, &in[P], p, 2, "directions, 3 * hidden", room, &s->p);
    s->lengths = in[LENGTHS].kind == DP_ARG_TENSOR ? in[LENGTHS].slot : -1;
    if (status == DP_OK && s->lengths >= 0)
        status = dp_element_expect(&in[LENGTHS], DP_EL_BIT(DP_I32) | DP_EL_BIT(DP_I64));
    if (status == DP_OK && s->lengths >= 0)
        status = dp_shape_expect(in[LENGTHS].as.tensor, in[LENGTHS].name, &s->batch, 1, "one for each sequence");
    return status;
}

static dp_status take_outputs(const dp_operator_call *call, dp_cells *s) {
    int64_t y[] = {s->steps, s->directions, s->batch, s->hidden},
            first[] = {s->batch, s->steps, s->directions, s->hidden};
    int64_t h[] = {s->batch_first ? s->batch : s->directions, s->batch_first ? s->directions : s->batch, s->hidden};
    int *slots[] = {&s->y, &s->y_h, &s->y_c};
    for (int i = 0; i < 3; i++) {
        const dp_arg *out = &call->out[i];
        *slots[i] = out->kind == DP_ARG_TENSOR ? out->slot : -1;
        if (*slots[i] < 0)
            continue;
        dp_status status = dp_element_expect(out, call->op->elements);
        if (status == DP_OK)
            status = i ? dp_shape_expect(out->as.tensor, out->name, h, 3, "that of a state")
                       : dp_shape_expect(out->as.tensor, out->name, s->batch_first ? first : y, 4,
                                         "a state for every step of every direction");
        if (status == DP_OK && !dp_tensor_is_contiguous(out->as.tensor))
            status = dp_fail(DP_ERR_UNSUPPORTED, "%s must be contiguous", out->name);
        if (status != DP_OK)
            return status;
    }
    return DP_OK;
}

/* With few rows the engine reads the weights as they are; with more it would pack them in every step. */
static void take_packed(dp_cells *s, dp_workspace *room) {
    enum { FEW_ROWS = 8 };
    bool apart = s->kind == DP_CELLS_GRU;
    int64_t n[] = {apart ? 2 * s->hidden : s->gates * s->hidden, apart ? s->hidden : 0};
    for (int i = 0; i < 2 && s->batch > FEW_ROWS && s->steps > 1; i++) {
        dp_gemm_problem g = dp_cells_product(s->batch, n[i], s->hidden);
        s->packed_bytes[i] = n[i] ? dp_gemm_pack_b_bytes(&g) : 0;
        s->packed_at[i] = dp_workspace_take(room, (int64_t)s->packed_bytes[i], 1);
    }
}

static dp_status prepare(const dp_operator_call *call, dp_plan **out_plan) {
    dp_cells s = {.kind = *(const dp_cells_kind *)call->op->function->detail};
    dp_workspace room = {.bytes = 0};
    dp_status status = take_sizes(call, &s);
    if (status == DP_OK)
        status = take_activations(call, &s);
    if (status == DP_OK)
        status = take_inputs(call, &s, &room);
    if (status == DP_OK)
        status = take_outputs(call, &s);
    if (status != DP_OK)
        return status;
    s.clip = (float)dp_arg_real(&call->in[CLIP], 0);
    s.variant = dp_arg_integer(&call->in[VARIANT], 0) != 0;
    int64_t row = s.gates * s.hidden;
    s.gates_at = dp_workspace_take(&room, s.steps * s.batch, (size_t)row * sizeof(float));
    s.step_at = dp_workspace_take(&room, s.batch, (size_t)row * sizeof(float));
    s.again_at = dp_workspace_take(&room, s.batch * s.hidden, sizeof(float));
    s.h_at = dp_workspace_take(&room, s.batch * s.hidden, sizeof(float));
    s.c_at = dp_workspace_take(&room, s.batch * s.hidden, sizeof(float));
    s.bias_at = dp_workspace_take(&room, row, sizeof(float));
    take_packed(&s, &room);
    s.lengths_at = dp_workspace_take(&room, s.batch, sizeof(int64_t));
    dp_plan *plan = dp_plan_new(call, dp_cells_run, sizeof s);
    if (!plan)
        return DP_ERR_OUT_OF_MEMORY;
    status = dp_workspace_set(&room, plan);
    if (status != DP_OK) {
        dp_plan_free(plan);
        return status;
    }
    *(dp_cells *)dp_plan_state(plan) = s;
    plan->path = "steps";
    *out_plan = plan;
    return DP_OK;
}

static const dp_cells_kind of_rnn = DP_CELLS_RNN, of_gru = DP_CELLS_GRU, of_lstm = DP_CELLS_LSTM;
#define EXPORT(name)                                                                                                   \
    extern const dp_function dp_recurrent_##name;                                                                      \
    const dp_function dp_recurrent_##name = {#name, prepare, &of_##name, 0x1ff8, 7};
EXPORT(rnn)
EXPORT(gru)
EXPORT(lstm)
