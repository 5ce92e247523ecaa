/*
 * graph_fuzz.c - models made from bytes: ONNX files through the compiler, and compiled models (.om) through the loader.
 * What compiles or loads, and is small, runs. Nothing may crash, and every failure has a sentence.
 *
 * The first byte of an input says what the rest is: 'O' an ONNX file, 'M' a compiled model, whose checksums are made
 * right first. The plain program takes files with such inputs, and -models=FOLDER      folders with model.onnx as
 * further seeds (the ONNX project's cases) -seconds=N -seed=N  damages seeds at random for so long -write=FOLDER writes
 * all seeds there, for libFuzzer
 */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/compile.h"
#include "graph/model_file.h"
#include "graph/model_format.h"
#include "graph/onnx/onnx.h"
#include "graph/program.h"
#include "graph/staged.h"

enum { ENDS = 32, RUN_BYTES = 1 << 16, FILE_BYTES = 1 << 18, OPEN_DIM = 3 };

#ifdef __has_feature
#define HAS_FEATURE(name) __has_feature(name)
#else
#define HAS_FEATURE(name) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || HAS_FEATURE(address_sanitizer) || HAS_FEATURE(thread_sanitizer)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

/* What models ask for too much is refused: by the sanitizer's allocator as by the system's. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) {
    return "allocator_may_return_null=1:max_allocation_size_mb=1024";
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static unsigned long compiled, loaded, ran;

static void must_have_sentence(dp_status status, const char *what) {
    if (status == DP_OK || dp_fail_message()[0])
        return;
    fprintf(stderr, "%s failed with status %d and without a sentence\n", what, (int)status);
    abort();
}

/* Whether all values of the graph are small: runs of others take long, and only that. */
static bool is_small(const dp_graph *graph) {
    for (const dp_node *node = graph->first; node; node = node->next)
        for (int i = 0; i < node->n_inputs + node->n_outputs; i++) {
            const dp_value *value = i < node->n_inputs ? node->inputs[i] : node->outputs[i - node->n_inputs];
            if (value && (!dp_value_is_known(value) || dp_value_bytes(value) > RUN_BYTES))
                return false;
        }
    for (int i = 0; i < graph->n_inputs; i++)
        if (!dp_value_is_known(graph->inputs[i]) || dp_value_bytes(graph->inputs[i]) > RUN_BYTES)
            return false;
    return graph->n_inputs <= ENDS && graph->n_outputs <= ENDS;
}

static void *filled(size_t size) {
    uint8_t *bytes = aligned_alloc(64, (size + 127) & ~(size_t)63);
    for (size_t i = 0; bytes && i < size; i++)
        bytes[i] = (uint8_t)(i % 4 == 3 ? 63 : i * 7); /* floats about 1 */
    return bytes;
}

static void run_program(dp_graph *graph) {
    dp_program *program;
    void *inputs[ENDS] = {NULL}, *outputs[ENDS] = {NULL};
    if (!is_small(graph))
        return;
    dp_status status = dp_program_new(graph, &program);
    must_have_sentence(status, "dp_program_new");
    if (status != DP_OK)
        return;
    void *work = dp_program_work_bytes(program) > 64 * RUN_BYTES ? NULL : filled(dp_program_work_bytes(program));
    for (int i = 0; work && i < graph->n_inputs; i++)
        inputs[i] = filled(dp_value_bytes(graph->inputs[i]));
    for (int i = 0; work && i < graph->n_outputs; i++)
        outputs[i] = filled(dp_value_bytes(graph->outputs[i]));
    if (work) {
        must_have_sentence(dp_program_run(program, inputs, outputs, work), "dp_program_run");
        ran++;
    }
    for (int i = 0; i < ENDS; i++) {
        free(inputs[i]);
        free(outputs[i]);
    }
    free(work);
    dp_program_free(program);
}

static dp_status make_room(void *data, int index, dp_tensor *tensor) {
    void **outputs = data;
    size_t bytes = (size_t)dp_tensor_count(tensor) * dp_element_bytes(tensor->element);
    if (index >= ENDS || bytes > 64 * RUN_BYTES)
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "output %d is too large for a fuzzer", index);
    tensor->base = outputs[index] = filled(bytes);
    return DP_OK;
}

/* In stages: shapes that depend on data, branches, loops. */
static void run_stages(dp_graph *graph, int opset, const dp_input_shape *shapes) {
    dp_tensor inputs[ENDS];
    void *outputs[ENDS] = {NULL};
    dp_staged *staged = NULL;
    bool fine = graph->n_inputs <= ENDS && graph->n_outputs <= ENDS;
    int n = 0;
    for (; fine && n < graph->n_inputs; n++) {
        dp_value *value = graph->inputs[n];
        dp_value shaped = *value;
        dp_value_shape(&shaped, value->tensor.element, shapes[n].dims, shapes[n].rank);
        inputs[n] = shaped.tensor;
        inputs[n].base = NULL;
        fine = dp_value_is_known(&shaped) && dp_value_bytes(&shaped) <= RUN_BYTES;
        if (fine)
            inputs[n].base = filled(dp_value_bytes(&shaped));
    }
    if (fine && dp_staged_new(graph, opset, &staged) == DP_OK) {
        must_have_sentence(dp_staged_run(staged, inputs, make_room, outputs), "dp_staged_run");
        ran++;
    }
    dp_staged_free(staged);
    for (int i = 0; i < n; i++)
        free(inputs[i].base);
    for (int i = 0; i < ENDS; i++)
        free(outputs[i]);
}

/* Shapes for the inputs: those of the file, with a small number for what is open. */
static int choose_shapes(const dp_graph *graph, dp_input_shape *shapes) {
    int n = graph->n_inputs < ENDS ? graph->n_inputs : ENDS;
    for (int i = 0; i < n; i++) {
        const dp_tensor *t = &graph->inputs[i]->tensor;
        shapes[i] = (dp_input_shape){.rank = t->rank < 0 ? 2 : t->rank};
        for (int d = 0; d < shapes[i].rank; d++)
            shapes[i].dims[d] = t->rank < 0 || t->dims[d] < 0 ? OPEN_DIM : t->dims[d];
    }
    return n;
}

static void try_onnx(const uint8_t *bytes, size_t size) {
    dp_model *read = NULL, *model = NULL;
    dp_input_shape shapes[ENDS];
    int opset;
    bool stopped = false;
    dp_status status = dp_onnx_read(bytes, size, NULL, &opset, &read);
    must_have_sentence(status, "dp_onnx_read");
    if (status != DP_OK)
        return;
    int n = choose_shapes(read->graph, shapes);
    dp_onnx_source source = {.bytes = bytes, .size_bytes = size, .shapes = shapes, .n_shapes = n};
    dp_fail_clear();
    status = dp_compile_fixed(&source, &model, &stopped);
    if (!stopped)
        must_have_sentence(status, "dp_compile_fixed");
    if (status == DP_OK) {
        compiled++;
        run_program(model->graph);
    } else if (stopped && n == read->graph->n_inputs && dp_compile_open(&source, &model, &opset) == DP_OK) {
        compiled++;
        run_stages(model->graph, opset, shapes);
    }
    dp_model_free(model);
    dp_model_free(read);
}

static void make_right(uint8_t *bytes, size_t size) {
    dp_model_header h;
    if (size < sizeof h)
        return;
    memcpy(&h, bytes, sizeof h);
    h.file_bytes = size;
    if (h.graphs_offset <= size && h.graphs_bytes <= size - h.graphs_offset)
        h.graphs_hash = XXH3_64bits(bytes + h.graphs_offset, h.graphs_bytes);
    if (h.weights_offset <= size && h.weights_bytes <= size - h.weights_offset)
        h.weights_hash = XXH3_64bits(bytes + h.weights_offset, h.weights_bytes);
    h.header_hash = XXH3_64bits(&h, offsetof(dp_model_header, header_hash));
    memcpy(bytes, &h, sizeof h);
}

static void try_model(const uint8_t *bytes, size_t size) {
    dp_model_file *file = NULL;
    uint8_t *copy = aligned_alloc(64, (size + 127) & ~(size_t)63);
    if (!copy)
        return;
    memcpy(copy, bytes, size);
    make_right(copy, size);
    dp_status status = dp_model_file_read(copy, size, &file);
    must_have_sentence(status, "dp_model_file_read");
    for (int i = 0; status == DP_OK && i < dp_model_file_variants(file); i++) {
        const dp_shapes *shapes = dp_model_file_shapes(file);
        dp_graph *graph = dp_model_file_variant(file, i)->graph;
        dp_input_shape chosen[ENDS];
        loaded++;
        if (!shapes->is_source)
            run_program(graph);
        else if (choose_shapes(graph, chosen) == graph->n_inputs)
            run_stages(graph, shapes->opset, chosen);
    }
    dp_model_file_close(file);
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    dp_fail_clear();
    if (size < 1 || size > FILE_BYTES)
        return 0;
    if (bytes[0] == 'M')
        try_model(bytes + 1, size - 1);
    else
        try_onnx(bytes + 1, size - 1);
    return 0;
}

#ifndef DP_LIBFUZZER

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "graph/onnx_make.h"

enum { SEEDS = 4096, CALL_SECONDS = 60 };
static const size_t memory_bytes = (size_t)6 << 30;

typedef struct seed {
    uint8_t *bytes;
    size_t size;
} seed;

static seed seeds[SEEDS];
static int n_seeds;

static void add_seed(char kind, const void *bytes, size_t size) {
    if (n_seeds == SEEDS || size + 1 > FILE_BYTES)
        return;
    seed *s = &seeds[n_seeds++];
    s->size = size + 1;
    s->bytes = malloc(size + 1);
    s->bytes[0] = (uint8_t)kind;
    memcpy(s->bytes + 1, bytes, size);
}

/* The ONNX file, and what it is compiled to. */
static void add_model(const void *bytes, size_t size) {
    dp_model *model = NULL, *read = NULL;
    dp_input_shape shapes[ENDS];
    int opset;
    bool stopped;
    void *packed;
    size_t packed_size;
    add_seed('O', bytes, size);
    if (dp_onnx_read(bytes, size, NULL, &opset, &read) != DP_OK)
        return;
    dp_onnx_source source = {
        .bytes = bytes, .size_bytes = size, .shapes = shapes, .n_shapes = choose_shapes(read->graph, shapes)};
    if (dp_compile_fixed(&source, &model, &stopped) == DP_OK &&
        dp_model_file_pack(NULL, &model, 1, &packed, &packed_size) == DP_OK) {
        add_seed('M', packed, packed_size);
        dp_free(packed);
    }
    dp_model_free(model);
    dp_model_free(read);
}

/* Models of a few nodes: they are there where the ONNX project's cases are not. */
static void add_own(void) {
    static const int64_t image[] = {1, 2, 6, 6}, filter[] = {4, 2, 3, 3}, axis = 1, rows[] = {-1, 4}, square[] = {4, 4};
    static float weights[72];
    size_t size;
    maker *m = make_begin(17);
    make_input(m, "x", 1, 4, image);
    make_constant(m, "w", 1, 4, filter, weights, sizeof weights);
    make_node(m, "Conv", "x w", "a");
    make_node(m, "Relu", "a", "b");
    make_node(m, "MaxPool", "b", "c");
    make_integers(m, "kernel_shape", 2, (const int64_t[]){2, 2});
    make_node(m, "Flatten", "c", "d");
    make_node(m, "Softmax", "d", "y");
    make_output(m, "y");
    void *bytes = make_end(m, &size);
    add_model(bytes, size);
    free(bytes);
    m = make_begin(17);
    make_input(m, "x", 1, 2, rows);
    make_constant(m, "w", 1, 2, square, weights, 64);
    make_constant(m, "axes", 7, 1, (const int64_t[]){1}, &axis, 8);
    make_node(m, "MatMul", "x w", "a");
    make_node(m, "TopK", "a axes", "b c");
    make_node(m, "ReduceSum", "b axes", "d");
    make_node(m, "NonZero", "d", "y");
    make_output(m, "y");
    bytes = make_end(m, &size);
    add_model(bytes, size);
    free(bytes);
}

static void *read_file(const char *path, size_t *out_size) {
    FILE *file = fopen(path, "rb");
    if (!file)
        return NULL;
    uint8_t *bytes = malloc(FILE_BYTES);
    *out_size = bytes ? fread(bytes, 1, FILE_BYTES, file) : 0;
    fclose(file);
    return bytes;
}

static void add_folder(const char *path) {
    DIR *folder = opendir(path);
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        char name[1200];
        size_t size;
        snprintf(name, sizeof name, "%s/%s/model.onnx", path, entry->d_name);
        void *bytes = read_file(name, &size);
        if (bytes && size < FILE_BYTES)
            add_model(bytes, size);
        free(bytes);
    }
    if (folder)
        closedir(folder);
}

static uint64_t state = 1;
static uint32_t below(uint32_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return n ? (uint32_t)(state >> 33) % n : 0;
}

/*
 * The number behind a key of the ONNX format that has one - dims, element types, integers of attributes, versions - or
 * a byte of a compiled model's numbers, which are mostly 0. Lengths stay right, so that what is damaged is read to its
 * end.
 */
static void change_number(uint8_t *to, size_t size) {
    static const uint8_t keys[] = {0x08, 0x10, 0x18, 0x40, 0xa0}, likely[] = {0, 1, 2, 3, 4, 5, 7, 8, 16, 64, 127, 63};
    for (size_t at = 1 + below((uint32_t)size - 1), tries = 0; tries < 4096; tries++, at++) {
        at = at + 1 < size ? at : 1;
        bool number = to[0] == 'M' ? to[at + 1] == 0 || tries > 8 : memchr(keys, to[at], sizeof keys) != NULL;
        if (!number || to[at + 1] > 127)
            continue;
        to[at + (to[0] != 'M')] = likely[below(sizeof likely)];
        return;
    }
}

/* A copy with a few bytes, numbers or stretches changed, or joined with another of the same kind. */
static size_t damage(const seed *from, uint8_t *to) {
    static const int64_t numbers[] = {0, 1, -1, 2, 127, 128, 255, 1 << 16, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN};
    size_t size = from->size;
    memcpy(to, from->bytes, size);
    for (uint32_t times = 1 + below(4); times && size > 9; times--) {
        if (below(4)) {
            change_number(to, size);
            continue;
        }
        size_t at = 1 + below((uint32_t)size - 1), other = 1 + below((uint32_t)size - 1), n = 1 + below(16);
        n = at + n > size ? size - at : n;
        n = other + n > size ? size - other : n;
        switch (below(6)) {
        case 0:
            to[at] ^= (uint8_t)(1 << below(8));
            break;
        case 1:
            to[at] = (uint8_t)below(256);
            break;
        case 2:
            n = at + 8 > size ? size - at : 8;
            memcpy(to + at, &numbers[below(sizeof numbers / sizeof numbers[0])], n);
            break;
        case 3:
            memmove(to + at, to + other, n);
            break;
        case 4:
            memmove(to + at, to + at + n, size - at - n);
            size -= n;
            break;
        default:
            if (size + n > FILE_BYTES)
                break;
            memmove(to + at + n, to + at, size - at);
            size += n;
        }
    }
    return size;
}

/* Where the input at work is kept, so that it is there after a crash: its size, then its bytes. */
static uint8_t *open_record(void) {
    int file = open("fuzz-model", O_RDWR | O_CREAT | O_TRUNC, 0666);
    if (file < 0 || ftruncate(file, FILE_BYTES))
        return NULL;
    void *map = mmap(NULL, FILE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    return map == MAP_FAILED ? NULL : map;
}

static double seconds_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static unsigned run_random(double seconds) {
    static uint8_t bytes[FILE_BYTES + 64];
    uint8_t *record = open_record();
    unsigned runs = 0;
    for (double end = seconds_now() + seconds; n_seeds && seconds_now() < end; runs++) {
        size_t size = damage(&seeds[below((uint32_t)n_seeds)], bytes);
        if (record) {
            memset(record, 0, FILE_BYTES);
            memcpy(record, bytes, size);
        }
        alarm(CALL_SECONDS);
        LLVMFuzzerTestOneInput(bytes, size);
    }
    alarm(0);
    if (record)
        munmap(record, FILE_BYTES);
    return runs;
}

static int write_seeds(const char *folder) {
    for (int i = 0; i < n_seeds; i++) {
        char path[1200];
        snprintf(path, sizeof path, "%s/seed-%04d", folder, i);
        FILE *file = fopen(path, "wb");
        if (!file || fwrite(seeds[i].bytes, 1, seeds[i].size, file) != seeds[i].size) {
            perror(path);
            return 1;
        }
        fclose(file);
    }
    return 0;
}

static int run_file(const char *path) {
    size_t size;
    void *bytes = read_file(path, &size);
    if (!bytes) {
        perror(path);
        return 1;
    }
    LLVMFuzzerTestOneInput(bytes, size);
    free(bytes);
    return 0;
}

int main(int argc, char **argv) {
    double seconds = 0;
    int failed = 0, files = 0;
    const char *folder = NULL;
    if (!SANITIZED)
        setrlimit(RLIMIT_AS, &(struct rlimit){memory_bytes, memory_bytes});
    add_own();
    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], "-seconds=", 9) == 0)
            seconds = atof(argv[i] + 9);
        else if (strncmp(argv[i], "-seed=", 6) == 0)
            state = strtoull(argv[i] + 6, NULL, 10);
        else if (strncmp(argv[i], "-models=", 8) == 0)
            add_folder(argv[i] + 8);
        else if (strncmp(argv[i], "-write=", 7) == 0)
            folder = argv[i] + 7;
        else {
            failed |= run_file(argv[i]);
            files++;
        }
    }
    if (folder)
        failed |= write_seeds(folder);
    unsigned runs = seconds > 0 ? run_random(seconds) : 0;
    printf("%d files, %d seeds, %u damaged models; %lu compiled, %lu loaded, %lu ran\n", files, n_seeds, runs, compiled,
           loaded, ran);
    for (int i = 0; i < n_seeds; i++)
        free(seeds[i].bytes);
    return failed;
}
#endif
