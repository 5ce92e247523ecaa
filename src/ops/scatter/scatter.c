#include "ops/scatter/scatter.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/cpu.h"
#include "ops/scatter/kernels.h"
#include "runtime/pool.h"

enum { GRAIN = 16384 };

static dp_update_table table;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static void fill_table(void) {
#if defined(DP_MATH_HAVE_X86)
    if (dp_cpu_isa() == DP_ISA_AVX512) {
        dp_update_fill_avx512(&table);
        return;
    }
    if (dp_cpu_isa() == DP_ISA_AVX2) {
        dp_update_fill_avx2(&table);
        return;
    }
#endif
    dp_update_fill_generic(&table);
}

const dp_update_table *dp_update_current(void) {
    pthread_once(&once, fill_table);
    return &table;
}

dp_indices dp_indices_of(const dp_arg *arg, int64_t size) {
    dp_indices indices = {.slot = arg->slot, .size = size};
    dp_loop_begin(&indices.loop, arg->as.tensor->dims, arg->as.tensor->rank);
    dp_loop_add(&indices.loop, arg->as.tensor);
    dp_loop_merge(&indices.loop, false);
    indices.load = dp_elementwise_current()->load[arg->as.tensor->element][DP_COMPUTE_I64];
    return indices;
}

static void read_raw(const dp_plan *plan, const dp_indices *indices, int64_t at, size_t n, int64_t *out) {
    const dp_tensor *t = &plan->tensors[indices->slot].view;
    size_t width = dp_element_bytes(t->element);
    double raw[DP_TILE];
    const char *data = (const char *)dp_tensor_data(t) + indices->begin * (int64_t)width;
    indices->load(out, dp_loop_gather(&indices->loop, 0, data, width, at, n, raw), n);
}

void dp_indices_read(const dp_plan *plan, const dp_indices *indices, int64_t at, size_t n, int64_t *out) {
    read_raw(plan, indices, at, n, out);
    for (size_t i = 0; i < n; i++) {
        int64_t place = out[i] < 0 ? out[i] + indices->size : out[i];
        out[i] = place >= 0 && place < indices->size ? place : 0;
    }
}

typedef struct check {
    const dp_plan *plan;
    const dp_indices *indices;
    int64_t low;
    _Atomic int64_t first; /* place of an index outside */
} check;

static void check_range(void *context, size_t begin, size_t end) {
    check *c = context;
    int64_t tile[DP_TILE], size = c->indices->size;
    for (size_t at = begin, n; at < end; at += n) {
        n = end - at < DP_TILE ? end - at : DP_TILE;
        read_raw(c->plan, c->indices, (int64_t)at, n, tile);
        int64_t outside = 0;
        for (size_t i = 0; i < n; i++)
            outside |= (tile[i] < c->low) | (tile[i] >= size);
        for (size_t i = 0; i < n && outside; i++) {
            if (tile[i] >= c->low && tile[i] < size)
                continue;
            int64_t place = (int64_t)(at + i), known = atomic_load(&c->first);
            while (place < known && !atomic_compare_exchange_weak(&c->first, &known, place)) {
            }
            return;
        }
    }
}

dp_status dp_indices_check(const dp_plan *plan, const dp_indices *indices, int64_t low) {
    check c = {plan, indices, low, INT64_MAX};
    if (indices->loop.count)
        dp_pool_for((size_t)indices->loop.count, GRAIN, check_range, &c);
    int64_t place = atomic_load(&c.first), value;
    if (place == INT64_MAX)
        return DP_OK;
    read_raw(plan, indices, place, 1, &value);
    return dp_fail(DP_ERR_ARGUMENT, "%s: element %lld is %lld, but must be %lld to %lld",
                   plan->tensors[indices->slot].name, (long long)place, (long long)value, (long long)low,
                   (long long)indices->size - 1);
}

typedef struct copy {
    dp_plan *plan;
    dp_loop loop;
    int from, to;
} copy;

static void copy_range(void *context, size_t begin, size_t end) {
    const copy *c = context;
    size_t width = dp_element_bytes(c->plan->tensors[c->to].view.element);
    struct {
        _Alignas(16) char bytes[16 * DP_TILE];
    } buffer;
    for (size_t at = begin, n; at < end; at += n) {
        n = end - at < DP_TILE ? end - at : DP_TILE;
        dp_loop_scatter(&c->loop, 0, dp_plan_data(c->plan, c->to), width, (int64_t)at, n,
                        dp_loop_gather(&c->loop, 1, dp_plan_data(c->plan, c->from), width, (int64_t)at, n, &buffer));
    }
}

void dp_scatter_begin(dp_plan *plan, int from, int to) {
    const dp_tensor *a = &plan->tensors[from].view, *b = &plan->tensors[to].view;
    if (from == to || (dp_tensor_data(a) == dp_tensor_data(b) &&
                       memcmp(a->strides, b->strides, (size_t)a->rank * sizeof *a->strides) == 0))
        return;
    copy c = {.plan = plan, .from = from, .to = to};
    dp_loop_begin(&c.loop, b->dims, b->rank);
    dp_loop_add(&c.loop, b);
    dp_loop_add(&c.loop, a);
    dp_loop_merge(&c.loop, true);
    if (c.loop.count)
        dp_pool_for((size_t)c.loop.count, GRAIN, copy_range, &c);
}

dp_status dp_scatter_expect(const dp_arg *self, const dp_arg *out) {
    dp_status status = dp_element_expect(out, DP_EL_BIT(self->as.tensor->element));
    if (status == DP_OK)
        status = dp_shape_expect(out->as.tensor, out->name, self->as.tensor->dims, self->as.tensor->rank, "self's");
    return status == DP_OK ? dp_places_expect(out) : status;
}
