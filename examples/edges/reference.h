/* The same computation in plain C, to verify the kernels with. */
#ifndef EDGES_REFERENCE_H
#define EDGES_REFERENCE_H

#include <stddef.h>
#include <stdint.h>

#include "edges_tiling.h"

#ifdef __cplusplus
extern "C" {
#else
typedef struct EdgesTiling EdgesTiling;
#endif

/* Number of pixels whose byte is not the one plain C computes from the three planes. */
size_t ReferenceCompare(const uint8_t *planes, const uint8_t *edges, uint32_t width, const EdgesTiling *tiling);
/* Number of pixels that are not 0. */
size_t ReferenceCount(const uint8_t *edges, uint32_t width, const EdgesTiling *tiling);

#ifdef __cplusplus
}
#endif

#endif
