/*
 * cells.h - recurrent layers between their preparation (layer.c) and their run (cells.c).
 */
#ifndef DOPPEL_OPS_RECURRENT_CELLS_H
#define DOPPEL_OPS_RECURRENT_CELLS_H

#include "math/gemm/gemm.h"
#include "ops/tiles.h"

typedef enum dp_cells_kind { DP_CELLS_RNN, DP_CELLS_GRU, DP_CELLS_LSTM } dp_cells_kind;

typedef enum dp_cell_function {
    DP_CELL_RELU,
    DP_CELL_TANH,
    DP_CELL_SIGMOID,
    DP_CELL_AFFINE,
    DP_CELL_LEAKY_RELU,
    DP_CELL_THRESHOLDED_RELU,
    DP_CELL_SCALED_TANH,
    DP_CELL_HARD_SIGMOID,
    DP_CELL_ELU,
    DP_CELL_SOFTSIGN,
    DP_CELL_SOFTPLUS,
    DP_CELL_FUNCTIONS
} dp_cell_function;

typedef struct dp_cell_activation {
    dp_cell_function kind;
    float alpha, beta;
} dp_cell_activation;

/* slot -1: absent. copy: where the workspace has room for it as floats, when it is of another type. */
typedef struct dp_cell_input {
    int slot;
    uint64_t copy;
} dp_cell_input;

typedef struct dp_cells {
    dp_cells_kind kind;
    int64_t gates, steps, batch, inputs, hidden, directions;
    dp_cell_input x, w, r, b, h, c, p;
    int lengths, y, y_h, y_c;          /* slots; -1: absent */
    dp_cell_activation activations[6]; /* three per direction */
    float clip;                        /* 0: none */
    bool variant, batch_first, backward;
    /* Weights of the state's products, packed once per run when all steps read them: of all gates, or of those before
     * the last and of the last; no bytes: not packed. */
    uint64_t packed_at[2];
    size_t packed_bytes[2];
    uint64_t gates_at, step_at, again_at, h_at, c_at, bias_at, lengths_at; /* in the workspace */
} dp_cells;

dp_status dp_cells_run(dp_plan *plan);

/* [m, k] x [n, k]^T, without addresses. */
dp_gemm_problem dp_cells_product(int64_t m, int64_t n, int64_t k);

#endif
