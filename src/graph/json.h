/*
 * json.h - a model as JSON, for people and scripts.
 */
#ifndef DOPPEL_GRAPH_JSON_H
#define DOPPEL_GRAPH_JSON_H

#include "graph/graph.h"
#include "graph/shapes.h"

/*
 * {"name", "shapes", "graph": [{"name", "input", "output", "op": [{"name", "type", "input", "output", "attr", "graph"}]}]}, a graph
 * per gear. shapes may be NULL. Long lists are cut after 64 numbers; contents of constants are left out.
 */
void dp_models_write_json(const char *name, const dp_shapes *shapes, dp_model *const *models, int n, FILE *file);

/* A text with quotes around it. */
void dp_json_write_text(const char *text, FILE *file);

#endif
