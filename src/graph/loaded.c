#include "graph/loaded.h"

#include <pthread.h>
#include <stdatomic.h>

#include "graph/program.h"
#include "runtime/device_memory.h"

struct dp_loaded {
    _Atomic int references;
    uint32_t id;
    dp_model_file *file;
    dp_program **programs; /* by variant */
    void *work;
    size_t work_bytes; /* of the caller's memory */
    bool own_work;
    pthread_mutex_t running;
    dp_loaded *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static dp_loaded *models;
static uint32_t last_id;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void before_fork(void) {
    pthread_mutex_lock(&lock);
}
static void after_fork(void) {
    pthread_mutex_unlock(&lock);
}
static void install(void) {
    pthread_atfork(before_fork, after_fork, after_fork);
}

dp_status dp_loaded_work_bytes(const dp_model_file *file, size_t *out_bytes) {
    size_t most = 1;
    for (int i = 0; i < dp_model_file_variants(file); i++) {
        dp_program *program;
        dp_status status = dp_program_new(dp_model_file_variant(file, i)->graph, &program);
        if (status != DP_OK)
            return status;
        size_t bytes = dp_program_work_bytes(program);
        most = bytes > most ? bytes : most;
        dp_program_free(program);
    }
    *out_bytes = most;
    return DP_OK;
}

/* All but the file. */
static void destroy(dp_loaded *model) {
    for (int i = 0; model->programs && i < dp_model_file_variants(model->file); i++)
        dp_program_free(model->programs[i]);
    dp_free(model->programs);
    if (model->own_work && model->work)
        dp_device_memory_free(model->work);
    pthread_mutex_destroy(&model->running);
    dp_free(model);
}

static dp_status make_programs(dp_loaded *model) {
    int n = dp_model_file_variants(model->file);
    size_t most = 1;
    model->programs = dp_alloc(DP_MEM_GRAPH, (size_t)n * sizeof *model->programs);
    if (!model->programs)
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for a model: free some");
    for (int i = 0; i < n; i++) {
        dp_status status = dp_program_new(dp_model_file_variant(model->file, i)->graph, &model->programs[i]);
        if (status != DP_OK)
            return status;
        size_t bytes = dp_program_work_bytes(model->programs[i]);
        most = bytes > most ? bytes : most;
    }
    if (model->own_work)
        return dp_device_memory_alloc(most, &model->work);
    if (model->work_bytes < most)
        return dp_fail(DP_ERR_ARGUMENT, "workSize is %zu, but the model needs %zu bytes: query its size first",
                       model->work_bytes, most);
    return DP_OK;
}

dp_status dp_loaded_add(dp_model_file *file, void *work, size_t work_bytes, uint32_t *out_id) {
    pthread_once(&once, install);
    dp_loaded *model = dp_alloc(DP_MEM_GRAPH, sizeof *model);
    if (!model)
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for a model: free some");
    *model = (dp_loaded){.references = 1, .file = file, .work = work, .work_bytes = work_bytes, .own_work = !work};
    pthread_mutex_init(&model->running, NULL);
    dp_status status = make_programs(model);
    if (status != DP_OK) {
        destroy(model);
        return status;
    }
    pthread_mutex_lock(&lock);
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
    pthread_mutex_lock(&lock);
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
    pthread_mutex_lock(&lock);
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

dp_status dp_loaded_run(dp_loaded *model, int index, void *const *inputs, void *const *outputs) {
    pthread_mutex_lock(&model->running);
    dp_status status = dp_program_run(model->programs[index], inputs, outputs, model->work);
    pthread_mutex_unlock(&model->running);
    return status;
}
