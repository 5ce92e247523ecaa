/* host_c.h - the device side of a host program in C: one device, one stream, copies. Any error ends the program. */
#ifndef DOPPEL_TESTS_KERNELS_HOST_C_H
#define DOPPEL_TESTS_KERNELS_HOST_C_H

#include <acl/acl.h>

#include <stdio.h>
#include <stdlib.h>

static aclrtStream host_stream;

static void check(aclError error, const char *what) {
    if (error != ACL_SUCCESS) {
        const char *why = aclGetRecentErrMsg();
        fprintf(stderr, "%s failed: %d %s\n", what, error, why ? why : "");
        exit(1);
    }
}

static void host_begin(void) {
    check(aclInit(NULL), "aclInit");
    check(aclrtSetDevice(0), "aclrtSetDevice");
    check(aclrtCreateStream(&host_stream), "aclrtCreateStream");
}
static void host_end(void) {
    check(aclrtDestroyStream(host_stream), "aclrtDestroyStream");
    check(aclrtResetDevice(0), "aclrtResetDevice");
    check(aclFinalize(), "aclFinalize");
}
static void *device_copy(const void *data, size_t bytes) {
    void *memory = NULL;
    check(aclrtMalloc(&memory, bytes, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
    check(aclrtMemcpy(memory, bytes, data, bytes, ACL_MEMCPY_HOST_TO_DEVICE), "aclrtMemcpy");
    return memory;
}
static void device_read(void *data, const void *memory, size_t bytes) {
    check(aclrtSynchronizeStream(host_stream), "aclrtSynchronizeStream");
    check(aclrtMemcpy(data, bytes, memory, bytes, ACL_MEMCPY_DEVICE_TO_HOST), "aclrtMemcpy");
}
static void device_free(void *memory) { check(aclrtFree(memory), "aclrtFree"); }

#endif
