/* The text of a graph. */
#include "graph/graph.h"

enum { SHOWN = 8 }; /* numbers of a list */

static void print_value(const dp_value *value, FILE *file) {
    if (!value) {
        fputs("-", file);
        return;
    }
    const dp_tensor *t = &value->tensor;
    fprintf(file, "%s:%s", value->name, t->element == DP_EL_NONE ? "?" : dp_element_name(t->element));
    if (t->rank == DP_UNKNOWN) {
        fputs("[...]", file);
        return;
    }
    fputc('[', file);
    for (int d = 0; d < t->rank; d++) {
        if (t->dims[d] != DP_UNKNOWN)
            fprintf(file, "%s%lld", d ? "," : "", (long long)t->dims[d]);
        else
            fprintf(file, "%s%s", d ? "," : "", value->symbols[d] ? value->symbols[d] : "?");
    }
    fputs(value->is_constant ? "]=const" : "]", file);
}

static void print_attribute(const dp_arg *a, FILE *file) {
    fprintf(file, " %s=", a->name);
    switch (a->kind) {
    case DP_ARG_INTEGER:
        fprintf(file, "%lld", (long long)a->as.integer);
        break;
    case DP_ARG_REAL:
        fprintf(file, "%.9g", a->as.real);
        break;
    case DP_ARG_TEXT:
        fprintf(file, "\"%s\"", a->as.text);
        break;
    case DP_ARG_INT_LIST:
    case DP_ARG_FLOAT_LIST:
        fputc('[', file);
        for (int64_t i = 0; i < a->count && i < SHOWN; i++)
            a->kind == DP_ARG_INT_LIST ? fprintf(file, "%s%lld", i ? "," : "", (long long)a->as.integers[i])
                                       : fprintf(file, "%s%.9g", i ? "," : "", (double)a->as.floats[i]);
        fputs(a->count > SHOWN ? ",...]" : "]", file);
        break;
    default:
        fputs("?", file);
    }
}

static void print_list(dp_value *const *values, int n, FILE *file) {
    for (int i = 0; i < n; i++) {
        fputs(i ? ", " : "", file);
        print_value(values[i], file);
    }
}

static void print_graph(const dp_graph *graph, int depth, FILE *file) {
    fprintf(file, "%*sgraph %s(", depth, "", graph->name);
    print_list(graph->inputs, graph->n_inputs, file);
    fputs(") -> ", file);
    print_list(graph->outputs, graph->n_outputs, file);
    fprintf(file, "  # %d nodes\n", graph->n_nodes);
    for (const dp_node *node = graph->first; node; node = node->next) {
        fprintf(file, "%*s", depth + 2, "");
        print_list(node->outputs, node->n_outputs, file);
        fprintf(file, " = %s(", node->type);
        print_list(node->inputs, node->n_inputs, file);
        fputc(')', file);
        for (int i = 0; i < node->n_attributes; i++)
            print_attribute(&node->attributes[i], file);
        if (node->name[0])
            fprintf(file, "  # %s", node->name);
        fputc('\n', file);
        for (int i = 0; i < node->n_bodies; i++) {
            fprintf(file, "%*s%s:\n", depth + 4, "", node->bodies[i].name);
            print_graph(node->bodies[i].graph, depth + 6, file);
        }
    }
}

void dp_graph_print(const dp_graph *graph, FILE *file) {
    print_graph(graph, 0, file);
}
