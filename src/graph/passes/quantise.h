/* quantise.h - what the parts of the pass that makes models int8 share (quantise*.c). */
#ifndef DOPPEL_GRAPH_PASSES_QUANTISE_H
#define DOPPEL_GRAPH_PASSES_QUANTISE_H

#include "graph/calibration.h"
#include "graph/passes/unary.h"
#include "ops/quant/picture.h"

/*
 * How a value [batch, channels, height, width] is stored as a picture, which may have more channels (filled up): of
 * channel c, q stands for (q - zero[c]) * scale[c].
 */
typedef struct dp_code {
    dp_value *picture; /* NULL: it is not */
    int64_t channels;  /* of the picture */
    float *scale, *zero;
} dp_code;

typedef struct dp_quantise {
    dp_graph *graph;
    const dp_seen *seen;
    dp_code *codes;
    uint32_t *uses, n;
    int *changes;
} dp_quantise;

dp_status dp_quantise_no_memory(void);
bool dp_quantise_was_seen(const dp_quantise *w, const dp_value *value);
static inline const dp_seen *dp_seen_of(const dp_quantise *w, const dp_value *value) {
    return &w->seen[value->mark - 1];
}
static inline dp_code *dp_code_of(const dp_quantise *w, const dp_value *value) {
    return &w->codes[value->mark - 1];
}

/* The codes of a value, from what was seen of it: a factor per channel, or one for all. */
dp_status dp_code_choose(const dp_quantise *w, const dp_value *value, bool per_channel, dp_code *out);
/* The same of a range, for all channels. */
dp_status dp_code_of_range(const dp_quantise *w, dp_range range, int64_t channels, dp_code *out);
/* Room for `channels` numbers each. */
dp_status dp_code_new(const dp_quantise *w, int64_t channels, dp_code *out);

/* A new value of bytes in the shape of the float value with the channels last. NULL: no memory. */
dp_value *dp_codes_new(const dp_quantise *w, const dp_value *like, int64_t channels);
/* The value as a picture; made right behind the value when it does not exist yet. NULL: no memory. */
dp_value *dp_codes_want(dp_quantise *w, dp_value *value);
/*
 * `node`, whose result is the picture code->picture, makes the value from now on: whoever asked for its picture gets
 * this one, and floats come of it by a node behind, which nobody may want.
 */
dp_status dp_codes_give(dp_quantise *w, dp_node *node, dp_value *value, const dp_code *code);

/* Numbers as a constant. NULL: no memory. */
dp_value *dp_quantise_floats(const dp_quantise *w, const float *numbers, int64_t rows, int64_t columns);

/* Numbers by NCHW of height and width; false: something else than 1 for batch and channels. */
bool dp_quantise_steps(const dp_node *node, const char *name, int64_t out[2]);
bool dp_quantise_pads(const dp_node *node, int64_t out[4]);
bool dp_quantise_is_planar(const dp_node *node);

/* Whether a node computes on pictures when its inputs are some: somebody then wants them. */
bool dp_quantise_follows(const dp_quantise *w, const dp_node *node);
dp_status dp_quantise_follow(dp_quantise *w, dp_node *node);
bool dp_quantise_is_convolution(const dp_quantise *w, const dp_node *node);
dp_status dp_quantise_convolution(dp_quantise *w, dp_node *conv);

#endif
