/* sort.h - entries by the number of their expert. */
#ifndef DOPPEL_OPS_MOE_SORT_H
#define DOPPEL_OPS_MOE_SORT_H

#include <stdint.h>

/* Sorts keys, rising, with their values; stable. room: 2 * count numbers. */
void dp_moe_sort(int32_t *keys, int32_t *values, int64_t count, int32_t *room);

#endif
