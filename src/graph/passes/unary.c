#include "graph/passes/unary.h"

#include <string.h>

#include "graph/infer.h"

static bool is_elementwise(const char *type) {
    static const char *const types[] = {
        "Abs",  "Add",  "Adds",    "Sub",    "Mul",     "Muls",        "Div",      "RealDiv",
        "Neg",  "Relu", "Sigmoid", "Tanh",   "Swish",   "HardSwish", "HardSigmoid",   "Elu",      "LeakyRelu",
        "Gelu", "Erf",  "Exp",     "Square", "Minimum", "Maximum",     "Softplus", "SoftplusV2",
        "Mish", "Celu", "Floor",   "Ceil",   "Round",   "ClipByValue", "Identity"};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (strcmp(type, types[i]) == 0)
            return true;
    return false;
}

static bool same_shape(const dp_value *a, const dp_value *b) {
    return a->tensor.element == b->tensor.element && a->tensor.rank == b->tensor.rank &&
           memcmp(a->tensor.dims, b->tensor.dims, sizeof a->tensor.dims[0] * (size_t)a->tensor.rank) == 0;
}

/* 0: the function's argument; k + 1: the result of node k; -1: neither. */
static int place_of(const dp_unary *u, const dp_value *value) {
    if (value == u->from)
        return 0;
    for (int i = 0; i < u->n_nodes; i++)
        if (u->nodes[i]->outputs[0] == value)
            return i + 1;
    return -1;
}

static bool belongs(const dp_unary *u, const dp_node *node) {
    bool reads = false;
    if (!is_elementwise(node->type) || node->n_outputs != 1 || !node->outputs[0] ||
        !same_shape(node->outputs[0], u->from))
        return false;
    for (int i = 0; i < node->n_inputs; i++) {
        const dp_value *value = node->inputs[i];
        if (!value)
            continue;
        if (value->is_constant ? dp_tensor_count(&value->tensor) != 1 : place_of(u, value) < 0)
            return false;
        reads |= !value->is_constant;
    }
    return reads;
}

/* Whether the first n nodes keep all but the last one's result to themselves. */
static bool is_closed(const dp_unary *u, int n, const uint32_t *uses) {
    uint32_t inside[DP_UNARY_NODES + 1] = {0};
    for (int k = 0; k < n; k++)
        for (int i = 0; i < u->nodes[k]->n_inputs; i++) {
            const dp_value *value = u->nodes[k]->inputs[i];
            if (value && !value->is_constant)
                inside[place_of(u, value)]++;
        }
    for (int k = 0; k < n; k++) {
        const dp_value *value = k == 0 ? u->from : u->nodes[k - 1]->outputs[0];
        if (inside[k] != uses[value->mark - 1])
            return false;
    }
    return true;
}

void dp_unary_find(const dp_graph *graph, dp_value *from, const uint32_t *uses, dp_unary *out) {
    enum { LOOK = 256 }; /* nodes further down */
    (void)graph;
    *out = (dp_unary){.from = from, .to = from};
    if (from->tensor.element != DP_F32 || !from->producer)
        return;
    int looked = 0, closed = 0;
    for (dp_node *node = from->producer->next; node && looked < LOOK && out->n_nodes < DP_UNARY_NODES;
         node = node->next, looked++) {
        if (!belongs(out, node))
            continue;
        out->nodes[out->n_nodes++] = node;
        if (is_closed(out, out->n_nodes, uses))
            closed = out->n_nodes;
    }
    out->n_nodes = closed;
    if (closed)
        out->to = out->nodes[closed - 1]->outputs[0];
}

static dp_status run_node(const dp_unary *u, int k, float *const *results, int n) {
    enum { INPUTS = 8 };
    dp_node node = *u->nodes[k];
    dp_value inputs[INPUTS], output = *node.outputs[0], *in[INPUTS], *out = &output;
    if (node.n_inputs > INPUTS)
        return dp_fail(DP_ERR_INTERNAL, "node \"%s\" has too many inputs", node.name);
    for (int i = 0; i < node.n_inputs; i++) {
        in[i] = node.inputs[i];
        if (!in[i] || in[i]->is_constant)
            continue;
        inputs[i] = *in[i];
        dp_value_shape(&inputs[i], DP_F32, &(int64_t){n}, 1);
        inputs[i].tensor.base = results[place_of(u, in[i])];
        in[i] = &inputs[i];
    }
    dp_value constants[INPUTS]; /* of one element, whatever their rank */
    for (int i = 0; i < node.n_inputs; i++)
        if (in[i] && in[i]->is_constant && in[i]->tensor.rank > 1) {
            constants[i] = *in[i];
            dp_value_shape(&constants[i], in[i]->tensor.element, NULL, 0);
            in[i] = &constants[i];
        }
    dp_value_shape(&output, DP_F32, &(int64_t){n}, 1);
    output.tensor.base = results[k + 1];
    node.inputs = in;
    node.outputs = &out;
    return dp_node_run(&node);
}

dp_status dp_unary_evaluate(const dp_unary *u, const float *x, float *y, int n) {
    float *results[DP_UNARY_NODES + 1];
    const size_t each = ((size_t)n * sizeof(float) + 63) / 64 * 64;
    char *room = dp_alloc(DP_MEM_GRAPH, (size_t)(u->n_nodes + 1) * each);
    if (!room)
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory: free some");
    for (int k = 0; k <= u->n_nodes; k++)
        results[k] = (float *)(room + (size_t)k * each);
    memcpy(results[0], x, (size_t)n * sizeof *x);
    dp_status status = DP_OK;
    for (int k = 0; k < u->n_nodes && status == DP_OK; k++)
        status = run_node(u, k, results, n);
    if (status == DP_OK)
        memcpy(y, results[u->n_nodes], (size_t)n * sizeof *y);
    dp_free(room);
    return status;
}
