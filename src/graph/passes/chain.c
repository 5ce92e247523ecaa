/*
 * Elementwise nodes whose results have one shape, and are read by each other only, become one node that runs them tile
 * by tile: what goes between them never leaves the first cache. Operands from outside may be broadcast; constants of
 * one element become numbers of the program.
 */
#include <stdio.h>
#include <string.h>

#include "graph/passes/match.h"
#include "graph/passes/passes.h"
#include "ops/elementwise/chain.h"
#include "ops/elementwise/elementwise.h"
#include "ops/typed/typed.h"

enum { TEXT = 2048, NUMBERS_MOST = 12 };

typedef struct group {
    dp_node *nodes[DP_CHAIN_STEPS]; /* the root first, then in the order in which they were found */
    int n_nodes;
    dp_value *inputs[DP_CHAIN_INPUTS];
    int n_inputs, n_numbers;
    char program[TEXT];
} group;

static const dp_typed *type_of(const dp_node *node) {
    for (unsigned i = 0; i < dp_typed_count; i++)
        if (strcmp(dp_typed_all[i].op.name, node->type) == 0)
            return &dp_typed_all[i];
    return NULL;
}

static bool is_float(const dp_value *value) {
    return value && value->tensor.element == DP_F32 && value->tensor.rank >= 0;
}

/* What a bind of the type's mapping is at this node: an input, or a number. False: neither. */
static bool bound(const dp_typed *type, const dp_node *node, const dp_bind *bind, dp_value **out_value,
                  double *out_number) {
    const int first_attribute = type->n_inputs + type->n_outputs;
    *out_value = NULL;
    if (bind->param == -1) {
        *out_number = bind->number;
        return true;
    }
    if (bind->param < 0)
        return false;
    if (bind->param < type->n_inputs) {
        *out_value = bind->param < node->n_inputs ? node->inputs[bind->param] : NULL;
        if (!is_float(*out_value))
            return false;
        if (dp_value_number(*out_value, out_number))
            *out_value = NULL;
        return true;
    }
    const dp_param *param = &type->op.params[bind->param];
    const dp_typed_trait *trait = &type->traits[bind->param];
    const dp_arg *arg = dp_node_attribute(node, param->name);
    if (bind->param < first_attribute || (param->kind != DP_ARG_REAL && param->kind != DP_ARG_INTEGER) ||
        (!arg && !trait->has_default))
        return false;
    *out_number = !arg                          ? trait->number
                  : arg->kind == DP_ARG_REAL    ? arg->as.real
                  : arg->kind == DP_ARG_INTEGER ? (double)arg->as.integer
                                                : 0;
    return !arg || arg->kind == DP_ARG_REAL || arg->kind == DP_ARG_INTEGER;
}

/* A node that a program can have. */
static bool fits(const dp_node *node) {
    int operands, numbers, tensors = 0;
    if (!node || node->n_bodies || node->n_outputs != 1 || !is_float(node->outputs[0]))
        return false;
    const dp_typed *type = type_of(node);
    if (!type || dp_elementwise_operands(type->op.function) == DP_OP_BINDS ||
        !dp_chain_knows(type->op.function->name, &operands, &numbers))
        return false;
    for (int i = 0; i < node->n_inputs; i++)
        if (node->inputs[i] && !is_float(node->inputs[i]))
            return false;
    for (int k = 0; k < type->op.n_in && k < operands + numbers; k++) {
        dp_value *value;
        double number;
        if (!bound(type, node, &type->op.binds[k], &value, &number) || (value && k >= operands))
            return false;
        tensors += value != NULL;
    }
    return tensors > 0;
}

static bool has(const group *g, const dp_node *node) {
    for (int i = 0; i < g->n_nodes; i++)
        if (g->nodes[i] == node)
            return true;
    return false;
}

/* Whether nodes of the group are the only readers of the value. Uses of all readers are counted in its mark. */
static bool read_inside(const group *g, const dp_value *value) {
    uint32_t readers = 0;
    for (int i = 0; i < g->n_nodes; i++)
        for (int k = 0; k < g->nodes[i]->n_inputs; k++)
            readers += g->nodes[i]->inputs[k] == value;
    return readers == value->mark;
}

/* Takes producers in, until none fits any more. */
static void grow(group *g, const dp_graph *graph) {
    const dp_value *result = g->nodes[0]->outputs[0];
    bool grew = true;
    while (grew) {
        grew = false;
        for (int i = 0; i < g->n_nodes && g->n_nodes < DP_CHAIN_STEPS; i++)
            for (int k = 0; k < g->nodes[i]->n_inputs && g->n_nodes < DP_CHAIN_STEPS; k++) {
                dp_value *x = g->nodes[i]->inputs[k];
                if (!x || !x->producer || has(g, x->producer) || !dp_value_same_shape(x, result) ||
                    dp_graph_gives(graph, x) || !fits(x->producer) || !read_inside(g, x))
                    continue;
                g->nodes[g->n_nodes++] = x->producer;
                grew = true;
            }
    }
}

/* The order of the graph. */
static void sort(group *g) {
    dp_node *ordered[DP_CHAIN_STEPS];
    int n = g->n_nodes;
    for (dp_node *node = g->nodes[0]; n > 0; node = node->previous)
        if (has(g, node))
            ordered[--n] = node;
    memcpy(g->nodes, ordered, (size_t)g->n_nodes * sizeof ordered[0]);
}

static bool append(group *g, const char *text) {
    if (strlen(g->program) + strlen(text) + 1 > sizeof g->program)
        return false;
    strcat(g->program, text);
    return true;
}

static bool append_operand(group *g, dp_value *value, double number, bool is_operand) {
    char text[40];
    if (!value) {
        g->n_numbers += is_operand;
        snprintf(text, sizeof text, " %.17g", number);
        return g->n_numbers <= NUMBERS_MOST && append(g, text);
    }
    for (int i = 0; i < g->n_nodes; i++)
        if (g->nodes[i]->outputs[0] == value) {
            snprintf(text, sizeof text, " r%d", i);
            return append(g, text);
        }
    int at = 0;
    while (at < g->n_inputs && g->inputs[at] != value)
        at++;
    if (at == DP_CHAIN_INPUTS)
        return false;
    if (at == g->n_inputs)
        g->inputs[g->n_inputs++] = value;
    snprintf(text, sizeof text, " x%d", at);
    return append(g, text);
}

static bool write_program(group *g) {
    for (int i = 0; i < g->n_nodes; i++) {
        const dp_typed *type = type_of(g->nodes[i]);
        int operands = 0, numbers = 0;
        dp_chain_knows(type->op.function->name, &operands, &numbers);
        if (!append(g, i ? ", " : "") || !append(g, type->op.function->name))
            return false;
        for (int k = 0; k < type->op.n_in && k < operands + numbers; k++) {
            dp_value *value = NULL;
            double number = 0;
            bound(type, g->nodes[i], &type->op.binds[k], &value, &number);
            if (!append_operand(g, value, number, k < operands))
                return false;
        }
    }
    return g->n_inputs > 0;
}

/* The shape of the result must come from the inputs: what was broadcast from constants alone has no place here. */
static bool gives_shape(const group *g) {
    const dp_value *result = g->nodes[g->n_nodes - 1]->outputs[0];
    for (int i = 0; i < g->n_inputs; i++)
        if (dp_value_same_shape(g->inputs[i], result))
            return true;
    return false;
}

static dp_status replace(const group *g) {
    dp_node *made = dp_node_replace(g->nodes[g->n_nodes - 1], "ElementwiseChain", g->inputs, g->n_inputs);
    if (!made)
        return DP_ERR_OUT_OF_MEMORY;
    for (int i = 0; i < g->n_nodes - 1; i++)
        dp_node_remove(g->nodes[i]);
    return dp_node_set_text(made, "program", g->program);
}

dp_status dp_pass_chain(dp_graph *graph, int *out_changes) {
    dp_graph_count_uses(graph);
    for (dp_node *node = graph->last, *previous; node; node = previous) {
        previous = node->previous;
        if (!fits(node))
            continue;
        group g = {.nodes = {node}, .n_nodes = 1};
        grow(&g, graph);
        if (g.n_nodes < 2)
            continue;
        sort(&g);
        while (previous && has(&g, previous))
            previous = previous->previous;
        if (!write_program(&g) || !gives_shape(&g))
            continue;
        dp_status status = replace(&g);
        if (status != DP_OK)
            return status;
        ++*out_changes;
    }
    return DP_OK;
}
