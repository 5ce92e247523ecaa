#include "graph/json.h"

#include <math.h>

enum { SHOWN = 64 }; /* numbers of a list */

void dp_json_write_text(const char *text, FILE *file) {
    fputc('"', file);
    for (const unsigned char *at = (const unsigned char *)text; *at; at++) {
        if (*at == '"' || *at == '\\')
            fprintf(file, "\\%c", *at);
        else if (*at < 0x20 || *at >= 0x7f) /* names may be in any encoding */
            fprintf(file, "\\u%04x", *at);
        else
            fputc(*at, file);
    }
    fputc('"', file);
}

static void put_real(double number, FILE *file) {
    if (isfinite(number))
        fprintf(file, "%.9g", number);
    else
        fprintf(file, "\"%f\"", number);
}

static void put_value(const dp_value *value, FILE *file) {
    if (!value) {
        fputs("null", file);
        return;
    }
    const dp_tensor *t = &value->tensor;
    fputs("{\"name\": ", file);
    dp_json_write_text(value->name, file);
    if (t->element != DP_EL_NONE)
        fprintf(file, ", \"dtype\": \"%s\"", dp_element_name(t->element));
    if (t->rank != DP_UNKNOWN) {
        fputs(", \"shape\": [", file);
        for (int d = 0; d < t->rank; d++)
            fprintf(file, "%s%lld", d ? ", " : "", (long long)t->dims[d]);
        fputc(']', file);
    }
    fputs(value->is_constant ? ", \"const\": true}" : "}", file);
}

static void put_values(const char *key, dp_value *const *values, int n, FILE *file) {
    fprintf(file, "\"%s\": [", key);
    for (int i = 0; i < n; i++) {
        fputs(i ? ", " : "", file);
        put_value(values[i], file);
    }
    fputc(']', file);
}

static void put_attribute(const dp_arg *a, FILE *file) {
    fputs("{\"key\": ", file);
    dp_json_write_text(a->name, file);
    fputs(", \"value\": ", file);
    if (a->kind == DP_ARG_INTEGER)
        fprintf(file, "%lld", (long long)a->as.integer);
    else if (a->kind == DP_ARG_REAL)
        put_real(a->as.real, file);
    else if (a->kind == DP_ARG_TEXT)
        dp_json_write_text(a->as.text, file);
    else if (a->kind == DP_ARG_INT_LIST || a->kind == DP_ARG_FLOAT_LIST) {
        fputc('[', file);
        for (int64_t i = 0; i < a->count && i < SHOWN; i++) {
            fputs(i ? ", " : "", file);
            if (a->kind == DP_ARG_INT_LIST)
                fprintf(file, "%lld", (long long)a->as.integers[i]);
            else
                put_real((double)a->as.floats[i], file);
        }
        fputc(']', file);
    } else
        fputs("null", file);
    fputc('}', file);
}

/* Graphs are nested no deeper than the readers of files allow. */
static void put_graph(const dp_graph *graph, int depth, FILE *file) {
    fprintf(file, "{\"name\": ");
    dp_json_write_text(graph->name, file);
    fputs(", ", file);
    put_values("input", graph->inputs, graph->n_inputs, file);
    fputs(", ", file);
    put_values("output", graph->outputs, graph->n_outputs, file);
    fputs(", \"op\": [", file);
    for (const dp_node *node = graph->first; node; node = node->next) {
        fprintf(file, "%s\n%*s{\"name\": ", node == graph->first ? "" : ",", depth, "");
        dp_json_write_text(node->name, file);
        fputs(", \"type\": ", file);
        dp_json_write_text(node->type, file);
        fputs(", ", file);
        put_values("input", node->inputs, node->n_inputs, file);
        fputs(", ", file);
        put_values("output", node->outputs, node->n_outputs, file);
        fputs(", \"attr\": [", file);
        for (int i = 0; i < node->n_attributes; i++) {
            fputs(i ? ", " : "", file);
            put_attribute(&node->attributes[i], file);
        }
        fputc(']', file);
        for (int i = 0; i < node->n_bodies; i++) {
            fputs(", ", file);
            dp_json_write_text(node->bodies[i].name, file);
            fputs(": ", file);
            put_graph(node->bodies[i].graph, depth + 2, file);
        }
        fputc('}', file);
    }
    fputs("]}", file);
}

static void put_shapes(const dp_shapes *shapes, FILE *file) {
    static const char *const kinds[] = {"fixed", "dynamic_batch_size", "dynamic_image_size", "dynamic_dims", "open"};
    fprintf(file, "\"shapes\": {\"kind\": \"%s\", \"lowered_while_it_runs\": %s, \"gears\": [", kinds[shapes->kind],
            shapes->is_source ? "true" : "false");
    for (int g = 0; g < shapes->n_gears; g++) {
        fputs(g ? ", [" : "[", file);
        for (int k = 0; k < shapes->n_numbers; k++)
            fprintf(file, "%s%lld", k ? ", " : "", (long long)shapes->numbers[g * shapes->n_numbers + k]);
        fputc(']', file);
    }
    fputs("]},\n", file);
}

void dp_models_write_json(const char *name, const dp_shapes *shapes, dp_model *const *models, int n, FILE *file) {
    fputs("{\"name\": ", file);
    dp_json_write_text(name, file);
    fputs(",\n", file);
    if (shapes)
        put_shapes(shapes, file);
    fputs("\"graph\": [", file);
    for (int i = 0; i < n; i++) {
        fputs(i ? ",\n" : "", file);
        put_graph(models[i]->graph, 1, file);
    }
    fputs("]}\n", file);
}
