/* Resizing of one plane: down first, over whole rows, then across. */
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/memory.h"
#include "base/scratch.h"
#include "media/draw.h"
#include "runtime/pool.h"

/* Where the values of `out` elements come from: taps weights each, weights[t * out + i] for element first[i] + t. */
typedef struct axis {
    uint32_t in, out, taps;
    int32_t *first;
    float *weights;
} axis;

static void weights_bilinear(double at, double *w, double *out_first) {
    *out_first = floor(at);
    w[1] = at - *out_first;
    w[0] = 1 - w[1];
}

/* Keys' cubic with a = -0.75, at distances 1 + t, t, 1 - t, 2 - t. */
static void weights_cubic(double at, double *w, double *out_first) {
    const double a = -0.75, base = floor(at), t = at - base, u = 1 - t;
    *out_first = base - 1;
    w[0] = ((a * (t + 1) - 5 * a) * (t + 1) + 8 * a) * (t + 1) - 4 * a;
    w[1] = ((a + 2) * t - (a + 3)) * t * t + 1;
    w[2] = ((a + 2) * u - (a + 3)) * u * u + 1;
    w[3] = 1 - w[0] - w[1] - w[2];
}

/* Tap p of element i, moved inside; what lies outside adds to the edge. */
static void put(const axis *x, uint32_t i, double p, double weight) {
    double inside = p < 0 ? 0 : p > x->in - 1 ? x->in - 1 : p;
    uint32_t t = (uint32_t)inside - (uint32_t)x->first[i];
    x->weights[(size_t)t * x->out + i] += (float)weight;
}

static int32_t inside(const axis *x, double first) {
    double most = (double)x->in - x->taps;
    return (int32_t)(first < 0 ? 0 : first > most ? most : first);
}

static void fill_area(axis *x, double scale) {
    for (uint32_t i = 0; i < x->out; i++) {
        double begin = i * scale, end = (i + 1) * scale, first = floor(begin);
        x->first[i] = inside(x, first);
        end = end > x->in ? x->in : end;
        for (double p = first; p < end; p++) {
            double covered = (p + 1 < end ? p + 1 : end) - (p > begin ? p : begin);
            put(x, i, p, covered / (end - begin));
        }
    }
}

static void fill_points(axis *x, double scale, int interpolation) {
    for (uint32_t i = 0; i < x->out; i++) {
        double w[4], first, at = (i + 0.5) * scale - 0.5;
        int n = 2;
        if (interpolation == DP_INTERPOLATION_BICUBIC) {
            weights_cubic(at, w, &first);
            n = 4;
        } else {
            weights_bilinear(at, w, &first);
        }
        x->first[i] = inside(x, first);
        for (int t = 0; t < n; t++)
            put(x, i, first + t, w[t]);
    }
}

static uint32_t taps_of(uint32_t in, uint32_t out, int interpolation) {
    uint32_t taps = 2;
    if (in == out || interpolation == DP_INTERPOLATION_NEAREST)
        taps = 1;
    else if (interpolation == DP_INTERPOLATION_BICUBIC)
        taps = 4;
    else if (interpolation == DP_INTERPOLATION_AREA && in > out)
        taps = (in + out - 1) / out + 1;
    return taps < in ? taps : in;
}

static bool axis_make(axis *x, uint32_t in, uint32_t out, int interpolation) {
    double scale = (double)in / out;
    *x = (axis){.in = in, .out = out, .taps = taps_of(in, out, interpolation)};
    x->first = dp_alloc(DP_MEM_MEDIA, out * sizeof *x->first);
    x->weights = dp_alloc(DP_MEM_MEDIA, (size_t)out * x->taps * sizeof *x->weights);
    if (!x->first || !x->weights)
        return false;
    if (in == out || interpolation == DP_INTERPOLATION_NEAREST) {
        for (uint32_t i = 0; i < out; i++) {
            uint32_t at = in == out ? i : (uint32_t)(i * scale);
            x->first[i] = (int32_t)(at < in ? at : in - 1);
            x->weights[i] = 1;
        }
    } else if (interpolation == DP_INTERPOLATION_AREA && in > out) {
        fill_area(x, scale);
    } else {
        fill_points(x, scale, interpolation);
    }
    return true;
}

static void axis_free(axis *x) {
    dp_free(x->first);
    dp_free(x->weights);
}

/* Across, elements of several bytes: an index and weights for every byte of a row. */
static bool axis_widen(axis *x, unsigned bytes) {
    if (bytes == 1)
        return true;
    uint32_t n = x->out * bytes;
    int32_t *first = dp_realloc(DP_MEM_MEDIA, NULL, n * sizeof *first);
    float *weights = dp_realloc(DP_MEM_MEDIA, NULL, (size_t)n * x->taps * sizeof *weights);
    for (uint32_t i = 0; first && weights && i < n; i++) {
        first[i] = x->first[i / bytes] * (int32_t)bytes + (int32_t)(i % bytes);
        for (uint32_t t = 0; t < x->taps; t++)
            weights[(size_t)t * n + i] = x->weights[(size_t)t * x->out + i / bytes];
    }
    axis_free(x);
    x->first = first;
    x->weights = weights;
    x->out = n;
    return first && weights;
}

typedef struct work {
    const dp_plane *src, *dst;
    const dp_rows *rows;
    axis down, across;
    _Atomic bool starved;
} work;

/* Rows [begin, end) of the result. */
static void resample_rows(void *context, size_t begin, size_t end) {
    work *w = context;
    size_t width = (size_t)w->src->columns * w->src->bytes, taps = w->down.taps;
    float *sums = dp_scratch(width * sizeof *sums + taps * (sizeof(uint8_t *) + sizeof(float)) + 64);
    if (!sums) {
        atomic_store(&w->starved, true);
        return;
    }
    const uint8_t **rows = (const uint8_t **)(sums + ((width + 1) & ~(size_t)1));
    float *weights = (float *)(rows + taps);
    for (size_t y = begin; y < end; y++) {
        uint8_t *out = w->dst->data + y * w->dst->pitch;
        const uint8_t *top = w->src->data + (size_t)w->down.first[y] * w->src->pitch;
        if (taps == 1 && w->across.taps == 1) {
            w->rows->pick(top, w->across.first, out, w->across.out);
            continue;
        }
        for (size_t t = 0; t < taps; t++) {
            rows[t] = top + t * w->src->pitch;
            weights[t] = w->down.weights[t * w->down.out + y];
        }
        w->rows->down(rows, weights, taps, sums, width);
        w->rows->across(sums, w->across.first, w->src->bytes, w->across.weights, w->across.taps, out, w->across.out);
    }
}

static void copy_rows(const dp_plane *src, const dp_plane *dst) {
    for (uint32_t y = 0; y < dst->rows; y++)
        memcpy(dst->data + y * dst->pitch, src->data + y * src->pitch, (size_t)dst->columns * dst->bytes);
}

dp_status dp_plane_resample(const dp_plane *src, const dp_plane *dst, int interpolation) {
    if (src->columns == dst->columns && src->rows == dst->rows) {
        copy_rows(src, dst);
        return DP_OK;
    }
    work w = {.src = src, .dst = dst, .rows = dp_rows_get()};
    bool made = axis_make(&w.down, src->rows, dst->rows, interpolation) &&
                axis_make(&w.across, src->columns, dst->columns, interpolation) && axis_widen(&w.across, src->bytes);
    if (made) {
        size_t row = (size_t)src->columns * src->bytes + (size_t)dst->columns * dst->bytes * 4;
        dp_pool_for(dst->rows, 65536 / row + 1, resample_rows, &w);
    }
    axis_free(&w.down);
    axis_free(&w.across);
    if (!made || atomic_load(&w.starved))
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory to resize a picture to %u x %u: free some", dst->columns,
                       dst->rows);
    return DP_OK;
}
