#include "ops/typed/adapt.h"

#include <string.h>

void dp_adapt_begin(dp_adapted *a, const dp_operator_call *call) {
    a->call = *call;
    a->op = *call->op;
    a->n_views = a->n_numbers = 0;
    memcpy(a->params, call->params, (size_t)call->n_params * sizeof *a->params);
    memcpy(a->in, call->in, (size_t)call->n_in * sizeof *a->in);
    memcpy(a->out, call->out, (size_t)call->n_out * sizeof *a->out);
    a->call.params = a->params;
    a->call.in = a->in;
    a->call.out = a->out;
}

static void replace(dp_arg *args, int count, const dp_arg *old, const dp_tensor *view) {
    for (int i = 0; i < count; i++)
        if (args[i].kind == DP_ARG_TENSOR && args[i].slot == old->slot)
            args[i].as.tensor = view;
}

dp_tensor *dp_adapt_view(dp_adapted *a, dp_arg *arg) {
    const dp_arg old = *arg;
    dp_tensor *view = &a->views[a->n_views++];
    *view = *old.as.tensor;
    replace(a->params, a->call.n_params, &old, view);
    replace(a->in, a->call.n_in, &old, view);
    replace(a->out, a->call.n_out, &old, view);
    arg->as.tensor = view;
    return view;
}

dp_arg dp_adapt_list(dp_adapted *a, const char *name, const int64_t *numbers, int count) {
    int64_t *list = &a->numbers[a->n_numbers];
    memcpy(list, numbers, (size_t)count * sizeof *list);
    a->n_numbers += count;
    return (dp_arg){.name = name, .kind = DP_ARG_INT_LIST, .count = count, .as.integers = list};
}

dp_status dp_adapt_end(dp_adapted *a, const dp_function *to, int n_in, dp_plan **out_plan) {
    const dp_operator *own = a->call.op; /* the plan outlives `a` */
    a->op.function = to;
    a->call.op = &a->op;
    a->call.n_in = n_in;
    dp_status status = to->prepare(&a->call, out_plan);
    if (status == DP_OK)
        (*out_plan)->op = own;
    return status;
}
