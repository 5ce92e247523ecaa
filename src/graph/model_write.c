#define XXH_INLINE_ALL
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "graph/model_file.h"
#include "graph/model_format.h"
#include "graph/program.h"

/* Bytes that grow. After a failure `failed` stays set and nothing more is added. */
typedef struct buffer {
    char *bytes;
    size_t used, room;
    bool failed;
} buffer;

static void *append(buffer *b, size_t size) {
    if (b->failed || size > SIZE_MAX / 4 - b->used) {
        b->failed = true;
        return NULL;
    }
    if (!b->bytes || b->used + size > b->room) {
        size_t room = 2 * (b->used + size) + 4096;
        char *more = dp_realloc(DP_MEM_GRAPH, b->bytes, room);
        if (!more) {
            b->failed = true;
            return NULL;
        }
        b->bytes = more;
        b->room = room;
    }
    b->used += size;
    return b->bytes + b->used - size;
}
static void put(buffer *b, const void *from, size_t size) {
    void *to = append(b, size);
    if (to && size)
        memcpy(to, from, size);
}
static void put_u32(buffer *b, uint32_t value) {
    put(b, &value, sizeof value);
}
static void put_text(buffer *b, const char *text) {
    size_t bytes = strlen(text);
    put_u32(b, (uint32_t)bytes);
    put(b, text, bytes);
}
static void pad(buffer *b) {
    size_t rest = -b->used % DP_MODEL_ALIGN;
    void *to = append(b, rest);
    if (to && rest)
        memset(to, 0, rest);
}

/* Weights that are stored, by their hash: open addressing, never more than half full. */
typedef struct stored {
    uint64_t hash, offset, bytes;
    bool used;
} stored;

typedef struct writer {
    buffer graphs, weights;
    stored *table;
    size_t table_room, n_stored;
    uint32_t n_values;
    bool failed;
} writer;

static bool grow_table(writer *w) {
    size_t room = w->table_room ? 2 * w->table_room : 1024;
    stored *table = dp_alloc(DP_MEM_GRAPH, room * sizeof *table);
    if (!table)
        return false;
    for (size_t i = 0; i < w->table_room; i++) {
        if (!w->table[i].used)
            continue;
        size_t at = w->table[i].hash & (room - 1);
        while (table[at].used)
            at = (at + 1) & (room - 1);
        table[at] = w->table[i];
    }
    dp_free(w->table);
    w->table = table;
    w->table_room = room;
    return true;
}

static uint64_t place_of(writer *w, const void *contents, size_t bytes) {
    if (2 * (w->n_stored + 1) > w->table_room && !grow_table(w)) {
        w->failed = true;
        return 0;
    }
    uint64_t hash = XXH3_64bits(contents, bytes);
    size_t at = hash & (w->table_room - 1);
    for (; w->table[at].used; at = (at + 1) & (w->table_room - 1)) {
        const stored *s = &w->table[at];
        if (s->hash == hash && s->bytes == bytes && (!bytes || memcmp(w->weights.bytes + s->offset, contents, bytes) == 0))
            return s->offset;
    }
    pad(&w->weights);
    w->table[at] = (stored){hash, w->weights.used, bytes, true};
    w->n_stored++;
    put(&w->weights, contents, bytes);
    return w->table[at].offset;
}

/* Values get numbers in the order in which they are met; mark is the number + 1. */

static void clear_value(dp_value *value) {
    if (value)
        value->mark = 0;
}
static void put_value(writer *w, dp_value *value) {
    if (!value || value->mark)
        return;
    value->mark = ++w->n_values;
    const dp_tensor *t = &value->tensor;
    int32_t rank = t->rank;
    put_text(&w->graphs, value->name);
    put(&w->graphs, &t->element, sizeof t->element);
    put(&w->graphs, &rank, sizeof rank);
    for (int d = 0; d < rank; d++)
        put(&w->graphs, &t->dims[d], sizeof t->dims[d]);
    uint64_t place = value->is_constant ? 1 + place_of(w, t->base, dp_value_bytes(value)) : 0;
    put(&w->graphs, &place, sizeof place);
}

static void for_each_value(writer *w, dp_graph *graph, void (*visit)(writer *w, dp_value *value)) {
    for (int i = 0; i < graph->n_inputs; i++)
        visit(w, graph->inputs[i]);
    for (dp_node *node = graph->first; node; node = node->next) {
        for (int i = 0; i < node->n_inputs; i++)
            visit(w, node->inputs[i]);
        for (int i = 0; i < node->n_outputs; i++)
            visit(w, node->outputs[i]);
        for (int i = 0; i < node->n_bodies; i++)
            for_each_value(w, node->bodies[i].graph, visit);
    }
    for (int i = 0; i < graph->n_outputs; i++)
        visit(w, graph->outputs[i]);
}
static void clear(writer *w, dp_value *value) {
    (void)w;
    clear_value(value);
}

static void put_list(buffer *b, dp_value *const *values, int n) {
    put_u32(b, (uint32_t)n);
    for (int i = 0; i < n; i++)
        put_u32(b, values[i] ? values[i]->mark : 0);
}

static void put_attribute(buffer *b, const dp_arg *a) {
    put_text(b, a->name);
    put_u32(b, (uint32_t)a->kind);
    if (a->kind == DP_ARG_INTEGER)
        put(b, &a->as.integer, sizeof a->as.integer);
    else if (a->kind == DP_ARG_REAL)
        put(b, &a->as.real, sizeof a->as.real);
    else if (a->kind == DP_ARG_TEXT)
        put_text(b, a->as.text);
    else {
        put_u32(b, (uint32_t)a->count);
        put(b, a->as.integers, (size_t)a->count * (a->kind == DP_ARG_INT_LIST ? sizeof(int64_t) : sizeof(float)));
    }
}

static void put_graph(buffer *b, const dp_graph *graph) {
    put_text(b, graph->name);
    put_list(b, graph->inputs, graph->n_inputs);
    put_list(b, graph->outputs, graph->n_outputs);
    put_u32(b, (uint32_t)graph->n_nodes);
    for (const dp_node *node = graph->first; node; node = node->next) {
        put_text(b, node->type);
        put_text(b, node->name);
        put_list(b, node->inputs, node->n_inputs);
        put_list(b, node->outputs, node->n_outputs);
        put_u32(b, (uint32_t)node->n_attributes);
        for (int i = 0; i < node->n_attributes; i++)
            put_attribute(b, &node->attributes[i]);
        put_u32(b, (uint32_t)node->n_bodies);
        for (int i = 0; i < node->n_bodies; i++) {
            put_text(b, node->bodies[i].name);
            put_graph(b, node->bodies[i].graph);
        }
    }
}

static void put_variant(writer *w, dp_model *model) {
    size_t count_at = w->graphs.used;
    w->n_values = 0;
    put_u32(&w->graphs, 0);
    for_each_value(w, model->graph, clear);
    for_each_value(w, model->graph, put_value);
    if (!w->graphs.failed)
        memcpy(w->graphs.bytes + count_at, &w->n_values, sizeof w->n_values);
    put_graph(&w->graphs, model->graph);
}

static void put_i64(buffer *b, int64_t value) {
    put(b, &value, sizeof value);
}

static void put_shapes(buffer *b, const dp_shapes *shapes) {
    put_u32(b, (uint32_t)shapes->kind);
    put_u32(b, shapes->is_source);
    put_u32(b, (uint32_t)shapes->opset);
    put_u32(b, (uint32_t)shapes->n_inputs);
    for (int i = 0; i < shapes->n_inputs; i++) {
        const dp_declared *declared = &shapes->inputs[i];
        put_u32(b, (uint32_t)declared->rank);
        for (int d = 0; d < declared->rank; d++) {
            put_i64(b, declared->least[d]);
            put_i64(b, declared->most[d]);
        }
    }
    put_u32(b, (uint32_t)shapes->n_gears);
    put_u32(b, (uint32_t)shapes->n_numbers);
    for (int i = 0; i < shapes->n_gears * shapes->n_numbers; i++)
        put_i64(b, shapes->numbers[i]);
}

/* So that nobody has to make programs only to know how much memory they want. */
static dp_status measure_work(dp_model *const *variants, int n_variants, uint64_t *out_bytes) {
    *out_bytes = 1;
    for (int i = 0; i < n_variants; i++) {
        dp_program *program;
        dp_status status = dp_program_new(variants[i]->graph, &program);
        if (status != DP_OK)
            return status;
        size_t bytes = dp_program_work_bytes(program);
        *out_bytes = bytes > *out_bytes ? bytes : *out_bytes;
        dp_program_free(program);
    }
    return DP_OK;
}

/* The whole file into graphs.bytes: the header's place is kept free at its beginning. */
static dp_status assemble(writer *w, uint32_t n_variants, uint64_t work_bytes) {
    buffer *b = &w->graphs;
    dp_model_header h = {.magic = DP_MODEL_MAGIC, .version = DP_MODEL_VERSION, .n_variants = n_variants, .work_bytes = work_bytes};
    h.graphs_offset = sizeof h;
    h.graphs_bytes = b->used - sizeof h;
    pad(b);
    h.weights_offset = b->used;
    h.weights_bytes = w->weights.used;
    put(b, w->weights.bytes, w->weights.used);
    h.file_bytes = b->used;
    if (w->failed || b->failed || w->weights.failed)
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for a model file of %zu bytes: free some", b->used);
    h.graphs_hash = XXH3_64bits(b->bytes + h.graphs_offset, h.graphs_bytes);
    h.weights_hash = XXH3_64bits(b->bytes + h.weights_offset, h.weights_bytes);
    h.header_hash = XXH3_64bits(&h, offsetof(dp_model_header, header_hash));
    memcpy(b->bytes, &h, sizeof h);
    return DP_OK;
}

dp_status dp_model_file_pack(const dp_shapes *shapes, dp_model *const *variants, int n_variants, void **out_bytes,
                             size_t *out_size_bytes) {
    static const dp_shapes fixed = {.kind = DP_SHAPES_FIXED};
    writer w = {.n_values = 0};
    uint64_t work_bytes = 1;
    shapes = shapes ? shapes : &fixed;
    dp_status measured = shapes->is_source ? DP_OK : measure_work(variants, n_variants, &work_bytes);
    if (measured != DP_OK)
        return measured;
    append(&w.graphs, sizeof(dp_model_header));
    put_shapes(&w.graphs, shapes);
    for (int i = 0; i < n_variants; i++)
        put_variant(&w, variants[i]);
    dp_status status = assemble(&w, (uint32_t)n_variants, work_bytes);
    dp_free(w.weights.bytes);
    dp_free(w.table);
    *out_bytes = w.graphs.bytes;
    *out_size_bytes = w.graphs.used;
    if (status != DP_OK)
        dp_free(w.graphs.bytes);
    return status;
}

static dp_status write_all(int file, const char *bytes, size_t size, const char *path) {
    while (size) {
        ssize_t done = write(file, bytes, size);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return dp_fail(DP_ERR_IO, "%s: %s", path, strerror(errno));
        bytes += done;
        size -= (size_t)done;
    }
    return DP_OK;
}

/* A new file beside it takes its place: processes that have the old one mapped keep it. */
dp_status dp_model_file_write(const char *path, const dp_shapes *shapes, dp_model *const *variants, int n_variants) {
    char beside[4096];
    void *bytes;
    size_t size;
    if ((size_t)snprintf(beside, sizeof beside, "%s.XXXXXX", path) >= sizeof beside)
        return dp_fail(DP_ERR_ARGUMENT, "the file name is longer than %zu bytes", sizeof beside - 8);
    dp_status status = dp_model_file_pack(shapes, variants, n_variants, &bytes, &size);
    if (status != DP_OK)
        return status;
    int file = mkstemp(beside);
    if (file < 0) {
        dp_free(bytes);
        return dp_fail(DP_ERR_IO, "%s: %s", path, strerror(errno));
    }
    status = write_all(file, bytes, size, path);
    mode_t mask = umask(0);
    umask(mask);
    if (status == DP_OK && (fchmod(file, 0666 & ~mask) || rename(beside, path)))
        status = dp_fail(DP_ERR_IO, "%s: %s", path, strerror(errno));
    close(file);
    if (status != DP_OK)
        unlink(beside);
    dp_free(bytes);
    return status;
}
