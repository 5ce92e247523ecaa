/* acl_mdl.h: shapes chosen for every run. */
#include <string.h>

#include "api/acl_mdl.h"
#include "api/object.h"
#include "graph/loaded.h"
#include "runtime/device_memory.h"

/* Choosing. */

/* Writes the gear with these numbers into the data set's buffer for it. */
static dp_status choose(dp_loaded *model, const aclmdlDataset *dataset, size_t index, const int64_t *numbers,
                        const char *what) {
    const dp_shapes *shapes = dp_model_file_shapes(dp_loaded_file(model));
    const aclmdlDataset *set = dp_object_get(DP_OBJECT_DATASET, dataset, "dataset");
    const char *name = "input " ACL_DYNAMIC_TENSOR_NAME;
    if (!set)
        return DP_ERR_ARGUMENT;
    size_t last = (size_t)dp_model_file_variant(dp_loaded_file(model), 0)->graph->n_inputs;
    if (index != last || index >= set->count)
        return dp_fail(DP_ERR_ARGUMENT,
                       "index is %zu, but must be %zu, that of " ACL_DYNAMIC_TENSOR_NAME
                       ", and the data set has %zu buffers",
                       index, last, set->count);
    int gear = dp_shapes_find(shapes, numbers);
    if (gear < 0)
        return dp_fail(DP_ERR_ARGUMENT, "%s is none of the %d that the model was compiled for", what, shapes->n_gears);
    const aclDataBuffer *buffer = dp_object_get(DP_OBJECT_DATA_BUFFER, set->entries[index].buffer, name);
    if (!buffer)
        return DP_ERR_ARGUMENT;
    size_t bytes = (size_t)shapes->n_numbers * sizeof(int64_t);
    if (aclGetDataBufferSizeV2(buffer) < bytes)
        return dp_fail(DP_ERR_ARGUMENT, "%s: the buffer has %zu bytes, but needs %zu", name,
                       aclGetDataBufferSizeV2(buffer), bytes);
    void *base = aclGetDataBufferAddr(buffer);
    dp_status status = dp_device_memory_check(name, base, bytes);
    if (status != DP_OK)
        return status;
    memcpy(base, numbers, bytes);
    dp_loaded_choose(model, gear);
    return DP_OK;
}

/* The model with gears of this kind; otherwise *out_code says what is wrong. */
static dp_loaded *get_model(dp_api_call *call, uint32_t id, dp_shapes_kind kind, const char *option,
                            aclError *out_code) {
    dp_loaded *model = dp_loaded_get(id);
    if (!model) {
        *out_code = dp_api_end_code(call, ACL_ERROR_INVALID_MODEL_ID);
        return NULL;
    }
    if (dp_model_file_shapes(dp_loaded_file(model))->kind == kind)
        return model;
    dp_loaded_release(model);
    *out_code = dp_api_fail(call, ACL_ERROR_MODEL_NOT_DYNAMIC,
                            "modelId is %u, but that model was compiled without --%s", id, option);
    return NULL;
}

static bool fits(uint64_t number) {
    return number <= INT32_MAX;
}

aclError aclmdlSetDynamicBatchSize(uint32_t modelId, aclmdlDataset *dataset, size_t index, uint64_t batchSize) {
    dp_api_call call = DP_API_CALL();
    aclError code;
    char what[64];
    int64_t number = fits(batchSize) ? (int64_t)batchSize : -1;
    dp_loaded *model = get_model(&call, modelId, DP_SHAPES_BATCH, "dynamic_batch_size", &code);
    if (!model)
        return code;
    snprintf(what, sizeof what, "batchSize %llu", (unsigned long long)batchSize);
    dp_status status = choose(model, dataset, index, &number, what);
    dp_loaded_release(model);
    return dp_api_end(&call, status);
}

aclError aclmdlSetDynamicHWSize(uint32_t modelId, aclmdlDataset *dataset, size_t index, uint64_t height,
                                uint64_t width) {
    dp_api_call call = DP_API_CALL();
    aclError code;
    char what[80];
    int64_t numbers[2] = {fits(height) ? (int64_t)height : -1, fits(width) ? (int64_t)width : -1};
    dp_loaded *model = get_model(&call, modelId, DP_SHAPES_IMAGE, "dynamic_image_size", &code);
    if (!model)
        return code;
    snprintf(what, sizeof what, "the size %llu x %llu", (unsigned long long)height, (unsigned long long)width);
    dp_status status = choose(model, dataset, index, numbers, what);
    dp_loaded_release(model);
    return dp_api_end(&call, status);
}

/* All dims of all inputs, one after the other, as they are in a gear. */
static size_t gear_dims(const dp_shapes *shapes, int gear, int64_t *out, size_t room) {
    size_t n = 0;
    for (int i = 0; i < shapes->n_inputs; i++) {
        dp_tensor shape = {.rank = 0};
        dp_shapes_gear(shapes, gear, i, &shape);
        for (int d = 0; d < shape.rank; d++, n++)
            if (n < room)
                out[n] = shape.dims[d];
    }
    return n;
}

static dp_status choose_dims(dp_loaded *model, const aclmdlDataset *dataset, size_t index, const aclmdlIODims *dims) {
    const dp_shapes *shapes = dp_model_file_shapes(dp_loaded_file(model));
    int64_t all[128];
    size_t n = gear_dims(shapes, 0, all, 128);
    if (n > 128)
        return dp_fail(DP_ERR_UNSUPPORTED, "the inputs have %zu dimensions together, but aclmdlIODims holds 128", n);
    if (dims->dimCount != n)
        return dp_fail(DP_ERR_ARGUMENT, "dims has %zu dimensions, but the inputs have %zu together", dims->dimCount, n);
    for (int g = 0; g < shapes->n_gears; g++) {
        gear_dims(shapes, g, all, 128);
        if (memcmp(all, dims->dims, n * sizeof *all) == 0)
            return choose(model, dataset, index, shapes->numbers + (size_t)g * (size_t)shapes->n_numbers, "dims");
    }
    return dp_fail(DP_ERR_ARGUMENT, "dims are none of the %d lists that the model was compiled for", shapes->n_gears);
}

aclError aclmdlSetInputDynamicDims(uint32_t modelId, aclmdlDataset *dataset, size_t index, const aclmdlIODims *dims) {
    dp_api_call call = DP_API_CALL();
    aclError code;
    if (!dims)
        return dp_api_null(&call, "dims", "all dimensions of all inputs");
    dp_loaded *model = get_model(&call, modelId, DP_SHAPES_DIMS, "dynamic_dims", &code);
    if (!model)
        return code;
    dp_status status = choose_dims(model, dataset, index, dims);
    dp_loaded_release(model);
    return dp_api_end(&call, status);
}

/* What may be chosen. */

aclError aclmdlGetDynamicBatch(const aclmdlDesc *modelDesc, aclmdlBatch *batch) {
    dp_api_call call = DP_API_CALL();
    const aclmdlDesc *desc = dp_mdl_desc(modelDesc);
    if (!desc)
        return dp_api_end(&call, DP_ERR_ARGUMENT);
    if (!batch)
        return dp_api_null(&call, "batch", "the address of an aclmdlBatch");
    memset(batch, 0, sizeof *batch);
    if (desc->shapes.kind == DP_SHAPES_BATCH)
        batch->batchCount = (size_t)desc->shapes.n_gears;
    for (size_t i = 0; i < batch->batchCount; i++)
        batch->batch[i] = (uint64_t)desc->shapes.numbers[i];
    return dp_api_end(&call, DP_OK);
}

/* index is not looked at: sizes are the same for all inputs. */
aclError aclmdlGetDynamicHW(const aclmdlDesc *modelDesc, size_t index, aclmdlHW *hw) {
    dp_api_call call = DP_API_CALL();
    const aclmdlDesc *desc = dp_mdl_desc(modelDesc);
    (void)index;
    if (!desc)
        return dp_api_end(&call, DP_ERR_ARGUMENT);
    if (!hw)
        return dp_api_null(&call, "hw", "the address of an aclmdlHW");
    memset(hw, 0, sizeof *hw);
    if (desc->shapes.kind == DP_SHAPES_IMAGE)
        hw->hwCount = (size_t)desc->shapes.n_gears;
    for (size_t i = 0; i < hw->hwCount; i++)
        for (size_t k = 0; k < 2; k++)
            hw->hw[i][k] = (uint64_t)desc->shapes.numbers[2 * i + k];
    return dp_api_end(&call, DP_OK);
}

aclError aclmdlGetInputDynamicGearCount(const aclmdlDesc *modelDesc, size_t index, size_t *gearCount) {
    dp_api_call call = DP_API_CALL();
    const aclmdlDesc *desc = dp_mdl_desc(modelDesc);
    (void)index;
    if (!desc)
        return dp_api_end(&call, DP_ERR_ARGUMENT);
    if (!gearCount)
        return dp_api_null(&call, "gearCount", "the address of a size_t");
    *gearCount = desc->shapes.kind == DP_SHAPES_DIMS ? (size_t)desc->shapes.n_gears : 0;
    return dp_api_end(&call, DP_OK);
}

aclError aclmdlGetInputDynamicDims(const aclmdlDesc *modelDesc, size_t index, aclmdlIODims *dims, size_t gearCount) {
    dp_api_call call = DP_API_CALL();
    const aclmdlDesc *desc = dp_mdl_desc(modelDesc);
    (void)index;
    if (!desc)
        return dp_api_end(&call, DP_ERR_ARGUMENT);
    if (!dims)
        return dp_api_null(&call, "dims", "the address of gearCount aclmdlIODims");
    size_t most = desc->shapes.kind == DP_SHAPES_DIMS ? (size_t)desc->shapes.n_gears : 0;
    if (gearCount > most)
        return dp_api_fail(&call, ACL_ERROR_INVALID_PARAM,
                           "gearCount is %zu, but the model has %zu: see aclmdlGetInputDynamicGearCount", gearCount,
                           most);
    for (size_t g = 0; g < gearCount; g++) {
        memset(&dims[g], 0, sizeof dims[g]);
        size_t n = gear_dims(&desc->shapes, (int)g, dims[g].dims, 128);
        dims[g].dimCount = n < 128 ? n : 128;
    }
    return dp_api_end(&call, DP_OK);
}

/* Bounds of an input's dims; a dim without an upper one has -1. */
aclError aclmdlGetInputDimsRange(const aclmdlDesc *modelDesc, size_t index, aclmdlIODimsRange *dimsRange) {
    dp_api_call call = DP_API_CALL();
    const dp_mdl_end *e = dp_mdl_find(modelDesc, DP_MDL_INPUTS, index);
    if (!e)
        return dp_api_end(&call, DP_ERR_ARGUMENT);
    if (!dimsRange)
        return dp_api_null(&call, "dimsRange", "the address of an aclmdlIODimsRange");
    const dp_shapes *shapes = &dp_mdl_desc(modelDesc)->shapes;
    memset(dimsRange, 0, sizeof *dimsRange);
    dimsRange->rangeCount = (size_t)e->rank;
    for (int d = 0; d < e->rank; d++) {
        bool declared = index < (size_t)shapes->n_inputs;
        int64_t most = declared ? shapes->inputs[index].most[d] : e->dims[d];
        dimsRange->range[d][0] = declared ? shapes->inputs[index].least[d] : e->dims[d];
        dimsRange->range[d][1] = most == DP_SHAPES_ANY ? -1 : most;
    }
    return dp_api_end(&call, DP_OK);
}

/* Of the gear that was chosen last; with open shapes of the last run. */
aclError aclmdlGetCurOutputDims(const aclmdlDesc *modelDesc, size_t index, aclmdlIODims *dims) {
    dp_api_call call = DP_API_CALL();
    const dp_mdl_end *e = dp_mdl_find(modelDesc, DP_MDL_OUTPUTS, index);
    if (!e)
        return dp_api_end(&call, DP_ERR_ARGUMENT);
    if (!dims)
        return dp_api_null(&call, "dims", "the address of an aclmdlIODims");
    uint32_t id = dp_mdl_desc(modelDesc)->model_id;
    dp_tensor shape = {.rank = DP_UNKNOWN};
    dp_loaded *model = id ? dp_loaded_get(id) : NULL;
    if (id && !model)
        return dp_api_end_code(&call, ACL_ERROR_INVALID_MODEL_ID);
    if (model)
        dp_loaded_output(model, (int)index, &shape);
    dp_loaded_release(model);
    if (shape.rank == DP_UNKNOWN)
        dp_mdl_write_dims(e->name, e->rank, e->dims, dims);
    else
        dp_mdl_write_dims(e->name, shape.rank, shape.dims, dims);
    return dp_api_end(&call, DP_OK);
}
