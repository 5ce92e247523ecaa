/* Sizes the host computes once and the kernels read from global memory. */
#ifndef EDGES_TILING_H
#define EDGES_TILING_H

#include <stdint.h>

struct EdgesTiling {
    uint32_t rows;      /* rows of the picture */
    uint32_t tileWidth; /* pixels a tile covers: a multiple of 64 */
    uint32_t tilesPerRow;
    uint32_t pitch;     /* elements between rows of every plane: the picture with one pixel of border, rounded up */
    float threshold;    /* magnitudes below it become 0 */
};

#endif
