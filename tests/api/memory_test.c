/* Device and host memory: allocation, copies, fills, registration, reserved ranges, and everything done wrong. */
#include "child.h"

static void *device_memory(size_t size) {
    void *memory = NULL;
    CHECK_OK(aclrtSetDevice(0));
    CHECK_OK(aclrtMalloc(&memory, size, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK(memory && (uintptr_t)memory % 64 == 0);
    return memory;
}

TEST(copies_in_all_directions) {
    enum { N = 100003 };
    static uint8_t source[N], result[N];
    uint8_t *one = device_memory(N), *two = device_memory(N);
    for (size_t i = 0; i < N; i++)
        source[i] = (uint8_t)(i * 31 + 7);
    CHECK_OK(aclrtMemcpy(one, N, source, N, ACL_MEMCPY_HOST_TO_DEVICE));
    CHECK_OK(aclrtMemcpy(two, N, one, N, ACL_MEMCPY_DEVICE_TO_DEVICE));
    CHECK_OK(aclrtMemcpy(result, N, two, N, ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK(memcmp(source, result, N) == 0);
    memset(result, 0, N);
    CHECK_OK(aclrtMemcpy(result, N, source, N, ACL_MEMCPY_HOST_TO_HOST));
    CHECK(memcmp(source, result, N) == 0);
    memset(result, 0, N);
    CHECK_OK(aclrtMemcpyAsync(one + 5, N - 5, source, 50, ACL_MEMCPY_DEFAULT, NULL));
    CHECK_OK(aclrtMemcpyAsync(result, N, one + 5, 50, ACL_MEMCPY_DEFAULT, NULL));
    CHECK_OK(aclrtSynchronizeStream(NULL));
    CHECK(memcmp(source, result, 50) == 0 && result[50] == 0);
    CHECK_OK(aclrtMemset(one, N, 0x1ff, N)); /* the low byte */
    CHECK_OK(aclrtMemcpy(result, N, one, N, ACL_MEMCPY_DEVICE_TO_HOST));
    for (size_t i = 0; i < N; i++)
        CHECK(result[i] == 0xff);
    CHECK_OK(aclrtFree(one));
    CHECK_OK(aclrtFree(two));
}

TEST(pitched_copies) {
    enum { WIDTH = 37, HEIGHT = 11, HOST_PITCH = 50, DEVICE_PITCH = 64 };
    uint8_t source[HEIGHT * HOST_PITCH], result[HEIGHT * HOST_PITCH];
    uint8_t *device = device_memory(HEIGHT * DEVICE_PITCH - (DEVICE_PITCH - WIDTH)); /* the last row has no gap */
    for (size_t i = 0; i < sizeof source; i++)
        source[i] = (uint8_t)(i * 13 + 1);
    for (int async = 0; async < 2; async++) {
        memset(result, 0, sizeof result);
        if (async) {
            CHECK_OK(aclrtMemcpy2dAsync(device, DEVICE_PITCH, source, HOST_PITCH, WIDTH, HEIGHT,
                                        ACL_MEMCPY_HOST_TO_DEVICE, NULL));
            CHECK_OK(aclrtMemcpy2dAsync(result, HOST_PITCH, device, DEVICE_PITCH, WIDTH, HEIGHT,
                                        ACL_MEMCPY_DEVICE_TO_HOST, NULL));
            CHECK_OK(aclrtSynchronizeStream(NULL));
        } else {
            CHECK_OK(aclrtMemcpy2d(device, DEVICE_PITCH, source, HOST_PITCH, WIDTH, HEIGHT, ACL_MEMCPY_HOST_TO_DEVICE));
            CHECK_OK(aclrtMemcpy2d(result, HOST_PITCH, device, DEVICE_PITCH, WIDTH, HEIGHT, ACL_MEMCPY_DEVICE_TO_HOST));
        }
        for (size_t i = 0; i < sizeof result; i++)
            CHECK(result[i] == (i % HOST_PITCH < WIDTH ? source[i] : 0));
    }
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM,
                aclrtMemcpy2d(device, 30, source, HOST_PITCH, WIDTH, HEIGHT, ACL_MEMCPY_HOST_TO_DEVICE), "width", "37",
                "30");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM,
                aclrtMemcpy2d(device, DEVICE_PITCH, source, HOST_PITCH, 0, HEIGHT, ACL_MEMCPY_HOST_TO_DEVICE), "width",
                "0");
    CHECK_FAILS(ACL_ERROR_RT_PARAM_INVALID,
                aclrtMemcpy2d(device, DEVICE_PITCH, source, HOST_PITCH, WIDTH, HEIGHT + 1, ACL_MEMCPY_HOST_TO_DEVICE),
                "dst");
    CHECK(aclrtMemcpy2d(device, SIZE_MAX / 2, source, HOST_PITCH, WIDTH, HEIGHT, ACL_MEMCPY_HOST_TO_DEVICE) != 0);
    CHECK(aclrtMemcpy2d(device, DEVICE_PITCH, source, HOST_PITCH, WIDTH, SIZE_MAX, ACL_MEMCPY_HOST_TO_DEVICE) != 0);
}

TEST(wrong_addresses) {
    char host[64] = "";
    char *device = device_memory(64), *freed = device_memory(64);
    CHECK_OK(aclrtFree(freed));
    CHECK_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtFree(freed), "devPtr");
    CHECK_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtFree(host), "devPtr");
    CHECK_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtFree(device + 8), "devPtr");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclrtFree(NULL), "devPtr", "NULL");
    CHECK_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMemcpy(host, 64, host, 64, ACL_MEMCPY_HOST_TO_DEVICE), "dst");
    CHECK_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMemcpy(host, 64, host + 1, 8, ACL_MEMCPY_DEVICE_TO_HOST), "src");
    CHECK_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMemcpy(freed, 64, host, 64, ACL_MEMCPY_HOST_TO_DEVICE), "dst");
    CHECK_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMemcpyAsync(freed, 64, host, 64, ACL_MEMCPY_HOST_TO_DEVICE, NULL),
                "dst");
    CHECK_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMemset(freed, 64, 0, 64), "devPtr");
    /* over the end: of the allocation, and of what the caller says fits */
    CHECK_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMemcpy(device, 80, host, 65, ACL_MEMCPY_HOST_TO_DEVICE), "dst");
    CHECK_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMemcpy(device + 60, 80, host, 5, ACL_MEMCPY_HOST_TO_DEVICE), "dst");
    CHECK_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMemcpy(host, 80, device, 65, ACL_MEMCPY_DEVICE_TO_HOST), "src");
    CHECK_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMemset(device, 100, 0, 65), "devPtr");
    CHECK_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMemsetAsync(device, SIZE_MAX, 0, SIZE_MAX, NULL), "devPtr");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemcpy(device, 10, host, 11, ACL_MEMCPY_HOST_TO_DEVICE), "count", "11",
                "10");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemset(device, 10, 0, 11), "count", "11", "maxCount", "10");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemcpy(NULL, 8, host, 8, ACL_MEMCPY_HOST_TO_DEVICE), "dst", "NULL");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemcpy(device, 8, NULL, 8, ACL_MEMCPY_HOST_TO_DEVICE), "src", "NULL");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemcpy(device, 8, host, 8, (aclrtMemcpyKind)8), "kind", "8");
    CHECK_OK(aclrtMemcpy(device, 64, host, 64, ACL_MEMCPY_HOST_TO_DEVICE));
    CHECK_OK(aclrtFree(device));
}

TEST(wrong_allocations) {
    void *memory = NULL;
    CHECK_OK(aclrtSetDevice(0));
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMalloc(NULL, 8, ACL_MEM_MALLOC_HUGE_FIRST), "devPtr", "NULL");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMalloc(&memory, 0, ACL_MEM_MALLOC_HUGE_FIRST), "size", "0");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMalloc(&memory, 8, (aclrtMemMallocPolicy)77), "policy", "77");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMallocHost(&memory, 0), "size", "0");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMallocHost(NULL, 4), "hostPtr", "NULL");
    static const size_t huge[] = {SIZE_MAX, SIZE_MAX - 31, SIZE_MAX / 2, (size_t)1 << 50};
    for (size_t i = 0; i < sizeof huge / sizeof huge[0]; i++) {
        CHECK_FAILS(ACL_ERROR_RT_MEMORY_ALLOCATION, aclrtMalloc(&memory, huge[i], ACL_MEM_MALLOC_HUGE_FIRST), "size");
        CHECK_FAILS(ACL_ERROR_RT_MEMORY_ALLOCATION, aclrtMallocHost(&memory, huge[i]), "size");
    }
    CHECK(memory == NULL);
}

TEST(host_memory) {
    char *memory = NULL, outside[8];
    aclrtMallocAttribute attribute = {.attr = (aclrtMallocAttrType)9};
    aclrtMallocConfig config = {.attrs = &attribute, .numAttrs = 1};
    CHECK_OK(aclrtSetDevice(0));
    CHECK_OK(aclrtMallocHost((void **)&memory, 5000));
    memset(memory, 1, 5000);
    CHECK_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtFreeHost(outside), "hostPtr");
    CHECK_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtFreeHost(memory + 1), "hostPtr");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclrtFreeHost(NULL), "hostPtr", "NULL");
    CHECK_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtFree(memory), "devPtr");
    CHECK_OK(aclrtFreeHost(memory));
    CHECK_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtFreeHost(memory), "hostPtr");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMallocHostWithCfg((void **)&memory, 8, &config), "attrs[0]", "9");
    attribute.attr = ACL_RT_MEM_ATTR_MODULE_ID;
    CHECK_OK(aclrtMallocHostWithCfg((void **)&memory, 8, &config));
    CHECK_OK(aclrtFreeHost(memory));
}

TEST(memory_info) {
    size_t free_before = 0, free_after = 0, total = 0, entries = 0;
    aclrtMemUsageInfo usage[2];
    CHECK_OK(aclrtSetDevice(0));
    CHECK_OK(aclrtGetMemInfo(ACL_HBM_MEM, &free_before, &total));
    CHECK(free_before <= total && total > 0);
    char *memory = device_memory((size_t)1 << 20);
    CHECK_OK(aclrtGetMemInfo(ACL_HBM_MEM, &free_after, &total));
    CHECK(free_before - free_after >= (size_t)1 << 20 && free_before - free_after <= (size_t)1 << 22);
    CHECK_OK(aclrtGetMemInfo(ACL_DDR_MEM, &free_after, &total)); /* the default chip has none */
    CHECK(free_after == 0 && total == 0);
    CHECK_OK(aclrtGetMemUsageInfo(0, usage, 2, &entries));
    CHECK(entries == 1 && usage[0].curMemSize >= (size_t)1 << 20 && usage[0].memPeakSize >= usage[0].curMemSize);
    CHECK_OK(aclrtFree(memory));
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclrtGetMemInfo((aclrtMemAttr)12, &free_after, &total), "attr", "12");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclrtGetMemInfo(ACL_HBM_MEM, NULL, &total), "free", "NULL");
}

TEST(pointer_attributes) {
    int local;
    void *host = NULL;
    char *device = device_memory(100);
    aclrtPtrAttributes attributes;
    CHECK_OK(aclrtMallocHost(&host, 10));
    CHECK_OK(aclrtPointerGetAttributes(device + 99, &attributes));
    CHECK(attributes.location.type == ACL_MEM_LOCATION_TYPE_DEVICE && attributes.location.id == 0);
    CHECK_OK(aclrtPointerGetAttributes(host, &attributes));
    CHECK(attributes.location.type == ACL_MEM_LOCATION_TYPE_HOST);
    CHECK_OK(aclrtPointerGetAttributes(&local, &attributes));
    CHECK(attributes.location.type == ACL_MEM_LOCATION_TYPE_UNREGISTERED);
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclrtPointerGetAttributes(NULL, &attributes), "ptr", "NULL");
    CHECK_OK(aclrtMemFlush(device, 100));
    CHECK_OK(aclrtMemInvalidate(device, 1));
    CHECK_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMemFlush(device, 101), "devPtr");
    CHECK_OK(aclrtCmoAsync(device, 100, ACL_RT_CMO_TYPE_PREFETCH, NULL));
    CHECK_FAILS(ACL_ERROR_API_NOT_SUPPORT, aclrtCmoAsync(device, 100, ACL_RT_CMO_TYPE_FLUSH, NULL), "cmoType");
    CHECK_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtCmoAsync(&local, 4, ACL_RT_CMO_TYPE_PREFETCH, NULL), "src");
}

TEST(host_registration) {
    static char host[8192];
    void *device = NULL;
    CHECK_OK(aclrtSetDevice(0));
    CHECK_OK(aclrtHostRegister(host, sizeof host, ACL_HOST_REGISTER_MAPPED, &device));
    CHECK(device == host);
    CHECK_OK(aclrtHostGetDevicePointer(host, &device, 0));
    CHECK(device == host);
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclrtHostGetDevicePointer(host, &device, 1), "flag", "1");
    CHECK(aclrtHostRegister(host + 100, 10, ACL_HOST_REGISTER_MAPPED, &device) != ACL_SUCCESS);
    CHECK_OK(aclrtHostUnregister(host));
    CHECK_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtHostUnregister(host), "ptr");
    CHECK_OK(aclrtHostRegisterV2(host, sizeof host, ACL_HOST_REG_MAPPED | ACL_HOST_REG_PINNED));
    CHECK_OK(aclrtHostUnregister(host));
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclrtHostRegister(NULL, 8, ACL_HOST_REGISTER_MAPPED, &device), "ptr", "NULL");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclrtHostRegister(host, 0, ACL_HOST_REGISTER_MAPPED, &device), "size", "0");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclrtHostRegisterV2(host, 8, 1), "flag", "1");
}

TEST(batched_copies) {
    char host[3][16] = {"first", "second", "third"}, back[3][16] = {{0}};
    char *device = device_memory(48);
    void *up[] = {device, device + 16, device + 32}, *down[] = {back[0], back[1], back[2]},
         *from[] = {host[0], host[1], host[2]};
    size_t sizes[] = {16, 16, 16}, room[] = {16, 16, 16}, indexes[] = {0}, fail = 0;
    aclrtMemcpyBatchAttr to_device = {.dstLoc = {0, ACL_MEM_LOCATION_TYPE_DEVICE},
                                      .srcLoc = {0, ACL_MEM_LOCATION_TYPE_HOST}};
    aclrtMemcpyBatchAttr to_host = {.dstLoc = {0, ACL_MEM_LOCATION_TYPE_HOST},
                                    .srcLoc = {0, ACL_MEM_LOCATION_TYPE_DEVICE}};
    CHECK_OK(aclrtMemcpyBatch(up, room, from, sizes, 3, &to_device, indexes, 1, &fail));
    CHECK(fail == SIZE_MAX);
    CHECK_OK(aclrtMemcpyBatchAsync(down, room, up, sizes, 3, &to_host, indexes, 1, &fail, NULL));
    CHECK_OK(aclrtSynchronizeStream(NULL));
    CHECK(memcmp(host, back, sizeof host) == 0);
    sizes[2] = 17;
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemcpyBatch(up, room, from, sizes, 3, &to_device, indexes, 1, &fail),
                "17");
    CHECK(fail == 2);
    sizes[2] = 16;
    up[1] = device + 40;
    CHECK_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMemcpyBatch(up, room, from, sizes, 3, &to_device, indexes, 1, &fail),
                "dst");
    CHECK(fail == 1);
    indexes[0] = 1;
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemcpyBatch(up, room, from, sizes, 3, &to_device, indexes, 1, &fail),
                "attrsIndexes");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemcpyBatch(up, room, from, sizes, 0, &to_device, indexes, 1, &fail),
                "numBatches");
}

TEST(reductions) {
    enum { N = 1003 };
    float a[N], b[N], result[N];
    int32_t x[N], y[N], whole[N];
    char *one = device_memory(sizeof a), *two = device_memory(sizeof b);
    for (int i = 0; i < N; i++) {
        a[i] = (float)((i * 7919) % 1000) - 500, b[i] = (float)((i * 104729) % 1000) - 500;
        x[i] = i * 65537 - 1000000, y[i] = 2000000 - i * 4099;
    }
    for (int kind = ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM; kind <= ACL_RT_MEMCPY_SDMA_AUTOMATIC_MIN; kind++) {
        CHECK_OK(aclrtMemcpy(one, sizeof a, a, sizeof a, ACL_MEMCPY_HOST_TO_DEVICE));
        CHECK_OK(aclrtMemcpy(two, sizeof b, b, sizeof b, ACL_MEMCPY_HOST_TO_DEVICE));
        CHECK_OK(aclrtReduceAsync(one, two, sizeof a, (aclrtReduceKind)kind, ACL_FLOAT, NULL, NULL));
        CHECK_OK(aclrtMemcpyAsync(result, sizeof result, one, sizeof a, ACL_MEMCPY_DEVICE_TO_HOST, NULL));
        CHECK_OK(aclrtSynchronizeStream(NULL));
        for (int i = 0; i < N; i++)
            CHECK(result[i] == (kind == 0   ? a[i] + b[i]
                                : kind == 1 ? (a[i] > b[i] ? a[i] : b[i])
                                            : (a[i] < b[i] ? a[i] : b[i])));
        CHECK_OK(aclrtMemcpy(one, sizeof x, x, sizeof x, ACL_MEMCPY_HOST_TO_DEVICE));
        CHECK_OK(aclrtMemcpy(two, sizeof y, y, sizeof y, ACL_MEMCPY_HOST_TO_DEVICE));
        CHECK_OK(aclrtReduceAsync(one, two, sizeof x, (aclrtReduceKind)kind, ACL_INT32, NULL, NULL));
        CHECK_OK(aclrtMemcpyAsync(whole, sizeof whole, one, sizeof x, ACL_MEMCPY_DEVICE_TO_HOST, NULL));
        CHECK_OK(aclrtSynchronizeStream(NULL));
        for (int i = 0; i < N; i++)
            CHECK(whole[i] == (kind == 0   ? x[i] + y[i]
                               : kind == 1 ? (x[i] > y[i] ? x[i] : y[i])
                                           : (x[i] < y[i] ? x[i] : y[i])));
    }
    CHECK_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtReduceAsync(a, two, 64, 0, ACL_FLOAT, NULL, NULL), "dst");
    CHECK_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtReduceAsync(one, two, sizeof a + 4, 0, ACL_FLOAT, NULL, NULL), "dst");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclrtReduceAsync(one, two, 63, 0, ACL_FLOAT, NULL, NULL), "count", "63");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclrtReduceAsync(one + 2, two, 64, 0, ACL_FLOAT, NULL, NULL), "dst",
                "aligned");
    CHECK_FAILS(ACL_ERROR_API_NOT_SUPPORT, aclrtReduceAsync(one, two, 64, 0, ACL_DOUBLE, NULL, NULL), "type", "11");
    CHECK_FAILS(ACL_ERROR_API_NOT_SUPPORT, aclrtReduceAsync(one, two, 64, 3, ACL_FLOAT, NULL, NULL), "kind");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclrtReduceAsync(one, two, 64, 4, ACL_FLOAT, NULL, NULL), "kind", "4");
}

TEST(reserved_addresses) {
    size_t granularity = 0;
    void *range = NULL;
    aclrtDrvMemHandle handle = NULL;
    aclrtPhysicalMemProp prop = {.memAttr = ACL_HBM_MEM_HUGE, .location = {0, ACL_MEM_LOCATION_TYPE_DEVICE}};
    CHECK_OK(aclrtSetDevice(0));
    CHECK_OK(aclrtMemGetAllocationGranularity(&prop, ACL_RT_MEM_ALLOC_GRANULARITY_RECOMMENDED, &granularity));
    CHECK(granularity >= 4096 && (granularity & (granularity - 1)) == 0);
    CHECK_OK(aclrtReserveMemAddress(&range, 1024 * granularity, 0, NULL, 1));
    CHECK_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMemset(range, 8, 1, 8), "devPtr");
    CHECK_OK(aclrtMallocPhysical(&handle, granularity, &prop, 0));
    CHECK_OK(aclrtMapMem(range, granularity, 0, handle, 0));
    uint32_t word = 0;
    CHECK_OK(aclrtMemset(range, granularity, 0x11, granularity));
    CHECK_OK(aclrtMemcpy(&word, 4, (char *)range + granularity - 4, 4, ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK(word == 0x11111111);
    CHECK_OK(aclrtUnmapMem(range));
    CHECK_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMemset(range, 8, 1, 8), "devPtr");
    CHECK_OK(aclrtFreePhysical(handle));
    CHECK_FAILS(ACL_ERROR_RT_INVALID_HANDLE, aclrtFreePhysical(handle), "handle");
    CHECK_FAILS(ACL_ERROR_RT_INVALID_HANDLE, aclrtMapMem(range, granularity, 0, handle, 0), "handle");
    CHECK_OK(aclrtReleaseMemAddress(range));
    CHECK(aclrtReleaseMemAddress(range) != ACL_SUCCESS);
    prop.location.id = 8;
    CHECK_FAILS(ACL_ERROR_RT_INVALID_DEVICEID, aclrtMallocPhysical(&handle, granularity, &prop, 0), "8");
    prop.location = (aclrtMemLocation){0, ACL_MEM_LOCATION_TYPE_HOST};
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMallocPhysical(&handle, granularity, &prop, 0), "prop->location.type");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclrtReserveMemAddress(&range, granularity, 0, &prop, 0), "expectPtr");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_in_all_directions),
        cmocka_unit_test(pitched_copies),
        cmocka_unit_test(wrong_addresses),
        cmocka_unit_test(wrong_allocations),
        cmocka_unit_test(host_memory),
        cmocka_unit_test(memory_info),
        cmocka_unit_test(pointer_attributes),
        cmocka_unit_test(host_registration),
        cmocka_unit_test(batched_copies),
        cmocka_unit_test(reductions),
        cmocka_unit_test(reserved_addresses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
