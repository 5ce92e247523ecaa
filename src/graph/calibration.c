#include "graph/calibration.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "graph/infer.h"
#include "graph/npy.h"
#include "graph/program.h"

enum { PATH_BYTES = 4096, BINS = 4096 };

static dp_status no_memory(void) {
    return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for calibration: free some, or give fewer samples");
}

/* Samples. */

static double number_at(const dp_tensor *t, int64_t i) {
    return t->element == DP_F32   ? (double)((const float *)t->base)[i]
           : t->element == DP_F64 ? ((const double *)t->base)[i]
                                  : ((const uint8_t *)t->base)[i];
}

/* The samples of one file. */
static dp_status add_array(dp_calibration *c, const dp_value *input, const dp_tensor *array, const char *path) {
    const int64_t each = dp_tensor_count(&input->tensor), all = dp_tensor_count(array);
    int same = 0;
    while (same < array->rank && same < input->tensor.rank &&
           array->dims[array->rank - 1 - same] == input->tensor.dims[input->tensor.rank - 1 - same])
        same++;
    char found[160], wanted[160];
    if (each == 0 || all == 0 || all % each || same < input->tensor.rank - 1)
        return dp_fail(DP_ERR_ARGUMENT,
                       "%s has the shape %s, but input \"%s\" has %s; the first dimension may be a multiple", path,
                       dp_dims_describe(array->dims, array->rank, found, sizeof found), input->name,
                       dp_dims_describe(input->tensor.dims, input->tensor.rank, wanted, sizeof wanted));
    for (int64_t first = 0; first < all; first += each) {
        if (c->n_samples == DP_CALIBRATION_SAMPLES)
            return dp_fail(DP_ERR_UNSUPPORTED, "%s has more than %d samples: some hundred are plenty", c->path,
                           DP_CALIBRATION_SAMPLES);
        void *contents = dp_alloc(DP_MEM_GRAPH, dp_value_bytes(input) + 1);
        if (!contents)
            return no_memory();
        c->samples[c->n_samples++].contents = contents;
        for (int64_t i = 0; i < each; i++) {
            double number = number_at(array, first + i);
            if (input->tensor.element == DP_F32)
                ((float *)contents)[i] = (float)number;
            else
                ((uint8_t *)contents)[i] = (uint8_t)(number < 0 ? 0 : number > 255 ? 255 : number);
        }
    }
    return DP_OK;
}

static dp_status add_file(dp_calibration *c, const dp_value *input, const char *path) {
    dp_tensor array;
    dp_status status = dp_npy_read(path, &array);
    if (status != DP_OK)
        return status;
    status = add_array(c, input, &array, path);
    dp_free(array.base);
    return status;
}

static int is_array(const struct dirent *entry) {
    size_t length = strlen(entry->d_name);
    return length > 4 && strcmp(entry->d_name + length - 4, ".npy") == 0;
}

static dp_status add_folder(dp_calibration *c, const dp_value *input) {
    struct dirent **entries;
    int n = scandir(c->path, &entries, is_array, alphasort);
    if (n < 0)
        return dp_fail(DP_ERR_IO, "calibration %s: %s", c->path, strerror(errno));
    dp_status status = DP_OK;
    for (int i = 0; i < n; i++) {
        char path[PATH_BYTES];
        if ((size_t)snprintf(path, sizeof path, "%s/%s", c->path, entries[i]->d_name) >= sizeof path)
            status = dp_fail(DP_ERR_ARGUMENT, "calibration: a name is longer than %d bytes", PATH_BYTES);
        if (status == DP_OK)
            status = add_file(c, input, path);
        free(entries[i]);
    }
    free(entries);
    return status;
}

dp_status dp_calibration_read(dp_calibration *c, const dp_graph *graph) {
    struct stat about;
    dp_calibration_free(c);
    if (graph->n_inputs != 1)
        return dp_fail(DP_ERR_UNSUPPORTED, "calibration is for models with one input, but this one has %d",
                       graph->n_inputs);
    const dp_value *input = graph->inputs[0];
    if (input->tensor.element != DP_F32 && input->tensor.element != DP_U8)
        return dp_fail(DP_ERR_UNSUPPORTED, "calibration is for inputs of float or uint8, but \"%s\" is %s", input->name,
                       dp_element_name(input->tensor.element));
    if (stat(c->path, &about) != 0)
        return dp_fail(DP_ERR_IO, "calibration %s: %s", c->path, strerror(errno));
    c->samples = dp_alloc(DP_MEM_GRAPH, DP_CALIBRATION_SAMPLES * sizeof *c->samples);
    if (!c->samples)
        return no_memory();
    dp_status status = S_ISDIR(about.st_mode) ? add_folder(c, input) : add_file(c, input, c->path);
    if (status == DP_OK && c->n_samples == 0)
        return dp_fail(DP_ERR_ARGUMENT, "calibration %s has no .npy files", c->path);
    return status;
}

void dp_calibration_free(dp_calibration *c) {
    for (int i = 0; i < c->n_samples; i++) {
        for (int k = 0; c->samples[i].outputs && k < c->n_outputs; k++)
            dp_free(c->samples[i].outputs[k]);
        dp_free(c->samples[i].outputs);
        dp_free(c->samples[i].contents);
    }
    dp_free(c->samples);
    c->samples = NULL;
    c->n_samples = 0;
}

/* Observation. */

static void least_and_greatest(const float *x, int64_t n, dp_range *out) {
    *out = (dp_range){INFINITY, -INFINITY, 0, 0};
    for (int64_t i = 0; i < n; i++) {
        if (!isfinite(x[i]))
            continue;
        out->least = x[i] < out->least ? x[i] : out->least;
        out->greatest = x[i] > out->greatest ? x[i] : out->greatest;
        out->sum += (double)x[i];
        out->count++;
    }
}

/* The range without one number in ten thousand at each end. */
static void cut_off(const float *x, int64_t n, dp_range *range) {
    uint32_t bins[BINS] = {0};
    const float low = range->least, width = (range->greatest - range->least) / BINS;
    const int64_t spare = n / 10000;
    if (!(width > 0) || spare == 0)
        return;
    for (int64_t i = 0; i < n; i++) {
        if (!isfinite(x[i]))
            continue;
        int bin = (int)((x[i] - low) / width);
        bins[bin < BINS ? bin : BINS - 1]++;
    }
    int first = 0, last = BINS - 1;
    for (int64_t passed = bins[0]; passed <= spare && first < last; passed += bins[++first]) {
    }
    for (int64_t passed = bins[BINS - 1]; passed <= spare && last > first; passed += bins[--last]) {
    }
    range->least = low + (float)first * width;
    range->greatest = low + (float)(last + 1) * width;
}

static void see_numbers(const dp_calibration *c, const float *x, int64_t n, dp_range *range) {
    dp_range seen;
    least_and_greatest(x, n, &seen);
    if (!c->whole_range && seen.least <= seen.greatest)
        cut_off(x, n, &seen);
    range->least = seen.least < range->least ? seen.least : range->least;
    range->greatest = seen.greatest > range->greatest ? seen.greatest : range->greatest;
    range->sum += seen.sum;
    range->count += seen.count;
}

static dp_status see(const dp_calibration *c, const dp_value *value, dp_seen *all) {
    if (value->tensor.element != DP_F32 || value->is_constant)
        return DP_OK;
    const dp_tensor *t = &value->tensor;
    dp_seen *seen = &all[value->mark - 1];
    see_numbers(c, t->base, dp_tensor_count(t), &seen->all);
    if (t->rank != 4 || dp_tensor_count(t) == 0)
        return DP_OK;
    if (!seen->channels) {
        seen->n_channels = t->dims[1];
        seen->channels = dp_alloc(DP_MEM_GRAPH, (size_t)t->dims[1] * sizeof *seen->channels);
        if (!seen->channels)
            return no_memory();
        for (int64_t i = 0; i < t->dims[1]; i++)
            seen->channels[i] = (dp_range){INFINITY, -INFINITY, 0, 0};
    }
    const int64_t plane = t->dims[2] * t->dims[3];
    for (int64_t i = 0; i < t->dims[0] * t->dims[1]; i++)
        see_numbers(c, (const float *)t->base + i * plane, plane, &seen->channels[i % t->dims[1]]);
    return DP_OK;
}

void dp_seen_free(dp_seen *seen, uint32_t n) {
    for (uint32_t i = 0; seen && i < n; i++)
        dp_free(seen[i].channels);
    dp_free(seen);
}

/* Marks values with numbers from 1 on; uses[mark - 1] then counts readers. */
static uint32_t number_values(dp_graph *graph) {
    uint32_t n = 0;
    dp_graph_clear_marks(graph);
    for (int i = 0; i < graph->n_inputs; i++)
        graph->inputs[i]->mark = ++n;
    for (dp_node *node = graph->first; node; node = node->next)
        for (int i = 0; i < node->n_outputs; i++)
            if (node->outputs[i])
                node->outputs[i]->mark = ++n;
    return n;
}

static void count_uses(const dp_graph *graph, uint32_t *uses) {
    for (const dp_node *node = graph->first; node; node = node->next)
        for (int i = 0; i < node->n_inputs; i++)
            if (node->inputs[i] && !node->inputs[i]->is_constant)
                uses[node->inputs[i]->mark - 1]++;
    for (int i = 0; i < graph->n_outputs; i++)
        if (graph->outputs[i]->mark)
            uses[graph->outputs[i]->mark - 1]++;
}

static dp_status run_node(dp_node *node) {
    for (int i = 0; i < node->n_outputs; i++)
        if (node->outputs[i] &&
            !(node->outputs[i]->tensor.base = dp_alloc(DP_MEM_GRAPH, dp_value_bytes(node->outputs[i]) + 1)))
            return no_memory();
    return dp_node_run(node);
}

static void let_go(dp_value *value, uint32_t *left) {
    if (!value || value->is_constant || !value->producer || --left[value->mark - 1])
        return;
    dp_free(value->tensor.base);
    value->tensor.base = NULL;
}

static dp_status keep_outputs(dp_calibration *c, dp_sample *sample, const dp_graph *graph) {
    c->n_outputs = graph->n_outputs;
    sample->outputs = dp_alloc(DP_MEM_GRAPH, (size_t)(graph->n_outputs + 1) * sizeof(void *));
    if (!sample->outputs)
        return no_memory();
    for (int i = 0; i < graph->n_outputs; i++) {
        const dp_value *value = graph->outputs[i];
        sample->outputs[i] = dp_alloc(DP_MEM_GRAPH, dp_value_bytes(value) + 1);
        if (!sample->outputs[i])
            return no_memory();
        if (value->tensor.base)
            memcpy(sample->outputs[i], value->tensor.base, dp_value_bytes(value));
    }
    return DP_OK;
}

static dp_status observe_sample(dp_calibration *c, dp_sample *sample, dp_graph *graph, dp_seen *seen, uint32_t *left) {
    graph->inputs[0]->tensor.base = sample->contents;
    dp_status status = see(c, graph->inputs[0], seen);
    count_uses(graph, left);
    for (dp_node *node = graph->first; node && status == DP_OK; node = node->next) {
        status = run_node(node);
        for (int i = 0; i < node->n_outputs && status == DP_OK; i++)
            if (node->outputs[i])
                status = see(c, node->outputs[i], seen);
        for (int i = 0; i < node->n_inputs && status == DP_OK; i++)
            let_go(node->inputs[i], left);
    }
    if (status == DP_OK)
        status = keep_outputs(c, sample, graph);
    for (dp_node *node = graph->first; node; node = node->next)
        for (int i = 0; i < node->n_outputs; i++)
            if (node->outputs[i]) {
                dp_free(node->outputs[i]->tensor.base);
                node->outputs[i]->tensor.base = NULL;
            }
    graph->inputs[0]->tensor.base = NULL;
    return status;
}

dp_status dp_calibration_observe(dp_calibration *c, dp_graph *graph, dp_seen **out_seen, uint32_t *out_n) {
    for (const dp_node *node = graph->first; node; node = node->next)
        if (node->n_bodies || dp_node_finds_dims(node))
            return dp_fail(
                DP_ERR_UNSUPPORTED,
                "calibration is for models without control flow and with fixed shapes, but node \"%s\" is %s",
                node->name, node->type);
    const uint32_t n = number_values(graph);
    dp_seen *seen = dp_alloc(DP_MEM_GRAPH, (n + 1) * sizeof *seen);
    uint32_t *left = dp_alloc(DP_MEM_GRAPH, (n + 1) * sizeof *left);
    dp_status status = seen && left ? DP_OK : no_memory();
    for (uint32_t i = 0; i < n && status == DP_OK; i++)
        seen[i].all = (dp_range){INFINITY, -INFINITY, 0, 0};
    for (int i = 0; i < c->n_samples && status == DP_OK; i++) {
        memset(left, 0, n * sizeof *left);
        status = observe_sample(c, &c->samples[i], graph, seen, left);
    }
    dp_free(left);
    *out_seen = seen;
    *out_n = n;
    if (status == DP_OK)
        return DP_OK;
    dp_seen_free(seen, n);
    *out_seen = NULL;
    return status;
}

/* What it costs. */

typedef struct loss {
    double product, here, there, error, most, greatest;
    int same_place; /* samples whose greatest number is at the same place */
} loss;

static void compare(const float *here, const float *there, int64_t n, loss *l) {
    int64_t place = 0, other = 0;
    for (int64_t i = 0; i < n; i++) {
        double a = (double)here[i], b = (double)there[i], difference = fabs(a - b);
        l->product += a * b;
        l->here += a * a;
        l->there += b * b;
        l->error += difference * difference;
        l->most = difference > l->most ? difference : l->most;
        l->greatest = fabs(b) > l->greatest ? fabs(b) : l->greatest;
        place = here[i] > here[place] ? i : place;
        other = there[i] > there[other] ? i : other;
    }
    l->same_place += place == other;
}

static size_t say(char *text, size_t bytes, const dp_value *output, const loss *l, int n_samples) {
    double cosine = l->here > 0 && l->there > 0 ? l->product / sqrt(l->here * l->there) : l->here == l->there;
    int n = snprintf(text, bytes,
                     "output \"%.80s\": cosine %.6f, signal to noise %.1f dB, largest difference %.4g of values up to "
                     "%.4g, greatest number at "
                     "the same place in %d of %d samples\n",
                     output->name, cosine, l->error > 0 ? 10 * log10(l->there / l->error) : INFINITY, l->most,
                     l->greatest, l->same_place, n_samples);
    return n < 0 ? 0 : (size_t)n < bytes ? (size_t)n : bytes ? bytes - 1 : 0;
}

static dp_status run_samples(const dp_calibration *c, const dp_graph *graph, dp_program *program, void **outputs,
                             void *work, loss *losses) {
    for (int s = 0; s < c->n_samples; s++) {
        dp_status status = dp_program_run(program, &c->samples[s].contents, outputs, work);
        if (status != DP_OK)
            return status;
        for (int i = 0; i < graph->n_outputs; i++)
            if (graph->outputs[i]->tensor.element == DP_F32)
                compare(outputs[i], c->samples[s].outputs[i], dp_tensor_count(&graph->outputs[i]->tensor), &losses[i]);
    }
    return DP_OK;
}

dp_status dp_calibration_report(const dp_calibration *c, dp_graph *graph, char *text, size_t text_bytes) {
    dp_program *program;
    dp_status status = dp_program_new(graph, &program);
    if (status != DP_OK)
        return status;
    const int n = graph->n_outputs;
    void *work = dp_alloc(DP_MEM_GRAPH, dp_program_work_bytes(program) + 1);
    void **outputs = dp_alloc(DP_MEM_GRAPH, (size_t)(n + 1) * sizeof(void *));
    loss *losses = dp_alloc(DP_MEM_GRAPH, (size_t)(n + 1) * sizeof *losses);
    if (!outputs || !losses || !work)
        status = no_memory();
    for (int i = 0; i < n && status == DP_OK; i++)
        if (!(outputs[i] = dp_alloc(DP_MEM_GRAPH, dp_value_bytes(graph->outputs[i]) + 1)))
            status = no_memory();
    if (status == DP_OK)
        status = run_samples(c, graph, program, outputs, work, losses);
    size_t used = 0;
    if (text_bytes)
        text[0] = '\0';
    for (int i = 0; i < n && status == DP_OK; i++)
        if (graph->outputs[i]->tensor.element == DP_F32)
            used += say(text + used, text_bytes - used, graph->outputs[i], &losses[i], c->n_samples);
    for (int i = 0; outputs && i < n; i++)
        dp_free(outputs[i]);
    dp_free(outputs);
    dp_free(losses);
    dp_free(work);
    dp_program_free(program);
    return status;
}
