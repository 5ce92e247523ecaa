#include "drawing.h"

#include <cairo.h>
#include <math.h>
#include <stdlib.h>

struct Drawing {
    cairo_surface_t *surface;
    cairo_t *context;
    double unit; /* line width and letters grow with the picture */
};

static void Copy(cairo_surface_t *surface, const Picture *picture, bool toSurface) {
    unsigned char *data = cairo_image_surface_get_data(surface);
    int stride = cairo_image_surface_get_stride(surface);
    cairo_surface_flush(surface);
    for (int y = 0; y < picture->height; y++)
        for (int x = 0; x < picture->width; x++) {
            uint32_t *to = (uint32_t *)(void *)(data + y * stride) + x;
            uint8_t *rgb = picture->pixels + 3 * (y * picture->width + x);
            if (toSurface) {
                *to = (uint32_t)rgb[0] << 16 | (uint32_t)rgb[1] << 8 | rgb[2];
            } else {
                rgb[0] = (uint8_t)(*to >> 16);
                rgb[1] = (uint8_t)(*to >> 8);
                rgb[2] = (uint8_t)*to;
            }
        }
    cairo_surface_mark_dirty(surface);
}

Drawing *DrawingOpen(const Picture *picture) {
    Drawing *d = calloc(1, sizeof *d);
    if (!d)
        return NULL;
    d->surface = cairo_image_surface_create(CAIRO_FORMAT_RGB24, picture->width, picture->height);
    if (cairo_surface_status(d->surface) != CAIRO_STATUS_SUCCESS) {
        cairo_surface_destroy(d->surface);
        free(d);
        return NULL;
    }
    Copy(d->surface, picture, true);
    d->context = cairo_create(d->surface);
    d->unit = fmax(1, fmin(picture->width, picture->height) / 300.0);
    cairo_select_font_face(d->context, "DejaVu Sans", CAIRO_FONT_SLANT_NORMAL, CAIRO_FONT_WEIGHT_BOLD);
    cairo_set_font_size(d->context, 8 * d->unit);
    return d;
}

static void DrawWords(Drawing *d, const float *x, const float *y, const char *words, bool beside) {
    cairo_text_extents_t size;
    double pad = 1.5 * d->unit, gap = 2 * d->unit;
    cairo_text_extents(d->context, words, &size);
    double width = size.x_advance + 2 * pad, height = 8 * d->unit + 2 * pad;
    double right = fmax((double)x[1], (double)x[2]) + gap, left = (double)x[0] - d->unit;
    double above = (double)y[0] - d->unit - height, middle = (double)(y[1] + y[2] - (float)height) / 2;
    beside &= right + width <= cairo_image_surface_get_width(d->surface);
    double at = beside ? right : left, top = beside ? middle : above < 0 ? (double)y[0] : above;
    cairo_set_source_rgba(d->context, 0, 0, 0, .65);
    cairo_rectangle(d->context, at, top, width, height);
    cairo_fill(d->context);
    cairo_set_source_rgb(d->context, 1, 1, 1);
    cairo_move_to(d->context, at + pad, top + height - 2 * pad);
    cairo_show_text(d->context, words);
}

void DrawingBox(Drawing *d, const float *x, const float *y, const char *words, bool beside) {
    cairo_set_source_rgb(d->context, .1, .9, .3);
    cairo_set_line_width(d->context, 2 * d->unit);
    cairo_move_to(d->context, (double)x[0], (double)y[0]);
    for (int i = 1; i < 4; i++)
        cairo_line_to(d->context, (double)x[i], (double)y[i]);
    cairo_close_path(d->context);
    cairo_stroke(d->context);
    DrawWords(d, x, y, words, beside);
}

void DrawingPoint(Drawing *d, float x, float y) {
    cairo_set_source_rgb(d->context, 1, .8, .1);
    cairo_arc(d->context, (double)x, (double)y, 2 * d->unit, 0, 6.2831853);
    cairo_fill(d->context);
}

void DrawingClose(Drawing *d, Picture *picture) {
    Copy(d->surface, picture, false);
    cairo_destroy(d->context);
    cairo_surface_destroy(d->surface);
    free(d);
}
