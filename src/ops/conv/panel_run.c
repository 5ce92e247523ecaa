/* panel_run.c - executes what panel_conv.c planned: pieces of rows and columns, in any order. */
#include "ops/conv/panel_conv.h"

#include <string.h>

enum {
    ROWS = 240,      /* of a piece: a multiple of all tiles; 256 channels of them take half of a second level cache */
    POINTERS = 8192, /* of a piece, about */
    BAND_ELEMENTS = 1 << 22,
    COLUMNS_LEAST = 64,    /* of a piece that is one of several in a row */
    COLUMNS_AT_ONCE = 256, /* whose sums stay in the second level cache between parts of k */
    PIECES_PER_THREAD = 4, /* so that threads end together */
};

/* The scratch's parts that depend on the type. */

/* Comes first. */
static void take_addresses(dp_panel_conv *c, int64_t rows, int64_t taps) {
    c->scratch_bytes = dp_panel_padded((int64_t)dp_rows_pointers((size_t)rows, (size_t)taps) * (int64_t)sizeof(void *));
    c->runs_at = c->scratch_bytes;
    if (c->element != DP_F32)
        c->scratch_bytes += dp_panel_padded(dp_panel_up(rows, DP_LOW_TILE) * taps * (int64_t)sizeof(dp_low_run));
}

/* Of products of so many rows; the parts before are padded. */
static void take_sums(dp_panel_conv *c, int64_t rows) {
    c->sums_at = c->scratch_bytes;
    c->scratch_bytes +=
        c->element == DP_F32
            ? dp_panel_padded((int64_t)dp_rows_room((size_t)rows, (size_t)c->column_unit) * (int64_t)sizeof(float))
            : dp_low_room((size_t)rows, (size_t)c->column_unit);
}

/* Rows from which on the next row lies in another tile of addresses, on any rung. */
static int64_t rows_step(const dp_panel_conv *c) {
    return c->element == DP_F32 ? 24 : 2 * DP_LOW_TILE;
}

/* Columns of a group in `pieces` pieces of whole panels, if they are not too few for that. */
static void divide_columns(dp_panel_conv *c, int64_t groups, int64_t columns, int64_t pieces) {
    pieces = dp_panel_at_most(pieces, columns / COLUMNS_LEAST);
    c->column_unit = dp_panel_up(dp_panel_up(columns, pieces > 0 ? pieces : 1), 2 * DP_ROWS_PANEL) * 2 * DP_ROWS_PANEL;
    c->column_units = groups * dp_panel_up(columns, c->column_unit);
}

static void divide_rows(dp_panel_conv *c, int64_t wanted) {
    const int64_t taps = c->filter.kernel[0] * c->filter.kernel[1], total = c->batch * c->out[0] * c->out[1];
    int64_t most = ROWS;
    while (most > ROWS / 10 && most * taps > POINTERS)
        most -= ROWS / 10;
    c->unit = total < 1 ? 1 : dp_panel_up(total, dp_panel_up(total, most)); /* pieces of the same size */
    divide_columns(c, c->filter.groups, c->columns,
                   dp_panel_up(wanted, dp_panel_up(total, c->unit) * c->filter.groups));
    /* still too few pieces: fewer rows, down to two tiles */
    while (c->unit > 2 * DP_ROWS_TILE_MAX * 3 && dp_panel_up(total, c->unit) * c->column_units < wanted)
        c->unit = dp_panel_up(c->unit, 2);
    if (c->unit < total)
        c->unit = dp_panel_up(c->unit, rows_step(c)) * rows_step(c); /* whole tiles */
    c->units = dp_panel_up(total, c->unit);
    take_addresses(c, c->unit, taps);
    c->zeros_at = c->scratch_bytes;
    c->scratch_bytes += dp_panel_padded(c->channels * c->size);
    take_sums(c, c->unit);
}

static void divide_band(dp_panel_conv *c, int64_t wanted) {
    const dp_conv_filter *f = &c->filter;
    const int64_t lines = c->batch * c->out[0];
    c->unit = c->out[1] < ROWS ? ROWS / c->out[1] : 1;
    while (c->unit > 1 && dp_panel_up(c->out[0], c->unit) * c->batch < wanted)
        c->unit--;
    c->unit = dp_panel_at_most(c->unit, c->out[0]);
    c->units = c->batch * dp_panel_up(c->out[0], c->unit);
    divide_columns(c, 1, c->columns, lines >= wanted ? 1 : dp_panel_up(wanted, lines > 0 ? lines : 1));
    c->band_pitch = ((c->out[1] - 1) * f->stride[1] + f->kernel[1]) * c->channels;
    const int64_t band_lines = (c->unit - 1) * f->stride[0] + (f->kernel[0] - 1) * f->dilation[0] + 1;
    const int64_t rows = c->unit * c->out[1];
    int64_t elements;
    if (__builtin_mul_overflow(c->band_pitch, band_lines, &elements) || elements > BAND_ELEMENTS) {
        c->way = DP_PANEL_ROWS; /* windows that reach far, over padding perhaps */
        divide_rows(c, wanted);
        return;
    }
    c->scratch_bytes = 0;
    if (c->element != DP_F32)
        take_addresses(c, rows, f->kernel[0]);
    c->band_at = c->scratch_bytes;
    c->scratch_bytes += dp_panel_padded(elements * c->size);
    take_sums(c, rows);
}

/* Lines first, so that a thread keeps its part of the image from layer to layer; channels where there are too few. */
static void divide_depthwise(dp_panel_conv *c, int64_t wanted) {
    const int64_t channels = c->filter.out_channels, panels = dp_panel_up(channels, DP_ROWS_PANEL);
    const int64_t lines = c->batch * c->out[0];
    int64_t pieces = lines > 0 && lines < wanted ? dp_panel_at_most(panels, dp_panel_up(wanted, lines)) : 1;
    c->column_unit = dp_panel_up(panels, pieces) * DP_ROWS_PANEL;
    c->column_units = dp_panel_up(channels, c->column_unit);
    pieces = c->batch > 0 ? dp_panel_at_most(c->out[0], dp_panel_up(wanted, c->batch * c->column_units)) : 1;
    c->unit = dp_panel_up(c->out[0], pieces);
    c->units = c->batch * dp_panel_up(c->out[0], c->unit);
    const dp_conv_filter *f = &c->filter;
    const dp_low_depthwise part = {.in = {c->in[0], c->in[1]},
                                   .out_width = c->out[1],
                                   .kernel = {f->kernel[0], f->kernel[1]},
                                   .stride = {f->stride[0], f->stride[1]},
                                   .dilation = {f->dilation[0], f->dilation[1]},
                                   .lines = c->unit,
                                   .columns = (size_t)c->column_unit};
    if (c->element != DP_F32)
        c->scratch_bytes = dp_low_depthwise_room(&part);
}

static void divide_transposed(dp_panel_conv *c, int64_t wanted) {
    const dp_conv_filter *f = &c->filter;
    const int64_t taps = f->kernel[0] * f->kernel[1], rows = dp_panel_up(c->out[1], f->stride[1]);
    c->unit = 1;
    c->units = c->batch * c->out[0];
    divide_columns(c, f->groups, c->columns, c->units > 0 ? dp_panel_up(wanted, c->units) : 1);
    take_addresses(c, rows, taps);
    c->zeros_at = c->scratch_bytes;
    c->scratch_bytes += dp_panel_padded(c->channels * c->size);
    c->band_at = c->scratch_bytes; /* the taps of a phase */
    c->scratch_bytes += dp_panel_padded((f->kernel[0] + f->kernel[1]) * (int64_t)sizeof(int64_t));
    take_sums(c, rows);
}

/* So few multiplications that another thread would take as long to come. */
static bool is_small(const dp_panel_conv *c) {
    const int64_t *size = c->filter.transposed ? c->in : c->out, *kernel = c->filter.kernel;
    return (double)(c->batch * size[0]) * (double)(size[1] * c->filter.out_channels) *
               (double)(kernel[0] * kernel[1] * c->channels) <
           128e3;
}

void dp_panel_divide(dp_panel_conv *c, unsigned threads) {
    const int64_t wanted = threads > 1 && !is_small(c) ? (int64_t)threads * PIECES_PER_THREAD : 1;
    switch (c->way) {
    case DP_PANEL_BAND:
        divide_band(c, wanted);
        break;
    case DP_PANEL_DEPTHWISE:
        divide_depthwise(c, wanted);
        break;
    case DP_PANEL_TRANSPOSED:
        divide_transposed(c, wanted);
        break;
    case DP_PANEL_WINOGRAD:
        dp_panel_divide_winograd(c, wanted);
        break;
    case DP_PANEL_PRODUCT:
        dp_panel_divide_product(c, wanted);
        break;
    default:
        divide_rows(c, wanted);
    }
}

dp_panel_piece dp_panel_piece_of(const dp_panel_conv *c, size_t tile) {
    const int64_t per_group = c->column_units / (c->way == DP_PANEL_DEPTHWISE ? 1 : c->filter.groups);
    const int64_t part = (int64_t)tile % c->column_units,
                  all = c->way == DP_PANEL_DEPTHWISE ? c->filter.out_channels : c->columns;
    dp_panel_piece p = {.unit = (int64_t)tile / c->column_units, .group = part / per_group};
    p.first = part % per_group * c->column_unit;
    p.columns = dp_panel_at_most(c->column_unit, all - p.first);
    return p;
}

static dp_rows_weights weights_of(const dp_panel_job *j, const dp_panel_piece *p, int64_t taps, int64_t channels) {
    const dp_panel_conv *c = j->conv;
    return (dp_rows_weights){.taps = (size_t)taps,
                             .channels = (size_t)channels,
                             .panels = (const float *)j->panels + p->group * c->group_panels,
                             .panel_stride = (size_t)(taps * channels * DP_ROWS_PANEL),
                             .bias = j->bias ? j->bias + p->group * c->columns : NULL};
}

/* Rows of the output from pixel `at` on, `step` pixels apart. */
static dp_rows_block block_of(const dp_panel_job *j, const dp_panel_piece *p, const float **pointers, int64_t at,
                              int64_t step, int64_t rows) {
    const dp_panel_conv *c = j->conv;
    const int64_t column = p->group * c->columns;
    return (dp_rows_block){.rows = pointers,
                           .count = (size_t)rows,
                           .first = (size_t)p->first,
                           .columns = (size_t)p->columns,
                           .y = (float *)j->y + at * c->y_pixel + column,
                           .y_stride = step * c->y_pixel,
                           .residual =
                               j->residual ? (const float *)j->residual + at * c->residual_pixel + column : NULL,
                           .residual_stride = step * c->residual_pixel};
}

/* Where the addresses of row after row go: tile by tile, in a tile tap by tap (dp_rows_block). */
typedef struct slot {
    const float **at;
    int64_t row, size, taps;
} slot;
static slot first_slot(const dp_panel_job *j, const float **pointers, int64_t rows, int64_t taps) {
    return (slot){pointers, 0, (int64_t)dp_rows_height(j->table->tile, (size_t)rows), taps};
}
static void next_slot(slot *s) {
    s->at++;
    if (++s->row == s->size) {
        s->row = 0;
        s->at += (s->taps - 1) * s->size;
    }
}

/* Addresses of the taps of one output pixel; those outside the image are zeros'. */
static void point_window(const dp_panel_conv *c, const float *image, const float *zeros, int64_t oy, int64_t ox,
                         const slot *s) {
    const dp_conv_filter *f = &c->filter;
    const float **to = s->at;
    for (int64_t ky = 0; ky < f->kernel[0]; ky++) {
        const int64_t y = oy * f->stride[0] - c->pad[0] + ky * f->dilation[0];
        const bool inside = y >= 0 && y < c->in[0];
        const float *line = image + (inside ? y : 0) * c->x_stride[1];
        int64_t x = ox * f->stride[1] - c->pad[1];
        for (int64_t kx = 0; kx < f->kernel[1]; kx++, x += f->dilation[1], to += s->size)
            *to = inside && x >= 0 && x < c->in[1] ? line + x * c->x_stride[2] : zeros;
    }
}

/* The same for a run of pixels of one line, of one tap without padding. */
static void point_pixels(const dp_panel_conv *c, const float *image, int64_t oy, int64_t ox, int64_t count, slot *s) {
    const dp_conv_filter *f = &c->filter;
    const int64_t step = f->stride[1] * c->x_stride[2];
    const float *at = image + oy * f->stride[0] * c->x_stride[1] + ox * step;
    for (int64_t i = 0; i < count; i++, at += step) {
        *s->at = at;
        next_slot(s);
    }
}

static void rows_piece(void *context, size_t tile, void *scratch) {
    const dp_panel_job *j = context;
    const dp_panel_conv *c = j->conv;
    const dp_panel_piece p = dp_panel_piece_of(c, tile);
    const int64_t taps = c->filter.kernel[0] * c->filter.kernel[1], area = c->out[0] * c->out[1];
    const int64_t begin = p.unit * c->unit, count = dp_panel_at_most(c->unit, c->batch * area - begin);
    const bool simple = taps == 1 && !(c->pad[0] | c->pad[1] | c->pad_end[0] | c->pad_end[1]);
    float *zeros = (float *)((char *)scratch + c->zeros_at);
    if (!simple)
        memset(zeros, 0, (size_t)c->channels * sizeof *zeros);
    int64_t n = begin / area, oy = begin % area / c->out[1], ox = begin % c->out[1];
    slot s = first_slot(j, scratch, count, taps);
    for (int64_t left = count; left > 0;) {
        const float *image = (const float *)j->x + n * c->x_stride[0] + p.group * c->channels;
        const int64_t run = dp_panel_at_most(left, c->out[1] - ox);
        if (simple)
            point_pixels(c, image, oy, ox, run, &s);
        for (int64_t i = 0; i < run && !simple; i++, next_slot(&s))
            point_window(c, image, zeros, oy, ox + i, &s);
        left -= run;
        ox = 0;
        if (++oy == c->out[0])
            oy = 0, n++;
    }
    dp_rows_weights w = weights_of(j, &p, taps, c->channels);
    dp_rows_block b = block_of(j, &p, scratch, begin, 1, count);
    const size_t all = b.columns, first = b.first;
    for (size_t at = 0; at < all; at += COLUMNS_AT_ONCE) {
        b.first = first + at;
        b.columns = all - at < COLUMNS_AT_ONCE ? all - at : COLUMNS_AT_ONCE;
        const size_t next = b.first + COLUMNS_AT_ONCE;
        w.next = at + COLUMNS_AT_ONCE < all ? w.panels + next / DP_ROWS_PANEL * w.panel_stride : NULL;
        j->table->run(&w, &b, &c->finish, (float *)((char *)scratch + c->sums_at));
    }
}

void dp_panel_copy_line(const dp_panel_conv *c, const void *image, int64_t y, void *out) {
    char *to = out;
    const int64_t pixels = c->band_pitch / c->channels, left = dp_panel_at_most(c->pad[1], pixels);
    if (y < 0 || y >= c->in[0]) {
        memset(to, 0, (size_t)(c->band_pitch * c->size));
        return;
    }
    const int64_t inside = dp_panel_at_most(c->in[1], pixels - left), bytes = c->channels * c->size;
    const char *from = dp_panel_from(c, image, y * c->x_stride[1]);
    memset(to, 0, (size_t)(left * bytes));
    char *at = to + left * bytes;
    if (c->x_stride[2] == c->channels)
        memcpy(at, from, (size_t)(inside * bytes));
    for (int64_t i = 0; i < inside && c->x_stride[2] != c->channels; i++)
        memcpy(at + i * bytes, dp_panel_from(c, from, i * c->x_stride[2]), (size_t)bytes);
    memset(at + inside * bytes, 0, (size_t)((pixels - left - inside) * bytes));
}

/* One line of the output: its windows are evenly spaced in the band, from `at` on. */
static void band_line(const dp_panel_job *j, const dp_panel_piece *p, const float *at, int64_t pixel, float *sums) {
    const dp_panel_conv *c = j->conv;
    const dp_conv_filter *f = &c->filter;
    const dp_rows_product product = {.x = at,
                                     .x_stride = f->stride[1] * c->channels,
                                     .tap_stride = f->dilation[0] * c->band_pitch,
                                     .rows = (size_t)c->out[1],
                                     .k = (size_t)(f->kernel[0] * f->kernel[1] * c->channels),
                                     .taps = (size_t)f->kernel[0],
                                     .panels = j->panels,
                                     .bias = j->bias,
                                     .first = (size_t)p->first,
                                     .columns = (size_t)p->columns,
                                     .y = (float *)j->y + pixel * c->y_pixel,
                                     .y_stride = c->y_pixel,
                                     .residual =
                                         j->residual ? (const float *)j->residual + pixel * c->residual_pixel : NULL,
                                     .residual_stride = c->residual_pixel};
    j->table->product(&product, &c->finish, sums);
}

static void band_piece(void *context, size_t tile, void *scratch) {
    const dp_panel_job *j = context;
    const dp_panel_conv *c = j->conv;
    const dp_conv_filter *f = &c->filter;
    const dp_panel_piece p = dp_panel_piece_of(c, tile);
    const int64_t per_image = dp_panel_up(c->out[0], c->unit), n = p.unit / per_image,
                  first = p.unit % per_image * c->unit;
    const int64_t lines = dp_panel_at_most(c->unit, c->out[0] - first);
    const int64_t band_lines = (lines - 1) * f->stride[0] + (f->kernel[0] - 1) * f->dilation[0] + 1;
    float *band = (float *)((char *)scratch + c->band_at), *sums = (float *)((char *)scratch + c->sums_at);
    for (int64_t i = 0; i < band_lines; i++)
        dp_panel_copy_line(c, (const float *)j->x + n * c->x_stride[0], first * f->stride[0] - c->pad[0] + i,
                           band + i * c->band_pitch);
    for (int64_t oy = 0; oy < lines; oy++)
        band_line(j, &p, band + oy * f->stride[0] * c->band_pitch, (n * c->out[0] + first + oy) * c->out[1], sums);
}

static void depthwise_piece(void *context, size_t tile, void *scratch) {
    const dp_panel_job *j = context;
    const dp_panel_conv *c = j->conv;
    const dp_conv_filter *f = &c->filter;
    const dp_panel_piece p = dp_panel_piece_of(c, tile);
    const int64_t per_image = dp_panel_up(c->out[0], c->unit), n = p.unit / per_image,
                  first = p.unit % per_image * c->unit;
    const int64_t pixel = n * c->out[0] * c->out[1];
    const int64_t lines = dp_panel_at_most(c->unit, c->out[0] - first);
    const char *residual = j->residual ? dp_panel_from(c, j->residual, pixel * c->residual_pixel) : NULL;
#define DEPTHWISE_PART                                                                                                 \
    .x_line = c->x_stride[1], .x_pixel = c->x_stride[2], .in = {c->in[0], c->in[1]}, .out_width = c->out[1],           \
    .kernel = {f->kernel[0], f->kernel[1]}, .stride = {f->stride[0], f->stride[1]}, .pad = {c->pad[0], c->pad[1]},     \
    .dilation = {f->dilation[0], f->dilation[1]}, .panels = j->panels, .bias = j->bias, .line = first, .lines = lines, \
    .first = (size_t)p.first, .columns = (size_t)p.columns, .y_pixel = c->y_pixel, .residual_pixel = c->residual_pixel
    if (j->table) {
        const dp_rows_depthwise part = {.x = (const float *)j->x + n * c->x_stride[0],
                                        .y = (float *)j->y + pixel * c->y_pixel,
                                        .residual = (const float *)residual,
                                        DEPTHWISE_PART};
        j->table->depthwise(&part, &c->finish);
    } else {
        const dp_low_depthwise part = {.x = (const uint16_t *)j->x + n * c->x_stride[0],
                                       .y = (uint16_t *)j->y + pixel * c->y_pixel,
                                       .residual = (const uint16_t *)residual,
                                       DEPTHWISE_PART};
        j->low->depthwise(&part, &c->finish, (char *)scratch + c->sums_at);
    }
#undef DEPTHWISE_PART
}

int64_t dp_panel_phase_taps(const dp_conv_filter *f, int d, int64_t phase, int64_t *out_taps, int64_t *out_before) {
    int64_t count = 0;
    *out_before = 0;
    for (int64_t k = 0; k < f->kernel[d]; k++) {
        const int64_t own = k * f->dilation[d] % f->stride[d];
        *out_before += own < phase;
        if (own == phase)
            out_taps[count++] = k;
    }
    return count;
}

/* One line of the output: pixels [first, out) by `stride` have the same taps along x. */
static void transposed_piece(void *context, size_t tile, void *scratch) {
    const dp_panel_job *j = context;
    const dp_panel_conv *c = j->conv;
    const dp_conv_filter *f = &c->filter;
    const dp_panel_piece p = dp_panel_piece_of(c, tile);
    const int64_t n = p.unit / c->out[0], oy = p.unit % c->out[0];
    const float **pointers = scratch;
    float *zeros = (float *)((char *)scratch + c->zeros_at);
    int64_t *taps_y = (int64_t *)((char *)scratch + c->band_at), *taps_x = taps_y + f->kernel[0], before_y, before_x;
    memset(zeros, 0, (size_t)c->channels * sizeof *zeros);
    const int64_t count_y = dp_panel_phase_taps(f, 0, (oy + c->pad[0]) % f->stride[0], taps_y, &before_y);
    for (int64_t start = 0; start < f->stride[1] && start < c->out[1]; start++) {
        const int64_t count_x = dp_panel_phase_taps(f, 1, (start + c->pad[1]) % f->stride[1], taps_x, &before_x);
        const int64_t taps = count_y * count_x, rows = dp_panel_up(c->out[1] - start, f->stride[1]);
        const int64_t size = (int64_t)dp_rows_height(j->table->tile, (size_t)rows);
        for (int64_t t = 0; t < taps; t++) {
            const int64_t y = oy + c->pad[0] - taps_y[t / count_x] * f->dilation[0], iy = y / f->stride[0];
            const bool inside = y >= 0 && iy < c->in[0];
            const float *line =
                (const float *)j->x + n * c->x_stride[0] + (inside ? iy : 0) * c->x_stride[1] + p.group * c->channels;
            int64_t x = start + c->pad[1] - taps_x[t % count_x] * f->dilation[1];
            for (int64_t r = 0; r < rows; r++, x += f->stride[1]) {
                const int64_t ix = x / f->stride[1];
                pointers[(r / size * taps + t) * size + r % size] =
                    inside && x >= 0 && ix < c->in[1] ? line + ix * c->x_stride[2] : zeros;
            }
        }
        dp_rows_weights w = weights_of(j, &p, taps, c->channels);
        /* within a panel: all taps of earlier phases of y, then earlier phases of x */
        w.panels += (before_y * f->kernel[1] + count_y * before_x) * c->channels * DP_ROWS_PANEL;
        w.panel_stride = (size_t)(f->kernel[0] * f->kernel[1] * c->channels * DP_ROWS_PANEL);
        const dp_rows_block b = block_of(j, &p, pointers, (n * c->out[0] + oy) * c->out[1] + start, f->stride[1], rows);
        j->table->run(&w, &b, &c->finish, (float *)((char *)scratch + c->sums_at));
    }
}

dp_status dp_panel_run(dp_plan *plan) {
    const dp_panel_conv *c = dp_plan_state(plan);
    static const dp_tile_fn ways[] = {
        rows_piece, band_piece, depthwise_piece, transposed_piece, dp_panel_winograd_piece, dp_panel_product_piece};
    static const dp_tile_fn low_ways[] = {dp_panel_low_rows, dp_panel_low_band, depthwise_piece,
                                          dp_panel_low_transposed};
    if (!c->batch || !c->out[0] || !c->out[1])
        return DP_OK;
    dp_panel_job j = {.conv = c,
                      .table = c->element == DP_F32 ? dp_rows_current() : NULL,
                      .low = c->element == DP_F32 ? NULL
                                                  : dp_low_current(c->element == DP_F16 ? DP_LOW_HALF : DP_LOW_BF16),
                      .x = dp_plan_data(plan, c->x_slot),
                      .panels = dp_plan_data(plan, c->panels_slot),
                      .bias = c->bias_slot < 0 ? NULL : dp_plan_data(plan, c->bias_slot),
                      .residual = c->residual_slot < 0 ? NULL : dp_plan_data(plan, c->residual_slot),
                      .y = dp_plan_data(plan, c->y_slot)};
    return dp_tiles_run((size_t)(c->units * c->column_units), c->scratch_bytes, (j.table ? ways : low_ways)[c->way],
                        &j);
}
