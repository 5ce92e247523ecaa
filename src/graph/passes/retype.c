/*
 * Every value of the old type may have a counterpart in the new one, made when somebody first wants it: of a constant a
 * converted one, else a Cast. A node takes the new type when its plan can be made with it, so the operators' own checks
 * decide, and no list here has to know them.
 */
#include "graph/passes/retype.h"

#include <string.h>

#include "base/half.h"
#include "graph/infer.h"
#include "graph/passes/match.h"

/* A value in the old type and the same in the new one; either may be missing. By the mark of either, less 1. */
typedef struct pair {
    dp_value *old, *fresh;
    bool retyped; /* `fresh` is the model's own value, which had the old type */
} pair;

typedef struct walk {
    dp_graph *graph;
    const dp_retype *how;
    pair *pairs;
    uint32_t n_pairs, room;
    int *changes;
} walk;

bool dp_node_is_product(const dp_node *node) {
    static const char *const names[] = {"Conv2D",   "Conv2DTransposeD", "Conv3D",        "MatMul",
                                        "MatMulV2", "BatchMatMul",      "BatchMatMulV2", "GEMM"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (dp_node_is(node, names[i]))
            return true;
    return false;
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
    *p = value->tensor.element == w->how->from ? (pair){.old = value} : (pair){.fresh = value};
    return p;
}

static float number(const void *base, int element, int64_t i) {
    if (element == DP_F32)
        return ((const float *)base)[i];
    uint16_t bits = ((const uint16_t *)base)[i];
    return element == DP_F16 ? dp_f32_from_f16(bits) : dp_f32_from_bf16(bits);
}

/* A constant in another type; NULL with a sentence when memory is exhausted. */
static dp_value *converted(walk *w, const dp_value *constant, int element) {
    const dp_tensor *t = &constant->tensor;
    dp_value *made = dp_value_constant(w->graph->model, NULL, element, t->dims, t->rank, NULL);
    if (!made)
        return NULL;
    void *to = made->tensor.base;
    for (int64_t i = 0, n = dp_tensor_count(t); i < n; i++) {
        float x = number(t->base, t->element, i);
        if (element == DP_F32)
            ((float *)to)[i] = x;
        else
            ((uint16_t *)to)[i] = element == DP_F16 ? dp_f16_from_f32(x) : dp_bf16_from_f32(x);
    }
    return made;
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

/* The value in the new type, or in the old one; NULL with a sentence when memory is exhausted. */
static dp_value *in_type(walk *w, dp_node *before, dp_value *value, bool fresh) {
    pair *p = pair_of(w, value);
    if (!p)
        return NULL;
    if (!(fresh ? p->fresh : p->old)) {
        int element = fresh ? w->how->to : w->how->from;
        dp_value *have = fresh ? p->old : p->fresh;
        dp_value *other = have->is_constant ? converted(w, have, element) : cast(w, before, have, element);
        if (!other)
            return NULL;
        other->mark = value->mark;
        *(fresh ? &p->fresh : &p->old) = other;
    }
    return fresh ? p->fresh : p->old;
}

static bool is_old(const walk *w, const dp_value *value) {
    return value && value->tensor.element == w->how->from;
}
static bool is_retyped(const walk *w, const dp_value *value) {
    return value && value->mark && w->pairs[value->mark - 1].retyped && w->pairs[value->mark - 1].fresh == value;
}
/* A value of the old type, also if this walk has given it the new one. */
static bool is_ours(const walk *w, const dp_value *value) {
    return is_old(w, value) || is_retyped(w, value);
}

static bool follows(const walk *w, const dp_node *node) {
    for (int i = 0; i < node->n_inputs; i++) {
        const dp_value *value = node->inputs[i];
        if (value && !value->is_constant && value->mark && w->pairs[value->mark - 1].fresh)
            return true;
    }
    return false;
}

/* Whether the node's plan can be made in the new type: it is tried, with copies in the place of its values. */
static bool can_be_retyped(walk *w, const dp_node *node) {
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
        dp_value_shape(&copies[i], w->how->to, value->tensor.dims, value->tensor.rank);
        if (value->is_constant) { /* its numbers may be read */
            const dp_value *fresh = in_type(w, NULL, value, true);
            if (!fresh)
                return false;
            copies[i].tensor.base = fresh->tensor.base;
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

static dp_status set_inputs(walk *w, dp_node *node, bool fresh) {
    for (int i = 0; i < node->n_inputs; i++) {
        if (fresh ? !is_old(w, node->inputs[i]) : !is_retyped(w, node->inputs[i]))
            continue;
        dp_value *value = in_type(w, node, node->inputs[i], fresh);
        if (!value)
            return DP_ERR_OUT_OF_MEMORY;
        node->inputs[i] = value;
    }
    return DP_OK;
}

/* Results in the new type; what leaves the graph is cast to the old one under its old name. */
static dp_status set_outputs(walk *w, dp_node *node) {
    for (int i = 0; i < node->n_outputs; i++) {
        dp_value *old = node->outputs[i];
        if (!is_old(w, old))
            continue;
        if (!dp_graph_gives(w->graph, old)) {
            dp_value_shape(old, w->how->to, old->tensor.dims, old->tensor.rank);
            pair *p = pair_of(w, old);
            if (!p)
                return DP_ERR_OUT_OF_MEMORY;
            p->retyped = true;
            continue;
        }
        dp_value *fresh = dp_value_new(w->graph->model, NULL);
        dp_node *back = fresh ? dp_node_new(w->graph, node->next, "Cast", old->name, 1, 1) : NULL;
        if (!back || dp_node_set_integer(back, "dst_type", w->how->from) != DP_OK)
            return DP_ERR_OUT_OF_MEMORY;
        dp_value_shape(fresh, w->how->to, old->tensor.dims, old->tensor.rank);
        dp_node_output(node, i, fresh);
        back->inputs[0] = fresh;
        dp_node_output(back, 0, old);
        pair *p = pair_of(w, old);
        if (!p)
            return DP_ERR_OUT_OF_MEMORY;
        p->fresh = fresh;
        fresh->mark = old->mark;
        ++*w->changes;
    }
    return DP_OK;
}

/* Operators want one type, so factors that were rounded to the new one are cast back. */
static dp_status round_factors(walk *w, dp_node *node) {
    for (int i = 0; i < 2 && i < node->n_inputs; i++) {
        if (!is_old(w, node->inputs[i]))
            continue;
        dp_value *fresh = in_type(w, node, node->inputs[i], true), *back = NULL;
        if (fresh)
            back = fresh->is_constant ? converted(w, fresh, w->how->from) : cast(w, node, fresh, w->how->from);
        if (!back)
            return DP_ERR_OUT_OF_MEMORY;
        node->inputs[i] = back;
        ++*w->changes;
    }
    return DP_OK;
}

/* A Cast of the model's own between the two types. */
static bool is_between(const walk *w, const dp_node *node) {
    if (!dp_node_is(node, "Cast"))
        return false;
    int a = node->inputs[0]->tensor.element, b = node->outputs[0]->tensor.element, from = w->how->from, to = w->how->to;
    return (a == from || a == to) && (b == from || b == to);
}

/* What it would make may be there already. */
static dp_status visit_between(walk *w, dp_node *node) {
    dp_value *from = node->inputs[0], *to = node->outputs[0];
    if (is_old(w, to) && !is_old(w, from)) {
        pair *p = pair_of(w, to);
        if (!p)
            return DP_ERR_OUT_OF_MEMORY;
        p->fresh = from;
        if (!from->mark)
            from->mark = to->mark;
    } else if (from->mark && !from->is_constant) {
        const pair *p = &w->pairs[from->mark - 1];
        dp_value *same = is_old(w, to) ? p->old : p->fresh;
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
static dp_status keep_for_bodies(walk *w, dp_node *node) {
    for (uint32_t i = 0; i < w->n_pairs; i++) {
        dp_value *fresh = w->pairs[i].fresh;
        if (!w->pairs[i].retyped)
            continue;
        dp_value *old = in_type(w, node, fresh, false);
        if (!old)
            return DP_ERR_OUT_OF_MEMORY;
        for (int b = 0; b < node->n_bodies; b++)
            dp_graph_replace(node->bodies[b].graph, fresh, old);
    }
    return DP_OK;
}

static dp_status visit(walk *w, dp_node *node) {
    if (is_between(w, node))
        return visit_between(w, node);
    dp_retype_choice what = node->n_bodies ? DP_RETYPE_NOTHING : w->how->choose(w->how, node, follows(w, node));
    dp_status status = DP_OK;
    if (what == DP_RETYPE_NODE && dp_node_is(node, "Cast") && is_old(w, node->outputs[0])) { /* from an integer */
        status = dp_node_set_integer(node, "dst_type", w->how->to);
        ++*w->changes;
        return status == DP_OK ? set_outputs(w, node) : status;
    }
    if (what == DP_RETYPE_NODE && can_be_retyped(w, node)) {
        status = set_inputs(w, node, true);
        ++*w->changes;
        return status == DP_OK ? set_outputs(w, node) : status;
    }
    status = set_inputs(w, node, false);
    if (status == DP_OK && what == DP_RETYPE_FACTORS)
        status = round_factors(w, node);
    return status == DP_OK && node->n_bodies ? keep_for_bodies(w, node) : status;
}

dp_status dp_retype_graph(dp_graph *graph, const dp_retype *how, int *out_changes) {
    walk w = {.graph = graph, .how = how, .changes = out_changes};
    dp_graph_clear_marks(graph);
    dp_status status = DP_OK;
    for (dp_node *node = graph->first, *next; node && status == DP_OK; node = next) {
        next = node->next;
        status = visit(&w, node);
    }
    dp_free(w.pairs);
    return status;
}
