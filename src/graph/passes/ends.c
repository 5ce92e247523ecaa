/* Inputs that are given as half (--input_fp16_nodes) and outputs that are wanted in another type (--output_type). */
#include <stdlib.h>
#include <string.h>

#include "graph/passes/passes.h"
#include "graph/precision.h"

/* A Cast of `from` to `to`, in front of `before`. */
static dp_status cast(dp_graph *graph, dp_node *before, dp_value *from, dp_value *to) {
    dp_node *node = dp_node_new(graph, before, "Cast", to->name, 1, 1);
    if (!node)
        return DP_ERR_OUT_OF_MEMORY;
    node->inputs[0] = from;
    dp_node_output(node, 0, to);
    return dp_node_set_integer(node, "dst_type", to->tensor.element);
}

static dp_value *like(dp_model *model, const dp_value *value, const char *name, int element) {
    dp_value *made = dp_value_new(model, name);
    if (made)
        dp_value_shape(made, element, value->tensor.dims, value->tensor.rank);
    return made;
}

static dp_status give_half(dp_graph *graph, int index) {
    dp_value *value = graph->inputs[index];
    if (value->tensor.element == DP_F16)
        return DP_OK;
    if (value->tensor.element != DP_F32)
        return dp_fail(DP_ERR_ARGUMENT, "input_fp16_nodes names \"%s\", which has elements of type %s, not float",
                       value->name, dp_element_name(value->tensor.element));
    dp_value *half = like(graph->model, value, value->name, DP_F16);
    dp_value *inside = like(graph->model, value, NULL, DP_F32);
    if (!half || !inside)
        return DP_ERR_OUT_OF_MEMORY;
    dp_graph_replace(graph, value, inside);
    graph->inputs[index] = half;
    return cast(graph, graph->first, half, inside);
}

static dp_status half_inputs(dp_graph *graph, const char *names, int *out_changes) {
    while (*names) {
        size_t length = strcspn(names, ";");
        int at = 0;
        while (at < graph->n_inputs &&
               (strlen(graph->inputs[at]->name) != length || strncmp(graph->inputs[at]->name, names, length) != 0))
            at++;
        if (length && at == graph->n_inputs)
            return dp_fail(DP_ERR_ARGUMENT, "input_fp16_nodes names \"%.*s\", which is no input; the first input is \"%s\"",
                           (int)(length > 80 ? 80 : length), names, graph->n_inputs ? graph->inputs[0]->name : "");
        dp_status status = length ? give_half(graph, at) : DP_OK;
        if (status != DP_OK)
            return status;
        *out_changes += length > 0;
        names += length + (names[length] == ';');
    }
    return DP_OK;
}

static dp_status turn_output(dp_graph *graph, int index, int element, int *out_changes) {
    dp_value *value = graph->outputs[index];
    if (value->tensor.element == element)
        return DP_OK;
    dp_value *wanted = like(graph->model, value, value->name, element);
    if (!wanted)
        return DP_ERR_OUT_OF_MEMORY;
    graph->outputs[index] = wanted;
    ++*out_changes;
    return cast(graph, NULL, value, wanted);
}

static bool is_named(const dp_value *value, const char *name, size_t length, long place) {
    const dp_node *node = value->producer;
    if (strlen(value->name) == length && strncmp(value->name, name, length) == 0)
        return true; /* by the output's own name, too */
    return node && strlen(node->name) == length && strncmp(node->name, name, length) == 0 && place < node->n_outputs &&
           node->outputs[place] == value;
}

/* "node:index:type", `length` bytes. */
static dp_status one_output(dp_graph *graph, const char *text, size_t length, int *out_changes) {
    size_t type = length, place;
    while (type > 0 && text[type - 1] != ':')
        type--;
    for (place = type ? type - 1 : 0; place > 0 && text[place - 1] != ':';)
        place--;
    int element = dp_precision_element(text + type, length - type);
    char *end;
    long index = place > 1 ? strtol(text + place, &end, 10) : -1;
    if (element == DP_EL_NONE || index < 0 || end == text + place || end != text + type - 1)
        return dp_fail(DP_ERR_ARGUMENT,
                       "output_type has \"%.*s\", but must be FP32, FP16 or UINT8, or node:index:type with ; between them",
                       (int)(length > 80 ? 80 : length), text);
    for (int i = 0; i < graph->n_outputs; i++)
        if (is_named(graph->outputs[i], text, place - 1, index))
            return turn_output(graph, i, element, out_changes);
    return dp_fail(DP_ERR_ARGUMENT, "output_type names \"%.*s\", but no output comes from there; the first output is \"%s\"",
                   (int)(place > 80 ? 80 : place - 1), text, graph->n_outputs ? graph->outputs[0]->name : "");
}

static dp_status turn_outputs(dp_graph *graph, const char *text, int *out_changes) {
    int all = dp_precision_element(text, strlen(text));
    dp_status status = DP_OK;
    if (all != DP_EL_NONE) {
        for (int i = 0; i < graph->n_outputs && status == DP_OK; i++)
            if (dp_element_is_float(graph->outputs[i]->tensor.element))
                status = turn_output(graph, i, all, out_changes);
        return status;
    }
    while (*text && status == DP_OK) {
        size_t length = strcspn(text, ";");
        status = one_output(graph, text, length, out_changes);
        text += length + (text[length] == ';');
    }
    return status;
}

dp_status dp_pass_ends(dp_graph *graph, int *out_changes) {
    const dp_precision *precision = graph->model->precision;
    dp_status status = DP_OK;
    if (precision && precision->half_inputs)
        status = half_inputs(graph, precision->half_inputs, out_changes);
    if (status == DP_OK && precision && precision->output_type)
        status = turn_outputs(graph, precision->output_type, out_changes);
    return status;
}
