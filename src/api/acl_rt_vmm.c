/* Reserved addresses and memory that is mapped there later. */
#include "api/api.h"
#include "runtime/device.h"
#include "runtime/device_memory.h"

/* Sentence and false when the description of physical memory is wrong. */
static bool check_property(const aclrtPhysicalMemProp *prop) {
    if (prop->handleType != ACL_MEM_HANDLE_TYPE_NONE)
        dp_fail(DP_ERR_ARGUMENT, "prop->handleType is %d, but must be ACL_MEM_HANDLE_TYPE_NONE (0)",
                (int)prop->handleType);
    else if (prop->allocationType != ACL_MEM_ALLOCATION_TYPE_PINNED)
        dp_fail(DP_ERR_ARGUMENT, "prop->allocationType is %d, but must be ACL_MEM_ALLOCATION_TYPE_PINNED (0)",
                (int)prop->allocationType);
    else if (prop->location.type != ACL_MEM_LOCATION_TYPE_DEVICE)
        dp_fail(DP_ERR_ARGUMENT, "prop->location.type is %d, but must be ACL_MEM_LOCATION_TYPE_DEVICE (1)",
                (int)prop->location.type);
    else if (prop->memAttr < ACL_DDR_MEM || prop->memAttr > ACL_HBM_MEM_P2P_HUGE1G)
        dp_fail(DP_ERR_ARGUMENT, "prop->memAttr is %d, but must be an aclrtMemAttr (0 to 11)", (int)prop->memAttr);
    else
        return true;
    return false;
}

static int32_t device_of(const aclrtPhysicalMemProp *prop) {
    return prop->location.id > INT32_MAX ? -1 : (int32_t)prop->location.id;
}

aclError aclrtMemGetAllocationGranularity(aclrtPhysicalMemProp *prop, aclrtMemGranularityOptions option,
                                          size_t *granularity) {
    dp_api_call call = DP_API_CALL();
    if (!prop)
        return dp_api_null(&call, "prop", "the address of an aclrtPhysicalMemProp");
    if (!granularity)
        return dp_api_null(&call, "granularity", "the address of a size_t");
    if (option != ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM && option != ACL_RT_MEM_ALLOC_GRANULARITY_RECOMMENDED)
        return dp_api_bad_value(&call, "option", option, "an aclrtMemGranularityOptions (0 or 1)");
    if (!check_property(prop))
        return dp_api_end(&call, DP_ERR_ARGUMENT);
    dp_status status = dp_device_check(device_of(prop));
    if (status == DP_OK)
        *granularity = DP_VMM_GRANULARITY_BYTES;
    return dp_api_end(&call, status);
}

aclError aclrtReserveMemAddress(void **virPtr, size_t size, size_t alignment, void *expectPtr, uint64_t flags) {
    dp_api_call call = DP_API_CALL();
    if (!virPtr)
        return dp_api_null(&call, "virPtr", "the address of a pointer for the range");
    if (!size)
        return dp_api_fail(&call, ACL_ERROR_INVALID_PARAM, "size is 0, but must be a multiple of %zu bytes",
                           DP_VMM_GRANULARITY_BYTES);
    if (expectPtr)
        return dp_api_fail(&call, ACL_ERROR_INVALID_PARAM, "expectPtr is %p, but must be NULL", expectPtr);
    if (flags > 1)
        return dp_api_bad_value(&call, "flags", (long long)flags, "0 or 1 (huge pages)");
    return dp_api_end(&call, dp_vmm_reserve(size, alignment, expectPtr, virPtr));
}

aclError aclrtReleaseMemAddress(void *virPtr) {
    dp_api_call call = DP_API_CALL();
    if (!virPtr)
        return dp_api_null(&call, "virPtr", "the start of a range of aclrtReserveMemAddress");
    return dp_api_end(&call, dp_vmm_release(virPtr));
}

aclError aclrtMallocPhysical(aclrtDrvMemHandle *handle, size_t size, const aclrtPhysicalMemProp *prop, uint64_t flags) {
    dp_api_call call = DP_API_CALL();
    if (!handle)
        return dp_api_null(&call, "handle", "the address of an aclrtDrvMemHandle");
    if (!prop)
        return dp_api_null(&call, "prop", "the address of an aclrtPhysicalMemProp");
    if (!size)
        return dp_api_fail(&call, ACL_ERROR_INVALID_PARAM, "size is 0, but must be a multiple of %zu bytes",
                           DP_VMM_GRANULARITY_BYTES);
    if (flags)
        return dp_api_bad_value(&call, "flags", (long long)flags, "0 (reserved)");
    if (!check_property(prop))
        return dp_api_end(&call, DP_ERR_ARGUMENT);
    return dp_api_end(&call, dp_vmm_create(device_of(prop), size, handle));
}

aclError aclrtFreePhysical(aclrtDrvMemHandle handle) {
    dp_api_call call = DP_API_CALL();
    if (!handle)
        return dp_api_null(&call, "handle", "a handle of aclrtMallocPhysical");
    return dp_api_end(&call, dp_vmm_destroy(handle));
}

aclError aclrtMapMem(void *virPtr, size_t size, size_t offset, aclrtDrvMemHandle handle, uint64_t flags) {
    dp_api_call call = DP_API_CALL();
    if (!virPtr)
        return dp_api_null(&call, "virPtr", "an address inside a range of aclrtReserveMemAddress");
    if (!handle)
        return dp_api_null(&call, "handle", "a handle of aclrtMallocPhysical");
    if (!size)
        return dp_api_fail(&call, ACL_ERROR_INVALID_PARAM, "size is 0, but must be a multiple of %zu bytes",
                           DP_VMM_GRANULARITY_BYTES);
    if (flags)
        return dp_api_bad_value(&call, "flags", (long long)flags, "0 (reserved)");
    return dp_api_end(&call, dp_vmm_map(virPtr, size, offset, handle));
}

aclError aclrtUnmapMem(void *virPtr) {
    dp_api_call call = DP_API_CALL();
    if (!virPtr)
        return dp_api_null(&call, "virPtr", "the start of a mapping of aclrtMapMem");
    return dp_api_end(&call, dp_vmm_unmap(virPtr));
}
