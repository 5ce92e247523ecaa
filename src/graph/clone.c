#include "graph/clone.h"

#include <string.h>

void dp_graph_visit(dp_graph *graph, void (*visit)(dp_value *value, void *data), void *data) {
    for (int i = 0; i < graph->n_inputs; i++)
        visit(graph->inputs[i], data);
    for (dp_node *node = graph->first; node; node = node->next) {
        for (int i = 0; i < node->n_inputs; i++)
            if (node->inputs[i])
                visit(node->inputs[i], data);
        for (int i = 0; i < node->n_outputs; i++)
            if (node->outputs[i])
                visit(node->outputs[i], data);
        for (int i = 0; i < node->n_bodies; i++)
            dp_graph_visit(node->bodies[i].graph, visit, data);
    }
    for (int i = 0; i < graph->n_outputs; i++)
        visit(graph->outputs[i], data);
}

static void clear(dp_value *value, void *data) {
    (void)data;
    value->mark = 0;
}

void dp_clone_begin(dp_cloner *c, dp_graph *from, dp_model *to) {
    *c = (dp_cloner){.to = to};
    dp_graph_visit(from, clear, NULL);
}

void dp_clone_end(dp_cloner *c) {
    dp_free(c->copies);
    c->copies = NULL;
}

static void out_of_memory(dp_cloner *c) {
    if (c->status == DP_OK)
        c->status = dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for a part of a model: free some");
}

void dp_clone_bind(dp_cloner *c, dp_value *original, dp_value *copy) {
    if (c->n == c->room) {
        uint32_t room = 2 * c->room + 64;
        dp_value **more = dp_realloc(DP_MEM_GRAPH, c->copies, room * sizeof *more);
        if (!more) {
            out_of_memory(c);
            return;
        }
        c->copies = more;
        c->room = room;
    }
    c->copies[c->n++] = copy;
    original->mark = c->n;
}

static dp_value *make(dp_cloner *c, dp_value *original) {
    dp_value *copy = c->status == DP_OK ? dp_value_new(c->to, original->name) : NULL;
    if (!copy) {
        out_of_memory(c);
        return NULL;
    }
    copy->tensor = original->tensor;
    copy->is_constant = original->is_constant;
    if (!copy->is_constant)
        copy->tensor.base = NULL;
    dp_clone_bind(c, original, copy);
    return copy;
}

/* What stands for a value that is read. */
static dp_value *read_copy(dp_cloner *c, dp_value *original) {
    if (!original)
        return NULL;
    if (original->mark)
        return c->copies[original->mark - 1];
    if (original->is_constant)
        return make(c, original);
    if (c->status == DP_OK)
        c->status = dp_fail(DP_ERR_INTERNAL, "\"%s\" is read before it is made", original->name);
    return NULL;
}

static void clone_node(dp_cloner *c, const dp_node *from, dp_graph *to) {
    dp_node *node = dp_node_new(to, NULL, from->type, from->name, from->n_inputs, from->n_outputs);
    dp_body *bodies = node ? dp_model_alloc(c->to, (size_t)from->n_bodies * sizeof *bodies) : NULL;
    if (!bodies) {
        out_of_memory(c);
        return;
    }
    node->bodies = bodies;
    node->attributes = from->attributes; /* full: one more is written elsewhere */
    node->n_attributes = node->attributes_room = from->n_attributes;
    for (int i = 0; i < from->n_inputs; i++)
        node->inputs[i] = read_copy(c, from->inputs[i]);
    for (int i = 0; i < from->n_bodies && c->status == DP_OK; i++) {
        dp_graph *inside = from->bodies[i].graph, *copy = dp_graph_new(to, inside->name);
        if (!copy) {
            out_of_memory(c);
            return;
        }
        node->bodies[node->n_bodies++] = (dp_body){from->bodies[i].name, copy};
        copy->inputs = dp_model_alloc(c->to, (size_t)inside->n_inputs * sizeof(dp_value *));
        for (int k = 0; copy->inputs && k < inside->n_inputs; k++)
            copy->inputs[copy->n_inputs++] = make(c, inside->inputs[k]);
        if (!copy->inputs)
            out_of_memory(c);
        dp_clone_graph(c, inside, copy);
    }
    for (int i = 0; i < from->n_outputs && c->status == DP_OK; i++)
        dp_node_output(node, i, from->outputs[i] ? make(c, from->outputs[i]) : NULL);
}

dp_status dp_clone_graph(dp_cloner *c, const dp_graph *from, dp_graph *to) {
    for (const dp_node *node = from->first; node && c->status == DP_OK; node = node->next)
        clone_node(c, node, to);
    to->outputs = dp_model_alloc(c->to, (size_t)from->n_outputs * sizeof(dp_value *));
    if (!to->outputs)
        out_of_memory(c);
    for (int i = 0; i < from->n_outputs && c->status == DP_OK; i++)
        to->outputs[to->n_outputs++] = read_copy(c, from->outputs[i]);
    return c->status;
}
