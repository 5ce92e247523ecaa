#define XXH_INLINE_ALL
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "graph/model_file.h"
#include "graph/model_format.h"

struct dp_model_file {
    char *bytes;
    size_t size_bytes;
    bool is_mapped;
    dp_model_header header;
    dp_shapes shapes;
    dp_arena arena; /* of the shapes' lists */
    dp_model **variants;
};

/* What is left of the graphs section. After a failure nothing more is read. */
typedef struct cursor {
    const char *at, *end;
    const dp_model_file *file;
    dp_model *model;
    dp_value **values;
    uint32_t n_values;
    dp_status status;
} cursor;

static dp_status damaged(cursor *c, const char *what) {
    if (c->status == DP_OK)
        c->status = dp_fail(DP_ERR_ARGUMENT, "the model file is damaged: %s", what);
    return c->status;
}

static const void *take(cursor *c, uint64_t size) {
    if (c->status != DP_OK || size > (uint64_t)(c->end - c->at)) {
        damaged(c, "it ends too early");
        return NULL;
    }
    const void *here = c->at;
    c->at += size;
    return here;
}
static void take_into(cursor *c, void *to, size_t size) {
    const void *from = take(c, size);
    if (from)
        memcpy(to, from, size);
}
static uint32_t take_u32(cursor *c) {
    uint32_t value = 0;
    take_into(c, &value, sizeof value);
    return value;
}
/* A count of things of at least `least` bytes each, so that no more are announced than can be there. */
static uint32_t take_count(cursor *c, size_t least) {
    uint32_t count = take_u32(c);
    if (count > (size_t)(c->end - c->at) / least) {
        damaged(c, "a list is longer than the file");
        return 0;
    }
    return count;
}
static void *room_for(cursor *c, size_t size) {
    void *room = c->status == DP_OK ? dp_model_alloc(c->model, size) : NULL;
    if (!room && c->status == DP_OK)
        c->status = DP_ERR_OUT_OF_MEMORY;
    return room;
}
static char *take_text(cursor *c) {
    uint32_t bytes = take_u32(c);
    const void *from = take(c, bytes);
    char *text = room_for(c, (size_t)bytes + 1);
    if (from && text && bytes)
        memcpy(text, from, bytes);
    return from && text ? text : NULL;
}

/* Ranks and dims of values of a graph that is not lowered may be unknown, its types too. */
static bool is_open_value(int32_t element, int32_t rank, const int64_t *dims) {
    bool open = element == DP_EL_NONE || rank == DP_UNKNOWN;
    for (int d = 0; d < rank; d++)
        open |= dims[d] == DP_UNKNOWN;
    return open;
}

static dp_value *take_open_value(cursor *c, dp_value *value, const char *name, int32_t element, int32_t rank,
                                 const int64_t *dims, uint64_t place) {
    bool fine = c->file->shapes.is_source && place == 0 && (element == DP_EL_NONE || dp_element_bytes(element));
    for (int d = 0; d < rank; d++)
        fine = fine && dims[d] >= DP_UNKNOWN;
    if (!fine) {
        damaged(c, "a value has impossible dimensions");
        return NULL;
    }
    value->name = name;
    dp_value_shape(value, element, dims, rank);
    return value;
}

static dp_value *take_value(cursor *c) {
    dp_value *value = room_for(c, sizeof *value);
    const char *name = take_text(c);
    int32_t element = 0, rank = 0;
    int64_t dims[DP_TENSOR_DIMS] = {0};
    uint64_t place = 0;
    take_into(c, &element, sizeof element);
    take_into(c, &rank, sizeof rank);
    if (c->status == DP_OK && (rank < DP_UNKNOWN || rank > DP_TENSOR_DIMS))
        damaged(c, "a value has no type or too many dimensions");
    for (int d = 0; d < rank && c->status == DP_OK; d++)
        take_into(c, &dims[d], sizeof dims[d]);
    take_into(c, &place, sizeof place);
    if (c->status != DP_OK || !value)
        return NULL;
    if (is_open_value(element, rank, dims))
        return take_open_value(c, value, name, element, rank, dims, place);
    if (dp_element_bytes(element) == 0) {
        damaged(c, "a value has no type");
        return NULL;
    }
    dp_tensor probe = {.element = element, .rank = rank};
    memcpy(probe.dims, dims, sizeof dims);
    if (dp_tensor_check(&probe, name) != DP_OK || dp_tensor_count(&probe) > (int64_t)1 << 48) {
        damaged(c, "a value has impossible dimensions");
        return NULL;
    }
    value->name = name;
    dp_value_shape(value, element, dims, rank);
    if (place) {
        const dp_model_header *h = &c->file->header;
        size_t bytes = dp_value_bytes(value);
        if (place - 1 > h->weights_bytes || bytes > h->weights_bytes - (place - 1) || (place - 1) % DP_MODEL_ALIGN) {
            damaged(c, "a constant lies outside the weights");
            return NULL;
        }
        value->tensor.base = c->file->bytes + h->weights_offset + (place - 1);
        value->is_constant = true;
    }
    return value;
}

/* Value numbers + 1; 0 is an absent one if that is allowed. */
static int take_list(cursor *c, bool absent_allowed, dp_value ***out_list) {
    uint32_t n = take_count(c, sizeof(uint32_t));
    dp_value **list = room_for(c, n * sizeof *list);
    for (uint32_t i = 0; i < n && list && c->status == DP_OK; i++) {
        uint32_t number = take_u32(c);
        if (number > c->n_values || (number == 0 && !absent_allowed))
            damaged(c, "it names a value that does not exist");
        else if (number)
            list[i] = c->values[number - 1];
    }
    *out_list = list;
    return (int)n;
}

static void take_attribute(cursor *c, dp_node *node) {
    dp_arg a = {.name = take_text(c)};
    a.kind = (dp_arg_kind)take_u32(c);
    switch (a.kind) {
    case DP_ARG_INTEGER:
        take_into(c, &a.as.integer, sizeof a.as.integer);
        break;
    case DP_ARG_REAL:
        take_into(c, &a.as.real, sizeof a.as.real);
        break;
    case DP_ARG_TEXT:
        a.as.text = take_text(c);
        break;
    case DP_ARG_INT_LIST:
    case DP_ARG_FLOAT_LIST: {
        size_t width = a.kind == DP_ARG_INT_LIST ? sizeof(int64_t) : sizeof(float);
        a.count = take_count(c, width);
        void *list = room_for(c, (size_t)a.count * width);
        if (list)
            take_into(c, list, (size_t)a.count * width);
        a.as.text = list;
        break;
    }
    default:
        damaged(c, "an attribute has no known kind");
    }
    if (c->status == DP_OK)
        c->status = dp_node_set(node, &a);
}

static void take_graph(cursor *c, dp_graph *graph, int depth);

/* mark: whether nodes or inputs have made the value, and whether it is seen. Those inside a body are not seen behind it. */
enum { SEEN = 1, HIDDEN = 2 };

static void hide(dp_graph *body) {
    for (int i = 0; i < body->n_inputs; i++)
        body->inputs[i]->mark = HIDDEN;
    for (dp_node *node = body->first; node; node = node->next)
        for (int i = 0; i < node->n_outputs; i++)
            if (node->outputs[i])
                node->outputs[i]->mark = HIDDEN;
}

static void take_node(cursor *c, dp_graph *graph, int depth) {
    const char *type = take_text(c), *name = take_text(c);
    if (c->status != DP_OK)
        return;
    dp_node *node = dp_node_new(graph, NULL, type, name, 0, 0);
    if (!node) {
        c->status = DP_ERR_OUT_OF_MEMORY;
        return;
    }
    node->n_inputs = take_list(c, true, &node->inputs);
    node->n_outputs = take_list(c, true, &node->outputs);
    for (int i = 0; i < node->n_inputs && c->status == DP_OK; i++)
        if (node->inputs[i] && !node->inputs[i]->is_constant && node->inputs[i]->mark != SEEN)
            damaged(c, "a node reads what nothing before it makes");
    for (int i = 0; i < node->n_outputs && c->status == DP_OK; i++) {
        dp_value *value = node->outputs[i];
        if (!value)
            continue;
        if (value->is_constant || value->mark)
            damaged(c, "a value is made twice");
        value->mark = SEEN;
        value->producer = node;
    }
    uint32_t n_attributes = take_count(c, 2 * sizeof(uint32_t));
    for (uint32_t i = 0; i < n_attributes && c->status == DP_OK; i++)
        take_attribute(c, node);
    uint32_t n_bodies = take_count(c, 2 * sizeof(uint32_t));
    node->bodies = room_for(c, n_bodies * sizeof(dp_body));
    for (uint32_t i = 0; i < n_bodies && c->status == DP_OK; i++) {
        const char *body = take_text(c);
        dp_graph *inside = c->status == DP_OK ? dp_graph_new(graph, body) : NULL;
        if (!inside) {
            c->status = c->status == DP_OK ? DP_ERR_OUT_OF_MEMORY : c->status;
            return;
        }
        node->bodies[node->n_bodies++] = (dp_body){body, inside};
        take_graph(c, inside, depth + 1);
        if (c->status == DP_OK)
            hide(inside);
    }
}

static void take_graph(cursor *c, dp_graph *graph, int depth) {
    if (depth > DP_MODEL_DEPTH)
        damaged(c, "graphs are nested too deep");
    const char *name = take_text(c);
    if (c->status != DP_OK)
        return;
    graph->name = name;
    graph->n_inputs = take_list(c, false, &graph->inputs);
    graph->n_outputs = take_list(c, false, &graph->outputs);
    for (int i = 0; i < graph->n_inputs && c->status == DP_OK; i++) {
        if (graph->inputs[i]->is_constant || graph->inputs[i]->mark)
            damaged(c, "an input is made twice");
        graph->inputs[i]->mark = SEEN;
    }
    uint32_t n_nodes = take_count(c, sizeof(uint32_t));
    for (uint32_t i = 0; i < n_nodes && c->status == DP_OK; i++)
        take_node(c, graph, depth);
    for (int i = 0; i < graph->n_outputs && c->status == DP_OK; i++)
        if (!graph->outputs[i]->is_constant && graph->outputs[i]->mark != SEEN)
            damaged(c, "an output is made by no node");
}

static dp_status take_variant(cursor *c, dp_model **out_model) {
    c->model = dp_model_new("");
    if (!c->model)
        return c->status = DP_ERR_OUT_OF_MEMORY;
    *out_model = c->model;
    c->n_values = take_count(c, 5 * sizeof(uint32_t));
    c->values = room_for(c, c->n_values * sizeof(dp_value *));
    for (uint32_t i = 0; i < c->n_values && c->status == DP_OK; i++)
        c->values[i] = take_value(c);
    if (c->status == DP_OK)
        take_graph(c, c->model->graph, 1);
    return c->status;
}

static int64_t take_i64(cursor *c) {
    int64_t value = 0;
    take_into(c, &value, sizeof value);
    return value;
}
static void *list_of(cursor *c, dp_arena *arena, size_t n, size_t each) {
    void *list = c->status == DP_OK ? dp_arena_alloc(arena, n * each + 1) : NULL;
    if (!list && c->status == DP_OK)
        c->status = dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for a model: free some");
    return list;
}

static void take_declared(cursor *c, dp_declared *declared) {
    uint32_t rank = take_u32(c);
    if (rank > DP_TENSOR_DIMS)
        damaged(c, "an input has too many dimensions");
    for (uint32_t d = 0; d < rank && c->status == DP_OK; d++) {
        declared->least[d] = take_i64(c);
        declared->most[d] = take_i64(c);
        if (declared->least[d] < 0 || declared->most[d] < declared->least[d])
            damaged(c, "an input has impossible dimensions");
    }
    declared->rank = (int)rank;
}

static void take_shapes(cursor *c, dp_shapes *shapes, dp_arena *arena) {
    uint32_t kind = take_u32(c), source = take_u32(c), opset = take_u32(c);
    if (kind >= DP_SHAPES_KINDS || source > 1 || opset > INT16_MAX)
        damaged(c, "its shapes are of no known kind");
    *shapes = (dp_shapes){.kind = (dp_shapes_kind)kind, .is_source = source, .opset = (int)opset};
    shapes->n_inputs = (int)take_count(c, sizeof(uint32_t));
    shapes->inputs = list_of(c, arena, (size_t)shapes->n_inputs, sizeof *shapes->inputs);
    for (int i = 0; i < shapes->n_inputs && c->status == DP_OK; i++)
        take_declared(c, &shapes->inputs[i]);
    uint32_t n_gears = take_u32(c), n_numbers = take_u32(c);
    bool has_gears = kind == DP_SHAPES_BATCH || kind == DP_SHAPES_IMAGE || kind == DP_SHAPES_DIMS;
    size_t most = c->status == DP_OK ? (size_t)(c->end - c->at) / sizeof(int64_t) : 0;
    if (n_gears > DP_GEARS_MAX || (n_gears && n_numbers > most / n_gears) || has_gears != (n_gears > 0 && n_numbers > 0))
        damaged(c, "its gears do not fit");
    shapes->numbers = list_of(c, arena, c->status == DP_OK ? (size_t)n_gears * n_numbers : 0, sizeof *shapes->numbers);
    for (size_t i = 0; c->status == DP_OK && i < (size_t)n_gears * n_numbers; i++)
        if ((shapes->numbers[i] = take_i64(c)) < 0 || shapes->numbers[i] > INT32_MAX)
            damaged(c, "its gears have impossible dimensions");
    shapes->n_gears = (int)n_gears;
    shapes->n_numbers = (int)n_numbers;
}

/* Declared shapes, gears and variants must be of one model. */
static dp_status check_shapes(cursor *c, const dp_model_file *file) {
    const dp_shapes *s = &file->shapes;
    uint32_t variants = s->is_source || !s->n_gears ? 1 : (uint32_t)s->n_gears;
    if (file->header.n_variants < variants || (s->kind != DP_SHAPES_FIXED && file->header.n_variants != variants))
        return damaged(c, "it has not as many graphs as shapes");
    const dp_graph *first = file->variants[0]->graph;
    if (s->n_inputs != first->n_inputs && (s->n_inputs || s->kind != DP_SHAPES_FIXED || s->is_source))
        return damaged(c, "its shapes are for another number of inputs");
    for (uint32_t v = 0; v < variants; v++) {
        const dp_graph *graph = file->variants[v]->graph;
        if (graph->n_inputs != first->n_inputs || graph->n_outputs != first->n_outputs)
            return damaged(c, "its graphs have different inputs or outputs");
        for (int i = 0; i < s->n_inputs && !s->is_source; i++) {
            const dp_tensor *t = &graph->inputs[i]->tensor;
            dp_tensor gear = *t;
            if (s->n_gears)
                dp_shapes_gear(s, (int)v, i, &gear);
            if (gear.rank != t->rank || memcmp(gear.dims, t->dims, (size_t)t->rank * sizeof t->dims[0]) != 0)
                return damaged(c, "a graph is not for the shapes of its gear");
        }
        for (int i = 0; i < graph->n_inputs; i++)
            if (graph->inputs[i]->tensor.element != first->inputs[i]->tensor.element ||
                graph->inputs[i]->tensor.element == DP_EL_NONE)
                return damaged(c, "an input has no type");
    }
    return DP_OK;
}

static bool is_inside(uint64_t offset, uint64_t bytes, uint64_t size) {
    return offset <= size && bytes <= size - offset;
}

static dp_status check_header(dp_model_file *file) {
    dp_model_header *h = &file->header;
    if (file->size_bytes < sizeof *h || memcmp(file->bytes, DP_MODEL_MAGIC, sizeof h->magic) != 0) {
        bool vendor = file->size_bytes >= 4 && memcmp(file->bytes, "IMOD", 4) == 0;
        return vendor ? dp_fail(DP_ERR_UNSUPPORTED,
                                "the file was made by the vendor's atc: it holds instructions of an NPU, which a CPU cannot run. "
                                "Compile the original model with Doppel's atc")
                      : dp_fail(DP_ERR_ARGUMENT, "the %zu bytes are no model that atc has compiled", file->size_bytes);
    }
    memcpy(h, file->bytes, sizeof *h);
    if (h->version != DP_MODEL_VERSION)
        return dp_fail(DP_ERR_UNSUPPORTED, "the model file has version %u, but this Doppel reads %d: compile the model again",
                       h->version, DP_MODEL_VERSION);
    if (h->header_hash != XXH3_64bits(file->bytes, offsetof(dp_model_header, header_hash)))
        return dp_fail(DP_ERR_ARGUMENT, "the model file is damaged: its header's checksum is wrong");
    if (h->file_bytes != file->size_bytes)
        return dp_fail(DP_ERR_ARGUMENT, "the model file is damaged: it has %zu bytes, but should have %llu",
                       file->size_bytes, (unsigned long long)h->file_bytes);
    if (!is_inside(h->graphs_offset, h->graphs_bytes, h->file_bytes) ||
        !is_inside(h->weights_offset, h->weights_bytes, h->file_bytes) || h->weights_offset % DP_MODEL_ALIGN ||
        h->n_variants == 0 || h->n_variants > h->graphs_bytes)
        return dp_fail(DP_ERR_ARGUMENT, "the model file is damaged: its header makes no sense");
    return DP_OK;
}

static dp_status parse(dp_model_file *file) {
    dp_status status = check_header(file);
    if (status != DP_OK)
        return status;
    const dp_model_header *h = &file->header;
    if (h->graphs_hash != XXH3_64bits(file->bytes + h->graphs_offset, h->graphs_bytes))
        return dp_fail(DP_ERR_ARGUMENT, "the model file is damaged: the checksum of its graphs is wrong");
    file->variants = dp_alloc(DP_MEM_GRAPH, h->n_variants * sizeof(dp_model *));
    if (!file->variants)
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for a model: free some");
    const char *at = file->bytes + h->graphs_offset;
    cursor c = {.at = at, .end = at + h->graphs_bytes, .file = file};
    take_shapes(&c, &file->shapes, &file->arena);
    for (uint32_t i = 0; i < h->n_variants && c.status == DP_OK; i++)
        take_variant(&c, &file->variants[i]);
    return c.status == DP_OK ? check_shapes(&c, file) : c.status;
}

void dp_model_file_close(dp_model_file *file) {
    if (!file)
        return;
    for (uint32_t i = 0; file->variants && i < file->header.n_variants; i++)
        dp_model_free(file->variants[i]);
    dp_free(file->variants);
    dp_arena_free(&file->arena);
    if (file->is_mapped)
        munmap(file->bytes, file->size_bytes);
    else
        dp_free(file->bytes);
    dp_free(file);
}

static dp_status finish(dp_model_file *file, dp_model_file **out_file) {
    file->arena.kind = DP_MEM_GRAPH;
    dp_status status = parse(file);
    if (status == DP_OK)
        *out_file = file;
    else
        dp_model_file_close(file);
    return status;
}

dp_status dp_model_file_read(const void *bytes, size_t size_bytes, dp_model_file **out_file) {
    dp_model_file probe = {.bytes = (char *)bytes, .size_bytes = size_bytes};
    dp_status status = check_header(&probe); /* before the whole is touched */
    if (status != DP_OK)
        return status;
    dp_model_file *file = dp_alloc(DP_MEM_GRAPH, sizeof *file);
    if (!file || !(file->bytes = dp_alloc(DP_MEM_GRAPH, size_bytes + 1))) {
        dp_free(file);
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for a model of %zu bytes: free some", size_bytes);
    }
    memcpy(file->bytes, bytes, size_bytes);
    file->size_bytes = size_bytes;
    return finish(file, out_file);
}

dp_status dp_model_file_open(const char *path, dp_model_file **out_file) {
    struct stat about;
    int number = open(path, O_RDONLY | O_CLOEXEC);
    if (number < 0 || fstat(number, &about) != 0) {
        int reason = errno;
        if (number >= 0)
            close(number);
        return dp_fail(reason == ENOENT ? DP_ERR_NOT_FOUND : DP_ERR_IO, "model file %s: %s", path, strerror(reason));
    }
    if (!S_ISREG(about.st_mode) || about.st_size == 0) {
        close(number);
        return dp_fail(DP_ERR_ARGUMENT, "model file %s is %s", path, S_ISREG(about.st_mode) ? "empty" : "no file");
    }
    dp_model_file *file = dp_alloc(DP_MEM_GRAPH, sizeof *file);
    void *bytes = file ? mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE, number, 0) : MAP_FAILED;
    close(number);
    if (bytes == MAP_FAILED) {
        dp_free(file);
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "no memory to map model file %s (%lld bytes)", path,
                       (long long)about.st_size);
    }
    file->bytes = bytes;
    file->size_bytes = (size_t)about.st_size;
    file->is_mapped = true;
    return finish(file, out_file);
}

int dp_model_file_variants(const dp_model_file *file) {
    return (int)file->header.n_variants;
}
dp_model *dp_model_file_variant(const dp_model_file *file, int index) {
    return file->variants[index];
}
const dp_shapes *dp_model_file_shapes(const dp_model_file *file) {
    return &file->shapes;
}
size_t dp_model_file_work_bytes(const dp_model_file *file) {
    return file->header.work_bytes ? file->header.work_bytes : 1;
}
size_t dp_model_file_weights_bytes(const dp_model_file *file) {
    return file->header.weights_bytes;
}

dp_status dp_model_file_verify(const dp_model_file *file) {
    const dp_model_header *h = &file->header;
    if (h->weights_hash == XXH3_64bits(file->bytes + h->weights_offset, h->weights_bytes))
        return DP_OK;
    return dp_fail(DP_ERR_ARGUMENT, "the model file is damaged: the checksum of its weights is wrong");
}
