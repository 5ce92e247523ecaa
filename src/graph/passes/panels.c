/* Convolutions and products with constant float weights, with the weights in panels (ops/conv/panels.h). */
#include <string.h>

#include "graph/passes/layout.h"
#include "graph/passes/match.h"
#include "graph/passes/passes.h"
#include "math/rows/rows.h"
#include "ops/conv/panels.h"

static bool is_weight(const dp_value *value) {
    return value && value->is_constant && value->tensor.element == DP_F32;
}

static bool is_list(const dp_arg *arg, int64_t count) {
    return arg && arg->kind == DP_ARG_INT_LIST && arg->count == count;
}

/* Numbers of space behind those of batch and channels. */
static const int64_t *space_of(const dp_node *node, const char *name) {
    static const int64_t ones[] = {1, 1};
    const dp_arg *arg = dp_node_attribute(node, name);
    return is_list(arg, 4) ? arg->as.integers + 2 : ones;
}

static dp_conv_filter filter_of(const dp_node *node) {
    bool transposed = dp_node_is(node, "Conv2DTransposeD");
    const dp_tensor *w = &node->inputs[1]->tensor;
    const int64_t *stride = space_of(node, "strides"), *dilation = space_of(node, "dilations");
    int64_t groups = dp_node_integer(node, "groups", dp_node_integer(node, "group", 1));
    return (dp_conv_filter){.in_channels = node->inputs[0]->tensor.dims[1],
                            .out_channels = transposed ? w->dims[1] * groups : w->dims[0],
                            .groups = groups,
                            .kernel = {w->dims[2], w->dims[3]},
                            .stride = {stride[0], stride[1]},
                            .dilation = {dilation[0], dilation[1]},
                            .transposed = transposed};
}

bool dp_panel_fits(const dp_node *node) {
    const dp_value *x = node->inputs[0], *bias = node->n_inputs > 2 ? node->inputs[2] : NULL;
    const dp_arg *pads = dp_node_attribute(node, "pads");
    if (!x || x->tensor.rank != 4 || x->tensor.element != DP_F32 || !is_weight(node->inputs[1]) ||
        node->inputs[1]->tensor.rank != 4 || (bias && bias->tensor.element != DP_F32) ||
        (node->n_inputs > 3 && node->inputs[3]) || !is_list(pads, 4) ||
        dp_tensor_count(&node->outputs[0]->tensor) == 0 ||
        strcmp(dp_node_text(node, "auto_pad", "NOTSET"), "NOTSET") != 0 ||
        strcmp(dp_node_text(node, "data_format", "NHWC"), "NCHW") != 0)
        return false;
    for (int i = 0; i < 4; i++)
        if (pads->as.integers[i] < 0)
            return false;
    return true;
}

static dp_status set_geometry(dp_node *made, const dp_node *node, const dp_conv_filter *f) {
    const dp_arg *more = dp_node_attribute(node, "output_padding");
    dp_status status = dp_node_set_integer(made, "out_channels", f->out_channels);
    if (status == DP_OK)
        status = dp_node_set_integers(made, "kernel", f->kernel, 2);
    if (status == DP_OK)
        status = dp_node_set_integers(made, "strides", f->stride, 2);
    if (status == DP_OK)
        status = dp_node_set_integers(made, "pads", dp_node_attribute(node, "pads")->as.integers, 4);
    if (status == DP_OK)
        status = dp_node_set_integers(made, "dilations", f->dilation, 2);
    if (status == DP_OK)
        status = dp_node_set_integer(made, "groups", f->groups);
    if (status == DP_OK && f->transposed && is_list(more, 4))
        status = dp_node_set_integers(made, "output_padding", more->as.integers + 2, 2);
    if (status == DP_OK && !f->transposed)
        status = dp_node_set_text(made, "form", dp_conv_form_name(f->form));
    return status;
}

dp_status dp_panel_make(dp_node *node, dp_node **out_made) {
    dp_conv_filter f = filter_of(node);
    const dp_tensor *y = &node->outputs[0]->tensor;
    if (!f.transposed)
        f.form = dp_conv_form_choose(&f, y->dims[2], y->dims[3]);
    int64_t floats;
    dp_status status = dp_conv_panels_count(&f, &floats);
    if (status != DP_OK)
        return status;
    dp_value *panels = dp_value_constant(node->graph->model, NULL, DP_F32, &floats, 1, NULL);
    dp_node *made =
        dp_node_new(node->graph, node, f.transposed ? "PanelConv2DTranspose" : "PanelConv2D", node->name, 4, 1);
    if (!panels || !made)
        return DP_ERR_OUT_OF_MEMORY;
    made->inputs[1] = panels;
    made->inputs[2] = node->n_inputs > 2 ? node->inputs[2] : NULL;
    status = dp_conv_panels_pack(&f, node->inputs[1]->tensor.base, panels->tensor.base);
    *out_made = made;
    return status == DP_OK ? set_geometry(made, node, &f) : status;
}

/* Products. */

static bool is_product(const dp_node *node, bool *out_transposed) {
    bool plain = dp_node_is(node, "MatMulV2"),
         batch = dp_node_is(node, "BatchMatMulV2") || dp_node_is(node, "BatchMatMul");
    if (!plain && !batch)
        return false;
    const dp_value *x = node->inputs[0], *w = node->inputs[1], *bias = node->n_inputs > 2 ? node->inputs[2] : NULL;
    *out_transposed = dp_node_integer(node, plain ? "transpose_x2" : "adj_x2", 0) != 0;
    return !dp_node_integer(node, plain ? "transpose_x1" : "adj_x1", 0) && is_weight(w) && w->tensor.rank == 2 && x &&
           x->tensor.element == DP_F32 && x->tensor.rank >= 2 && dp_tensor_count(&node->outputs[0]->tensor) > 0 &&
           dp_tensor_count(&w->tensor) > 0 && (!bias || (is_weight(bias) && bias->tensor.rank == 1)) &&
           (node->n_inputs < 4 || !node->inputs[3]);
}

static dp_status make_product(dp_node *node, bool transposed) {
    const dp_tensor *w = &node->inputs[1]->tensor;
    int64_t k = w->dims[transposed ? 1 : 0], n = w->dims[transposed ? 0 : 1];
    int64_t floats = (int64_t)dp_rows_panel_floats((size_t)k, (size_t)n);
    dp_value *bias = node->n_inputs > 2 ? node->inputs[2] : NULL;
    if (bias && bias->tensor.dims[0] != n)
        return DP_OK;
    dp_value *panels = dp_value_constant(node->graph->model, NULL, DP_F32, &floats, 1, NULL);
    if (!panels)
        return DP_ERR_OUT_OF_MEMORY;
    dp_rows_pack(w->base, (size_t)k, (size_t)n, transposed ? 1 : n, transposed ? k : 1, panels->tensor.base);
    dp_node *made = dp_node_replace(node, "PanelMatMul", (dp_value *[]){node->inputs[0], panels, bias, NULL}, 4);
    return made ? dp_node_set_integer(made, "columns", n) : DP_ERR_OUT_OF_MEMORY;
}

dp_status dp_pass_products(dp_graph *graph, int *out_changes) {
    for (dp_node *node = graph->first, *next; node; node = next) {
        bool transposed;
        next = node->next;
        if (!is_product(node, &transposed))
            continue;
        dp_status status = make_product(node, transposed);
        if (status != DP_OK)
            return status;
        ++*out_changes;
    }
    return DP_OK;
}
