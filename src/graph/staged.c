#include "graph/staged.h"

#include <string.h>

#include "graph/clone.h"
#include "graph/onnx/lower.h"
#include "graph/stage.h"

enum { CONTENTS_MAX = 1 << 20 }; /* bytes of one value whose contents decide what follows */

dp_status dp_staged_new(dp_graph *source, int opset, dp_staged **out_staged) {
    dp_status status = dp_onnx_check(source, opset);
    if (status != DP_OK)
        return status;
    dp_staged *staged = dp_alloc(DP_MEM_GRAPH, sizeof *staged);
    dp_live *lives = dp_alloc(DP_MEM_GRAPH, (size_t)source->n_inputs * sizeof *lives + 1);
    if (!staged || !lives) {
        dp_free(lives);
        dp_free(staged);
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for a model: free some");
    }
    for (int i = 0; i < source->n_inputs; i++)
        lives[i] = (dp_live){source->inputs[i], -1, i, false};
    staged->opset = opset;
    staged->root = (dp_stage){.rest = source, .lives = lives, .n_lives = source->n_inputs, .n_known = source->n_inputs};
    *out_staged = staged;
    return DP_OK;
}

void dp_staged_free(dp_staged *staged) {
    if (!staged)
        return;
    while (staged->root.children) {
        dp_stage *child = staged->root.children;
        staged->root.children = child->next;
        dp_stage_free(staged, child);
    }
    dp_free(staged->root.lives);
    dp_free(staged->work);
    dp_free(staged);
}

int dp_staged_count(const dp_staged *staged) {
    return staged->n_stages;
}

size_t dp_staged_bytes(const dp_staged *staged) {
    return staged->bytes;
}

/* Keys: what is known of values as bytes. */

static size_t key_part(char *to, const dp_item *item, bool contents) {
    size_t bytes = contents ? dp_item_bytes(item) : 0, dims = (size_t)item->tensor.rank * sizeof(int64_t);
    int32_t head[2] = {item->tensor.element, item->tensor.rank};
    if (to) {
        memcpy(to, head, sizeof head);
        memcpy(to + sizeof head, item->tensor.dims, dims);
        if (bytes)
            memcpy(to + sizeof head + dims, item->tensor.base, bytes);
    }
    return sizeof head + dims + bytes;
}

/* dp_free gives the key back. */
static dp_status make_key(const dp_stage *stage, const dp_item *known, int n, char **out_key, size_t *out_bytes) {
    size_t bytes = 0, at = 0;
    for (int i = 0; i < n; i++) {
        if (stage && stage->lives[i].wanted && dp_item_bytes(&known[i]) > CONTENTS_MAX)
            return dp_fail(DP_ERR_UNSUPPORTED,
                           "shapes depend on the contents of \"%s\", which has %zu bytes, more than %d",
                           stage->lives[i].value->name, dp_item_bytes(&known[i]), CONTENTS_MAX);
        bytes += key_part(NULL, &known[i], stage && stage->lives[i].wanted);
    }
    char *key = dp_alloc(DP_MEM_GRAPH, bytes + 1);
    if (!key)
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory to run a model: free some");
    for (int i = 0; i < n; i++)
        at += key_part(key + at, &known[i], stage && stage->lives[i].wanted);
    *out_key = key;
    *out_bytes = bytes;
    return DP_OK;
}

/* Making what follows. */

/* A value of the new model for one that is known: an input, or a constant when its contents are wanted. */
static dp_status add_value(dp_cloner *c, dp_value *original, const dp_item *item, bool wanted) {
    dp_graph *graph = c->to->graph;
    const dp_tensor *t = &item->tensor;
    dp_value *value = wanted ? dp_value_constant(c->to, original->name, t->element, t->dims, t->rank, t->base)
                             : dp_value_new(c->to, original->name);
    if (!value)
        return DP_ERR_OUT_OF_MEMORY;
    if (!wanted) {
        dp_value_shape(value, t->element, t->dims, t->rank);
        graph->inputs[graph->n_inputs++] = value;
    }
    dp_clone_bind(c, original, value);
    return c->status;
}

static dp_status begin_model(const char *name, int n_inputs, dp_model **out_model) {
    dp_model *model = dp_model_new(name);
    if (!model)
        return DP_ERR_OUT_OF_MEMORY;
    model->graph->inputs = dp_model_alloc(model, (size_t)n_inputs * sizeof(dp_value *));
    if (!model->graph->inputs) {
        dp_model_free(model);
        return DP_ERR_OUT_OF_MEMORY;
    }
    *out_model = model;
    return DP_OK;
}

static dp_status new_child(dp_staged *staged, dp_stage *stage, const dp_item *known, dp_stage **out_child) {
    dp_cloner c;
    dp_model *model;
    dp_status status = begin_model(stage->rest->name, stage->n_known, &model);
    if (status != DP_OK)
        return status;
    dp_clone_begin(&c, stage->rest, model);
    for (int i = 0; i < stage->n_known && status == DP_OK; i++)
        if (stage->lives[i].value)
            status = add_value(&c, stage->lives[i].value, &known[i], stage->lives[i].wanted);
    if (status == DP_OK)
        status = dp_clone_graph(&c, stage->rest, model->graph);
    dp_clone_end(&c);
    if (status == DP_OK)
        return dp_stage_new(staged, model, out_child);
    dp_model_free(model);
    return status;
}

static dp_status find_child(dp_staged *staged, dp_stage *stage, const dp_item *known, dp_stage **out_child) {
    char *key;
    size_t bytes;
    dp_status status = make_key(stage, known, stage->n_known, &key, &bytes);
    if (status != DP_OK)
        return status;
    *out_child = dp_stage_find(&stage->children, key, bytes);
    if (!*out_child && (status = new_child(staged, stage, known, out_child)) == DP_OK) {
        dp_stage_keep(&stage->children, *out_child, key, bytes);
        return DP_OK;
    }
    dp_free(key);
    return status;
}

dp_status dp_stage_body(dp_staged *staged, dp_stage *stage, const dp_item *formal, int n_formal, const dp_item *known,
                        dp_stage **out_body) {
    dp_graph *body = stage->apart->bodies[0].graph;
    dp_cloner c;
    dp_model *model = NULL;
    char *key;
    size_t bytes;
    dp_status status = make_key(NULL, formal, n_formal, &key, &bytes);
    if (status != DP_OK)
        return status;
    *out_body = dp_stage_find(&stage->bodies, key, bytes);
    if (*out_body) {
        dp_free(key);
        return DP_OK;
    }
    status = begin_model(body->name, n_formal + stage->n_lives, &model);
    if (status == DP_OK) {
        dp_clone_begin(&c, body, model);
        for (int i = 0; i < n_formal && status == DP_OK; i++)
            status = add_value(&c, body->inputs[i], &formal[i], false);
        for (int i = 0; i < stage->n_lives && status == DP_OK; i++)
            status = add_value(&c, stage->lives[i].value, &known[i], false);
        if (status == DP_OK)
            status = dp_clone_graph(&c, body, model->graph);
        dp_clone_end(&c);
        if (status == DP_OK)
            status = dp_stage_new(staged, model, out_body);
        else
            dp_model_free(model);
    }
    if (status == DP_OK)
        dp_stage_keep(&stage->bodies, *out_body, key, bytes);
    else
        dp_free(key);
    return status;
}

/* Running. */

static dp_status call_program(dp_staged *staged, dp_stage *stage, const dp_item *inputs) {
    const dp_graph *graph = stage->model->graph;
    for (int i = 0; i < graph->n_inputs; i++)
        stage->addresses[i] = inputs[i].tensor.base;
    return dp_program_run(stage->program, stage->addresses, stage->addresses + graph->n_inputs, staged->work);
}

static dp_status run_last(dp_staged *staged, dp_stage *stage, const dp_item *inputs, dp_room *room, void *data) {
    const dp_graph *graph = stage->model->graph;
    for (int i = 0; i < graph->n_outputs; i++) {
        dp_tensor tensor = graph->outputs[i]->tensor;
        dp_status status = room(data, i, &tensor);
        if (status != DP_OK)
            return status;
        stage->addresses[graph->n_inputs + i] = tensor.base;
    }
    return stage->program ? call_program(staged, stage, inputs) : DP_OK;
}

/* The values that are known behind a stage: its program's outputs, what it hands on, what runs apart. */
static dp_status run_part(dp_staged *staged, dp_stage *stage, const dp_item *inputs, dp_item *known) {
    int n_inputs = stage->model ? stage->model->graph->n_inputs : 0;
    dp_status status = DP_OK;
    for (int i = 0; i < stage->n_lives && status == DP_OK; i++) {
        const dp_live *live = &stage->lives[i];
        if (live->output < 0) {
            known[i] = dp_item_share(&inputs[live->input]);
            continue;
        }
        status = dp_item_make(&stage->model->graph->outputs[live->output]->tensor, &known[i]);
        stage->addresses[n_inputs + live->output] = known[i].tensor.base;
    }
    if (status == DP_OK && stage->program)
        status = call_program(staged, stage, inputs);
    for (int i = 0; i < stage->n_lives && status == DP_OK && stage->program; i++) {
        dp_tensor found;
        if (stage->lives[i].output < 0 || !dp_program_found(stage->program, stage->lives[i].output, &found))
            continue;
        void *base = known[i].tensor.base;
        if (!dp_tensor_is_contiguous(&found))
            return dp_fail(DP_ERR_INTERNAL, "\"%s\" has gaps", stage->lives[i].value->name);
        known[i].tensor = found;
        known[i].tensor.base = base;
        known[i].tensor.offset = 0;
    }
    return status == DP_OK && stage->apart ? dp_stage_apart(staged, stage, known) : status;
}

/* The child's inputs from what is known: values whose contents are wanted are none. */
static int pick_inputs(const dp_stage *stage, dp_item *known) {
    int n = 0;
    for (int i = 0; i < stage->n_known; i++) {
        dp_item item = known[i];
        known[i].owner = NULL;
        if (!stage->lives[i].value || stage->lives[i].wanted)
            dp_item_drop(&item);
        else
            known[n++] = item;
    }
    return n;
}

dp_status dp_stage_run(dp_staged *staged, dp_stage *stage, const dp_item *inputs, dp_room *room, void *data) {
    dp_item *own = NULL;
    int n_own = 0;
    dp_status status = DP_OK;
    while (status == DP_OK && !stage->is_last) {
        dp_stage *child = NULL;
        dp_item *known = dp_alloc(DP_MEM_GRAPH, (size_t)stage->n_known * sizeof *known + 1);
        if (!known) {
            status = dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory to run a model: free some");
            break;
        }
        status = run_part(staged, stage, inputs, known);
        if (status == DP_OK)
            status = find_child(staged, stage, known, &child);
        dp_items_free(own, n_own);
        n_own = status == DP_OK ? pick_inputs(stage, known) : stage->n_known;
        inputs = own = known;
        stage = child;
    }
    if (status == DP_OK)
        status = run_last(staged, stage, inputs, room, data);
    dp_items_free(own, n_own);
    return status;
}

static dp_item *make_items(const dp_staged *staged, const dp_tensor *inputs) {
    int n = staged->root.n_lives;
    dp_item *items = dp_alloc(DP_MEM_GRAPH, (size_t)n * sizeof *items + 1);
    for (int i = 0; items && i < n; i++)
        items[i] = (dp_item){inputs[i], NULL};
    if (!items)
        dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory to run a model: free some");
    return items;
}

dp_status dp_staged_graph(dp_staged *staged, const dp_tensor *inputs, dp_graph **out_graph) {
    dp_stage *child;
    dp_item *items = make_items(staged, inputs);
    dp_status status = items ? find_child(staged, &staged->root, items, &child) : DP_ERR_OUT_OF_MEMORY;
    dp_free(items);
    if (status != DP_OK)
        return status;
    if (!child->is_last)
        return dp_fail(DP_ERR_UNSUPPORTED, "the model has loops or shapes that depend on its data");
    *out_graph = child->model->graph;
    return DP_OK;
}

dp_status dp_staged_run(dp_staged *staged, const dp_tensor *inputs, dp_room *room, void *data) {
    dp_item *items = make_items(staged, inputs);
    if (!items)
        return DP_ERR_OUT_OF_MEMORY;
    dp_stages_trim(staged, &staged->root, DP_STAGES_MAX);
    dp_status status = dp_stage_run(staged, &staged->root, items, room, data);
    dp_free(items);
    return status;
}
