/* Graphs captured from streams. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "api/api.h"
#include "runtime/capture.h"

static bool is_mode(aclmdlRICaptureMode mode) {
    return mode == ACL_MODEL_RI_CAPTURE_MODE_GLOBAL || mode == ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL ||
           mode == ACL_MODEL_RI_CAPTURE_MODE_RELAXED;
}

/* The mode says which calls of other threads a capture forbids. None needs to be forbidden here. */
aclError aclmdlRICaptureBegin(aclrtStream stream, aclmdlRICaptureMode mode) {
    dp_api_call call = DP_API_CALL();
    call.stream = stream;
    if (!is_mode(mode))
        return dp_api_bad_value(&call, "mode", mode, "an ACL_MODEL_RI_CAPTURE_MODE_*: 0 to 2");
    dp_status status = dp_capture_begin(stream);
    return status == DP_ERR_CAPTURED ? dp_api_end_code(&call, ACL_ERROR_STREAM_CAPTURE_CONFLICT) : dp_api_end(&call, status);
}

aclError aclmdlRICaptureEnd(aclrtStream stream, aclmdlRI *modelRI) {
    dp_api_call call = DP_API_CALL();
    call.stream = stream;
    call.state_code = ACL_ERROR_RT_STREAM_NOT_CAPTURED;
    dp_status status = dp_capture_end(stream, modelRI);
    return status == DP_ERR_CAPTURED ? dp_api_end_code(&call, ACL_ERROR_RT_STREAM_CAPTURE_UNMATCHED)
                                     : dp_api_end(&call, status);
}

aclError aclmdlRICaptureGetInfo(aclrtStream stream, aclmdlRICaptureStatus *status, aclmdlRI *modelRI) {
    dp_api_call call = DP_API_CALL();
    call.stream = stream;
    if (!status)
        return dp_api_null(&call, "status", "the address of an aclmdlRICaptureStatus");
    if (!modelRI)
        return dp_api_null(&call, "modelRI", "the address of an aclmdlRI");
    void *recording = NULL;
    dp_status result = dp_capture_current(stream, &recording);
    if (result == DP_OK) {
        *status = recording ? ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE : ACL_MODEL_RI_CAPTURE_STATUS_NONE;
        *modelRI = recording;
    }
    return dp_api_end(&call, result);
}

aclError aclmdlRICaptureThreadExchangeMode(aclmdlRICaptureMode *mode) {
    static _Thread_local aclmdlRICaptureMode current = ACL_MODEL_RI_CAPTURE_MODE_GLOBAL;
    dp_api_call call = DP_API_CALL();
    if (!mode)
        return dp_api_null(&call, "mode", "the address of an aclmdlRICaptureMode");
    if (!is_mode(*mode))
        return dp_api_bad_value(&call, "mode", *mode, "an ACL_MODEL_RI_CAPTURE_MODE_*: 0 to 2");
    aclmdlRICaptureMode before = current;
    current = *mode;
    *mode = before;
    return dp_api_end(&call, DP_OK);
}

aclError aclmdlRICaptureTaskGrpBegin(aclrtStream stream) {
    dp_api_call call = DP_API_CALL();
    call.stream = stream;
    call.state_code = ACL_ERROR_RT_STREAM_NOT_CAPTURED;
    return dp_api_end(&call, dp_capture_group_begin(stream));
}

aclError aclmdlRICaptureTaskGrpEnd(aclrtStream stream, aclrtTaskGrp *handle) {
    dp_api_call call = DP_API_CALL();
    call.stream = stream;
    call.state_code = ACL_ERROR_RT_STREAM_NOT_CAPTURED;
    return dp_api_end(&call, dp_capture_group_end(stream, handle));
}

aclError aclmdlRICaptureTaskUpdateBegin(aclrtStream stream, aclrtTaskGrp handle) {
    dp_api_call call = DP_API_CALL();
    call.stream = stream;
    if (!handle)
        return dp_api_null(&call, "handle", "a task group of aclmdlRICaptureTaskGrpEnd");
    return dp_api_end(&call, dp_capture_update_begin(stream, handle));
}

aclError aclmdlRICaptureTaskUpdateEnd(aclrtStream stream) {
    dp_api_call call = DP_API_CALL();
    call.stream = stream;
    call.state_code = ACL_ERROR_RT_STREAM_NOT_CAPTURED;
    return dp_api_end(&call, dp_capture_update_end(stream));
}

#define NEED_GRAPH(modelRI)                                                                                            \
    if (!modelRI)                                                                                                      \
    return dp_api_null(&call, "modelRI", "a graph of aclmdlRICaptureEnd")

static aclError end_graph(dp_api_call *call, dp_status status) {
    return status == DP_ERR_CAPTURED ? dp_api_end_code(call, ACL_ERROR_RT_MODEL_CAPTURED) : dp_api_end(call, status);
}

aclError aclmdlRIExecuteAsync(aclmdlRI modelRI, aclrtStream stream) {
    dp_api_call call = DP_API_CALL();
    call.stream = stream;
    NEED_GRAPH(modelRI);
    return end_graph(&call, dp_recording_execute(modelRI, stream));
}

aclError aclmdlRIDestroy(aclmdlRI modelRI) {
    dp_api_call call = DP_API_CALL();
    NEED_GRAPH(modelRI);
    return end_graph(&call, dp_recording_destroy(modelRI));
}

aclError aclmdlRIGetId(aclmdlRI modelRI, uint32_t *id) {
    dp_api_call call = DP_API_CALL();
    NEED_GRAPH(modelRI);
    if (!id)
        return dp_api_null(&call, "id", "the address of a number");
    return dp_api_end(&call, dp_recording_id(modelRI, id));
}

static void print_step(void *context, size_t step, const char *name, uint32_t stream_id) {
    fprintf(context, "%6zu  stream %-4u  %s\n", step, stream_id, name);
}

aclError aclmdlRIDebugPrint(aclmdlRI modelRI) {
    dp_api_call call = DP_API_CALL();
    NEED_GRAPH(modelRI);
    uint32_t id;
    dp_status status = dp_recording_id(modelRI, &id);
    if (status == DP_OK) {
        fprintf(stderr, "captured graph %u\n", id);
        status = dp_recording_describe(modelRI, print_step, stderr);
    }
    return dp_api_end(&call, status);
}

/* Names are those of operators and kernels; what JSON cannot hold as it is becomes a question mark. */
static void write_step(void *context, size_t step, const char *name, uint32_t stream_id) {
    FILE *file = context;
    fprintf(file, "%s\n    {\"index\": %zu, \"stream\": %u, \"name\": \"", step ? "," : "", step, stream_id);
    for (const char *c = name; *c; c++)
        fputc(*c == '"' || *c == '\\' || (unsigned char)*c < ' ' ? '?' : *c, file);
    fputs("\"}", file);
}

aclError aclmdlRIDebugJsonPrint(aclmdlRI modelRI, const char *path, uint32_t flags) {
    dp_api_call call = DP_API_CALL();
    NEED_GRAPH(modelRI);
    if (!path || !path[0])
        return dp_api_null(&call, "path", "the name of the file to write");
    if (flags)
        return dp_api_bad_value(&call, "flags", flags, "0");
    uint32_t id;
    dp_status status = dp_recording_id(modelRI, &id);
    if (status != DP_OK)
        return dp_api_end(&call, status);
    FILE *file = fopen(path, "w");
    if (!file)
        return dp_api_end(&call, dp_fail(DP_ERR_IO, "path is %s, which cannot be written: %s", path, strerror(errno)));
    fprintf(file, "{\n  \"graph\": %u,\n  \"tasks\": [", id);
    status = dp_recording_describe(modelRI, write_step, file);
    fputs("\n  ]\n}\n", file);
    bool written = !ferror(file);
    if (fclose(file) || !written)
        status = dp_fail(DP_ERR_IO, "path is %s, which cannot be written: %s", path, strerror(errno));
    return dp_api_end(&call, status);
}
