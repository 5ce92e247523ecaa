#include "graph/compile_shapes.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"

static dp_status no_memory(void) {
    return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory to compile a model: free some");
}

void dp_compiled_free(dp_compiled *compiled) {
    for (int i = 0; compiled->variants && i < compiled->n_variants; i++)
        dp_model_free(compiled->variants[i]);
    dp_free(compiled->variants);
    dp_free(compiled->shapes.inputs);
    dp_free(compiled->shapes.numbers);
    *compiled = (dp_compiled){.n_variants = 0};
}

static const dp_declared *find_named(const dp_shape_request *request, const char *name) {
    for (int i = 0; i < request->n_named; i++)
        if (strcmp(request->named[i].name, name) == 0)
            return &request->named[i].declared;
    return NULL;
}

__attribute__((format(printf, 4, 5))) static size_t append(char *text, size_t bytes, size_t at, const char *format,
                                                           ...) {
    va_list arguments;
    va_start(arguments, format);
    int n = at < bytes ? vsnprintf(text + at, bytes - at, format, arguments) : 0;
    va_end(arguments);
    return n > 0 ? at + (size_t)n : at;
}

/* The inputs that the file leaves open, as --input_shape takes them: "x:-1,3,224,224;y:-1"; cut off where `text` ends.
 */
static void describe_open(const dp_graph *graph, char *text, size_t bytes) {
    size_t at = 0;
    text[0] = '\0';
    for (int i = 0; i < graph->n_inputs; i++) {
        const dp_value *input = graph->inputs[i];
        bool open = input->tensor.rank == DP_UNKNOWN;
        for (int d = 0; d < input->tensor.rank; d++)
            open = open || input->tensor.dims[d] == DP_UNKNOWN;
        if (!open)
            continue;
        at = append(text, bytes, at, "%s%s:", at ? ";" : "", input->name);
        if (input->tensor.rank == DP_UNKNOWN)
            at = append(text, bytes, at, "...");
        for (int d = 0; d < input->tensor.rank; d++)
            at = append(text, bytes, at, "%s%lld", d ? "," : "", (long long)input->tensor.dims[d]);
    }
}

static dp_status missing_shape(const dp_graph *graph, const dp_value *input) {
    char text[512];
    describe_open(graph, text, sizeof text);
    return dp_fail(DP_ERR_ARGUMENT,
                   "the shape of input \"%s\" must be given: --input_shape=\"%s\" with numbers instead of -1; leave -1 "
                   "for what is chosen when the model runs",
                   input->name, text);
}

/* What the file and the user say of one input. */
static dp_status declare(const dp_shape_request *request, const dp_graph *graph, const dp_value *input,
                         dp_declared *out) {
    const dp_declared *named = find_named(request, input->name);
    if (input->tensor.rank == DP_UNKNOWN)
        return dp_fail(DP_ERR_ARGUMENT, "the shape of input \"%s\" must be given: --input_shape=\"%s:...\"",
                       input->name, input->name);
    out->rank = input->tensor.rank;
    for (int d = 0; d < out->rank; d++) {
        int64_t dim = input->tensor.dims[d];
        bool open = dim == DP_UNKNOWN;
        if (open && !named && request->kind == DP_SHAPES_FIXED)
            return missing_shape(graph, input);
        out->least[d] = open ? named ? named->least[d] : 0 : dim;
        out->most[d] = open ? named ? named->most[d] : DP_SHAPES_ANY : dim;
    }
    return DP_OK;
}

/* The model as it is read, with what is known of its inputs. */
static dp_status open_model(const dp_onnx_source *source, const dp_shape_request *request, dp_model **out_model,
                            int *out_opset) {
    dp_onnx_source probe = *source;
    dp_input_shape *shapes = dp_alloc(DP_MEM_GRAPH, (size_t)request->n_named * sizeof *shapes + 1);
    if (!shapes)
        return no_memory();
    for (int i = 0; i < request->n_named; i++) {
        const dp_declared *declared = &request->named[i].declared;
        shapes[i] = (dp_input_shape){.name = request->named[i].name, .rank = declared->rank};
        for (int d = 0; d < declared->rank; d++)
            shapes[i].dims[d] = dp_declared_is_open(declared, d) ? DP_UNKNOWN : declared->least[d];
    }
    probe.shapes = shapes;
    probe.n_shapes = request->n_named;
    probe.precision = NULL;
    probe.print = NULL;
    dp_status status = dp_compile_open(&probe, out_model, out_opset);
    dp_free(shapes);
    return status;
}

/* One graph for the dims of a gear, or for the only ones. */
static dp_status compile_gear(const dp_onnx_source *source, const dp_graph *read, const dp_shapes *shapes, int gear,
                              dp_model **out_model, bool *out_stopped) {
    dp_onnx_source one = *source;
    dp_input_shape *list = dp_alloc(DP_MEM_GRAPH, (size_t)read->n_inputs * sizeof *list + 1);
    if (!list)
        return no_memory();
    for (int i = 0; i < read->n_inputs; i++) {
        dp_tensor dims = {.rank = shapes->inputs[i].rank};
        memcpy(dims.dims, shapes->inputs[i].least, sizeof dims.dims);
        if (shapes->n_gears)
            dp_shapes_gear(shapes, gear, i, &dims);
        list[i] = (dp_input_shape){.name = read->inputs[i]->name, .rank = dims.rank};
        memcpy(list[i].dims, dims.dims, sizeof dims.dims);
    }
    one.shapes = list;
    one.n_shapes = read->n_inputs;
    dp_status status = dp_compile_fixed(&one, out_model, out_stopped);
    dp_free(list);
    return status;
}

static bool changes_types(const dp_precision *p) {
    return p && (p->mode != DP_PRECISION_ORIGIN || p->half_inputs || p->output_type || p->calibration);
}

static dp_status keep_source(const dp_onnx_source *source, dp_compiled *c, dp_model **model, int opset) {
    if (changes_types(source->precision))
        return dp_fail(DP_ERR_UNSUPPORTED,
                       "precision modes, input_fp16_nodes and output_type are for models of fixed shapes or gears: "
                       "shapes of this one are known only when it runs");
    c->shapes.is_source = true;
    c->shapes.opset = opset;
    if (source->print) {
        fputs("# lowered while it runs\n", source->print);
        dp_graph_print((*model)->graph, source->print);
    }
    c->variants[0] = *model;
    c->n_variants = 1;
    *model = NULL;
    return DP_OK;
}

static dp_status compile_gears(const dp_onnx_source *source, const dp_shape_request *request, dp_compiled *c,
                               dp_model **model, int opset) {
    int n = c->shapes.n_gears ? c->shapes.n_gears : 1;
    c->variants = dp_alloc(DP_MEM_GRAPH, (size_t)n * sizeof *c->variants);
    if (!c->variants)
        return no_memory();
    if (c->shapes.kind == DP_SHAPES_OPEN)
        return keep_source(source, c, model, opset);
    for (; c->n_variants < n; c->n_variants++) {
        bool stopped;
        int gear = c->n_variants;
        dp_status status = compile_gear(source, (*model)->graph, &c->shapes, gear, &c->variants[gear], &stopped);
        if (stopped && gear == 0)
            return keep_source(source, c, model, opset);
        if (status != DP_OK)
            return status;
        if (request->progress)
            request->progress(request->data, gear + 1, n);
    }
    return DP_OK;
}

dp_status dp_compile_shapes(const dp_onnx_source *source, const dp_shape_request *request, dp_compiled *out_compiled) {
    dp_compiled *c = out_compiled;
    dp_model *model = NULL;
    int opset;
    *c = (dp_compiled){.n_variants = 0};
    dp_status status = open_model(source, request, &model, &opset);
    if (status != DP_OK)
        return status;
    const dp_graph *graph = model->graph;
    c->shapes.n_inputs = graph->n_inputs;
    c->shapes.inputs = dp_alloc(DP_MEM_GRAPH, (size_t)graph->n_inputs * sizeof *c->shapes.inputs + 1);
    status = c->shapes.inputs ? DP_OK : no_memory();
    for (int i = 0; i < graph->n_inputs && status == DP_OK; i++) {
        status = declare(request, graph, graph->inputs[i], &c->shapes.inputs[i]);
        for (int d = 0; status == DP_OK && d < c->shapes.inputs[i].rank; d++)
            if (dp_declared_is_open(&c->shapes.inputs[i], d))
                c->shapes.kind = DP_SHAPES_OPEN;
    }
    if (status == DP_OK && request->kind != DP_SHAPES_FIXED)
        status = dp_shapes_parse_gears(&c->shapes, request->kind, request->option, request->gears);
    if (status == DP_OK)
        status = compile_gears(source, request, c, &model, opset);
    dp_model_free(model);
    return status;
}
