#define _GNU_SOURCE /* tdestroy */
#include <search.h>
#include <string.h>

#include "graph/onnx/depth.h"
#include "graph/onnx/onnx.h"
#include "graph/onnx/order.h"
#include "graph/onnx/tensor.h"

/* Names seen so far in one graph; those of the graphs around it are looked up there. */
typedef struct scope {
    void *values; /* a tree of dp_value * by name (tsearch) */
    const struct scope *outer;
} scope;

typedef struct reader {
    dp_model *model;
    const char *folder;
} reader;

static int by_name(const void *a, const void *b) {
    return strcmp(((const dp_value *)a)->name, ((const dp_value *)b)->name);
}
static void keep_value(void *value) {
    (void)value; /* the arena owns it */
}

static dp_value *look_up(const scope *names, const char *name) {
    dp_value key = {.name = name};
    for (; names; names = names->outer) {
        void *const *found = tfind(&key, &names->values, by_name);
        if (found)
            return *found;
    }
    return NULL;
}

static dp_status enter(scope *names, dp_value *value, const char *graph) {
    dp_value **found = tsearch(value, &names->values, by_name);
    if (!found)
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for the names of a model: free some");
    if (*found != value)
        return dp_fail(DP_ERR_ARGUMENT, "graph \"%s\" makes a value \"%s\" twice", graph, value->name);
    return DP_OK;
}

static dp_status new_value(reader *r, scope *names, const char *name, const char *graph, dp_value **out_value) {
    dp_value *value = dp_value_new(r->model, name);
    if (!value)
        return DP_ERR_OUT_OF_MEMORY;
    *out_value = value;
    return enter(names, value, graph);
}

/* Type and shape of an input. Dims that the file leaves open are unknown, with the name that it gives them. */
static dp_status read_type(reader *r, const Onnx__ValueInfoProto *info, dp_value *value) {
    const Onnx__TypeProto *type = info->type;
    if (!type)
        return DP_OK;
    if (!type->tensor_type) {
        bool other = type->sequence_type || type->map_type || type->optional_type;
        return other ? dp_fail(DP_ERR_UNSUPPORTED, "\"%s\" is no tensor: sequences, maps and optionals are not "
                                                   "supported",
                               value->name)
                     : DP_OK;
    }
    const Onnx__TypeProto__Tensor *tensor = type->tensor_type;
    value->tensor.element = dp_onnx_element(tensor->elem_type);
    if (value->tensor.element == DP_EL_NONE && tensor->elem_type)
        return dp_fail(DP_ERR_UNSUPPORTED, "\"%s\" has data type %d, which is not supported", value->name,
                       tensor->elem_type);
    const Onnx__TensorShapeProto *shape = tensor->shape;
    if (!shape)
        return DP_OK;
    if (shape->n_dim > DP_TENSOR_DIMS)
        return dp_fail(DP_ERR_UNSUPPORTED, "\"%s\" has %zu dimensions, but at most %d are supported", value->name,
                       shape->n_dim, DP_TENSOR_DIMS);
    int64_t dims[DP_TENSOR_DIMS];
    for (size_t d = 0; d < shape->n_dim; d++) {
        const Onnx__TensorShapeProto__Dimension *dim = shape->dim[d];
        dims[d] = dim->has_dim_value && dim->dim_value >= 0 ? dim->dim_value : DP_UNKNOWN;
        if (dims[d] != DP_UNKNOWN || !dim->dim_param || !*dim->dim_param)
            continue;
        value->symbols[d] = dp_arena_text(&r->model->arena, dim->dim_param);
        if (!value->symbols[d])
            return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for the model: free some");
    }
    dp_value_shape(value, value->tensor.element, dims, (int)shape->n_dim);
    return DP_OK;
}

static dp_status read_graph(reader *r, const Onnx__GraphProto *from, const scope *outer, dp_graph *graph);

static dp_status read_body(reader *r, dp_node *node, const Onnx__AttributeProto *a, const scope *names) {
    dp_graph *graph = dp_graph_new(node->graph, a->g->name ? a->g->name : a->name);
    char *name = dp_arena_text(&r->model->arena, a->name);
    if (!graph || !name)
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for the model: free some");
    node->bodies[node->n_bodies++] = (dp_body){name, graph};
    return read_graph(r, a->g, names, graph);
}

static dp_status read_attribute(reader *r, dp_node *node, const Onnx__AttributeProto *a, const scope *names) {
    dp_arg arg = {.name = a->name};
    dp_value *value;
    dp_status status;
    switch (a->type) {
    case 1:
        return dp_node_set_real(node, a->name, (double)a->f);
    case 2:
        return dp_node_set_integer(node, a->name, a->i);
    case 3: {
        char *text = dp_model_alloc(r->model, a->s.len + 1);
        if (!text)
            return DP_ERR_OUT_OF_MEMORY;
        if (a->s.len)
            memcpy(text, a->s.data, a->s.len);
        return dp_node_set_text(node, a->name, text);
    }
    case 4: { /* a constant input, behind the others: readers of nodes with such attributes know */
        if (!a->t)
            return dp_fail(DP_ERR_ARGUMENT, "node \"%s\": attribute \"%s\" has no tensor", node->name, a->name);
        status = dp_onnx_constant(r->model, NULL, a->t, r->folder, &value);
        if (status != DP_OK)
            return status;
        node->inputs[node->n_inputs++] = value;
        return DP_OK;
    }
    case 5:
        return a->g ? read_body(r, node, a, names)
                    : dp_fail(DP_ERR_ARGUMENT, "node \"%s\": attribute \"%s\" has no graph", node->name, a->name);
    case 6:
        arg.kind = DP_ARG_FLOAT_LIST;
        arg.count = (int64_t)a->n_floats;
        arg.as.floats = a->floats;
        return dp_node_set(node, &arg);
    case 7:
        arg.kind = DP_ARG_INT_LIST;
        arg.count = (int64_t)a->n_ints;
        arg.as.integers = a->ints;
        return dp_node_set(node, &arg);
    case 8: { /* texts, one per line */
        size_t bytes = 1;
        for (size_t i = 0; i < a->n_strings; i++)
            bytes += a->strings[i].len + 1;
        char *text = dp_model_alloc(r->model, bytes), *to = text;
        if (!text)
            return DP_ERR_OUT_OF_MEMORY;
        for (size_t i = 0; i < a->n_strings; i++) {
            if (i)
                *to++ = '\n';
            if (a->strings[i].len)
                memcpy(to, a->strings[i].data, a->strings[i].len);
            to += a->strings[i].len;
        }
        return dp_node_set_text(node, a->name, text);
    }
    default:
        return dp_fail(DP_ERR_UNSUPPORTED, "node \"%s\" (%s): attribute \"%s\" is of kind %d, which is not supported",
                       node->name, node->type, a->name, a->type);
    }
}

/* "Celu" of the default domain, "com.microsoft.FusedMatMul" of another one. */
static const char *type_of(reader *r, const Onnx__NodeProto *from) {
    const char *type = from->op_type ? from->op_type : "";
    const char *domain = from->domain ? from->domain : "";
    if (!*domain || strcmp(domain, "ai.onnx") == 0)
        return type;
    const char *full = dp_arena_format(&r->model->arena, "%s.%s", domain, type);
    return full ? full : type;
}

static dp_status connect(reader *r, dp_node *node, const Onnx__NodeProto *from, scope *names) {
    for (size_t i = 0; i < from->n_input; i++) {
        if (!*from->input[i])
            continue;
        node->inputs[i] = look_up(names, from->input[i]);
        if (!node->inputs[i])
            return dp_fail(DP_ERR_ARGUMENT, "node \"%s\" (%s) reads \"%s\", which nothing before it makes", node->name,
                           node->type, from->input[i]);
    }
    for (size_t i = 0; i < from->n_attribute; i++) {
        const Onnx__AttributeProto *a = from->attribute[i];
        if (!a->name || (a->ref_attr_name && *a->ref_attr_name))
            return dp_fail(DP_ERR_UNSUPPORTED, "node \"%s\" (%s): attribute %zu has no value of its own", node->name,
                           node->type, i);
        dp_status status = read_attribute(r, node, a, names);
        if (status != DP_OK)
            return status;
    }
    for (size_t i = 0; i < from->n_output; i++) {
        dp_value *value = NULL;
        if (!*from->output[i])
            continue;
        dp_status status = new_value(r, names, from->output[i], node->graph->name, &value);
        if (status != DP_OK)
            return status;
        dp_node_output(node, (int)i, value);
    }
    return DP_OK;
}

/* A Constant node is a constant by its output's name. */
static dp_status read_constant(reader *r, const Onnx__NodeProto *from, scope *names, const char *graph) {
    const Onnx__AttributeProto *a = from->n_attribute == 1 ? from->attribute[0] : NULL;
    const char *kind = a && a->name ? a->name : "";
    const char *name = from->output[0];
    dp_value *value = NULL;
    if (strcmp(kind, "value") == 0 && a->t) {
        dp_status status = dp_onnx_constant(r->model, name, a->t, r->folder, &value);
        if (status != DP_OK)
            return status;
    } else if (strcmp(kind, "value_int") == 0) {
        value = dp_value_constant(r->model, name, DP_I64, NULL, 0, &a->i);
    } else if (strcmp(kind, "value_float") == 0) {
        value = dp_value_constant(r->model, name, DP_F32, NULL, 0, &a->f);
    } else if (strcmp(kind, "value_ints") == 0) {
        value = dp_value_constant(r->model, name, DP_I64, &(int64_t){(int64_t)a->n_ints}, 1, a->ints);
    } else if (strcmp(kind, "value_floats") == 0) {
        value = dp_value_constant(r->model, name, DP_F32, &(int64_t){(int64_t)a->n_floats}, 1, a->floats);
    } else {
        return dp_fail(DP_ERR_UNSUPPORTED, "Constant \"%s\" is given as \"%s\", which is not supported", name, kind);
    }
    return value ? enter(names, value, graph) : DP_ERR_OUT_OF_MEMORY;
}

static dp_status read_node(reader *r, const Onnx__NodeProto *from, size_t index, scope *names, dp_graph *graph) {
    char numbered[32];
    const char *name = from->name && *from->name ? from->name : numbered;
    snprintf(numbered, sizeof numbered, "node %zu", index);
    size_t tensors = 0, bodies = 0;
    for (size_t i = 0; i < from->n_attribute; i++) {
        tensors += from->attribute[i]->type == 4;
        bodies += from->attribute[i]->type == 5;
    }
    if (from->op_type && strcmp(from->op_type, "Constant") == 0 && from->n_output == 1)
        return read_constant(r, from, names, graph->name);
    if (from->n_input + tensors > UINT16_MAX || from->n_output > UINT16_MAX)
        return dp_fail(DP_ERR_ARGUMENT, "node \"%s\" has %zu inputs and %zu outputs", name, from->n_input,
                       from->n_output);
    dp_node *node =
        dp_node_new(graph, NULL, type_of(r, from), name, (int)(from->n_input + tensors), (int)from->n_output);
    if (!node || !(node->bodies = dp_model_alloc(r->model, bodies * sizeof(dp_body))))
        return DP_ERR_OUT_OF_MEMORY;
    node->n_inputs = (int)from->n_input; /* attributes that are tensors are added */
    return connect(r, node, from, names);
}

static dp_status read_ends(reader *r, const Onnx__GraphProto *from, scope *names, dp_graph *graph) {
    graph->inputs = dp_model_alloc(r->model, from->n_input * sizeof(dp_value *));
    graph->outputs = dp_model_alloc(r->model, from->n_output * sizeof(dp_value *));
    if (!graph->inputs || !graph->outputs)
        return DP_ERR_OUT_OF_MEMORY;
    for (size_t i = 0; i < from->n_initializer; i++) {
        const Onnx__TensorProto *tensor = from->initializer[i];
        dp_value *value;
        dp_status status = tensor->name ? dp_onnx_constant(r->model, tensor->name, tensor, r->folder, &value)
                                        : dp_fail(DP_ERR_ARGUMENT, "initializer %zu has no name", i);
        if (status == DP_OK)
            status = enter(names, value, graph->name);
        if (status != DP_OK)
            return status;
    }
    for (size_t i = 0; i < from->n_input; i++) {
        const Onnx__ValueInfoProto *info = from->input[i];
        if (!info->name)
            return dp_fail(DP_ERR_ARGUMENT, "input %zu of graph \"%s\" has no name", i, graph->name);
        void *const *known = tfind(&(dp_value){.name = info->name}, &names->values, by_name);
        if (known && ((dp_value *)*known)->is_constant)
            continue; /* before IR version 4 initializers were listed as inputs, too */
        dp_value *value;
        dp_status status = new_value(r, names, info->name, graph->name, &value);
        if (status == DP_OK)
            status = read_type(r, info, value);
        if (status != DP_OK)
            return status;
        graph->inputs[graph->n_inputs++] = value;
    }
    return DP_OK;
}

/* What the file says of the type and shape of outputs is kept until lowering works them out. */
static dp_status read_outputs(reader *r, const Onnx__GraphProto *from, const scope *names, dp_graph *graph) {
    for (size_t i = 0; i < from->n_output; i++) {
        const char *name = from->output[i]->name;
        dp_value *value = name ? look_up(names, name) : NULL;
        if (!value)
            return dp_fail(DP_ERR_ARGUMENT, "output \"%s\" of graph \"%s\" is made by no node", name ? name : "",
                           graph->name);
        bool open = value->producer && value->producer->graph == graph && value->tensor.element == DP_EL_NONE;
        dp_status status = open ? read_type(r, from->output[i], value) : DP_OK;
        if (status != DP_OK)
            return status;
        graph->outputs[graph->n_outputs++] = value;
    }
    return DP_OK;
}

static dp_status read_graph(reader *r, const Onnx__GraphProto *from, const scope *outer, dp_graph *graph) {
    scope names = {NULL, outer};
    if (from->n_sparse_initializer)
        return dp_fail(DP_ERR_UNSUPPORTED, "graph \"%s\" has sparse initializers, which are not supported",
                       graph->name);
    uint32_t *order = NULL;
    dp_status status = read_ends(r, from, &names, graph);
    if (status == DP_OK)
        status = dp_onnx_order(from, &order);
    for (size_t i = 0; i < from->n_node && status == DP_OK; i++)
        status = read_node(r, from->node[order[i]], order[i], &names, graph);
    dp_free(order);
    if (status == DP_OK)
        status = read_outputs(r, from, &names, graph);
    tdestroy(names.values, keep_value);
    return status;
}

static dp_status read_opset(const Onnx__ModelProto *from, int *out_opset) {
    int64_t version = 0;
    for (size_t i = 0; i < from->n_opset_import; i++) {
        const char *domain = from->opset_import[i]->domain;
        if (!domain || !*domain || strcmp(domain, "ai.onnx") == 0)
            version = from->opset_import[i]->version;
    }
    if (version < DP_ONNX_OPSET_MIN || version > DP_ONNX_OPSET_MAX)
        return dp_fail(DP_ERR_UNSUPPORTED,
                       "the model uses version %lld of ONNX's operators, but %d to %d are supported: export it again",
                       (long long)version, DP_ONNX_OPSET_MIN, DP_ONNX_OPSET_MAX);
    *out_opset = (int)version;
    return DP_OK;
}

static dp_status read_model(const Onnx__ModelProto *from, const char *folder, int *out_opset, dp_model **out_model) {
    if (!from->graph || from->n_opset_import == 0)
        return dp_fail(DP_ERR_ARGUMENT, "the bytes hold no ONNX model: there is no graph or no operator set in them");
    if (from->n_functions)
        return dp_fail(DP_ERR_UNSUPPORTED, "the model defines functions of its own (%s), which are not supported",
                       from->functions[0]->name ? from->functions[0]->name : "without a name");
    dp_status status = read_opset(from, out_opset);
    if (status != DP_OK)
        return status;
    reader r = {dp_model_new(from->graph->name ? from->graph->name : "main"), folder};
    if (!r.model)
        return DP_ERR_OUT_OF_MEMORY;
    status = read_graph(&r, from->graph, NULL, r.model->graph);
    if (status == DP_OK)
        *out_model = r.model;
    else
        dp_model_free(r.model);
    return status;
}

dp_status dp_onnx_read(const void *bytes, size_t size_bytes, const char *folder, int *out_opset,
                       dp_model **out_model) {
    if (!dp_onnx_depth_is_fine(bytes, size_bytes))
        return dp_fail(DP_ERR_UNSUPPORTED, "graphs of the model are nested more than %d deep", DP_ONNX_DEPTH_MAX);
    Onnx__ModelProto *from = onnx__model_proto__unpack(NULL, size_bytes, bytes);
    if (!from)
        return dp_fail(DP_ERR_ARGUMENT, "the %zu bytes are no ONNX model, or a damaged one", size_bytes);
    dp_status status = read_model(from, folder, out_opset, out_model);
    onnx__model_proto__free_unpacked(from, NULL);
    return status;
}
