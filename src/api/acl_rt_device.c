#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "api/api.h"
#include "base/log.h"
#include "device/chip.h"
#include "runtime/device.h"
#include "runtime/device_memory.h"
#include "runtime/stream.h"

aclError aclrtGetDeviceCount(uint32_t *count) {
    dp_api_call call = DP_API_CALL();
    if (!count)
        return dp_api_null(&call, "count", "the address of a uint32_t");
    *count = dp_device_count();
    return dp_api_end(&call, DP_OK);
}

aclError aclrtSetDevice(int32_t deviceId) {
    dp_api_call call = DP_API_CALL();
    return dp_api_end(&call, dp_device_set(deviceId));
}

aclError aclrtResetDevice(int32_t deviceId) {
    dp_api_call call = DP_API_CALL();
    return dp_api_end(&call, dp_device_reset(deviceId, false));
}

aclError aclrtResetDeviceForce(int32_t deviceId) {
    dp_api_call call = DP_API_CALL();
    return dp_api_end(&call, dp_device_reset(deviceId, true));
}

aclError aclrtGetDevice(int32_t *deviceId) {
    dp_api_call call = DP_API_CALL();
    if (!deviceId)
        return dp_api_null(&call, "deviceId", "the address of an int32_t");
    return dp_api_end(&call, dp_device_get(deviceId));
}

aclError aclrtGetRunMode(aclrtRunMode *runMode) {
    dp_api_call call = DP_API_CALL();
    if (!runMode)
        return dp_api_null(&call, "runMode", "the address of an aclrtRunMode");
    *runMode = ACL_HOST;
    return dp_api_end(&call, DP_OK);
}

aclError aclrtSynchronizeDevice(void) {
    dp_api_call call = DP_API_CALL();
    return dp_api_end(&call, dp_device_synchronise(-1));
}

aclError aclrtSynchronizeDeviceWithTimeout(int32_t timeout) {
    dp_api_call call = DP_API_CALL();
    if (timeout < -1)
        return dp_api_bad_value(&call, "timeout", timeout, "milliseconds, or -1 for no limit");
    return dp_api_end(&call, dp_device_synchronise(timeout));
}

aclError aclrtSetTsDevice(aclrtTsId tsId) {
    dp_api_call call = DP_API_CALL();
    if (tsId != ACL_TS_ID_AICORE && tsId != ACL_TS_ID_AIVECTOR)
        return dp_api_bad_value(&call, "tsId", tsId, "ACL_TS_ID_AICORE (0) or ACL_TS_ID_AIVECTOR (1)");
    return dp_api_end(&call, DP_OK);
}

/* False for attributes the simulated chip does not have. */
static bool device_number(const dp_chip *chip, int32_t device_id, aclrtDevAttr attr, int64_t *out_value) {
    int32_t physical = 0;
    switch (attr) {
    case ACL_DEV_ATTR_AICORE_CORE_NUM:
    case ACL_DEV_ATTR_CUBE_CORE_NUM:
        *out_value = chip->cube_cores;
        return true;
    case ACL_DEV_ATTR_VECTOR_CORE_NUM:
        *out_value = chip->vector_cores;
        return true;
    case ACL_DEV_ATTR_LOCAL_MEM_PER_VECTOR_CORE:
        *out_value = chip->space_bytes[DP_SPACE_UB];
        return true;
    case ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE:
        *out_value = (int64_t)chip->memory_bytes;
        return true;
    case ACL_DEV_ATTR_L2_CACHE_SIZE:
        *out_value = (int64_t)chip->l2_bytes;
        return true;
    case ACL_DEV_ATTR_PHY_CHIP_ID:
        *out_value = dp_device_physical_id(device_id, &physical) == DP_OK ? physical : -1;
        return true;
    case ACL_DEV_ATTR_IS_VIRTUAL:
        *out_value = 0; /* asks for a share of a card, not for a simulation */
        return true;
    default:
        return false;
    }
}

aclError aclrtGetDeviceInfo(uint32_t deviceId, aclrtDevAttr attr, int64_t *value) {
    dp_api_call call = DP_API_CALL();
    if (!value)
        return dp_api_null(&call, "value", "the address of an int64_t");
    int32_t device = deviceId > INT32_MAX ? -1 : (int32_t)deviceId;
    dp_status status = dp_device_check(device);
    if (status)
        return dp_api_end(&call, status);
    if (device_number(dp_chip_current(), device, attr, value))
        return dp_api_end(&call, DP_OK);
    bool known = (attr >= ACL_DEV_ATTR_AICPU_CORE_NUM && attr <= ACL_DEV_ATTR_L2_CACHE_SIZE) ||
                 (attr >= ACL_DEV_ATTR_SMP_ID && attr <= ACL_DEV_ATTR_MAINBOARD_ID);
    if (!known)
        return dp_api_bad_value(&call, "attr", attr, "an aclrtDevAttr");
    return dp_api_fail(&call, ACL_ERROR_API_NOT_SUPPORT,
                       "attr is %d, but the simulated chip does not have that attribute", (int)attr);
}

aclError aclrtQueryDeviceStatus(int32_t deviceId, aclrtDeviceStatus *deviceStatus) {
    dp_api_call call = DP_API_CALL();
    if (!deviceStatus)
        return dp_api_null(&call, "deviceStatus", "the address of an aclrtDeviceStatus");
    dp_status status = dp_device_check(deviceId);
    if (status == DP_OK)
        *deviceStatus = ACL_RT_DEVICE_STATUS_NORMAL;
    return dp_api_end(&call, status);
}

aclError aclrtDeviceGetUuid(int32_t deviceId, aclrtUuid *uuid) {
    dp_api_call call = DP_API_CALL();
    if (!uuid)
        return dp_api_null(&call, "uuid", "the address of an aclrtUuid");
    int32_t physical = 0;
    dp_status status = dp_device_physical_id(deviceId, &physical);
    if (status)
        return dp_api_end(&call, status);
    memset(uuid, 0, sizeof *uuid);
    memcpy(uuid->bytes, "doppel", 6);
    memcpy(uuid->bytes + 8, &physical, sizeof physical);
    return dp_api_end(&call, DP_OK);
}

aclError aclrtGetDeviceUtilizationRate(int32_t deviceId, aclrtUtilizationInfo *utilizationInfo) {
    dp_api_call call = DP_API_CALL();
    if (!utilizationInfo)
        return dp_api_null(&call, "utilizationInfo", "the address of an aclrtUtilizationInfo");
    int32_t percent = 0;
    size_t used = 0, peak = 0;
    dp_status status = dp_device_utilisation(deviceId, &percent);
    if (status == DP_OK)
        status = dp_device_memory_usage(deviceId, &used, &peak);
    if (status)
        return dp_api_end(&call, status);
    uint64_t total = dp_chip_current()->memory_bytes;
    utilizationInfo->cubeUtilization = DEVICE_UTILIZATION_NOT_SUPPORT;
    utilizationInfo->vectorUtilization = percent;
    utilizationInfo->aicpuUtilization = DEVICE_UTILIZATION_NOT_SUPPORT;
    utilizationInfo->memoryUtilization = total ? (int32_t)(100.0 * (double)used / (double)total) : 0;
    return dp_api_end(&call, DP_OK);
}

aclError aclrtDeviceGetBareTgid(int32_t *pid) {
    dp_api_call call = DP_API_CALL();
    if (!pid)
        return dp_api_null(&call, "pid", "the address of an int32_t");
    *pid = (int32_t)getpid();
    return dp_api_end(&call, DP_OK);
}

aclError aclrtDeviceTaskAbort(int32_t deviceId, uint32_t timeout) {
    dp_api_call call = DP_API_CALL();
    int32_t limit_ms = timeout == 0 ? -1 : timeout > INT32_MAX ? INT32_MAX : (int32_t)timeout;
    return dp_api_end(&call, dp_device_abort(deviceId, limit_ms));
}

aclError aclrtGetLogicDevIdByUserDevId(const int32_t userDevid, int32_t *const logicDevId) {
    dp_api_call call = DP_API_CALL();
    if (!logicDevId)
        return dp_api_null(&call, "logicDevId", "the address of an int32_t");
    return dp_api_end(&call, dp_device_physical_id(userDevid, logicDevId));
}

aclError aclrtDeviceCanAccessPeer(int32_t *canAccessPeer, int32_t deviceId, int32_t peerDeviceId) {
    dp_api_call call = DP_API_CALL();
    if (!canAccessPeer)
        return dp_api_null(&call, "canAccessPeer", "the address of an int32_t");
    dp_status status = dp_device_check(deviceId);
    if (status == DP_OK)
        status = dp_device_check(peerDeviceId);
    if (status == DP_OK)
        *canAccessPeer = deviceId != peerDeviceId;
    return dp_api_end(&call, status);
}

/* All devices live in one address space: access needs no preparation, only arguments that make sense. */
static aclError change_peer_access(dp_api_call *call, int32_t peer_device_id) {
    int32_t device_id = 0;
    dp_status status = dp_device_get(&device_id);
    if (status == DP_OK)
        status = dp_device_check(peer_device_id);
    if (status)
        return dp_api_end(call, status);
    if (device_id == peer_device_id)
        return dp_api_bad_value(call, "peerDeviceId", peer_device_id, "another device than the current one");
    return dp_api_end(call, DP_OK);
}

aclError aclrtDeviceEnablePeerAccess(int32_t peerDeviceId, uint32_t flags) {
    dp_api_call call = DP_API_CALL();
    if (flags)
        return dp_api_bad_value(&call, "flags", flags, "0 (reserved)");
    return change_peer_access(&call, peerDeviceId);
}

aclError aclrtDeviceDisablePeerAccess(int32_t peerDeviceId) {
    dp_api_call call = DP_API_CALL();
    return change_peer_access(&call, peerDeviceId);
}
