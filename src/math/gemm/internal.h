/*
 * internal.h - what the parts of the matrix engine know of each other.
 *
 * Everything is counted in units of 4 bytes along k: one float (kind F32), two int16 (I16), two bfloat16 (BF16), four
 * bytes (U8, unsigned x signed; I8, signed x signed, by matrix tiles only). A is used as rows of units; B as panels [units][columns] with columns = 2 vectors, the
 * last panel padded with zeros. A U8 panel is followed by -128 * (sum of each column): the start of a sum whose A was
 * int8 + 128.
 *
 * Kinds by matrix tiles (plan->tiled) work on whole tiles of 16 rows and 16 units: packing fills the units up with
 * zeros, and rows past the last one are computed from whatever the scratch holds and not stored.
 */
#ifndef DOPPEL_MATH_GEMM_INTERNAL_H
#define DOPPEL_MATH_GEMM_INTERNAL_H

#include "math/gemm/gemm.h"

typedef enum dp_gemm_kind {
    DP_GEMM_F32,
    DP_GEMM_I16,
    DP_GEMM_BF16,
    DP_GEMM_U8,
    DP_GEMM_I8,
    DP_GEMM_KIND_COUNT
} dp_gemm_kind;

enum {
    DP_GEMM_ROWS_MAX = 32,
    DP_GEMM_COLUMNS_MAX = 32,
    DP_GEMM_DECODE_ROWS = 8,
    DP_GEMM_DECODE_COLUMNS = 4096, /* rows of B that lie apart are read this much at a time */
    DP_GEMM_TILE = 16 /* rows and units of a matrix tile */
};

/*
 * Memory that will be read next: the micro-kernel asks for one line every second unit, so that reading from the third
 * level cache or memory goes on beside the arithmetic. `step` bytes between lines, and `turn` more after every eighth.
 */
typedef struct dp_gemm_walk {
    const char *at;
    ptrdiff_t step, turn;
} dp_gemm_walk;

/*
 * c[rows x (vectors * lanes)] = init (one row, or 0) + a x b over `units`, or added to c. Strides in units: a_stride
 * between rows, b_stride between units of B. Reads whole vectors of b and writes whole vectors of c.
 */
typedef void (*dp_gemm_kernel_fn)(size_t units, const uint32_t *a, size_t a_stride, const uint32_t *b, size_t b_stride,
                                  const int32_t *init, uint32_t *c, size_t c_stride, bool add,
                                  const dp_gemm_walk *walk);

/* A run of a matrix: `count` elements along k from element offset `first` (nibbles for int4), k_stride apart. */
typedef struct dp_gemm_view {
    const void *data;
    ptrdiff_t first, k_stride, other_stride; /* other: rows of A, columns of B */
    dp_dtype dtype;
    bool flip;                  /* int8 becomes int8 + 128 */
    const dp_gemm_quant *quant; /* or NULL */
    size_t k_first, j_first;    /* place in B, for the scales */
} dp_gemm_view;

/* The finished part of C: what dp_gemm_rung.finish needs beside the plan. */
typedef struct dp_gemm_spot {
    size_t i, j, rows, columns;
} dp_gemm_spot;

typedef struct dp_gemm_rung {
    size_t lanes, rows, columns; /* of the micro-kernel */
    /*
     * By kind, NULL where there are none: one vector with 1, 2, ... rows, then two vectors. By matrix tiles: one vector
     * with up to 16 and up to 32 rows, then two.
     */
    const dp_gemm_kernel_fn *kernels[DP_GEMM_KIND_COUNT];
    unsigned tiled_kinds;                  /* bit per kind that goes by matrix tiles */
    void (*tiles_begin)(void);             /* sets the thread's tiles up, and gives them back */
    void (*tiles_end)(void);
    /* rows (at most DP_GEMM_COLUMNS_MAX) x k_count elements to rows of units; the last unit of a row is filled up with
     * zeros */
    void (*pack_rows)(dp_gemm_kind kind, const dp_gemm_view *view, size_t rows, size_t k_count, uint32_t *dst,
                      size_t dst_stride);
    /* columns x k_count elements to a panel; sums[columns] -= 128 * column sums (U8 only, else NULL) */
    void (*pack_panel)(dp_gemm_kind kind, const dp_gemm_view *view, size_t columns, size_t k_count, uint32_t *dst,
                       int32_t *sums);
    /* the same of `panels` whole panels of floats at once, columns of float, half or bfloat16 side by side: rows of
     * such a matrix lie on pages of their own, and each is visited once */
    void (*pack_wide)(const dp_gemm_view *view, size_t panels, size_t k_count, float *dst, size_t panel_stride);
    /* sums (float, or int32 with integer kinds; rows stride apart) through the epilogue to C */
    void (*finish)(const dp_gemm_plan *plan, dp_gemm_spot spot, const uint32_t *sums, size_t stride);
    /* few rows: A as float rows the way the other function wants them (dp_gemm_decode_stride apart), then group sums */
    void (*decode_rows)(const dp_gemm_plan *plan, float *rows);
    /* sums[i * DP_GEMM_DECODE_COLUMNS ...] of columns [j, j + columns) of C; j a multiple of 32 */
    void (*decode)(const dp_gemm_plan *plan, size_t j, size_t columns, const float *rows, float *sums);
    /* a run of half or bfloat16 to float */
    void (*widen)(float *dst, const void *src, dp_dtype dtype, size_t n);
} dp_gemm_rung;

/* The rung's functions; kernels by the features of DP_CPU_*. Never NULL. */
const dp_gemm_rung *dp_gemm_rung_for(dp_isa isa, unsigned features);

/* How decode reads B. */
enum { DP_GEMM_DECODE_NO, DP_GEMM_DECODE_DOT, DP_GEMM_DECODE_AXPY, DP_GEMM_DECODE_PANEL };

static inline size_t dp_gemm_ceil(size_t x, size_t step) {
    return (x + step - 1) / step;
}
static inline size_t dp_gemm_round(size_t x, size_t step) {
    return dp_gemm_ceil(x, step) * step;
}

/* Units as the kernel and the packed form count them. */
static inline size_t dp_gemm_kernel_units(const dp_gemm_plan *plan, size_t units) {
    return plan->tiled ? dp_gemm_round(units, DP_GEMM_TILE) : units;
}

/* Floats from one prepared row to the next: whole chunks of 8 vectors, and not a power of two. */
static inline size_t dp_gemm_decode_stride(size_t k) {
    return dp_gemm_round(k, 128) + 16;
}
/* Entries of the sums of x over each group of a quantised B, 0 where they are not needed. */
static inline size_t dp_gemm_decode_groups(const dp_gemm_plan *plan) {
    const dp_gemm_quant *q = &plan->problem.quant;
    return !q->scale || !q->offset ? 0 : q->group_size ? dp_gemm_ceil(plan->problem.k, q->group_size) : 1;
}

/*
 * plan.c: a few columns of C past the last whole vector, which the micro-kernel would multiply as a whole one: they are a product of
 * their own, turned round, by dot products with the rows of A. How many (mostly 0), and its plan. It is one more column of tiles, of
 * which the first does the work.
 */
size_t dp_gemm_tail(const dp_gemm_plan *plan);
void dp_gemm_tail_plan(const dp_gemm_plan *plan, dp_gemm_plan *out_plan);

/* tile.c: rows [i, i + rows) of A, units [u, u + count) of all its blocks. */
void dp_gemm_pack_a_units(const dp_gemm_plan *plan, size_t i, size_t rows, size_t u, size_t count, uint32_t *dst,
                          size_t dst_stride);
/* Packed B: blocks of unit_block units, each with its panels in order. Byte offset of a panel of a block. */
size_t dp_gemm_packed_b_at(const dp_gemm_plan *plan, size_t block, size_t panel);
void dp_gemm_pack_b_all(const dp_gemm_plan *plan, void *out_packed);

#endif
