#define _GNU_SOURCE /* tdestroy */
#include "graph/onnx/order.h"

#include <search.h>
#include <string.h>

#include "base/memory.h"

/* A name and the node that makes it. */
typedef struct made {
    const char *name;
    uint32_t node;
} made;

/* What each node reads from: reads[at[n]] to reads[end[n] - 1]; at moves on while they are looked at. */
typedef struct ordering {
    void *names; /* a tree of made by name (tsearch) */
    made *all;
    size_t *at, *end;
    uint32_t *reads;
    uint32_t *stack, *order;
    uint8_t *seen; /* 1: on the stack, 2: in the order */
} ordering;

static int by_name(const void *a, const void *b) {
    return strcmp(((const made *)a)->name, ((const made *)b)->name);
}
static void keep(void *item) {
    (void)item;
}

/* Every name that the node and the graphs inside it read; these were checked for their depth. NULL out: only counted.
 */
static size_t collect(const ordering *o, const Onnx__NodeProto *node, uint32_t *out) {
    size_t n = 0;
    for (size_t i = 0; i < node->n_input; i++) {
        made key = {.name = node->input[i]};
        made *const *found = out ? tfind(&key, &o->names, by_name) : NULL;
        if (out)
            out[n] = found ? (*found)->node : UINT32_MAX;
        n++;
    }
    for (size_t a = 0; a < node->n_attribute; a++) {
        const Onnx__GraphProto *body = node->attribute[a]->g;
        for (size_t i = 0; body && i < body->n_node; i++)
            n += collect(o, body->node[i], out ? out + n : NULL);
    }
    return n;
}

static dp_status prepare(ordering *o, const Onnx__GraphProto *graph) {
    size_t n = graph->n_node, n_made = 0, n_reads = 0;
    for (size_t i = 0; i < n; i++) {
        n_made += graph->node[i]->n_output;
        n_reads += collect(o, graph->node[i], NULL);
    }
    o->all = dp_alloc(DP_MEM_GRAPH, n_made * sizeof *o->all + 1);
    o->at = dp_alloc(DP_MEM_GRAPH, 2 * n * sizeof *o->at);
    o->end = o->at ? o->at + n : NULL;
    o->reads = dp_alloc(DP_MEM_GRAPH, n_reads * sizeof *o->reads + 1);
    o->stack = dp_alloc(DP_MEM_GRAPH, n * sizeof *o->stack);
    o->order = dp_alloc(DP_MEM_GRAPH, n * sizeof *o->order);
    o->seen = dp_alloc(DP_MEM_GRAPH, n);
    bool good = o->all && o->at && o->reads && o->stack && o->order && o->seen;
    made *next = o->all;
    for (size_t i = 0; i < n && good; i++)
        for (size_t k = 0; k < graph->node[i]->n_output && good; k++) {
            *next = (made){graph->node[i]->output[k], (uint32_t)i};
            good = !*next->name || tsearch(next, &o->names, by_name); /* of two of one name the first counts */
            next++;
        }
    for (size_t i = 0, used = 0; i < n && good; i++) {
        o->at[i] = used;
        o->end[i] = used += collect(o, graph->node[i], o->reads + used);
    }
    return good ? DP_OK : dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory to order the nodes of a model: free some");
}

/* The first node that `node` reads from and that has not been seen; UINT32_MAX: none. */
static uint32_t missing(ordering *o, uint32_t node) {
    for (; o->at[node] < o->end[node]; o->at[node]++) {
        uint32_t from = o->reads[o->at[node]];
        if (from != UINT32_MAX && !o->seen[from])
            return from;
    }
    return UINT32_MAX;
}

static void sort(ordering *o, uint32_t n) {
    uint32_t placed = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t depth = 0;
        if (o->seen[i])
            continue;
        o->stack[depth++] = i;
        o->seen[i] = 1;
        while (depth) {
            uint32_t node = o->stack[depth - 1], from = missing(o, node);
            if (from == UINT32_MAX) {
                o->order[placed++] = node;
                o->seen[node] = 2;
                depth--;
            } else {
                o->stack[depth++] = from;
                o->seen[from] = 1;
            }
        }
    }
}

dp_status dp_onnx_order(const Onnx__GraphProto *graph, uint32_t **out_order) {
    ordering o = {.names = NULL};
    *out_order = NULL;
    if (graph->n_node == 0)
        return DP_OK;
    if (graph->n_node >= UINT32_MAX)
        return dp_fail(DP_ERR_UNSUPPORTED, "a graph of %zu nodes is not supported", graph->n_node);
    dp_status status = prepare(&o, graph);
    if (status == DP_OK) {
        sort(&o, (uint32_t)graph->n_node);
        *out_order = o.order;
        o.order = NULL;
    }
    tdestroy(o.names, keep);
    dp_free(o.all);
    dp_free(o.at);
    dp_free(o.reads);
    dp_free(o.stack);
    dp_free(o.order);
    dp_free(o.seen);
    return status;
}
