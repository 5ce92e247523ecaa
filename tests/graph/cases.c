/*
 * cases.c - the ONNX project's own test cases: a folder each, with model.onnx and test_data_set_0/{input,output}_N.pb.
 *   test_graph_cases FOLDER EXPECTED.tsv [NAME]
 * FOLDER holds the cases' folders. EXPECTED lists those that need not pass, each with the reason; one that passes all
 * the same is an error, too, so that the list stays true.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/half.h"
#include "graph/compile.h"
#include "graph/onnx/tensor.h"
#include "graph/program.h"
#include "graph/staged.h"

enum { ENDS = 64 };

typedef struct bytes {
    void *data;
    size_t size;
} bytes;

static bool read_file(const char *path, bytes *out) {
    FILE *file = fopen(path, "rb");
    if (!file)
        return false;
    fseek(file, 0, SEEK_END);
    out->size = (size_t)ftell(file);
    out->data = malloc(out->size + 1);
    rewind(file);
    bool fine = fread(out->data, 1, out->size, file) == out->size;
    fclose(file);
    return fine;
}

/* input_0.pb, input_1.pb, ... of a case; how many there are, -1 when one is no tensor. */
static int read_tensors(dp_model *keep, const char *folder, const char *kind, dp_value **out) {
    int n = 0;
    for (; n < ENDS; n++) {
        char path[1024];
        bytes file;
        snprintf(path, sizeof path, "%s/test_data_set_0/%s_%d.pb", folder, kind, n);
        if (!read_file(path, &file))
            break;
        Onnx__TensorProto *tensor = onnx__tensor_proto__unpack(NULL, file.size, file.data);
        free(file.data);
        if (!tensor)
            return -1;
        dp_status status = dp_onnx_constant(keep, NULL, tensor, NULL, &out[n]);
        onnx__tensor_proto__free_unpacked(tensor, NULL);
        if (status != DP_OK)
            return -1;
    }
    return n;
}

static double element(const dp_tensor *t, int64_t i) {
    switch (t->element) {
    case DP_F32:
        return (double)((const float *)t->base)[i];
    case DP_F64:
        return ((const double *)t->base)[i];
    case DP_F16:
        return (double)dp_f32_from_f16(((const uint16_t *)t->base)[i]);
    case DP_BF16:
        return (double)dp_f32_from_bf16(((const uint16_t *)t->base)[i]);
    case DP_I64:
        return (double)((const int64_t *)t->base)[i];
    case DP_U64:
        return (double)((const uint64_t *)t->base)[i];
    case DP_I32:
        return (double)((const int32_t *)t->base)[i];
    case DP_U32:
        return (double)((const uint32_t *)t->base)[i];
    case DP_I16:
        return (double)((const int16_t *)t->base)[i];
    case DP_U16:
        return (double)((const uint16_t *)t->base)[i];
    case DP_I8:
        return (double)((const int8_t *)t->base)[i];
    default:
        return (double)((const uint8_t *)t->base)[i];
    }
}

/* ONNX's own test runner compares with a relative tolerance of 1e-3 and an absolute one of 1e-7; half has 10 bits. */
static bool is_close(const dp_tensor *got, const dp_tensor *want, char *why, size_t why_bytes) {
    if (got->element != want->element || got->rank != want->rank ||
        memcmp(got->dims, want->dims, (size_t)want->rank * sizeof want->dims[0]) != 0) {
        char a[160], b[160];
        snprintf(why, why_bytes, "the result is %s, expected %s", dp_tensor_describe(got, a, sizeof a),
                 dp_tensor_describe(want, b, sizeof b));
        return false;
    }
    bool coarse = want->element == DP_F16 || want->element == DP_BF16;
    for (int64_t i = 0; i < dp_tensor_count(want); i++) {
        double a = element(got, i), b = element(want, i);
        if ((isnan(a) && isnan(b)) || a == b ||
            fabs(a - b) <= (coarse ? 1e-3 : 1e-6) + (coarse ? 4e-3 : 1e-3) * fabs(b))
            continue;
        snprintf(why, why_bytes, "element %lld is %.9g, expected %.9g", (long long)i, a, b);
        return false;
    }
    return true;
}

static bool run_model(dp_model *model, dp_value **in, dp_value **want, int n_want, char *why, size_t why_bytes) {
    dp_program *program;
    if (dp_program_new(model->graph, &program) != DP_OK) {
        snprintf(why, why_bytes, "%s", dp_fail_message());
        return false;
    }
    void *inputs[ENDS], *outputs[ENDS], *work = aligned_alloc(64, dp_program_work_bytes(program) + 64);
    bool fine = true;
    for (int i = 0; i < model->graph->n_inputs; i++)
        inputs[i] = in[i]->tensor.base;
    for (int i = 0; i < n_want; i++)
        outputs[i] = calloc(1, dp_value_bytes(model->graph->outputs[i]) + 64);
    if (dp_program_run(program, inputs, outputs, work) != DP_OK) {
        snprintf(why, why_bytes, "%s", dp_fail_message());
        fine = false;
    }
    for (int i = 0; i < n_want; i++) {
        dp_tensor got = model->graph->outputs[i]->tensor;
        got.base = outputs[i];
        fine = fine && is_close(&got, &want[i]->tensor, why, why_bytes);
        free(outputs[i]);
    }
    free(work);
    dp_program_free(program);
    return fine;
}

/* Short lists behind the first input, integers and single numbers anywhere are shapes, axes, pads, scales: they must be
 * known when a model is compiled. */
static bool gives_shape(const dp_tensor *t, int place) {
    bool is_short = t->rank == 1 && t->dims[0] <= 8;
    return t->rank == 0 || (is_short && (place > 0 || t->element == DP_I64 || t->element == DP_I32));
}

/* Everything open: shapes of all inputs are known only when the model runs, and so are their contents. */
static dp_status make_room(void *data, int index, dp_tensor *tensor) {
    dp_tensor *got = data;
    tensor->base = calloc(1, (size_t)dp_tensor_count(tensor) * dp_element_bytes(tensor->element) + 64);
    got[index] = *tensor;
    return DP_OK;
}

static bool run_open(const bytes *file, dp_value **in, int n_in, dp_value **want, int n_want, char *why, size_t why_bytes) {
    dp_tensor inputs[ENDS], got[ENDS] = {{0}};
    dp_input_shape shapes[ENDS];
    dp_staged *staged = NULL;
    dp_model *model = NULL;
    int opset;
    for (int i = 0; i < n_in; i++) {
        inputs[i] = in[i]->tensor;
        shapes[i] = (dp_input_shape){NULL, inputs[i].rank, {0}, NULL};
        for (int d = 0; d < inputs[i].rank; d++)
            shapes[i].dims[d] = DP_UNKNOWN;
    }
    bool fine = dp_compile_open(&(dp_onnx_source){.bytes = file->data, .size_bytes = file->size, .shapes = shapes, .n_shapes = n_in}, &model, &opset) == DP_OK &&
                dp_staged_new(model->graph, opset, &staged) == DP_OK;
    for (int i = 0; fine && i < n_in; i++)
        inputs[i].element = model->graph->inputs[i]->tensor.element; /* bfloat16 comes as uint16 in the files */
    for (int again = 0; fine && again < 2; again++) {
        fine = dp_staged_run(staged, inputs, make_room, got) == DP_OK;
        for (int i = 0; i < n_want; i++) {
            if (fine && !is_close(&got[i], &want[i]->tensor, why, why_bytes)) {
                dp_fail(DP_ERR_ARGUMENT, "%s", why);
                fine = false;
            }
            free(got[i].base);
            got[i].base = NULL;
        }
    }
    if (!fine)
        snprintf(why, why_bytes, "with open shapes: %s", dp_fail_message());
    dp_staged_free(staged);
    dp_model_free(model);
    return fine;
}

static bool run_case(const char *folder, char *why, size_t why_bytes) {
    char path[1024];
    bytes file;
    dp_value *in[ENDS], *want[ENDS];
    dp_input_shape shapes[ENDS];
    snprintf(path, sizeof path, "%s/model.onnx", folder);
    if (!read_file(path, &file)) {
        snprintf(why, why_bytes, "no model.onnx");
        return false;
    }
    dp_model *keep = dp_model_new("tensors"), *model = NULL;
    int n_in = read_tensors(keep, folder, "input", in), n_want = read_tensors(keep, folder, "output", want);
    dp_value *all[ENDS];
    int n_kept = 0;
    bool fine = n_in >= 0 && n_want > 0, stopped = false;
    memcpy(all, in, sizeof all);
    snprintf(why, why_bytes, "an input or output is no tensor");
    for (int i = 0; fine && i < n_in; i++) {
        bool frozen = gives_shape(&in[i]->tensor, i);
        shapes[i] = (dp_input_shape){NULL, in[i]->tensor.rank, {0}, frozen ? in[i]->tensor.base : NULL};
        memcpy(shapes[i].dims, in[i]->tensor.dims, sizeof shapes[i].dims);
        if (!frozen)
            in[n_kept++] = in[i];
    }
    dp_onnx_source source = {.bytes = file.data, .size_bytes = file.size, .shapes = shapes, .n_shapes = n_in};
    if (fine && dp_compile_fixed(&source, &model, &stopped) != DP_OK && !stopped) {
        snprintf(why, why_bytes, "%s", dp_fail_message());
        fine = false;
    }
    fine = fine && (stopped || run_model(model, in, want, n_want, why, why_bytes)) &&
           run_open(&file, all, n_in, want, n_want, why, why_bytes);
    dp_model_free(model);
    dp_model_free(keep);
    free(file.data);
    return fine;
}

/* The reason in EXPECTED ("name<TAB>reason" lines) for a case; NULL: it must pass. */
static const char *excused(const bytes *list, const char *name) {
    size_t length = strlen(name);
    for (const char *line = list->data; line && *line; line = strchr(line, '\n'), line += line != NULL)
        if (strncmp(line, name, length) == 0 && line[length] == '\t')
            return line + length + 1;
    return NULL;
}

static int by_text(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int main(int argc, char **argv) {
    bytes list = {NULL, 0};
    if (argc < 3 || !read_file(argv[2], &list)) {
        fprintf(stderr, "usage: %s FOLDER EXPECTED.tsv [NAME]\n", argv[0]);
        return 2;
    }
    ((char *)list.data)[list.size] = '\0';
    DIR *folder = opendir(argv[1]);
    static char *names[4096];
    int n = 0, passed = 0, failed = 0, excuses = 0;
    for (struct dirent *entry; folder && (entry = readdir(folder)) && n < 4096;)
        if (entry->d_name[0] != '.' && (argc < 4 || strcmp(argv[3], entry->d_name) == 0))
            names[n++] = strdup(entry->d_name);
    if (folder)
        closedir(folder);
    qsort(names, (size_t)n, sizeof names[0], by_text);
    for (int i = 0; i < n; i++) {
        char path[900], why[1024];
        snprintf(path, sizeof path, "%s/%s", argv[1], names[i]);
        dp_fail_clear();
        bool fine = run_case(path, why, sizeof why);
        const char *excuse = excused(&list, names[i]);
        if (fine && !excuse)
            passed++;
        else if (!fine && excuse)
            excuses++;
        else {
            failed++;
            printf("FAILED %s\t%s\n", names[i], fine ? "passes, but is listed as one that need not" : why);
        }
        free(names[i]);
    }
    free(list.data);
    printf("%d cases, %d of them listed as not passing\n%d passed, %d failed\n", n, excuses, passed, failed);
    return failed || n == 0;
}
