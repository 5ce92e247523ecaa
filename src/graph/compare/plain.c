#include "graph/compare/plain.h"

#include <math.h>
#include <string.h>

#include "runtime/pool.h"

enum { SPACE = 3 };

static const double *read_of(const dp_value *value) {
    return value->tensor.base;
}
static double *write_of(dp_value *value) {
    return value->tensor.base;
}
static bool is_double(const dp_value *value) {
    return value && value->tensor.element == DP_F64 && value->tensor.base;
}

/* Windows over the last dims of N C [D] [H] W; missing dims have the size 1. */
typedef struct windows {
    int64_t in[SPACE], out[SPACE], kernel[SPACE], stride[SPACE], dilation[SPACE], before[SPACE], after[SPACE];
} windows;

static void set_dims(int64_t *to, const dp_tensor *t) {
    for (int d = 0; d < SPACE; d++)
        to[d] = d + t->rank - SPACE >= 2 ? t->dims[d + t->rank - SPACE] : 1;
}

/* A list with a number for each dim of the tensor; ones where it is absent. */
static bool set_list(int64_t *to, const dp_node *node, const char *name, int rank) {
    const dp_arg *list = dp_node_attribute(node, name);
    for (int d = 0; d < SPACE; d++)
        to[d] = 1;
    if (!list)
        return true;
    if (list->kind != DP_ARG_INT_LIST || list->count != rank)
        return false;
    for (int d = 2; d < rank; d++)
        to[d + SPACE - rank] = list->as.integers[d];
    return true;
}

static bool find_windows(const dp_node *node, windows *w) {
    const dp_tensor *x = &node->inputs[0]->tensor, *y = &node->outputs[0]->tensor;
    const dp_arg *pads = dp_node_attribute(node, "pads");
    const char *format = dp_node_text(node, "data_format", "");
    memset(w, 0, sizeof *w);
    if (x->rank < 3 || x->rank > 2 + SPACE || y->rank != x->rank || strncmp(format, "NC", 2) != 0)
        return false;
    set_dims(w->in, x);
    set_dims(w->out, y);
    if (!set_list(w->stride, node, "strides", x->rank) || !set_list(w->dilation, node, "dilations", x->rank) || !pads ||
        pads->kind != DP_ARG_INT_LIST || pads->count != 2 * (x->rank - 2))
        return false;
    for (int d = 0; d < x->rank - 2; d++) {
        w->before[d + SPACE + 2 - x->rank] = pads->as.integers[2 * d];
        w->after[d + SPACE + 2 - x->rank] = pads->as.integers[2 * d + 1];
    }
    return true;
}

/* Convolution: one output channel of one picture is one task. */

typedef struct convolution {
    windows w;
    const double *x, *filter, *bias;
    double *y;
    int64_t in_channels, out_channels, groups;
} convolution;

static int64_t product(const int64_t *dims) {
    return dims[0] * dims[1] * dims[2];
}

/* One row of the output: y[i] += f * x[i * stride + from], for the places that lie in the input. */
static void add_row(double *y, int64_t n, const double *x, int64_t n_in, double f, int64_t stride, int64_t from) {
    int64_t first = from < 0 ? (-from + stride - 1) / stride : 0, last = n_in - from;
    last = last <= 0 ? 0 : (last + stride - 1) / stride;
    last = last < n ? last : n;
    for (int64_t i = first; i < last; i++)
        y[i] += f * x[i * stride + from];
}

static void add_plane(const convolution *c, double *y, const double *x, const double *filter) {
    const windows *w = &c->w;
    for (int64_t k = 0; k < product(w->kernel); k++) {
        int64_t kz = k / (w->kernel[1] * w->kernel[2]), ky = k / w->kernel[2] % w->kernel[1], kx = k % w->kernel[2];
        for (int64_t r = 0; r < w->out[0] * w->out[1]; r++) {
            int64_t z = r / w->out[1] * w->stride[0] - w->before[0] + kz * w->dilation[0];
            int64_t row = r % w->out[1] * w->stride[1] - w->before[1] + ky * w->dilation[1];
            if (z < 0 || z >= w->in[0] || row < 0 || row >= w->in[1])
                continue;
            add_row(y + r * w->out[2], w->out[2], x + (z * w->in[1] + row) * w->in[2], w->in[2], filter[k],
                    w->stride[2], kx * w->dilation[2] - w->before[2]);
        }
    }
}

static void convolve(void *context, size_t begin, size_t end) {
    const convolution *c = context;
    int64_t in_plane = product(c->w.in), out_plane = product(c->w.out), taps = product(c->w.kernel);
    int64_t in_group = c->in_channels / c->groups, out_group = c->out_channels / c->groups;
    for (int64_t i = (int64_t)begin; i < (int64_t)end; i++) {
        int64_t picture = i / c->out_channels, channel = i % c->out_channels, group = channel / out_group;
        double *y = c->y + i * out_plane;
        for (int64_t k = 0; k < out_plane; k++)
            y[k] = c->bias ? c->bias[channel] : 0;
        for (int64_t k = 0; k < in_group; k++)
            add_plane(c, y, c->x + (picture * c->in_channels + group * in_group + k) * in_plane,
                      c->filter + (channel * in_group + k) * taps);
    }
}

/* Transposed: every input pixel is added where its window lies. */

static void spread_plane(const convolution *c, double *y, const double *x, const double *filter) {
    const windows *w = &c->w;
    for (int64_t i = 0; i < product(w->in); i++) {
        int64_t z = i / (w->in[1] * w->in[2]), row = i / w->in[2] % w->in[1], column = i % w->in[2];
        for (int64_t k = 0; k < product(w->kernel); k++) {
            int64_t kz = k / (w->kernel[1] * w->kernel[2]), ky = k / w->kernel[2] % w->kernel[1], kx = k % w->kernel[2];
            int64_t oz = z * w->stride[0] - w->before[0] + kz * w->dilation[0];
            int64_t oy = row * w->stride[1] - w->before[1] + ky * w->dilation[1];
            int64_t ox = column * w->stride[2] - w->before[2] + kx * w->dilation[2];
            if (oz >= 0 && oz < w->out[0] && oy >= 0 && oy < w->out[1] && ox >= 0 && ox < w->out[2])
                y[(oz * w->out[1] + oy) * w->out[2] + ox] += filter[k] * x[i];
        }
    }
}

static void spread(void *context, size_t begin, size_t end) {
    const convolution *c = context;
    int64_t in_plane = product(c->w.in), out_plane = product(c->w.out), taps = product(c->w.kernel);
    int64_t in_group = c->in_channels / c->groups, out_group = c->out_channels / c->groups;
    for (int64_t i = (int64_t)begin; i < (int64_t)end; i++) {
        int64_t picture = i / c->out_channels, channel = i % c->out_channels, group = channel / out_group;
        double *y = c->y + i * out_plane;
        for (int64_t k = 0; k < out_plane; k++)
            y[k] = c->bias ? c->bias[channel] : 0;
        for (int64_t k = group * in_group; k < (group + 1) * in_group; k++)
            spread_plane(c, y, c->x + (picture * c->in_channels + k) * in_plane,
                         c->filter + (k * out_group + channel % out_group) * taps);
    }
}

/* Both kinds; one plane of the output is one task. */
static dp_status run_planes(const dp_node *node, void (*planes)(void *context, size_t begin, size_t end)) {
    convolution c = {.groups = dp_node_integer(node, "groups", 1)};
    const dp_value *filter = node->inputs[1], *bias = node->n_inputs > 2 ? node->inputs[2] : NULL;
    if (!is_double(filter) || (bias && !is_double(bias)) || !find_windows(node, &c.w) || c.groups < 1 ||
        filter->tensor.rank != node->inputs[0]->tensor.rank)
        return DP_ERR_UNSUPPORTED;
    set_dims(c.w.kernel, &filter->tensor);
    c.x = read_of(node->inputs[0]);
    c.filter = read_of(filter);
    c.bias = bias ? read_of(bias) : NULL;
    c.y = write_of(node->outputs[0]);
    c.in_channels = node->inputs[0]->tensor.dims[1];
    c.out_channels = node->outputs[0]->tensor.dims[1];
    size_t tasks = (size_t)(node->outputs[0]->tensor.dims[0] * c.out_channels);
    if (tasks)
        dp_pool_for(tasks, 1, planes, &c);
    return DP_OK;
}

static dp_status run_conv(const dp_node *node) {
    return run_planes(node, convolve);
}

static dp_status run_conv_transpose(const dp_node *node) {
    return run_planes(node, spread);
}

/* Pools. */

static double pool_one(const windows *w, const double *x, const int64_t *at, bool average, bool exclusive) {
    int64_t begin[SPACE], end[SPACE], all = 1;
    double sum = 0, most = -INFINITY;
    for (int d = 0; d < SPACE; d++) {
        begin[d] = at[d] * w->stride[d] - w->before[d];
        end[d] = begin[d] + w->kernel[d];
        int64_t padded = w->in[d] + w->after[d];
        all *= (end[d] < padded ? end[d] : padded) - begin[d];
        begin[d] = begin[d] < 0 ? 0 : begin[d];
        end[d] = end[d] < w->in[d] ? end[d] : w->in[d];
    }
    int64_t inside = 0;
    for (int64_t z = begin[0]; z < end[0]; z++)
        for (int64_t row = begin[1]; row < end[1]; row++)
            for (int64_t column = begin[2]; column < end[2]; column++, inside++) {
                double value = x[(z * w->in[1] + row) * w->in[2] + column];
                sum += value;
                most = value > most || value != value ? value : most;
            }
    return average ? sum / (double)(exclusive ? inside : all) : most;
}

static dp_status run_pool(const dp_node *node, bool average) {
    windows w;
    if (!find_windows(node, &w) || !set_list(w.kernel, node, "ksize", node->inputs[0]->tensor.rank) ||
        product(w.dilation) != 1 || node->n_outputs != 1 || dp_node_integer(node, "global_pooling", 0) ||
        strcmp(dp_node_text(node, "padding_mode", "CALCULATED"), "CALCULATED") != 0)
        return DP_ERR_UNSUPPORTED;
    bool exclusive = dp_node_integer(node, "exclusive", 1) != 0;
    const double *x = read_of(node->inputs[0]);
    double *y = write_of(node->outputs[0]);
    const int64_t *dims = node->outputs[0]->tensor.dims;
    for (int64_t plane = 0; plane < dims[0] * dims[1]; plane++)
        for (int64_t i = 0; i < product(w.out); i++) {
            const int64_t at[] = {i / (w.out[1] * w.out[2]), i / w.out[2] % w.out[1], i % w.out[2]};
            *y++ = pool_one(&w, x + plane * product(w.in), at, average, exclusive);
        }
    return DP_OK;
}

static dp_status run_average_pool(const dp_node *node) {
    return run_pool(node, true);
}
static dp_status run_max_pool(const dp_node *node) {
    return run_pool(node, false);
}

/* Products of matrices; batches are broadcast. One row of a result is one task. */

typedef struct matrices {
    const double *a, *b, *bias;
    double *y;
    int64_t rows, inner, columns, bias_columns;
    bool turn_a, turn_b;
    const dp_tensor *ta, *tb, *ty;
} matrices;

/* Number of the matrix of `t` that belongs to matrix `batch` of the result. */
static int64_t batch_of(const dp_tensor *t, const dp_tensor *result, int64_t batch) {
    int64_t number = 0, step = 1;
    for (int d = result->rank - 3; d >= 0; d--) {
        int own = d + t->rank - result->rank;
        int64_t index = batch % result->dims[d];
        batch /= result->dims[d];
        if (own < 0)
            continue;
        number += t->dims[own] == 1 ? 0 : index * step;
        step *= t->dims[own];
    }
    return number;
}

static void multiply(void *context, size_t begin, size_t end) {
    const matrices *m = context;
    for (int64_t i = (int64_t)begin; i < (int64_t)end; i++) {
        int64_t batch = i / m->rows, row = i % m->rows;
        const double *a = m->a + batch_of(m->ta, m->ty, batch) * m->rows * m->inner;
        const double *b = m->b + batch_of(m->tb, m->ty, batch) * m->inner * m->columns;
        double *y = m->y + i * m->columns;
        for (int64_t c = 0; c < m->columns; c++)
            y[c] = m->bias ? m->bias[m->bias_columns == 1 ? 0 : c] : 0;
        for (int64_t k = 0; k < m->inner; k++) {
            double f = m->turn_a ? a[k * m->rows + row] : a[row * m->inner + k];
            for (int64_t c = 0; c < m->columns; c++)
                y[c] += f * (m->turn_b ? b[c * m->inner + k] : b[k * m->columns + c]);
        }
    }
}

static dp_status run_product(const dp_node *node) {
    const dp_value *bias = node->n_inputs > 2 ? node->inputs[2] : NULL;
    if (node->n_inputs < 2 || node->n_inputs > 3 || !is_double(node->inputs[1]) ||
        (bias && (!is_double(bias) || bias->tensor.rank > 1)))
        return DP_ERR_UNSUPPORTED;
    matrices m = {.ta = &node->inputs[0]->tensor, .tb = &node->inputs[1]->tensor, .ty = &node->outputs[0]->tensor};
    if (m.ta->rank < 2 || m.tb->rank < 2 || m.ty->rank < 2)
        return DP_ERR_UNSUPPORTED;
    m.turn_a = dp_node_integer(node, "adj_x1", 0) || dp_node_integer(node, "transpose_x1", 0);
    m.turn_b = dp_node_integer(node, "adj_x2", 0) || dp_node_integer(node, "transpose_x2", 0);
    m.rows = m.ty->dims[m.ty->rank - 2];
    m.columns = m.ty->dims[m.ty->rank - 1];
    m.inner = m.ta->dims[m.ta->rank - (m.turn_a ? 2 : 1)];
    m.a = read_of(node->inputs[0]);
    m.b = read_of(node->inputs[1]);
    m.bias = bias ? read_of(bias) : NULL;
    m.bias_columns = bias ? dp_tensor_count(&bias->tensor) : 0;
    m.y = write_of(node->outputs[0]);
    int64_t count = dp_tensor_count(m.ty);
    if (count)
        dp_pool_for((size_t)(count / m.columns), 1, multiply, &m);
    return DP_OK;
}

/* Lines along one axis. */

static dp_status run_soft(const dp_node *node, bool logarithm) {
    const dp_tensor *t = &node->inputs[0]->tensor;
    const dp_arg *axes = dp_node_attribute(node, "axes");
    int64_t axis = !axes                                               ? -1
                   : axes->kind == DP_ARG_INT_LIST && axes->count == 1 ? axes->as.integers[0]
                                                                       : DP_TENSOR_DIMS;
    axis = axis < 0 ? axis + t->rank : axis;
    if (axis < 0 || axis >= t->rank)
        return DP_ERR_UNSUPPORTED;
    int64_t n = t->dims[axis], step = t->strides[axis], lines = n ? dp_tensor_count(t) / n : 0;
    for (int64_t line = 0; line < lines; line++) {
        const double *x = read_of(node->inputs[0]) + line / step * step * n + line % step;
        double *y = write_of(node->outputs[0]) + line / step * step * n + line % step, most = -INFINITY, sum = 0;
        for (int64_t i = 0; i < n; i++)
            most = fmax(most, x[i * step]);
        for (int64_t i = 0; i < n; i++)
            sum += exp(x[i * step] - most);
        for (int64_t i = 0; i < n; i++)
            y[i * step] = logarithm ? x[i * step] - most - log(sum) : exp(x[i * step] - most) / sum;
    }
    return DP_OK;
}

static dp_status run_softmax(const dp_node *node) {
    return run_soft(node, false);
}
static dp_status run_log_softmax(const dp_node *node) {
    return run_soft(node, true);
}

static dp_status run_layer_norm(const dp_node *node) {
    const dp_tensor *t = &node->inputs[0]->tensor;
    int64_t axis = dp_node_integer(node, "begin_norm_axis", 0), n = 1;
    axis = axis < 0 ? axis + t->rank : axis;
    if (node->n_inputs < 3 || axis < 0 || axis >= t->rank)
        return DP_ERR_UNSUPPORTED;
    for (int64_t d = axis; d < t->rank; d++)
        n *= t->dims[d];
    for (int i = 1; i < 3; i++)
        if (node->inputs[i] && (!is_double(node->inputs[i]) || dp_tensor_count(&node->inputs[i]->tensor) != n))
            return DP_ERR_UNSUPPORTED;
    for (int i = 1; i < node->n_outputs; i++)
        if (node->outputs[i])
            return DP_ERR_UNSUPPORTED;
    double epsilon = dp_node_real(node, "epsilon", 1e-5);
    for (int64_t at = 0; n && at < dp_tensor_count(t); at += n) {
        const double *x = read_of(node->inputs[0]) + at;
        double *y = write_of(node->outputs[0]) + at, sum = 0, squares = 0;
        for (int64_t i = 0; i < n; i++)
            sum += x[i];
        double mean = sum / (double)n;
        for (int64_t i = 0; i < n; i++)
            squares += (x[i] - mean) * (x[i] - mean);
        double factor = 1 / sqrt(squares / (double)n + epsilon);
        for (int64_t i = 0; i < n; i++)
            y[i] = (x[i] - mean) * factor * (node->inputs[1] ? read_of(node->inputs[1])[i] : 1) +
                   (node->inputs[2] ? read_of(node->inputs[2])[i] : 0);
    }
    return DP_OK;
}

static const struct {
    const char *type;
    dp_status (*run)(const dp_node *node);
} types[] = {
    {"Conv2D", run_conv},
    {"Conv3D", run_conv},
    {"Conv2DTransposeD", run_conv_transpose},
    {"AvgPoolV2", run_average_pool},
    {"MaxPoolV3", run_max_pool},
    {"MatMulV2", run_product},
    {"BatchMatMulV2", run_product},
    {"SoftmaxV2", run_softmax},
    {"LogSoftmaxV2", run_log_softmax},
    {"LayerNormV3", run_layer_norm},
};

dp_status dp_plain_run(const dp_node *node) {
    if (node->n_inputs < 1 || node->n_outputs < 1 || !is_double(node->inputs[0]) || !is_double(node->outputs[0]))
        return DP_ERR_UNSUPPORTED;
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (strcmp(types[i].type, node->type) == 0)
            return types[i].run(node);
    return DP_ERR_UNSUPPORTED;
}
