#include "graph/program.h"

#include <stddef.h>
#include <string.h>

#include "graph/dump.h"
#include "graph/infer.h"
#include "graph/storage.h"
#include "runtime/pool.h"
#include "runtime/profile.h"

/* Where the storage of a value is. */
typedef enum place_kind { PLACE_WORK, PLACE_INPUT, PLACE_OUTPUT, PLACE_CONSTANT } place_kind;

typedef struct place {
    place_kind kind;
    size_t offset; /* in the work memory, or the number of the input or output */
    void *contents;
} place;

/* A tensor of a plan and the place that its address comes from. */
typedef struct patch {
    void **base;
    uint32_t place;
} patch;

struct dp_program {
    dp_arena arena;
    dp_plan **plans;
    place *places; /* by value number */
    patch *patches;
    dp_storage storage;
    const char **names; /* of nodes, by step */
    dp_tensor *most;    /* views of the tensors of the plans that find dims, as they were made, by patch */
    size_t work_bytes, workspace_offset;
    uint32_t n_plans, n_values, n_patches;
};

static bool is_number(const dp_program *p, const void *base) {
    return (uintptr_t)base - 1 < p->n_values;
}

static dp_status no_memory(void) {
    return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for a program: free some");
}

static dp_status number_values(dp_program *p, dp_graph *graph) {
    uint32_t n = 0;
    for (int i = 0; i < graph->n_inputs; i++)
        graph->inputs[i]->tensor.base = (void *)(uintptr_t)++n;
    for (dp_node *node = graph->first; node; node = node->next) {
        for (int i = 0; i < node->n_outputs; i++) {
            if (!node->outputs[i])
                continue;
            if (!dp_value_is_known(node->outputs[i]))
                return dp_fail(DP_ERR_UNSUPPORTED, "the shape of \"%s\" is not known before the model runs",
                               node->outputs[i]->name);
            node->outputs[i]->tensor.base = (void *)(uintptr_t)++n;
        }
        p->n_plans += strcmp(node->type, "ConcatD") == 0 ? (uint32_t)node->n_inputs + 1 : 1;
    }
    dp_storage *s = &p->storage;
    p->n_values = s->n_values = n;
    p->places = dp_arena_alloc(&p->arena, n * sizeof(place));
    s->spans = dp_arena_alloc(&p->arena, n * sizeof(dp_span));
    s->root = dp_arena_alloc(&p->arena, n * sizeof(uint32_t));
    s->is_work = dp_arena_alloc(&p->arena, n * sizeof(bool));
    s->is_part = dp_arena_alloc(&p->arena, n * sizeof(bool));
    p->plans = dp_arena_alloc(&p->arena, p->n_plans * sizeof(dp_plan *));
    p->names = dp_arena_alloc(&p->arena, p->n_plans * sizeof(char *));
    return p->places && s->spans && s->root && s->is_work && s->is_part && p->plans && p->names ? DP_OK : no_memory();
}

/* Storage of a value: work memory, unless it comes in or goes out. */
static void find_places(dp_program *p, dp_graph *graph) {
    for (int i = 0; i < graph->n_inputs; i++)
        p->places[i] = (place){PLACE_INPUT, (size_t)i, NULL};
    for (int i = 0; i < graph->n_outputs; i++) {
        const dp_value *value = graph->outputs[i];
        place *at = value->is_constant ? NULL : &p->places[dp_value_number(value)];
        if (at && at->kind == PLACE_WORK)
            *at = (place){PLACE_OUTPUT, (size_t)i, NULL};
    }
    for (uint32_t i = 0; i < p->n_values; i++)
        p->storage.is_work[i] = p->places[i].kind == PLACE_WORK;
    dp_storage_find(&p->storage, graph);
}

static dp_status make_plan(dp_program *p, const dp_node *node) {
    uint32_t step = p->n_plans;
    dp_status status = dp_node_prepare(node, &p->plans[step]);
    if (status != DP_OK)
        return status;
    p->n_plans++;
    if (p->plans[step]->finds_dims && !dp_node_finds_dims(node))
        return dp_fail(DP_ERR_INTERNAL, "%s finds dims, but its function does not say so", node->type);
    p->names[step] = node->name;
    p->n_patches += (uint32_t)p->plans[step]->n_tensors;
    return DP_OK;
}

/* Whether the value lies in its place in this concatenation; it may be a part of another one. */
static bool lies_in(const dp_program *p, const dp_value *value, const dp_node *concat) {
    if (!value || value->is_constant)
        return false;
    uint32_t n = dp_value_number(value);
    return p->storage.is_part[n] && p->storage.root[n] == dp_value_number(concat->outputs[0]);
}

/* The parts that do not lie in their place yet are copied there, one by one. False: none does. */
static bool has_parts(const dp_program *p, const dp_node *node) {
    bool any = false;
    for (int i = 0;
         strcmp(node->type, "ConcatD") == 0 && node->n_outputs == 1 && node->outputs[0] && i < node->n_inputs; i++)
        any |= lies_in(p, node->inputs[i], node);
    return any;
}

static dp_status copy_other_parts(dp_program *p, const dp_node *node) {
    dp_value *whole = node->outputs[0], part = *whole, *to = &part;
    int axis = (int)dp_node_integer(node, "concat_dim", 0);
    axis = axis < 0 ? axis + whole->tensor.rank : axis;
    dp_node copy = {.name = node->name, .type = "Identity", .outputs = &to, .n_inputs = 1, .n_outputs = 1};
    part.tensor.offset = 0;
    for (int i = 0; i < node->n_inputs; i++) {
        dp_value *value = node->inputs[i];
        part.tensor.dims[axis] = value->tensor.dims[axis];
        if (!lies_in(p, value, node)) {
            copy.inputs = &value;
            dp_status status = make_plan(p, &copy);
            if (status != DP_OK)
                return status;
        }
        part.tensor.offset += value->tensor.dims[axis] * whole->tensor.strides[axis];
    }
    return DP_OK;
}

static dp_status make_plans(dp_program *p, dp_graph *graph) {
    const uint32_t *root = p->storage.root;
    p->n_plans = 0;
    for (dp_node *node = graph->first; node; node = node->next) {
        if (dp_node_is_alias(node) && root[dp_value_number(node->outputs[0])] == root[dp_value_number(node->inputs[0])])
            continue;
        dp_status status = has_parts(p, node) ? copy_other_parts(p, node) : make_plan(p, node);
        if (status != DP_OK)
            return status;
    }
    size_t workspace = 0;
    for (uint32_t i = 0; i < p->n_plans; i++)
        if (p->plans[i]->workspace_bytes > workspace)
            workspace = p->plans[i]->workspace_bytes;
    p->workspace_offset = p->work_bytes;
    p->work_bytes += (workspace + 63) & ~(size_t)63;
    return DP_OK;
}

static dp_status make_patches(dp_program *p) {
    p->patches = dp_arena_alloc(&p->arena, p->n_patches * sizeof(patch));
    if (!p->patches)
        return no_memory();
    bool finds_dims = false;
    for (uint32_t i = 0; i < p->n_plans; i++)
        finds_dims |= p->plans[i]->finds_dims;
    if (finds_dims && !(p->most = dp_arena_alloc(&p->arena, p->n_patches * sizeof *p->most)))
        return no_memory();
    p->n_patches = 0;
    for (uint32_t i = 0; i < p->n_plans; i++) {
        dp_plan *plan = p->plans[i];
        for (int t = 0; t < plan->n_tensors; t++) {
            void **base = &plan->tensors[t].view.base;
            if (!is_number(p, *base))
                continue;
            if (plan->finds_dims)
                p->most[p->n_patches] = plan->tensors[t].view;
            p->patches[p->n_patches++] = (patch){base, p->storage.root[(uintptr_t)*base - 1]};
        }
    }
    return DP_OK;
}

/* Outputs that no step writes: inputs and constants that go straight through, and values that go out twice. */
static dp_status check_outputs(const dp_program *p, const dp_graph *graph) {
    for (int i = 0; i < graph->n_outputs; i++) {
        const dp_value *value = graph->outputs[i];
        const place *at = value->is_constant ? NULL : &p->places[dp_value_number(value)];
        if (!at || at->kind != PLACE_OUTPUT || at->offset != (size_t)i)
            return dp_fail(DP_ERR_INTERNAL, "output \"%s\" has no node of its own", value->name);
    }
    return DP_OK;
}

static dp_status build(dp_program *p, dp_graph *graph) {
    dp_status status = number_values(p, graph);
    if (status != DP_OK)
        return status;
    find_places(p, graph);
    status = check_outputs(p, graph);
    if (status == DP_OK)
        status = dp_spans_place(p->storage.spans, p->n_values, &p->work_bytes);
    for (uint32_t i = 0; i < p->n_values; i++)
        if (p->places[i].kind == PLACE_WORK)
            p->places[i].offset = p->storage.spans[i].offset;
    if (status == DP_OK)
        status = make_plans(p, graph);
    return status == DP_OK ? make_patches(p) : status;
}

dp_status dp_program_new(dp_graph *graph, dp_program **out_program) {
    dp_program *p = dp_alloc(DP_MEM_GRAPH, sizeof *p);
    if (!p)
        return no_memory();
    p->arena.kind = DP_MEM_GRAPH;
    dp_status status = build(p, graph);
    if (status == DP_OK)
        *out_program = p;
    else
        dp_program_free(p);
    return status;
}

void dp_program_free(dp_program *p) {
    if (!p)
        return;
    for (uint32_t i = 0; p->plans && i < p->n_plans; i++)
        dp_plan_free(p->plans[i]);
    dp_arena_free(&p->arena);
    dp_free(p);
}

size_t dp_program_work_bytes(const dp_program *p) {
    return p->work_bytes;
}

static dp_tensor *view_of(const patch *at) {
    return (dp_tensor *)((char *)at->base - offsetof(dp_tensor, base));
}

bool dp_program_found(const dp_program *p, int index, dp_tensor *out_view) {
    for (uint32_t i = 0; p->most && i < p->n_patches; i++) {
        const place *at = &p->places[p->patches[i].place];
        if (!p->most[i].base || at->kind != PLACE_OUTPUT || at->offset != (size_t)index)
            continue;
        *out_view = *view_of(&p->patches[i]);
        return true;
    }
    return false;
}

static dp_status run_plans(dp_program *p, void *work) {
    for (uint32_t i = 0; i < p->n_plans; i++) {
        dp_plan *plan = p->plans[i];
        plan->workspace = (char *)work + p->workspace_offset;
        if (dp_profile_on())
            dp_profile_node(p->names[i]);
        dp_status status = dp_plan_run(plan);
        dp_profile_node(NULL);
        if (status != DP_OK) {
            char reason[512];
            snprintf(reason, sizeof reason, "%s", dp_fail_message());
            return dp_fail(status, "node \"%s\" (%s): %s", p->names[i], plan->op->name, reason);
        }
        if (DP_UNLIKELY(dp_dump_on()))
            dp_dump_plan(p->names[i], plan);
    }
    return DP_OK;
}

dp_status dp_program_run(dp_program *p, void *const *inputs, void *const *outputs, void *work) {
    for (uint32_t i = 0; i < p->n_patches; i++) {
        const place *at = &p->places[p->patches[i].place];
        if (p->most && p->most[i].base)
            *view_of(&p->patches[i]) = p->most[i];
        *p->patches[i].base = at->kind == PLACE_INPUT    ? inputs[at->offset]
                              : at->kind == PLACE_OUTPUT ? outputs[at->offset]
                                                         : (char *)work + at->offset;
    }
    dp_pool_attend();
    dp_status status = run_plans(p, work);
    dp_pool_leave();
    return status;
}
