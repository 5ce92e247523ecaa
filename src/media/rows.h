/*
 * rows.h - loops over one row of a picture, once per rung of the processor. Sources and destinations do not overlap.
 */
#ifndef DOPPEL_MEDIA_ROWS_H
#define DOPPEL_MEDIA_ROWS_H

#include <stddef.h>
#include <stdint.h>

/* out[i] = (c[i][0] * x + c[i][1] * y + c[i][2] * z + bias[i]) >> 13, limited to 0..255. Factors below 4: 16-bit
 * products. */
typedef struct dp_colour_matrix {
    int16_t c[3][3];
    int32_t bias[3];
} dp_colour_matrix;
enum { DP_COLOUR_BITS = 13 };

typedef struct dp_rows {
    /* Channels apart and together; n is the number of pixels, or of pairs. */
    void (*split2)(const uint8_t *in, uint8_t *a, uint8_t *b, size_t n);
    void (*split3)(const uint8_t *in, uint8_t *a, uint8_t *b, uint8_t *c, size_t n);
    void (*split4)(const uint8_t *in, uint8_t *a, uint8_t *b, uint8_t *c, uint8_t *d, size_t n);
    void (*join2)(const uint8_t *a, const uint8_t *b, uint8_t *out, size_t n);
    void (*join3)(const uint8_t *a, const uint8_t *b, const uint8_t *c, uint8_t *out, size_t n);
    void (*join4)(const uint8_t *a, const uint8_t *b, const uint8_t *c, const uint8_t *d, uint8_t *out, size_t n);
    /* Chroma at half and at full width: each value twice (n pairs of equal values); means of two, and of two by two. */
    void (*twice)(const uint8_t *in, uint8_t *out, size_t n);
    void (*mean_across)(const uint8_t *in, uint8_t *out, size_t n);
    void (*mean_down)(const uint8_t *a, const uint8_t *b, uint8_t *out, size_t n);
    void (*mean_square)(const uint8_t *a, const uint8_t *b, uint8_t *out, size_t n);
    void (*colour)(const dp_colour_matrix *matrix, const uint8_t *const in[3], uint8_t *const out[3], size_t n);
    /*
     * Resampling. down: out[i] = sum of weights[t] * rows[t][i]. across: out[i] = sum over t of weights[t * n + i] *
     * row[index[i] + t * step], rounded and limited to 0..255. pick: out[i] = row[index[i]].
     */
    void (*down)(const uint8_t *const *rows, const float *weights, size_t taps, float *out, size_t n);
    void (*across)(const float *row, const int32_t *index, size_t step, const float *weights, size_t taps, uint8_t *out,
                   size_t n);
    void (*pick)(const uint8_t *row, const int32_t *index, uint8_t *out, size_t n);
    /* out[i] = (in[i] - mean - least) * factor */
    void (*normalise)(const uint8_t *in, float mean, float least, float factor, float *out, size_t n);
} dp_rows;

/* Of the rung in force. */
const dp_rows *dp_rows_get(void);

extern const dp_rows dp_rows_generic, dp_rows_avx2, dp_rows_avx512;

#endif
