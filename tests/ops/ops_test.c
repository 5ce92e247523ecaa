#include "ops_test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"

#include "aclnn_callers.inc"

unsigned caller_count(void) {
    return sizeof callers / sizeof callers[0];
}

const caller *caller_at(unsigned index) {
    return &callers[index];
}

const caller *find_caller(const char *name) {
    for (unsigned i = 0; i < caller_count(); i++)
        if (strcmp(callers[i].name, name) == 0)
            return &callers[i];
    fail_msg("no operator %s", name);
    return NULL;
}

const char *sentence(void) {
    const char *text = aclGetRecentErrMsg();
    return text ? text : "";
}

aclnnStatus call_op(const char *name, const caller_value *values) {
    const caller *op = find_caller(name);
    uint64_t size = 0;
    aclOpExecutor *executor = NULL;
    aclnnStatus status = op->prepare(values, &size, &executor);
    if (status)
        return status;
    void *workspace = NULL;
    if (size && aclrtMalloc(&workspace, size, ACL_MEM_MALLOC_HUGE_FIRST))
        return -1;
    status = op->run(workspace, size, executor, NULL);
    if (!status)
        status = aclrtSynchronizeStream(NULL);
    if (workspace)
        aclrtFree(workspace);
    return status;
}

static uint64_t seed;
uint64_t random_bits(void) {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed * 0x2545F4914F6CDD1Dull;
}

double random_between(double low, double high) {
    return low + (high - low) * (double)(random_bits() >> 11) * 0x1p-53;
}

void test_begin(void) {
    const char *text = getenv("DOPPEL_TEST_SEED");
    seed = text ? strtoull(text, NULL, 10) | 1 : 0x9E3779B97F4A7C15ull;
    aclInit(NULL);
    assert_int_equal(aclrtSetDevice(0), 0);
}

void test_end(void) {
    assert_int_equal(aclrtResetDevice(0), 0);
    aclFinalize();
}

int test_setup(void **state) {
    (void)state;
    test_begin();
    return 0;
}

int test_teardown(void **state) {
    (void)state;
    test_end();
    return 0;
}

enum { PATTERN = 0x5a };

tensor make_tensor(aclDataType type, int rank, const int64_t *dims, layout how) {
    tensor t = {.type = type, .rank = rank, .count = 1};
    for (int d = 0; d < rank; d++) {
        t.dims[d] = dims[d];
        t.count *= dims[d];
    }
    int64_t step = how == STRIDED ? 2 : 1;
    t.offset = how == OFFSET ? 5 : how == STRIDED ? 1 : 0;
    for (int i = 0; i < rank; i++) {
        int d = how == TRANSPOSED ? i : rank - 1 - i;
        t.strides[d] = step;
        step *= dims[d] ? dims[d] : 1;
        if (how == STRIDED)
            step += i % 2;
    }
    t.storage = t.offset + step + 3;
    size_t bytes = (size_t)t.storage * aclDataTypeSize(type);
    assert_int_equal(aclrtMalloc(&t.data, bytes, ACL_MEM_MALLOC_HUGE_FIRST), 0);
    memset(t.data, PATTERN, bytes);
    t.handle = aclCreateTensor(t.dims, (uint64_t)rank, type, t.strides, t.offset, ACL_FORMAT_ND, &t.storage, 1, t.data);
    assert_non_null(t.handle);
    return t;
}

void free_tensor(tensor *t) {
    if (t->handle)
        assert_int_equal(aclDestroyTensor(t->handle), 0);
    assert_int_equal(aclrtFree(t->data), 0);
}

/* The references' inner loops spend their time here, so contiguous tensors are told apart: a division costs more than all else. */
static int64_t place(const tensor *t, int64_t index) {
    int64_t next = 1;
    int d = t->rank - 1;
    while (d >= 0 && (t->strides[d] == next || t->dims[d] == 1))
        next *= t->dims[d--];
    if (d < 0)
        return t->offset + index;
    int64_t at = t->offset;
    for (d = t->rank - 1; d >= 0; d--) {
        at += index % t->dims[d] * t->strides[d];
        index /= t->dims[d];
    }
    return at;
}

bool is_float(aclDataType type) {
    return type == ACL_FLOAT || type == ACL_FLOAT16 || type == ACL_BF16 || type == ACL_DOUBLE;
}

typedef union any {
    float f32;
    double f64;
    uint16_t u16;
    int16_t i16;
    int32_t i32;
    uint32_t u32;
    int64_t i64;
    uint64_t u64;
    int8_t i8;
    uint8_t u8;
} any;

static double decode(aclDataType type, any v) {
    switch (type) {
    case ACL_FLOAT:
        return v.f32;
    case ACL_DOUBLE:
        return v.f64;
    case ACL_FLOAT16:
        return dp_f32_from_f16(v.u16);
    case ACL_BF16:
        return dp_f32_from_bf16(v.u16);
    case ACL_INT8:
        return v.i8;
    case ACL_UINT8:
    case ACL_BOOL:
        return v.u8;
    case ACL_INT16:
        return v.i16;
    case ACL_UINT16:
        return v.u16;
    case ACL_INT32:
        return v.i32;
    case ACL_UINT32:
        return v.u32;
    case ACL_INT64:
        return (double)v.i64;
    default:
        return (double)v.u64;
    }
}

static any encode(aclDataType type, double value) {
    any v = {.u64 = 0};
    switch (type) {
    case ACL_FLOAT:
        v.f32 = (float)value;
        break;
    case ACL_DOUBLE:
        v.f64 = value;
        break;
    case ACL_FLOAT16:
        v.u16 = dp_f16_from_f32((float)value);
        break;
    case ACL_BF16:
        v.u16 = dp_bf16_from_f32((float)value);
        break;
    case ACL_BOOL:
        v.u8 = value != 0;
        break;
    default:
        v.u64 = value < 0 ? (uint64_t)(int64_t)value : (uint64_t)value; /* little endian: the low bytes are the value */
    }
    return v;
}

double round_to(aclDataType type, double value) {
    return decode(type, encode(type, value));
}

double get_element(const tensor *t, int64_t index) {
    const size_t at = (size_t)place(t, index);
    any v = {.u64 = 0};
    if (t->type == ACL_FLOAT)
        return ((const float *)t->data)[at];
    if (t->type == ACL_FLOAT16 || t->type == ACL_BF16) {
        v.u16 = ((const uint16_t *)t->data)[at];
        return t->type == ACL_FLOAT16 ? dp_f32_from_f16(v.u16) : dp_f32_from_bf16(v.u16);
    }
    size_t bytes = aclDataTypeSize(t->type);
    memcpy(&v, (char *)t->data + at * bytes, bytes);
    return decode(t->type, v);
}

void set_element(const tensor *t, int64_t index, double value) {
    size_t bytes = aclDataTypeSize(t->type);
    any v = encode(t->type, value);
    memcpy((char *)t->data + (size_t)place(t, index) * bytes, &v, bytes);
}

bool untouched_outside(const tensor *t) {
    size_t bytes = aclDataTypeSize(t->type);
    bool *inside = calloc((size_t)t->storage, 1), ok = true;
    for (int64_t i = 0; i < t->count; i++)
        inside[place(t, i)] = true;
    for (int64_t i = 0; i < t->storage; i++)
        for (size_t b = 0; b < bytes && !inside[i]; b++)
            ok = ok && ((unsigned char *)t->data)[(size_t)i * bytes + b] == PATTERN;
    free(inside);
    return ok;
}
