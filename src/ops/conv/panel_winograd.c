/*
 * panel_winograd.c - Winograd's way: a piece is some tiles and some columns. The tiles' transformed pixels lie in the
 * scratch as (m + 2)^2 matrices, which are multiplied by the weights' 32 columns at a time, so that both sides of the
 * products stay in the second level cache; then the tiles of these columns are transformed back. Pieces of the same
 * tiles transform their pixels again, which is little beside the products.
 */
#include "ops/conv/panel_conv.h"

#include <string.h>

enum {
    LEFT_BYTES = 320 << 10, /* of the transformed pixels, where weights stay near */
    TILES_LEAST = 12,       /* of a piece, so that weights are read for something */
    TILES_MOST = 48,
    TILES_MOST_FAR = 64, /* where weights come from far away in every piece */
    TILES_STEP = 6,
    COLUMNS = 32, /* at a time */
    TILES_AHEAD = 2,
    COLUMNS_LEAST = 64 /* of a piece */
};

/* Vectors are written whole. */
static int64_t left_pitch(const dp_panel_conv *c) {
    return dp_panel_up(c->channels, DP_ROWS_PANEL) * DP_ROWS_PANEL;
}

void dp_panel_divide_winograd(dp_panel_conv *c, int64_t wanted) {
    const int m = dp_conv_winograd(c->filter.form);
    const int64_t products = (m + 2) * (m + 2), pitch = left_pitch(c);
    for (int d = 0; d < 2; d++)
        c->tiles[d] = dp_panel_up(c->out[d], m);
    const int64_t total = c->batch * c->tiles[0] * c->tiles[1];
    const int64_t cache = (int64_t)dp_cpu_cache_bytes(), size = (int64_t)sizeof(float);
    const bool is_far = products * c->channels * c->columns * size > cache / 2;
    const int64_t left = is_far ? cache / 8 * 5 : LEFT_BYTES; /* of the second level cache */
    int64_t most = left / (products * pitch * size) / TILES_STEP * TILES_STEP;
    most = most < TILES_LEAST ? TILES_LEAST : dp_panel_at_most(most, is_far ? TILES_MOST_FAR : TILES_MOST);
    c->unit = total < 1 ? 1 : dp_panel_up(total, dp_panel_up(total, most));
    if (c->unit < total)
        c->unit = dp_panel_up(c->unit, TILES_STEP) * TILES_STEP;
    c->units = dp_panel_up(total, c->unit);
    int64_t pieces = c->units > 0 ? dp_panel_up(wanted, c->units) : 1;
    pieces = dp_panel_at_most(pieces, c->columns / COLUMNS_LEAST);
    c->column_unit = dp_panel_up(dp_panel_up(c->columns, pieces > 0 ? pieces : 1), COLUMNS) * COLUMNS;
    c->column_units = dp_panel_up(c->columns, c->column_unit);
    c->scratch_bytes = dp_panel_padded(c->channels * size); /* zeros first */
    c->left_at = c->scratch_bytes;
    c->scratch_bytes += dp_panel_padded(products * c->unit * pitch * size);
    c->products_at = c->scratch_bytes;
    c->scratch_bytes += dp_panel_padded(products * c->unit * COLUMNS * size);
    c->sums_at = c->scratch_bytes;
    c->scratch_bytes += dp_panel_padded((int64_t)dp_rows_room((size_t)c->unit, COLUMNS) * size);
}

/* Where tile number `index` begins in the output. */
typedef struct place {
    int64_t n, y, x;
} place;
static place place_of(const dp_panel_conv *c, int64_t index) {
    const int m = dp_conv_winograd(c->filter.form);
    const int64_t line = index / c->tiles[1];
    return (place){line / c->tiles[0], line % c->tiles[0] * m, index % c->tiles[1] * m};
}

static void tile_in(const dp_panel_job *j, place at, const float *zeros, float *out, size_t step) {
    const dp_panel_conv *c = j->conv;
    const int m = dp_conv_winograd(c->filter.form), side = m + 2;
    const float *pixels[36];
    for (int i = 0; i < side * side; i++) {
        const int64_t y = at.y - c->pad[0] + i / side, x = at.x - c->pad[1] + i % side;
        const bool inside = y >= 0 && y < c->in[0] && x >= 0 && x < c->in[1];
        pixels[i] =
            inside ? (const float *)j->x + at.n * c->x_stride[0] + y * c->x_stride[1] + x * c->x_stride[2] : zeros;
    }
    j->table->winograd_in(m, pixels, (size_t)c->channels, out, step);
}

static void tile_out(const dp_panel_job *j, place at, const float *sums, size_t step, int64_t first, int64_t columns) {
    const dp_panel_conv *c = j->conv;
    const int m = dp_conv_winograd(c->filter.form);
    const int64_t pixel = (at.n * c->out[0] + at.y) * c->out[1] + at.x;
    const dp_rows_tile tile = {.sums = sums,
                               .step = step,
                               .columns = (size_t)columns,
                               .bias = j->bias ? j->bias + first : NULL,
                               .y = (float *)j->y + pixel * c->y_pixel + first,
                               .y_line = c->out[1] * c->y_pixel,
                               .y_pixel = c->y_pixel,
                               .lines = (size_t)dp_panel_at_most(m, c->out[0] - at.y),
                               .pixels = (size_t)dp_panel_at_most(m, c->out[1] - at.x),
                               .residual =
                                   j->residual ? (const float *)j->residual + pixel * c->residual_pixel + first : NULL,
                               .residual_line = c->out[1] * c->residual_pixel,
                               .residual_pixel = c->residual_pixel};
    j->table->winograd_out(m, &tile, &c->finish);
}

/* Asks for what tile_out will write: pixels lie too far apart for a processor to foresee them. */
static void fetch_out(const dp_panel_job *j, place at, int64_t first, int64_t columns) {
    const dp_panel_conv *c = j->conv;
    const int m = dp_conv_winograd(c->filter.form);
    const int64_t pixel = (at.n * c->out[0] + at.y) * c->out[1] + at.x;
    const float *line = (const float *)j->y + pixel * c->y_pixel + first;
    for (int64_t y = 0; y < m && at.y + y < c->out[0]; y++, line += c->out[1] * c->y_pixel)
        for (int64_t x = 0; x < m && at.x + x < c->out[1]; x++)
            for (int64_t k = 0; k < columns; k += DP_ROWS_PANEL)
                __builtin_prefetch(line + x * c->y_pixel + k, 1);
}

void dp_panel_winograd_piece(void *context, size_t tile, void *scratch) {
    static const dp_rows_finish none = {.activation = DP_ROWS_NONE};
    const dp_panel_job *j = context;
    const dp_panel_conv *c = j->conv;
    const int m = dp_conv_winograd(c->filter.form), matrices = (m + 2) * (m + 2);
    const int64_t first = (int64_t)tile / c->column_units * c->unit, pitch = left_pitch(c);
    const int64_t count = dp_panel_at_most(c->unit, c->batch * c->tiles[0] * c->tiles[1] - first);
    const int64_t begin = (int64_t)tile % c->column_units * c->column_unit;
    const int64_t end = dp_panel_at_most(begin + c->column_unit, c->columns);
    char *room = scratch;
    float *zeros = scratch, *left = (float *)(room + c->left_at);
    float *products = (float *)(room + c->products_at);
    const size_t step = (size_t)(c->unit * pitch);
    memset(zeros, 0, (size_t)c->channels * sizeof *zeros);
    for (int64_t t = 0; t < count; t++)
        tile_in(j, place_of(c, first + t), zeros, left + t * pitch, step);
    const size_t panel = (size_t)(c->channels * DP_ROWS_PANEL);
    const size_t matrix = dp_rows_panel_floats((size_t)c->channels, (size_t)c->columns);
    for (int64_t at = begin; at < end; at += COLUMNS) {
        const int64_t columns = dp_panel_at_most(COLUMNS, end - at);
        for (int k = 0; k < matrices; k++) {
            const float *all = j->panels, *panels = all + (size_t)k * matrix + (size_t)at / DP_ROWS_PANEL * panel;
            const float *next = k + 1 < matrices     ? panels + matrix
                                : at + COLUMNS < end ? all + (size_t)(at + COLUMNS) / DP_ROWS_PANEL * panel
                                                     : NULL;
            const dp_rows_product product = {.x = left + (size_t)k * step,
                                             .x_stride = pitch,
                                             .rows = (size_t)count,
                                             .k = (size_t)c->channels,
                                             .next = next,
                                             .panels = panels,
                                             .columns = (size_t)columns,
                                             .y = products + k * c->unit * COLUMNS,
                                             .y_stride = COLUMNS};
            j->table->product(&product, &none, (float *)(room + c->sums_at));
        }
        for (int64_t t = 0; t < count; t++) {
            if (t + TILES_AHEAD < count)
                fetch_out(j, place_of(c, first + t + TILES_AHEAD), at, columns);
            tile_out(j, place_of(c, first + t), products + t * COLUMNS, (size_t)(c->unit * COLUMNS), at, columns);
        }
    }
}
