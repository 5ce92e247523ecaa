/*
 * rewrite.c - types of graphs that the register of operators does not have, made of those it has: Permute, BNLL, Xdivy,
 * PRelu, LayerNorm, InstanceNorm, StridedSliceV2, ResizeBilinearV2D.
 */
#include <string.h>

#include "api/ge/ge.h"
#include "graph/infer.h"

typedef struct maker {
    dp_ge_operator *op;
    dp_model *model;
    dp_status status;
} maker;

static void keep(maker *m, dp_status status) {
    if (m->status == DP_OK)
        m->status = status;
}

static dp_node *begin(maker *m, const char *type, int n, dp_value *const *inputs) {
    if (m->status != DP_OK)
        return NULL;
    dp_node *node = dp_node_new(m->model->graph, NULL, type, m->op->name, n, 1);
    if (!node)
        keep(m, DP_ERR_OUT_OF_MEMORY);
    for (int i = 0; node && i < n; i++)
        node->inputs[i] = inputs[i];
    return node;
}

/* The node's result; NULL after a failure. */
static dp_value *end(maker *m, dp_node *node, int element) {
    bool folded;
    dp_value *value = node && m->status == DP_OK ? dp_value_new(m->model, NULL) : NULL;
    if (!value) {
        keep(m, DP_ERR_OUT_OF_MEMORY);
        return NULL;
    }
    value->tensor.element = element;
    dp_node_output(node, 0, value);
    keep(m, dp_node_infer(node));
    if (m->status == DP_OK)
        keep(m, dp_node_fold(node, &folded));
    return m->status == DP_OK ? value : NULL;
}

static dp_value *both(maker *m, const char *type, dp_value *a, dp_value *b) {
    dp_node *node = begin(m, type, 2, (dp_value *[]){a, b});
    return end(m, node, node ? a->tensor.element : DP_F32);
}
static dp_value *one(maker *m, const char *type, dp_value *a) {
    dp_node *node = begin(m, type, 1, (dp_value *[]){a});
    return end(m, node, node ? a->tensor.element : DP_F32);
}

static dp_value *number(maker *m, double value) {
    float real = (float)value;
    dp_value *made = m->status == DP_OK ? dp_value_constant(m->model, NULL, DP_F32, NULL, 0, &real) : NULL;
    if (!made)
        keep(m, DP_ERR_OUT_OF_MEMORY);
    return made;
}
static dp_value *integers(maker *m, const int64_t *list, int count) {
    dp_value *made = m->status == DP_OK ? dp_value_integers(m->model, list, count) : NULL;
    if (!made)
        keep(m, DP_ERR_OUT_OF_MEMORY);
    return made;
}

/* The input of the name; refused when it is missing. */
static dp_value *input(maker *m, const char *name) {
    const dp_ge_link *link = m->status == DP_OK ? dp_ge_find_link(m->op, name, -1) : NULL;
    dp_value *value = link ? dp_ge_linked(link) : NULL;
    if (!value && m->status == DP_OK)
        keep(m, dp_fail(DP_ERR_ARGUMENT, "input %s is missing", name));
    return value;
}
static const dp_arg *attribute(const maker *m, const char *name, dp_arg_kind kind) {
    const dp_ge_attribute *a = dp_ge_find_attribute(m->op, name);
    return a && a->arg.kind == kind ? &a->arg : NULL;
}
static double real(const maker *m, const char *name, double otherwise) {
    const dp_arg *arg = attribute(m, name, DP_ARG_REAL);
    return arg ? arg->as.real : otherwise;
}

/* Numbers per channel, [C], in the shape that goes with dim 1 of x. */
static dp_value *per_channel(maker *m, dp_value *numbers, const dp_value *x) {
    int64_t dims[DP_TENSOR_DIMS] = {1, 1, 1, 1, 1, 1, 1, 1};
    if (m->status != DP_OK || dp_tensor_count(&numbers->tensor) == 1 || x->tensor.rank < 3)
        return numbers;
    dims[0] = dp_tensor_count(&numbers->tensor);
    dp_value *shape = integers(m, dims, x->tensor.rank - 1);
    dp_node *node = begin(m, "Reshape", 2, (dp_value *[]){numbers, shape});
    return end(m, node, node ? numbers->tensor.element : DP_F32);
}

static dp_value *permute(maker *m) {
    dp_value *x = input(m, "x");
    const dp_arg *order = attribute(m, "order", DP_ARG_INT_LIST);
    dp_node *node = begin(m, "TransposeD", 1, &x);
    if (node && order)
        keep(m, dp_node_set_integers(node, "perm", order->as.integers, (int)order->count));
    else
        keep(m, dp_fail(DP_ERR_ARGUMENT, "attribute order is not set"));
    return end(m, node, node ? x->tensor.element : DP_F32);
}

/* 0 where x1 is 0, whatever x2 is. */
static dp_value *xdivy(maker *m) {
    dp_value *x1 = input(m, "x1"), *x2 = input(m, "x2"), *zero = number(m, 0);
    dp_value *quotient = both(m, "RealDiv", x1, x2);
    dp_node *node = begin(m, "Equal", 2, (dp_value *[]){x1, zero});
    dp_value *is_zero = end(m, node, DP_EL_BOOL);
    node = begin(m, "SelectV2", 3, (dp_value *[]){is_zero, zero, quotient});
    return end(m, node, node ? x1->tensor.element : DP_F32);
}

static dp_value *prelu(maker *m) {
    dp_value *x = input(m, "x"), *weight = input(m, "weight");
    weight = per_channel(m, weight, x);
    dp_value *below = both(m, "Minimum", x, number(m, 0));
    return both(m, "Add", one(m, "Relu", x), both(m, "Mul", below, weight));
}

static dp_value *layer_norm(maker *m) {
    dp_value *in[] = {input(m, "x"), input(m, "gamma"), input(m, "beta")};
    const dp_arg *axis = attribute(m, "begin_norm_axis", DP_ARG_INTEGER);
    dp_node *node = begin(m, "LayerNormV3", 3, in);
    if (node && axis)
        keep(m, dp_node_set_integer(node, "begin_norm_axis", axis->as.integer));
    if (node)
        keep(m, dp_node_set_real(node, "epsilon", real(m, "epsilon", 1e-7)));
    return end(m, node, node ? in[0]->tensor.element : DP_F32);
}

static dp_value *mean(maker *m, dp_value *x) {
    int64_t axes[DP_TENSOR_DIMS];
    int n = 0;
    for (int d = 2; m->status == DP_OK && d < x->tensor.rank; d++)
        axes[n++] = d;
    dp_node *node = begin(m, "ReduceMeanD", 1, &x);
    if (node) {
        keep(m, dp_node_set_integers(node, "axes", axes, n));
        keep(m, dp_node_set_integer(node, "keep_dims", 1));
    }
    return end(m, node, DP_F32);
}

static dp_value *instance_norm(maker *m) {
    dp_value *x = input(m, "x"), *gamma = input(m, "gamma"), *beta = input(m, "beta");
    if (m->status == DP_OK && x->tensor.rank < 3)
        keep(m, dp_fail(DP_ERR_ARGUMENT, "x has %d dimensions, but must have at least 3", x->tensor.rank));
    dp_value *difference = both(m, "Sub", x, mean(m, x));
    dp_value *variance = mean(m, both(m, "Mul", difference, difference));
    dp_value *root = one(m, "Sqrt", both(m, "Add", variance, number(m, real(m, "epsilon", 1e-6))));
    dp_value *scaled = both(m, "Mul", both(m, "RealDiv", difference, root), per_channel(m, gamma, x));
    return both(m, "Add", scaled, per_channel(m, beta, x));
}

/* Numbers of a constant of integers; -1: it is none. */
static int read_integers(const dp_value *value, int64_t *out, int most) {
    int64_t n = value && value->is_constant ? dp_tensor_count(&value->tensor) : -1;
    if (n < 0 || n > most || (value->tensor.element != DP_I32 && value->tensor.element != DP_I64))
        return -1;
    for (int64_t i = 0; i < n; i++)
        out[i] = value->tensor.element == DP_I32 ? ((const int32_t *)value->tensor.base)[i]
                                                 : ((const int64_t *)value->tensor.base)[i];
    return (int)n;
}
static int optional_integers(const maker *m, const char *name, int64_t *out) {
    const dp_ge_link *link = dp_ge_find_link(m->op, name, -1);
    return link ? read_integers(dp_ge_linked(link), out, DP_TENSOR_DIMS) : 0;
}

/* Slices along some axes become slices along all. */
static dp_value *strided_slice(maker *m) {
    int64_t from[DP_TENSOR_DIMS], to[DP_TENSOR_DIMS], axes[DP_TENSOR_DIMS], steps[DP_TENSOR_DIMS];
    int64_t begins[DP_TENSOR_DIMS] = {0}, ends[DP_TENSOR_DIMS], strides[DP_TENSOR_DIMS];
    dp_value *x = input(m, "x");
    int n = read_integers(input(m, "begin"), from, DP_TENSOR_DIMS),
        n_to = read_integers(input(m, "end"), to, DP_TENSOR_DIMS);
    int n_axes = optional_integers(m, "axes", axes), n_steps = optional_integers(m, "strides", steps);
    if (m->status == DP_OK && (n < 0 || n_to != n || (n_axes && n_axes != n) || (n_steps && n_steps != n)))
        keep(m, dp_fail(DP_ERR_UNSUPPORTED, "begin, end, axes and strides must be constants of as many numbers"));
    if (m->status != DP_OK)
        return NULL;
    for (int d = 0; d < x->tensor.rank; d++) {
        ends[d] = x->tensor.dims[d];
        strides[d] = 1;
    }
    for (int i = 0; i < n; i++) {
        int64_t axis = n_axes ? axes[i] : i;
        axis += axis < 0 ? x->tensor.rank : 0;
        if (axis < 0 || axis >= x->tensor.rank) {
            keep(m, dp_fail(DP_ERR_ARGUMENT, "axis %lld does not exist in %d dimensions", (long long)axis,
                            x->tensor.rank));
            return NULL;
        }
        begins[axis] = from[i];
        ends[axis] = to[i];
        strides[axis] = n_steps ? steps[i] : 1;
    }
    const int rank = x->tensor.rank;
    dp_value *in[] = {x, integers(m, begins, rank), integers(m, ends, rank), integers(m, strides, rank)};
    dp_node *node = begin(m, "StridedSlice", 4, in);
    return end(m, node, node ? x->tensor.element : DP_F32);
}

static dp_value *resize(maker *m) {
    dp_value *x = input(m, "x");
    const dp_arg *size = attribute(m, "size", DP_ARG_INT_LIST), *align = attribute(m, "align_corners", DP_ARG_INTEGER),
                 *half = attribute(m, "half_pixel_centers", DP_ARG_INTEGER);
    if (!size) {
        keep(m, dp_fail(DP_ERR_ARGUMENT, "attribute size is not set"));
        return NULL;
    }
    dp_node *node =
        begin(m, "ResizeBilinearV2", 2, (dp_value *[]){x, integers(m, size->as.integers, (int)size->count)});
    if (node && align)
        keep(m, dp_node_set_integer(node, "align_corners", align->as.integer));
    if (node && half)
        keep(m, dp_node_set_integer(node, "half_pixel_centers", half->as.integer));
    return end(m, node, node ? x->tensor.element : DP_F32);
}

static dp_value *bnll(maker *m) {
    return one(m, "SoftplusV2", input(m, "x"));
}

dp_status dp_ge_rewrite(dp_ge_operator *op, dp_model *model, bool *out_done) {
    static const struct {
        const char *type;
        dp_value *(*make)(maker *m);
    } rows[] = {{"Permute", permute},
                {"BNLL", bnll},
                {"Xdivy", xdivy},
                {"PRelu", prelu},
                {"LayerNorm", layer_norm},
                {"InstanceNorm", instance_norm},
                {"StridedSliceV2", strided_slice},
                {"ResizeBilinearV2D", resize}};
    maker m = {.op = op, .model = model, .status = DP_OK};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (strcmp(rows[i].type, op->type) != 0)
            continue;
        *out_done = true;
        dp_value *value = rows[i].make(&m);
        if (m.status != DP_OK)
            return m.status;
        return value ? dp_ge_give(op, model, value) : DP_ERR_OUT_OF_MEMORY;
    }
    return DP_OK;
}
