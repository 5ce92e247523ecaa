/* Devices and contexts: counts, current device per thread, attributes, peers, limits. Runs with DOPPEL_DEVICES=3. */
#include "child.h"

#include <pthread.h>

TEST(device_count_is_the_first_call) {
    uint32_t count = 0;
    CHECK_OK(aclrtGetDeviceCount(&count));
    CHECK(count == 3);
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclrtGetDeviceCount(NULL), "count", "NULL");
}

TEST(visible_devices_are_renumbered) {
    uint32_t count = 0;
    int32_t number = -1;
    setenv("ASCEND_RT_VISIBLE_DEVICES", "2,0", 1);
    CHECK_OK(aclrtGetDeviceCount(&count));
    CHECK(count == 2);
    CHECK_OK(aclrtGetLogicDevIdByUserDevId(0, &number));
    CHECK(number == 2);
    CHECK_OK(aclrtGetLogicDevIdByUserDevId(1, &number));
    CHECK(number == 0);
    CHECK_FAILS(ACL_ERROR_RT_INVALID_DEVICEID, aclrtSetDevice(2), "deviceId", "2");
}

TEST(eight_devices) {
    uint32_t count = 0;
    int32_t device = -1;
    setenv("DOPPEL_DEVICES", "8", 1);
    CHECK_OK(aclrtGetDeviceCount(&count));
    CHECK(count == 8);
    CHECK_OK(aclrtSetDevice(7));
    CHECK_OK(aclrtGetDevice(&device));
    CHECK(device == 7);
    CHECK_FAILS(ACL_ERROR_RT_INVALID_DEVICEID, aclrtSetDevice(8), "deviceId", "8");
}

TEST(another_chip) {
    size_t free_bytes = 0, total = 0;
    int64_t cores = 0;
    setenv("DOPPEL_SOC", "Ascend310P3", 1);
    CHECK(strcmp(aclrtGetSocName(), "Ascend310P3") == 0);
    CHECK_OK(aclrtSetDevice(0));
    CHECK_OK(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_CUBE_CORE_NUM, &cores));
    CHECK(cores == 8);
    CHECK_OK(aclrtGetMemInfo(ACL_DDR_MEM, &free_bytes, &total)); /* this chip has DDR, not HBM */
    CHECK(free_bytes > 0 && free_bytes <= total);
    CHECK_OK(aclrtGetMemInfo(ACL_HBM_MEM, &free_bytes, &total));
    CHECK(total == 0);
}

TEST(run_mode_is_host) {
    aclrtRunMode mode = ACL_DEVICE;
    CHECK_OK(aclrtGetRunMode(&mode));
    CHECK(mode == ACL_HOST);
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclrtGetRunMode(NULL), "runMode");
}

TEST(nothing_is_current_at_first) {
    int32_t device = 7;
    aclrtContext context = NULL;
    aclrtStream stream = NULL;
    void *memory = NULL;
    CHECK_FAILS(ACL_ERROR_RT_CONTEXT_NULL, aclrtGetDevice(&device), "aclrtSetDevice");
    CHECK_FAILS(ACL_ERROR_RT_CONTEXT_NULL, aclrtGetCurrentContext(&context), "aclrtGetCurrentContext");
    CHECK_FAILS(ACL_ERROR_RT_CONTEXT_NULL, aclrtSynchronizeDevice(), "aclrtSynchronizeDevice");
    CHECK_FAILS(ACL_ERROR_RT_CONTEXT_NULL, aclrtSynchronizeStream(NULL), "aclrtSynchronizeStream");
    CHECK_FAILS(ACL_ERROR_RT_CONTEXT_NULL, aclrtCreateStream(&stream), "aclrtCreateStream");
    CHECK_FAILS(ACL_ERROR_RT_CONTEXT_NULL, aclrtMalloc(&memory, 8, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
    CHECK(device == 7 && !context && !stream && !memory);
}

TEST(set_device_repeated_needs_one_reset) {
    int32_t device = -1, active = -1;
    uint32_t flags = 9;
    for (int i = 0; i < 5; i++)
        CHECK_OK(aclrtSetDevice(1));
    CHECK_OK(aclrtGetDevice(&device));
    CHECK(device == 1);
    CHECK_OK(aclrtGetPrimaryCtxState(1, &flags, &active));
    CHECK(active == 1 && flags == 0);
    CHECK_OK(aclrtResetDevice(1));
    CHECK_OK(aclrtGetPrimaryCtxState(1, &flags, &active));
    CHECK(active == 0);
    CHECK(aclrtResetDevice(1) != ACL_SUCCESS || aclGetRecentErrMsg() == NULL);
    CHECK_OK(aclrtSetDevice(1));
    CHECK_OK(aclrtResetDeviceForce(1));
}

TEST(wrong_devices) {
    static const int32_t wrong[] = {-1, 3, 64, INT32_MAX, INT32_MIN};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char text[16];
        aclrtContext context = NULL;
        aclrtDeviceStatus status;
        snprintf(text, sizeof text, "%d", wrong[i]);
        CHECK_FAILS(ACL_ERROR_RT_INVALID_DEVICEID, aclrtSetDevice(wrong[i]), "deviceId", text);
        CHECK_FAILS(ACL_ERROR_RT_INVALID_DEVICEID, aclrtResetDevice(wrong[i]), "deviceId", text);
        CHECK_FAILS(ACL_ERROR_RT_INVALID_DEVICEID, aclrtResetDeviceForce(wrong[i]), "deviceId", text);
        CHECK_FAILS(ACL_ERROR_RT_INVALID_DEVICEID, aclrtCreateContext(&context, wrong[i]), "deviceId", text);
        CHECK_FAILS(ACL_ERROR_RT_INVALID_DEVICEID, aclrtQueryDeviceStatus(wrong[i], &status), "deviceId", text);
        CHECK(context == NULL);
    }
}

static void *thread_with_its_own_device(void *unused) {
    (void)unused;
    int32_t device = -1;
    CHECK_FAILS(ACL_ERROR_RT_CONTEXT_NULL, aclrtGetDevice(&device), "aclrtGetDevice");
    CHECK_OK(aclrtSetDevice(2));
    CHECK_OK(aclrtGetDevice(&device));
    CHECK(device == 2);
    return NULL;
}

TEST(current_device_belongs_to_the_thread) {
    pthread_t thread;
    int32_t device = -1;
    CHECK_OK(aclrtSetDevice(1));
    CHECK(pthread_create(&thread, NULL, thread_with_its_own_device, NULL) == 0 && pthread_join(thread, NULL) == 0);
    CHECK_OK(aclrtGetDevice(&device));
    CHECK(device == 1);
}

TEST(contexts) {
    aclrtContext first = NULL, second = NULL, current = NULL, primary = NULL;
    int32_t device = -1;
    CHECK_OK(aclrtSetDevice(0));
    CHECK_OK(aclrtGetCurrentContext(&primary));
    CHECK_OK(aclrtCreateContext(&first, 1));
    CHECK_OK(aclrtGetDevice(&device));
    CHECK(device == 1);
    CHECK_OK(aclrtCreateContext(&second, 2));
    CHECK_OK(aclrtSetCurrentContext(first));
    CHECK_OK(aclrtGetCurrentContext(&current));
    CHECK(current == first);
    CHECK_OK(aclrtSynchronizeStream(NULL));
    CHECK_OK(aclrtDestroyContext(first));
    CHECK_FAILS(ACL_ERROR_RT_INVALID_HANDLE, aclrtDestroyContext(first), "context");
    CHECK_FAILS(ACL_ERROR_RT_INVALID_HANDLE, aclrtSetCurrentContext(first), "context");
    CHECK_FAILS(ACL_ERROR_RT_INVALID_HANDLE, aclrtSetCurrentContext(&device), "context");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclrtSetCurrentContext(NULL), "context", "NULL");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclrtCreateContext(NULL, 0), "context", "NULL");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclrtDestroyContext(primary), "aclrtDestroyContext");
    CHECK_OK(aclrtSetCurrentContext(second));
    CHECK_OK(aclrtDestroyContext(second));
}

TEST(device_attributes) {
    int64_t value = -1;
    aclrtDeviceStatus status = ACL_RT_DEVICE_STATUS_ABNORMAL;
    aclrtUuid one, two;
    CHECK_OK(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_VECTOR_CORE_NUM, &value));
    CHECK(value == 40);
    CHECK_OK(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_AICORE_CORE_NUM, &value));
    CHECK(value == 20);
    CHECK_OK(aclrtGetDeviceInfo(2, ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE, &value));
    CHECK(value >= (int64_t)1 << 30);
    CHECK_OK(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_L2_CACHE_SIZE, &value));
    CHECK(value > 0);
    CHECK_FAILS(ACL_ERROR_API_NOT_SUPPORT, aclrtGetDeviceInfo(0, ACL_DEV_ATTR_WARP_SIZE, &value), "attr", "4");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclrtGetDeviceInfo(0, (aclrtDevAttr)399, &value), "attr", "399");
    CHECK_FAILS(ACL_ERROR_RT_INVALID_DEVICEID, aclrtGetDeviceInfo(3, ACL_DEV_ATTR_L2_CACHE_SIZE, &value), "3");
    CHECK_OK(aclrtQueryDeviceStatus(2, &status));
    CHECK(status == ACL_RT_DEVICE_STATUS_NORMAL);
    CHECK_OK(aclrtDeviceGetUuid(0, &one));
    CHECK_OK(aclrtDeviceGetUuid(1, &two));
    CHECK(memcmp(&one, &two, sizeof one) != 0);
    CHECK_OK(aclrtDeviceGetUuid(0, &two));
    CHECK(memcmp(&one, &two, sizeof one) == 0);
    int32_t pid = 0;
    CHECK_OK(aclrtDeviceGetBareTgid(&pid));
    CHECK(pid == getpid());
    CHECK_OK(aclrtSetTsDevice(ACL_TS_ID_AIVECTOR));
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclrtSetTsDevice(ACL_TS_ID_RESERVED), "tsId", "2");
}

TEST(utilisation) {
    aclrtUtilizationInfo info = {.utilizationExtend = NULL};
    CHECK_OK(aclrtGetDeviceUtilizationRate(0, &info));
    CHECK(info.vectorUtilization >= 0 && info.vectorUtilization <= 100);
    CHECK(info.memoryUtilization >= 0 && info.memoryUtilization <= 100);
    CHECK(info.aicpuUtilization == DEVICE_UTILIZATION_NOT_SUPPORT);
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclrtGetDeviceUtilizationRate(0, NULL), "utilizationInfo");
    CHECK_FAILS(ACL_ERROR_RT_INVALID_DEVICEID, aclrtGetDeviceUtilizationRate(9, &info), "9");
}

TEST(peers) {
    int32_t can = -1;
    CHECK_OK(aclrtDeviceCanAccessPeer(&can, 0, 1));
    CHECK(can == 1);
    CHECK_OK(aclrtDeviceCanAccessPeer(&can, 1, 1));
    CHECK(can == 0);
    CHECK_FAILS(ACL_ERROR_RT_INVALID_DEVICEID, aclrtDeviceCanAccessPeer(&can, 0, 3), "3");
    CHECK_FAILS(ACL_ERROR_RT_CONTEXT_NULL, aclrtDeviceEnablePeerAccess(1, 0), "aclrtDeviceEnablePeerAccess");
    CHECK_OK(aclrtSetDevice(0));
    CHECK_OK(aclrtDeviceEnablePeerAccess(1, 0));
    CHECK_OK(aclrtDeviceEnablePeerAccess(1, 0));
    CHECK_OK(aclrtDeviceDisablePeerAccess(1));
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclrtDeviceEnablePeerAccess(1, 2), "flags", "2");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclrtDeviceEnablePeerAccess(0, 0), "peerDeviceId", "0");
    /* memory of one device is copied to another */
    void *here = NULL, *there = NULL;
    char text[8] = "";
    CHECK_OK(aclrtMalloc(&here, 8, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK_OK(aclrtSetDevice(1));
    CHECK_OK(aclrtMalloc(&there, 8, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK_OK(aclrtMemcpy(here, 8, "doppel!", 8, ACL_MEMCPY_HOST_TO_DEVICE));
    CHECK_OK(aclrtMemcpy(there, 8, here, 8, ACL_MEMCPY_DEVICE_TO_DEVICE));
    CHECK_OK(aclrtMemcpy(text, 8, there, 8, ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK(strcmp(text, "doppel!") == 0);
    CHECK_OK(aclrtFree(here));
    CHECK_OK(aclrtFree(there));
}

TEST(settings) {
    int64_t value = -1;
    uint64_t actual = 0;
    uint32_t cores = 0;
    aclrtFloatOverflowMode mode = ACL_RT_OVERFLOW_MODE_UNDEF;
    CHECK_FAILS(ACL_ERROR_RT_SYSPARAMOPT_NOT_SET, aclrtGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value), "opt", "0");
    CHECK_OK(aclrtSetSysParamOpt(ACL_OPT_DETERMINISTIC, 1));
    CHECK_OK(aclrtGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value));
    CHECK(value == 1);
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclrtSetSysParamOpt((aclSysParamOpt)9, 1), "opt", "9");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclrtSetSysParamOpt(ACL_OPT_DETERMINISTIC, 2), "value", "2");
    CHECK_FAILS(ACL_ERROR_RT_CONTEXT_NULL, aclrtCtxSetSysParamOpt(ACL_OPT_DETERMINISTIC, 1), "aclrtCtxSetSysParamOpt");
    CHECK_OK(aclrtSetOpExecuteTimeOut(5));
    CHECK_OK(aclrtSetOpExecuteTimeOutV2(5, &actual));
    CHECK(actual == 1000);
    CHECK_OK(aclrtSetOpExecuteTimeOutV2(UINT64_MAX, &actual));
    CHECK_OK(aclrtSetOpExecuteTimeOut(0));
    CHECK_OK(aclrtSetOpWaitTimeout(0));
    CHECK_OK(aclrtGetDeviceSatMode(&mode));
    CHECK(mode == ACL_RT_OVERFLOW_MODE_INFNAN);
    CHECK_OK(aclrtSetDeviceSatMode(mode));
    CHECK_FAILS(ACL_ERROR_API_NOT_SUPPORT, aclrtSetDeviceSatMode(ACL_RT_OVERFLOW_MODE_SATURATION), "mode", "0");
    CHECK_OK(aclrtGetDeviceResLimit(0, ACL_RT_DEV_RES_VECTOR_CORE, &cores));
    CHECK(cores == 40);
    CHECK_OK(aclrtSetDeviceResLimit(0, ACL_RT_DEV_RES_VECTOR_CORE, 40));
    CHECK_FAILS(ACL_ERROR_API_NOT_SUPPORT, aclrtSetDeviceResLimit(0, ACL_RT_DEV_RES_VECTOR_CORE, 8), "value", "8",
                "40");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclrtSetDeviceResLimit(0, ACL_RT_DEV_RES_CUBE_CORE, 41), "value", "41");
    CHECK_OK(aclrtResetDeviceResLimit(0));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(device_count_is_the_first_call),
        cmocka_unit_test(visible_devices_are_renumbered),
        cmocka_unit_test(eight_devices),
        cmocka_unit_test(another_chip),
        cmocka_unit_test(run_mode_is_host),
        cmocka_unit_test(nothing_is_current_at_first),
        cmocka_unit_test(set_device_repeated_needs_one_reset),
        cmocka_unit_test(wrong_devices),
        cmocka_unit_test(current_device_belongs_to_the_thread),
        cmocka_unit_test(contexts),
        cmocka_unit_test(device_attributes),
        cmocka_unit_test(utilisation),
        cmocka_unit_test(peers),
        cmocka_unit_test(settings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
