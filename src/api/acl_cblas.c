#include "acl/ops/acl_cblas.h"

#include "api/acl_op.h"
#include "api/aclnn.h"
#include "base/memory.h"

/* Operands of "GEMM": a, b, c, alpha, beta, and y, which is c again. */
enum { A, B, C, ALPHA, BETA, Y, OPERANDS, INPUTS = Y };

typedef struct gemm {
    const dp_typed *type;
    dp_op_operand operands[OPERANDS];
    dp_arg flags[2];
    struct aclopAttr attr;
} gemm;

static dp_status check_trans(const char *name, aclTransType trans, bool allowed) {
    if (trans == ACL_TRANS_N || (trans == ACL_TRANS_T && allowed))
        return DP_OK;
    if (trans == ACL_TRANS_NZ || trans == ACL_TRANS_NZ_T)
        return dp_fail(DP_ERR_UNSUPPORTED, "%s is %d, a private layout, but Doppel has plain matrices only", name,
                       (int)trans);
    return dp_fail(DP_ERR_ARGUMENT, "%s is %d, but must be %s", name, (int)trans,
                   allowed ? "ACL_TRANS_N (0) or ACL_TRANS_T (1)" : "ACL_TRANS_N (0)");
}

static dp_status check_sizes(int m, int n, int k, aclComputeType type) {
    const struct {
        const char *name;
        int value;
    } sizes[] = {{"m", m}, {"n", n}, {"k", k}};
    for (int i = 0; i < 3; i++)
        if (sizes[i].value < 1)
            return dp_fail(DP_ERR_ARGUMENT, "%s is %d, but must be at least 1", sizes[i].name, sizes[i].value);
    if (type != ACL_COMPUTE_HIGH_PRECISION && type != ACL_COMPUTE_LOW_PRECISION)
        return dp_fail(DP_ERR_ARGUMENT, "type is %d, but must be an aclComputeType (0 or 1)", (int)type);
    return DP_OK;
}

/* A matrix as it lies in memory; the distance of rows is `row`, of columns `column`. */
static dp_status set_matrix(dp_op_operand *to, const char *name, aclDataType type, int64_t rows, int64_t columns,
                            int64_t row, int64_t column, const void *data) {
    int element = dp_aclnn_element(type);
    if (dp_element_bytes(element) == 0)
        return dp_fail(DP_ERR_ARGUMENT, "dataType%s is %d, but must be a type that operators know", name, (int)type);
    *to = (dp_op_operand){.view = {.element = element,
                                   .rank = 2,
                                   .dims = {rows, columns},
                                   .strides = {row, column},
                                   .base = (void *)(uintptr_t)data},
                          .bytes = SIZE_MAX}; /* not told */
    return DP_OK;
}

static dp_status leading(const char *name, int given, int64_t least, int64_t *out) {
    *out = given == -1 ? least : given;
    return given == -1 || given >= least
               ? DP_OK
               : dp_fail(DP_ERR_ARGUMENT, "%s is %d, but must be -1 or at least %lld", name, given, (long long)least);
}

static dp_status check_pointer(const char *name, const void *pointer) {
    return pointer ? DP_OK : dp_fail(DP_ERR_ARGUMENT, "%s is NULL, but must be its data", name);
}

static dp_status begin(gemm *g, bool transpose_a, bool transpose_b, aclDataType number_type, const void *alpha,
                       const void *beta) {
    const char *names[] = {"transpose_a", "transpose_b"};
    const bool values[] = {transpose_a, transpose_b};
    for (int i = 0; i < 2; i++)
        g->flags[i] = (dp_arg){.name = names[i], .kind = DP_ARG_INTEGER, .as.integer = values[i]};
    g->attr = (struct aclopAttr){2, 2, g->flags};
    const void *numbers[] = {alpha, beta};
    for (int i = 0; i < 2; i++)
        g->operands[ALPHA + i] = (dp_op_operand){.view = {.element = dp_aclnn_element(number_type),
                                                          .rank = 1,
                                                          .dims = {1},
                                                          .strides = {1},
                                                          .base = (void *)(uintptr_t)numbers[i]},
                                                 .bytes = SIZE_MAX};
    g->operands[Y] = g->operands[C];
    return dp_typed_find("GEMM", &g->type);
}

typedef struct matrix {
    const void *data;
    int ld;
    aclDataType type;
} matrix;

static dp_status make_gemm(gemm *g, aclTransType transA, aclTransType transB, aclTransType transC, int m, int n, int k,
                           aclComputeType type, matrix a, matrix b, matrix c, const void *alpha, const void *beta) {
    int64_t lda, ldb, ldc;
    dp_status status = check_trans("transA", transA, true);
    if (status == DP_OK)
        status = check_trans("transB", transB, true);
    if (status == DP_OK)
        status = check_trans("transC", transC, false);
    if (status == DP_OK)
        status = check_sizes(m, n, k, type);
    if (status != DP_OK)
        return status;
    bool ta = transA == ACL_TRANS_T, tb = transB == ACL_TRANS_T;
    status = leading("lda", a.ld, ta ? m : k, &lda);
    if (status == DP_OK)
        status = leading("ldb", b.ld, tb ? k : n, &ldb);
    if (status == DP_OK)
        status = leading("ldc", c.ld, n, &ldc);
    if (status == DP_OK)
        status = set_matrix(&g->operands[A], "A", a.type, ta ? k : m, ta ? m : k, lda, 1, a.data);
    if (status == DP_OK)
        status = set_matrix(&g->operands[B], "B", b.type, tb ? n : k, tb ? k : n, ldb, 1, b.data);
    if (status == DP_OK)
        status = set_matrix(&g->operands[C], "C", c.type, m, n, ldc, 1, c.data);
    return status == DP_OK ? begin(g, ta, tb, c.type, alpha, beta) : status;
}

/* The vector is a matrix of one column; a.ld of a vector is the distance of its elements. */
static dp_status make_gemv(gemm *g, aclTransType transA, int m, int n, aclComputeType type, matrix a, matrix x,
                           matrix y, const void *alpha, const void *beta) {
    int64_t lda, incx, incy;
    dp_status status = check_trans("transA", transA, true);
    if (status == DP_OK)
        status = check_sizes(m, n, 1, type);
    if (status != DP_OK)
        return status;
    bool ta = transA == ACL_TRANS_T;
    status = leading("lda", a.ld, ta ? m : n, &lda);
    if (status == DP_OK)
        status = leading("incx", x.ld, 1, &incx);
    if (status == DP_OK)
        status = leading("incy", y.ld, 1, &incy);
    if (status == DP_OK)
        status = set_matrix(&g->operands[A], "A", a.type, ta ? n : m, ta ? m : n, lda, 1, a.data);
    if (status == DP_OK)
        status = set_matrix(&g->operands[B], "X", x.type, n, 1, incx, 1, x.data);
    if (status == DP_OK)
        status = set_matrix(&g->operands[C], "Y", y.type, m, 1, incy, 1, y.data);
    return status == DP_OK ? begin(g, ta, false, y.type, alpha, beta) : status;
}

static dp_status run(gemm *g, dp_status status, const char *const names[5], aclrtStream stream) {
    for (int i = 0; i < INPUTS && status == DP_OK; i++)
        status = check_pointer(names[i], g->operands[i].view.base);
    return status == DP_OK ? dp_op_run(g->type, g->operands, INPUTS, 1, &g->attr, stream) : status;
}

static const char *const gemm_names[] = {"matrixA", "matrixB", "matrixC", "alpha", "beta"};
static const char *const gemv_names[] = {"a", "x", "y", "alpha", "beta"};

aclError aclblasGemmEx(aclTransType transA, aclTransType transB, aclTransType transC, int m, int n, int k,
                       const void *alpha, const void *matrixA, int lda, aclDataType dataTypeA, const void *matrixB,
                       int ldb, aclDataType dataTypeB, const void *beta, void *matrixC, int ldc, aclDataType dataTypeC,
                       aclComputeType type, aclrtStream stream) {
    dp_api_call call = DP_API_CALL();
    call.stream = stream;
    gemm g;
    dp_status status = make_gemm(&g, transA, transB, transC, m, n, k, type, (matrix){matrixA, lda, dataTypeA},
                                 (matrix){matrixB, ldb, dataTypeB}, (matrix){matrixC, ldc, dataTypeC}, alpha, beta);
    return dp_op_end(&call, run(&g, status, gemm_names, stream));
}

aclError aclblasHgemm(aclTransType transA, aclTransType transB, aclTransType transC, int m, int n, int k,
                      const aclFloat16 *alpha, const aclFloat16 *matrixA, int lda, const aclFloat16 *matrixB, int ldb,
                      const aclFloat16 *beta, aclFloat16 *matrixC, int ldc, aclComputeType type, aclrtStream stream) {
    dp_api_call call = DP_API_CALL();
    call.stream = stream;
    gemm g;
    dp_status status = make_gemm(&g, transA, transB, transC, m, n, k, type, (matrix){matrixA, lda, ACL_FLOAT16},
                                 (matrix){matrixB, ldb, ACL_FLOAT16}, (matrix){matrixC, ldc, ACL_FLOAT16}, alpha, beta);
    return dp_op_end(&call, run(&g, status, gemm_names, stream));
}

aclError aclblasS8gemm(aclTransType transA, aclTransType transB, aclTransType transC, int m, int n, int k,
                       const int32_t *alpha, const int8_t *matrixA, int lda, const int8_t *matrixB, int ldb,
                       const int32_t *beta, int32_t *matrixC, int ldc, aclComputeType type, aclrtStream stream) {
    dp_api_call call = DP_API_CALL();
    call.stream = stream;
    gemm g;
    dp_status status = make_gemm(&g, transA, transB, transC, m, n, k, type, (matrix){matrixA, lda, ACL_INT8},
                                 (matrix){matrixB, ldb, ACL_INT8}, (matrix){matrixC, ldc, ACL_INT32}, alpha, beta);
    return dp_op_end(&call, run(&g, status, gemm_names, stream));
}

aclError aclblasGemvEx(aclTransType transA, int m, int n, const void *alpha, const void *a, int lda,
                       aclDataType dataTypeA, const void *x, int incx, aclDataType dataTypeX, const void *beta, void *y,
                       int incy, aclDataType dataTypeY, aclComputeType type, aclrtStream stream) {
    dp_api_call call = DP_API_CALL();
    call.stream = stream;
    gemm g;
    dp_status status = make_gemv(&g, transA, m, n, type, (matrix){a, lda, dataTypeA}, (matrix){x, incx, dataTypeX},
                                 (matrix){y, incy, dataTypeY}, alpha, beta);
    return dp_op_end(&call, run(&g, status, gemv_names, stream));
}

aclError aclblasHgemv(aclTransType transA, int m, int n, const aclFloat16 *alpha, const aclFloat16 *a, int lda,
                      const aclFloat16 *x, int incx, const aclFloat16 *beta, aclFloat16 *y, int incy,
                      aclComputeType type, aclrtStream stream) {
    dp_api_call call = DP_API_CALL();
    call.stream = stream;
    gemm g;
    dp_status status = make_gemv(&g, transA, m, n, type, (matrix){a, lda, ACL_FLOAT16}, (matrix){x, incx, ACL_FLOAT16},
                                 (matrix){y, incy, ACL_FLOAT16}, alpha, beta);
    return dp_op_end(&call, run(&g, status, gemv_names, stream));
}

aclError aclblasS8gemv(aclTransType transA, int m, int n, const int32_t *alpha, const int8_t *a, int lda,
                       const int8_t *x, int incx, const int32_t *beta, int32_t *y, int incy, aclComputeType type,
                       aclrtStream stream) {
    dp_api_call call = DP_API_CALL();
    call.stream = stream;
    gemm g;
    dp_status status = make_gemv(&g, transA, m, n, type, (matrix){a, lda, ACL_INT8}, (matrix){x, incx, ACL_INT8},
                                 (matrix){y, incy, ACL_INT32}, alpha, beta);
    return dp_op_end(&call, run(&g, status, gemv_names, stream));
}

/* Handles. Buffers come later, and with them their sizes. */
static dp_status create(gemm *g, dp_status status, aclopHandle **handle) {
    if (!handle)
        return dp_fail(DP_ERR_ARGUMENT, "handle is NULL, but must be the address of an aclopHandle pointer");
    *handle = NULL;
    for (int i = 0; i < OPERANDS && status == DP_OK; i++)
        g->operands[i].bytes = 0;
    if (status == DP_OK)
        status = dp_op_check(g->type, g->operands, INPUTS, 1, &g->attr);
    return status == DP_OK ? dp_op_handle_create(g->type, g->operands, INPUTS, 1, &g->attr, handle) : status;
}

aclError aclblasCreateHandleForGemmEx(aclTransType transA, aclTransType transB, aclTransType transC, int m, int n,
                                      int k, aclDataType dataTypeA, aclDataType dataTypeB, aclDataType dataTypeC,
                                      aclComputeType type, aclopHandle **handle) {
    dp_api_call call = DP_API_CALL();
    gemm g;
    dp_status status = make_gemm(&g, transA, transB, transC, m, n, k, type, (matrix){NULL, -1, dataTypeA},
                                 (matrix){NULL, -1, dataTypeB}, (matrix){NULL, -1, dataTypeC}, NULL, NULL);
    return dp_op_end(&call, create(&g, status, handle));
}

aclError aclblasCreateHandleForHgemm(aclTransType transA, aclTransType transB, aclTransType transC, int m, int n, int k,
                                     aclComputeType type, aclopHandle **handle) {
    dp_api_call call = DP_API_CALL();
    gemm g;
    matrix half = {NULL, -1, ACL_FLOAT16};
    dp_status status = make_gemm(&g, transA, transB, transC, m, n, k, type, half, half, half, NULL, NULL);
    return dp_op_end(&call, create(&g, status, handle));
}

aclError aclblasCreateHandleForS8gemm(aclTransType transA, aclTransType transB, aclTransType transC, int m, int n,
                                      int k, aclComputeType type, aclopHandle **handle) {
    dp_api_call call = DP_API_CALL();
    gemm g;
    matrix bytes = {NULL, -1, ACL_INT8};
    dp_status status =
        make_gemm(&g, transA, transB, transC, m, n, k, type, bytes, bytes, (matrix){NULL, -1, ACL_INT32}, NULL, NULL);
    return dp_op_end(&call, create(&g, status, handle));
}

aclError aclblasCreateHandleForGemvEx(aclTransType transA, int m, int n, aclDataType dataTypeA, aclDataType dataTypeX,
                                      aclDataType dataTypeY, aclComputeType type, aclopHandle **handle) {
    dp_api_call call = DP_API_CALL();
    gemm g;
    dp_status status = make_gemv(&g, transA, m, n, type, (matrix){NULL, -1, dataTypeA}, (matrix){NULL, -1, dataTypeX},
                                 (matrix){NULL, -1, dataTypeY}, NULL, NULL);
    return dp_op_end(&call, create(&g, status, handle));
}

aclError aclblasCreateHandleForHgemv(aclTransType transA, int m, int n, aclComputeType type, aclopHandle **handle) {
    dp_api_call call = DP_API_CALL();
    gemm g;
    matrix half = {NULL, -1, ACL_FLOAT16};
    dp_status status = make_gemv(&g, transA, m, n, type, half, half, half, NULL, NULL);
    return dp_op_end(&call, create(&g, status, handle));
}

aclError aclblasCreateHandleForS8gemv(aclTransType transA, int m, int n, aclComputeType type, aclopHandle **handle) {
    dp_api_call call = DP_API_CALL();
    gemm g;
    matrix bytes = {NULL, -1, ACL_INT8};
    dp_status status = make_gemv(&g, transA, m, n, type, bytes, bytes, (matrix){NULL, -1, ACL_INT32}, NULL, NULL);
    return dp_op_end(&call, create(&g, status, handle));
}
