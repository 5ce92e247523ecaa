#include <string.h>

#include "graph/passes/passes.h"

static bool same_attribute(const dp_arg *a, const dp_arg *b) {
    if (!b || a->kind != b->kind)
        return false;
    switch (a->kind) {
    case DP_ARG_INTEGER:
        return a->as.integer == b->as.integer;
    case DP_ARG_REAL:
        return a->as.real == b->as.real;
    case DP_ARG_TEXT:
        return strcmp(a->as.text, b->as.text) == 0;
    case DP_ARG_INT_LIST:
        return a->count == b->count && memcmp(a->as.integers, b->as.integers, (size_t)a->count * sizeof(int64_t)) == 0;
    case DP_ARG_FLOAT_LIST:
        return a->count == b->count && memcmp(a->as.floats, b->as.floats, (size_t)a->count * sizeof(float)) == 0;
    default:
        return false;
    }
}

/* Random numbers are new every time. */
static bool is_repeatable(const dp_node *node) {
    return node->n_bodies == 0 && !strstr(node->type, "Random") && !strstr(node->type, "Dropout");
}

static bool same_node(const dp_node *a, const dp_node *b) {
    if (strcmp(a->type, b->type) != 0 || a->n_inputs != b->n_inputs || a->n_outputs != b->n_outputs ||
        a->n_attributes != b->n_attributes || memcmp(a->inputs, b->inputs, (size_t)a->n_inputs * sizeof a->inputs[0]) != 0)
        return false;
    for (int i = 0; i < a->n_attributes; i++)
        if (!same_attribute(&a->attributes[i], dp_node_attribute(b, a->attributes[i].name)))
            return false;
    for (int i = 0; i < a->n_outputs; i++)
        if (!a->outputs[i] != !b->outputs[i] ||
            (a->outputs[i] && a->outputs[i]->tensor.element != b->outputs[i]->tensor.element))
            return false;
    return true;
}

static bool is_output(const dp_graph *graph, const dp_node *node) {
    for (int i = 0; i < graph->n_outputs; i++)
        if (graph->outputs[i]->producer == node)
            return true;
    return false;
}

/* Walks all earlier nodes: graphs have thousands of nodes at most, and the types differ at once. */
static dp_node *earlier(const dp_node *node) {
    for (dp_node *other = node->previous; other; other = other->previous)
        if (same_node(other, node))
            return other;
    return NULL;
}

dp_status dp_pass_same(dp_graph *graph, int *out_changes) {
    for (dp_node *node = graph->first, *next; node; node = next) {
        next = node->next;
        dp_node *other = is_repeatable(node) && !is_output(graph, node) ? earlier(node) : NULL;
        if (!other)
            continue;
        for (int i = 0; i < node->n_outputs; i++)
            if (node->outputs[i])
                dp_graph_replace(graph, node->outputs[i], other->outputs[i]);
        dp_node_remove(node);
        ++*out_changes;
    }
    return DP_OK;
}
