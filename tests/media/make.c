#include "make.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>
#include <png.h>

static uint32_t noise(uint32_t *state) {
    *state = *state * 1664525u + 1013904223u;
    return *state >> 24;
}

uint8_t *make_rgb(uint32_t width, uint32_t height, uint32_t seed) {
    uint8_t *rgb = malloc((size_t)width * height * 3 + 1);
    if (!rgb)
        abort();
    for (uint32_t y = 0; y < height; y++)
        for (uint32_t x = 0; x < width; x++) {
            uint8_t *p = rgb + ((size_t)y * width + x) * 3;
            bool inside = (x / 13 + y / 9) % 3 == 0;
            p[0] = (uint8_t)(x * 255 / width * 3 / 4 + noise(&seed) / 16);
            p[1] = (uint8_t)(y * 255 / height * 3 / 4 + (inside ? 60 : 0));
            p[2] = (uint8_t)((x + y) * 2 + noise(&seed) / 8);
        }
    return rgb;
}

uint8_t *make_jpeg(uint32_t width, uint32_t height, const make_jpeg_options *o, size_t *out_bytes) {
    struct jpeg_compress_struct jpeg;
    struct jpeg_error_mgr errors;
    uint8_t *bytes = NULL, *rgb = make_rgb(width, height, width * 7 + height);
    unsigned long n = 0;
    jpeg.err = jpeg_std_error(&errors);
    jpeg_create_compress(&jpeg);
    jpeg_mem_dest(&jpeg, &bytes, &n);
    jpeg.image_width = width;
    jpeg.image_height = height;
    jpeg.input_components = 3;
    jpeg.in_color_space = JCS_RGB;
    jpeg_set_defaults(&jpeg);
    if (o->gray)
        jpeg_set_colorspace(&jpeg, JCS_GRAYSCALE);
    jpeg_set_quality(&jpeg, o->quality ? o->quality : 90, TRUE);
    if (!o->gray) {
        jpeg.comp_info[0].h_samp_factor = o->across;
        jpeg.comp_info[0].v_samp_factor = o->down;
    }
    if (o->progressive)
        jpeg_simple_progression(&jpeg);
    if (o->restarts)
        jpeg.restart_in_rows = 1;
    jpeg_start_compress(&jpeg, TRUE);
    if (o->exif) {
        static const uint8_t exif[] = "Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0";
        jpeg_write_marker(&jpeg, JPEG_APP0 + 1, exif, sizeof exif - 1);
    }
    while (jpeg.next_scanline < height) {
        JSAMPROW row = rgb + (size_t)jpeg.next_scanline * width * 3;
        jpeg_write_scanlines(&jpeg, &row, 1);
    }
    jpeg_finish_compress(&jpeg);
    jpeg_destroy_compress(&jpeg);
    free(rgb);
    *out_bytes = n;
    return bytes;
}

uint8_t *libjpeg_yuv(const uint8_t *bytes, size_t n, uint32_t *out_width, uint32_t *out_height) {
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr errors;
    jpeg.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&jpeg);
    jpeg_mem_src(&jpeg, bytes, n);
    jpeg_read_header(&jpeg, TRUE);
    bool gray = jpeg.num_components == 1;
    jpeg.out_color_space = gray ? JCS_GRAYSCALE : JCS_YCbCr;
    jpeg.do_fancy_upsampling = FALSE;
    jpeg.dct_method = JDCT_ISLOW;
    jpeg_start_decompress(&jpeg);
    size_t width = jpeg.output_width, height = jpeg.output_height, plane = width * height;
    uint8_t *yuv = malloc(3 * plane), *row = malloc(3 * width);
    if (!yuv || !row)
        abort();
    memset(yuv, 128, 3 * plane);
    for (size_t y = 0; jpeg.output_scanline < height; y++) {
        JSAMPROW rows = row;
        jpeg_read_scanlines(&jpeg, &rows, 1);
        for (size_t x = 0; x < width; x++)
            for (int c = 0; c < (gray ? 1 : 3); c++)
                yuv[(size_t)c * plane + y * width + x] = gray ? row[x] : row[3 * x + (size_t)c];
    }
    jpeg_finish_decompress(&jpeg);
    jpeg_destroy_decompress(&jpeg);
    free(row);
    *out_width = (uint32_t)width;
    *out_height = (uint32_t)height;
    return yuv;
}

typedef struct sink {
    uint8_t *bytes;
    size_t n, room;
} sink;

static void put(png_structp png, png_bytep from, size_t n) {
    sink *s = png_get_io_ptr(png);
    if (s->n + n > s->room) {
        s->room = 2 * (s->n + n);
        s->bytes = realloc(s->bytes, s->room);
        if (!s->bytes)
            abort();
    }
    memcpy(s->bytes + s->n, from, n);
    s->n += n;
}

static void flush(png_structp png) {
    (void)png;
}

/* Sample i of a row of any depth, as 8 bits. */
static uint8_t sample(const uint8_t *row, size_t i, int depth, bool index) {
    if (depth == 16)
        return (uint8_t)(((row[2 * i] << 8 | row[2 * i + 1]) * 255 + 32767) / 65535);
    unsigned bits = row[i * (size_t)depth / 8] >> (8 - depth - (int)(i * (size_t)depth % 8)) & ((1u << depth) - 1);
    return (uint8_t)(index ? bits : bits * 255 / ((1u << depth) - 1));
}

uint8_t *make_png(uint32_t width, uint32_t height, int channels, int depth, bool interlaced, bool palette,
                  uint8_t **out_rgba, size_t *out_bytes) {
    static const int types[] = {0, PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB,
                                PNG_COLOR_TYPE_RGBA};
    sink s = {0};
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    png_set_write_fn(png, &s, put, flush);
    png_set_IHDR(png, info, width, height, depth, palette ? PNG_COLOR_TYPE_PALETTE : types[channels],
                 interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    png_color colours[16];
    png_byte alphas[16];
    for (int i = 0; i < 16; i++) {
        colours[i] = (png_color){(png_byte)(i * 16), (png_byte)(255 - i * 13), (png_byte)(i * i)};
        alphas[i] = (png_byte)(i * 17);
    }
    if (palette) {
        png_set_PLTE(png, info, colours, 16);
        png_set_tRNS(png, info, alphas, 16, NULL);
    }
    png_write_info(png, info);
    size_t row_bytes = png_get_rowbytes(png, info);
    uint8_t *all = malloc(row_bytes * height);
    png_bytep *rows = malloc(height * sizeof *rows);
    if (!all || !rows)
        abort();
    uint32_t state = width + height;
    for (size_t i = 0; i < row_bytes * height; i++)
        all[i] = palette && depth == 8 ? noise(&state) % 16 : (uint8_t)(i / 5 + noise(&state) / 32);
    for (uint32_t y = 0; y < height; y++)
        rows[y] = all + y * row_bytes;
    uint8_t *rgba = malloc((size_t)width * height * 4);
    if (!rgba)
        abort();
    for (uint32_t y = 0; y < height; y++)
        for (uint32_t x = 0; x < width; x++) {
            uint8_t *p = rgba + ((size_t)y * width + x) * 4, v[4];
            for (int c = 0; c < channels; c++)
                v[c] = sample(rows[y], (size_t)x * (size_t)channels + (size_t)c, depth, palette);
            if (palette)
                memcpy(p, (uint8_t[]){colours[v[0]].red, colours[v[0]].green, colours[v[0]].blue, alphas[v[0]]}, 4);
            else
                memcpy(p,
                       (uint8_t[]){v[0], v[channels > 2 ? 1 : 0], v[channels > 2 ? 2 : 0],
                                   channels % 2 ? 255 : v[channels - 1]},
                       4);
        }
    *out_rgba = rgba;
    png_write_image(png, rows);
    png_write_end(png, info);
    png_destroy_write_struct(&png, &info);
    free(rows);
    free(all);
    *out_bytes = s.n;
    return s.bytes;
}
