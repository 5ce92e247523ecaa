/*
 * acl_base.h - basic types of the AscendCL C interface: status codes, element types, tensor descriptions, data buffers.
 *
 * Every function here is thread-safe as long as one object is not changed by two threads at once. Objects are opaque:
 * made by a Create function, released by the matching Destroy function, and never looked into. A destroyed or foreign
 * handle is answered with an error (or with 0 or NULL where the function returns a value), not with a crash.
 * After a failure aclGetRecentErrMsg (acl_rt.h) says which argument was wrong, what it was and what was expected.
 */
#ifndef ACL_BASE_H
#define ACL_BASE_H

#include <stddef.h>
#include <stdint.h>

#include "error_codes/rt_error_codes.h"
#include "error_codes/ge_error_codes.h"

#if defined(__GNUC__)
#define ACL_FUNC_VISIBILITY __attribute__((visibility("default")))
#else
#define ACL_FUNC_VISIBILITY
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Handles of the runtime. NULL as a stream means the default stream of the calling thread's context. */
typedef void *aclrtStream;
typedef void *aclrtEvent;
typedef void *aclrtContext;
typedef void *aclrtNotify;
typedef void *aclrtLabel;
typedef void *aclrtLabelList;
typedef void *aclrtMbuf;
typedef void *aclrtTaskGrp;
typedef void *aclrtAllocator;
typedef void *aclrtAllocatorDesc;
typedef void *aclrtAllocatorBlock;
typedef void *aclrtAllocatorAddr;

typedef int aclError;        /* 0 = success, else one of the codes below */
typedef uint16_t aclFloat16; /* bits of an IEEE binary16 */
typedef struct aclDataBuffer aclDataBuffer;
typedef struct aclTensorDesc aclTensorDesc;

/* Success, and what the application did wrong (100000 to 149999). */
ACL_CODE(ACL_ERROR_NONE, 0);
ACL_CODE(ACL_SUCCESS, 0);
ACL_CODE(ACL_ERROR_INVALID_PARAM, 100000);
ACL_CODE(ACL_ERROR_UNINITIALIZE, 100001);
ACL_CODE(ACL_ERROR_REPEAT_INITIALIZE, 100002);
ACL_CODE(ACL_ERROR_INVALID_FILE, 100003);
ACL_CODE(ACL_ERROR_WRITE_FILE, 100004);
ACL_CODE(ACL_ERROR_INVALID_FILE_SIZE, 100005);
ACL_CODE(ACL_ERROR_PARSE_FILE, 100006);
ACL_CODE(ACL_ERROR_FILE_MISSING_ATTR, 100007);
ACL_CODE(ACL_ERROR_FILE_ATTR_INVALID, 100008);
ACL_CODE(ACL_ERROR_INVALID_DUMP_CONFIG, 100009);
ACL_CODE(ACL_ERROR_INVALID_PROFILING_CONFIG, 100010);
ACL_CODE(ACL_ERROR_INVALID_MODEL_ID, 100011);
ACL_CODE(ACL_ERROR_DESERIALIZE_MODEL, 100012);
ACL_CODE(ACL_ERROR_PARSE_MODEL, 100013);
ACL_CODE(ACL_ERROR_READ_MODEL_FAILURE, 100014);
ACL_CODE(ACL_ERROR_MODEL_SIZE_INVALID, 100015);
ACL_CODE(ACL_ERROR_MODEL_MISSING_ATTR, 100016);
ACL_CODE(ACL_ERROR_MODEL_INPUT_NOT_MATCH, 100017);
ACL_CODE(ACL_ERROR_MODEL_OUTPUT_NOT_MATCH, 100018);
ACL_CODE(ACL_ERROR_MODEL_NOT_DYNAMIC, 100019);
ACL_CODE(ACL_ERROR_OP_TYPE_NOT_MATCH, 100020);
ACL_CODE(ACL_ERROR_OP_INPUT_NOT_MATCH, 100021);
ACL_CODE(ACL_ERROR_OP_OUTPUT_NOT_MATCH, 100022);
ACL_CODE(ACL_ERROR_OP_ATTR_NOT_MATCH, 100023);
ACL_CODE(ACL_ERROR_OP_NOT_FOUND, 100024);
ACL_CODE(ACL_ERROR_OP_LOAD_FAILED, 100025);
ACL_CODE(ACL_ERROR_UNSUPPORTED_DATA_TYPE, 100026);
ACL_CODE(ACL_ERROR_FORMAT_NOT_MATCH, 100027);
ACL_CODE(ACL_ERROR_BIN_SELECTOR_NOT_REGISTERED, 100028);
ACL_CODE(ACL_ERROR_KERNEL_NOT_FOUND, 100029);
ACL_CODE(ACL_ERROR_BIN_SELECTOR_ALREADY_REGISTERED, 100030);
ACL_CODE(ACL_ERROR_KERNEL_ALREADY_REGISTERED, 100031);
ACL_CODE(ACL_ERROR_INVALID_QUEUE_ID, 100032);
ACL_CODE(ACL_ERROR_REPEAT_SUBSCRIBE, 100033);
ACL_CODE(ACL_ERROR_STREAM_NOT_SUBSCRIBE, 100034);
ACL_CODE(ACL_ERROR_THREAD_NOT_SUBSCRIBE, 100035);
ACL_CODE(ACL_ERROR_WAIT_CALLBACK_TIMEOUT, 100036);
ACL_CODE(ACL_ERROR_REPEAT_FINALIZE, 100037);
ACL_CODE(ACL_ERROR_NOT_STATIC_AIPP, 100038);
ACL_CODE(ACL_ERROR_COMPILING_STUB_MODE, 100039);
ACL_CODE(ACL_ERROR_GROUP_NOT_SET, 100040);
ACL_CODE(ACL_ERROR_GROUP_NOT_CREATE, 100041);
ACL_CODE(ACL_ERROR_PROF_ALREADY_RUN, 100042);
ACL_CODE(ACL_ERROR_PROF_NOT_RUN, 100043);
ACL_CODE(ACL_ERROR_DUMP_ALREADY_RUN, 100044);
ACL_CODE(ACL_ERROR_DUMP_NOT_RUN, 100045);
ACL_CODE(ACL_ERROR_PROF_REPEAT_SUBSCRIBE, 148046);
ACL_CODE(ACL_ERROR_PROF_API_CONFLICT, 148047);
ACL_CODE(ACL_ERROR_INVALID_MAX_OPQUEUE_NUM_CONFIG, 148048);
ACL_CODE(ACL_ERROR_INVALID_OPP_PATH, 148049);
ACL_CODE(ACL_ERROR_OP_UNSUPPORTED_DYNAMIC, 148050);
ACL_CODE(ACL_ERROR_RELATIVE_RESOURCE_NOT_CLEARED, 148051);
ACL_CODE(ACL_ERROR_UNSUPPORTED_JPEG, 148052);
ACL_CODE(ACL_ERROR_INVALID_BUNDLE_MODEL_ID, 148053);

/* What the system lacks (200000 to 299999), where a limit is (300000), and internal failures (500000 and above). */
ACL_CODE(ACL_ERROR_BAD_ALLOC, 200000);
ACL_CODE(ACL_ERROR_API_NOT_SUPPORT, 200001);
ACL_CODE(ACL_ERROR_INVALID_DEVICE, 200002);
ACL_CODE(ACL_ERROR_MEMORY_ADDRESS_UNALIGNED, 200003);
ACL_CODE(ACL_ERROR_RESOURCE_NOT_MATCH, 200004);
ACL_CODE(ACL_ERROR_INVALID_RESOURCE_HANDLE, 200005);
ACL_CODE(ACL_ERROR_FEATURE_UNSUPPORTED, 200006);
ACL_CODE(ACL_ERROR_PROF_MODULES_UNSUPPORTED, 200007);
ACL_CODE(ACL_ERROR_STORAGE_OVER_LIMIT, 300000);
ACL_CODE(ACL_ERROR_INTERNAL_ERROR, 500000);
ACL_CODE(ACL_ERROR_FAILURE, 500001);
ACL_CODE(ACL_ERROR_GE_FAILURE, 500002);
ACL_CODE(ACL_ERROR_RT_FAILURE, 500003);
ACL_CODE(ACL_ERROR_DRV_FAILURE, 500004);
ACL_CODE(ACL_ERROR_PROFILING_FAILURE, 500005);

#define ACL_TENSOR_SHAPE_RANGE_NUM 2
#define ACL_TENSOR_VALUE_RANGE_NUM 2
#define ACL_UNKNOWN_RANK 0xFFFFFFFFFFFFFFFEULL /* number of dimensions of a tensor whose rank is not known */

/* Element types. */
typedef enum aclDataType {
    ACL_DT_UNDEFINED = -1,
    ACL_FLOAT = 0,
    ACL_FLOAT16 = 1,
    ACL_INT8 = 2,
    ACL_INT32 = 3,
    ACL_UINT8 = 4,
    ACL_INT16 = 6,
    ACL_UINT16 = 7,
    ACL_UINT32 = 8,
    ACL_INT64 = 9,
    ACL_UINT64 = 10,
    ACL_DOUBLE = 11,
    ACL_BOOL = 12,
    ACL_STRING = 13,
    ACL_COMPLEX64 = 16,
    ACL_COMPLEX128 = 17,
    ACL_BF16 = 27,
    ACL_INT4 = 29,  /* two per byte */
    ACL_UINT1 = 30, /* eight per byte */
    ACL_COMPLEX32 = 33,
    ACL_HIFLOAT8 = 34,
    ACL_FLOAT8_E5M2 = 35,
    ACL_FLOAT8_E4M3FN = 36,
    ACL_FLOAT8_E8M0 = 37,
    ACL_FLOAT6_E3M2 = 38,
    ACL_FLOAT6_E2M3 = 39,
    ACL_FLOAT4_E2M1 = 40,
    ACL_FLOAT4_E1M2 = 41
} aclDataType;

/* Memory layouts. */
typedef enum aclFormat {
    ACL_FORMAT_UNDEFINED = -1,
    ACL_FORMAT_NCHW = 0,
    ACL_FORMAT_NHWC = 1,
    ACL_FORMAT_ND = 2,
    ACL_FORMAT_NC1HWC0 = 3,
    ACL_FORMAT_FRACTAL_Z = 4,
    ACL_FORMAT_NC1HWC0_C04 = 12,
    ACL_FORMAT_HWCN = 16,
    ACL_FORMAT_NDHWC = 27,
    ACL_FORMAT_FRACTAL_NZ = 29,
    ACL_FORMAT_NCDHW = 30,
    ACL_FORMAT_NDC1HWC0 = 32,
    ACL_FRACTAL_Z_3D = 33,
    ACL_FORMAT_NC = 35,
    ACL_FORMAT_NCL = 47,
    ACL_FORMAT_FRACTAL_NZ_C0_16 = 50,
    ACL_FORMAT_FRACTAL_NZ_C0_32 = 51,
    ACL_FORMAT_FRACTAL_NZ_C0_2 = 52,
    ACL_FORMAT_FRACTAL_NZ_C0_4 = 53,
    ACL_FORMAT_FRACTAL_NZ_C0_8 = 54
} aclFormat;

typedef enum aclLogLevel { ACL_DEBUG = 0, ACL_INFO = 1, ACL_WARNING = 2, ACL_ERROR = 3 } aclLogLevel;

/* Where the data of a tensor lives. */
typedef enum aclMemType {
    ACL_MEMTYPE_DEVICE = 0,
    ACL_MEMTYPE_HOST = 1,
    ACL_MEMTYPE_HOST_COMPILE_INDEPENDENT = 2
} aclMemType;

typedef enum aclSysParamOpt {
    ACL_OPT_DETERMINISTIC = 0,
    ACL_OPT_ENABLE_DEBUG_KERNEL = 1,
    ACL_OPT_STRONG_CONSISTENCY = 2
} aclSysParamOpt;

/* What the installed stack can do, see aclGetCannAttribute. */
typedef enum aclCannAttr {
    ACL_CANN_ATTR_UNDEFINED = -1,
    ACL_CANN_ATTR_INF_NAN = 0,
    ACL_CANN_ATTR_BF16 = 1,
    ACL_CANN_ATTR_JIT_COMPILE = 2
} aclCannAttr;

/* What a device has, see aclGetDeviceCapability. */
typedef enum aclDeviceInfo {
    ACL_DEVICE_INFO_UNDEFINED = -1,
    ACL_DEVICE_INFO_AI_CORE_NUM = 0,
    ACL_DEVICE_INFO_VECTOR_CORE_NUM = 1,
    ACL_DEVICE_INFO_L2_SIZE = 2
} aclDeviceInfo;

/* ---- elements ---- */

/* Bytes of one element; 0 for ACL_DT_UNDEFINED, ACL_STRING, types smaller than a byte, and values that are no type. */
ACL_FUNC_VISIBILITY size_t aclDataTypeSize(aclDataType dataType);

/* Value of a half. Exact; NaN stays NaN. */
ACL_FUNC_VISIBILITY float aclFloat16ToFloat(aclFloat16 value);

/* Nearest half, ties to even; overflow becomes infinity. */
ACL_FUNC_VISIBILITY aclFloat16 aclFloatToFloat16(float value);

/* ---- data buffers: a pointer and a size, owned by the caller ---- */

/*
 * Wraps size bytes at data, which may be NULL when size is 0. The memory is not copied and not freed by the wrapper.
 * Release with aclDestroyDataBuffer. NULL when the host memory is exhausted or data is NULL and size is not 0.
 */
ACL_FUNC_VISIBILITY aclDataBuffer *aclCreateDataBuffer(void *data, size_t size);

/* Frees the wrapper, not what it wraps. ACL_ERROR_INVALID_PARAM for NULL or a destroyed buffer. */
ACL_FUNC_VISIBILITY aclError aclDestroyDataBuffer(const aclDataBuffer *dataBuffer);

/* Points an existing wrapper to other memory. Same rules as aclCreateDataBuffer. */
ACL_FUNC_VISIBILITY aclError aclUpdateDataBuffer(aclDataBuffer *dataBuffer, void *data, size_t size);

/* Wrapped pointer; NULL for an invalid wrapper. */
ACL_FUNC_VISIBILITY void *aclGetDataBufferAddr(const aclDataBuffer *dataBuffer);

/* Wrapped bytes; 0 for an invalid wrapper. The 32-bit form answers UINT32_MAX when the size does not fit. */
ACL_FUNC_VISIBILITY uint32_t aclGetDataBufferSize(const aclDataBuffer *dataBuffer);
ACL_FUNC_VISIBILITY size_t aclGetDataBufferSizeV2(const aclDataBuffer *dataBuffer);

/* ---- tensor descriptions ---- */

/*
 * Describes a tensor: element type, numDims dimensions (outermost first, copied) and format. A dimension of -1 is not
 * known before run time; a single dimension of -2 says that not even the rank is. numDims 0 is a scalar, or with
 * ACL_DT_UNDEFINED an optional input that is absent. At most 128 dimensions. Release with aclDestroyTensorDesc. NULL on
 * error.
 */
ACL_FUNC_VISIBILITY aclTensorDesc *aclCreateTensorDesc(aclDataType dataType, int numDims, const int64_t *dims,
                                                       aclFormat format);

/* Frees a description. NULL is allowed. */
ACL_FUNC_VISIBILITY void aclDestroyTensorDesc(const aclTensorDesc *desc);

/* Ranges of unknown dimensions: dimsCount pairs of lowest and highest (-1: unlimited) size, copied. */
ACL_FUNC_VISIBILITY aclError aclSetTensorShapeRange(aclTensorDesc *desc, size_t dimsCount, int64_t (*dimsRange)[2]);

/* Ranges of the values of a tensor: valueCount pairs, copied. */
ACL_FUNC_VISIBILITY aclError aclSetTensorValueRange(aclTensorDesc *desc, size_t valueCount, int64_t (*valueRange)[2]);

/* Type, format and number of dimensions. ACL_DT_UNDEFINED, ACL_FORMAT_UNDEFINED and 0 for an invalid description. A
 * tensor of unknown rank has ACL_UNKNOWN_RANK dimensions. */
ACL_FUNC_VISIBILITY aclDataType aclGetTensorDescType(const aclTensorDesc *desc);
ACL_FUNC_VISIBILITY aclFormat aclGetTensorDescFormat(const aclTensorDesc *desc);
ACL_FUNC_VISIBILITY size_t aclGetTensorDescNumDims(const aclTensorDesc *desc);

/* Bytes of all elements, sub-byte types rounded up; 0 if a dimension is unknown or the product does not fit size_t. */
ACL_FUNC_VISIBILITY size_t aclGetTensorDescSize(const aclTensorDesc *desc);

/* Product of the dimensions; 0 if a dimension is unknown or the product does not fit size_t. */
ACL_FUNC_VISIBILITY size_t aclGetTensorDescElementCount(const aclTensorDesc *desc);

/* Dimension index; -1 for an invalid description or index. */
ACL_FUNC_VISIBILITY int64_t aclGetTensorDescDim(const aclTensorDesc *desc, size_t index);

/* Dimension index through a pointer. ACL_ERROR_INVALID_PARAM for an invalid description, index or pointer. */
ACL_FUNC_VISIBILITY aclError aclGetTensorDescDimV2(const aclTensorDesc *desc, size_t index, int64_t *dimSize);

/*
 * The lowest and highest size of dimension index. dimRangeNum must be 2: dimRange[0], dimRange[1]. A known dimension
 * answers its size twice. ACL_ERROR_INVALID_PARAM when arguments are invalid or the dimension is unknown and no range
 * was set.
 */
ACL_FUNC_VISIBILITY aclError aclGetTensorDescDimRange(const aclTensorDesc *desc, size_t index, size_t dimRangeNum,
                                                      int64_t *dimRange);

/* A name, copied. NULL removes it. */
ACL_FUNC_VISIBILITY void aclSetTensorDescName(aclTensorDesc *desc, const char *name);

/* Name, "" when none was set, NULL for an invalid description. Valid until the next change of the description. */
ACL_FUNC_VISIBILITY const char *aclGetTensorDescName(aclTensorDesc *desc);

/*
 * A new description with the dimensions rearranged for another format. Only between NCHW and NHWC (rank 4), NCDHW and
 * NDHWC (rank 5), and to the same format; else ACL_ERROR_API_NOT_SUPPORT. The caller owns *dstDesc.
 */
ACL_FUNC_VISIBILITY aclError aclTransTensorDescFormat(const aclTensorDesc *srcDesc, aclFormat dstFormat,
                                                      aclTensorDesc **dstDesc);

/* How the tensor is stored when that differs from what it means: format and shape, copied. */
ACL_FUNC_VISIBILITY aclError aclSetTensorStorageFormat(aclTensorDesc *desc, aclFormat format);
ACL_FUNC_VISIBILITY aclError aclSetTensorStorageShape(aclTensorDesc *desc, int numDims, const int64_t *dims);

/* The format the tensor is stored in, and the format and the shape it had in the original model. Dimensions are copied.
 */
ACL_FUNC_VISIBILITY aclError aclSetTensorFormat(aclTensorDesc *desc, aclFormat format);
ACL_FUNC_VISIBILITY aclError aclSetTensorShape(aclTensorDesc *desc, int numDims, const int64_t *dims);
ACL_FUNC_VISIBILITY aclError aclSetTensorOriginFormat(aclTensorDesc *desc, aclFormat format);
ACL_FUNC_VISIBILITY aclError aclSetTensorOriginShape(aclTensorDesc *desc, int numDims, const int64_t *dims);

/* desc itself for index 0; NULL for other indices: descriptions do not come in arrays. */
ACL_FUNC_VISIBILITY aclTensorDesc *aclGetTensorDescByIndex(aclTensorDesc *desc, size_t index);

/* Host address of the library's copy of a constant's data, NULL when it is not constant. */
ACL_FUNC_VISIBILITY void *aclGetTensorDescAddress(const aclTensorDesc *desc);

/* Name of the dynamic input the tensor belongs to, copied. */
ACL_FUNC_VISIBILITY aclError aclSetTensorDynamicInput(aclTensorDesc *desc, const char *dynamicInputName);

/* Marks the tensor constant: length bytes at the host address dataBuffer, copied. */
ACL_FUNC_VISIBILITY aclError aclSetTensorConst(aclTensorDesc *desc, void *dataBuffer, size_t length);

/* Where the tensor's data is. */
ACL_FUNC_VISIBILITY aclError aclSetTensorPlaceMent(aclTensorDesc *desc, aclMemType memType);

/* ---- facts about the installation ---- */

/* Name of the chip, e.g. "Ascend910B3" (environment variable DOPPEL_SOC). Never NULL; the string is not freed by the
 * caller. */
ACL_FUNC_VISIBILITY const char *aclrtGetSocName(void);

/* Attributes this stack has: a static array of *num attributes. */
ACL_FUNC_VISIBILITY aclError aclGetCannAttributeList(const aclCannAttr **cannAttrList, size_t *num);

/* 1 in *value when the stack has the attribute, 0 when not. ACL_ERROR_INVALID_PARAM for an attribute that does not
 * exist. */
ACL_FUNC_VISIBILITY aclError aclGetCannAttribute(aclCannAttr cannAttr, int32_t *value);

/* A number about device deviceId: cores or bytes. ACL_ERROR_RT_INVALID_DEVICEID for a device that does not exist. */
ACL_FUNC_VISIBILITY aclError aclGetDeviceCapability(uint32_t deviceId, aclDeviceInfo deviceInfo, int64_t *value);

/*
 * Writes a line to the log (DOPPEL_LOG, ASCEND_GLOBAL_LOG_LEVEL) with the place it comes from. fmt is printf's; func,
 * file and fmt may be NULL. Use the macro ACL_APP_LOG.
 */
ACL_FUNC_VISIBILITY void aclAppLog(aclLogLevel logLevel, const char *func, const char *file, uint32_t line,
                                   const char *fmt, ...);

#define ACL_APP_LOG(level, fmt, ...) aclAppLog(level, __FUNCTION__, __FILE__, __LINE__, fmt, ##__VA_ARGS__)

#ifdef __cplusplus
}
#endif

#endif
