/*
 * calibration.h - data that a float model is run with, to learn which numbers its values have and what int8 costs.
 */
#ifndef DOPPEL_GRAPH_CALIBRATION_H
#define DOPPEL_GRAPH_CALIBRATION_H

#include "graph/graph.h"

enum { DP_CALIBRATION_SAMPLES = 1024 };

typedef struct dp_sample {
    void *contents; /* of the model's input */
    void **outputs; /* what the float model makes of it; set by dp_calibration_observe */
} dp_sample;

typedef struct dp_calibration {
    const char *path;
    bool whole_range; /* least and greatest numbers; otherwise one number in ten thousand at each end may be cut off */
    dp_sample *samples;
    int n_samples, n_outputs;
} dp_calibration;

/* Numbers that a value, or one channel of it, had. least > greatest: none was seen. */
typedef struct dp_range {
    float least, greatest;
    double sum, count; /* of the finite ones */
} dp_range;

typedef struct dp_seen {
    dp_range all;
    int64_t n_channels; /* of [batch, channels, height, width]; 0 for values of other ranks */
    dp_range *channels; /* NULL: memory was not needed */
} dp_seen;
void dp_seen_free(dp_seen *seen, uint32_t n); /* NULL is allowed */

/*
 * Reads calibration->path for the model's input: an .npy file (float32, float64 or uint8; the model's shape, or several
 * of them in the first dim), or a folder of such files, in the order of their names.
 */
dp_status dp_calibration_read(dp_calibration *calibration, const dp_graph *graph);
void dp_calibration_free(dp_calibration *calibration); /* what it owns; a zeroed one is fine */

/*
 * Runs the graph, node by node, with all samples. seen[mark - 1] of every float value that is no constant; marks are
 * set, and *out_n values are marked. The caller frees *out_seen with dp_seen_free.
 */
dp_status dp_calibration_observe(dp_calibration *calibration, dp_graph *graph, dp_seen **out_seen, uint32_t *out_n);

/* Runs the finished graph with all samples and writes how far its outputs are from the float model's: a line per
 * output. */
dp_status dp_calibration_report(const dp_calibration *calibration, dp_graph *graph, char *text, size_t text_bytes);

#endif
