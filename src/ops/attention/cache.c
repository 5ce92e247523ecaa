/*
 * cache.c - scatter(key, key cache, slots, value, value cache, cache mode, scatter mode) -> key cache, value cache
 *   The key and value of token t, [T, heads, depth], are written to row slots[t] mod page of page slots[t] / page of
 * the caches, [pages, page, heads, depth]. A slot of -1 is left out (padding of a batch); others fail the stream. Of
 * two tokens with one slot either may win.
 */
#include <stdatomic.h>
#include <string.h>

#include "ops/elementwise/kernels.h"
#include "ops/op.h"
#include "runtime/pool.h"

enum { GRAIN_BYTES = 1 << 15 };

typedef struct state {
    int slots, from[2], to[2]; /* of key and value */
    int64_t tokens;
} state;

typedef struct job {
    dp_plan *plan;
    const state *s;
    _Atomic int64_t bad; /* token; -1: none */
} job;

static int64_t slot_of(dp_plan *plan, const state *s, int64_t token) {
    const dp_tensor *t = &plan->tensors[s->slots].view;
    int64_t value;
    dp_elementwise_current()->load[t->element][DP_COMPUTE_I64](
        &value, (const char *)dp_tensor_data(t) + token * t->strides[0] * (int64_t)dp_element_bytes(t->element), 1);
    return value;
}

static void copy_token(const dp_tensor *from, int64_t token, const dp_tensor *to, int64_t page, int64_t row) {
    const int64_t width = (int64_t)dp_element_bytes(from->element), depth = from->dims[2];
    for (int64_t h = 0; h < from->dims[1]; h++) {
        const char *source =
            (const char *)dp_tensor_data(from) + (token * from->strides[0] + h * from->strides[1]) * width;
        char *target =
            (char *)dp_tensor_data(to) + (page * to->strides[0] + row * to->strides[1] + h * to->strides[2]) * width;
        if (from->strides[2] == 1 && to->strides[3] == 1)
            memcpy(target, source, (size_t)(depth * width));
        else
            for (int64_t d = 0; d < depth; d++)
                memcpy(target + d * to->strides[3] * width, source + d * from->strides[2] * width, (size_t)width);
    }
}

static void scatter_range(void *context, size_t begin, size_t end) {
    job *j = context;
    const state *s = j->s;
    const dp_tensor *cache = &j->plan->tensors[s->to[0]].view;
    const int64_t page = cache->dims[1], slots = cache->dims[0] * page;
    for (int64_t token = (int64_t)begin; token < (int64_t)end; token++) {
        const int64_t slot = slot_of(j->plan, s, token);
        if (slot < 0 || slot >= slots) {
            if (slot != -1)
                atomic_store(&j->bad, token);
            continue;
        }
        for (int k = 0; k < 2; k++)
            copy_token(&j->plan->tensors[s->from[k]].view, token, &j->plan->tensors[s->to[k]].view, slot / page,
                       slot % page);
    }
}

static dp_status run(dp_plan *plan) {
    job j = {.plan = plan, .s = dp_plan_state(plan), .bad = -1};
    const dp_tensor *key = &plan->tensors[j.s->from[0]].view, *cache = &plan->tensors[j.s->to[0]].view;
    const int64_t bytes = key->dims[1] * key->dims[2] * (int64_t)dp_element_bytes(key->element) * 2;
    if (j.s->tokens)
        dp_pool_for((size_t)j.s->tokens, (size_t)(bytes && bytes < GRAIN_BYTES ? GRAIN_BYTES / bytes : 1),
                    scatter_range, &j);
    const int64_t bad = atomic_load(&j.bad);
    if (bad < 0)
        return DP_OK;
    return dp_fail(DP_ERR_ARGUMENT, "%s: element %lld is %lld, but must be -1 to %lld", plan->tensors[j.s->slots].name,
                   (long long)bad, (long long)slot_of(plan, j.s, bad),
                   (long long)(cache->dims[0] * cache->dims[1]) - 1);
}

static dp_status refuse_text(const dp_arg *arg, const char *offered) {
    if (arg->kind != DP_ARG_TEXT || !*arg->as.text || strcmp(arg->as.text, offered) == 0)
        return DP_OK;
    return dp_fail(DP_ERR_UNSUPPORTED, "%s is \"%.32s\", but only %s is offered", arg->name, arg->as.text, offered);
}

/* One side: [tokens, heads, depth] into [pages, page, heads, depth]. */
static dp_status check_side(const dp_arg *from, const dp_arg *to, int64_t tokens, const dp_tensor *pages) {
    const dp_tensor *f = from->as.tensor, *t = to->as.tensor;
    if (f->rank != 3 || t->rank != 4)
        return dp_fail(DP_ERR_ARGUMENT, "%s has %d dimensions and %s %d, but they must have 3 and 4", from->name,
                       f->rank, to->name, t->rank);
    if (f->element != t->element || !dp_element_bytes(f->element))
        return dp_fail(DP_ERR_ARGUMENT, "%s has elements of type %s, but must have %s, as %s has", to->name,
                       dp_element_name(t->element), dp_element_name(f->element), from->name);
    const int64_t source[3] = {tokens, f->dims[1], f->dims[2]},
                  target[4] = {pages->dims[0], pages->dims[1], f->dims[1], f->dims[2]};
    dp_status status = dp_shape_expect(f, from->name, source, 3, "tokens, heads, depth");
    return status == DP_OK ? dp_shape_expect(t, to->name, target, 4, "pages, rows of a page, heads, depth") : status;
}

static dp_status prepare(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *a = call->in;
    const dp_arg *key = &a[0], *key_cache = &a[1], *slots = &a[2], *value = &a[3], *value_cache = &a[4];
    for (int i = 5; i < 8; i++)
        if (a[i].kind == DP_ARG_TENSOR && dp_tensor_count(a[i].as.tensor))
            return dp_fail(DP_ERR_UNSUPPORTED, "%s is given, but compressed caches are not offered: pass NULL",
                           a[i].name);
    dp_status status = refuse_text(&a[8], "Norm");
    if (status == DP_OK)
        status = refuse_text(&a[9], "None");
    if (status == DP_OK)
        status = dp_element_expect(slots, DP_EL_BIT(DP_I32) | DP_EL_BIT(DP_I64));
    const int64_t tokens = key->as.tensor->rank ? key->as.tensor->dims[0] : 0;
    if (status == DP_OK)
        status = check_side(key, key_cache, tokens, key_cache->as.tensor);
    if (status == DP_OK)
        status = check_side(value, value_cache, tokens, key_cache->as.tensor);
    if (status == DP_OK)
        status = dp_shape_expect(slots->as.tensor, slots->name, &tokens, 1, "one per token");
    if (status != DP_OK)
        return status;
    dp_plan *plan = dp_plan_new(call, run, sizeof(state));
    if (!plan)
        return DP_ERR_OUT_OF_MEMORY;
    *(state *)dp_plan_state(plan) =
        (state){slots->slot, {key->slot, value->slot}, {key_cache->slot, value_cache->slot}, tokens};
    plan->path = "tokens";
    *out_plan = plan;
    return DP_OK;
}

extern const dp_function dp_attention_scatter;
const dp_function dp_attention_scatter = {"scatter", prepare, NULL, 0x3e0, 0};
