/*
 * model_format.h - the layout of a model file. Numbers are little-endian.
 *
 * Graphs section: first which shapes the model takes: u32 kind, u32 1 when it is lowered while it runs, u32 operator set, u32 inputs,
 * each: u32 rank, rank x (i64 least, i64 most); u32 gears, u32 numbers of each, gears x numbers x i64. Then per variant: u32 n_values, then each value: text name, i32 element, i32 rank, rank x i64 dims, u64 place (0: no
 * constant, otherwise 1 + offset in the weights); then the graph: text name, u32 inputs (count, value numbers), u32 outputs
 * likewise, u32 n_nodes, then each node: text type, text name, inputs, outputs (value number + 1, 0: absent), u32
 * n_attributes, each: text name, u32 kind, contents; u32 n_bodies, each: text name, graph. A text is u32 bytes, then the bytes.
 */
#ifndef DOPPEL_GRAPH_MODEL_FORMAT_H
#define DOPPEL_GRAPH_MODEL_FORMAT_H

#include <stdint.h>

#define DP_MODEL_MAGIC "DOPPELOM"
enum { DP_MODEL_VERSION = 2, DP_MODEL_ALIGN = 64, DP_MODEL_DEPTH = 32 };

typedef struct dp_model_header {
    char magic[8];
    uint32_t version;
    uint32_t n_variants;
    uint64_t file_bytes;
    uint64_t graphs_offset, graphs_bytes, graphs_hash; /* hashes: XXH3, 64 bits */
    uint64_t weights_offset, weights_bytes, weights_hash;
    uint64_t work_bytes;  /* that the variants' programs needed where they were compiled */
    uint64_t header_hash; /* of the bytes before it */
} dp_model_header;

#endif
