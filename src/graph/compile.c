#include "graph/compile.h"

#include <stdlib.h>
#include <string.h>

#include "graph/onnx/lower.h"
#include "graph/onnx/onnx.h"
#include "graph/passes/passes.h"

#ifdef DP_HAVE_ONNX

static dp_value *find_input(const dp_graph *graph, const dp_input_shape *shape, int place) {
    if (!shape->name)
        return place < graph->n_inputs ? graph->inputs[place] : NULL;
    for (int i = 0; i < graph->n_inputs; i++)
        if (strcmp(graph->inputs[i]->name, shape->name) == 0)
            return graph->inputs[i];
    return NULL;
}

static dp_status set_shape(dp_graph *graph, const dp_input_shape *shape, int place, bool open) {
    dp_value *value = find_input(graph, shape, place);
    if (!value && shape->name)
        return dp_fail(DP_ERR_ARGUMENT, "input_shape names \"%s\", which is no input; the first input is \"%s\" of %d",
                       shape->name, graph->n_inputs ? graph->inputs[0]->name : "", graph->n_inputs);
    if (!value)
        return dp_fail(DP_ERR_ARGUMENT, "input_shape gives %d shapes, but the model has %d inputs", place + 1,
                       graph->n_inputs);
    const dp_tensor *t = &value->tensor;
    if (t->rank != DP_UNKNOWN && t->rank != shape->rank)
        return dp_fail(DP_ERR_ARGUMENT, "input_shape gives \"%s\" %d dimensions, but the model has %d", value->name,
                       shape->rank, t->rank);
    for (int d = 0; d < shape->rank; d++) {
        if (shape->dims[d] < (open ? DP_UNKNOWN : 0))
            return dp_fail(DP_ERR_ARGUMENT, "input_shape: dimension %d of \"%s\" is %lld, but must be at least 0", d,
                           value->name, (long long)shape->dims[d]);
        if (t->rank != DP_UNKNOWN && t->dims[d] != DP_UNKNOWN && t->dims[d] != shape->dims[d] && shape->dims[d] != DP_UNKNOWN)
            return dp_fail(DP_ERR_ARGUMENT,
                           "input_shape: dimension %d of \"%s\" is %lld, but the model is made for %lld", d, value->name,
                           (long long)shape->dims[d], (long long)t->dims[d]);
    }
    dp_value_shape(value, t->element, shape->dims, shape->rank);
    if (!dp_value_is_known(value))
        return DP_OK;
    dp_status status = dp_tensor_check(&value->tensor, value->name);
    if (status != DP_OK || !shape->contents)
        return status;
    value->is_constant = true;
    value->tensor.base = dp_model_alloc(graph->model, dp_value_bytes(value));
    if (!value->tensor.base)
        return DP_ERR_OUT_OF_MEMORY;
    memcpy(value->tensor.base, shape->contents, dp_value_bytes(value));
    return DP_OK;
}

static void drop_constant_inputs(dp_graph *graph) {
    int n = 0;
    for (int i = 0; i < graph->n_inputs; i++)
        if (!graph->inputs[i]->is_constant)
            graph->inputs[n++] = graph->inputs[i];
    graph->n_inputs = n;
}

/* Shapes into a model as it was read; with unknown dims only for a model that is lowered when it runs. */
static dp_status set_shapes(dp_model *model, const dp_input_shape *shapes, int n_shapes, bool open) {
    for (int i = 0; i < n_shapes; i++) {
        dp_status status = set_shape(model->graph, &shapes[i], i, open);
        if (status != DP_OK)
            return status;
    }
    drop_constant_inputs(model->graph);
    for (int i = 0; i < model->graph->n_inputs; i++) {
        const dp_value *value = model->graph->inputs[i];
        if (value->tensor.element == DP_EL_NONE)
            return dp_fail(DP_ERR_ARGUMENT, "the file does not say of what type input \"%s\" is", value->name);
        if (!open && !dp_value_is_known(value))
            return dp_fail(DP_ERR_ARGUMENT, "the shape of input \"%s\" must be given: --input_shape=\"%s:...\"", value->name,
                           value->name);
    }
    return DP_OK;
}

/* "node:1", or the name of a value; NULL: there is none. */
static dp_value *find_output(const dp_graph *graph, const char *text) {
    const char *colon = strrchr(text, ':');
    char *end = NULL;
    long index = colon ? strtol(colon + 1, &end, 10) : -1;
    bool numbered = end && end != colon + 1 && !*end;
    for (const dp_node *node = graph->first; node; node = node->next) {
        bool named = numbered && strlen(node->name) == (size_t)(colon - text) && strncmp(node->name, text, strlen(node->name)) == 0;
        if (named && index >= 0 && index < node->n_outputs && node->outputs[index])
            return node->outputs[index];
        for (int i = 0; i < node->n_outputs; i++)
            if (node->outputs[i] && strcmp(node->outputs[i]->name, text) == 0)
                return node->outputs[i];
    }
    return NULL;
}

static dp_status choose_outputs(dp_model *model, const char *outputs) {
    char *text = dp_arena_text(&model->arena, outputs), *rest = NULL;
    dp_value **list = dp_model_alloc(model, (strlen(outputs) + 1) * sizeof *list);
    int n = 0;
    if (!text || !list)
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for the model: free some");
    for (char *one = strtok_r(text, ";", &rest); one; one = strtok_r(NULL, ";", &rest)) {
        list[n] = find_output(model->graph, one);
        if (!list[n++])
            return dp_fail(DP_ERR_ARGUMENT, "out_nodes names \"%.128s\", but no node of the model makes that: node:0, or a value's name",
                           one);
    }
    if (n == 0)
        return dp_fail(DP_ERR_ARGUMENT, "out_nodes names no output");
    model->graph->outputs = list;
    model->graph->n_outputs = n;
    return DP_OK;
}

static void print_graph(const char *when, const dp_graph *graph, FILE *print) {
    if (!print)
        return;
    fprintf(print, "# %s\n", when);
    dp_graph_print(graph, print);
}

dp_status dp_onnx_read_source(const dp_onnx_source *source, dp_model **out_model, int *out_opset) {
    char reason[1024];
    dp_status status = dp_onnx_read(source->bytes, source->size_bytes, source->folder, out_opset, out_model);
    if (status == DP_OK || !source->name)
        return status;
    snprintf(reason, sizeof reason, "%s", dp_fail_message());
    return dp_fail(status, "%s: %s", source->name, reason);
}

static dp_status read(const dp_onnx_source *source, bool open, dp_model **out_model, int *out_opset) {
    dp_model *model;
    dp_status status = dp_onnx_read_source(source, &model, out_opset);
    if (status != DP_OK)
        return status;
    model->precision = source->precision;
    status = source->outputs ? choose_outputs(model, source->outputs) : DP_OK;
    if (status == DP_OK)
        status = set_shapes(model, source->shapes, source->n_shapes, open);
    print_graph("as read", model->graph, source->print);
    if (status == DP_OK)
        status = dp_onnx_check(model->graph, *out_opset);
    if (status == DP_OK)
        *out_model = model;
    else
        dp_model_free(model);
    return status;
}

dp_status dp_compile_open(const dp_onnx_source *source, dp_model **out_model, int *out_opset) {
    return read(source, true, out_model, out_opset);
}

dp_status dp_compile_lowered(const dp_onnx_source *source, dp_model **out_model, bool *out_stopped) {
    dp_onnx_cut cut = {.stopped = false};
    dp_model *model;
    int opset;
    dp_status status = read(source, false, &model, &opset);
    *out_stopped = false;
    if (status != DP_OK)
        return status;
    status = dp_onnx_lower(model->graph, opset, &cut);
    print_graph("after lowering", model->graph, source->print);
    if (status == DP_OK && cut.stopped) {
        *out_stopped = true;
        status = cut.finds_dims ? dp_fail(DP_ERR_UNSUPPORTED, "shapes of the model depend on its data") : DP_ERR_UNSUPPORTED;
    }
    if (status == DP_OK)
        *out_model = model;
    else
        dp_model_free(model);
    return status;
}

dp_status dp_compile_fixed(const dp_onnx_source *source, dp_model **out_model, bool *out_stopped) {
    dp_model *model;
    dp_status status = dp_compile_lowered(source, &model, out_stopped);
    if (status != DP_OK)
        return status;
    status = dp_passes_run(model->graph, source->print);
    model->precision = NULL;
    if (status == DP_OK)
        *out_model = model;
    else
        dp_model_free(model);
    return status;
}

#else

static dp_status no_reader(void) {
    return dp_fail(DP_ERR_UNSUPPORTED, "this Doppel was built without protobuf-c, so that it reads no ONNX files");
}

dp_status dp_compile_fixed(const dp_onnx_source *source, dp_model **out_model, bool *out_stopped) {
    (void)source, (void)out_model, (void)out_stopped;
    return no_reader();
}
dp_status dp_compile_lowered(const dp_onnx_source *source, dp_model **out_model, bool *out_stopped) {
    (void)source, (void)out_model, (void)out_stopped;
    return no_reader();
}
dp_status dp_onnx_read_source(const dp_onnx_source *source, dp_model **out_model, int *out_opset) {
    (void)source, (void)out_model, (void)out_opset;
    return no_reader();
}
dp_status dp_compile_open(const dp_onnx_source *source, dp_model **out_model, int *out_opset) {
    (void)source, (void)out_model, (void)out_opset;
    return no_reader();
}
#endif

dp_status dp_compile_onnx(const void *bytes, size_t size_bytes, const char *folder, const dp_input_shape *shapes,
                          int n_shapes, FILE *print, dp_model **out_model) {
    return dp_compile_onnx_as(bytes, size_bytes, folder, shapes, n_shapes, NULL, print, out_model);
}
dp_status dp_compile_onnx_as(const void *bytes, size_t size_bytes, const char *folder, const dp_input_shape *shapes,
                             int n_shapes, const dp_precision *precision, FILE *print, dp_model **out_model) {
    bool stopped;
    dp_onnx_source source = {.bytes = bytes,
                             .size_bytes = size_bytes,
                             .folder = folder,
                             .shapes = shapes,
                             .n_shapes = n_shapes,
                             .precision = precision,
                             .print = print};
    return dp_compile_fixed(&source, out_model, &stopped);
}
