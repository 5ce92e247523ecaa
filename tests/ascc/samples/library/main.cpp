#include <cstdio>
#include "acl/acl.h"
#include "aclrtlaunch_negate.h"
#include "aclrtlaunch_scale.h"
#include "aclrtlaunch_shift.h"
int main() {
    float *device = nullptr, host[2] = {2, 0.5f};
    aclInit(nullptr);
    aclrtSetDevice(0);
    aclrtStream stream = nullptr;
    aclrtCreateStream(&stream);
    aclrtMalloc((void **)&device, 32, ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMemcpy(device, 8, host, 8, ACL_MEMCPY_HOST_TO_DEVICE);
    if (ACLRT_LAUNCH_KERNEL(scale)(1, stream, device, 5) != 0)
        return 2;
    ACLRT_LAUNCH_KERNEL(shift)(1, stream, (uint8_t *)device, device + 1);
    aclrtlaunch_negate(1, stream, device);
    if (ACLRT_LAUNCH_KERNEL(negate)(0, stream, device) == 0)
        return 3;
    aclrtSynchronizeStream(stream);
    aclrtMemcpy(host, 4, device, 4, ACL_MEMCPY_DEVICE_TO_HOST);
    std::printf("%g\n", host[0]);
    return host[0] == -31.5f ? 0 : 1;
}
