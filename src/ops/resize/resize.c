/*
 * resize.c - plans resampling by PyTorch's formulas, and the gradients, which are the transposed sums:
 *   nearest2d(self, size, align, scaleD, scaleH, scaleW) -> out
 *   nearest2d_gradient(gradOutput, outputSize, inputSize, align, scaleD, scaleH, scaleW) -> gradInput
 *   likewise exact, linear, cubic, linear_aa, cubic_aa of 1 to 3 dims
 * With r = in / out along an axis (1 / scale where one is given; (in - 1) / (out - 1) with align) position o reads
 *   nearest: floor(o r); exact: floor((o + 1/2) r);
 *   linear, cubic: around (o + 1/2) r - 1/2 (o r with align), of linear at least 0; cubic is the kernel with
 *     A = -3/4, its positions outside are those of the border;
 *   linear_origin, cubic_origin: around o r; area: the mean over [o r, (o + 1) r);
 *   aa: all elements nearer than the kernel's radius * max(r, 1), weighted by the kernel stretched by max(r, 1)
 *     (A = -1/2) and divided by the sum of the weights.
 * A scale that is not positive, or 1 though the sizes differ (PyTorch's adapter passes that for "none"), is not given.
 */
#include "ops/resize/resize.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"

typedef enum kind { NEAREST, EXACT, LINEAR, CUBIC, LINEAR_AA, CUBIC_AA, LINEAR_ORIGIN, CUBIC_ORIGIN, AREA } kind;

typedef struct detail {
    kind kind;
    int space;
    bool gradient;
} detail;

typedef struct rule {
    kind kind;
    bool align, origin, scaled; /* align, origin: position 0 is element 0 */
    int64_t in, out;
    double ratio;
} rule;

static double cubic(double x, double a) {
    x = fabs(x);
    if (x <= 1)
        return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

static double hat(double x) {
    x = fabs(x);
    return x < 1 ? 1 - x : 0;
}

static int64_t clamp(int64_t i, int64_t low, int64_t high) {
    return i < low ? low : i > high ? high : i;
}

/* floor(v) within [low, high]: scales of the caller lead anywhere. */
static int64_t floor_within(double v, int64_t low, int64_t high) {
    return !(v > (double)low) ? low : v >= (double)high ? high : (int64_t)floor(v);
}

static rule rule_of(kind k, bool align, double scale, int64_t in, int64_t out) {
    rule r = {k, align, align, scale > 0 && scale != 1, in, out, 0};
    if (k == LINEAR_ORIGIN || k == CUBIC_ORIGIN) {
        r.kind = k == LINEAR_ORIGIN ? LINEAR : CUBIC;
        r.origin = true;
    }
    if (align)
        r.ratio = out > 1 ? (double)(in - 1) / (double)(out - 1) : 0;
    else
        r.ratio = r.scaled ? 1 / scale : (double)in / (double)out;
    return r;
}

/* The greatest number of taps of any position. */
static int64_t taps_of(const rule *r) {
    double stretch = r->ratio > 1 ? r->ratio : 1;
    double taps = r->kind == NEAREST || r->kind == EXACT ? 1
                  : r->kind == LINEAR                    ? 2
                  : r->kind == CUBIC                     ? 4
                  : r->kind == AREA                      ? ceil(r->ratio) + 1
                                                         : ceil((r->kind == LINEAR_AA ? 2 : 4) * stretch) + 2;
    return taps < (double)r->in ? (int64_t)taps : r->in;
}

static int64_t nearest_of(const rule *r, int64_t o) {
    bool half = r->kind == EXACT;
    int64_t at;
    if (r->scaled)
        at = floor_within(((double)o + (half ? 0.5 : 0)) * r->ratio, 0, r->in - 1);
    else
        at = half ? (2 * o + 1) * r->in / (2 * r->out) : o * r->in / r->out;
    return clamp(at, 0, r->in - 1);
}

/* Position o is the mean over [o r, (o + 1) r), elements at its ends with the part that lies in it. */
static int64_t weigh_area(const rule *r, int64_t o, int64_t taps, double *weights) {
    double begin = (double)(o * r->in) / (double)r->out, end = (double)((o + 1) * r->in) / (double)r->out;
    int64_t first = clamp((int64_t)floor(begin), 0, r->in - taps);
    for (int64_t k = 0; k < taps; k++) {
        double low = fmax(begin, (double)(first + k)), high = fmin(end, (double)(first + k + 1));
        weights[k] = high > low ? (high - low) / (end - begin) : 0;
    }
    return first;
}

/* Weights of position o for elements [first, first + taps), and the first. `weights` has taps entries. */
static int64_t weigh(const rule *r, int64_t o, int64_t taps, double *weights) {
    for (int64_t k = 0; k < taps; k++)
        weights[k] = 0;
    if (r->kind == NEAREST || r->kind == EXACT) {
        weights[0] = 1;
        return nearest_of(r, o);
    }
    if (r->kind == LINEAR || r->kind == CUBIC) {
        double at = r->origin ? (double)o * r->ratio : ((double)o + 0.5) * r->ratio - 0.5;
        if (r->kind == LINEAR && at < 0)
            at = 0;
        at = fmin(at, (double)r->in + 2); /* all of it beyond the border */
        int64_t base = (int64_t)floor(at), before = r->kind == LINEAR ? 0 : 1, count = r->kind == LINEAR ? 2 : 4;
        double part = at - (double)base;
        int64_t first = clamp(base - before, 0, r->in - taps);
        for (int64_t k = 0; k < count; k++) {
            double x = part - (double)(k - before), w = r->kind == LINEAR ? hat(x) : cubic(x, -0.75);
            weights[clamp(base - before + k, 0, r->in - 1) - first] += w;
        }
        return first;
    }
    if (r->kind == AREA)
        return weigh_area(r, o, taps, weights);
    double stretch = r->ratio > 1 ? r->ratio : 1, radius = (r->kind == LINEAR_AA ? 1 : 2) * stretch;
    double centre = r->ratio * ((double)o + 0.5), sum = 0;
    int64_t begin = floor_within(centre - radius + 0.5, 0, r->in - 1);
    int64_t end = floor_within(centre + radius + 0.5, begin + 1, r->in), first = clamp(begin, 0, r->in - taps);
    end = end < first + taps ? end : first + taps;
    for (int64_t i = begin; i < end; i++) {
        double x = ((double)i - centre + 0.5) / stretch, w = r->kind == LINEAR_AA ? hat(x) : cubic(x, -0.5);
        weights[i - first] = w;
        sum += w;
    }
    for (int64_t k = 0; k < taps && sum != 0; k++)
        weights[k] /= sum;
    return first;
}

/* The table of an axis while it is made. */
typedef struct lists {
    int64_t n, taps;
    int32_t *first;
    float *weights; /* [tap][position] */
} lists;

static bool lists_new(lists *l, int64_t n, int64_t taps) {
    int64_t count = 0;
    bool too_many = __builtin_mul_overflow(n, taps, &count) || count > (int64_t)1 << 28;
    *l = (lists){.n = n, .taps = taps};
    l->first = too_many ? NULL : dp_alloc(DP_MEM_RUNTIME, (size_t)n * sizeof *l->first);
    l->weights = too_many ? NULL : dp_alloc(DP_MEM_RUNTIME, (size_t)count * sizeof *l->weights);
    return l->first && l->weights;
}

static void lists_free(lists *l) {
    dp_free(l->first);
    dp_free(l->weights);
}

static bool list_axis(const rule *r, lists *l) {
    int64_t taps = taps_of(r);
    double *weights = dp_alloc(DP_MEM_RUNTIME, (size_t)taps * sizeof *weights);
    bool ok = weights && lists_new(l, r->out, taps);
    for (int64_t o = 0; ok && o < r->out; o++) {
        l->first[o] = (int32_t)weigh(r, o, taps, weights);
        for (int64_t k = 0; k < taps; k++)
            l->weights[k * r->out + o] = (float)weights[k];
    }
    dp_free(weights);
    return ok;
}

/* The transposed table: what each of the `in` elements gives to. Elements that give nothing get one weight of 0. */
static bool transpose(const lists *from, int64_t in, lists *to) {
    lists range;
    bool ok = lists_new(&range, in, 1); /* first: first position; weights: not used */
    int32_t *last = ok ? dp_alloc(DP_MEM_RUNTIME, (size_t)in * sizeof *last) : NULL;
    int64_t taps = 1;
    ok = ok && last;
    for (int64_t o = 0; ok && o < from->n; o++)
        for (int64_t k = 0; k < from->taps; k++) {
            int64_t i = from->first[o] + k;
            if (from->weights[k * from->n + o] == 0)
                continue;
            if (last[i] == 0)
                range.first[i] = (int32_t)o;
            last[i] = (int32_t)o + 1;
            taps = last[i] - range.first[i] > taps ? last[i] - range.first[i] : taps;
        }
    ok = ok && lists_new(to, in, taps);
    for (int64_t i = 0; ok && i < in; i++)
        to->first[i] = (int32_t)clamp(range.first[i], 0, from->n - taps);
    for (int64_t o = 0; ok && o < from->n; o++)
        for (int64_t k = 0; k < from->taps; k++) {
            int64_t i = from->first[o] + k;
            if (from->weights[k * from->n + o] != 0)
                to->weights[(o - to->first[i]) * in + i] = from->weights[k * from->n + o];
        }
    lists_free(&range);
    dp_free(last);
    return ok;
}

/* The table of one axis of the operator: result size `out` from `in`. */
static bool make_axis(const detail *d, bool align, double scale, int64_t in, int64_t out, lists *l) {
    *l = (lists){0};
    if (!d->gradient) {
        rule r = rule_of(d->kind, align, scale, in, out);
        return list_axis(&r, l);
    }
    rule r = rule_of(d->kind, align, scale, out, in);
    lists forward = {0};
    bool ok = list_axis(&r, &forward) && transpose(&forward, out, l);
    lists_free(&forward);
    return ok;
}

static dp_status make_plan(const dp_operator_call *call, dp_resize *head, lists tables[DP_SPACE], dp_plan **out_plan) {
    static const char *const names[] = {"nearest",  "nearest", "linear", "cubic", "linear aa",
                                        "cubic aa", "linear",  "cubic",  "area"};
    size_t numbers = 0;
    for (int d = 0; d < DP_SPACE; d++) {
        dp_resize_axis *axis = &head->axis[d];
        axis->taps = tables[d].taps;
        axis->first_at = numbers;
        axis->weights_at = numbers + (size_t)tables[d].n;
        numbers = axis->weights_at + (size_t)(tables[d].n * tables[d].taps);
        axis->copies = axis->taps == 1;
        for (int64_t o = 0; o < tables[d].n && axis->copies; o++)
            axis->copies = tables[d].weights[o] == 1;
    }
    dp_plan *plan = dp_plan_new(call, dp_resize_run, sizeof *head + numbers * sizeof head->numbers[0]);
    if (!plan)
        return DP_ERR_OUT_OF_MEMORY;
    head->scratch_bytes = (size_t)(2 * head->x.size[2] + head->y.size[2]) * sizeof(float);
    dp_resize *r = dp_plan_state(plan);
    memcpy(r, head, sizeof *head);
    for (int d = 0; d < DP_SPACE; d++) {
        if (!tables[d].n) /* an empty axis has no tables */
            continue;
        memcpy(&r->numbers[r->axis[d].first_at], tables[d].first, (size_t)tables[d].n * sizeof(int32_t));
        memcpy(&r->numbers[r->axis[d].weights_at], tables[d].weights,
               (size_t)(tables[d].n * tables[d].taps) * sizeof(float));
    }
    plan->path = names[((const detail *)call->op->function->detail)->kind];
    *out_plan = plan;
    return DP_OK;
}

/* The size list against the image it must describe. */
static dp_status check_size(const dp_arg *list, int space, const dp_arg *tensor, const dp_image *image) {
    int64_t size[DP_SPACE];
    dp_status status = dp_window_list(list, space, 0, -1, 1, size);
    for (int d = 0; d < DP_SPACE && status == DP_OK; d++)
        if (size[d] != image->size[d])
            return dp_fail(DP_ERR_ARGUMENT, "%s[%d] is %lld, but must be %lld, the size of %s", list->name,
                           d - (DP_SPACE - space), (long long)size[d], (long long)image->size[d], tensor->name);
    return status;
}

/* The gradient's second list has all dims of the input. */
static dp_status check_input_size(const dp_arg *list, const dp_arg *tensor) {
    const dp_tensor *t = tensor->as.tensor;
    if (list->kind != DP_ARG_INT_LIST || list->count != t->rank)
        return dp_fail(DP_ERR_ARGUMENT, "%s must have %d numbers, the shape of %s", list->name, t->rank, tensor->name);
    for (int d = 0; d < t->rank; d++)
        if (list->as.integers[d] != t->dims[d])
            return dp_fail(DP_ERR_ARGUMENT, "%s[%d] is %lld, but must be %lld, the shape of %s", list->name, d,
                           (long long)list->as.integers[d], (long long)t->dims[d], tensor->name);
    return DP_OK;
}

static dp_status take_images(const dp_operator_call *call, dp_resize *r) {
    const detail *d = call->op->function->detail;
    const dp_arg *x = &call->in[0], *y = &call->out[0];
    dp_status status = dp_element_expect(x, call->op->elements);
    if (status == DP_OK)
        status = dp_element_expect(y, call->op->elements);
    if (status == DP_OK)
        status = dp_places_expect(y);
    if (status == DP_OK)
        status = dp_image_of(x, d->space, true, &r->x);
    if (status == DP_OK)
        status = dp_image_of(y, d->space, true, &r->y);
    if (status == DP_OK)
        status = check_size(&call->in[1], d->space, d->gradient ? x : y, d->gradient ? &r->x : &r->y);
    if (status == DP_OK && d->gradient)
        status = check_input_size(&call->in[2], y);
    if (status != DP_OK)
        return status;
    dp_image expected = r->y;
    expected.batch = r->x.batch;
    expected.channels = r->x.channels;
    status = dp_image_expect(y, &r->y, &expected, x->name);
    for (int a = 0; a < DP_SPACE && status == DP_OK; a++) {
        r->axis[a].in = r->x.size[a];
        r->axis[a].out = r->y.size[a];
        if (r->x.size[a] > DP_WINDOW_LIMIT / 4 || r->y.size[a] > DP_WINDOW_LIMIT / 4)
            return dp_fail(DP_ERR_ARGUMENT, "%s or %s is longer than %d along dimension %d of space", x->name, y->name,
                           DP_WINDOW_LIMIT / 4, a - (DP_SPACE - d->space));
        if ((r->x.size[a] < 1) != (r->y.size[a] < 1) && r->x.batch && r->x.channels)
            return dp_fail(DP_ERR_ARGUMENT, "%s is empty along dimension %d of space, but %s is not",
                           (r->x.size[a] < 1 ? x : y)->name, a - (DP_SPACE - d->space),
                           (r->x.size[a] < 1 ? y : x)->name);
    }
    return status;
}

static dp_status prepare(const dp_operator_call *call, dp_plan **out_plan) {
    const detail *d = call->op->function->detail;
    dp_resize r = {.axis = {{0}}};
    dp_status status = take_images(call, &r);
    if (status != DP_OK)
        return status;
    const dp_arg *options = call->in + (d->gradient ? 3 : 2); /* align, then the scales of z, y, x */
    bool align = dp_arg_integer(&options[0], 0) != 0, ok = true;
    bool empty = !r.y.batch || !r.y.channels;
    lists tables[DP_SPACE] = {{0}};
    for (int a = 0; a < DP_SPACE && ok; a++) {
        empty = empty || r.axis[a].out < 1;
        if (!empty)
            ok = make_axis(d, align, dp_arg_real(&options[1 + a], 0), r.axis[a].in, r.axis[a].out, &tables[a]);
    }
    for (int a = 0; a < DP_SPACE && empty; a++)
        tables[a].n = tables[a].taps = 0;
    status = ok ? make_plan(call, &r, tables, out_plan)
                : dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for the positions of %s: free some", call->op->name);
    for (int a = 0; a < DP_SPACE; a++)
        lists_free(&tables[a]);
    return status;
}

#define EXPORT_ONE(function, KIND, SPACE, GRADIENT)                                                                    \
    static const detail detail_##function = {KIND, SPACE, GRADIENT};                                                   \
    extern const dp_function dp_resize_##function;                                                                     \
    const dp_function dp_resize_##function = {#function, prepare, &detail_##function, 0, 0};
#define EXPORT(function, KIND, SPACE)                                                                                  \
    EXPORT_ONE(function, KIND, SPACE, false)                                                                           \
    EXPORT_ONE(function##_gradient, KIND, SPACE, true)
EXPORT(nearest1d, NEAREST, 1)
EXPORT(nearest2d, NEAREST, 2)
EXPORT(nearest3d, NEAREST, 3)
EXPORT(exact1d, EXACT, 1)
EXPORT(exact2d, EXACT, 2)
EXPORT(exact3d, EXACT, 3)
EXPORT(linear1d, LINEAR, 1)
EXPORT(linear2d, LINEAR, 2)
EXPORT(linear3d, LINEAR, 3)
EXPORT(cubic2d, CUBIC, 2)
EXPORT(linear2d_aa, LINEAR_AA, 2)
EXPORT(cubic2d_aa, CUBIC_AA, 2)
EXPORT_ONE(linear2d_origin, LINEAR_ORIGIN, 2, false)
EXPORT_ONE(cubic2d_origin, CUBIC_ORIGIN, 2, false)
EXPORT_ONE(area2d, AREA, 2, false)
