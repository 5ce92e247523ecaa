/*
 * lines.h - operators that work on lines: a tensor is cut into lines along some dims, each line is read as floats,
 * worked on as a whole, and written back. Softmax and the norms are such.
 */
#ifndef DOPPEL_OPS_LINES_H
#define DOPPEL_OPS_LINES_H

#include "ops/elementwise/kernels.h"
#include "ops/loop.h"
#include "ops/op.h"

/* The same views in two loops: over lines, and inside one. Types are floating point. */
typedef struct dp_lines {
    dp_loop outer, inner;
    int slot[DP_LOOP_VIEWS], element[DP_LOOP_VIEWS];
    dp_convert_fn load[DP_LOOP_VIEWS], store[DP_LOOP_VIEWS];
    int ahead; /* the view that is read from end to end, if view 1 is; else -1 */
} dp_lines;

/* Lines over the dims where in_line is set; all views must be added before dp_lines_end. */
void dp_lines_begin(dp_lines *lines, const int64_t *dims, int rank, const bool *in_line);
/* strides[d] of the view in each dim of dims (0: repeated). Returns the view's number. */
int dp_lines_add(dp_lines *lines, const dp_arg *tensor, const int64_t *strides, const bool *in_line, int rank);
void dp_lines_end(dp_lines *lines);

/* Line `line` of a view as floats: in place when it lies so in memory, else in `buffer` (inner.count floats). */
const float *dp_lines_load(const dp_lines *lines, dp_plan *plan, int view, int64_t line, float *buffer);
/* Where line `line` may be written directly, or NULL: then it is made in a buffer and given to dp_lines_store. */
float *dp_lines_place(const dp_lines *lines, dp_plan *plan, int view, int64_t line);
void dp_lines_store(const dp_lines *lines, dp_plan *plan, int view, int64_t line, const float *from);
/* y = (x - mean) * factor * gamma + beta; gamma and beta may be NULL. */
typedef struct dp_line_affine {
    float mean, factor;
    const float *gamma, *beta;
} dp_line_affine;

/*
 * The last step of a line on its way past the caches. Done at once, its stores would hold up those of the next line; so it goes a part
 * at a time between pieces of the work on that line.
 */
typedef struct dp_lines_tail {
    float *to;
    const float *from;
    const char *next;  /* what will be read some lines from now */
    size_t left, step; /* elements; left 0: nothing */
    dp_line_affine affine;
} dp_lines_tail;

enum { DP_LINES_PIECE = 256 /* elements of a line that are worked on between two parts */ };

/*
 * Stores a of the line `from`: at once (through `buffer`, if need be, of a line), or takes note of it in `tail`, which must be empty.
 * Then `from` must stay until `steps` steps or dp_lines_tail_end.
 */
void dp_lines_store_affine(const dp_lines *lines, dp_plan *plan, int view, int64_t line, const float *from,
                           const dp_line_affine *a, float *buffer, size_t steps, dp_lines_tail *tail);
void dp_lines_tail_write(dp_lines_tail *tail, size_t n);
static inline void dp_lines_tail_step(dp_lines_tail *tail) {
    if (tail->left)
        dp_lines_tail_write(tail, tail->step);
}
static inline void dp_lines_tail_end(dp_lines_tail *tail) {
    if (tail->left)
        dp_lines_tail_write(tail, tail->left);
}
/* Pieces of a line. */
static inline size_t dp_lines_pieces(const dp_lines *lines) {
    return ((size_t)lines->inner.count + DP_LINES_PIECE - 1) / DP_LINES_PIECE;
}
static inline size_t dp_lines_piece(size_t left) {
    return left < DP_LINES_PIECE ? left : DP_LINES_PIECE;
}

/* The value of line `line` of a view that has one element per line. */
double dp_lines_load_one(const dp_lines *lines, dp_plan *plan, int view, int64_t line);
/* Writes `count` values to a view that has one element per line (its inner strides are 0): that of line `line`. */
void dp_lines_store_one(const dp_lines *lines, dp_plan *plan, int view, int64_t line, float value);

/* True when neighbouring lines lie next to each other in every view while their own elements do not. */
bool dp_lines_side_by_side(const dp_lines *lines);
/* Row `element` of the lines from `line` on: one element of each of them, next to each other. */
char *dp_lines_row(const dp_lines *lines, dp_plan *plan, int view, int64_t line, int64_t element);

/* Runs fn on ranges of lines with `buffers` float buffers of a line each; DP_ERR_OUT_OF_MEMORY with a sentence. */
typedef void (*dp_lines_fn)(dp_plan *plan, const dp_lines *lines, size_t begin, size_t end, float *buffers);
dp_status dp_lines_run(dp_plan *plan, const dp_lines *lines, int buffers, dp_lines_fn fn);

/* Loops of one rung over a line of floats. */
typedef struct dp_line_table {
    float (*max)(const float *x, size_t n); /* of what is no NaN; -inf of nothing */
    /* the largest and the smallest; NaN when there is one */
    float (*top)(const float *x, size_t n);
    float (*bottom)(const float *x, size_t n);
    double (*sum)(const float *x, size_t n);
    double (*squares)(const float *x, size_t n, double mean);
    /* y = e^(x - offset); the sum of the results, of which four at a time are added in float */
    double (*exp)(float *y, const float *x, size_t n, float offset);
    /* y = x * scale */
    void (*scale)(float *y, const float *x, size_t n, float factor);
    /* y = x - offset */
    void (*shift)(float *y, const float *x, size_t n, float offset);
    void (*add)(float *y, const float *a, const float *b, size_t n);
    /* y = (x - mean) * factor * gamma + beta; gamma and beta may be NULL */
    void (*affine)(float *y, const float *x, size_t n, float mean, float factor, const float *gamma, const float *beta);
    /* the same to memory past the caches, calling as many bytes from `next` on */
    void (*affine_past)(float *y, const float *x, size_t n, const dp_line_affine *a, const char *next);
    /* y = x * a + b */
    void (*multiply_add)(float *y, const float *x, size_t n, float a, float b);
    /* y1 = x1 * c1 - x2 * s1, y2 = x2 * c2 + x1 * s2; no y may be an x */
    void (*turn)(float *y1, float *y2, const float *x1, const float *x2, const float *c1, const float *c2,
                 const float *s1, const float *s2, size_t n);
    /* the same for n pairs of neighbours */
    void (*turn_pairs)(float *y, const float *x, const float *c, const float *s, size_t n);
    /* sum of g * (x - mean) */
    double (*products)(const float *x, const float *g, size_t n, double mean);
    /* y = a * g + b * x + c; y may be g or x */
    void (*combine)(float *y, const float *g, const float *x, size_t n, float a, float b, float c);
    /* lines side by side: y = the larger of a and b (NaN when one is), sums += x, y = a - b, y = a * b */
    void (*larger)(float *y, const float *a, const float *b, size_t n);
    void (*accumulate)(double *sums, const float *x, size_t n);
    void (*subtract)(float *y, const float *a, const float *b, size_t n);
    void (*multiply)(float *y, const float *a, const float *b, size_t n);
} dp_line_table;
void dp_line_fill_generic(dp_line_table *table);
void dp_line_fill_avx2(dp_line_table *table);
void dp_line_fill_avx512(dp_line_table *table);
const dp_line_table *dp_line_current(void);

#endif
