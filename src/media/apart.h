/*
 * apart.h - rows of a picture as separate channels at full width, whatever the format.
 */
#ifndef DOPPEL_MEDIA_APART_H
#define DOPPEL_MEDIA_APART_H

#include "media/picture.h"
#include "media/rows.h"

/* Behind a row the last pixel is repeated, so that pairs are whole; dp_row_apart needs some memory beside the channels.
 */
enum { DP_ROW_TAIL = 4, DP_ROW_CHANNELS = 4, DP_ROW_SPARE = 8 };

/* Y U V or R G B, and alpha; 255 where a format has none. */
typedef struct dp_channels {
    uint8_t *c[DP_ROW_CHANNELS];
} dp_channels;

typedef struct dp_row_source {
    const dp_picture *picture;
    const dp_format *format;
    dp_area area;
    const dp_rows *rows;
} dp_row_source;

/* Borrows the picture. */
dp_row_source dp_row_source_of(const dp_picture *picture, const dp_area *area);

/* Bytes of one channel's row with its tail; DP_ROW_SPARE times as much is what `spare` must have. */
static inline size_t dp_row_room(uint32_t width) {
    return ((size_t)width + DP_ROW_TAIL + 63) & ~(size_t)63;
}

/* Row y of the area. */
void dp_row_apart(const dp_row_source *source, uint32_t y, const dp_channels *to, uint8_t *spare);

#endif
