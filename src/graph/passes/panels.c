/* Convolutions and products with constant weights of float, half or bfloat16, with the weights in panels
 * (ops/conv/panels.h). */
#include <string.h>

#include "graph/passes/layout.h"
#include "graph/passes/match.h"
#include "graph/passes/passes.h"
#include "math/rows/low.h"
#include "ops/conv/panels.h"

/* Of the type of the other factor, x. */
static bool is_weight(const dp_value *value, const dp_value *x) {
    return dp_value_is_real(value) && value->is_constant && x && value->tensor.element == x->tensor.element;
}

/* A bias is float beside all types of images; other types become it when they are constant. */
static bool is_bias(const dp_value *value) {
    return value->tensor.element == DP_F32 || (dp_value_is_real(value) && value->is_constant);
}
static dp_value *bias_as_float(dp_model *model, dp_value *bias) {
    if (!bias || bias->tensor.element == DP_F32)
        return bias;
    dp_value *made = dp_value_constant(model, NULL, DP_F32, bias->tensor.dims, bias->tensor.rank, NULL);
    for (int64_t i = 0, n = dp_tensor_count(&bias->tensor); i < n && made; i++)
        ((float *)made->tensor.base)[i] = dp_value_real_at(bias, i);
    return made;
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
                            .transposed = transposed,
                            .low = w->element == DP_F32 ? 0 : w->element};
}

bool dp_panel_fits(const dp_node *node) {
    const dp_value *x = node->inputs[0], *bias = node->n_inputs > 2 ? node->inputs[2] : NULL;
    const dp_arg *pads = dp_node_attribute(node, "pads");
    if (!x || x->tensor.rank != 4 || !is_weight(node->inputs[1], x) || node->inputs[1]->tensor.rank != 4 ||
        (bias && !is_bias(bias)) || (node->n_inputs > 3 && node->inputs[3]) || !is_list(pads, 4) ||
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
    int64_t elements;
    dp_status status = dp_conv_panels_count(&f, &elements);
    if (status != DP_OK)
        return status;
    dp_value *bias = node->n_inputs > 2 ? node->inputs[2] : NULL;
    dp_value *panels = dp_value_constant(node->graph->model, NULL, dp_conv_panels_element(&f), &elements, 1, NULL);
    dp_node *made =
        dp_node_new(node->graph, node, f.transposed ? "PanelConv2DTranspose" : "PanelConv2D", node->name, 4, 1);
    if (!panels || !made || (bias && !(bias = bias_as_float(node->graph->model, bias))))
        return DP_ERR_OUT_OF_MEMORY;
    made->inputs[1] = panels;
    made->inputs[2] = bias;
    status = dp_conv_panels_pack(&f, node->inputs[1]->tensor.base, panels->tensor.base);
    *out_made = made;
    return status == DP_OK ? set_geometry(made, node, &f) : status;
}

/* Transposed convolutions whose windows do not overlap. */

bool dp_panel_tiles(const dp_node *node) {
    const dp_arg *pads = dp_node_attribute(node, "pads"), *more = dp_node_attribute(node, "output_padding");
    if (!dp_node_is(node, "Conv2DTransposeD") || !dp_panel_fits(node))
        return false;
    dp_conv_filter f = filter_of(node);
    for (int i = 0; i < 4; i++)
        if (pads->as.integers[i] || (is_list(more, 4) && more->as.integers[i]))
            return false;
    /* of 16 bits their own way is faster, unless columns of panels stay empty */
    if (f.low && f.out_channels >= DP_ROWS_PANEL)
        return false;
    return f.groups == 1 && f.kernel[0] == f.stride[0] && f.kernel[1] == f.stride[1] && f.dilation[0] == 1 &&
           f.dilation[1] == 1;
}

/* A matrix k x columns in panels. */
static dp_value *pack_matrix(dp_model *model, int element, const void *weights, int64_t k, int64_t columns,
                             int64_t k_stride, int64_t column_stride) {
    const bool is_float = element == DP_F32;
    int64_t elements = (int64_t)(is_float ? dp_rows_panel_floats : dp_low_panel_elements)((size_t)k, (size_t)columns);
    dp_value *made = dp_value_constant(model, NULL, element, &elements, 1, NULL);
    if (made && is_float)
        dp_rows_pack(weights, (size_t)k, (size_t)columns, k_stride, column_stride, made->tensor.base);
    else if (made)
        dp_low_pack(weights, (size_t)k, (size_t)columns, k_stride, column_stride, made->tensor.base);
    return made;
}

/* Weights [in, (kernel y, kernel x, out)] in panels, and the bias once per tap. */
static dp_status tile_weights(dp_node *node, const dp_conv_filter *f, dp_node *product) {
    int64_t taps = f->kernel[0] * f->kernel[1], out = f->out_channels, columns = taps * out;
    const dp_value *bias = node->n_inputs > 2 ? node->inputs[2] : NULL;
    dp_model *model = node->graph->model;
    const size_t size = f->low ? 2 : 4;
    char *turned = dp_model_alloc(model, (size_t)(f->in_channels * columns) * size);
    const char *from = node->inputs[1]->tensor.base;
    if (!turned || (bias && !(product->inputs[2] = dp_value_constant(model, NULL, DP_F32, &columns, 1, NULL))))
        return DP_ERR_OUT_OF_MEMORY;
    for (int64_t i = 0; i < f->in_channels; i++)
        for (int64_t c = 0; c < out; c++)
            for (int64_t t = 0; t < taps; t++)
                memcpy(turned + (size_t)(i * columns + t * out + c) * size,
                       from + (size_t)((i * out + c) * taps + t) * size, size);
    product->inputs[1] = pack_matrix(model, f->low ? f->low : DP_F32, turned, f->in_channels, columns, columns, 1);
    if (!product->inputs[1])
        return DP_ERR_OUT_OF_MEMORY;
    for (int64_t i = 0; i < columns && bias; i++)
        ((float *)product->inputs[2]->tensor.base)[i] = dp_value_real_at(bias, i % out);
    return dp_node_set_integer(product, "columns", columns);
}

/* A node with one input more (NULL: none) whose result is `to`, or a new value of these dims. */
static dp_node *step(dp_node *before, const char *type, dp_value *x, dp_value *second, dp_value *to,
                     const int64_t *dims) {
    dp_node *made = dp_node_new(before->graph, before, type, before->name, second ? 2 : 1, 1);
    if (!made || (!to && !(to = dp_value_new(before->graph->model, NULL))))
        return NULL;
    made->inputs[0] = x;
    if (second)
        made->inputs[1] = second;
    dp_value_shape(to, x->tensor.element, dims, 4);
    dp_node_output(made, 0, to);
    return made;
}

dp_status dp_panel_make_tiles(dp_node *node, dp_value *from, dp_value *to) {
    dp_conv_filter f = filter_of(node);
    const int64_t *x = from->tensor.dims, ky = f.kernel[0], line = f.kernel[1] * f.out_channels;
    const int64_t tiles[] = {x[0], x[1], x[2], ky * line}, apart[] = {x[0] * x[1], x[2], ky, line},
                  lines[] = {x[0] * x[1], ky, x[2], line};
    int64_t image[4];
    memcpy(image, to->tensor.dims, sizeof image);
    dp_model *model = node->graph->model;
    dp_node *product = dp_node_new(node->graph, node, "PanelMatMul", node->name, 4, 1);
    dp_value *y = dp_value_new(model, NULL), *as = dp_value_integers(model, apart, 4),
             *whole = dp_value_integers(model, image, 4);
    if (!product || !y || !as || !whole)
        return DP_ERR_OUT_OF_MEMORY;
    product->inputs[0] = from;
    dp_value_shape(y, from->tensor.element, tiles, 4);
    dp_node_output(product, 0, y);
    dp_status status = tile_weights(node, &f, product);
    if (status != DP_OK)
        return status;
    dp_node *last = step(node, "Reshape", y, as, NULL, apart);
    dp_node *turned = last ? step(node, "TransposeD", last->outputs[0], NULL, NULL, lines) : NULL;
    if (!turned || !step(node, "Reshape", turned->outputs[0], whole, to, image))
        return DP_ERR_OUT_OF_MEMORY;
    return dp_node_set_integers(turned, "perm", (const int64_t[]){0, 2, 1, 3}, 4);
}

/* Products. */

static bool is_product(const dp_node *node, bool *out_transposed) {
    bool plain = dp_node_is(node, "MatMulV2"),
         batch = dp_node_is(node, "BatchMatMulV2") || dp_node_is(node, "BatchMatMul");
    if (!plain && !batch)
        return false;
    const dp_value *x = node->inputs[0], *w = node->inputs[1], *bias = node->n_inputs > 2 ? node->inputs[2] : NULL;
    *out_transposed = dp_node_integer(node, plain ? "transpose_x2" : "adj_x2", 0) != 0;
    return !dp_node_integer(node, plain ? "transpose_x1" : "adj_x1", 0) && is_weight(w, x) && w->tensor.rank == 2 &&
           x->tensor.rank >= 2 && dp_tensor_count(&node->outputs[0]->tensor) > 0 && dp_tensor_count(&w->tensor) > 0 &&
           (!bias || (is_bias(bias) && bias->is_constant && bias->tensor.rank == 1)) &&
           (node->n_inputs < 4 || !node->inputs[3]);
}

static dp_status make_product(dp_node *node, bool transposed) {
    const dp_tensor *w = &node->inputs[1]->tensor;
    int64_t k = w->dims[transposed ? 1 : 0], n = w->dims[transposed ? 0 : 1];
    dp_model *model = node->graph->model;
    dp_value *bias = node->n_inputs > 2 ? node->inputs[2] : NULL;
    if (bias && bias->tensor.dims[0] != n)
        return DP_OK;
    dp_value *panels = pack_matrix(model, w->element, w->base, k, n, transposed ? 1 : n, transposed ? k : 1);
    if (!panels || (bias && !(bias = bias_as_float(model, bias))))
        return DP_ERR_OUT_OF_MEMORY;
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
