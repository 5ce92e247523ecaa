/*
 * model_file.h - compiled models in a file: what atc writes under the name .om.
 *
 * A header, the graphs, the weights. Everything is found by offsets, so the file is mapped and used where it lies; processes
 * that load the same file share the weights' pages. One file holds the same model for one or more input shapes (variants);
 * equal weights are stored once.
 */
#ifndef DOPPEL_GRAPH_MODEL_FILE_H
#define DOPPEL_GRAPH_MODEL_FILE_H

#include "graph/graph.h"
#include "graph/shapes.h"

typedef struct dp_model_file dp_model_file;

/*
 * Writes (or replaces, in one step) the file. Graphs must be lowered, one per gear; with shapes->is_source there is one, as it was read.
 * shapes NULL: fixed ones.
 */
dp_status dp_model_file_write(const char *path, const dp_shapes *shapes, dp_model *const *variants, int n_variants);
/* The same in memory: dp_free gives it back. */
dp_status dp_model_file_pack(const dp_shapes *shapes, dp_model *const *variants, int n_variants, void **out_bytes,
                             size_t *out_size_bytes);

/*
 * Opens a file, or a copy of one in memory. DP_ERR_NOT_FOUND, DP_ERR_IO; DP_ERR_ARGUMENT: not such a file, or a damaged one (header and
 * graphs are verified; weights by dp_model_file_verify); DP_ERR_UNSUPPORTED: of another maker or version.
 */
dp_status dp_model_file_open(const char *path, dp_model_file **out_file);
dp_status dp_model_file_read(const void *bytes, size_t size_bytes, dp_model_file **out_file);
void dp_model_file_close(dp_model_file *file); /* NULL is allowed; the variants are gone with it */

int dp_model_file_variants(const dp_model_file *file);
/* Borrowed; constants lie in the mapped file and must not be written. */
dp_model *dp_model_file_variant(const dp_model_file *file, int index);
/* Borrowed. */
const dp_shapes *dp_model_file_shapes(const dp_model_file *file);
/* Bytes of the weights. */
size_t dp_model_file_weights_bytes(const dp_model_file *file);
/* Memory that a run needs, the most of all variants, as it was found when the file was written; at least 1. */
size_t dp_model_file_work_bytes(const dp_model_file *file);
/* Reads all weights and compares their checksum. */
dp_status dp_model_file_verify(const dp_model_file *file);

#endif
