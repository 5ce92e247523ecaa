/*
 * svd.h - singular values of one matrix by one-sided rotations.
 */
#ifndef DOPPEL_OPS_LINALG_SVD_H
#define DOPPEL_OPS_LINALG_SVD_H

#include <stdbool.h>
#include <stdint.h>

/*
 * On input the first `rows` rows of `a`, each of `length` (at least `rows`) numbers, are the matrix A. On output A =
 * turns^T diag(values) a: values fall, the rows of turns (rows x rows) and of a are orthonormal. With full, a gets rows
 * until it is square; it has room for length x length. Without vectors only values are defined.
 */
typedef struct dp_svd {
    int64_t rows, length;
    bool full, vectors;
    double *a, *values, *turns;
} dp_svd;

/* False when numbers are not finite, or the rotations do not come to an end. */
bool dp_svd_run(dp_svd *d);

#endif
