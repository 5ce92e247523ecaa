#include "peer.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

/* Places in onnxruntime's table of functions, which only grows. */
enum slot {
    GET_ERROR_MESSAGE = 2,
    CREATE_ENV = 3,
    CREATE_SESSION = 7,
    RUN = 9,
    CREATE_SESSION_OPTIONS = 10,
    SET_OPTIMIZATION_LEVEL = 23,
    SET_INTRA_THREADS = 24,
    SET_INTER_THREADS = 25,
    INPUT_COUNT = 30,
    OUTPUT_COUNT = 31,
    INPUT_NAME = 36,
    OUTPUT_NAME = 37,
    CREATE_TENSOR = 49,
    TENSOR_DATA = 51,
    ELEMENT_COUNT = 64,
    TENSOR_SHAPE = 65,
    CREATE_CPU_MEMORY_INFO = 69,
    DEFAULT_ALLOCATOR = 78,
    RELEASE_SESSION = 95,
    RELEASE_VALUE = 96
};
enum { API_VERSION = 16, ALL_OPTIMISATIONS = 99, ENDS = 32 };

struct peer {
    void *const *table;
    void *env, *session, *memory;
    size_t n_inputs, n_outputs;
    char *input_names[ENDS], *output_names[ENDS];
    void *inputs[ENDS], *outputs[ENDS];
};

#define CALL(p, slot, types, ...) check(p, ((void *(*)types)(uintptr_t)(p)->table[slot])(__VA_ARGS__))

static void check(const peer *p, void *status) {
    if (!status)
        return;
    fprintf(stderr, "onnxruntime: %s\n", ((const char *(*)(void *))(uintptr_t)p->table[GET_ERROR_MESSAGE])(status));
    exit(1);
}

static void find_names(peer *p) {
    void *allocator;
    CALL(p, DEFAULT_ALLOCATOR, (void **), &allocator);
    CALL(p, INPUT_COUNT, (void *, size_t *), p->session, &p->n_inputs);
    CALL(p, OUTPUT_COUNT, (void *, size_t *), p->session, &p->n_outputs);
    if (p->n_inputs > ENDS || p->n_outputs > ENDS) {
        fprintf(stderr, "onnxruntime: more than %d inputs or outputs\n", ENDS);
        exit(1);
    }
    for (size_t i = 0; i < p->n_inputs; i++)
        CALL(p, INPUT_NAME, (void *, size_t, void *, char **), p->session, i, allocator, &p->input_names[i]);
    for (size_t i = 0; i < p->n_outputs; i++)
        CALL(p, OUTPUT_NAME, (void *, size_t, void *, char **), p->session, i, allocator, &p->output_names[i]);
}

peer *peer_open(const char *library, const char *model, int threads) {
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    const void *const *(*base)(void) = NULL;
    if (handle)
        *(void **)&base = dlsym(handle, "OrtGetApiBase");
    if (!base) {
        fprintf(stderr, "%s: %s\n", library, dlerror());
        exit(1);
    }
    peer *p = calloc(1, sizeof *p);
    void *options;
    p->table = ((void *const *(*)(uint32_t))(uintptr_t)base()[0])(API_VERSION);
    CALL(p, CREATE_ENV, (int, const char *, void **), 3, "bench", &p->env);
    CALL(p, CREATE_SESSION_OPTIONS, (void **), &options);
    CALL(p, SET_OPTIMIZATION_LEVEL, (void *, int), options, ALL_OPTIMISATIONS);
    CALL(p, SET_INTRA_THREADS, (void *, int), options, threads);
    CALL(p, SET_INTER_THREADS, (void *, int), options, 1);
    CALL(p, CREATE_SESSION, (void *, const char *, void *, void **), p->env, model, options, &p->session);
    CALL(p, CREATE_CPU_MEMORY_INFO, (int, int, void **), 1, 0, &p->memory);
    find_names(p);
    return p;
}

void peer_close(peer *p) {
    for (size_t i = 0; i < p->n_outputs; i++)
        if (p->outputs[i])
            ((void (*)(void *))(uintptr_t)p->table[RELEASE_VALUE])(p->outputs[i]);
    ((void (*)(void *))(uintptr_t)p->table[RELEASE_SESSION])(p->session);
    free(p);
}

size_t peer_inputs(const peer *p) {
    return p->n_inputs;
}
size_t peer_outputs(const peer *p) {
    return p->n_outputs;
}
const char *peer_input_name(const peer *p, size_t index) {
    return p->input_names[index];
}

void peer_set_input(peer *p, size_t index, int element, void *data, size_t bytes, const int64_t *dims, size_t rank) {
    CALL(p, CREATE_TENSOR, (void *, void *, size_t, const int64_t *, size_t, int, void **), p->memory, data, bytes,
         dims, rank, element, &p->inputs[index]);
}

void peer_run(peer *p) {
    for (size_t i = 0; i < p->n_outputs; i++) {
        if (p->outputs[i])
            ((void (*)(void *))(uintptr_t)p->table[RELEASE_VALUE])(p->outputs[i]);
        p->outputs[i] = NULL;
    }
    CALL(p, RUN, (void *, void *, char *const *, void *const *, size_t, char *const *, size_t, void **), p->session,
         NULL, p->input_names, p->inputs, p->n_inputs, p->output_names, p->n_outputs, p->outputs);
}

const float *peer_output(const peer *p, size_t index, size_t *out_count) {
    void *shape, *data;
    CALL(p, TENSOR_SHAPE, (void *, void **), p->outputs[index], &shape);
    CALL(p, ELEMENT_COUNT, (void *, size_t *), shape, out_count);
    CALL(p, TENSOR_DATA, (void *, void **), p->outputs[index], &data);
    return data;
}
