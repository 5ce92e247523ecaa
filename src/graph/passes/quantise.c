/*
 * Convolutions in small integers, where --calibration gives data to learn the ranges from.
 *
 * A convolution takes what follows it along: the addition of another picture, and functions of one number
 * (activations), which become bounds or a table of 128 entries. Between convolutions pictures stay integers with the
 * channels last (src/ops/quant/picture.h); every other node gets floats again. Weights have a factor per output
 * channel, pictures one factor and one zero.
 */
#include <math.h>
#include <string.h>

#include "graph/calibration.h"
#include "graph/passes/passes.h"
#include "graph/passes/unary.h"
#include "graph/precision.h"
#include "ops/quant/picture.h"

/* How a picture is stored; of every value. */
typedef struct code {
    dp_value *picture; /* NULL: it is not */
    float scale;
    int zero;
} code;

typedef struct walk {
    dp_graph *graph;
    const dp_range *ranges;
    code *codes;
    uint32_t *uses, n;
    int *changes;
} walk;

/* What one quantised convolution does. */
typedef struct group {
    dp_node *conv, *add, *last; /* add: NULL if none; last: the place where all inputs exist */
    dp_value *sum;              /* of the convolution and the addition */
    dp_value *residual;
    dp_unary then;
    bool by_table;
} group;

static dp_status no_memory(void) {
    return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory to quantise the model: free some");
}

static bool is_constant_float(const dp_value *value) {
    return value && value->is_constant && value->tensor.element == DP_F32;
}

/* Numbers by NCHW as they are by NHWC; nothing else than 1 for batch and channels. */
static bool take_steps(const dp_node *node, const char *name, int64_t out[4]) {
    static const int64_t ones[4] = {1, 1, 1, 1};
    const dp_arg *a = dp_node_attribute(node, name);
    const int64_t *list = a ? a->as.integers : ones;
    if (a && (a->kind != DP_ARG_INT_LIST || a->count != 4))
        return false;
    out[0] = out[3] = 1;
    out[1] = list[2];
    out[2] = list[3];
    return list[0] == 1 && list[1] == 1;
}

static bool take_pads(const dp_node *node, int64_t out[4]) {
    const dp_arg *a = dp_node_attribute(node, "pads");
    memset(out, 0, 4 * sizeof *out);
    if (a && (a->kind != DP_ARG_INT_LIST || a->count != 4))
        return false;
    for (int i = 0; a && i < 4; i++)
        out[i] = a->as.integers[i];
    return true;
}

static bool is_planar(const dp_node *node) {
    return strcmp(dp_node_text(node, "data_format", "NHWC"), "NCHW") == 0;
}

static bool was_seen(const walk *w, const dp_value *value) {
    return value && !value->is_constant && value->mark && value->mark <= w->n && value->tensor.element == DP_F32 &&
           w->ranges[value->mark - 1].least <= w->ranges[value->mark - 1].greatest;
}

/* A product with few rows costs what reading its weights costs, and gates in front of whole pictures want to be exact.
 */
static bool is_worthwhile(const dp_tensor *y) {
    enum { POSITIONS = 8 };
    return y->rank == 4 && y->dims[0] * y->dims[2] * y->dims[3] >= POSITIONS;
}

static bool is_convolution(const walk *w, const dp_node *node) {
    int64_t steps[4];
    if (strcmp(node->type, "Conv2D") != 0 || !is_planar(node) || node->n_inputs < 2 || !was_seen(w, node->inputs[0]) ||
        !was_seen(w, node->outputs[0]) || !is_constant_float(node->inputs[1]) || node->inputs[1]->tensor.rank != 4)
        return false;
    if (node->n_inputs > 2 && node->inputs[2] && !is_constant_float(node->inputs[2]))
        return false;
    const dp_tensor *t = &node->inputs[1]->tensor;
    return take_steps(node, "strides", steps) && take_steps(node, "dilations", steps) && take_pads(node, steps) &&
           strcmp(dp_node_text(node, "auto_pad", "NOTSET"), "NOTSET") == 0 && t->dims[2] * t->dims[3] <= 1024 &&
           dp_tensor_count(t) > 0 && is_worthwhile(&node->outputs[0]->tensor);
}

/* Codes. */

static code code_of(dp_range range) {
    float low = range.least < 0 ? range.least : 0, high = range.greatest > 0 ? range.greatest : 0;
    code c = {.scale = (high - low) / DP_PICTURE_MOST};
    if (!(c.scale > 1e-30f))
        c.scale = 1;
    c.zero = (int)lrintf(-low / c.scale);
    c.zero = c.zero < 0 ? 0 : c.zero > DP_PICTURE_MOST ? DP_PICTURE_MOST : c.zero;
    return c;
}

static dp_value *new_picture(const walk *w, const dp_value *like) {
    const int64_t *d = like->tensor.dims;
    dp_value *value = dp_value_new(w->graph->model, NULL);
    if (value)
        dp_value_shape(value, DP_U8, (int64_t[]){d[0], d[2], d[3], d[1]}, 4);
    return value;
}

/* The value as a picture; made right behind the value when it does not exist yet. */
static dp_value *picture_of(walk *w, dp_value *value) {
    code *c = &w->codes[value->mark - 1];
    if (c->picture)
        return c->picture;
    dp_value *picture = new_picture(w, value);
    dp_node *before = value->producer ? value->producer->next : w->graph->first;
    dp_node *node = picture ? dp_node_new(w->graph, before, "QuantizePicture", value->name, 1, 1) : NULL;
    if (!node)
        return NULL;
    *c = code_of(w->ranges[value->mark - 1]);
    c->picture = picture;
    node->inputs[0] = value;
    dp_node_output(node, 0, picture);
    if (dp_node_set_real(node, "scale", (double)c->scale) != DP_OK ||
        dp_node_set_integer(node, "zero", c->zero) != DP_OK)
        return NULL;
    ++*w->changes;
    return picture;
}

/* The value as floats, by a node behind `after` that nobody may want. */
static dp_status give_floats(walk *w, dp_node *after, dp_value *value) {
    const code *c = &w->codes[value->mark - 1];
    dp_node *node = dp_node_new(w->graph, after->next, "DequantizePicture", value->name, 1, 1);
    if (!node)
        return DP_ERR_OUT_OF_MEMORY;
    node->inputs[0] = c->picture;
    dp_node_output(node, 0, value);
    dp_status status = dp_node_set_real(node, "scale", (double)c->scale);
    return status == DP_OK ? dp_node_set_integer(node, "zero", c->zero) : status;
}

/* Groups. */

static bool comes_before(const dp_node *a, const dp_node *b) {
    for (const dp_node *node = a; node; node = node->next)
        if (node == b)
            return true;
    return false;
}

static bool same_dims(const dp_value *a, const dp_value *b) {
    return a->tensor.rank == b->tensor.rank &&
           memcmp(a->tensor.dims, b->tensor.dims, sizeof a->tensor.dims[0] * (size_t)a->tensor.rank) == 0;
}

/* The addition that alone reads the convolution, of another picture. */
static void take_addition(const walk *w, group *g) {
    enum { LOOK = 64 };
    const dp_value *y = g->conv->outputs[0];
    int64_t in = g->conv->inputs[1]->tensor.dims[1];
    if (w->uses[y->mark - 1] != 1 || in == 1)
        return;
    dp_node *node = g->conv->next;
    for (int looked = 0; node && looked < LOOK; node = node->next, looked++)
        for (int i = 0; i < 2 && i < node->n_inputs && strcmp(node->type, "Add") == 0; i++) {
            dp_value *other = node->inputs[1 - i];
            if (node->inputs[i] != y)
                continue;
            if (other != y && was_seen(w, other) && was_seen(w, node->outputs[0]) && same_dims(other, y)) {
                g->add = g->last = node;
                g->residual = other;
                g->sum = node->outputs[0];
            }
            return;
        }
}

/* Bounds of a Relu or a Clip alone, in floats; false: it needs a table. */
static bool take_bounds(const dp_unary *u, float *low, float *high) {
    const dp_node *node = u->nodes[0];
    *low = -INFINITY;
    *high = INFINITY;
    if (u->n_nodes == 0)
        return true;
    if (u->n_nodes > 1)
        return false;
    if (strcmp(node->type, "Relu") == 0) {
        *low = 0;
        return true;
    }
    if (strcmp(node->type, "ClipByValue") != 0 || node->n_inputs != 3 || !is_constant_float(node->inputs[1]) ||
        !is_constant_float(node->inputs[2]) || node->inputs[0]->is_constant)
        return false;
    *low = *(const float *)node->inputs[1]->tensor.base;
    *high = *(const float *)node->inputs[2]->tensor.base;
    return *low <= 0 && *high >= 0 && *low < *high;
}

/* Ends at which the function is as good as constant are cut off: the codes are better used in between. */
static dp_status narrow(const dp_unary *u, dp_range *range, float step) {
    enum { PLACES = 1024 };
    float x[PLACES], y[PLACES];
    const float width = (range->greatest - range->least) / (PLACES - 1), close = step / 4, low = range->least;
    for (int i = 0; i < PLACES; i++)
        x[i] = low + (float)i * width;
    dp_status status = dp_unary_evaluate(u, x, y, PLACES);
    if (status != DP_OK)
        return status;
    int first = 0, last = PLACES - 1;
    while (first < last && fabsf(y[first + 1] - y[0]) <= close)
        first++;
    while (last > first && fabsf(y[last - 1] - y[PLACES - 1]) <= close)
        last--;
    range->least = x[first];
    range->greatest = x[last];
    return DP_OK;
}

static dp_value *table_of(const walk *w, const group *g, const code *before, const code *after, dp_status *status) {
    float x[DP_PICTURE_VALUES], y[DP_PICTURE_VALUES];
    uint8_t bytes[DP_PICTURE_VALUES];
    for (int i = 0; i < DP_PICTURE_VALUES; i++)
        x[i] = (float)(i - before->zero) * before->scale;
    *status = dp_unary_evaluate(&g->then, x, y, DP_PICTURE_VALUES);
    if (*status != DP_OK)
        return NULL;
    for (int i = 0; i < DP_PICTURE_VALUES; i++) {
        float v = rintf(y[i] / after->scale) + (float)after->zero;
        bytes[i] = (uint8_t)(v >= 0 ? v > DP_PICTURE_MOST ? DP_PICTURE_MOST : v : 0);
    }
    dp_value *table = dp_value_constant(w->graph->model, NULL, DP_U8, &(int64_t){DP_PICTURE_VALUES}, 1, bytes);
    if (!table)
        *status = DP_ERR_OUT_OF_MEMORY;
    return table;
}

typedef struct numbers {
    dp_value *filter, *scale, *bias;
} numbers;

/* Weights [out, in, height, width] as integers [out, height, width, in], and what turns sums into codes. */
static dp_status quantise_weights(const walk *w, const group *g, const code *x, const code *y, const code *residual,
                                  numbers *out) {
    dp_model *model = w->graph->model;
    const dp_tensor *t = &g->conv->inputs[1]->tensor;
    const dp_value *old_bias = g->conv->n_inputs > 2 ? g->conv->inputs[2] : NULL;
    const int64_t outs = t->dims[0], ins = t->dims[1], taps = t->dims[2] * t->dims[3];
    out->filter = dp_value_constant(model, NULL, DP_I8, (int64_t[]){outs, t->dims[2], t->dims[3], ins}, 4, NULL);
    out->scale = dp_value_constant(model, NULL, DP_F32, &outs, 1, NULL);
    out->bias = dp_value_constant(model, NULL, DP_F32, &outs, 1, NULL);
    if (!out->filter || !out->scale || !out->bias)
        return DP_ERR_OUT_OF_MEMORY;
    for (int64_t o = 0; o < outs; o++) {
        const float *from = (const float *)t->base + o * ins * taps;
        int8_t *to = (int8_t *)out->filter->tensor.base + o * ins * taps;
        float most = 0;
        for (int64_t i = 0; i < ins * taps; i++)
            most = fabsf(from[i]) > most ? fabsf(from[i]) : most;
        const float step = most > 1e-30f ? most / DP_PICTURE_WEIGHT_MOST : 1;
        double sum = 0;
        for (int64_t i = 0; i < ins; i++)
            for (int64_t k = 0; k < taps; k++) {
                float q = rintf(from[i * taps + k] / step);
                to[k * ins + i] = (int8_t)(q == q ? q : 0);
                sum += (double)to[k * ins + i];
            }
        const double scale = (double)x->scale * (double)step / (double)y->scale;
        const double bias = old_bias ? (double)((const float *)old_bias->tensor.base)[o] / (double)y->scale : 0;
        ((float *)out->scale->tensor.base)[o] = (float)scale;
        ((float *)out->bias->tensor.base)[o] =
            (float)(bias + y->zero - scale * x->zero * sum -
                    (residual ? (double)residual->scale / (double)y->scale * residual->zero : 0));
    }
    return DP_OK;
}

static dp_status set_window(dp_node *node, const dp_node *conv) {
    int64_t steps[4];
    take_steps(conv, "strides", steps);
    dp_status status = dp_node_set_integers(node, "strides", steps, 4);
    take_steps(conv, "dilations", steps);
    if (status == DP_OK)
        status = dp_node_set_integers(node, "dilations", steps, 4);
    take_pads(conv, steps);
    return status == DP_OK ? dp_node_set_integers(node, "pads", steps, 4) : status;
}

static float within(double code_number) {
    return code_number > 0 ? code_number < DP_PICTURE_MOST ? (float)code_number : DP_PICTURE_MOST : 0;
}

/* Codes of the sums before a table, which are of the result itself when there is none. */
static dp_status choose_codes(const walk *w, const group *g, code *sums, code *result, float *low, float *high) {
    const dp_range *range = &w->ranges[g->then.to->mark - 1];
    *result = code_of(*range);
    *sums = *result;
    float least, greatest;
    if (!g->by_table) {
        take_bounds(&g->then, &least, &greatest);
        *low = within(rint((double)least / (double)result->scale) + result->zero);
        *high = within(rint((double)greatest / (double)result->scale) + result->zero);
        return DP_OK;
    }
    dp_range before = w->ranges[g->sum->mark - 1];
    dp_status status = narrow(&g->then, &before, result->scale);
    *sums = code_of(before);
    *low = 0;
    *high = DP_PICTURE_MOST;
    return status;
}

static dp_status build(walk *w, const group *g) {
    code sums, result;
    float low, high;
    dp_value *x = picture_of(w, g->conv->inputs[0]);
    dp_value *residual = g->residual && x ? picture_of(w, g->residual) : NULL;
    if (!x || (g->residual && !residual))
        return DP_ERR_OUT_OF_MEMORY;
    const code *from = &w->codes[g->conv->inputs[0]->mark - 1],
               *other = g->residual ? &w->codes[g->residual->mark - 1] : NULL;
    dp_status status = choose_codes(w, g, &sums, &result, &low, &high);
    numbers n;
    if (status == DP_OK)
        status = quantise_weights(w, g, from, &sums, other, &n);
    dp_value *table = status == DP_OK && g->by_table ? table_of(w, g, &sums, &result, &status) : NULL;
    if (status != DP_OK)
        return status;
    dp_value *y = new_picture(w, g->then.to);
    dp_node *node = y ? dp_node_new(w->graph, g->last, "QuantizedConv2D", g->conv->name, 6, 1) : NULL;
    if (!node)
        return DP_ERR_OUT_OF_MEMORY;
    memcpy(node->inputs, (dp_value *[]){x, n.filter, n.scale, n.bias, table, residual}, 6 * sizeof(dp_value *));
    status = set_window(node, g->conv);
    if (status == DP_OK)
        status = dp_node_set_integer(node, "groups", dp_node_integer(g->conv, "groups", 1));
    if (status == DP_OK)
        status = dp_node_set_integer(node, "zero", from->zero);
    if (status == DP_OK)
        status = dp_node_set_real(node, "low", (double)low);
    if (status == DP_OK)
        status = dp_node_set_real(node, "high", (double)high);
    if (status == DP_OK && residual)
        status = dp_node_set_real(node, "residual_scale", (double)other->scale / (double)sums.scale);
    if (status != DP_OK)
        return status;
    dp_node_output(node, 0, y);
    result.picture = y;
    dp_value *wanted = w->codes[g->then.to->mark - 1].picture; /* by a group that stands before this one in the walk */
    if (wanted)
        dp_graph_replace(w->graph, wanted, y);
    w->codes[g->then.to->mark - 1] = result;
    dp_node_remove(g->conv);
    if (g->add)
        dp_node_remove(g->add);
    for (int i = 0; i < g->then.n_nodes; i++)
        dp_node_remove(g->then.nodes[i]);
    ++*w->changes;
    return give_floats(w, node, g->then.to);
}

static dp_status quantise_convolution(walk *w, dp_node *conv) {
    group g = {.conv = conv, .last = conv, .sum = conv->outputs[0]};
    float low, high;
    take_addition(w, &g);
    dp_unary_find(w->graph, g.sum, w->uses, &g.then);
    if (g.then.n_nodes && !was_seen(w, g.then.to))
        g.then = (dp_unary){.from = g.sum, .to = g.sum};
    g.by_table = !take_bounds(&g.then, &low, &high);
    if (g.then.n_nodes && comes_before(g.last, g.then.nodes[g.then.n_nodes - 1]))
        g.last = g.then.nodes[g.then.n_nodes - 1];
    return build(w, &g);
}

static dp_status quantise_pool(walk *w, dp_node *pool) {
    dp_value *x = pool->inputs[0], *y = pool->outputs[0];
    int64_t window[4], steps[4], pads[4];
    if (!is_planar(pool) || !w->codes[x->mark - 1].picture || !take_steps(pool, "ksize", window) ||
        !take_steps(pool, "strides", steps) || !take_pads(pool, pads) || dp_node_integer(pool, "global_pooling", 0) ||
        strcmp(dp_node_text(pool, "padding_mode", "CALCULATED"), "CALCULATED") != 0)
        return DP_OK;
    for (int d = 0; d < 2; d++) /* no window that begins in the padding behind */
        if (pads[2 * d] >= window[1 + d] || pads[2 * d + 1] >= window[1 + d] ||
            (x->tensor.dims[2 + d] + pads[2 * d] + pads[2 * d + 1] - window[1 + d]) / steps[1 + d] + 1 !=
                y->tensor.dims[2 + d])
            return DP_OK;
    dp_value *picture = new_picture(w, y);
    dp_node *node = picture ? dp_node_new(w->graph, pool, "QuantizedMaxPool", pool->name, 1, 1) : NULL;
    if (!node)
        return DP_ERR_OUT_OF_MEMORY;
    node->inputs[0] = w->codes[x->mark - 1].picture;
    dp_node_output(node, 0, picture);
    dp_status status = dp_node_set_integers(node, "ksize", window, 4);
    if (status == DP_OK)
        status = dp_node_set_integers(node, "strides", steps, 4);
    if (status == DP_OK)
        status = dp_node_set_integers(node, "pads", pads, 4);
    w->codes[y->mark - 1] = w->codes[x->mark - 1];
    w->codes[y->mark - 1].picture = picture;
    dp_node_remove(pool);
    ++*w->changes;
    return status == DP_OK ? give_floats(w, node, y) : status;
}

static void count_uses(walk *w) {
    for (const dp_node *node = w->graph->first; node; node = node->next)
        for (int i = 0; i < node->n_inputs; i++)
            if (node->inputs[i] && !node->inputs[i]->is_constant)
                w->uses[node->inputs[i]->mark - 1]++;
    for (int i = 0; i < w->graph->n_outputs; i++)
        if (w->graph->outputs[i]->mark)
            w->uses[w->graph->outputs[i]->mark - 1]++;
}

dp_status dp_pass_quantise(dp_graph *graph, int *out_changes) {
    dp_calibration *calibration = graph->model->precision ? graph->model->precision->calibration : NULL;
    walk w = {.graph = graph, .changes = out_changes};
    dp_range *ranges = NULL;
    if (!calibration || graph->outer)
        return DP_OK;
    dp_status status = dp_calibration_read(calibration, graph);
    if (status == DP_OK)
        status = dp_calibration_observe(calibration, graph, &ranges, &w.n);
    if (status != DP_OK)
        return status;
    w.ranges = ranges;
    w.codes = dp_alloc(DP_MEM_GRAPH, (w.n + 1) * sizeof *w.codes);
    w.uses = dp_alloc(DP_MEM_GRAPH, (w.n + 1) * sizeof *w.uses);
    if (!w.codes || !w.uses)
        status = no_memory();
    else
        count_uses(&w);
    /* the nodes of a group may be taken out together: the next one is found by going on behind the last that stands */
    for (dp_node *node = graph->first; node && status == DP_OK;) {
        dp_node *before = node->previous, *next = node->next;
        int changes = *out_changes;
        if (is_convolution(&w, node))
            status = quantise_convolution(&w, node);
        else if (strcmp(node->type, "MaxPoolV3") == 0 && was_seen(&w, node->inputs[0]) &&
                 was_seen(&w, node->outputs[0]))
            status = quantise_pool(&w, node);
        node = changes == *out_changes ? next : before ? before->next : graph->first;
    }
    dp_free(w.codes);
    dp_free(w.uses);
    dp_free(ranges);
    return status;
}
