#include "graph/compile.h"

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

static dp_status set_shape(dp_graph *graph, const dp_input_shape *shape, int place) {
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
        if (shape->dims[d] < 0)
            return dp_fail(DP_ERR_ARGUMENT, "input_shape: dimension %d of \"%s\" is %lld, but must be at least 0", d,
                           value->name, (long long)shape->dims[d]);
        if (t->rank != DP_UNKNOWN && t->dims[d] != DP_UNKNOWN && t->dims[d] != shape->dims[d])
            return dp_fail(DP_ERR_ARGUMENT,
                           "input_shape: dimension %d of \"%s\" is %lld, but the model is made for %lld", d, value->name,
                           (long long)shape->dims[d], (long long)t->dims[d]);
    }
    dp_value_shape(value, t->element, shape->dims, shape->rank);
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

static dp_status prepare(dp_model *model, int opset, const dp_input_shape *shapes, int n_shapes, FILE *print) {
    for (int i = 0; i < n_shapes; i++) {
        dp_status status = set_shape(model->graph, &shapes[i], i);
        if (status != DP_OK)
            return status;
    }
    drop_constant_inputs(model->graph);
    if (print) {
        fputs("# as read\n", print);
        dp_graph_print(model->graph, print);
    }
    dp_status status = dp_onnx_lower(model, opset);
    if (status != DP_OK)
        return status;
    if (print) {
        fputs("# after lowering\n", print);
        dp_graph_print(model->graph, print);
    }
    return dp_passes_run(model->graph, print);
}

dp_status dp_compile_onnx_as(const void *bytes, size_t size_bytes, const char *folder, const dp_input_shape *shapes,
                             int n_shapes, const dp_precision *precision, FILE *print, dp_model **out_model) {
    dp_model *model;
    int opset;
    dp_status status = dp_onnx_read(bytes, size_bytes, folder, &opset, &model);
    if (status != DP_OK)
        return status;
    model->precision = precision;
    status = prepare(model, opset, shapes, n_shapes, print);
    model->precision = NULL;
    if (status == DP_OK)
        *out_model = model;
    else
        dp_model_free(model);
    return status;
}

#else

dp_status dp_compile_onnx_as(const void *bytes, size_t size_bytes, const char *folder, const dp_input_shape *shapes,
                             int n_shapes, const dp_precision *precision, FILE *print, dp_model **out_model) {
    (void)bytes, (void)size_bytes, (void)folder, (void)shapes, (void)n_shapes, (void)precision, (void)print,
        (void)out_model;
    return dp_fail(DP_ERR_UNSUPPORTED, "this Doppel was built without protobuf-c, so that it reads no ONNX files");
}

#endif

dp_status dp_compile_onnx(const void *bytes, size_t size_bytes, const char *folder, const dp_input_shape *shapes,
                          int n_shapes, FILE *print, dp_model **out_model) {
    return dp_compile_onnx_as(bytes, size_bytes, folder, shapes, n_shapes, NULL, print, out_model);
}
