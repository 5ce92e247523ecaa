/*
 * dump.h - values of models that run, in files: one .npy per output (or input) of every node. Off unless asked for.
 */
#ifndef DOPPEL_GRAPH_DUMP_H
#define DOPPEL_GRAPH_DUMP_H

#include "ops/op.h"

typedef struct dp_dump_settings {
    const char *folder; /* must exist or be possible to make */
    bool inputs, outputs;
    const char *const *models; /* names of graphs; none: all models */
    const char *const *layers; /* names of nodes; none: all */
    int n_models, n_layers;
} dp_dump_settings;

/* From now on every run of a model is dumped, from any thread; settings are copied. DP_ERR_IO: the folder cannot be
 * made. */
dp_status dp_dump_start(const dp_dump_settings *settings);
/* No more: runs that are under way may still write. */
void dp_dump_stop(void);
bool dp_dump_on(void);

/* This thread runs a model now, until dp_dump_end: files go to FOLDER/NAME_ID/RUN/STEP_TYPE_NODE.output.K.npy. */
void dp_dump_begin(const char *model, uint32_t id);
void dp_dump_end(void);
/* A node has run. What cannot be written is logged, not an error. */
void dp_dump_plan(const char *node, const dp_plan *plan);

#endif
