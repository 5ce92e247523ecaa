/*
 * random.h - what the functions of this family share: seeds, and words for elements.
 *
 * Element i of a result (in row-major order) takes word i of the stream of words that the blocks make, or words 2i and
 * 2i + 1 where 64 bits are needed. So results depend on seed, offset and shape, never on strides or workers.
 */
#ifndef DOPPEL_OPS_RANDOM_RANDOM_H
#define DOPPEL_OPS_RANDOM_RANDOM_H

#include "ops/elementwise/kernels.h"
#include "ops/op.h"
#include "ops/random/kernels.h"

/* Seed and offset: numbers, or one-element tensors that are read when the task runs, plus a number. */
typedef struct dp_seed {
    int seed_slot, offset_slot; /* -1: the numbers */
    uint64_t seed, offset, extra;
    dp_convert_fn load_seed, load_offset;
} dp_seed;

/* From arguments that are numbers or tensors; extra may be absent. */
dp_status dp_seed_take(const dp_arg *seed, const dp_arg *offset, const dp_arg *extra, dp_seed *out_seed);
/* The same with the tensors' values in seed and offset. */
dp_seed dp_seed_read(const dp_plan *plan, const dp_seed *seed);
/* Words [first, first + n); first is a multiple of 4, n at most 2 * DP_TILE, words has room for a multiple of 4. */
void dp_words(const dp_seed *seed, int64_t first, size_t n, uint32_t *words);

/* (0, 1] of 32 and 53 bits, [0, 1) of 24 and 53 bits. */
static inline float dp_unit_above_zero(uint32_t word) {
    return ((float)word + 1) * 0x1p-32f;
}
static inline double dp_unit_above_zero_f64(const uint32_t *words) {
    return (double)((((uint64_t)words[1] << 32 | words[0]) >> 11) + 1) * 0x1p-53;
}
static inline float dp_unit_below_one(uint32_t word) {
    return (float)(word >> 8) * 0x1p-24f;
}
static inline double dp_unit_below_one_f64(const uint32_t *words) {
    return (double)(((uint64_t)words[1] << 32 | words[0]) >> 11) * 0x1p-53;
}

#endif
