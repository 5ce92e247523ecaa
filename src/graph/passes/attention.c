/*
 * Attention that a model spells out, softmax(factor * q k^T) v, becomes one node, which never has a whole matrix of
 * scores. Tensors are [heads, rows, depth] with or without a batch in front; where all three were brought into that
 * order by a transpose, the node reads what lies before it, and likewise it writes what a transpose behind it makes.
 */
#include <string.h>

#include "graph/passes/match.h"
#include "graph/passes/passes.h"

enum { RANK_LEAST = 3, RANK_MOST = 4 };

/* A tensor with its rows before its heads, or NULL; and with its heads first, or NULL. */
typedef struct operand {
    dp_value *by_row, *by_head;
} operand;

typedef struct attention {
    operand q, k, v;
    double factor;
    int rank;
    int64_t heads;
} attention;

/* Whether the node is a transpose that swaps these two dims, counted from the heads. */
static bool swaps(const dp_node *node, int a, int b) {
    const dp_arg *perm = dp_node_is(node, "TransposeD") ? dp_node_attribute(node, "perm") : NULL;
    if (!perm || perm->kind != DP_ARG_INT_LIST || perm->count < RANK_LEAST)
        return false;
    const int64_t before = perm->count - RANK_LEAST;
    for (int64_t d = 0; d < perm->count; d++) {
        const int64_t from = d == before + a ? before + b : d == before + b ? before + a : d;
        if (perm->as.integers[d] != from)
            return false;
    }
    return true;
}

static operand heads_first(dp_value *x) {
    return (operand){.by_head = x, .by_row = swaps(x->producer, 0, 1) ? x->producer->inputs[0] : NULL};
}

/* Of the key as the product reads it, [heads, depth, rows]. */
static bool find_key(dp_value *x, operand *out) {
    const dp_node *node = x->producer;
    if (swaps(node, 1, 2)) {
        *out = heads_first(node->inputs[0]);
        return true;
    }
    const dp_arg *perm = dp_node_is(node, "TransposeD") ? dp_node_attribute(node, "perm") : NULL;
    if (!perm || perm->kind != DP_ARG_INT_LIST || perm->count < RANK_LEAST)
        return false;
    const int64_t before = perm->count - RANK_LEAST, *from = perm->as.integers + before;
    if ((before && perm->as.integers[0] != 0) || from[0] != before + 1 || from[1] != before + 2 || from[2] != before)
        return false;
    *out = (operand){.by_row = node->inputs[0]};
    return true;
}

static bool is_product(const dp_node *node, int rank) {
    return dp_node_is(node, "BatchMatMulV2") && node->inputs[0] && node->inputs[1] &&
           (node->n_inputs < 3 || !node->inputs[2]) && !dp_node_integer(node, "adj_x1", 0) &&
           node->inputs[0]->tensor.rank == rank && node->inputs[1]->tensor.rank == rank;
}

/* x, without the factor that it was multiplied by. */
static dp_value *without_factor(dp_value *x, double *factor) {
    dp_value *inner;
    double number;
    if (!dp_node_multiplies(x->producer, &inner, &number) || !dp_value_same_shape(inner, x))
        return x;
    *factor *= number;
    return inner;
}

/* Sizes of [.., heads, rows, depth]. */
static bool has_sizes(const dp_value *x, const dp_tensor *like, int64_t rows, int64_t depth) {
    const dp_tensor *t = &x->tensor;
    const int before = like->rank - RANK_LEAST;
    return t->rank == like->rank && t->element == like->element && (!before || t->dims[0] == like->dims[0]) &&
           t->dims[before] == like->dims[before] && t->dims[before + 1] == rows && t->dims[before + 2] == depth;
}

/* Whether the product `node` is one of attention's weights by values. */
static bool find(const dp_node *node, attention *a) {
    const int rank = dp_node_is(node, "BatchMatMulV2") ? node->outputs[0]->tensor.rank : 0;
    if (rank < RANK_LEAST || rank > RANK_MOST || !is_product(node, rank) || dp_node_integer(node, "adj_x2", 0) ||
        !dp_value_is_real(node->outputs[0]))
        return false;
    const dp_node *softmax = node->inputs[0]->producer;
    const dp_arg *axes = dp_node_is(softmax, "SoftmaxV2") ? dp_node_attribute(softmax, "axes") : NULL;
    if (!axes || axes->kind != DP_ARG_INT_LIST || axes->count != 1 ||
        (axes->as.integers[0] != -1 && axes->as.integers[0] != rank - 1))
        return false;
    *a = (attention){.factor = 1, .rank = rank};
    const dp_value *scores = without_factor(softmax->inputs[0], &a->factor);
    const dp_node *product = scores->producer;
    if (!product || !is_product(product, rank))
        return false;
    dp_value *q = without_factor(product->inputs[0], &a->factor), *k = without_factor(product->inputs[1], &a->factor);
    a->q = heads_first(q);
    a->v = heads_first(node->inputs[1]);
    if (dp_node_integer(product, "adj_x2", 0))
        a->k = heads_first(k);
    else if (!find_key(k, &a->k))
        return false;
    /* no part of it is broadcast */
    const dp_tensor *t = &q->tensor, *s = &scores->tensor;
    const int64_t keys = s->dims[rank - 1], depth = t->dims[rank - 1];
    a->heads = t->dims[rank - 3];
    if (!has_sizes(scores, t, t->dims[rank - 2], keys) ||
        !has_sizes(node->inputs[1], t, keys, node->outputs[0]->tensor.dims[rank - 1]))
        return false;
    if (a->k.by_head)
        return has_sizes(a->k.by_head, t, keys, depth);
    const int64_t *by_row = a->k.by_row->tensor.dims;
    return a->k.by_row->tensor.element == t->element && (rank == RANK_LEAST || by_row[0] == t->dims[0]) &&
           by_row[rank - 3] == keys && by_row[rank - 2] == a->heads && by_row[rank - 1] == depth;
}

/* The key with its heads first, where nothing has it so. */
static dp_value *turn_key(dp_node *before, dp_value *by_row) {
    const int rank = by_row->tensor.rank, at = rank - RANK_LEAST;
    dp_node *made = dp_node_new(before->graph, before, "TransposeD", by_row->name, 1, 1);
    dp_value *turned = made ? dp_value_new(before->graph->model, NULL) : NULL;
    if (!turned)
        return NULL;
    int64_t perm[RANK_MOST] = {0, 1, 2, 3}, dims[RANK_MOST];
    perm[at] = at + 1;
    perm[at + 1] = at;
    for (int d = 0; d < rank; d++)
        dims[d] = by_row->tensor.dims[perm[d]];
    dp_value_shape(turned, by_row->tensor.element, dims, rank);
    made->inputs[0] = by_row;
    dp_node_output(made, 0, turned);
    return dp_node_set_integers(made, "perm", perm, rank) == DP_OK ? turned : NULL;
}

/* The only reader of the result, if it is the transpose that puts rows before heads. */
static dp_node *transpose_behind(const dp_graph *graph, const dp_value *result) {
    dp_node *found = NULL;
    int readers = dp_graph_gives(graph, result);
    for (dp_node *node = graph->first; node; node = node->next) {
        for (int i = 0; i < node->n_inputs; i++)
            if (node->inputs[i] == result) {
                readers++;
                found = node;
            }
        readers += node->n_bodies; /* graphs inside may read it, too */
    }
    return readers == 1 && found && swaps(found, 0, 1) ? found : NULL;
}

static dp_status replace(dp_node *node, const attention *a) {
    const bool by_row = a->q.by_row && a->k.by_row && a->v.by_row;
    dp_node *behind = transpose_behind(node->graph, node->outputs[0]), *at = behind ? behind : node;
    dp_value *k = by_row ? a->k.by_row : a->k.by_head ? a->k.by_head : turn_key(node, a->k.by_row);
    if (!k)
        return DP_ERR_OUT_OF_MEMORY;
    static const char *const names[2][2][2] = {{{"NTD", "NTD_TND"}, {"TND_NTD", "TND"}},
                                               {{"BNSD", "BNSD_BSND"}, {"BSND_BNSD", "BSND"}}};
    dp_value *inputs[] = {by_row ? a->q.by_row : a->q.by_head, k, by_row ? a->v.by_row : a->v.by_head};
    dp_node *made = dp_node_replace(at, "Attention", inputs, 3);
    if (!made)
        return DP_ERR_OUT_OF_MEMORY;
    if (behind)
        dp_node_remove(node);
    dp_status status = dp_node_set_integer(made, "heads", a->heads);
    if (status == DP_OK)
        status = dp_node_set_real(made, "scale", a->factor);
    if (status == DP_OK)
        status = dp_node_set_text(made, "layout", names[a->rank == RANK_MOST][by_row][behind != NULL]);
    return status;
}

dp_status dp_pass_attention(dp_graph *graph, int *out_changes) {
    attention a;
    for (dp_node *node = graph->first; node;) {
        if (!find(node, &a)) {
            node = node->next;
            continue;
        }
        dp_status status = replace(node, &a);
        if (status != DP_OK)
            return status;
        ++*out_changes;
        node = graph->first; /* nodes behind this one were taken out */
    }
    return DP_OK;
}
