/*
 * foreach.c - an operator of another family for every tensor of a list. A mapping names the other family's function and
 * its arguments: `add(tensors1, tensors2, scalar) -> results`.
 *
 *   tensor list   the function gets its i-th tensor        scalar list   its i-th scalar
 *   tensor        an operand: the function gets it every time. A parameter: a number in device memory, read when the
 * task runs; with one element the same for all, else one for each others        as they are All lists have the same
 * length. The function makes a plan for every tensor; they lie in this plan's state one behind the other, and get its
 * tensors' addresses when it runs.
 */
#include <stdatomic.h>
#include <string.h>

#include "base/memory.h"
#include "ops/elementwise/elementwise.h"
#include "ops/elementwise/kernels.h"
#include "ops/op.h"
#include "runtime/pool.h"

enum { ARGS = 8, SMALL = 1 << 15 };

/* Which of the parent's tensors is the k-th of a plan, then the plan itself at `begin`. */
typedef struct part {
    size_t begin; /* bytes from the state */
    int slots[ARGS];
} part;

typedef struct state {
    int64_t count;
    bool together;                 /* small tensors: workers take whole tensors */
    int number_param, number_slot; /* of a parameter in device memory; -1: none */
    bool number_each;
    dp_convert_fn load_number;
    part parts[];
} state;

typedef struct job {
    dp_plan *plan;
    state *s;
    _Atomic int status;
} job;

static dp_status run_part(const job *j, int64_t i) {
    state *s = j->s;
    dp_plan *inner = (dp_plan *)((char *)s + s->parts[i].begin);
    for (int k = 0; k < inner->n_tensors; k++)
        inner->tensors[k].view.base = j->plan->tensors[s->parts[i].slots[k]].view.base;
    if (s->number_slot >= 0) {
        const dp_tensor *t = &j->plan->tensors[s->number_slot].view;
        double number;
        int64_t step = s->number_each ? i * t->strides[0] : 0;
        s->load_number(&number, (char *)dp_tensor_data(t) + step * (int64_t)dp_element_bytes(t->element), 1);
        dp_elementwise_set_param(inner, s->number_param, number);
    }
    return inner->run(inner);
}

static void run_range(void *context, size_t begin, size_t end) {
    job *j = context;
    for (size_t i = begin; i < end; i++) {
        dp_status status = run_part(j, (int64_t)i);
        if (status != DP_OK)
            atomic_store(&j->status, (int)status);
    }
}

static dp_status run(dp_plan *plan) {
    job j = {.plan = plan, .s = dp_plan_state(plan)};
    if (!j.s->count)
        return DP_OK;
    if (j.s->together) {
        dp_pool_for((size_t)j.s->count, 4, run_range, &j);
        dp_status status = (dp_status)atomic_load(&j.status);
        return status == DP_OK ? DP_OK : dp_fail(status, "a tensor of the list could not be worked on");
    }
    dp_status status = DP_OK;
    for (int64_t i = 0; i < j.s->count && status == DP_OK; i++)
        status = run_part(&j, i);
    return status;
}

/* Phase one. */

static dp_status check_lists(const dp_operator_call *call, int64_t *out_count) {
    const dp_arg *first = NULL;
    for (int i = 0; i < call->n_in + call->n_out; i++) {
        const dp_arg *arg = i < call->n_in ? &call->in[i] : &call->out[i - call->n_in];
        if (arg->kind != DP_ARG_TENSOR_LIST && arg->kind != DP_ARG_SCALAR_LIST)
            continue;
        if (first && arg->count != first->count)
            return dp_fail(DP_ERR_ARGUMENT, "%s has %lld entries, but must have as many as %s: %lld", arg->name,
                           (long long)arg->count, first->name, (long long)first->count);
        first = first ? first : arg;
    }
    *out_count = first ? first->count : 0;
    return DP_OK;
}

/* A tensor at a parameter's place. Its entry becomes a number, 0 until the task runs. */
static dp_status take_number(const dp_operator_call *call, int64_t count, int operands, state *s) {
    s->number_slot = -1;
    for (int i = operands; i < call->n_in; i++) {
        const dp_arg *arg = &call->in[i];
        if (arg->kind != DP_ARG_TENSOR)
            continue;
        const dp_tensor *t = arg->as.tensor;
        int64_t have = dp_tensor_count(t);
        dp_status status = dp_element_expect(arg, DP_EL_FLOATS | (DP_EL_INTS & ~DP_EL_BIT(DP_U64)));
        if (status != DP_OK)
            return status;
        if (have != 1 && (t->rank != 1 || have != count))
            return dp_fail(DP_ERR_ARGUMENT, "%s has %lld elements, but must have 1 or one for each of %lld tensors",
                           arg->name, (long long)have, (long long)count);
        s->number_slot = arg->slot;
        s->number_param = i - operands;
        s->number_each = have != 1;
        s->load_number = dp_elementwise_current()->load[t->element][DP_COMPUTE_F64];
    }
    return DP_OK;
}

/* The function's own call for entry i. */
static dp_status prepare_part(const dp_operator_call *call, int64_t i, int operands, dp_plan **out_plan,
                              part *out_part) {
    const dp_function *inner = call->op->function->detail;
    dp_arg args[ARGS];
    dp_param params[ARGS];
    dp_tensor single[ARGS]; /* tensors of one element, without dims: they serve tensors of any rank */
    int n = call->n_in + call->n_out, slot = 0;
    for (int k = 0; k < n; k++) {
        const dp_arg *from = k < call->n_in ? &call->in[k] : &call->out[k - call->n_in];
        args[k] = *from;
        if (from->kind == DP_ARG_TENSOR_LIST) {
            args[k].kind = DP_ARG_TENSOR;
            args[k].as.tensor = from->as.tensors[i];
        } else if (from->kind == DP_ARG_SCALAR_LIST) {
            args[k].kind = DP_ARG_SCALAR;
            args[k].as.scalar = from->as.scalars[i];
        } else if (from->kind == DP_ARG_TENSOR && k >= operands && k < call->n_in) {
            args[k] = (dp_arg){.name = from->name, .kind = DP_ARG_REAL};
        }
        if (from->kind == DP_ARG_TENSOR && k < operands && k < call->n_in && dp_tensor_count(from->as.tensor) == 1) {
            single[k] = *from->as.tensor;
            single[k].rank = 0;
            args[k].as.tensor = &single[k];
        }
        params[k] = (dp_param){from->name, args[k].kind, k >= call->n_in};
        if (args[k].kind != DP_ARG_TENSOR)
            continue;
        args[k].slot = slot;
        out_part->slots[slot++] = from->slot + (from->kind == DP_ARG_TENSOR_LIST ? (int)i : 0);
    }
    dp_operator op = {call->op->name,      inner, params, NULL, call->op->elements, (uint8_t)n, (uint8_t)call->n_in,
                      (uint8_t)call->n_out};
    dp_operator_call own = {&op, args, n, slot, args, args + call->n_in, call->n_in, call->n_out};
    dp_status status = inner->prepare(&own, out_plan);
    if (status == DP_OK)
        (*out_plan)->op = call->op;
    return status;
}

static bool is_small(const dp_plan *plan) {
    int64_t largest = 0;
    for (int k = 0; k < plan->n_tensors; k++) {
        int64_t count = dp_tensor_count(&plan->tensors[k].view);
        largest = count > largest ? count : largest;
    }
    return largest < SMALL;
}

static dp_status assemble(const dp_operator_call *call, const state *head, dp_plan **plans, const part *parts,
                          dp_plan **out_plan) {
    size_t bytes = sizeof(state) + (size_t)head->count * sizeof(part);
    bytes = (bytes + 63) & ~(size_t)63;
    size_t first = bytes;
    for (int64_t i = 0; i < head->count; i++)
        bytes += (plans[i]->size_bytes + 63) & ~(size_t)63;
    dp_plan *plan = dp_plan_new(call, run, bytes);
    if (!plan)
        return DP_ERR_OUT_OF_MEMORY;
    state *s = dp_plan_state(plan);
    *s = *head;
    s->together = head->count >= 4;
    for (int64_t i = 0; i < head->count; i++) {
        s->parts[i] = parts[i];
        s->parts[i].begin = first;
        memcpy((char *)s + first, plans[i], plans[i]->size_bytes);
        first += (plans[i]->size_bytes + 63) & ~(size_t)63;
        s->together = s->together && is_small(plans[i]);
    }
    plan->path = s->together ? "tensors together" : "one after the other";
    *out_plan = plan;
    return DP_OK;
}

static dp_status prepare(const dp_operator_call *call, dp_plan **out_plan) {
    state head = {.count = 0};
    int operands = dp_elementwise_operands(call->op->function->detail);
    dp_status status = check_lists(call, &head.count);
    if (status == DP_OK)
        status = take_number(call, head.count, operands, &head);
    if (status != DP_OK)
        return status;
    dp_plan **plans = dp_alloc(DP_MEM_RUNTIME, (size_t)head.count * (sizeof *plans + sizeof(part)) + 1);
    if (!plans)
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for plans of %lld tensors: free some",
                       (long long)head.count);
    part *parts = (part *)(plans + head.count);
    for (int64_t i = 0; i < head.count && status == DP_OK; i++)
        status = prepare_part(call, i, operands, &plans[i], &parts[i]);
    if (status == DP_OK)
        status = assemble(call, &head, plans, parts, out_plan);
    for (int64_t i = 0; i < head.count; i++)
        dp_plan_free(plans[i]);
    dp_free(plans);
    return status;
}

#define EXPORT(function, family, optional)                                                                             \
    extern const dp_function dp_##family##_##function, dp_foreach_##function;                                          \
    const dp_function dp_foreach_##function = {#function, prepare, &dp_##family##_##function, optional, 0};
#define ELEMENTWISE(function) EXPORT(function, elementwise, 0)
ELEMENTWISE(abs)
ELEMENTWISE(acos)
ELEMENTWISE(add)
ELEMENTWISE(addcdiv)
ELEMENTWISE(addcmul)
ELEMENTWISE(asin)
ELEMENTWISE(atan)
ELEMENTWISE(copy)
ELEMENTWISE(cos)
ELEMENTWISE(cosh)
ELEMENTWISE(div)
ELEMENTWISE(erf)
ELEMENTWISE(erfc)
ELEMENTWISE(exp)
ELEMENTWISE(expm1)
ELEMENTWISE(lerp)
ELEMENTWISE(log)
ELEMENTWISE(log10)
ELEMENTWISE(log1p)
ELEMENTWISE(log2)
ELEMENTWISE(maximum)
ELEMENTWISE(minimum)
ELEMENTWISE(mul)
ELEMENTWISE(neg)
ELEMENTWISE(pow)
ELEMENTWISE(reciprocal)
ELEMENTWISE(round_off)
ELEMENTWISE(sigmoid)
ELEMENTWISE(sign)
ELEMENTWISE(sin)
ELEMENTWISE(sinh)
ELEMENTWISE(sqrt)
ELEMENTWISE(sub)
ELEMENTWISE(tan)
ELEMENTWISE(tanh)
EXPORT(norm, reduce, 4)
