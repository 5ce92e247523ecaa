/* run.c - executes resampling: rows of the input are weighed down the depth and height, then along the width. */
#include "ops/resize/resize.h"

#include <string.h>

#include "base/cpu.h"
#include "ops/conv/kernels.h"

static dp_resize_fn along(void) {
#if defined(DP_MATH_HAVE_X86)
    if (dp_cpu_isa() == DP_ISA_AVX512)
        return dp_resize_along_avx512;
    if (dp_cpu_isa() == DP_ISA_AVX2)
        return dp_resize_along_avx2;
#endif
    return dp_resize_along_generic;
}

typedef struct job {
    dp_plan *plan;
    const dp_resize *resize;
    dp_resize_fn along;
    int64_t rows_per_tile, tiles_per_plane;
} job;

static float weight_of(const dp_resize *r, int axis, int64_t tap, int64_t o) {
    return dp_resize_weights(r, axis)[tap * r->axis[axis].out + o];
}

/* One row of the input, or the weighted sum of several. */
static const float *mixed_row(const job *j, int64_t n, int64_t c, int64_t z, int64_t y, float *sum, float *loaded) {
    const dp_resize *r = j->resize;
    const int64_t width = r->x.size[2], first_z = dp_resize_first(r, 0)[z], first_y = dp_resize_first(r, 1)[y];
    if (r->axis[0].copies && r->axis[1].copies)
        return dp_image_load(r->x.element, dp_image_at(j->plan, &r->x, n, c, first_z, first_y), r->x.stride[2], width,
                             loaded);
    const int64_t here = 0;
    memset(sum, 0, (size_t)width * sizeof *sum);
    for (int64_t kz = 0; kz < r->axis[0].taps; kz++)
        for (int64_t ky = 0; ky < r->axis[1].taps; ky++) {
            float weight = weight_of(r, 0, kz, z) * weight_of(r, 1, ky, y);
            if (weight == 0)
                continue;
            const float *row =
                dp_image_load(r->x.element, dp_image_at(j->plan, &r->x, n, c, first_z + kz, first_y + ky),
                              r->x.stride[2], width, loaded);
            dp_conv_current()->taps(sum, 0, row, 0, &here, &weight, 1, 1, (size_t)width, NULL);
        }
    return sum;
}

static void run_tile(void *context, size_t tile, void *scratch) {
    const job *j = context;
    const dp_resize *r = j->resize;
    const dp_image *y = &r->y;
    const dp_resize_axis *ax = &r->axis[2];
    int64_t plane = (int64_t)tile / j->tiles_per_plane, first = (int64_t)tile % j->tiles_per_plane * j->rows_per_tile;
    int64_t n = plane / y->channels, c = plane % y->channels;
    float *sum = scratch, *loaded = sum + r->x.size[2], *out = loaded + r->x.size[2];
    const bool copies = r->axis[0].copies && r->axis[1].copies;
    for (int64_t i = first, before = -1; i < y->size[0] * y->size[1] && i < first + j->rows_per_tile; i++) {
        int64_t oz = i / y->size[1], oy = i % y->size[1];
        int64_t source = copies ? dp_resize_first(r, 0)[oz] * r->x.size[1] + dp_resize_first(r, 1)[oy] : -1;
        if (source < 0 || source != before) /* else the row is as the one before */
            j->along(out, mixed_row(j, n, c, oz, oy, sum, loaded), dp_resize_first(r, 2),
                     ax->copies ? NULL : dp_resize_weights(r, 2), (size_t)ax->taps, (size_t)ax->out);
        before = source;
        dp_image_store(y->element, dp_image_at(j->plan, y, n, c, oz, oy), y->stride[2], y->size[2], out);
    }
}

dp_status dp_resize_run(dp_plan *plan) {
    enum { OUTPUTS = 8192 };
    job j = {.plan = plan, .resize = dp_plan_state(plan), .along = along()};
    const dp_image *y = &j.resize->y;
    if (!y->batch || !y->channels || !y->size[0] || !y->size[1] || !y->size[2])
        return DP_OK;
    int64_t rows = y->size[0] * y->size[1];
    j.rows_per_tile = OUTPUTS / y->size[2] + 1;
    j.tiles_per_plane = (rows + j.rows_per_tile - 1) / j.rows_per_tile;
    return dp_tiles_run((size_t)(y->batch * y->channels * j.tiles_per_plane), j.resize->scratch_bytes, run_tile, &j);
}
