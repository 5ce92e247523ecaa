#include "api/api.h"
#include "runtime/context.h"
#include "runtime/device.h"

aclError aclrtCreateContext(aclrtContext *context, int32_t deviceId) {
    dp_api_call call = DP_API_CALL();
    if (!context)
        return dp_api_null(&call, "context", "the address of an aclrtContext");
    return dp_api_end(&call, dp_context_create(deviceId, context));
}

aclError aclrtDestroyContext(aclrtContext context) {
    dp_api_call call = DP_API_CALL();
    if (!context)
        return dp_api_null(&call, "context", "a context of aclrtCreateContext");
    call.state_code = ACL_ERROR_INVALID_PARAM;
    return dp_api_end(&call, dp_context_destroy(context));
}

aclError aclrtSetCurrentContext(aclrtContext context) {
    dp_api_call call = DP_API_CALL();
    if (!context)
        return dp_api_null(&call, "context", "a context of aclrtCreateContext or aclrtGetCurrentContext");
    return dp_api_end(&call, dp_context_set_current(context));
}

aclError aclrtGetCurrentContext(aclrtContext *context) {
    dp_api_call call = DP_API_CALL();
    if (!context)
        return dp_api_null(&call, "context", "the address of an aclrtContext");
    return dp_api_end(&call, dp_context_current(context));
}

aclError aclrtGetPrimaryCtxState(int32_t deviceId, uint32_t *flags, int32_t *activate) {
    dp_api_call call = DP_API_CALL();
    if (!activate)
        return dp_api_null(&call, "activate", "the address of an int32_t");
    bool active = false;
    dp_status status = dp_device_is_active(deviceId, &active);
    if (status)
        return dp_api_end(&call, status);
    if (flags)
        *flags = 0;
    *activate = active;
    return dp_api_end(&call, DP_OK);
}
