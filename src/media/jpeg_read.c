#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>
#include <jerror.h>

#include "base/memory.h"
#include "media/file.h"
#include "media/rows.h"

enum {
    SCANS_MOST = 300,          /* of a progressive file; real ones have about ten */
    LIBRARY_BYTES = 768 << 20, /* libjpeg's own memory: coefficients of a progressive file */
    BAND_ROWS = 4 * DCTSIZE,   /* most rows that the library gives at once */
    COMPONENTS = 3
};

typedef struct reader {
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr errors;
    struct jpeg_progress_mgr progress;
    jmp_buf escape;
    bool out_of_memory;
    char message[JMSG_LENGTH_MAX];
    uint8_t *memory; /* of the band */
    JSAMPROW rows[COMPONENTS][BAND_ROWS];
} reader;

static _Noreturn void leave(j_common_ptr common) {
    reader *r = (reader *)common->client_data;
    common->err->format_message(common, r->message);
    r->out_of_memory = common->err->msg_code == JERR_OUT_OF_MEMORY;
    longjmp(r->escape, 1);
}

/* Warnings: those that mean that pixels are missing end the reading, the others are harmless. */
static void warned(j_common_ptr common, int level) {
    int code = common->err->msg_code;
    if (level < 0 && code != JWRN_EXTRANEOUS_DATA && code != JWRN_ADOBE_XFORM && code != JWRN_JFIF_MAJOR &&
        code != JWRN_TOO_MUCH_DATA)
        leave(common);
}

static void watch(j_common_ptr common) {
    reader *r = (reader *)common->client_data;
    if (common->is_decompressor && ((j_decompress_ptr)common)->input_scan_number > SCANS_MOST) {
        snprintf(r->message, sizeof r->message, "it has more than %d scans", SCANS_MOST);
        longjmp(r->escape, 1);
    }
}

static dp_status failed(const reader *r, const char *argument) {
    if (r->out_of_memory)
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "%s: no host memory to decode it: free some", argument);
    return dp_fail(DP_ERR_ARGUMENT, "%s: not a JPEG that can be decoded: %s", argument, r->message);
}

static void begin(reader *r) {
    memset(r, 0, sizeof *r);
    r->jpeg.err = jpeg_std_error(&r->errors);
    r->errors.error_exit = leave;
    r->errors.emit_message = warned;
    r->jpeg.client_data = r;
}

static void end(reader *r) {
    jpeg_destroy_decompress(&r->jpeg);
    dp_free(r->memory);
}

static dp_jpeg_sampling sampling_of(const struct jpeg_decompress_struct *jpeg) {
    const jpeg_component_info *c = jpeg->comp_info;
    if (jpeg->num_components == 1)
        return DP_JPEG_GRAY;
    if (jpeg->num_components != 3 || c[1].h_samp_factor != c[2].h_samp_factor ||
        c[1].v_samp_factor != c[2].v_samp_factor || c[0].h_samp_factor % c[1].h_samp_factor ||
        c[0].v_samp_factor % c[1].v_samp_factor)
        return DP_JPEG_OTHER;
    int across = c[0].h_samp_factor / c[1].h_samp_factor, down = c[0].v_samp_factor / c[1].v_samp_factor;
    switch (10 * across + down) {
    case 11:
        return DP_JPEG_444;
    case 21:
        return DP_JPEG_422;
    case 22:
        return DP_JPEG_420;
    case 12:
        return DP_JPEG_440;
    case 41:
        return DP_JPEG_411;
    default:
        return DP_JPEG_OTHER;
    }
}

/* Reads up to the pixels; the place to escape to is set. */
static void read_header(reader *r, const void *bytes, size_t size_bytes) {
    jpeg_create_decompress(&r->jpeg);
    r->jpeg.mem->max_memory_to_use = LIBRARY_BYTES;
    r->progress.progress_monitor = watch;
    r->jpeg.progress = &r->progress;
    jpeg_mem_src(&r->jpeg, bytes, (unsigned long)size_bytes);
    jpeg_read_header(&r->jpeg, TRUE);
}

static dp_status check_header(const reader *r, const char *argument, dp_file_info *out_info) {
    const struct jpeg_decompress_struct *j = &r->jpeg;
    *out_info = (dp_file_info){.width = j->image_width,
                               .height = j->image_height,
                               .components = j->num_components,
                               .sampling = sampling_of(j)};
    if (j->image_width > DP_PICTURE_SIDE || j->image_height > DP_PICTURE_SIDE)
        return dp_fail(DP_ERR_UNSUPPORTED, "%s: the JPEG has %u x %u pixels, but at most %d each way are decoded",
                       argument, j->image_width, j->image_height, DP_PICTURE_SIDE);
    return DP_OK;
}

dp_status dp_jpeg_info(const void *bytes, size_t size_bytes, const char *argument, dp_file_info *out_info) {
    reader r;
    dp_status status = dp_file_check(bytes, size_bytes, argument);
    if (status != DP_OK)
        return status;
    begin(&r);
    if (setjmp(r.escape)) {
        end(&r);
        return failed(&r, argument);
    }
    read_header(&r, bytes, size_bytes);
    status = check_header(&r, argument, out_info);
    end(&r);
    return status;
}

/* The pixels. Samples come as they are stored: the library neither enlarges the chroma nor converts colours. */

/* How the file's chroma becomes the picture's: so many values of the file for one, or one for so many, each way. */
typedef struct chroma_steps {
    int across, down;           /* samples of luma per chroma sample in the file */
    int want_across, want_down; /* in the picture */
} chroma_steps;

static dp_status check_colours(const reader *r, const dp_file_info *info) {
    J_COLOR_SPACE space = r->jpeg.jpeg_color_space;
    if (info->sampling == DP_JPEG_OTHER || (info->components == 3 && space != JCS_YCbCr))
        return dp_fail(DP_ERR_UNSUPPORTED,
                       "data: the JPEG has %d components%s, which is not decoded: only grey and YCbCr of 4:4:4, 4:4:0, "
                       "4:2:2, 4:2:0 and 4:1:1 are",
                       info->components, space == JCS_RGB ? " in RGB" : " in a sampling of its own");
    if (r->jpeg.data_precision != 8)
        return dp_fail(DP_ERR_UNSUPPORTED, "data: the JPEG has %d bits a sample, but only 8 are decoded",
                       r->jpeg.data_precision);
    return DP_OK;
}

/* Room for a band of every component, at the size that the library writes. */
static dp_status make_band(reader *r) {
    size_t at[COMPONENTS], pitch[COMPONENTS], total = 0;
    for (int c = 0; c < r->jpeg.num_components; c++) {
        const jpeg_component_info *info = &r->jpeg.comp_info[c];
        pitch[c] = ((size_t)info->width_in_blocks + (size_t)info->h_samp_factor) * DCTSIZE + 64;
        at[c] = total;
        total += pitch[c] * (size_t)info->v_samp_factor * DCTSIZE;
    }
    /* behind it: a row of luma's size for each chroma channel, twice, while its size is changed */
    r->memory = dp_realloc(DP_MEM_MEDIA, NULL, total + 4 * ((size_t)r->jpeg.image_width + 128));
    if (!r->memory)
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory to decode a JPEG: free some");
    for (int c = 0; c < r->jpeg.num_components; c++)
        for (int y = 0; y < r->jpeg.comp_info[c].v_samp_factor * DCTSIZE; y++)
            r->rows[c][y] = r->memory + at[c] + (size_t)y * pitch[c];
    return DP_OK;
}

/* The last value again, so that what is averaged or doubled beyond the edge is the edge. */
static void extend(uint8_t *row, size_t n, size_t room) {
    if (room > n)
        memset(row + n, row[n - 1], room - n);
}

/* Row `y` of the picture's chroma, one channel, from the band's rows: `first` is that of the file's at the band's top.
 */
static const uint8_t *chroma_row(reader *r, const dp_rows *rows, const chroma_steps *s, int c, uint32_t y,
                                 uint32_t first, uint32_t columns, uint8_t *spare) {
    const jpeg_component_info *info = &r->jpeg.comp_info[c];
    uint32_t have = info->downsampled_width, last = info->downsampled_height - 1;
    uint32_t top = s->want_down > s->down ? 2 * y : y / (uint32_t)(s->down / s->want_down);
    top = top > last ? last : top;
    uint8_t *row = spare, *other = spare + (size_t)r->jpeg.image_width + 128;
    if (s->want_down > s->down) {
        uint32_t next = top + 1 > last ? last : top + 1;
        rows->mean_down(r->rows[c][top - first], r->rows[c][next - first], row, have);
    } else if (s->want_across == s->across && columns <= have) {
        return r->rows[c][top - first];
    } else {
        memcpy(row, r->rows[c][top - first], have);
    }
    if (s->want_across > s->across) {
        extend(row, have, 2 * (size_t)columns);
        rows->mean_across(row, other, columns);
        return other;
    }
    extend(row, have, columns);
    for (int ratio = s->across / s->want_across; ratio > 1; ratio /= 2) {
        rows->twice(row, other, columns / (size_t)ratio + 1);
        uint8_t *swap = row;
        row = other;
        other = swap;
    }
    return row;
}

/* Rows [y, end) of the picture's chroma. */
static void write_chroma(reader *r, const dp_picture *p, const chroma_steps *s, uint32_t y, uint32_t end,
                         uint32_t first) {
    const dp_rows *rows = dp_rows_get();
    const dp_area all = dp_picture_area(p);
    const dp_plane plane = dp_picture_plane(p, 1, &all);
    uint8_t *spare = r->memory + (r->rows[2][0] - r->memory) +
                     (size_t)(r->rows[2][1] - r->rows[2][0]) * (size_t)r->jpeg.comp_info[2].v_samp_factor * DCTSIZE;
    bool swapped = dp_format_of(p->format)->place[1] == 1;
    for (; y < end && y < plane.rows; y++) {
        const uint8_t *uv[2];
        for (int c = 0; c < 2; c++)
            uv[c] = chroma_row(r, rows, s, 1 + c, y, first, plane.columns,
                               spare + (size_t)c * 2 * ((size_t)r->jpeg.image_width + 128));
        rows->join2(uv[swapped], uv[!swapped], plane.data + y * plane.pitch, plane.columns);
    }
}

/* Luma rows go straight into the picture where its rows have room for the library's blocks. */
static void aim_luma(reader *r, const dp_picture *p, uint32_t y, JSAMPROW *own, int n) {
    const jpeg_component_info *info = &r->jpeg.comp_info[0];
    bool direct = (size_t)info->width_in_blocks * DCTSIZE <= p->width_stride;
    for (int i = 0; i < n; i++)
        r->rows[0][i] =
            direct && y + (uint32_t)i < p->height ? p->data + (size_t)(y + (uint32_t)i) * p->width_stride : own[i];
}

static void write_luma(reader *r, const dp_picture *p, uint32_t y, int n) {
    uint32_t have = r->jpeg.image_width, last = r->jpeg.image_height - 1;
    for (int i = 0; i < n && y + (uint32_t)i < p->height; i++) {
        uint8_t *to = p->data + (size_t)(y + (uint32_t)i) * p->width_stride;
        const uint8_t *from = y + (uint32_t)i > last ? to - p->width_stride : r->rows[0][i];
        if (from != to)
            memcpy(to, from, have < p->width ? have : p->width);
        extend(to, have, p->width);
    }
}

static void read_pixels(reader *r, const dp_picture *p) {
    const dp_format *format = dp_format_of(p->format);
    const jpeg_component_info *info = r->jpeg.comp_info;
    bool colour = r->jpeg.num_components == 3, gray = format->layout == DP_LAYOUT_GRAY;
    chroma_steps s = {.want_across = 1 << format->x_shift, .want_down = 1 << format->y_shift};
    JSAMPROW own[BAND_ROWS];
    JSAMPARRAY bands[COMPONENTS] = {r->rows[0], r->rows[1], r->rows[2]};
    int n = info[0].v_samp_factor * DCTSIZE;
    memcpy(own, r->rows[0], sizeof own);
    if (colour) {
        s.across = info[0].h_samp_factor / info[1].h_samp_factor;
        s.down = info[0].v_samp_factor / info[1].v_samp_factor;
    }
    for (uint32_t y = 0; r->jpeg.output_scanline < r->jpeg.output_height; y += (uint32_t)n) {
        aim_luma(r, p, y, own, n);
        jpeg_read_raw_data(&r->jpeg, bands, (JDIMENSION)n);
        bool last = r->jpeg.output_scanline >= r->jpeg.output_height;
        write_luma(r, p, y, last ? n + 1 : n);
        if (colour && !gray)
            write_chroma(r, p, &s, y / (uint32_t)s.want_down,
                         last ? UINT32_MAX : (y + (uint32_t)n) / (uint32_t)s.want_down, y / (uint32_t)s.down);
    }
}

/* A grey file in a picture with colours. */
static void grey_chroma(const dp_picture *p) {
    const dp_area all = dp_picture_area(p);
    const dp_plane plane = dp_picture_plane(p, 1, &all);
    for (uint32_t y = 0; y < plane.rows; y++)
        memset(plane.data + y * plane.pitch, 128, 2 * (size_t)plane.columns);
}

static dp_status decode(reader *r, const void *bytes, size_t size_bytes, dp_jpeg_odd odd, dp_picture *picture) {
    dp_file_info info;
    read_header(r, bytes, size_bytes);
    dp_status status = check_header(r, "data", &info);
    if (status == DP_OK)
        status = check_colours(r, &info);
    if (status == DP_OK)
        status = dp_jpeg_plan(&info, odd, picture);
    if (status == DP_OK)
        status = dp_picture_complete(picture, "outputDesc");
    if (status != DP_OK)
        return status;
    r->jpeg.raw_data_out = TRUE;
    r->jpeg.out_color_space = r->jpeg.jpeg_color_space;
    r->jpeg.dct_method = JDCT_ISLOW;
    r->jpeg.do_fancy_upsampling = FALSE;
    jpeg_start_decompress(&r->jpeg);
    status = make_band(r);
    if (status != DP_OK)
        return status;
    read_pixels(r, picture);
    jpeg_finish_decompress(&r->jpeg);
    if (info.components == 1 && dp_format_of(picture->format)->layout == DP_LAYOUT_SEMIPLANAR)
        grey_chroma(picture);
    return DP_OK;
}

dp_status dp_jpeg_decode(const void *bytes, size_t size_bytes, dp_jpeg_odd odd, dp_picture *picture) {
    dp_status status = dp_file_check(bytes, size_bytes, "data");
    if (status != DP_OK)
        return status;
    reader *r = dp_realloc(DP_MEM_MEDIA, NULL, sizeof *r);
    if (!r)
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory to decode a JPEG: free some");
    begin(r);
    if (setjmp(r->escape))
        status = failed(r, "data");
    else
        status = decode(r, bytes, size_bytes, odd, picture);
    end(r);
    dp_free(r);
    return status;
}
