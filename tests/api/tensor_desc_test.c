/* Element types, halves, data buffers and tensor descriptions. */
#include "child.h"

#include <math.h>

TEST(element_sizes) {
    static const struct {
        aclDataType type;
        size_t bytes;
    } sizes[] = {{ACL_FLOAT, 4},
                 {ACL_FLOAT16, 2},
                 {ACL_INT8, 1},
                 {ACL_INT32, 4},
                 {ACL_UINT8, 1},
                 {ACL_INT16, 2},
                 {ACL_UINT16, 2},
                 {ACL_UINT32, 4},
                 {ACL_INT64, 8},
                 {ACL_UINT64, 8},
                 {ACL_DOUBLE, 8},
                 {ACL_BOOL, 1},
                 {ACL_COMPLEX64, 8},
                 {ACL_COMPLEX128, 16},
                 {ACL_BF16, 2},
                 {ACL_COMPLEX32, 4},
                 {ACL_STRING, 0},
                 {ACL_DT_UNDEFINED, 0},
                 {ACL_UINT1, 0},
                 {ACL_INT4, 0},
                 {(aclDataType)5, 0},
                 {(aclDataType)-7, 0},
                 {(aclDataType)INT32_MAX, 0}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        CHECK(aclDataTypeSize(sizes[i].type) == sizes[i].bytes);
}

TEST(halves) {
    for (uint32_t bits = 0; bits < 65536; bits++) {
        float value = aclFloat16ToFloat((aclFloat16)bits);
        int exponent = (int)(bits >> 10 & 31), fraction = (int)(bits & 1023);
        if (exponent == 31) {
            CHECK(fraction ? isnan(value) : isinf(value));
            continue;
        }
        double expected = exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24);
        CHECK(value == (float)(bits & 0x8000 ? -expected : expected));
        CHECK(aclFloatToFloat16(value) == bits);
    }
    CHECK(aclFloatToFloat16(1e9f) == 0x7c00 && aclFloatToFloat16(-1e-9f) == 0x8000);
}

TEST(data_buffers) {
    char memory[16], other[4];
    aclDataBuffer *buffer = aclCreateDataBuffer(memory, sizeof memory);
    CHECK(buffer && aclGetDataBufferAddr(buffer) == memory);
    CHECK(aclGetDataBufferSizeV2(buffer) == 16 && aclGetDataBufferSize(buffer) == 16);
    CHECK_OK(aclUpdateDataBuffer(buffer, other, 4));
    CHECK(aclGetDataBufferAddr(buffer) == other && aclGetDataBufferSizeV2(buffer) == 4);
    CHECK_OK(aclUpdateDataBuffer(buffer, other, (size_t)1 << 40));
    CHECK(aclGetDataBufferSize(buffer) == UINT32_MAX && aclGetDataBufferSizeV2(buffer) == (size_t)1 << 40);
    CHECK_OK(aclDestroyDataBuffer(buffer));
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclDestroyDataBuffer(buffer), "dataBuffer", "destroyed");
    CHECK(aclGetDataBufferAddr(buffer) == NULL && aclGetDataBufferSizeV2(NULL) == 0);
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclDestroyDataBuffer(NULL), "dataBuffer", "NULL");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclUpdateDataBuffer((aclDataBuffer *)memory, other, 4), "dataBuffer");
    buffer = aclCreateDataBuffer(NULL, 0); /* an absent optional input */
    CHECK(buffer && aclGetDataBufferAddr(buffer) == NULL);
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclUpdateDataBuffer(buffer, NULL, 3), "data", "NULL", "3");
    CHECK_OK(aclDestroyDataBuffer(buffer));
    CHECK(aclCreateDataBuffer(NULL, 1) == NULL);
}

/* The registry of live objects keeps its answers while it grows and shrinks. */
TEST(many_objects) {
    enum { N = 3000 };
    static aclDataBuffer *buffers[N];
    static char memory[N];
    srand(11);
    for (int step = 0; step < 60000; step++) {
        int i = rand() % N;
        if (buffers[i]) {
            CHECK(aclGetDataBufferAddr(buffers[i]) == &memory[i]);
            CHECK(aclGetTensorDescNumDims((aclTensorDesc *)buffers[i]) == 0); /* of another kind */
            CHECK_OK(aclDestroyDataBuffer(buffers[i]));
            buffers[i] = NULL;
        } else {
            buffers[i] = aclCreateDataBuffer(&memory[i], 1);
            CHECK(buffers[i]);
        }
    }
    for (int i = 0; i < N; i++)
        CHECK(!buffers[i] || aclDestroyDataBuffer(buffers[i]) == ACL_SUCCESS);
}

TEST(descriptions) {
    const int64_t dims[] = {2, 3, 4, 5};
    int64_t size = 0, range[2];
    aclTensorDesc *desc = aclCreateTensorDesc(ACL_FLOAT16, 4, dims, ACL_FORMAT_NCHW);
    CHECK(desc && aclGetTensorDescType(desc) == ACL_FLOAT16 && aclGetTensorDescFormat(desc) == ACL_FORMAT_NCHW);
    CHECK(aclGetTensorDescNumDims(desc) == 4 && aclGetTensorDescElementCount(desc) == 120);
    CHECK(aclGetTensorDescSize(desc) == 240 && aclGetTensorDescDim(desc, 3) == 5 && aclGetTensorDescDim(desc, 4) == -1);
    CHECK_OK(aclGetTensorDescDimV2(desc, 1, &size));
    CHECK(size == 3);
    CHECK(strstr(aclGetRecentErrMsg(), "index is 4")); /* of aclGetTensorDescDim above */
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclGetTensorDescDimV2(desc, 9, &size), "index", "9", "4");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclGetTensorDescDimV2(desc, 0, NULL), "dimSize", "NULL");
    CHECK_OK(aclGetTensorDescDimRange(desc, 2, 2, range));
    CHECK(range[0] == 4 && range[1] == 4);
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclGetTensorDescDimRange(desc, 2, 3, range), "dimRangeNum", "3");
    CHECK(strcmp(aclGetTensorDescName(desc), "") == 0);
    aclSetTensorDescName(desc, "weights");
    CHECK(strcmp(aclGetTensorDescName(desc), "weights") == 0);
    aclSetTensorDescName(desc, NULL);
    CHECK(strcmp(aclGetTensorDescName(desc), "") == 0);
    CHECK_OK(aclSetTensorFormat(desc, ACL_FORMAT_ND));
    CHECK_OK(aclSetTensorOriginFormat(desc, ACL_FORMAT_ND));
    CHECK_OK(aclSetTensorStorageFormat(desc, ACL_FORMAT_FRACTAL_NZ));
    CHECK_OK(aclSetTensorShape(desc, 1, dims));
    CHECK_OK(aclSetTensorStorageShape(desc, 4, dims));
    CHECK_OK(aclSetTensorOriginShape(desc, 4, dims));
    CHECK(aclGetTensorDescElementCount(desc) == 2);
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclSetTensorFormat(desc, (aclFormat)99), "format", "99");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclSetTensorShape(desc, -1, dims), "numDims", "-1");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclSetTensorShape(desc, 1, NULL), "dims", "NULL");
    CHECK_OK(aclSetTensorPlaceMent(desc, ACL_MEMTYPE_HOST));
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclSetTensorPlaceMent(desc, (aclMemType)3), "memType", "3");
    CHECK(aclGetTensorDescAddress(desc) == NULL);
    CHECK_OK(aclSetTensorConst(desc, &size, sizeof size));
    CHECK(memcmp(aclGetTensorDescAddress(desc), &size, sizeof size) == 0);
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclSetTensorConst(desc, &size, 0), "length", "0");
    CHECK_FAILS(ACL_ERROR_BAD_ALLOC, aclSetTensorConst(desc, &size, SIZE_MAX), "length");
    CHECK_OK(aclSetTensorDynamicInput(desc, "input"));
    CHECK(aclGetTensorDescByIndex(desc, 0) == desc && aclGetTensorDescByIndex(desc, 1) == NULL);
    aclDestroyTensorDesc(desc);
    aclDestroyTensorDesc(NULL);
    aclGetRecentErrMsg();
    aclDestroyTensorDesc(desc);
    CHECK(strstr(aclGetRecentErrMsg(), "desc"));
    CHECK(aclGetTensorDescType(desc) == ACL_DT_UNDEFINED && aclGetTensorDescName(desc) == NULL);
}

TEST(unknown_shapes) {
    const int64_t partly[] = {-1, 3}, rank[] = {-2}, wrong[] = {3, -2}, huge[] = {INT64_MAX, INT64_MAX};
    int64_t ranges[2][2] = {{1, 16}, {3, 3}}, range[2];
    aclTensorDesc *desc = aclCreateTensorDesc(ACL_INT32, 2, partly, ACL_FORMAT_ND);
    CHECK(desc && aclGetTensorDescElementCount(desc) == 0 && aclGetTensorDescSize(desc) == 0);
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclGetTensorDescDimRange(desc, 0, 2, range), "index", "0");
    CHECK_OK(aclSetTensorShapeRange(desc, 2, ranges));
    CHECK_OK(aclGetTensorDescDimRange(desc, 0, 2, range));
    CHECK(range[0] == 1 && range[1] == 16);
    CHECK_OK(aclSetTensorValueRange(desc, 2, ranges));
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclSetTensorShapeRange(desc, 200, ranges), "dimsCount", "200");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclSetTensorValueRange(desc, SIZE_MAX, ranges), "valueCount");
    aclDestroyTensorDesc(desc);
    desc = aclCreateTensorDesc(ACL_FLOAT, 1, rank, ACL_FORMAT_ND);
    CHECK(desc && aclGetTensorDescNumDims(desc) == ACL_UNKNOWN_RANK && aclGetTensorDescDim(desc, 0) == -1);
    aclDestroyTensorDesc(desc);
    desc = aclCreateTensorDesc(ACL_FLOAT, 2, huge, ACL_FORMAT_ND);
    CHECK(desc && aclGetTensorDescElementCount(desc) == 0 && aclGetTensorDescSize(desc) == 0);
    aclDestroyTensorDesc(desc);
    CHECK(aclCreateTensorDesc(ACL_FLOAT, 2, wrong, ACL_FORMAT_ND) == NULL);
    CHECK(aclCreateTensorDesc(ACL_FLOAT, 129, wrong, ACL_FORMAT_ND) == NULL);
    CHECK(aclCreateTensorDesc((aclDataType)5, 0, NULL, ACL_FORMAT_ND) == NULL);
    CHECK(aclCreateTensorDesc(ACL_FLOAT, 1, NULL, ACL_FORMAT_ND) == NULL);
    desc = aclCreateTensorDesc(ACL_DT_UNDEFINED, 0, NULL, ACL_FORMAT_UNDEFINED); /* an absent optional input */
    CHECK(desc && aclGetTensorDescElementCount(desc) == 1 && aclGetTensorDescSize(desc) == 0);
    aclDestroyTensorDesc(desc);
    desc = aclCreateTensorDesc(ACL_INT4, 1, (const int64_t[]){5}, ACL_FORMAT_ND);
    CHECK(desc && aclGetTensorDescSize(desc) == 3);
    aclDestroyTensorDesc(desc);
}

TEST(format_changes) {
    const int64_t dims[] = {2, 3, 4, 5, 6};
    aclTensorDesc *nchw = aclCreateTensorDesc(ACL_FLOAT, 4, dims, ACL_FORMAT_NCHW), *nhwc = NULL, *back = NULL;
    CHECK_OK(aclTransTensorDescFormat(nchw, ACL_FORMAT_NHWC, &nhwc));
    CHECK(aclGetTensorDescDim(nhwc, 0) == 2 && aclGetTensorDescDim(nhwc, 1) == 4 && aclGetTensorDescDim(nhwc, 2) == 5 &&
          aclGetTensorDescDim(nhwc, 3) == 3);
    CHECK_OK(aclTransTensorDescFormat(nhwc, ACL_FORMAT_NCHW, &back));
    for (size_t i = 0; i < 4; i++)
        CHECK(aclGetTensorDescDim(back, i) == dims[i]);
    aclDestroyTensorDesc(back);
    CHECK_FAILS(ACL_ERROR_API_NOT_SUPPORT, aclTransTensorDescFormat(nchw, ACL_FORMAT_FRACTAL_NZ, &back), "dstFormat",
                "29");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclTransTensorDescFormat(nchw, ACL_FORMAT_NHWC, NULL), "dstDesc", "NULL");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclTransTensorDescFormat(NULL, ACL_FORMAT_NHWC, &back), "srcDesc", "NULL");
    aclTensorDesc *volume = aclCreateTensorDesc(ACL_FLOAT, 5, dims, ACL_FORMAT_NCDHW);
    CHECK_OK(aclTransTensorDescFormat(volume, ACL_FORMAT_NDHWC, &back));
    CHECK(aclGetTensorDescDim(back, 4) == 3 && aclGetTensorDescDim(back, 1) == 4);
    aclDestroyTensorDesc(back);
    aclDestroyTensorDesc(volume);
    aclDestroyTensorDesc(nchw);
    aclDestroyTensorDesc(nhwc);
}

TEST(log_lines_go_to_standard_error) {
    int pipe_ends[2];
    char text[400] = "";
    CHECK(pipe(pipe_ends) == 0 && dup2(pipe_ends[1], STDERR_FILENO) >= 0);
    ACL_APP_LOG(ACL_ERROR, "answer %d", 42);
    ACL_APP_LOG(ACL_DEBUG, "not asked for");
    aclAppLog((aclLogLevel)99, NULL, NULL, 0, NULL);
    CHECK(read(pipe_ends[0], text, sizeof text - 1) > 0);
    CHECK(strstr(text, "answer 42") && strstr(text, "tensor_desc_test.c") && !strstr(text, "not asked for"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(element_sizes),  cmocka_unit_test(halves),
        cmocka_unit_test(data_buffers),   cmocka_unit_test(many_objects),
        cmocka_unit_test(descriptions),   cmocka_unit_test(unknown_shapes),
        cmocka_unit_test(format_changes), cmocka_unit_test(log_lines_go_to_standard_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
