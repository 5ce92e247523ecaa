/* Pooling and resizing in the forms for images with channels last (ops/last). */
#include <string.h>

#include "graph/passes/layout.h"
#include "graph/passes/match.h"

typedef struct window {
    int64_t kernel[2], stride[2], pads[4], size[2];
} window;

static bool take_list(const dp_node *node, const char *name, int64_t *out) {
    const dp_arg *arg = dp_node_attribute(node, name);
    if (!arg || arg->kind != DP_ARG_INT_LIST || arg->count != 4)
        return false;
    memcpy(out, arg->as.integers, 4 * sizeof *out);
    return true;
}

static bool take_window(const dp_node *node, window *w) {
    int64_t kernel[4], stride[4];
    const char *mode = dp_node_text(node, "padding_mode", "CALCULATED");
    const int64_t *y = node->outputs[0]->tensor.dims;
    if (dp_node_integer(node, "global_pooling", 0) || strcmp(dp_node_text(node, "data_format", "NCHW"), "NCHW") != 0 ||
        strcmp(mode, "CALCULATED") != 0 || !take_list(node, "ksize", kernel) || !take_list(node, "strides", stride))
        return false;
    if (!take_list(node, "pads", w->pads))
        memset(w->pads, 0, sizeof w->pads);
    *w = (window){.kernel = {kernel[2], kernel[3]},
                  .stride = {stride[2], stride[3]},
                  .pads = {w->pads[0], w->pads[1], w->pads[2], w->pads[3]},
                  .size = {y[2], y[3]}};
    return w->pads[0] >= 0 && w->pads[1] >= 0 && w->pads[2] >= 0 && w->pads[3] >= 0;
}

static dp_status make_pool(dp_node *node, bool average, dp_node **out_made) {
    window w;
    if (!take_window(node, &w) || (average && dp_node_integer(node, "ceil_mode", 0)))
        return DP_OK;
    dp_node *made = dp_node_new(node->graph, node, average ? "LastAveragePool" : "LastMaxPool", node->name, 1, 1);
    if (!made)
        return DP_ERR_OUT_OF_MEMORY;
    *out_made = made;
    dp_status status = dp_node_set_integers(made, "ksize", w.kernel, 2);
    if (status == DP_OK)
        status = dp_node_set_integers(made, "strides", w.stride, 2);
    if (status == DP_OK)
        status = dp_node_set_integers(made, "pads", w.pads, 4);
    if (status == DP_OK)
        status = dp_node_set_integers(made, "size", w.size, 2);
    if (status == DP_OK && average)
        status = dp_node_set_integer(made, "exclusive", dp_node_integer(node, "exclusive", 1));
    return status;
}

/* Neighbours by whole factors are repeated pixels. */
static dp_status make_repeat(dp_node *node, dp_node **out_made) {
    const int64_t *x = node->inputs[0]->tensor.dims, *y = node->outputs[0]->tensor.dims;
    if (dp_node_integer(node, "align_corners", 0) || x[2] < 1 || x[3] < 1 || y[2] % x[2] || y[3] % x[3] ||
        y[2] < x[2] || y[3] < x[3])
        return DP_OK;
    dp_node *made = dp_node_new(node->graph, node, "LastRepeat", node->name, 1, 1);
    *out_made = made;
    return made ? dp_node_set_integers(made, "factors", (const int64_t[]){y[2] / x[2], y[3] / x[3]}, 2)
                : DP_ERR_OUT_OF_MEMORY;
}

/* Of few channels a pixel is no vector: those stay as they are. */
static dp_status make_linear(dp_node *node, dp_node **out_made) {
    enum { CHANNELS_LEAST = 8 };
    const int64_t *y = node->outputs[0]->tensor.dims;
    if (node->inputs[0]->tensor.element != DP_F32 || node->inputs[0]->tensor.dims[1] < CHANNELS_LEAST)
        return DP_OK;
    dp_node *made = dp_node_new(node->graph, node, "LastLinear", node->name, 1, 1);
    if (!made)
        return DP_ERR_OUT_OF_MEMORY;
    *out_made = made;
    dp_status status = dp_node_set_integers(made, "size", y + 2, 2);
    if (status == DP_OK)
        status = dp_node_set_integer(made, "align_corners", dp_node_integer(node, "align_corners", 0));
    if (status == DP_OK)
        status = dp_node_set_integer(made, "half_pixel_centers", dp_node_integer(node, "half_pixel_centers", 0));
    return status;
}

dp_status dp_last_make(dp_node *node, dp_node **out_made) {
    if (node->inputs[0]->tensor.rank != 4 || !dp_value_is_real(node->inputs[0]))
        return DP_OK;
    if (dp_node_is(node, "MaxPoolV3") && node->n_outputs == 1)
        return make_pool(node, false, out_made);
    if (dp_node_is(node, "AvgPoolV2"))
        return make_pool(node, true, out_made);
    if (dp_node_is(node, "ResizeNearestNeighborV2"))
        return make_repeat(node, out_made);
    if (dp_node_is(node, "ResizeBilinearV2"))
        return make_linear(node, out_made);
    return DP_OK;
}
