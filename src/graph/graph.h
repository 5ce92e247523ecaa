/*
 * graph.h - a model: nodes in the order in which they run, and the values that go between them.
 *
 * An importer builds it, passes change it, a program runs it. A node's type is an operator type of src/ops/aclop.tsv; in a
 * graph that was just read it is the file format's own. Everything lives in the model's arena until dp_model_free.
 * One thread at a time.
 */
#ifndef DOPPEL_GRAPH_GRAPH_H
#define DOPPEL_GRAPH_GRAPH_H

#include <stdio.h>

#include "base/arena.h"
#include "ops/op.h"

/* Ends the name of a value that has the elements of another, [batch, channels, height, width], with its channels last. */
#define DP_NAME_LAST "%last"

enum { DP_UNKNOWN = -1 }; /* a rank or a dim that is not known before the model runs */

struct dp_node;
struct dp_graph;

typedef struct dp_value {
    const char *name; /* unique among the values of its graph and of those around it */
    dp_tensor tensor; /* contiguous; element may be DP_EL_NONE, rank and dims may be DP_UNKNOWN */
    const char *symbols[DP_TENSOR_DIMS]; /* what the model calls an unknown dim; NULL: nothing */
    bool is_constant;                    /* tensor.base has its contents */
    struct dp_node *producer;            /* NULL for constants and for inputs of the graph */
    uint32_t mark;                       /* for the pass at work */
} dp_value;

typedef struct dp_body {
    const char *name; /* of the attribute: "then_branch" */
    struct dp_graph *graph;
} dp_body;

typedef struct dp_node {
    const char *name, *type;
    dp_value **inputs, **outputs; /* NULL: an optional one that is absent */
    dp_arg *attributes;           /* INTEGER, REAL, TEXT, INT_LIST, FLOAT_LIST */
    dp_body *bodies;              /* graphs inside: branches of If, bodies of Loop and Scan */
    int n_inputs, n_outputs, n_attributes, n_bodies;
    int attributes_room;
    struct dp_graph *graph;
    struct dp_node *previous, *next;
} dp_node;

typedef struct dp_graph {
    const char *name;
    struct dp_model *model;
    struct dp_graph *outer; /* the graph whose node has this one as a body */
    dp_node *first, *last;
    dp_value **inputs, **outputs;
    int n_inputs, n_outputs, n_nodes;
} dp_graph;

typedef struct dp_model {
    dp_arena arena;
    dp_graph *graph;
    uint32_t names; /* made up so far */
    const struct dp_precision *precision; /* what passes do with types (graph/precision.h); NULL: nothing. Borrowed */
} dp_model;

/* An empty model with an empty main graph. NULL with a sentence when memory is exhausted. */
dp_model *dp_model_new(const char *name);
void dp_model_free(dp_model *model); /* NULL is allowed */

/* Memory of the model; NULL with a sentence when it is exhausted. */
void *dp_model_alloc(dp_model *model, size_t size_bytes);

/* A graph inside `outer`; NULL with a sentence when memory is exhausted. So do the next ones. */
dp_graph *dp_graph_new(dp_graph *outer, const char *name);
/* A value of unknown type and shape. The name is copied; NULL makes one up. */
dp_value *dp_value_new(dp_model *model, const char *name);
/* A constant. Contents are copied (NULL: zeros, to be filled in); its element type must have whole bytes. */
dp_value *dp_value_constant(dp_model *model, const char *name, int element, const int64_t *dims, int rank,
                            const void *contents);
/* A list of integers as a constant of rank 1. */
dp_value *dp_value_integers(dp_model *model, const int64_t *numbers, int count);
/* Sets type and dims; strides follow. */
void dp_value_shape(dp_value *value, int element, const int64_t *dims, int rank);
/* Whether type, rank and all dims are known. */
bool dp_value_is_known(const dp_value *value);
/* Bytes of a known value. */
size_t dp_value_bytes(const dp_value *value);

/*
 * A node in front of `before` (NULL: at the end). Types and names are copied; inputs and outputs are absent until they are
 * set. dp_node_output sets the output's producer, too.
 */
dp_node *dp_node_new(dp_graph *graph, dp_node *before, const char *type, const char *name, int n_inputs, int n_outputs);
void dp_node_output(dp_node *node, int index, dp_value *value);
/* Takes it out of the graph; its outputs have no producer then. */
void dp_node_remove(dp_node *node);
/* Puts it in front of `before`, a node of the same graph (NULL: at the end). */
void dp_node_move(dp_node *node, dp_node *before);
/* The attribute; NULL when the node has none of that name. */
const dp_arg *dp_node_attribute(const dp_node *node, const char *name);
int64_t dp_node_integer(const dp_node *node, const char *name, int64_t otherwise);
double dp_node_real(const dp_node *node, const char *name, double otherwise);
const char *dp_node_text(const dp_node *node, const char *name, const char *otherwise);
/* Sets (or replaces) an attribute; name, text and lists are copied. */
dp_status dp_node_set(dp_node *node, const dp_arg *attribute);
dp_status dp_node_set_integer(dp_node *node, const char *name, int64_t value);
dp_status dp_node_set_real(dp_node *node, const char *name, double value);
dp_status dp_node_set_text(dp_node *node, const char *name, const char *value);
dp_status dp_node_set_integers(dp_node *node, const char *name, const int64_t *values, int count);

/* Makes every use of `from`, in the graph, in graphs inside it and among their outputs, a use of `to`. */
void dp_graph_replace(dp_graph *graph, const dp_value *from, dp_value *to);
/* Sets mark of every value that the graph and those inside it name to 0. */
void dp_graph_clear_marks(dp_graph *graph);
/* Counts uses (inputs of nodes, outputs of graphs) in mark of every value that the graph and those inside it name. */
void dp_graph_count_uses(dp_graph *graph);

/* One line per value that goes in or out and per node: type, shapes, constants, attributes. */
void dp_graph_print(const dp_graph *graph, FILE *file);

#endif
