/* Products of matrices by pointers against plain loops: transposes, gaps between rows, types, handles, faults. */
#include "child.h"

#include <math.h>
#include <stdbool.h>

#include "acl/ops/acl_cblas.h"

enum { M = 5, N = 7, K = 4, LD = 9 };

static void *device(size_t bytes) {
    void *data;
    CHECK_OK(aclrtMalloc(&data, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
    return data;
}

static float number(int i) {
    return (float)((i * 7 + 3) % 11 - 5);
}

static void put(void *data, aclDataType type, int i, float value) {
    if (type == ACL_FLOAT)
        ((float *)data)[i] = value;
    else if (type == ACL_FLOAT16)
        ((aclFloat16 *)data)[i] = aclFloatToFloat16(value);
    else if (type == ACL_INT8)
        ((int8_t *)data)[i] = (int8_t)value;
    else
        ((int32_t *)data)[i] = (int32_t)value;
}

static float get(const void *data, aclDataType type, int i) {
    return type == ACL_FLOAT     ? ((const float *)data)[i]
           : type == ACL_FLOAT16 ? aclFloat16ToFloat(((const aclFloat16 *)data)[i])
           : type == ACL_INT8    ? (float)((const int8_t *)data)[i]
                                 : (float)((const int32_t *)data)[i];
}

static void fill(void *data, aclDataType type, int count) {
    for (int i = 0; i < count; i++)
        put(data, type, i, number(i));
}

/* ld -1: no gaps. Rows and columns of what lies in memory. */
static float element(const void *data, aclDataType type, int ld, bool transposed, int rows, int columns, int r, int c) {
    int width = transposed ? rows : columns, step = ld == -1 ? width : ld;
    return get(data, type, transposed ? c * step + r : r * step + c);
}

typedef struct problem {
    aclDataType type, result;
    bool ta, tb, on_device;
    int lda, ldb, ldc;
    float alpha, beta;
} problem;

static void check_c(const problem *p, const void *a, const void *b, const void *before, const void *c, int n) {
    for (int i = 0; i < M; i++) {
        for (int j = 0; j < n; j++) {
            float sum = 0;
            for (int k = 0; k < K; k++)
                sum += element(a, p->type, p->lda, p->ta, M, K, i, k) * element(b, p->type, p->ldb, p->tb, K, n, k, j);
            float want = p->alpha * sum + p->beta * element(before, p->result, p->ldc, false, M, n, i, j);
            float got = element(c, p->result, p->ldc, false, M, n, i, j);
            if (fabsf(got - want) > (p->result == ACL_FLOAT16 ? 0.2f : 1e-3f)) {
                fprintf(stderr, "element %d, %d is %g, but must be %g\n", i, j, (double)got, (double)want);
                _exit(1);
            }
        }
    }
    if (p->ldc > n) /* gaps are not written */
        CHECK(get(c, p->result, n) == get(before, p->result, n));
}

static void run_problem(const problem *p, int n) {
    void *a = device(4 * LD * LD), *b = device(4 * LD * LD), *c = device(4 * LD * LD), *numbers = device(64);
    char before[4 * LD * LD];
    fill(a, p->type, LD * LD);
    fill(b, p->type, LD * LD);
    fill(c, p->result, LD * LD);
    memcpy(before, c, sizeof before);
    int32_t host[2];
    void *alpha = p->on_device ? numbers : &host[0], *beta = p->on_device ? (char *)numbers + 32 : (void *)&host[1];
    put(alpha, p->result, 0, p->alpha);
    put(beta, p->result, 0, p->beta);
    aclTransType ta = p->ta ? ACL_TRANS_T : ACL_TRANS_N, tb = p->tb ? ACL_TRANS_T : ACL_TRANS_N;
    if (n == 1)
        CHECK_OK(aclblasGemvEx(ta, M, K, alpha, a, p->lda, p->type, b, p->ldb, p->type, beta, c, p->ldc, p->result,
                               ACL_COMPUTE_HIGH_PRECISION, NULL));
    else
        CHECK_OK(aclblasGemmEx(ta, tb, ACL_TRANS_N, M, n, K, alpha, a, p->lda, p->type, b, p->ldb, p->type, beta, c,
                               p->ldc, p->result, ACL_COMPUTE_HIGH_PRECISION, NULL));
    CHECK_OK(aclrtSynchronizeStream(NULL));
    check_c(p, a, b, before, c, n);
    CHECK_OK(aclrtFree(a));
    CHECK_OK(aclrtFree(b));
    CHECK_OK(aclrtFree(c));
    CHECK_OK(aclrtFree(numbers));
}

TEST(general_products) {
    CHECK_OK(aclrtSetDevice(0));
    for (int i = 0; i < 64; i++) {
        problem p = {.type = i & 32 ? ACL_FLOAT16 : ACL_FLOAT,
                     .result = i & 32 ? ACL_FLOAT16 : ACL_FLOAT,
                     .ta = i & 1,
                     .tb = i & 2,
                     .on_device = i & 16,
                     .lda = i & 4 ? LD : -1,
                     .ldb = i & 4 ? LD : -1,
                     .ldc = i & 8 ? LD : -1,
                     .alpha = i & 8 ? 0.5f : 1,
                     .beta = i & 4 ? 2 : 0};
        run_problem(&p, N);
        p.tb = false;
        p.ldb = p.ldc = i & 4 ? 2 : -1;
        run_problem(&p, 1);
    }
    for (int i = 0; i < 4; i++) {
        problem p = {ACL_INT8, ACL_INT32, i & 1, i & 2, false, -1, -1, -1, 1, 0};
        run_problem(&p, N);
    }
}

/* The forms with their types in their names give what the general ones do. */
TEST(typed_forms) {
    CHECK_OK(aclrtSetDevice(0));
    aclFloat16 *a = device(512), *b = device(512), *c = device(512), one = aclFloatToFloat16(1), zero = 0;
    int8_t *p = device(512), *q = device(512);
    int32_t *r = device(512), i_one = 1, i_zero = 0;
    fill(a, ACL_FLOAT16, M * K);
    fill(b, ACL_FLOAT16, K * N);
    fill(p, ACL_INT8, M * K);
    fill(q, ACL_INT8, K * N);
    problem half = {ACL_FLOAT16, ACL_FLOAT16, false, false, false, -1, -1, -1, 1, 0};
    problem bytes = {ACL_INT8, ACL_INT32, false, false, false, -1, -1, -1, 1, 0};
    CHECK_OK(aclblasHgemm(ACL_TRANS_N, ACL_TRANS_N, ACL_TRANS_N, M, N, K, &one, a, -1, b, -1, &zero, c, -1,
                          ACL_COMPUTE_LOW_PRECISION, NULL));
    CHECK_OK(aclblasS8gemm(ACL_TRANS_N, ACL_TRANS_N, ACL_TRANS_N, M, N, K, &i_one, p, -1, q, -1, &i_zero, r, -1,
                           ACL_COMPUTE_HIGH_PRECISION, NULL));
    CHECK_OK(aclrtSynchronizeStream(NULL));
    check_c(&half, a, b, c, c, N);
    check_c(&bytes, p, q, r, r, N);
    CHECK_OK(aclblasHgemv(ACL_TRANS_N, M, K, &one, a, -1, b, -1, &zero, c, -1, ACL_COMPUTE_HIGH_PRECISION, NULL));
    CHECK_OK(aclblasS8gemv(ACL_TRANS_N, M, K, &i_one, p, -1, q, -1, &i_zero, r, -1, ACL_COMPUTE_HIGH_PRECISION, NULL));
    CHECK_OK(aclrtSynchronizeStream(NULL));
    check_c(&half, a, b, c, c, 1);
    check_c(&bytes, p, q, r, r, 1);
}

static void run_handle(aclopHandle *handle, const problem *p, int n) {
    void *a = device(512), *b = device(512), *c = device(512);
    char before[512];
    float numbers[2];
    fill(a, p->type, M * K);
    fill(b, p->type, K * n);
    fill(c, p->result, M * n);
    put(&numbers[0], p->result, 0, p->alpha);
    put(&numbers[1], p->result, 0, p->beta);
    aclDataBuffer *buffers[] = {aclCreateDataBuffer(a, 512), aclCreateDataBuffer(b, 512), aclCreateDataBuffer(c, 512),
                                aclCreateDataBuffer(&numbers[0], 4), aclCreateDataBuffer(&numbers[1], 4)};
    for (int round = 0; round < 2; round++) {
        memcpy(before, c, sizeof before);
        CHECK_OK(aclopExecWithHandle(handle, 5, (const aclDataBuffer *const *)buffers, 1, &buffers[2], NULL));
        CHECK_OK(aclrtSynchronizeStream(NULL));
        check_c(p, a, b, before, c, n);
    }
    aclopDestroyHandle(handle);
    for (int i = 0; i < 5; i++)
        CHECK_OK(aclDestroyDataBuffer(buffers[i]));
}

TEST(handles) {
    CHECK_OK(aclrtSetDevice(0));
    aclopHandle *h;
    const aclComputeType high = ACL_COMPUTE_HIGH_PRECISION;
    problem p = {ACL_FLOAT, ACL_FLOAT, true, true, false, -1, -1, -1, 2, 1};
    CHECK_OK(aclblasCreateHandleForGemmEx(ACL_TRANS_T, ACL_TRANS_T, ACL_TRANS_N, M, N, K, ACL_FLOAT, ACL_FLOAT,
                                          ACL_FLOAT, high, &h));
    run_handle(h, &p, N);
    p.ta = p.tb = false;
    CHECK_OK(aclblasCreateHandleForGemvEx(ACL_TRANS_N, M, K, ACL_FLOAT, ACL_FLOAT, ACL_FLOAT, high, &h));
    run_handle(h, &p, 1);
    p.type = p.result = ACL_FLOAT16;
    p.beta = 0;
    CHECK_OK(aclblasCreateHandleForHgemm(ACL_TRANS_N, ACL_TRANS_N, ACL_TRANS_N, M, N, K, high, &h));
    run_handle(h, &p, N);
    CHECK_OK(aclblasCreateHandleForHgemv(ACL_TRANS_N, M, K, high, &h));
    run_handle(h, &p, 1);
    p = (problem){ACL_INT8, ACL_INT32, false, false, false, -1, -1, -1, 1, 0};
    CHECK_OK(aclblasCreateHandleForS8gemm(ACL_TRANS_N, ACL_TRANS_N, ACL_TRANS_N, M, N, K, high, &h));
    run_handle(h, &p, N);
    CHECK_OK(aclblasCreateHandleForS8gemv(ACL_TRANS_N, M, K, high, &h));
    run_handle(h, &p, 1);
}

TEST(faults) {
    CHECK_OK(aclrtSetDevice(0));
    void *d = device(512);
    float one = 1;
    int32_t two = 2;
    aclopHandle *h;
    const aclComputeType high = ACL_COMPUTE_HIGH_PRECISION;
#define GEMM(ta, tb, tc, m, n, k, alpha, a, lda, type_a, c)                                                            \
    aclblasGemmEx(ta, tb, tc, m, n, k, alpha, a, lda, type_a, d, -1, ACL_FLOAT, &one, c, -1, ACL_FLOAT, high, NULL)
    CHECK_OK(GEMM(ACL_TRANS_N, ACL_TRANS_N, ACL_TRANS_N, 2, 2, 2, &one, d, -1, ACL_FLOAT, d));
    CHECK_FAILS(ACL_ERROR_API_NOT_SUPPORT, GEMM(ACL_TRANS_NZ, 0, 0, 2, 2, 2, &one, d, -1, ACL_FLOAT, d), "transA", "2");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, GEMM(0, 9, 0, 2, 2, 2, &one, d, -1, ACL_FLOAT, d), "transB", "9");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, GEMM(0, 0, ACL_TRANS_T, 2, 2, 2, &one, d, -1, ACL_FLOAT, d), "transC", "1");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, GEMM(0, 0, 0, 0, 2, 2, &one, d, -1, ACL_FLOAT, d), "m is 0", "1");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, GEMM(0, 0, 0, 2, -3, 2, &one, d, -1, ACL_FLOAT, d), "n is -3");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, GEMM(0, 0, 0, 2, 2, 2, &one, d, 1, ACL_FLOAT, d), "lda is 1", "2");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, GEMM(0, 0, 0, 2, 2, 2, &one, d, -1, ACL_STRING, d), "dataTypeA", "13");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, GEMM(0, 0, 0, 2, 2, 2, NULL, d, -1, ACL_FLOAT, d), "alpha", "NULL");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, GEMM(0, 0, 0, 2, 2, 2, &one, NULL, -1, ACL_FLOAT, d), "matrixA", "NULL");
    CHECK_FAILS(ACL_ERROR_RT_PARAM_INVALID, GEMM(0, 0, 0, 2, 2, 2, &one, d, -1, ACL_FLOAT, &one), "c", "device memory");
    CHECK_FAILS(ACL_ERROR_RT_PARAM_INVALID, GEMM(0, 0, 0, 2, 2, 999, &one, d, -1, ACL_FLOAT, d), "a");
    CHECK_FAILS(ACL_ERROR_API_NOT_SUPPORT, aclblasS8gemm(0, 0, 0, 2, 2, 2, &two, d, -1, d, -1, &two, d, -1, high, NULL),
                "alpha is 2", "8-bit");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM,
                aclblasGemvEx(0, 2, 2, &one, d, -1, ACL_FLOAT, d, 0, ACL_FLOAT, &one, d, -1, ACL_FLOAT, high, NULL),
                "incx is 0", "1");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclblasCreateHandleForHgemv(0, 2, 2, high, NULL), "handle", "NULL");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclblasCreateHandleForHgemv(0, 2, 2, (aclComputeType)5, &h), "type is 5");
    CHECK(h == NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(general_products),
        cmocka_unit_test(typed_forms),
        cmocka_unit_test(handles),
        cmocka_unit_test(faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
