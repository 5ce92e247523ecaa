#include "api/api.h"

#define ENABLE_DVPP_INTERFACE
#include "acl/acl_op_compiler.h"
#include "acl/ops/acl_dvpp.h"

#define DP_REASON_HARDWARE "a simulated device has no hardware to repair; reset the device instead"
#define DP_REASON_OVERFLOW "there is no overflow status word; run the program under doppel check to find overflows"
#define DP_REASON_GROUPS "a chip is not divided into computing groups; use the whole device"
#define DP_REASON_PROCESSES "device memory and events do not cross processes; use threads, or copy through host memory"
#define DP_REASON_NOTIFY "streams have no notifications; use events (aclrtRecordEvent, aclrtStreamWaitEvent)"
#define DP_REASON_WORDS "streams do not wait for or write device words; use events"
#define DP_REASON_BINARIES                                                                                             \
    "a device binary cannot run on a CPU; compile the kernel's source with ascc and launch it with <<<>>>"
#define DP_REASON_ALLOCATOR "operators take their work space from the caller; leave the allocator unregistered"
#define DP_REASON_MODELS "this version has no such way to load, run or look into a model; see docs/models.md for those that it has"
#define DP_REASON_OP_MODELS                                                                                            \
    "a compiled operator cannot run on a CPU; call aclopExecute without: all types of docs/aclop.md are there"
#define DP_REASON_OP_KERNELS                                                                                           \
    "operators are not found by kernels of the application; launch the kernel with <<<>>> instead"
#define DP_REASON_OP_DUMP "arguments of device tasks are not dumped; DOPPEL_LOG=ops prints every executed operator"
#define DP_REASON_OP_GRAPH "a single operator makes no graph; DOPPEL_LOG=ops prints every executed operator"
#define DP_REASON_PYRAMID "pictures are not filtered by this version; halve them with acldvppVpcResizeAsync and interpolation 4 (area)"
#define DP_REASON_VIDEO "this version knows pictures, but no video: decode or encode it outside, and take the pictures"
#define DP_REASON_COLLECTIVES "there is no collective communication in this version"

/* Nothing of a refused call is looked at. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

#define DP_REFUSED_CODE(name, parameters, reason)                                                                      \
    aclError name parameters {                                                                                         \
        dp_api_call call = DP_API_CALL();                                                                              \
        return dp_api_refuse(&call, reason);                                                                           \
    }
#define DP_REFUSED_VALUE(type, name, parameters, value, reason)                                                        \
    type name parameters {                                                                                             \
        dp_api_call call = DP_API_CALL();                                                                              \
        dp_api_refuse(&call, reason);                                                                                  \
        return value;                                                                                                  \
    }
#include "api/refused.def"
