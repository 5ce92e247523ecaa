/*
 * list.c - update_list(list, indices, updates, mask, reduce, axis) -> list: tensor i of the list gets updates[i] at
 * indices[i] along axis, as caches of keys and values do. updates [n, dims of a tensor, but of any size along axis];
 * mask [n], may be absent: where it is 0, nothing is written. reduce can only be "update". An index that would lead out
 * of a tensor fails the run before anything is written.
 */
#include <string.h>

#include "base/memory.h"
#include "ops/scatter/scatter.h"
#include "runtime/pool.h"

typedef struct state {
    int64_t count, length, size; /* tensors; of updates and of a tensor along the axis */
    int first, indices, updates, mask, axis;
    dp_convert_fn load_index, load_mask;
} state;

typedef struct job {
    dp_plan *plan;
    dp_loop loop;
    char *to;
    const char *from;
    size_t width;
} job;

static void copy_range(void *context, size_t begin, size_t end) {
    const job *j = context;
    dp_loop_copy(&j->loop, j->to, j->from, j->width, begin, end);
}

/* -1: left out. */
static dp_status read_places(const dp_plan *plan, const state *s, int64_t *places) {
    const dp_tensor *indices = &plan->tensors[s->indices].view;
    for (int64_t i = 0; i < s->count; i++) {
        int64_t written = 1;
        s->load_index(
            &places[i],
            (char *)dp_tensor_data(indices) + i * indices->strides[0] * (int64_t)dp_element_bytes(indices->element), 1);
        if (s->mask >= 0) {
            const dp_tensor *mask = &plan->tensors[s->mask].view;
            s->load_mask(&written,
                         (char *)dp_tensor_data(mask) + i * mask->strides[0] * (int64_t)dp_element_bytes(mask->element),
                         1);
        }
        if (!written)
            places[i] = -1;
        else if (places[i] < 0 || places[i] > s->size - s->length)
            return dp_fail(DP_ERR_ARGUMENT, "%s: element %lld is %lld, but must be 0 to %lld",
                           plan->tensors[s->indices].name, (long long)i, (long long)places[i],
                           (long long)(s->size - s->length));
    }
    return DP_OK;
}

static dp_status run(dp_plan *plan) {
    const state *s = dp_plan_state(plan);
    const dp_tensor *updates = &plan->tensors[s->updates].view;
    int64_t *places = dp_alloc(DP_MEM_RUNTIME, (size_t)s->count * sizeof *places + 1);
    if (!places)
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for %lld indices: free some", (long long)s->count);
    dp_status status = read_places(plan, s, places);
    job j = {.plan = plan, .width = dp_element_bytes(updates->element)};
    const int64_t width = (int64_t)j.width;
    for (int64_t i = 0; i < s->count && status == DP_OK && dp_tensor_count(updates); i++) {
        const dp_tensor *t = &plan->tensors[s->first + i].view;
        size_t grain;
        if (places[i] < 0)
            continue;
        dp_loop_begin(&j.loop, updates->dims + 1, t->rank);
        dp_loop_add_strides(&j.loop, t->strides);
        dp_loop_add_strides(&j.loop, updates->strides + 1);
        dp_loop_merge(&j.loop, true);
        j.to = (char *)dp_tensor_data(t) + places[i] * t->strides[s->axis] * width;
        j.from = (char *)dp_tensor_data(updates) + i * updates->strides[0] * width;
        size_t units = dp_loop_copy_units(&j.loop, j.width, &grain);
        dp_pool_for(units, grain, copy_range, &j);
    }
    dp_free(places);
    return status;
}

static dp_status check_list(const dp_operator_call *call, const dp_arg *list, const dp_arg *updates) {
    const dp_tensor *first = list->as.tensors[0];
    dp_status status = DP_OK;
    for (int64_t i = 0; i < list->count && status == DP_OK; i++) {
        dp_arg one = {.name = list->name, .kind = DP_ARG_TENSOR, .as.tensor = list->as.tensors[i]};
        status = dp_element_expect(&one, DP_EL_BIT(updates->as.tensor->element) & call->op->elements);
        if (status == DP_OK)
            status = dp_shape_expect(one.as.tensor, list->name, first->dims, first->rank, "that of its first tensor");
        if (status == DP_OK)
            status = dp_places_expect(&one);
    }
    return status;
}

static dp_status update_list(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *in = call->in, *list = &in[0], *indices = &in[1], *updates = &in[2], *mask = &in[3];
    const dp_tensor *u = updates->as.tensor;
    int64_t dims[DP_TENSOR_DIMS + 1] = {list->count};
    bool has_mask = mask->kind == DP_ARG_TENSOR;
    int axis = 0;
    if (list->count < 1)
        return dp_fail(DP_ERR_ARGUMENT, "%s is empty", list->name);
    const dp_tensor *first = list->as.tensors[0];
    if (in[4].kind != DP_ARG_TEXT || strcmp(in[4].as.text, "update") != 0)
        return dp_fail(DP_ERR_ARGUMENT, "%s must be \"update\"", in[4].name);
    dp_status status = check_list(call, list, updates);
    if (status == DP_OK)
        status = dp_dim_check(dp_arg_integer(&in[5], -2), first, in[5].name, &axis);
    if (status == DP_OK && (first->rank < 1 || first->rank >= DP_TENSOR_DIMS || u->rank != first->rank + 1))
        status = dp_fail(DP_ERR_ARGUMENT, "%s has %d dimensions, but must have one more than the tensors of %s: %d",
                         updates->name, u->rank, list->name, first->rank + 1);
    if (status != DP_OK)
        return status;
    memcpy(dims + 1, first->dims, (size_t)first->rank * sizeof dims[0]);
    dims[1 + axis] = u->dims[1 + axis] < first->dims[axis] ? u->dims[1 + axis] : first->dims[axis];
    status = dp_shape_expect(u, updates->name, dims, u->rank, "one for each tensor, no longer than it along the axis");
    if (status == DP_OK)
        status = dp_element_expect(indices, DP_INDEX_TYPES);
    if (status == DP_OK)
        status = dp_shape_expect(indices->as.tensor, indices->name, dims, 1, "one for each tensor");
    if (status == DP_OK && has_mask)
        status = dp_element_expect(mask, DP_EL_BIT(DP_U8) | DP_EL_BIT(DP_I8) | DP_EL_BIT(DP_EL_BOOL));
    if (status == DP_OK && has_mask)
        status = dp_shape_expect(mask->as.tensor, mask->name, dims, 1, "one for each tensor");
    dp_plan *plan = status == DP_OK ? dp_plan_new(call, run, sizeof(state)) : NULL;
    if (!plan)
        return status == DP_OK ? DP_ERR_OUT_OF_MEMORY : status;
    const dp_elementwise_table *e = dp_elementwise_current();
    *(state *)dp_plan_state(plan) =
        (state){.count = list->count,
                .length = dims[1 + axis],
                .size = first->dims[axis],
                .first = list->slot,
                .indices = indices->slot,
                .updates = updates->slot,
                .mask = has_mask ? mask->slot : -1,
                .axis = axis,
                .load_index = e->load[indices->as.tensor->element][DP_COMPUTE_I64],
                .load_mask = has_mask ? e->load[mask->as.tensor->element][DP_COMPUTE_I64] : NULL};
    plan->path = "views";
    *out_plan = plan;
    return DP_OK;
}

extern const dp_function dp_scatter_update_list;
const dp_function dp_scatter_update_list = {"update_list", update_list, NULL, 8, 0};
