/*
 * move.h - operators that put elements elsewhere without looking at them: each is a list of copies from a view to a
 * view.
 */
#ifndef DOPPEL_OPS_MOVE_MOVE_H
#define DOPPEL_OPS_MOVE_MOVE_H

#include "ops/loop.h"
#include "ops/op.h"

/* Copies loop view 1 of the source to view 0 of the destination; offsets count elements from the tensors' own. */
typedef struct dp_piece {
    dp_loop loop;
    int to, from; /* slots; from -1: fill */
    int64_t to_offset, from_offset;
    _Alignas(16) uint8_t fill[16];
} dp_piece;

typedef struct dp_pieces {
    int count, room;
    dp_piece piece[];
} dp_pieces;

/* A plan of up to `room` pieces; all tensors have elements of the same width. NULL with a sentence. */
dp_plan *dp_pieces_plan(const dp_operator_call *call, int room);
/* The next piece of the plan: dims with strides of destination and source. */
dp_piece *dp_pieces_add(dp_plan *plan, const int64_t *dims, int rank, const dp_arg *to, const int64_t *to_strides,
                        int64_t to_offset, const dp_arg *from, const int64_t *from_strides, int64_t from_offset);

#endif
