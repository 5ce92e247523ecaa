/*
 * shapes.h - which input shapes a compiled model takes: one, a list of them (gears), or any within bounds.
 */
#ifndef DOPPEL_GRAPH_SHAPES_H
#define DOPPEL_GRAPH_SHAPES_H

#include "ops/tensor.h"

typedef enum dp_shapes_kind {
    DP_SHAPES_FIXED,
    DP_SHAPES_BATCH, /* gears: one number, for every open dim */
    DP_SHAPES_IMAGE, /* gears: two numbers, for the two open dims of an input */
    DP_SHAPES_DIMS,  /* gears: a number per open dim, in the order of inputs and dims */
    DP_SHAPES_OPEN,  /* chosen for every run */
    DP_SHAPES_KINDS
} dp_shapes_kind;

enum { DP_GEARS_MAX = 100 };

/* One input. A dim is open when least and most differ; most is DP_SHAPES_ANY when there is no bound. */
#define DP_SHAPES_ANY INT64_MAX
typedef struct dp_declared {
    int rank;
    int64_t least[DP_TENSOR_DIMS], most[DP_TENSOR_DIMS];
} dp_declared;

typedef struct dp_shapes {
    dp_shapes_kind kind;
    bool is_source; /* the model is lowered while it runs (staged.h): its only variant is as it was read */
    int opset;      /* of that */
    int n_inputs;   /* 0 only with DP_SHAPES_FIXED: dims are those of the variant */
    int n_gears, n_numbers;
    dp_declared *inputs;
    int64_t *numbers; /* n_gears x n_numbers */
} dp_shapes;

static inline bool dp_declared_is_open(const dp_declared *declared, int d) {
    return declared->least[d] != declared->most[d];
}
/* Rank and dims of an input in a gear. */
void dp_shapes_gear(const dp_shapes *shapes, int gear, int input, dp_tensor *out_shape);
/* The gear with these numbers; -1: none. */
int dp_shapes_find(const dp_shapes *shapes, const int64_t *numbers);
/* DP_ERR_ARGUMENT unless the dims lie within what was declared for the input. */
dp_status dp_shapes_check(const dp_shapes *shapes, int input, const char *name, const dp_tensor *shape);

/*
 * Reads "1,2,4" (BATCH), "h,w;h,w" (IMAGE) or "a,b;a,b" (DIMS) for shapes->inputs, which must fit; `option` is the
 * text's name. Sets kind and gears; shapes->numbers is dp_alloc'ed.
 */
dp_status dp_shapes_parse_gears(dp_shapes *shapes, dp_shapes_kind kind, const char *option, const char *text);
/* Reads "1,-1,3~5,10~-1" (10 or more). False: it is none. */
bool dp_declared_parse(const char *text, dp_declared *out_declared);

#endif
