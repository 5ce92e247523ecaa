/*
 * Resize: every output position along a dim is a weighted sum of a few input positions (taps). The common cases are an
 * operator of their own; all others are built from gathers with constant positions and products with constant weights.
 */
#include <math.h>
#include <string.h>

#include "graph/onnx/lower.h"

enum { TAPS = 4 };

typedef struct resizing {
    char mode, nearest; /* n l c; r (round, half down) R (half up) f c */
    const char *transform;
    double cubic, extrapolation;
    bool exclude_outside;
    double roi_begin, roi_end; /* of the dim at work */
} resizing;

/* Position in the input of output position `o`. */
static double source(const resizing *r, double o, double in, double out, double scale) {
    if (strcmp(r->transform, "asymmetric") == 0)
        return o / scale;
    if (strcmp(r->transform, "align_corners") == 0)
        return out > 1 ? o * (in - 1) / (out - 1) : 0;
    if (strcmp(r->transform, "pytorch_half_pixel") == 0)
        return out > 1 ? (o + 0.5) / scale - 0.5 : 0;
    if (strcmp(r->transform, "tf_crop_and_resize") == 0)
        return out > 1 ? r->roi_begin * (in - 1) + o * (r->roi_end - r->roi_begin) * (in - 1) / (out - 1)
                       : 0.5 * (r->roi_begin + r->roi_end) * (in - 1);
    if (strcmp(r->transform, "tf_half_pixel_for_nn") == 0)
        return (o + 0.5) / scale;
    if (strcmp(r->transform, "half_pixel_symmetric") == 0)
        return in / 2 * (1 - out / (scale * in)) + (o + 0.5) / scale - 0.5;
    return (o + 0.5) / scale - 0.5;
}

static double rounded(const resizing *r, double x) {
    switch (r->nearest) {
    case 'f':
        return floor(x);
    case 'c':
        return ceil(x);
    case 'R':
        return floor(x + 0.5);
    default:
        return ceil(x - 0.5);
    }
}

/* Weight of a tap at distance d (Keys' cubic). */
static double cubic(double a, double d) {
    d = fabs(d);
    if (d <= 1)
        return ((a + 2) * d - (a + 3)) * d * d + 1;
    return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

/* Taps of one output position: how many, where and how much. */
static int find_taps(const resizing *r, double x, int64_t in, int64_t *at, double *weight) {
    int n = r->mode == 'n' ? 1 : r->mode == 'l' ? 2 : 4;
    double base = r->mode == 'n' ? rounded(r, x) : floor(x) - (r->mode == 'c' ? 1 : 0), sum = 0;
    for (int k = 0; k < n; k++) {
        double place = base + k;
        weight[k] = r->mode == 'n' ? 1 : r->mode == 'l' ? 1 - fabs(x - place) : cubic(r->cubic, x - place);
        if (r->exclude_outside && (place < 0 || place >= (double)in))
            weight[k] = 0;
        sum += weight[k];
        at[k] = place < 0 ? 0 : place >= (double)in ? in - 1 : (int64_t)place;
    }
    for (int k = 0; k < n && r->exclude_outside; k++)
        weight[k] /= sum;
    return n;
}

/* One dim of x: the sum of gathers times weights. */
static dp_value *resize_dim(dp_lowering *l, const resizing *r, dp_value *x, int dim, int64_t out, double scale) {
    int64_t in = x->tensor.dims[dim], shape[DP_TENSOR_DIMS];
    int n = r->mode == 'n' ? 1 : r->mode == 'l' ? 2 : 4;
    bool outside = false;
    dp_value *at[TAPS], *weight[TAPS], *sum = NULL, *kept;
    for (int d = 0; d < x->tensor.rank; d++)
        shape[d] = d == dim ? out : 1;
    kept = dp_value_constant(l->model, NULL, DP_EL_BOOL, shape, x->tensor.rank, NULL);
    for (int k = 0; k < n; k++) {
        at[k] = dp_value_constant(l->model, NULL, DP_I64, &out, 1, NULL);
        weight[k] = dp_value_constant(l->model, NULL, DP_F32, shape, x->tensor.rank, NULL);
        if (!at[k] || !weight[k] || !kept) {
            l->status = DP_ERR_OUT_OF_MEMORY;
            return NULL;
        }
    }
    for (int64_t o = 0; o < out; o++) {
        int64_t places[TAPS];
        double weights[TAPS], from = source(r, (double)o, (double)in, (double)out, scale);
        find_taps(r, from, in, places, weights);
        bool inside = strcmp(r->transform, "tf_crop_and_resize") != 0 || (from >= 0 && from <= (double)(in - 1));
        outside |= !inside;
        ((uint8_t *)kept->tensor.base)[o] = inside;
        for (int k = 0; k < n; k++) {
            ((int64_t *)at[k]->tensor.base)[o] = places[k];
            ((float *)weight[k]->tensor.base)[o] = (float)weights[k];
        }
    }
    for (int k = 0; k < n; k++) {
        dp_node *node = dp_low_begin(l, "GatherV2D", 1, 2, x, at[k]);
        dp_low_integer(l, node, "axis", dim);
        dp_value *part = dp_low_end(l, node);
        if (r->mode != 'n')
            part = dp_low_end(l, dp_low_begin(l, "Mul", 1, 2, part, weight[k]));
        sum = sum ? dp_low_end(l, dp_low_begin(l, "Add", 1, 2, sum, part)) : part;
    }
    if (!outside || !sum)
        return sum;
    dp_node *node = dp_low_begin(l, "SelectV2", 1, 3, kept, sum, dp_low_scalar(l, sum, r->extrapolation));
    return node && dp_low_output(l, node, 0, sum->tensor.element) ? dp_low_end(l, node) : NULL;
}

/* An operator of its own for images whose two last dims are resized as one of its forms does it; NULL: none fits. */
static const char *own_operator(const resizing *r, const dp_tensor *x, const int64_t *out, const double *scale,
                                bool *out_half_pixel, bool *out_align) {
    if (x->rank != 4 || out[0] != x->dims[0] || out[1] != x->dims[1] || r->exclude_outside || r->mode == 'c' ||
        (x->element != DP_F32 && x->element != DP_F16 && x->element != DP_BF16))
        return NULL;
    for (int d = 2; d < 4; d++)
        if (fabs(scale[d] * (double)x->dims[d] - (double)out[d]) > 1e-6 || !out[d] || !x->dims[d])
            return NULL;
    *out_half_pixel = *out_align = false;
    if (r->mode == 'n') {
        bool floors = strcmp(r->transform, "asymmetric") == 0 && r->nearest == 'f';
        return floors ? "ResizeNearestNeighborV2" : NULL;
    }
    *out_half_pixel = strcmp(r->transform, "half_pixel") == 0;
    *out_align = strcmp(r->transform, "align_corners") == 0;
    return *out_half_pixel || *out_align ? "ResizeBilinearV2" : NULL;
}

static dp_status resize(dp_lowering *l, resizing *r, dp_value *x, const int64_t *out, const double *scale,
                        const float *roi) {
    bool half_pixel, align;
    int rank = x->tensor.rank;
    const char *own = own_operator(r, &x->tensor, out, scale, &half_pixel, &align);
    if (own) {
        dp_node *node = dp_low_begin(l, own, 1, 2, x, dp_low_list(l, out + 2, 2));
        dp_low_integer(l, node, "align_corners", align);
        dp_low_integer(l, node, "half_pixel_centers", half_pixel);
        return dp_low_last(l, node, DP_EL_NONE);
    }
    for (int d = 0; d < rank && x; d++) {
        r->roi_begin = roi ? (double)roi[d] : 0;
        r->roi_end = roi ? (double)roi[rank + d] : 1;
        if (out[d] != x->tensor.dims[d] || (roi && (roi[d] != 0 || roi[rank + d] != 1)) ||
            (r->mode == 'n' && scale[d] != 1))
            x = resize_dim(l, r, x, d, out[d], scale[d]);
    }
    return x ? dp_low_last(l, dp_low_begin(l, "Identity", 1, 1, x), DP_EL_NONE) : l->status;
}

static dp_status read_modes(dp_lowering *l, resizing *r) {
    const char *mode = dp_node_text(l->node, "mode", "nearest"), *nearest;
    bool old = l->opset < 11;
    r->mode = mode[0] == 'b' ? 'l' : mode[0]; /* "bilinear" of version 7 */
    r->transform = dp_node_text(l->node, "coordinate_transformation_mode", old ? "asymmetric" : "half_pixel");
    nearest = dp_node_text(l->node, "nearest_mode", old ? "floor" : "round_prefer_floor");
    r->nearest = strcmp(nearest, "round_prefer_ceil") == 0 ? 'R' : nearest[0];
    r->cubic = dp_node_real(l->node, "cubic_coeff_a", -0.75);
    r->exclude_outside = dp_node_integer(l->node, "exclude_outside", 0) != 0;
    r->extrapolation = dp_node_real(l->node, "extrapolation_value", 0);
    if (!strchr("nlc", r->mode))
        return dp_low_fail(l, DP_ERR_UNSUPPORTED, "mode \"%s\" is not supported", mode);
    if (dp_node_integer(l->node, "antialias", 0))
        return dp_low_fail(l, DP_ERR_UNSUPPORTED, "antialias is not supported");
    return DP_OK;
}

/* Factors: input `i`, or the attribute of version 7. How many; -1 after a failure. */
static int read_scales(dp_lowering *l, int i, double *scale) {
    const dp_arg *arg = dp_node_attribute(l->node, "scales");
    const dp_value *value = dp_low_in(l, i);
    if (arg && arg->kind == DP_ARG_FLOAT_LIST && arg->count <= DP_TENSOR_DIMS) {
        for (int64_t d = 0; d < arg->count; d++)
            scale[d] = (double)arg->as.floats[d];
        return (int)arg->count;
    }
    if (!value || dp_tensor_count(&value->tensor) == 0)
        return 0;
    if (!dp_low_want(l, i))
        return -1;
    if (value->tensor.element != DP_F32 || dp_tensor_count(&value->tensor) > DP_TENSOR_DIMS) {
        dp_low_fail(l, DP_ERR_ARGUMENT, "scales must be at most %d floats", DP_TENSOR_DIMS);
        return -1;
    }
    for (int64_t d = 0; d < dp_tensor_count(&value->tensor); d++)
        scale[d] = (double)((const float *)value->tensor.base)[d];
    return (int)dp_tensor_count(&value->tensor);
}

/* keep_aspect_ratio_policy: one factor for all dims that are resized. */
static void keep_aspect(dp_lowering *l, const dp_tensor *x, const bool *chosen, int64_t *out, double *scale) {
    const char *policy = dp_node_text(l->node, "keep_aspect_ratio_policy", "stretch");
    if (strcmp(policy, "stretch") == 0)
        return;
    bool larger = strcmp(policy, "not_smaller") == 0, first = true;
    double factor = 1;
    for (int d = 0; d < x->rank; d++) {
        if (!chosen[d])
            continue;
        factor = first || (larger ? scale[d] > factor : scale[d] < factor) ? scale[d] : factor;
        first = false;
    }
    for (int d = 0; d < x->rank; d++) {
        if (!chosen[d])
            continue;
        scale[d] = factor;
        out[d] = (int64_t)floor(factor * (double)x->dims[d] + 0.5);
    }
}

dp_status dp_low_resize(dp_lowering *l) {
    resizing r = {0};
    double given[DP_TENSOR_DIMS], scale[DP_TENSOR_DIMS];
    int64_t sizes[DP_TENSOR_DIMS], out[DP_TENSOR_DIMS], axes[DP_TENSOR_DIMS];
    bool chosen[DP_TENSOR_DIMS] = {false};
    float roi[2 * DP_TENSOR_DIMS];
    if (dp_low_need(l, 1) != DP_OK || read_modes(l, &r) != DP_OK)
        return l->status;
    dp_value *x = dp_low_in(l, 0);
    int rank = x->tensor.rank, since_11 = l->opset >= 11 && strcmp(l->node->type, "Resize") == 0;
    int n_scales = read_scales(l, since_11 ? 2 : 1, given), n_axes = dp_low_axes(l, "axes", INT16_MAX, axes, rank);
    int n_sizes = n_scales == 0 && dp_low_in(l, 3) ? dp_low_numbers(l, 3, sizes, DP_TENSOR_DIMS) : 0;
    if (l->status != DP_OK)
        return l->status;
    for (int d = 0; n_axes == 0 && d < rank; d++)
        axes[d] = d;
    n_axes = n_axes ? n_axes : rank;
    if (n_scales != n_axes && n_sizes != n_axes)
        return dp_low_fail(l, DP_ERR_ARGUMENT, "%d scales and %d sizes do not fit %d dimensions", n_scales, n_sizes,
                           n_axes);
    const dp_value *region = since_11 ? dp_low_in(l, 1) : NULL;
    bool crops = strcmp(r.transform, "tf_crop_and_resize") == 0;
    if (crops && !dp_low_want(l, 1))
        return l->status;
    if (crops && (region->tensor.element != DP_F32 || dp_tensor_count(&region->tensor) != 2 * n_axes))
        return dp_low_fail(l, DP_ERR_ARGUMENT, "roi must be %d floats", 2 * n_axes);
    for (int d = 0; d < rank; d++) {
        out[d] = x->tensor.dims[d];
        scale[d] = 1;
        roi[d] = 0, roi[rank + d] = 1;
    }
    for (int i = 0; i < n_axes; i++) {
        int64_t d = axes[i] < 0 ? axes[i] + rank : axes[i];
        if (d < 0 || d >= rank || (n_scales && !(given[i] > 0)))
            return dp_low_fail(l, DP_ERR_ARGUMENT, "an axis is out of range, or a scale is not above 0");
        chosen[d] = true;
        double extent = 1;
        if (crops) {
            roi[d] = ((const float *)region->tensor.base)[i];
            roi[rank + d] = ((const float *)region->tensor.base)[n_axes + i];
            extent = (double)roi[rank + d] - (double)roi[d];
        }
        double size = n_scales ? floor((double)x->tensor.dims[d] * extent * given[i]) : (double)sizes[i];
        if (!(size >= 0 && size <= INT32_MAX))
            return dp_low_fail(l, DP_ERR_ARGUMENT, "dimension %lld would become %g, but must become 0 to %d",
                               (long long)d, size, INT32_MAX);
        if (size > 0 && x->tensor.dims[d] == 0)
            return dp_low_fail(l, DP_ERR_ARGUMENT,
                               "dimension %lld would become %g, but the input has no elements there", (long long)d,
                               size);
        scale[d] = n_scales ? given[i] : x->tensor.dims[d] ? size / (double)x->tensor.dims[d] : 1;
        out[d] = (int64_t)size;
    }
    if (n_sizes)
        keep_aspect(l, &x->tensor, chosen, out, scale);
    return resize(l, &r, x, out, scale, crops ? roi : NULL);
}

/* Version 20 calls the modes linear and cubic. */
dp_status dp_low_grid_sample(dp_lowering *l) {
    if (dp_low_need(l, 2) != DP_OK)
        return l->status;
    const char *mode = dp_node_text(l->node, "mode", "bilinear");
    mode = strcmp(mode, "linear") == 0 ? "bilinear" : strcmp(mode, "cubic") == 0 ? "bicubic" : mode;
    dp_node *node = dp_low_begin(l, dp_low_rank(l, 0) == 5 ? "GridSampler3D" : "GridSampler2D", 1, 2, dp_low_in(l, 0),
                                 dp_low_in(l, 1));
    dp_low_text(l, node, "interpolation_mode", mode);
    dp_low_text(l, node, "padding_mode", dp_node_text(l->node, "padding_mode", "zeros"));
    dp_low_integer(l, node, "align_corners", dp_node_integer(l->node, "align_corners", 0));
    return dp_low_last(l, node, DP_EL_NONE);
}

/* theta for each picture of the batch; the size is that of the pictures: batch, channels, dims of space. */
dp_status dp_low_affine_grid(dp_lowering *l) {
    int64_t size[DP_TENSOR_DIMS];
    if (dp_low_need(l, 2) != DP_OK)
        return l->status;
    int n = dp_low_numbers(l, 1, size, DP_TENSOR_DIMS);
    dp_node *node = dp_low_begin(l, "AffineGrid", 1, 2, dp_low_in(l, 0), dp_low_list(l, size, n));
    dp_low_integer(l, node, "align_corners", dp_node_integer(l->node, "align_corners", 0));
    return dp_low_last(l, node, DP_EL_NONE);
}
