/*
 * file.h - pictures as files in memory: JPEG by libjpeg-turbo, PNG by libpng.
 *
 * Bytes are not trusted: sizes are checked before anything is allocated, libraries' own memory is limited, and a file
 * that is truncated or damaged is DP_ERR_ARGUMENT with a sentence that says what and, where it is known, where.
 * `argument` begins the sentences.
 */
#ifndef DOPPEL_MEDIA_FILE_H
#define DOPPEL_MEDIA_FILE_H

#include "media/picture.h"

/* Values are the vendor's acldvppJpegFormat. */
typedef enum dp_jpeg_sampling {
    DP_JPEG_444,
    DP_JPEG_422,
    DP_JPEG_420,
    DP_JPEG_GRAY,
    DP_JPEG_440,
    DP_JPEG_411,
    DP_JPEG_OTHER
} dp_jpeg_sampling;

typedef struct dp_file_info {
    uint32_t width, height;
    int components;
    dp_jpeg_sampling sampling; /* of a JPEG */
    bool has_alpha;            /* of a PNG */
} dp_file_info;

/* DP_ERR_ARGUMENT when there are no bytes at all. */
dp_status dp_file_check(const void *bytes, size_t size_bytes, const char *argument);

/* From the header. */
dp_status dp_jpeg_info(const void *bytes, size_t size_bytes, const char *argument, dp_file_info *out_info);
dp_status dp_png_info(const void *bytes, size_t size_bytes, const char *argument, dp_file_info *out_info);

/* A width or height that is odd, where two pixels share a chroma value. */
typedef enum dp_jpeg_odd { DP_JPEG_ODD_DOWN, DP_JPEG_ODD_UP } dp_jpeg_odd;

/*
 * The picture that a decoder would write: format (DP_PIXEL_UNKNOWN becomes the file's own), width and height, and
 * strides where they are 0: rows on 128 bytes and 16 rows, or, when size_bytes are not 0 and too few for that, on 64
 * and 16, or on 16 and 2. DP_ERR_UNSUPPORTED: not a format that such a file is decoded to. Nothing is asked of data.
 */
dp_status dp_jpeg_plan(const dp_file_info *info, dp_jpeg_odd odd, dp_picture *picture);
dp_status dp_png_plan(const dp_file_info *info, dp_picture *picture);

/*
 * Decodes into picture->data. Before, format and strides are set as for the plan (0: default), width and height are 0
 * or what the file has; after, all is set. JPEG gives YUV of the chosen sampling with the values of the file (0..255
 * each), PNG RGB.
 */
dp_status dp_jpeg_decode(const void *bytes, size_t size_bytes, dp_jpeg_odd odd, dp_picture *picture);
dp_status dp_png_decode(const void *bytes, size_t size_bytes, dp_picture *picture);

/* quality: 1 to 100. The file keeps the chroma sampling of YUV pictures; of RGB it has 4:2:0. */
dp_status dp_jpeg_encode(const dp_picture *picture, int quality, void *out_bytes, size_t room_bytes,
                         size_t *out_size_bytes);
/* The format that a picture is converted to before it is encoded; often its own. */
int dp_jpeg_format(int format);
/* Room that is enough for any picture of this size. */
size_t dp_jpeg_room(const dp_picture *picture);

#endif
