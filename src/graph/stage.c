/* Stages: how they are made, found and given up. */
#include "graph/stage.h"

#include <string.h>

#include "graph/clone.h"
#include "graph/onnx/lower.h"
#include "graph/passes/passes.h"

static dp_status no_memory(void) {
    return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for a part of a model: free some");
}

/* Splitting a graph that was lowered in part. */

/* Marks while a graph is split: made by what is not lowered, and found to be read by it. */
enum { MADE = 1, READ = 2 };

static void clear(dp_value *value, void *data) {
    (void)data;
    value->mark = 0;
}

static void mark_made(dp_graph *graph) {
    for (int i = 0; graph->outer && i < graph->n_inputs; i++)
        graph->inputs[i]->mark = MADE;
    for (dp_node *node = graph->first; node; node = node->next) {
        for (int i = 0; i < node->n_outputs; i++)
            if (node->outputs[i])
                node->outputs[i]->mark = MADE;
        for (int i = 0; i < node->n_bodies; i++)
            mark_made(node->bodies[i].graph);
    }
}

typedef struct collector {
    dp_stage *stage; /* lives is NULL while they are counted */
    int n;
} collector;

static void collect(dp_value *value, void *data) {
    collector *c = data;
    if (value->is_constant || value->mark)
        return;
    value->mark = READ;
    if (c->stage->lives)
        c->stage->lives[c->n].value = value;
    c->n++;
}

/* The values that `rest` and `apart` read and do not make. */
static dp_status find_lives(dp_stage *stage, dp_model *model) {
    collector c = {stage, 0};
    int n_outputs = stage->apart ? stage->apart->n_outputs : 0;
    for (int again = 0; again < 2; again++) {
        c.n = 0;
        dp_graph_visit(stage->rest, clear, NULL);
        mark_made(stage->rest);
        dp_graph_visit(stage->rest, collect, &c);
        if (!again && !(stage->lives = dp_model_alloc(model, (size_t)(c.n + n_outputs) * sizeof *stage->lives)))
            return DP_ERR_OUT_OF_MEMORY;
    }
    stage->n_lives = c.n;
    stage->n_known = c.n + n_outputs;
    for (int i = 0; i < n_outputs; i++)
        stage->lives[c.n + i].value = stage->apart->outputs[i];
    return DP_OK;
}

/* Nodes from `first` on go to the end of another graph. */
static void move_rest(dp_node *first, dp_graph *to) {
    dp_graph *from = first ? first->graph : NULL;
    if (!first)
        return;
    to->first = first;
    to->last = from->last;
    from->last = first->previous;
    *(first->previous ? &first->previous->next : &from->first) = NULL;
    first->previous = NULL;
    for (dp_node *node = first; node; node = node->next) {
        node->graph = to;
        to->n_nodes++;
        from->n_nodes--;
    }
}

/* What the program must give: values that are read later and are no inputs. */
static dp_status place_lives(dp_stage *stage, dp_graph *graph) {
    graph->n_outputs = 0;
    graph->outputs = dp_model_alloc(graph->model, (size_t)stage->n_lives * sizeof(dp_value *));
    if (!graph->outputs)
        return DP_ERR_OUT_OF_MEMORY;
    for (int i = 0; i < stage->n_lives; i++) {
        dp_live *live = &stage->lives[i];
        live->output = live->input = -1;
        for (int k = 0; k < graph->n_inputs; k++)
            if (graph->inputs[k] == live->value)
                live->input = k;
        if (live->input >= 0)
            continue;
        live->output = graph->n_outputs;
        graph->outputs[graph->n_outputs++] = live->value;
    }
    return DP_OK;
}

static dp_status split(dp_stage *stage, dp_model *model, const dp_onnx_cut *cut) {
    dp_graph *graph = model->graph;
    stage->rest = dp_graph_new(graph, "rest");
    if (!stage->rest)
        return DP_ERR_OUT_OF_MEMORY;
    stage->rest->outer = NULL; /* it has no inputs of its own */
    move_rest(cut->node, stage->rest);
    stage->rest->outputs = graph->outputs;
    stage->rest->n_outputs = graph->n_outputs;
    stage->apart = cut->runs_apart ? cut->node : NULL;
    dp_status status = find_lives(stage, model);
    if (status != DP_OK)
        return status;
    for (int i = 0; cut->node && i < cut->node->n_inputs && i < 32; i++)
        for (int k = 0; k < stage->n_lives; k++)
            if (cut->wanted >> i & 1 && stage->lives[k].value == cut->node->inputs[i])
                stage->lives[k].wanted = true;
    if (stage->apart) /* it was there while the lives were collected, but is no part of what follows */
        dp_node_remove(stage->apart);
    return place_lives(stage, graph);
}

static dp_status make_program(dp_staged *staged, dp_stage *stage) {
    dp_graph *graph = stage->model->graph;
    dp_status status = dp_passes_run(graph, NULL);
    if (status != DP_OK || !graph->first)
        return status;
    status = dp_program_new(graph, &stage->program);
    if (status != DP_OK)
        return status;
    size_t needed = dp_program_work_bytes(stage->program) + 1;
    if (needed > staged->work_bytes) {
        void *work = dp_alloc(DP_MEM_GRAPH, needed);
        if (!work)
            return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory to run a model (%zu bytes): free some", needed);
        dp_free(staged->work);
        staged->work = work;
        staged->work_bytes = needed;
    }
    return DP_OK;
}

static dp_status fill(dp_staged *staged, dp_stage *stage) {
    dp_onnx_cut cut;
    dp_graph *graph = stage->model->graph;
    dp_status status = dp_onnx_lower(graph, staged->opset, &cut);
    if (status != DP_OK)
        return status;
    stage->is_last = !cut.stopped;
    if (cut.stopped)
        status = split(stage, stage->model, &cut);
    if (status == DP_OK)
        status = make_program(staged, stage);
    stage->bytes = dp_arena_bytes(&stage->model->arena);
    staged->bytes += stage->bytes;
    size_t ends = (size_t)(graph->n_inputs + graph->n_outputs);
    if (status == DP_OK && !(stage->addresses = dp_model_alloc(stage->model, ends * sizeof(void *))))
        status = DP_ERR_OUT_OF_MEMORY;
    return status;
}

dp_status dp_stage_new(dp_staged *staged, dp_model *model, dp_stage **out_stage) {
    dp_stage *stage = dp_alloc(DP_MEM_GRAPH, sizeof *stage);
    if (!stage) {
        dp_model_free(model);
        return no_memory();
    }
    stage->model = model;
    staged->n_stages++;
    dp_status status = fill(staged, stage);
    if (status == DP_OK)
        *out_stage = stage;
    else
        dp_stage_free(staged, stage);
    return status;
}

/* Giving up. Chains of stages may be long: no recursion. */

static void push(dp_stage **list, dp_stage *stages) {
    while (stages) {
        dp_stage *next = stages->next;
        stages->next = *list;
        *list = stages;
        stages = next;
    }
}

/* A model's values are borrowed by those made from it: these go first. */
void dp_stage_free(dp_staged *staged, dp_stage *stage) {
    dp_stage *todo = NULL, *done = NULL;
    if (!stage)
        return;
    stage->next = NULL;
    push(&todo, stage);
    while (todo) {
        dp_stage *one = todo;
        todo = one->next;
        push(&todo, one->children);
        push(&todo, one->bodies);
        one->next = done;
        done = one;
    }
    while (done) {
        dp_stage *one = done;
        done = one->next;
        staged->bytes -= one->bytes;
        dp_program_free(one->program);
        dp_model_free(one->model);
        dp_free(one->key);
        dp_free(one);
        staged->n_stages--;
    }
}

static bool drop_last(dp_staged *staged, dp_stage **list) {
    if (!*list || !(*list)->next)
        return false;
    while ((*list)->next)
        list = &(*list)->next;
    dp_stage *last = *list;
    *list = NULL;
    dp_stage_free(staged, last);
    return true;
}

/* The oldest choice of the first stage that has more than one; along the children, then along the first bodies. */
static bool drop_one(dp_staged *staged, dp_stage *stage) {
    for (; stage; stage = stage->children ? stage->children : stage->bodies)
        if (drop_last(staged, &stage->children) || drop_last(staged, &stage->bodies))
            return true;
    return false;
}

void dp_stages_trim(dp_staged *staged, dp_stage *stage, int most) {
    while ((staged->n_stages > most || staged->bytes > DP_STAGES_BYTES) && drop_one(staged, stage))
        ;
}

dp_stage *dp_stage_find(dp_stage **list, const char *key, size_t key_bytes) {
    for (dp_stage **at = list; *at; at = &(*at)->next) {
        dp_stage *stage = *at;
        if (stage->key_bytes != key_bytes || memcmp(stage->key, key, key_bytes) != 0)
            continue;
        *at = stage->next;
        stage->next = *list;
        *list = stage;
        return stage;
    }
    return NULL;
}

void dp_stage_keep(dp_stage **list, dp_stage *stage, char *key, size_t key_bytes) {
    stage->key = key;
    stage->key_bytes = key_bytes;
    stage->next = *list;
    *list = stage;
}
