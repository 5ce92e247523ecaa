/*
 * panel_low.c - pieces of convolutions and products of half and bfloat16: rows of the output by tiles of 16, whose
 * pixels of a tap are evenly spaced in most cases, so that two numbers say where they are (dp_low_run).
 */
#include "ops/conv/panel_conv.h"

#include <string.h>

enum { COLUMNS_AT_ONCE = 256 }; /* whose sums stay in the second level cache between parts of k */

/* The addresses of a product's rows while they are made. */
typedef struct table {
    const dp_panel_conv *conv;
    dp_low_run *runs;
    const uint16_t **room; /* for single addresses, 16 per run */
    const uint16_t *zeros;
    int64_t taps;
} table;

static table begin_table(const dp_panel_conv *c, void *scratch, int64_t taps) {
    uint16_t *zeros = (uint16_t *)((char *)scratch + c->zeros_at);
    return (table){c, (dp_low_run *)((char *)scratch + c->runs_at), scratch, zeros, taps};
}

/* Single addresses of a tap of a tile. */
static const uint16_t **take_singles(const table *t, int64_t tile, int64_t tap) {
    const int64_t at = tile * t->taps + tap;
    const uint16_t **rows = t->room + at * DP_LOW_TILE;
    t->runs[at] = (dp_low_run){.rows = rows};
    return rows;
}

/* Pixels x, x + step, ... of a line for n rows; NULL: a line of padding. */
static void put_line(const table *t, int64_t tile, int64_t tap, const uint16_t *line, int64_t x, int64_t step,
                     int64_t n) {
    const dp_panel_conv *c = t->conv;
    const int64_t last = x + (n - 1) * step, pixel = c->x_stride[2];
    dp_low_run *run = &t->runs[tile * t->taps + tap];
    if (!line || last < 0 || x >= c->in[1]) {
        *run = (dp_low_run){.at = t->zeros};
        return;
    }
    if (x >= 0 && last < c->in[1]) {
        *run = (dp_low_run){.at = line + x * pixel, .step = step * pixel};
        return;
    }
    const uint16_t **rows = take_singles(t, tile, tap);
    for (int64_t r = 0; r < n; r++, x += step)
        rows[r] = x >= 0 && x < c->in[1] ? line + x * pixel : t->zeros;
}

/* A product: rows whose addresses are known, the columns of a piece. */
typedef struct product {
    int64_t count, taps, channels;
    int64_t k, panel_k;  /* of the panels: where they begin, and how much of it a panel has */
    int64_t pixel, step; /* of the output: of the first row, and from row to row */
} product;

/* k of a panel that holds `taps` taps. */
static int64_t depth_of(const dp_panel_conv *c, int64_t taps, int64_t channels) {
    return dp_panel_up(taps * dp_conv_low_pitch(&c->filter, channels), 2) * 2;
}

static void multiply(const dp_panel_job *j, const dp_panel_piece *p, const product *r, void *scratch) {
    const dp_panel_conv *c = j->conv;
    const int64_t column = p->group * c->columns;
    const dp_low_weights w = {.taps = (size_t)r->taps,
                              .channels = (size_t)r->channels,
                              .pitch = (size_t)dp_conv_low_pitch(&c->filter, r->channels),
                              .panels = (const uint16_t *)j->panels + p->group * c->group_panels + r->k * DP_ROWS_PANEL,
                              .panel_stride = (size_t)(r->panel_k * DP_ROWS_PANEL),
                              .bias = j->bias ? j->bias + column : NULL};
    dp_low_block b = {.runs = (const dp_low_run *)((char *)scratch + c->runs_at),
                      .count = (size_t)r->count,
                      .y = (uint16_t *)j->y + r->pixel * c->y_pixel + column,
                      .y_stride = r->step * c->y_pixel,
                      .residual =
                          j->residual ? (const uint16_t *)j->residual + r->pixel * c->residual_pixel + column : NULL,
                      .residual_stride = r->step * c->residual_pixel};
    for (int64_t at = 0; at < p->columns; at += COLUMNS_AT_ONCE) {
        b.first = (size_t)(p->first + at);
        b.columns = (size_t)dp_panel_at_most(COLUMNS_AT_ONCE, p->columns - at);
        j->low->run(&w, &b, &c->finish, (char *)scratch + c->sums_at);
    }
}

/* Rows. */

/* Windows of n output pixels of one line, from (oy, ox) of an image on. */
static void put_windows(const table *t, int64_t tile, const uint16_t *image, int64_t oy, int64_t ox, int64_t n) {
    const dp_panel_conv *c = t->conv;
    const dp_conv_filter *f = &c->filter;
    int64_t tap = 0, y = oy * f->stride[0] - c->pad[0];
    for (int64_t ky = 0; ky < f->kernel[0]; ky++, y += f->dilation[0]) {
        const uint16_t *line = y >= 0 && y < c->in[0] ? image + y * c->x_stride[1] : NULL;
        int64_t x = ox * f->stride[1] - c->pad[1];
        for (int64_t kx = 0; kx < f->kernel[1]; kx++, x += f->dilation[1])
            put_line(t, tile, tap++, line, x, f->stride[1], n);
    }
}

/* One address of every tap: those of row r of the tile. */
static void put_window(const table *t, int64_t tile, int64_t r, const uint16_t *image, int64_t oy, int64_t ox) {
    const dp_panel_conv *c = t->conv;
    const dp_conv_filter *f = &c->filter;
    const uint16_t **to = t->room + tile * t->taps * DP_LOW_TILE + r;
    int64_t y = oy * f->stride[0] - c->pad[0];
    for (int64_t ky = 0; ky < f->kernel[0]; ky++, y += f->dilation[0]) {
        const bool inside = y >= 0 && y < c->in[0];
        const uint16_t *line = image + (inside ? y : 0) * c->x_stride[1];
        int64_t x = ox * f->stride[1] - c->pad[1];
        for (int64_t kx = 0; kx < f->kernel[1]; kx++, x += f->dilation[1], to += DP_LOW_TILE)
            *to = inside && x >= 0 && x < c->in[1] ? line + x * c->x_stride[2] : t->zeros;
    }
}

/* All pixels of the image follow each other evenly, and the output's are the same. */
static bool is_plain(const dp_panel_conv *c) {
    const dp_conv_filter *f = &c->filter;
    return c->in[0] == c->out[0] && c->in[1] == c->out[1] &&
           f->kernel[0] * f->kernel[1] * f->stride[0] * f->stride[1] == 1 && !(c->pad[0] | c->pad[1]) &&
           (c->in[0] == 1 || c->x_stride[1] == c->in[1] * c->x_stride[2]) &&
           (c->batch == 1 || c->x_stride[0] == c->in[0] * c->in[1] * c->x_stride[2]);
}

void dp_panel_low_rows(void *context, size_t tile, void *scratch) {
    const dp_panel_job *j = context;
    const dp_panel_conv *c = j->conv;
    const dp_panel_piece p = dp_panel_piece_of(c, tile);
    const int64_t taps = c->filter.kernel[0] * c->filter.kernel[1], area = c->out[0] * c->out[1];
    const int64_t begin = p.unit * c->unit, count = dp_panel_at_most(c->unit, c->batch * area - begin);
    const table t = begin_table(c, scratch, taps);
    const uint16_t *x = (const uint16_t *)j->x + p.group * c->channels;
    const bool plain = is_plain(c);
    memset((char *)scratch + c->zeros_at, 0, (size_t)(c->channels * c->size));
    for (int64_t i = 0, row = begin; i * DP_LOW_TILE < count; i++, row += DP_LOW_TILE) {
        const int64_t n = dp_panel_at_most(DP_LOW_TILE, begin + count - row), ox = row % c->out[1];
        const int64_t oy = row % area / c->out[1], image = row / area;
        if (plain) {
            t.runs[i] = (dp_low_run){.at = x + row * c->x_stride[2], .step = c->x_stride[2]};
        } else if (ox + n <= c->out[1]) {
            put_windows(&t, i, x + image * c->x_stride[0], oy, ox, n);
        } else {
            for (int64_t tap = 0; tap < taps; tap++)
                take_singles(&t, i, tap);
            for (int64_t r = 0, at = row; r < n; r++, at++)
                put_window(&t, i, r, x + at / area * c->x_stride[0], at % area / c->out[1], at % c->out[1]);
        }
    }
    const product r = {.count = count,
                       .taps = taps,
                       .channels = c->channels,
                       .panel_k = depth_of(c, taps, c->channels),
                       .pixel = begin,
                       .step = 1};
    multiply(j, &p, &r, scratch);
}

/* Bands. */

void dp_panel_low_band(void *context, size_t tile, void *scratch) {
    const dp_panel_job *j = context;
    const dp_panel_conv *c = j->conv;
    const dp_conv_filter *f = &c->filter;
    const dp_panel_piece p = dp_panel_piece_of(c, tile);
    const int64_t per_image = dp_panel_up(c->out[0], c->unit), n = p.unit / per_image,
                  first = p.unit % per_image * c->unit;
    const int64_t lines = dp_panel_at_most(c->unit, c->out[0] - first), rows = lines * c->out[1];
    const int64_t taps = f->kernel[0];
    const int64_t band_lines = (lines - 1) * f->stride[0] + (taps - 1) * f->dilation[0] + 1;
    const int64_t pixel = f->stride[1] * c->channels, line = f->stride[0] * c->band_pitch;
    const table t = begin_table(c, scratch, taps);
    uint16_t *band = (uint16_t *)((char *)scratch + c->band_at);
    for (int64_t i = 0; i < band_lines; i++)
        dp_panel_copy_line(c, (const uint16_t *)j->x + n * c->x_stride[0], first * f->stride[0] - c->pad[0] + i,
                           band + i * c->band_pitch);
    for (int64_t i = 0, row = 0; row < rows; i++, row += DP_LOW_TILE) {
        const int64_t oy = row / c->out[1], ox = row % c->out[1], count = dp_panel_at_most(DP_LOW_TILE, rows - row);
        for (int64_t tap = 0; tap < taps; tap++) {
            const uint16_t *at = band + tap * f->dilation[0] * c->band_pitch;
            if (ox + count <= c->out[1]) {
                t.runs[i * taps + tap] = (dp_low_run){.at = at + oy * line + ox * pixel, .step = pixel};
                continue;
            }
            const uint16_t **singles = take_singles(&t, i, tap);
            for (int64_t r = 0; r < count; r++)
                singles[r] = at + (row + r) / c->out[1] * line + (row + r) % c->out[1] * pixel;
        }
    }
    const int64_t channels = f->kernel[1] * c->channels;
    const product r = {.count = rows,
                       .taps = taps,
                       .channels = channels,
                       .panel_k = depth_of(c, taps, channels),
                       .pixel = (n * c->out[0] + first) * c->out[1],
                       .step = 1};
    multiply(j, &p, &r, scratch);
}

/* One line of a transposed convolution's output: pixels [first, out) by `stride` have the same taps along x. */
void dp_panel_low_transposed(void *context, size_t tile, void *scratch) {
    const dp_panel_job *j = context;
    const dp_panel_conv *c = j->conv;
    const dp_conv_filter *f = &c->filter;
    const dp_panel_piece p = dp_panel_piece_of(c, tile);
    const int64_t n = p.unit / c->out[0], oy = p.unit % c->out[0];
    const uint16_t *image = (const uint16_t *)j->x + n * c->x_stride[0] + p.group * c->channels;
    int64_t *taps_y = (int64_t *)((char *)scratch + c->band_at), *taps_x = taps_y + f->kernel[0], before_y, before_x;
    memset((char *)scratch + c->zeros_at, 0, (size_t)(c->channels * c->size));
    const int64_t count_y = dp_panel_phase_taps(f, 0, (oy + c->pad[0]) % f->stride[0], taps_y, &before_y);
    for (int64_t start = 0; start < f->stride[1] && start < c->out[1]; start++) {
        const int64_t count_x = dp_panel_phase_taps(f, 1, (start + c->pad[1]) % f->stride[1], taps_x, &before_x);
        const int64_t taps = count_y * count_x, rows = dp_panel_up(c->out[1] - start, f->stride[1]);
        const table t = begin_table(c, scratch, taps);
        for (int64_t k = 0; k < taps; k++) {
            const int64_t y = oy + c->pad[0] - taps_y[k / count_x] * f->dilation[0], iy = y / f->stride[0];
            const uint16_t *line = y >= 0 && iy < c->in[0] ? image + iy * c->x_stride[1] : NULL;
            /* a multiple of the stride, for all taps of a phase */
            const int64_t x = start + c->pad[1] - taps_x[k % count_x] * f->dilation[1];
            for (int64_t i = 0; i * DP_LOW_TILE < rows; i++)
                put_line(&t, i, k, line, x / f->stride[1] + i * DP_LOW_TILE, 1,
                         dp_panel_at_most(DP_LOW_TILE, rows - i * DP_LOW_TILE));
        }
        /* within a panel: all taps of earlier phases of y, then earlier phases of x */
        const int64_t before = before_y * f->kernel[1] + count_y * before_x;
        const product r = {.count = rows,
                           .taps = taps,
                           .channels = c->channels,
                           .k = depth_of(c, before, c->channels),
                           .panel_k = depth_of(c, f->kernel[0] * f->kernel[1], c->channels),
                           .pixel = (n * c->out[0] + oy) * c->out[1] + start,
                           .step = f->stride[1]};
        multiply(j, &p, &r, scratch);
    }
}
