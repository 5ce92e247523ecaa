/* operator.c - operators and graphs as objects. */
#include <stdatomic.h>
#include <string.h>

#include "api/ge/ge.h"

static void *room(dp_arena *arena, bool *failed, size_t bytes) {
    void *block = *failed ? NULL : dp_arena_alloc(arena, bytes);
    *failed |= !block;
    return block;
}
static const char *copy_text(dp_arena *arena, bool *failed, const char *text) {
    size_t bytes = text ? strlen(text) + 1 : 1;
    char *copy = room(arena, failed, bytes);
    if (copy && text)
        memcpy(copy, text, bytes);
    return copy ? copy : "";
}

dp_ge_operator *dp_ge_operator_new(const char *name, const char *type) {
    dp_ge_operator *op = dp_alloc(DP_MEM_GRAPH, sizeof *op);
    if (!op)
        return NULL;
    op->references = 1;
    op->arena.kind = DP_MEM_GRAPH;
    op->name = copy_text(&op->arena, &op->failed, name);
    op->type = copy_text(&op->arena, &op->failed, type);
    return op;
}
dp_ge_operator *dp_ge_operator_hold(dp_ge_operator *op) {
    if (op)
        atomic_fetch_add(&op->references, 1);
    return op;
}

/* Chains of operators may be long: those that nobody holds any more wait in a list. */
void dp_ge_operator_release(dp_ge_operator *op) {
    if (!op || atomic_fetch_sub(&op->references, 1) != 1)
        return;
    op->release_next = NULL;
    while (op) {
        dp_ge_operator *next = op->release_next;
        for (dp_ge_link *link = op->links; link; link = link->next)
            if (link->from && atomic_fetch_sub(&link->from->references, 1) == 1) {
                link->from->release_next = next;
                next = link->from;
            }
        dp_arena_free(&op->arena);
        dp_free(op);
        op = next;
    }
}
const char *dp_ge_operator_name(const dp_ge_operator *op) {
    return op ? op->name : "";
}
const char *dp_ge_operator_type(const dp_ge_operator *op) {
    return op ? op->type : "";
}

const dp_ge_link *dp_ge_find_link(const dp_ge_operator *op, const char *input, int place) {
    for (const dp_ge_link *link = op->links; link; link = link->next)
        if (link->place == place && strcmp(link->input, input) == 0)
            return link;
    return NULL;
}
int dp_ge_count_links(const dp_ge_operator *op, const char *input) {
    int count = 0;
    for (const dp_ge_link *link = op->links; link; link = link->next)
        if (strcmp(link->input, input) == 0 && link->place >= count)
            count = link->place + 1;
    return count;
}
const dp_ge_end *dp_ge_find_end(const dp_ge_operator *op, const char *name) {
    for (const dp_ge_end *end = op->ends; end; end = end->next)
        if (strcmp(end->name, name) == 0)
            return end;
    return NULL;
}
const dp_ge_attribute *dp_ge_find_attribute(const dp_ge_operator *op, const char *name) {
    for (const dp_ge_attribute *a = op->attributes; a; a = a->next)
        if (strcmp(a->arg.name, name) == 0)
            return a;
    return NULL;
}

void dp_ge_operator_link(dp_ge_operator *op, const char *input, int place, dp_ge_operator *from, const char *output) {
    if (!op || !input)
        return;
    if (!from) {
        op->failed = true;
        return;
    }
    dp_ge_link *link = (dp_ge_link *)dp_ge_find_link(op, input, place);
    if (!link) {
        if (!(link = room(&op->arena, &op->failed, sizeof *link)))
            return;
        link->input = copy_text(&op->arena, &op->failed, input);
        link->place = place;
        dp_ge_link **end = &op->links;
        while (*end)
            end = &(*end)->next;
        *end = link;
    }
    dp_ge_operator *before = link->from;
    link->from = dp_ge_operator_hold(from);
    link->output = copy_text(&op->arena, &op->failed, output);
    dp_ge_operator_release(before);
}

void dp_ge_operator_describe(dp_ge_operator *op, const char *name, const dp_ge_desc *desc) {
    if (!op || !name || !desc)
        return;
    dp_ge_end *end = (dp_ge_end *)dp_ge_find_end(op, name);
    if (!end) {
        if (!(end = room(&op->arena, &op->failed, sizeof *end)))
            return;
        end->name = copy_text(&op->arena, &op->failed, name);
        end->next = op->ends;
        op->ends = end;
    }
    end->desc = *desc;
}
bool dp_ge_operator_described(const dp_ge_operator *op, const char *name, dp_ge_desc *desc) {
    const dp_ge_end *end = op && name ? dp_ge_find_end(op, name) : NULL;
    if (end && desc)
        *desc = end->desc;
    return end != NULL;
}
void dp_ge_operator_count(dp_ge_operator *op, int outputs) {
    if (op)
        op->n_outputs = outputs;
}

/* The attribute, an old one of the name or a new one; NULL when memory is exhausted. */
static dp_ge_attribute *attribute(dp_ge_operator *op, const char *name) {
    if (!op || !name)
        return NULL;
    dp_ge_attribute *a = (dp_ge_attribute *)dp_ge_find_attribute(op, name);
    if (!a) {
        if (!(a = room(&op->arena, &op->failed, sizeof *a)))
            return NULL;
        a->next = op->attributes;
        op->attributes = a;
        a->arg.name = copy_text(&op->arena, &op->failed, name);
    }
    a->arg = (dp_arg){.name = a->arg.name, .kind = DP_ARG_ABSENT};
    a->data = NULL;
    return a;
}
static void list(dp_ge_operator *op, const char *name, dp_arg_kind kind, const void *values, size_t count,
                 size_t each) {
    dp_ge_attribute *a = attribute(op, name);
    void *copy = a && count < SIZE_MAX / 16 ? room(&op->arena, &op->failed, count * each + 1) : NULL;
    if (!copy)
        return;
    if (count)
        memcpy(copy, values, count * each);
    a->arg.kind = kind;
    a->arg.count = (int64_t)count;
    a->arg.as.text = copy;
}
void dp_ge_operator_integer(dp_ge_operator *op, const char *name, int64_t value) {
    dp_ge_attribute *a = attribute(op, name);
    if (a)
        a->arg.kind = DP_ARG_INTEGER, a->arg.as.integer = value;
}
void dp_ge_operator_real(dp_ge_operator *op, const char *name, double value) {
    dp_ge_attribute *a = attribute(op, name);
    if (a)
        a->arg.kind = DP_ARG_REAL, a->arg.as.real = value;
}
void dp_ge_operator_text(dp_ge_operator *op, const char *name, const char *value) {
    dp_ge_attribute *a = attribute(op, name);
    if (a)
        a->arg.kind = DP_ARG_TEXT, a->arg.as.text = copy_text(&op->arena, &op->failed, value);
}
void dp_ge_operator_integers(dp_ge_operator *op, const char *name, const int64_t *values, size_t count) {
    list(op, name, DP_ARG_INT_LIST, values, count, sizeof *values);
}
void dp_ge_operator_reals(dp_ge_operator *op, const char *name, const float *values, size_t count) {
    list(op, name, DP_ARG_FLOAT_LIST, values, count, sizeof *values);
}
void dp_ge_operator_tensor(dp_ge_operator *op, const char *name, const dp_ge_desc *desc, const void *data,
                           size_t bytes) {
    dp_ge_attribute *a = desc ? attribute(op, name) : NULL;
    void *copy = a && bytes < SIZE_MAX / 2 ? room(&op->arena, &op->failed, bytes + 1) : NULL;
    if (!copy)
        return;
    if (bytes && data)
        memcpy(copy, data, bytes);
    a->desc = *desc;
    a->data = copy;
    a->bytes = data ? bytes : 0;
}

/* Graphs. */

dp_ge_graph *dp_ge_graph_new(const char *name) {
    dp_ge_graph *graph = dp_alloc(DP_MEM_GRAPH, sizeof *graph);
    if (!graph)
        return NULL;
    graph->references = 1;
    graph->arena.kind = DP_MEM_GRAPH;
    graph->name = copy_text(&graph->arena, &graph->failed, name);
    return graph;
}
dp_ge_graph *dp_ge_graph_hold(dp_ge_graph *graph) {
    if (graph)
        atomic_fetch_add(&graph->references, 1);
    return graph;
}
static void release_all(dp_ge_operator **ops, size_t count) {
    for (size_t i = 0; i < count; i++)
        dp_ge_operator_release(ops[i]);
}
void dp_ge_graph_release(dp_ge_graph *graph) {
    if (!graph || atomic_fetch_sub(&graph->references, 1) != 1)
        return;
    release_all(graph->inputs, graph->n_inputs);
    release_all(graph->outputs, graph->n_outputs);
    dp_free(graph->onnx);
    dp_free(graph->folder);
    dp_arena_free(&graph->arena);
    dp_free(graph);
}
const char *dp_ge_graph_name(const dp_ge_graph *graph) {
    return graph ? graph->name : "";
}

static dp_ge_operator **hold_all(dp_ge_graph *graph, dp_ge_operator *const *ops, size_t count) {
    dp_ge_operator **held =
        count < SIZE_MAX / 16 ? room(&graph->arena, &graph->failed, (count + 1) * sizeof *held) : NULL;
    for (size_t i = 0; held && i < count; i++) {
        graph->failed |= !ops[i];
        held[i] = dp_ge_operator_hold(ops[i]);
    }
    return held;
}
void dp_ge_graph_inputs(dp_ge_graph *graph, dp_ge_operator *const *ops, size_t count) {
    dp_ge_operator **held = graph ? hold_all(graph, ops, count) : NULL;
    if (!held)
        return;
    release_all(graph->inputs, graph->n_inputs);
    graph->inputs = held;
    graph->n_inputs = count;
}
void dp_ge_graph_outputs(dp_ge_graph *graph, dp_ge_operator *const *ops, const int64_t *places, size_t count) {
    dp_ge_operator **held = graph ? hold_all(graph, ops, count) : NULL;
    int64_t *copy = held ? room(&graph->arena, &graph->failed, (count + 1) * sizeof *copy) : NULL;
    if (!copy) {
        release_all(held, held ? count : 0);
        return;
    }
    for (size_t i = 0; i < count; i++)
        copy[i] = places ? places[i] : -1;
    release_all(graph->outputs, graph->n_outputs);
    graph->outputs = held;
    graph->places = copy;
    graph->n_outputs = count;
}
