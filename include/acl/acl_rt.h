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
#include "acl_rt_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- start and end ---- */

/*
 * Starts the library for this process. configPath: NULL, or the path of a JSON file (UTF-8, at most 10 MiB) of which
 * "defaultDevice": {"default_device": "0"} is obeyed (as aclrtSetDevice of the calling thread); profiling, dump and
 * other keys are accepted and ignored.
 * Calls are counted: every call after the first returns ACL_ERROR_REPEAT_INITIALIZE but counts all the same.
 * ACL_ERROR_INVALID_FILE: the file cannot be read; ACL_ERROR_PARSE_FILE: it is not JSON, or a known key has a wrong
 * value; then nothing is initialised. The other functions work before aclInit as well.
 */
ACL_FUNC_VISIBILITY aclError aclInit(const char *configPath);

/*
 * Undoes all aclInit calls. Streams, events and memory stay valid until they are released. ACL_ERROR_UNINITIALIZE
 * before aclInit, ACL_ERROR_REPEAT_FINALIZE when everything was undone already.
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
 * Calls callback once for every kernel launch that failed, on the thread that noticed it. One callback per process;
 * NULL removes it. The info is valid during the callback only.
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

/* Drops what is queued on the device, waits up to timeout milliseconds (0: no limit) for what runs, clears errors. */
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

/* Switches (determinism and others), 0 or 1, kept for the process. Results of Doppel are deterministic either way. */
ACL_FUNC_VISIBILITY aclError aclrtSetSysParamOpt(aclSysParamOpt opt, int64_t value);
/* ACL_ERROR_RT_SYSPARAMOPT_NOT_SET when it was never set. */
ACL_FUNC_VISIBILITY aclError aclrtGetSysParamOpt(aclSysParamOpt opt, int64_t *value);
/* The same; needs a current context. There is one set for all contexts. */
ACL_FUNC_VISIBILITY aclError aclrtCtxSetSysParamOpt(aclSysParamOpt opt, int64_t value);
ACL_FUNC_VISIBILITY aclError aclrtCtxGetSysParamOpt(aclSysParamOpt opt, int64_t *value);

/* Seconds (microseconds in V2) an operator may run. Doppel has no watchdog: without effect, which the log says. */
ACL_FUNC_VISIBILITY aclError aclrtSetOpExecuteTimeOut(uint32_t timeout);
ACL_FUNC_VISIBILITY aclError aclrtSetOpExecuteTimeOutV2(uint64_t timeout, uint64_t *actualTimeout);
/* Seconds a stream may wait for an event. Without effect, as above. */
ACL_FUNC_VISIBILITY aclError aclrtSetOpWaitTimeout(uint32_t timeout);

/* How many cores a device, stream or thread uses: always the whole chip. Setting fewer is ACL_ERROR_API_NOT_SUPPORT. */
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

/* Priority the stream was made with; 0 for a default stream. */
ACL_FUNC_VISIBILITY aclError aclrtStreamGetPriority(aclrtStream stream, uint32_t *priority);

/* Lowest (7) and highest (0) priority of streams. */
ACL_FUNC_VISIBILITY aclError aclrtDeviceGetStreamPriorityRange(int32_t *leastPriority, int32_t *greatestPriority);

/* ACL_STOP_ON_FAILURE: after a failed task the rest of the stream is skipped. */
ACL_FUNC_VISIBILITY aclError aclrtSetStreamFailureMode(aclrtStream stream, uint64_t mode);

/* Failure mode is obeyed, the user tag and the operator info switch are kept, the overflow check is refused. */
ACL_FUNC_VISIBILITY aclError aclrtSetStreamAttribute(aclrtStream stream, aclrtStreamAttr stmAttrType,
                                                     aclrtStreamAttrValue *value);

/* The overflow check of a stream is always off; switching it on is ACL_ERROR_API_NOT_SUPPORT. */
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

/* Free and total bytes of the current device's memory. Kinds of memory the chip does not have: 0 bytes. */
ACL_FUNC_VISIBILITY aclError aclrtGetMemInfo(aclrtMemAttr attr, size_t *free, size_t *total);

/* Device memory by use, at most inputNum entries: one entry, what this process allocated. */
ACL_FUNC_VISIBILITY aclError aclrtGetMemUsageInfo(uint32_t deviceId, aclrtMemUsageInfo *memUsageInfo, size_t inputNum,
                                                  size_t *outputNum);

/* Whether an address is device memory, registered host memory or neither, and whose. */
ACL_FUNC_VISIBILITY aclError aclrtPointerGetAttributes(const void *ptr, aclrtPtrAttributes *attributes);

/*
 * Lets the device use size bytes of host memory at ptr; *devPtr is the address for the device, which is the same.
 * Undo with aclrtHostUnregister. A range that overlaps a registered one is an error. flag: ACL_HOST_REG_* bits.
 */
ACL_FUNC_VISIBILITY aclError aclrtHostRegister(void *ptr, uint64_t size, aclrtHostRegisterType type, void **devPtr);
ACL_FUNC_VISIBILITY aclError aclrtHostRegisterV2(void *ptr, uint64_t size, uint32_t flag);
ACL_FUNC_VISIBILITY aclError aclrtHostUnregister(void *ptr);

/* Address for the device of registered host memory: the same address. flag must be 0. */
ACL_FUNC_VISIBILITY aclError aclrtHostGetDevicePointer(void *pHost, void **pDevice, uint32_t flag);

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

/*
 * Queues dst = dst op src over count bytes of device memory, element by element, rounded in the element's type. Sum,
 * maximum and minimum of half, float, int16 and int32; others are ACL_ERROR_API_NOT_SUPPORT. reserve must be NULL.
 */
ACL_FUNC_VISIBILITY aclError aclrtReduceAsync(void *dst, const void *src, uint64_t count, aclrtReduceKind kind,
                                              aclDataType type, aclrtStream stream, void *reserve);

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

/* ---- notifications between streams ---- */

/* Refused: use events (aclrtRecordEvent, aclrtStreamWaitEvent). */
ACL_FUNC_VISIBILITY aclError aclrtCreateNotify(aclrtNotify *notify, uint64_t flag);
ACL_FUNC_VISIBILITY aclError aclrtDestroyNotify(aclrtNotify notify);
ACL_FUNC_VISIBILITY aclError aclrtRecordNotify(aclrtNotify notify, aclrtStream stream);
ACL_FUNC_VISIBILITY aclError aclrtWaitAndResetNotify(aclrtNotify notify, aclrtStream stream, uint32_t timeout);
ACL_FUNC_VISIBILITY aclError aclrtGetNotifyId(aclrtNotify notify, uint32_t *notifyId);

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
