/* Loop and Scan: bodies that run as often as the model's values say. Meanings are those of the ONNX operator
 * specification. */
#include <string.h>

#include "graph/stage.h"

/* Results of all rounds, one behind the other. */
typedef struct stack {
    dp_tensor each; /* shape of one */
    char *bytes;
    size_t used, room;
    int64_t count;
} stack;

/* One run of the node: its values while the rounds go on. */
typedef struct rounds {
    dp_staged *staged;
    dp_stage *stage;
    const dp_node *node;
    const dp_graph *body;
    dp_item *known;
    dp_item *inputs;  /* of the body: the formal ones, then what is known around it */
    dp_item *outputs; /* of the body */
    stack *stacks;
    int n_formal, n_state, n_stacks;
    int first_state, first_output; /* of the states among the formal inputs, and among the body's outputs */
} rounds;

static dp_status complain(const dp_node *node, const char *what) {
    return dp_fail(DP_ERR_ARGUMENT, "node \"%s\" (%s): %s", node->name, node->type, what);
}

/* Input i of the node; NULL: absent. */
static dp_item read_input(const rounds *r, int i) {
    const dp_value *value = i < r->node->n_inputs ? r->node->inputs[i] : NULL;
    if (!value)
        return (dp_item){.tensor = {.element = DP_EL_NONE}};
    if (value->is_constant)
        return (dp_item){value->tensor, NULL};
    for (int k = 0; k < r->stage->n_lives; k++)
        if (r->stage->lives[k].value == value)
            return dp_item_share(&r->known[k]);
    return (dp_item){.tensor = {.element = DP_EL_NONE}};
}

static dp_status give_room(void *data, int index, dp_tensor *tensor) {
    dp_item *items = data;
    dp_status status = dp_item_make(tensor, &items[index]);
    if (status == DP_OK)
        *tensor = items[index].tensor;
    return status;
}

static dp_status append(stack *s, const dp_item *item, const dp_node *node) {
    size_t bytes = dp_item_bytes(item);
    if (s->count == 0)
        s->each = item->tensor;
    if (item->tensor.rank != s->each.rank || item->tensor.element != s->each.element ||
        memcmp(item->tensor.dims, s->each.dims, (size_t)s->each.rank * sizeof(int64_t)) != 0)
        return complain(node, "a result that is stacked changes its shape from round to round");
    if (s->used + bytes > s->room) {
        size_t room = 2 * (s->used + bytes) + 64;
        char *more = dp_realloc(DP_MEM_GRAPH, s->bytes, room);
        if (!more)
            return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for %zu bytes of results: free some", room);
        s->bytes = more;
        s->room = room;
    }
    if (bytes)
        memcpy(s->bytes + s->used, item->tensor.base, bytes);
    s->used += bytes;
    s->count++;
    return DP_OK;
}

/* One round: the states become those of the body's outputs. */
static dp_status run_round(rounds *r) {
    dp_stage *body;
    memset(r->outputs, 0, (size_t)r->body->n_outputs * sizeof *r->outputs);
    dp_status status = dp_stage_body(r->staged, r->stage, r->inputs, r->n_formal, r->known, &body);
    if (status == DP_OK)
        status = dp_stage_run(r->staged, body, r->inputs, give_room, r->outputs);
    for (int i = 0; i < r->n_state && status == DP_OK; i++) {
        dp_item_drop(&r->inputs[r->first_state + i]);
        r->inputs[r->first_state + i] = dp_item_share(&r->outputs[r->first_output + i]);
    }
    for (int i = 0; i < r->n_stacks && status == DP_OK; i++)
        status = append(&r->stacks[i], &r->outputs[r->first_output + r->n_state + i], r->node);
    return status;
}

static void end_round(rounds *r) {
    for (int i = 0; i < r->body->n_outputs; i++)
        dp_item_drop(&r->outputs[i]);
    dp_stages_trim(r->staged, r->stage, 2 * DP_STAGES_MAX);
}

static dp_status begin(rounds *r, int first_state, int n_state, int first_output, int n_formal) {
    r->n_stacks = r->body->n_outputs - first_output - n_state;
    r->first_state = first_state;
    r->n_state = n_state;
    r->first_output = first_output;
    r->n_formal = n_formal;
    if (n_state < 0)
        return complain(r->node, "must have at least 2 inputs, the number of rounds and the condition");
    const int outputs = r->node->n_outputs, least = first_output + (outputs > n_state ? outputs : n_state);
    if (r->body->n_inputs != n_formal || r->body->n_outputs < least)
        return dp_fail(DP_ERR_ARGUMENT,
                       "node \"%s\" (%s): the body has %d inputs and %d outputs, but must have %d inputs and at least "
                       "%d outputs, to go with the node's",
                       r->node->name, r->node->type, r->body->n_inputs, r->body->n_outputs, n_formal, least);
    int n_lives = r->stage->n_lives;
    r->inputs = dp_alloc(DP_MEM_GRAPH, (size_t)(n_formal + n_lives) * sizeof *r->inputs + 1);
    r->outputs = dp_alloc(DP_MEM_GRAPH, (size_t)r->body->n_outputs * sizeof *r->outputs + 1);
    r->stacks = dp_alloc(DP_MEM_GRAPH, (size_t)r->n_stacks * sizeof *r->stacks + 1);
    if (!r->inputs || !r->outputs || !r->stacks)
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory to run a model: free some");
    for (int i = 0; i < n_lives; i++)
        r->inputs[n_formal + i] = dp_item_share(&r->known[i]);
    return DP_OK;
}

static void end(rounds *r) {
    dp_items_free(r->inputs, r->inputs ? r->n_formal + r->stage->n_lives : 0);
    dp_items_free(r->outputs, r->outputs ? r->body->n_outputs : 0);
    for (int i = 0; r->stacks && i < r->n_stacks; i++)
        dp_free(r->stacks[i].bytes);
    dp_free(r->stacks);
}

/* Element size and extents around one dim: outer x [dim] x inner bytes. */
static void extents(const dp_tensor *t, int axis, size_t *out_outer, size_t *out_inner) {
    *out_outer = 1;
    *out_inner = dp_element_bytes(t->element);
    for (int d = 0; d < t->rank; d++)
        *(d < axis ? out_outer : out_inner) *= d == axis ? 1 : (size_t)t->dims[d];
}

/* What a stack looks like when nothing was put on it: what the file says, unknown dims being 0. */
static dp_status guess_shape(const rounds *r, const dp_value *declared, stack *s) {
    s->each = declared->tensor;
    if (s->each.element == DP_EL_NONE)
        return complain(r->node, "there is no round, and the file does not say of what type the results would be");
    if (s->each.rank == DP_UNKNOWN)
        s->each.rank = 0;
    for (int d = 0; d < s->each.rank; d++)
        s->each.dims[d] = s->each.dims[d] < 0 ? 0 : s->each.dims[d];
    return DP_OK;
}

/* What is on a stack with a new dim at `axis`, the last first if `reverse`. */
static dp_status make_one(const rounds *r, const stack *s, int64_t axis, bool reverse, dp_item *out) {
    axis += axis < 0 ? s->each.rank + 1 : 0;
    if (axis < 0 || axis > s->each.rank || s->each.rank == DP_TENSOR_DIMS)
        return complain(r->node, "an axis of scan_output_axes is out of range");
    dp_tensor shape = {.element = s->each.element, .rank = s->each.rank + 1};
    for (int d = 0; d < shape.rank; d++)
        shape.dims[d] = d < axis ? s->each.dims[d] : d > axis ? s->each.dims[d - 1] : s->count;
    dp_status status = dp_item_make(&shape, out);
    if (status != DP_OK || dp_item_bytes(out) == 0)
        return status;
    size_t outer, inner, n = (size_t)s->count;
    extents(&shape, (int)axis, &outer, &inner);
    for (size_t round = 0; round < n; round++)
        for (size_t o = 0; o < outer; o++)
            memcpy((char *)out->tensor.base + (o * n + (reverse ? n - 1 - round : round)) * inner,
                   s->bytes + (round * outer + o) * inner, inner);
    return DP_OK;
}

/* The rounds' results. */
static dp_status unstack(const rounds *r, int index, int64_t axis, bool reverse, dp_item *out) {
    stack *s = &r->stacks[index];
    dp_status status = s->count ? DP_OK : guess_shape(r, r->body->outputs[r->first_output + r->n_state + index], s);
    return status == DP_OK ? make_one(r, s, axis, reverse, out) : status;
}

/* The node's outputs: states, then stacks. */
static dp_status give_states(rounds *r) {
    for (int i = 0; i < r->n_state && i < r->node->n_outputs; i++)
        if (r->node->outputs[i])
            r->known[r->stage->n_lives + i] = dp_item_share(&r->inputs[r->first_state + i]);
    return DP_OK;
}

/* Loop. */

static dp_status read_scalar(const rounds *r, int i, int64_t otherwise, int64_t *out) {
    dp_item item = read_input(r, i);
    *out = otherwise;
    if (item.tensor.element == DP_EL_NONE)
        return DP_OK;
    bool fine = dp_tensor_count(&item.tensor) == 1;
    if (fine && item.tensor.element == DP_I64)
        *out = *(const int64_t *)item.tensor.base;
    else if (fine && item.tensor.element == DP_EL_BOOL)
        *out = *(const uint8_t *)item.tensor.base != 0;
    else
        fine = false;
    dp_item_drop(&item);
    return fine ? DP_OK : complain(r->node, "the number of rounds must be one int64, the condition one bool");
}

/* A formal input of one number, with the rank that the body asks for. */
static dp_item scalar_for(const dp_value *formal, int element, void *at) {
    dp_item item = {
        .tensor = {.element = element, .rank = formal->tensor.rank == 1, .dims = {1}, .strides = {1}, .base = at}};
    return item;
}

static dp_status run_loop(rounds *r) {
    int64_t most, go_on, round = 0;
    uint8_t condition = 1;
    int n_state = r->node->n_inputs - 2;
    dp_status status = begin(r, 2, n_state, 1, n_state + 2);
    if (status == DP_OK)
        status = read_scalar(r, 0, INT64_MAX, &most);
    if (status == DP_OK)
        status = read_scalar(r, 1, 1, &go_on);
    if (status != DP_OK)
        return status;
    r->inputs[0] = scalar_for(r->body->inputs[0], DP_I64, &round);
    r->inputs[1] = scalar_for(r->body->inputs[1], DP_EL_BOOL, &condition);
    for (int i = 0; i < n_state; i++) {
        r->inputs[2 + i] = read_input(r, 2 + i);
        if (r->inputs[2 + i].tensor.element == DP_EL_NONE)
            return complain(r->node, "an initial value is missing");
    }
    for (; round < most && go_on && status == DP_OK; round++) {
        status = run_round(r);
        const dp_tensor *next = &r->outputs[0].tensor;
        if (status == DP_OK && (next->element != DP_EL_BOOL || dp_tensor_count(next) != 1))
            status = complain(r->node, "the body's first output must be one bool");
        go_on = status == DP_OK && *(const uint8_t *)next->base;
        end_round(r);
    }
    if (status == DP_OK)
        status = give_states(r);
    for (int i = n_state; i < r->node->n_outputs && status == DP_OK; i++)
        if (r->node->outputs[i])
            status = unstack(r, i - n_state, 0, false, &r->known[r->stage->n_lives + i]);
    return status;
}

/* Scan. */

static int64_t number_of(const dp_node *node, const char *list, int i) {
    const dp_arg *arg = dp_node_attribute(node, list);
    return arg && arg->kind == DP_ARG_INT_LIST && i < arg->count ? arg->as.integers[i] : 0;
}

/* Element `index` along `axis`, without that dim. */
static dp_status take_slice(const dp_item *from, int axis, int64_t index, dp_item *out) {
    dp_tensor shape = {.element = from->tensor.element, .rank = from->tensor.rank - 1};
    for (int d = 0; d < shape.rank; d++)
        shape.dims[d] = from->tensor.dims[d < axis ? d : d + 1];
    dp_status status = dp_item_make(&shape, out);
    if (status != DP_OK || dp_item_bytes(out) == 0)
        return status;
    size_t outer, inner, n = (size_t)from->tensor.dims[axis];
    extents(&from->tensor, axis, &outer, &inner);
    for (size_t o = 0; o < outer; o++)
        memcpy((char *)out->tensor.base + o * inner, (char *)from->tensor.base + (o * n + (size_t)index) * inner,
               inner);
    return DP_OK;
}

/* Axis and length of scanned input i; all lengths must be the same. */
static dp_status check_scanned(const rounds *r, int i, const dp_item *item, int *out_axis, int64_t *length) {
    const dp_tensor *t = &item->tensor;
    int64_t axis = number_of(r->node, "scan_input_axes", i);
    if (t->element == DP_EL_NONE)
        return complain(r->node, "an input that is scanned is missing");
    axis += axis < 0 ? t->rank : 0;
    if (axis < 0 || axis >= t->rank)
        return complain(r->node, "an axis of scan_input_axes is out of range");
    if (*length >= 0 && *length != t->dims[axis])
        return complain(r->node, "the inputs that are scanned have different lengths");
    *length = t->dims[axis];
    *out_axis = (int)axis;
    return DP_OK;
}

enum { SCANNED_MAX = 64 };

/* directions: the attribute that says which inputs are read from their ends. */
static dp_status scan_rounds(rounds *r, const dp_item *scanned, int n_scanned, const int *axes, int64_t length,
                             const char *directions) {
    dp_status status = DP_OK;
    for (int64_t round = 0; round < length && status == DP_OK; round++) {
        for (int i = 0; i < n_scanned && status == DP_OK; i++) {
            bool reverse = number_of(r->node, directions, i) == 1;
            dp_item_drop(&r->inputs[r->n_state + i]);
            status = take_slice(&scanned[i], axes[i], reverse ? length - 1 - round : round, &r->inputs[r->n_state + i]);
        }
        if (status == DP_OK)
            status = run_round(r);
        end_round(r);
    }
    return status;
}

static dp_status read_scanned(rounds *r, dp_item *scanned, int n_scanned) {
    int axes[SCANNED_MAX];
    int64_t length = -1;
    dp_status status = DP_OK;
    for (int i = 0; i < n_scanned && status == DP_OK; i++) {
        scanned[i] = read_input(r, r->n_state + i);
        status = check_scanned(r, i, &scanned[i], &axes[i], &length);
    }
    return status == DP_OK ? scan_rounds(r, scanned, n_scanned, axes, length, "scan_input_directions") : status;
}

static dp_status run_scan(rounds *r) {
    int64_t n_scanned = dp_node_integer(r->node, "num_scan_inputs", 0);
    dp_item scanned[SCANNED_MAX] = {{.owner = NULL}};
    if (n_scanned < 1 || n_scanned > r->node->n_inputs || n_scanned > SCANNED_MAX)
        return complain(r->node, "num_scan_inputs must be 1 to 64, and no more than there are inputs");
    int n_state = r->node->n_inputs - (int)n_scanned;
    dp_status status = begin(r, 0, n_state, 0, r->node->n_inputs);
    for (int i = 0; i < n_state && status == DP_OK; i++) {
        r->inputs[i] = read_input(r, i);
        if (r->inputs[i].tensor.element == DP_EL_NONE)
            status = complain(r->node, "an initial value is missing");
    }
    if (status == DP_OK)
        status = read_scanned(r, scanned, (int)n_scanned);
    for (int i = 0; i < n_scanned; i++)
        dp_item_drop(&scanned[i]);
    if (status == DP_OK)
        status = give_states(r);
    for (int i = n_state; i < r->node->n_outputs && status == DP_OK; i++)
        if (r->node->outputs[i])
            status = unstack(r, i - n_state, number_of(r->node, "scan_output_axes", i - n_state),
                             number_of(r->node, "scan_output_directions", i - n_state) == 1,
                             &r->known[r->stage->n_lives + i]);
    return status;
}

/*
 * Scan of operator set 8: a batch of scans, one after the other. Its inputs are lengths of the sequences, which may be
 * absent, states [batch, ...] and sequences [batch, length, ...]; its outputs states and stacks alike, what is behind
 * the end of a sequence being zeros.
 */
typedef struct batch {
    dp_item lengths, given[SCANNED_MAX], scanned[SCANNED_MAX]; /* given: states, then sequences */
    stack results[SCANNED_MAX];
    int n_state, n_scanned;
    int64_t size, longest;
} batch;

static dp_status read_batch(const rounds *r, batch *b) {
    int64_t n_scanned = dp_node_integer(r->node, "num_scan_inputs", 0), n = r->node->n_inputs - 1;
    if (n_scanned < 1 || n_scanned > n || n > SCANNED_MAX || r->node->n_outputs > SCANNED_MAX)
        return complain(r->node, "num_scan_inputs must be 1 to 64, and no more than there are inputs behind the first");
    b->n_scanned = (int)n_scanned;
    b->n_state = (int)(n - n_scanned);
    b->size = b->longest = -1;
    for (int i = 0; i < n; i++) {
        b->given[i] = read_input(r, 1 + i);
        const dp_tensor *t = &b->given[i].tensor;
        if (t->element == DP_EL_NONE || t->rank < (i < b->n_state ? 1 : 2))
            return complain(r->node, "an input is missing, or has no dimension for the batch and the sequence");
        if ((b->size >= 0 && b->size != t->dims[0]) || (i >= b->n_state && b->longest >= 0 && b->longest != t->dims[1]))
            return complain(r->node, "batches or sequences have different lengths");
        b->size = t->dims[0];
        b->longest = i < b->n_state ? b->longest : t->dims[1];
    }
    b->lengths = read_input(r, 0);
    const dp_tensor *lengths = &b->lengths.tensor;
    if (lengths->element != DP_EL_NONE && (lengths->element != DP_I64 || dp_tensor_count(lengths) != b->size))
        return complain(r->node, "sequence_lens must have an int64 for each of the batch");
    return b->size > 0 ? DP_OK : complain(r->node, "the batch is empty");
}

/* Zeros for the rounds that a short sequence does not have. */
static dp_status lengthen(const batch *b, dp_item *item) {
    dp_tensor shape = item->tensor;
    dp_item longer;
    if (shape.dims[0] == b->longest)
        return DP_OK;
    shape.dims[0] = b->longest;
    dp_status status = dp_item_make(&shape, &longer);
    if (status != DP_OK)
        return status;
    memset(longer.tensor.base, 0, dp_item_bytes(&longer));
    memcpy(longer.tensor.base, item->tensor.base, dp_item_bytes(item));
    dp_item_drop(item);
    *item = longer;
    return DP_OK;
}

static dp_status scan_one(rounds *r, batch *b, int64_t index) {
    static const int axes[SCANNED_MAX];
    int64_t length =
        b->lengths.tensor.element == DP_EL_NONE ? b->longest : ((const int64_t *)b->lengths.tensor.base)[index];
    if (length < 0 || length > b->longest)
        return complain(r->node, "a length in sequence_lens is more than the sequences have");
    dp_status status = begin(r, 0, b->n_state, 0, b->n_state + b->n_scanned);
    for (int i = 0; i < b->n_state && status == DP_OK; i++)
        status = take_slice(&b->given[i], 0, index, &r->inputs[i]);
    for (int i = 0; i < b->n_scanned && status == DP_OK; i++)
        status = take_slice(&b->given[b->n_state + i], 0, index, &b->scanned[i]);
    if (status == DP_OK)
        status = scan_rounds(r, b->scanned, b->n_scanned, axes, length, "directions");
    for (int i = 0; i < r->node->n_outputs && status == DP_OK; i++) {
        dp_item item = {.owner = NULL};
        if (i < b->n_state)
            item = dp_item_share(&r->inputs[i]);
        else if ((status = unstack(r, i - b->n_state, 0, false, &item)) == DP_OK)
            status = lengthen(b, &item);
        if (status == DP_OK)
            status = append(&b->results[i], &item, r->node);
        dp_item_drop(&item);
    }
    for (int i = 0; i < b->n_scanned; i++)
        dp_item_drop(&b->scanned[i]);
    return status;
}

static dp_status run_batch(rounds *r) {
    batch *b = dp_alloc(DP_MEM_GRAPH, sizeof *b);
    if (!b)
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory to run a model: free some");
    dp_status status = read_batch(r, b);
    for (int64_t i = 0; i < b->size && status == DP_OK; i++) {
        rounds one = *r;
        status = scan_one(&one, b, i);
        end(&one);
    }
    for (int i = 0; i < r->node->n_outputs && status == DP_OK; i++)
        if (r->node->outputs[i])
            status = make_one(r, &b->results[i], 0, false, &r->known[r->stage->n_lives + i]);
    for (int i = 0; i < SCANNED_MAX; i++) {
        dp_item_drop(&b->given[i]);
        dp_free(b->results[i].bytes);
    }
    dp_item_drop(&b->lengths);
    dp_free(b);
    return status;
}

dp_status dp_stage_apart(dp_staged *staged, dp_stage *stage, dp_item *known) {
    rounds r = {
        .staged = staged, .stage = stage, .node = stage->apart, .body = stage->apart->bodies[0].graph, .known = known};
    dp_status status = strcmp(r.node->type, "Loop") == 0 ? run_loop(&r)
                       : staged->opset < 9               ? run_batch(&r)
                                                         : run_scan(&r);
    end(&r);
    return status;
}
