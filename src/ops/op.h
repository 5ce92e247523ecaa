/*
 * op.h - one operator of the register, one call of it, and the plan that its first phase makes.
 */
#ifndef DOPPEL_OPS_OP_H
#define DOPPEL_OPS_OP_H

#include "ops/tensor.h"

typedef enum dp_arg_kind {
    DP_ARG_ABSENT, /* "-" in a mapping, or an optional parameter that is NULL */
    DP_ARG_TENSOR,
    DP_ARG_SCALAR,
    DP_ARG_INTEGER, /* integers, bools, element types (as dp_element) */
    DP_ARG_REAL,
    DP_ARG_TEXT,
    DP_ARG_INT_LIST,
    DP_ARG_FLOAT_LIST,
    DP_ARG_BOOL_LIST,
    DP_ARG_TENSOR_LIST,
    DP_ARG_SCALAR_LIST,
    DP_ARG_TYPE,     /* aclDataType in a signature; arrives as DP_ARG_INTEGER */
    DP_ARG_TEXT_LIST /* of attributes only (typed/typed.h) */
} dp_arg_kind;

/* One argument as an engine sees it: lists and tensors are borrowed for the length of prepare. */
typedef struct dp_arg {
    const char *name;
    dp_arg_kind kind;
    int slot;      /* of the (first) tensor in the plan */
    int64_t count; /* of a list */
    union {
        const dp_tensor *tensor;
        const dp_scalar *scalar;
        int64_t integer;
        double real;
        const char *text;
        const char *const *texts;
        const int64_t *integers;
        const float *floats;
        const bool *bools;
        const dp_tensor *const *tensors;
        const dp_scalar *const *scalars;
    } as;
} dp_arg;

enum { DP_OP_PARAMS = 48, DP_OP_BINDS = 32 };
#define DP_FINDS_DIMS 0x80000000u /* in optional_out: plans of the function find dims of their outputs (finds_dims) */

struct dp_operator;
struct dp_plan;

typedef struct dp_operator_call {
    const struct dp_operator *op;
    const dp_arg *params; /* by position in the signature */
    int n_params, n_tensors;
    const dp_arg *in;  /* as the mapping's left side has them */
    const dp_arg *out; /* and its right side */
    int n_in, n_out;
} dp_operator_call;

/* What a family exports. prepare checks everything that does not depend on addresses, and makes the plan. */
typedef struct dp_function {
    const char *name;
    dp_status (*prepare)(const dp_operator_call *call, struct dp_plan **out_plan);
    const void *detail;
    uint32_t optional_in, optional_out; /* bit i: argument i of the mapping may be absent; DP_FINDS_DIMS */
} dp_function;

typedef struct dp_param {
    const char *name;
    dp_arg_kind kind;
    bool is_output;
} dp_param;

typedef struct dp_bind {
    int param; /* -1: the number below; -2: absent */
    double number;
} dp_bind;

typedef struct dp_operator {
    const char *name; /* "Add"; its entry points are aclnnAdd and aclnnAddGetWorkspaceSize */
    const dp_function *function;
    const dp_param *params;
    const dp_bind *binds; /* in, then out */
    uint32_t elements;    /* types that tensors may have, for the families that ask */
    uint8_t n_params, n_in, n_out;
} dp_operator;

/* All operators, by name. */
extern const dp_operator *const dp_operators[];
extern const unsigned dp_operators_count;

typedef struct dp_plan_tensor {
    dp_tensor view;
    const char *name;
    const void *handle; /* of the user's object, for outputs whose dims a run finds; never dereferenced here */
    bool is_output;
} dp_plan_tensor;

/* What a run found: the plan's tensors with the dims that depend on data. Two owners: the run, and who waits for it. */
typedef struct dp_found {
    _Atomic int owners;
    _Atomic bool done; /* the run succeeded */
    dp_tensor views[];
} dp_found;
dp_found *dp_found_new(int n_tensors); /* NULL with a sentence when memory is exhausted */
void dp_found_release(dp_found *found);

/* One flat block; only `op`, `run` and names point outside, to constants, and `found` of a plan that runs. */
typedef struct dp_plan {
    const dp_operator *op;
    dp_status (*run)(struct dp_plan *plan);
    dp_status (*after)(struct dp_plan *plan); /* what is to be done when run has succeeded; NULL: nothing */
    bool repeatable;  /* of its executor: it may run more than once */
    bool owns_workspace;
    bool finds_dims;  /* run changes the dims of its output views to those that the data ask for */
    dp_found *found;  /* where they are reported; of one run */
    const char *path; /* the way the engine chose, for the log */
    const char *why;  /* why it is not a faster one; "" when there is none */
    size_t size_bytes, state_offset;
    uint64_t workspace_bytes;
    void *workspace;
    int n_tensors;
    dp_plan_tensor tensors[];
} dp_plan;

/* Binds the parameters as the operator's mapping says, checks that the needed ones are there and calls the function's
 * prepare. */
dp_status dp_operator_prepare(const dp_operator *op, dp_arg *params, dp_plan **out_plan);

/* A plan with copies of all tensors of the call and state_bytes of zeroed engine state. NULL with a sentence when
 * memory is exhausted. */
dp_plan *dp_plan_new(const dp_operator_call *call, dp_status (*run)(dp_plan *plan), size_t state_bytes);
static inline void *dp_plan_state(dp_plan *plan) {
    return (char *)plan + plan->state_offset;
}
static inline void *dp_plan_data(dp_plan *plan, int slot) {
    return dp_tensor_data(&plan->tensors[slot].view);
}
dp_plan *dp_plan_copy(const dp_plan *plan);
void dp_plan_free(dp_plan *plan);
/* Runs it on this thread and the pool, now; logged and profiled. Addresses are not checked. */
dp_status dp_plan_run(dp_plan *plan);

/*
 * Checks that every tensor lies in device memory and is aligned, and queues the plan, which belongs to the queue then
 * and is freed when it has run. When this fails the plan still is the caller's.
 */
dp_status dp_plan_submit(dp_plan *plan, void *workspace, uint64_t workspace_bytes, void *stream);
/* The same, with a workspace of the library's own that is freed with the plan. */
dp_status dp_plan_submit_alone(dp_plan *plan, void *stream);

/* Argument readers for engines: the value of a number, a scalar or a literal; `otherwise` when absent. */
double dp_arg_real(const dp_arg *arg, double otherwise);
int64_t dp_arg_integer(const dp_arg *arg, int64_t otherwise);
/* Refuses a tensor whose type is not in the set; the sentence lists the set. */
dp_status dp_element_expect(const dp_arg *arg, uint32_t elements);

/* Refuses an output whose elements share places (a stride of 0). */
dp_status dp_places_expect(const dp_arg *out);

#endif
