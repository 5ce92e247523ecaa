/*
 * matrices.h - the last dims of a tensor as matrices in double, one for each place of its leading dims.
 */
#ifndef DOPPEL_OPS_LINALG_MATRICES_H
#define DOPPEL_OPS_LINALG_MATRICES_H

#include "ops/loop.h"
#include "ops/op.h"

enum { DP_MATRIX_ORDER = 1 << 13 };

typedef struct dp_matrices {
    int slot, element;
    dp_loop lead; /* view 0 */
    int64_t rows, columns, row_stride, column_stride;
} dp_matrices;

/* dims: 2, a matrix; 1, a row; 0, one number. Refuses fewer dims, and sizes above DP_MATRIX_ORDER. */
dp_status dp_matrices_of(const dp_arg *arg, int dims, dp_matrices *out);
/* Refuses a tensor that has not the leading dims of `like` (2 dims are taken off there) and these rows and columns. */
dp_status dp_matrices_expect(const dp_arg *arg, int dims, const dp_arg *like, int64_t rows, int64_t columns,
                             dp_matrices *out);
/* Row-major, rows x columns, to and from a matrix; transposed: columns x rows. */
void dp_matrix_load(dp_plan *plan, const dp_matrices *m, int64_t index, bool transposed, double *to);
void dp_matrix_store(dp_plan *plan, const dp_matrices *m, int64_t index, bool transposed, const double *from);

#endif
