/* rung.h - what the files of this folder define for one another. */
#ifndef DOPPEL_MATH_BYTES_RUNG_H
#define DOPPEL_MATH_BYTES_RUNG_H

#include "math/bytes/bytes.h"

extern const dp_bytes_table dp_bytes_table_generic, dp_bytes_table_avx2, dp_bytes_table_avx512;
extern const dp_bytes_table dp_bytes_table_vnni, dp_bytes_table_amx;

void dp_bytes_product_vnni(const dp_bytes_block *block, const dp_bytes_finish *finish, void *room);
void dp_bytes_product_amx(const dp_bytes_block *block, const dp_bytes_finish *finish, void *room);
void dp_bytes_depthwise_vnni(const dp_bytes_depthwise *part, const dp_bytes_finish *finish, void *room);

/* How the depthwise convolution of VNNI goes: groups of four lines, lines of the output at once. */
typedef struct dp_bytes_strip {
    ptrdiff_t groups, lines, width; /* width: pixels of a line with its padding */
} dp_bytes_strip;
dp_bytes_strip dp_bytes_strip_of(const dp_bytes_depthwise *part);

#endif
