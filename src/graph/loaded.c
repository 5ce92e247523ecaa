#include "graph/loaded.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "graph/dump.h"
#include "graph/program.h"
#include "graph/staged.h"
#include "runtime/device_memory.h"
#include "runtime/fork.h"

struct dp_loaded {
    _Atomic int references;
    uint32_t id;
    dp_model_file *file;
    dp_program **programs; /* by variant; NULL: staged */
    dp_staged *staged;
    void **addresses; /* of one run: inputs, outputs */
    void *work;
    bool own_work;
    pthread_mutex_t last_lock; /* of the next two */
    int gear;
    dp_tensor *last;         /* shapes of outputs */
    pthread_mutex_t running; /* of the next two, and of what a run changes */
    bool is_running;
    bool is_torn; /* in a child of fork: the thread that was running it is gone, and what it ran must be made anew */
    dp_loaded *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static dp_loaded *models;
static uint32_t last_id;

static void before_fork(void) {
    for (dp_loaded *model = models; model; model = model->next)
        pthread_mutex_lock(&model->last_lock);
}

/* A fork does not wait for runs, which may take long. */
static void after_fork(bool is_child) {
    for (dp_loaded *model = models; model; model = model->next) {
        pthread_mutex_unlock(&model->last_lock);
        if (!is_child)
            continue;
        model->is_torn |= model->is_running;
        model->is_running = false;
        pthread_mutex_init(&model->running, NULL);
    }
}

static dp_fork_part fork_part = {.floor = DP_FORK_GRAPH, .lock = &lock, .before = before_fork, .after = after_fork};

static const dp_graph *graph_of(const dp_loaded *model, int gear) {
    return dp_model_file_variant(model->file, gear)->graph;
}

/* All but the file. */
static void destroy(dp_loaded *model) {
    for (int i = 0; model->programs && i < dp_model_file_variants(model->file); i++)
        dp_program_free(model->programs[i]);
    dp_free(model->programs);
    dp_staged_free(model->staged);
    dp_free(model->addresses);
    dp_free(model->last);
    if (model->own_work && model->work)
        dp_device_memory_free(model->work);
    pthread_mutex_destroy(&model->running);
    pthread_mutex_destroy(&model->last_lock);
    dp_free(model);
}

static dp_status no_memory(void) {
    return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for a model: free some");
}

static dp_status make_programs(dp_loaded *model, size_t work_bytes) {
    int n = dp_model_file_variants(model->file);
    size_t most = 1;
    model->programs = dp_alloc(DP_MEM_GRAPH, (size_t)n * sizeof *model->programs);
    if (!model->programs)
        return no_memory();
    for (int i = 0; i < n; i++) {
        dp_status status = dp_program_new(dp_model_file_variant(model->file, i)->graph, &model->programs[i]);
        if (status != DP_OK)
            return status;
        size_t bytes = dp_program_work_bytes(model->programs[i]);
        most = bytes > most ? bytes : most;
    }
    model->own_work = !model->work || work_bytes < most;
    return model->own_work ? dp_device_memory_alloc(most, &model->work) : DP_OK;
}

static dp_status prepare(dp_loaded *model, void *work, size_t work_bytes) {
    const dp_shapes *shapes = dp_model_file_shapes(model->file);
    const dp_graph *graph = graph_of(model, 0);
    size_t ends = (size_t)(graph->n_inputs + graph->n_outputs), needed = dp_model_file_work_bytes(model->file);
    if (work && work_bytes < needed)
        return dp_fail(DP_ERR_ARGUMENT, "workSize is %zu, but the model needs %zu bytes: query its size first",
                       work_bytes, needed);
    model->addresses = dp_alloc(DP_MEM_GRAPH, ends * sizeof(void *) + 1);
    model->last = dp_alloc(DP_MEM_GRAPH, (size_t)graph->n_outputs * sizeof *model->last + 1);
    if (!model->addresses || !model->last)
        return no_memory();
    for (int i = 0; i < graph->n_outputs; i++)
        model->last[i].rank = DP_UNKNOWN;
    if (shapes->is_source)
        return dp_staged_new(dp_model_file_variant(model->file, 0)->graph, shapes->opset, &model->staged);
    model->work = work;
    dp_status status = make_programs(model, work_bytes);
    if (status != DP_OK)
        model->work = NULL; /* taken over only when all is well */
    else
        dp_loaded_choose(model, 0);
    return status;
}

dp_status dp_loaded_add(dp_model_file *file, void *work, size_t work_bytes, uint32_t *out_id) {
    dp_loaded *model = dp_alloc(DP_MEM_GRAPH, sizeof *model);
    if (!model)
        return no_memory();
    *model = (dp_loaded){.references = 1, .file = file};
    pthread_mutex_init(&model->running, NULL);
    pthread_mutex_init(&model->last_lock, NULL);
    dp_status status = prepare(model, work, work_bytes);
    if (status != DP_OK) {
        destroy(model);
        return status;
    }
    dp_fork_lock(&fork_part);
    model->id = ++last_id;
    model->next = models;
    models = model;
    pthread_mutex_unlock(&lock);
    *out_id = model->id;
    return DP_OK;
}

static dp_status no_model(uint32_t id) {
    return dp_fail(DP_ERR_NOT_FOUND, "modelId is %u, but must be the number of a model that is loaded", id);
}

dp_status dp_loaded_remove(uint32_t id) {
    dp_fork_lock(&fork_part);
    dp_loaded **at = &models;
    while (*at && (*at)->id != id)
        at = &(*at)->next;
    dp_loaded *model = *at;
    if (model)
        *at = model->next;
    pthread_mutex_unlock(&lock);
    if (!model)
        return no_model(id);
    dp_loaded_release(model);
    return DP_OK;
}

dp_loaded *dp_loaded_get(uint32_t id) {
    dp_fork_lock(&fork_part);
    dp_loaded *model = models;
    while (model && model->id != id)
        model = model->next;
    if (model)
        atomic_fetch_add(&model->references, 1);
    pthread_mutex_unlock(&lock);
    if (!model)
        no_model(id);
    return model;
}

void dp_loaded_release(dp_loaded *model) {
    if (!model || atomic_fetch_sub(&model->references, 1) != 1)
        return;
    dp_model_file *file = model->file;
    destroy(model);
    dp_model_file_close(file);
}

const dp_model_file *dp_loaded_file(const dp_loaded *model) {
    return model->file;
}

void dp_loaded_choose(dp_loaded *model, int gear) {
    const dp_graph *graph = graph_of(model, model->staged ? 0 : gear);
    pthread_mutex_lock(&model->last_lock);
    model->gear = gear;
    for (int i = 0; i < graph->n_outputs && !model->staged; i++)
        model->last[i] = graph->outputs[i]->tensor;
    pthread_mutex_unlock(&model->last_lock);
}

void dp_loaded_output(dp_loaded *model, int index, dp_tensor *out_shape) {
    pthread_mutex_lock(&model->last_lock);
    *out_shape = model->last[index];
    pthread_mutex_unlock(&model->last_lock);
}

/* Where output `index` goes, now that its shape is known. */
static dp_status find_room(dp_output *output, const dp_value *value, int index, dp_tensor *tensor) {
    size_t bytes = (size_t)dp_tensor_count(tensor) * dp_element_bytes(tensor->element);
    if (!output->base && output->room_bytes == 0 && bytes) {
        dp_status status = dp_device_memory_alloc(bytes, &output->base);
        if (status != DP_OK)
            return status;
        output->is_taken = true;
        output->room_bytes = bytes;
    }
    if (output->room_bytes < bytes)
        return dp_fail(DP_ERR_ARGUMENT, "output %d (%.100s): the buffer has %zu bytes, but the result has %zu", index,
                       value->name, output->room_bytes, bytes);
    tensor->base = output->base;
    output->shape = *tensor;
    return DP_OK;
}

typedef struct rooms {
    const dp_graph *graph;
    dp_output *outputs;
} rooms;

static dp_status room_of(void *data, int index, dp_tensor *tensor) {
    rooms *r = data;
    return find_room(&r->outputs[index], r->graph->outputs[index], index, tensor);
}

static dp_status run_staged(dp_loaded *model, int gear, const dp_tensor *inputs, dp_output *outputs) {
    const dp_shapes *shapes = dp_model_file_shapes(model->file);
    const dp_graph *graph = graph_of(model, 0);
    rooms r = {graph, outputs};
    for (int i = 0; i < graph->n_inputs; i++) {
        dp_tensor wanted = inputs[i];
        dp_status status = dp_tensor_check(&inputs[i], graph->inputs[i]->name);
        if (status == DP_OK)
            status = dp_shapes_check(shapes, i, graph->inputs[i]->name, &inputs[i]);
        if (status != DP_OK)
            return status;
        if (shapes->n_gears)
            dp_shapes_gear(shapes, gear, i, &wanted);
        if (memcmp(wanted.dims, inputs[i].dims, (size_t)wanted.rank * sizeof wanted.dims[0]) != 0)
            return dp_fail(DP_ERR_ARGUMENT, "input \"%s\" has not the dims of the gear", graph->inputs[i]->name);
    }
    return dp_staged_run(model->staged, inputs, room_of, &r);
}

static dp_status run_program(dp_loaded *model, int gear, const dp_tensor *inputs, dp_output *outputs) {
    const dp_graph *graph = graph_of(model, gear);
    for (int i = 0; i < graph->n_inputs; i++)
        model->addresses[i] = inputs[i].base;
    for (int i = 0; i < graph->n_outputs; i++) {
        dp_tensor shape = graph->outputs[i]->tensor;
        dp_status status = find_room(&outputs[i], graph->outputs[i], i, &shape);
        if (status != DP_OK)
            return status;
        model->addresses[graph->n_inputs + i] = shape.base;
    }
    return dp_program_run(model->programs[gear], model->addresses, model->addresses + graph->n_inputs, model->work);
}

/* What a run that failed has taken. */
static void give_back(dp_output *outputs, int n) {
    for (int i = 0; i < n; i++) {
        if (!outputs[i].is_taken)
            continue;
        dp_device_memory_free(outputs[i].base);
        outputs[i] = (dp_output){.base = NULL};
    }
}

/* What a thread that is gone left half done is given up, not freed: nobody knows what of it is whole. */
static dp_status mend(dp_loaded *model) {
    dp_status status = DP_OK;
    if (model->staged) {
        dp_staged *fresh = NULL;
        status = dp_staged_new(dp_model_file_variant(model->file, 0)->graph, dp_model_file_shapes(model->file)->opset,
                               &fresh);
        model->staged = status == DP_OK ? fresh : model->staged;
    }
    for (int i = 0; model->programs && i < dp_model_file_variants(model->file) && status == DP_OK; i++) {
        dp_program *fresh = NULL;
        status = dp_program_new(dp_model_file_variant(model->file, i)->graph, &fresh);
        model->programs[i] = status == DP_OK ? fresh : model->programs[i];
    }
    model->is_torn = status != DP_OK;
    return status;
}

static dp_status run(dp_loaded *model, int gear, const dp_tensor *inputs, dp_output *outputs) {
    dp_status status = model->is_torn ? mend(model) : DP_OK;
    if (status != DP_OK)
        return status;
    return model->staged ? run_staged(model, gear, inputs, outputs) : run_program(model, gear, inputs, outputs);
}

dp_status dp_loaded_run(dp_loaded *model, int gear, const dp_tensor *inputs, dp_output *outputs) {
    int n = graph_of(model, 0)->n_outputs;
    pthread_mutex_lock(&model->running);
    model->is_running = true;
    if (DP_UNLIKELY(dp_dump_on()))
        dp_dump_begin(graph_of(model, 0)->name, model->id);
    dp_status status = run(model, gear, inputs, outputs);
    dp_dump_end();
    model->is_running = false;
    pthread_mutex_unlock(&model->running);
    if (status != DP_OK) {
        give_back(outputs, n);
        return status;
    }
    pthread_mutex_lock(&model->last_lock);
    model->gear = gear;
    for (int i = 0; i < n; i++)
        model->last[i] = outputs[i].shape;
    pthread_mutex_unlock(&model->last_lock);
    return DP_OK;
}
