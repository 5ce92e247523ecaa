#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>
#include <jerror.h>

#include "base/memory.h"
#include "media/draw.h"
#include "media/file.h"

enum { BAND_ROWS = 2 * DCTSIZE };

typedef struct writer {
    struct jpeg_compress_struct jpeg;
    struct jpeg_error_mgr errors;
    struct jpeg_destination_mgr to;
    jmp_buf escape;
    bool full, out_of_memory;
    char message[JMSG_LENGTH_MAX];
    uint8_t *memory;
    JSAMPROW rows[3][BAND_ROWS];
} writer;

static _Noreturn void leave(j_common_ptr common) {
    writer *w = (writer *)common->client_data;
    common->err->format_message(common, w->message);
    w->out_of_memory = common->err->msg_code == JERR_OUT_OF_MEMORY;
    longjmp(w->escape, 1);
}

static void silent(j_common_ptr common, int level) {
    (void)common;
    (void)level;
}

static void nothing(j_compress_ptr jpeg) {
    (void)jpeg;
}

static boolean no_room(j_compress_ptr jpeg) {
    writer *w = (writer *)jpeg->client_data;
    w->full = true;
    longjmp(w->escape, 1);
}

static void set_up(writer *w, const dp_picture *p, int quality, void *bytes, size_t room_bytes) {
    const dp_format *format = dp_format_of(p->format);
    jpeg_create_compress(&w->jpeg);
    w->to = (struct jpeg_destination_mgr){.next_output_byte = bytes,
                                          .free_in_buffer = room_bytes,
                                          .init_destination = nothing,
                                          .empty_output_buffer = no_room,
                                          .term_destination = nothing};
    w->jpeg.dest = &w->to;
    w->jpeg.image_width = p->width;
    w->jpeg.image_height = p->height;
    bool gray = format->layout == DP_LAYOUT_GRAY;
    w->jpeg.input_components = gray ? 1 : 3;
    w->jpeg.in_color_space = gray ? JCS_GRAYSCALE : JCS_YCbCr;
    jpeg_set_defaults(&w->jpeg);
    jpeg_set_quality(&w->jpeg, quality, TRUE);
    w->jpeg.raw_data_in = TRUE;
    w->jpeg.comp_info[0].h_samp_factor = 1 << format->x_shift;
    w->jpeg.comp_info[0].v_samp_factor = 1 << format->y_shift;
    jpeg_start_compress(&w->jpeg, TRUE);
}

static dp_status make_band(writer *w) {
    size_t at[3], pitch[3], total = 0;
    for (int c = 0; c < w->jpeg.num_components; c++) {
        const jpeg_component_info *info = &w->jpeg.comp_info[c];
        pitch[c] = ((size_t)info->width_in_blocks + (size_t)info->h_samp_factor) * DCTSIZE;
        at[c] = total;
        total += pitch[c] * (size_t)info->v_samp_factor * DCTSIZE;
    }
    w->memory = dp_realloc(DP_MEM_MEDIA, NULL, total);
    if (!w->memory)
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory to encode a JPEG: free some");
    for (int c = 0; c < w->jpeg.num_components; c++)
        for (int y = 0; y < w->jpeg.comp_info[c].v_samp_factor * DCTSIZE; y++)
            w->rows[c][y] = w->memory + at[c] + (size_t)y * pitch[c];
    return DP_OK;
}

static void extend(uint8_t *row, size_t n, size_t room) {
    if (room > n)
        memset(row + n, row[n - 1], room - n);
}

/* The band's rows of a plane; rows below the picture repeat its last. */
static void take_plane(writer *w, const dp_plane *plane, uint32_t first, const int components[2], int n_components) {
    const jpeg_component_info *info = &w->jpeg.comp_info[components[0]];
    size_t room = ((size_t)info->width_in_blocks + (size_t)info->h_samp_factor) * DCTSIZE;
    for (int i = 0; i < info->v_samp_factor * DCTSIZE; i++) {
        uint32_t y = first + (uint32_t)i < plane->rows ? first + (uint32_t)i : plane->rows - 1;
        const uint8_t *row = plane->data + y * plane->pitch;
        if (n_components == 1)
            memcpy(w->rows[components[0]][i], row, plane->columns);
        else
            dp_rows_get()->split2(row, w->rows[components[0]][i], w->rows[components[1]][i], plane->columns);
        for (int c = 0; c < n_components; c++)
            extend(w->rows[components[c]][i], plane->columns, room);
    }
}

static void write_pixels(writer *w, const dp_picture *p) {
    const dp_format *format = dp_format_of(p->format);
    const dp_area all = dp_picture_area(p);
    const dp_plane luma = dp_picture_plane(p, 0, &all);
    JSAMPARRAY bands[3] = {w->rows[0], w->rows[1], w->rows[2]};
    const int y_only[2] = {0, 0}, uv[2] = {format->place[1] == 0 ? 1 : 2, format->place[1] == 0 ? 2 : 1};
    uint32_t n = (uint32_t)DCTSIZE << format->y_shift;
    for (uint32_t y = 0; y < p->height; y += n) {
        take_plane(w, &luma, y, y_only, 1);
        if (format->layout == DP_LAYOUT_SEMIPLANAR) {
            const dp_plane chroma = dp_picture_plane(p, 1, &all);
            take_plane(w, &chroma, y >> format->y_shift, uv, 2);
        }
        jpeg_write_raw_data(&w->jpeg, bands, n);
    }
}

static dp_status encode(writer *w, const dp_picture *p, int quality, void *bytes, size_t room_bytes,
                        size_t *out_size_bytes) {
    set_up(w, p, quality, bytes, room_bytes);
    dp_status status = make_band(w);
    if (status != DP_OK)
        return status;
    write_pixels(w, p);
    jpeg_finish_compress(&w->jpeg);
    *out_size_bytes = room_bytes - w->to.free_in_buffer;
    return DP_OK;
}

static dp_status failed(const writer *w, const dp_picture *p, size_t room_bytes) {
    if (w->full)
        return dp_fail(
            DP_ERR_ARGUMENT,
            "size: the file does not fit into %zu bytes; acldvppJpegPredictEncSize says %zu, which is always "
            "enough",
            room_bytes, dp_jpeg_room(p));
    if (w->out_of_memory)
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory to encode a JPEG: free some");
    return dp_fail(DP_ERR_INTERNAL, "the JPEG library refuses a picture of %u x %u: %s", p->width, p->height,
                   w->message);
}

static dp_status encode_semiplanar(const dp_picture *p, int quality, void *bytes, size_t room_bytes,
                                   size_t *out_size_bytes) {
    writer *w = dp_alloc(DP_MEM_MEDIA, sizeof *w);
    if (!w)
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory to encode a JPEG: free some");
    w->jpeg.err = jpeg_std_error(&w->errors);
    w->errors.error_exit = leave;
    w->errors.emit_message = silent;
    w->jpeg.client_data = w;
    dp_status status;
    if (setjmp(w->escape))
        status = failed(w, p, room_bytes);
    else
        status = encode(w, p, quality, bytes, room_bytes, out_size_bytes);
    jpeg_destroy_compress(&w->jpeg);
    dp_free(w->memory);
    dp_free(w);
    return status;
}

dp_status dp_jpeg_encode(const dp_picture *picture, int quality, void *out_bytes, size_t room_bytes,
                         size_t *out_size_bytes) {
    dp_picture converted = {0};
    int format = dp_jpeg_format(picture->format);
    dp_status status = DP_OK;
    if (format != picture->format) {
        const dp_area all = dp_picture_area(picture);
        status = dp_picture_new(format, picture->width, picture->height, &converted);
        if (status == DP_OK)
            status = dp_picture_convert(picture, &all, &converted, &all, DP_COLOUR_BT601_WIDE);
        picture = &converted;
    }
    if (status == DP_OK)
        status = encode_semiplanar(picture, quality, out_bytes, room_bytes, out_size_bytes);
    dp_picture_free(&converted);
    return status;
}
