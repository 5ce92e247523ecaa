/*
 * acl_mdl.h - descriptions and data sets of models, between the files of this floor.
 */
#ifndef DOPPEL_API_ACL_MDL_H
#define DOPPEL_API_ACL_MDL_H

#include "api/api.h"
#include "graph/model_file.h"

/* Buffers in the order of a model's inputs or outputs; they belong to the caller. */
struct aclmdlDataset {
    size_t count, room;
    aclDataBuffer **buffers;
};

/* Element type of an operator's tensors as the vendor counts them. */
aclDataType dp_mdl_type(int element);

/* Fills a description from a file: it keeps copies of what it needs. */
dp_status dp_mdl_describe(aclmdlDesc *desc, const dp_model_file *file);

#endif
