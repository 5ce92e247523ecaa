/*
 * sample.c - choices: masks, permutations, categories. Mappings:
 *   dropout_mask(shape, p, seed, offset, extra) -> mask    bit i % 8 of byte i / 8 is 1 (keep) with probability 1 - p
 *   dropout_apply(self, mask, p) -> out                    self / (1 - p) where the bit is 1, else 0
 *   dropout(self, noise_shape, p, seed, offset) -> out, mask   both
 *   randperm(n, seed, offset) -> out                       0 to n - 1 in the order of 64 random bits each
 *   multinomial(self, samples, replacement, seed, offset, extra) -> out   categories of each line of weights
 * Masks have a bit for every element and a multiple of 128 of them; the bits past the elements are 0.
 */
#include "ops/random/random.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/memory.h"
#include "ops/loop.h"
#include "ops/sort/kernels.h"
#include "runtime/pool.h"

enum { MASK_ALIGN = 128, GRAIN = 4 };

typedef struct state {
    dp_seed seed;
    double p;
    int64_t count, bytes; /* of elements, of the mask */
    dp_loop loop;         /* dropout: views 0 out, 1 self; multinomial: lines, views 0 out, 1 self */
    dp_loop line;         /* along the categories; view 0 self */
    int out, self, mask;
    int64_t samples, out_step;
    bool replacement, generate;
    dp_convert_fn load, store;
} state;

typedef struct job {
    dp_plan *plan;
    const state *s;
    dp_seed seed;
    const void *order;
    _Atomic bool out_of_memory;
    _Atomic int64_t bad_line;
} job;

/* Masks: a unit is a tile of elements. */

static void make_mask(const job *j, int64_t at, int64_t n, uint8_t *mask) {
    uint32_t words[DP_TILE];
    double keep = 1 - j->s->p;
    dp_words(&j->seed, at, (size_t)n, words);
    memset(mask, 0, (size_t)(n + 7) / 8);
    for (int64_t i = 0; i < n; i++)
        mask[i / 8] |= (uint8_t)(((double)words[i] * 0x1p-32 < keep) << i % 8);
}

static void apply_mask(const job *j, int64_t at, size_t n, const uint8_t *mask) {
    const state *s = j->s;
    size_t width = dp_element_bytes(j->plan->tensors[s->out].view.element);
    double x[DP_TILE], raw[DP_TILE], scale = s->p < 1 ? 1 / (1 - s->p) : 0;
    s->load(x, dp_loop_gather(&s->loop, 1, dp_plan_data(j->plan, s->self), width, at, n, raw), n);
    for (size_t i = 0; i < n; i++)
        x[i] = mask[i / 8] >> i % 8 & 1 ? x[i] * scale : 0;
    s->store(raw, x, n);
    dp_loop_scatter(&s->loop, 0, dp_plan_data(j->plan, s->out), width, at, n, raw);
}

static void run_tiles(void *context, size_t begin, size_t end) {
    const job *j = context;
    const state *s = j->s;
    uint8_t *mask = dp_plan_data(j->plan, s->mask);
    for (size_t which = begin; which < end; which++) {
        int64_t at = (int64_t)which * DP_TILE, n = s->count - at < DP_TILE ? s->count - at : DP_TILE;
        if (s->generate)
            make_mask(j, at, n, mask + at / 8);
        if (s->out >= 0)
            apply_mask(j, at, (size_t)n, mask + at / 8);
    }
}

static dp_status run_mask(dp_plan *plan) {
    job j = {.plan = plan, .s = dp_plan_state(plan)};
    const state *s = j.s;
    j.seed = dp_seed_read(plan, &s->seed);
    if (s->count)
        dp_pool_for((size_t)(s->count + DP_TILE - 1) / DP_TILE, GRAIN, run_tiles, &j);
    int64_t used = (s->count + 7) / 8;
    if (s->generate && used < s->bytes)
        memset((char *)dp_plan_data(plan, s->mask) + used, 0, (size_t)(s->bytes - used));
    return DP_OK;
}

/* The mask as an argument: contiguous bytes for `count` elements. */
static dp_status check_mask(const dp_arg *mask, int64_t count, state *s) {
    const dp_tensor *t = mask->as.tensor;
    int64_t least = (count + MASK_ALIGN - 1) / MASK_ALIGN * (MASK_ALIGN / 8);
    dp_status status = dp_element_expect(mask, DP_EL_BIT(DP_U8));
    if (status == DP_OK && (dp_tensor_count(t) < least || !dp_tensor_is_contiguous(t)))
        status = dp_fail(DP_ERR_ARGUMENT,
                         "%s has %lld %sbytes, but must have at least %lld contiguous ones: a bit for each "
                         "of %lld elements, rounded up to 128",
                         mask->name, (long long)dp_tensor_count(t), dp_tensor_is_contiguous(t) ? "" : "scattered ",
                         (long long)least, (long long)count);
    s->mask = mask->slot;
    s->bytes = dp_tensor_count(t);
    s->count = count;
    return status;
}

static dp_status check_probability(const dp_arg *arg, state *s) {
    s->p = dp_arg_real(arg, 0);
    if (s->p >= 0 && s->p <= 1)
        return DP_OK;
    return dp_fail(DP_ERR_ARGUMENT, "%s is %g, but must be 0 to 1", arg->name, s->p);
}

static dp_status check_pair(const dp_operator_call *call, const dp_arg *self, const dp_arg *out, state *s) {
    const dp_tensor *t = self->as.tensor;
    dp_status status = dp_element_expect(self, call->op->elements);
    if (status == DP_OK)
        status = dp_element_expect(out, DP_EL_BIT(t->element));
    if (status == DP_OK)
        status = dp_shape_expect(out->as.tensor, out->name, t->dims, t->rank, "self's");
    if (status == DP_OK)
        status = dp_places_expect(out);
    if (status != DP_OK)
        return status;
    s->self = self->slot;
    s->out = out->slot;
    s->load = dp_elementwise_current()->load[t->element][DP_COMPUTE_F64];
    s->store = dp_elementwise_current()->store[t->element][DP_COMPUTE_F64];
    dp_loop_begin(&s->loop, t->dims, t->rank);
    dp_loop_add(&s->loop, out->as.tensor);
    dp_loop_add(&s->loop, t);
    dp_loop_merge(&s->loop, false);
    return DP_OK;
}

static dp_status give(const dp_operator_call *call, dp_status (*run)(dp_plan *), const state *s, const char *path,
                      dp_plan **out_plan) {
    dp_plan *plan = dp_plan_new(call, run, sizeof *s);
    if (!plan)
        return DP_ERR_OUT_OF_MEMORY;
    memcpy(dp_plan_state(plan), s, sizeof *s);
    plan->path = path;
    *out_plan = plan;
    return DP_OK;
}

static dp_status dropout_mask(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *shape = &call->in[0];
    state s = {.out = -1, .generate = true};
    int64_t count = 1;
    for (int64_t i = 0; i < shape->count; i++)
        if (shape->as.integers[i] < 0 || __builtin_mul_overflow(count, shape->as.integers[i], &count))
            return dp_fail(DP_ERR_ARGUMENT,
                           "%s[%lld] is %lld, but sizes must be at least 0 and make less than 2^63 elements",
                           shape->name, (long long)i, (long long)shape->as.integers[i]);
    if (count > INT64_MAX - MASK_ALIGN)
        return dp_fail(DP_ERR_ARGUMENT, "%s makes %lld elements, which is past any memory", shape->name,
                       (long long)count);
    dp_status status = check_probability(&call->in[1], &s);
    if (status == DP_OK)
        status = dp_seed_take(&call->in[2], &call->in[3], &call->in[4], &s.seed);
    if (status == DP_OK)
        status = check_mask(&call->out[0], count, &s);
    return status == DP_OK ? give(call, run_mask, &s, "philox", out_plan) : status;
}

static dp_status dropout_apply(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *self = &call->in[0];
    state s = {.seed = {.seed_slot = -1, .offset_slot = -1}};
    dp_status status = check_probability(&call->in[2], &s);
    if (status == DP_OK)
        status = check_pair(call, self, &call->out[0], &s);
    if (status == DP_OK)
        status = check_mask(&call->in[1], dp_tensor_count(self->as.tensor), &s);
    return status == DP_OK ? give(call, run_mask, &s, "bits", out_plan) : status;
}

static dp_status dropout(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *self = &call->in[0], *noise = &call->in[1];
    state s = {.generate = true};
    if (noise->kind != DP_ARG_ABSENT)
        return dp_fail(DP_ERR_UNSUPPORTED, "%s is given, but only NULL is offered: every element has its own bit",
                       noise->name);
    dp_status status = check_probability(&call->in[2], &s);
    if (status == DP_OK)
        status = dp_seed_take(&call->in[3], &call->in[4], NULL, &s.seed);
    if (status == DP_OK)
        status = check_pair(call, self, &call->out[0], &s);
    if (status == DP_OK)
        status = check_mask(&call->out[1], dp_tensor_count(self->as.tensor), &s);
    return status == DP_OK ? give(call, run_mask, &s, "philox", out_plan) : status;
}

/* Permutations. */

typedef struct keys {
    dp_seed seed;
    int64_t n;
    uint32_t *high, *low; /* of the 64 random bits of each place */
} keys;

static void make_keys(void *context, size_t begin, size_t end) {
    const keys *k = context;
    uint32_t words[2 * DP_TILE];
    for (size_t which = begin; which < end; which++) {
        int64_t at = (int64_t)which * DP_TILE, n = k->n - at < DP_TILE ? k->n - at : DP_TILE;
        dp_words(&k->seed, 2 * at, (size_t)(2 * n), words);
        for (int64_t i = 0; i < n; i++) {
            k->low[at + i] = words[2 * i];
            k->high[at + i] = words[2 * i + 1];
        }
    }
}

/* The radix sort of the upper halves costs a third of one of 64 bits; few places share one, those are put in order
 * here. */
static void order_by_low(const keys *k, uint32_t *order) {
    for (int64_t i = 1; i < k->n; i++) {
        uint32_t own = order[i];
        int64_t at = i;
        for (; at > 0 && k->high[order[at - 1]] == k->high[own] && k->low[order[at - 1]] > k->low[own]; at--)
            order[at] = order[at - 1];
        order[at] = own;
    }
}

static void write_order(const dp_plan *plan, const state *s, const uint32_t *order) {
    size_t width = dp_element_bytes(plan->tensors[s->out].view.element);
    int64_t values[DP_TILE], raw[DP_TILE];
    for (int64_t at = 0, n; at < s->count; at += n) {
        n = s->count - at < DP_TILE ? s->count - at : DP_TILE;
        for (int64_t i = 0; i < n; i++)
            values[i] = order[at + i];
        s->store(raw, values, (size_t)n);
        dp_loop_scatter(&s->loop, 0, dp_tensor_data(&plan->tensors[s->out].view), width, at, (size_t)n, raw);
    }
}

static dp_status run_randperm(dp_plan *plan) {
    const state *s = dp_plan_state(plan);
    size_t n = (size_t)s->count, scratch_bytes = dp_sort_scratch_bytes(n, false);
    if (!n)
        return DP_OK;
    uint32_t *block = dp_alloc(DP_MEM_RUNTIME, 3 * n * sizeof *block), *order = block + 2 * n;
    keys k = {dp_seed_read(plan, &s->seed), s->count, block, block + n};
    if (block)
        dp_pool_for((n + DP_TILE - 1) / DP_TILE, GRAIN, make_keys, &k);
    void *scratch = block ? dp_sort_room(scratch_bytes) : NULL;
    if (!scratch) {
        dp_free(block);
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for a permutation of %zu: free some", n);
    }
    dp_sort_line line = {k.high, n, false, 32};
    dp_sort_order(&line, order, scratch);
    dp_sort_room_end(scratch, scratch_bytes);
    order_by_low(&k, order);
    write_order(plan, s, order);
    dp_free(block);
    return DP_OK;
}

static dp_status randperm(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *out = &call->out[0];
    const dp_tensor *t = out->as.tensor;
    state s = {.count = dp_arg_integer(&call->in[0], 0), .out = out->slot};
    if (s.count < 0 || s.count > UINT32_MAX)
        return dp_fail(DP_ERR_ARGUMENT, "%s is %lld, but must be 0 to 2^32 - 1", call->in[0].name, (long long)s.count);
    dp_status status = dp_element_expect(out, DP_EL_FLOATS | (DP_EL_INTS & ~DP_EL_BIT(DP_U64)));
    if (status == DP_OK)
        status = dp_shape_expect(t, out->name, &s.count, 1, "a place for each number");
    if (status == DP_OK)
        status = dp_places_expect(out);
    if (status == DP_OK)
        status = dp_seed_take(&call->in[1], &call->in[2], NULL, &s.seed);
    if (status != DP_OK)
        return status;
    s.store = dp_elementwise_current()->store[t->element][DP_COMPUTE_I64];
    dp_loop_begin(&s.loop, t->dims, 1);
    dp_loop_add(&s.loop, t);
    return give(call, run_randperm, &s, "philox, radix", out_plan);
}

/* Categories. */

/* The weights of a line, and their sum; false when they are no weights. */
static bool read_weights(const job *j, int64_t line, double *weights, double *out_sum, int64_t *out_used) {
    const state *s = j->s;
    size_t width = dp_element_bytes(j->plan->tensors[s->self].view.element);
    const char *from =
        (const char *)dp_plan_data(j->plan, s->self) + dp_loop_offset(&s->loop, 1, line) * (int64_t)width;
    double raw[DP_TILE], sum = 0;
    int64_t used = 0;
    for (int64_t at = 0, n; at < s->line.count; at += n) {
        n = s->line.count - at < DP_TILE ? s->line.count - at : DP_TILE;
        s->load(weights + at, dp_loop_gather(&s->line, 0, from, width, at, (size_t)n, raw), (size_t)n);
    }
    for (int64_t c = 0; c < s->line.count; c++) {
        if (!(weights[c] >= 0) || isinf(weights[c]))
            return false;
        used += weights[c] > 0;
        sum += weights[c];
    }
    *out_sum = sum;
    *out_used = used;
    return sum > 0 && !isinf(sum) && (s->replacement || used >= s->samples);
}

static void store_sample(const job *j, int64_t line, int64_t sample, int64_t category) {
    const state *s = j->s;
    size_t width = dp_element_bytes(j->plan->tensors[s->out].view.element);
    s->store((char *)dp_plan_data(j->plan, s->out) +
                 (dp_loop_offset(&s->loop, 0, line) + sample * s->out_step) * (int64_t)width,
             &category, 1);
}

/* 53 bits for number `index`. */
static double unit_at(const dp_seed *seed, int64_t index, bool above_zero) {
    uint32_t words[4];
    dp_words(seed, 2 * index & ~(int64_t)3, 4, words);
    const uint32_t *own = words + (index & 1) * 2;
    return above_zero ? dp_unit_above_zero_f64(own) : dp_unit_below_one_f64(own);
}

/* Running sums, then a bisection for each sample. */
static void with_replacement(const job *j, int64_t line, double *weights, double total) {
    const state *s = j->s;
    double sum = 0;
    for (int64_t c = 0; c < s->line.count; c++)
        weights[c] = sum += weights[c];
    for (int64_t k = 0; k < s->samples; k++) {
        double u = unit_at(&j->seed, line * s->samples + k, false) * total;
        int64_t low = 0, n = s->line.count;
        while (n > 0) {
            int64_t half = n / 2;
            bool after = weights[low + half] <= u;
            low = after ? low + half + 1 : low;
            n = after ? n - half - 1 : half;
        }
        while (low >= s->line.count || (low && weights[low] == weights[low - 1])) /* rounding led past the end */
            low--;
        store_sample(j, line, k, low);
    }
}

/*
 * The samples smallest of e / weight with e exponential: in this order they are drawn one after the other from what is
 * left (Efraimidis and Spirakis, 2006). Weights of 0 come last.
 */
static void without_replacement(const job *j, int64_t line, double *weights, uint32_t *order, uint64_t *sort_keys,
                                void *scratch) {
    const state *s = j->s;
    size_t n = (size_t)s->line.count;
    for (size_t c = 0; c < n; c++)
        weights[c] =
            weights[c] > 0 ? -log(unit_at(&j->seed, line * s->line.count + (int64_t)c, true)) / weights[c] : INFINITY;
    dp_sort_current()->keys[DP_F64](sort_keys, weights, n, false);
    dp_sort_line keys_line = {sort_keys, n, true, 64};
    dp_sort_order(&keys_line, order, scratch);
    for (int64_t k = 0; k < s->samples; k++)
        store_sample(j, line, k, order[k]);
}

static void run_lines(void *context, size_t begin, size_t end) {
    job *j = context;
    const state *s = j->s;
    size_t n = (size_t)s->line.count, doubles = (n * 8 + 63) & ~(size_t)63;
    size_t bytes = 3 * doubles + dp_sort_scratch_bytes(n, true);
    char *block = dp_sort_room(bytes);
    if (!block) {
        atomic_store(&j->out_of_memory, true);
        return;
    }
    for (size_t line = begin; line < end; line++) {
        double *weights = (double *)block, sum;
        int64_t used;
        if (!read_weights(j, (int64_t)line, weights, &sum, &used))
            atomic_store(&j->bad_line, (int64_t)line);
        else if (s->replacement)
            with_replacement(j, (int64_t)line, weights, sum);
        else
            without_replacement(j, (int64_t)line, weights, (uint32_t *)(block + 2 * doubles),
                                (uint64_t *)(block + doubles), block + 3 * doubles);
    }
    dp_sort_room_end(block, bytes);
}

static dp_status run_multinomial(dp_plan *plan) {
    job j = {.plan = plan, .s = dp_plan_state(plan), .bad_line = -1};
    const state *s = j.s;
    j.seed = dp_seed_read(plan, &s->seed);
    if (s->samples && s->loop.count)
        dp_pool_for((size_t)s->loop.count, (size_t)(4096 / (s->line.count + 1) + 1), run_lines, &j);
    if (atomic_load(&j.out_of_memory))
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for %lld categories: free some", (long long)s->line.count);
    int64_t line = atomic_load(&j.bad_line);
    if (line >= 0)
        return dp_fail(DP_ERR_ARGUMENT, "%s: line %lld must hold finite weights of at least 0 with a sum above 0%s",
                       plan->tensors[s->self].name, (long long)line,
                       s->replacement ? "" : ", and as many above 0 as samples are drawn");
    return DP_OK;
}

static dp_status multinomial(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *in = &call->in[0], *samples = &call->in[1], *out = &call->out[0];
    const dp_tensor *self = in->as.tensor, *to = out->as.tensor;
    state s = {.self = in->slot, .out = out->slot, .samples = dp_arg_integer(samples, 0)};
    s.replacement = dp_arg_integer(&call->in[2], 0) != 0;
    dp_status status = dp_element_expect(in, call->op->elements);
    if (status == DP_OK)
        status = dp_element_expect(out, DP_EL_BIT(DP_I64) | DP_EL_BIT(DP_I32));
    if (status == DP_OK && (self->rank < 1 || self->rank > 2))
        status = dp_fail(DP_ERR_ARGUMENT, "%s has %d dimensions, but must have 1 or 2", in->name, self->rank);
    if (status != DP_OK)
        return status;
    int last = self->rank - 1;
    int64_t dims[] = {self->dims[0], s.samples}, categories = self->dims[last];
    dims[last] = s.samples;
    if (s.samples < 0 || categories < 1 || categories > UINT32_MAX || (!s.replacement && s.samples > categories))
        return dp_fail(DP_ERR_ARGUMENT, "%s is %lld for %lld categories, but must be at least 0%s", samples->name,
                       (long long)s.samples, (long long)categories,
                       s.replacement ? "" : ", and at most as many as there are");
    status = dp_shape_expect(to, out->name, dims, self->rank, "self's with the samples in the last dimension");
    if (status == DP_OK)
        status = dp_places_expect(out);
    if (status == DP_OK)
        status = dp_seed_take(&call->in[3], &call->in[4], &call->in[5], &s.seed);
    if (status != DP_OK)
        return status;
    s.out_step = to->strides[last];
    s.load = dp_elementwise_current()->load[self->element][DP_COMPUTE_F64];
    s.store = dp_elementwise_current()->store[to->element][DP_COMPUTE_I64];
    dp_loop_begin(&s.loop, self->dims, last);
    dp_loop_add_strides(&s.loop, to->strides);
    dp_loop_add_strides(&s.loop, self->strides);
    dp_loop_begin(&s.line, &self->dims[last], 1);
    dp_loop_add_strides(&s.line, &self->strides[last]);
    return give(call, run_multinomial, &s, s.replacement ? "bisection" : "radix", out_plan);
}

#define EXPORT(function, optional)                                                                                     \
    extern const dp_function dp_random_##function;                                                                     \
    const dp_function dp_random_##function = {#function, function, NULL, optional, 0};
EXPORT(dropout_mask, 0)
EXPORT(dropout_apply, 0)
EXPORT(dropout, 2)
EXPORT(randperm, 0)
EXPORT(multinomial, 0)
