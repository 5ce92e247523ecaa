/*
 * Convolutions with constant weights go over to images with channels last, their weights to panels (ops/conv/panels.h);
 * what lies between them follows. Transposes stand only where a value is wanted in the other order, and where an image
 * has one pixel or one channel they are reshapes, which cost nothing.
 *
 * A value whose node went over has no producer any more; its twin, [batch, height, width, channels], has.
 */
#include <string.h>

#include "graph/passes/layout.h"
#include "graph/passes/match.h"
#include "graph/passes/passes.h"

/* Twins by number; a value's number + 1 is its mark. */
typedef struct layout {
    dp_graph *graph;
    dp_value **twins;
    size_t n_twins, room;
} layout;

static dp_value *twin_of(const layout *l, const dp_value *value) {
    return value->mark ? l->twins[value->mark - 1] : NULL;
}

static dp_status set_twin(layout *l, dp_value *value, dp_value *twin) {
    if (l->n_twins == l->room) {
        size_t room = l->room ? 2 * l->room : 64;
        dp_value **more = dp_realloc(DP_MEM_GRAPH, l->twins, room * sizeof *more);
        if (!more)
            return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory to compile: free some");
        l->twins = more;
        l->room = room;
    }
    l->twins[l->n_twins++] = twin;
    value->mark = (uint32_t)l->n_twins;
    return DP_OK;
}

static bool is_image(const dp_value *value) {
    return value && value->tensor.rank == 4 && dp_value_is_real(value);
}

/* A new value with channels last, the twin of `value`, whose name says so. */
static dp_value *new_twin(layout *l, dp_value *value) {
    const int64_t *d = value->tensor.dims, dims[] = {d[0], d[2], d[3], d[1]};
    size_t bytes = strlen(value->name) + sizeof DP_NAME_LAST;
    char *name = dp_model_alloc(l->graph->model, bytes);
    if (!name)
        return NULL;
    snprintf(name, bytes, "%s%s", value->name, DP_NAME_LAST);
    dp_value *twin = dp_value_new(l->graph->model, name);
    if (!twin || set_twin(l, value, twin) != DP_OK)
        return NULL;
    dp_value_shape(twin, value->tensor.element, dims, 4);
    return twin;
}

static dp_value *constant_twin(layout *l, dp_value *value) {
    const int64_t *d = value->tensor.dims, dims[] = {d[0], d[2], d[3], d[1]}, pixels = d[2] * d[3];
    dp_value *twin = dp_value_constant(l->graph->model, NULL, value->tensor.element, dims, 4, NULL);
    if (!twin || set_twin(l, value, twin) != DP_OK)
        return NULL;
    const size_t size = value->tensor.element == DP_F32 ? 4 : 2;
    const char *from = value->tensor.base;
    char *to = twin->tensor.base;
    for (int64_t n = 0; n < d[0]; n++)
        for (int64_t c = 0; c < d[1]; c++)
            for (int64_t p = 0; p < pixels; p++, from += size)
                memcpy(to + (size_t)((n * pixels + p) * d[1] + c) * size, from, size);
    return twin;
}

/* to = from with its dims in another order, in front of `before`: a reshape where no element moves. */
static dp_status turn(layout *l, dp_value *from, dp_value *to, const int64_t *order, dp_node *before) {
    const int64_t *d = to->tensor.dims;
    int64_t channels = order[1] == 3 ? d[1] : d[3], count = dp_tensor_count(&to->tensor);
    bool is_free = channels == 1 || count == d[0] * channels;
    dp_node *node = dp_node_new(l->graph, before, is_free ? "Reshape" : "TransposeD", to->name, is_free ? 2 : 1, 1);
    if (!node)
        return DP_ERR_OUT_OF_MEMORY;
    node->inputs[0] = from;
    dp_node_output(node, 0, to);
    if (!is_free)
        return dp_node_set_integers(node, "perm", order, 4);
    node->inputs[1] = dp_value_integers(l->graph->model, d, 4);
    return node->inputs[1] ? DP_OK : DP_ERR_OUT_OF_MEMORY;
}

/* The value with channels last, made if it has to be. NULL: no memory. */
static dp_value *want_last(layout *l, dp_value *value, dp_node *before) {
    static const int64_t order[] = {0, 2, 3, 1};
    dp_value *twin = twin_of(l, value);
    if (twin)
        return twin;
    if (value->is_constant)
        return constant_twin(l, value);
    twin = new_twin(l, value);
    return twin && turn(l, value, twin, order, before) == DP_OK ? twin : NULL;
}

static bool is_input(const dp_graph *graph, const dp_value *value) {
    for (int i = 0; i < graph->n_inputs; i++)
        if (graph->inputs[i] == value)
            return true;
    return false;
}

/* Gives a value that went over its elements in the old order again. */
static dp_status want_first(layout *l, dp_value *value, dp_node *before) {
    static const int64_t order[] = {0, 3, 1, 2};
    dp_value *twin = value ? twin_of(l, value) : NULL;
    if (!twin || value->producer || value->is_constant || is_input(l->graph, value))
        return DP_OK;
    return turn(l, twin, value, order, before);
}

/* The node's output from now on has channels last. */
static dp_status give_last(layout *l, dp_node *node) {
    dp_value *value = node->outputs[0], *twin = new_twin(l, value);
    if (!twin)
        return DP_ERR_OUT_OF_MEMORY;
    value->producer = NULL;
    dp_node_output(node, 0, twin);
    return DP_OK;
}

/* Convolutions. */

static dp_status set_last(layout *l, dp_node *old, dp_node *node) {
    dp_value *value = old->outputs[0], *twin = new_twin(l, value);
    if (!twin)
        return DP_ERR_OUT_OF_MEMORY;
    dp_node_remove(old);
    dp_node_output(node, 0, twin);
    return DP_OK;
}

static dp_status convolution(layout *l, dp_node *node, int *changes) {
    dp_node *made = NULL;
    if (!dp_panel_fits(node))
        return DP_OK;
    if (dp_panel_tiles(node)) {
        dp_value *x = want_last(l, node->inputs[0], node), *twin = new_twin(l, node->outputs[0]);
        if (!x || !twin)
            return DP_ERR_OUT_OF_MEMORY;
        dp_status made_tiles = dp_panel_make_tiles(node, x, twin);
        dp_node_remove(node);
        ++*changes;
        return made_tiles;
    }
    dp_status status = dp_panel_make(node, &made);
    if (status != DP_OK)
        return status;
    made->inputs[0] = want_last(l, node->inputs[0], made);
    ++*changes;
    return made->inputs[0] ? set_last(l, node, made) : DP_ERR_OUT_OF_MEMORY;
}

/* What follows. */

static bool is_listed(const char *type, const char *const *types) {
    for (; *types; types++)
        if (strcmp(type, *types) == 0)
            return true;
    return false;
}

static const char *const elementwise[] = {
    "Relu",      "Sigmoid",     "Tanh", "HardSwish", "HardSigmoid", "Swish",   "GeluV2", "Gelu",    "Adds",    "Muls",
    "LeakyRelu", "ClipByValue", "Exp",  "Log",       "Sqrt",        "Rsqrt",   "Abs",    "Neg",     "Square",  "Erf",
    "Elu",       "Add",         "Sub",  "Mul",       "Div",         "RealDiv", "Pow",    "Maximum", "Minimum", NULL};

/* An operand beside an image of this shape: the same, one number, or one per channel (and per image). */
typedef enum beside { BESIDE_NOTHING, BESIDE_IMAGE, BESIDE_NUMBER, BESIDE_CHANNELS } beside;
static beside how_beside(const dp_value *value, const dp_value *image) {
    const dp_tensor *t = &value->tensor, *y = &image->tensor;
    if (t->element != y->element)
        return BESIDE_NOTHING;
    if (dp_value_same_shape(value, image))
        return BESIDE_IMAGE;
    if (dp_tensor_count(t) == 1)
        return value->is_constant ? BESIDE_NUMBER : BESIDE_NOTHING;
    if (t->rank < 3 || t->dims[t->rank - 1] != 1 || t->dims[t->rank - 2] != 1 || t->dims[t->rank - 3] != y->dims[1])
        return BESIDE_NOTHING;
    if (t->rank == 4)
        return t->dims[0] == y->dims[0] || t->dims[0] == 1 ? BESIDE_CHANNELS : BESIDE_NOTHING;
    return value->is_constant ? BESIDE_CHANNELS : BESIDE_NOTHING;
}

static bool any_twin(const layout *l, const dp_node *node) {
    for (int i = 0; i < node->n_inputs; i++)
        if (is_image(node->inputs[i]) && !node->inputs[i]->is_constant && twin_of(l, node->inputs[i]))
            return true;
    return false;
}

/* The operand as it stands beside an image with channels last. */
static dp_value *operand_last(layout *l, dp_value *value, beside how, dp_node *before) {
    if (how == BESIDE_NUMBER)
        return value;
    if (value->tensor.rank == 4)
        return want_last(l, value, before);
    return dp_value_constant(l->graph->model, NULL, value->tensor.element, &value->tensor.dims[0], 1,
                             value->tensor.base);
}

/* An image times factors per channel. */
static dp_status follow_scale(layout *l, dp_node *node, bool *out_done) {
    int at = how_beside(node->inputs[0], node->outputs[0]) == BESIDE_IMAGE ? 0 : 1;
    dp_value *image = node->inputs[at], *factors = node->inputs[1 - at];
    if (how_beside(image, node->outputs[0]) != BESIDE_IMAGE ||
        how_beside(factors, node->outputs[0]) != BESIDE_CHANNELS || factors->tensor.rank != 4)
        return DP_OK;
    dp_node *made = dp_node_new(l->graph, node, "LastScale", node->name, 2, 1);
    if (!made || !(made->inputs[0] = want_last(l, image, made)) || !(made->inputs[1] = want_last(l, factors, made)))
        return DP_ERR_OUT_OF_MEMORY;
    *out_done = true;
    return set_last(l, node, made);
}

static dp_status follow_elementwise(layout *l, dp_node *node, bool *out_done) {
    const dp_value *y = node->outputs[0];
    if (dp_node_is(node, "Mul")) {
        dp_status status = follow_scale(l, node, out_done);
        if (status != DP_OK || *out_done)
            return status;
    }
    for (int i = 0; i < node->n_inputs; i++)
        if (!node->inputs[i] || how_beside(node->inputs[i], y) == BESIDE_NOTHING)
            return DP_OK;
    for (int i = 0; i < node->n_inputs; i++) {
        node->inputs[i] = operand_last(l, node->inputs[i], how_beside(node->inputs[i], y), node);
        if (!node->inputs[i])
            return DP_ERR_OUT_OF_MEMORY;
    }
    *out_done = true;
    return give_last(l, node);
}

/* Where a dim of an image goes. */
static int64_t place_of(int64_t dim) {
    static const int64_t places[] = {0, 3, 1, 2};
    return places[dim < 0 ? dim + 4 : dim];
}

static dp_status follow_concat(layout *l, dp_node *node, bool *out_done) {
    for (int i = 0; i < node->n_inputs; i++)
        if (!is_image(node->inputs[i]))
            return DP_OK;
    for (int i = 0; i < node->n_inputs; i++)
        if (!(node->inputs[i] = want_last(l, node->inputs[i], node)))
            return DP_ERR_OUT_OF_MEMORY;
    *out_done = true;
    dp_status status = dp_node_set_integer(node, "concat_dim", place_of(dp_node_integer(node, "concat_dim", 0)));
    return status == DP_OK ? give_last(l, node) : status;
}

/* Mean over height and width. */
static dp_status follow_mean(layout *l, dp_node *node, bool *out_done) {
    const dp_arg *axes = dp_node_attribute(node, "axes");
    if (!axes || axes->kind != DP_ARG_INT_LIST || axes->count != 2 ||
        place_of(axes->as.integers[0]) + place_of(axes->as.integers[1]) != 3 || place_of(axes->as.integers[0]) == 0 ||
        place_of(axes->as.integers[0]) == 3)
        return DP_OK;
    *out_done = true;
    if (node->outputs[0]->tensor.rank != 4) {
        node->inputs[0] = want_last(l, node->inputs[0], node);
        return dp_node_set_integers(node, "axes", (const int64_t[]){1, 2}, 2);
    }
    dp_node *made = dp_node_new(l->graph, node, "LastMean", node->name, 1, 1);
    if (!made || !(made->inputs[0] = want_last(l, node->inputs[0], made)))
        return DP_ERR_OUT_OF_MEMORY;
    return set_last(l, node, made);
}

static dp_status follow_softmax(layout *l, dp_node *node, bool *out_done) {
    const dp_arg *axes = dp_node_attribute(node, "axes");
    if (!axes || axes->kind != DP_ARG_INT_LIST || axes->count != 1)
        return DP_OK;
    node->inputs[0] = want_last(l, node->inputs[0], node);
    *out_done = true;
    int64_t axis = place_of(axes->as.integers[0]);
    dp_status status = dp_node_set_integers(node, "axes", &axis, 1);
    return status == DP_OK ? give_last(l, node) : status;
}

static dp_status follow_window(layout *l, dp_node *node, bool *out_done) {
    dp_node *made = NULL;
    dp_status status = dp_last_make(node, &made);
    if (status != DP_OK || !made)
        return status;
    made->inputs[0] = want_last(l, node->inputs[0], made);
    *out_done = true;
    return made->inputs[0] ? set_last(l, node, made) : DP_ERR_OUT_OF_MEMORY;
}

static dp_status follow(layout *l, dp_node *node, bool *out_done) {
    if (node->n_bodies || node->n_outputs < 1 || !dp_value_is_real(node->outputs[0]) || !any_twin(l, node))
        return DP_OK;
    if (dp_node_is(node, "ReduceMeanD"))
        return follow_mean(l, node, out_done);
    if (!is_image(node->outputs[0]))
        return DP_OK;
    if (is_listed(node->type, elementwise))
        return follow_elementwise(l, node, out_done);
    if (dp_node_is(node, "ConcatD"))
        return follow_concat(l, node, out_done);
    if (dp_node_is(node, "SoftmaxV2"))
        return follow_softmax(l, node, out_done);
    return follow_window(l, node, out_done);
}

/* Transposes that the model has itself: from channels last to first the input is the twin, the other way it is the
 * result. */
static dp_status own_transpose(layout *l, dp_node *node, bool *out_done) {
    static const int64_t to_first[] = {0, 3, 1, 2}, to_last[] = {0, 2, 3, 1};
    const dp_arg *perm = dp_node_attribute(node, "perm");
    dp_value *x = node->inputs[0];
    if (!dp_node_is(node, "TransposeD") || !is_image(x) || !perm || perm->count != 4)
        return DP_OK;
    if (memcmp(perm->as.integers, to_first, sizeof to_first) == 0)
        return twin_of(l, node->outputs[0]) || x->is_constant ? DP_OK : set_twin(l, node->outputs[0], x);
    if (memcmp(perm->as.integers, to_last, sizeof to_last) == 0 && twin_of(l, x) &&
        !dp_graph_gives(l->graph, node->outputs[0])) {
        dp_graph_replace(l->graph, node->outputs[0], twin_of(l, x));
        dp_node_remove(node);
        *out_done = true;
    }
    return DP_OK;
}

static bool has_bodies(const dp_graph *graph) {
    for (const dp_node *node = graph->first; node; node = node->next)
        if (node->n_bodies)
            return true;
    return false;
}

/* Quantised pictures have channels last anyway: floats that come out of them have, too, and those that are there go in as they are. */
static dp_status pictures(layout *l, dp_node *node, bool *out_done) {
    dp_value *image = dp_node_is(node, "QuantizePicture") ? twin_of(l, node->inputs[0]) : NULL;
    if (image)
        node->inputs[0] = image;
    *out_done = image || (dp_node_is(node, "DequantizePicture") && !dp_graph_gives(l->graph, node->outputs[0]));
    if (!*out_done)
        return DP_OK;
    dp_status status = image ? DP_OK : give_last(l, node);
    return status == DP_OK ? dp_node_set_integer(node, "last", 1) : status;
}

static dp_status visit(layout *l, dp_node *node, int *changes) {
    bool done = false;
    dp_status status = DP_OK;
    if (dp_node_is(node, "Conv2D") || dp_node_is(node, "Conv2DTransposeD")) {
        int before = *changes;
        status = convolution(l, node, changes);
        done = *changes > before;
    }
    if (status == DP_OK && !done)
        status = pictures(l, node, &done);
    if (status == DP_OK && !done)
        status = own_transpose(l, node, &done);
    if (status == DP_OK && !done)
        status = follow(l, node, &done);
    for (int i = 0; i < node->n_inputs && status == DP_OK && !done; i++)
        status = want_first(l, node->inputs[i], node);
    return status;
}

dp_status dp_pass_layout(dp_graph *graph, int *out_changes) {
    layout l = {.graph = graph};
    if (has_bodies(graph)) /* their graphs read values of this one */
        return DP_OK;
    dp_graph_clear_marks(graph);
    dp_status status = DP_OK;
    for (dp_node *node = graph->first, *next; node && status == DP_OK; node = next) {
        next = node->next;
        status = visit(&l, node, out_changes);
    }
    for (int i = 0; i < graph->n_outputs && status == DP_OK; i++)
        status = want_first(&l, graph->outputs[i], NULL);
    dp_free(l.twins);
    return status;
}
