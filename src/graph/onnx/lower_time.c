/* Rows of the ONNX operators that go along time: recurrent layers, Fourier transforms, windows. */
#include <math.h>
#include <string.h>

#include "graph/onnx/element.h"
#include "graph/onnx/lower.h"

/* "type variant": the attributes have the same names on both sides; absent outputs stay absent. */
dp_status dp_low_recurrent(dp_lowering *l) {
    static const char *const lists[] = {"activation_alpha", "activation_beta", "activations", "clip"};
    char type[24], variant[24];
    if (dp_low_need(l, 3) != DP_OK)
        return l->status;
    sscanf(l->detail, "%23s %23s", type, variant);
    int n = l->node->n_outputs, most = strcmp(type, "CommonLSTM") == 0 ? 3 : 2;
    dp_node *node = dp_low_begin(l, type, n < most ? n : most, 0);
    if (!node)
        return l->status;
    node->inputs = l->node->inputs;
    node->n_inputs = l->node->n_inputs;
    for (int i = 0; i < 4; i++) {
        const dp_arg *given = dp_node_attribute(l->node, lists[i]);
        if (given && l->status == DP_OK)
            l->status = dp_node_set(node, given);
    }
    const dp_tensor *r = &dp_low_in(l, 2)->tensor;
    dp_low_integer(l, node, "hidden_size", dp_node_integer(l->node, "hidden_size", r->rank ? r->dims[r->rank - 1] : 0));
    dp_low_integer(l, node, "layout", dp_node_integer(l->node, "layout", 0));
    dp_low_text(l, node, "direction", dp_node_text(l->node, "direction", "forward"));
    if (variant[0] != '-')
        dp_low_integer(l, node, variant, dp_node_integer(l->node, variant, 0));
    for (int i = 0; i < node->n_outputs; i++)
        dp_low_give(l, node, i, i, DP_EL_NONE);
    dp_low_end(l, node);
    return l->status;
}

/* The transform's axis is an input since version 20. */
dp_status dp_low_dft(dp_lowering *l) {
    int64_t length = 0, axis = dp_node_integer(l->node, "axis", 1);
    if (dp_low_need(l, 1) != DP_OK)
        return l->status;
    int rank = dp_low_rank(l, 0);
    if (l->opset >= 20) {
        axis = -2;
        if (dp_low_in(l, 2) && dp_low_numbers(l, 2, &axis, 1) != 1)
            return l->status;
    }
    if (dp_low_in(l, 1) && dp_low_numbers(l, 1, &length, 1) != 1)
        return l->status;
    bool inverse = dp_node_integer(l->node, "inverse", 0) != 0, onesided = dp_node_integer(l->node, "onesided", 0) != 0;
    if (inverse && onesided)
        return dp_low_fail(l, DP_ERR_UNSUPPORTED, "onesided with inverse is not supported");
    dp_node *node = dp_low_begin(l, "DFT", 1, 1, dp_low_in(l, 0));
    dp_low_integer(l, node, "axis", axis < 0 ? axis + rank : axis);
    dp_low_integer(l, node, "length", length);
    dp_low_integer(l, node, "inverse", inverse);
    dp_low_integer(l, node, "onesided", onesided);
    return dp_low_last(l, node, DP_EL_NONE);
}

/* The frames as rows: element i of frame f is signal[f * step + i]. */
static dp_value *frames(dp_lowering *l, dp_value *signal, int64_t count, int64_t step, int64_t length) {
    int64_t dims[] = {count, length};
    dp_value *places = dp_value_constant(l->model, NULL, DP_I64, dims, 2, NULL);
    if (!places) {
        l->status = l->status == DP_OK ? DP_ERR_OUT_OF_MEMORY : l->status;
        return NULL;
    }
    for (int64_t i = 0; i < count * length; i++)
        ((int64_t *)places->tensor.base)[i] = i / length * step + i % length;
    dp_node *node = dp_low_begin(l, "GatherV2D", 1, 2, signal, places);
    dp_low_integer(l, node, "axis", 1);
    return dp_low_end(l, node);
}

dp_status dp_low_stft(dp_lowering *l) {
    int64_t step, length = 0, last = -1;
    if (dp_low_need(l, 2) != DP_OK || dp_low_numbers(l, 1, &step, 1) != 1)
        return l->status;
    dp_value *signal = dp_low_in(l, 0), *window = dp_low_in(l, 2);
    if (signal->tensor.rank == 2) {
        dp_node *node = dp_low_begin(l, "Unsqueeze", 1, 1, signal);
        dp_low_integers(l, node, "axes", &last, 1);
        signal = dp_low_end(l, node);
    }
    if (window && window->tensor.rank == 1)
        length = window->tensor.dims[0];
    if (dp_low_in(l, 3) && dp_low_numbers(l, 3, &length, 1) != 1)
        return l->status;
    if (!signal || signal->tensor.rank != 3 || step < 1 || length < 1 || length > signal->tensor.dims[1] ||
        (window && (window->tensor.rank != 1 || window->tensor.dims[0] != length)))
        return dp_low_fail(l, DP_ERR_ARGUMENT, "frame_step, frame_length or the window do not fit the signal");
    bool onesided = dp_node_integer(l->node, "onesided", 1) != 0;
    if (onesided && signal->tensor.dims[2] == 2)
        return dp_low_fail(l, DP_ERR_UNSUPPORTED, "onesided is 1, but the signal is complex");
    int64_t count = (signal->tensor.dims[1] - length) / step + 1, dims[] = {length, 1};
    if (count > INT64_MAX / length || count * length > 1 << 28)
        return dp_low_fail(l, DP_ERR_UNSUPPORTED, "%lld frames are too many", (long long)count);
    dp_value *x = frames(l, signal, count, step, length);
    if (window) {
        window = dp_low_end(l, dp_low_begin(l, "Reshape", 1, 2, window, dp_low_list(l, dims, 2)));
        x = dp_low_end(l, dp_low_begin(l, "Mul", 1, 2, x, window));
    }
    dp_node *node = dp_low_begin(l, "DFT", 1, 1, x);
    dp_low_integer(l, node, "axis", 2);
    dp_low_integer(l, node, "onesided", onesided);
    return dp_low_last(l, node, DP_EL_NONE);
}

/* A list of doubles becomes the output, in the type of the attribute (float without one). */
static dp_status give_doubles(dp_lowering *l, dp_value *values) {
    int64_t type = dp_node_integer(l->node, "output_datatype", 1);
    int element = dp_onnx_element((int)type);
    if (element == DP_EL_NONE)
        return dp_low_fail(l, DP_ERR_UNSUPPORTED, "data type %lld is not supported", (long long)type);
    if (!values)
        return l->status == DP_OK ? DP_ERR_OUT_OF_MEMORY : l->status;
    dp_node *node = dp_low_begin(l, "Cast", 1, 1, values);
    dp_low_integer(l, node, "dst_type", element);
    return dp_low_last(l, node, element);
}

/* a - b cos(2 pi i / n) + c cos(4 pi i / n); the detail has a, b and c. */
dp_status dp_low_window(dp_lowering *l) {
    const double pi = 3.14159265358979323846;
    double a, b, c;
    int64_t size;
    if (dp_low_need(l, 1) != DP_OK || dp_low_numbers(l, 0, &size, 1) != 1)
        return l->status;
    if (size < 0 || size > 1 << 28)
        return dp_low_fail(l, DP_ERR_ARGUMENT, "the size is %lld, but must be 0 to %d", (long long)size, 1 << 28);
    sscanf(l->detail, "%lf %lf %lf", &a, &b, &c);
    double whole = (double)(dp_node_integer(l->node, "periodic", 1) ? size : size - 1);
    dp_value *values = dp_value_constant(l->model, NULL, DP_F64, &size, 1, NULL);
    for (int64_t i = 0; values && i < size; i++) {
        double turn = 2 * pi * (double)i / (whole > 0 ? whole : 1);
        ((double *)values->tensor.base)[i] = a - b * cos(turn) + c * cos(2 * turn);
    }
    return give_doubles(l, values);
}

/* Triangles between neighbouring frequencies of equal distance on the mel scale, as the ONNX specification has them. */
dp_status dp_low_mel_weights(dp_lowering *l) {
    double in[5];
    for (int i = 0; i < 5; i++)
        if (!dp_low_number(l, i, &in[i]))
            return l->status;
    bool fits = in[0] >= 1 && in[0] < 1 << 16 && in[1] >= 1 && in[1] < 1 << 24 && in[2] >= 1 && in[2] < 1 << 30 &&
                in[3] >= 0 && in[4] > in[3] && in[4] < 1 << 30;
    if (!fits || in[0] * in[1] > 1 << 28)
        return dp_low_fail(l, DP_ERR_ARGUMENT, "bands, transform length, sample rate and edges make no matrix");
    int64_t bands = (int64_t)in[0], length = (int64_t)in[1], dims[] = {length / 2 + 1, bands};
    double low = 2595 * log10(1 + in[3] / 700), high = 2595 * log10(1 + in[4] / 700),
           step = (high - low) / (double)(bands + 2);
    dp_value *values = dp_value_constant(l->model, NULL, DP_F64, dims, 2, NULL);
    for (int64_t i = 0; values && i < bands; i++) {
        double *to = values->tensor.base;
        int64_t at[3];
        for (int k = 0; k < 3; k++) {
            double hertz = 700 * (pow(10, (low + (double)(i + k) * step) / 2595) - 1);
            at[k] = (int64_t)floor((double)(length + 1) * hertz / (double)(int64_t)in[2]);
        }
        for (int64_t j = at[0]; j <= at[2] && j < dims[0]; j++) {
            double up = at[1] > at[0] ? (double)(j - at[0]) / (double)(at[1] - at[0]) : 1;
            double down = at[2] > at[1] ? (double)(at[2] - j) / (double)(at[2] - at[1]) : 0;
            to[j * bands + i] = j <= at[1] && (j < at[1] || at[1] == at[0] || at[2] <= at[1]) ? up : down;
        }
    }
    return give_doubles(l, values);
}
