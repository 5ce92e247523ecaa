#include "doppel.h"

#include <stdio.h>

#ifdef DOPPEL_HAVE_RSVG
#include <cairo.h>
#include <librsvg/rsvg.h>

bool doppel_draw_png(const char *command, const char *svg_path, const char *png_path) {
    GError *error = NULL;
    cairo_surface_t *surface = NULL;
    cairo_t *context = NULL;
    gdouble width = 0, height = 0;
    bool good = false;
    RsvgHandle *svg = rsvg_handle_new_from_file(svg_path, &error);
    if (svg && rsvg_handle_get_intrinsic_size_in_pixels(svg, &width, &height)) {
        surface = cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)width, (int)height);
        context = cairo_create(surface);
        const RsvgRectangle page = {0, 0, width, height};
        good = rsvg_handle_render_document(svg, context, &page, &error) &&
               cairo_surface_write_to_png(surface, png_path) == CAIRO_STATUS_SUCCESS;
    }
    if (!good)
        fprintf(stderr, "%s: cannot draw %s as %s: %s\n", command, svg_path, png_path, error ? error->message : "write failed");
    if (context)
        cairo_destroy(context);
    if (surface)
        cairo_surface_destroy(surface);
    if (svg)
        g_object_unref(svg);
    if (error)
        g_error_free(error);
    return good;
}
#else
bool doppel_draw_png(const char *command, const char *svg_path, const char *png_path) {
    fprintf(stderr, "%s: built without librsvg: %s is not written, %s is\n", command, png_path, svg_path);
    return false;
}
#endif
