#include "graph/onnx_make.h"

#include <stdlib.h>
#include <string.h>

#include "onnx.pb-c.h"

/* Everything is leaked into a list and freed at the end. */
struct maker {
    Onnx__ModelProto model;
    Onnx__GraphProto graph;
    Onnx__OperatorSetIdProto opset, *opsets[1];
    void *blocks[4096];
    int n_blocks;
    maker *bodies; /* of its nodes, one behind the other */
    maker *next;
};

static void *keep(maker *m, void *block) {
    return m->blocks[m->n_blocks++] = block;
}
static void *room(maker *m, size_t bytes) {
    return keep(m, calloc(1, bytes + 1));
}
static char *text(maker *m, const char *from) {
    return keep(m, strdup(from));
}
/* One more place in a list of pointers. */
static void *more(maker *m, void *list, size_t n, void *element) {
    void **longer = room(m, (n + 1) * sizeof(void *));
    if (n)
        memcpy(longer, list, n * sizeof(void *));
    longer[n] = element;
    return longer;
}

maker *make_begin(int opset) {
    maker *m = calloc(1, sizeof *m);
    onnx__model_proto__init(&m->model);
    onnx__graph_proto__init(&m->graph);
    onnx__operator_set_id_proto__init(&m->opset);
    m->opset.has_version = 1;
    m->opset.version = opset;
    m->opsets[0] = &m->opset;
    m->graph.name = text(m, "test");
    m->model.has_ir_version = 1;
    m->model.ir_version = 8;
    m->model.graph = &m->graph;
    m->model.n_opset_import = 1;
    m->model.opset_import = m->opsets;
    return m;
}

static Onnx__ValueInfoProto *end(maker *m, const char *name) {
    Onnx__ValueInfoProto *info = room(m, sizeof *info);
    onnx__value_info_proto__init(info);
    info->name = text(m, name);
    return info;
}

static Onnx__ValueInfoProto *typed_end(maker *m, const char *name, int type, int rank, const int64_t *dims) {
    Onnx__ValueInfoProto *info = end(m, name);
    Onnx__TypeProto__Tensor *tensor = room(m, sizeof *tensor);
    Onnx__TensorShapeProto *shape = room(m, sizeof *shape);
    info->type = room(m, sizeof *info->type);
    onnx__type_proto__init(info->type);
    onnx__type_proto__tensor__init(tensor);
    onnx__tensor_shape_proto__init(shape);
    info->type->tensor_type = tensor;
    tensor->has_elem_type = 1;
    tensor->elem_type = type;
    tensor->shape = shape;
    for (int d = 0; d < rank; d++) {
        Onnx__TensorShapeProto__Dimension *dim = room(m, sizeof *dim);
        onnx__tensor_shape_proto__dimension__init(dim);
        dim->has_dim_value = dims[d] >= 0;
        dim->dim_value = dims[d];
        dim->dim_param = dims[d] < 0 ? text(m, "N") : NULL;
        shape->dim = more(m, shape->dim, shape->n_dim++, dim);
    }
    return info;
}

void make_input(maker *m, const char *name, int type, int rank, const int64_t *dims) {
    m->graph.input = more(m, m->graph.input, m->graph.n_input++, typed_end(m, name, type, rank, dims));
}

void make_output_of(maker *m, const char *name, int type, int rank, const int64_t *dims) {
    m->graph.output = more(m, m->graph.output, m->graph.n_output++, typed_end(m, name, type, rank, dims));
}

void make_output(maker *m, const char *name) {
    m->graph.output = more(m, m->graph.output, m->graph.n_output++, end(m, name));
}

void make_constant(maker *m, const char *name, int type, int rank, const int64_t *dims, const void *contents,
                   size_t bytes) {
    Onnx__TensorProto *t = room(m, sizeof *t);
    onnx__tensor_proto__init(t);
    t->name = text(m, name);
    t->has_data_type = 1;
    t->data_type = type;
    t->n_dims = (size_t)rank;
    t->dims = room(m, (size_t)rank * sizeof(int64_t));
    if (rank)
        memcpy(t->dims, dims, (size_t)rank * sizeof(int64_t));
    t->has_raw_data = 1;
    t->raw_data.len = bytes;
    t->raw_data.data = room(m, bytes);
    if (bytes)
        memcpy(t->raw_data.data, contents, bytes);
    m->graph.initializer = more(m, m->graph.initializer, m->graph.n_initializer++, t);
}

void make_external(maker *m, const char *location, const char *offset, const char *length) {
    Onnx__TensorProto *t = m->graph.initializer[m->graph.n_initializer - 1];
    const char *const entries[3][2] = {{"location", location}, {"offset", offset}, {"length", length}};
    t->has_raw_data = 0;
    t->has_data_location = 1;
    t->data_location = 1;
    for (int i = 0; i < 3; i++) {
        if (!entries[i][1])
            continue;
        Onnx__StringStringEntryProto *pair = room(m, sizeof *pair);
        onnx__string_string_entry_proto__init(pair);
        pair->key = text(m, entries[i][0]);
        pair->value = text(m, entries[i][1]);
        t->external_data = more(m, t->external_data, t->n_external_data++, pair);
    }
}

static void names(maker *m, const char *list, char ***out, size_t *out_n) {
    char *copy = text(m, list), *rest = copy;
    for (char *name = strtok_r(copy, " ", &rest); name; name = strtok_r(NULL, " ", &rest)) {
        *out = more(m, *out, *out_n, strcmp(name, "-") ? name : text(m, ""));
        ++*out_n;
    }
}

void make_node(maker *m, const char *type, const char *inputs, const char *outputs) {
    Onnx__NodeProto *node = room(m, sizeof *node);
    onnx__node_proto__init(node);
    node->op_type = text(m, type);
    names(m, inputs, &node->input, &node->n_input);
    names(m, outputs, &node->output, &node->n_output);
    m->graph.node = more(m, m->graph.node, m->graph.n_node++, node);
}

void make_name(maker *m, const char *name) {
    m->graph.node[m->graph.n_node - 1]->name = text(m, name);
}

static Onnx__AttributeProto *attribute(maker *m, const char *name, int type) {
    Onnx__NodeProto *node = m->graph.node[m->graph.n_node - 1];
    Onnx__AttributeProto *a = room(m, sizeof *a);
    onnx__attribute_proto__init(a);
    a->name = text(m, name);
    a->has_type = 1;
    a->type = type;
    node->attribute = more(m, node->attribute, node->n_attribute++, a);
    return a;
}

void make_integer(maker *m, const char *name, int64_t value) {
    Onnx__AttributeProto *a = attribute(m, name, 2);
    a->has_i = 1;
    a->i = value;
}

void make_integers(maker *m, const char *name, int n, const int64_t *values) {
    Onnx__AttributeProto *a = attribute(m, name, 7);
    a->n_ints = (size_t)n;
    a->ints = room(m, (size_t)n * sizeof(int64_t));
    if (n)
        memcpy(a->ints, values, (size_t)n * sizeof(int64_t));
}

void make_real(maker *m, const char *name, float value) {
    Onnx__AttributeProto *a = attribute(m, name, 1);
    a->has_f = 1;
    a->f = value;
}

void make_reals(maker *m, const char *name, int n, const float *values) {
    Onnx__AttributeProto *a = attribute(m, name, 6);
    a->n_floats = (size_t)n;
    a->floats = room(m, (size_t)n * sizeof(float));
    memcpy(a->floats, values, (size_t)n * sizeof(float));
}

static void set_bytes(maker *m, ProtobufCBinaryData *to, const char *from, size_t size) {
    to->len = size;
    to->data = room(m, size);
    memcpy(to->data, from, size);
}

void make_text(maker *m, const char *name, const char *value) {
    Onnx__AttributeProto *a = attribute(m, name, 3);
    a->has_s = 1;
    set_bytes(m, &a->s, value, strlen(value));
}

void make_texts(maker *m, const char *name, const char *list) {
    Onnx__AttributeProto *a = attribute(m, name, 8);
    a->strings = room(m, strlen(list) * sizeof *a->strings);
    for (size_t length; *list; list += length + (list[length] == ' ')) {
        length = strcspn(list, " ");
        set_bytes(m, &a->strings[a->n_strings++], list, length);
    }
}

void make_body(maker *m, const char *name, maker *body) {
    attribute(m, name, 5)->g = &body->graph;
    body->next = m->bodies;
    m->bodies = body;
}

static void free_maker(maker *m) {
    while (m->bodies) {
        maker *body = m->bodies;
        m->bodies = body->next;
        free_maker(body);
    }
    for (int i = 0; i < m->n_blocks; i++)
        free(m->blocks[i]);
    free(m);
}

void *make_end(maker *m, size_t *out_bytes) {
    *out_bytes = onnx__model_proto__get_packed_size(&m->model);
    void *bytes = malloc(*out_bytes + 1);
    onnx__model_proto__pack(&m->model, bytes);
    free_maker(m);
    return bytes;
}
