/*
 * math.h - the table of contiguous vector loops, one entry per operation and element type, NULL where a type is not offered.
 *
 * All functions work on n elements, accept any n including 0; elements need their natural alignment only.
 * The destination may equal a source (same address) when its elements are not wider than the source's; partial overlap is not supported. half and bfloat16 results are rounded to nearest even after every operation.
 */
#ifndef DOPPEL_MATH_MATH_H
#define DOPPEL_MATH_MATH_H

#include "base/cpu.h"
#include "doppel/types.h"

typedef void (*dp_unary_fn)(void *dst, const void *a, size_t n);
typedef void (*dp_binary_fn)(void *dst, const void *a, const void *b, size_t n);
/* scalar points to one element of the same type (shift: uint32 count, bit 31 of it = rounding). */
typedef void (*dp_scalar_fn)(void *dst, const void *a, const void *scalar, size_t n);
/* dst is read and written; see each operation for the formula. */
typedef void (*dp_ternary_fn)(void *dst, const void *a, const void *b, size_t n);
/* dst = dst + a * scalar; element types may differ (half source, float destination). */
typedef void (*dp_axpy_fn)(void *dst, const void *a, const void *scalar, size_t n);
/* Conversion with the rounding mode given when the function was looked up. */
typedef void (*dp_cast_fn)(void *dst, const void *a, size_t n);
/* One bit per element, element 0 in bit 0 of byte 0; n need not be a multiple of 8: bits past n in the last byte stay as they are. */
typedef void (*dp_compare_fn)(uint8_t *bits, const void *a, const void *b, size_t n);
/* b points to one element. */
typedef void (*dp_compare_scalar_fn)(uint8_t *bits, const void *a, const void *b, size_t n);
/* dst[i] = bit (first_bit + i) ? a[i] : b[i]. */
typedef void (*dp_select_fn)(void *dst, const uint8_t *bits, size_t first_bit, const void *a, const void *b, size_t n);
typedef void (*dp_fill_fn)(void *dst, const void *scalar, size_t n);
/* dst[i] = element at byte offset offset[i] from base. */
typedef void (*dp_gather_fn)(void *dst, const void *base, const uint32_t *offset_bytes, size_t n);
/* Read-modify-write accumulation into memory other cores write too: atomically per element. */
typedef void (*dp_atomic_fn)(void *dst, const void *a, size_t n);

typedef enum dp_math_binary { DP_MATH_ADD, DP_MATH_SUB, DP_MATH_MUL, DP_MATH_DIV, DP_MATH_MAX, DP_MATH_MIN, DP_MATH_AND,
    DP_MATH_OR, DP_MATH_ADD_RELU, DP_MATH_SUB_RELU, DP_MATH_BINARY_COUNT } dp_math_binary;
typedef enum dp_math_unary { DP_MATH_ABS, DP_MATH_EXP, DP_MATH_LN, DP_MATH_SQRT, DP_MATH_RSQRT, DP_MATH_RECIPROCAL,
    DP_MATH_RELU, DP_MATH_NOT, DP_MATH_UNARY_COUNT } dp_math_unary;
typedef enum dp_math_scalar { DP_MATH_ADDS, DP_MATH_MULS, DP_MATH_MAXS, DP_MATH_MINS, DP_MATH_LEAKY_RELU,
    DP_MATH_SHIFT_LEFT, DP_MATH_SHIFT_RIGHT, DP_MATH_SCALAR_COUNT } dp_math_scalar;
typedef enum dp_math_ternary { DP_MATH_MUL_ADD_DST, /* dst = a*b + dst */ DP_MATH_FUSED_MUL_ADD, /* dst = a*dst + b */
    DP_MATH_FUSED_MUL_ADD_RELU, DP_MATH_TERNARY_COUNT } dp_math_ternary;
/* Numbers of the face's CMPMODE: LT GT EQ LE GE NE; of RoundMode: NONE RINT FLOOR CEIL ROUND TRUNC ODD. */
typedef enum dp_cmp { DP_CMP_LT, DP_CMP_GT, DP_CMP_EQ, DP_CMP_LE, DP_CMP_GE, DP_CMP_NE, DP_CMP_COUNT } dp_cmp;
typedef enum dp_round { DP_ROUND_NONE, DP_ROUND_RINT, DP_ROUND_FLOOR, DP_ROUND_CEIL, DP_ROUND_ROUND, DP_ROUND_TRUNC,
    DP_ROUND_ODD, DP_ROUND_COUNT } dp_round;

typedef enum dp_math_atomic { DP_MATH_ATOMIC_ADD, DP_MATH_ATOMIC_MAX, DP_MATH_ATOMIC_MIN, DP_MATH_ATOMIC_COUNT } dp_math_atomic;

/* Reductions over one run of n elements (n <= 128 per repeat, any n for count forms). value is one element of the type. */
typedef struct dp_reduce_fns {
    /* pairwise binary tree over n lanes (order of the hardware's sum), float accumulates in float, half in half */
    void (*tree_sum)(void *out_value, const void *a, size_t n);
    void (*max)(void *out_value, uint32_t *out_index, const void *a, size_t n); /* lowest index wins; out_index may be NULL */
    void (*min)(void *out_value, uint32_t *out_index, const void *a, size_t n);
    /* sums of groups of 8 (32-bit) or 16 (16-bit) lanes, pairwise tree; n_blocks results */
    void (*block_sum)(void *dst, const void *a, size_t n_blocks);
    void (*block_max)(void *dst, const void *a, size_t n_blocks);
    void (*block_min)(void *dst, const void *a, size_t n_blocks);
    void (*pair_sum)(void *dst, const void *a, size_t n_pairs);
    /* per-repeat tree of n_repeats whole repeats, one result each, contiguous */
    void (*repeat_sum)(void *dst, const void *a, size_t n_repeats);
    /* these sums (at least one) added up in order, rounded to the element type after each; NULL for integers */
    void (*running_sum)(void *out_value, const void *a, size_t n_repeats);
} dp_reduce_fns;

typedef struct dp_math {
    dp_unary_fn unary[DP_MATH_UNARY_COUNT][DP_DTYPE_COUNT];
    dp_binary_fn binary[DP_MATH_BINARY_COUNT][DP_DTYPE_COUNT];
    dp_scalar_fn scalar[DP_MATH_SCALAR_COUNT][DP_DTYPE_COUNT];
    dp_ternary_fn ternary[DP_MATH_TERNARY_COUNT][DP_DTYPE_COUNT];
    dp_ternary_fn mul_add_dst_wide; /* float dst = half a * half b + dst */
    dp_axpy_fn axpy[DP_DTYPE_COUNT][DP_DTYPE_COUNT]; /* [destination][source]; scalar is of the source's type */
    dp_cast_fn cast[DP_DTYPE_COUNT][DP_DTYPE_COUNT][DP_ROUND_COUNT]; /* [destination][source][mode]: more than a kernel may use; saturating */
    dp_compare_fn compare[DP_CMP_COUNT][DP_DTYPE_COUNT];
    dp_compare_scalar_fn compare_scalar[DP_CMP_COUNT][DP_DTYPE_COUNT];
    dp_select_fn select[DP_DTYPE_COUNT];        /* by element width: all types of one width share a function */
    dp_select_fn select_scalar[DP_DTYPE_COUNT]; /* b points to one element */
    dp_fill_fn fill[DP_DTYPE_COUNT];
    dp_gather_fn gather[DP_DTYPE_COUNT];
    dp_reduce_fns reduce[DP_DTYPE_COUNT];
    dp_atomic_fn atomic[DP_MATH_ATOMIC_COUNT][DP_DTYPE_COUNT];
    void (*copy)(void *dst, const void *src, size_t size_bytes); /* cached copy, small sizes fast */
    /* Destination past the caches, whatever the size (the device decides where it pays). Not ordered with later stores: call stream_fence before others are told of the data. */
    void (*copy_stream)(void *dst, const void *src, size_t size_bytes);
    /* The same, calling the lines of [next, next + next_bytes) into the second level cache meanwhile: what will be read soon. Any address does. */
    void (*copy_stream_ahead)(void *dst, const void *src, size_t size_bytes, const void *next, size_t next_bytes);
    /* Out of memory that is in no cache. The regions do not overlap. */
    void (*copy_in)(void *dst, const void *src, size_t size_bytes);
    void (*stream_fence)(void);
} dp_math;

/*
 * Data of this many bytes have left the caches before anybody reads them again: they are better written past them (copy_stream), which
 * saves reading the lines that are written over.
 */
enum { DP_STREAM_BYTES = 16 << 20 };

/*
 * How far ahead of what is read now copy_stream_ahead is asked to look. Work on tiles of 4 KiB that are written past the caches took
 * 0.81 of the time with 8 KiB to 256 KiB (Sapphire Rapids): without, reading and writing take turns and each waits for the memory alone.
 */
enum { DP_AHEAD_BYTES = 32 << 10 };

/* Table of a rung; rungs the processor lacks (or the build left out) give the best lower one. Never NULL; immutable. */
const dp_math *dp_math_table(dp_isa isa);
/* Table of the rung in force. */
const dp_math *dp_math_current(void);

#endif
