#include "ops/op.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "runtime/device_memory.h"
#include "runtime/profile.h"
#include "runtime/report.h"
#include "runtime/task.h"

/* Engines look elements up in tables: what is no type at all does not come to them. */
static dp_status check_element(const dp_arg *arg, const dp_tensor *tensor) {
    return (unsigned)tensor->element < DP_EL_COUNT
               ? DP_OK
               : dp_fail(DP_ERR_ARGUMENT, "%s has an element type that operators do not know", arg->name);
}

static dp_status check_tensors(const dp_operator *op, const dp_arg *params, int *out_tensors) {
    int n = 0;
    dp_status status = DP_OK;
    for (int i = 0; i < op->n_params && status == DP_OK; i++) {
        const dp_arg *arg = &params[i];
        if (arg->kind == DP_ARG_TENSOR) {
            n++;
            status = check_element(arg, arg->as.tensor);
        } else if (arg->kind == DP_ARG_TENSOR_LIST) {
            n += (int)arg->count;
            for (int64_t k = 0; k < arg->count && status == DP_OK; k++)
                status = check_element(arg, arg->as.tensors[k]);
        }
    }
    *out_tensors = n;
    return status;
}

static dp_status bind(const dp_operator *op, const dp_arg *params, const dp_bind *from, int count, uint32_t optional,
                      dp_arg *to) {
    for (int i = 0; i < count; i++) {
        if (from[i].param == -1)
            to[i] = (dp_arg){.name = "constant", .kind = DP_ARG_REAL, .as.real = from[i].number};
        else if (from[i].param == -2)
            to[i] = (dp_arg){.name = "absent", .kind = DP_ARG_ABSENT};
        else
            to[i] = params[from[i].param];
        if (to[i].kind == DP_ARG_ABSENT && !(optional >> i & 1) && from[i].param >= 0)
            return dp_fail(DP_ERR_NOT_FOUND, "%s is NULL, but %s needs it", op->params[from[i].param].name, op->name);
    }
    return DP_OK;
}

dp_status dp_operator_prepare(const dp_operator *op, dp_arg *params, dp_plan **out_plan) {
    dp_arg bound[DP_OP_BINDS];
    int slot = 0;
    for (int i = 0; i < op->n_params; i++) {
        params[i].slot = slot;
        slot += params[i].kind == DP_ARG_TENSOR ? 1 : params[i].kind == DP_ARG_TENSOR_LIST ? (int)params[i].count : 0;
    }
    dp_operator_call call = {op, params, op->n_params, 0, bound, bound + op->n_in, op->n_in, op->n_out};
    dp_status status = check_tensors(op, params, &call.n_tensors);
    if (status == DP_OK)
        status = bind(op, params, op->binds, op->n_in, op->function->optional_in, bound);
    if (status == DP_OK)
        status = bind(op, params, op->binds + op->n_in, op->n_out, op->function->optional_out, bound + op->n_in);
    return status == DP_OK ? op->function->prepare(&call, out_plan) : status;
}

dp_plan *dp_plan_new(const dp_operator_call *call, dp_status (*run)(dp_plan *plan), size_t state_bytes) {
    size_t state_offset = sizeof(dp_plan) + (size_t)call->n_tensors * sizeof(dp_plan_tensor);
    state_offset = (state_offset + 63) & ~(size_t)63;
    dp_plan *plan = dp_alloc(DP_MEM_RUNTIME, state_offset + state_bytes);
    if (!plan) {
        dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for the executor of %s (%zu bytes): free some", call->op->name,
                state_offset + state_bytes);
        return NULL;
    }
    plan->op = call->op;
    plan->run = run;
    plan->path = plan->why = "";
    plan->size_bytes = state_offset + state_bytes;
    plan->state_offset = state_offset;
    plan->n_tensors = call->n_tensors;
    dp_plan_tensor *to = plan->tensors;
    for (int i = 0; i < call->n_params; i++) {
        const dp_arg *arg = &call->params[i];
        bool is_output = call->op->params[i].is_output;
        if (arg->kind == DP_ARG_TENSOR)
            *to++ = (dp_plan_tensor){*arg->as.tensor, arg->name, NULL, is_output};
        else if (arg->kind == DP_ARG_TENSOR_LIST)
            for (int64_t k = 0; k < arg->count; k++)
                *to++ = (dp_plan_tensor){*arg->as.tensors[k], arg->name, NULL, is_output};
    }
    return plan;
}

dp_plan *dp_plan_copy(const dp_plan *plan) {
    dp_plan *copy = dp_alloc(DP_MEM_RUNTIME, plan->size_bytes);
    if (!copy)
        dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for a run of %s (%zu bytes): free some", plan->op->name,
                plan->size_bytes);
    else
        memcpy(copy, plan, plan->size_bytes);
    return copy;
}

void dp_plan_free(dp_plan *plan) {
    if (plan && plan->found)
        dp_found_release(plan->found);
    if (plan && plan->owns_workspace)
        dp_free(plan->workspace);
    dp_free(plan);
}

dp_found *dp_found_new(int n_tensors) {
    size_t bytes = sizeof(dp_found) + (size_t)n_tensors * sizeof(dp_tensor);
    dp_found *found = dp_alloc(DP_MEM_RUNTIME, bytes);
    if (!found)
        dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for the shapes of the results (%zu bytes): free some", bytes);
    else
        atomic_store(&found->owners, 2);
    return found;
}

void dp_found_release(dp_found *found) {
    if (atomic_fetch_sub(&found->owners, 1) == 1)
        dp_free(found);
}

static void report_found(dp_plan *plan) {
    for (int i = 0; i < plan->n_tensors; i++)
        plan->found->views[i] = plan->tensors[i].view;
    atomic_store(&plan->found->done, true);
}

static dp_status check_addresses(const dp_plan *plan) {
    for (int i = 0; i < plan->n_tensors; i++) {
        const dp_plan_tensor *t = &plan->tensors[i];
        size_t begin, end;
        dp_tensor_extent(&t->view, &begin, &end);
        if (begin == end)
            continue;
        if (!t->view.base)
            return dp_fail(DP_ERR_NOT_FOUND, "%s: the tensor's data is NULL, but it has %lld elements", t->name,
                           (long long)dp_tensor_count(&t->view));
        size_t align = dp_element_bytes(t->view.element);
        if (align > 8)
            align = 8;
        char *data = (char *)t->view.base + begin;
        if (align && (uintptr_t)data % align)
            return dp_fail(DP_ERR_ARGUMENT, "%s: the address %p of its first element is not a multiple of %zu", t->name,
                           (void *)data, align);
        dp_status status = dp_device_memory_check(t->name, data, end - begin);
        if (status != DP_OK)
            return status;
    }
    return DP_OK;
}

static const char *describe_tensors(const dp_plan *plan, char *text, size_t text_bytes) {
    char one[256];
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < plan->n_tensors && used < text_bytes; i++)
        used += (size_t)snprintf(text + used, text_bytes - used, "%s%s %s%s", i ? ", " : "", plan->tensors[i].name,
                                 plan->tensors[i].is_output ? "=> " : "",
                                 dp_tensor_describe(&plan->tensors[i].view, one, sizeof one));
    return text;
}

static dp_status run_observed(dp_plan *plan) {
    char tensors[1024];
    uint64_t begin_ns = dp_clock_ns();
    dp_status status = plan->run(plan);
    uint64_t end_ns = dp_clock_ns();
    describe_tensors(plan, tensors, sizeof tensors);
    if (dp_profile_on())
        dp_profile_operator(plan->op->name, begin_ns, end_ns, tensors, plan->path);
    if (dp_log_on("ops", DP_LOG_INFO))
        dp_log("ops", DP_LOG_INFO, "%s(%s) by %s%s%s%s: %.2f us%s%s", plan->op->name, tensors, plan->path,
               plan->why[0] ? " (" : "", plan->why, plan->why[0] ? ")" : "", (double)(end_ns - begin_ns) * 1e-3,
               status ? ", failed: " : "", status ? dp_fail_message() : "");
    return status;
}

/* Tells observers of the view's bytes, in pieces without gaps. */
static void report_view(dp_host_event_kind kind, const dp_tensor *view) {
    size_t begin, end, bytes = (size_t)dp_tensor_count(view) * dp_element_bytes(view->element);
    dp_tensor_extent(view, &begin, &end);
    if (begin == end)
        return;
    if (end - begin <= bytes || view->rank == 0 || view->element == DP_I4) {
        char *data = (char *)view->base + begin;
        dp_report_memory(kind, 0, kind == DP_HOST_WRITE ? data : NULL, kind == DP_HOST_WRITE ? NULL : data,
                         end - begin);
        return;
    }
    dp_tensor row = *view; /* without the outermost dim */
    row.rank--;
    memmove(row.dims, view->dims + 1, (size_t)row.rank * sizeof row.dims[0]);
    memmove(row.strides, view->strides + 1, (size_t)row.rank * sizeof row.strides[0]);
    for (int64_t i = 0; i < view->dims[0]; i++) {
        report_view(kind, &row);
        row.offset += view->strides[0];
    }
}

static void report_accesses(const dp_plan *plan) {
    for (int i = 0; i < plan->n_tensors; i++) {
        const dp_plan_tensor *t = &plan->tensors[i];
        report_view(t->is_output ? DP_HOST_WRITE : DP_HOST_READ, &t->view);
    }
}

dp_status dp_plan_run(dp_plan *plan) {
    if (DP_UNLIKELY(dp_report_wanted()))
        report_accesses(plan);
    bool observed = DP_UNLIKELY(dp_log_on("ops", DP_LOG_INFO) || dp_profile_on());
    dp_status status = observed ? run_observed(plan) : plan->run(plan);
    if (DP_UNLIKELY(plan->after != NULL) && status == DP_OK)
        status = plan->after(plan);
    if (DP_UNLIKELY(plan->found && status == DP_OK))
        report_found(plan);
    return status;
}

static dp_status run_plan(void *payload) {
    return dp_plan_run(*(dp_plan **)payload);
}

static void destroy_plan(void *payload) {
    dp_plan_free(*(dp_plan **)payload);
}

dp_status dp_plan_submit(dp_plan *plan, void *workspace, uint64_t workspace_bytes, void *stream) {
    dp_status status = check_addresses(plan);
    if (status != DP_OK)
        return status;
    if (plan->workspace_bytes) {
        if (!workspace)
            return dp_fail(DP_ERR_NOT_FOUND, "workspace is NULL, but must be device memory of %llu bytes",
                           (unsigned long long)plan->workspace_bytes);
        if (workspace_bytes < plan->workspace_bytes)
            return dp_fail(DP_ERR_ARGUMENT, "workspaceSize is %llu, but must be at least %llu",
                           (unsigned long long)workspace_bytes, (unsigned long long)plan->workspace_bytes);
        status = dp_device_memory_check("workspace", workspace, plan->workspace_bytes);
        if (status != DP_OK)
            return status;
    }
    plan->workspace = workspace;
    return dp_task_submit(stream, plan->op->name, run_plan, destroy_plan, &plan, sizeof plan);
}

dp_status dp_plan_submit_alone(dp_plan *plan, void *stream) {
    dp_status status = check_addresses(plan);
    if (status != DP_OK)
        return status;
    if (plan->workspace_bytes && !plan->owns_workspace) {
        plan->workspace = dp_alloc(DP_MEM_RUNTIME, plan->workspace_bytes);
        if (!plan->workspace)
            return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for the work space of %s (%llu bytes): free some",
                           plan->op->name, (unsigned long long)plan->workspace_bytes);
        plan->owns_workspace = true;
    }
    return dp_task_submit(stream, plan->op->name, run_plan, destroy_plan, &plan, sizeof plan);
}

double dp_arg_real(const dp_arg *arg, double otherwise) {
    switch (arg->kind) {
    case DP_ARG_SCALAR:
        return arg->as.scalar->real;
    case DP_ARG_INTEGER:
        return (double)arg->as.integer;
    case DP_ARG_REAL:
        return arg->as.real;
    default:
        return otherwise;
    }
}

int64_t dp_arg_integer(const dp_arg *arg, int64_t otherwise) {
    switch (arg->kind) {
    case DP_ARG_SCALAR:
        return arg->as.scalar->integer;
    case DP_ARG_INTEGER:
        return arg->as.integer;
    case DP_ARG_REAL:
        /* what no integer is near counts as 0 */
        return arg->as.real >= -0x1p63 && arg->as.real < 0x1p63 ? (int64_t)arg->as.real : 0;
    default:
        return otherwise;
    }
}

dp_status dp_element_expect(const dp_arg *arg, uint32_t elements) {
    int element = arg->as.tensor->element;
    if (element >= 0 && element < DP_EL_COUNT && elements >> element & 1)
        return DP_OK;
    char list[160];
    size_t used = 0;
    list[0] = '\0';
    for (int e = 0; e < DP_EL_COUNT; e++)
        if (elements >> e & 1)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", used ? ", " : "", dp_element_name(e));
    return dp_fail(DP_ERR_ARGUMENT, "%s has elements of type %s, but must have one of: %s", arg->name,
                   dp_element_name(element), list);
}

dp_status dp_places_expect(const dp_arg *out) {
    const dp_tensor *t = out->as.tensor;
    if (dp_tensor_count(t) == 0)
        return DP_OK;
    for (int d = 0; d < t->rank; d++)
        if (t->dims[d] > 1 && t->strides[d] == 0)
            return dp_fail(DP_ERR_ARGUMENT,
                           "%s: stride of dimension %d is 0, but every written element must have its own place",
                           out->name, d);
    return DP_OK;
}
