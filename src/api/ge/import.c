/* import.c - from operators that name each other to a graph of nodes in the order in which they run. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "api/aclnn.h"
#include "api/ge/ge.h"
#include "graph/infer.h"
#include "ops/typed/typed.h"

enum { OUTPUTS = 64 };

typedef struct import {
    const dp_ge_graph *graph;
    dp_model *model;
    uint32_t met, done; /* marks of this import */
} import;

int dp_ge_element(int64_t dtype) {
    return dtype >= 0 && dtype <= INT32_MAX ? dp_aclnn_element((aclDataType)dtype) : DP_EL_NONE;
}

static dp_status complain(const dp_ge_operator *op, dp_status status) {
    char reason[512];
    snprintf(reason, sizeof reason, "%s", dp_fail_message());
    return dp_fail(status, "operator \"%s\" (%s): %s", op->name, op->type, reason);
}

dp_status dp_ge_give(dp_ge_operator *op, dp_model *model, dp_value *value) {
    if (!op->values && !(op->values = dp_model_alloc(model, OUTPUTS * sizeof *op->values)))
        return DP_ERR_OUT_OF_MEMORY;
    if (op->n_values == OUTPUTS)
        return dp_fail(DP_ERR_UNSUPPORTED, "more than %d outputs", OUTPUTS);
    op->values[op->n_values++] = value;
    return DP_OK;
}

/* "y" is a result alone or the first, "y0" the first of a list; others go by the type's own names. */
dp_value *dp_ge_linked(const dp_ge_link *link) {
    const dp_ge_operator *from = link->from;
    const dp_typed *type;
    const char *name = link->output;
    size_t letters = strcspn(name, "0123456789");
    int place = 0;
    if (*name && name[letters] && (from->n_outputs || from->n_values > 1))
        place = (int)strtol(name + letters, NULL, 10);
    else if (*name && dp_typed_find(from->type, &type) == DP_OK) {
        place = -1;
        for (int i = 0; i < type->n_outputs; i++)
            if (strcmp(type->op.params[type->n_inputs + i].name, name) == 0)
                place = i;
    } else if (*name && strcmp(name, "y") != 0) {
        return NULL;
    }
    return place >= 0 && place < from->n_values ? from->values[place] : NULL;
}

/* A described shape as a value. */
static dp_status shape_value(const dp_ge_desc *desc, dp_value *value) {
    int element = dp_ge_element(desc->dtype);
    if (element == DP_EL_NONE || dp_element_bytes(element) == 0)
        return dp_fail(DP_ERR_UNSUPPORTED, "type number %d is no element type that models know", desc->dtype);
    if (desc->rank < 0 || desc->rank > DP_GE_DIMS)
        return dp_fail(DP_ERR_ARGUMENT, "the shape is not known: describe it");
    for (int d = 0; d < desc->rank; d++)
        if (desc->dims[d] < 0)
            return dp_fail(DP_ERR_UNSUPPORTED,
                           "dimension %d is %lld: shapes must be known when operators are put together", d,
                           (long long)desc->dims[d]);
    dp_value_shape(value, element, desc->dims, desc->rank);
    return dp_tensor_check(&value->tensor, "its shape");
}

static dp_status make_input(import *w, dp_ge_operator *op) {
    const dp_ge_end *end = dp_ge_find_end(op, "y");
    if (!end)
        end = dp_ge_find_end(op, "x");
    if (strcmp(op->type, "Data") != 0)
        return dp_fail(DP_ERR_ARGUMENT, "only Data may be an input of a graph");
    if (!end)
        return dp_fail(DP_ERR_ARGUMENT, "its shape is not known: call update_output_desc_y");
    dp_value *value = dp_value_new(w->model, op->name);
    if (!value)
        return DP_ERR_OUT_OF_MEMORY;
    dp_status status = shape_value(&end->desc, value);
    if (status != DP_OK)
        return status;
    dp_graph *graph = w->model->graph;
    graph->inputs[graph->n_inputs++] = value;
    return dp_ge_give(op, w->model, value);
}

static dp_status make_constant(import *w, dp_ge_operator *op) {
    const dp_ge_attribute *a = dp_ge_find_attribute(op, "value");
    if (!a || !a->data)
        return dp_fail(DP_ERR_ARGUMENT, "it has no value: call set_attr_value with a tensor that has data");
    dp_value *value = dp_value_new(w->model, NULL);
    if (!value)
        return DP_ERR_OUT_OF_MEMORY;
    dp_status status = shape_value(&a->desc, value);
    if (status != DP_OK)
        return status;
    size_t bytes = dp_value_bytes(value);
    if (a->bytes != bytes)
        return dp_fail(DP_ERR_ARGUMENT, "its tensor has %zu bytes of data, but its shape and type need %zu", a->bytes,
                       bytes);
    if (!(value->tensor.base = dp_model_alloc(w->model, bytes)))
        return DP_ERR_OUT_OF_MEMORY;
    if (bytes)
        memcpy(value->tensor.base, a->data, bytes);
    value->is_constant = true;
    return dp_ge_give(op, w->model, value);
}

/* Results of other types than the first operand's. */
static int result_element(const dp_ge_operator *op, const dp_node *node) {
    static const char *const truths[] = {"Equal",      "NotEqual",     "Less",       "LessEqual",
                                         "Greater",    "GreaterEqual", "LogicalAnd", "LogicalOr",
                                         "LogicalNot", "LogicalXor",   "ReduceAll",  "ReduceAny"};
    const dp_ge_attribute *type = dp_ge_find_attribute(op, "dst_type");
    for (size_t i = 0; i < sizeof truths / sizeof truths[0]; i++)
        if (strcmp(op->type, truths[i]) == 0)
            return DP_EL_BOOL;
    if (!type)
        type = dp_ge_find_attribute(op, "dtype");
    if (type && type->arg.kind == DP_ARG_INTEGER)
        return dp_ge_element(type->arg.as.integer);
    if (strncmp(op->type, "Arg", 3) == 0)
        return DP_I32;
    for (int i = 0; i < node->n_inputs; i++)
        if (node->inputs[i])
            return node->inputs[i]->tensor.element;
    return DP_F32;
}

static dp_status take_inputs(const dp_ge_operator *op, const dp_typed *type, dp_node *node) {
    int at = 0, used = 0;
    for (int p = 0; p < type->n_inputs; p++) {
        const dp_param *param = &type->op.params[p];
        int count = param->kind == DP_ARG_TENSOR_LIST ? dp_ge_count_links(op, param->name) : 1;
        for (int i = 0; i < count; i++, at++) {
            const dp_ge_link *link = dp_ge_find_link(op, param->name, param->kind == DP_ARG_TENSOR_LIST ? i : -1);
            used += link != NULL;
            node->inputs[at] = link ? dp_ge_linked(link) : NULL;
            if (link && !node->inputs[at])
                return dp_fail(DP_ERR_ARGUMENT, "%s is output \"%s\" of \"%s\" (%s), which has none of that name",
                               param->name, link->output, link->from->name, link->from->type);
        }
    }
    for (const dp_ge_link *link = op->links; link; link = link->next)
        used--;
    return used == 0 ? DP_OK
                     : dp_fail(DP_ERR_ARGUMENT, "it has inputs under names that Doppel does not know of this type");
}

static dp_status take_attributes(const dp_ge_operator *op, const dp_typed *type, dp_node *node) {
    for (const dp_ge_attribute *a = op->attributes; a; a = a->next) {
        dp_arg arg = a->arg;
        for (int p = 0; p < type->op.n_params; p++)
            if (type->op.params[p].kind == DP_ARG_TYPE && strcmp(type->op.params[p].name, arg.name) == 0)
                arg.as.integer = dp_ge_element(arg.as.integer);
        if (arg.kind == DP_ARG_ABSENT)
            return dp_fail(DP_ERR_UNSUPPORTED, "attribute %s is a tensor", arg.name);
        dp_status status = dp_node_set(node, &arg);
        if (status != DP_OK)
            return status;
    }
    return DP_OK;
}

static int count_outputs(const dp_ge_operator *op, const dp_typed *type) {
    int n = 0;
    for (int i = 0; i < type->n_outputs; i++) {
        const int p = type->n_inputs + i;
        if (type->op.params[p].kind == DP_ARG_TENSOR_LIST)
            n += op->n_outputs > 0 ? op->n_outputs : 1;
        else if (!type->traits[p].is_optional)
            n++;
    }
    return n;
}

static dp_status make_node(import *w, dp_ge_operator *op) {
    const dp_typed *type;
    dp_status status = dp_typed_find(op->type, &type);
    if (status != DP_OK)
        return status;
    int n_inputs = 0, n_outputs = count_outputs(op, type);
    for (int p = 0; p < type->n_inputs; p++)
        n_inputs += type->op.params[p].kind == DP_ARG_TENSOR_LIST ? dp_ge_count_links(op, type->op.params[p].name) : 1;
    if (n_outputs > OUTPUTS)
        return dp_fail(DP_ERR_UNSUPPORTED, "%d outputs are more than %d", n_outputs, OUTPUTS);
    dp_node *node = dp_node_new(w->model->graph, NULL, op->type, op->name, n_inputs, n_outputs);
    if (!node)
        return DP_ERR_OUT_OF_MEMORY;
    status = take_inputs(op, type, node);
    if (status == DP_OK)
        status = take_attributes(op, type, node);
    if (status != DP_OK)
        return status;
    int element = result_element(op, node);
    for (int i = 0; i < n_outputs && status == DP_OK; i++) {
        dp_value *value = dp_value_new(w->model, i == 0 && *op->name ? op->name : NULL);
        if (!value)
            return DP_ERR_OUT_OF_MEMORY;
        value->tensor.element = element;
        dp_node_output(node, i, value);
        status = dp_ge_give(op, w->model, value);
    }
    bool folded;
    if (status == DP_OK)
        status = dp_node_infer(node);
    return status == DP_OK ? dp_node_fold(node, &folded) : status;
}

static dp_status make(import *w, dp_ge_operator *op) {
    bool done = false;
    if (op->failed)
        return dp_fail(DP_ERR_OUT_OF_MEMORY,
                       "host memory was exhausted while it was put together, or an input is no operator");
    if (strcmp(op->type, "Data") == 0)
        return op->n_values ? DP_OK : dp_fail(DP_ERR_ARGUMENT, "it is Data, but none of the graph's inputs");
    if (strcmp(op->type, "Const") == 0 || strcmp(op->type, "Constant") == 0)
        return make_constant(w, op);
    dp_status status = dp_ge_rewrite(op, w->model, &done);
    return status != DP_OK || done ? status : make_node(w, op);
}

static void meet(import *w, dp_ge_operator *op, dp_ge_operator *parent) {
    op->visit = w->met;
    op->parent = parent;
    op->at = op->links;
    op->values = NULL;
    op->n_values = 0;
}

/* The operator after all that it reads. */
static dp_status walk(import *w, dp_ge_operator *op) {
    if (op->visit == w->done)
        return DP_OK;
    meet(w, op, NULL);
    while (op) {
        if (op->at) {
            dp_ge_operator *from = op->at->from;
            op->at = op->at->next;
            if (from->visit == w->done)
                continue;
            if (from->visit == w->met)
                return dp_fail(DP_ERR_ARGUMENT, "operator \"%s\" (%s) depends on itself", from->name, from->type);
            meet(w, from, op);
            op = from;
            continue;
        }
        dp_status status = make(w, op);
        if (status != DP_OK)
            return complain(op, status);
        op->visit = w->done;
        op = op->parent;
    }
    return DP_OK;
}

static dp_status take_outputs(import *w) {
    const dp_ge_graph *from = w->graph;
    dp_graph *graph = w->model->graph;
    size_t room = from->n_outputs * OUTPUTS;
    if (!(graph->outputs = dp_model_alloc(w->model, (room + 1) * sizeof *graph->outputs)))
        return DP_ERR_OUT_OF_MEMORY;
    for (size_t i = 0; i < from->n_outputs; i++) {
        const dp_ge_operator *op = from->outputs[i];
        int64_t place = from->places[i];
        if (place >= op->n_values)
            return dp_fail(DP_ERR_ARGUMENT, "output %lld of operator \"%s\" (%s) is asked for, but it has %d",
                           (long long)place, op->name, op->type, op->n_values);
        for (int k = 0; k < op->n_values; k++)
            if (place < 0 || place == k)
                graph->outputs[graph->n_outputs++] = op->values[k];
    }
    return DP_OK;
}

static dp_status build(import *w) {
    const dp_ge_graph *from = w->graph;
    dp_graph *graph = w->model->graph;
    if (!(graph->inputs = dp_model_alloc(w->model, (from->n_inputs + 1) * sizeof *graph->inputs)))
        return DP_ERR_OUT_OF_MEMORY;
    for (size_t i = 0; i < from->n_inputs; i++) {
        dp_ge_operator *op = from->inputs[i];
        if (op->visit == w->done)
            return dp_fail(DP_ERR_ARGUMENT, "operator \"%s\" is an input twice", op->name);
        meet(w, op, NULL);
        dp_status status = make_input(w, op);
        if (status != DP_OK)
            return complain(op, status);
        op->visit = w->done;
    }
    for (size_t i = 0; i < from->n_outputs; i++) {
        dp_status status = walk(w, from->outputs[i]);
        if (status != DP_OK)
            return status;
    }
    return take_outputs(w);
}

dp_status dp_ge_import(const dp_ge_graph *graph, dp_model **out_model) {
    static _Atomic uint32_t serial;
    uint32_t number = atomic_fetch_add(&serial, 2) + 1;
    if (graph->n_outputs == 0)
        return dp_fail(DP_ERR_ARGUMENT, "graph \"%s\" has no outputs: call SetOutputs", graph->name);
import w = {.graph = graph, .model = dp_model_new(graph->name), .met = number, .done = number + 1 };
    if (!w.model)
        return DP_ERR_OUT_OF_MEMORY;
    dp_status status = build(&w);
    if (status == DP_OK)
        *out_model = w.model;
    else
        dp_model_free(w.model);
    return status;
}
