/*
 * match.h - parts of a graph that compute a known expression, found by a pattern.
 *
 * A pattern is an expression in brackets: (Type operand ...). Operands are patterns, numbers, and letters:
 *   a..z   any value; the same letter means the same value
 *   $0 $1  a constant of one element, kept as a number
 *   0.5    a constant of one element that is this number (to 1e-6 of it)
 * Add and Mul take their operands in either order; with a number they also stand for Adds, Muls, Sub and Div by a
 * constant. Clip is ClipByValue. Only float nodes match. Values inside may be used elsewhere, too: a pass replaces
 * the root, and what nobody wants then dies.
 */
#ifndef DOPPEL_GRAPH_PASSES_MATCH_H
#define DOPPEL_GRAPH_PASSES_MATCH_H

#include "graph/graph.h"

enum { DP_MATCH_NUMBERS = 4, DP_MATCH_NODES = 4 };

typedef struct dp_match {
    dp_value *values[26]; /* by letter */
    double numbers[DP_MATCH_NUMBERS];
    bool known[DP_MATCH_NUMBERS];
    const dp_node *reduced[DP_MATCH_NODES]; /* nodes ReduceMeanD, whose axes the caller looks at */
    int n_reduced;
} dp_match;

/* Whether `node` computes the pattern; what it binds. */
bool dp_match_node(const char *pattern, dp_node *node, dp_match *out_match);

static inline dp_value *dp_match_value(const dp_match *match, char letter) {
    return match->values[letter - 'a'];
}

/* Small questions that many passes ask. */
bool dp_node_is(const dp_node *node, const char *type);
/* Float, half or bfloat16. */
bool dp_value_is_real(const dp_value *value);
/* Element i of a constant of such a type. */
float dp_value_real_at(const dp_value *value, int64_t i);
/* A constant of one such element. */
bool dp_value_number(const dp_value *value, double *out_number);
bool dp_value_same_shape(const dp_value *a, const dp_value *b);
bool dp_graph_gives(const dp_graph *graph, const dp_value *value);
/* The number that an elementwise node with one other operand adds or multiplies; *out_x is that operand. */
bool dp_node_adds(const dp_node *node, dp_value **out_x, double *out_number);
bool dp_node_multiplies(const dp_node *node, dp_value **out_x, double *out_number);
/* Puts a node of `type` with these inputs in place of `node`, whose output it gets. NULL when memory is exhausted. */
dp_node *dp_node_replace(dp_node *node, const char *type, dp_value *const *inputs, int n_inputs);

#endif
