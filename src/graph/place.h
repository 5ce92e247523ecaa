/*
 * place.h - memory for values by the time they are alive: those that are never alive together may share it.
 */
#ifndef DOPPEL_GRAPH_PLACE_H
#define DOPPEL_GRAPH_PLACE_H

#include "base/status.h"

typedef struct dp_span {
    uint32_t first, last; /* steps at which the bytes must be there, both included */
    size_t bytes;         /* 0: needs none */
    size_t offset;        /* set by dp_spans_place, a multiple of 64 */
} dp_span;

/* Largest first, each at the lowest offset where nothing that is alive at one of its steps lies. */
dp_status dp_spans_place(dp_span *spans, uint32_t n, size_t *out_bytes);

#endif
