/*
 * Convolutions in small integers, where --calibration gives data to learn the ranges from, and what lies between them.
 *
 * Between such nodes pictures stay integers with the channels last (ops/quant/picture.h); every other node gets floats
 * again. Weights have a factor per output channel; pictures have a factor and a zero per channel, which go into the
 * weights that read them.
 */
#include <string.h>

#include "graph/passes/passes.h"
#include "graph/passes/quantise.h"
#include "graph/precision.h"

static void count_uses(dp_quantise *w) {
    for (const dp_node *node = w->graph->first; node; node = node->next)
        for (int i = 0; i < node->n_inputs; i++)
            if (node->inputs[i] && !node->inputs[i]->is_constant)
                w->uses[node->inputs[i]->mark - 1]++;
    for (int i = 0; i < w->graph->n_outputs; i++)
        if (w->graph->outputs[i]->mark)
            w->uses[w->graph->outputs[i]->mark - 1]++;
}

static dp_status walk(dp_quantise *w) {
    dp_status status = DP_OK;
    /* the nodes of a group may be taken out together: the next one is found by going on behind the last that stands */
    for (dp_node *node = w->graph->first; node && status == DP_OK;) {
        dp_node *before = node->previous, *next = node->next;
        const int changes = *w->changes;
        status = dp_quantise_is_convolution(w, node) ? dp_quantise_convolution(w, node) : dp_quantise_follow(w, node);
        node = changes == *w->changes ? next : before ? before->next : w->graph->first;
    }
    return status;
}

dp_status dp_pass_quantise(dp_graph *graph, int *out_changes) {
    dp_calibration *calibration = graph->model->precision ? graph->model->precision->calibration : NULL;
    dp_quantise w = {.graph = graph, .changes = out_changes};
    dp_seen *seen = NULL;
    if (!calibration || graph->outer)
        return DP_OK;
    dp_status status = dp_calibration_read(calibration, graph);
    if (status == DP_OK)
        status = dp_calibration_observe(calibration, graph, &seen, &w.n);
    if (status != DP_OK)
        return status;
    w.seen = seen;
    w.codes = dp_alloc(DP_MEM_GRAPH, (w.n + 1) * sizeof *w.codes);
    w.uses = dp_alloc(DP_MEM_GRAPH, (w.n + 1) * sizeof *w.uses);
    if (!w.codes || !w.uses) {
        status = dp_quantise_no_memory();
    } else {
        count_uses(&w);
        status = walk(&w);
    }
    dp_free(w.codes);
    dp_free(w.uses);
    dp_seen_free(seen, w.n);
    return status;
}
