/*
 * loaded.h - models that a program has loaded, by number: a file, a program per variant or stages, memory to work in.
 */
#ifndef DOPPEL_GRAPH_LOADED_H
#define DOPPEL_GRAPH_LOADED_H

#include "graph/model_file.h"

typedef struct dp_loaded dp_loaded;

/*
 * Makes the programs. The file belongs to the model from now on, unless this fails. work: the caller's device memory,
 * at least dp_model_file_work_bytes (else DP_ERR_ARGUMENT), which must stay as long as the model; NULL: the model takes
 * its own. Models that are lowered while they run, and those that need more on this machine, take their own in any
 * case.
 */
dp_status dp_loaded_add(dp_model_file *file, void *work, size_t work_bytes, uint32_t *out_id);
/* The number is free again at once; the model's memory is when nothing runs any more. */
dp_status dp_loaded_remove(uint32_t id);

/* The model and a reference to it, which dp_loaded_release gives back. NULL with a sentence when there is none. */
dp_loaded *dp_loaded_get(uint32_t id);
void dp_loaded_release(dp_loaded *model); /* NULL is allowed */
const dp_model_file *dp_loaded_file(const dp_loaded *model);

/* The gear that was chosen last, and the dims that output `index` has for it or had in the last run: *out_shape, whose
 * rank is DP_UNKNOWN before the first. From any thread. */
void dp_loaded_choose(dp_loaded *model, int gear);
void dp_loaded_output(dp_loaded *model, int index, dp_tensor *out_shape);

/* One output of a run. */
typedef struct dp_output {
    void *base; /* NULL with room_bytes 0: device memory is taken for it, which is the caller's when the run succeeds */
    size_t room_bytes;
    bool is_taken;
    dp_tensor shape; /* set by the run */
} dp_output;

/*
 * One run after the other, whatever thread calls. gear: 0 without gears. Inputs: contiguous, as large as the gear or
 * the declared shapes say; they are checked where the model does not fix them.
 */
dp_status dp_loaded_run(dp_loaded *model, int gear, const dp_tensor *inputs, dp_output *outputs);

#endif
