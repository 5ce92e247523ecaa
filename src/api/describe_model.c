/* doppel/compile.h: what is in a model, without running it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/compile_file.h"
#include "doppel/compile.h"
#include "graph/compile.h"
#include "graph/json.h"
#include "graph/model_file.h"

/* An ONNX file as it is read. */
static dp_status read_onnx(const char *path, dp_model **out_model) {
    char folder[DP_PATH_BYTES];
    void *bytes;
    size_t size;
    int opset;
    dp_status status = dp_file_read("model", path, &bytes, &size);
    if (status != DP_OK)
        return status;
    dp_folder_of(path, folder);
    dp_onnx_source source = {.name = path, .bytes = bytes, .size_bytes = size, .folder = folder};
    status = dp_onnx_read_source(&source, out_model, &opset);
    dp_free(bytes);
    return status;
}

static dp_status open_json(const char *path, FILE **out_file) {
    *out_file = strcmp(path, "-") == 0 ? stdout : fopen(path, "w");
    return *out_file ? DP_OK : dp_fail(DP_ERR_IO, "json %s: %s", path, strerror(errno));
}

static dp_status close_json(const char *path, FILE *file) {
    bool fine = !ferror(file);
    fine = (file == stdout ? fflush(file) == 0 : fclose(file) == 0) && fine;
    return fine ? DP_OK : dp_fail(DP_ERR_IO, "json %s: %s", path, strerror(errno));
}

static dp_status write_json(const char *model, bool onnx, const char *json) {
    dp_model_file *file = NULL;
    dp_model *source = NULL;
    FILE *out;
    dp_status status = onnx ? read_onnx(model, &source) : dp_model_file_open(model, &file);
    if (status == DP_OK && (status = open_json(json, &out)) == DP_OK) {
        int n = onnx ? 1 : dp_model_file_variants(file);
        dp_model **models = dp_alloc(DP_MEM_GRAPH, (size_t)n * sizeof *models);
        for (int i = 0; models && i < n; i++)
            models[i] = onnx ? source : dp_model_file_variant(file, i);
        if (models)
            dp_models_write_json(model, onnx ? NULL : dp_model_file_shapes(file), models, n, out);
        status = close_json(json, out);
        if (!models)
            status = dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory: free some");
        dp_free(models);
    }
    dp_model_free(source);
    dp_model_file_close(file);
    return status;
}

/* One line. declared: the dims that may vary are shown as -1; NULL: those of the graph. */
static void print_value(const char *what, const dp_value *value, const dp_declared *declared, const char *indent) {
    const dp_tensor *t = &value->tensor;
    printf("%s%s: %s %s [", indent, what, value->name, t->element == DP_EL_NONE ? "?" : dp_element_name(t->element));
    int rank = declared ? declared->rank : t->rank;
    for (int d = 0; d < rank; d++) {
        bool open = declared && dp_declared_is_open(declared, d);
        printf("%s%lld", d ? ", " : "", open ? -1LL : (long long)t->dims[d]);
    }
    puts(t->rank == DP_UNKNOWN && !declared ? "...]" : "]");
}

static void print_numbers(const dp_shapes *shapes, int gear) {
    for (int k = 0; k < shapes->n_numbers; k++)
        printf("%s%lld", k ? "," : "", (long long)shapes->numbers[gear * shapes->n_numbers + k]);
}

/* All listed sizes in one line; then what each of them makes of the open values. */
static void print_gears(dp_model_file *file) {
    const dp_shapes *shapes = dp_model_file_shapes(file);
    for (int g = 0; g < shapes->n_gears; g++) {
        fputs(g ? "; " : "gears: ", stdout);
        print_numbers(shapes, g);
    }
    if (shapes->n_gears)
        putchar('\n');
    for (int g = 0; g < shapes->n_gears && !shapes->is_source; g++) {
        const dp_graph *graph = dp_model_file_variant(file, g)->graph;
        fputs("gear ", stdout);
        print_numbers(shapes, g);
        printf(": %d nodes\n", graph->n_nodes);
        for (int i = 0; i < graph->n_inputs; i++)
            print_value("input", graph->inputs[i], NULL, "  ");
        for (int i = 0; i < graph->n_outputs; i++)
            print_value("output", graph->outputs[i], NULL, "  ");
    }
}

static dp_status print_summary(const char *path) {
    dp_model_file *file;
    dp_status status = dp_model_file_open(path, &file);
    if (status != DP_OK)
        return status;
    const dp_shapes *shapes = dp_model_file_shapes(file);
    const dp_graph *graph = dp_model_file_variant(file, 0)->graph;
    bool listed = shapes->n_gears && !shapes->is_source; /* outputs and nodes are told for each size */
    printf("model: %s\n", path);
    for (int i = 0; i < graph->n_inputs; i++)
        print_value("input", graph->inputs[i], shapes->n_inputs ? &shapes->inputs[i] : NULL, "");
    for (int i = 0; i < graph->n_outputs && !listed; i++)
        print_value("output", graph->outputs[i], NULL, "");
    printf("graphs: %d\n", dp_model_file_variants(file));
    if (!listed)
        printf("nodes: %d%s\n", graph->n_nodes, shapes->is_source ? " (lowered while it runs)" : "");
    printf("weights: %zu bytes\nwork memory: %zu bytes\n", dp_model_file_weights_bytes(file),
           shapes->is_source ? (size_t)0 : dp_model_file_work_bytes(file));
    print_gears(file);
    status = dp_model_file_verify(file);
    dp_model_file_close(file);
    return status;
}

static bool end(dp_status status, char *message, size_t message_bytes) {
    if (message_bytes)
        snprintf(message, message_bytes, "%s", status == DP_OK ? "" : dp_fail_message());
    return status == DP_OK;
}

bool dp_describe_model(const char *model, bool is_onnx, const char *json, char *message, size_t message_bytes) {
    return end(json ? write_json(model, is_onnx, json) : print_summary(model), message, message_bytes);
}

static void write_report(FILE *file, const char *model, dp_status status) {
    fputs("{\"model\": ", file);
    dp_json_write_text(model, file);
    fprintf(file, ", \"result\": \"%s\", \"reason\": ", status == DP_OK ? "success" : "failed");
    dp_json_write_text(status == DP_OK ? "" : dp_fail_message(), file);
    fputs("}\n", file);
}

bool dp_check_model(const char *model, const char *report, char *message, size_t message_bytes) {
    char folder[DP_PATH_BYTES];
    void *bytes = NULL;
    size_t size;
    int opset;
    dp_model *read = NULL;
    FILE *file;
    dp_status status = dp_file_read("model", model, &bytes, &size);
    if (status != DP_OK)
        return end(status, message, message_bytes);
    dp_folder_of(model, folder);
    dp_onnx_source source = {.name = model, .bytes = bytes, .size_bytes = size, .folder = folder};
    status = dp_compile_open(&source, &read, &opset);
    dp_model_free(read);
    dp_free(bytes);
    dp_status opened = open_json(report, &file);
    if (opened == DP_OK) {
        write_report(file, model, status);
        opened = close_json(report, file);
    }
    return end(status == DP_OK ? opened : status, message, message_bytes);
}
