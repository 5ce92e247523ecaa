/* quantise_code.c - how values are stored as pictures of small integers, and the nodes that convert. */
#include <math.h>
#include <string.h>

#include "graph/passes/quantise.h"

dp_status dp_quantise_no_memory(void) {
    return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory to quantise the model: free some");
}

bool dp_quantise_was_seen(const dp_quantise *w, const dp_value *value) {
    return value && !value->is_constant && value->mark && value->mark <= w->n && value->tensor.element == DP_F32 &&
           dp_seen_of(w, value)->all.least <= dp_seen_of(w, value)->all.greatest;
}

dp_status dp_code_new(const dp_quantise *w, int64_t channels, dp_code *out) {
    float *room = dp_model_alloc(w->graph->model, (size_t)(2 * channels + 1) * sizeof *room);
    if (!room)
        return dp_quantise_no_memory();
    *out = (dp_code){.channels = channels, .scale = room, .zero = room + channels};
    return DP_OK;
}

static void set_range(dp_range range, float least_width, float *scale, float *zero) {
    const float low = range.least < 0 ? range.least : 0, high = range.greatest > 0 ? range.greatest : 0;
    float width = low <= high ? high - low : 0;
    width = width < least_width ? least_width : width;
    *scale = width > 1e-30f ? width / DP_PICTURE_MOST : 1;
    const float at = rintf(-low / *scale);
    *zero = at >= 0 ? at > DP_PICTURE_MOST ? DP_PICTURE_MOST : at : 0;
}

dp_status dp_code_of_range(const dp_quantise *w, dp_range range, int64_t channels, dp_code *out) {
    dp_status status = dp_code_new(w, channels, out);
    for (int64_t c = 0; c < channels && status == DP_OK; c++)
        set_range(range, 0, &out->scale[c], &out->zero[c]);
    return status;
}

/*
 * With a factor per channel a channel keeps its precision beside others with far greater numbers; the factors go into
 * the weights that read them. A channel that was hardly ever awake may be more so elsewhere: its range is at least a
 * part of the widest one's.
 */
dp_status dp_code_choose(const dp_quantise *w, const dp_value *value, bool per_channel, dp_code *out) {
    enum { PART = 256 };
    const dp_seen *seen = dp_seen_of(w, value);
    const int64_t channels = value->tensor.dims[1];
    if (!per_channel || !seen->channels || seen->n_channels != channels)
        return dp_code_of_range(w, seen->all, channels, out);
    dp_status status = dp_code_new(w, channels, out);
    float widest = 0;
    for (int64_t c = 0; c < channels; c++) {
        const dp_range *r = &seen->channels[c];
        const float width = r->least <= r->greatest ? fmaxf(r->greatest, 0) - fminf(r->least, 0) : 0;
        widest = width > widest ? width : widest;
    }
    for (int64_t c = 0; c < channels && status == DP_OK; c++)
        set_range(seen->channels[c], widest / PART, &out->scale[c], &out->zero[c]);
    return status;
}

dp_value *dp_codes_new(const dp_quantise *w, const dp_value *like, int64_t channels) {
    const int64_t *d = like->tensor.dims;
    dp_value *value = dp_value_new(w->graph->model, NULL);
    if (value)
        dp_value_shape(value, DP_U8, (int64_t[]){d[0], d[2], d[3], channels}, 4);
    return value;
}

dp_value *dp_quantise_floats(const dp_quantise *w, const float *numbers, int64_t rows, int64_t columns) {
    const int64_t dims[] = {rows, columns};
    return dp_value_constant(w->graph->model, NULL, DP_F32, rows == 1 ? dims + 1 : dims, rows == 1 ? 1 : 2, numbers);
}

static bool set_numbers(const dp_quantise *w, dp_node *node, const dp_code *code, int64_t channels) {
    node->inputs[1] = dp_quantise_floats(w, code->scale, 1, channels);
    node->inputs[2] = dp_quantise_floats(w, code->zero, 1, channels);
    return node->inputs[1] && node->inputs[2];
}

dp_value *dp_codes_want(dp_quantise *w, dp_value *value) {
    enum { COLOURS = 3, FILLED = 4 };
    dp_code *c = dp_code_of(w, value), made;
    if (c->picture)
        return c->picture;
    const int64_t channels = value->tensor.dims[1];
    if (dp_code_choose(w, value, true, &made) != DP_OK)
        return NULL;
    const bool fills = channels == COLOURS && !value->producer;
    if (fills) { /* a row of a window then is made of whole units of four */
        dp_code filled;
        if (dp_code_new(w, FILLED, &filled) != DP_OK)
            return NULL;
        for (int64_t i = 0; i < FILLED; i++) {
            filled.scale[i] = i < channels ? made.scale[i] : 1;
            filled.zero[i] = i < channels ? made.zero[i] : 0;
        }
        made = filled;
    }
    made.picture = dp_codes_new(w, value, made.channels);
    dp_node *before = value->producer ? value->producer->next : w->graph->first;
    dp_node *node = made.picture ? dp_node_new(w->graph, before, "QuantizePicture", value->name, 3, 1) : NULL;
    if (!node)
        return NULL;
    node->inputs[0] = value;
    dp_node_output(node, 0, made.picture);
    if (!set_numbers(w, node, &made, channels) || (fills && dp_node_set_integer(node, "four", 1) != DP_OK))
        return NULL;
    *c = made;
    ++*w->changes;
    return made.picture;
}

dp_status dp_codes_give(dp_quantise *w, dp_node *node, dp_value *value, const dp_code *code) {
    dp_code *own = dp_code_of(w, value);
    const size_t bytes = (size_t)code->channels * sizeof *code->scale;
    /* wanted by a node that stands before this one in the walk: the same codes come without floats between */
    if (own->picture && own->channels == code->channels && memcmp(own->scale, code->scale, bytes) == 0 &&
        memcmp(own->zero, code->zero, bytes) == 0)
        dp_graph_replace(w->graph, own->picture, code->picture);
    *own = *code;
    dp_node *floats = dp_node_new(w->graph, node->next, "DequantizePicture", value->name, 3, 1);
    if (!floats || !set_numbers(w, floats, code, code->channels))
        return DP_ERR_OUT_OF_MEMORY;
    floats->inputs[0] = code->picture;
    dp_node_output(floats, 0, value);
    ++*w->changes;
    return DP_OK;
}

bool dp_quantise_steps(const dp_node *node, const char *name, int64_t out[2]) {
    const dp_arg *a = dp_node_attribute(node, name);
    out[0] = out[1] = 1;
    if (!a)
        return true;
    if (a->kind != DP_ARG_INT_LIST || a->count != 4)
        return false;
    out[0] = a->as.integers[2];
    out[1] = a->as.integers[3];
    return a->as.integers[0] == 1 && a->as.integers[1] == 1;
}

bool dp_quantise_pads(const dp_node *node, int64_t out[4]) {
    const dp_arg *a = dp_node_attribute(node, "pads");
    memset(out, 0, 4 * sizeof *out);
    if (a && (a->kind != DP_ARG_INT_LIST || a->count != 4))
        return false;
    for (int i = 0; a && i < 4; i++)
        if ((out[i] = a->as.integers[i]) < 0)
            return false;
    return true;
}

bool dp_quantise_is_planar(const dp_node *node) {
    return strcmp(dp_node_text(node, "data_format", "NHWC"), "NCHW") == 0;
}
