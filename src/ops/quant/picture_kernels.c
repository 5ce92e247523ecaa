/* picture_kernels.c - the loops of picture.h. Compiled once per rung; the compiler makes the vectors. */
#include <string.h>

#include "ops/quant/picture.h"
#include "ops/rung.h"

static void transpose(uint8_t *to, const uint8_t *from, size_t rows, size_t columns) {
    enum { BLOCK = 16 };
    for (size_t i = 0; i < rows; i += BLOCK)
        for (size_t j = 0; j < columns; j += BLOCK) {
            const size_t i_end = rows - i < BLOCK ? rows : i + BLOCK, j_end = columns - j < BLOCK ? columns : j + BLOCK;
            for (size_t b = j; b < j_end; b++)
                for (size_t a = i; a < i_end; a++)
                    to[b * rows + a] = from[a * columns + b];
        }
}

static void greatest(uint8_t *y, const uint8_t *const *x, size_t taps, size_t n) {
    memcpy(y, x[0], n);
    for (size_t t = 1; t < taps; t++) {
        const uint8_t *from = x[t];
        DP_IVDEP for (size_t c = 0; c < n; c++) y[c] = from[c] > y[c] ? from[c] : y[c];
    }
}

void DP_RUNG(dp_picture_fill)(dp_picture_table *table) {
    *table = (dp_picture_table){transpose, greatest};
}
