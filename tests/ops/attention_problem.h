/* attention_problem.h - one call of an attention operator: its tensors, and the formula in double to check the result.
 */
#ifndef DOPPEL_TESTS_OPS_ATTENTION_PROBLEM_H
#define DOPPEL_TESTS_OPS_ATTENTION_PROBLEM_H

#include "arguments.h"

#define FUSED "FusedInferAttentionScoreV2"

/* How the reference finds numbers: everything in plain terms of batch, head, query, key. */
typedef struct problem {
    int64_t b, sq, sk, n, nkv, d, dv, dr;
    char layout[16]; /* of the inputs; of the output */
    char out_layout[16];
    aclDataType type;
    double scale, bias_scale;
    int64_t pre, next, sparse;
    tensor q, k, v, q_rope, k_rope, bias, mask, out, lse, sink;
    bool has_bias, has_mask, has_lse, has_rope, has_sink, flat_bias;
    int64_t q_lengths[8], k_lengths[8];
    bool has_q_lengths, has_k_lengths;
    bool packed; /* sequences one after the other: these are their first rows */
    int64_t q_first[8], k_first[8];
    tensor max, sum;          /* of training */
    bool has_max, bias_first; /* the bias is added before the scale */
} problem;

extern const aclDataType attention_types[3];

/* A tensor by the letters of its dims: B, S, N, D, T, and H for N times D. */
tensor grid(aclDataType type, const char *letters, int64_t b, int64_t s, int64_t n, int64_t d);
/* Row-major number of an element of it; depth is the size that D has. */
int64_t index_in(const tensor *t, const char *letters, int64_t b, int64_t s, int64_t n, int64_t d, int64_t depth);
void fill(tensor *t, double low, double high);
void choose_layout(problem *p, unsigned which);

void make_inputs(problem *p);
void drop_inputs(problem *p);
/* A list that owns t's handle; the test keeps the memory. */
aclTensorList *list_of(tensor *t);
/* A call of FUSED, without lengths. */
arguments call_of(problem *p, aclTensorList *keys, aclTensorList *values);
/* Fails the test where p->out or the other outputs are not what the formula gives. */
void check_all(const problem *p);
/* All of it: FUSED, and another operator on the same problem, whose names differ in spelling only. */
void run_problem(problem *p);
void run_other(problem *p, const char *name, bool lists, const char *lengths, const char *key_lengths);

#endif
