#include "graph/compare/reference.h"

#include <string.h>

#include "graph/compare/plain.h"
#include "graph/infer.h"
#include "ops/elementwise/kernels.h"

/* What is known of a value: its contents as double, or NULL. */
typedef struct wide {
    dp_tensor tensor;
    void *data;
    uint32_t reads_left;
    bool is_kept; /* an output of the graph */
} wide;

struct dp_reference {
    dp_arena arena;
    wide *wides; /* by the value's mark */
    uint32_t n;
};

static dp_status no_memory(size_t bytes) {
    return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for a value in double precision (%zu bytes): free some",
                   bytes);
}

static size_t bytes_of(const dp_tensor *t, int element) {
    return (size_t)dp_tensor_count(t) * dp_element_bytes(element);
}

/* from -> to, both floating-point, contiguous. */
static void convert(void *to, int to_element, const void *from, int from_element, size_t n) {
    const dp_elementwise_table *t = dp_elementwise_current();
    double tile[DP_TILE];
    for (size_t at = 0, k; at < n; at += k) {
        k = n - at < DP_TILE ? n - at : DP_TILE;
        t->load[from_element][DP_COMPUTE_F64](tile, (const char *)from + at * dp_element_bytes(from_element), k);
        t->store[to_element][DP_COMPUTE_F64]((char *)to + at * dp_element_bytes(to_element), tile, k);
    }
}

void dp_reference_widen(double *to, const void *from, int element, size_t n) {
    convert(to, DP_F64, from, element, n);
}

static dp_status make_room(wide *w) {
    size_t bytes = bytes_of(&w->tensor, w->tensor.element);
    if (!w->data)
        w->data = dp_alloc(DP_MEM_GRAPH, bytes + 1);
    w->tensor.base = w->data;
    return w->data ? DP_OK : no_memory(bytes);
}

static void forget(wide *w) {
    dp_free(w->data);
    w->data = w->tensor.base = NULL;
}

/* Numbers in mark, from 1. */
static void number(dp_reference *r, dp_value *value) {
    if (value && !value->mark)
        value->mark = ++r->n;
}
static void clear(dp_value *value) {
    if (value)
        value->mark = 0;
}
static void for_all(dp_graph *graph, void (*visit)(dp_reference *r, dp_value *value), dp_reference *r) {
    for (int i = 0; i < graph->n_inputs; i++)
        visit(r, graph->inputs[i]);
    for (dp_node *node = graph->first; node; node = node->next) {
        for (int i = 0; i < node->n_inputs; i++)
            visit(r, node->inputs[i]);
        for (int i = 0; i < node->n_outputs; i++)
            visit(r, node->outputs[i]);
    }
    for (int i = 0; i < graph->n_outputs; i++)
        visit(r, graph->outputs[i]);
}
static void clear_one(dp_reference *r, dp_value *value) {
    (void)r;
    clear(value);
}

static wide *wide_of(const dp_reference *r, const dp_value *value) {
    return &r->wides[value->mark - 1];
}

static void describe(dp_reference *r, dp_value *value) {
    if (!value)
        return;
    wide *w = wide_of(r, value);
    w->tensor = value->tensor;
    w->tensor.base = NULL;
    if (dp_element_is_float(value->tensor.element))
        w->tensor.element = DP_F64;
}

static void count_reads(dp_reference *r, const dp_graph *graph) {
    for (const dp_node *node = graph->first; node; node = node->next)
        for (int i = 0; i < node->n_inputs; i++)
            if (node->inputs[i])
                wide_of(r, node->inputs[i])->reads_left++;
    for (int i = 0; i < graph->n_outputs; i++)
        wide_of(r, graph->outputs[i])->is_kept = true;
}

dp_status dp_reference_new(dp_graph *graph, dp_reference **out_reference) {
    for (const dp_node *node = graph->first; node; node = node->next) {
        if (node->n_bodies)
            return dp_fail(DP_ERR_UNSUPPORTED, "node \"%s\" (%s) has a graph inside: such models are not compared",
                           node->name, node->type);
        for (int i = 0; i < node->n_outputs; i++)
            if (node->outputs[i] && !dp_value_is_known(node->outputs[i]))
                return dp_fail(DP_ERR_UNSUPPORTED,
                               "the shape of \"%s\" is not known before the model runs: such models "
                               "are not compared",
                               node->outputs[i]->name);
    }
    dp_reference *r = dp_alloc(DP_MEM_GRAPH, sizeof *r);
    if (!r)
        return no_memory(sizeof *r);
    r->arena.kind = DP_MEM_GRAPH;
    for_all(graph, clear_one, r);
    for_all(graph, number, r);
    r->wides = dp_arena_alloc(&r->arena, ((size_t)r->n + 1) * sizeof *r->wides);
    if (!r->wides) {
        dp_reference_free(r);
        return no_memory(r->n * sizeof *r->wides);
    }
    for_all(graph, describe, r);
    count_reads(r, graph);
    *out_reference = r;
    return DP_OK;
}

void dp_reference_free(dp_reference *r) {
    if (!r)
        return;
    for (uint32_t i = 0; r->wides && i < r->n; i++)
        forget(&r->wides[i]);
    dp_arena_free(&r->arena);
    dp_free(r);
}

void *dp_reference_input(dp_reference *r, const dp_value *input) {
    wide *w = wide_of(r, input);
    return make_room(w) == DP_OK ? w->data : NULL;
}

const dp_tensor *dp_reference_value(const dp_reference *r, const dp_value *value) {
    const wide *w = wide_of(r, value);
    return w->data ? &w->tensor : NULL;
}

/* A constant's contents, when it is read for the first time. */
static dp_status fetch(dp_reference *r, const dp_value *value) {
    wide *w = wide_of(r, value);
    if (w->data)
        return DP_OK;
    if (!value->is_constant)
        return dp_fail(DP_ERR_INTERNAL, "\"%s\" is read before it is computed", value->name);
    dp_status status = make_room(w);
    if (status != DP_OK)
        return status;
    if (dp_element_is_float(value->tensor.element))
        convert(w->data, DP_F64, value->tensor.base, value->tensor.element, (size_t)dp_tensor_count(&value->tensor));
    else
        memcpy(w->data, value->tensor.base, dp_value_bytes(value));
    return DP_OK;
}

/* A copy of the node whose floating-point tensors are of type `element`; attributes that name their types follow. */
typedef struct shadow {
    dp_node node;
    dp_value *values;
    void **buffers; /* of float; NULL for those that are used where they are */
    int n;
} shadow;

static void free_shadow(shadow *s) {
    for (int i = 0; s->buffers && i < s->n; i++)
        dp_free(s->buffers[i]);
    dp_free(s->values);
    dp_free(s->buffers);
    dp_free(s->node.inputs);
    dp_free(s->node.attributes);
}

static dp_status copy_end(dp_reference *r, shadow *s, int i, const dp_value *value, int element, bool is_input) {
    wide *w = wide_of(r, value);
    dp_value *copy = &s->values[i];
    *copy = (dp_value){.name = value->name, .tensor = w->tensor, .is_constant = value->is_constant};
    if (w->tensor.element != DP_F64 || element == DP_F64)
        return DP_OK;
    size_t bytes = bytes_of(&w->tensor, element);
    s->buffers[i] = dp_alloc(DP_MEM_GRAPH, bytes + 1);
    if (!s->buffers[i])
        return no_memory(bytes);
    copy->tensor.element = element;
    copy->tensor.base = s->buffers[i];
    if (is_input)
        convert(s->buffers[i], element, w->data, DP_F64, (size_t)dp_tensor_count(&w->tensor));
    return DP_OK;
}

static dp_status make_shadow(dp_reference *r, const dp_node *node, int element, shadow *s) {
    size_t ends = (size_t)(node->n_inputs + node->n_outputs), attributes = (size_t)node->n_attributes;
    memset(s, 0, sizeof *s);
    s->node = *node;
    s->n = (int)ends;
    s->values = dp_alloc(DP_MEM_GRAPH, ends * sizeof *s->values + 1);
    s->buffers = dp_alloc(DP_MEM_GRAPH, ends * sizeof *s->buffers + 1);
    s->node.inputs = dp_alloc(DP_MEM_GRAPH, ends * sizeof(void *) + 1);
    s->node.attributes = dp_alloc(DP_MEM_GRAPH, attributes * sizeof(dp_arg) + 1);
    if (!s->values || !s->buffers || !s->node.inputs || !s->node.attributes)
        return no_memory(ends * sizeof *s->values);
    memset(s->buffers, 0, ends * sizeof *s->buffers);
    s->node.outputs = s->node.inputs + node->n_inputs;
    for (int i = 0; i < s->n; i++) {
        bool is_input = i < node->n_inputs;
        const dp_value *value = is_input ? node->inputs[i] : node->outputs[i - node->n_inputs];
        s->node.inputs[i] = value ? &s->values[i] : NULL;
        dp_status status = value ? copy_end(r, s, i, value, element, is_input) : DP_OK;
        if (status != DP_OK)
            return status;
    }
    for (int i = 0; i < node->n_attributes; i++) {
        dp_arg *a = &s->node.attributes[i];
        *a = node->attributes[i];
        if (a->kind == DP_ARG_INTEGER && (strcmp(a->name, "dst_type") == 0 || strcmp(a->name, "dtype") == 0) &&
            dp_element_is_float((int)a->as.integer))
            a->as.integer = element;
    }
    return DP_OK;
}

static dp_status run_plan(const dp_node *node, bool *out_prepared) {
    dp_plan *plan;
    dp_status status = dp_node_prepare(node, &plan);
    *out_prepared = status == DP_OK;
    if (status != DP_OK)
        return status;
    void *workspace = plan->workspace_bytes ? dp_alloc(DP_MEM_GRAPH, plan->workspace_bytes + 64) : NULL;
    if (plan->workspace_bytes && !workspace) {
        dp_plan_free(plan);
        return no_memory(plan->workspace_bytes);
    }
    plan->workspace = (void *)(((uintptr_t)workspace + 63) & ~(uintptr_t)63);
    status = dp_plan_run(plan);
    plan->workspace = NULL;
    dp_plan_free(plan);
    dp_free(workspace);
    return status;
}

/* By plain loops, or by floor 5 with its tensors as `element`. */
static dp_status run_as(dp_reference *r, const dp_node *node, int element, bool *out_prepared) {
    shadow s;
    *out_prepared = true;
    dp_status status = make_shadow(r, node, element, &s);
    if (status == DP_OK && (element != DP_F64 || dp_plain_run(&s.node) != DP_OK))
        status = run_plan(&s.node, out_prepared);
    for (int i = 0; i < node->n_outputs && status == DP_OK; i++) {
        int k = node->n_inputs + i;
        if (s.buffers[k])
            convert(wide_of(r, node->outputs[i])->data, DP_F64, s.buffers[k], element,
                    (size_t)dp_tensor_count(&node->outputs[i]->tensor));
    }
    free_shadow(&s);
    return status;
}

dp_status dp_reference_step(dp_reference *r, dp_node *node, bool *out_is_double) {
    bool prepared;
    for (uint32_t i = 0; i < r->n; i++)
        if (r->wides[i].data && !r->wides[i].reads_left && !r->wides[i].is_kept)
            forget(&r->wides[i]);
    for (int i = 0; i < node->n_inputs; i++) {
        dp_status status = node->inputs[i] ? fetch(r, node->inputs[i]) : DP_OK;
        if (status != DP_OK)
            return status;
    }
    for (int i = 0; i < node->n_outputs; i++) {
        dp_status status = node->outputs[i] ? make_room(wide_of(r, node->outputs[i])) : DP_OK;
        if (status != DP_OK)
            return status;
    }
    dp_status status = run_as(r, node, DP_F64, &prepared);
    *out_is_double = status == DP_OK;
    if (!prepared)
        status = run_as(r, node, DP_F32, &prepared);
    for (int i = 0; i < node->n_inputs; i++)
        if (node->inputs[i])
            wide_of(r, node->inputs[i])->reads_left--;
    return status;
}
