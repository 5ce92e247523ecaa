#include "graph/compare/compare.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/aipp.h"
#include "graph/compare/reference.h"
#include "graph/compile.h"
#include "graph/program.h"
#include "graph/staged.h"
#include "ops/elementwise/kernels.h"

enum { GROUP_BYTES = 512 << 20 }; /* values of the compiled model that are kept at a time */

/* One value of the compiled model. */
typedef struct known {
    dp_value *value;
    uint32_t place; /* in execution order */
    void *data;     /* while its group is there */
} known;

/* The compiled model, with some of its values. */
typedef struct compiled {
    dp_graph *graph;
    known *by_place;
    known **by_name;
    dp_value **outputs; /* room for all */
    uint32_t n;
    const void *const *inputs;
} compiled;

static dp_status no_memory(void) {
    return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory to compare models: free some");
}

static int by_name(const void *a, const void *b) {
    return strcmp((*(known *const *)a)->value->name, (*(known *const *)b)->value->name);
}

static dp_status open_compiled(compiled *c) {
    uint32_t n = 0;
    for (const dp_node *node = c->graph->first; node; node = node->next)
        n += (uint32_t)node->n_outputs;
    c->by_place = dp_alloc(DP_MEM_GRAPH, (n + 1) * sizeof *c->by_place);
    c->by_name = dp_alloc(DP_MEM_GRAPH, (n + 1) * sizeof *c->by_name);
    c->outputs = dp_alloc(DP_MEM_GRAPH, (n + 1) * sizeof *c->outputs);
    if (!c->by_place || !c->by_name || !c->outputs)
        return no_memory();
    for (const dp_node *node = c->graph->first; node; node = node->next)
        for (int i = 0; i < node->n_outputs; i++)
            if (node->outputs[i]) {
                c->by_place[c->n] = (known){node->outputs[i], c->n, NULL};
                c->by_name[c->n] = &c->by_place[c->n];
                c->n++;
            }
    qsort(c->by_name, c->n, sizeof *c->by_name, by_name);
    return DP_OK;
}

static void forget_group(compiled *c) {
    for (uint32_t i = 0; i < c->n; i++) {
        dp_free(c->by_place[i].data);
        c->by_place[i].data = NULL;
    }
}

static void close_compiled(compiled *c) {
    if (c->by_place)
        forget_group(c);
    dp_free(c->by_place);
    dp_free(c->by_name);
    dp_free(c->outputs);
}

static known *find(const compiled *c, const char *name) {
    dp_value value = {.name = name};
    known key = {.value = &value}, *pointer = &key;
    known **found = bsearch(&pointer, c->by_name, c->n, sizeof *c->by_name, by_name);
    return found ? *found : NULL;
}

/* Runs the model with these values as its outputs: [first, end) by place. */
static dp_status run_group(compiled *c, uint32_t first, uint32_t end) {
    dp_program *program = NULL;
    void **results = dp_alloc(DP_MEM_GRAPH, (end - first + 1) * sizeof *results);
    if (!results)
        return no_memory();
    for (uint32_t i = first; i < end; i++) {
        known *k = &c->by_place[i];
        k->data = dp_alloc(DP_MEM_GRAPH, dp_value_bytes(k->value) + 64);
        c->outputs[i - first] = k->value;
        results[i - first] = k->data;
        if (!k->data) {
            dp_free(results);
            return no_memory();
        }
    }
    dp_value **own = c->graph->outputs;
    int n_own = c->graph->n_outputs;
    c->graph->outputs = c->outputs;
    c->graph->n_outputs = (int)(end - first);
    dp_status status = dp_program_new(c->graph, &program);
    void *work = status == DP_OK ? dp_alloc(DP_MEM_GRAPH, dp_program_work_bytes(program) + 64) : NULL;
    if (status == DP_OK && !work)
        status = no_memory();
    if (status == DP_OK)
        status = dp_program_run(program, (void *const *)c->inputs, results, work);
    c->graph->outputs = own;
    c->graph->n_outputs = n_own;
    dp_program_free(program);
    dp_free(work);
    dp_free(results);
    return status;
}

/* Makes the value's contents known, and those of the values behind it that fit. */
static dp_status reach(compiled *c, known *k) {
    if (k->data)
        return DP_OK;
    size_t bytes = 0;
    uint32_t end = k->place;
    forget_group(c);
    do
        bytes += dp_value_bytes(c->by_place[end++].value);
    while (end < c->n && bytes + dp_value_bytes(c->by_place[end].value) <= GROUP_BYTES);
    return run_group(c, k->place, end);
}

/* Numbers. */

static bool has_numbers(int element) {
    return dp_element_is_float(element) || dp_element_is_int(element) || element == DP_EL_BOOL;
}

static void measure(const dp_tensor *reference, const void *data, int element, dp_compare_row *row) {
    double error = 0, most = 0, dot = 0, square_a = 0, square_b = 0;
    const dp_elementwise_table *t = dp_elementwise_current();
    double a[DP_TILE], b[DP_TILE];
    size_t n = (size_t)dp_tensor_count(reference);
    for (size_t at = 0, k; at < n; at += k) {
        k = n - at < DP_TILE ? n - at : DP_TILE;
        t->load[reference->element][DP_COMPUTE_F64](
            a, (const char *)reference->base + at * dp_element_bytes(reference->element), k);
        t->load[element][DP_COMPUTE_F64](b, (const char *)data + at * dp_element_bytes(element), k);
        for (size_t i = 0; i < k; i++) {
            bool same = a[i] == b[i] || (isnan(a[i]) && isnan(b[i])), finite = isfinite(a[i]) && isfinite(b[i]);
            error = fmax(error, same ? 0 : finite ? fabs(a[i] - b[i]) : INFINITY);
            if (!finite)
                continue;
            most = fmax(most, fabs(a[i]));
            dot += a[i] * b[i];
            square_a += a[i] * a[i];
            square_b += b[i] * b[i];
        }
    }
    row->count = n;
    row->max_error = error;
    row->relative = error == 0 ? 0 : most > 0 ? error / most : INFINITY;
    row->cosine = square_a > 0 && square_b > 0 ? dot / sqrt(square_a) / sqrt(square_b) : square_a == square_b;
}

/* Names that the importer makes up ("%12") may name something else in the compiled model. */
static bool is_made_up(const char *name) {
    return name[0] == '%' && name[1] && strspn(name + 1, "0123456789") == strlen(name + 1);
}

static bool same_dims(const dp_tensor *a, const dp_tensor *b) {
    return a->rank == b->rank && memcmp(a->dims, b->dims, (size_t)a->rank * sizeof a->dims[0]) == 0;
}

/* The value's twin with channels last, NULL when there is none of its shape. */
static known *find_last(const compiled *c, const dp_value *value) {
    const int64_t *d = value->tensor.dims, dims[] = {d[0], d[2], d[3], d[1]};
    char name[1024];
    if (value->tensor.rank != 4 ||
        (size_t)snprintf(name, sizeof name, "%s%s", value->name, DP_NAME_LAST) >= sizeof name)
        return NULL;
    known *k = find(c, name);
    return k && k->value->tensor.rank == 4 && memcmp(k->value->tensor.dims, dims, sizeof dims) == 0 ? k : NULL;
}

/* Contents with channels last in the order of `like`. NULL: no memory. */
static void *channels_second(const void *data, const dp_tensor *like, int element) {
    size_t bytes = dp_element_bytes(element), pixels = (size_t)(like->dims[2] * like->dims[3]);
    size_t channels = (size_t)like->dims[1], images = (size_t)like->dims[0];
    char *to = dp_alloc(DP_MEM_GRAPH, images * channels * pixels * bytes + 1);
    for (size_t n = 0; to && n < images; n++)
        for (size_t c = 0; c < channels; c++)
            for (size_t p = 0; p < pixels; p++)
                memcpy(to + ((n * channels + c) * pixels + p) * bytes,
                       (const char *)data + ((n * pixels + p) * channels + c) * bytes, bytes);
    return to;
}

/* The walk. */

typedef struct walk {
    compiled compiled;
    dp_model *model; /* as it was read */
    dp_reference *reference;
    double *relative; /* by mark - 1: of the values that were compared, and of those they were made from */
    const dp_compare_options *options;
    dp_compare_totals *totals;
} walk;

static bool is_output(const dp_graph *graph, const dp_value *value) {
    for (int i = 0; i < graph->n_outputs; i++)
        if (graph->outputs[i] == value)
            return true;
    return false;
}

static dp_status compare_value(walk *w, const dp_node *node, const dp_value *value, bool is_double, double inputs) {
    double *own = &w->relative[value->mark - 1];
    *own = inputs; /* unless it is compared */
    if (is_made_up(value->name) && !is_output(w->model->graph, value))
        return DP_OK;
    known *k = find(&w->compiled, value->name);
    const dp_tensor *reference = dp_reference_value(w->reference, value);
    k = k && same_dims(&k->value->tensor, reference) ? k : NULL;
    known *last = k ? NULL : find_last(&w->compiled, value), *found = k ? k : last;
    if (!found || !has_numbers(reference->element) || !has_numbers(found->value->tensor.element)) {
        w->totals->absent++;
        return DP_OK;
    }
    dp_status status = reach(&w->compiled, found);
    int element = found->value->tensor.element;
    void *turned = status == DP_OK && last ? channels_second(last->data, reference, element) : NULL;
    if (status != DP_OK || (last && !turned))
        return status == DP_OK ? no_memory() : status;
    dp_compare_row row = {.node = node->name,
                          .type = node->type,
                          .value = value->name,
                          .input_relative = inputs,
                          .is_double = is_double,
                          .is_output = is_output(w->model->graph, value)};
    measure(reference, last ? turned : found->data, element, &row);
    dp_free(turned);
    *own = row.relative;
    w->totals->compared++;
    w->options->row(&row, w->options->data);
    return DP_OK;
}

static dp_status step(walk *w, dp_node *node) {
    bool is_double;
    double inputs = 0;
    dp_status status = dp_reference_step(w->reference, node, &is_double);
    if (status != DP_OK)
        return status;
    w->totals->in_float += !is_double;
    for (int i = 0; i < node->n_inputs; i++)
        if (node->inputs[i])
            inputs = fmax(inputs, w->relative[node->inputs[i]->mark - 1]);
    for (int i = 0; i < node->n_outputs && status == DP_OK; i++)
        if (node->outputs[i])
            status = compare_value(w, node, node->outputs[i], is_double, inputs);
    return status;
}

/* What the model as it was read calls the input: behind AIPP its result. NULL: settings of AIPP, which it does not
 * know. */
static const dp_value *prepared(const dp_graph *graph, const dp_value *input) {
    const dp_node *node = dp_graph_aipp(graph, input);
    if (!node)
        return input;
    return node->inputs[0] == input ? node->outputs[0] : NULL;
}

/* Contents of a prepared input of the compiled model. */
static dp_status contents_of(walk *w, int place, const dp_value *value, const void **out) {
    *out = w->compiled.inputs[place];
    if (value == w->compiled.graph->inputs[place])
        return DP_OK;
    known *k = find(&w->compiled, value->name);
    dp_status status = k ? reach(&w->compiled, k) : dp_fail(DP_ERR_INTERNAL, "\"%s\" has no value", value->name);
    *out = status == DP_OK ? k->data : NULL;
    return status;
}

/* What goes into the compiled model, as double, goes into the reference. */
static dp_status fill_inputs(walk *w) {
    const dp_graph *from = w->compiled.graph, *to = w->model->graph;
    for (int i = 0; i < to->n_inputs; i++) {
        const dp_value *value = to->inputs[i], *given = NULL;
        int place = 0;
        for (int k = 0; k < from->n_inputs && !given; k++)
            if (strcmp(from->inputs[k]->name, value->name) == 0)
                given = prepared(from, from->inputs[place = k]);
        if (!given)
            return dp_fail(DP_ERR_ARGUMENT,
                           "the ONNX file has an input \"%s\", the compiled model has none of this name", value->name);
        bool floats = dp_element_is_float(value->tensor.element) && dp_element_is_float(given->tensor.element);
        if (!same_dims(&value->tensor, &given->tensor) || (!floats && value->tensor.element != given->tensor.element)) {
            char a[128], b[128];
            return dp_fail(DP_ERR_ARGUMENT,
                           "input \"%s\" is %s in the ONNX file and %s in the compiled model: was it made from another "
                           "file?",
                           value->name, dp_tensor_describe(&value->tensor, a, sizeof a),
                           dp_tensor_describe(&given->tensor, b, sizeof b));
        }
        const void *contents;
        dp_status status = contents_of(w, place, given, &contents);
        void *data = status == DP_OK ? dp_reference_input(w->reference, value) : NULL;
        if (!data)
            return status == DP_OK ? DP_ERR_OUT_OF_MEMORY : status;
        if (floats)
            dp_reference_widen(data, contents, given->tensor.element, (size_t)dp_tensor_count(&value->tensor));
        else
            memcpy(data, contents, dp_value_bytes(value));
    }
    return DP_OK;
}

static dp_status run(walk *w) {
    uint32_t marks = 0;
    unsigned done = 0, of = 0;
    dp_status status = dp_reference_new(w->model->graph, &w->reference);
    if (status != DP_OK)
        return status;
    for (const dp_node *node = w->model->graph->first; node; node = node->next, of++)
        marks += (uint32_t)(node->n_inputs + node->n_outputs);
    marks += (uint32_t)(w->model->graph->n_inputs + w->model->graph->n_outputs);
    w->relative = dp_alloc(DP_MEM_GRAPH, (marks + 1) * sizeof *w->relative);
    if (!w->relative)
        return no_memory();
    status = open_compiled(&w->compiled);
    if (status == DP_OK)
        status = fill_inputs(w);
    for (dp_node *node = w->model->graph->first; node && status == DP_OK; node = node->next) {
        status = step(w, node);
        if (w->options->progress)
            w->options->progress(++done, of, w->options->data);
    }
    return status;
}

static bool has_dims(const dp_value *value, const dp_compare_options *o, int i) {
    return o->ranks[i] == value->tensor.rank &&
           memcmp(o->dims[i], value->tensor.dims, (size_t)o->ranks[i] * sizeof o->dims[i][0]) == 0;
}

/* Of the listed sizes, the one with these dims. */
static dp_status find_gear(dp_model_file *file, const dp_compare_options *o, dp_graph **out_graph) {
    int n = dp_model_file_variants(file);
    for (int g = 0; g < n; g++) {
        dp_graph *graph = dp_model_file_variant(file, g)->graph;
        int i = 0;
        while (o->dims && i < graph->n_inputs && has_dims(graph->inputs[i], o, i))
            i++;
        if (n == 1 || !o->dims || i == graph->n_inputs) {
            *out_graph = graph;
            return DP_OK;
        }
    }
    return dp_fail(DP_ERR_ARGUMENT, "the model was compiled for other shapes");
}

/* A model that is lowered while it runs, as it runs for these dims. */
static dp_status lower_now(dp_model_file *file, const dp_compare_options *o, dp_staged **out_staged,
                           dp_graph **out_graph) {
    dp_graph *source = dp_model_file_variant(file, 0)->graph;
    const dp_shapes *shapes = dp_model_file_shapes(file);
    if (!o->dims)
        return dp_fail(DP_ERR_ARGUMENT, "the model is lowered while it runs: dims of its inputs are needed");
    dp_tensor *inputs = dp_alloc(DP_MEM_GRAPH, (size_t)source->n_inputs * sizeof *inputs + 1);
    if (!inputs)
        return no_memory();
    dp_status status = DP_OK;
    for (int i = 0; i < source->n_inputs && status == DP_OK; i++) {
        if (o->ranks[i] < 0 || o->ranks[i] > DP_TENSOR_DIMS) {
            status = dp_fail(DP_ERR_ARGUMENT, "ranks[%d] is %d, but must be 0 to %d", i, o->ranks[i], DP_TENSOR_DIMS);
            break;
        }
        inputs[i] = (dp_tensor){.element = source->inputs[i]->tensor.element, .rank = o->ranks[i]};
        memcpy(inputs[i].dims, o->dims[i], (size_t)o->ranks[i] * sizeof inputs[i].dims[0]);
        status = dp_tensor_check(&inputs[i], source->inputs[i]->name);
        if (status == DP_OK)
            status = dp_shapes_check(shapes, i, source->inputs[i]->name, &inputs[i]);
    }
    if (status == DP_OK)
        status = dp_staged_new(source, shapes->opset, out_staged);
    if (status == DP_OK)
        status = dp_staged_graph(*out_staged, inputs, out_graph);
    if (status == DP_ERR_UNSUPPORTED) {
        char reason[512];
        snprintf(reason, sizeof reason, "%s", dp_fail_message());
        status = dp_fail(status, "%s: such models are not compared", reason);
    }
    dp_free(inputs);
    return status;
}

/* Sets the model as it was read beside the graph that was made of it. */
static dp_status compare_graph(const dp_onnx_source *file, dp_graph *graph, const void *const *inputs,
                               const dp_compare_options *options, dp_compare_totals *totals) {
    dp_input_shape *shapes = dp_alloc(DP_MEM_GRAPH, ((size_t)graph->n_inputs + 1) * sizeof *shapes);
    walk w = {.compiled = {.graph = graph, .inputs = inputs}, .options = options, .totals = totals};
    if (!shapes)
        return no_memory();
    dp_onnx_source source = *file;
    int n = 0;
    for (int i = 0; i < graph->n_inputs; i++) {
        const dp_value *value = prepared(graph, graph->inputs[i]);
        if (!value)
            continue;
        shapes[n] = (dp_input_shape){.name = graph->inputs[i]->name, .rank = value->tensor.rank};
        memcpy(shapes[n++].dims, value->tensor.dims, sizeof shapes[0].dims);
    }
    source.shapes = shapes;
    source.n_shapes = n;
    bool stopped = false;
    dp_status status = dp_compile_lowered(&source, &w.model, &stopped);
    if (stopped)
        status = dp_fail(DP_ERR_UNSUPPORTED,
                         "the model has loops or shapes that depend on its data: such models are not compared");
    else if (status == DP_ERR_ARGUMENT) {
        char reason[512];
        snprintf(reason, sizeof reason, "%s", dp_fail_message());
        status = dp_fail(
            status, "the ONNX file does not go with the compiled model, was that made from another file? %s", reason);
    }
    if (status == DP_OK)
        status = run(&w);
    dp_reference_free(w.reference);
    dp_free(w.relative);
    close_compiled(&w.compiled);
    dp_model_free(w.model);
    dp_free(shapes);
    return status;
}

dp_status dp_compare(const void *onnx, size_t onnx_bytes, const char *folder, dp_model_file *file,
                     const void *const *inputs, const dp_compare_options *options, dp_compare_totals *out_totals) {
    const dp_onnx_source source = {.name = options->onnx, .bytes = onnx, .size_bytes = onnx_bytes, .folder = folder};
    dp_staged *staged = NULL;
    dp_graph *graph = NULL;
    memset(out_totals, 0, sizeof *out_totals);
    dp_status status = dp_model_file_shapes(file)->is_source ? lower_now(file, options, &staged, &graph)
                                                             : find_gear(file, options, &graph);
    if (status == DP_OK)
        status = compare_graph(&source, graph, inputs, options, out_totals);
    dp_staged_free(staged);
    return status;
}
