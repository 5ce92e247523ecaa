/*
 * picture.h - pictures of small unsigned integers with the channels last, as quantised models compute on them.
 *
 * A picture is [batch, height, width, channels] of uint8; of channel c, q stands for (q - zero[c]) * scale[c]. Channels
 * lie side by side; pixels are evenly spaced and may be further apart than they have channels. Weights are int8 from
 * -127 to 127 in the panels of math/bytes/bytes.h. Results are the same on all processors.
 */
#ifndef DOPPEL_OPS_QUANT_PICTURE_H
#define DOPPEL_OPS_QUANT_PICTURE_H

#include "math/bytes/bytes.h"
#include "ops/op.h"

enum { DP_PICTURE_MOST = 255, DP_PICTURE_WEIGHT_MOST = 127, DP_PICTURE_VALUES = 256 };

typedef struct dp_picture {
    int slot;
    int64_t batch, height, width, channels;
    int64_t pixel; /* elements from pixel to pixel */
} dp_picture;

/* The loops of one rung. */
typedef struct dp_picture_table {
    /* to[j * rows + i] = from[i * columns + j] */
    void (*transpose)(uint8_t *to, const uint8_t *from, size_t rows, size_t columns);
    /* y[c] = the greatest of x[t][c] */
    void (*greatest)(uint8_t *y, const uint8_t *const *x, size_t taps, size_t n);
} dp_picture_table;
void dp_picture_fill_generic(dp_picture_table *table);
void dp_picture_fill_avx2(dp_picture_table *table);
void dp_picture_fill_avx512(dp_picture_table *table);
const dp_picture_table *dp_picture_current(void);

/* Checks that the tensor is such a picture; of floats only where that is allowed. */
dp_status dp_picture_of(const dp_arg *arg, bool may_be_float, dp_picture *out);
/* Checks that it has [rows, columns] floats (or, of one row, [columns]), contiguous. */
dp_status dp_picture_numbers(const dp_arg *arg, int64_t rows, int64_t columns);
/* Four numbers by NHWC of a list whose first and last must be 1; those of height and width. */
dp_status dp_picture_steps(const dp_arg *arg, int64_t *out_y, int64_t *out_x);

#endif
