/*
 * kernels.h - sort keys: elements as unsigned integers whose order is the order of sorting, and the two ways to order
 * them. Keys are uint32_t, or uint64_t ("wide") for 8-byte elements, and use the low bits that the element has.
 */
#ifndef DOPPEL_OPS_SORT_KERNELS_H
#define DOPPEL_OPS_SORT_KERNELS_H

#include "ops/tensor.h"

enum { DP_RANK_MAX = 128 }; /* longest line of rank32 and rank64 */

typedef struct dp_sort_table {
    /* Keys of contiguous elements. NaN is the greatest (all bits set), -0 equals +0; descending inverts all of it. */
    void (*keys[DP_EL_COUNT])(void *keys, const void *raw, size_t n, bool descending);
    /* order[r] = index of the key with r smaller ones before it; of equal keys the lower index is the smaller. */
    void (*rank32)(uint32_t *order, const uint32_t *keys, size_t n);
    void (*rank64)(uint32_t *order, const uint64_t *keys, size_t n);
} dp_sort_table;

void dp_sort_fill_generic(dp_sort_table *table);
void dp_sort_fill_avx2(dp_sort_table *table);
void dp_sort_fill_avx512(dp_sort_table *table);
const dp_sort_table *dp_sort_current(void);

/* Keys of one line. */
typedef struct dp_sort_line {
    const void *keys;
    size_t n;     /* below 2^32 */
    bool wide;    /* uint64_t keys */
    int key_bits; /* of the element type */
} dp_sort_line;

/* Bytes of scratch that the two functions below need for lines of n keys. */
size_t dp_sort_scratch_bytes(size_t n, bool wide);
/*
 * Room for a worker that sorts: the thread's own (base/scratch.h), or a block to be freed when that would keep too much
 * for ever. NULL when memory is exhausted. No other user of the thread's scratch may run before the end.
 */
void *dp_sort_room(size_t bytes);
void dp_sort_room_end(void *room, size_t bytes);
/* All indices in stable order: ranks for short lines, a radix sort from the lowest byte for others. */
void dp_sort_order(const dp_sort_line *line, uint32_t *order, void *scratch);
/*
 * The k smallest (1 <= k <= n) without sorting: their indices in rising order. Of keys equal to the k-th smallest those
 * with the lowest indices are taken. Returns the index of the k-th smallest.
 */
uint32_t dp_sort_select(const dp_sort_line *line, size_t k, uint32_t *chosen, void *scratch);

#endif
