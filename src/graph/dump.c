#include "graph/dump.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/log.h"
#include "runtime/fork.h"

enum { PATH_BYTES = 4096 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of arena, settings and runs */
static dp_fork_part fork_part = {.floor = DP_FORK_GRAPH, .lock = &lock};
static dp_arena arena = {.kind = DP_MEM_GRAPH};
static dp_dump_settings settings;
static uint64_t runs;
static _Atomic bool on;

/* What this thread runs: on the heap, for static thread storage is scarce where the library is loaded late. */
typedef struct place {
    char folder[PATH_BYTES];
    unsigned step;
} place;
static _Thread_local place *current; /* NULL: nothing is dumped */

static bool copy_list(const char *const *from, int n, const char *const **out) {
    const char **list = dp_arena_alloc(&arena, (size_t)n * sizeof *list + 1);
    for (int i = 0; list && i < n; i++)
        if (!(list[i] = dp_arena_text(&arena, from[i])))
            return false;
    *out = list;
    return list != NULL;
}

dp_status dp_dump_start(const dp_dump_settings *given) {
    if (mkdir(given->folder, 0777) != 0 && errno != EEXIST)
        return dp_fail(DP_ERR_IO, "dump_path %s: %s", given->folder, strerror(errno));
    dp_fork_lock(&fork_part);
    dp_arena_free(&arena);
    settings = *given;
    settings.folder = dp_arena_text(&arena, given->folder);
    bool fine = settings.folder && copy_list(given->models, given->n_models, &settings.models) &&
                copy_list(given->layers, given->n_layers, &settings.layers);
    atomic_store(&on, fine);
    pthread_mutex_unlock(&lock);
    return fine ? DP_OK : dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for the settings of a dump: free some");
}

void dp_dump_stop(void) {
    dp_fork_lock(&fork_part);
    atomic_store(&on, false);
    settings = (dp_dump_settings){.folder = NULL};
    dp_arena_free(&arena);
    pthread_mutex_unlock(&lock);
}

bool dp_dump_on(void) {
    return atomic_load_explicit(&on, memory_order_relaxed);
}

static bool is_listed(const char *const *list, int n, const char *name) {
    for (int i = 0; i < n; i++)
        if (strcmp(list[i], name) == 0)
            return true;
    return n == 0;
}

/* A name as a part of a file's: at most 80 characters, those that folders would mind replaced. */
static void file_name(const char *name, char *out) {
    size_t n = 0;
    for (; name[n] && n < 80; n++)
        out[n] = name[n] > ' ' && name[n] < 0x7f && name[n] != '/' && name[n] != '\\' ? name[n] : '_';
    out[n] = '\0';
}

/* FOLDER/NAME_ID/RUN, made. */
static bool make_folder(const char *model, uint32_t id, char *out) {
    char name[96], above[PATH_BYTES];
    file_name(model, name);
    int upper = snprintf(above, sizeof above, "%s/%s_%u", settings.folder, name, id);
    int length =
        snprintf(out, PATH_BYTES, "%s/%s_%u/%llu", settings.folder, name, id, (unsigned long long)runs++);
    return upper < (int)sizeof above && length < PATH_BYTES && (mkdir(above, 0777) == 0 || errno == EEXIST) &&
           (mkdir(out, 0777) == 0 || errno == EEXIST);
}

void dp_dump_begin(const char *model, uint32_t id) {
    place *made = dp_alloc(DP_MEM_GRAPH, sizeof *made);
    dp_dump_end();
    dp_fork_lock(&fork_part);
    if (made && settings.folder && is_listed(settings.models, settings.n_models, model)) {
        if (make_folder(model, id, made->folder))
            current = made;
        else
            dp_log("dump", DP_LOG_ERROR, "%s: %s", made->folder, strerror(errno));
    }
    pthread_mutex_unlock(&lock);
    if (current != made)
        dp_free(made);
}

void dp_dump_end(void) {
    dp_free(current);
    current = NULL;
}

/* numpy's name of an element type; bfloat16 has none and is written as its bits. */
static const char *npy_type(int element) {
    static const char *const types[DP_EL_COUNT] = {
        [DP_I8] = "|i1",  [DP_U8] = "|u1",  [DP_I16] = "<i2",     [DP_U16] = "<u2",    [DP_I32] = "<i4",
        [DP_U32] = "<u4", [DP_I64] = "<i8", [DP_U64] = "<u8",     [DP_F16] = "<f2",    [DP_BF16] = "<u2",
        [DP_F32] = "<f4", [DP_F64] = "<f8", [DP_EL_BOOL] = "|b1", [DP_EL_C64] = "<c8", [DP_EL_C128] = "<c16"};
    return element >= 0 && element < DP_EL_COUNT ? types[element] : NULL;
}

static void write_header(FILE *file, const dp_tensor *t) {
    char text[256];
    int n = snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': (", npy_type(t->element));
    for (int d = 0; d < t->rank; d++)
        n += snprintf(text + n, sizeof text - (size_t)n, "%lld,", (long long)t->dims[d]);
    n += snprintf(text + n, sizeof text - (size_t)n, "), }");
    while ((10 + n + 1) % 64)
        text[n++] = ' ';
    text[n++] = '\n';
    unsigned char head[10] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (unsigned char)(n & 255), (unsigned char)(n >> 8)};
    fwrite(head, 1, sizeof head, file);
    fwrite(text, 1, (size_t)n, file);
}

/* Element by element, in C's order, whatever the strides are. */
static void write_elements(FILE *file, const dp_tensor *t) {
    size_t bytes = dp_element_bytes(t->element);
    int64_t index[DP_TENSOR_DIMS] = {0}, count = dp_tensor_count(t);
    const char *base = dp_tensor_data(t);
    if (dp_tensor_is_contiguous(t)) {
        fwrite(base, bytes, (size_t)count, file);
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        int64_t at = 0;
        for (int d = 0; d < t->rank; d++)
            at += index[d] * t->strides[d];
        fwrite(base + at * (int64_t)bytes, bytes, 1, file);
        for (int d = t->rank - 1; d >= 0 && ++index[d] == t->dims[d]; d--)
            index[d] = 0;
    }
}

static void write_tensor(const char *path, const dp_tensor *t) {
    FILE *file = npy_type(t->element) ? fopen(path, "wb") : NULL;
    if (file) {
        write_header(file, t);
        if (dp_tensor_count(t))
            write_elements(file, t);
    }
    bool fine = file && !ferror(file);
    if (!file || fclose(file) != 0 || !fine)
        dp_log("dump", DP_LOG_ERROR, "%s: %s", path, strerror(errno));
}

void dp_dump_plan(const char *node, const dp_plan *plan) {
    char name[96], path[PATH_BYTES + 256];
    int counts[2] = {0, 0};
    if (!current)
        return;
    unsigned step = current->step++;
    dp_fork_lock(&fork_part);
    bool wanted[2] = {settings.inputs, settings.outputs}, listed = is_listed(settings.layers, settings.n_layers, node);
    pthread_mutex_unlock(&lock);
    file_name(node, name);
    for (int i = 0; i < plan->n_tensors && listed; i++) {
        bool output = plan->tensors[i].is_output;
        int k = counts[output]++;
        snprintf(path, sizeof path, "%s/%04u_%s_%s.%s.%d.npy", current->folder, step, plan->op->name, name,
                 output ? "output" : "input", k);
        if (wanted[output])
            write_tensor(path, &plan->tensors[i].view);
    }
}
