/*
 * quantise_conv.c - convolutions in small integers.
 *
 * A convolution takes what follows it along: the addition of another picture, and functions of one number
 * (activations): a bound is what codes have anyway, a hard swish is computed, and all others become a table of 256
 * entries. Transposed convolutions go over whose windows lie side by side.
 */
#include <math.h>
#include <string.h>

#include "graph/passes/passes.h"
#include "graph/passes/quantise.h"

enum { NUMBERS = 5 };

/* What follows the sums. */
typedef enum function { FUNCTION_BOUND, FUNCTION_HARD_SWISH, FUNCTION_TABLE } function;

/* What one quantised convolution does. */
typedef struct group {
    dp_node *conv, *add, *last; /* add: NULL if none; last: the place where all inputs exist */
    dp_value *sum;              /* of the convolution and the addition */
    dp_value *residual;
    dp_unary then;
    function function;
    float alpha, beta; /* alpha * hard_swish + beta */
    bool floats;       /* nobody wants a picture of the result: it is float, and nothing follows */
    bool tiles;        /* transposed */
    int64_t kernel[2], outs, ins, groups;
} group;

static bool is_constant_float(const dp_value *value) {
    return value && value->is_constant && value->tensor.element == DP_F32;
}

/* A product with few rows costs what reading its weights costs, and gates in front of whole pictures want to be exact.
 */
static bool is_worthwhile(const dp_tensor *y) {
    enum { POSITIONS = 8 };
    return y->rank == 4 && y->dims[0] * y->dims[2] * y->dims[3] >= POSITIONS;
}

static bool is_transposed(const dp_node *node) {
    return strcmp(node->type, "Conv2DTransposeD") == 0;
}

/* Windows side by side: strides as the kernel, nothing added or taken away. */
static bool has_tiles(const dp_node *node, const dp_tensor *w) {
    int64_t steps[2], pads[4];
    const dp_arg *more = dp_node_attribute(node, "output_padding");
    if (!dp_quantise_steps(node, "dilations", steps) || steps[0] != 1 || steps[1] != 1 ||
        !dp_quantise_pads(node, pads) || pads[0] | pads[1] | pads[2] | pads[3] ||
        dp_node_integer(node, "groups", dp_node_integer(node, "group", 1)) != 1)
        return false;
    for (int i = 0; more && more->kind == DP_ARG_INT_LIST && i < more->count; i++)
        if (more->as.integers[i])
            return false;
    return dp_quantise_steps(node, "strides", steps) && steps[0] == w->dims[2] && steps[1] == w->dims[3];
}

bool dp_quantise_is_convolution(const dp_quantise *w, const dp_node *node) {
    enum { TAPS_MOST = 1024 };
    int64_t steps[2], pads[4];
    const bool transposed = is_transposed(node);
    if ((strcmp(node->type, "Conv2D") != 0 && !transposed) || !dp_quantise_is_planar(node) || node->n_inputs < 2 ||
        !dp_quantise_was_seen(w, node->inputs[0]) || !dp_quantise_was_seen(w, node->outputs[0]) ||
        !is_constant_float(node->inputs[1]) || node->inputs[1]->tensor.rank != 4)
        return false;
    if (node->n_inputs > 2 && node->inputs[2] && !is_constant_float(node->inputs[2]))
        return false;
    const dp_tensor *t = &node->inputs[1]->tensor;
    if (transposed && !has_tiles(node, t))
        return false;
    return dp_quantise_steps(node, "strides", steps) && dp_quantise_steps(node, "dilations", steps) &&
           dp_quantise_pads(node, pads) && strcmp(dp_node_text(node, "auto_pad", "NOTSET"), "NOTSET") == 0 &&
           t->dims[2] * t->dims[3] <= TAPS_MOST && dp_tensor_count(t) > 0 && is_worthwhile(&node->outputs[0]->tensor);
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
static void take_addition(const dp_quantise *w, group *g) {
    enum { LOOK = 64 };
    const dp_value *y = g->conv->outputs[0];
    if (w->uses[y->mark - 1] != 1 || g->tiles || g->ins == 1)
        return;
    dp_node *node = g->conv->next;
    for (int looked = 0; node && looked < LOOK; node = node->next, looked++)
        for (int i = 0; i < 2 && i < node->n_inputs && strcmp(node->type, "Add") == 0; i++) {
            dp_value *other = node->inputs[1 - i];
            if (node->inputs[i] != y)
                continue;
            if (other != y && dp_quantise_was_seen(w, other) && dp_quantise_was_seen(w, node->outputs[0]) &&
                same_dims(other, y)) {
                g->add = g->last = node;
                g->residual = other;
                g->sum = node->outputs[0];
            }
            return;
        }
}

/* Whether the functions of one number are a bound of their argument, or alpha * hard_swish + beta, where sums are. */
static dp_status find_function(const dp_quantise *w, group *g) {
    enum { PLACES = 256 };
    float x[PLACES], y[PLACES];
    g->function = FUNCTION_BOUND;
    if (g->then.n_nodes == 0)
        return DP_OK;
    const dp_range *range = &dp_seen_of(w, g->sum)->all;
    const float low = fminf(range->least, -4), high = fmaxf(range->greatest, 4), step = (high - low) / (PLACES - 3);
    for (int i = 0; i < PLACES - 2; i++)
        x[i] = low + (float)i * step;
    x[PLACES - 2] = 0;
    x[PLACES - 1] = 3;
    dp_status status = dp_unary_evaluate(&g->then, x, y, PLACES);
    float least = y[0], most = y[0], off = 0, swish_off = 0;
    for (int i = 0; i < PLACES; i++) {
        least = fminf(least, y[i]);
        most = fmaxf(most, y[i]);
    }
    g->beta = y[PLACES - 2];
    g->alpha = (y[PLACES - 1] - g->beta) / 3;
    for (int i = 0; i < PLACES; i++) {
        const float swish = x[i] * fminf(fmaxf(x[i] / 6 + 0.5f, 0), 1);
        off = fmaxf(off, fabsf(y[i] - fminf(fmaxf(x[i], least), most)));
        swish_off = fmaxf(swish_off, fabsf(y[i] - (g->alpha * swish + g->beta)));
    }
    const float close = 1e-5f * (most - least);
    const bool bounds_zero = least <= 0 && most >= 0;
    g->function = !(off >= 0 && swish_off >= 0) ? FUNCTION_TABLE
                  : off <= close && bounds_zero ? FUNCTION_BOUND
                  : swish_off <= close          ? FUNCTION_HARD_SWISH
                                                : FUNCTION_TABLE;
    return status;
}

/* Whether a node that is going to compute on pictures reads the value. */
static bool is_wanted(const dp_quantise *w, const dp_value *value) {
    for (const dp_node *node = w->graph->first; node; node = node->next)
        for (int i = 0; i < node->n_inputs; i++)
            if (node->inputs[i] == value &&
                ((i == 0 && dp_quantise_is_convolution(w, node)) || dp_quantise_follows(w, node)))
                return true;
    return dp_code_of(w, value)->picture != NULL;
}

/* Weights. */

/* Of output channel o, input channel i, tap k. */
static float weight_at(const group *g, int64_t o, int64_t i, int64_t k) {
    const float *w = g->conv->inputs[1]->tensor.base;
    const int64_t taps = g->kernel[0] * g->kernel[1];
    return g->tiles ? w[(i * g->outs + o) * taps + k] : w[(o * g->ins + i) * taps + k];
}

/* Mean of input channel i of output channel o's group, as data for calibration have it. */
static double mean_of(const dp_seen *seen, int64_t channel) {
    const dp_range *r = seen->channels ? &seen->channels[channel] : &seen->all;
    return r->count > 0 ? r->sum / r->count : 0;
}

/*
 * Row o of the filter as integers q[taps][ins], the factor of a sum, and what belongs into the bias: the zeros of the
 * picture, and what rounding the weights changes where channels have their mean.
 */
static double round_weights(const group *g, const dp_seen *seen, const dp_code *x, int64_t o, int64_t first_tap,
                            int64_t taps, int8_t *q, double *out_bias) {
    const int64_t before = g->tiles ? 0 : o / (g->outs / g->groups) * g->ins;
    float most = 0;
    for (int64_t k = 0; k < taps; k++)
        for (int64_t i = 0; i < g->ins; i++)
            most = fmaxf(most, fabsf(weight_at(g, o, i, first_tap + k)) * x->scale[before + i]);
    const double step = most > 1e-30f ? (double)most / DP_PICTURE_WEIGHT_MOST : 1;
    double bias = 0;
    for (int64_t k = 0; k < taps; k++)
        for (int64_t i = 0; i < g->ins; i++) {
            const double real = (double)weight_at(g, o, i, first_tap + k), scale = (double)x->scale[before + i];
            const double whole = rint(real * scale / step);
            const int8_t code = (int8_t)(whole == whole ? whole : 0);
            q[k * g->ins + i] = code;
            bias -= step * code * (double)x->zero[before + i];
            bias += (real - step * code / scale) * mean_of(seen, before + i);
        }
    *out_bias = bias == bias && fabs(bias) < 1e30 ? bias : 0;
    return step;
}

/* Everything about column n (output channel o) that turns a sum into a code of y. */
static void set_numbers(const group *g, void *room, int64_t all, int64_t n, int64_t o, double step, double bias,
                        const dp_code *y, const dp_code *residual) {
    const dp_value *old = g->conv->n_inputs > 2 ? g->conv->inputs[2] : NULL;
    bias += old ? (double)((const float *)old->tensor.base)[o] : 0;
    double after = g->floats ? 1 : 1 / (double)y->scale[o], shift = g->floats ? 0 : (double)y->zero[o];
    double other = residual ? (double)residual->scale[o] : 0;
    bias -= residual ? other * (double)residual->zero[o] : 0;
    if (g->function == FUNCTION_HARD_SWISH && !g->floats) {
        shift += (double)g->beta * after;
        after *= (double)g->alpha;
    } else {
        step *= after;
        other *= after;
        bias = bias * after + shift;
        after = 1;
        shift = 0;
    }
    const double row[NUMBERS] = {step, bias, other, after, shift};
    for (int i = 0; i < NUMBERS; i++)
        ((float *)room)[i * all + n] = (float)row[i];
}

/* As the operator decides it, too. */
static bool is_depthwise(const group *g) {
    return !g->tiles && g->ins == 1 && g->outs == g->groups && !g->residual && !g->floats;
}

typedef struct constants {
    dp_value *panels, *numbers, *outside, *table;
} constants;

/* k of a column: taps, channels within; the picture may have more channels than the filter. */
static void spread_channels(const int8_t *q, int64_t taps, int64_t ins, int64_t channels, int8_t *to) {
    for (int64_t k = 0; k < taps; k++) {
        memcpy(to + k * channels, q + k * ins, (size_t)ins);
        memset(to + k * channels + ins, 0, (size_t)(channels - ins));
    }
}

static dp_status fill_columns(const dp_quantise *w, const group *g, const dp_code *x, const dp_code *y,
                              const dp_code *residual, const constants *c) {
    const int64_t taps = g->kernel[0] * g->kernel[1], own = g->tiles ? 1 : taps; /* of a product */
    const int64_t channels = x->channels / g->groups, depth = own * channels;
    const int64_t columns = g->tiles ? g->kernel[1] * g->outs : g->outs / g->groups,
                  parts = g->tiles ? g->kernel[0] : g->groups;
    const bool depthwise = is_depthwise(g);
    const int64_t panel_bytes = (int64_t)dp_bytes_panel_bytes((size_t)depth, (size_t)columns);
    int8_t *q = dp_model_alloc(w->graph->model, (size_t)(own * g->ins + 1)),
           *matrix = dp_model_alloc(w->graph->model, (size_t)(columns * depth + 1));
    int8_t *panels = c->panels->tensor.base;
    if (!q || !matrix)
        return dp_quantise_no_memory();
    const dp_seen *seen = dp_seen_of(w, g->conv->inputs[0]);
    for (int64_t part = 0; part < parts; part++) {
        for (int64_t n = 0; n < columns; n++) {
            const int64_t o = g->tiles ? n % g->outs : part * columns + n;
            const int64_t tap = g->tiles ? part * g->kernel[1] + n / g->outs : 0;
            double bias, step = round_weights(g, seen, x, o, tap, own, q, &bias);
            set_numbers(g, c->numbers->tensor.base, parts * columns, part * columns + n, o, step, bias, y, residual);
            spread_channels(q, own, g->ins, channels, matrix + n * depth);
            for (int64_t k = 0; depthwise && k < taps; k++)
                panels[k * x->channels + o] = q[k];
        }
        if (!depthwise)
            dp_bytes_pack(matrix, (size_t)depth, (size_t)columns, 1, depth, panels + part * panel_bytes);
    }
    return DP_OK;
}

static dp_status make_constants(const dp_quantise *w, const group *g, const dp_code *x, const dp_code *y,
                                const dp_code *residual, constants *c) {
    dp_model *model = w->graph->model;
    const int64_t taps = g->kernel[0] * g->kernel[1], depth = (g->tiles ? 1 : taps) * (x->channels / g->groups);
    const int64_t columns = g->tiles ? g->kernel[1] * g->outs : g->outs / g->groups,
                  parts = g->tiles ? g->kernel[0] : g->groups;
    const int64_t bytes =
        is_depthwise(g) ? taps * x->channels : parts * (int64_t)dp_bytes_panel_bytes((size_t)depth, (size_t)columns);
    const int64_t dims[] = {NUMBERS, parts * columns};
    c->panels = dp_value_constant(model, NULL, DP_I8, &bytes, 1, NULL);
    c->numbers = dp_value_constant(model, NULL, DP_F32, dims, 2, NULL);
    c->outside = dp_value_constant(model, NULL, DP_U8, &x->channels, 1, NULL);
    if (!c->panels || !c->numbers || !c->outside)
        return dp_quantise_no_memory();
    for (int64_t i = 0; i < x->channels; i++)
        ((uint8_t *)c->outside->tensor.base)[i] = (uint8_t)x->zero[i];
    return fill_columns(w, g, x, y, residual, c);
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

/* The table from codes of the sums to those of the result, both the same for all channels. */
static dp_status make_table(const dp_quantise *w, const group *g, dp_code *sums, dp_code *result, constants *c) {
    float x[DP_PICTURE_VALUES], y[DP_PICTURE_VALUES];
    uint8_t bytes[DP_PICTURE_VALUES];
    dp_range before = dp_seen_of(w, g->sum)->all;
    dp_status status = dp_code_choose(w, g->then.to, false, result);
    if (status == DP_OK)
        status = narrow(&g->then, &before, result->scale[0]);
    if (status == DP_OK)
        status = dp_code_of_range(w, before, g->outs, sums);
    for (int i = 0; i < DP_PICTURE_VALUES && status == DP_OK; i++)
        x[i] = ((float)i - sums->zero[0]) * sums->scale[0];
    if (status == DP_OK)
        status = dp_unary_evaluate(&g->then, x, y, DP_PICTURE_VALUES);
    for (int i = 0; i < DP_PICTURE_VALUES && status == DP_OK; i++) {
        const float v = rintf(y[i] / result->scale[0]) + result->zero[0];
        bytes[i] = (uint8_t)(v >= 0 ? v > DP_PICTURE_MOST ? DP_PICTURE_MOST : v : 0);
    }
    if (status == DP_OK &&
        !(c->table = dp_value_constant(w->graph->model, NULL, DP_U8, &(int64_t){DP_PICTURE_VALUES}, 1, bytes)))
        status = dp_quantise_no_memory();
    return status;
}

static dp_status set_attributes(dp_node *node, const group *g) {
    int64_t pair[2], pads[4];
    dp_status status = dp_node_set_integer(node, "out_channels", g->outs);
    if (status == DP_OK)
        status = dp_node_set_integers(node, "kernel", g->kernel, 2);
    dp_quantise_steps(g->conv, "strides", pair);
    if (status == DP_OK)
        status = dp_node_set_integers(node, "strides", pair, 2);
    dp_quantise_steps(g->conv, "dilations", pair);
    if (status == DP_OK)
        status = dp_node_set_integers(node, "dilations", pair, 2);
    dp_quantise_pads(g->conv, pads);
    if (status == DP_OK)
        status = dp_node_set_integers(node, "pads", pads, 4);
    if (status == DP_OK)
        status = dp_node_set_integer(node, "groups", g->groups);
    if (status == DP_OK)
        status = dp_node_set_text(node, "activation",
                                  g->function == FUNCTION_HARD_SWISH && !g->floats ? "hard_swish" : "none");
    return status == DP_OK && g->tiles ? dp_node_set_integer(node, "tiles", 1) : status;
}

/* The result as floats, channels first: y has them last. */
static dp_status give_first(dp_quantise *w, dp_node *node, dp_value *y, dp_value *value) {
    const int64_t *d = value->tensor.dims;
    const bool is_free = d[1] == 1 || d[2] * d[3] == 1;
    dp_node *turn =
        dp_node_new(w->graph, node->next, is_free ? "Reshape" : "TransposeD", value->name, is_free ? 2 : 1, 1);
    if (!turn)
        return DP_ERR_OUT_OF_MEMORY;
    turn->inputs[0] = y;
    dp_node_output(turn, 0, value);
    ++*w->changes;
    if (!is_free)
        return dp_node_set_integers(turn, "perm", (const int64_t[]){0, 3, 1, 2}, 4);
    turn->inputs[1] = dp_value_integers(w->graph->model, d, 4);
    return turn->inputs[1] ? DP_OK : DP_ERR_OUT_OF_MEMORY;
}

static void remove_nodes(const group *g) {
    dp_node_remove(g->conv);
    if (g->add)
        dp_node_remove(g->add);
    for (int i = 0; i < g->then.n_nodes && !g->floats; i++)
        dp_node_remove(g->then.nodes[i]);
}

static dp_status build(dp_quantise *w, const group *g) {
    dp_code sums = {0}, result = {0};
    constants c = {0};
    dp_value *x = dp_codes_want(w, g->conv->inputs[0]), *to = g->floats ? g->sum : g->then.to;
    dp_value *residual = g->residual && x ? dp_codes_want(w, g->residual) : NULL;
    if (!x || (g->residual && !residual))
        return DP_ERR_OUT_OF_MEMORY;
    dp_status status = DP_OK;
    if (!g->floats && g->function == FUNCTION_TABLE)
        status = make_table(w, g, &sums, &result, &c);
    else if (!g->floats)
        status = dp_code_choose(w, to, true, &result);
    const dp_code *codes = g->function == FUNCTION_TABLE ? &sums : &result;
    if (status == DP_OK)
        status = make_constants(w, g, dp_code_of(w, g->conv->inputs[0]), codes,
                                residual ? dp_code_of(w, g->residual) : NULL, &c);
    if (status != DP_OK)
        return status;
    dp_value *y = dp_codes_new(w, to, g->outs);
    dp_node *node = y ? dp_node_new(w->graph, g->last, "QuantizedConv2D", g->conv->name, 6, 1) : NULL;
    if (!node)
        return DP_ERR_OUT_OF_MEMORY;
    if (g->floats)
        dp_value_shape(y, DP_F32, y->tensor.dims, 4);
    memcpy(node->inputs, (dp_value *[]){x, c.panels, c.numbers, c.outside, c.table, residual}, 6 * sizeof(dp_value *));
    dp_node_output(node, 0, y);
    status = set_attributes(node, g);
    remove_nodes(g);
    if (status != DP_OK)
        return status;
    if (g->floats)
        return give_first(w, node, y, to);
    result.picture = y;
    return dp_codes_give(w, node, to, &result);
}

dp_status dp_quantise_convolution(dp_quantise *w, dp_node *conv) {
    const dp_tensor *t = &conv->inputs[1]->tensor;
    group g = {.conv = conv, .last = conv, .sum = conv->outputs[0], .tiles = is_transposed(conv)};
    g.kernel[0] = t->dims[2];
    g.kernel[1] = t->dims[3];
    g.outs = t->dims[g.tiles ? 1 : 0];
    g.ins = t->dims[g.tiles ? 0 : 1];
    g.groups = g.tiles ? 1 : dp_node_integer(conv, "groups", 1);
    if (g.groups < 1 || g.groups * g.ins != conv->inputs[0]->tensor.dims[1] || g.outs % g.groups)
        return DP_OK;
    take_addition(w, &g);
    dp_unary_find(w->graph, g.sum, w->uses, &g.then);
    if (g.then.n_nodes && !dp_quantise_was_seen(w, g.then.to))
        g.then = (dp_unary){.from = g.sum, .to = g.sum};
    dp_status status = find_function(w, &g);
    if (status != DP_OK)
        return status;
    g.floats = !is_wanted(w, g.then.to) && !is_wanted(w, g.sum);
    if (g.floats)
        g.function = FUNCTION_BOUND;
    if (!g.floats && g.then.n_nodes && comes_before(g.last, g.then.nodes[g.then.n_nodes - 1]))
        g.last = g.then.nodes[g.then.n_nodes - 1];
    return build(w, &g);
}
