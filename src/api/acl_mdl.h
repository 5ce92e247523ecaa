/*
 * acl_mdl.h - descriptions and data sets of models, between the files of this floor.
 */
#ifndef DOPPEL_API_ACL_MDL_H
#define DOPPEL_API_ACL_MDL_H

#include "api/api.h"
#include "base/arena.h"
#include "graph/model_file.h"

/* One buffer of a data set; it belongs to the caller. */
typedef struct dp_mdl_entry {
    aclDataBuffer *buffer;
    aclTensorDesc *desc; /* shape for one run, or of what a run has made; the data set's own, NULL: none */
} dp_mdl_entry;

/* Buffers in the order of a model's inputs or outputs. */
struct aclmdlDataset {
    size_t count, room;
    dp_mdl_entry *entries;
};

/* One input or output of a description. */
typedef struct dp_mdl_end {
    char *name;
    int element, rank;
    int64_t dims[DP_TENSOR_DIMS]; /* DP_UNKNOWN: open */
    size_t bytes;                 /* the most that there may be; 0: not known */
} dp_mdl_end;

enum { DP_MDL_INPUTS, DP_MDL_OUTPUTS };

struct aclmdlDesc {
    dp_arena arena;
    dp_mdl_end *ends[2]; /* inputs, outputs */
    size_t counts[2];
    dp_shapes shapes;
    uint32_t model_id; /* 0: of a file */
};

/* Gears have an input of their own behind the others: it takes the numbers of one. */
static inline bool dp_mdl_has_gears(const dp_shapes *shapes) {
    return shapes->n_gears > 0;
}

/* Memory that a caller brings for a load; all NULL or 0: none. */
typedef struct dp_mdl_memory {
    void *work, *weights;
    size_t work_bytes, weights_bytes;
    bool is_given;
} dp_mdl_memory;

/* The loads, as calls of the API; they end `call`. */
aclError dp_mdl_load_file(dp_api_call call, const char *path, const dp_mdl_memory *memory, uint32_t *modelId);
aclError dp_mdl_load_memory(dp_api_call call, const void *model, size_t size, const dp_mdl_memory *memory, uint32_t *modelId);

/* Element type of an operator's tensors as the vendor counts them. */
aclDataType dp_mdl_type(int element);

/* Fills a description from a file: it keeps copies of what it needs. model_id: where the file is loaded, or 0. */
dp_status dp_mdl_describe(aclmdlDesc *desc, const dp_model_file *file, uint32_t model_id);
/* The description, or input or output `index` of it; NULL with a sentence. */
aclmdlDesc *dp_mdl_desc(const aclmdlDesc *modelDesc);
const dp_mdl_end *dp_mdl_find(const aclmdlDesc *modelDesc, int side, size_t index);
/* Name and dims as the API hands them out. */
void dp_mdl_write_dims(const char *name, int rank, const int64_t *dims, aclmdlIODims *out_dims);
/* A shape for entry `index` of a data set: a description of its own, copied. DP_ERR_OUT_OF_MEMORY. */
dp_status dp_mdl_keep_shape(aclmdlDataset *set, size_t index, const dp_tensor *shape);

#endif
