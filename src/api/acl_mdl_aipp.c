/* acl_mdl.h: AIPP: settings of dynamic ones, and what a model has. */
#include <string.h>

#include "api/acl_mdl.h"
#include "api/object.h"
#include "api/tensor_desc.h"
#include "base/memory.h"
#include "graph/aipp.h"
#include "graph/loaded.h"
#include "runtime/device_memory.h"

/* Settings for each picture of a batch; those that all share are in every one. */
struct aclmdlAIPP {
    uint64_t batch;
    dp_aipp each[];
};

enum { BATCH_MOST = 1024 };

static aclmdlAIPP *get(const aclmdlAIPP *aippParmsSet) {
    return dp_object_get(DP_OBJECT_AIPP, aippParmsSet, "aippParmsSet");
}

static aclError bad_batch(dp_api_call *call, uint64_t batch) {
    return dp_api_fail(call, ACL_ERROR_INVALID_PARAM, "batchSize is %llu, but must be 1 to %d",
                       (unsigned long long)batch, BATCH_MOST);
}

aclmdlAIPP *aclmdlCreateAIPP(uint64_t batchSize) {
    dp_api_call call = DP_API_CALL();
    if (!batchSize || batchSize > BATCH_MOST) {
        bad_batch(&call, batchSize);
        return NULL;
    }
    aclmdlAIPP *object = dp_object_create(DP_OBJECT_AIPP, sizeof *object + (size_t)batchSize * sizeof object->each[0]);
    if (object) {
        object->batch = batchSize;
        for (uint64_t i = 0; i < batchSize; i++)
            dp_aipp_clear(&object->each[i]);
    }
    dp_api_end(&call, object ? DP_OK : DP_ERR_OUT_OF_MEMORY);
    return object;
}

aclError aclmdlDestroyAIPP(const aclmdlAIPP *aippParmsSet) {
    dp_api_call call = DP_API_CALL();
    dp_status status = dp_object_destroy(DP_OBJECT_AIPP, aippParmsSet, "aippParmsSet");
    return dp_api_end(&call, status == DP_OK ? DP_OK : DP_ERR_ARGUMENT);
}

aclError aclmdlGetAippDataSize(uint64_t batchSize, size_t *size) {
    dp_api_call call = DP_API_CALL();
    if (!size)
        return dp_api_null(&call, "size", "the address of a size_t");
    if (!batchSize || batchSize > BATCH_MOST)
        return bad_batch(&call, batchSize);
    *size = dp_aipp_data_bytes(batchSize);
    return dp_api_end(&call, DP_OK);
}

/* The settings of all pictures begin here; NULL ends the call. */
#define EACH(object, statement)                                                                                        \
    for (uint64_t i = 0; (object) && i < (object)->batch; i++) {                                                       \
        dp_aipp *aipp = &(object)->each[i];                                                                            \
        statement;                                                                                                     \
    }

aclError aclmdlSetAIPPInputFormat(aclmdlAIPP *aippParmsSet, aclAippInputFormat inputFormat) {
    dp_api_call call = DP_API_CALL();
    aclmdlAIPP *object = get(aippParmsSet);
    EACH(object, aipp->format = (int32_t)inputFormat)
    return dp_api_end(&call, object ? DP_OK : DP_ERR_ARGUMENT);
}

aclError aclmdlSetAIPPCscParams(aclmdlAIPP *aippParmsSet, int8_t cscSwitch, int16_t cscMatrixR0C0,
                                int16_t cscMatrixR0C1, int16_t cscMatrixR0C2, int16_t cscMatrixR1C0,
                                int16_t cscMatrixR1C1, int16_t cscMatrixR1C2, int16_t cscMatrixR2C0,
                                int16_t cscMatrixR2C1, int16_t cscMatrixR2C2, uint8_t cscOutputBiasR0,
                                uint8_t cscOutputBiasR1, uint8_t cscOutputBiasR2, uint8_t cscInputBiasR0,
                                uint8_t cscInputBiasR1, uint8_t cscInputBiasR2) {
    dp_api_call call = DP_API_CALL();
    const int32_t matrix[9] = {cscMatrixR0C0, cscMatrixR0C1, cscMatrixR0C2, cscMatrixR1C0, cscMatrixR1C1,
                               cscMatrixR1C2, cscMatrixR2C0, cscMatrixR2C1, cscMatrixR2C2};
    const int32_t output[3] = {cscOutputBiasR0, cscOutputBiasR1, cscOutputBiasR2};
    const int32_t input[3] = {cscInputBiasR0, cscInputBiasR1, cscInputBiasR2};
    aclmdlAIPP *object = get(aippParmsSet);
    EACH(object, aipp->csc = cscSwitch != 0; memcpy(aipp->matrix, matrix, sizeof matrix);
         memcpy(aipp->output_bias, output, sizeof output); memcpy(aipp->input_bias, input, sizeof input))
    return dp_api_end(&call, object ? DP_OK : DP_ERR_ARGUMENT);
}

aclError aclmdlSetAIPPRbuvSwapSwitch(aclmdlAIPP *aippParmsSet, int8_t rbuvSwapSwitch) {
    dp_api_call call = DP_API_CALL();
    aclmdlAIPP *object = get(aippParmsSet);
    EACH(object, aipp->rbuv_swap = rbuvSwapSwitch != 0)
    return dp_api_end(&call, object ? DP_OK : DP_ERR_ARGUMENT);
}

aclError aclmdlSetAIPPAxSwapSwitch(aclmdlAIPP *aippParmsSet, int8_t axSwapSwitch) {
    dp_api_call call = DP_API_CALL();
    aclmdlAIPP *object = get(aippParmsSet);
    EACH(object, aipp->ax_swap = axSwapSwitch != 0)
    return dp_api_end(&call, object ? DP_OK : DP_ERR_ARGUMENT);
}

aclError aclmdlSetAIPPSrcImageSize(aclmdlAIPP *aippParmsSet, int32_t srcImageSizeW, int32_t srcImageSizeH) {
    dp_api_call call = DP_API_CALL();
    aclmdlAIPP *object = get(aippParmsSet);
    EACH(object, aipp->src_width = srcImageSizeW; aipp->src_height = srcImageSizeH)
    return dp_api_end(&call, object ? DP_OK : DP_ERR_ARGUMENT);
}

/* The settings of one picture; NULL with a sentence. */
static dp_aipp *get_one(const aclmdlAIPP *aippParmsSet, uint64_t batchIndex) {
    aclmdlAIPP *object = get(aippParmsSet);
    if (object && batchIndex >= object->batch) {
        dp_fail(DP_ERR_ARGUMENT, "batchIndex is %llu, but the settings are for %llu pictures",
                (unsigned long long)batchIndex, (unsigned long long)object->batch);
        return NULL;
    }
    return object ? &object->each[batchIndex] : NULL;
}

/* The first size is what the cut gives, which is known. */
aclError aclmdlSetAIPPScfParams(aclmdlAIPP *aippParmsSet, int8_t scfSwitch, int32_t scfInputSizeW,
                                int32_t scfInputSizeH, int32_t scfOutputSizeW, int32_t scfOutputSizeH,
                                uint64_t batchIndex) {
    dp_api_call call = DP_API_CALL();
    dp_aipp *aipp = get_one(aippParmsSet, batchIndex);
    (void)scfInputSizeW, (void)scfInputSizeH;
    if (aipp) {
        aipp->resize = scfSwitch != 0;
        aipp->resize_width = scfOutputSizeW;
        aipp->resize_height = scfOutputSizeH;
    }
    return dp_api_end(&call, aipp ? DP_OK : DP_ERR_ARGUMENT);
}

aclError aclmdlSetAIPPCropParams(aclmdlAIPP *aippParmsSet, int8_t cropSwitch, int32_t cropStartPosW,
                                 int32_t cropStartPosH, int32_t cropSizeW, int32_t cropSizeH, uint64_t batchIndex) {
    dp_api_call call = DP_API_CALL();
    dp_aipp *aipp = get_one(aippParmsSet, batchIndex);
    if (aipp) {
        aipp->crop = cropSwitch != 0;
        aipp->crop_left = cropStartPosW;
        aipp->crop_top = cropStartPosH;
        aipp->crop_width = cropSizeW;
        aipp->crop_height = cropSizeH;
    }
    return dp_api_end(&call, aipp ? DP_OK : DP_ERR_ARGUMENT);
}

aclError aclmdlSetAIPPPaddingParams(aclmdlAIPP *aippParmsSet, int8_t paddingSwitch, int32_t paddingSizeTop,
                                    int32_t paddingSizeBottom, int32_t paddingSizeLeft, int32_t paddingSizeRight,
                                    uint64_t batchIndex) {
    dp_api_call call = DP_API_CALL();
    dp_aipp *aipp = get_one(aippParmsSet, batchIndex);
    if (aipp) {
        aipp->padding = paddingSwitch != 0;
        aipp->pad_top = paddingSizeTop;
        aipp->pad_bottom = paddingSizeBottom;
        aipp->pad_left = paddingSizeLeft;
        aipp->pad_right = paddingSizeRight;
    }
    return dp_api_end(&call, aipp ? DP_OK : DP_ERR_ARGUMENT);
}

aclError aclmdlSetAIPPDtcPixelMean(aclmdlAIPP *aippParmsSet, int16_t dtcPixelMeanChn0, int16_t dtcPixelMeanChn1,
                                   int16_t dtcPixelMeanChn2, int16_t dtcPixelMeanChn3, uint64_t batchIndex) {
    dp_api_call call = DP_API_CALL();
    dp_aipp *aipp = get_one(aippParmsSet, batchIndex);
    if (aipp)
        memcpy(aipp->mean, (int32_t[]){dtcPixelMeanChn0, dtcPixelMeanChn1, dtcPixelMeanChn2, dtcPixelMeanChn3},
               sizeof aipp->mean);
    return dp_api_end(&call, aipp ? DP_OK : DP_ERR_ARGUMENT);
}

aclError aclmdlSetAIPPDtcPixelMin(aclmdlAIPP *aippParmsSet, float dtcPixelMinChn0, float dtcPixelMinChn1,
                                  float dtcPixelMinChn2, float dtcPixelMinChn3, uint64_t batchIndex) {
    dp_api_call call = DP_API_CALL();
    dp_aipp *aipp = get_one(aippParmsSet, batchIndex);
    if (aipp)
        memcpy(aipp->min, (float[]){dtcPixelMinChn0, dtcPixelMinChn1, dtcPixelMinChn2, dtcPixelMinChn3},
               sizeof aipp->min);
    return dp_api_end(&call, aipp ? DP_OK : DP_ERR_ARGUMENT);
}

aclError aclmdlSetAIPPPixelVarReci(aclmdlAIPP *aippParmsSet, float dtcPixelVarReciChn0, float dtcPixelVarReciChn1,
                                   float dtcPixelVarReciChn2, float dtcPixelVarReciChn3, uint64_t batchIndex) {
    dp_api_call call = DP_API_CALL();
    dp_aipp *aipp = get_one(aippParmsSet, batchIndex);
    if (aipp)
        memcpy(aipp->var_reci,
               (float[]){dtcPixelVarReciChn0, dtcPixelVarReciChn1, dtcPixelVarReciChn2, dtcPixelVarReciChn3},
               sizeof aipp->var_reci);
    return dp_api_end(&call, aipp ? DP_OK : DP_ERR_ARGUMENT);
}

/* Models. */

static const dp_graph *graph_of(const dp_loaded *model) {
    return dp_model_file_variant(dp_loaded_file(model), 0)->graph;
}

static int place_of(const dp_graph *graph, const dp_value *value) {
    for (int i = 0; i < graph->n_inputs; i++)
        if (graph->inputs[i] == value)
            return i;
    return -1;
}

/* The AIPP of input `index`; *out_node NULL: it has none. */
static dp_status find(const dp_loaded *model, size_t index, const dp_node **out_node) {
    const dp_graph *graph = graph_of(model);
    if (index >= (size_t)graph->n_inputs)
        return dp_fail(DP_ERR_ARGUMENT, "index is %zu, but the model has %d inputs", index, graph->n_inputs);
    *out_node = dp_graph_aipp(graph, graph->inputs[index]);
    return DP_OK;
}

/* Writes the settings into the buffer that the data set has for them. by_picture: index is that of the pictures. */
static dp_status write_settings(const dp_loaded *model, const aclmdlDataset *dataset, size_t index, bool by_picture,
                                const aclmdlAIPP *settings) {
    const dp_node *node;
    const aclmdlDataset *set = dp_object_get(DP_OBJECT_DATASET, dataset, "dataset");
    dp_status status = set ? find(model, index, &node) : DP_ERR_ARGUMENT;
    if (status != DP_OK)
        return status;
    bool fits = node && node->n_inputs == 2 && (place_of(graph_of(model), node->inputs[!by_picture]) == (int)index);
    if (!fits)
        return dp_fail(
            DP_ERR_ARGUMENT,
            "index is %zu, which is no input %s of dynamic AIPP: see aclmdlGetInputIndexByName with " DP_AIPP_DATA,
            index, by_picture ? "for the pictures" : "for the settings");
    size_t at = (size_t)place_of(graph_of(model), node->inputs[1]), needed = dp_value_bytes(node->inputs[1]);
    if (dp_aipp_data_bytes(settings->batch) != needed)
        return dp_fail(DP_ERR_ARGUMENT, "aippParmsSet is for %llu pictures, but the model takes %lld",
                       (unsigned long long)settings->batch, (long long)node->outputs[0]->tensor.dims[0]);
    if (at >= set->count)
        return dp_fail(DP_ERR_ARGUMENT, "dataset has %zu buffers, but the settings are input %zu", set->count, at);
    const aclDataBuffer *buffer = dp_object_get(DP_OBJECT_DATA_BUFFER, set->entries[at].buffer, DP_AIPP_DATA);
    if (!buffer)
        return DP_ERR_ARGUMENT;
    if (buffer->size_bytes < needed)
        return dp_fail(DP_ERR_ARGUMENT, DP_AIPP_DATA ": the buffer has %zu bytes, but needs %zu", buffer->size_bytes,
                       needed);
    status = dp_device_memory_check(DP_AIPP_DATA, buffer->data, needed);
    if (status == DP_OK)
        dp_aipp_data_write(settings->each, settings->batch, buffer->data);
    return status;
}

static aclError set_input(dp_api_call call, uint32_t id, const aclmdlDataset *dataset, size_t index, bool by_picture,
                          const aclmdlAIPP *aippParmsSet) {
    const aclmdlAIPP *settings = get(aippParmsSet);
    if (!settings)
        return dp_api_end(&call, DP_ERR_ARGUMENT);
    dp_loaded *model = dp_loaded_get(id);
    if (!model)
        return dp_api_end_code(&call, ACL_ERROR_INVALID_MODEL_ID);
    dp_status status = write_settings(model, dataset, index, by_picture, settings);
    dp_loaded_release(model);
    return dp_api_end(&call, status);
}

aclError aclmdlSetInputAIPP(uint32_t modelId, aclmdlDataset *dataset, size_t index, const aclmdlAIPP *aippParmsSet) {
    return set_input(DP_API_CALL(), modelId, dataset, index, false, aippParmsSet);
}

aclError aclmdlSetAIPPByInputIndex(uint32_t modelId, aclmdlDataset *dataset, size_t index,
                                   const aclmdlAIPP *aippParmsSet) {
    return set_input(DP_API_CALL(), modelId, dataset, index, true, aippParmsSet);
}

aclError aclmdlGetAippType(uint32_t modelId, size_t index, aclmdlInputAippType *type,
                           size_t *dynamicAttachedDataIndex) {
    dp_api_call call = DP_API_CALL();
    const dp_node *node;
    if (!type || !dynamicAttachedDataIndex)
        return dp_api_null(&call, type ? "dynamicAttachedDataIndex" : "type", "an address");
    dp_loaded *model = dp_loaded_get(modelId);
    if (!model)
        return dp_api_end_code(&call, ACL_ERROR_INVALID_MODEL_ID);
    dp_status status = find(model, index, &node);
    if (status == DP_OK) {
        bool is_dynamic = node && node->n_inputs == 2;
        bool is_picture = node && place_of(graph_of(model), node->inputs[0]) == (int)index;
        *type = !node         ? ACL_DATA_WITHOUT_AIPP
                : !is_dynamic ? ACL_DATA_WITH_STATIC_AIPP
                : is_picture  ? ACL_DATA_WITH_DYNAMIC_AIPP
                              : ACL_DYNAMIC_AIPP_NODE;
        *dynamicAttachedDataIndex =
            is_dynamic && is_picture ? (size_t)place_of(graph_of(model), node->inputs[1]) : ACL_INVALID_NODE_INDEX;
    }
    dp_loaded_release(model);
    return dp_api_end(&call, status);
}

static void fill_info(const dp_node *node, const dp_aipp *a, aclAippInfo *info) {
    const dp_tensor *in = &node->inputs[0]->tensor, *out = &node->outputs[0]->tensor;
    *info = (aclAippInfo){.inputFormat = (aclAippInputFormat)a->format,
                          .srcImageSizeW = a->src_width,
                          .srcImageSizeH = a->src_height,
                          .cropSwitch = (int8_t)a->crop,
                          .loadStartPosW = a->crop_left,
                          .loadStartPosH = a->crop_top,
                          .cropSizeW = a->crop_width,
                          .cropSizeH = a->crop_height,
                          .resizeSwitch = (int8_t)a->resize,
                          .resizeOutputW = a->resize_width,
                          .resizeOutputH = a->resize_height,
                          .paddingSwitch = (int8_t)a->padding,
                          .leftPaddingSize = a->pad_left,
                          .rightPaddingSize = a->pad_right,
                          .topPaddingSize = a->pad_top,
                          .bottomPaddingSize = a->pad_bottom,
                          .cscSwitch = (int8_t)a->csc,
                          .rbuvSwapSwitch = (int8_t)a->rbuv_swap,
                          .axSwapSwitch = (int8_t)a->ax_swap,
                          .srcFormat = ACL_FORMAT_NHWC,
                          .srcDatatype = ACL_UINT8,
                          .srcDimNum = (size_t)in->rank,
                          .shapeCount = 1};
    memcpy(&info->matrixR0C0, a->matrix, sizeof a->matrix);
    memcpy(&info->outputBias0, a->output_bias, sizeof a->output_bias);
    memcpy(&info->inputBias0, a->input_bias, sizeof a->input_bias);
    memcpy(&info->meanChn0, a->mean, sizeof a->mean);
    memcpy(&info->minChn0, a->min, sizeof a->min);
    memcpy(&info->varReciChn0, a->var_reci, sizeof a->var_reci);
    dp_mdl_write_dims(node->inputs[0]->name, in->rank, in->dims, &info->outDims[0].srcDims);
    info->outDims[0].srcSize = dp_value_bytes(node->inputs[0]);
    dp_mdl_write_dims(node->inputs[0]->name, out->rank, out->dims, &info->outDims[0].aippOutdims);
    info->outDims[0].aippOutSize = dp_value_bytes(node->outputs[0]);
}

aclError aclmdlGetFirstAippInfo(uint32_t modelId, size_t index, aclAippInfo *aippInfo) {
    dp_api_call call = DP_API_CALL();
    const dp_node *node;
    dp_aipp aipp;
    dp_aipp_target target;
    if (!aippInfo)
        return dp_api_null(&call, "aippInfo", "the address of an aclAippInfo");
    dp_loaded *model = dp_loaded_get(modelId);
    if (!model)
        return dp_api_end_code(&call, ACL_ERROR_INVALID_MODEL_ID);
    dp_status status = find(model, index, &node);
    bool is_static = status == DP_OK && node && node->n_inputs == 1;
    if (is_static)
        status = dp_node_aipp(node, &aipp, &target);
    if (is_static && status == DP_OK)
        fill_info(node, &aipp, aippInfo);
    dp_loaded_release(model);
    if (status == DP_OK && !is_static)
        return dp_api_fail(&call, ACL_ERROR_NOT_STATIC_AIPP, "index is %zu, which is no input with static AIPP", index);
    return dp_api_end(&call, status);
}
