/*
 * attention.h - what the readers of arguments (prepare.c) tell the engine (engine.c): out = softmax(scale * q k^T +
 * bias) v for every sequence and head, in float, with tiles of keys and running maxima and sums (Dao et al.,
 * FlashAttention, arXiv 2205.14135; Milakov and Gimelshein, arXiv 1805.02867), so that no row of scores exists as a
 * whole.
 */
#ifndef DOPPEL_OPS_ATTENTION_ATTENTION_H
#define DOPPEL_OPS_ATTENTION_ATTENTION_H

#include "ops/op.h"

/* Part of a tensor that one sequence uses: element (head, row, column) lies at `at` plus index times stride, in
 * elements after the tensor's first. slot -1: absent. */
typedef struct dp_attention_span {
    int slot;
    int64_t at, head, row, column;
} dp_attention_span;

typedef struct dp_attention_sequence {
    int64_t first_query;   /* row of the tensor, when sequences are packed */
    int64_t queries, keys; /* rows of q and out; keys that count */
    int64_t queries_valid; /* later rows give 0 */
    int64_t shift;         /* query i sees keys from i + shift - pre to i + shift + next */
    int64_t page_row;      /* of the block table */
    dp_attention_span q, q_rope, k, k_rope, v, out;
    dp_attention_span bias, mask;    /* rows are queries, columns keys; strides may be 0 */
    dp_attention_span lse, max, sum; /* rows are queries; columns are copies of the same number */
} dp_attention_sequence;

/* The plan's state. */
typedef struct dp_attention {
    int64_t heads, kv_heads;              /* query heads h * group .. share key head h */
    int64_t depth, rope_depth, out_depth; /* of q and k, of their second parts (0: none), of v and out */
    int q_element, kv_element, out_element, bias_element, sink_element;
    float scale, bias_factor;
    int64_t pre, next; /* within +-2^60 */
    int64_t copies;    /* columns of max and sum */
    /* paged keys: key j of a sequence is row j % page_keys of page table[page_row][j / page_keys] */
    int table; /* slot, -1: not paged */
    int64_t table_row, table_column, page_keys, pages;
    int64_t k_page, v_page, k_rope_page; /* strides */
    int sink;                            /* slot of one more score per head, without a value; -1: none */
    int64_t sink_stride;
    /* the cut into units of work: see cut() in engine.c */
    int64_t tile_heads, tile_queries, head_chunks, query_tiles, splits, split_keys;
    int64_t n_sequences;
    dp_attention_sequence sequences[];
} dp_attention;

/* Chooses the cut; call when everything else is filled in. */
void dp_attention_cut(dp_attention *s);
dp_status dp_attention_run(dp_plan *plan);

#endif
