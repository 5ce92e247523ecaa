/* doppel/compile.h: files and texts around the graph compiler. */
#include "doppel/compile.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/compile_file.h"
#include "api/compile_model.h"
#include "device/chip.h"
#include "graph/aipp.h"
#include "graph/calibration.h"
#include "graph/model_file.h"

enum { INPUTS_MAX = 64 };

dp_status dp_file_read(const char *what, const char *path, void **out_bytes, size_t *out_size) {
    FILE *file = fopen(path, "rb");
    if (!file)
        return dp_fail(DP_ERR_IO, "%s %s: %s", what, path, strerror(errno));
    long size = fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
    void *bytes = size >= 0 && size < LONG_MAX ? dp_alloc(DP_MEM_GRAPH, (size_t)size + 1) : NULL;
    rewind(file);
    dp_status status = DP_OK;
    if (!bytes)
        status = size >= 0 ? dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for %s %s (%ld bytes)", what, path, size)
                           : dp_fail(DP_ERR_IO, "%s %s: %s", what, path, strerror(errno));
    else if (fread(bytes, 1, (size_t)size, file) != (size_t)size)
        status = dp_fail(DP_ERR_IO, "%s %s: %s", what, path, ferror(file) ? strerror(errno) : "it changed while it was read");
    fclose(file);
    if (status != DP_OK) {
        dp_free(bytes);
        return status;
    }
    *out_bytes = bytes;
    *out_size = (size_t)size;
    return DP_OK;
}

/* "name:dims;name:dims" in place; a name may have colons of its own, the last one ends it. */
static dp_status parse_shapes(char *text, dp_named_shape *shapes, int *out_n) {
    char *rest = text;
    for (char *one = strtok_r(text, ";", &rest); one; one = strtok_r(NULL, ";", &rest)) {
        char *colon = strrchr(one, ':');
        while (*one == ' ')
            one++;
        if (*out_n == INPUTS_MAX)
            return dp_fail(DP_ERR_ARGUMENT, "input_shape names more than %d inputs", INPUTS_MAX);
        if (!colon || colon == one || !dp_declared_parse(colon + 1, &shapes[*out_n].declared))
            return dp_fail(DP_ERR_ARGUMENT,
                           "input_shape has \"%.80s\", but must be name:dims, the dims being numbers from 0, -1 or bounds like 1~8, "
                           "with commas between them, like data:1,3,224,224",
                           one);
        *colon = '\0';
        shapes[(*out_n)++].name = one;
    }
    return DP_OK;
}

void dp_folder_of(const char *path, char *out_folder) {
    const char *slash = strrchr(path, '/');
    snprintf(out_folder, DP_PATH_BYTES, "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
}

/* AIPP in front of the inputs, as the file says. */
static dp_status insert_aipp(const dp_compile_options *o, dp_compiled *compiled, FILE *print) {
    void *text = NULL;
    size_t size = 0;
    int n = 0;
    dp_aipp_op *ops = dp_alloc(DP_MEM_GRAPH, DP_AIPP_OPS * sizeof *ops);
    dp_status status = ops ? dp_file_read("insert_op_conf", o->insert_op_conf, &text, &size)
                           : dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for insert_op_conf: free some");
    if (status == DP_OK)
        status = dp_aipp_parse(text, size, ops, &n);
    if (status == DP_OK)
        status = dp_compiled_insert_aipp(compiled, ops, n, o->input_format && strcmp(o->input_format, "NHWC") == 0, print);
    dp_free(text);
    dp_free(ops);
    return status;
}

/* Dumps and descriptions know a model by its file's name, without folder and ".om". */
static dp_status name_graphs(dp_compiled *compiled, const char *output) {
    const char *slash = strrchr(output, '/'), *base = slash ? slash + 1 : output;
    int length = (int)strlen(base) - 3;
    for (int i = 0; i < compiled->n_variants; i++) {
        dp_model *model = compiled->variants[i];
        const char *name = dp_arena_format(&model->arena, "%.*s", length, base);
        if (!name)
            return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for the name of a model: free some");
        model->graph->name = name;
    }
    return DP_OK;
}

/* Which of the flags for several shapes is given; at most one may be. */
static dp_status read_kind(const dp_compile_options *o, dp_shape_request *request) {
    const struct {
        const char *option, *value;
        dp_shapes_kind kind;
    } all[] = {{"dynamic_batch_size", o->dynamic_batch_size, DP_SHAPES_BATCH},
               {"dynamic_image_size", o->dynamic_image_size, DP_SHAPES_IMAGE},
               {"dynamic_dims", o->dynamic_dims, DP_SHAPES_DIMS}};
    for (int i = 0; i < 3; i++) {
        if (!all[i].value)
            continue;
        if (request->gears)
            return dp_fail(DP_ERR_ARGUMENT, "%s and %s are given, but only one of them may be", request->option, all[i].option);
        request->option = all[i].option;
        request->gears = all[i].value;
        request->kind = all[i].kind;
    }
    return DP_OK;
}

/* What calibration goes with. */
static dp_status take_calibration(const dp_compile_options *o, dp_precision *precision, dp_calibration *calibration) {
    const char *method = o->calibration_method ? o->calibration_method : "percentile";
    if (!o->calibration)
        return o->calibration_method ? dp_fail(DP_ERR_ARGUMENT, "calibration_method is given, but no calibration data") : DP_OK;
    if (strcmp(method, "minmax") != 0 && strcmp(method, "percentile") != 0)
        return dp_fail(DP_ERR_ARGUMENT, "calibration_method is \"%.40s\", but must be minmax or percentile", method);
    if (precision->mode != DP_PRECISION_ORIGIN)
        return dp_fail(DP_ERR_UNSUPPORTED,
                       "calibration makes int8 of convolutions and leaves all else as it is: give no other precision mode than origin");
    *calibration = (dp_calibration){.path = o->calibration, .whole_range = strcmp(method, "minmax") == 0};
    precision->calibration = calibration;
    return DP_OK;
}

/* A model in memory; dp_compiled_free gives *out_compiled back, after a failure as well. */
static dp_status compile_source(const dp_compile_options *o, dp_onnx_source *source, const dp_named_shape *shapes, int n_shapes,
                                char *report, size_t report_bytes, dp_compiled *out_compiled) {
    dp_calibration calibration = {0};
    dp_precision precision = {.half_inputs = o->input_fp16_nodes, .output_type = o->output_type};
    dp_shape_request request = {.named = shapes, .n_named = n_shapes, .progress = o->progress, .data = o->progress_data};
    *out_compiled = (dp_compiled){.n_variants = 0};
    dp_status status = dp_precision_parse(o->precision_mode, o->precision_mode_v2, &precision);
    if (status == DP_OK)
        status = read_kind(o, &request);
    if (status == DP_OK)
        status = take_calibration(o, &precision, &calibration);
    if (status != DP_OK)
        return status;
    source->precision = &precision;
    source->outputs = o->out_nodes;
    status = dp_compile_shapes(source, &request, out_compiled);
    if (status == DP_OK && o->calibration && out_compiled->shapes.kind != DP_SHAPES_FIXED)
        status = dp_fail(DP_ERR_UNSUPPORTED, "calibration is for models of one fixed shape: give it with input_shape");
    if (status == DP_OK && o->calibration)
        status = dp_calibration_report(&calibration, out_compiled->variants[0]->graph, report, report_bytes);
    dp_calibration_free(&calibration);
    return status;
}

static dp_status compile(const dp_compile_options *o, const dp_named_shape *shapes, int n_shapes, FILE *print, char *report,
                         size_t report_bytes) {
    dp_compiled compiled;
    char folder[DP_PATH_BYTES], output[DP_PATH_BYTES];
    void *bytes = NULL;
    size_t size = 0, length = strlen(o->output);
    bool named = length > 3 && strcmp(o->output + length - 3, ".om") == 0;
    if ((size_t)snprintf(output, sizeof output, "%s%s", o->output, named ? "" : ".om") >= sizeof output)
        return dp_fail(DP_ERR_ARGUMENT, "output is longer than %d bytes", DP_PATH_BYTES - 4);
    dp_status status = dp_file_read("model", o->model, &bytes, &size);
    if (status != DP_OK)
        return status;
    dp_folder_of(o->model, folder);
    dp_onnx_source source = {
        .name = o->model, .bytes = bytes, .size_bytes = size, .folder = folder, .print = print};
    status = compile_source(o, &source, shapes, n_shapes, report, report_bytes, &compiled);
    dp_free(bytes);
    if (status == DP_OK && o->insert_op_conf)
        status = insert_aipp(o, &compiled, print);
    if (status == DP_OK)
        status = name_graphs(&compiled, output);
    if (status == DP_OK)
        status = dp_model_file_write(output, &compiled.shapes, compiled.variants, compiled.n_variants);
    dp_compiled_free(&compiled);
    return status;
}

dp_status dp_compile_bytes(const dp_compile_options *o, const void *bytes, size_t size, const char *folder, dp_compiled *out_compiled) {
    dp_named_shape shapes[INPUTS_MAX] = {{NULL, {0}}};
    dp_onnx_source source = {.bytes = bytes, .size_bytes = size, .folder = folder};
    int n_shapes = 0;
    char *text = o->input_shape ? strdup(o->input_shape) : NULL;
    *out_compiled = (dp_compiled){.n_variants = 0};
    if (o->input_shape && !text)
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory: free some");
    dp_status status = text ? parse_shapes(text, shapes, &n_shapes) : DP_OK;
    if (status == DP_OK)
        status = compile_source(o, &source, shapes, n_shapes, NULL, 0, out_compiled);
    free(text);
    return status;
}

dp_status dp_soc_check(const char *soc_version) {
    static const char *const first[] = {"Ascend310", "Ascend910", "Ascend610", "Ascend710"};
    for (size_t i = 0; soc_version && i < sizeof first / sizeof first[0]; i++)
        if (strcmp(soc_version, first[i]) == 0)
            return DP_OK;
    if (!soc_version || dp_chip_find(soc_version))
        return DP_OK;
    return dp_fail(DP_ERR_ARGUMENT, "soc_version is \"%s\", which is no chip that is known; try Ascend910B3", soc_version);
}

static dp_status check(const dp_compile_options *o) {
    if (!o->model || !*o->model)
        return dp_fail(DP_ERR_ARGUMENT, "model is missing: the name of an ONNX file");
    if (!o->output || !*o->output)
        return dp_fail(DP_ERR_ARGUMENT, "output is missing: the name of the file to write, without .om");
    return dp_soc_check(o->soc_version);
}

static dp_status run(const dp_compile_options *o, char *report, size_t report_bytes) {
    dp_named_shape shapes[INPUTS_MAX] = {{NULL, {0}}};
    int n_shapes = 0;
    dp_status status = check(o);
    char *text = o->input_shape ? strdup(o->input_shape) : NULL;
    if (status == DP_OK && o->input_shape && !text)
        status = dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory: free some");
    if (status == DP_OK && text)
        status = parse_shapes(text, shapes, &n_shapes);
    FILE *print = NULL;
    if (status == DP_OK && o->dump_graph) {
        print = strcmp(o->dump_graph, "-") == 0 ? stdout : fopen(o->dump_graph, "w");
        if (!print)
            status = dp_fail(DP_ERR_IO, "dump_graph %s: %s", o->dump_graph, strerror(errno));
    }
    if (status == DP_OK)
        status = compile(o, shapes, n_shapes, print, report, report_bytes);
    if (print && print != stdout && fclose(print) != 0 && status == DP_OK)
        status = dp_fail(DP_ERR_IO, "dump_graph %s: %s", o->dump_graph, strerror(errno));
    free(text);
    return status;
}

bool dp_compile_model(const dp_compile_options *options, char *message, size_t message_bytes) {
    if (message_bytes)
        message[0] = '\0';
    dp_status status = run(options, message, message_bytes);
    if (message_bytes && status != DP_OK)
        snprintf(message, message_bytes, "%s", dp_fail_message());
    return status == DP_OK;
}
