/* Reading photographs (JPEG, PNG) and writing gray PNG files. */
#ifndef EDGES_PICTURE_H
#define EDGES_PICTURE_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct Picture {
    uint32_t width, height;
    uint8_t *pixels; /* height x width x 3, R G B; owned, release with PictureFree */
} Picture;

/* False after printing why. Pictures from 1 x 1 to 16384 x 16384. */
bool PictureRead(const char *path, Picture *out_picture);
void PictureFree(Picture *picture);

/* pitch: bytes between rows. False after printing why. */
bool PictureWriteGray(const char *path, const uint8_t *pixels, uint32_t width, uint32_t height, uint32_t pitch);

#ifdef __cplusplus
}
#endif

#endif
