/* acl_dvpp.h: memory, channels, descriptions of pictures. */
#include "api/acl_dvpp.h"

#include <stdatomic.h>
#include <string.h>

#include "runtime/context.h"
#include "runtime/device_memory.h"

/* Memory. */

static aclError allocate(dp_api_call *call, void **devPtr, size_t size) {
    if (!devPtr)
        return dp_api_null(call, "devPtr", "the address of a pointer for the memory");
    if (!size)
        return dp_api_fail(call, ACL_ERROR_INVALID_PARAM, "size is 0, but must be at least 1 byte");
    return dp_api_end(call, dp_device_memory_alloc(size, devPtr));
}

aclError acldvppMalloc(void **devPtr, size_t size) {
    dp_api_call call = DP_API_CALL();
    return allocate(&call, devPtr, size);
}

aclError acldvppMallocWithCfg(void **devPtr, size_t size, aclrtMemMallocPolicy policy, aclrtMallocConfig *cfg) {
    dp_api_call call = DP_API_CALL();
    (void)cfg; /* its attributes choose between kinds of memory, of which there is one */
    if (policy < ACL_MEM_MALLOC_HUGE_FIRST || policy > ACL_MEM_ACCESS_USER_SPACE_READONLY)
        return dp_api_bad_value(&call, "policy", policy, "an aclrtMemMallocPolicy (0 to 10)");
    return allocate(&call, devPtr, size);
}

aclError acldvppFree(void *devPtr) {
    dp_api_call call = DP_API_CALL();
    if (!devPtr)
        return dp_api_null(&call, "devPtr", "device memory of acldvppMalloc");
    return dp_api_end(&call, dp_device_memory_free(devPtr));
}

/* Channels. */

static _Atomic uint64_t channels_made;

static acldvppChannelDesc *get_channel(const acldvppChannelDesc *channelDesc) {
    return dp_object_get(DP_OBJECT_DVPP_CHANNEL, channelDesc, "channelDesc");
}

acldvppChannelDesc *acldvppCreateChannelDesc(void) {
    dp_api_call call = DP_API_CALL();
    acldvppChannelDesc *object = dp_object_create(DP_OBJECT_DVPP_CHANNEL, sizeof *object);
    dp_api_end(&call, object ? DP_OK : DP_ERR_OUT_OF_MEMORY);
    return object;
}

aclError acldvppDestroyChannelDesc(acldvppChannelDesc *channelDesc) {
    dp_api_call call = DP_API_CALL();
    const acldvppChannelDesc *object = get_channel(channelDesc);
    if (!object)
        return dp_api_end(&call, DP_ERR_ARGUMENT);
    if (object->is_open)
        return dp_api_fail(&call, ACL_ERROR_INVALID_PARAM,
                           "channelDesc: its channel is open: acldvppDestroyChannel first");
    dp_status status = dp_object_destroy(DP_OBJECT_DVPP_CHANNEL, channelDesc, "channelDesc");
    return dp_api_end(&call, status == DP_OK ? DP_OK : DP_ERR_ARGUMENT);
}

aclError acldvppCreateChannel(acldvppChannelDesc *channelDesc) {
    dp_api_call call = DP_API_CALL();
    acldvppChannelDesc *object = get_channel(channelDesc);
    if (!object)
        return dp_api_end(&call, DP_ERR_ARGUMENT);
    if (object->is_open)
        return dp_api_fail(&call, ACL_ERROR_INVALID_PARAM,
                           "channelDesc: its channel is open already: one channel for each description");
    void *context = NULL;
    dp_status status = dp_context_current(&context);
    if (status == DP_OK) {
        object->is_open = true;
        object->id = atomic_fetch_add(&channels_made, 1);
    }
    return dp_api_end(&call, status);
}

aclError acldvppDestroyChannel(acldvppChannelDesc *channelDesc) {
    dp_api_call call = DP_API_CALL();
    acldvppChannelDesc *object = get_channel(channelDesc);
    if (!object)
        return dp_api_end(&call, DP_ERR_ARGUMENT);
    if (!object->is_open)
        return dp_api_fail(&call, ACL_ERROR_INVALID_PARAM,
                           "channelDesc: it has no channel: acldvppCreateChannel makes one");
    object->is_open = false;
    return dp_api_end(&call, DP_OK);
}

const acldvppChannelDesc *dp_dvpp_channel(const acldvppChannelDesc *handle, acldvppChannelMode work) {
    static const char *const works[] = {"VPC", "JPEGD", "JPEGE", "PNGD"};
    const acldvppChannelDesc *channel = get_channel(handle);
    if (channel && !channel->is_open) {
        dp_fail(DP_ERR_ARGUMENT, "channelDesc: it has no channel: call acldvppCreateChannel first");
        return NULL;
    }
    if (channel && channel->has_mode && channel->mode != (uint32_t)work) {
        dp_fail(DP_ERR_ARGUMENT, "channelDesc: its mode is DVPP_CHNMODE_%s, so that it does no work of DVPP_CHNMODE_%s",
                works[channel->mode], works[work]);
        return NULL;
    }
    return channel;
}

aclError acldvppSetChannelDescMode(acldvppChannelDesc *channelDesc, uint32_t mode) {
    dp_api_call call = DP_API_CALL();
    acldvppChannelDesc *object = get_channel(channelDesc);
    if (mode > DVPP_CHNMODE_PNGD)
        return dp_api_bad_value(&call, "mode", mode, "an acldvppChannelMode (0 to 3)");
    if (object) {
        object->has_mode = true;
        object->mode = mode;
    }
    return dp_api_end(&call, object ? DP_OK : DP_ERR_ARGUMENT);
}

uint64_t acldvppGetChannelDescChannelId(const acldvppChannelDesc *channelDesc) {
    dp_api_call call = DP_API_CALL();
    const acldvppChannelDesc *object = get_channel(channelDesc);
    dp_api_end(&call, object ? DP_OK : DP_ERR_ARGUMENT);
    return object ? object->id : 0;
}

/* The parameter's place and its largest value; NULL: there is none of that kind, or it is not set by programs. */
static uint32_t *parameter(acldvppChannelDesc *channel, acldvppChannelDescParamType type, uint32_t *out_most) {
    *out_most = UINT32_MAX;
    switch (type) {
    case ACL_DVPP_CSC_MATRIX_UINT32:
        *out_most = ACL_DVPP_CSC_MATRIX_BT2020_NARROW;
        return &channel->colour_space;
    case ACL_DVPP_MODE_UINT32:
        *out_most = DVPP_CHNMODE_PNGD;
        return &channel->mode;
    case ACL_DVPP_CHANNEL_HEIGHT_UINT32:
        return &channel->height;
    case ACL_DVPP_CHANNEL_WIDTH_UINT32:
        return &channel->width;
    case ACL_DVPP_JPEGD_PRECISION_MODE_ENUM:
        *out_most = ACL_YUVOUT_ALIGN_DOWN_COMPAT;
        return &channel->odd;
    default:
        return NULL;
    }
}

aclError acldvppSetChannelDescParam(acldvppChannelDesc *channelDesc, acldvppChannelDescParamType paramType,
                                    size_t length, const void *param) {
    dp_api_call call = DP_API_CALL();
    acldvppChannelDesc *object = get_channel(channelDesc);
    uint32_t value, most;
    if (!object)
        return dp_api_end(&call, DP_ERR_ARGUMENT);
    uint32_t *place = parameter(object, paramType, &most);
    if (!place)
        return dp_api_bad_value(&call, "paramType", paramType,
                                "an acldvppChannelDescParamType that can be set (0, 1, 3 to 5)");
    if (!param)
        return dp_api_null(&call, "param", "the address of the value");
    if (length != sizeof value)
        return dp_api_bad_value(&call, "length", (long long)length, "4, the bytes of such a parameter");
    memcpy(&value, param, sizeof value);
    if (value > most)
        return dp_api_fail(&call, ACL_ERROR_INVALID_PARAM, "*param is %u, but must be at most %u for paramType %d",
                           value, most, (int)paramType);
    *place = value;
    object->has_mode |= paramType == ACL_DVPP_MODE_UINT32;
    return dp_api_end(&call, DP_OK);
}

aclError acldvppGetChannelDescParam(const acldvppChannelDesc *channelDesc, acldvppChannelDescParamType paramType,
                                    size_t length, size_t *paramRetSize, void *param) {
    dp_api_call call = DP_API_CALL();
    acldvppChannelDesc *object = get_channel(channelDesc);
    uint32_t most;
    if (!object)
        return dp_api_end(&call, DP_ERR_ARGUMENT);
    const bool is_id = paramType == ACL_DVPP_CHANNEL_ID_UINT64;
    const void *place = is_id ? (const void *)&object->id : parameter(object, paramType, &most);
    size_t bytes = is_id ? sizeof object->id : sizeof(uint32_t);
    if (!place)
        return dp_api_bad_value(&call, "paramType", paramType, "an acldvppChannelDescParamType (0 to 5)");
    if (!param || !paramRetSize)
        return dp_api_null(&call, param ? "paramRetSize" : "param", "an address");
    if (length < bytes)
        return dp_api_fail(&call, ACL_ERROR_INVALID_PARAM, "length is %zu, but the parameter has %zu bytes", length,
                           bytes);
    memcpy(param, place, bytes);
    *paramRetSize = bytes;
    return dp_api_end(&call, DP_OK);
}

/* Descriptions of pictures. */

static acldvppPicDesc *new_picture(void) {
    acldvppPicDesc *object = dp_object_create(DP_OBJECT_DVPP_PICTURE, sizeof *object);
    if (object) {
        atomic_init(&object->references, 1);
        object->picture.format = DP_PIXEL_GRAY;
    }
    return object;
}

void dp_dvpp_hold(acldvppPicDesc *desc) {
    atomic_fetch_add(&desc->references, 1);
}

void dp_dvpp_release(acldvppPicDesc *desc) {
    if (desc && atomic_fetch_sub(&desc->references, 1) == 1)
        dp_free(desc);
}

acldvppPicDesc *dp_dvpp_picture(const acldvppPicDesc *handle, const char *argument) {
    return dp_object_get(DP_OBJECT_DVPP_PICTURE, handle, argument);
}

dp_status dp_dvpp_take(const acldvppPicDesc *desc, const char *argument, dp_picture *out_picture) {
    *out_picture = desc->picture;
    dp_status status = dp_picture_complete(out_picture, argument);
    return status == DP_OK ? dp_device_memory_check(argument, out_picture->data, dp_picture_bytes(out_picture))
                           : status;
}

uint32_t dp_dvpp_ret_code(dp_status status) {
    return (uint32_t)dp_api_code(status, ACL_ERROR_RT_CONTEXT_NULL, ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
}

acldvppPicDesc *acldvppCreatePicDesc(void) {
    dp_api_call call = DP_API_CALL();
    acldvppPicDesc *object = new_picture();
    dp_api_end(&call, object ? DP_OK : DP_ERR_OUT_OF_MEMORY);
    return object;
}

aclError acldvppDestroyPicDesc(acldvppPicDesc *picDesc) {
    dp_api_call call = DP_API_CALL();
    const acldvppPicDesc *object = dp_dvpp_picture(picDesc, "picDesc");
    if (!object)
        return dp_api_end(&call, DP_ERR_ARGUMENT);
    if (object->in_batch)
        return dp_api_fail(&call, ACL_ERROR_INVALID_PARAM,
                           "picDesc is %p, which belongs to a batch: acldvppDestroyBatchPicDesc destroys it",
                           (void *)picDesc);
    acldvppPicDesc *taken = dp_object_take(DP_OBJECT_DVPP_PICTURE, picDesc, "picDesc");
    dp_dvpp_release(taken);
    return dp_api_end(&call, taken ? DP_OK : DP_ERR_ARGUMENT);
}

aclError acldvppSetPicDescData(acldvppPicDesc *picDesc, void *dataDev) {
    dp_api_call call = DP_API_CALL();
    acldvppPicDesc *object = dp_dvpp_picture(picDesc, "picDesc");
    if (object)
        object->picture.data = dataDev;
    return dp_api_end(&call, object ? DP_OK : DP_ERR_ARGUMENT);
}

void *acldvppGetPicDescData(const acldvppPicDesc *picDesc) {
    dp_api_call call = DP_API_CALL();
    const acldvppPicDesc *object = dp_dvpp_picture(picDesc, "picDesc");
    dp_api_end(&call, object ? DP_OK : DP_ERR_ARGUMENT);
    return object ? object->picture.data : NULL;
}

aclError acldvppSetPicDescSize(acldvppPicDesc *picDesc, uint32_t size) {
    dp_api_call call = DP_API_CALL();
    acldvppPicDesc *object = dp_dvpp_picture(picDesc, "picDesc");
    if (object)
        object->picture.size_bytes = size;
    return dp_api_end(&call, object ? DP_OK : DP_ERR_ARGUMENT);
}

uint32_t acldvppGetPicDescSize(const acldvppPicDesc *picDesc) {
    dp_api_call call = DP_API_CALL();
    const acldvppPicDesc *object = dp_dvpp_picture(picDesc, "picDesc");
    dp_api_end(&call, object ? DP_OK : DP_ERR_ARGUMENT);
    return object ? (uint32_t)object->picture.size_bytes : 0;
}

aclError acldvppSetPicDescFormat(acldvppPicDesc *picDesc, acldvppPixelFormat format) {
    dp_api_call call = DP_API_CALL();
    acldvppPicDesc *object = dp_dvpp_picture(picDesc, "picDesc");
    if (object)
        object->picture.format = (int)format;
    return dp_api_end(&call, object ? DP_OK : DP_ERR_ARGUMENT);
}

acldvppPixelFormat acldvppGetPicDescFormat(const acldvppPicDesc *picDesc) {
    dp_api_call call = DP_API_CALL();
    const acldvppPicDesc *object = dp_dvpp_picture(picDesc, "picDesc");
    dp_api_end(&call, object ? DP_OK : DP_ERR_ARGUMENT);
    return object ? (acldvppPixelFormat)object->picture.format : PIXEL_FORMAT_UNKNOWN;
}

aclError acldvppSetPicDescWidth(acldvppPicDesc *picDesc, uint32_t width) {
    dp_api_call call = DP_API_CALL();
    acldvppPicDesc *object = dp_dvpp_picture(picDesc, "picDesc");
    if (object)
        object->picture.width = width;
    return dp_api_end(&call, object ? DP_OK : DP_ERR_ARGUMENT);
}

uint32_t acldvppGetPicDescWidth(const acldvppPicDesc *picDesc) {
    dp_api_call call = DP_API_CALL();
    const acldvppPicDesc *object = dp_dvpp_picture(picDesc, "picDesc");
    dp_api_end(&call, object ? DP_OK : DP_ERR_ARGUMENT);
    return object ? object->picture.width : 0;
}

aclError acldvppSetPicDescHeight(acldvppPicDesc *picDesc, uint32_t height) {
    dp_api_call call = DP_API_CALL();
    acldvppPicDesc *object = dp_dvpp_picture(picDesc, "picDesc");
    if (object)
        object->picture.height = height;
    return dp_api_end(&call, object ? DP_OK : DP_ERR_ARGUMENT);
}

uint32_t acldvppGetPicDescHeight(const acldvppPicDesc *picDesc) {
    dp_api_call call = DP_API_CALL();
    const acldvppPicDesc *object = dp_dvpp_picture(picDesc, "picDesc");
    dp_api_end(&call, object ? DP_OK : DP_ERR_ARGUMENT);
    return object ? object->picture.height : 0;
}

aclError acldvppSetPicDescWidthStride(acldvppPicDesc *picDesc, uint32_t widthStride) {
    dp_api_call call = DP_API_CALL();
    acldvppPicDesc *object = dp_dvpp_picture(picDesc, "picDesc");
    if (object)
        object->picture.width_stride = widthStride;
    return dp_api_end(&call, object ? DP_OK : DP_ERR_ARGUMENT);
}

uint32_t acldvppGetPicDescWidthStride(const acldvppPicDesc *picDesc) {
    dp_api_call call = DP_API_CALL();
    const acldvppPicDesc *object = dp_dvpp_picture(picDesc, "picDesc");
    dp_api_end(&call, object ? DP_OK : DP_ERR_ARGUMENT);
    return object ? object->picture.width_stride : 0;
}

aclError acldvppSetPicDescHeightStride(acldvppPicDesc *picDesc, uint32_t heightStride) {
    dp_api_call call = DP_API_CALL();
    acldvppPicDesc *object = dp_dvpp_picture(picDesc, "picDesc");
    if (object)
        object->picture.height_stride = heightStride;
    return dp_api_end(&call, object ? DP_OK : DP_ERR_ARGUMENT);
}

uint32_t acldvppGetPicDescHeightStride(const acldvppPicDesc *picDesc) {
    dp_api_call call = DP_API_CALL();
    const acldvppPicDesc *object = dp_dvpp_picture(picDesc, "picDesc");
    dp_api_end(&call, object ? DP_OK : DP_ERR_ARGUMENT);
    return object ? object->picture.height_stride : 0;
}

aclError acldvppSetPicDescRetCode(acldvppPicDesc *picDesc, uint32_t retCode) {
    dp_api_call call = DP_API_CALL();
    acldvppPicDesc *object = dp_dvpp_picture(picDesc, "picDesc");
    if (object)
        object->ret_code = retCode;
    return dp_api_end(&call, object ? DP_OK : DP_ERR_ARGUMENT);
}

uint32_t acldvppGetPicDescRetCode(const acldvppPicDesc *picDesc) {
    dp_api_call call = DP_API_CALL();
    const acldvppPicDesc *object = dp_dvpp_picture(picDesc, "picDesc");
    dp_api_end(&call, object ? DP_OK : DP_ERR_ARGUMENT);
    return object ? object->ret_code : UINT32_MAX;
}

/* Batches. */

static void destroy_pictures(acldvppBatchPicDesc *batch) {
    for (uint32_t i = 0; i < batch->count; i++)
        if (batch->pictures[i])
            dp_dvpp_release(dp_object_take(DP_OBJECT_DVPP_PICTURE, batch->pictures[i], "batchPicDesc"));
}

acldvppBatchPicDesc *acldvppCreateBatchPicDesc(uint32_t batchSize) {
    dp_api_call call = DP_API_CALL();
    if (!batchSize || batchSize > 65536) {
        dp_api_bad_value(&call, "batchSize", batchSize, "1 to 65536");
        return NULL;
    }
    acldvppBatchPicDesc *batch =
        dp_object_create(DP_OBJECT_DVPP_BATCH, sizeof *batch + batchSize * sizeof batch->pictures[0]);
    bool whole = batch;
    if (batch)
        batch->count = batchSize;
    for (uint32_t i = 0; whole && i < batchSize; i++) {
        batch->pictures[i] = new_picture();
        whole = batch->pictures[i];
        if (whole)
            batch->pictures[i]->in_batch = true;
    }
    if (batch && !whole) {
        destroy_pictures(batch);
        dp_object_destroy(DP_OBJECT_DVPP_BATCH, batch, "batchPicDesc");
        batch = NULL;
        dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for a batch of %u descriptions: free some", batchSize);
    }
    dp_api_end(&call, batch ? DP_OK : DP_ERR_OUT_OF_MEMORY);
    return batch;
}

acldvppPicDesc *acldvppGetPicDesc(acldvppBatchPicDesc *batchPicDesc, uint32_t index) {
    dp_api_call call = DP_API_CALL();
    const acldvppBatchPicDesc *batch = dp_object_get(DP_OBJECT_DVPP_BATCH, batchPicDesc, "batchPicDesc");
    if (batch && index >= batch->count) {
        dp_api_fail(&call, ACL_ERROR_INVALID_PARAM, "index is %u, but the batch has %u pictures", index, batch->count);
        return NULL;
    }
    dp_api_end(&call, batch ? DP_OK : DP_ERR_ARGUMENT);
    return batch ? batch->pictures[index] : NULL;
}

aclError acldvppDestroyBatchPicDesc(acldvppBatchPicDesc *batchPicDesc) {
    dp_api_call call = DP_API_CALL();
    acldvppBatchPicDesc *batch = dp_object_take(DP_OBJECT_DVPP_BATCH, batchPicDesc, "batchPicDesc");
    if (!batch)
        return dp_api_end(&call, DP_ERR_ARGUMENT);
    destroy_pictures(batch);
    dp_free(batch);
    return dp_api_end(&call, DP_OK);
}

/* Observers. */

static void report_bytes(dp_host_event_kind kind, void *data, size_t bytes) {
    dp_report_memory(kind, 0, kind == DP_HOST_WRITE ? data : NULL, kind == DP_HOST_WRITE ? NULL : data, bytes);
}

void dp_dvpp_report(dp_host_event_kind kind, const dp_picture *picture, const dp_area *area) {
    if (!DP_UNLIKELY(dp_report_wanted()))
        return;
    if (kind == DP_HOST_WRITE && area->width == picture->width && area->height == picture->height) {
        report_bytes(kind, picture->data, dp_picture_bytes(picture));
        return;
    }
    for (int i = 0; i < dp_format_planes(dp_format_of(picture->format)); i++) {
        dp_plane plane = dp_picture_plane(picture, i, area);
        for (uint32_t row = 0; row < plane.rows; row++)
            report_bytes(kind, plane.data + row * plane.pitch, (size_t)plane.columns * plane.bytes);
    }
}
