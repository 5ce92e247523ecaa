#include "ops/conv/panels.h"

#include <string.h>

#include "base/half.h"
#include "base/memory.h"
#include "math/rows/low.h"
#include "ops/tensor.h"
#include "ops/window.h"

enum { TRANSPOSED_MAX = 1024 };

const char *dp_conv_form_name(dp_conv_form form) {
    static const char *const names[] = {"direct", "winograd2", "winograd4"};
    return names[form];
}

static dp_status check(const dp_conv_filter *f) {
    const int64_t channels[] = {f->in_channels, f->out_channels, f->groups};
    static const char *const names[] = {"input channels", "output channels", "groups"};
    for (int i = 0; i < 3; i++)
        if (channels[i] < 1 || channels[i] > DP_WINDOW_LIMIT)
            return dp_fail(DP_ERR_ARGUMENT, "%lld %s: there must be 1 to %d", (long long)channels[i], names[i],
                           DP_WINDOW_LIMIT);
    if (f->in_channels % f->groups || f->out_channels % f->groups)
        return dp_fail(DP_ERR_ARGUMENT, "groups is %lld, but must divide the %lld input and the %lld output channels",
                       (long long)f->groups, (long long)f->in_channels, (long long)f->out_channels);
    for (int d = 0; d < 2; d++)
        if (f->kernel[d] < 1 || f->kernel[d] > DP_WINDOW_LIMIT || f->stride[d] < 1 || f->stride[d] > DP_WINDOW_LIMIT ||
            f->dilation[d] < 1 || f->dilation[d] > DP_WINDOW_LIMIT)
            return dp_fail(DP_ERR_ARGUMENT, "kernel %lld, stride %lld and dilation %lld must be 1 to %d",
                           (long long)f->kernel[d], (long long)f->stride[d], (long long)f->dilation[d],
                           DP_WINDOW_LIMIT);
    bool fits = f->groups == 1 && !f->transposed;
    for (int d = 0; d < 2; d++)
        fits = fits && f->kernel[d] == 3 && f->stride[d] == 1 && f->dilation[d] == 1;
    if (f->form != DP_CONV_FORM_DIRECT && f->low)
        return dp_fail(DP_ERR_ARGUMENT, "form is \"%s\", which is for float only; half and bfloat16 have \"direct\"",
                       dp_conv_form_name(f->form));
    if (f->form != DP_CONV_FORM_DIRECT && !fits)
        return dp_fail(DP_ERR_ARGUMENT,
                       "form is \"%s\", which is for 3 x 3 kernels with strides, dilations and groups of 1 only",
                       dp_conv_form_name(f->form));
    for (int d = 0; d < 2 && f->transposed; d++)
        if (f->kernel[d] > TRANSPOSED_MAX || f->stride[d] > TRANSPOSED_MAX)
            return dp_fail(DP_ERR_UNSUPPORTED,
                           "kernel %lld and stride %lld of a transposed convolution must be at most %d",
                           (long long)f->kernel[d], (long long)f->stride[d], TRANSPOSED_MAX);
    return DP_OK;
}

int dp_conv_winograd(dp_conv_form form) {
    return form == DP_CONV_FORM_WINOGRAD2 ? 2 : form == DP_CONV_FORM_WINOGRAD4 ? 4 : 0;
}

bool dp_conv_is_depthwise(const dp_conv_filter *f) {
    return !f->transposed && f->groups > 1 && f->groups == f->in_channels && f->groups == f->out_channels;
}

int dp_conv_panels_element(const dp_conv_filter *f) {
    return f->low && !dp_conv_is_depthwise(f) ? f->low : DP_F32;
}

dp_status dp_conv_panels_count(const dp_conv_filter *f, int64_t *out_count) {
    dp_status status = check(f);
    if (status != DP_OK)
        return status;
    const bool is_low = dp_conv_panels_element(f) != DP_F32;
    int64_t groups = dp_conv_is_depthwise(f) ? 1 : f->groups, columns = f->out_channels / groups;
    int64_t rows = dp_conv_is_depthwise(f) ? 1 : f->in_channels / f->groups, count;
    rows = is_low ? dp_conv_low_pitch(f, rows) : rows;
    columns = (columns + DP_ROWS_PANEL - 1) / DP_ROWS_PANEL * DP_ROWS_PANEL;
    const int m = dp_conv_winograd(f->form);
    const int64_t taps = m ? (m + 2) * (m + 2) : f->kernel[0] * f->kernel[1];
    if (__builtin_mul_overflow(taps, rows, &rows) ||
        __builtin_mul_overflow(rows + (is_low ? rows % 2 : 0), columns, &count) ||
        __builtin_mul_overflow(count, groups, &count) || count > (int64_t)1 << 40)
        return dp_fail(DP_ERR_ARGUMENT, "weights of %lld x %lld taps, %lld to %lld channels are larger than any memory",
                       (long long)f->kernel[0], (long long)f->kernel[1], (long long)f->in_channels,
                       (long long)f->out_channels);
    *out_count = count;
    return DP_OK;
}

void dp_conv_phase_order(int64_t kernel, int64_t stride, int64_t dilation, int64_t *out_taps) {
    for (int64_t phase = 0; phase < stride && phase <= (kernel - 1) * dilation; phase++)
        for (int64_t k = 0; k < kernel; k++)
            if (k * dilation % stride == phase)
                *out_taps++ = k;
}

/* One group: `k` rows in the order (tap, channel). order: places of taps in the weights. */
static void pack_group(const dp_conv_filter *f, const float *weights, const int64_t *order, float *out) {
    const int64_t taps = f->kernel[0] * f->kernel[1], columns = f->out_channels / f->groups;
    const int64_t channels = f->in_channels / f->groups;
    const int64_t i_stride = f->transposed ? columns * taps : taps, o_stride = f->transposed ? taps : channels * taps;
    for (int64_t first = 0; first < columns; first += DP_ROWS_PANEL)
        for (int64_t t = 0; t < taps; t++)
            for (int64_t i = 0; i < channels; i++)
                for (int64_t o = first; o < first + DP_ROWS_PANEL; o++)
                    *out++ = o < columns ? weights[i * i_stride + o * o_stride + order[t]] : 0;
}

/* The same of 16 bits, with pairs of k side by side. */
static void pack_group_low(const dp_conv_filter *f, const uint16_t *weights, const int64_t *order, uint16_t *out) {
    const int64_t taps = f->kernel[0] * f->kernel[1], columns = f->out_channels / f->groups;
    const int64_t channels = f->in_channels / f->groups, pitch = dp_conv_low_pitch(f, channels);
    const int64_t i_stride = f->transposed ? columns * taps : taps, o_stride = f->transposed ? taps : channels * taps;
    memset(out, 0, 2 * dp_low_panel_elements((size_t)(taps * pitch), (size_t)columns));
    for (int64_t o = 0; o < columns; o++)
        for (int64_t t = 0; t < taps; t++)
            for (int64_t i = 0; i < channels; i++)
                out[dp_low_panel_at((size_t)(t * pitch + i), (size_t)o, (size_t)(taps * pitch))] =
                    weights[i * i_stride + o * o_stride + order[t]];
}

/* Taps as they follow each other in the panels. */
static void order_taps(const dp_conv_filter *f, int64_t *out_order, int64_t *room) {
    int64_t *y = room, *x = room + f->kernel[0];
    for (int d = 0; d < 2; d++) {
        if (f->transposed)
            dp_conv_phase_order(f->kernel[d], f->stride[d], f->dilation[d], d ? x : y);
        for (int64_t k = 0; k < f->kernel[d] && !f->transposed; k++)
            (d ? x : y)[k] = k;
    }
    /* phase of y, phase of x, then y and x within them */
    int64_t n = 0;
    for (int64_t y0 = 0, y1; y0 < f->kernel[0]; y0 = y1) {
        for (y1 = y0 + 1; y1 < f->kernel[0] && f->transposed && (y[y1] - y[y0]) * f->dilation[0] % f->stride[0] == 0;)
            y1++;
        for (int64_t x0 = 0, x1; x0 < f->kernel[1]; x0 = x1) {
            for (x1 = x0 + 1;
                 x1 < f->kernel[1] && (!f->transposed || (x[x1] - x[x0]) * f->dilation[1] % f->stride[1] == 0);)
                x1++;
            for (int64_t i = y0; i < y1; i++)
                for (int64_t k = x0; k < x1; k++)
                    out_order[n++] = y[i] * f->kernel[1] + x[k];
        }
    }
}

/* The panels of (m + 2)^2 matrices, matrix after matrix: element (input, output channel) of matrix (y, x) is that of G
 * w G^T. */
static void pack_winograd(const dp_conv_filter *f, const float *weights, float *out) {
    const int m = dp_conv_winograd(f->form), side = m + 2;
    const double *g = dp_rows_winograd_weights(m);
    const int64_t channels = f->in_channels, columns = f->out_channels;
    const int64_t floats = (int64_t)dp_rows_panel_floats((size_t)channels, (size_t)columns);
    for (int64_t o = 0; o < (columns + DP_ROWS_PANEL - 1) / DP_ROWS_PANEL * DP_ROWS_PANEL; o++)
        for (int64_t i = 0; i < channels; i++) {
            float *to = out + (o / DP_ROWS_PANEL * channels + i) * DP_ROWS_PANEL + o % DP_ROWS_PANEL;
            const float *w = o < columns ? weights + (o * channels + i) * 9 : NULL;
            for (int y = 0; y < side; y++)
                for (int x = 0; x < side; x++, to += floats) {
                    double sum = 0;
                    for (int k = 0; k < 9 && w; k++)
                        sum += g[y * 3 + k / 3] * g[x * 3 + k % 3] * (double)w[k];
                    *to = (float)sum;
                }
        }
}

static void pack_depthwise(const dp_conv_filter *f, const void *weights, float *out) {
    const size_t taps = (size_t)(f->kernel[0] * f->kernel[1]), channels = (size_t)f->out_channels;
    if (!f->low) {
        dp_rows_pack(weights, taps, channels, 1, (ptrdiff_t)taps, out);
        return;
    }
    const uint16_t *from = weights;
    memset(out, 0, dp_rows_panel_floats(taps, channels) * sizeof *out);
    for (size_t c = 0; c < channels; c++)
        for (size_t t = 0; t < taps; t++, from++)
            out[(c / DP_ROWS_PANEL * taps + t) * DP_ROWS_PANEL + c % DP_ROWS_PANEL] =
                f->low == DP_F16 ? dp_f32_from_f16(*from) : dp_f32_from_bf16(*from);
}

dp_status dp_conv_panels_pack(const dp_conv_filter *f, const void *weights, void *out) {
    const int64_t taps = f->kernel[0] * f->kernel[1];
    if (dp_conv_winograd(f->form)) {
        pack_winograd(f, weights, out);
        return DP_OK;
    }
    if (dp_conv_is_depthwise(f)) {
        pack_depthwise(f, weights, out);
        return DP_OK;
    }
    int64_t *order = dp_alloc(DP_MEM_GRAPH, (size_t)(taps + f->kernel[0] + f->kernel[1]) * sizeof *order);
    if (!order)
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory to arrange weights: free some");
    order_taps(f, order, order + taps);
    const int64_t columns = f->out_channels / f->groups, channels = f->in_channels / f->groups;
    const size_t low = dp_low_panel_elements((size_t)(taps * dp_conv_low_pitch(f, channels)), (size_t)columns);
    const size_t floats = dp_rows_panel_floats((size_t)(taps * channels), (size_t)columns);
    for (int64_t g = 0; g < f->groups; g++) {
        const int64_t first = g * columns * channels * taps;
        if (!f->low)
            pack_group(f, (const float *)weights + first, order, (float *)out + (size_t)g * floats);
        else
            pack_group_low(f, (const uint16_t *)weights + first, order, (uint16_t *)out + (size_t)g * low);
    }
    dp_free(order);
    return DP_OK;
}

/*
 * Measured with AVX2: tiles of 4 x 4 are about 2.5 times faster than the direct form where there are enough of them to
 * read the 4 times larger weights for; then those of 2 x 2, 1.7 times; at 7 x 7 positions neither.
 */
dp_conv_form dp_conv_form_choose(const dp_conv_filter *f, int64_t out_height, int64_t out_width) {
    enum { CHANNELS_LEAST = 16, TILES_LEAST_4 = 25, TILES_LEAST_2 = 49 };
    const int64_t tiles4 = (out_height + 3) / 4 * ((out_width + 3) / 4),
                  tiles2 = (out_height + 1) / 2 * ((out_width + 1) / 2);
    if (f->low || f->groups != 1 || f->transposed || f->in_channels < CHANNELS_LEAST ||
        f->out_channels < CHANNELS_LEAST)
        return DP_CONV_FORM_DIRECT;
    for (int d = 0; d < 2; d++)
        if (f->kernel[d] != 3 || f->stride[d] != 1 || f->dilation[d] != 1)
            return DP_CONV_FORM_DIRECT;
    return tiles4 >= TILES_LEAST_4   ? DP_CONV_FORM_WINOGRAD4
           : tiles2 >= TILES_LEAST_2 ? DP_CONV_FORM_WINOGRAD2
                                     : DP_CONV_FORM_DIRECT;
}
