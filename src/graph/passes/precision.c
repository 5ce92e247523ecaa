/*
 * Floats become half or bfloat16 where --precision_mode asks for it and the operator has the type.
 *
 * One walk in the order of the nodes. Every float value may have a counterpart in the other type, made when somebody first
 * wants it: of a constant a converted one, else a Cast. A node takes the low type when its plan can be made with it, so the
 * operators' own checks decide, and no list here has to know them. Outputs of the graph, and what bodies of control flow
 * read, stay as they were.
 */
#include <string.h>

#include "base/half.h"
#include "graph/infer.h"
#include "graph/passes/passes.h"
#include "graph/precision.h"

/* A float value and the same in the low type; one of them may be missing. By the mark of either, less 1. */
typedef struct pair {
    dp_value *wide, *low;
} pair;

typedef struct walk {
    dp_graph *graph;
    const dp_precision *how;
    pair *pairs;
    uint32_t n_pairs, room;
    int *changes;
} walk;

typedef enum choice { WIDE, LOW, LOW_INPUTS } choice;

static bool is_in(const char *type, const char *const *names, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (strcmp(type, names[i]) == 0)
            return true;
    return false;
}

static bool is_matrix(const char *type) {
    static const char *const names[] = {"Conv2D",      "Conv2DTransposeD", "Conv3D",        "MatMul", "MatMulV2",
                                        "BatchMatMul", "BatchMatMulV2",    "GEMM"};
    return is_in(type, names, sizeof names / sizeof names[0]);
}

/* Sums over many elements, and functions that magnify small differences. */
static bool is_delicate(const char *type) {
    static const char *const names[] = {"SoftmaxV2",  "LogSoftmaxV2", "LayerNormV3", "LayerNorm", "BatchNorm", "InstanceNorm",
                                        "GroupNorm",  "Exp",          "Expm1",       "Log",       "Log1p",     "Pow",
                                        "SoftplusV2", "Erf",          "Erfc",        "Rsqrt",     "Sqrt",      "Reciprocal",
                                        "Cumsum",     "CumsumD",      "Mish"};
    return strncmp(type, "Reduce", 6) == 0 || is_in(type, names, sizeof names / sizeof names[0]);
}

static pair *pair_of(walk *w, dp_value *value) {
    if (value->mark)
        return &w->pairs[value->mark - 1];
    if (w->n_pairs == w->room) {
        uint32_t room = w->room ? 2 * w->room : 64;
        pair *more = dp_realloc(DP_MEM_GRAPH, w->pairs, room * sizeof *more);
        if (!more) {
            dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for the types of %u values: free some", room);
            return NULL;
        }
        w->pairs = more;
        w->room = room;
    }
    pair *p = &w->pairs[w->n_pairs];
    value->mark = ++w->n_pairs;
    *p = value->tensor.element == DP_F32 ? (pair){value, NULL} : (pair){NULL, value};
    return p;
}

static dp_value *converted(walk *w, const dp_value *constant) {
    const dp_tensor *t = &constant->tensor;
    dp_value *low = dp_value_constant(w->graph->model, NULL, w->how->low, t->dims, t->rank, NULL);
    const float *from = t->base;
    if (!low)
        return NULL;
    uint16_t *to = low->tensor.base;
    for (int64_t i = 0, n = dp_tensor_count(t); i < n; i++)
        to[i] = w->how->low == DP_F16 ? dp_f16_from_f32(from[i]) : dp_bf16_from_f32(from[i]);
    return low;
}

static dp_value *cast(walk *w, dp_node *before, dp_value *from, int element) {
    dp_value *to = dp_value_new(w->graph->model, NULL);
    dp_node *node = to ? dp_node_new(w->graph, before, "Cast", to->name, 1, 1) : NULL;
    if (!node || dp_node_set_integer(node, "dst_type", element) != DP_OK)
        return NULL;
    dp_value_shape(to, element, from->tensor.dims, from->tensor.rank);
    node->inputs[0] = from;
    dp_node_output(node, 0, to);
    ++*w->changes;
    return to;
}

/* The value in the type; NULL with a sentence when memory is exhausted. */
static dp_value *in_type(walk *w, dp_node *before, dp_value *value, bool low) {
    pair *p = pair_of(w, value);
    if (!p)
        return NULL;
    if (!(low ? p->low : p->wide)) {
        dp_value *other = low && p->wide->is_constant ? converted(w, p->wide)
                                                      : cast(w, before, low ? p->wide : p->low, low ? w->how->low : DP_F32);
        if (!other)
            return NULL;
        other->mark = value->mark;
        *(low ? &p->low : &p->wide) = other;
    }
    return low ? p->low : p->wide;
}

static bool is_float(const dp_value *value) {
    return value && value->tensor.element == DP_F32;
}
/* A float, or what stands for one in the low type by this pass. */
static bool is_ours(const walk *w, const dp_value *value) {
    return is_float(value) || (value && value->mark && value->tensor.element == w->how->low);
}

static bool is_output(const dp_graph *graph, const dp_value *value) {
    for (int i = 0; i < graph->n_outputs; i++)
        if (graph->outputs[i] == value)
            return true;
    return false;
}

/* Whether an input that is no constant has the low type already. */
static bool follows(const walk *w, const dp_node *node) {
    for (int i = 0; i < node->n_inputs; i++) {
        const dp_value *value = node->inputs[i];
        if (value && !value->is_constant && value->mark && w->pairs[value->mark - 1].low)
            return true;
    }
    return false;
}

static choice choose(const walk *w, const dp_node *node) {
    switch (w->how->mode) {
    case DP_PRECISION_LOW:
        return LOW;
    case DP_PRECISION_MIXED:
        return is_matrix(node->type) || (!is_delicate(node->type) && follows(w, node)) ? LOW : WIDE;
    case DP_PRECISION_MATRIX:
        return is_matrix(node->type) ? LOW : WIDE;
    case DP_PRECISION_MATRIX_INPUTS:
        return is_matrix(node->type) ? LOW_INPUTS : WIDE;
    default:
        return WIDE;
    }
}

/*
 * Whether the node's plan can be made when its float inputs, and outputs, have the low type: it is tried, with copies of
 * the values in the place of its own.
 */
static bool can_be_low(walk *w, const dp_node *node) {
    enum { ENDS = 64 };
    dp_value copies[ENDS], *ends[ENDS];
    dp_node trial = *node;
    bool any = false;
    if (node->n_inputs + node->n_outputs > ENDS)
        return false;
    for (int i = 0; i < node->n_inputs + node->n_outputs; i++) {
        dp_value *value = i < node->n_inputs ? node->inputs[i] : node->outputs[i - node->n_inputs];
        ends[i] = value;
        if (!is_ours(w, value))
            continue;
        any = true;
        copies[i] = *value;
        copies[i].tensor.element = w->how->low;
        if (value->is_constant && is_float(value)) { /* its numbers may be read */
            const dp_value *low = in_type(w, NULL, value, true);
            if (!low)
                return false;
            copies[i].tensor.base = low->tensor.base;
        }
        ends[i] = &copies[i];
    }
    trial.inputs = ends;
    trial.outputs = ends + node->n_inputs;
    dp_plan *plan = NULL;
    bool fits = any && dp_node_prepare(&trial, &plan) == DP_OK;
    dp_plan_free(plan);
    return fits;
}

static dp_status set_inputs(walk *w, dp_node *node, bool low) {
    for (int i = 0; i < node->n_inputs; i++) {
        if (!is_ours(w, node->inputs[i]) || (!low && is_float(node->inputs[i])))
            continue;
        dp_value *value = in_type(w, node, node->inputs[i], low);
        if (!value)
            return DP_ERR_OUT_OF_MEMORY;
        node->inputs[i] = value;
    }
    return DP_OK;
}

/* Results in the low type; what leaves the graph is widened again under its old name. */
static dp_status set_outputs(walk *w, dp_node *node) {
    for (int i = 0; i < node->n_outputs; i++) {
        dp_value *old = node->outputs[i];
        if (!is_float(old))
            continue;
        if (!is_output(w->graph, old)) {
            old->tensor.element = w->how->low;
            if (!pair_of(w, old))
                return DP_ERR_OUT_OF_MEMORY;
            continue;
        }
        dp_value *low = dp_value_new(w->graph->model, NULL);
        dp_node *widen = low ? dp_node_new(w->graph, node->next, "Cast", old->name, 1, 1) : NULL;
        if (!widen || dp_node_set_integer(widen, "dst_type", DP_F32) != DP_OK)
            return DP_ERR_OUT_OF_MEMORY;
        dp_value_shape(low, w->how->low, old->tensor.dims, old->tensor.rank);
        dp_node_output(node, i, low);
        widen->inputs[0] = low;
        dp_node_output(widen, 0, old);
        pair *p = pair_of(w, old);
        if (!p)
            return DP_ERR_OUT_OF_MEMORY;
        p->low = low;
        low->mark = old->mark;
        ++*w->changes;
    }
    return DP_OK;
}

/* A product whose factors are rounded and whose result is float. Operators want one type, so the factors are widened again. */
static dp_status round_inputs(walk *w, dp_node *node) {
    for (int i = 0; i < 2 && i < node->n_inputs; i++) {
        if (!is_float(node->inputs[i]))
            continue;
        dp_value *low = in_type(w, node, node->inputs[i], true), *wide = NULL;
        if (low && low->is_constant) {
            const dp_tensor *t = &low->tensor;
            wide = dp_value_constant(w->graph->model, NULL, DP_F32, t->dims, t->rank, NULL);
            const uint16_t *from = t->base;
            for (int64_t k = 0, n = dp_tensor_count(t); wide && k < n; k++)
                ((float *)wide->tensor.base)[k] =
                    w->how->low == DP_F16 ? dp_f32_from_f16(from[k]) : dp_f32_from_bf16(from[k]);
        } else if (low) {
            wide = cast(w, node, low, DP_F32);
        }
        if (!wide)
            return DP_ERR_OUT_OF_MEMORY;
        node->inputs[i] = wide;
        ++*w->changes;
    }
    return DP_OK;
}

/* A Cast of the model's own between the two types. */
static bool is_between(const walk *w, const dp_node *node) {
    if (strcmp(node->type, "Cast") != 0)
        return false;
    int from = node->inputs[0]->tensor.element, to = node->outputs[0]->tensor.element, low = w->how->low;
    return (from == DP_F32 || from == low) && (to == DP_F32 || to == low);
}

/* What it would make may be there already. */
static dp_status visit_between(walk *w, dp_node *node) {
    dp_value *from = node->inputs[0], *to = node->outputs[0];
    if (is_float(to) && !is_float(from) && !from->mark) {
        pair *p = pair_of(w, to);
        if (!p)
            return DP_ERR_OUT_OF_MEMORY;
        p->low = from;
        from->mark = to->mark;
    } else if (from->mark && !from->is_constant) {
        pair *p = &w->pairs[from->mark - 1];
        dp_value *same = is_float(to) ? p->wide : p->low;
        if (same && same != to) {
            node->inputs[0] = same;
            node->type = "Identity";
            node->n_attributes = 0;
            ++*w->changes;
        }
    }
    return DP_OK;
}

/* Values that graphs inside the node read by name must be what they were. */
static dp_status widen_for_bodies(walk *w, dp_node *node) {
    for (uint32_t i = 0; i < w->n_pairs; i++) {
        dp_value *low = w->pairs[i].low;
        bool only_low = low && !w->pairs[i].wide;
        if (!only_low || low->producer == NULL)
            continue;
        dp_value *wide = in_type(w, node, low, false);
        if (!wide)
            return DP_ERR_OUT_OF_MEMORY;
        for (int b = 0; b < node->n_bodies; b++)
            dp_graph_replace(node->bodies[b].graph, low, wide);
    }
    return DP_OK;
}

static dp_status visit(walk *w, dp_node *node) {
    if (is_between(w, node))
        return visit_between(w, node);
    choice what = node->n_bodies ? WIDE : choose(w, node);
    dp_status status = DP_OK;
    if (what == LOW && strcmp(node->type, "Cast") == 0 && is_float(node->outputs[0])) { /* from an integer */
        status = dp_node_set_integer(node, "dst_type", w->how->low);
        ++*w->changes;
        return status == DP_OK ? set_outputs(w, node) : status;
    }
    if (what == LOW && can_be_low(w, node)) {
        status = set_inputs(w, node, true);
        ++*w->changes;
        return status == DP_OK ? set_outputs(w, node) : status;
    }
    status = set_inputs(w, node, false);
    if (status == DP_OK && what == LOW_INPUTS)
        status = round_inputs(w, node);
    return status == DP_OK && node->n_bodies ? widen_for_bodies(w, node) : status;
}

static void clear_marks(dp_graph *graph) {
    for (int i = 0; i < graph->n_inputs; i++)
        graph->inputs[i]->mark = 0;
    for (const dp_node *node = graph->first; node; node = node->next) {
        for (int i = 0; i < node->n_inputs; i++)
            if (node->inputs[i])
                node->inputs[i]->mark = 0;
        for (int i = 0; i < node->n_outputs; i++)
            if (node->outputs[i])
                node->outputs[i]->mark = 0;
    }
}

dp_status dp_pass_precision(dp_graph *graph, int *out_changes) {
    walk w = {.graph = graph, .how = graph->model->precision, .changes = out_changes};
    if (!w.how || w.how->mode == DP_PRECISION_ORIGIN || graph->outer)
        return DP_OK;
    clear_marks(graph);
    dp_status status = DP_OK;
    for (dp_node *node = graph->first, *next; node && status == DP_OK; node = next) {
        next = node->next;
        status = visit(&w, node);
    }
    dp_free(w.pairs);
    return status;
}
