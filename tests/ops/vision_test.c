/* Boxes of feature maps, and gradients of images read at the places of a grid, against plain loops in double. */
#include "arguments.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const aclDataType types[] = {ACL_FLOAT, ACL_FLOAT16, ACL_BF16};

static double unit_of(aclDataType type) {
    return type == ACL_FLOAT ? 1e-5 : type == ACL_FLOAT16 ? 4e-3 : 3e-2;
}

static tensor any_tensor(aclDataType type, int rank, const int64_t *dims, double low, double high, layout how) {
    tensor t = make_tensor(type, rank, dims, how);
    for (int64_t i = 0; i < t.count; i++)
        set_element(&t, i, random_between(low, high));
    return t;
}

static double *copy_of(const tensor *t) {
    double *x = malloc(((size_t)t->count + 1) * sizeof *x);
    for (int64_t i = 0; i < t->count; i++)
        x[i] = get_element(t, i);
    return x;
}

static void near(const char *what, const tensor *t, int64_t i, double want, double scale) {
    double got = get_element(t, i);
    if (!(fabs(got - want) <= unit_of(t->type) * (fabs(want) + scale)))
        fail_msg("%s, type %d, element %lld: %.9g, but must be %.9g", what, t->type, (long long)i, got, want);
}

/* Boxes. */

enum { MAPS = 2, CHANNELS = 2, HEIGHT = 6, WIDTH = 7, BOXES = 5, DOWN = 3, RIGHT = 2 };

/* Share of element (y, x) in the value at a place, 0 outside. */
static double share_at(double y, double x, int64_t row, int64_t column) {
    if (y < -1 || y > HEIGHT || x < -1 || x > WIDTH)
        return 0;
    y = fmin(fmax(y, 0), HEIGHT - 1);
    x = fmin(fmax(x, 0), WIDTH - 1);
    return fmax(0, 1 - fabs(y - (double)row)) * fmax(0, 1 - fabs(x - (double)column));
}

/* Share of element (row, column) in bin (i, k) of a box. */
static double share_in(const double *box, double scale, bool half, int64_t ratio, int64_t i, int64_t k, int64_t row,
                       int64_t column) {
    double shift = half ? 0.5 : 0, y = box[2] * scale - shift, x = box[1] * scale - shift,
           h = box[4] * scale - shift - y, w = box[3] * scale - shift - x, sum = 0;
    if (!half)
        h = fmax(h, 1), w = fmax(w, 1);
    int64_t down = ratio ? ratio : (int64_t)ceil(h / DOWN), right = ratio ? ratio : (int64_t)ceil(w / RIGHT);
    for (int64_t a = 0; a < down; a++)
        for (int64_t b = 0; b < right; b++)
            sum += share_at(y + h / DOWN * ((double)i + ((double)a + 0.5) / (double)down),
                            x + w / RIGHT * ((double)k + ((double)b + 0.5) / (double)right), row, column);
    return sum / (double)(down * right);
}

static void one_alignment(aclDataType type, bool half, int64_t ratio) {
    static const double boxes[BOXES][5] = {
        {0, 2, 1, 9, 11}, {1, 0, 0, 3, 2.5}, {1, 4, 2, 13, 11}, {0, -3, -2, 5, 6}, {1, 3, 3, 3.5, 3.5}};
    const double scale = 0.5;
    tensor x = any_tensor(type, 4, (int64_t[]){MAPS, CHANNELS, HEIGHT, WIDTH}, -1, 1, OFFSET),
           rois = make_tensor(type, 2, (int64_t[]){BOXES, 5}, OFFSET),
           y = make_tensor(type, 4, (int64_t[]){BOXES, CHANNELS, DOWN, RIGHT}, OFFSET),
           g = any_tensor(type, 4, y.dims, -1, 1, OFFSET), dx = make_tensor(type, 4, x.dims, OFFSET);
    for (int64_t i = 0; i < BOXES * 5; i++)
        set_element(&rois, i, boxes[i / 5][i % 5]);
    arguments call = begin_call("ROIAlign"), back = begin_call("ROIAlignBackward");
    put(&call, "self", x.handle);
    put(&call, "rois", rois.handle);
    put_real(&call, "spatial_scale_value", scale);
    put_integer(&call, "pooled_height", DOWN);
    put_integer(&call, "pooled_width", RIGHT);
    put_integer(&call, "sample_num", ratio);
    put_integer(&call, "roi_end_mode", half);
    put(&call, "result", y.handle);
    must(&call);
    aclIntArray *shape = aclCreateIntArray(x.dims, 4);
    put(&back, "self", g.handle);
    put(&back, "rois", rois.handle);
    put(&back, "xdiff_shape", shape);
    put_real(&back, "spatial_scale_value", scale);
    put_integer(&back, "pooled_height", DOWN);
    put_integer(&back, "pooled_width", RIGHT);
    put_integer(&back, "sample_num", ratio);
    put_integer(&back, "roi_end_mode_value", half);
    put(&back, "result", dx.handle);
    must(&back);
    double *xs = copy_of(&x), *gs = copy_of(&g), *sum = calloc((size_t)x.count, sizeof *sum);
    for (int64_t i = 0; i < y.count; i++) {
        int64_t r = i / RIGHT / DOWN / CHANNELS, c = i / RIGHT / DOWN % CHANNELS;
        int64_t plane = ((int64_t)boxes[r][0] * CHANNELS + c) * HEIGHT * WIDTH;
        double want = 0;
        for (int64_t p = 0; p < HEIGHT * WIDTH; p++) {
            double share = share_in(boxes[r], scale, half, ratio, i / RIGHT % DOWN, i % RIGHT, p / WIDTH, p % WIDTH);
            want += share * xs[plane + p];
            sum[plane + p] += share * gs[i];
        }
        near("align", &y, i, want, 1);
    }
    for (int64_t i = 0; i < x.count; i++)
        near("gradient", &dx, i, sum[i], 1);
    assert_true(untouched_outside(&y) && untouched_outside(&dx));
    put_integer(&call, "roi_end_mode", 2);
    refused(&call, "0 or 1");
    put_integer(&call, "roi_end_mode", half);
    set_element(&rois, 5, 2);
    fails_when_run(&call, "box 1 is of batch 2, but must be 0 to 1");
    fails_when_run(&back, "box 1 is of batch 2");
    aclDestroyIntArray(shape);
    free(xs);
    free(gs);
    free(sum);
    free_tensor(&x);
    free_tensor(&rois);
    free_tensor(&y);
    free_tensor(&g);
    free_tensor(&dx);
}

static void boxes(void **state) {
    (void)state;
    for (int t = 0; t < 3; t++)
        for (int form = 0; form < 6; form++)
            one_alignment(types[t], form & 1, form / 2);
}

/* Grids. */

enum { LINEAR, NEAREST, CUBIC, ZEROS = 0, BORDER, REFLECTION };

typedef struct sampling {
    int space, interpolation, padding;
    bool align;
    int64_t batch, channels, in[3], out[3]; /* z, y, x */
} sampling;

static double padded(const sampling *s, double x, int64_t size) {
    if (s->padding == REFLECTION) {
        double low = s->align ? 0 : -0.5, high = s->align ? (double)size - 1 : (double)size - 0.5;
        while (high > low && (x < low || x > high))
            x = x < low ? 2 * low - x : 2 * high - x;
        if (high <= low)
            return 0;
    }
    return s->padding == ZEROS ? x : fmin(fmax(x, 0), (double)size - 1);
}

static double cubic(double x) {
    const double a = -0.75;
    x = fabs(x);
    return x <= 1 ? ((a + 2) * x - (a + 3)) * x * x + 1 : x < 2 ? a * (((x - 5) * x + 8) * x - 4) : 0;
}

/* Weight of element k at a place along an axis. */
static double weight_of(const sampling *s, double place, int64_t size, int64_t k) {
    double sum = 0;
    if (s->interpolation == CUBIC) {
        for (int tap = -1; tap < 3; tap++)
            if (rint(padded(s, floor(place) + tap, size)) == (double)k)
                sum += cubic(place - floor(place) - tap);
        return sum;
    }
    place = padded(s, place, size);
    return s->interpolation == NEAREST ? rint(place) == (double)k : fmax(0, 1 - fabs(place - (double)k));
}

static double place_of(const sampling *s, double coordinate, int64_t size) {
    return s->align ? (coordinate + 1) / 2 * ((double)size - 1) : ((coordinate + 1) * (double)size - 1) / 2;
}

/* Share of element p of the image at a grid point (x first). */
static double share_of(const sampling *s, const double *point, const int64_t *p) {
    double share = 1;
    for (int d = 3 - s->space; d < 3; d++)
        share *= weight_of(s, place_of(s, point[2 - d], s->in[d]), s->in[d], p[d]);
    return share;
}

/* What all channels together give at a point with these gradients. */
static double value_at(const sampling *s, const double *x, const double *g, int64_t g_step, const double *point) {
    const int64_t area = s->in[0] * s->in[1] * s->in[2];
    double sum = 0;
    for (int64_t i = 0; i < area; i++) {
        const int64_t p[] = {i / s->in[2] / s->in[1], i / s->in[2] % s->in[1], i % s->in[2]};
        double share = share_of(s, point, p);
        for (int64_t c = 0; c < s->channels && share != 0; c++)
            sum += share * x[c * area + i] * g[c * g_step];
    }
    return sum;
}

/* A place with a kink near it has no derivative that differences could find. */
static bool is_smooth(const sampling *s, const double *point) {
    for (int d = 3 - s->space; d < 3; d++) {
        double place = place_of(s, point[2 - d], s->in[d]), twice = 2 * place;
        if (fabs(twice - rint(twice)) < 0.02)
            return false;
    }
    return true;
}

static void one_grid(const sampling *s, aclDataType type) {
    const int64_t area = s->in[0] * s->in[1] * s->in[2], points = s->out[0] * s->out[1] * s->out[2],
                  first = 3 - s->space;
    int64_t x_dims[5] = {s->batch, s->channels}, y_dims[5] = {s->batch, s->channels}, grid_dims[5] = {s->batch};
    for (int d = 0; d < s->space; d++) {
        x_dims[2 + d] = s->in[first + d];
        y_dims[2 + d] = grid_dims[1 + d] = s->out[first + d];
    }
    grid_dims[1 + s->space] = s->space;
    tensor x = any_tensor(type, 2 + s->space, x_dims, -1, 1, STRIDED),
           g = any_tensor(type, 2 + s->space, y_dims, -1, 1, TRANSPOSED),
           grid = any_tensor(type, 2 + s->space, grid_dims, -1.6, 1.6, STRIDED),
           dx = make_tensor(type, 2 + s->space, x_dims, STRIDED),
           dgrid = make_tensor(type, 2 + s->space, grid_dims, TRANSPOSED);
    aclBoolArray *mask = aclCreateBoolArray((bool[]){true, true}, 2),
                 *one = aclCreateBoolArray((bool[]){false, true}, 2);
    arguments call = begin_call(s->space == 2 ? "GridSampler2DBackward" : "GridSampler3DBackward");
    put(&call, "grad_output", g.handle);
    put(&call, "input", x.handle);
    put(&call, "grid", grid.handle);
    put_integer(&call, "interpolation_mode", s->interpolation);
    put_integer(&call, "padding_mode", s->padding);
    put_integer(&call, "align_corners", s->align);
    put(&call, "output_mask", mask);
    put(&call, s->space == 2 ? "out0" : "dinput", dx.handle);
    put(&call, s->space == 2 ? "out1" : "dgrid", dgrid.handle);
    must(&call);
    double *xs = copy_of(&x), *gs = copy_of(&g), *grids = copy_of(&grid),
           *sum = calloc((size_t)x.count + 1, sizeof *sum);
    for (int64_t i = 0; i < s->batch * points; i++) {
        int64_t n = i / points;
        double *point = grids + i * s->space;
        const double *own = gs + n * s->channels * points + i % points;
        for (int64_t k = 0; k < area; k++) {
            double share =
                share_of(s, point, (const int64_t[]){k / s->in[2] / s->in[1], k / s->in[2] % s->in[1], k % s->in[2]});
            for (int64_t c = 0; c < s->channels; c++)
                sum[(n * s->channels + c) * area + k] += share * own[c * points];
        }
        for (int d = 0; d < s->space && is_smooth(s, point); d++) {
            const double h = 1e-5, was = point[d], *from = xs + n * s->channels * area;
            point[d] = was + h;
            double more = value_at(s, from, own, points, point);
            point[d] = was - h;
            double want = (more - value_at(s, from, own, points, point)) / (2 * h);
            point[d] = was;
            near("gradient of the grid", &dgrid, i * s->space + d, s->interpolation == NEAREST ? 0 : want, 20);
        }
    }
    for (int64_t i = 0; i < x.count; i++)
        near("gradient of the image", &dx, i, sum[i], 4);
    assert_true(untouched_outside(&dx) && untouched_outside(&dgrid));
    put(&call, "output_mask", one);
    put(&call, s->space == 2 ? "out0" : "dinput", NULL);
    must(&call);
    put(&call, s->space == 2 ? "out1" : "dgrid", NULL);
    refused(&call, "is NULL, but is asked for");
    aclDestroyBoolArray(mask);
    aclDestroyBoolArray(one);
    free(xs);
    free(gs);
    free(grids);
    free(sum);
    free_tensor(&x);
    free_tensor(&g);
    free_tensor(&grid);
    free_tensor(&dx);
    free_tensor(&dgrid);
}

static void grids(void **state) {
    (void)state;
    for (int space = 2; space < 4; space++)
        for (int interpolation = 0; interpolation < (space == 2 ? 3 : 2); interpolation++)
            for (int padding = 0; padding < 3; padding++)
                for (int align = 0; align < 2; align++) {
                    sampling s = {space,
                                  interpolation,
                                  padding,
                                  align,
                                  2,
                                  2,
                                  {space == 3 ? 3 : 1, 5, 4},
                                  {space == 3 ? 2 : 1, 3, 5}};
                    one_grid(&s, ACL_FLOAT);
                    if (padding == ZEROS)
                        one_grid(&s, types[1 + align]);
                }
    sampling none = {2, LINEAR, ZEROS, false, 2, 2, {1, 3, 4}, {1, 0, 5}},
             single = {2, LINEAR, REFLECTION, true, 1, 1, {1, 1, 4}, {1, 3, 3}};
    one_grid(&none, ACL_FLOAT);
    one_grid(&single, ACL_FLOAT);
}

/* Convolutions whose taps are moved. */

static double bilinear(const double *plane, int64_t height, int64_t width, double y, double x) {
    double sum = 0;
    for (int64_t p = 0; p < height * width; p++)
        sum += fmax(0, 1 - fabs(y - (double)(p / width))) * fmax(0, 1 - fabs(x - (double)(p % width))) * plane[p];
    return sum;
}

static void one_deform(aclDataType type, bool modulated, bool has_bias, bool four) {
    enum {
        N = 2,
        C = 4,
        H = 5,
        W = 6,
        O = 6,
        GROUPS = 2,
        MOVED = 2,
        KH = 3,
        KW = 2,
        OH = 3,
        OW = 4,
        TAPS = KH * KW,
        PARTS = MOVED * TAPS
    };
    static const int64_t stride[] = {1, 1, 2, 1}, pads[] = {1, 1, 0, 1}, dilation[] = {1, 1, 1, 2}, kernel[] = {KH, KW};
    tensor x = any_tensor(type, 4, (int64_t[]){N, C, H, W}, -1, 1, OFFSET),
           w = any_tensor(type, 4, (int64_t[]){O, C / GROUPS, KH, KW}, -1, 1, OFFSET),
           moves = any_tensor(type, 4, (int64_t[]){N, PARTS * (modulated ? 3 : 2), OH, OW + 1}, -1.5, 1.5, OFFSET),
           bias = any_tensor(type, 1, (int64_t[]){O}, -1, 1, OFFSET),
           y = make_tensor(type, 4, (int64_t[]){N, O, OH, OW + 1}, OFFSET),
           windows = make_tensor(type, 4, (int64_t[]){N, C, OH * KH, (OW + 1) * KW}, OFFSET);
    const int64_t width = OW + 1, positions = OH * width;
    aclIntArray *lists[] = {aclCreateIntArray(kernel, 2), aclCreateIntArray(stride + (four ? 0 : 2), four ? 4 : 2),
                            aclCreateIntArray(pads, 4), aclCreateIntArray(dilation + (four ? 0 : 2), four ? 4 : 2)};
    arguments call = begin_call("DeformableConv2d");
    put(&call, "input", x.handle);
    put(&call, "weight", w.handle);
    put(&call, "offset", moves.handle);
    put(&call, "biasOptional", has_bias ? bias.handle : NULL);
    put(&call, "kernel_size", lists[0]);
    put(&call, "stride", lists[1]);
    put(&call, "padding", lists[2]);
    put(&call, "dilation", lists[3]);
    put_integer(&call, "groups", GROUPS);
    put_integer(&call, "deformable_groups", MOVED);
    put_integer(&call, "modulated", modulated);
    put(&call, "conv_output", y.handle);
    put(&call, "deformable_offset", windows.handle);
    must(&call);
    double *xs = copy_of(&x), *ms = copy_of(&moves);
    for (int64_t i = 0; i < y.count; i++) {
        int64_t n = i / positions / O, o = i / positions % O, p = i % positions, group = o / (O / GROUPS);
        double sum = has_bias ? get_element(&bias, o) : 0;
        for (int64_t k = 0; k < C / GROUPS * TAPS; k++) {
            int64_t c = group * (C / GROUPS) + k / TAPS, tap = k % TAPS, moved = c / (C / MOVED) * TAPS + tap;
            const double *own = ms + (n * PARTS * (modulated ? 3 : 2) + moved) * positions + p;
            double down = (double)(p / width * 2 - 1 + tap / KW) + own[PARTS * positions],
                   right = (double)(p % width + tap % KW * 2) + own[0];
            double value =
                bilinear(xs + (n * C + c) * H * W, H, W, down, right) * (modulated ? own[2 * PARTS * positions] : 1);
            int64_t at = ((n * C + c) * OH * KH + p / width * KH + tap / KW) * width * KW + p % width * KW + tap % KW;
            near("window", &windows, at, value, 1);
            sum += value * get_element(&w, (o * (C / GROUPS) + k / TAPS) * TAPS + tap);
        }
        near("deformed", &y, i, sum, 4);
    }
    assert_true(untouched_outside(&y) && untouched_outside(&windows));
    put(&call, "kernel_size", lists[2]);
    refused(&call, "must be the last two dimensions of weight, 3 and 2");
    put(&call, "kernel_size", lists[0]);
    put_integer(&call, "modulated", !modulated);
    refused(&call, "offset");
    for (int i = 0; i < 4; i++)
        aclDestroyIntArray(lists[i]);
    free(xs);
    free(ms);
    free_tensor(&x);
    free_tensor(&w);
    free_tensor(&moves);
    free_tensor(&bias);
    free_tensor(&y);
    free_tensor(&windows);
}

static void deformed(void **state) {
    (void)state;
    for (int t = 0; t < 3; t++)
        for (int form = 0; form < 8; form++)
            one_deform(types[t], form & 1, form & 2, form & 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(boxes), cmocka_unit_test(grids), cmocka_unit_test(deformed)};
    return cmocka_run_group_tests(tests, test_setup, test_teardown);
}
