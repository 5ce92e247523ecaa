/*
 * compile_shapes.h - a model compiled for the shapes that its user asks for: one, several, or any.
 */
#ifndef DOPPEL_GRAPH_COMPILE_SHAPES_H
#define DOPPEL_GRAPH_COMPILE_SHAPES_H

#include "graph/aipp.h"
#include "graph/compile.h"
#include "graph/shapes.h"

typedef struct dp_named_shape {
    const char *name;
    dp_declared declared;
} dp_named_shape;

typedef struct dp_shape_request {
    const dp_named_shape *named; /* inputs whose shapes are given; the others have those of the file */
    int n_named;
    dp_shapes_kind kind; /* BATCH, IMAGE, DIMS: gears as dp_shapes_parse_gears reads them; otherwise FIXED */
    const char *option, *gears;
    void (*progress)(void *data, int done, int all); /* after each graph; may be NULL */
    void *data;
} dp_shape_request;

typedef struct dp_compiled {
    dp_shapes shapes;
    dp_model **variants;
    int n_variants;
} dp_compiled;

/*
 * source->shapes is not looked at. A graph per gear, or, when dims are open or shapes depend on data, the graph as it
 * was read, to be lowered while it runs. dp_compiled_free gives everything back, after a failure as well.
 */
dp_status dp_compile_shapes(const dp_onnx_source *source, const dp_shape_request *request, dp_compiled *out_compiled);
void dp_compiled_free(dp_compiled *compiled);

/*
 * dp_graph_insert_aipp for every graph; what was declared of the inputs changes with them. Of a picture's input only
 * the first dimension may be open, by gears. print: the graphs, or NULL.
 */
dp_status dp_compiled_insert_aipp(dp_compiled *compiled, const dp_aipp_op *ops, int n, bool channels_last, FILE *print);

#endif
