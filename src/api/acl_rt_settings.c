/* Switches, time limits and core limits: what programs set before they run operators. */
#include <stdatomic.h>

#include "api/api.h"
#include "device/chip.h"
#include "runtime/context.h"
#include "runtime/device.h"
#include "runtime/stream.h"
#include "runtime/time_limit.h"

/* One set for the process; INT64_MIN = never set. */
#define NOT_SET INT64_MIN
static _Atomic int64_t options[] = {
    [ACL_OPT_DETERMINISTIC] = NOT_SET, [ACL_OPT_ENABLE_DEBUG_KERNEL] = NOT_SET, [ACL_OPT_STRONG_CONSISTENCY] = NOT_SET};
#define OPTIONS (sizeof options / sizeof options[0])

static aclError set_option(dp_api_call *call, aclSysParamOpt opt, int64_t value) {
    if ((unsigned)opt >= OPTIONS)
        return dp_api_bad_value(call, "opt", opt, "an aclSysParamOpt (0 to 2)");
    if (value != 0 && value != 1)
        return dp_api_bad_value(call, "value", value, "0 (off) or 1 (on)");
    atomic_store(&options[opt], value);
    return dp_api_end(call, DP_OK);
}

static aclError get_option(dp_api_call *call, aclSysParamOpt opt, int64_t *value) {
    if ((unsigned)opt >= OPTIONS)
        return dp_api_bad_value(call, "opt", opt, "an aclSysParamOpt (0 to 2)");
    if (!value)
        return dp_api_null(call, "value", "the address of an int64_t");
    int64_t current = atomic_load(&options[opt]);
    if (current == NOT_SET)
        return dp_api_fail(call, ACL_ERROR_RT_SYSPARAMOPT_NOT_SET, "opt is %d, which was never set", (int)opt);
    *value = current;
    return dp_api_end(call, DP_OK);
}

aclError aclrtSetSysParamOpt(aclSysParamOpt opt, int64_t value) {
    dp_api_call call = DP_API_CALL();
    return set_option(&call, opt, value);
}

aclError aclrtGetSysParamOpt(aclSysParamOpt opt, int64_t *value) {
    dp_api_call call = DP_API_CALL();
    return get_option(&call, opt, value);
}

aclError aclrtCtxSetSysParamOpt(aclSysParamOpt opt, int64_t value) {
    dp_api_call call = DP_API_CALL();
    void *context = NULL;
    dp_status status = dp_context_current(&context);
    return status ? dp_api_end(&call, status) : set_option(&call, opt, value);
}

aclError aclrtCtxGetSysParamOpt(aclSysParamOpt opt, int64_t *value) {
    dp_api_call call = DP_API_CALL();
    void *context = NULL;
    dp_status status = dp_context_current(&context);
    return status ? dp_api_end(&call, status) : get_option(&call, opt, value);
}

aclError aclrtSetOpExecuteTimeOut(uint32_t timeout) {
    dp_api_call call = DP_API_CALL();
    dp_time_limit_set_execute(timeout * (uint64_t)1000000000);
    return dp_api_end(&call, DP_OK);
}

/* Chips round up to what their counter can do, and say so; ours counts milliseconds. */
#define LIMIT_STEP_US 1000u
#define LIMIT_MAX_US (UINT64_MAX / 1000000u) /* centuries */

aclError aclrtSetOpExecuteTimeOutV2(uint64_t timeout, uint64_t *actualTimeout) {
    dp_api_call call = DP_API_CALL();
    if (!actualTimeout)
        return dp_api_null(&call, "actualTimeout", "the address of a uint64_t");
    uint64_t limit_us = timeout < LIMIT_MAX_US ? (timeout + LIMIT_STEP_US - 1) / LIMIT_STEP_US * LIMIT_STEP_US : LIMIT_MAX_US;
    *actualTimeout = limit_us;
    dp_time_limit_set_execute(limit_us * 1000u);
    return dp_api_end(&call, DP_OK);
}

aclError aclrtSetOpWaitTimeout(uint32_t timeout) {
    dp_api_call call = DP_API_CALL();
    dp_time_limit_set_wait(timeout * (uint64_t)1000000000);
    return dp_api_end(&call, DP_OK);
}

aclError aclrtSetDeviceSatMode(aclrtFloatOverflowMode mode) {
    dp_api_call call = DP_API_CALL();
    if (mode < ACL_RT_OVERFLOW_MODE_SATURATION || mode > ACL_RT_OVERFLOW_MODE_UNDEF)
        return dp_api_bad_value(&call, "mode", mode, "an aclrtFloatOverflowMode (0 to 2)");
    if (mode != ACL_RT_OVERFLOW_MODE_INFNAN)
        return dp_api_fail(&call, ACL_ERROR_API_NOT_SUPPORT,
                           "mode is %d, but only ACL_RT_OVERFLOW_MODE_INFNAN (1) is supported: results keep infinities",
                           mode);
    return dp_api_end(&call, DP_OK);
}

aclError aclrtGetDeviceSatMode(aclrtFloatOverflowMode *mode) {
    dp_api_call call = DP_API_CALL();
    if (!mode)
        return dp_api_null(&call, "mode", "the address of an aclrtFloatOverflowMode");
    *mode = ACL_RT_OVERFLOW_MODE_INFNAN;
    return dp_api_end(&call, DP_OK);
}

/* ---- core limits: always the whole chip ---- */

static bool is_core_kind(aclrtDevResLimitType type) {
    return type == ACL_RT_DEV_RES_CUBE_CORE || type == ACL_RT_DEV_RES_VECTOR_CORE;
}

static uint32_t cores_of(aclrtDevResLimitType type) {
    const dp_chip *chip = dp_chip_current();
    return type == ACL_RT_DEV_RES_CUBE_CORE ? chip->cube_cores : chip->vector_cores;
}

static aclError get_limit(dp_api_call *call, dp_status status, aclrtDevResLimitType type, uint32_t *value) {
    if (status)
        return dp_api_end(call, status);
    if (!is_core_kind(type))
        return dp_api_bad_value(call, "type", type, "an aclrtDevResLimitType (0 or 1)");
    if (!value)
        return dp_api_null(call, "value", "the address of a uint32_t");
    *value = cores_of(type);
    return dp_api_end(call, DP_OK);
}

static aclError set_limit(dp_api_call *call, dp_status status, aclrtDevResLimitType type, uint32_t value) {
    if (status)
        return dp_api_end(call, status);
    if (!is_core_kind(type))
        return dp_api_bad_value(call, "type", type, "an aclrtDevResLimitType (0 or 1)");
    if (value == 0 || value > cores_of(type))
        return dp_api_fail(call, ACL_ERROR_INVALID_PARAM, "value is %u, but must be 1 to %u cores", value,
                           cores_of(type));
    if (value != cores_of(type))
        return dp_api_fail(call, ACL_ERROR_API_NOT_SUPPORT,
                           "value is %u, but only the whole chip (%u cores) is supported", value, cores_of(type));
    return dp_api_end(call, DP_OK);
}

static dp_status check_stream(void *stream) {
    int32_t id = 0;
    return dp_stream_id(stream, &id);
}

aclError aclrtGetDeviceResLimit(int32_t deviceId, aclrtDevResLimitType type, uint32_t *value) {
    dp_api_call call = DP_API_CALL();
    return get_limit(&call, dp_device_check(deviceId), type, value);
}

aclError aclrtSetDeviceResLimit(int32_t deviceId, aclrtDevResLimitType type, uint32_t value) {
    dp_api_call call = DP_API_CALL();
    return set_limit(&call, dp_device_check(deviceId), type, value);
}

aclError aclrtResetDeviceResLimit(int32_t deviceId) {
    dp_api_call call = DP_API_CALL();
    return dp_api_end(&call, dp_device_check(deviceId));
}

aclError aclrtGetStreamResLimit(aclrtStream stream, aclrtDevResLimitType type, uint32_t *value) {
    dp_api_call call = DP_API_CALL();
    return get_limit(&call, check_stream(stream), type, value);
}

aclError aclrtSetStreamResLimit(aclrtStream stream, aclrtDevResLimitType type, uint32_t value) {
    dp_api_call call = DP_API_CALL();
    return set_limit(&call, check_stream(stream), type, value);
}

aclError aclrtResetStreamResLimit(aclrtStream stream) {
    dp_api_call call = DP_API_CALL();
    return dp_api_end(&call, check_stream(stream));
}

aclError aclrtUseStreamResInCurrentThread(aclrtStream stream) {
    dp_api_call call = DP_API_CALL();
    return dp_api_end(&call, check_stream(stream));
}

aclError aclrtUnuseStreamResInCurrentThread(aclrtStream stream) {
    dp_api_call call = DP_API_CALL();
    return dp_api_end(&call, check_stream(stream));
}

aclError aclrtGetResInCurrentThread(aclrtDevResLimitType type, uint32_t *value) {
    dp_api_call call = DP_API_CALL();
    return get_limit(&call, DP_OK, type, value);
}
