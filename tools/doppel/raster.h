/*
 * raster.h - pictures from JPEG and PNG files, as RGB bytes, and at another size.
 */
#ifndef DOPPEL_TOOLS_RASTER_H
#define DOPPEL_TOOLS_RASTER_H

#include <stdbool.h>
#include <stdint.h>

enum { RASTER_SIDE_MAX = 32768, RASTER_MESSAGE = 400 };

typedef struct raster {
    int width, height;
    uint8_t *pixels; /* red, green, blue; rows without gaps */
} raster;

/* False with a sentence in `message` (RASTER_MESSAGE bytes). Builds without libjpeg or libpng read only the other. */
bool raster_read(const char *path, raster *out, char *message);
void raster_free(raster *picture);

typedef enum raster_fit {
    RASTER_STRETCH, /* to the size, whatever the proportions */
    RASTER_PAD,     /* all of the picture in the middle, black around it */
    RASTER_CROP,    /* the middle of the picture, nothing around it */
    RASTER_EXACT    /* only if it has the size */
} raster_fit;

/* The picture at another size, bilinear with the centres of the corners' pixels on each other. False with a sentence.
 */
bool raster_resize(const raster *from, int width, int height, raster_fit fit, raster *out, char *message);

#endif
