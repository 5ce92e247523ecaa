/*
 * doubles.h - elements of any real type, `stride` apart, to and from doubles.
 */
#ifndef DOPPEL_OPS_DOUBLES_H
#define DOPPEL_OPS_DOUBLES_H

#include <stdint.h>

void dp_doubles_load(int element, const void *from, int64_t stride, int64_t n, double *to);
void dp_doubles_store(int element, void *to, int64_t stride, int64_t n, const double *from);

#endif
