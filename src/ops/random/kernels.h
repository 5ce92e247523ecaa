/*
 * kernels.h - Philox4x32-10, the counter-based generator of Salmon, Moraes, Dror and Shaw ("Parallel random numbers: as
 * easy as 1, 2, 3", SC 2011): ten rounds over a counter of four words under a key of two.
 *
 * seed is the key. The counter's lower two words number the block, the upper two are the offset.
 */
#ifndef DOPPEL_OPS_RANDOM_KERNELS_H
#define DOPPEL_OPS_RANDOM_KERNELS_H

#include "ops/tensor.h"

/* Blocks [block, block + n): four words each. */
typedef void (*dp_philox_fn)(uint32_t *words, uint64_t seed, uint64_t offset, uint64_t block, size_t n);

void dp_philox_generic(uint32_t *words, uint64_t seed, uint64_t offset, uint64_t block, size_t n);
void dp_philox_avx2(uint32_t *words, uint64_t seed, uint64_t offset, uint64_t block, size_t n);
void dp_philox_avx512(uint32_t *words, uint64_t seed, uint64_t offset, uint64_t block, size_t n);
dp_philox_fn dp_philox_current(void);

#endif
