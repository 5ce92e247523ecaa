/*
 * acl_cblas.h - products of matrices by pointers.
 *
 * C = alpha * op(A) x op(B) + beta * C, y = alpha * op(A) x x + beta * y. Matrices are row-major: op(A) is m x k, op(B)
 * k x n, C m x n; for gemv op(A) is m x n. lda, ldb, ldc are the distances of rows in elements, -1: no gaps; incx and
 * incy those of elements, -1: 1. ACL_TRANS_NZ and ACL_TRANS_NZ_T name a private layout and are refused, as is any
 * transC but ACL_TRANS_N. Matrices lie in device memory. alpha and beta have the type of C and lie in host memory, or
 * in device memory, for which the call waits until the stream's work is done.
 *
 * Types: float, half and bfloat16 in any mixture, summed in float; or int8 by int8 to int32, for which alpha must be 1
 * and beta 0. The precision asked for changes nothing.
 */
#ifndef ACL_CBLAS_H
#define ACL_CBLAS_H

#include "../acl_base.h"
#include "../acl_op.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum aclTransType { ACL_TRANS_N, ACL_TRANS_T, ACL_TRANS_NZ, ACL_TRANS_NZ_T } aclTransType;
typedef enum aclComputeType { ACL_COMPUTE_HIGH_PRECISION, ACL_COMPUTE_LOW_PRECISION } aclComputeType;

/* Queued on the stream. */
ACL_FUNC_VISIBILITY aclError aclblasGemmEx(aclTransType transA, aclTransType transB, aclTransType transC, int m, int n,
                                           int k, const void *alpha, const void *matrixA, int lda,
                                           aclDataType dataTypeA, const void *matrixB, int ldb, aclDataType dataTypeB,
                                           const void *beta, void *matrixC, int ldc, aclDataType dataTypeC,
                                           aclComputeType type, aclrtStream stream);
ACL_FUNC_VISIBILITY aclError aclblasGemvEx(aclTransType transA, int m, int n, const void *alpha, const void *a, int lda,
                                           aclDataType dataTypeA, const void *x, int incx, aclDataType dataTypeX,
                                           const void *beta, void *y, int incy, aclDataType dataTypeY,
                                           aclComputeType type, aclrtStream stream);
/* All half. */
ACL_FUNC_VISIBILITY aclError aclblasHgemm(aclTransType transA, aclTransType transB, aclTransType transC, int m, int n,
                                          int k, const aclFloat16 *alpha, const aclFloat16 *matrixA, int lda,
                                          const aclFloat16 *matrixB, int ldb, const aclFloat16 *beta,
                                          aclFloat16 *matrixC, int ldc, aclComputeType type, aclrtStream stream);
ACL_FUNC_VISIBILITY aclError aclblasHgemv(aclTransType transA, int m, int n, const aclFloat16 *alpha,
                                          const aclFloat16 *a, int lda, const aclFloat16 *x, int incx,
                                          const aclFloat16 *beta, aclFloat16 *y, int incy, aclComputeType type,
                                          aclrtStream stream);
/* int8 to int32. */
ACL_FUNC_VISIBILITY aclError aclblasS8gemm(aclTransType transA, aclTransType transB, aclTransType transC, int m, int n,
                                           int k, const int32_t *alpha, const int8_t *matrixA, int lda,
                                           const int8_t *matrixB, int ldb, const int32_t *beta, int32_t *matrixC,
                                           int ldc, aclComputeType type, aclrtStream stream);
ACL_FUNC_VISIBILITY aclError aclblasS8gemv(aclTransType transA, int m, int n, const int32_t *alpha, const int8_t *a,
                                           int lda, const int8_t *x, int incx, const int32_t *beta, int32_t *y,
                                           int incy, aclComputeType type, aclrtStream stream);

/*
 * Handles of the same for matrices without gaps. aclopExecWithHandle takes the buffers A, B (or x), C (or y), alpha,
 * beta and as output C (or y) again. The caller destroys them with aclopDestroyHandle.
 */
ACL_FUNC_VISIBILITY aclError aclblasCreateHandleForGemmEx(aclTransType transA, aclTransType transB, aclTransType transC,
                                                          int m, int n, int k, aclDataType dataTypeA,
                                                          aclDataType dataTypeB, aclDataType dataTypeC,
                                                          aclComputeType type, aclopHandle **handle);
ACL_FUNC_VISIBILITY aclError aclblasCreateHandleForGemvEx(aclTransType transA, int m, int n, aclDataType dataTypeA,
                                                          aclDataType dataTypeX, aclDataType dataTypeY,
                                                          aclComputeType type, aclopHandle **handle);
ACL_FUNC_VISIBILITY aclError aclblasCreateHandleForHgemm(aclTransType transA, aclTransType transB, aclTransType transC,
                                                         int m, int n, int k, aclComputeType type,
                                                         aclopHandle **handle);
ACL_FUNC_VISIBILITY aclError aclblasCreateHandleForHgemv(aclTransType transA, int m, int n, aclComputeType type,
                                                         aclopHandle **handle);
ACL_FUNC_VISIBILITY aclError aclblasCreateHandleForS8gemm(aclTransType transA, aclTransType transB, aclTransType transC,
                                                          int m, int n, int k, aclComputeType type,
                                                          aclopHandle **handle);
ACL_FUNC_VISIBILITY aclError aclblasCreateHandleForS8gemv(aclTransType transA, int m, int n, aclComputeType type,
                                                          aclopHandle **handle);

#ifdef __cplusplus
}
#endif

#endif
