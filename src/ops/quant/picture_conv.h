/* picture_conv.h - convolutions of pictures of small integers, as they were planned (picture_conv.c, picture_run.c). */
#ifndef DOPPEL_OPS_QUANT_PICTURE_CONV_H
#define DOPPEL_OPS_QUANT_PICTURE_CONV_H

#include "ops/quant/picture.h"

typedef enum dp_picture_way {
    DP_PICTURE_ROWS,      /* a row per output pixel, copied a few at a time, or the picture itself */
    DP_PICTURE_DEPTHWISE, /* one channel per group */
    DP_PICTURE_TILES      /* transposed, windows side by side: every input pixel makes a tile of the output */
} dp_picture_way;

typedef struct dp_picture_conv {
    dp_picture_way way;
    dp_picture x, y;
    int64_t kernel[2], stride[2], pad[2], dilation[2];                      /* y, x */
    int64_t groups, in, out;                                                /* channels of one group */
    int panels_slot, numbers_slot, outside_slot, table_slot, residual_slot; /* -1: none */
    int64_t residual_pixel, panel_bytes;                                    /* of a group, or of a line of a tile */
    dp_bytes_activation activation;
    bool as_float, direct; /* direct: rows are the picture as it is */
    size_t row_bytes, room_at, scratch_bytes;
    int64_t unit, units, column_unit, column_units; /* pieces of work: rows or lines, and columns */
} dp_picture_conv;

/* Bytes of the panels, and of those of one group; DP_ERR_ARGUMENT: too many. */
dp_status dp_picture_panels(const dp_picture_conv *conv, int64_t *out_bytes, int64_t *out_group);
/* Divides the work among so many threads. */
void dp_picture_divide(dp_picture_conv *conv, unsigned threads);
dp_status dp_picture_conv_run(dp_plan *plan);

#endif
