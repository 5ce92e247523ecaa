/*
 * svd.c - one-sided Jacobi (Hestenes): pairs of rows are turned until all are orthogonal. The lengths of the rows are
 * the singular values then; rows that are as small as the rounding of the whole matrix count as zeros. Simple; slower
 * than a bidiagonal form for large matrices.
 */
#include "ops/linalg/svd.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { SWEEPS = 60 };

static double dot(const double *x, const double *y, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += x[i] * y[i];
    return sum;
}

static void turn(double *x, double *y, int64_t n, double c, double s) {
    for (int64_t i = 0; i < n; i++) {
        double a = x[i], b = y[i];
        x[i] = c * a - s * b;
        y[i] = s * a + c * b;
    }
}

/* Makes two rows orthogonal; false when they were. */
static bool turn_pair(dp_svd *d, double least, int64_t p, int64_t q) {
    double *x = d->a + p * d->length, *y = d->a + q * d->length;
    double a = dot(x, x, d->length), b = dot(y, y, d->length), g = dot(x, y, d->length);
    if (a <= least * least || b <= least * least)
        return false;
    if (fabs(g) <=
        4 * DBL_EPSILON * sqrt((double)d->length) * sqrt(a) * sqrt(b)) /* what sums of so many are rounded by */
        return false;
    double zeta = (b - a) / (2 * g), t = (zeta < 0 ? -1 : 1) / (fabs(zeta) + hypot(1, zeta)), c = 1 / hypot(1, t);
    turn(x, y, d->length, c, c * t);
    if (d->vectors)
        turn(d->turns + p * d->rows, d->turns + q * d->rows, d->rows, c, c * t);
    return true;
}

static void swap(double *x, double *y, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        double other = x[i];
        x[i] = y[i];
        y[i] = other;
    }
}

static void sort(dp_svd *d) {
    for (int64_t i = 0; i < d->rows; i++) {
        int64_t most = i;
        for (int64_t k = i + 1; k < d->rows; k++)
            if (d->values[k] > d->values[most])
                most = k;
        if (most == i)
            continue;
        swap(&d->values[i], &d->values[most], 1);
        swap(d->a + i * d->length, d->a + most * d->length, d->length);
        if (d->vectors)
            swap(d->turns + i * d->rows, d->turns + most * d->rows, d->rows);
    }
}

/* Row `row` of a becomes a unit vector that is orthogonal to those before it; *next is the axis to try first. */
static void complete(dp_svd *d, int64_t row, int64_t *next) {
    double *x = d->a + row * d->length, norm = 0;
    for (int64_t tried = 0; tried < d->length; tried++, *next = (*next + 1) % d->length) {
        memset(x, 0, (size_t)d->length * sizeof *x);
        x[*next] = 1;
        for (int again = 0; again < 2; again++)
            for (int64_t k = 0; k < row; k++) {
                const double *y = d->a + k * d->length;
                double part = dot(x, y, d->length);
                for (int64_t i = 0; i < d->length; i++)
                    x[i] -= part * y[i];
            }
        norm = sqrt(dot(x, x, d->length));
        if (norm * norm * 2 * (double)d->length >= (double)(d->length - row)) /* some axis has twice as much left */
            break;
    }
    for (int64_t i = 0; i < d->length; i++)
        x[i] /= norm;
}

static void normalise(dp_svd *d, double least) {
    int64_t next = 0, last = d->full ? d->length : d->rows;
    for (int64_t row = 0; row < last; row++) {
        double *x = d->a + row * d->length;
        if (row < d->rows && d->values[row] > least)
            for (int64_t i = 0; i < d->length; i++)
                x[i] /= d->values[row];
        else
            complete(d, row, &next);
    }
}

/* A power of two, so that squares neither overflow nor vanish; NaN when a number is not finite. */
static double scale_of(const dp_svd *d) {
    double largest = 0, strange = 0;
    for (int64_t i = 0; i < d->rows * d->length; i++) {
        largest = fmax(largest, fabs(d->a[i]));
        strange += d->a[i] - d->a[i]; /* 0, or NaN */
    }
    return strange != 0 ? NAN : largest > 0 ? ldexp(1, -ilogb(largest)) : 1;
}

bool dp_svd_run(dp_svd *d) {
    double scale = scale_of(d);
    bool turned = true;
    if (isnan(scale))
        return false;
    for (int64_t i = 0; i < d->rows * d->length; i++)
        d->a[i] *= scale;
    if (d->vectors) {
        memset(d->turns, 0, (size_t)(d->rows * d->rows) * sizeof *d->turns);
        for (int64_t i = 0; i < d->rows; i++)
            d->turns[i * d->rows + i] = 1;
    }
    const double least = sqrt(dot(d->a, d->a, d->rows * d->length)) * DBL_EPSILON * (double)d->length;
    for (int sweep = 0; sweep < SWEEPS && turned; sweep++) {
        turned = false;
        for (int64_t p = 0; p < d->rows; p++)
            for (int64_t q = p + 1; q < d->rows; q++)
                turned |= turn_pair(d, least, p, q);
    }
    for (int64_t i = 0; i < d->rows; i++) {
        const double *x = d->a + i * d->length;
        d->values[i] = sqrt(dot(x, x, d->length));
    }
    sort(d);
    if (d->vectors)
        normalise(d, least);
    for (int64_t i = 0; i < d->rows; i++)
        d->values[i] /= scale;
    return !turned;
}
