/*
 * ge.h - operators and graphs behind doppel/ge.h.
 */
#ifndef DOPPEL_API_GE_GE_H
#define DOPPEL_API_GE_GE_H

#include "base/arena.h"
#include "doppel/ge.h"
#include "graph/graph.h"

typedef struct dp_ge_link {
    const char *input, *output; /* output "": the first */
    int place;                  /* in a list; -1 */
    dp_ge_operator *from;       /* held */
    struct dp_ge_link *next;
} dp_ge_link;

typedef struct dp_ge_end {
    const char *name;
    dp_ge_desc desc;
    struct dp_ge_end *next;
} dp_ge_end;

typedef struct dp_ge_attribute {
    dp_arg arg; /* INTEGER, REAL, TEXT, INT_LIST, FLOAT_LIST; ABSENT with a tensor */
    dp_ge_desc desc;
    const void *data;
    size_t bytes;
    struct dp_ge_attribute *next;
} dp_ge_attribute;

struct dp_ge_operator {
    _Atomic int references;
    dp_arena arena;
    const char *name, *type;
    dp_ge_link *links;
    dp_ge_end *ends;
    dp_ge_attribute *attributes;
    int n_outputs;                /* of a list; 0: not said */
    bool failed;                  /* memory was exhausted */
    dp_ge_operator *release_next; /* of those to be released: no recursion */
    /* of the import at work */
    uint32_t visit; /* 0: not met; 1: its inputs are on the way; 2: done */
    dp_ge_operator *parent;
    const dp_ge_link *at;
    dp_value **values;
    int n_values;
};

struct dp_ge_graph {
    _Atomic int references;
    dp_arena arena;
    const char *name;
    dp_ge_operator **inputs, **outputs; /* held */
    int64_t *places;
    size_t n_inputs, n_outputs;
    char *onnx; /* the model that was parsed, or NULL */
    size_t onnx_bytes;
    char *folder; /* of its file, or NULL */
    bool failed;
};

const dp_ge_attribute *dp_ge_find_attribute(const dp_ge_operator *op, const char *name);
const dp_ge_end *dp_ge_find_end(const dp_ge_operator *op, const char *name);
const dp_ge_link *dp_ge_find_link(const dp_ge_operator *op, const char *input, int place);
/* Links of a list: one more than the greatest place. */
int dp_ge_count_links(const dp_ge_operator *op, const char *input);

/* An element type by the vendor's number; DP_EL_NONE. */
int dp_ge_element(int64_t dtype);

/* A lowered model, before passes. The caller frees it. */
dp_status dp_ge_import(const dp_ge_graph *graph, dp_model **out_model);

/*
 * Types that only graphs have, made of registered ones: *out_done is false when the type is none of them. inputs are
 * op's by the order of its links; its values are set.
 */
dp_status dp_ge_rewrite(dp_ge_operator *op, dp_model *model, bool *out_done);
/* What the link hands over. */
dp_value *dp_ge_linked(const dp_ge_link *link);
/* Takes `value` as the operator's next result. */
dp_status dp_ge_give(dp_ge_operator *op, dp_model *model, dp_value *value);

#endif
