#include <stdarg.h>
#include <stdio.h>

#include "api/api.h"
#include "api/element.h"
#include "base/half.h"
#include "base/log.h"
#include "device/chip.h"
#include "runtime/device.h"

unsigned dp_acl_type_bits(aclDataType type) {
    switch (type) {
    case ACL_UINT1:
        return 1;
    case ACL_INT4:
    case ACL_FLOAT4_E2M1:
    case ACL_FLOAT4_E1M2:
        return 4;
    case ACL_FLOAT6_E3M2:
    case ACL_FLOAT6_E2M3:
        return 6;
    case ACL_INT8:
    case ACL_UINT8:
    case ACL_BOOL:
    case ACL_HIFLOAT8:
    case ACL_FLOAT8_E5M2:
    case ACL_FLOAT8_E4M3FN:
    case ACL_FLOAT8_E8M0:
        return 8;
    case ACL_FLOAT16:
    case ACL_BF16:
    case ACL_INT16:
    case ACL_UINT16:
        return 16;
    case ACL_FLOAT:
    case ACL_INT32:
    case ACL_UINT32:
    case ACL_COMPLEX32:
        return 32;
    case ACL_INT64:
    case ACL_UINT64:
    case ACL_DOUBLE:
    case ACL_COMPLEX64:
        return 64;
    case ACL_COMPLEX128:
        return 128;
    case ACL_DT_UNDEFINED:
    case ACL_STRING:
        break;
    }
    return 0;
}

int dp_acl_type_known(aclDataType type) {
    return type == ACL_DT_UNDEFINED || type == ACL_STRING || dp_acl_type_bits(type) != 0;
}

int dp_acl_format_known(aclFormat format) {
    switch (format) {
    case ACL_FORMAT_UNDEFINED:
    case ACL_FORMAT_NCHW:
    case ACL_FORMAT_NHWC:
    case ACL_FORMAT_ND:
    case ACL_FORMAT_NC1HWC0:
    case ACL_FORMAT_FRACTAL_Z:
    case ACL_FORMAT_NC1HWC0_C04:
    case ACL_FORMAT_HWCN:
    case ACL_FORMAT_NDHWC:
    case ACL_FORMAT_FRACTAL_NZ:
    case ACL_FORMAT_NCDHW:
    case ACL_FORMAT_NDC1HWC0:
    case ACL_FRACTAL_Z_3D:
    case ACL_FORMAT_NC:
    case ACL_FORMAT_NCL:
    case ACL_FORMAT_FRACTAL_NZ_C0_16:
    case ACL_FORMAT_FRACTAL_NZ_C0_32:
    case ACL_FORMAT_FRACTAL_NZ_C0_2:
    case ACL_FORMAT_FRACTAL_NZ_C0_4:
    case ACL_FORMAT_FRACTAL_NZ_C0_8:
        return 1;
    }
    return 0;
}

size_t aclDataTypeSize(aclDataType dataType) {
    return dp_acl_type_bits(dataType) / 8;
}

float aclFloat16ToFloat(aclFloat16 value) {
    return dp_f32_from_f16(value);
}

aclFloat16 aclFloatToFloat16(float value) {
    return dp_f16_from_f32(value);
}

const char *aclrtGetSocName(void) {
    return dp_chip_current()->name;
}

/* What the instruction set of the simulated chip has: infinities and NaN, and bfloat16. Nothing is compiled at run
 * time. */
static const aclCannAttr attributes[] = {ACL_CANN_ATTR_INF_NAN, ACL_CANN_ATTR_BF16};
#define ATTRIBUTES (sizeof attributes / sizeof attributes[0])

aclError aclGetCannAttributeList(const aclCannAttr **cannAttrList, size_t *num) {
    dp_api_call call = DP_API_CALL();
    if (!cannAttrList)
        return dp_api_null(&call, "cannAttrList", "the address of a pointer for the list");
    if (!num)
        return dp_api_null(&call, "num", "the address of a size_t for the number of attributes");
    *cannAttrList = attributes;
    *num = ATTRIBUTES;
    return dp_api_end(&call, DP_OK);
}

aclError aclGetCannAttribute(aclCannAttr cannAttr, int32_t *value) {
    dp_api_call call = DP_API_CALL();
    if (!value)
        return dp_api_null(&call, "value", "the address of an int32_t for the answer");
    if (cannAttr < ACL_CANN_ATTR_INF_NAN || cannAttr > ACL_CANN_ATTR_JIT_COMPILE)
        return dp_api_bad_value(&call, "cannAttr", cannAttr, "an aclCannAttr (0 to 2)");
    *value = 0;
    for (size_t i = 0; i < ATTRIBUTES; i++)
        if (attributes[i] == cannAttr)
            *value = 1;
    return dp_api_end(&call, DP_OK);
}

aclError aclGetDeviceCapability(uint32_t deviceId, aclDeviceInfo deviceInfo, int64_t *value) {
    dp_api_call call = DP_API_CALL();
    if (!value)
        return dp_api_null(&call, "value", "the address of an int64_t for the answer");
    dp_status status = dp_device_check(deviceId > INT32_MAX ? -1 : (int32_t)deviceId);
    if (status)
        return dp_api_end(&call, status);
    const dp_chip *chip = dp_chip_current();
    switch (deviceInfo) {
    case ACL_DEVICE_INFO_AI_CORE_NUM:
        *value = chip->cube_cores;
        break;
    case ACL_DEVICE_INFO_VECTOR_CORE_NUM:
        *value = chip->vector_cores;
        break;
    case ACL_DEVICE_INFO_L2_SIZE:
        *value = (int64_t)chip->l2_bytes;
        break;
    case ACL_DEVICE_INFO_UNDEFINED:
    default:
        return dp_api_bad_value(&call, "deviceInfo", deviceInfo, "an aclDeviceInfo (0 to 2)");
    }
    return dp_api_end(&call, DP_OK);
}

void aclAppLog(aclLogLevel logLevel, const char *func, const char *file, uint32_t line, const char *fmt, ...) {
    static const dp_log_level levels[] = {
        [ACL_DEBUG] = DP_LOG_DEBUG, [ACL_INFO] = DP_LOG_INFO, [ACL_WARNING] = DP_LOG_WARN, [ACL_ERROR] = DP_LOG_ERROR};
    dp_log_level level = (unsigned)logLevel <= ACL_ERROR ? levels[logLevel] : DP_LOG_ERROR;
    if (!dp_log_on("app", level))
        return;
    char text[1024] = "";
    if (fmt) {
        va_list args;
        va_start(args, fmt);
        vsnprintf(text, sizeof text, fmt, args);
        va_end(args);
    }
    dp_log("app", level, "%s:%u: %s: %s", file ? file : "?", line, func ? func : "?", text);
}
