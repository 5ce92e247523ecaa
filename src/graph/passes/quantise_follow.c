/*
 * quantise_follow.c - nodes between convolutions that compute on pictures as they are: the greatest of a window,
 * repeated pixels and concatenations keep the codes of their operands; sums and products with a factor per channel go
 * through float one number at a time; means become floats.
 */
#include <string.h>

#include "graph/passes/quantise.h"

static bool is_image(const dp_quantise *w, const dp_value *value) {
    return dp_quantise_was_seen(w, value) && value->tensor.rank == 4 && dp_tensor_count(&value->tensor) > 0;
}

static bool same_dims(const dp_value *a, const dp_value *b) {
    return a->tensor.rank == b->tensor.rank &&
           memcmp(a->tensor.dims, b->tensor.dims, sizeof a->tensor.dims[0] * (size_t)a->tensor.rank) == 0;
}

/* As many channels as the value has: not filled up. */
static bool has_picture(const dp_quantise *w, const dp_value *value) {
    return is_image(w, value) && dp_code_of(w, value)->picture &&
           dp_code_of(w, value)->channels == value->tensor.dims[1];
}

static bool is_repeat(const dp_node *node) {
    if (strcmp(node->type, "ResizeNearestNeighborV2") != 0 || dp_node_integer(node, "align_corners", 0))
        return false;
    const int64_t *x = node->inputs[0]->tensor.dims, *y = node->outputs[0]->tensor.dims;
    return node->inputs[0]->tensor.rank == 4 && node->outputs[0]->tensor.rank == 4 && x[2] > 0 && x[3] > 0 &&
           y[2] >= x[2] && y[3] >= x[3] && y[2] % x[2] == 0 && y[3] % x[3] == 0;
}

/* Over height and width, which stay as 1. */
static bool is_mean(const dp_node *node) {
    const dp_arg *axes = dp_node_attribute(node, "axes");
    const dp_tensor *y = &node->outputs[0]->tensor;
    if (strcmp(node->type, "ReduceMeanD") != 0 || y->rank != 4 || !axes || axes->kind != DP_ARG_INT_LIST ||
        axes->count != 2)
        return false;
    const int64_t a = axes->as.integers[0], b = axes->as.integers[1];
    return (a == 2 || a == -2 || a == 3 || a == -1) && (b == 2 || b == -2 || b == 3 || b == -1) && y->dims[2] == 1 &&
           y->dims[3] == 1;
}

/* The picture of a product with a factor per channel: input 0 or 1; -1: it is none. */
static int scaled_input(const dp_quantise *w, const dp_node *node) {
    if (strcmp(node->type, "Mul") != 0 || node->n_inputs != 2 || !node->inputs[0] || !node->inputs[1])
        return -1;
    for (int i = 0; i < 2; i++) {
        const dp_tensor *t = &node->inputs[1 - i]->tensor, *x = &node->inputs[i]->tensor;
        if (is_image(w, node->inputs[i]) && same_dims(node->inputs[i], node->outputs[0]) && t->element == DP_F32 &&
            t->rank == 4 && t->dims[2] * t->dims[3] == 1 && t->dims[1] == x->dims[1] &&
            (t->dims[0] == 1 || t->dims[0] == x->dims[0]) && x->dims[2] * x->dims[3] > 1)
            return i;
    }
    return -1;
}

static bool is_sum(const dp_quantise *w, const dp_node *node) {
    return strcmp(node->type, "Add") == 0 && node->n_inputs == 2 && is_image(w, node->inputs[0]) &&
           is_image(w, node->inputs[1]) && same_dims(node->inputs[0], node->inputs[1]);
}

static bool is_concat(const dp_quantise *w, const dp_node *node) {
    if (strcmp(node->type, "ConcatD") != 0 || node->outputs[0]->tensor.rank != 4)
        return false;
    const int64_t axis = dp_node_integer(node, "concat_dim", 0);
    for (int i = 0; i < node->n_inputs; i++)
        if (!is_image(w, node->inputs[i]))
            return false;
    return axis == 1 || axis == -3;
}

static bool is_pool(const dp_node *node, int64_t window[2], int64_t steps[2], int64_t pads[4]) {
    const dp_value *x = node->inputs[0], *y = node->outputs[0];
    if (strcmp(node->type, "MaxPoolV3") != 0 || !dp_quantise_is_planar(node) || x->tensor.rank != 4 ||
        !dp_quantise_steps(node, "ksize", window) || !dp_quantise_steps(node, "strides", steps) ||
        !dp_quantise_pads(node, pads) || dp_node_integer(node, "global_pooling", 0) ||
        strcmp(dp_node_text(node, "padding_mode", "CALCULATED"), "CALCULATED") != 0)
        return false;
    for (int d = 0; d < 2; d++) /* no window that begins in the padding behind */
        if (pads[2 * d] >= window[d] || pads[2 * d + 1] >= window[d] ||
            (x->tensor.dims[2 + d] + pads[2 * d] + pads[2 * d + 1] - window[d]) / steps[d] + 1 != y->tensor.dims[2 + d])
            return false;
    return true;
}

bool dp_quantise_follows(const dp_quantise *w, const dp_node *node) {
    int64_t window[2], steps[2], pads[4];
    if (node->n_inputs < 1 || node->n_outputs < 1 || node->n_bodies || !node->inputs[0] || !node->outputs[0] ||
        !dp_quantise_was_seen(w, node->outputs[0]))
        return false;
    return is_repeat(node) || is_mean(node) || scaled_input(w, node) >= 0 || is_sum(w, node) || is_concat(w, node) ||
           is_pool(node, window, steps, pads);
}

/* The node `type` before `old`, whose first input is the picture of x. */
static dp_node *instead_of(dp_quantise *w, dp_node *old, const char *type, const dp_value *x, int n_inputs) {
    dp_node *node = dp_node_new(w->graph, old, type, old->name, n_inputs, 1);
    if (node)
        node->inputs[0] = dp_code_of(w, x)->picture;
    return node;
}

/* `made` does what `old` did, and its result has these codes. */
static dp_status finish(dp_quantise *w, dp_node *old, dp_node *made, dp_code code) {
    dp_value *y = old->outputs[0];
    code.picture = dp_codes_new(w, y, y->tensor.dims[1]);
    if (!code.picture)
        return dp_quantise_no_memory();
    dp_node_output(made, 0, code.picture);
    dp_node_remove(old);
    return dp_codes_give(w, made, y, &code);
}

static dp_status pool(dp_quantise *w, dp_node *node, const int64_t window[2], const int64_t steps[2],
                      const int64_t pads[4]) {
    dp_value *x = node->inputs[0];
    dp_node *made = instead_of(w, node, "QuantizedMaxPool", x, 1);
    if (!made)
        return DP_ERR_OUT_OF_MEMORY;
    dp_status status = dp_node_set_integers(made, "ksize", (const int64_t[]){1, window[0], window[1], 1}, 4);
    if (status == DP_OK)
        status = dp_node_set_integers(made, "strides", (const int64_t[]){1, steps[0], steps[1], 1}, 4);
    if (status == DP_OK)
        status = dp_node_set_integers(made, "pads", pads, 4);
    return status == DP_OK ? finish(w, node, made, *dp_code_of(w, x)) : status;
}

static dp_status repeat(dp_quantise *w, dp_node *node) {
    const int64_t *x = node->inputs[0]->tensor.dims, *y = node->outputs[0]->tensor.dims;
    dp_node *made = instead_of(w, node, "LastRepeat", node->inputs[0], 1);
    if (!made)
        return DP_ERR_OUT_OF_MEMORY;
    dp_status status = dp_node_set_integers(made, "factors", (const int64_t[]){y[2] / x[2], y[3] / x[3]}, 2);
    return status == DP_OK ? finish(w, node, made, *dp_code_of(w, node->inputs[0])) : status;
}

static dp_status concat(dp_quantise *w, dp_node *node) {
    dp_code code;
    dp_status status = dp_code_new(w, node->outputs[0]->tensor.dims[1], &code);
    dp_node *made = dp_node_new(w->graph, node, "ConcatD", node->name, node->n_inputs, 1);
    if (status != DP_OK || !made)
        return DP_ERR_OUT_OF_MEMORY;
    int64_t at = 0;
    for (int i = 0; i < node->n_inputs; i++) {
        const dp_code *part = dp_code_of(w, node->inputs[i]);
        made->inputs[i] = part->picture;
        memcpy(code.scale + at, part->scale, (size_t)part->channels * sizeof *code.scale);
        memcpy(code.zero + at, part->zero, (size_t)part->channels * sizeof *code.zero);
        at += part->channels;
    }
    status = dp_node_set_integer(made, "concat_dim", 3);
    return status == DP_OK ? finish(w, node, made, code) : status;
}

static dp_status mean(dp_quantise *w, dp_node *node) {
    const dp_value *x = node->inputs[0];
    dp_value *y = node->outputs[0];
    const dp_code *code = dp_code_of(w, x);
    const int64_t n = code->channels, last[] = {y->tensor.dims[0], 1, 1, n};
    dp_node *made = instead_of(w, node, "QuantizedMean", x, 2),
            *turn = dp_node_new(w->graph, node, "Reshape", node->name, 2, 1);
    dp_value *floats = dp_value_new(w->graph->model, NULL);
    if (!made || !turn || !floats)
        return DP_ERR_OUT_OF_MEMORY;
    made->inputs[1] = dp_quantise_floats(w, code->scale, 2, n); /* zeros stand behind the scales */
    turn->inputs[1] = dp_value_integers(w->graph->model, y->tensor.dims, 4);
    if (!made->inputs[1] || !turn->inputs[1])
        return DP_ERR_OUT_OF_MEMORY;
    dp_value_shape(floats, DP_F32, last, 4);
    dp_node_output(made, 0, floats);
    turn->inputs[0] = floats;
    dp_node_remove(node);
    dp_node_output(turn, 0, y);
    ++*w->changes;
    return DP_OK;
}

/* numbers of QuantizedCombine for z of x and, unless it is NULL, y. */
static dp_value *combine_numbers(const dp_quantise *w, const dp_code *x, const dp_code *y, const dp_code *z) {
    enum { NUMBERS = 4 };
    const int64_t n = x->channels, dims[] = {NUMBERS, n};
    dp_value *value = dp_value_constant(w->graph->model, NULL, DP_F32, dims, 2, NULL);
    float *numbers = value ? value->tensor.base : NULL;
    for (int64_t c = 0; value && c < n; c++) {
        numbers[c] = x->scale[c] / z->scale[c];
        numbers[n + c] = x->zero[c];
        numbers[2 * n + c] = y ? y->scale[c] / z->scale[c] : 0;
        numbers[3 * n + c] = z->zero[c] - (y ? y->zero[c] * numbers[2 * n + c] : 0);
    }
    return value;
}

static dp_status scale(dp_quantise *w, dp_node *node, int at) {
    dp_value *x = node->inputs[at], *factors = node->inputs[1 - at];
    const int64_t last[] = {factors->tensor.dims[0], 1, 1, x->tensor.dims[1]};
    dp_code code;
    dp_status status = dp_code_choose(w, node->outputs[0], true, &code);
    if (status != DP_OK)
        return status;
    dp_node *turn = dp_node_new(w->graph, node, "Reshape", node->name, 2, 1),
            *made = instead_of(w, node, "QuantizedCombine", x, 4);
    dp_value *turned = dp_value_new(w->graph->model, NULL);
    if (!turn || !made || !turned || !(turn->inputs[1] = dp_value_integers(w->graph->model, last, 4)) ||
        !(made->inputs[1] = combine_numbers(w, dp_code_of(w, x), NULL, &code)))
        return DP_ERR_OUT_OF_MEMORY;
    dp_value_shape(turned, DP_F32, last, 4);
    turn->inputs[0] = factors;
    dp_node_output(turn, 0, turned);
    made->inputs[3] = turned;
    return finish(w, node, made, code);
}

static dp_status sum(dp_quantise *w, dp_node *node) {
    dp_code code;
    dp_status status = dp_code_choose(w, node->outputs[0], true, &code);
    if (status != DP_OK)
        return status;
    const dp_code *x = dp_code_of(w, node->inputs[0]), *y = dp_code_of(w, node->inputs[1]);
    dp_node *made = instead_of(w, node, "QuantizedCombine", node->inputs[0], 4);
    if (!made || !(made->inputs[1] = combine_numbers(w, x, y, &code)))
        return DP_ERR_OUT_OF_MEMORY;
    made->inputs[2] = y->picture;
    return finish(w, node, made, code);
}

dp_status dp_quantise_follow(dp_quantise *w, dp_node *node) {
    int64_t window[2], steps[2], pads[4];
    if (!dp_quantise_follows(w, node))
        return DP_OK;
    const int scaled = scaled_input(w, node);
    if (scaled >= 0)
        return has_picture(w, node->inputs[scaled]) ? scale(w, node, scaled) : DP_OK;
    for (int i = 0; i < (is_sum(w, node) || is_concat(w, node) ? node->n_inputs : 1); i++)
        if (!has_picture(w, node->inputs[i]))
            return DP_OK;
    if (is_sum(w, node))
        return sum(w, node);
    if (is_concat(w, node))
        return concat(w, node);
    if (is_mean(node))
        return mean(w, node);
    return is_pool(node, window, steps, pads) ? pool(w, node, window, steps, pads) : repeat(w, node);
}
