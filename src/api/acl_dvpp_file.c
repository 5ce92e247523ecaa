/* acl_dvpp.h: pictures as files. */
#include "api/acl_dvpp.h"

#include "runtime/device_memory.h"
#include "runtime/task.h"

/* Headers, at once. */

/* What both kinds of file are asked; any out_ may be NULL. */
static aclError get_info(dp_api_call *call, bool is_jpeg, const void *data, uint32_t size, dp_file_info *info) {
    if (!data)
        return dp_api_null(call, "data", "the bytes of the file");
    if (!size)
        return dp_api_fail(call, ACL_ERROR_INVALID_PARAM, "size is 0, but must be the bytes of the file");
    dp_status status = is_jpeg ? dp_jpeg_info(data, size, "data", info) : dp_png_info(data, size, "data", info);
    return dp_api_end(call, status);
}

static aclError jpeg_info(dp_api_call call, const void *data, uint32_t size, uint32_t *width, uint32_t *height,
                          int32_t *components, acldvppJpegFormat *format) {
    dp_file_info info;
    if (!width || !height || !components)
        return dp_api_null(&call, !width ? "width" : !height ? "height" : "components", "the address of a number");
    aclError error = get_info(&call, true, data, size, &info);
    if (error != ACL_SUCCESS)
        return error;
    *width = info.width;
    *height = info.height;
    *components = info.components;
    if (format)
        *format = (acldvppJpegFormat)info.sampling;
    return ACL_SUCCESS;
}

aclError acldvppJpegGetImageInfo(const void *data, uint32_t size, uint32_t *width, uint32_t *height,
                                 int32_t *components) {
    return jpeg_info(DP_API_CALL(), data, size, width, height, components, NULL);
}

aclError acldvppJpegGetImageInfoV2(const void *data, uint32_t size, uint32_t *width, uint32_t *height,
                                   int32_t *components, acldvppJpegFormat *format) {
    dp_api_call call = DP_API_CALL();
    if (!format)
        return dp_api_null(&call, "format", "the address of an acldvppJpegFormat");
    return jpeg_info(call, data, size, width, height, components, format);
}

aclError acldvppPngGetImageInfo(const void *data, uint32_t dataSize, uint32_t *width, uint32_t *height,
                                int32_t *components) {
    dp_api_call call = DP_API_CALL();
    dp_file_info info;
    if (!width || !height || !components)
        return dp_api_null(&call, !width ? "width" : !height ? "height" : "components", "the address of a number");
    aclError error = get_info(&call, false, data, dataSize, &info);
    if (error != ACL_SUCCESS)
        return error;
    *width = info.width;
    *height = info.height;
    *components = info.components;
    return ACL_SUCCESS;
}

static aclError predict_decoded(dp_api_call call, bool is_jpeg, const void *data, uint32_t size,
                                acldvppPixelFormat format, uint32_t *out_size) {
    dp_file_info info;
    if (!out_size)
        return dp_api_null(&call, "decSize", "the address of a number");
    dp_api_call inner = call;
    aclError error = get_info(&inner, is_jpeg, data, size, &info);
    if (error != ACL_SUCCESS)
        return error;
    dp_picture picture = {.format = (int)format};
    dp_status status = is_jpeg ? dp_jpeg_plan(&info, DP_JPEG_ODD_UP, &picture) : dp_png_plan(&info, &picture);
    if (status == DP_OK)
        *out_size = (uint32_t)dp_picture_bytes(&picture);
    return dp_api_end(&call, status);
}

aclError acldvppJpegPredictDecSize(const void *data, uint32_t dataSize, acldvppPixelFormat outputPixelFormat,
                                   uint32_t *decSize) {
    return predict_decoded(DP_API_CALL(), true, data, dataSize, outputPixelFormat, decSize);
}

aclError acldvppPngPredictDecSize(const void *data, uint32_t dataSize, acldvppPixelFormat outputPixelFormat,
                                  uint32_t *decSize) {
    return predict_decoded(DP_API_CALL(), false, data, dataSize, outputPixelFormat, decSize);
}

aclError acldvppJpegPredictEncSize(const acldvppPicDesc *inputDesc, const acldvppJpegeConfig *config, uint32_t *size) {
    dp_api_call call = DP_API_CALL();
    const acldvppPicDesc *desc = dp_dvpp_picture(inputDesc, "inputDesc");
    if (!desc || !dp_object_get(DP_OBJECT_DVPP_JPEGE, config, "config"))
        return dp_api_end(&call, DP_ERR_ARGUMENT);
    if (!size)
        return dp_api_null(&call, "size", "the address of a number");
    dp_picture picture = desc->picture;
    dp_status status = dp_picture_complete(&picture, "inputDesc");
    if (status == DP_OK)
        *size = (uint32_t)dp_jpeg_room(&picture);
    return dp_api_end(&call, status);
}

/* Decoding, queued. */

typedef struct decode_job {
    bool is_jpeg;
    dp_jpeg_odd odd;
    const void *data;
    uint32_t size;
    dp_picture picture;
    acldvppPicDesc *result;
} decode_job;

/*
 * What decoding finds out. The memory stays the caller's setting, and so does a size that he knew: until the stream is done he may read both, and
 * queue work that reads the picture.
 */
static void tell(uint32_t *setting, uint32_t found) {
    if (*setting != found)
        *setting = found;
}

static void tell_size(dp_picture *result, const dp_picture *decoded) {
    tell(&result->width, decoded->width);
    tell(&result->height, decoded->height);
    tell(&result->width_stride, decoded->width_stride);
    tell(&result->height_stride, decoded->height_stride);
}

static dp_status run_decode(void *payload) {
    decode_job *job = payload;
    dp_status status = job->is_jpeg ? dp_jpeg_decode(job->data, job->size, job->odd, &job->picture)
                                    : dp_png_decode(job->data, job->size, &job->picture);
    job->result->ret_code = dp_dvpp_ret_code(status);
    if (status == DP_OK) {
        const dp_area whole = dp_picture_area(&job->picture);
        dp_dvpp_report(DP_HOST_WRITE, &job->picture, &whole);
        tell_size(&job->result->picture, &job->picture);
    }
    return status;
}

static void end_decode(void *payload) {
    dp_dvpp_release(((decode_job *)payload)->result);
}

/* The size of a picture that is not decoded yet is not known: only its memory and its format are looked at. */
static dp_status check_decode(const decode_job *job) {
    const dp_picture *p = &job->picture;
    if (!job->data || !job->size)
        return dp_fail(DP_ERR_ARGUMENT, "%s is %s, but must be the file's", job->data ? "size" : "data",
                       job->data ? "0" : "NULL");
    if (!p->data || !p->size_bytes)
        return dp_fail(DP_ERR_ARGUMENT, "outputDesc: its %s is %s: set the memory for the picture first",
                       p->data ? "size" : "data", p->data ? "0" : "NULL");
    dp_status status = dp_device_memory_check("data", job->data, job->size);
    return status == DP_OK ? dp_device_memory_check("outputDesc", p->data, p->size_bytes) : status;
}

static aclError decode(dp_api_call call, bool is_jpeg, const acldvppChannelDesc *channelDesc, const void *data,
                       uint32_t size, acldvppPicDesc *outputDesc, aclrtStream stream) {
    call.stream = stream;
    const acldvppChannelDesc *channel = dp_dvpp_channel(channelDesc, is_jpeg ? DVPP_CHNMODE_JPEGD : DVPP_CHNMODE_PNGD);
    acldvppPicDesc *desc = channel ? dp_dvpp_picture(outputDesc, "outputDesc") : NULL;
    if (!desc)
        return dp_api_end(&call, DP_ERR_ARGUMENT);
    decode_job job = {.is_jpeg = is_jpeg,
                      .odd = channel->odd == ACL_YUVOUT_ALIGN_UP ? DP_JPEG_ODD_UP : DP_JPEG_ODD_DOWN,
                      .data = data,
                      .size = size,
                      .picture = desc->picture,
                      .result = desc};
    dp_status status = check_decode(&job);
    if (status != DP_OK)
        return dp_api_end(&call, status);
    dp_dvpp_hold(desc);
    status =
        dp_task_submit(stream, is_jpeg ? "JPEG decoding" : "PNG decoding", run_decode, end_decode, &job, sizeof job);
    if (status != DP_OK)
        dp_dvpp_release(desc);
    return dp_api_end(&call, status);
}

aclError acldvppJpegDecodeAsync(acldvppChannelDesc *channelDesc, const void *data, uint32_t size,
                                acldvppPicDesc *outputDesc, aclrtStream stream) {
    return decode(DP_API_CALL(), true, channelDesc, data, size, outputDesc, stream);
}

aclError acldvppPngDecodeAsync(acldvppChannelDesc *channelDesc, const void *data, uint32_t size,
                               acldvppPicDesc *outputDesc, aclrtStream stream) {
    return decode(DP_API_CALL(), false, channelDesc, data, size, outputDesc, stream);
}

/* Encoding, queued. */

typedef struct encode_job {
    dp_picture picture;
    int quality;
    void *out;
    uint32_t room, *size;
} encode_job;

static dp_status run_encode(void *payload) {
    encode_job *job = payload;
    const dp_area whole = dp_picture_area(&job->picture);
    size_t written = 0;
    dp_dvpp_report(DP_HOST_READ, &job->picture, &whole);
    dp_status status = dp_jpeg_encode(&job->picture, job->quality, job->out, job->room, &written);
    *job->size = (uint32_t)written;
    if (status == DP_OK && DP_UNLIKELY(dp_report_wanted()))
        dp_report_memory(DP_HOST_WRITE, 0, job->out, NULL, written);
    return status;
}

aclError acldvppJpegEncodeAsync(acldvppChannelDesc *channelDesc, acldvppPicDesc *inputDesc, const void *data,
                                uint32_t *size, acldvppJpegeConfig *config, aclrtStream stream) {
    dp_api_call call = DP_API_CALL();
    call.stream = stream;
    const acldvppPicDesc *desc =
        dp_dvpp_channel(channelDesc, DVPP_CHNMODE_JPEGE) ? dp_dvpp_picture(inputDesc, "inputDesc") : NULL;
    const acldvppJpegeConfig *settings = desc ? dp_object_get(DP_OBJECT_DVPP_JPEGE, config, "config") : NULL;
    if (!settings)
        return dp_api_end(&call, DP_ERR_ARGUMENT);
    if (!data || !size)
        return dp_api_null(&call, data ? "size" : "data",
                           data ? "the address of the room's size" : "device memory for the file");
    if (!*size)
        return dp_api_fail(&call, ACL_ERROR_INVALID_PARAM,
                           "*size is 0, but must be the room for the file: see "
                           "acldvppJpegPredictEncSize");
    encode_job job = {.quality = settings->level ? (int)settings->level : 100,
                      .out = (void *)(uintptr_t)data,
                      .room = *size,
                      .size = size};
    dp_status status = dp_dvpp_take(desc, "inputDesc", &job.picture);
    if (status == DP_OK)
        status = dp_device_memory_check("data", data, *size);
    if (status == DP_OK)
        status = dp_task_submit(stream, "JPEG encoding", run_encode, NULL, &job, sizeof job);
    return dp_api_end(&call, status);
}
