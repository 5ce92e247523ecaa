/*
 * lower.h - ONNX nodes turned into nodes of the operator types of src/ops/aclop.tsv, one after the other, with shapes.
 */
#ifndef DOPPEL_GRAPH_ONNX_LOWER_H
#define DOPPEL_GRAPH_ONNX_LOWER_H

#include "graph/graph.h"

/* Where lowering stopped, because what comes next is known only when the model runs. */
typedef struct dp_onnx_cut {
    bool stopped;    /* false: every node is lowered */
    bool finds_dims; /* the nodes before it find the dims of their outputs when they run */
    bool runs_apart; /* `node` is a Loop or Scan */
    uint32_t wanted; /* bit i: the contents of input i of `node` must be known */
    dp_node *node;   /* the first that is not lowered; NULL: none is left */
} dp_onnx_cut;

/* DP_ERR_UNSUPPORTED with a sentence that names all nodes of the graph and those inside whose type is not known, at once. */
dp_status dp_onnx_check(const dp_graph *graph, int opset);

/*
 * The graph's nodes in order, as far as possible: shapes of its inputs must be known, and dp_onnx_check have passed. What depends on
 * constants only is computed. The nodes from *out_cut->node on stay as they were. DP_ERR_UNSUPPORTED with a sentence that names all
 * nodes that are refused and do not depend on others that are, each with its reason.
 */
dp_status dp_onnx_lower(dp_graph *graph, int opset, dp_onnx_cut *out_cut);

/* One ONNX node at work. It is taken out of the graph afterwards; new nodes are put before it. */
typedef struct dp_lowering {
    dp_node *node;
    dp_model *model;
    int opset;
    const char *detail; /* of the row */
    dp_status status;   /* the first failure of the functions below; dp_low_end returns it */
    uint32_t wanted;    /* as in dp_onnx_cut, and so are the next two */
    bool runs_apart, finds_dims;
} dp_lowering;

/* One row of rows.def: ONNX type, first version of the operator set with this meaning, how. The last row that fits
 * counts. */
typedef struct dp_onnx_row {
    const char *type;
    int since;
    dp_status (*lower)(dp_lowering *l);
    const char *detail;
} dp_onnx_row;

extern const dp_onnx_row dp_onnx_rows[];
extern const unsigned dp_onnx_rows_count;

#define ROW(type, since, function, detail) dp_status dp_low_##function(dp_lowering *l);
#include "graph/onnx/rows.def"

/* Input i of the ONNX node; NULL: absent. */
static inline dp_value *dp_low_in(const dp_lowering *l, int i) {
    return i < l->node->n_inputs ? l->node->inputs[i] : NULL;
}
/* Rank of input i, which is known. */
static inline int dp_low_rank(const dp_lowering *l, int i) {
    return dp_low_in(l, i)->tensor.rank;
}
/* Fails unless inputs 0 to least - 1 are there. */
dp_status dp_low_need(dp_lowering *l, int least);
/* True when input i is a constant. Otherwise the row must give up: it is tried again when the contents are known. */
bool dp_low_want(dp_lowering *l, int i);
/* The integers of constant input i, at most `room`, and how many; -1 when it is absent, no constant or too long (l->status). */
int dp_low_numbers(dp_lowering *l, int i, int64_t *out_numbers, int room);
/* The value of constant input i, of one element; false when it is no such (l->status). */
bool dp_low_number(dp_lowering *l, int i, double *out);
/* The integers of attribute `name`, of input i if that is there instead, or none: 0. */
int dp_low_axes(dp_lowering *l, const char *name, int i, int64_t *out_numbers, int room);

/* A new node with its inputs (dp_value *, NULL: absent). NULL when memory is exhausted; the others accept that. */
dp_node *dp_low_begin(dp_lowering *l, const char *type, int n_outputs, int n_inputs, ...);
void dp_low_integer(dp_lowering *l, dp_node *node, const char *name, int64_t value);
void dp_low_real(dp_lowering *l, dp_node *node, const char *name, double value);
void dp_low_text(dp_lowering *l, dp_node *node, const char *name, const char *value);
void dp_low_integers(dp_lowering *l, dp_node *node, const char *name, const int64_t *values, int count);
/* Output i of the node becomes output k of the ONNX node, with this element type (DP_EL_NONE: that of the first input).
 */
void dp_low_give(dp_lowering *l, dp_node *node, int i, int k, int element);
/* Output i is a new value of this element type. False when memory is exhausted. */
bool dp_low_output(dp_lowering *l, dp_node *node, int i, int element);
/*
 * Outputs that were not given become new values of the type of the first input. Shapes are worked out, and the node is
 * computed if it depends on constants only. Output 0 of the node; NULL after a failure.
 */
dp_value *dp_low_end(dp_lowering *l, dp_node *node);
/* dp_low_give(l, node, 0, 0, element), dp_low_end and the status. */
dp_status dp_low_last(dp_lowering *l, dp_node *node, int element);

/*
 * An ONNX node behind the one at work, to be lowered after it. Needed where shapes that the row goes on with are found when
 * its first nodes run. Inputs follow as in dp_low_begin. NULL when memory is exhausted.
 */
dp_node *dp_low_later(dp_lowering *l, const char *type, int n_outputs, int n_inputs, ...);

/* Constants: a scalar of the type of `like`, and a list of integers. NULL after a failure. */
dp_value *dp_low_scalar(dp_lowering *l, const dp_value *like, double value);
dp_value *dp_low_list(dp_lowering *l, const int64_t *numbers, int count);
/* A failure that names the ONNX node. */
dp_status dp_low_fail(dp_lowering *l, dp_status status, const char *format, ...) DP_PRINTF(3, 4);

#endif
