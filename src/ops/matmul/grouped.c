/*
 * grouped.c - one product per group of rows (mixture of experts), or per group along k.
 *   grouped(x, weight, bias, scale, offset, antiquant_scale, antiquant_offset, row_scale, group_list, split_item,
 *           group_type, group_list_type, act_type) -> y
 * x, weight and y are lists: of one tensor per group, or of one tensor that holds all groups: rows of x and y one group
 * after the other, weight [groups, k, n]. group_list (cumulative ends, or counts when group_list_type is 1) cuts one x
 * into groups; as a tensor it is read when the work runs. group_type: -1 or 0 rows; 2 along k: y[g] = x[:, part g] *
 * weight[part g, :]. Factors are float types; or int8 both, with scale per column and group and row_scale; or an int8
 * or int4 weight with antiquant_scale. split_item tells what y's length tells too.
 */
#include <string.h>

#include "base/memory.h"
#include "ops/matmul/shape.h"

enum { X, WEIGHT, BIAS, SCALE, OFFSET, WEIGHT_SCALE, WEIGHT_OFFSET, ROW_SCALE, GROUP_LIST, SPLIT_ITEM, GROUP_TYPE };
enum { GROUP_LIST_TYPE = GROUP_TYPE + 1, ACT_TYPE };
enum { LISTS = ROW_SCALE + 1, ROWS = 0, ALONG_K = 2, GROUPS_MAX = 4096 };

/* A list of one tensor for all groups, of one per group, or of none (count 0). */
typedef struct list {
    int slot, count;
} list;

typedef struct state {
    list in[LISTS], y;
    int groups, group_type;
    bool cumulative;
    int group_slot;       /* of the tensor with the groups, -1: the list below, or one group per tensor of x */
    bool has_list;        /* group_ends holds what the call's array said */
    int64_t group_ends[]; /* cumulative */
} state;

static list list_of(const dp_arg *arg) {
    if (arg->kind != DP_ARG_TENSOR_LIST || arg->count == 0 || dp_tensor_count(arg->as.tensors[0]) == 0)
        return (list){-1, 0};
    return (list){arg->slot, (int)arg->count};
}

static const dp_tensor *view_of(const dp_plan *plan, list l, int group) {
    return &plan->tensors[l.slot + (l.count == 1 ? 0 : group)].view;
}

/* ---- checks ---- */

static dp_status expect_types(const dp_arg *arg, uint32_t elements) {
    for (int64_t i = 0; arg->kind == DP_ARG_TENSOR_LIST && i < arg->count; i++) {
        dp_arg one = {.name = arg->name, .kind = DP_ARG_TENSOR, .as.tensor = arg->as.tensors[i]};
        dp_status status = dp_element_expect(&one, elements);
        if (status != DP_OK)
            return status;
    }
    return DP_OK;
}

static dp_status need(const dp_arg *arg, const char *why) {
    return list_of(arg).count ? DP_OK : dp_fail(DP_ERR_NOT_FOUND, "%s is NULL or empty, but %s", arg->name, why);
}

static dp_status check_types(const dp_operator_call *call) {
    const uint32_t floats = call->op->elements, bytes = DP_EL_BIT(DP_I8), nibbles = DP_EL_BIT(DP_I4);
    const int x = call->in[X].as.tensors[0]->element, w = call->in[WEIGHT].as.tensors[0]->element;
    const bool integer = x == DP_I8, narrow = !integer && (w == DP_I8 || w == DP_I4);
    dp_status status = expect_types(&call->in[X], integer ? bytes : floats);
    if (status == DP_OK)
        status = expect_types(&call->in[WEIGHT], integer ? bytes : narrow ? DP_EL_BIT(w) : floats | bytes | nibbles);
    if (status == DP_OK)
        status = expect_types(&call->out[0], integer ? floats | bytes | DP_EL_BIT(DP_I32) : floats);
    if (status == DP_OK)
        status = expect_types(&call->in[BIAS], integer ? floats | DP_EL_BIT(DP_I32) : floats);
    if (status == DP_OK)
        status = expect_types(&call->in[SCALE], floats | DP_EL_BIT(DP_U64) | DP_EL_BIT(DP_I64));
    if (status == DP_OK)
        status = expect_types(&call->in[WEIGHT_SCALE], floats);
    if (status == DP_OK)
        status = expect_types(&call->in[ROW_SCALE], DP_EL_BIT(DP_F32));
    if (status == DP_OK && list_of(&call->in[OFFSET]).count)
        status = dp_fail(DP_ERR_UNSUPPORTED, "%s is given, but is not offered: pass NULL", call->in[OFFSET].name);
    if (status == DP_OK && narrow)
        status = need(&call->in[WEIGHT_SCALE], "a weight of int8 or int4 needs it");
    if (status == DP_OK && integer && call->out[0].as.tensors[0]->element != DP_I32)
        status = need(&call->in[SCALE], "int8 factors need it");
    if (status == DP_OK && call->n_in > ACT_TYPE && dp_arg_integer(&call->in[ACT_TYPE], 0) != 0)
        status = dp_fail(DP_ERR_UNSUPPORTED, "%s is %lld, but must be 0: activations are not offered",
                         call->in[ACT_TYPE].name, (long long)dp_arg_integer(&call->in[ACT_TYPE], 0));
    return status;
}

/* Number of groups from what the lists and shapes say. */
static dp_status count_groups(const dp_operator_call *call, state *s) {
    const dp_tensor *w = call->in[WEIGHT].as.tensors[0];
    const dp_arg *ends = &call->in[GROUP_LIST];
    int64_t listed = ends->kind == DP_ARG_INT_LIST                              ? ends->count
                     : ends->kind == DP_ARG_TENSOR && ends->as.tensor->rank > 0 ? ends->as.tensor->dims[0]
                                                                                : 0;
    int64_t groups = s->in[WEIGHT].count > 1    ? s->in[WEIGHT].count
                     : s->group_type == ALONG_K ? listed
                     : w->rank == 3             ? w->dims[0]
                     : s->in[X].count > 1       ? s->in[X].count
                                                : 1;
    if (groups < 1 || groups > GROUPS_MAX)
        return dp_fail(DP_ERR_ARGUMENT, "%s: there are %lld groups, but must be 1 to %d", call->in[WEIGHT].name,
                       (long long)groups, GROUPS_MAX);
    s->groups = (int)groups;
    if (s->in[X].count == 1 && groups > 1 && listed == 0)
        return dp_fail(DP_ERR_NOT_FOUND, "%s is NULL, but one %s must be cut into %lld groups", ends->name,
                       call->in[X].name, (long long)groups);
    if (listed && listed != groups)
        return dp_fail(DP_ERR_ARGUMENT, "%s has %lld entries, but there are %lld groups", ends->name, (long long)listed,
                       (long long)groups);
    const dp_arg *lists[] = {
        &call->in[X],         &call->in[BIAS], &call->in[SCALE], &call->in[WEIGHT_SCALE], &call->in[WEIGHT_OFFSET],
        &call->in[ROW_SCALE], &call->out[0]};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        int count = list_of(lists[i]).count;
        if (count > 1 && count != groups)
            return dp_fail(DP_ERR_ARGUMENT, "%s has %d tensors, but must have 1 or %lld, one per group", lists[i]->name,
                           count, (long long)groups);
    }
    return DP_OK;
}

static dp_status check_rank_and_inner(const dp_arg *arg, int64_t i, int rank, int inner_dim, int64_t inner) {
    const dp_tensor *t = arg->as.tensors[i];
    if (t->rank != rank)
        return dp_fail(DP_ERR_ARGUMENT, "%s[%lld] has %d dimensions, but must have %d", arg->name, (long long)i,
                       t->rank, rank);
    if (inner >= 0 && t->dims[inner_dim] != inner)
        return dp_fail(DP_ERR_ARGUMENT, "%s[%lld]: dimension %d is %lld, but must be %lld", arg->name, (long long)i,
                       inner_dim, (long long)t->dims[inner_dim], (long long)inner);
    return DP_OK;
}

static dp_status check_matrices(const dp_operator_call *call, const state *s) {
    const dp_arg *x = &call->in[X], *w = &call->in[WEIGHT], *y = &call->out[0];
    const bool along_k = s->group_type == ALONG_K, stacked = !along_k && s->in[WEIGHT].count == 1 && s->groups > 1;
    if (along_k && (s->in[X].count > 1 || s->in[WEIGHT].count > 1 || s->y.count > 1))
        return dp_fail(DP_ERR_UNSUPPORTED, "%s is 2 (groups along k), but then %s, %s and %s must be one tensor each",
                       call->in[GROUP_TYPE].name, x->name, w->name, y->name);
    for (int64_t g = 0; g < s->groups; g++) {
        int64_t ix = s->in[X].count > 1 ? g : 0, iw = s->in[WEIGHT].count > 1 ? g : 0, iy = s->y.count > 1 ? g : 0;
        const int w_rank = stacked || (!along_k && w->as.tensors[0]->rank == 3) ? 3 : 2;
        dp_status status = check_rank_and_inner(x, ix, 2, 1, -1);
        if (status == DP_OK)
            status = check_rank_and_inner(w, iw, w_rank, w_rank - 2, x->as.tensors[ix]->dims[1]);
        const int y_rank = along_k ? 3 : 2;
        if (status == DP_OK)
            status = check_rank_and_inner(y, iy, y_rank, y_rank - 1, w->as.tensors[iw]->dims[w_rank - 1]);
        if (status == DP_OK && along_k)
            status = check_rank_and_inner(y, 0, 3, 0, s->groups);
        if (status == DP_OK && along_k)
            status = check_rank_and_inner(y, 0, 3, 1, x->as.tensors[0]->dims[0]);
        if (status == DP_OK && s->in[X].count == s->y.count && !along_k)
            status = check_rank_and_inner(y, iy, 2, 0, x->as.tensors[ix]->dims[0]);
        if (status != DP_OK)
            return status;
    }
    return DP_OK;
}

/* bias, scale: [n] per group, or [groups, n]; antiquant scale with groups of k before n. */
static dp_status check_columns(const dp_operator_call *call, const state *s, int which) {
    const dp_arg *arg = &call->in[which];
    const list l = s->in[which];
    for (int i = 0; i < l.count; i++) {
        const dp_tensor *t = arg->as.tensors[i], *w = call->in[WEIGHT].as.tensors[s->in[WEIGHT].count > 1 ? i : 0];
        const int64_t n = w->dims[w->rank - 1];
        const bool shared = l.count == 1 && s->groups > 1;
        const int most = (shared ? 2 : 1) + (which == WEIGHT_SCALE || which == WEIGHT_OFFSET);
        char text[160];
        bool fits = t->rank >= (shared ? 2 : 1) && t->rank <= (s->groups == 1 ? most + 1 : most) &&
                    t->dims[t->rank - 1] == n && dp_tensor_is_contiguous(t) && (!shared || t->dims[0] == s->groups);
        if (!fits)
            return dp_fail(DP_ERR_ARGUMENT, "%s[%d] has the shape %s, but must be contiguous %s%lld]", arg->name, i,
                           dp_dims_describe(t->dims, t->rank, text, sizeof text), shared ? "[groups, ..., " : "[..., ",
                           (long long)n);
    }
    return DP_OK;
}

static dp_status check_row_scale(const dp_operator_call *call, const state *s) {
    for (int i = 0; i < s->in[ROW_SCALE].count; i++) {
        const dp_tensor *t = call->in[ROW_SCALE].as.tensors[i];
        int64_t rows =
            s->in[X].count == s->in[ROW_SCALE].count ? call->in[X].as.tensors[i]->dims[0] : dp_tensor_count(t);
        if (!dp_tensor_is_contiguous(t) || dp_tensor_count(t) != rows)
            return dp_fail(DP_ERR_ARGUMENT, "%s[%d] must be contiguous with one element per row, %lld",
                           call->in[ROW_SCALE].name, i, (long long)rows);
    }
    return DP_OK;
}

/* ---- the run ---- */

/* One group's place: rows of x and y, or elements of k. */
typedef struct part {
    int64_t first, last;
} part;

static dp_status read_ends(dp_plan *plan, const state *s, int64_t limit, part *parts) {
    int64_t at = 0;
    for (int g = 0; g < s->groups; g++) {
        int64_t value;
        if (s->group_slot >= 0) {
            const dp_tensor *t = &plan->tensors[s->group_slot].view;
            value = ((const int64_t *)dp_tensor_data(t))[g * t->strides[0]];
        } else if (s->has_list) {
            value = s->group_ends[g];
        } else {
            value = s->cumulative ? limit : limit - at;
        }
        int64_t end = at;
        if (s->cumulative ? value < at || value > limit : value < 0 || value > limit - at)
            return dp_fail(DP_ERR_ARGUMENT, "groupList[%d] is %lld, but must %s %lld", g, (long long)value,
                           s->cumulative ? "not be below the entry before it nor above" : "be 0 to",
                           (long long)(s->cumulative ? limit : limit - at));
        end = s->cumulative ? value : at + value;
        parts[g] = (part){at, end};
        at = end;
    }
    return DP_OK;
}

static char *element_at(const dp_tensor *t, int64_t offset) {
    return (char *)dp_tensor_data(t) + offset * (int64_t)dp_dtype_bits((dp_dtype)t->element) / 8;
}

static dp_gemm_matrix matrix_of(const dp_tensor *t, int64_t offset) {
    return (dp_gemm_matrix){.data = element_at(t, offset),
                            .row_stride = (ptrdiff_t)t->strides[t->rank - 2],
                            .column_stride = (ptrdiff_t)t->strides[t->rank - 1],
                            .dtype = (dp_dtype)t->element};
}

/* Where group g's line of n begins in a list of contiguous [n] or [groups, n]. */
static const void *line_of(const dp_plan *plan, const state *s, int which, int g, int64_t n) {
    const list l = s->in[which];
    const dp_tensor *t = view_of(plan, l, g);
    return element_at(t, l.count == 1 && s->groups > 1 ? g * n : 0);
}

static dp_status set_weight_scale(const dp_plan *plan, const state *s, int g, dp_gemm_problem *p) {
    const list l = s->in[WEIGHT_SCALE], offset = s->in[WEIGHT_OFFSET];
    const dp_tensor *t = view_of(plan, l, g);
    const int64_t n = (int64_t)p->n, all = dp_tensor_count(t) / (l.count == 1 ? s->groups : 1);
    const int64_t groups = n ? all / n : 1;
    const size_t size = groups > 1 ? p->k / (size_t)groups : 0;
    if (groups > 1 && (p->k % (size_t)groups || size % 32))
        return dp_fail(DP_ERR_ARGUMENT,
                       "antiquantScale has %lld groups for %zu rows of the weight, but groups must have "
                       "a multiple of 32 rows",
                       (long long)groups, p->k);
    p->quant = (dp_gemm_quant){.scale = element_at(t, l.count == 1 && s->groups > 1 ? g * all : 0),
                               .group_stride = (ptrdiff_t)n,
                               .column_stride = 1,
                               .group_size = size,
                               .dtype = (dp_dtype)t->element};
    if (offset.count)
        p->quant.offset = element_at(view_of(plan, offset, g), offset.count == 1 && s->groups > 1 ? g * all : 0);
    return DP_OK;
}

static dp_status set_problem(const dp_plan *plan, const state *s, int g, part at, float *scales, dp_gemm_problem *p) {
    const dp_tensor *x = view_of(plan, s->in[X], g), *w = view_of(plan, s->in[WEIGHT], g), *y = view_of(plan, s->y, g);
    const bool along_k = s->group_type == ALONG_K, stacked = w->rank == 3;
    const int64_t size = at.last - at.first;
    *p = (dp_gemm_problem){.alpha = 1, .m = (size_t)(along_k ? x->dims[0] : size), .n = (size_t)w->dims[w->rank - 1]};
    p->k = (size_t)(along_k ? size : x->dims[1]);
    p->a = matrix_of(x, along_k ? at.first * x->strides[1] : s->in[X].count > 1 ? 0 : at.first * x->strides[0]);
    p->b = matrix_of(w, along_k ? at.first * w->strides[0] : stacked ? g * w->strides[0] : 0);
    p->c = matrix_of(y, along_k ? g * y->strides[0] : s->y.count > 1 ? 0 : at.first * y->strides[0]);
    if (s->in[BIAS].count) {
        p->epilogue.bias = line_of(plan, s, BIAS, g, (int64_t)p->n);
        p->epilogue.bias_dtype = (dp_dtype)view_of(plan, s->in[BIAS], g)->element;
    }
    if (s->in[SCALE].count && y->element != DP_I32) {
        const dp_tensor *t = view_of(plan, s->in[SCALE], g);
        dp_scales_to_f32(t->element, line_of(plan, s, SCALE, g, (int64_t)p->n), (int64_t)p->n, scales);
        p->epilogue.column_scale = scales;
    }
    if (s->in[ROW_SCALE].count && y->element != DP_I32) {
        const dp_tensor *t = view_of(plan, s->in[ROW_SCALE], g);
        p->epilogue.row_scale = (const float *)dp_tensor_data(t) + (s->in[ROW_SCALE].count > 1 ? 0 : at.first);
    }
    return s->in[WEIGHT_SCALE].count ? set_weight_scale(plan, s, g, p) : DP_OK;
}

static dp_status run_groups(dp_plan *plan, const state *s, part *parts, float *scales, size_t scales_apart,
                            dp_gemm_problem *problems) {
    const dp_tensor *x = view_of(plan, s->in[X], 0);
    if (s->in[X].count > 1) {
        int64_t at = 0;
        for (int g = 0; g < s->groups; g++) {
            int64_t rows = view_of(plan, s->in[X], g)->dims[0];
            parts[g] = (part){at, at + rows};
            at += rows;
        }
        if (s->y.count == 1 && at > view_of(plan, s->y, 0)->dims[0])
            return dp_fail(DP_ERR_ARGUMENT, "y has %lld rows, but the groups of x have %lld",
                           (long long)view_of(plan, s->y, 0)->dims[0], (long long)at);
    } else {
        dp_status status = read_ends(plan, s, s->group_type == ALONG_K ? x->dims[1] : x->dims[0], parts);
        if (status != DP_OK)
            return status;
    }
    for (int g = 0; g < s->groups; g++) {
        if (s->y.count > 1 && parts[g].last - parts[g].first > view_of(plan, s->y, g)->dims[0])
            return dp_fail(DP_ERR_ARGUMENT, "y[%d] has %lld rows, but its group has %lld", g,
                           (long long)view_of(plan, s->y, g)->dims[0], (long long)(parts[g].last - parts[g].first));
        if (s->in[ROW_SCALE].count == 1 && parts[g].last > dp_tensor_count(view_of(plan, s->in[ROW_SCALE], 0)))
            return dp_fail(DP_ERR_ARGUMENT, "perTokenScale has %lld elements, but x has more rows",
                           (long long)dp_tensor_count(view_of(plan, s->in[ROW_SCALE], 0)));
        dp_status status = set_problem(plan, s, g, parts[g], scales + (size_t)g * scales_apart, &problems[g]);
        if (status != DP_OK)
            return status;
    }
    return dp_problems_run(problems, (size_t)s->groups);
}

static dp_status run(dp_plan *plan) {
    const state *s = dp_plan_state(plan);
    size_t columns = 0;
    for (int g = 0; g < s->groups && s->in[SCALE].count; g++) {
        const dp_tensor *w = view_of(plan, s->in[WEIGHT], g);
        columns = (size_t)w->dims[w->rank - 1] > columns ? (size_t)w->dims[w->rank - 1] : columns;
    }
    const size_t groups = (size_t)s->groups, problem_bytes = groups * sizeof(dp_gemm_problem);
    const size_t part_bytes = groups * sizeof(part);
    char *room = dp_alloc(DP_MEM_RUNTIME, problem_bytes + part_bytes + groups * columns * sizeof(float));
    if (!room)
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for %zu groups", groups);
    dp_status status =
        run_groups(plan, s, (part *)(void *)(room + problem_bytes),
                   (float *)(void *)(room + problem_bytes + part_bytes), columns, (dp_gemm_problem *)(void *)room);
    dp_free(room);
    return status;
}

static dp_status check(const dp_operator_call *call, state *s) {
    for (int i = X; i <= WEIGHT; i++)
        if (call->in[i].count == 0)
            return dp_fail(DP_ERR_ARGUMENT, "%s has no tensors, but must have at least 1", call->in[i].name);
    if (call->out[0].count == 0)
        return dp_fail(DP_ERR_ARGUMENT, "%s has no tensors, but must have at least 1", call->out[0].name);
    dp_status status = check_types(call);
    for (int i = 0; i < LISTS; i++)
        s->in[i] = i <= WEIGHT ? (list){call->in[i].slot, (int)call->in[i].count} : list_of(&call->in[i]);
    s->y = (list){call->out[0].slot, (int)call->out[0].count};
    s->group_type = (int)dp_arg_integer(&call->in[GROUP_TYPE], ROWS);
    s->cumulative = call->n_in <= GROUP_LIST_TYPE || dp_arg_integer(&call->in[GROUP_LIST_TYPE], 0) == 0;
    if (status == DP_OK && s->group_type != ALONG_K && s->group_type != ROWS && s->group_type != -1)
        status = dp_fail(DP_ERR_ARGUMENT, "%s is %d, but must be -1 (no grouping), 0 (rows) or 2 (along k)",
                         call->in[GROUP_TYPE].name, s->group_type);
    if (status == DP_OK && call->n_in > GROUP_LIST_TYPE && (dp_arg_integer(&call->in[GROUP_LIST_TYPE], 0) & ~1))
        status = dp_fail(DP_ERR_ARGUMENT, "%s is %lld, but must be 0 (cumulative) or 1 (counts)",
                         call->in[GROUP_LIST_TYPE].name, (long long)dp_arg_integer(&call->in[GROUP_LIST_TYPE], 0));
    if (status == DP_OK && (dp_arg_integer(&call->in[SPLIT_ITEM], 0) & ~3))
        status = dp_fail(DP_ERR_ARGUMENT, "%s is %lld, but must be 0 to 3", call->in[SPLIT_ITEM].name,
                         (long long)dp_arg_integer(&call->in[SPLIT_ITEM], 0));
    if (status == DP_OK)
        status = count_groups(call, s);
    if (status == DP_OK)
        status = check_matrices(call, s);
    for (int i = BIAS; i <= WEIGHT_OFFSET && status == DP_OK; i++)
        status = check_columns(call, s, i);
    return status == DP_OK ? check_row_scale(call, s) : status;
}

static dp_status prepare(const dp_operator_call *call, dp_plan **out_plan) {
    state s = {.group_slot = -1};
    dp_status status = check(call, &s);
    const dp_arg *ends = &call->in[GROUP_LIST];
    if (status == DP_OK && ends->kind == DP_ARG_TENSOR) {
        if (ends->as.tensor->element != DP_I64 || ends->as.tensor->rank != 1)
            status = dp_fail(DP_ERR_ARGUMENT, "%s must have 1 dimension of i64", ends->name);
        s.group_slot = ends->slot;
    }
    if (status != DP_OK)
        return status;
    s.has_list = ends->kind == DP_ARG_INT_LIST && ends->count > 0;
    dp_plan *plan = dp_plan_new(call, run, sizeof s + (size_t)s.groups * sizeof(int64_t));
    if (!plan)
        return DP_ERR_OUT_OF_MEMORY;
    state *kept = dp_plan_state(plan);
    memcpy(kept, &s, sizeof s);
    if (s.has_list)
        memcpy(kept->group_ends, ends->as.integers, (size_t)s.groups * sizeof(int64_t));
    plan->path = "groups";
    *out_plan = plan;
    return DP_OK;
}

extern const dp_function dp_matmul_grouped;
const dp_function dp_matmul_grouped = {"grouped", prepare, NULL,
                                       1u << BIAS | 1u << SCALE | 1u << OFFSET | 1u << WEIGHT_SCALE |
                                           1u << WEIGHT_OFFSET | 1u << ROW_SCALE | 1u << GROUP_LIST | 1u << GROUP_TYPE |
                                           1u << GROUP_LIST_TYPE | 1u << ACT_TYPE,
                                       0};
