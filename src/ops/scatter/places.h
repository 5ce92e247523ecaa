/*
 * places.h - slices of a tensor chosen by one or more tensors of indices, read or written. Indices are checked before
 * anything is written. Updates of one element go in the order of the indices: the last of SETs stays, sums are rounded
 * to the type each time.
 */
#ifndef DOPPEL_OPS_SCATTER_PLACES_H
#define DOPPEL_OPS_SCATTER_PLACES_H

#include "ops/scatter/kernels.h"
#include "ops/scatter/scatter.h"

typedef struct dp_places {
    int n_indices;
    bool flat; /* one index counts the elements of self */
    dp_indices indices[DP_TENSOR_DIMS];
    int64_t stride[DP_TENSOR_DIMS];
    bool masked;     /* no indices: the places are the elements of a mask that are true, in order */
    int mask;        /* its slot */
    dp_loop in_mask; /* its elements; view 0 the mask, view 1 self */
    int64_t wanted;  /* how many must be true; -1: any number */
    dp_loop whole;   /* flat: all of self */
    dp_loop places;  /* view 0: where a place's slice begins in the other tensor, view 1: what self's offset grows by */
    dp_loop slice;   /* view 0 self, view 1 the other */
    int self, other; /* slots; other -1: the scalar */
    int from;        /* self starts as a copy of this slot; -1: as zeros; the same as self: as it is */
    bool write;
    dp_update_at_fn at;
    dp_update_row_fn row;
    dp_factor factor;
    int64_t low;       /* least index */
    int64_t padding;   /* index whose places are left out; -1 none */
    bool by_frequency; /* factor is divided by how often the index occurs */
    _Alignas(16) uint8_t scalar[16];
} dp_places;

/* A plan whose self and other (NULL: the scalar) are these, with self starting as it is; loops and indices are to be
 * filled in. */
dp_status dp_places_new(const dp_operator_call *call, const dp_arg *self, const dp_arg *other, dp_plan **out_plan,
                        dp_places **out_places);
/* Makes it write with `update`; frees the plan and fails when the update is not offered for self's type. */
dp_status dp_places_write(const dp_arg *self, dp_update update, dp_plan **plan);
/* The same for a scalar that is set. */
dp_status dp_places_write_scalar(const dp_arg *self, const dp_arg *value, dp_plan **plan);

#endif
