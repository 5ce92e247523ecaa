/*
 * panel_product.c - the way of evenly spaced rows: products, and convolutions of one tap that reads every pixel. A
 * piece is some rows and some columns; all of k is read where it lies.
 */
#include "ops/conv/panel_conv.h"

enum {
    ROWS = 240,           /* of a piece, at most */
    ROWS_LEAST = 24,      /* of a piece that is one of several: two or three tiles of any rung */
    ROWS_FEW = 8,         /* up to here columns side by side are faster, which the other way has */
    CHANNELS_LEAST = 48,  /* less goes faster in the order of memory */
    COLUMNS_LEAST = 64,   /* of a piece that is one of several in a row */
    COLUMNS_AT_ONCE = 256 /* of the sums, between parts of k */
};

bool dp_panel_is_product(const dp_panel_conv *c) {
    const dp_conv_filter *f = &c->filter;
    bool is_plain = c->way == DP_PANEL_ROWS && c->element == DP_F32 && c->channels >= CHANNELS_LEAST;
    for (int d = 0; d < 2; d++)
        is_plain = is_plain && f->kernel[d] == 1 && f->stride[d] == 1 && !c->pad[d] && !c->pad_end[d];
    return is_plain && c->batch * c->out[0] * c->out[1] > ROWS_FEW &&
           (c->in[0] == 1 || c->x_stride[1] == c->in[1] * c->x_stride[2]) &&
           (c->batch == 1 || c->x_stride[0] == c->in[0] * c->in[1] * c->x_stride[2]);
}

void dp_panel_divide_product(dp_panel_conv *c, int64_t wanted) {
    const int64_t total = c->batch * c->out[0] * c->out[1], groups = c->filter.groups;
    c->unit = dp_panel_up(total, dp_panel_up(total, ROWS)); /* pieces of the same size */
    int64_t pieces = dp_panel_up(wanted, dp_panel_up(total, c->unit) * groups);
    pieces = dp_panel_at_most(pieces, c->columns / COLUMNS_LEAST);
    c->column_unit =
        dp_panel_up(dp_panel_up(c->columns, pieces > 0 ? pieces : 1), 2 * DP_ROWS_PANEL) * 2 * DP_ROWS_PANEL;
    c->column_units = groups * dp_panel_up(c->columns, c->column_unit);
    pieces = dp_panel_up(wanted, c->column_units);
    if (dp_panel_up(total, c->unit) < pieces)
        c->unit = dp_panel_up(total, dp_panel_at_most(pieces, dp_panel_up(total, ROWS_LEAST)));
    c->units = dp_panel_up(total, c->unit);
    c->scratch_bytes = dp_panel_padded(
        (int64_t)dp_rows_room((size_t)c->unit, (size_t)dp_panel_at_most(c->column_unit, COLUMNS_AT_ONCE)) *
        (int64_t)sizeof(float));
}

void dp_panel_product_piece(void *context, size_t tile, void *scratch) {
    const dp_panel_job *j = context;
    const dp_panel_conv *c = j->conv;
    const int64_t per_group = c->column_units / c->filter.groups, part = (int64_t)tile % c->column_units;
    const int64_t first = part % per_group * c->column_unit, group = part / per_group, column = group * c->columns;
    const int64_t row = (int64_t)tile / c->column_units * c->unit, total = c->batch * c->out[0] * c->out[1];
    const dp_rows_product p = {.x = (const float *)j->x + row * c->x_stride[2] + group * c->channels,
                               .x_stride = c->x_stride[2],
                               .rows = (size_t)dp_panel_at_most(c->unit, total - row),
                               .k = (size_t)c->channels,
                               .panels = (const float *)j->panels + group * c->group_panels,
                               .bias = j->bias ? j->bias + column : NULL,
                               .first = (size_t)first,
                               .columns = (size_t)dp_panel_at_most(c->column_unit, c->columns - first),
                               .y = (float *)j->y + row * c->y_pixel + column,
                               .y_stride = c->y_pixel,
                               .residual =
                                   j->residual ? (const float *)j->residual + row * c->residual_pixel + column : NULL,
                               .residual_stride = c->residual_pixel};
    j->table->product(&p, &c->finish, scratch);
}
