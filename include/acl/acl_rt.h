/*
 * acl_rt.h - the AscendCL runtime: initialisation, devices, contexts, streams, events, memory, callbacks, errors.
 *
 * Rules that hold for every function unless its own comment says otherwise:
 * - It returns ACL_SUCCESS (0) or a code; the reason in words is in aclGetRecentErrMsg of the calling thread.
 * - NULL where a pointer is needed, a zero or absurd size, a value that is not in an enum: ACL_ERROR_INVALID_PARAM.
 * - A handle that is destroyed, of another kind or never existed: ACL_ERROR_RT_INVALID_HANDLE.
 * - A pointer that is not device memory, or a range that leaves its allocation: ACL_ERROR_RT_PARAM_INVALID.
 * - No context on this thread: ACL_ERROR_RT_CONTEXT_NULL. An unknown device: ACL_ERROR_RT_INVALID_DEVICEID.
 * - Memory exhausted: ACL_ERROR_RT_MEMORY_ALLOCATION.
 * - What Doppel does not do: ACL_ERROR_API_NOT_SUPPORT, with a sentence. Such functions are marked "Refused".
 * - It may be called from any thread at any time. Current device and current context belong to the thread.
 * - A failed kernel makes every later synchronisation of its stream (and of the device) return
 *   ACL_ERROR_RT_AICORE_EXCEPTION until the stream is destroyed or aborted, or the device reset.
 */
#ifndef ACL_RT_H
#define ACL_RT_H

#include "acl_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Version of this interface, as aclrtGetVersion reports it. */
#define ACL_MAJOR_VERSION 1
#define ACL_MINOR_VERSION 15
#define ACL_PATCH_VERSION 0

/* Flags of events. ACL_EVENT_TIME_LINE: the event can be used for time measurement. */
#define ACL_EVENT_SYNC 0x00000001U
#define ACL_EVENT_CAPTURE_STREAM_PROGRESS 0x00000002U
#define ACL_EVENT_TIME_LINE 0x00000008U
#define ACL_EVENT_EXTERNAL 0x00000020U
#define ACL_EVENT_IPC 0x00000040U

/* Flags of streams. */
#define ACL_STREAM_FAST_LAUNCH 0x00000001U
#define ACL_STREAM_FAST_SYNC 0x00000002U
#define ACL_STREAM_PERSISTENT 0x00000004U
#define ACL_STREAM_HUGE 0x00000008U
#define ACL_STREAM_CPU_SCHEDULE 0x00000010U

/* Conditions of aclrtValueWait. */
#define ACL_STREAM_WAIT_VALUE_GEQ 0x00000000U
#define ACL_STREAM_WAIT_VALUE_EQ 0x00000001U
#define ACL_STREAM_WAIT_VALUE_AND 0x00000002U
#define ACL_STREAM_WAIT_VALUE_NOR 0x00000003U
#define ACL_VALUE_WAIT_EQ 0x00000001U

/* Modes of aclrtSetStreamFailureMode. */
#define ACL_CONTINUE_ON_FAILURE 0x00000000U
#define ACL_STOP_ON_FAILURE 0x00000001U

#define ACL_DEV_FEATURE_SUPPORT 0x00000001
#define ACL_DEV_FEATURE_NOT_SUPPORT 0x00000000

/* Flags of aclrtHostRegisterV2. */
#define ACL_HOST_REG_MAPPED 0x2U
#define ACL_HOST_REG_PINNED 0x10000000U

#define MAX_MODULE_NUM 128
#define MAX_MEM_UCE_INFO_ARRAY_SIZE 128
#define UCE_INFO_RESERVED_SIZE 14
#define ACL_IPC_EVENT_HANDLE_SIZE 64
#define ACL_IPC_HANDLE_SIZE 65
#define ACL_PKG_VERSION_MAX_SIZE 128
#define ACL_PKG_VERSION_PARTS_MAX_SIZE 64

ACL_CODE(DEVICE_UTILIZATION_NOT_SUPPORT, -1); /* a field of aclrtUtilizationInfo that is not measured */

ACL_CODE(ACL_RT_NOTIFY_EXPORT_FLAG_DEFAULT, 0);
ACL_CODE(ACL_RT_NOTIFY_EXPORT_FLAG_DISABLE_PID_VALIDATION, 2);
ACL_CODE(ACL_RT_NOTIFY_IMPORT_FLAG_DEFAULT, 0);
ACL_CODE(ACL_RT_NOTIFY_IMPORT_FLAG_ENABLE_PEER_ACCESS, 2);
ACL_CODE(ACL_RT_IPC_MEM_EXPORT_FLAG_DEFAULT, 0);
ACL_CODE(ACL_RT_IPC_MEM_EXPORT_FLAG_DISABLE_PID_VALIDATION, 1);
ACL_CODE(ACL_RT_IPC_MEM_IMPORT_FLAG_DEFAULT, 0);
ACL_CODE(ACL_RT_IPC_MEM_IMPORT_FLAG_ENABLE_PEER_ACCESS, 1);
ACL_CODE(ACL_RT_VMM_EXPORT_FLAG_DEFAULT, 0);
ACL_CODE(ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION, 1);
ACL_CODE(ACL_RT_MEM_UCE_INFO_MAX_NUM, 20);
ACL_CODE(ACL_RT_BINARY_MAGIC_ELF_AICORE, 1129660997);
ACL_CODE(ACL_RT_BINARY_MAGIC_ELF_VECTOR_CORE, 1094799942);
ACL_CODE(ACL_RT_BINARY_MAGIC_ELF_CUBE_CORE, 1095320387);
ACL_CODE(ACL_RT_CMO_MAX_BARRIER_NUM, 6);
ACL_CODE(ACL_RT_DEVS_TOPOLOGY_HCCS, 1);
ACL_CODE(ACL_RT_DEVS_TOPOLOGY_PIX, 2);
ACL_CODE(ACL_RT_DEVS_TOPOLOGY_PIB, 4);
ACL_CODE(ACL_RT_DEVS_TOPOLOGY_PHB, 8);
ACL_CODE(ACL_RT_DEVS_TOPOLOGY_SYS, 16);
ACL_CODE(ACL_RT_DEVS_TOPOLOGY_SIO, 32);
ACL_CODE(ACL_RT_DEVS_TOPOLOGY_HCCS_SW, 64);

/* ---- types: devices ---- */

/* Whether the calling program runs on the device or on a host beside it. */
typedef enum aclrtRunMode { ACL_DEVICE = 0, ACL_HOST = 1 } aclrtRunMode;

typedef enum aclrtTsId { ACL_TS_ID_AICORE = 0, ACL_TS_ID_AIVECTOR = 1, ACL_TS_ID_RESERVED = 2 } aclrtTsId;

typedef enum aclrtDeviceStatus {
    ACL_RT_DEVICE_STATUS_NORMAL = 0,
    ACL_RT_DEVICE_STATUS_ABNORMAL = 1,
    ACL_RT_DEVICE_STATUS_END = 2
} aclrtDeviceStatus;

/* Attributes of a device, see aclrtGetDeviceInfo. */
typedef enum aclrtDevAttr {
    ACL_DEV_ATTR_AICPU_CORE_NUM = 0,
    ACL_DEV_ATTR_AICORE_CORE_NUM = 1,
    ACL_DEV_ATTR_CUBE_CORE_NUM = 2,
    ACL_DEV_ATTR_VECTOR_CORE_NUM = 3,
    ACL_DEV_ATTR_WARP_SIZE = 4,
    ACL_DEV_ATTR_MAX_THREAD_PER_VECTOR_CORE = 5,
    ACL_DEV_ATTR_LOCAL_MEM_PER_VECTOR_CORE = 6,
    ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE = 7,
    ACL_DEV_ATTR_L2_CACHE_SIZE = 8,
    ACL_DEV_ATTR_SMP_ID = 401,
    ACL_DEV_ATTR_PHY_CHIP_ID = 402,
    ACL_DEV_ATTR_SUPER_POD_DEVIDE_ID = 403,
    ACL_DEV_ATTR_SUPER_POD_SERVER_ID = 404,
    ACL_DEV_ATTR_SUPER_POD_ID = 405,
    ACL_DEV_ATTR_CUST_OP_PRIVILEGE = 406,
    ACL_DEV_ATTR_MAINBOARD_ID = 407,
    ACL_DEV_ATTR_IS_VIRTUAL = 501
} aclrtDevAttr;

typedef enum aclrtDevFeatureType {
    ACL_FEATURE_TSCPU_TASK_UPDATE_SUPPORT_AIC_AIV = 0,
    ACL_FEATURE_SYSTEM_MEMQ_EVENT_CROSS_DEV = 1
} aclrtDevFeatureType;

/* Cores a program may restrict itself to. */
typedef enum aclrtDevResLimitType { ACL_RT_DEV_RES_CUBE_CORE = 0, ACL_RT_DEV_RES_VECTOR_CORE = 1 } aclrtDevResLimitType;

typedef enum aclrtGroupAttr {
    ACL_GROUP_AICORE_INT = 0,
    ACL_GROUP_AIV_INT = 1,
    ACL_GROUP_AIC_INT = 2,
    ACL_GROUP_SDMANUM_INT = 3,
    ACL_GROUP_ASQNUM_INT = 4,
    ACL_GROUP_GROUPID_INT = 5
} aclrtGroupAttr;

typedef enum aclrtFloatOverflowMode {
    ACL_RT_OVERFLOW_MODE_SATURATION = 0,
    ACL_RT_OVERFLOW_MODE_INFNAN = 1,
    ACL_RT_OVERFLOW_MODE_UNDEF = 2
} aclrtFloatOverflowMode;

typedef struct aclrtUtilizationExtendInfo aclrtUtilizationExtendInfo;

/* Utilisation in per cent, DEVICE_UTILIZATION_NOT_SUPPORT where it is not measured. */
typedef struct aclrtUtilizationInfo {
    int32_t cubeUtilization;
    int32_t vectorUtilization;
    int32_t aicpuUtilization;
    int32_t memoryUtilization;
    aclrtUtilizationExtendInfo *utilizationExtend; /* must be NULL */
} aclrtUtilizationInfo;

typedef struct aclrtUuid {
    char bytes[16];
} aclrtUuid;

typedef struct tagRtGroupInfo aclrtGroupInfo;

/* ---- types: streams, events, callbacks ---- */

typedef enum aclrtEventStatus {
    ACL_EVENT_STATUS_COMPLETE = 0,
    ACL_EVENT_STATUS_NOT_READY = 1,
    ACL_EVENT_STATUS_RESERVED = 2
} aclrtEventStatus;

/* The same question with the newer names: mind that the values are the other way round. */
typedef enum aclrtEventRecordedStatus {
    ACL_EVENT_RECORDED_STATUS_NOT_READY = 0,
    ACL_EVENT_RECORDED_STATUS_COMPLETE = 1
} aclrtEventRecordedStatus;

typedef enum aclrtEventWaitStatus {
    ACL_EVENT_WAIT_STATUS_COMPLETE = 0,
    ACL_EVENT_WAIT_STATUS_NOT_READY = 1,
    ACL_EVENT_WAIT_STATUS_RESERVED = 2
} aclrtEventWaitStatus;

typedef enum aclrtStreamStatus {
    ACL_STREAM_STATUS_COMPLETE = 0,
    ACL_STREAM_STATUS_NOT_READY = 1,
    ACL_STREAM_STATUS_RESERVED = 2
} aclrtStreamStatus;

/* ACL_CALLBACK_BLOCK: the stream goes on when the callback has returned. */
typedef enum aclrtCallbackBlockType { ACL_CALLBACK_NO_BLOCK = 0, ACL_CALLBACK_BLOCK = 1 } aclrtCallbackBlockType;

typedef enum aclrtStreamConfigAttr {
    ACL_RT_STREAM_WORK_ADDR_PTR = 0,
    ACL_RT_STREAM_WORK_SIZE = 1,
    ACL_RT_STREAM_FLAG = 2,
    ACL_RT_STREAM_PRIORITY = 3
} aclrtStreamConfigAttr;

typedef struct aclrtStreamConfigHandle {
    void *workptr;
    size_t workSize;
    size_t flag;
    uint32_t priority;
} aclrtStreamConfigHandle;

typedef enum aclrtStreamAttr {
    ACL_STREAM_ATTR_FAILURE_MODE = 0,
    ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK = 1,
    ACL_STREAM_ATTR_USER_CUSTOM_TAG = 2,
    ACL_STREAM_ATTR_CACHE_OP_IFNO = 3
} aclrtStreamAttr;

typedef union aclrtStreamAttrValue {
    uint64_t failureMode;
    uint32_t overflowSwitch;
    uint32_t userCustomTag;
    uint32_t cacheOpInfoSwitch;
    uint32_t reserve[4];
} aclrtStreamAttrValue;

typedef struct aclrtIpcEventHandle {
    char reserved[64];
} aclrtIpcEventHandle;

typedef void (*aclrtCallback)(void *userData);
typedef void (*aclrtHostFunc)(void *args);

typedef struct rtExceptionInfo aclrtExceptionInfo;
typedef void (*aclrtExceptionInfoCallback)(aclrtExceptionInfo *exceptionInfo);

/* ---- types: memory ---- */

/* Direction of a copy. ACL_MEMCPY_DEFAULT: found out from the addresses. */
typedef enum aclrtMemcpyKind {
    ACL_MEMCPY_HOST_TO_HOST = 0,
    ACL_MEMCPY_HOST_TO_DEVICE = 1,
    ACL_MEMCPY_DEVICE_TO_HOST = 2,
    ACL_MEMCPY_DEVICE_TO_DEVICE = 3,
    ACL_MEMCPY_DEFAULT = 4,
    ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE = 5,
    ACL_MEMCPY_INNER_DEVICE_TO_DEVICE = 6,
    ACL_MEMCPY_INTER_DEVICE_TO_DEVICE = 7
} aclrtMemcpyKind;

/* Page size wishes. Doppel accepts all of them; the memory is the same. */
typedef enum aclrtMemMallocPolicy {
    ACL_MEM_MALLOC_HUGE_FIRST = 0,
    ACL_MEM_MALLOC_HUGE_ONLY = 1,
    ACL_MEM_MALLOC_NORMAL_ONLY = 2,
    ACL_MEM_MALLOC_HUGE_FIRST_P2P = 3,
    ACL_MEM_MALLOC_HUGE_ONLY_P2P = 4,
    ACL_MEM_MALLOC_NORMAL_ONLY_P2P = 5,
    ACL_MEM_MALLOC_HUGE1G_ONLY = 6,
    ACL_MEM_MALLOC_HUGE1G_ONLY_P2P = 7,
    ACL_MEM_TYPE_LOW_BAND_WIDTH = 8,
    ACL_MEM_TYPE_HIGH_BAND_WIDTH = 9,
    ACL_MEM_ACCESS_USER_SPACE_READONLY = 10
} aclrtMemMallocPolicy;

typedef enum aclrtHostRegisterType { ACL_HOST_REGISTER_MAPPED = 0 } aclrtHostRegisterType;

typedef enum aclrtMallocAttrType {
    ACL_RT_MEM_ATTR_RSV = 0,
    ACL_RT_MEM_ATTR_MODULE_ID = 1,
    ACL_RT_MEM_ATTR_DEVICE_ID = 2,
    ACL_RT_MEM_ATTR_VA_FLAG = 3
} aclrtMallocAttrType;

typedef union aclrtMallocAttrValue {
    uint16_t moduleId;
    uint32_t deviceId;
    uint32_t vaFlag;
    uint8_t rsv[8];
} aclrtMallocAttrValue;

typedef struct aclrtMallocAttribute {
    aclrtMallocAttrType attr;
    aclrtMallocAttrValue value;
} aclrtMallocAttribute;

typedef struct aclrtMallocConfig {
    aclrtMallocAttribute *attrs;
    size_t numAttrs;
} aclrtMallocConfig;

/* Kinds of memory aclrtGetMemInfo knows. */
typedef enum aclrtMemAttr {
    ACL_DDR_MEM = 0,
    ACL_HBM_MEM = 1,
    ACL_DDR_MEM_HUGE = 2,
    ACL_DDR_MEM_NORMAL = 3,
    ACL_HBM_MEM_HUGE = 4,
    ACL_HBM_MEM_NORMAL = 5,
    ACL_DDR_MEM_P2P_HUGE = 6,
    ACL_DDR_MEM_P2P_NORMAL = 7,
    ACL_HBM_MEM_P2P_HUGE = 8,
    ACL_HBM_MEM_P2P_NORMAL = 9,
    ACL_HBM_MEM_HUGE1G = 10,
    ACL_HBM_MEM_P2P_HUGE1G = 11
} aclrtMemAttr;

typedef enum aclrtMemLocationType {
    ACL_MEM_LOCATION_TYPE_HOST = 0,
    ACL_MEM_LOCATION_TYPE_DEVICE = 1,
    ACL_MEM_LOCATION_TYPE_UNREGISTERED = 2
} aclrtMemLocationType;

typedef struct aclrtMemLocation {
    uint32_t id;
    aclrtMemLocationType type;
} aclrtMemLocation;

typedef struct aclrtPtrAttributes {
    aclrtMemLocation location;
    uint32_t pageSize;
    uint32_t rsv[4];
} aclrtPtrAttributes;

typedef struct aclrtMemUsageInfo {
    char name[32];
    uint64_t curMemSize;
    uint64_t memPeakSize;
    size_t reserved[8];
} aclrtMemUsageInfo;

typedef enum aclrtMemAllocationType { ACL_MEM_ALLOCATION_TYPE_PINNED = 0 } aclrtMemAllocationType;

typedef enum aclrtMemHandleType { ACL_MEM_HANDLE_TYPE_NONE = 0 } aclrtMemHandleType;

typedef enum aclrtMemGranularityOptions {
    ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM = 0,
    ACL_RT_MEM_ALLOC_GRANULARITY_RECOMMENDED = 1,
    ACL_RT_MEM_ALLOC_GRANULARITY_UNDEF = 2
} aclrtMemGranularityOptions;

typedef struct aclrtPhysicalMemProp {
    aclrtMemHandleType handleType;
    aclrtMemAllocationType allocationType;
    aclrtMemAttr memAttr;
    aclrtMemLocation location;
    uint64_t reserve;
} aclrtPhysicalMemProp;

typedef struct aclrtMemcpyBatchAttr {
    aclrtMemLocation dstLoc;
    aclrtMemLocation srcLoc;
    uint8_t rsv[16];
} aclrtMemcpyBatchAttr;

typedef void *aclrtDrvMemHandle;

typedef enum aclrtCmoType {
    ACL_RT_CMO_TYPE_PREFETCH = 0,
    ACL_RT_CMO_TYPE_WRITEBACK = 1,
    ACL_RT_CMO_TYPE_INVALID = 2,
    ACL_RT_CMO_TYPE_FLUSH = 3
} aclrtCmoType;

typedef struct aclrtBarrierCmoInfo {
    aclrtCmoType cmoType;
    uint32_t barrierId;
} aclrtBarrierCmoInfo;

typedef struct aclrtBarrierTaskInfo {
    size_t barrierNum;
    aclrtBarrierCmoInfo cmoInfo[6];
} aclrtBarrierTaskInfo;

typedef enum aclrtReduceKind {
    ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM = 0,
    ACL_RT_MEMCPY_SDMA_AUTOMATIC_MAX = 1,
    ACL_RT_MEMCPY_SDMA_AUTOMATIC_MIN = 2,
    ACL_RT_MEMCPY_SDMA_AUTOMATIC_EQUAL = 3
} aclrtReduceKind;

/* ---- types: errors ---- */

typedef enum aclrtErrorType {
    ACL_RT_NO_ERROR = 0,
    ACL_RT_ERROR_MEMORY = 1,
    ACL_RT_ERROR_L2 = 2,
    ACL_RT_ERROR_AICORE = 3,
    ACL_RT_ERROR_LINK = 4,
    ACL_RT_ERROR_OTHERS = 5
} aclrtErrorType;

typedef enum aclrtAicoreErrorType {
    ACL_RT_AICORE_ERROR_UNKOWN = 0,
    ACL_RT_AICORE_ERROR_SW = 1,
    ACL_RT_AICORE_ERROR_HW_LOCAL = 2
} aclrtAicoreErrorType;

typedef struct aclrtMemUceInfo {
    void *addr;
    size_t len;
    size_t reserved[14];
} aclrtMemUceInfo;

typedef struct aclrtMemUceInfoArray {
    size_t arraySize;
    aclrtMemUceInfo memUceInfoArray[20];
} aclrtMemUceInfoArray;

typedef union aclrtErrorInfoDetail {
    aclrtMemUceInfoArray uceInfo;
    aclrtAicoreErrorType aicoreErrType;
} aclrtErrorInfoDetail;

typedef struct aclrtErrorInfo {
    uint8_t tryRepair;
    uint8_t hasDetail;
    uint8_t reserved[2];
    aclrtErrorType errorType;
    aclrtErrorInfoDetail detail;
} aclrtErrorInfo;

typedef enum aclrtLastErrLevel { ACL_RT_THREAD_LEVEL = 0 } aclrtLastErrLevel;

/* ---- types: kernels in binaries ---- */

typedef void *aclrtBinary;
typedef void *aclrtBinHandle;
typedef void *aclrtFuncHandle;
typedef void *aclrtArgsHandle;
typedef void *aclrtParamHandle;

typedef enum aclrtBinaryLoadOptionType {
    ACL_RT_BINARY_LOAD_OPT_LAZY_LOAD = 0,
    ACL_RT_BINARY_LOAD_OPT_LAZY_MAGIC = 1,
    ACL_RT_BINARY_LOAD_OPT_MAGIC = 2,
    ACL_RT_BINARY_LOAD_OPT_CPU_KERNEL_MODE = 3
} aclrtBinaryLoadOptionType;

typedef union aclrtBinaryLoadOptionValue {
    uint32_t isLazyLoad;
    uint32_t magic;
    int32_t cpuKernelMode;
    uint32_t rsv[4];
} aclrtBinaryLoadOptionValue;

typedef struct aclrtBinaryLoadOption {
    aclrtBinaryLoadOptionType type;
    aclrtBinaryLoadOptionValue value;
} aclrtBinaryLoadOption;

typedef struct aclrtBinaryLoadOptions {
    aclrtBinaryLoadOption *options;
    size_t numOpt;
} aclrtBinaryLoadOptions;

typedef enum aclrtEngineType { ACL_RT_ENGINE_TYPE_AIC = 0, ACL_RT_ENGINE_TYPE_AIV = 1 } aclrtEngineType;

typedef enum aclrtLaunchKernelAttrId {
    ACL_RT_LAUNCH_KERNEL_ATTR_SCHEM_MODE = 0,
    ACL_RT_LAUNCH_KERNEL_ATTR_ENGINE_TYPE = 1,
    ACL_RT_LAUNCH_KERNEL_ATTR_BLOCKDIM_OFFSET = 2,
    ACL_RT_LAUNCH_KERNEL_ATTR_BLOCK_TASK_PREFETCH = 3,
    ACL_RT_LAUNCH_KERNEL_ATTR_DATA_DUMP = 4,
    ACL_RT_LAUNCH_KERNEL_ATTR_TIMEOUT = 5
} aclrtLaunchKernelAttrId;

typedef union aclrtLaunchKernelAttrValue {
    uint8_t schemMode;
    uint32_t localMemorySize;
    aclrtEngineType engineType;
    uint32_t blockDimOffset;
    uint8_t isBlockTaskPrefetch;
    uint8_t isDataDump;
    uint16_t timeout;
    uint32_t rsv[4];
} aclrtLaunchKernelAttrValue;

typedef struct aclrtLaunchKernelAttr {
    aclrtLaunchKernelAttrId id;
    aclrtLaunchKernelAttrValue value;
} aclrtLaunchKernelAttr;

typedef struct aclrtLaunchKernelCfg {
    aclrtLaunchKernelAttr *attrs;
    size_t numAttrs;
} aclrtLaunchKernelCfg;

typedef enum aclrtCondition {
    ACL_RT_EQUAL = 0,
    ACL_RT_NOT_EQUAL = 1,
    ACL_RT_GREATER = 2,
    ACL_RT_GREATER_OR_EQUAL = 3,
    ACL_RT_LESS = 4,
    ACL_RT_LESS_OR_EQUAL = 5
} aclrtCondition;

typedef enum aclrtCompareDataType { ACL_RT_SWITCH_INT32 = 0, ACL_RT_SWITCH_INT64 = 1 } aclrtCompareDataType;

/* ---- types: versions ---- */

typedef enum aclCANNPackageName {
    ACL_PKG_NAME_CANN = 0,
    ACL_PKG_NAME_RUNTIME = 1,
    ACL_PKG_NAME_COMPILER = 2,
    ACL_PKG_NAME_HCCL = 3,
    ACL_PKG_NAME_TOOLKIT = 4,
    ACL_PKG_NAME_OPP = 5,
    ACL_PKG_NAME_OPP_KERNEL = 6,
    ACL_PKG_NAME_DRIVER = 7
} aclCANNPackageName;

typedef struct aclCANNPackageVersion {
    char version[128];
    char majorVersion[64];
    char minorVersion[64];
    char releaseVersion[64];
    char patchVersion[64];
    char reserved[128];
} aclCANNPackageVersion;

/* ---- start and end ---- */

/*
 * Starts the library for this process. configPath: NULL, or the path of a JSON file (UTF-8, at most 10 MiB) of which
 * "defaultDevice": {"default_device": "0"} is obeyed; profiling, dump and other keys are accepted and ignored.
 * Calls are counted: every call after the first returns ACL_ERROR_REPEAT_INITIALIZE but counts all the same.
 * ACL_ERROR_INVALID_FILE: the file cannot be read; ACL_ERROR_PARSE_FILE: it is not JSON, or a known key has a wrong
 * value; then nothing is initialised. The other functions work before aclInit as well.
 */
ACL_FUNC_VISIBILITY aclError aclInit(const char *configPath);

/*
 * Undoes all aclInit calls. Streams, events and memory the caller made stay valid; what belongs to the process as a
 * whole is released when it ends. ACL_ERROR_UNINITIALIZE when the library is not initialised, ACL_ERROR_REPEAT_FINALIZE
 * when it was finalised already.
 */
ACL_FUNC_VISIBILITY aclError aclFinalize(void);

/* Undoes one aclInit call; *refCount (may be NULL) is how many remain. The last one finalises. */
ACL_FUNC_VISIBILITY aclError aclFinalizeReference(uint64_t *refCount);

/* Version of the interface, see ACL_MAJOR_VERSION. */
ACL_FUNC_VISIBILITY aclError aclrtGetVersion(int32_t *majorVersion, int32_t *minorVersion, int32_t *patchVersion);

/*
 * Version of a package of the stack: text like "8.2.RC1" and its parts. Doppel answers the version whose interface it
 * follows, for every package it stands for. ACL_ERROR_INVALID_PARAM for an unknown package.
 */
ACL_FUNC_VISIBILITY aclError aclsysGetCANNVersion(aclCANNPackageName name, aclCANNPackageVersion *version);

/* ---- errors ---- */

/*
 * The most recent failure of a call on this thread that was not fetched yet: "E<code>: <function>: <sentence>" where
 * the sentence names the argument, its value and what was expected. NULL when there was none since the last call. The
 * string belongs to the library and stays valid until this function is called again on the same thread. Calls that
 * succeed do not discard it.
 */
ACL_FUNC_VISIBILITY const char *aclGetRecentErrMsg(void);

/* Code of the last failed call of this thread, and forget it. level must be ACL_RT_THREAD_LEVEL. */
ACL_FUNC_VISIBILITY aclError aclrtGetLastError(aclrtLastErrLevel level);

/* The same without forgetting it. */
ACL_FUNC_VISIBILITY aclError aclrtPeekAtLastError(aclrtLastErrLevel level);

/*
 * Calls callback on a thread of the library for every kernel that failed, before a synchronisation reports it. One
 * callback per process; NULL removes it. The info is valid during the callback only.
 */
ACL_FUNC_VISIBILITY aclError aclrtSetExceptionInfoCallback(aclrtExceptionInfoCallback callback);

/* What the info of an exception callback says; 0 for NULL. */
ACL_FUNC_VISIBILITY uint32_t aclrtGetTaskIdFromExceptionInfo(const aclrtExceptionInfo *info);
ACL_FUNC_VISIBILITY uint32_t aclrtGetStreamIdFromExceptionInfo(const aclrtExceptionInfo *info);
ACL_FUNC_VISIBILITY uint32_t aclrtGetThreadIdFromExceptionInfo(const aclrtExceptionInfo *info);
ACL_FUNC_VISIBILITY uint32_t aclrtGetDeviceIdFromExceptionInfo(const aclrtExceptionInfo *info);
ACL_FUNC_VISIBILITY uint32_t aclrtGetErrorCodeFromExceptionInfo(const aclrtExceptionInfo *info);

/* Kind of error the device is in. A simulated device has no hardware errors: errorType is ACL_RT_NO_ERROR. */
ACL_FUNC_VISIBILITY aclError aclrtGetErrorVerbose(int32_t deviceId, aclrtErrorInfo *errorInfo);

/* Refused: there is no hardware to repair. */
ACL_FUNC_VISIBILITY aclError aclrtRepairError(int32_t deviceId, const aclrtErrorInfo *errorInfo);
ACL_FUNC_VISIBILITY aclError aclrtMemUceRepair(int32_t deviceId, aclrtMemUceInfo *memUceInfoArray, size_t arraySize);

/* Uncorrectable memory errors: none, *retSize is 0. */
ACL_FUNC_VISIBILITY aclError aclrtGetMemUceInfo(int32_t deviceId, aclrtMemUceInfo *memUceInfoArray, size_t arraySize,
                                                size_t *retSize);

/* ---- devices ---- */

/* Number of devices this process sees (DOPPEL_DEVICES, ASCEND_RT_VISIBLE_DEVICES); 1 by default. */
ACL_FUNC_VISIBILITY aclError aclrtGetDeviceCount(uint32_t *count);

/*
 * Makes deviceId the device of this thread and its default context the current one. Repeating it for the same device
 * needs no further reset. The default context and its default stream are made by the first call in the process.
 */
ACL_FUNC_VISIBILITY aclError aclrtSetDevice(int32_t deviceId);

/*
 * Takes back this thread's aclrtSetDevice. When no thread uses the device any more its work is waited for and the
 * default context ends. Streams, events and memory the caller made stay valid until the caller releases them.
 */
ACL_FUNC_VISIBILITY aclError aclrtResetDevice(int32_t deviceId);

/* The same at once, whatever other threads did; unfinished work is dropped and the device's memory released. */
ACL_FUNC_VISIBILITY aclError aclrtResetDeviceForce(int32_t deviceId);

/* Device of this thread: of its current context. ACL_ERROR_RT_CONTEXT_NULL when none was set. */
ACL_FUNC_VISIBILITY aclError aclrtGetDevice(int32_t *deviceId);

/* Always ACL_HOST: device memory is reached with copies, as on a card. */
ACL_FUNC_VISIBILITY aclError aclrtGetRunMode(aclrtRunMode *runMode);

/* Waits for all streams of the current device and reports the first failure among them. */
ACL_FUNC_VISIBILITY aclError aclrtSynchronizeDevice(void);

/* The same for at most timeout milliseconds (-1: for ever). ACL_ERROR_RT_STREAM_SYNC_TIMEOUT. */
ACL_FUNC_VISIBILITY aclError aclrtSynchronizeDeviceWithTimeout(int32_t timeout);

/* ACL_TS_ID_AICORE or ACL_TS_ID_AIVECTOR; there is one task scheduler, the choice has no effect. */
ACL_FUNC_VISIBILITY aclError aclrtSetTsDevice(aclrtTsId tsId);

/* A number about the chip: cores, bytes. ACL_ERROR_API_NOT_SUPPORT for attributes a simulated chip does not have. */
ACL_FUNC_VISIBILITY aclError aclrtGetDeviceInfo(uint32_t deviceId, aclrtDevAttr attr, int64_t *value);

/* Always ACL_RT_DEVICE_STATUS_NORMAL for a device that exists. */
ACL_FUNC_VISIBILITY aclError aclrtQueryDeviceStatus(int32_t deviceId, aclrtDeviceStatus *deviceStatus);

/* Sixteen bytes that name a device: the same for the same device index in every process. */
ACL_FUNC_VISIBILITY aclError aclrtDeviceGetUuid(int32_t deviceId, aclrtUuid *uuid);

/* Per cent of the time since the previous call in which kernels ran (vector cores), and of memory in use. */
ACL_FUNC_VISIBILITY aclError aclrtGetDeviceUtilizationRate(int32_t deviceId, aclrtUtilizationInfo *utilizationInfo);

/* Process id outside containers: that of this process. */
ACL_FUNC_VISIBILITY aclError aclrtDeviceGetBareTgid(int32_t *pid);

/* Drops what is queued on the device, waits up to timeout milliseconds for what runs, and clears the errors of its
 * streams. */
ACL_FUNC_VISIBILITY aclError aclrtDeviceTaskAbort(int32_t deviceId, uint32_t timeout);

/* Number of the device as the driver counts it: undoes ASCEND_RT_VISIBLE_DEVICES. */
ACL_FUNC_VISIBILITY aclError aclrtGetLogicDevIdByUserDevId(const int32_t userDevid, int32_t *const logicDevId);

/* Whether device deviceId can reach memory of peerDeviceId: 1 for two existing, different devices, else 0. */
ACL_FUNC_VISIBILITY aclError aclrtDeviceCanAccessPeer(int32_t *canAccessPeer, int32_t deviceId, int32_t peerDeviceId);

/* Lets the current device use memory of peerDeviceId. flags must be 0. Repeating it is allowed. */
ACL_FUNC_VISIBILITY aclError aclrtDeviceEnablePeerAccess(int32_t peerDeviceId, uint32_t flags);
ACL_FUNC_VISIBILITY aclError aclrtDeviceDisablePeerAccess(int32_t peerDeviceId);

/* Only ACL_RT_OVERFLOW_MODE_INFNAN (what the chip has) is supported; the others are refused. */
ACL_FUNC_VISIBILITY aclError aclrtSetDeviceSatMode(aclrtFloatOverflowMode mode);
ACL_FUNC_VISIBILITY aclError aclrtGetDeviceSatMode(aclrtFloatOverflowMode *mode);

/* Refused: overflow is reported by the checker, not through a status word. */
ACL_FUNC_VISIBILITY aclError aclrtGetOverflowStatus(void *outputAddr, size_t outputSize, aclrtStream stream);
ACL_FUNC_VISIBILITY aclError aclrtResetOverflowStatus(aclrtStream stream);

/* Process-wide switches that operators read (determinism). Any value is kept. */
ACL_FUNC_VISIBILITY aclError aclrtSetSysParamOpt(aclSysParamOpt opt, int64_t value);
/* ACL_ERROR_RT_SYSPARAMOPT_NOT_SET when it was never set. */
ACL_FUNC_VISIBILITY aclError aclrtGetSysParamOpt(aclSysParamOpt opt, int64_t *value);
/* The same for the current context. */
ACL_FUNC_VISIBILITY aclError aclrtCtxSetSysParamOpt(aclSysParamOpt opt, int64_t value);
ACL_FUNC_VISIBILITY aclError aclrtCtxGetSysParamOpt(aclSysParamOpt opt, int64_t *value);

/* Seconds (milliseconds in V2) an operator may run. Doppel has no watchdog: kept, and without effect; 0 = for ever. */
ACL_FUNC_VISIBILITY aclError aclrtSetOpExecuteTimeOut(uint32_t timeout);
ACL_FUNC_VISIBILITY aclError aclrtSetOpExecuteTimeOutV2(uint64_t timeout, uint64_t *actualTimeout);
/* Seconds a stream may wait for an event. Kept, and without effect. */
ACL_FUNC_VISIBILITY aclError aclrtSetOpWaitTimeout(uint32_t timeout);

/* How many cores this process (stream, thread) uses: Get answers those of the chip, the others are refused. */
ACL_FUNC_VISIBILITY aclError aclrtGetDeviceResLimit(int32_t deviceId, aclrtDevResLimitType type, uint32_t *value);
ACL_FUNC_VISIBILITY aclError aclrtSetDeviceResLimit(int32_t deviceId, aclrtDevResLimitType type, uint32_t value);
ACL_FUNC_VISIBILITY aclError aclrtResetDeviceResLimit(int32_t deviceId);
ACL_FUNC_VISIBILITY aclError aclrtGetStreamResLimit(aclrtStream stream, aclrtDevResLimitType type, uint32_t *value);
ACL_FUNC_VISIBILITY aclError aclrtSetStreamResLimit(aclrtStream stream, aclrtDevResLimitType type, uint32_t value);
ACL_FUNC_VISIBILITY aclError aclrtResetStreamResLimit(aclrtStream stream);
ACL_FUNC_VISIBILITY aclError aclrtUseStreamResInCurrentThread(aclrtStream stream);
ACL_FUNC_VISIBILITY aclError aclrtUnuseStreamResInCurrentThread(aclrtStream stream);
ACL_FUNC_VISIBILITY aclError aclrtGetResInCurrentThread(aclrtDevResLimitType type, uint32_t *value);

/* Refused: computing groups partition a chip, Doppel's is whole. */
ACL_FUNC_VISIBILITY aclError aclrtSetGroup(int32_t groupId);
ACL_FUNC_VISIBILITY aclError aclrtGetGroupCount(uint32_t *count);
ACL_FUNC_VISIBILITY aclrtGroupInfo *aclrtCreateGroupInfo(void);
ACL_FUNC_VISIBILITY aclError aclrtDestroyGroupInfo(aclrtGroupInfo *groupInfo);
ACL_FUNC_VISIBILITY aclError aclrtGetAllGroupInfo(aclrtGroupInfo *groupInfo);
ACL_FUNC_VISIBILITY aclError aclrtGetGroupInfoDetail(const aclrtGroupInfo *groupInfo, int32_t groupIndex,
                                                     aclrtGroupAttr attr, void *attrValue, size_t valueLen,
                                                     size_t *paramRetSize);

/* ---- contexts ---- */

/* A context on a device with its own default stream; becomes current on this thread. Release with aclrtDestroyContext.
 */
ACL_FUNC_VISIBILITY aclError aclrtCreateContext(aclrtContext *context, int32_t deviceId);

/* Waits for the work of the context's default stream and releases it. The default context of aclrtSetDevice is refused.
 */
ACL_FUNC_VISIBILITY aclError aclrtDestroyContext(aclrtContext context);

/* Makes a context (and its device) the current one of this thread. */
ACL_FUNC_VISIBILITY aclError aclrtSetCurrentContext(aclrtContext context);

/* Current context; ACL_ERROR_RT_CONTEXT_NULL when there is none. */
ACL_FUNC_VISIBILITY aclError aclrtGetCurrentContext(aclrtContext *context);

/* Whether the default context of a device exists (*activate 1 or 0). *flags is 0. */
ACL_FUNC_VISIBILITY aclError aclrtGetPrimaryCtxState(int32_t deviceId, uint32_t *flags, int32_t *activate);

/* ---- streams: work in order, asynchronous to the host ---- */

/* A stream in the current context. Release with aclrtDestroyStream. */
ACL_FUNC_VISIBILITY aclError aclrtCreateStream(aclrtStream *stream);

/* The same; priority 0 (highest) to 7, flag ACL_STREAM_* bits, which have no effect on a CPU. */
ACL_FUNC_VISIBILITY aclError aclrtCreateStreamWithConfig(aclrtStream *stream, uint32_t priority, uint32_t flag);

/* A stream from a configuration made below. */
ACL_FUNC_VISIBILITY aclError aclrtCreateStreamV2(aclrtStream *stream, const aclrtStreamConfigHandle *handle);
ACL_FUNC_VISIBILITY aclrtStreamConfigHandle *aclrtCreateStreamConfigHandle(void);
ACL_FUNC_VISIBILITY aclError aclrtDestroyStreamConfigHandle(aclrtStreamConfigHandle *handle);
/* Sets one member; valueSize must be that of its type (pointer, size_t, uint32_t for flag and priority). */
ACL_FUNC_VISIBILITY aclError aclrtSetStreamConfigOpt(aclrtStreamConfigHandle *handle, aclrtStreamConfigAttr attr,
                                                     const void *attrValue, size_t valueSize);

/* Waits for the stream's work and releases it. The default stream cannot be destroyed: ACL_ERROR_INVALID_PARAM. */
ACL_FUNC_VISIBILITY aclError aclrtDestroyStream(aclrtStream stream);

/* The same, but what has not begun is dropped. */
ACL_FUNC_VISIBILITY aclError aclrtDestroyStreamForce(aclrtStream stream);

/* Drops what has not begun, waits for the running task and clears the stream's error. */
ACL_FUNC_VISIBILITY aclError aclrtStreamAbort(aclrtStream stream);

/* Waits until the stream's work is done and reports its failure, if any. A blocking callback that nobody processes
 * (aclrtProcessReport) makes it wait. */
ACL_FUNC_VISIBILITY aclError aclrtSynchronizeStream(aclrtStream stream);

/* The same for at most timeout milliseconds (-1: for ever). ACL_ERROR_RT_STREAM_SYNC_TIMEOUT. */
ACL_FUNC_VISIBILITY aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t timeout);

/* Whether the stream's work is done, without waiting. */
ACL_FUNC_VISIBILITY aclError aclrtStreamQuery(aclrtStream stream, aclrtStreamStatus *status);

/* A small number that names the stream in reports; 0 is a default stream. */
ACL_FUNC_VISIBILITY aclError aclrtStreamGetId(aclrtStream stream, int32_t *streamId);

/* ACL_STOP_ON_FAILURE: after a failed task the rest of the stream is skipped. */
ACL_FUNC_VISIBILITY aclError aclrtSetStreamFailureMode(aclrtStream stream, uint64_t mode);

/* Failure mode is obeyed, the user tag and the operator info switch are kept, the overflow check is refused. */
ACL_FUNC_VISIBILITY aclError aclrtSetStreamAttribute(aclrtStream stream, aclrtStreamAttr stmAttrType,
                                                     aclrtStreamAttrValue *value);

/* Refused: see aclrtGetOverflowStatus. */
ACL_FUNC_VISIBILITY aclError aclrtSetStreamOverflowSwitch(aclrtStream stream, uint32_t flag);
ACL_FUNC_VISIBILITY aclError aclrtGetStreamOverflowSwitch(aclrtStream stream, uint32_t *flag);

/* ---- events ---- */

/* An event. Release with aclrtDestroyEvent. flag: ACL_EVENT_* bits; ACL_EVENT_IPC is refused. */
ACL_FUNC_VISIBILITY aclError aclrtCreateEvent(aclrtEvent *event);
ACL_FUNC_VISIBILITY aclError aclrtCreateEventWithFlag(aclrtEvent *event, uint32_t flag);
ACL_FUNC_VISIBILITY aclError aclrtCreateEventExWithFlag(aclrtEvent *event, uint32_t flag);

/* Releases an event; recorded work that still refers to it goes on. */
ACL_FUNC_VISIBILITY aclError aclrtDestroyEvent(aclrtEvent event);

/* Queues: the event is complete when everything before it on the stream is done. Recording again moves the event. */
ACL_FUNC_VISIBILITY aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream);

/* Queues: the event is as if never recorded. */
ACL_FUNC_VISIBILITY aclError aclrtResetEvent(aclrtEvent event, aclrtStream stream);

/* Queues: later work of the stream waits for the event as it is recorded now. An unrecorded event does not wait. */
ACL_FUNC_VISIBILITY aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event);

/* Waits for the event. Returns at once when it was never recorded. */
ACL_FUNC_VISIBILITY aclError aclrtSynchronizeEvent(aclrtEvent event);

/* The same for at most timeout milliseconds (-1: for ever). ACL_ERROR_RT_EVENT_SYNC_TIMEOUT. */
ACL_FUNC_VISIBILITY aclError aclrtSynchronizeEventWithTimeout(aclrtEvent event, int32_t timeout);

/* Whether the event is complete, without waiting. */
ACL_FUNC_VISIBILITY aclError aclrtQueryEvent(aclrtEvent event, aclrtEventStatus *status);
ACL_FUNC_VISIBILITY aclError aclrtQueryEventStatus(aclrtEvent event, aclrtEventRecordedStatus *status);

/* Whether the waits queued for the event are done. */
ACL_FUNC_VISIBILITY aclError aclrtQueryEventWaitStatus(aclrtEvent event, aclrtEventWaitStatus *status);

/* Milliseconds between two completed events. ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID when one is not complete. */
ACL_FUNC_VISIBILITY aclError aclrtEventElapsedTime(float *ms, aclrtEvent startEvent, aclrtEvent endEvent);

/* When the event completed, in microseconds. */
ACL_FUNC_VISIBILITY aclError aclrtEventGetTimestamp(aclrtEvent event, uint64_t *timestamp);

/* Refused: events do not cross processes. */
ACL_FUNC_VISIBILITY aclError aclrtIpcGetEventHandle(aclrtEvent event, aclrtIpcEventHandle *handle);
ACL_FUNC_VISIBILITY aclError aclrtIpcOpenEventHandle(aclrtIpcEventHandle handle, aclrtEvent *event);

/* ---- callbacks: functions on the host, in stream order ---- */

/*
 * Ties a thread (its pthread_t as a number) to a stream: the thread runs the stream's callbacks in aclrtProcessReport.
 * A stream has one such thread. ACL_ERROR_REPEAT_SUBSCRIBE when it has one already.
 */
ACL_FUNC_VISIBILITY aclError aclrtSubscribeReport(uint64_t threadId, aclrtStream stream);

/* Undoes it. ACL_ERROR_STREAM_NOT_SUBSCRIBE, ACL_ERROR_THREAD_NOT_SUBSCRIBE. */
ACL_FUNC_VISIBILITY aclError aclrtUnSubscribeReport(uint64_t threadId, aclrtStream stream);

/*
 * Waits up to timeout milliseconds (-1: for ever) for a callback of a stream this thread is subscribed to and runs it.
 * ACL_ERROR_WAIT_CALLBACK_TIMEOUT when there was none, ACL_ERROR_THREAD_NOT_SUBSCRIBE when this thread has no stream.
 */
ACL_FUNC_VISIBILITY aclError aclrtProcessReport(int32_t timeout);

/* Queues fn(userData). The stream must be subscribed: ACL_ERROR_STREAM_NOT_SUBSCRIBE. */
ACL_FUNC_VISIBILITY aclError aclrtLaunchCallback(aclrtCallback fn, void *userData, aclrtCallbackBlockType blockType,
                                                 aclrtStream stream);

/* Queues func(args), run by a thread of the library; the stream waits for it. No subscription. It must not call the
 * API. */
ACL_FUNC_VISIBILITY aclError aclrtLaunchHostFunc(aclrtStream stream, aclrtHostFunc func, void *args);

/* The same subscription under the names of host functions. */
ACL_FUNC_VISIBILITY aclError aclrtSubscribeHostFunc(uint64_t hostFuncThreadId, aclrtStream exeStream);
ACL_FUNC_VISIBILITY aclError aclrtUnSubscribeHostFunc(uint64_t hostFuncThreadId, aclrtStream exeStream);
ACL_FUNC_VISIBILITY aclError aclrtProcessHostFunc(int32_t timeout);

/* ---- memory: allocation ---- */

/*
 * Device memory of the current device, 512-byte aligned; the contents are undefined. size is rounded up to 32 and
 * padded by 32, and use of the padding is an error all the same. Release with aclrtFree. Policies ask for page sizes,
 * and all of them are accepted.
 */
ACL_FUNC_VISIBILITY aclError aclrtMalloc(void **devPtr, size_t size, aclrtMemMallocPolicy policy);

/* As aclrtMalloc. Cached memory: see aclrtMemFlush. */
ACL_FUNC_VISIBILITY aclError aclrtMallocAlign32(void **devPtr, size_t size, aclrtMemMallocPolicy policy);
ACL_FUNC_VISIBILITY aclError aclrtMallocCached(void **devPtr, size_t size, aclrtMemMallocPolicy policy);

/*
 * Releases device memory; devPtr must be what an allocation gave, and NULL is an error. Work queued before the call may
 * still use it: the bytes are reused only when that work is done.
 */
ACL_FUNC_VISIBILITY aclError aclrtFree(void *devPtr);

/* Host memory for fast copies. Release with aclrtFreeHost. Attributes of cfg (may be NULL) are checked, without effect.
 */
ACL_FUNC_VISIBILITY aclError aclrtMallocHost(void **hostPtr, size_t size);
ACL_FUNC_VISIBILITY aclError aclrtMallocHostWithCfg(void **ptr, uint64_t size, aclrtMallocConfig *cfg);
ACL_FUNC_VISIBILITY aclError aclrtFreeHost(void *hostPtr);

/* Makes writes of the host to cached memory visible, and the other way round. Checked, and nothing to do on a CPU. */
ACL_FUNC_VISIBILITY aclError aclrtMemFlush(void *devPtr, size_t size);
ACL_FUNC_VISIBILITY aclError aclrtMemInvalidate(void *devPtr, size_t size);

/* Free and total bytes of the device's memory; host memory caps them. Kinds the chip does not have are 0 bytes. */
ACL_FUNC_VISIBILITY aclError aclrtGetMemInfo(aclrtMemAttr attr, size_t *free, size_t *total);

/* Device memory by use, at most inputNum entries: one entry, what this process allocated. */
ACL_FUNC_VISIBILITY aclError aclrtGetMemUsageInfo(uint32_t deviceId, aclrtMemUsageInfo *memUsageInfo, size_t inputNum,
                                                  size_t *outputNum);

/* Whether an address is device memory, registered host memory or neither, and whose. */
ACL_FUNC_VISIBILITY aclError aclrtPointerGetAttributes(const void *ptr, aclrtPtrAttributes *attributes);

/*
 * Lets the device use size bytes of host memory at ptr; *devPtr is the address for the device, which is the same.
 * Undo with aclrtHostUnregister. A range that overlaps a registered one is an error.
 */
ACL_FUNC_VISIBILITY aclError aclrtHostRegister(void *ptr, uint64_t size, aclrtHostRegisterType type, void **devPtr);
ACL_FUNC_VISIBILITY aclError aclrtHostRegisterV2(void *ptr, uint64_t size, uint32_t flag);
ACL_FUNC_VISIBILITY aclError aclrtHostUnregister(void *ptr);

/* ---- memory: copies and fills ---- */

/*
 * Copies count bytes and returns when it is done. destMax (bytes at dst) must be at least count. The kind must agree
 * with the addresses; ranges must stay within their allocations. Copies do not wait for streams.
 */
ACL_FUNC_VISIBILITY aclError aclrtMemcpy(void *dst, size_t destMax, const void *src, size_t count,
                                         aclrtMemcpyKind kind);

/* Queues a copy. Host memory must stay valid and unchanged until it is done. Ranges are checked now. */
ACL_FUNC_VISIBILITY aclError aclrtMemcpyAsync(void *dst, size_t destMax, const void *src, size_t count,
                                              aclrtMemcpyKind kind, aclrtStream stream);

/* The same. */
ACL_FUNC_VISIBILITY aclError aclrtMemcpyAsyncWithCondition(void *dst, size_t destMax, const void *src, size_t count,
                                                           aclrtMemcpyKind kind, aclrtStream stream);

/* Copies height rows of width bytes; pitches are bytes from row to row, at least width. Only host<->device kinds and
 * the device's own copies; the last row must fit. */
ACL_FUNC_VISIBILITY aclError aclrtMemcpy2d(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
                                           size_t height, aclrtMemcpyKind kind);
ACL_FUNC_VISIBILITY aclError aclrtMemcpy2dAsync(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
                                                size_t height, aclrtMemcpyKind kind, aclrtStream stream);

/*
 * numBatches copies at once. attrs say where source and destination are, attrsIndexes from which copy on an entry
 * counts (the first is 0, increasing). On failure *failIdx is the first copy that failed, SIZE_MAX when none in
 * particular did.
 */
ACL_FUNC_VISIBILITY aclError aclrtMemcpyBatch(void **dsts, size_t *destMax, void **srcs, size_t *sizes,
                                              size_t numBatches, aclrtMemcpyBatchAttr *attrs, size_t *attrsIndexes,
                                              size_t numAttrs, size_t *failIdx);
ACL_FUNC_VISIBILITY aclError aclrtMemcpyBatchAsync(void **dsts, size_t *destMax, void **srcs, size_t *sizes,
                                                   size_t numBatches, aclrtMemcpyBatchAttr *attrs, size_t *attrsIndexes,
                                                   size_t numAttrs, size_t *failIndex, aclrtStream stream);

/* Sets count bytes to the low byte of value. maxCount (bytes at devPtr) must be at least count. */
ACL_FUNC_VISIBILITY aclError aclrtMemset(void *devPtr, size_t maxCount, int32_t value, size_t count);
ACL_FUNC_VISIBILITY aclError aclrtMemsetAsync(void *devPtr, size_t maxCount, int32_t value, size_t count,
                                              aclrtStream stream);

/* Prefetches device memory into the cache: checked, and nothing to do. Other operations are refused. */
ACL_FUNC_VISIBILITY aclError aclrtCmoAsync(void *src, size_t size, aclrtCmoType cmoType, aclrtStream stream);

/* ---- memory: reserved addresses with memory mapped later ---- */

/* Bytes that sizes and offsets below must be multiples of: 2 MiB. */
ACL_FUNC_VISIBILITY aclError aclrtMemGetAllocationGranularity(aclrtPhysicalMemProp *prop,
                                                              aclrtMemGranularityOptions option, size_t *granularity);

/* Reserves addresses without memory behind them. alignment 0 (or a power of two), expectPtr NULL, flags 0 or 1. */
ACL_FUNC_VISIBILITY aclError aclrtReserveMemAddress(void **virPtr, size_t size, size_t alignment, void *expectPtr,
                                                    uint64_t flags);
/* Gives a whole reserved range back; nothing may be mapped in it. */
ACL_FUNC_VISIBILITY aclError aclrtReleaseMemAddress(void *virPtr);

/* Memory without an address, on the device prop->location.id. flags must be 0. */
ACL_FUNC_VISIBILITY aclError aclrtMallocPhysical(aclrtDrvMemHandle *handle, size_t size,
                                                 const aclrtPhysicalMemProp *prop, uint64_t flags);
/* Releases the handle. Mappings stay usable until they are unmapped. */
ACL_FUNC_VISIBILITY aclError aclrtFreePhysical(aclrtDrvMemHandle handle);

/* Puts memory behind size bytes at virPtr, inside a reserved range. offset and flags must be 0. */
ACL_FUNC_VISIBILITY aclError aclrtMapMem(void *virPtr, size_t size, size_t offset, aclrtDrvMemHandle handle,
                                         uint64_t flags);
/* Undoes aclrtMapMem of that start address. */
ACL_FUNC_VISIBILITY aclError aclrtUnmapMem(void *virPtr);

/* Refused: device memory does not cross processes. */
ACL_FUNC_VISIBILITY aclError aclrtMemExportToShareableHandle(aclrtDrvMemHandle handle, aclrtMemHandleType handleType,
                                                             uint64_t flags, uint64_t *shareableHandle);
ACL_FUNC_VISIBILITY aclError aclrtMemImportFromShareableHandle(uint64_t shareableHandle, int32_t deviceId,
                                                               aclrtDrvMemHandle *handle);
ACL_FUNC_VISIBILITY aclError aclrtMemSetPidToShareableHandle(uint64_t shareableHandle, int32_t *pid, size_t pidNum);
ACL_FUNC_VISIBILITY aclError aclrtIpcMemGetExportKey(void *devPtr, size_t size, char *key, size_t len, uint64_t flag);
ACL_FUNC_VISIBILITY aclError aclrtIpcMemSetImportPid(const char *key, int32_t *pid, size_t num);
ACL_FUNC_VISIBILITY aclError aclrtIpcMemImportByKey(void **devPtr, const char *key, uint64_t flag);
ACL_FUNC_VISIBILITY aclError aclrtIpcMemClose(const char *key);

/* ---- memory words as signals ---- */

/* Refused: waiting for and writing of device words by a stream. Use events. */
ACL_FUNC_VISIBILITY aclError aclrtValueWait(void *devAddr, uint64_t value, uint32_t flag, aclrtStream stream);
ACL_FUNC_VISIBILITY aclError aclrtValueWrite(void *devAddr, uint64_t value, uint32_t flag, aclrtStream stream);

/* ---- kernels in device binaries ---- */

/* Refused: a device binary cannot run on a CPU. Compile the kernel's source with ascc and launch it with <<<>>>. */
ACL_FUNC_VISIBILITY aclrtBinary aclrtCreateBinary(const void *data, size_t dataLen);
ACL_FUNC_VISIBILITY aclError aclrtDestroyBinary(aclrtBinary binary);
ACL_FUNC_VISIBILITY aclError aclrtBinaryLoad(const aclrtBinary binary, aclrtBinHandle *binHandle);
ACL_FUNC_VISIBILITY aclError aclrtBinaryUnLoad(aclrtBinHandle binHandle);
ACL_FUNC_VISIBILITY aclError aclrtBinaryGetFunction(const aclrtBinHandle binHandle, const char *kernelName,
                                                    aclrtFuncHandle *funcHandle);
ACL_FUNC_VISIBILITY aclError aclrtLaunchKernel(aclrtFuncHandle funcHandle, uint32_t blockDim, const void *argsData,
                                               size_t argsSize, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
