/*
 * make.h - pictures for tests, made by the libraries themselves.
 */
#ifndef TESTS_MEDIA_MAKE_H
#define TESTS_MEDIA_MAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Smooth colours with some edges and noise, 3 bytes a pixel, no gaps: free() gives it back. */
uint8_t *make_rgb(uint32_t width, uint32_t height, uint32_t seed);

typedef struct make_jpeg_options {
    int across, down; /* samples of luma per chroma sample: 1, 2, 4 */
    bool gray, progressive, restarts, exif;
    int quality;
} make_jpeg_options;

/* A JPEG of such a picture: free() gives it back. */
uint8_t *make_jpeg(uint32_t width, uint32_t height, const make_jpeg_options *options, size_t *out_bytes);

/* libjpeg's own decoding, chroma repeated: planes Y, Cb, Cr of width x height one after the other. */
uint8_t *libjpeg_yuv(const uint8_t *bytes, size_t n, uint32_t *out_width, uint32_t *out_height);

/*
 * A PNG; channels 1 to 4 of `depth` bits, interlaced or not; palette: 1 channel of indices into 16 colours with alpha.
 * Its pixels as RGBA of 8 bits go to *out_rgba. free() gives back both.
 */
uint8_t *make_png(uint32_t width, uint32_t height, int channels, int depth, bool interlaced, bool palette,
                  uint8_t **out_rgba, size_t *out_bytes);

#endif
