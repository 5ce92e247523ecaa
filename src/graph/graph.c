#include "graph/graph.h"

#include <string.h>

void *dp_model_alloc(dp_model *model, size_t size_bytes) {
    void *block = dp_arena_alloc(&model->arena, size_bytes);
    if (!block)
        dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for the model (%zu bytes more): free some", size_bytes);
    return block;
}

static char *copy_text(dp_model *model, const char *text) {
    size_t bytes = strlen(text) + 1;
    char *copy = dp_model_alloc(model, bytes);
    return copy ? memcpy(copy, text, bytes) : NULL;
}

static dp_graph *graph_in(dp_model *model, dp_graph *outer, const char *name) {
    dp_graph *graph = dp_model_alloc(model, sizeof *graph);
    if (!graph || !(graph->name = copy_text(model, name)))
        return NULL;
    graph->model = model;
    graph->outer = outer;
    return graph;
}

dp_model *dp_model_new(const char *name) {
    dp_model *model = dp_alloc(DP_MEM_GRAPH, sizeof *model);
    if (!model) {
        dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for a model: free some");
        return NULL;
    }
    model->arena.kind = DP_MEM_GRAPH;
    model->graph = graph_in(model, NULL, name);
    if (model->graph)
        return model;
    dp_model_free(model);
    return NULL;
}

void dp_model_free(dp_model *model) {
    if (!model)
        return;
    dp_arena_free(&model->arena);
    dp_free(model);
}

dp_graph *dp_graph_new(dp_graph *outer, const char *name) {
    return graph_in(outer->model, outer, name);
}

/* Values. */

dp_value *dp_value_new(dp_model *model, const char *name) {
    dp_value *value = dp_model_alloc(model, sizeof *value);
    char made_up[24];
    if (!name) {
        snprintf(made_up, sizeof made_up, "%%%u", model->names++);
        name = made_up;
    }
    if (!value || !(value->name = copy_text(model, name)))
        return NULL;
    value->tensor.element = DP_EL_NONE;
    value->tensor.rank = DP_UNKNOWN;
    return value;
}

void dp_value_shape(dp_value *value, int element, const int64_t *dims, int rank) {
    dp_tensor *t = &value->tensor;
    t->element = element;
    t->rank = rank;
    int64_t stride = 1;
    for (int d = rank - 1; d >= 0; d--) {
        t->dims[d] = dims[d];
        t->strides[d] = stride;
        stride *= dims[d] > 0 ? dims[d] : 1;
    }
}

bool dp_value_is_known(const dp_value *value) {
    const dp_tensor *t = &value->tensor;
    if (t->element == DP_EL_NONE || t->rank == DP_UNKNOWN)
        return false;
    for (int d = 0; d < t->rank; d++)
        if (t->dims[d] == DP_UNKNOWN)
            return false;
    return true;
}

size_t dp_value_bytes(const dp_value *value) {
    return (size_t)dp_tensor_count(&value->tensor) * dp_element_bytes(value->tensor.element);
}

dp_value *dp_value_constant(dp_model *model, const char *name, int element, const int64_t *dims, int rank,
                            const void *contents) {
    dp_value *value = dp_value_new(model, name);
    if (!value)
        return NULL;
    dp_value_shape(value, element, dims, rank);
    size_t bytes = dp_value_bytes(value);
    value->tensor.base = dp_model_alloc(model, bytes);
    if (!value->tensor.base)
        return NULL;
    if (bytes && contents)
        memcpy(value->tensor.base, contents, bytes);
    value->is_constant = true;
    return value;
}

dp_value *dp_value_integers(dp_model *model, const int64_t *numbers, int count) {
    return dp_value_constant(model, NULL, DP_I64, &(int64_t){count}, 1, numbers);
}

/* Nodes. */

static void link_before(dp_graph *graph, dp_node *node, dp_node *before) {
    node->next = before;
    node->previous = before ? before->previous : graph->last;
    *(node->previous ? &node->previous->next : &graph->first) = node;
    *(before ? &before->previous : &graph->last) = node;
    graph->n_nodes++;
}

dp_node *dp_node_new(dp_graph *graph, dp_node *before, const char *type, const char *name, int n_inputs,
                     int n_outputs) {
    dp_model *model = graph->model;
    dp_node *node = dp_model_alloc(model, sizeof *node);
    if (!node || !(node->type = copy_text(model, type)) || !(node->name = copy_text(model, name)) ||
        !(node->inputs = dp_model_alloc(model, (size_t)n_inputs * sizeof(dp_value *))) ||
        !(node->outputs = dp_model_alloc(model, (size_t)n_outputs * sizeof(dp_value *))))
        return NULL;
    node->n_inputs = n_inputs;
    node->n_outputs = n_outputs;
    node->graph = graph;
    link_before(graph, node, before);
    return node;
}

void dp_node_output(dp_node *node, int index, dp_value *value) {
    node->outputs[index] = value;
    if (value)
        value->producer = node;
}

static void unlink_node(dp_node *node) {
    dp_graph *graph = node->graph;
    *(node->previous ? &node->previous->next : &graph->first) = node->next;
    *(node->next ? &node->next->previous : &graph->last) = node->previous;
    graph->n_nodes--;
}

void dp_node_move(dp_node *node, dp_node *before) {
    if (node == before)
        return;
    unlink_node(node);
    link_before(node->graph, node, before);
}

void dp_node_remove(dp_node *node) {
    unlink_node(node);
    for (int i = 0; i < node->n_outputs; i++)
        if (node->outputs[i] && node->outputs[i]->producer == node)
            node->outputs[i]->producer = NULL;
}

/* Attributes. */

static dp_arg *find(const dp_node *node, const char *name) {
    for (int i = 0; i < node->n_attributes; i++)
        if (strcmp(node->attributes[i].name, name) == 0)
            return &node->attributes[i];
    return NULL;
}

const dp_arg *dp_node_attribute(const dp_node *node, const char *name) {
    return find(node, name);
}

int64_t dp_node_integer(const dp_node *node, const char *name, int64_t otherwise) {
    const dp_arg *arg = find(node, name);
    return arg ? dp_arg_integer(arg, otherwise) : otherwise;
}

double dp_node_real(const dp_node *node, const char *name, double otherwise) {
    const dp_arg *arg = find(node, name);
    return arg ? dp_arg_real(arg, otherwise) : otherwise;
}

const char *dp_node_text(const dp_node *node, const char *name, const char *otherwise) {
    const dp_arg *arg = find(node, name);
    return arg && arg->kind == DP_ARG_TEXT ? arg->as.text : otherwise;
}

/* The attribute's place in the node; a new one when there is none yet. */
static dp_arg *place_for(dp_node *node, const char *name) {
    dp_arg *arg = find(node, name);
    if (arg)
        return arg;
    dp_model *model = node->graph->model;
    if (node->n_attributes == node->attributes_room) {
        int room = node->attributes_room ? 2 * node->attributes_room : 4;
        dp_arg *more = dp_model_alloc(model, (size_t)room * sizeof *more);
        if (!more)
            return NULL;
        if (node->n_attributes)
            memcpy(more, node->attributes, (size_t)node->n_attributes * sizeof *more);
        node->attributes = more;
        node->attributes_room = room;
    }
    const char *copy = copy_text(model, name);
    if (!copy)
        return NULL;
    arg = &node->attributes[node->n_attributes++];
    *arg = (dp_arg){.name = copy, .kind = DP_ARG_ABSENT};
    return arg;
}

/* Bytes of what an attribute points to; false when it points to nothing. */
static bool points_to(const dp_arg *a, size_t *out_bytes) {
    *out_bytes = a->kind == DP_ARG_TEXT         ? strlen(a->as.text) + 1
                 : a->kind == DP_ARG_INT_LIST   ? (size_t)a->count * sizeof(int64_t)
                 : a->kind == DP_ARG_FLOAT_LIST ? (size_t)a->count * sizeof(float)
                                                : 0;
    return a->kind == DP_ARG_TEXT || a->kind == DP_ARG_INT_LIST || a->kind == DP_ARG_FLOAT_LIST;
}

dp_status dp_node_set(dp_node *node, const dp_arg *attribute) {
    dp_arg copy = *attribute;
    size_t bytes;
    if (points_to(attribute, &bytes)) {
        void *to = dp_model_alloc(node->graph->model, bytes); /* also of an empty list: nobody meets a NULL */
        if (!to)
            return DP_ERR_OUT_OF_MEMORY;
        if (bytes)
            memcpy(to, attribute->as.text, bytes);
        copy.as.text = to; /* all lists are pointers */
    }
    dp_arg *arg = place_for(node, attribute->name);
    if (!arg)
        return DP_ERR_OUT_OF_MEMORY;
    copy.name = arg->name;
    *arg = copy;
    return DP_OK;
}

dp_status dp_node_set_integer(dp_node *node, const char *name, int64_t value) {
    return dp_node_set(node, &(dp_arg){.name = name, .kind = DP_ARG_INTEGER, .as.integer = value});
}
dp_status dp_node_set_real(dp_node *node, const char *name, double value) {
    return dp_node_set(node, &(dp_arg){.name = name, .kind = DP_ARG_REAL, .as.real = value});
}
dp_status dp_node_set_text(dp_node *node, const char *name, const char *value) {
    return dp_node_set(node, &(dp_arg){.name = name, .kind = DP_ARG_TEXT, .as.text = value});
}
dp_status dp_node_set_integers(dp_node *node, const char *name, const int64_t *values, int count) {
    return dp_node_set(node,
                       &(dp_arg){.name = name, .kind = DP_ARG_INT_LIST, .count = count, .as.integers = values});
}

/* Uses. */

static void for_each_use(dp_graph *graph, void (*visit)(dp_value **use, void *data), void *data) {
    for (dp_node *node = graph->first; node; node = node->next) {
        for (int i = 0; i < node->n_inputs; i++)
            if (node->inputs[i])
                visit(&node->inputs[i], data);
        for (int i = 0; i < node->n_bodies; i++)
            for_each_use(node->bodies[i].graph, visit, data);
    }
    for (int i = 0; i < graph->n_outputs; i++)
        visit(&graph->outputs[i], data);
}

static void replace(dp_value **use, void *data) {
    const dp_value *const *pair = data;
    if (*use == pair[0])
        *use = (dp_value *)pair[1];
}

void dp_graph_replace(dp_graph *graph, const dp_value *from, dp_value *to) {
    for_each_use(graph, replace, (const dp_value *[]){from, to});
}

static void clear(dp_value **use, void *data) {
    (void)data;
    (*use)->mark = 0;
}
static void clear_outputs(dp_graph *graph) {
    for (int i = 0; i < graph->n_inputs; i++)
        graph->inputs[i]->mark = 0;
    for (dp_node *node = graph->first; node; node = node->next) {
        for (int i = 0; i < node->n_outputs; i++)
            if (node->outputs[i])
                node->outputs[i]->mark = 0;
        for (int i = 0; i < node->n_bodies; i++)
            clear_outputs(node->bodies[i].graph);
    }
}
static void count(dp_value **use, void *data) {
    (void)data;
    (*use)->mark++;
}

void dp_graph_clear_marks(dp_graph *graph) {
    clear_outputs(graph);
    for_each_use(graph, clear, NULL);
}

void dp_graph_count_uses(dp_graph *graph) {
    dp_graph_clear_marks(graph);
    for_each_use(graph, count, NULL);
}
