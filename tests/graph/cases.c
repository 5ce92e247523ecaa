/*
 * cases.c - the ONNX project's own test cases: a folder each, with model.onnx and test_data_set_0/{input,output}_N.pb.
 *   test_graph_cases EXPECTED.tsv [-document=FILE] [-only=CASE] FOLDER...
 * Each FOLDER holds the folders of cases. EXPECTED lists those that need not pass, each with the reason; one that passes all the
 * same is an error, too, so that the list stays true. FILE must have the table of all results as it is.
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
#include "graph/onnx/onnx.h"
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
static bool is_close(const dp_tensor *got, const dp_tensor *stored, char *why, size_t why_bytes) {
    dp_tensor as_bits = *stored, *want = &as_bits;
    if (got->element == DP_BF16 && stored->element == DP_U16) /* NumPy has no bfloat16: its bits are in the file */
        as_bits.element = DP_BF16;
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

/*
 * Some files give an input that is only looked at for its type, as one element of it; the model declares another shape,
 * which is taken, with zeros. bfloat16 is stored as uint16: the declared type counts.
 */
static bool take_declared(const bytes *file, dp_model *keep, dp_value **in, int n_in) {
    dp_model *model;
    int opset;
    if (dp_onnx_read(file->data, file->size, NULL, &opset, &model) != DP_OK)
        return false;
    bool fine = true;
    for (int i = 0; fine && i < n_in && i < model->graph->n_inputs; i++) {
        const dp_tensor *declared = &model->graph->inputs[i]->tensor;
        bool bits = declared->element == DP_BF16 && in[i]->tensor.element == DP_U16;
        if (bits)
            in[i]->tensor.element = DP_BF16;
        if (dp_value_is_known(model->graph->inputs[i]) && declared->rank != in[i]->tensor.rank)
            fine = (in[i] = dp_value_constant(keep, NULL, declared->element, declared->dims, declared->rank, NULL)) != NULL;
    }
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
    snprintf(why, why_bytes, "an input or output is no tensor");
    if (fine && !take_declared(&file, keep, in, n_in)) {
        snprintf(why, why_bytes, "%s", dp_fail_message());
        fine = false;
    }
    memcpy(all, in, sizeof all);
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

enum { CASES = 4096, REASONS = 64 };

typedef struct reason {
    char text[160];
    int count;
} reason;

typedef struct results {
    const bytes *expected;
    const char *only;
    int cases, passed, failed;
    int not_applicable, excluded; /* excluded: all that need not pass */
    reason reasons[REASONS];
    int n_reasons;
} results;

static void count_reason(results *r, const char *line) {
    char text[160];
    int k = 0;
    snprintf(text, sizeof text, "%.*s", (int)strcspn(line, "\n"), line);
    r->excluded++;
    r->not_applicable += strncmp(text, "not applicable", 14) == 0;
    while (k < r->n_reasons && strcmp(r->reasons[k].text, text) != 0)
        k++;
    if (k == REASONS)
        return;
    r->n_reasons += k == r->n_reasons;
    memcpy(r->reasons[k].text, text, sizeof text);
    r->reasons[k].count++;
}

static void run_named(results *r, const char *folder, const char *name) {
    char path[900], why[1024];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    dp_fail_clear();
    bool fine = run_case(path, why, sizeof why);
    const char *excuse = excused(r->expected, name);
    r->cases++;
    r->passed += fine;
    if (excuse)
        count_reason(r, excuse);
    if (fine == (excuse == NULL))
        return;
    r->failed++;
    printf("FAILED %s\t%s\n", name, fine ? "passes, but is listed as one that need not" : why);
}

static void run_folder(results *r, const char *path) {
    static char *names[CASES];
    DIR *folder = opendir(path);
    int n = 0;
    for (struct dirent *entry; folder && (entry = readdir(folder)) && n < CASES;)
        if (entry->d_name[0] != '.' && (!r->only || strcmp(r->only, entry->d_name) == 0))
            names[n++] = strdup(entry->d_name);
    if (folder)
        closedir(folder);
    qsort(names, (size_t)n, sizeof names[0], by_text);
    for (int i = 0; i < n; i++) {
        run_named(r, path, names[i]);
        free(names[i]);
    }
}

static int by_reason(const void *a, const void *b) {
    const reason *x = a, *y = b;
    return x->count != y->count ? y->count - x->count : strcmp(x->text, y->text);
}

/* The tables of docs/conformance.md. */
static void write_tables(FILE *file, const results *all, int n, char **folders) {
    fprintf(file, "| folder | cases | pass | not applicable | not done |\n|---|---|---|---|---|\n");
    results total = {0};
    for (int i = 0; i < n; i++) {
        const results *r = &all[i];
        const char *slash = strrchr(folders[i], '/');
        fprintf(file, "| %s | %d | %d | %d | %d |\n", slash ? slash + 1 : folders[i], r->cases, r->passed, r->not_applicable,
                r->excluded - r->not_applicable);
        for (int k = 0; k < r->n_reasons; k++)
            for (int times = 0; times < r->reasons[k].count; times++)
                count_reason(&total, r->reasons[k].text);
    }
    qsort(total.reasons, (size_t)total.n_reasons, sizeof total.reasons[0], by_reason);
    fprintf(file, "\n| why not | cases |\n|---|---|\n");
    for (int k = 0; k < total.n_reasons; k++)
        fprintf(file, "| %s | %d |\n", total.reasons[k].text, total.reasons[k].count);
}

static bool check_document(const char *path, const results *all, int n, char **folders) {
    bytes document = {NULL, 0};
    char *tables = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&tables, &size);
    if (!memory || !read_file(path, &document))
        return false;
    ((char *)document.data)[document.size] = '\0';
    write_tables(memory, all, n, folders);
    fclose(memory);
    bool fine = strstr(document.data, tables) != NULL;
    if (!fine)
        printf("FAILED %s must have these tables:\n%s", path, tables);
    free(tables);
    free(document.data);
    return fine;
}

int main(int argc, char **argv) {
    bytes list = {NULL, 0};
    static results all[16];
    char *folders[16];
    const char *document = NULL, *only = NULL;
    int n = 0, failed = 0, cases = 0;
    if (argc < 3 || !read_file(argv[1], &list)) {
        fprintf(stderr, "usage: %s EXPECTED.tsv [-document=FILE] [-only=CASE] FOLDER...\n", argv[0]);
        return 2;
    }
    ((char *)list.data)[list.size] = '\0';
    for (int i = 2; i < argc; i++) {
        if (strncmp(argv[i], "-document=", 10) == 0)
            document = argv[i] + 10;
        else if (strncmp(argv[i], "-only=", 6) == 0)
            only = argv[i] + 6;
        else if (n < 16)
            folders[n++] = argv[i];
    }
    for (int i = 0; i < n; i++) {
        all[i] = (results){.expected = &list, .only = only};
        run_folder(&all[i], folders[i]);
        printf("%s: %d cases, %d passed, %d failed, %d listed as not passing\n", folders[i], all[i].cases, all[i].passed,
               all[i].failed, all[i].excluded);
        failed += all[i].failed;
        cases += all[i].cases;
    }
    bool fine = !document || only || check_document(document, all, n, folders);
    free(list.data);
    return failed || cases == 0 || !fine;
}
