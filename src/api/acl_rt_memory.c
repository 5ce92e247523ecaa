#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/api.h"
#include "device/chip.h"
#include "runtime/device.h"
#include "runtime/device_memory.h"
#include "runtime/stream.h"

static aclError allocate(dp_api_call *call, void **dev_ptr, size_t size, aclrtMemMallocPolicy policy) {
    if (!dev_ptr)
        return dp_api_null(call, "devPtr", "the address of a pointer for the memory");
    if (policy < ACL_MEM_MALLOC_HUGE_FIRST || policy > ACL_MEM_ACCESS_USER_SPACE_READONLY)
        return dp_api_bad_value(call, "policy", policy, "an aclrtMemMallocPolicy (0 to 10)");
    if (!size)
        return dp_api_fail(call, ACL_ERROR_INVALID_PARAM, "size is 0, but must be at least 1 byte");
    return dp_api_end(call, dp_device_memory_alloc(size, dev_ptr));
}

aclError aclrtMalloc(void **devPtr, size_t size, aclrtMemMallocPolicy policy) {
    dp_api_call call = DP_API_CALL();
    return allocate(&call, devPtr, size, policy);
}

aclError aclrtMallocAlign32(void **devPtr, size_t size, aclrtMemMallocPolicy policy) {
    dp_api_call call = DP_API_CALL();
    return allocate(&call, devPtr, size, policy);
}

aclError aclrtMallocCached(void **devPtr, size_t size, aclrtMemMallocPolicy policy) {
    dp_api_call call = DP_API_CALL();
    return allocate(&call, devPtr, size, policy);
}

aclError aclrtFree(void *devPtr) {
    dp_api_call call = DP_API_CALL();
    if (!devPtr)
        return dp_api_null(&call, "devPtr", "device memory of aclrtMalloc");
    return dp_api_end(&call, dp_device_memory_free(devPtr));
}

static aclError allocate_host(dp_api_call *call, const char *argument, void **host_ptr, size_t size) {
    if (!host_ptr)
        return dp_api_null(call, argument, "the address of a pointer for the memory");
    if (!size)
        return dp_api_fail(call, ACL_ERROR_INVALID_PARAM, "size is 0, but must be at least 1 byte");
    return dp_api_end(call, dp_host_memory_alloc(size, host_ptr));
}

aclError aclrtMallocHost(void **hostPtr, size_t size) {
    dp_api_call call = DP_API_CALL();
    return allocate_host(&call, "hostPtr", hostPtr, size);
}

aclError aclrtMallocHostWithCfg(void **ptr, uint64_t size, aclrtMallocConfig *cfg) {
    dp_api_call call = DP_API_CALL();
    if (cfg && cfg->numAttrs && !cfg->attrs)
        return dp_api_fail(&call, ACL_ERROR_INVALID_PARAM, "cfg->attrs is NULL, but cfg->numAttrs is %zu",
                           cfg->numAttrs);
    for (size_t i = 0; cfg && i < cfg->numAttrs; i++)
        if (cfg->attrs[i].attr < ACL_RT_MEM_ATTR_RSV || cfg->attrs[i].attr > ACL_RT_MEM_ATTR_VA_FLAG)
            return dp_api_fail(&call, ACL_ERROR_INVALID_PARAM,
                               "cfg->attrs[%zu].attr is %d, but must be an aclrtMallocAttrType (0 to 3)", i,
                               (int)cfg->attrs[i].attr);
    return allocate_host(&call, "ptr", ptr, size);
}

aclError aclrtFreeHost(void *hostPtr) {
    dp_api_call call = DP_API_CALL();
    if (!hostPtr)
        return dp_api_null(&call, "hostPtr", "host memory of aclrtMallocHost");
    return dp_api_end(&call, dp_host_memory_free(hostPtr));
}

static aclError check_range(dp_api_call *call, void *dev_ptr, size_t size) {
    if (!dev_ptr)
        return dp_api_null(call, "devPtr", "device memory of aclrtMallocCached");
    if (!size)
        return dp_api_fail(call, ACL_ERROR_INVALID_PARAM, "size is 0, but must be at least 1 byte");
    return dp_api_end(call, dp_device_memory_check("devPtr", dev_ptr, size));
}

aclError aclrtMemFlush(void *devPtr, size_t size) {
    dp_api_call call = DP_API_CALL();
    return check_range(&call, devPtr, size);
}

aclError aclrtMemInvalidate(void *devPtr, size_t size) {
    dp_api_call call = DP_API_CALL();
    return check_range(&call, devPtr, size);
}

/* The inference chips have DDR, the training chips HBM. */
static bool chip_has(aclrtMemAttr attr) {
    bool ddr = attr == ACL_DDR_MEM || attr == ACL_DDR_MEM_HUGE || attr == ACL_DDR_MEM_NORMAL ||
               attr == ACL_DDR_MEM_P2P_HUGE || attr == ACL_DDR_MEM_P2P_NORMAL;
    return ddr == (strncmp(dp_chip_current()->name, "Ascend310", 9) == 0);
}

aclError aclrtGetMemInfo(aclrtMemAttr attr, size_t *free, size_t *total) {
    dp_api_call call = DP_API_CALL();
    if (attr < ACL_DDR_MEM || attr > ACL_HBM_MEM_P2P_HUGE1G)
        return dp_api_bad_value(&call, "attr", attr, "an aclrtMemAttr (0 to 11)");
    if (!free)
        return dp_api_null(&call, "free", "the address of a size_t");
    if (!total)
        return dp_api_null(&call, "total", "the address of a size_t");
    size_t free_bytes = 0, total_bytes = 0;
    dp_status status = dp_device_memory_info(&free_bytes, &total_bytes);
    if (status)
        return dp_api_end(&call, status);
    bool has = chip_has(attr);
    *free = has ? free_bytes : 0;
    *total = has ? total_bytes : 0;
    return dp_api_end(&call, DP_OK);
}

aclError aclrtGetMemUsageInfo(uint32_t deviceId, aclrtMemUsageInfo *memUsageInfo, size_t inputNum, size_t *outputNum) {
    dp_api_call call = DP_API_CALL();
    if (!memUsageInfo)
        return dp_api_null(&call, "memUsageInfo", "an array of aclrtMemUsageInfo");
    if (!inputNum)
        return dp_api_bad_value(&call, "inputNum", 0, "the number of entries of memUsageInfo, at least 1");
    if (!outputNum)
        return dp_api_null(&call, "outputNum", "the address of a size_t");
    size_t used = 0, peak = 0;
    dp_status status = dp_device_memory_usage(deviceId > INT32_MAX ? -1 : (int32_t)deviceId, &used, &peak);
    if (status)
        return dp_api_end(&call, status);
    memUsageInfo[0] = (aclrtMemUsageInfo){.name = "APP", .curMemSize = used, .memPeakSize = peak};
    *outputNum = 1;
    return dp_api_end(&call, DP_OK);
}

aclError aclrtPointerGetAttributes(const void *ptr, aclrtPtrAttributes *attributes) {
    dp_api_call call = DP_API_CALL();
    if (!ptr)
        return dp_api_null(&call, "ptr", "an address");
    if (!attributes)
        return dp_api_null(&call, "attributes", "the address of an aclrtPtrAttributes");
    dp_pointer_kind kind = DP_POINTER_UNKNOWN;
    int32_t device_id = -1;
    dp_status status = dp_pointer_describe(ptr, &kind, &device_id);
    if (status)
        return dp_api_end(&call, status);
    *attributes =
        (aclrtPtrAttributes){.location = {.id = kind == DP_POINTER_DEVICE ? (uint32_t)device_id : 0,
                                          .type = kind == DP_POINTER_DEVICE ? ACL_MEM_LOCATION_TYPE_DEVICE
                                                  : kind == DP_POINTER_HOST ? ACL_MEM_LOCATION_TYPE_HOST
                                                                            : ACL_MEM_LOCATION_TYPE_UNREGISTERED},
                             .pageSize = (uint32_t)sysconf(_SC_PAGESIZE)};
    return dp_api_end(&call, DP_OK);
}

aclError aclrtHostRegister(void *ptr, uint64_t size, aclrtHostRegisterType type, void **devPtr) {
    dp_api_call call = DP_API_CALL();
    if (!ptr)
        return dp_api_null(&call, "ptr", "host memory");
    if (!size)
        return dp_api_fail(&call, ACL_ERROR_INVALID_PARAM, "size is 0, but must be at least 1 byte");
    if (type != ACL_HOST_REGISTER_MAPPED)
        return dp_api_bad_value(&call, "type", type, "ACL_HOST_REGISTER_MAPPED (0)");
    if (!devPtr)
        return dp_api_null(&call, "devPtr", "the address of a pointer for the device address");
    return dp_api_end(&call, dp_host_memory_register(ptr, size, devPtr));
}

aclError aclrtHostRegisterV2(void *ptr, uint64_t size, uint32_t flag) {
    dp_api_call call = DP_API_CALL();
    if (!ptr)
        return dp_api_null(&call, "ptr", "host memory");
    if (!size)
        return dp_api_fail(&call, ACL_ERROR_INVALID_PARAM, "size is 0, but must be at least 1 byte");
    if (!flag || flag & ~(ACL_HOST_REG_MAPPED | ACL_HOST_REG_PINNED))
        return dp_api_bad_value(&call, "flag", flag,
                                "ACL_HOST_REG_MAPPED (2), ACL_HOST_REG_PINNED (0x10000000) or both");
    void *device_ptr = NULL;
    return dp_api_end(&call, dp_host_memory_register(ptr, size, &device_ptr));
}

aclError aclrtHostUnregister(void *ptr) {
    dp_api_call call = DP_API_CALL();
    if (!ptr)
        return dp_api_null(&call, "ptr", "host memory given to aclrtHostRegister");
    return dp_api_end(&call, dp_host_memory_unregister(ptr));
}

aclError aclrtHostGetDevicePointer(void *pHost, void **pDevice, uint32_t flag) {
    dp_api_call call = DP_API_CALL();
    if (!pHost)
        return dp_api_null(&call, "pHost", "host memory given to aclrtHostRegister");
    if (!pDevice)
        return dp_api_null(&call, "pDevice", "the address of a pointer for the device address");
    if (flag)
        return dp_api_bad_value(&call, "flag", flag, "0 (reserved)");
    return dp_api_end(&call, dp_host_memory_device_pointer(pHost, pDevice));
}

aclError aclrtCmoAsync(void *src, size_t size, aclrtCmoType cmoType, aclrtStream stream) {
    dp_api_call call = DP_API_CALL();
    call.stream = stream;
    if (!src)
        return dp_api_null(&call, "src", "device memory");
    if (!size)
        return dp_api_fail(&call, ACL_ERROR_INVALID_PARAM, "size is 0, but must be at least 1 byte");
    if (cmoType < ACL_RT_CMO_TYPE_PREFETCH || cmoType > ACL_RT_CMO_TYPE_FLUSH)
        return dp_api_bad_value(&call, "cmoType", cmoType, "an aclrtCmoType (0 to 3)");
    if (cmoType != ACL_RT_CMO_TYPE_PREFETCH)
        return dp_api_refuse(&call, "only cmoType ACL_RT_CMO_TYPE_PREFETCH (0) has a meaning on a CPU");
    int32_t id = 0;
    dp_status status = dp_stream_id(stream, &id);
    return dp_api_end(&call, status ? status : dp_device_memory_check("src", src, size));
}
