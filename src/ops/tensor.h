/*
 * tensor.h - what operators know of a tensor: a view of elements in device memory.
 */
#ifndef DOPPEL_OPS_TENSOR_H
#define DOPPEL_OPS_TENSOR_H

#include "base/status.h"
#include "doppel/types.h"

enum { DP_TENSOR_DIMS = 8 };

/* Element types: those of dp_dtype with their numbers, and what only operators know. */
typedef enum dp_element {
    DP_EL_BOOL = DP_DTYPE_COUNT, /* one byte, 0 or 1; other values are read as true */
    DP_EL_C64,                   /* two floats */
    DP_EL_C128,
    DP_EL_COUNT,
    DP_EL_NONE = -1
} dp_element;

/* Sets of element types, as in the register's last column. */
#define DP_EL_BIT(element) (1u << (element))
#define DP_EL_HALVES (DP_EL_BIT(DP_F16) | DP_EL_BIT(DP_BF16))
#define DP_EL_FLOATS (DP_EL_HALVES | DP_EL_BIT(DP_F32) | DP_EL_BIT(DP_F64))
#define DP_EL_INTS                                                                                                     \
    (DP_EL_BIT(DP_I8) | DP_EL_BIT(DP_U8) | DP_EL_BIT(DP_I16) | DP_EL_BIT(DP_U16) | DP_EL_BIT(DP_I32) |                 \
     DP_EL_BIT(DP_U32) | DP_EL_BIT(DP_I64) | DP_EL_BIT(DP_U64))
#define DP_EL_COMPLEX (DP_EL_BIT(DP_EL_C64) | DP_EL_BIT(DP_EL_C128))
/* The register's names for them. */
#define DP_SET_NUM (DP_EL_FLOATS | (DP_EL_INTS & ~DP_EL_BIT(DP_U64)) | DP_EL_BIT(DP_EL_BOOL))
#define DP_SET_REAL (DP_EL_FLOATS | DP_EL_INTS | DP_EL_BIT(DP_EL_BOOL))
#define DP_SET_INT (DP_EL_INTS | DP_EL_BIT(DP_EL_BOOL))
#define DP_SET_HALF (DP_EL_FLOATS & ~DP_EL_BIT(DP_F64))
#define DP_SET_ALL (DP_SET_REAL | DP_EL_COMPLEX)

/* Bytes of one element, 0 for 4-bit types and values that are no type. */
size_t dp_element_bytes(int element);
const char *dp_element_name(int element);
static inline bool dp_element_is_float(int element) {
    return element >= 0 && (DP_EL_FLOATS >> element & 1);
}
static inline bool dp_element_is_int(int element) {
    return element >= 0 && (DP_EL_INTS >> element & 1);
}

/*
 * Dims are outermost first; strides and offset count elements. `base` is the address of storage element 0; elements are
 * at base + (offset + sum(index * stride)) * bytes. All dims are >= 0, and extents fit 62 bits (dp_tensor_check).
 */
typedef struct dp_tensor {
    int32_t element; /* dp_element or dp_dtype */
    int32_t format;  /* the vendor's number, kept for the families that read it */
    int32_t rank;
    int64_t offset;
    int64_t dims[DP_TENSOR_DIMS], strides[DP_TENSOR_DIMS];
    void *base;
} dp_tensor;

/* A number with its type; both fields hold the value, rounded towards zero in `integer`. */
typedef struct dp_scalar {
    int32_t element;
    int64_t integer;
    double real;
    double imaginary;
} dp_scalar;

/* Refuses negative dims or strides, products past 2^62 and offsets below 0; `name` is the parameter's. */
dp_status dp_tensor_check(const dp_tensor *tensor, const char *name);
/*
 * Strides that lead nowhere - those of dims of one element, all of a tensor without elements, and its offset - become 0 where they are so
 * large that sums and products with them could overflow. Of a tensor that was checked.
 */
void dp_tensor_settle(dp_tensor *tensor);
int64_t dp_tensor_count(const dp_tensor *tensor);
/* Bytes from `base` that the view touches: [*out_begin, *out_end). Both 0 when it has no elements. */
void dp_tensor_extent(const dp_tensor *tensor, size_t *out_begin, size_t *out_end);
bool dp_tensor_is_contiguous(const dp_tensor *tensor);
static inline void *dp_tensor_data(const dp_tensor *tensor) {
    if (tensor->element == DP_I4)
        return (char *)tensor->base + tensor->offset / 2;
    return (char *)tensor->base + tensor->offset * (int64_t)dp_element_bytes(tensor->element);
}
/* The same tensor with `size` (at most what it is) in one dim. A contiguous one stays so: its strides change too. */
void dp_tensor_shrink(dp_tensor *tensor, int dim, int64_t size);
/* "f32[2,3]", with strides when it is not contiguous. Returns text. */
const char *dp_tensor_describe(const dp_tensor *tensor, char *text, size_t text_bytes);
/* "[2, 3]" of any list of sizes. Returns text. */
const char *dp_dims_describe(const int64_t *dims, int rank, char *text, size_t text_bytes);
/* dim counted from the end when negative; refuses what is outside [-rank, rank-1] (rank 0 counts as 1). */
dp_status dp_dim_check(int64_t dim, const dp_tensor *tensor, const char *name, int *out_dim);
/* Refuses a tensor whose dims are not these; what has no dims may also have one of 1. `meaning` says where they come
 * from. */
dp_status dp_shape_expect(const dp_tensor *tensor, const char *name, const int64_t *dims, int rank,
                          const char *meaning);
/*
 * How shapes of outputs are found out before there are any: while this thread has a learner, dp_shape_expect of a
 * target that is not learned yet writes the dims it was given into it, marks it and fails, instead of comparing.
 */
typedef struct dp_shape_learner {
    dp_tensor *targets;
    bool *learned;
    int count, n_learned;
} dp_shape_learner;
void dp_shape_learn(dp_shape_learner *learner); /* NULL: no more */

#endif
