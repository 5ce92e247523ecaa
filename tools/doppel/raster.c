#include "raster.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef DOPPEL_HAVE_JPEG
#include <setjmp.h>
#include <jpeglib.h>
#endif
#ifdef DOPPEL_HAVE_PNG
#include <png.h>
#endif

static bool fail(char *message, const char *path, const char *sentence) {
    snprintf(message, RASTER_MESSAGE, "%.180s: %s", path, sentence);
    return false;
}

static bool allocate(raster *r, unsigned width, unsigned height, const char *path, char *message) {
    if (width < 1 || height < 1 || width > RASTER_SIDE_MAX || height > RASTER_SIDE_MAX)
        return fail(message, path, "a picture must have 1 to 32768 pixels on each side");
    r->width = (int)width;
    r->height = (int)height;
    r->pixels = malloc(3 * (size_t)width * height);
    return r->pixels || fail(message, path, "no memory for its pixels");
}

#ifdef DOPPEL_HAVE_JPEG
struct jpeg_failure {
    struct jpeg_error_mgr base;
    jmp_buf back;
};

static void jpeg_fail(j_common_ptr info) {
    longjmp(((struct jpeg_failure *)info->err)->back, 1);
}
static void jpeg_silent(j_common_ptr info) {
    (void)info;
}

static bool read_jpeg(const char *path, FILE *file, raster *out, char *message) {
    struct jpeg_decompress_struct jpeg;
    struct jpeg_failure failure;
    jpeg.err = jpeg_std_error(&failure.base);
    failure.base.error_exit = jpeg_fail;
    failure.base.output_message = jpeg_silent;
    if (setjmp(failure.back)) {
        char text[JMSG_LENGTH_MAX];
        failure.base.format_message((j_common_ptr)&jpeg, text);
        jpeg_destroy_decompress(&jpeg);
        return fail(message, path, text);
    }
    jpeg_create_decompress(&jpeg);
    jpeg_stdio_src(&jpeg, file);
    jpeg_read_header(&jpeg, TRUE);
    jpeg.out_color_space = JCS_RGB;
    jpeg_start_decompress(&jpeg);
    bool good = allocate(out, jpeg.output_width, jpeg.output_height, path, message);
    while (good && jpeg.output_scanline < jpeg.output_height) {
        JSAMPROW row = out->pixels + 3 * (size_t)out->width * jpeg.output_scanline;
        jpeg_read_scanlines(&jpeg, &row, 1);
    }
    if (good)
        jpeg_finish_decompress(&jpeg);
    if (good && failure.base.num_warnings)
        good = fail(message, path, "the JPEG data are damaged or cut off");
    jpeg_destroy_decompress(&jpeg);
    return good;
}
#else
static bool read_jpeg(const char *path, FILE *file, raster *out, char *message) {
    (void)file, (void)out;
    return fail(message, path, "this doppel was built without libjpeg");
}
#endif

#ifdef DOPPEL_HAVE_PNG
static bool read_png(const char *path, FILE *file, raster *out, char *message) {
    png_image image = {.version = PNG_IMAGE_VERSION};
    if (!png_image_begin_read_from_stdio(&image, file))
        return fail(message, path, image.message);
    image.format = PNG_FORMAT_RGB;
    if (!allocate(out, image.width, image.height, path, message)) {
        png_image_free(&image);
        return false;
    }
    const png_color black = {0, 0, 0};
    return png_image_finish_read(&image, &black, out->pixels, 0, NULL) || fail(message, path, image.message);
}
#else
static bool read_png(const char *path, FILE *file, raster *out, char *message) {
    (void)file, (void)out;
    return fail(message, path, "this doppel was built without libpng");
}
#endif

bool raster_read(const char *path, raster *out, char *message) {
    memset(out, 0, sizeof *out);
    FILE *file = fopen(path, "rb");
    if (!file)
        return fail(message, path, strerror(errno));
    unsigned char magic[4] = {0};
    size_t got = fread(magic, 1, sizeof magic, file);
    rewind(file);
    bool good;
    if (got == 4 && magic[0] == 0xff && magic[1] == 0xd8)
        good = read_jpeg(path, file, out, message);
    else if (got == 4 && memcmp(magic, "\x89PNG", 4) == 0)
        good = read_png(path, file, out, message);
    else
        good = fail(message, path, "neither a JPEG nor a PNG file");
    fclose(file);
    if (!good)
        raster_free(out);
    return good;
}

void raster_free(raster *picture) {
    free(picture->pixels);
    memset(picture, 0, sizeof *picture);
}

/* Places of one side: out pixel i lies between in pixels at[i] and at[i] + 1, `part` of the way. */
static void find_places(int from, int to, int *at, float *part) {
    for (int i = 0; i < to; i++) {
        float x = ((float)i + 0.5f) * (float)from / (float)to - 0.5f;
        x = x < 0 ? 0 : x;
        at[i] = (int)x < from - 1 ? (int)x : from - 1;
        part[i] = at[i] == from - 1 ? 0 : x - (float)at[i];
    }
}

/* from, at width x height, into out at (left, top): parts that lie outside are left out. */
static bool scale_into(const raster *from, int width, int height, int left, int top, raster *out) {
    int *xs = malloc(((size_t)width + (size_t)height) * (sizeof(int) + sizeof(float)));
    if (!xs)
        return false;
    int *ys = xs + width;
    float *px = (float *)(ys + height), *py = px + width;
    find_places(from->width, width, xs, px);
    find_places(from->height, height, ys, py);
    for (int y = top < 0 ? -top : 0; y < height && y + top < out->height; y++) {
        const uint8_t *above = from->pixels + 3 * (size_t)from->width * (size_t)ys[y];
        const uint8_t *below = above + (ys[y] + 1 < from->height ? 3 * (size_t)from->width : 0);
        uint8_t *row = out->pixels + 3 * (size_t)out->width * (size_t)(y + top);
        for (int x = left < 0 ? -left : 0; x < width && x + left < out->width; x++) {
            size_t a = 3 * (size_t)xs[x], b = a + (xs[x] + 1 < from->width ? 3 : 0);
            for (size_t c = 0; c < 3; c++) {
                float u = (float)above[a + c] + px[x] * (float)(above[b + c] - above[a + c]);
                float v = (float)below[a + c] + px[x] * (float)(below[b + c] - below[a + c]);
                row[3 * (x + left) + (int)c] = (uint8_t)(u + py[y] * (v - u) + 0.5f);
            }
        }
    }
    free(xs);
    return true;
}

bool raster_resize(const raster *from, int width, int height, raster_fit fit, raster *out, char *message) {
    int w = width, h = height;
    memset(out, 0, sizeof *out);
    if (fit == RASTER_EXACT && (from->width != width || from->height != height)) {
        snprintf(message, RASTER_MESSAGE, "the picture has %d x %d pixels, the input %d x %d: choose another --resize",
                 from->width, from->height, width, height);
        return false;
    }
    if (fit == RASTER_PAD || fit == RASTER_CROP) {
        double by_width = (double)width / from->width, by_height = (double)height / from->height;
        double by = (by_width < by_height) == (fit == RASTER_PAD) ? by_width : by_height;
        w = (int)(from->width * by + 0.5);
        h = (int)(from->height * by + 0.5);
        w = w < 1 ? 1 : w;
        h = h < 1 ? 1 : h;
        if (w > RASTER_SIDE_MAX || h > RASTER_SIDE_MAX)
            return fail(message, "--resize", "the picture is far too narrow to be cropped to this size");
    }
    if (!allocate(out, (unsigned)width, (unsigned)height, "the input", message))
        return false;
    memset(out->pixels, 0, 3 * (size_t)width * (size_t)height);
    if (scale_into(from, w, h, (width - w) / 2, (height - h) / 2, out))
        return true;
    raster_free(out);
    return fail(message, "the input", "no memory to resize the picture");
}
