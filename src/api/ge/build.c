/* build.c - graphs become compiled models. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "api/compile_file.h"
#include "api/compile_model.h"
#include "api/ge/ge.h"
#include "graph/model_file.h"
#include "graph/passes/passes.h"
#include "runtime/fork.h"

enum { FAILED = 0xffffffff, OPTIONS = 16, OPTION_BYTES = 1024 };

/* Options by the names of ge/ge_api_types.h. */
typedef struct options {
    char values[OPTIONS][OPTION_BYTES];
    bool given[OPTIONS];
} options;

enum {
    SOC_VERSION,
    PRECISION_MODE,
    PRECISION_MODE_V2,
    INPUT_SHAPE,
    OUTPUT_TYPE,
    OUT_NODES,
    INPUT_FP16_NODES,
    BATCH,
    IMAGE,
    DIMS,
    USED
};
static const char *const names[OPTIONS] = {
    "soc_version", "precision_mode", "precision_mode_v2", "input_shape", "output_type", "out_nodes", "input_fp16_nodes",
    "dynamic_batch_size", "dynamic_image_size", "dynamic_dims",
    /* of the NPU only */
    "op_select_implmode", "optypelist_for_implmode", "input_format", "log", "core_type", "buffer_optimize"};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static options process_wide;
static bool is_ready;
/* Clients build in a child of fork: whoever changed options then has finished. */
static dp_fork_part fork_part = {.floor = DP_FORK_API, .lock = &lock};

static uint32_t finish(dp_api_call *call, dp_status status) {
    return dp_api_end(call, status) == ACL_SUCCESS ? 0 : FAILED;
}

static dp_status take_options(options *o, const char *const *keys, const char *const *values, size_t count) {
    for (size_t i = 0; i < count; i++) {
        int at = 0;
        if (!keys || !values || !keys[i] || !values[i])
            return dp_fail(DP_ERR_ARGUMENT, "option %zu has no name or no value", i);
        while (at < OPTIONS && strcmp(names[at], keys[i]) != 0)
            at++;
        if (at == OPTIONS)
            return dp_fail(DP_ERR_UNSUPPORTED, "option \"%.80s\" is none that Doppel knows: see ge/ge_api_types.h",
                           keys[i]);
        if (strlen(values[i]) >= OPTION_BYTES)
            return dp_fail(DP_ERR_ARGUMENT, "option \"%s\" is longer than %d bytes", keys[i], OPTION_BYTES - 1);
        strcpy(o->values[at], values[i]);
        o->given[at] = values[i][0] != '\0';
    }
    return dp_soc_check(o->given[SOC_VERSION] ? o->values[SOC_VERSION] : NULL);
}

uint32_t dp_ge_initialize(const char *const *keys, const char *const *values, size_t count) {
    dp_api_call call = dp_api_begin("aclgrphBuildInitialize", __builtin_return_address(0));
    options *o = dp_alloc(DP_MEM_GRAPH, sizeof *o);
    dp_status status =
        o ? take_options(o, keys, values, count) : dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory: free some");
    if (status == DP_OK) {
        dp_fork_lock(&fork_part);
        process_wide = *o;
        is_ready = true;
        pthread_mutex_unlock(&lock);
    }
    dp_free(o);
    return finish(&call, status);
}

void dp_ge_finalize(void) {
    dp_api_call call = dp_api_begin("aclgrphBuildFinalize", __builtin_return_address(0));
    dp_fork_lock(&fork_part);
    memset(&process_wide, 0, sizeof process_wide);
    is_ready = false;
    pthread_mutex_unlock(&lock);
    dp_api_end(&call, DP_OK);
}

/* ONNX. */

static dp_status take_onnx(dp_ge_graph *graph, char *bytes, size_t size) {
    if (!graph->onnx && graph->n_outputs)
        return dp_fail(DP_ERR_STATE, "graph \"%s\" has outputs already: parse into a new graph", graph->name);
    dp_free(graph->onnx);
    dp_free(graph->folder);
    graph->onnx = bytes;
    graph->onnx_bytes = size;
    graph->folder = NULL;
    return DP_OK;
}

/* What stands in the file is told now, not only when the graph is built. */
static dp_status probe(const char *bytes, size_t size, const char *folder) {
    dp_model *model = NULL;
    int opset;
    dp_status status =
        dp_compile_open(&(dp_onnx_source){.bytes = bytes, .size_bytes = size, .folder = folder}, &model, &opset);
    dp_model_free(model);
    return status;
}

static dp_status copy_onnx(dp_ge_graph *graph, const void *bytes, size_t size) {
    char *copy = dp_alloc(DP_MEM_GRAPH, size + 1);
    if (!copy)
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for a model of %zu bytes: free some", size);
    memcpy(copy, bytes, size);
    dp_status status = probe(copy, size, NULL);
    if (status == DP_OK)
        status = take_onnx(graph, copy, size);
    if (status != DP_OK)
        dp_free(copy);
    return status;
}

uint32_t dp_ge_parse_bytes(dp_ge_graph *graph, const void *bytes, size_t size) {
    dp_api_call call = dp_api_begin("aclgrphParseONNXFromMem", __builtin_return_address(0));
    if (!graph || !bytes || size == 0 || size > SIZE_MAX / 2)
        return finish(&call, dp_fail(DP_ERR_ARGUMENT, "graph or buffer is NULL, or size is %zu", size));
    return finish(&call, copy_onnx(graph, bytes, size));
}

static dp_status parse_file(dp_ge_graph *graph, const char *path) {
    char folder[DP_PATH_BYTES];
    void *bytes;
    size_t size;
    dp_status status = dp_file_read("model_file", path, &bytes, &size);
    if (status != DP_OK)
        return status;
    dp_folder_of(path, folder);
    char *copy = dp_alloc(DP_MEM_GRAPH, strlen(folder) + 1);
    status = copy ? probe(bytes, size, folder) : dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory: free some");
    if (status == DP_OK)
        status = take_onnx(graph, bytes, size);
    if (status != DP_OK) {
        dp_free(bytes);
        dp_free(copy);
        return status;
    }
    graph->folder = strcpy(copy, folder);
    return DP_OK;
}

uint32_t dp_ge_parse_file(dp_ge_graph *graph, const char *path) {
    dp_api_call call = dp_api_begin("aclgrphParseONNX", __builtin_return_address(0));
    if (!graph || !path)
        return finish(&call, dp_fail(DP_ERR_ARGUMENT, "graph or model_file is NULL"));
    return finish(&call, parse_file(graph, path));
}

/* Building. */

static const char *value_of(const options *o, int at) {
    return o->given[at] ? o->values[at] : NULL;
}

static dp_status build_onnx(const dp_ge_graph *graph, const options *o, void **out_bytes, size_t *out_size) {
    dp_compile_options compile = {.input_shape = value_of(o, INPUT_SHAPE),
                                  .precision_mode = value_of(o, PRECISION_MODE),
                                  .precision_mode_v2 = value_of(o, PRECISION_MODE_V2),
                                  .input_fp16_nodes = value_of(o, INPUT_FP16_NODES),
                                  .output_type = value_of(o, OUTPUT_TYPE),
                                  .out_nodes = value_of(o, OUT_NODES),
                                  .dynamic_batch_size = value_of(o, BATCH),
                                  .dynamic_image_size = value_of(o, IMAGE),
                                  .dynamic_dims = value_of(o, DIMS)};
    dp_compiled compiled;
    dp_status status = dp_compile_bytes(&compile, graph->onnx, graph->onnx_bytes, graph->folder, &compiled);
    if (status == DP_OK)
        status = dp_model_file_pack(&compiled.shapes, compiled.variants, compiled.n_variants, out_bytes, out_size);
    dp_compiled_free(&compiled);
    return status;
}

static dp_status build_operators(const dp_ge_graph *graph, const options *o, void **out_bytes, size_t *out_size) {
    static const int fixed[] = {OUT_NODES, BATCH, IMAGE, DIMS};
    dp_precision precision = {.half_inputs = value_of(o, INPUT_FP16_NODES), .output_type = value_of(o, OUTPUT_TYPE)};
    dp_shapes shapes = {.kind = DP_SHAPES_FIXED};
    dp_model *model = NULL;
    dp_status status = dp_precision_parse(value_of(o, PRECISION_MODE), value_of(o, PRECISION_MODE_V2), &precision);
    for (size_t i = 0; i < sizeof fixed / sizeof fixed[0] && status == DP_OK; i++)
        if (o->given[fixed[i]])
            status =
                dp_fail(DP_ERR_UNSUPPORTED, "option \"%s\" is for models that were parsed, not for graphs of operators",
                        names[fixed[i]]);
    if (status == DP_OK)
        status = dp_ge_import(graph, &model);
    if (status == DP_OK) {
        model->precision = &precision;
        status = dp_passes_run(model->graph, NULL);
        model->precision = NULL;
    }
    if (status == DP_OK)
        status = dp_model_file_pack(&shapes, &model, 1, out_bytes, out_size);
    dp_model_free(model);
    return status;
}

static dp_status begin_build(options *o, const char *const *keys, const char *const *values, size_t count) {
    dp_fork_lock(&fork_part);
    bool ready = is_ready;
    *o = process_wide;
    pthread_mutex_unlock(&lock);
    if (!ready)
        return dp_fail(DP_ERR_STATE, "aclgrphBuildInitialize must be called first");
    return take_options(o, keys, values, count);
}

uint32_t dp_ge_build(const dp_ge_graph *graph, const char *const *keys, const char *const *values, size_t count,
                     void **out_bytes, size_t *out_size) {
    dp_api_call call = dp_api_begin("aclgrphBuildModel", __builtin_return_address(0));
    if (!graph || !out_bytes || !out_size)
        return finish(&call, dp_fail(DP_ERR_ARGUMENT, "graph or model is NULL"));
    options *o = dp_alloc(DP_MEM_GRAPH, sizeof *o);
    dp_status status =
        o ? begin_build(o, keys, values, count) : dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory: free some");
    if (status == DP_OK && graph->failed)
        status =
            dp_fail(DP_ERR_OUT_OF_MEMORY, "host memory was exhausted while graph \"%s\" was put together", graph->name);
    if (status == DP_OK)
        status =
            graph->onnx ? build_onnx(graph, o, out_bytes, out_size) : build_operators(graph, o, out_bytes, out_size);
    dp_free(o);
    return finish(&call, status);
}

void dp_ge_free(void *bytes) {
    dp_free(bytes);
}

static dp_status save(const char *path, const void *bytes, size_t size) {
    char name[DP_PATH_BYTES];
    size_t length = strlen(path);
    bool named = length > 3 && strcmp(path + length - 3, ".om") == 0;
    if ((size_t)snprintf(name, sizeof name, "%s%s", path, named ? "" : ".om") >= sizeof name)
        return dp_fail(DP_ERR_ARGUMENT, "output_file is longer than %d bytes", DP_PATH_BYTES - 4);
    FILE *file = fopen(name, "wb");
    if (!file)
        return dp_fail(DP_ERR_IO, "output_file %s: %s", name, strerror(errno));
    bool whole = fwrite(bytes, 1, size, file) == size;
    if (fclose(file) != 0 || !whole)
        return dp_fail(DP_ERR_IO, "output_file %s: %s", name, strerror(errno));
    return DP_OK;
}

uint32_t dp_ge_save(const char *path, const void *bytes, size_t size) {
    dp_api_call call = dp_api_begin("aclgrphSaveModel", __builtin_return_address(0));
    if (!path || !*path || !bytes || size == 0)
        return finish(&call, dp_fail(DP_ERR_ARGUMENT, "output_file is empty or the model has no data"));
    return finish(&call, save(path, bytes, size));
}

uint32_t dp_ge_dump(const dp_ge_graph *graph, const char *path, size_t length) {
    dp_api_call call = dp_api_begin("aclgrphDumpGraph", __builtin_return_address(0));
    char name[DP_PATH_BYTES];
    dp_model *model = NULL;
    if (!graph || !path || length == 0 || length >= sizeof name)
        return finish(&call, dp_fail(DP_ERR_ARGUMENT, "graph or file is NULL, or len is %zu", length));
    snprintf(name, sizeof name, "%.*s", (int)length, path);
    int opset;
    dp_onnx_source source = {.bytes = graph->onnx, .size_bytes = graph->onnx_bytes, .folder = graph->folder};
    dp_status status = graph->onnx ? dp_compile_open(&source, &model, &opset) : dp_ge_import(graph, &model);
    FILE *file = status == DP_OK ? fopen(name, "w") : NULL;
    if (file)
        dp_graph_print(model->graph, file);
    if (status == DP_OK && (!file || fclose(file) != 0))
        status = dp_fail(DP_ERR_IO, "file %s: %s", name, strerror(errno));
    dp_model_free(model);
    return finish(&call, status);
}
