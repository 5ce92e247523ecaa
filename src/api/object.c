#include "api/object.h"

#include <pthread.h>

#include "base/memory.h"
#include "runtime/fork.h"

/* Open addressing with linear probing over the addresses of live objects. Removal shifts the rest of the run back. */
typedef struct slot {
    const void *object; /* NULL = empty */
    dp_object_kind kind;
} slot;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static dp_fork_part fork_part = {.floor = DP_FORK_API, .lock = &lock};
static slot *slots;
static size_t capacity, used; /* capacity is 0 or a power of two */

static const char *kind_name(dp_object_kind kind) {
    switch (kind) {
    case DP_OBJECT_TENSOR_DESC:
        return "tensor description of aclCreateTensorDesc";
    case DP_OBJECT_DATA_BUFFER:
        return "data buffer of aclCreateDataBuffer";
    case DP_OBJECT_STREAM_CONFIG:
        return "configuration of aclrtCreateStreamConfigHandle";
    case DP_OBJECT_TENSOR:
        return "aclTensor of aclCreateTensor";
    case DP_OBJECT_SCALAR:
        return "aclScalar of aclCreateScalar";
    case DP_OBJECT_INT_ARRAY:
        return "aclIntArray of aclCreateIntArray";
    case DP_OBJECT_FLOAT_ARRAY:
        return "aclFloatArray of aclCreateFloatArray";
    case DP_OBJECT_BOOL_ARRAY:
        return "aclBoolArray of aclCreateBoolArray";
    case DP_OBJECT_TENSOR_LIST:
        return "aclTensorList of aclCreateTensorList";
    case DP_OBJECT_SCALAR_LIST:
        return "aclScalarList of aclCreateScalarList";
    case DP_OBJECT_OP_EXECUTOR:
        return "aclOpExecutor of a GetWorkspaceSize call that was not used up";
    case DP_OBJECT_OP_ATTR:
        return "aclopAttr of aclopCreateAttr";
    case DP_OBJECT_OP_HANDLE:
        return "aclopHandle of aclopCreateHandle";
    case DP_OBJECT_MODEL_DESC:
        return "model description of aclmdlCreateDesc";
    case DP_OBJECT_DATASET:
        return "data set of aclmdlCreateDataset";
    case DP_OBJECT_DVPP_CHANNEL:
        return "channel description of acldvppCreateChannelDesc";
    case DP_OBJECT_DVPP_PICTURE:
        return "picture description of acldvppCreatePicDesc";
    case DP_OBJECT_DVPP_BATCH:
        return "batch of acldvppCreateBatchPicDesc";
    case DP_OBJECT_DVPP_ROI:
        return "area of acldvppCreateRoiConfig";
    case DP_OBJECT_DVPP_RESIZE:
        return "configuration of acldvppCreateResizeConfig";
    case DP_OBJECT_DVPP_JPEGE:
        return "configuration of acldvppCreateJpegeConfig";
    case DP_OBJECT_DVPP_BORDER:
        return "configuration of acldvppCreateBorderConfig";
    case DP_OBJECT_DVPP_HIST:
        return "histogram of acldvppCreateHist";
    case DP_OBJECT_DVPP_LUT:
        return "table of acldvppCreateLutMap";
    case DP_OBJECT_AIPP:
        return "settings of aclmdlCreateAIPP";
    case DP_OBJECT_MODEL_CONFIG:
        return "options of a load (aclmdlCreateConfigHandle)";
    case DP_OBJECT_EXEC_CONFIG:
        return "options of a run (aclmdlCreateExecConfigHandle)";
    }
    return "object";
}

static size_t home_of(const void *object) {
    return ((uintptr_t)object >> 6) * 0x9E3779B97F4A7C15ull & (capacity - 1);
}

static slot *find(const void *object) {
    if (!capacity || !object)
        return NULL;
    for (size_t i = home_of(object); slots[i].object; i = (i + 1) & (capacity - 1))
        if (slots[i].object == object)
            return &slots[i];
    return NULL;
}

static void insert(slot entry) {
    size_t i = home_of(entry.object);
    while (slots[i].object)
        i = (i + 1) & (capacity - 1);
    slots[i] = entry;
}

static bool grow(void) {
    size_t old_capacity = capacity, new_capacity = capacity ? 2 * capacity : 64;
    slot *old = slots, *fresh = dp_alloc(DP_MEM_RUNTIME, new_capacity * sizeof *fresh);
    if (!fresh)
        return false;
    slots = fresh;
    capacity = new_capacity;
    for (size_t i = 0; i < old_capacity; i++)
        if (old[i].object)
            insert(old[i]);
    dp_free(old);
    return true;
}

static void erase(slot *entry) {
    size_t hole = (size_t)(entry - slots), mask = capacity - 1;
    for (size_t i = (hole + 1) & mask; slots[i].object; i = (i + 1) & mask) {
        size_t home = home_of(slots[i].object);
        if (((i - home) & mask) >= ((i - hole) & mask)) {
            slots[hole] = slots[i];
            hole = i;
        }
    }
    slots[hole].object = NULL;
    if (--used == 0) { /* so that a program that released everything leaves nothing behind */
        dp_free(slots);
        slots = NULL;
        capacity = 0;
    }
}

dp_status dp_object_adopt(dp_object_kind kind, void *object) {
    dp_fork_lock(&fork_part);
    bool room = 4 * (used + 1) <= 3 * capacity || grow();
    if (room) {
        insert((slot){object, kind});
        used++;
    }
    pthread_mutex_unlock(&lock);
    return room ? DP_OK : dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory to register a %s: free some", kind_name(kind));
}

void *dp_object_create(dp_object_kind kind, size_t size_bytes) {
    void *object = dp_alloc(DP_MEM_RUNTIME, size_bytes);
    if (object && dp_object_adopt(kind, object) == DP_OK)
        return object;
    dp_free(object);
    dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for a %s (%zu bytes): free some", kind_name(kind), size_bytes);
    return NULL;
}

static dp_status not_live(dp_object_kind kind, const void *handle, const char *argument) {
    if (!handle)
        return dp_fail(DP_ERR_HANDLE, "%s is NULL, but must be a live %s", argument, kind_name(kind));
    return dp_fail(DP_ERR_HANDLE, "%s is %p, but must be a live %s: it was destroyed or never was one", argument,
                   handle, kind_name(kind));
}

void *dp_object_get(dp_object_kind kind, const void *handle, const char *argument) {
    pthread_mutex_lock(&lock);
    slot *entry = find(handle);
    bool live = entry && entry->kind == kind;
    pthread_mutex_unlock(&lock);
    if (live)
        return (void *)(uintptr_t)handle;
    not_live(kind, handle, argument);
    return NULL;
}

void *dp_object_take(dp_object_kind kind, const void *handle, const char *argument) {
    pthread_mutex_lock(&lock);
    slot *entry = find(handle);
    bool live = entry && entry->kind == kind;
    if (live)
        erase(entry);
    pthread_mutex_unlock(&lock);
    if (live)
        return (void *)(uintptr_t)handle;
    not_live(kind, handle, argument);
    return NULL;
}

dp_status dp_object_destroy(dp_object_kind kind, const void *handle, const char *argument) {
    void *object = dp_object_take(kind, handle, argument);
    dp_free(object);
    return object ? DP_OK : DP_ERR_HANDLE;
}
