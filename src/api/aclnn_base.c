#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/aclnn.h"
#include "api/element.h"
#include "api/object.h"
#include "base/half.h"
#include "base/memory.h"

enum { STORAGE_DIMS = 16 };
#define LIST_MAX ((uint64_t)1 << 24)

aclnnStatus aclnnInit(const char *configPath) {
    dp_api_call call = DP_API_CALL();
    if (configPath && configPath[0] && access(configPath, R_OK) != 0)
        return dp_aclnn_end(
            &call,
            dp_fail(DP_ERR_ARGUMENT, "configPath is \"%s\", which cannot be read: pass NULL or a file", configPath));
    return dp_aclnn_end(&call, DP_OK);
}

aclnnStatus aclnnFinalize(void) {
    dp_api_call call = DP_API_CALL();
    return dp_aclnn_end(&call, DP_OK);
}

/* Tensors. */

static dp_status fill_tensor(aclTensor *to, const int64_t *dims, uint64_t rank, aclDataType type, const int64_t *stride,
                             int64_t offset, aclFormat format, const int64_t *storage, uint64_t storage_rank,
                             void *data) {
    if (rank > DP_TENSOR_DIMS)
        return dp_fail(DP_ERR_ARGUMENT, "viewDimsNum is %llu, but must be at most %d", (unsigned long long)rank,
                       DP_TENSOR_DIMS);
    if (rank && !dims)
        return dp_fail(DP_ERR_NOT_FOUND, "viewDims is NULL, but must be viewDimsNum = %llu sizes",
                       (unsigned long long)rank);
    if (storage_rank > STORAGE_DIMS)
        return dp_fail(DP_ERR_ARGUMENT, "storageDimsNum is %llu, but must be at most %d",
                       (unsigned long long)storage_rank, STORAGE_DIMS);
    if (storage_rank && !storage)
        return dp_fail(DP_ERR_NOT_FOUND, "storageDims is NULL, but must be storageDimsNum = %llu sizes",
                       (unsigned long long)storage_rank);
    if (!dp_acl_type_known(type))
        return dp_fail(DP_ERR_ARGUMENT, "dataType is %d, but must be a value of aclDataType", (int)type);
    if (!dp_acl_format_known(format))
        return dp_fail(DP_ERR_ARGUMENT, "format is %d, but must be a value of aclFormat", (int)format);
    aclTensor made = {.type = type, .storage_rank = (uint32_t)storage_rank};
    made.view = (dp_tensor){
        .element = dp_aclnn_element(type), .format = format, .rank = (int32_t)rank, .offset = offset, .base = data};
    if (rank)
        memcpy(made.view.dims, dims, rank * sizeof *dims);
    if (storage_rank)
        memcpy(made.storage_dims, storage, storage_rank * sizeof *storage);
    int64_t step = 1;
    for (int d = (int)rank - 1; d >= 0; d--) {
        made.view.strides[d] = stride ? stride[d] : step;
        if (!stride && made.view.dims[d] > 0 && __builtin_mul_overflow(step, made.view.dims[d], &step))
            return dp_fail(DP_ERR_ARGUMENT, "viewDims[%d] is %lld, which makes more elements than any memory holds", d,
                           (long long)made.view.dims[d]);
    }
    dp_status status = dp_tensor_check(&made.view, "tensor");
    if (status != DP_OK)
        return status;
    dp_tensor_settle(&made.view);
    *to = made;
    return DP_OK;
}

aclTensor *aclCreateTensor(const int64_t *viewDims, uint64_t viewDimsNum, aclDataType dataType, const int64_t *stride,
                           int64_t offset, aclFormat format, const int64_t *storageDims, uint64_t storageDimsNum,
                           void *tensorData) {
    dp_api_call call = DP_API_CALL();
    aclTensor made;
    dp_status status = fill_tensor(&made, viewDims, viewDimsNum, dataType, stride, offset, format, storageDims,
                                   storageDimsNum, tensorData);
    aclTensor *tensor = status == DP_OK ? dp_object_create(DP_OBJECT_TENSOR, sizeof *tensor) : NULL;
    if (tensor)
        *tensor = made;
    else if (status == DP_OK)
        status = DP_ERR_OUT_OF_MEMORY;
    dp_aclnn_end(&call, status);
    return tensor;
}

static dp_status null_argument(const char *name, const char *expected) {
    return dp_fail(DP_ERR_NOT_FOUND, "%s is NULL, but must be %s", name, expected);
}

/* out_object is the address of a pointer; it becomes NULL when the object cannot be had. */
static dp_status get(dp_object_kind kind, const void *handle, const char *name, void *out_object) {
    void *object = handle ? dp_object_get(kind, handle, name) : NULL;
    memcpy(out_object, &object, sizeof object);
    if (!handle)
        return null_argument(name, "a live object");
    return object ? DP_OK : DP_ERR_HANDLE;
}

aclnnStatus aclInitTensor(aclTensor *tensor, const int64_t *viewDims, uint64_t viewDimsNum, aclDataType dataType,
                          const int64_t *stride, int64_t offset, aclFormat format, const int64_t *storageDims,
                          uint64_t storageDimsNum, void *tensorDataAddr) {
    dp_api_call call = DP_API_CALL();
    aclTensor *live, made;
    dp_status status = get(DP_OBJECT_TENSOR, tensor, "tensor", &live);
    if (status == DP_OK)
        status = fill_tensor(&made, viewDims, viewDimsNum, dataType, stride, offset, format, storageDims,
                             storageDimsNum, tensorDataAddr);
    if (status == DP_OK) {
        made.in_list = live->in_list;
        *live = made;
    }
    return dp_aclnn_end(&call, status);
}

aclnnStatus aclDestroyTensor(const aclTensor *tensor) {
    dp_api_call call = DP_API_CALL();
    aclTensor *live;
    dp_status status = get(DP_OBJECT_TENSOR, tensor, "tensor", &live);
    if (status == DP_OK && live->in_list)
        status =
            dp_fail(DP_ERR_ARGUMENT, "tensor %p belongs to an aclTensorList and is destroyed with it", (void *)live);
    if (status == DP_OK)
        status = dp_object_destroy(DP_OBJECT_TENSOR, tensor, "tensor");
    return dp_aclnn_end(&call, status);
}

/* Callers release the copy with delete[]: it must come from malloc. */
static dp_status give_list(const int64_t *from, uint64_t count, int64_t **out_list, uint64_t *out_count) {
    if (!out_list || !out_count)
        return null_argument(out_list ? "the address for the count" : "the address for the list", "there");
    *out_list = malloc((count ? count : 1) * sizeof *from);
    if (!*out_list)
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for a copy of %llu sizes", (unsigned long long)count);
    memcpy(*out_list, from, count * sizeof *from);
    *out_count = count;
    return DP_OK;
}

aclnnStatus aclGetViewShape(const aclTensor *tensor, int64_t **viewDims, uint64_t *viewDimsNum) {
    dp_api_call call = DP_API_CALL();
    aclTensor *live;
    dp_status status = get(DP_OBJECT_TENSOR, tensor, "tensor", &live);
    return dp_aclnn_end(&call,
                        status ? status : give_list(live->view.dims, (uint64_t)live->view.rank, viewDims, viewDimsNum));
}

aclnnStatus aclGetViewStrides(const aclTensor *tensor, int64_t **stridesValue, uint64_t *stridesNum) {
    dp_api_call call = DP_API_CALL();
    aclTensor *live;
    dp_status status = get(DP_OBJECT_TENSOR, tensor, "tensor", &live);
    return dp_aclnn_end(
        &call, status ? status : give_list(live->view.strides, (uint64_t)live->view.rank, stridesValue, stridesNum));
}

aclnnStatus aclGetStorageShape(const aclTensor *tensor, int64_t **storageDims, uint64_t *storageDimsNum) {
    dp_api_call call = DP_API_CALL();
    aclTensor *live;
    dp_status status = get(DP_OBJECT_TENSOR, tensor, "tensor", &live);
    return dp_aclnn_end(&call, status ? status
                                      : give_list(live->storage_dims, live->storage_rank, storageDims, storageDimsNum));
}

#define TENSOR_GETTER(function, TYPE, argument, value)                                                                 \
    aclnnStatus function(const aclTensor *tensor, TYPE *argument) {                                                    \
        dp_api_call call = DP_API_CALL();                                                                              \
        aclTensor *live;                                                                                               \
        dp_status status = get(DP_OBJECT_TENSOR, tensor, "tensor", &live);                                             \
        if (status == DP_OK && !argument)                                                                              \
            status = null_argument(#argument, "an address");                                                           \
        if (status == DP_OK)                                                                                           \
            *argument = (TYPE)live->value;                                                                             \
        return dp_aclnn_end(&call, status);                                                                            \
    }
TENSOR_GETTER(aclGetViewOffset, int64_t, offset, view.offset)
TENSOR_GETTER(aclGetFormat, aclFormat, format, view.format)
TENSOR_GETTER(aclGetDataType, aclDataType, dataType, type)

/* Scalars. */

static void set_real(dp_scalar *to, double value) {
    to->real = value;
    to->integer = value >= -0x1p63 && value < 0x1p63 ? (int64_t)value
                  : value < 0                        ? INT64_MIN
                  : value > 0                        ? INT64_MAX
                                                     : 0;
}

static void set_integer(dp_scalar *to, int64_t value) {
    to->integer = value;
    to->real = (double)value;
}

static bool read_scalar(dp_scalar *to, const void *value, aclDataType type) {
    union {
        float f32[2];
        double f64[2];
        uint16_t u16;
        int64_t i64;
        uint64_t u64;
        int32_t i32;
        uint32_t u32;
        int16_t i16;
        int8_t i8;
        uint8_t u8;
    } v;
    int element = dp_aclnn_element(type);
    size_t bytes = dp_element_bytes(element);
    if (!bytes)
        return false;
    memcpy(&v, value, bytes);
    to->element = element;
    switch (element) {
    case DP_F32:
        set_real(to, v.f32[0]);
        return true;
    case DP_F64:
        set_real(to, v.f64[0]);
        return true;
    case DP_F16:
        set_real(to, dp_f32_from_f16(v.u16));
        return true;
    case DP_BF16:
        set_real(to, dp_f32_from_bf16(v.u16));
        return true;
    case DP_EL_C64:
        set_real(to, v.f32[0]);
        to->imaginary = v.f32[1];
        return true;
    case DP_EL_C128:
        set_real(to, v.f64[0]);
        to->imaginary = v.f64[1];
        return true;
    case DP_I64:
        set_integer(to, v.i64);
        return true;
    case DP_U64:
        to->integer = (int64_t)v.u64;
        to->real = (double)v.u64;
        return true;
    case DP_EL_BOOL:
        set_integer(to, v.u8 != 0);
        return true;
    default:
        set_integer(to, element == DP_I32   ? v.i32
                        : element == DP_U32 ? (int64_t)v.u32
                        : element == DP_I16 ? v.i16
                        : element == DP_U16 ? v.u16
                        : element == DP_I8  ? v.i8
                                            : v.u8);
        return true;
    }
}

aclScalar *aclCreateScalar(void *value, aclDataType dataType) {
    dp_api_call call = DP_API_CALL();
    dp_scalar made = {0};
    aclScalar *scalar = NULL;
    dp_status status = DP_OK;
    if (!value)
        status = null_argument("value", "the address of a value of dataType");
    else if (!read_scalar(&made, value, dataType))
        status = dp_fail(DP_ERR_ARGUMENT, "dataType is %d, but must be a floating point, complex, integer or bool type",
                         (int)dataType);
    else if (!(scalar = dp_object_create(DP_OBJECT_SCALAR, sizeof *scalar)))
        status = DP_ERR_OUT_OF_MEMORY;
    else
        scalar->value = made;
    dp_aclnn_end(&call, status);
    return scalar;
}

aclnnStatus aclDestroyScalar(const aclScalar *scalar) {
    dp_api_call call = DP_API_CALL();
    aclScalar *live;
    dp_status status = get(DP_OBJECT_SCALAR, scalar, "scalar", &live);
    if (status == DP_OK && live->in_list)
        status =
            dp_fail(DP_ERR_ARGUMENT, "scalar %p belongs to an aclScalarList and is destroyed with it", (void *)live);
    if (status == DP_OK)
        status = dp_object_destroy(DP_OBJECT_SCALAR, scalar, "scalar");
    return dp_aclnn_end(&call, status);
}

/* Arrays of values. */

static dp_status check_list(const void *value, uint64_t size) {
    if (size > LIST_MAX)
        return dp_fail(DP_ERR_ARGUMENT, "size is %llu, but must be at most 2^24", (unsigned long long)size);
    return size && !value ? null_argument("value", "the address of `size` values") : DP_OK;
}

#define ARRAY(Type, KIND, T)                                                                                           \
    acl##Type *aclCreate##Type(const T *value, uint64_t size) {                                                        \
        dp_api_call call = DP_API_CALL();                                                                              \
        acl##Type *array = NULL;                                                                                       \
        dp_status status = check_list(value, size);                                                                    \
        if (status == DP_OK && !(array = dp_object_create(KIND, sizeof *array + size * sizeof *value)))                \
            status = DP_ERR_OUT_OF_MEMORY;                                                                             \
        if (array) {                                                                                                   \
            array->count = size;                                                                                       \
            if (size)                                                                                                  \
                memcpy(array->values, value, size * sizeof *value);                                                    \
        }                                                                                                              \
        dp_aclnn_end(&call, status);                                                                                   \
        return array;                                                                                                  \
    }                                                                                                                  \
    aclnnStatus aclDestroy##Type(const acl##Type *array) {                                                             \
        dp_api_call call = DP_API_CALL();                                                                              \
        acl##Type *live;                                                                                               \
        dp_status status = get(KIND, array, "array", &live);                                                           \
        return dp_aclnn_end(&call, status ? status : dp_object_destroy(KIND, array, "array"));                         \
    }
ARRAY(IntArray, DP_OBJECT_INT_ARRAY, int64_t)
ARRAY(FloatArray, DP_OBJECT_FLOAT_ARRAY, float)
ARRAY(BoolArray, DP_OBJECT_BOOL_ARRAY, bool)

#define SIZE_GETTER(function, Type, KIND, argument)                                                                    \
    aclnnStatus function(const Type *argument, uint64_t *size) {                                                       \
        dp_api_call call = DP_API_CALL();                                                                              \
        Type *live;                                                                                                    \
        dp_status status = get(KIND, argument, #argument, &live);                                                      \
        if (status == DP_OK && !size)                                                                                  \
            status = null_argument("size", "the address of a uint64_t");                                               \
        if (status == DP_OK)                                                                                           \
            *size = live->count;                                                                                       \
        return dp_aclnn_end(&call, status);                                                                            \
    }
SIZE_GETTER(aclGetIntArraySize, aclIntArray, DP_OBJECT_INT_ARRAY, array)
SIZE_GETTER(aclGetFloatArraySize, aclFloatArray, DP_OBJECT_FLOAT_ARRAY, array)
SIZE_GETTER(aclGetBoolArraySize, aclBoolArray, DP_OBJECT_BOOL_ARRAY, array)
SIZE_GETTER(aclGetTensorListSize, aclTensorList, DP_OBJECT_TENSOR_LIST, tensorList)
SIZE_GETTER(aclGetScalarListSize, aclScalarList, DP_OBJECT_SCALAR_LIST, scalarList)

/* Lists of objects. Elements begin with what the list points to, so that an element's address is the member's. */

static bool *list_mark(dp_object_kind kind, void *element) {
    return kind == DP_OBJECT_TENSOR ? &((aclTensor *)element)->in_list : &((aclScalar *)element)->in_list;
}

/* `members` is where the list keeps `size` pointers. Elements are marked first to last, and unmarked when one cannot be
 * taken. */
static dp_status take_elements(dp_object_kind kind, const void *const *value, uint64_t size, void *members) {
    for (uint64_t i = 0; i < size; i++) {
        void *element;
        dp_status status = get(kind, value[i], "value", &element);
        if (status == DP_OK && *list_mark(kind, element))
            status = dp_fail(DP_ERR_ARGUMENT, "value[%llu] (%p) is in a list already, which owns it",
                             (unsigned long long)i, element);
        if (status != DP_OK) {
            while (i--)
                *list_mark(kind, (void *)(uintptr_t)value[i]) = false;
            return status;
        }
        *list_mark(kind, element) = true;
        memcpy((char *)members + i * sizeof element, &element, sizeof element);
    }
    return DP_OK;
}

aclTensorList *aclCreateTensorList(const aclTensor *const *value, uint64_t size) {
    dp_api_call call = DP_API_CALL();
    aclTensorList *list = NULL, *made = NULL;
    dp_status status = check_list(value, size);
    if (status == DP_OK && !(made = dp_object_create(DP_OBJECT_TENSOR_LIST, sizeof *made + size * sizeof(void *))))
        status = DP_ERR_OUT_OF_MEMORY;
    if (status == DP_OK)
        status = take_elements(DP_OBJECT_TENSOR, (const void *const *)value, size, made->views);
    if (status == DP_OK) {
        made->count = size;
        list = made;
    } else if (made) {
        dp_free(dp_object_take(DP_OBJECT_TENSOR_LIST, made, "list"));
    }
    dp_aclnn_end(&call, status);
    return list;
}

aclScalarList *aclCreateScalarList(const aclScalar *const *value, uint64_t size) {
    dp_api_call call = DP_API_CALL();
    aclScalarList *list = NULL, *made = NULL;
    dp_status status = check_list(value, size);
    if (status == DP_OK && !(made = dp_object_create(DP_OBJECT_SCALAR_LIST, sizeof *made + size * sizeof(void *))))
        status = DP_ERR_OUT_OF_MEMORY;
    if (status == DP_OK)
        status = take_elements(DP_OBJECT_SCALAR, (const void *const *)value, size, made->values);
    if (status == DP_OK) {
        made->count = size;
        list = made;
    } else if (made) {
        dp_free(dp_object_take(DP_OBJECT_SCALAR_LIST, made, "list"));
    }
    dp_aclnn_end(&call, status);
    return list;
}

aclnnStatus aclDestroyTensorList(const aclTensorList *array) {
    dp_api_call call = DP_API_CALL();
    aclTensorList *live;
    dp_status status = get(DP_OBJECT_TENSOR_LIST, array, "array", &live);
    if (status == DP_OK && !(live = dp_object_take(DP_OBJECT_TENSOR_LIST, array, "array")))
        status = DP_ERR_HANDLE;
    if (status != DP_OK)
        return dp_aclnn_end(&call, status);
    for (uint64_t i = 0; i < live->count; i++)
        dp_object_destroy(DP_OBJECT_TENSOR, live->views[i], "element");
    dp_free(live);
    return dp_aclnn_end(&call, DP_OK);
}

aclnnStatus aclDestroyScalarList(const aclScalarList *array) {
    dp_api_call call = DP_API_CALL();
    aclScalarList *live;
    dp_status status = get(DP_OBJECT_SCALAR_LIST, array, "array", &live);
    if (status == DP_OK && !(live = dp_object_take(DP_OBJECT_SCALAR_LIST, array, "array")))
        status = DP_ERR_HANDLE;
    if (status != DP_OK)
        return dp_aclnn_end(&call, status);
    for (uint64_t i = 0; i < live->count; i++)
        dp_object_destroy(DP_OBJECT_SCALAR, live->values[i], "element");
    dp_free(live);
    return dp_aclnn_end(&call, DP_OK);
}
