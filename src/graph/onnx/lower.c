#include "graph/onnx/lower.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "graph/infer.h"

const dp_onnx_row dp_onnx_rows[] = {
#define ROW(type, since, function, detail) {#type, since, dp_low_##function, detail},
#include "graph/onnx/rows.def"
};
const unsigned dp_onnx_rows_count = sizeof dp_onnx_rows / sizeof dp_onnx_rows[0];

static const dp_onnx_row *find_row(const char *type, int opset) {
    const dp_onnx_row *found = NULL;
    for (unsigned i = 0; i < dp_onnx_rows_count; i++)
        if (strcmp(dp_onnx_rows[i].type, type) == 0 && dp_onnx_rows[i].since <= opset)
            found = &dp_onnx_rows[i];
    return found;
}

/* What the functions of the rows use. */

dp_status dp_low_fail(dp_lowering *l, dp_status status, const char *format, ...) {
    char reason[512];
    va_list args;
    va_start(args, format);
    vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    l->status = dp_fail(status, "node \"%s\" (%s): %s", l->node->name, l->node->type, reason);
    return l->status;
}

static void keep(dp_lowering *l, dp_status status) {
    if (l->status == DP_OK)
        l->status = status;
}

dp_status dp_low_need(dp_lowering *l, int least) {
    for (int i = 0; i < least; i++)
        if (!dp_low_in(l, i))
            return dp_low_fail(l, DP_ERR_ARGUMENT, "input %d is missing", i);
    return DP_OK;
}

bool dp_low_want(dp_lowering *l, int i) {
    const dp_value *value = dp_low_in(l, i);
    if (value && value->is_constant)
        return true;
    dp_low_fail(l, DP_ERR_UNSUPPORTED, "input %d (%s) must be known before the model runs", i,
                value ? value->name : "absent");
    if (value && i < 32)
        l->wanted |= (uint32_t)1 << i;
    return false;
}

int dp_low_numbers(dp_lowering *l, int i, int64_t *out_numbers, int room) {
    const dp_value *value = dp_low_in(l, i);
    if (!dp_low_want(l, i))
        return -1;
    const dp_tensor *t = &value->tensor;
    int64_t count = dp_tensor_count(t);
    if (count > room || (t->element != DP_I64 && t->element != DP_I32)) {
        dp_low_fail(l, DP_ERR_ARGUMENT, "input %d (%s) must have at most %d integers", i, value->name, room);
        return -1;
    }
    for (int64_t k = 0; k < count; k++)
        out_numbers[k] = t->element == DP_I64 ? ((const int64_t *)t->base)[k] : ((const int32_t *)t->base)[k];
    return (int)count;
}

bool dp_low_number(dp_lowering *l, int i, double *out) {
    const dp_value *value = dp_low_in(l, i);
    if (!dp_low_want(l, i))
        return false;
    if (dp_tensor_count(&value->tensor) != 1) {
        dp_low_fail(l, DP_ERR_ARGUMENT, "input %d has %lld elements, but must be one number", i,
                    (long long)dp_tensor_count(&value->tensor));
        return false;
    }
    const void *at = value->tensor.base;
    switch (value->tensor.element) {
    case DP_F32:
        *out = (double)*(const float *)at;
        return true;
    case DP_F64:
        *out = *(const double *)at;
        return true;
    case DP_I64:
        *out = (double)*(const int64_t *)at;
        return true;
    case DP_I32:
        *out = (double)*(const int32_t *)at;
        return true;
    case DP_I16:
        *out = (double)*(const int16_t *)at;
        return true;
    default:
        dp_low_fail(l, DP_ERR_UNSUPPORTED, "input %d has elements of type %s", i,
                    dp_element_name(value->tensor.element));
        return false;
    }
}

int dp_low_axes(dp_lowering *l, const char *name, int i, int64_t *out_numbers, int room) {
    const dp_arg *arg = dp_node_attribute(l->node, name);
    if (!arg)
        return dp_low_in(l, i) ? dp_low_numbers(l, i, out_numbers, room) : 0;
    if (arg->kind == DP_ARG_INTEGER) {
        out_numbers[0] = arg->as.integer;
        return 1;
    }
    if (arg->kind != DP_ARG_INT_LIST || arg->count > room) {
        dp_low_fail(l, DP_ERR_ARGUMENT, "attribute %s must be a list of at most %d integers", name, room);
        return -1;
    }
    memcpy(out_numbers, arg->as.integers, (size_t)arg->count * sizeof(int64_t));
    return (int)arg->count;
}

static dp_node *begin(dp_lowering *l, dp_node *before, const char *type, int n_outputs, int n_inputs, va_list inputs) {
    if (l->status != DP_OK)
        return NULL;
    dp_node *node = dp_node_new(l->node->graph, before, type, l->node->name, n_inputs, n_outputs);
    for (int i = 0; node && i < n_inputs; i++)
        node->inputs[i] = va_arg(inputs, dp_value *);
    if (!node)
        keep(l, DP_ERR_OUT_OF_MEMORY);
    return node;
}

dp_node *dp_low_begin(dp_lowering *l, const char *type, int n_outputs, int n_inputs, ...) {
    va_list inputs;
    va_start(inputs, n_inputs);
    dp_node *node = begin(l, l->node, type, n_outputs, n_inputs, inputs);
    va_end(inputs);
    return node;
}

dp_node *dp_low_later(dp_lowering *l, const char *type, int n_outputs, int n_inputs, ...) {
    va_list inputs;
    va_start(inputs, n_inputs);
    dp_node *node = begin(l, l->node->next, type, n_outputs, n_inputs, inputs);
    va_end(inputs);
    return node;
}

void dp_low_integer(dp_lowering *l, dp_node *node, const char *name, int64_t value) {
    if (node)
        keep(l, dp_node_set_integer(node, name, value));
}
void dp_low_real(dp_lowering *l, dp_node *node, const char *name, double value) {
    if (node)
        keep(l, dp_node_set_real(node, name, value));
}
void dp_low_text(dp_lowering *l, dp_node *node, const char *name, const char *value) {
    if (node)
        keep(l, dp_node_set_text(node, name, value));
}
void dp_low_integers(dp_lowering *l, dp_node *node, const char *name, const int64_t *values, int count) {
    if (node && count >= 0)
        keep(l, dp_node_set_integers(node, name, values, count));
}

static int element_of_inputs(const dp_node *node) {
    for (int i = 0; i < node->n_inputs; i++)
        if (node->inputs[i])
            return node->inputs[i]->tensor.element;
    return DP_EL_NONE;
}

void dp_low_give(dp_lowering *l, dp_node *node, int i, int k, int element) {
    if (!node || k >= l->node->n_outputs || !l->node->outputs[k])
        return;
    dp_node_output(node, i, l->node->outputs[k]);
    node->outputs[i]->tensor.element = element == DP_EL_NONE ? element_of_inputs(node) : element;
}

bool dp_low_output(dp_lowering *l, dp_node *node, int i, int element) {
    dp_value *value = dp_value_new(l->model, NULL);
    if (!value) {
        keep(l, DP_ERR_OUT_OF_MEMORY);
        return false;
    }
    value->tensor.element = element;
    dp_node_output(node, i, value);
    return true;
}

/* Inputs whose contents the operator reads when its plan is made; such as were computed from the ONNX node's by this row. */
static void want_read(dp_lowering *l, const dp_node *node) {
    for (int i = 0; i < node->n_inputs && l->status == DP_OK; i++) {
        const dp_value *value = node->inputs[i];
        if (!value || value->is_constant || !dp_node_reads(node, i))
            continue;
        for (int k = 0; k < l->node->n_inputs; k++)
            if (value == l->node->inputs[k] && !dp_low_want(l, k))
                return;
        for (int k = 1; k < l->node->n_inputs; k++)
            if (l->node->inputs[k])
                dp_low_want(l, k);
    }
}

dp_value *dp_low_end(dp_lowering *l, dp_node *node) {
    bool folded = false;
    for (int i = 0; node && i < node->n_outputs && l->status == DP_OK; i++)
        if (!node->outputs[i] && !dp_low_output(l, node, i, element_of_inputs(node)))
            return NULL;
    if (!node || l->status != DP_OK)
        return NULL;
    dp_value *first = node->outputs[0];
    want_read(l, node);
    if (l->status == DP_OK)
        keep(l, dp_node_infer(node));
    if (l->status == DP_OK)
        keep(l, dp_node_fold(node, &folded));
    l->finds_dims |= l->status == DP_OK && !folded && dp_node_finds_dims(node);
    return l->status == DP_OK ? first : NULL;
}

dp_status dp_low_last(dp_lowering *l, dp_node *node, int element) {
    dp_low_give(l, node, 0, 0, element);
    dp_low_end(l, node);
    return l->status;
}

dp_value *dp_low_list(dp_lowering *l, const int64_t *numbers, int count) {
    dp_value *value = count < 0 || l->status != DP_OK ? NULL : dp_value_integers(l->model, numbers, count);
    if (!value)
        keep(l, DP_ERR_OUT_OF_MEMORY);
    return value;
}

dp_value *dp_low_scalar(dp_lowering *l, const dp_value *like, double number) {
    float real = (float)number;
    dp_value *value = dp_value_constant(l->model, NULL, DP_F32, NULL, 0, &real);
    if (!value) {
        keep(l, DP_ERR_OUT_OF_MEMORY);
        return NULL;
    }
    if (like->tensor.element == DP_F32)
        return value;
    dp_node *node = dp_low_begin(l, "Cast", 1, 1, value);
    dp_low_integer(l, node, "dst_type", like->tensor.element);
    return node && dp_low_output(l, node, 0, like->tensor.element) ? dp_low_end(l, node) : NULL;
}

/* The row function for most types. */

/* One attribute of a detail: "alpha>negative_slope=0.01". */
typedef struct taken {
    char from[32], to[32], otherwise[24];
    bool is_list;
} taken;

static const char *read_taken(const char *at, taken *out) {
    int used = 0;
    memset(out, 0, sizeof *out);
    sscanf(at, " %31[^>=[ ]%n", out->from, &used);
    at += used;
    memcpy(out->to, out->from, sizeof out->to);
    if (*at == '>') {
        sscanf(at, ">%31[^=[ ]%n", out->to, &used);
        at += used;
    }
    if (*at == '[') {
        out->is_list = true;
        at += 2;
    }
    if (*at == '=') {
        sscanf(at, "=%23[^ ]%n", out->otherwise, &used);
        at += used;
    }
    return at;
}

static void take(dp_lowering *l, dp_node *node, const taken *t) {
    const dp_arg *given = dp_node_attribute(l->node, t->from);
    if (!given && !t->otherwise[0]) {
        dp_low_fail(l, DP_ERR_ARGUMENT, "attribute %s is missing", t->from);
        return;
    }
    bool is_real = given ? given->kind == DP_ARG_REAL : strchr(t->otherwise, '.') != NULL;
    double real = given ? dp_arg_real(given, 0) : strtod(t->otherwise, NULL);
    int64_t integer = given ? dp_arg_integer(given, 0) : strtoll(t->otherwise, NULL, 10);
    if (t->is_list)
        dp_low_integers(l, node, t->to, &integer, 1);
    else if (is_real)
        dp_low_real(l, node, t->to, real);
    else
        dp_low_integer(l, node, t->to, integer);
}

dp_status dp_low_rename(dp_lowering *l) {
    char type[48], known[256] = " ";
    int used, element = DP_EL_NONE;
    if (dp_low_need(l, 1) != DP_OK)
        return l->status;
    sscanf(l->detail, "%47[^ :]%n", type, &used);
    const char *at = l->detail + used;
    if (*at == ':') {
        element = at[1] == 'b' ? DP_EL_BOOL : DP_I64;
        at += strcspn(at, " ");
    }
    dp_node *node = dp_low_begin(l, type, 1, 0);
    if (!node)
        return l->status;
    node->inputs = l->node->inputs;
    node->n_inputs = l->node->n_inputs;
    while (*at) {
        taken t;
        at = read_taken(at, &t);
        take(l, node, &t);
        snprintf(known + strlen(known), sizeof known - strlen(known), "%s ", t.from);
    }
    for (int i = 0; i < l->node->n_attributes && l->status == DP_OK; i++) {
        char word[64];
        snprintf(word, sizeof word, " %.60s ", l->node->attributes[i].name);
        if (!strstr(known, word))
            return dp_low_fail(l, DP_ERR_UNSUPPORTED, "attribute %s is not supported", l->node->attributes[i].name);
    }
    return dp_low_last(l, node, element);
}

/* All nodes. */

/* Nodes that cannot be done, in the words of a sentence; what does not fit is counted. */
typedef struct refusals {
    char list[840]; /* a sentence holds about 1,000 */
    int count, left_out;
} refusals;

static void note(refusals *r, const char *format, ...) DP_PRINTF(2, 3);
static void note(refusals *r, const char *format, ...) {
    char text[320];
    size_t used = strlen(r->list);
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    r->count++;
    if (r->left_out || used + strlen(text) + 2 >= sizeof r->list)
        r->left_out++;
    else
        snprintf(r->list + used, sizeof r->list - used, "%s%s", used ? "; " : "", text);
}

static dp_status refuse(const refusals *r, const char *what) {
    char more[48] = "";
    if (r->left_out)
        snprintf(more, sizeof more, "; and %d more", r->left_out);
    return dp_fail(DP_ERR_UNSUPPORTED, "%d nodes %s: %s%s", r->count, what, r->list, more);
}

static void find_unknown(const dp_graph *graph, int opset, refusals *u) {
    for (const dp_node *node = graph->first; node; node = node->next) {
        if (!find_row(node->type, opset))
            note(u, "%.64s (node \"%.64s\")", node->type, node->name);
        for (int i = 0; i < node->n_bodies; i++)
            find_unknown(node->bodies[i].graph, opset, u);
    }
}

/* Takes out what a row that gave up has made. */
static void roll_back(dp_node *node, dp_node *before) {
    while (node->previous != before)
        dp_node_remove(node->previous);
    for (int i = 0; i < node->n_outputs; i++) {
        if (!node->outputs[i])
            continue;
        node->outputs[i]->tensor = (dp_tensor){.element = DP_EL_NONE, .rank = DP_UNKNOWN};
        node->outputs[i]->is_constant = false;
        dp_node_output(node, i, node->outputs[i]);
    }
}

/* With one input, the other short lists of integers beside it: they are read next. */
static uint32_t wanted_with(const dp_node *node, uint32_t wanted) {
    for (int i = 1; i < node->n_inputs && i < 32; i++) {
        const dp_value *value = node->inputs[i];
        bool is_short = value && value->tensor.rank <= 1 && dp_tensor_count(&value->tensor) <= 2 * DP_TENSOR_DIMS;
        if (is_short && !value->is_constant && dp_element_is_int(value->tensor.element))
            wanted |= (uint32_t)1 << i;
    }
    return wanted;
}

static dp_status check_outputs(const dp_node *node) {
    for (int i = 0; i < node->n_outputs; i++)
        if (node->outputs[i] && node->outputs[i]->producer == node)
            return dp_fail(DP_ERR_UNSUPPORTED, "node \"%s\" (%s): output %d is not supported", node->name, node->type, i);
    return DP_OK;
}

/* Whether everything is known that a row reads: something is not behind a node that was refused. */
static bool is_ready(const dp_node *node) {
    for (int i = 0; i < node->n_inputs; i++)
        if (node->inputs[i] && !dp_value_is_known(node->inputs[i]))
            return false;
    return true;
}

/* A refused node stays where it is, so that the others can be asked, too. */
static dp_status set_aside(dp_node *node, dp_node *before, dp_status status, refusals *refused) {
    if (status != DP_ERR_UNSUPPORTED)
        return status;
    note(refused, "%s", dp_fail_message());
    roll_back(node, before);
    return DP_OK;
}

dp_status dp_onnx_lower(dp_graph *graph, int opset, dp_onnx_cut *out_cut) {
    refusals refused = {.count = 0};
    *out_cut = (dp_onnx_cut){.stopped = false};
    for (dp_node *node = graph->first, *next; node; node = next) {
        const dp_onnx_row *row = find_row(node->type, opset);
        dp_node *before = node->previous;
        next = node->next;
        if (refused.count && !is_ready(node))
            continue;
        dp_lowering l = {.node = node, .model = graph->model, .opset = opset, .detail = row->detail};
        dp_status status = row->lower(&l);
        if (refused.count && (l.wanted || l.runs_apart || (status != DP_OK && status != DP_ERR_UNSUPPORTED)))
            break;
        if (l.wanted || l.runs_apart) {
            roll_back(node, before);
            uint32_t wanted = l.wanted ? wanted_with(node, l.wanted) : 0;
            *out_cut = (dp_onnx_cut){.stopped = true, .wanted = wanted, .runs_apart = l.runs_apart, .node = node};
            return DP_OK;
        }
        if (status == DP_OK)
            status = check_outputs(node);
        if (status != DP_OK) {
            status = set_aside(node, before, status, &refused);
            if (status != DP_OK)
                return status;
            continue;
        }
        next = node->next;
        dp_node_remove(node);
        if (l.finds_dims && refused.count)
            break;
        if (l.finds_dims) {
            *out_cut = (dp_onnx_cut){.stopped = true, .finds_dims = true, .node = next};
            return DP_OK;
        }
    }
    if (refused.count == 1)
        return dp_fail(DP_ERR_UNSUPPORTED, "%s", refused.list);
    return refused.count ? refuse(&refused, "are not supported") : DP_OK;
}

dp_status dp_onnx_check(const dp_graph *graph, int opset) {
    refusals unknown = {.count = 0};
    find_unknown(graph, opset, &unknown);
    return unknown.count ? refuse(&unknown, "have types that are not supported") : DP_OK;
}
