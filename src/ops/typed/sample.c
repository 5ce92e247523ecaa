/*
 * sample.c - images read at places of a grid:
 *   sample(x, grid, interpolation, padding, align) -> y       modes by name; [batch, channels] and the grid's sizes
 */
#include <string.h>

#include "ops/typed/adapt.h"

extern const dp_function dp_resize_sample2d, dp_resize_sample3d;

/* Where the text stands among the names; -1 with a sentence. */
static int64_t number_of(const dp_arg *text, const char *const *names, int count) {
    for (int i = 0; i < count; i++)
        if (strcmp(text->as.text, names[i]) == 0)
            return i;
    dp_fail(DP_ERR_ARGUMENT, "%s is \"%.24s\", but must be %s, %s or %s", text->name, text->as.text, names[0], names[1],
            names[2]);
    return -1;
}

static dp_status sample(const dp_operator_call *call, dp_plan **out_plan) {
    static const char *const modes[] = {"bilinear", "nearest", "bicubic"}, *const paddings[] = {"zeros", "border",
                                                                                                "reflection"};
    const dp_tensor *x = call->in[0].as.tensor, *grid = call->in[1].as.tensor;
    int64_t mode = number_of(&call->in[2], modes, 3), padding = mode < 0 ? -1 : number_of(&call->in[3], paddings, 3);
    int64_t dims[DP_TENSOR_DIMS];
    if (padding < 0)
        return DP_ERR_ARGUMENT;
    if ((x->rank != 4 && x->rank != 5) || grid->rank != x->rank)
        return dp_fail(DP_ERR_ARGUMENT, "%s and %s have %d and %d dimensions, but must both have 4 or both 5",
                       call->in[0].name, call->in[1].name, x->rank, grid->rank);
    memcpy(dims, x->dims, sizeof dims);
    memcpy(dims + 2, grid->dims + 1, (size_t)(x->rank - 2) * sizeof *dims);
    dp_status status = dp_shape_expect(call->out[0].as.tensor, call->out[0].name, dims, x->rank, "that of the grid");
    if (status != DP_OK)
        return status;
    dp_adapted a;
    dp_adapt_begin(&a, call);
    a.in[2] = dp_adapt_integer(call->in[2].name, mode);
    a.in[3] = dp_adapt_integer(call->in[3].name, padding);
    return dp_adapt_end(&a, x->rank == 4 ? &dp_resize_sample2d : &dp_resize_sample3d, 5, out_plan);
}

extern const dp_function dp_typed_sample;
const dp_function dp_typed_sample = {"sample", sample, NULL, 0, 0};
