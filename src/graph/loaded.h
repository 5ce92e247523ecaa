/*
 * loaded.h - models that a program has loaded, by number: a file, a program per variant, memory to work in.
 */
#ifndef DOPPEL_GRAPH_LOADED_H
#define DOPPEL_GRAPH_LOADED_H

#include "graph/model_file.h"

typedef struct dp_loaded dp_loaded;

/* Device memory that a model needs to run: the most of its variants, at least 1. */
dp_status dp_loaded_work_bytes(const dp_model_file *file, size_t *out_bytes);

/*
 * Makes the programs. The file belongs to the model from now on, unless this fails. work: the caller's device memory, which
 * must stay as long as the model (DP_ERR_ARGUMENT when work_bytes are too few); NULL: the model takes its own.
 */
dp_status dp_loaded_add(dp_model_file *file, void *work, size_t work_bytes, uint32_t *out_id);
/* The number is free again at once; the model's memory is when nothing runs any more. */
dp_status dp_loaded_remove(uint32_t id);

/* The model and a reference to it, which dp_loaded_release gives back. NULL with a sentence when there is none. */
dp_loaded *dp_loaded_get(uint32_t id);
void dp_loaded_release(dp_loaded *model); /* NULL is allowed */
const dp_model_file *dp_loaded_file(const dp_loaded *model);

/* Runs variant `index`; one run after the other, whatever thread calls. Buffers as in dp_program_run. */
dp_status dp_loaded_run(dp_loaded *model, int index, void *const *inputs, void *const *outputs);

#endif
