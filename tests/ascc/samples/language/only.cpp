#include "acl/acl.h"
extern "C" void run_add_two(void *x, void *stream);
int main() {
    int *device = nullptr, value = 1;
    aclrtSetDevice(0);
    aclrtMalloc((void **)&device, 32, ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMemcpy(device, 4, &value, 4, ACL_MEMCPY_HOST_TO_DEVICE);
    run_add_two(device, nullptr);
    aclrtSynchronizeStream(nullptr);
    aclrtMemcpy(&value, 4, device, 4, ACL_MEMCPY_DEVICE_TO_HOST);
    return value == 3 ? 0 : 1;
}
