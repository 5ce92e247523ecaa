#include "graph/aipp.h"

#include <string.h>

#include "graph/compile_shapes.h"

/* What the input of a dynamic one begins with. */
typedef struct data_header {
    char magic[8];
    uint64_t batch;
} data_header;

static const char magic[8] = "DPAIPP1";

size_t dp_aipp_data_bytes(uint64_t batch) {
    return batch > (1u << 20) ? 0 : sizeof(data_header) + (size_t)batch * sizeof(dp_aipp);
}

void dp_aipp_data_write(const dp_aipp *each, uint64_t batch, void *out) {
    data_header header = {.batch = batch};
    memcpy(header.magic, magic, sizeof magic);
    memcpy(out, &header, sizeof header);
    memcpy((char *)out + sizeof header, each, (size_t)batch * sizeof *each);
}

/* The node. */

static dp_aipp_target target_of(const dp_tensor *t, bool channels_last) {
    int c = channels_last ? 3 : 1, h = channels_last ? 1 : 2;
    return (dp_aipp_target){.channels = (uint32_t)t->dims[c],
                            .height = (uint32_t)t->dims[h],
                            .width = (uint32_t)t->dims[h + 1],
                            .is_half = t->element == DP_F16,
                            .channels_last = channels_last};
}

static dp_status check_target(const dp_tensor *t, const char *name) {
    if (t->rank != 4 || (t->element != DP_F32 && t->element != DP_F16))
        return dp_fail(DP_ERR_UNSUPPORTED,
                       "AIPP: the input \"%s\" has %d dimensions of %s, but pictures go into inputs of 4 dimensions of "
                       "float or half",
                       name, t->rank, dp_element_name(t->element));
    for (int d = 0; d < 4; d++)
        if (t->dims[d] < 1 || t->dims[d] > DP_PICTURE_SIDE)
            return dp_fail(DP_ERR_UNSUPPORTED, "AIPP: dimension %d of the input \"%s\" is %lld, but must be 1 to %d", d,
                           name, (long long)t->dims[d], DP_PICTURE_SIDE);
    return DP_OK;
}

static void picture_dims(const dp_aipp *a, int64_t batch, int64_t dims[4]) {
    int64_t height = a->src_height, width = a->src_width, bytes = 1;
    switch (a->format) {
    case DP_AIPP_YUV420SP:
        height = height * 3 / 2;
        break;
    case DP_AIPP_YUV422SP:
        height *= 2;
        break;
    case DP_AIPP_YUYV:
        bytes = 2;
        break;
    case DP_AIPP_RGB888:
        bytes = 3;
        break;
    case DP_AIPP_YUV400:
        break;
    default:
        bytes = 4;
    }
    memcpy(dims, (int64_t[]){batch, height, width, bytes}, 4 * sizeof *dims);
}

static dp_status set_lists(dp_node *node, const dp_aipp *aipp, bool channels_last) {
    int64_t integers[DP_AIPP_INTEGERS];
    int32_t narrow[DP_AIPP_INTEGERS];
    memcpy(narrow, aipp, sizeof narrow);
    for (int i = 0; i < DP_AIPP_INTEGERS; i++)
        integers[i] = narrow[i];
    const dp_arg floats = {
        .name = "floats", .kind = DP_ARG_FLOAT_LIST, .count = DP_AIPP_FLOATS, .as.floats = aipp->min};
    dp_status status = dp_node_set_integers(node, "integers", integers, DP_AIPP_INTEGERS);
    if (status == DP_OK)
        status = dp_node_set(node, &floats);
    return status == DP_OK ? dp_node_set_integer(node, "channels_last", channels_last) : status;
}

/* Reads what set_lists wrote, maybe from a file that was tampered with. */
static dp_status get_lists(const dp_node *node, dp_aipp *out) {
    const dp_arg *integers = dp_node_attribute(node, "integers"), *floats = dp_node_attribute(node, "floats");
    int32_t narrow[DP_AIPP_INTEGERS];
    bool whole = integers && floats && integers->kind == DP_ARG_INT_LIST && floats->kind == DP_ARG_FLOAT_LIST &&
                 integers->count == DP_AIPP_INTEGERS && floats->count == DP_AIPP_FLOATS;
    for (int i = 0; whole && i < DP_AIPP_INTEGERS; i++) {
        int64_t v = integers->as.integers[i];
        whole = v >= INT32_MIN && v <= INT32_MAX;
        narrow[i] = (int32_t)v;
    }
    if (!whole)
        return dp_fail(DP_ERR_ARGUMENT, "AIPP: the node \"%s\" has no settings", node->name);
    memcpy(out, narrow, sizeof narrow);
    memcpy(out->min, floats->as.floats, DP_AIPP_FLOATS * sizeof(float));
    return DP_OK;
}

dp_status dp_node_aipp(const dp_node *node, dp_aipp *out_aipp, dp_aipp_target *out_target) {
    dp_status status = check_target(&node->outputs[0]->tensor, node->outputs[0]->name);
    if (status != DP_OK)
        return status;
    *out_target = target_of(&node->outputs[0]->tensor, dp_node_integer(node, "channels_last", 0) != 0);
    status = get_lists(node, out_aipp);
    return status == DP_OK ? dp_aipp_complete(out_aipp, out_target) : status;
}

/* Inserting. */

static int find_input(const dp_graph *graph, const dp_aipp_op *op) {
    for (int i = 0; i < graph->n_inputs; i++)
        if (op->input_name[0] ? strcmp(graph->inputs[i]->name, op->input_name) == 0 : i == op->input)
            return i;
    return -1;
}

static dp_status add_input(dp_graph *graph, dp_value *value) {
    dp_value **inputs = dp_model_alloc(graph->model, ((size_t)graph->n_inputs + 1) * sizeof *inputs);
    if (!inputs)
        return DP_ERR_OUT_OF_MEMORY;
    memcpy(inputs, graph->inputs, (size_t)graph->n_inputs * sizeof *inputs);
    inputs[graph->n_inputs++] = value;
    graph->inputs = inputs;
    return DP_OK;
}

/* The new input takes the old one's name and place; the old one is made by the node. */
static dp_value *take_over(dp_graph *graph, int index) {
    dp_value *prepared = graph->inputs[index];
    const char *name = prepared->name;
    prepared->name = dp_arena_format(&graph->model->arena, "%s__prepared", name);
    dp_value *picture = prepared->name ? dp_value_new(graph->model, name) : NULL;
    if (picture)
        graph->inputs[index] = picture;
    else
        dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for AIPP: free some");
    return picture;
}

static dp_status insert_dynamic(dp_graph *graph, dp_node *node, const dp_aipp_op *op, int64_t batch, int number,
                                bool channels_last) {
    const int64_t picture_bytes = op->max_src_image_size, data_bytes = (int64_t)dp_aipp_data_bytes((uint64_t)batch);
    char name[64];
    if (picture_bytes > (int64_t)4 * DP_PICTURE_SIDE * DP_PICTURE_SIDE)
        return dp_fail(DP_ERR_ARGUMENT, "max_src_image_size is %lld, but must be at most %lld",
                       (long long)picture_bytes, (long long)4 * DP_PICTURE_SIDE * DP_PICTURE_SIDE);
    snprintf(name, sizeof name, number > 1 ? DP_AIPP_DATA "_%d" : DP_AIPP_DATA, number);
    dp_value *data = dp_value_new(graph->model, name);
    if (!data)
        return DP_ERR_OUT_OF_MEMORY;
    dp_value_shape(data, DP_U8, &data_bytes, 1);
    dp_value_shape(node->inputs[0], DP_U8, &picture_bytes, 1);
    node->inputs[1] = data;
    dp_status status = add_input(graph, data);
    return status == DP_OK ? dp_node_set_integer(node, "channels_last", channels_last) : status;
}

static dp_status insert(dp_graph *graph, const dp_aipp_op *op, int number, bool channels_last) {
    int index = find_input(graph, op);
    if (index < 0 && op->input_name[0])
        return dp_fail(DP_ERR_ARGUMENT, "insert_op_conf: related_input_name is \"%s\", but the model has no such input",
                       op->input_name);
    if (index < 0)
        return dp_fail(DP_ERR_ARGUMENT, "insert_op_conf: related_input_rank is %d, but the model has %d inputs",
                       op->input, graph->n_inputs);
    dp_value *prepared = graph->inputs[index];
    dp_status status = check_target(&prepared->tensor, prepared->name);
    if (status != DP_OK)
        return status;
    dp_aipp aipp = op->aipp;
    const dp_aipp_target target = target_of(&prepared->tensor, channels_last);
    if (!op->is_dynamic && (status = dp_aipp_complete(&aipp, &target)) != DP_OK) {
        char sentence[400];
        snprintf(sentence, sizeof sentence, "%s", dp_fail_message());
        return dp_fail(status, "insert_op_conf: input \"%s\": %s", prepared->name, sentence);
    }
    dp_value *picture = take_over(graph, index);
    dp_node *node =
        picture ? dp_node_new(graph, graph->first, DP_AIPP_TYPE, picture->name, op->is_dynamic ? 2 : 1, 1) : NULL;
    if (!node)
        return DP_ERR_OUT_OF_MEMORY;
    node->inputs[0] = picture;
    dp_node_output(node, 0, prepared);
    if (op->is_dynamic)
        return insert_dynamic(graph, node, op, prepared->tensor.dims[0], number, channels_last);
    int64_t dims[4];
    picture_dims(&aipp, prepared->tensor.dims[0], dims);
    dp_value_shape(picture, DP_U8, dims, 4);
    return set_lists(node, &aipp, channels_last);
}

dp_status dp_graph_insert_aipp(dp_graph *graph, const dp_aipp_op *ops, int n, bool channels_last) {
    dp_status status = DP_OK;
    for (int i = 0, dynamic = 0; i < n && status == DP_OK; i++)
        status = insert(graph, &ops[i], dynamic += ops[i].is_dynamic, channels_last);
    return status;
}

/* What was declared of the input at `index` of all graphs, after insertion. Of a static one's dims the batch stays. */
static dp_status declare_again(const dp_compiled *compiled, int index, bool is_new) {
    const dp_graph *graph = compiled->variants[0]->graph;
    const dp_node *node = dp_graph_aipp(graph, graph->inputs[index]);
    const dp_tensor *shape = &graph->inputs[index]->tensor;
    dp_declared *declared = &compiled->shapes.inputs[index];
    if (!node)
        return DP_OK;
    for (int d = 1; d < declared->rank && !is_new; d++)
        if (dp_declared_is_open(declared, d))
            return dp_fail(DP_ERR_UNSUPPORTED,
                           "insert_op_conf: dimension %d of the input \"%s\" is open, but with AIPP only the first "
                           "one, the batch, may be",
                           d, graph->inputs[index]->name);
    declared->rank = shape->rank;
    for (int d = node->n_inputs == 1; d < shape->rank; d++)
        declared->least[d] = declared->most[d] = shape->dims[d];
    return DP_OK;
}

static dp_status declare_all_again(dp_compiled *compiled) {
    int old = compiled->shapes.n_inputs, n = compiled->variants[0]->graph->n_inputs;
    dp_declared *inputs = dp_realloc(DP_MEM_GRAPH, compiled->shapes.inputs, (size_t)n * sizeof *inputs + 1);
    if (!inputs)
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for AIPP: free some");
    compiled->shapes.inputs = inputs;
    compiled->shapes.n_inputs = n;
    memset(inputs + old, 0, (size_t)(n - old) * sizeof *inputs);
    dp_status status = DP_OK;
    for (int i = 0; i < n && status == DP_OK; i++)
        status = declare_again(compiled, i, i >= old);
    return status;
}

dp_status dp_compiled_insert_aipp(dp_compiled *compiled, const dp_aipp_op *ops, int n, bool channels_last,
                                  FILE *print) {
    bool gears = compiled->shapes.kind != DP_SHAPES_FIXED, dynamic = false;
    for (int i = 0; i < n; i++)
        dynamic |= ops[i].is_dynamic;
    if (compiled->shapes.is_source || compiled->shapes.kind == DP_SHAPES_OPEN)
        return dp_fail(DP_ERR_UNSUPPORTED,
                       "insert_op_conf: the model's shapes are chosen while it runs, but AIPP needs them before: give "
                       "them in input_shape, or as dynamic_batch_size");
    if (gears && dynamic)
        return dp_fail(DP_ERR_UNSUPPORTED,
                       "insert_op_conf: aipp_mode dynamic goes with one shape only, not with several");
    dp_status status = DP_OK;
    for (int i = 0; i < compiled->n_variants && status == DP_OK; i++) {
        status = dp_graph_insert_aipp(compiled->variants[i]->graph, ops, n, channels_last);
        if (status == DP_OK && print) {
            fputs("# after AIPP\n", print);
            dp_graph_print(compiled->variants[i]->graph, print);
        }
    }
    return status == DP_OK && compiled->shapes.n_inputs ? declare_all_again(compiled) : status;
}

const dp_node *dp_graph_aipp(const dp_graph *graph, const dp_value *input) {
    for (const dp_node *node = graph->first; node; node = node->next)
        if (strcmp(node->type, DP_AIPP_TYPE) == 0)
            for (int i = 0; i < node->n_inputs; i++)
                if (node->inputs[i] == input)
                    return node;
    return NULL;
}

/* Running. */

typedef struct state {
    dp_aipp aipp;
    dp_aipp_target target;
    int64_t batch;
} state;

static dp_status run_static(dp_plan *plan) {
    const state *s = dp_plan_state(plan);
    const uint8_t *src = dp_plan_data(plan, 0);
    char *out = dp_plan_data(plan, plan->n_tensors - 1);
    size_t in_bytes = dp_aipp_source_bytes(&s->aipp);
    size_t out_bytes = (size_t)s->target.channels * s->target.height * s->target.width * (s->target.is_half ? 2 : 4);
    dp_status status = DP_OK;
    for (int64_t i = 0; i < s->batch && status == DP_OK; i++)
        status = dp_aipp_run(&s->aipp, &s->target, src + (size_t)i * in_bytes, out + (size_t)i * out_bytes);
    return status;
}

/* Settings may differ from picture to picture, but for the size and format of the pictures. */
static dp_status run_dynamic(dp_plan *plan) {
    const state *s = dp_plan_state(plan);
    const uint8_t *src = dp_plan_data(plan, 0);
    const char *data = dp_plan_data(plan, 1);
    char *out = dp_plan_data(plan, 2);
    size_t room = (size_t)dp_tensor_count(&plan->tensors[0].view), used = 0;
    size_t out_bytes = (size_t)s->target.channels * s->target.height * s->target.width * (s->target.is_half ? 2 : 4);
    data_header header;
    memcpy(&header, data, sizeof header);
    if (memcmp(header.magic, magic, sizeof magic) != 0 || header.batch != (uint64_t)s->batch)
        return dp_fail(DP_ERR_ARGUMENT,
                       "the input " DP_AIPP_DATA " has no settings for %lld pictures: call aclmdlSetInputAIPP first",
                       (long long)s->batch);
    for (int64_t i = 0; i < s->batch; i++) {
        dp_aipp aipp;
        memcpy(&aipp, data + sizeof header + (size_t)i * sizeof aipp, sizeof aipp);
        dp_status status = dp_aipp_complete(&aipp, &s->target);
        size_t bytes = status == DP_OK ? dp_aipp_source_bytes(&aipp) : 0;
        if (status == DP_OK && bytes > room - used)
            status =
                dp_fail(DP_ERR_ARGUMENT,
                        "%lld pictures of %zu bytes do not fit into the input of %zu bytes: see max_src_image_size",
                        (long long)s->batch, bytes, room);
        if (status == DP_OK)
            status = dp_aipp_run(&aipp, &s->target, src + used, out + (size_t)i * out_bytes);
        if (status != DP_OK)
            return status;
        used += bytes;
    }
    return DP_OK;
}

static const dp_param static_params[] = {{"images", DP_ARG_TENSOR, false}, {"features", DP_ARG_TENSOR, true}};
static const dp_param dynamic_params[] = {
    {"images", DP_ARG_TENSOR, false}, {"params", DP_ARG_TENSOR, false}, {"features", DP_ARG_TENSOR, true}};
static const dp_operator static_op = {.name = DP_AIPP_TYPE, .params = static_params, .n_params = 2};
static const dp_operator dynamic_op = {.name = DP_AIPP_TYPE, .params = dynamic_params, .n_params = 3};

static dp_status check_node(const dp_node *node) {
    bool whole = (node->n_inputs == 1 || node->n_inputs == 2) && node->n_outputs == 1 && node->outputs[0];
    for (int i = 0; whole && i < node->n_inputs; i++)
        whole = node->inputs[i] && node->inputs[i]->tensor.element == DP_U8;
    return whole ? DP_OK : dp_fail(DP_ERR_ARGUMENT, "AIPP: the node \"%s\" has no picture", node->name);
}

dp_status dp_aipp_prepare(const dp_node *node, dp_plan **out_plan) {
    state s = {0};
    dp_status status = check_node(node);
    bool dynamic = node->n_inputs == 2;
    if (status == DP_OK && !dynamic)
        status = dp_node_aipp(node, &s.aipp, &s.target);
    if (status == DP_OK && dynamic)
        status = check_target(&node->outputs[0]->tensor, node->outputs[0]->name);
    if (status != DP_OK)
        return status;
    s.target = target_of(&node->outputs[0]->tensor, dp_node_integer(node, "channels_last", 0) != 0);
    s.batch = node->outputs[0]->tensor.dims[0];
    size_t needed = dynamic ? dp_aipp_data_bytes((uint64_t)s.batch) : (size_t)s.batch * dp_aipp_source_bytes(&s.aipp);
    if ((size_t)dp_tensor_count(&node->inputs[dynamic]->tensor) != needed)
        return dp_fail(DP_ERR_ARGUMENT, "AIPP: the input \"%s\" has %lld bytes, but must have %zu",
                       node->inputs[dynamic]->name, (long long)dp_tensor_count(&node->inputs[dynamic]->tensor), needed);
    dp_arg args[3] = {0};
    int n = 0;
    for (; n < node->n_inputs; n++)
        args[n] =
            (dp_arg){.name = dynamic_params[n].name, .kind = DP_ARG_TENSOR, .as.tensor = &node->inputs[n]->tensor};
    args[n++] = (dp_arg){.name = "features", .kind = DP_ARG_TENSOR, .as.tensor = &node->outputs[0]->tensor};
    const dp_operator_call call = {
        .op = dynamic ? &dynamic_op : &static_op, .params = args, .n_params = n, .n_tensors = n};
    *out_plan = dp_plan_new(&call, dynamic ? run_dynamic : run_static, sizeof s);
    if (!*out_plan)
        return DP_ERR_OUT_OF_MEMORY;
    memcpy(dp_plan_state(*out_plan), &s, sizeof s);
    return DP_OK;
}
