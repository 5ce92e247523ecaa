/*
 * amx.h - matrix tiles: the shapes of the eight, and the order of their loads and stores. For files compiled with
 * -mamx-tile; `_tile_release` ends it.
 */
#ifndef DOPPEL_MATH_AMX_H
#define DOPPEL_MATH_AMX_H

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

/* Tile loads and stores do not tell the compiler what they touch. */
#define DP_AMX_ORDER() __asm__ volatile("" ::: "memory")

enum { DP_AMX_TILES = 8, DP_AMX_ROWS = 16, DP_AMX_ROW_BYTES = 64 };

/* What the processor reads. */
typedef struct dp_amx_shapes {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} dp_amx_shapes;

/* All tiles whole: 16 rows of 64 bytes. */
static inline dp_amx_shapes dp_amx_whole(void) {
    dp_amx_shapes shapes;
    memset(&shapes, 0, sizeof shapes);
    shapes.palette = 1;
    for (int t = 0; t < DP_AMX_TILES; t++) {
        shapes.row_bytes[t] = DP_AMX_ROW_BYTES;
        shapes.rows[t] = DP_AMX_ROWS;
    }
    return shapes;
}

static inline void dp_amx_begin(const dp_amx_shapes *shapes) {
    DP_AMX_ORDER();
    _tile_loadconfig(shapes);
}

#endif
