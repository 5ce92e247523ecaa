#include "graph/infer.h"

#include <string.h>

#include "graph/aipp.h"
#include "ops/typed/typed.h"

enum { ENDS = 4096 };                                  /* inputs or outputs of a node */
enum { FOLD_BYTES = 1 << 20, FOLD_GROWTH = 4 };        /* outputs up to so many bytes, or so many times the inputs */

/* A node as a call of its type. */
typedef struct node_call {
    dp_typed_call call;
    const dp_tensor **inputs, **outputs;
    const void **values;
} node_call;

static int same(int64_t element) {
    return (int)element;
}

static dp_status complain(const dp_node *node, dp_status status) {
    char reason[512];
    snprintf(reason, sizeof reason, "%s", dp_fail_message());
    return dp_fail(status, "node \"%s\" (%s): %s", node->name, node->type, reason);
}

static dp_status call_begin(const dp_node *node, node_call *c) {
    memset(c, 0, sizeof *c);
    dp_status status = dp_typed_find(node->type, &c->call.type);
    if (status != DP_OK)
        return status;
    size_t ends = (size_t)(2 * node->n_inputs + node->n_outputs);
    if (node->n_inputs > ENDS || node->n_outputs > ENDS)
        return dp_fail(DP_ERR_UNSUPPORTED, "%d inputs and %d outputs are more than %d", node->n_inputs, node->n_outputs,
                       ENDS);
    c->inputs = dp_alloc(DP_MEM_GRAPH, ends * sizeof(void *) + 1);
    if (!c->inputs)
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory: free some");
    c->values = (const void **)(c->inputs + node->n_inputs);
    c->outputs = (const dp_tensor **)(c->values + node->n_inputs);
    for (int i = 0; i < node->n_inputs; i++) {
        const dp_value *value = node->inputs[i];
        c->inputs[i] = value ? &value->tensor : NULL;
        c->values[i] = value && value->is_constant ? value->tensor.base : NULL;
    }
    for (int i = 0; i < node->n_outputs; i++)
        c->outputs[i] = node->outputs[i] ? &node->outputs[i]->tensor : NULL;
    c->call.inputs = c->inputs;
    c->call.values = c->values;
    c->call.outputs = c->outputs;
    c->call.n_inputs = node->n_inputs;
    c->call.n_outputs = node->n_outputs;
    c->call.attributes = node->attributes;
    c->call.n_attributes = node->n_attributes;
    c->call.element_of = same;
    return DP_OK;
}

static void call_end(node_call *c) {
    dp_free(c->inputs);
}

dp_status dp_node_prepare(const dp_node *node, dp_plan **out_plan) {
    node_call c;
    if (strcmp(node->type, DP_AIPP_TYPE) == 0) {
        dp_status made = dp_aipp_prepare(node, out_plan);
        return made == DP_OK ? DP_OK : complain(node, made);
    }
    dp_status status = call_begin(node, &c);
    if (status == DP_OK)
        status = dp_typed_prepare(&c.call, out_plan);
    call_end(&c);
    return status == DP_OK ? DP_OK : complain(node, status);
}

dp_status dp_node_run(const dp_node *node) {
    dp_plan *plan;
    dp_status status = dp_node_prepare(node, &plan);
    if (status != DP_OK)
        return status;
    if (plan->workspace_bytes && !(plan->workspace = dp_alloc(DP_MEM_GRAPH, plan->workspace_bytes)))
        status = dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory: free some");
    if (status == DP_OK)
        status = plan->run(plan);
    dp_free(plan->workspace);
    plan->workspace = NULL;
    dp_plan_free(plan);
    return status;
}

/* Types that are not registered have neither property; dp_node_infer complains about them. */
static const dp_typed *find_quietly(const char *type) {
    for (unsigned i = 0; i < dp_typed_count; i++)
        if (strcmp(dp_typed_all[i].op.name, type) == 0)
            return &dp_typed_all[i];
    return NULL;
}
bool dp_node_finds_dims(const dp_node *node) {
    const dp_typed *type = find_quietly(node->type);
    return type && type->op.function->optional_out & DP_FINDS_DIMS;
}
bool dp_node_reads(const dp_node *node, int index) {
    const dp_typed *type = find_quietly(node->type);
    return type && dp_typed_reads(type, node->n_inputs, index);
}

static dp_status check_inputs(const dp_node *node) {
    for (int i = 0; i < node->n_inputs; i++)
        if (node->inputs[i] && !dp_value_is_known(node->inputs[i]))
            return dp_fail(DP_ERR_UNSUPPORTED, "the shape of its input \"%s\" is not known before the model runs",
                           node->inputs[i]->name);
    return DP_OK;
}

dp_status dp_node_infer(dp_node *node) {
    node_call c;
    dp_tensor shapes[16];
    if (node->n_outputs > 16)
        return complain(node, dp_fail(DP_ERR_UNSUPPORTED, "%d outputs are more than 16", node->n_outputs));
    dp_status status = call_begin(node, &c);
    if (status == DP_OK)
        status = check_inputs(node);
    if (status == DP_OK) {
        const dp_tensor *pointers[16];
        for (int i = 0; i < node->n_outputs; i++) {
            shapes[i] = (dp_tensor){.element = node->outputs[i] ? node->outputs[i]->tensor.element : DP_EL_NONE};
            pointers[i] = node->outputs[i] ? &shapes[i] : NULL;
        }
        c.call.outputs = pointers;
        status = dp_typed_infer(&c.call, shapes);
    }
    for (int i = 0; i < node->n_outputs && status == DP_OK; i++)
        if (node->outputs[i])
            dp_value_shape(node->outputs[i], shapes[i].element, shapes[i].dims, shapes[i].rank);
    call_end(&c);
    return status == DP_OK ? DP_OK : complain(node, status);
}

static bool is_worth_folding(const dp_node *node) {
    size_t in = 0, out = 0;
    for (int i = 0; i < node->n_inputs; i++) {
        if (node->inputs[i] && !node->inputs[i]->is_constant)
            return false;
        in += node->inputs[i] ? dp_value_bytes(node->inputs[i]) : 0;
    }
    for (int i = 0; i < node->n_outputs; i++)
        out += node->outputs[i] ? dp_value_bytes(node->outputs[i]) : 0;
    return node->n_bodies == 0 && (out <= FOLD_BYTES || out / FOLD_GROWTH <= in);
}

/* Outputs whose dims depend on data get those that the run found. */
static void take_found(const dp_node *node, const dp_plan *plan) {
    for (int i = 0; i < node->n_outputs; i++)
        for (int k = 0; node->outputs[i] && k < plan->n_tensors; k++) {
            const dp_tensor *view = &plan->tensors[k].view;
            if (plan->tensors[k].is_output && view->base == node->outputs[i]->tensor.base)
                dp_value_shape(node->outputs[i], view->element, view->dims, view->rank);
        }
}

dp_status dp_node_fold(dp_node *node, bool *out_folded) {
    dp_plan *plan;
    *out_folded = false;
    if (!is_worth_folding(node))
        return DP_OK;
    for (int i = 0; i < node->n_outputs; i++) {
        dp_value *value = node->outputs[i];
        if (value && !(value->tensor.base = dp_model_alloc(node->graph->model, dp_value_bytes(value))))
            return DP_ERR_OUT_OF_MEMORY;
    }
    dp_status status = dp_node_prepare(node, &plan);
    if (status != DP_OK)
        return status;
    if (plan->workspace_bytes && !(plan->workspace = dp_model_alloc(node->graph->model, plan->workspace_bytes)))
        status = DP_ERR_OUT_OF_MEMORY;
    if (status == DP_OK) {
        status = plan->run(plan);
        status = status == DP_OK ? DP_OK : complain(node, status);
    }
    if (status == DP_OK && plan->finds_dims)
        take_found(node, plan);
    dp_plan_free(plan);
    if (status != DP_OK)
        return status;
    for (int i = 0; i < node->n_outputs; i++)
        if (node->outputs[i])
            node->outputs[i]->is_constant = true;
    dp_node_remove(node);
    *out_folded = true;
    return DP_OK;
}
