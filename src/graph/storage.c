#include "graph/storage.h"

#include <string.h>

static bool is_listed(const char *type, const char *const *types) {
    for (; *types; types++)
        if (strcmp(type, *types) == 0)
            return true;
    return false;
}

bool dp_node_is_alias(const dp_node *node) {
    static const char *const types[] = {"Identity", "Reshape",    "Squeeze",   "Unsqueeze",
                                        "Flatten",  "ExpandDims", "FlattenV2", NULL};
    return is_listed(node->type, types) && node->n_inputs > 0 && node->n_outputs > 0 && node->inputs[0] &&
           node->outputs[0] && !node->inputs[0]->is_constant &&
           dp_value_bytes(node->inputs[0]) == dp_value_bytes(node->outputs[0]);
}

/* Concatenations whose parts are written where they belong. */

/* Types whose images may have pixels further apart than they have channels; of them no other input is one. */
static const char *const of_pixels[] = {
    "PanelConv2D", "PanelConv2DTranspose", "LastMaxPool", "LastAveragePool", "LastRepeat", "LastLinear", "LastMean", "LastScale",
    "QuantizedConv2D", "QuantizedCombine", "QuantizedMaxPool", "QuantizedMean", NULL};

typedef struct part_uses {
    const dp_value *value;
    int concats, others; /* readers that are this concatenation, and others that cannot read a part */
} part_uses;

static void find_uses(const dp_graph *graph, const dp_node *concat, bool strided, part_uses *uses) {
    for (int i = 0; i < graph->n_outputs; i++)
        uses->others += graph->outputs[i] == uses->value;
    for (const dp_node *node = graph->first; node; node = node->next)
        for (int i = 0; i < node->n_inputs; i++) {
            if (node->inputs[i] != uses->value)
                continue;
            if (node == concat)
                uses->concats++;
            else
                uses->others += dp_node_is_alias(node) || (strided && !(is_listed(node->type, of_pixels) && i == 0));
        }
}

/* All dims in front of the axis are 1: parts lie one behind the other. */
static bool is_outermost(const dp_value *whole, int axis) {
    for (int d = 0; d < axis; d++)
        if (whole->tensor.dims[d] != 1)
            return false;
    return true;
}

static bool may_be_part(const dp_storage *s, const dp_graph *graph, const dp_node *concat, const dp_value *value,
                        int axis) {
    const dp_value *whole = concat->outputs[0];
    if (!value || value->is_constant || !s->is_work[dp_value_number(value)] || s->is_part[dp_value_number(value)] ||
        !value->producer || value->producer->n_outputs != 1 || dp_node_is_alias(value->producer) ||
        dp_value_bytes(value) == 0)
        return false;
    bool strided = !is_outermost(whole, axis);
    if (strided && (axis != whole->tensor.rank - 1 || !is_listed(value->producer->type, of_pixels)))
        return false;
    if (strcmp(value->producer->type, "ConcatD") == 0)
        return false;
    part_uses uses = {value, 0, 0};
    find_uses(graph, concat, strided, &uses);
    return uses.concats == 1 && uses.others == 0;
}

/* The axis; -1: the node is no concatenation, or one that its function is going to refuse. */
static int axis_of(const dp_node *node) {
    const dp_value *whole = node->n_outputs == 1 ? node->outputs[0] : NULL;
    if (!whole || strcmp(node->type, "ConcatD") != 0)
        return -1;
    int rank = whole->tensor.rank;
    int64_t axis = dp_node_integer(node, "concat_dim", 0), sum = 0;
    axis = axis < 0 ? axis + rank : axis;
    if (axis < 0 || axis >= rank)
        return -1;
    for (int i = 0; i < node->n_inputs; i++) {
        const dp_tensor *t = node->inputs[i] ? &node->inputs[i]->tensor : NULL;
        if (!t || t->rank != rank || t->element != whole->tensor.element)
            return -1;
        for (int d = 0; d < rank; d++)
            if (d != axis && t->dims[d] != whole->tensor.dims[d])
                return -1;
        sum += t->dims[axis];
    }
    return sum == whole->tensor.dims[axis] ? (int)axis : -1;
}

static void find_parts(dp_storage *s, const dp_graph *graph, const dp_node *concat) {
    const dp_value *whole = concat->outputs[0];
    int axis = axis_of(concat);
    if (axis < 0)
        return;
    int64_t at = 0;
    for (int i = 0; i < concat->n_inputs; i++) {
        dp_value *value = concat->inputs[i];
        if (may_be_part(s, graph, concat, value, axis)) {
            uint32_t n = dp_value_number(value);
            s->is_part[n] = true;
            s->root[n] = dp_value_number(whole);
            memcpy(value->tensor.strides, whole->tensor.strides, sizeof value->tensor.strides);
            value->tensor.offset = at * whole->tensor.strides[axis];
        }
        at += value->tensor.dims[axis];
    }
}

/* Results in the place of an operand. */

static const char *const elementwise[] = {
    "LastScale", "ElementwiseChain", "Relu", "Sigmoid", "Tanh", "HardSwish", "HardSigmoid", "Swish", "GeluV2", "Gelu",
    "Adds",      "Muls",             "Exp",  "Sqrt",    "Square", "Add",     "Sub",         "Mul",   "Div",    NULL};
static const char *const with_residual[] = {"PanelConv2D", "PanelConv2DTranspose", "PanelMatMul", NULL};

static bool same_form(const dp_value *a, const dp_value *b) {
    return a->tensor.element == b->tensor.element && a->tensor.rank == b->tensor.rank &&
           memcmp(a->tensor.dims, b->tensor.dims, (size_t)a->tensor.rank * sizeof a->tensor.dims[0]) == 0;
}

/* Whether the result of `node` may be written over its input `at`: the node reads an element before it writes it. */
static bool may_overwrite(const dp_storage *s, const dp_node *node, int at, uint32_t step) {
    const dp_value *x = node->inputs[at], *y = node->outputs[0];
    if (!x || x->is_constant || !same_form(x, y))
        return false;
    uint32_t root = s->root[dp_value_number(x)], own = dp_value_number(y);
    if (!s->is_work[root] || !s->is_work[own] || s->root[own] != own || s->is_part[dp_value_number(x)] ||
        s->spans[root].last != step || s->spans[root].bytes != s->spans[own].bytes)
        return false;
    for (int i = 0; i < node->n_inputs; i++) {
        const dp_value *other = node->inputs[i];
        if (i == at || !other || other->is_constant || s->root[dp_value_number(other)] != root)
            continue;
        if (!is_listed(node->type, elementwise) || !same_form(other, x))
            return false;
    }
    return true;
}

static void overwrite(dp_storage *s, uint32_t root, uint32_t own) {
    for (uint32_t i = 0; i < s->n_values; i++)
        if (s->root[i] == own)
            s->root[i] = root;
    s->spans[root].last = s->spans[own].last;
    s->spans[own].bytes = 0;
}

static void find_overwritten(dp_storage *s, const dp_graph *graph) {
    uint32_t step = 0;
    for (const dp_node *node = graph->first; node; node = node->next, step++) {
        bool residual = is_listed(node->type, with_residual);
        if (node->n_outputs != 1 || !node->outputs[0] || (!residual && !is_listed(node->type, elementwise)))
            continue;
        for (int i = residual ? 3 : 0; i < node->n_inputs; i++) {
            if (!may_overwrite(s, node, i, step))
                continue;
            overwrite(s, s->root[dp_value_number(node->inputs[i])], dp_value_number(node->outputs[0]));
            break;
        }
    }
}

/* Spans. */

static void reach(dp_storage *s, const dp_value *value, uint32_t step) {
    if (!value || value->is_constant)
        return;
    dp_span *span = &s->spans[s->root[dp_value_number(value)]];
    if (step < span->first)
        span->first = step;
    if (step > span->last)
        span->last = step;
}

static void find_spans(dp_storage *s, const dp_graph *graph) {
    for (uint32_t i = 0; i < s->n_values; i++)
        s->spans[i] = (dp_span){.first = UINT32_MAX};
    uint32_t step = 0;
    for (const dp_node *node = graph->first; node; node = node->next, step++) {
        for (int i = 0; i < node->n_inputs; i++)
            reach(s, node->inputs[i], step);
        for (int i = 0; i < node->n_outputs; i++) {
            reach(s, node->outputs[i], step);
            if (!node->outputs[i])
                continue;
            uint32_t n = dp_value_number(node->outputs[i]);
            if (s->root[n] == n && s->is_work[n])
                s->spans[n].bytes = dp_value_bytes(node->outputs[i]);
        }
    }
}

void dp_storage_find(dp_storage *s, const dp_graph *graph) {
    for (uint32_t i = 0; i < s->n_values; i++) {
        s->root[i] = i;
        s->is_part[i] = false;
    }
    for (dp_node *node = graph->first; node; node = node->next) {
        for (int i = 0; i < node->n_outputs; i++) {
            if (node->outputs[i]) { /* an earlier program may have made it a part */
                dp_tensor *t = &node->outputs[i]->tensor;
                dp_value_shape(node->outputs[i], t->element, t->dims, t->rank);
                t->offset = 0;
            }
        }
    }
    for (const dp_node *node = graph->first; node; node = node->next)
        find_parts(s, graph, node);
    for (const dp_node *node = graph->first; node; node = node->next) {
        if (!dp_node_is_alias(node) || !s->is_work[dp_value_number(node->outputs[0])])
            continue;
        s->root[dp_value_number(node->outputs[0])] = s->root[dp_value_number(node->inputs[0])];
    }
    find_spans(s, graph);
    find_overwritten(s, graph);
}
