/* acl_mdl.h: data sets. */
#include "api/acl_mdl.h"
#include "api/object.h"

aclmdlDataset *aclmdlCreateDataset(void) {
    dp_api_call call = DP_API_CALL();
    aclmdlDataset *set = dp_object_create(DP_OBJECT_DATASET, sizeof *set);
    dp_api_end(&call, set ? DP_OK : DP_ERR_OUT_OF_MEMORY);
    return set;
}

aclError aclmdlDestroyDataset(const aclmdlDataset *dataset) {
    dp_api_call call = DP_API_CALL();
    aclmdlDataset *set = dp_object_take(DP_OBJECT_DATASET, dataset, "dataset");
    if (!set)
        return dp_api_end(&call, DP_ERR_ARGUMENT);
    for (size_t i = 0; i < set->count; i++)
        if (set->entries[i].desc)
            aclDestroyTensorDesc(set->entries[i].desc);
    dp_free(set->entries);
    dp_free(set);
    return dp_api_end(&call, DP_OK);
}

aclError aclmdlAddDatasetBuffer(aclmdlDataset *dataset, aclDataBuffer *dataBuffer) {
    dp_api_call call = DP_API_CALL();
    aclmdlDataset *set = dp_object_get(DP_OBJECT_DATASET, dataset, "dataset");
    if (!set || !dp_object_get(DP_OBJECT_DATA_BUFFER, dataBuffer, "dataBuffer"))
        return dp_api_end(&call, DP_ERR_ARGUMENT);
    if (set->count == set->room) {
        size_t room = set->room ? 2 * set->room : 4;
        dp_mdl_entry *more = dp_realloc(DP_MEM_RUNTIME, set->entries, room * sizeof *more);
        if (!more)
            return dp_api_end(&call, dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for a data set: free some"));
        set->entries = more;
        set->room = room;
    }
    set->entries[set->count++] = (dp_mdl_entry){dataBuffer, NULL};
    return dp_api_end(&call, DP_OK);
}

size_t aclmdlGetDatasetNumBuffers(const aclmdlDataset *dataset) {
    dp_api_call call = DP_API_CALL();
    const aclmdlDataset *set = dp_object_get(DP_OBJECT_DATASET, dataset, "dataset");
    dp_api_end(&call, set ? DP_OK : DP_ERR_ARGUMENT);
    return set ? set->count : 0;
}

/* Entry `index`, or NULL with a sentence. */
static dp_mdl_entry *find_entry(const aclmdlDataset *dataset, size_t index) {
    aclmdlDataset *set = dp_object_get(DP_OBJECT_DATASET, dataset, "dataset");
    if (set && index < set->count)
        return &set->entries[index];
    if (set)
        dp_fail(DP_ERR_ARGUMENT, "index is %zu, but the data set has %zu buffers", index, set->count);
    return NULL;
}

aclDataBuffer *aclmdlGetDatasetBuffer(const aclmdlDataset *dataset, size_t index) {
    dp_api_call call = DP_API_CALL();
    const dp_mdl_entry *entry = find_entry(dataset, index);
    dp_api_end(&call, entry ? DP_OK : DP_ERR_ARGUMENT);
    return entry ? entry->buffer : NULL;
}

/* Takes `desc` (NULL: none) in place of the one that is there. */
static void replace(dp_mdl_entry *entry, aclTensorDesc *desc) {
    if (entry->desc)
        aclDestroyTensorDesc(entry->desc);
    entry->desc = desc;
}

aclError aclmdlSetDatasetTensorDesc(aclmdlDataset *dataset, aclTensorDesc *tensorDesc, size_t index) {
    dp_api_call call = DP_API_CALL();
    dp_mdl_entry *entry = find_entry(dataset, index);
    if (!entry)
        return dp_api_end(&call, DP_ERR_ARGUMENT);
    int64_t dims[DP_TENSOR_DIMS];
    if (!tensorDesc) {
        replace(entry, NULL);
        return dp_api_end(&call, DP_OK);
    }
    if (!dp_object_get(DP_OBJECT_TENSOR_DESC, tensorDesc, "tensorDesc"))
        return dp_api_end(&call, DP_ERR_ARGUMENT);
    size_t rank = aclGetTensorDescNumDims(tensorDesc);
    if (rank > DP_TENSOR_DIMS)
        return dp_api_fail(&call, ACL_ERROR_INVALID_PARAM, "tensorDesc has %zu dimensions, but may have %d", rank,
                           DP_TENSOR_DIMS);
    for (size_t d = 0; d < rank; d++) {
        aclGetTensorDescDimV2(tensorDesc, d, &dims[d]);
        if (dims[d] < 0)
            return dp_api_fail(&call, ACL_ERROR_INVALID_PARAM, "tensorDesc: dimension %zu is %lld, but must be known",
                               d, (long long)dims[d]);
    }
    aclTensorDesc *copy =
        aclCreateTensorDesc(aclGetTensorDescType(tensorDesc), (int)rank, dims, aclGetTensorDescFormat(tensorDesc));
    if (!copy)
        return dp_api_end(&call, DP_ERR_OUT_OF_MEMORY);
    replace(entry, copy);
    return dp_api_end(&call, DP_OK);
}

aclTensorDesc *aclmdlGetDatasetTensorDesc(const aclmdlDataset *dataset, size_t index) {
    dp_api_call call = DP_API_CALL();
    const dp_mdl_entry *entry = find_entry(dataset, index);
    if (entry && !entry->desc) {
        dp_api_fail(
            &call, ACL_ERROR_INVALID_PARAM,
            "buffer %zu has no shape: it is set by aclmdlSetDatasetTensorDesc, or by the run of a model of open shapes",
            index);
        return NULL;
    }
    dp_api_end(&call, entry ? DP_OK : DP_ERR_ARGUMENT);
    return entry ? entry->desc : NULL;
}

dp_status dp_mdl_keep_shape(aclmdlDataset *set, size_t index, const dp_tensor *shape) {
    aclTensorDesc *desc = aclCreateTensorDesc(dp_mdl_type(shape->element), shape->rank, shape->dims, ACL_FORMAT_ND);
    if (!desc)
        return DP_ERR_OUT_OF_MEMORY;
    replace(&set->entries[index], desc);
    return DP_OK;
}
