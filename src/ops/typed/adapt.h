/*
 * adapt.h - calls of one form handed on to functions of another: views changed, numbers turned into lists.
 */
#ifndef DOPPEL_OPS_TYPED_ADAPT_H
#define DOPPEL_OPS_TYPED_ADAPT_H

#include "ops/op.h"

enum { DP_ADAPT_VIEWS = 8 };

typedef struct dp_adapted {
    dp_operator_call call; /* to be changed through the arrays below */
    dp_operator op;
    dp_arg params[DP_OP_PARAMS], in[DP_OP_BINDS], out[DP_OP_BINDS];
    dp_tensor views[DP_ADAPT_VIEWS];
    int64_t numbers[DP_ADAPT_VIEWS * DP_TENSOR_DIMS];
    int n_views, n_numbers;
} dp_adapted;

/* A copy of the call with its inputs; the outputs are those of the call. */
void dp_adapt_begin(dp_adapted *a, const dp_operator_call *call);
/* A copy of the tensor that stands for it in the adapted call and may be changed. */
dp_tensor *dp_adapt_view(dp_adapted *a, dp_arg *arg);
/* A list of up to DP_TENSOR_DIMS numbers that lives as long as `a`. */
dp_arg dp_adapt_list(dp_adapted *a, const char *name, const int64_t *numbers, int count);
static inline dp_arg dp_adapt_integer(const char *name, int64_t value) {
    return (dp_arg){.name = name, .kind = DP_ARG_INTEGER, .as.integer = value};
}
static inline dp_arg dp_adapt_absent(const char *name) {
    return (dp_arg){.name = name, .kind = DP_ARG_ABSENT};
}
/* Calls the function's prepare with the first n_in inputs of `a`. */
dp_status dp_adapt_end(dp_adapted *a, const dp_function *to, int n_in, dp_plan **out_plan);

#endif
