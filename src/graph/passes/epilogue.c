/* What is done at once with the result of a convolution or product with panels goes into it: bias, residual,
 * activation. */
#include <string.h>

#include "graph/passes/match.h"
#include "graph/passes/passes.h"

static bool has_panels(const dp_node *node) {
    return dp_node_is(node, "PanelConv2D") || dp_node_is(node, "PanelConv2DTranspose") ||
           dp_node_is(node, "PanelMatMul");
}
static bool is_active(const dp_node *node) {
    return strcmp(dp_node_text(node, "activation", "none"), "none") != 0;
}

/* The node with panels whose result only `node` reads. */
static dp_node *source_of(const dp_node *node, const dp_value *x) {
    bool only = x && x->mark == 1 && has_panels(x->producer) && x->producer->graph == node->graph;
    return only ? x->producer : NULL;
}

/* The result of `node` becomes that of `source`, which moves there. */
static void take_over(dp_node *source, dp_node *node) {
    dp_value *result = node->outputs[0];
    dp_node_move(source, node);
    dp_node_remove(node);
    source->outputs[0]->producer = NULL;
    dp_node_output(source, 0, result);
}

/* Activation functions. */

typedef struct kind {
    const char *type, *name, *alpha, *beta; /* attributes of the node that become alpha and beta */
} kind;

static const kind kinds[] = {
    {"Relu", "relu", NULL, NULL},
    {"LeakyRelu", "leaky_relu", "negative_slope", NULL},
    {"HardSigmoid", "hard_sigmoid", "alpha", "beta"},
    {"HardSwish", "hard_swish", NULL, NULL},
    {"Sigmoid", "sigmoid", NULL, NULL},
    {"Swish", "silu", NULL, NULL},
    {"Tanh", "tanh", NULL, NULL},
    {"GeluV2", "gelu", NULL, NULL},
    {"Gelu", "gelu_tanh", NULL, NULL},
};

static dp_status set(dp_node *source, const char *name, double alpha, double beta) {
    dp_status status = dp_node_set_text(source, "activation", name);
    if (status == DP_OK)
        status = dp_node_set_real(source, "alpha", alpha);
    return status == DP_OK ? dp_node_set_real(source, "beta", beta) : status;
}

/* A factor or summand behind a hard swish (LCNet has them). */
static dp_status scale(dp_node *node, dp_node *source, bool *out_done) {
    dp_value *x;
    double number, alpha = dp_node_real(source, "alpha", 0), beta = dp_node_real(source, "beta", 0);
    if (strcmp(dp_node_text(source, "activation", "none"), "hard_swish") == 0)
        alpha = 1, beta = 0;
    else if (strcmp(dp_node_text(source, "activation", "none"), "hard_swish_affine") != 0)
        return DP_OK;
    if (dp_node_multiplies(node, &x, &number))
        alpha *= number, beta *= number;
    else if (dp_node_adds(node, &x, &number))
        beta += number;
    else
        return DP_OK;
    *out_done = true;
    return set(source, "hard_swish_affine", alpha, beta);
}

/* A least value behind a leaky ReLU (speech embeddings have it). */
static dp_status bound(dp_node *node, dp_node *source, bool *out_done) {
    double number;
    if (strcmp(dp_node_text(source, "activation", "none"), "leaky_relu") != 0 || !dp_node_is(node, "Maximum") ||
        !dp_value_number(node->inputs[1], &number))
        return DP_OK;
    *out_done = true;
    return set(source, "leaky_relu_floor", dp_node_real(source, "alpha", 0), number);
}

static dp_status activate(dp_node *node, dp_node *source, bool *out_done) {
    double low, high;
    *out_done = false;
    if (is_active(source)) {
        dp_status status = scale(node, source, out_done);
        return status == DP_OK && !*out_done ? bound(node, source, out_done) : status;
    }
    if (dp_node_is(node, "ClipByValue") && dp_value_number(node->inputs[1], &low) &&
        dp_value_number(node->inputs[2], &high)) {
        *out_done = true;
        return set(source, "clip", low, high);
    }
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (!dp_node_is(node, kinds[i].type))
            continue;
        *out_done = true;
        return set(source, kinds[i].name, kinds[i].alpha ? dp_node_real(node, kinds[i].alpha, 0) : 0,
                   kinds[i].beta ? dp_node_real(node, kinds[i].beta, 0) : 0);
    }
    return DP_OK;
}

/* Summands. */

/* One constant number per column: the last dim of the result. */
static dp_value *bias_of(const dp_value *other, const dp_value *result) {
    const dp_tensor *t = &other->tensor, *y = &result->tensor;
    int64_t columns = y->dims[y->rank - 1];
    if (!other->is_constant || !dp_value_is_real(other) || t->rank < 1 || t->rank > y->rank ||
        dp_tensor_count(t) != columns || t->dims[t->rank - 1] != columns)
        return NULL;
    return (dp_value *)other;
}

static dp_status add_bias(dp_node *source, const dp_value *bias) {
    int64_t columns = dp_tensor_count(&bias->tensor);
    dp_value *sum = dp_value_constant(source->graph->model, NULL, DP_F32, &columns, 1, NULL);
    if (!sum)
        return DP_ERR_OUT_OF_MEMORY;
    for (int64_t i = 0; i < columns; i++)
        ((float *)sum->tensor.base)[i] =
            dp_value_real_at(bias, i) + (source->inputs[2] ? dp_value_real_at(source->inputs[2], i) : 0);
    source->inputs[2] = sum;
    return DP_OK;
}

static bool comes_before(const dp_node *a, const dp_node *b) {
    for (; a; a = a->next)
        if (a == b)
            return true;
    return false;
}

/* The operand that is added where it stands last: the other one is there by then. */
static dp_node *summing(const dp_node *node, int *out_at) {
    dp_node *found = NULL;
    for (int i = 0; i < 2; i++) {
        dp_node *source = source_of(node, node->inputs[i]);
        bool takes = source && !source->inputs[3] && dp_value_same_shape(source->outputs[0], node->outputs[0]);
        if (takes && (!found || comes_before(found, source))) {
            found = source;
            *out_at = i;
        }
    }
    return found;
}

static dp_status sum(dp_node *node, int *changes) {
    int at = 0;
    dp_node *source = dp_node_is(node, "Add") && node->n_inputs == 2 ? summing(node, &at) : NULL;
    if (!source)
        return DP_OK;
    dp_value *other = node->inputs[1 - at], *bias = bias_of(other, node->outputs[0]);
    bool constant_bias = !source->inputs[2] || source->inputs[2]->is_constant;
    dp_status status = DP_OK;
    if (bias && constant_bias && !is_active(source)) {
        status = add_bias(source, bias);
    } else if (other != node->inputs[at] && other->tensor.element == node->outputs[0]->tensor.element &&
               dp_value_same_shape(other, node->outputs[0])) {
        source->inputs[3] = other;
        if (is_active(source))
            status = dp_node_set_integer(source, "residual_last", 1);
    } else {
        return DP_OK;
    }
    take_over(source, node);
    ++*changes;
    return status;
}

/* Nodes that only move elements, so that a function of each may be computed before them. */
static bool moves(const dp_node *node) {
    static const char *const types[] = {"Reshape", "TransposeD", "Squeeze", "Unsqueeze", "Flatten", "ExpandDims"};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (dp_node_is(node, types[i]))
            return true;
    return false;
}

/* The node with panels whose elements are those of x, and which nobody else reads on the way. */
static dp_node *source_behind_moves(const dp_node *node, const dp_value *x) {
    while (x && x->mark == 1 && moves(x->producer) && x->producer->graph == node->graph)
        x = x->producer->inputs[0];
    return source_of(node, x);
}

/* Function of each element: the one operand that is no number. */
static dp_value *operand_of(const dp_node *node) {
    dp_value *x;
    double number;
    if (dp_node_multiplies(node, &x, &number) || dp_node_adds(node, &x, &number))
        return x;
    return node->n_inputs > 0 ? node->inputs[0] : NULL;
}

static dp_status activation_of(dp_node *node, int *changes) {
    bool done = false;
    dp_value *x = operand_of(node), *result = node->outputs[0];
    dp_node *source = x ? source_behind_moves(node, x) : NULL;
    if (!source || dp_node_integer(source, "residual_last", 0) || !dp_value_same_shape(x, result))
        return DP_OK;
    dp_status status = activate(node, source, &done);
    if (status != DP_OK || !done)
        return status;
    ++*changes;
    if (source == x->producer) {
        take_over(source, node);
        return DP_OK;
    }
    dp_node *last = x->producer;
    dp_node_remove(node);
    x->producer = NULL;
    dp_node_output(last, 0, result);
    return DP_OK;
}

dp_status dp_pass_epilogue(dp_graph *graph, int *out_changes) {
    dp_graph_count_uses(graph);
    for (dp_node *node = graph->first, *next; node; node = next) {
        next = node->next;
        if (node->n_outputs != 1 || !dp_value_is_real(node->outputs[0]))
            continue;
        int before = *out_changes;
        dp_status status = dp_node_is(node, "Add") ? sum(node, out_changes) : DP_OK;
        if (status == DP_OK && *out_changes == before)
            status = activation_of(node, out_changes);
        if (status != DP_OK)
            return status;
    }
    return DP_OK;
}
