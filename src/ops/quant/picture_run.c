/* picture_run.c - executes what picture_conv.c planned: pieces of rows and columns, in any order. */
#include "ops/quant/picture_conv.h"

#include <string.h>

#include "ops/tiles.h"

enum {
    ROWS_BYTES = 1 << 18, /* of copied rows: a part of the second level cache */
    ROWS_LEAST = 64,
    ROWS_MOST = 1024,
    COLUMNS_LEAST = 128, /* of a piece that is one of several in a row */
    PIECES_PER_THREAD = 4,
    ALIGN = 64
};

typedef struct job {
    const dp_picture_conv *c;
    const dp_bytes_table *table;
    const uint8_t *x, *x_end, *outside, *map, *residual;
    const int8_t *panels;
    const float *numbers;
    char *y;
} job;

static int64_t up(int64_t n, int64_t by) {
    return (n + by - 1) / by;
}

static dp_bytes_depthwise depthwise_of(const dp_picture_conv *c) {
    return (dp_bytes_depthwise){.x_line = c->x.width * c->x.pixel,
                                .x_pixel = c->x.pixel,
                                .in = {c->x.height, c->x.width},
                                .out_width = c->y.width,
                                .kernel = {c->kernel[0], c->kernel[1]},
                                .stride = {c->stride[0], c->stride[1]},
                                .pad = {c->pad[0], c->pad[1]},
                                .dilation = {c->dilation[0], c->dilation[1]},
                                .weight_step = (size_t)c->x.channels,
                                .y_pixel = c->y.pixel};
}

static void divide_depthwise(dp_picture_conv *c, int64_t wanted) {
    const dp_bytes_depthwise part = depthwise_of(c);
    int64_t pieces = up(wanted, c->x.batch > 0 ? c->x.batch : 1);
    const int64_t most = up(c->y.height, 2 * DP_BYTES_LINES);
    pieces = pieces < most ? pieces : most;
    c->unit = up(up(c->y.height, pieces > 0 ? pieces : 1), DP_BYTES_LINES) * DP_BYTES_LINES;
    c->units = c->x.batch * up(c->y.height, c->unit);
    c->column_unit = c->x.channels;
    c->column_units = 1;
    c->scratch_bytes = dp_bytes_depthwise_room(&part) + ALIGN;
}

void dp_picture_divide(dp_picture_conv *c, unsigned threads) {
    const int64_t wanted = threads > 1 ? (int64_t)threads * PIECES_PER_THREAD : 1;
    if (c->way == DP_PICTURE_DEPTHWISE) {
        divide_depthwise(c, wanted);
        return;
    }
    const bool tiles = c->way == DP_PICTURE_TILES;
    const int64_t taps = tiles ? 1 : c->kernel[0] * c->kernel[1];
    const int64_t total = tiles ? c->x.batch * c->x.height : c->y.batch * c->y.height * c->y.width;
    c->row_bytes = dp_bytes_depth((size_t)(taps * c->in));
    if (c->row_bytes % 1024 == 0)
        c->row_bytes += DP_BYTES_DEPTH; /* rows that do not fall on each other in the cache */
    int64_t rows = ROWS_BYTES / (int64_t)c->row_bytes;
    rows = rows < ROWS_LEAST ? ROWS_LEAST : rows > ROWS_MOST ? ROWS_MOST : rows;
    if (tiles)
        rows = up(rows, c->x.width > 0 ? c->x.width : 1); /* lines */
    const int64_t pieces = up(total, rows), columns = tiles ? c->out * c->kernel[1] : c->out;
    int64_t parts = tiles ? 1 : up(wanted, pieces * c->groups > 0 ? pieces * c->groups : 1);
    parts = parts < columns / COLUMNS_LEAST ? parts : columns / COLUMNS_LEAST;
    c->column_unit = up(up(columns, parts > 0 ? parts : 1), 64) * 64;
    c->column_units = c->groups * up(columns, c->column_unit);
    c->unit = up(total, pieces > 0 ? pieces : 1);
    while (c->unit > (tiles ? 1 : 2 * 32) && up(total, c->unit) * c->column_units < wanted)
        c->unit = up(c->unit, 2);
    if (!tiles && c->unit < total)
        c->unit = up(c->unit, 32) * 32; /* whole tiles */
    c->units = up(total, c->unit > 0 ? c->unit : 1);
    const int64_t at_once = tiles ? c->x.width : c->unit;
    c->room_at = c->direct ? 0 : ((size_t)at_once * c->row_bytes + 2 * ALIGN) / ALIGN * ALIGN;
    c->scratch_bytes = c->room_at + DP_BYTES_ROOM + 2 * ALIGN;
}

/* Copies whole chunks: what stands behind `to` is written next, and `from` may be read up to `end`. */
static inline void copy(uint8_t *to, const uint8_t *from, size_t bytes, const uint8_t *end) {
    enum { CHUNK = 16 };
    if (bytes > 8 * CHUNK || (size_t)(end - from) < bytes + CHUNK) {
        memcpy(to, from, bytes);
        return;
    }
    for (size_t i = 0; i < bytes; i += CHUNK)
        memcpy(to + i, from + i, CHUNK);
}

/* The window of an output pixel as a row. Chunks are copied whole, so that up to 15 bytes behind the row are written.
 */
static void copy_window(const job *j, const uint8_t *image, int64_t group, int64_t oy, int64_t ox, uint8_t *to) {
    const dp_picture_conv *c = j->c;
    const dp_picture *x = &c->x;
    const int64_t left = ox * c->stride[1] - c->pad[1], reach = (c->kernel[1] - 1) * c->dilation[1];
    const uint8_t *outside = j->outside + group * c->in;
    const bool whole = left >= 0 && left + reach < x->width;
    const bool run = whole && c->dilation[1] == 1 && c->in == x->pixel;
    for (int64_t ky = 0; ky < c->kernel[0]; ky++) {
        const int64_t iy = oy * c->stride[0] - c->pad[0] + ky * c->dilation[0];
        const bool inside = iy >= 0 && iy < x->height;
        const uint8_t *line = image + (inside ? iy : 0) * x->width * x->pixel + group * c->in;
        if (run && inside) {
            copy(to, line + left * x->pixel, (size_t)(c->kernel[1] * c->in), j->x_end);
            to += c->kernel[1] * c->in;
            continue;
        }
        for (int64_t kx = 0; kx < c->kernel[1]; kx++, to += c->in) {
            const int64_t ix = left + kx * c->dilation[1];
            if (inside && ix >= 0 && ix < x->width)
                copy(to, line + ix * x->pixel, (size_t)c->in, j->x_end);
            else
                memcpy(to, outside, (size_t)c->in);
        }
    }
}

static void apply_map(const job *j, const dp_bytes_block *b) {
    for (size_t r = 0; r < b->rows && j->map; r++) {
        uint8_t *y = (uint8_t *)b->y + (ptrdiff_t)r * b->y_stride + (ptrdiff_t)b->first;
        for (size_t i = 0; i < b->columns; i++)
            y[i] = j->map[y[i]];
    }
}

static dp_bytes_finish finish_of(const job *j, int64_t column, int64_t all) {
    const float *n = j->numbers + column;
    return (dp_bytes_finish){j->c->activation, n, n + all, n + 2 * all, n + 3 * all, n + 4 * all};
}

static void rows_piece(void *context, size_t tile, void *scratch) {
    const job *j = context;
    const dp_picture_conv *c = j->c;
    const int64_t part = (int64_t)tile % c->column_units, begin = (int64_t)tile / c->column_units * c->unit;
    const int64_t per_group = c->column_units / c->groups, group = part / per_group,
                  first = part % per_group * c->column_unit;
    const int64_t area = c->y.height * c->y.width, total = c->y.batch * area;
    const int64_t count = total - begin < c->unit ? total - begin : c->unit, element = c->as_float ? 4 : 1;
    const int64_t column = group * c->out;
    uint8_t *rows = (uint8_t *)(((uintptr_t)scratch + ALIGN - 1) & ~(uintptr_t)(ALIGN - 1));
    int64_t image = begin / area, oy = begin % area / c->y.width, ox = begin % c->y.width;
    for (int64_t i = 0; i < count && !c->direct; i++) {
        copy_window(j, j->x + image * c->x.height * c->x.width * c->x.pixel, group, oy, ox,
                    rows + (size_t)i * c->row_bytes);
        if (++ox < c->y.width)
            continue;
        ox = 0;
        if (++oy == c->y.height)
            oy = 0, image++;
    }
    const dp_bytes_block b = {.a = c->direct ? j->x + begin * c->x.pixel + group * c->in : rows,
                              .a_stride = c->direct ? (size_t)c->x.pixel : c->row_bytes,
                              .rows = (size_t)count,
                              .k = (size_t)(c->kernel[0] * c->kernel[1] * c->in),
                              .exact = c->direct,
                              .panels = j->panels + group * c->panel_bytes,
                              .first = (size_t)first,
                              .columns = (size_t)(c->out - first < c->column_unit ? c->out - first : c->column_unit),
                              .y = j->y + (begin * c->y.pixel + column) * element,
                              .y_stride = c->y.pixel,
                              .as_float = c->as_float,
                              .residual = j->residual ? j->residual + begin * c->residual_pixel + column : NULL,
                              .residual_stride = c->residual_pixel};
    const dp_bytes_finish f = finish_of(j, column, c->out * c->groups);
    j->table->product(&b, &f, rows + c->room_at);
    apply_map(j, &b);
}

/* Lines of the input; a line of every tile is a product of its own, whose columns lie side by side. */
static void tiles_piece(void *context, size_t tile, void *scratch) {
    const job *j = context;
    const dp_picture_conv *c = j->c;
    const int64_t lines = c->x.batch * c->x.height, columns = c->kernel[1] * c->out, element = c->as_float ? 4 : 1;
    uint8_t *rows = (uint8_t *)(((uintptr_t)scratch + ALIGN - 1) & ~(uintptr_t)(ALIGN - 1));
    for (int64_t line = (int64_t)tile * c->unit; line < ((int64_t)tile + 1) * c->unit && line < lines; line++) {
        const uint8_t *x = j->x + line * c->x.width * c->x.pixel;
        for (int64_t i = 0; i < c->x.width && !c->direct; i++)
            copy(rows + (size_t)i * c->row_bytes, x + i * c->x.pixel, (size_t)c->in, j->x_end);
        for (int64_t ky = 0; ky < c->kernel[0]; ky++) {
            const dp_bytes_block b = {.a = c->direct ? x : rows,
                                      .a_stride = c->direct ? (size_t)c->x.pixel : c->row_bytes,
                                      .rows = (size_t)c->x.width,
                                      .k = (size_t)c->in,
                                      .exact = c->direct,
                                      .panels = j->panels + ky * c->panel_bytes,
                                      .columns = (size_t)columns,
                                      .y = j->y + (line * c->kernel[0] + ky) * c->x.width * columns * element,
                                      .y_stride = columns,
                                      .as_float = c->as_float};
            const dp_bytes_finish f = finish_of(j, ky * columns, c->kernel[0] * columns);
            j->table->product(&b, &f, rows + c->room_at);
            apply_map(j, &b);
        }
    }
}

static void depthwise_piece(void *context, size_t tile, void *scratch) {
    const job *j = context;
    const dp_picture_conv *c = j->c;
    const int64_t per_image = up(c->y.height, c->unit), n = (int64_t)tile / per_image,
                  first = (int64_t)tile % per_image * c->unit, left = c->y.height - first;
    const int64_t lines = left < c->unit ? left : c->unit, channels = c->x.channels;
    dp_bytes_depthwise part = depthwise_of(c);
    part.x = j->x + n * c->x.height * part.x_line;
    part.weights = j->panels;
    part.outside = j->outside;
    part.line = first;
    part.lines = lines;
    part.columns = (size_t)channels;
    part.y = (uint8_t *)j->y + n * c->y.height * c->y.width * c->y.pixel;
    const dp_bytes_finish f = finish_of(j, 0, channels);
    j->table->depthwise(&part, &f, (void *)(((uintptr_t)scratch + ALIGN - 1) & ~(uintptr_t)(ALIGN - 1)));
    const dp_bytes_block written = {.y = part.y + first * c->y.width * c->y.pixel,
                                    .y_stride = c->y.pixel,
                                    .rows = (size_t)(lines * c->y.width),
                                    .columns = (size_t)channels};
    apply_map(j, &written);
}

dp_status dp_picture_conv_run(dp_plan *plan) {
    const dp_picture_conv *c = dp_plan_state(plan);
    static const dp_tile_fn ways[] = {rows_piece, depthwise_piece, tiles_piece};
    if (!c->y.batch || !c->y.height || !c->y.width || !c->y.channels)
        return DP_OK;
    job j = {.c = c,
             .table = dp_bytes_current(),
             .x = dp_plan_data(plan, c->x.slot),
             .outside = dp_plan_data(plan, c->outside_slot),
             .map = c->table_slot < 0 ? NULL : dp_plan_data(plan, c->table_slot),
             .residual = c->residual_slot < 0 ? NULL : dp_plan_data(plan, c->residual_slot),
             .panels = dp_plan_data(plan, c->panels_slot),
             .numbers = dp_plan_data(plan, c->numbers_slot),
             .y = dp_plan_data(plan, c->y.slot)};
    j.x_end = j.x + (c->x.batch * c->x.height * c->x.width - 1) * c->x.pixel + c->x.channels;
    return dp_tiles_run((size_t)(c->units * c->column_units), c->scratch_bytes, ways[c->way], &j);
}
