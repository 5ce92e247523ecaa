#include "picture.h"

#include <png.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <jpeglib.h>

enum { MAX_SIDE = 16384 };

static bool allocate(const char *path, Picture *picture, uint32_t width, uint32_t height) {
    if (width < 1 || height < 1 || width > MAX_SIDE || height > MAX_SIDE) {
        fprintf(stderr, "%s: %u x %u pixels; 1 x 1 to %d x %d can be read\n", path, width, height, MAX_SIDE, MAX_SIDE);
        return false;
    }
    picture->width = width;
    picture->height = height;
    picture->pixels = malloc(3 * (size_t)width * height);
    if (!picture->pixels)
        fprintf(stderr, "%s: out of memory for %u x %u pixels\n", path, width, height);
    return picture->pixels != NULL;
}

struct jpeg_failure {
    struct jpeg_error_mgr base;
    jmp_buf back;
};

static void jpeg_fail(j_common_ptr info) { longjmp(((struct jpeg_failure *)info->err)->back, 1); }

static bool read_jpeg(const char *path, FILE *in, Picture *picture) {
    struct jpeg_decompress_struct jpeg;
    struct jpeg_failure failure;
    jpeg.err = jpeg_std_error(&failure.base);
    failure.base.error_exit = jpeg_fail;
    if (setjmp(failure.back)) {
        char text[JMSG_LENGTH_MAX];
        failure.base.format_message((j_common_ptr)&jpeg, text);
        fprintf(stderr, "%s: %s\n", path, text);
        jpeg_destroy_decompress(&jpeg);
        return false;
    }
    jpeg_create_decompress(&jpeg);
    jpeg_stdio_src(&jpeg, in);
    jpeg_read_header(&jpeg, TRUE);
    jpeg.out_color_space = JCS_RGB;
    jpeg_start_decompress(&jpeg);
    bool good = allocate(path, picture, jpeg.output_width, jpeg.output_height);
    while (good && jpeg.output_scanline < jpeg.output_height) {
        JSAMPROW row = picture->pixels + 3 * (size_t)picture->width * jpeg.output_scanline;
        jpeg_read_scanlines(&jpeg, &row, 1);
    }
    if (good)
        jpeg_finish_decompress(&jpeg);
    jpeg_destroy_decompress(&jpeg);
    return good;
}

static bool read_png(const char *path, FILE *in, Picture *picture) {
    png_image image = {.version = PNG_IMAGE_VERSION};
    if (png_image_begin_read_from_stdio(&image, in)) {
        image.format = PNG_FORMAT_RGB;
        if (!allocate(path, picture, image.width, image.height)) {
            png_image_free(&image);
            return false;
        }
        if (png_image_finish_read(&image, NULL, picture->pixels, 0, NULL))
            return true;
    }
    fprintf(stderr, "%s: %s\n", path, image.message);
    return false;
}

bool PictureRead(const char *path, Picture *out_picture) {
    memset(out_picture, 0, sizeof *out_picture);
    FILE *in = fopen(path, "rb");
    if (!in) {
        perror(path);
        return false;
    }
    unsigned char magic[4] = {0};
    size_t got = fread(magic, 1, sizeof magic, in);
    rewind(in);
    bool good = false;
    if (got == 4 && magic[0] == 0xff && magic[1] == 0xd8)
        good = read_jpeg(path, in, out_picture);
    else if (got == 4 && memcmp(magic, "\x89PNG", 4) == 0)
        good = read_png(path, in, out_picture);
    else
        fprintf(stderr, "%s: neither a JPEG nor a PNG file\n", path);
    fclose(in);
    if (!good)
        PictureFree(out_picture);
    return good;
}

void PictureFree(Picture *picture) {
    free(picture->pixels);
    memset(picture, 0, sizeof *picture);
}

bool PictureWriteGray(const char *path, const uint8_t *pixels, uint32_t width, uint32_t height, uint32_t pitch) {
    png_image image = {.version = PNG_IMAGE_VERSION, .width = width, .height = height, .format = PNG_FORMAT_GRAY};
    if (png_image_write_to_file(&image, path, 0, pixels, (png_int_32)pitch, NULL))
        return true;
    fprintf(stderr, "%s: %s\n", path, image.message);
    return false;
}
