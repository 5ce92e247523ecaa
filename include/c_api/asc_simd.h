/*
 * asc_simd.h - the SIMD C API: kernels on plain pointers, in C11 or C++17.
 *
 *     __ubuf__ float a[256], b[256];
 *     asc_copy_gm2ub(a, x, sizeof a);
 *     asc_sync();
 *     asc_add(b, a, a, 256);                    first 256 elements
 *     asc_add(b, a, a, 4, 1, 1, 1, 8, 8, 8);    4 repeats with block and repeat strides, under the mask register
 *     asc_add_sync(b, a, a, 256);               count form, then a barrier on all pipes
 *
 * docs/c-api.md lists the names, which of them are public and which follow the naming rule only.
 */
#ifndef DOPPEL_C_API_ASC_SIMD_H
#define DOPPEL_C_API_ASC_SIMD_H

#ifdef __cplusplus
#include "c_api/asc_cpp.h"
#else
#include "c_api/asc_c.h"

#include <stdio.h>
/* Inside a kernel the output of all blocks is collected and written in block order. */
#define printf(...) dp_print(__VA_ARGS__)
#endif

#endif
