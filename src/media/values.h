/*
 * values.h - values of a picture, each by itself: counted, or replaced by a table. Channels: Y U V or R G B; alpha is
 * left alone.
 */
#ifndef DOPPEL_MEDIA_VALUES_H
#define DOPPEL_MEDIA_VALUES_H

#include "media/picture.h"

enum { DP_VALUES = 256, DP_VALUE_CHANNELS = 3 };

/* Adds to the counts; a chroma value that pixels share counts once. Returns the number of channels. */
uint32_t dp_picture_count(const dp_picture *picture, uint32_t counts[DP_VALUE_CHANNELS][DP_VALUES]);
/* Both pictures must have one format and size; they may be the same. */
dp_status dp_picture_map(const dp_picture *src, const dp_picture *dst,
                         const uint8_t tables[DP_VALUE_CHANNELS][DP_VALUES]);

#endif
