#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <png.h>

#include "base/memory.h"
#include "media/file.h"

enum { CHUNK_BYTES = 8 << 20, CHUNKS_MOST = 256 }; /* of text, profiles and the like */

typedef struct reader {
    png_structp png;
    png_infop info;
    const uint8_t *bytes;
    size_t size_bytes, at;
    bool out_of_memory;
    char message[200];
    png_bytep *rows;
} reader;

static void leave(png_structp png, png_const_charp text) {
    reader *r = png_get_error_ptr(png);
    snprintf(r->message, sizeof r->message, "%s", text);
    png_longjmp(png, 1);
}

static void silent(png_structp png, png_const_charp text) {
    (void)png;
    (void)text;
}

static void take(png_structp png, png_bytep to, size_t n) {
    reader *r = png_get_io_ptr(png);
    if (n > r->size_bytes - r->at) {
        char text[100];
        snprintf(text, sizeof text, "it ends after %zu bytes, in the middle", r->size_bytes);
        png_error(png, text);
    }
    memcpy(to, r->bytes + r->at, n);
    r->at += n;
}

static png_voidp allocate(png_structp png, png_alloc_size_t size_bytes) {
    void *memory = dp_alloc(DP_MEM_MEDIA, size_bytes);
    reader *r = png_get_mem_ptr(png);
    r->out_of_memory |= !memory;
    return memory;
}

static void give_back(png_structp png, png_voidp memory) {
    (void)png;
    dp_free(memory);
}

static bool begin(reader *r, const void *bytes, size_t size_bytes) {
    *r = (reader){.bytes = bytes, .size_bytes = size_bytes};
    r->png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, r, leave, silent, r, allocate, give_back);
    r->info = r->png ? png_create_info_struct(r->png) : NULL;
    return r->info;
}

static void end(reader *r) {
    png_destroy_read_struct(&r->png, &r->info, NULL);
    dp_free(r->rows);
}

static dp_status failed(const reader *r, const char *argument) {
    if (r->out_of_memory || !r->info)
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "%s: no host memory to decode it: free some", argument);
    return dp_fail(DP_ERR_ARGUMENT, "%s: not a PNG that can be decoded: %s", argument, r->message);
}

/* Reads up to the pixels; the place to escape to is set. */
static void read_header(reader *r) {
    png_set_read_fn(r->png, r, take);
    png_set_user_limits(r->png, 0x7fffffff, 0x7fffffff); /* ours come with a sentence */
    png_set_chunk_cache_max(r->png, CHUNKS_MOST);
    png_set_chunk_malloc_max(r->png, CHUNK_BYTES);
    png_set_keep_unknown_chunks(r->png, PNG_HANDLE_CHUNK_NEVER, NULL, 0);
    png_read_info(r->png, r->info);
}

static dp_status check_header(const reader *r, const char *argument, dp_file_info *out_info) {
    png_byte type = png_get_color_type(r->png, r->info);
    *out_info =
        (dp_file_info){.width = png_get_image_width(r->png, r->info),
                       .height = png_get_image_height(r->png, r->info),
                       .components = png_get_channels(r->png, r->info),
                       .has_alpha = (type & PNG_COLOR_MASK_ALPHA) || png_get_valid(r->png, r->info, PNG_INFO_tRNS)};
    if (out_info->width > DP_PICTURE_SIDE || out_info->height > DP_PICTURE_SIDE)
        return dp_fail(DP_ERR_UNSUPPORTED, "%s: the PNG has %u x %u pixels, but at most %d each way are decoded",
                       argument, out_info->width, out_info->height, DP_PICTURE_SIDE);
    return DP_OK;
}

dp_status dp_png_info(const void *bytes, size_t size_bytes, const char *argument, dp_file_info *out_info) {
    reader r;
    dp_status status = dp_file_check(bytes, size_bytes, argument);
    if (status != DP_OK)
        return status;
    if (!begin(&r, bytes, size_bytes) || setjmp(png_jmpbuf(r.png))) {
        status = failed(&r, argument);
        end(&r);
        return status;
    }
    read_header(&r);
    status = check_header(&r, argument, out_info);
    end(&r);
    return status;
}

/* Everything to 8 bits a channel, in the picture's order, with alpha if the picture has it. */
static void ask_for(reader *r, const dp_picture *p, bool has_alpha) {
    png_byte type = png_get_color_type(r->png, r->info);
    bool wants_alpha = dp_format_of(p->format)->bytes == 4;
    bool alpha_first = p->format == DP_PIXEL_ARGB || p->format == DP_PIXEL_ABGR;
    png_set_expand(r->png);
    png_set_scale_16(r->png);
    if (!(type & PNG_COLOR_MASK_COLOR))
        png_set_gray_to_rgb(r->png);
    if (p->format == DP_PIXEL_BGR || p->format == DP_PIXEL_ABGR || p->format == DP_PIXEL_BGRA)
        png_set_bgr(r->png);
    if (has_alpha && !wants_alpha)
        png_set_strip_alpha(r->png);
    if (!has_alpha && wants_alpha)
        png_set_filler(r->png, 255, alpha_first ? PNG_FILLER_BEFORE : PNG_FILLER_AFTER);
    if (has_alpha && alpha_first)
        png_set_swap_alpha(r->png);
    png_set_interlace_handling(r->png);
    png_read_update_info(r->png, r->info);
}

static dp_status decode(reader *r, dp_picture *picture) {
    dp_file_info info;
    read_header(r);
    dp_status status = check_header(r, "data", &info);
    if (status == DP_OK)
        status = dp_png_plan(&info, picture);
    if (status == DP_OK)
        status = dp_picture_complete(picture, "outputDesc");
    if (status != DP_OK)
        return status;
    ask_for(r, picture, info.has_alpha);
    if (png_get_rowbytes(r->png, r->info) != (size_t)picture->width * dp_format_of(picture->format)->bytes)
        return dp_fail(DP_ERR_INTERNAL, "libpng gives rows of %zu bytes for %u pixels of %s",
                       png_get_rowbytes(r->png, r->info), picture->width, dp_format_of(picture->format)->name);
    r->rows = dp_alloc(DP_MEM_MEDIA, picture->height * sizeof *r->rows);
    if (!r->rows)
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory to decode a PNG: free some");
    for (uint32_t y = 0; y < picture->height; y++)
        r->rows[y] = picture->data + (size_t)y * picture->width_stride;
    png_read_image(r->png, r->rows);
    png_read_end(r->png, NULL);
    return DP_OK;
}

dp_status dp_png_decode(const void *bytes, size_t size_bytes, dp_picture *picture) {
    dp_status status = dp_file_check(bytes, size_bytes, "data");
    if (status != DP_OK)
        return status;
    reader *r = dp_alloc(DP_MEM_MEDIA, sizeof *r);
    if (!r)
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory to decode a PNG: free some");
    if (!begin(r, bytes, size_bytes) || setjmp(png_jmpbuf(r->png)))
        status = failed(r, "data");
    else
        status = decode(r, picture);
    end(r);
    dp_free(r);
    return status;
}
