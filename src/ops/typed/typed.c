#include "ops/typed/typed.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "ops/elementwise/kernels.h"

enum { NAME_MAX_BYTES = 64, NEAREST = 3, ROOM = 1024, SCALARS = 8 };

/* Finding. */

static char lower(char c) {
    return (char)tolower((unsigned char)c);
}

/* Levenshtein's distance without case; both shorter than NAME_MAX_BYTES. */
static int distance(const char *a, const char *b) {
    int row[NAME_MAX_BYTES + 1], n = (int)strlen(b);
    for (int j = 0; j <= n; j++)
        row[j] = j;
    for (int i = 1; a[i - 1]; i++) {
        int corner = row[0];
        row[0] = i;
        for (int j = 1; j <= n; j++) {
            int change = corner + (lower(a[i - 1]) != lower(b[j - 1]));
            corner = row[j];
            int shorter = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            row[j] = shorter < change ? shorter : change;
        }
    }
    return row[n];
}

static dp_status not_found(const char *name) {
    const char *best[NEAREST] = {NULL};
    int best_distance[NEAREST] = {0};
    if (strnlen(name, NAME_MAX_BYTES) >= NAME_MAX_BYTES)
        return dp_fail(DP_ERR_NOT_FOUND, "opType is \"%.40s...\", which is no operator type", name);
    for (unsigned i = 0; i < dp_typed_count; i++) {
        const char *known = dp_typed_all[i].op.name;
        int d = distance(name, known);
        for (int k = 0; k < NEAREST; k++) {
            if (best[k] && best_distance[k] <= d)
                continue;
            for (int m = NEAREST - 1; m > k; m--)
                best[m] = best[m - 1], best_distance[m] = best_distance[m - 1];
            best[k] = known, best_distance[k] = d;
            break;
        }
    }
    return dp_fail(DP_ERR_NOT_FOUND,
                   "opType is \"%s\", which is none of the %u types that are offered; the nearest are %s, %s and %s",
                   name, dp_typed_count, best[0], best[1], best[2]);
}

dp_status dp_typed_find(const char *name, const dp_typed **out_type) {
    for (unsigned i = 0; i < dp_typed_count; i++) {
        if (strcmp(dp_typed_all[i].op.name, name) == 0) {
            *out_type = &dp_typed_all[i];
            return DP_OK;
        }
    }
    return not_found(name);
}

/* Binding: the arguments of one call, in the order of the type's parameters. */

typedef struct binding {
    const dp_typed_call *call;
    dp_arg args[DP_OP_PARAMS];
    dp_scalar scalars[SCALARS];
    dp_tensor data; /* of the one input whose contents are read as they are */
    int64_t room[ROOM];
    int n_scalars, n_room;
} binding;

/* Which parameter of [first, first + count) takes thing `index` of n, and the place in it when it is a list. */
static int param_of(const dp_typed *type, int first, int count, int n, int index, int *out_place) {
    for (int p = 0, at = 0; p < count; p++) {
        int taken = type->op.params[first + p].kind == DP_ARG_TENSOR_LIST ? n - (count - 1) : 1;
        if (index < at + taken) {
            *out_place = index - at;
            return first + p;
        }
        at += taken;
    }
    return -1;
}

bool dp_typed_reads(const dp_typed *type, int n_inputs, int index) {
    int place, param = param_of(type, 0, type->n_inputs, n_inputs, index, &place);
    return param >= 0 && type->traits[param].is_value;
}

static dp_status check_count(const dp_typed *type, int first, int count, int n, const char *what) {
    int least = 0;
    bool list = false;
    for (int p = first; p < first + count; p++) {
        least += !type->traits[p].is_optional;
        list |= type->op.params[p].kind == DP_ARG_TENSOR_LIST;
    }
    if (n < least || (!list && n > count))
        return dp_fail(DP_ERR_ARGUMENT, "%s is %d, but %s has %s%d", what, n, type->op.name,
                       list            ? "at least "
                       : least < count ? "up to "
                                       : "",
                       list ? least : count);
    return DP_OK;
}

static dp_status bind_tensors(binding *b, int first, int count, const dp_tensor *const *tensors, int n) {
    for (int p = 0, at = 0; p < count; p++) {
        const dp_param *param = &b->call->type->op.params[first + p];
        dp_arg *arg = &b->args[first + p];
        *arg = (dp_arg){.name = param->name, .kind = DP_ARG_ABSENT};
        if (param->kind == DP_ARG_TENSOR_LIST) {
            int taken = n - (count - 1);
            for (int i = at; i < at + taken; i++)
                if (!tensors[i])
                    return dp_fail(DP_ERR_ARGUMENT, "%s: tensor %d of the list is missing", param->name, i - at);
            arg->kind = DP_ARG_TENSOR_LIST;
            arg->count = taken;
            arg->as.tensors = tensors + at;
            at += taken;
        } else if (at < n) {
            if (tensors[at] && param->kind == DP_ARG_TENSOR) {
                arg->kind = DP_ARG_TENSOR;
                arg->as.tensor = tensors[at];
            }
            at++;
        }
    }
    return DP_OK;
}

/* Makes the argument a list of `count` integers, to be written; NULL with a sentence when there is no room. */
static int64_t *take_room(binding *b, dp_arg *arg, int64_t count) {
    if (count > ROOM - b->n_room) {
        dp_fail(DP_ERR_ARGUMENT, "%s has %lld numbers, but may have %d", arg->name, (long long)count, ROOM - b->n_room);
        return NULL;
    }
    int64_t *list = &b->room[b->n_room];
    b->n_room += (int)count;
    arg->kind = DP_ARG_INT_LIST;
    arg->count = count;
    arg->as.integers = list;
    return list;
}

/* The contents of an input as numbers. */
static dp_status bind_value(binding *b, int p, const dp_tensor *tensor, const void *contents) {
    const dp_elementwise_table *t = dp_elementwise_current();
    dp_arg *arg = &b->args[p];
    dp_arg_kind kind = b->call->type->op.params[p].kind;
    if (kind == DP_ARG_TENSOR && contents) {
        b->data = *tensor;
        b->data.base = (void *)(uintptr_t)contents;
        arg->as.tensor = &b->data;
        return DP_OK;
    }
    uint32_t allowed = kind == DP_ARG_TENSOR   ? DP_SET_ALL
                       : kind == DP_ARG_SCALAR ? DP_EL_FLOATS | DP_EL_INTS | DP_EL_BIT(DP_EL_BOOL) : DP_EL_INTS;
    dp_arg as_tensor = {.name = arg->name, .kind = DP_ARG_TENSOR, .as.tensor = tensor};
    dp_status status = dp_element_expect(&as_tensor, allowed);
    if (status != DP_OK)
        return status;
    if (!contents)
        return dp_fail(DP_ERR_ARGUMENT, "%s: its contents must be known now: aclSetTensorConst, or a data buffer",
                       arg->name);
    int64_t count = dp_tensor_count(tensor), *list;
    if (kind == DP_ARG_INT_LIST) {
        list = take_room(b, arg, count);
        if (!list)
            return DP_ERR_ARGUMENT;
        t->load[tensor->element][DP_COMPUTE_I64](list, contents, (size_t)count);
        return DP_OK;
    }
    if (count != 1)
        return dp_fail(DP_ERR_ARGUMENT, "%s has %lld elements, but must have 1", arg->name, (long long)count);
    dp_scalar *s = &b->scalars[b->n_scalars++];
    s->element = tensor->element;
    if (dp_element_is_float(tensor->element)) {
        t->load[tensor->element][DP_COMPUTE_F64](&s->real, contents, 1);
        s->integer = s->real >= -0x1p62 && s->real <= 0x1p62 ? (int64_t)s->real : 0;
    } else {
        t->load[tensor->element][DP_COMPUTE_I64](&s->integer, contents, 1);
        s->real = (double)s->integer;
    }
    arg->kind = kind;
    if (kind == DP_ARG_SCALAR)
        arg->as.scalar = s;
    else
        arg->as.integer = s->integer;
    return DP_OK;
}

static dp_status bind_inputs(binding *b) {
    const dp_typed_call *call = b->call;
    const dp_typed *type = call->type;
    dp_status status = check_count(type, 0, type->n_inputs, call->n_inputs, "numInputs");
    if (status == DP_OK)
        status = bind_tensors(b, 0, type->n_inputs, call->inputs, call->n_inputs);
    for (int i = 0; i < call->n_inputs && status == DP_OK; i++) {
        int place, p = param_of(type, 0, type->n_inputs, call->n_inputs, i, &place);
        if (type->traits[p].is_value && call->inputs[i])
            status = bind_value(b, p, call->inputs[i], call->values[i]);
        else if (!call->inputs[i] && !type->traits[p].is_optional)
            status = dp_fail(DP_ERR_ARGUMENT, "%s is missing (input %d has no type or no data), but %s needs it",
                             b->args[p].name, i, type->op.name);
    }
    return status;
}

static dp_status bind_outputs(binding *b) {
    const dp_typed_call *call = b->call;
    const dp_typed *type = call->type;
    dp_status status = check_count(type, type->n_inputs, type->n_outputs, call->n_outputs, "numOutputs");
    if (status == DP_OK)
        status = bind_tensors(b, type->n_inputs, type->n_outputs, call->outputs, call->n_outputs);
    for (int p = type->n_inputs; p < type->n_inputs + type->n_outputs && status == DP_OK; p++)
        if (b->args[p].kind == DP_ARG_ABSENT && !type->traits[p].is_optional)
            status = dp_fail(DP_ERR_ARGUMENT, "%s is missing, but %s writes it", b->args[p].name, type->op.name);
    return status;
}

static const char *kind_words(dp_arg_kind kind) {
    switch (kind) {
    case DP_ARG_INTEGER:
        return "an integer or a bool";
    case DP_ARG_REAL:
        return "a float";
    case DP_ARG_TEXT:
        return "a string";
    case DP_ARG_TYPE:
        return "an element type";
    case DP_ARG_INT_LIST:
        return "a list of integers";
    case DP_ARG_FLOAT_LIST:
        return "a list of floats";
    case DP_ARG_BOOL_LIST:
        return "a list of bools";
    default:
        return "a list of strings";
    }
}

/* given is converted where nothing is lost: an integer to a float, to a list of one, to a type. */
static dp_status convert(binding *b, dp_arg_kind kind, const dp_arg *given, dp_arg *arg) {
    const char *name = arg->name;
    if (kind == DP_ARG_TYPE && (given->kind == DP_ARG_TYPE || given->kind == DP_ARG_INTEGER)) {
        *arg = (dp_arg){.name = name, .kind = DP_ARG_INTEGER};
        arg->as.integer = b->call->element_of(given->as.integer);
        if (arg->as.integer != DP_EL_NONE)
            return DP_OK;
        return dp_fail(DP_ERR_ARGUMENT, "attribute %s is %lld, but must be an element type that operators know", name,
                       (long long)given->as.integer);
    }
    if (kind == DP_ARG_REAL && given->kind == DP_ARG_INTEGER) {
        *arg = (dp_arg){.name = name, .kind = DP_ARG_REAL, .as.real = (double)given->as.integer};
        return DP_OK;
    }
    if (kind == DP_ARG_INT_LIST && given->kind == DP_ARG_INTEGER) {
        int64_t *list = take_room(b, arg, 1);
        if (!list)
            return DP_ERR_ARGUMENT;
        list[0] = given->as.integer;
        return DP_OK;
    }
    if (kind != given->kind)
        return dp_fail(DP_ERR_ARGUMENT, "attribute %s is %s, but must be %s", name, kind_words(given->kind),
                       kind_words(kind));
    *arg = *given;
    arg->name = name;
    return DP_OK;
}

static void take_default(const dp_typed_trait *trait, dp_arg_kind kind, dp_arg *arg) {
    arg->kind = kind == DP_ARG_TYPE ? DP_ARG_INTEGER : kind;
    if (kind == DP_ARG_REAL)
        arg->as.real = trait->number;
    else if (kind == DP_ARG_TEXT)
        arg->as.text = trait->text;
    else if (kind == DP_ARG_INT_LIST)
        arg->as.integers = trait->list, arg->count = trait->count;
    else
        arg->as.integer = (int64_t)trait->number;
}

static bool is_default(const dp_typed_trait *trait, const dp_arg *arg) {
    switch (arg->kind) {
    case DP_ARG_REAL:
        return arg->as.real == trait->number;
    case DP_ARG_INTEGER:
        return arg->as.integer == (int64_t)trait->number;
    case DP_ARG_TEXT:
        return strcmp(arg->as.text, trait->text) == 0;
    case DP_ARG_INT_LIST:
        return arg->count == trait->count &&
               (!arg->count || memcmp(arg->as.integers, trait->list, (size_t)arg->count * sizeof(int64_t)) == 0);
    default:
        return false;
    }
}

static const dp_arg *given_attribute(const dp_typed_call *call, const char *name) {
    for (int i = call->n_attributes - 1; i >= 0; i--)
        if (strcmp(call->attributes[i].name, name) == 0)
            return &call->attributes[i];
    return NULL;
}

static dp_status bind_attribute(binding *b, int p) {
    const dp_typed *type = b->call->type;
    const dp_typed_trait *trait = &type->traits[p];
    const dp_param *param = &type->op.params[p];
    dp_arg *arg = &b->args[p];
    *arg = (dp_arg){.name = param->name, .kind = DP_ARG_ABSENT};
    const dp_arg *given = given_attribute(b->call, param->name);
    if (given) {
        dp_status status = convert(b, param->kind, given, arg);
        if (status != DP_OK || !trait->is_fixed || is_default(trait, arg))
            return status;
        return trait->text
                   ? dp_fail(DP_ERR_UNSUPPORTED, "attribute %s of %s is other than \"%s\", which Doppel does not do",
                             param->name, type->op.name, trait->text)
                   : dp_fail(DP_ERR_UNSUPPORTED, "attribute %s of %s is other than %g, which Doppel does not do",
                             param->name, type->op.name, trait->number);
    }
    if (trait->has_default)
        take_default(trait, param->kind, arg);
    else if (!trait->is_optional)
        return dp_fail(DP_ERR_ARGUMENT, "attribute %s is not set, but %s needs it (%s)", param->name, type->op.name,
                       kind_words(param->kind));
    return DP_OK;
}

/* Names that begin with _ are notes of frameworks to themselves. */
static dp_status check_names(const dp_typed_call *call) {
    const dp_typed *type = call->type;
    int first = type->n_inputs + type->n_outputs;
    for (int i = 0; i < call->n_attributes; i++) {
        bool known = call->attributes[i].name[0] == '_';
        char list[400] = "none";
        size_t used = 0;
        for (int p = first; p < type->op.n_params && !known; p++) {
            known = strcmp(call->attributes[i].name, type->op.params[p].name) == 0;
            if (used < sizeof list)
                used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", used ? ", " : "",
                                         type->op.params[p].name);
        }
        if (!known)
            return dp_fail(DP_ERR_ARGUMENT, "attribute %s is none of %s, whose attributes are: %s",
                           call->attributes[i].name, type->op.name, list);
    }
    return DP_OK;
}

static dp_status bind(binding *b) {
    const dp_typed *type = b->call->type;
    dp_status status = check_names(b->call);
    if (status == DP_OK)
        status = bind_inputs(b);
    if (status == DP_OK)
        status = bind_outputs(b);
    for (int p = type->n_inputs + type->n_outputs; p < type->op.n_params && status == DP_OK; p++)
        status = bind_attribute(b, p);
    return status;
}

dp_status dp_typed_prepare(const dp_typed_call *call, dp_plan **out_plan) {
    binding b = {.call = call};
    dp_status status = bind(&b);
    return status == DP_OK ? dp_operator_prepare(&call->type->op, b.args, out_plan) : status;
}

/* Strides of a contiguous tensor; dims that no memory holds are refused. */
static dp_status lay_out(dp_tensor *t) {
    int64_t step = 1;
    bool fits = true;
    for (int d = t->rank - 1; d >= 0; d--) {
        t->strides[d] = step;
        fits &= !__builtin_mul_overflow(step, t->dims[d], &step);
    }
    return fits ? dp_tensor_check(t, "an output")
                : dp_fail(DP_ERR_ARGUMENT, "an output would be larger than any memory");
}

/* A guess that lets prepare come to its check of the shape: that of the first input. */
static void guess(const dp_typed_call *call, dp_tensor *outputs) {
    const dp_tensor *like = NULL;
    for (int i = 0; i < call->n_inputs && !like; i++)
        like = dp_typed_reads(call->type, call->n_inputs, i) ? NULL : call->inputs[i];
    for (int k = 0; k < call->n_outputs; k++) {
        outputs[k].rank = like ? like->rank : 0;
        if (like)
            memcpy(outputs[k].dims, like->dims, sizeof like->dims);
        (void)lay_out(&outputs[k]); /* as good as the input's */
    }
}

dp_status dp_typed_infer(const dp_typed_call *call, dp_tensor *outputs) {
    bool learned[ROOM] = {false};
    dp_shape_learner learner = {outputs, learned, call->n_outputs, 0};
    if (call->n_outputs > ROOM)
        return dp_fail(DP_ERR_ARGUMENT, "numOutputs is %d, but may be %d", call->n_outputs, ROOM);
    guess(call, outputs);
    for (;;) {
        int before = learner.n_learned;
        dp_plan *plan = NULL;
        dp_shape_learn(&learner);
        dp_status status = dp_typed_prepare(call, &plan);
        dp_shape_learn(NULL);
        dp_plan_free(plan);
        for (int k = 0; k < call->n_outputs; k++) {
            dp_status laid = lay_out(&outputs[k]);
            if (laid != DP_OK)
                return laid;
        }
        for (int k = 0; k < call->n_outputs && status == DP_OK; k++)
            if (call->outputs[k] && !learned[k])
                return dp_fail(DP_ERR_UNSUPPORTED, "%s takes outputs of any shape: output %d cannot be inferred",
                               call->type->op.name, k);
        if (status == DP_OK || learner.n_learned == before)
            return status;
    }
}
