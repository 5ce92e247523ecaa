#include "ops/scatter/places.h"

#include <string.h>

#include "base/memory.h"
#include "runtime/pool.h"

enum { GRAIN = 16384 };

typedef struct job {
    dp_plan *plan;
    const dp_places *s;
    int64_t *offsets; /* in self, of all places; -1: left out */
    double *factors;  /* by_frequency */
} job;

static void resolve_range(void *context, size_t begin, size_t end) {
    job *j = context;
    const dp_places *s = j->s;
    int64_t tile[DP_TILE];
    for (size_t at = begin, n; at < end; at += n) {
        n = end - at < DP_TILE ? end - at : DP_TILE;
        int64_t *to = j->offsets + at;
        for (size_t i = 0; i < n; i++)
            to[i] = dp_loop_offset(&s->places, 1, (int64_t)(at + i));
        for (int k = 0; k < s->n_indices; k++) {
            dp_indices_read(j->plan, &s->indices[k], (int64_t)at, n, tile);
            for (size_t i = 0; i < n; i++) {
                to[i] += s->flat ? dp_loop_offset(&s->whole, 0, tile[i]) : tile[i] * s->stride[k];
                to[i] = tile[i] == s->padding ? -1 : to[i];
            }
        }
    }
}

/* Copies between self's slice at `own` and the other's at `other`, elements [begin, end) of the slice. */
static void move_slice(const job *j, int64_t own, int64_t other, int64_t begin, int64_t end) {
    const dp_places *s = j->s;
    int64_t width = (int64_t)dp_element_bytes(j->plan->tensors[s->self].view.element);
    char *self = (char *)dp_plan_data(j->plan, s->self) + own * width;
    char *out = (char *)dp_plan_data(j->plan, s->other) + other * width;
    struct {
        _Alignas(16) char bytes[16 * DP_TILE];
    } buffer;
    for (int64_t at = begin, n; at < end; at += n) {
        n = end - at < DP_TILE ? end - at : DP_TILE;
        dp_loop_scatter(&s->slice, 1, out, (size_t)width, at, (size_t)n,
                        dp_loop_gather(&s->slice, 0, self, (size_t)width, at, (size_t)n, &buffer));
    }
}

/* Units are elements of places after places. */
static void read_range(void *context, size_t begin, size_t end) {
    const job *j = context;
    int64_t count = j->s->slice.count;
    for (int64_t unit = (int64_t)begin, next; unit < (int64_t)end; unit = next) {
        int64_t place = unit / count, first = place * count;
        next = first + count < (int64_t)end ? first + count : (int64_t)end;
        move_slice(j, j->offsets[place], dp_loop_offset(&j->s->places, 0, place), unit - first, next - first);
    }
}

/* Slices of one element. */
static void read_elements(void *context, size_t begin, size_t end) {
    const job *j = context;
    const dp_places *s = j->s;
    size_t width = dp_element_bytes(j->plan->tensors[s->self].view.element);
    const char *self = dp_plan_data(j->plan, s->self);
    struct {
        _Alignas(16) char bytes[16 * DP_TILE];
    } buffer;
    for (size_t at = begin, n; at < end; at += n) {
        n = end - at < DP_TILE ? end - at : DP_TILE;
        for (size_t i = 0; i < n; i++)
            memcpy(buffer.bytes + i * width, self + j->offsets[at + i] * (int64_t)width, width);
        dp_loop_scatter(&s->places, 0, dp_plan_data(j->plan, s->other), width, (int64_t)at, n, &buffer);
    }
}

/* Elements [begin, end) of all slices, in the order of places: no two workers write the same element. */
static void write_range(void *context, size_t begin, size_t end) {
    const job *j = context;
    const dp_places *s = j->s;
    int64_t width = (int64_t)dp_element_bytes(j->plan->tensors[s->self].view.element);
    char *self = dp_plan_data(j->plan, s->self);
    const char *other = s->other < 0 ? (const char *)s->scalar : dp_plan_data(j->plan, s->other);
    bool row = s->slice.rank == 1 && (s->slice.strides[0][0] == 1 || s->slice.count == 1);
    int64_t offsets[DP_TILE];
    struct {
        _Alignas(16) char bytes[16 * DP_TILE];
    } buffer;
    for (size_t at = begin, n; at < end; at += n) {
        n = end - at < DP_TILE ? end - at : DP_TILE;
        for (size_t i = 0; i < n && !row; i++)
            offsets[i] = dp_loop_offset(&s->slice, 0, (int64_t)(at + i));
        int64_t shift = row ? (int64_t)at * s->slice.strides[0][0] : 0;
        for (int64_t place = 0; place < s->places.count; place++) {
            if (j->offsets[place] < 0)
                continue;
            dp_factor factor = s->factor;
            if (j->factors)
                factor.real = j->factors[place];
            const void *from = dp_loop_gather(&s->slice, 1, other + dp_loop_offset(&s->places, 0, place) * width,
                                              (size_t)width, (int64_t)at, n, &buffer);
            char *to = self + (j->offsets[place] + shift) * width;
            if (row)
                s->row(to, from, n, factor);
            else
                s->at(to, offsets, from, n, factor);
        }
    }
}

/* Slices of one element: places themselves are the elements. */
static void write_elements(const job *j) {
    const dp_places *s = j->s;
    int64_t width = (int64_t)dp_element_bytes(j->plan->tensors[s->self].view.element);
    const char *other = s->other < 0 ? (const char *)s->scalar : dp_plan_data(j->plan, s->other);
    struct {
        _Alignas(16) char bytes[16 * DP_TILE];
    } buffer;
    for (int64_t at = 0, n; at < s->places.count; at += n) {
        n = s->places.count - at < DP_TILE ? s->places.count - at : DP_TILE;
        s->at(dp_plan_data(j->plan, s->self), j->offsets + at,
              dp_loop_gather(&s->places, 0, other, (size_t)width, at, (size_t)n, &buffer), (size_t)n, s->factor);
    }
}

static void zero_range(void *context, size_t begin, size_t end) {
    const job *j = context;
    static const uint64_t zeros[2 * DP_TILE];
    for (size_t at = begin, n; at < end; at += n) {
        n = end - at < DP_TILE ? end - at : DP_TILE;
        dp_loop_scatter(&j->s->whole, 0, dp_plan_data(j->plan, j->s->self),
                        dp_element_bytes(j->plan->tensors[j->s->self].view.element), (int64_t)at, n, zeros);
    }
}

/* factor / number of places with the same index. */
static void count_frequencies(const job *j, uint32_t *counts) {
    const dp_places *s = j->s;
    int64_t stride = s->stride[0] ? s->stride[0] : 1;
    for (int pass = 0; pass < 2; pass++)
        for (int64_t place = 0; place < s->places.count; place++) {
            if (j->offsets[place] < 0)
                continue;
            uint32_t *count = &counts[j->offsets[place] / stride];
            if (pass)
                j->factors[place] = 1.0 / *count;
            else
                ++*count;
        }
}

static dp_status check_indices(const dp_plan *plan, const dp_places *s) {
    dp_status status = DP_OK;
    for (int k = 0; k < s->n_indices && status == DP_OK; k++)
        status = dp_indices_check(plan, &s->indices[k], s->low < 0 ? -s->indices[k].size : 0);
    return status;
}

static void write_places(job *j) {
    const dp_places *s = j->s;
    if (s->slice.count == 1 && !j->factors && s->padding < 0)
        write_elements(j);
    else
        dp_pool_for((size_t)s->slice.count, (size_t)(GRAIN / (s->places.count + 1) + 64), write_range, j);
}

/* How many elements of the mask are true, and where in self each begins (offsets NULL: only the number). */
static int64_t read_mask(const dp_plan *plan, const dp_places *s, int64_t *offsets) {
    const dp_tensor *mask = &plan->tensors[s->mask].view;
    uint8_t buffer[DP_TILE];
    int64_t found = 0;
    for (int64_t at = 0, n; at < s->in_mask.count; at += n) {
        n = s->in_mask.count - at < DP_TILE ? s->in_mask.count - at : DP_TILE;
        const uint8_t *tile = dp_loop_gather(&s->in_mask, 0, dp_tensor_data(mask), 1, at, (size_t)n, buffer);
        for (int64_t i = 0; i < n; i++) {
            if (!tile[i])
                continue;
            if (offsets)
                offsets[found] = dp_loop_offset(&s->in_mask, 1, at + i);
            found++;
        }
    }
    return found;
}

static dp_status count_mask(const dp_plan *plan, dp_places *s) {
    int64_t found = read_mask(plan, s, NULL);
    if (s->wanted >= 0 && found != s->wanted)
        return dp_fail(DP_ERR_ARGUMENT, "%s: %lld elements of the mask are true, but there is room for %lld",
                       plan->tensors[s->mask].name, (long long)found, (long long)s->wanted);
    s->places.dims[0] = s->places.count = found;
    return DP_OK;
}

static dp_status run(dp_plan *plan) {
    job j = {.plan = plan, .s = dp_plan_state(plan)};
    const dp_places *s = j.s;
    dp_status status = s->masked ? count_mask(plan, dp_plan_state(plan)) : check_indices(plan, s);
    size_t places = (size_t)s->places.count, count = places * (size_t)s->slice.count;
    if (status != DP_OK)
        return status;
    if (s->from < 0 && s->whole.count)
        dp_pool_for((size_t)s->whole.count, GRAIN, zero_range, &j);
    else if (s->from >= 0)
        dp_scatter_begin(plan, s->from, s->self);
    if (!count)
        return DP_OK;
    size_t rows = s->by_frequency ? (size_t)s->indices[0].size : 0;
    char *block = dp_alloc(DP_MEM_RUNTIME, places * (s->by_frequency ? 16 : 8) + rows * sizeof(uint32_t));
    if (!block)
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for the places of %zu indices: free some", places);
    j.offsets = (int64_t *)block;
    if (s->masked)
        read_mask(plan, s, j.offsets);
    else
        dp_pool_for(places, GRAIN / 4, resolve_range, &j);
    if (s->by_frequency) {
        j.factors = (double *)(block + places * 8);
        count_frequencies(&j, (uint32_t *)(block + places * 16));
    }
    if (s->write)
        write_places(&j);
    else if (s->slice.count == 1)
        dp_pool_for(places, GRAIN, read_elements, &j);
    else
        dp_pool_for(count, GRAIN, read_range, &j);
    dp_free(block);
    return DP_OK;
}

dp_status dp_places_new(const dp_operator_call *call, const dp_arg *self, const dp_arg *other, dp_plan **out_plan,
                        dp_places **out_places) {
    dp_plan *plan = dp_plan_new(call, run, sizeof(dp_places));
    if (!plan)
        return DP_ERR_OUT_OF_MEMORY;
    dp_places *s = dp_plan_state(plan);
    s->self = s->from = self->slot;
    s->other = other ? other->slot : -1;
    s->padding = -1;
    s->low = -1;
    s->factor = (dp_factor){1, 1};
    plan->path = "slices";
    *out_plan = plan;
    *out_places = s;
    return DP_OK;
}

dp_status dp_places_write(const dp_arg *self, dp_update update, dp_plan **plan) {
    dp_places *s = dp_plan_state(*plan);
    int element = self->as.tensor->element;
    s->write = true;
    s->at = dp_update_current()->at[update][element];
    s->row = dp_update_current()->row[update][element];
    if (s->at)
        return DP_OK;
    dp_plan_free(*plan);
    return dp_fail(DP_ERR_UNSUPPORTED, "%s: elements of type %s cannot be accumulated", self->name,
                   dp_element_name(element));
}

dp_status dp_places_write_scalar(const dp_arg *self, const dp_arg *value, dp_plan **plan) {
    dp_places *s = dp_plan_state(*plan);
    int element = self->as.tensor->element;
    bool real = dp_element_is_float(element);
    dp_convert_fn store = dp_elementwise_current()->store[element][real ? DP_COMPUTE_F64 : DP_COMPUTE_I64];
    if (!store) {
        dp_plan_free(*plan);
        return dp_fail(DP_ERR_UNSUPPORTED, "%s: elements of type %s are not offered", value->name,
                       dp_element_name(element));
    }
    store(s->scalar, real ? (const void *)&value->as.scalar->real : (const void *)&value->as.scalar->integer, 1);
    return dp_places_write(self, DP_UPDATE_SET, plan);
}
