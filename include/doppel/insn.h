/*
 * insn.h - the instruction struct, and the only door through which instructions reach a core.
 *
 * Everything a kernel does to memory or to core state is one dp_insn handed to dp_issue(). Checker, timer and trace are
 * observers that read the same struct. A new instruction is one row in insn.def, one function in src/device, and a row in
 * the tester's table.
 */
#ifndef DOPPEL_INSN_H
#define DOPPEL_INSN_H

#include "doppel/types.h"

typedef enum dp_op {
#define DP_INSN(op, name, pipe, family, cost) DP_OP_##op,
#include "doppel/insn.def"
#undef DP_INSN
    DP_OP_COUNT
} dp_op;

/* How an instruction says which lanes it works on. */
typedef enum dp_mask_kind {
    DP_MASK_NONE,     /* the instruction has no lane mask */
    DP_MASK_COUNT,    /* count form: mask[0] elements, contiguous; afterwards normal mode, mask all ones */
    DP_MASK_LEADING,  /* first mask[0] lanes of every repeat (in counter mode: mask[0] elements in all) */
    DP_MASK_BITS,     /* 128 lane bits in mask[0] (lanes 0-63) and mask[1] (lanes 64-127) */
    DP_MASK_REGISTER  /* isSetMask = false: use the mask register as it stands */
} dp_mask_kind;

/*
 * One operand. addr is a host address: of the core's own memory for on-chip spaces, of device memory for GM.
 * block_stride and repeat_stride are in 32-byte blocks, start to start, unless the row of insn.def says otherwise.
 * size_bytes is what remains of the tensor behind addr (0 = unknown); buffer_id the queue buffer it came from (0 = none).
 */
typedef struct dp_operand {
    void *addr;
    uint32_t size_bytes;
    uint32_t buffer_id;
    uint16_t block_stride;
    uint16_t repeat_stride;
    uint8_t dtype;
    uint8_t space;
    uint8_t past_end; /* 1: the tensor has nothing from addr on (an index beyond its end); size_bytes is 0 */
    uint8_t reserved;
} dp_operand;

/* A copy of block_count runs. Gaps are in bytes from the end of one run to the start of the next. */
typedef struct dp_copy_params {
    uint32_t block_count;
    uint32_t block_bytes;
    int64_t src_gap_bytes;
    int64_t dst_gap_bytes;
    uint8_t is_pad;    /* DataCopyPad GM->UB: pad with pad_value */
    uint8_t left_pad;  /* elements */
    uint8_t right_pad; /* elements */
    uint8_t pad_form;  /* 1: DataCopyPad (byte runs; UB side rows start on 32 B) */
    uint64_t pad_value;
} dp_copy_params;

typedef struct dp_nd2nz_params { /* Nd2NzParams, units as documented there */
    uint32_t nd_num, n, d, src_matrix_stride, src_d, dst_c0_stride, dst_n_stride, dst_matrix_stride;
} dp_nd2nz_params;

typedef struct dp_nz2nd_params { /* Nz2NdParamsFull */
    uint32_t nd_num, n, d, src_matrix_stride, src_n_stride, dst_d_stride, dst_matrix_stride;
} dp_nz2nd_params;

/* TransDataTo5HD: row addresses of both sides. */
typedef struct dp_row_list {
    void *dst[16];
    void *src[16];
} dp_row_list;

/* Flag, barrier and cross-core instructions. For DP_OP_BARRIER only src_pipe counts (DP_PIPE_ALL: every pipe). */
typedef struct dp_sync_params {
    uint8_t src_pipe, dst_pipe;
    uint8_t event_id;
    uint8_t mode;     /* cross-core mode 0..2 */
    uint8_t implied;  /* 1: issued by a queue or by the library, not written by the user */
    uint8_t reserved[3];
} dp_sync_params;

/* Values for dp_vec_params.order etc. keep the numbers of the face's enums (RoundMode, CMPMODE, SELMODE, ReduceOrder). */
typedef struct dp_vec_params {
    uint8_t round_mode;
    uint8_t cmp_mode;
    uint8_t sel_mode;
    uint8_t reduce_order;
    uint8_t cal_index;    /* ReduceMax/Min: also the index */
    uint8_t flag0, flag1; /* meaning in the instruction's row (e.g. high-half selectors) */
    uint8_t reserved;
    uint32_t aux[8];      /* meaning in the instruction's row */
} dp_vec_params;

typedef struct dp_insn {
    uint16_t op; /* dp_op */
    uint8_t mask_kind;
    uint8_t n_operands;
    uint32_t repeat; /* 0..255 for repeat forms; checked by the door */
    uint64_t mask[2];
    uint64_t scalar_bits; /* scalar operand, in the low bytes, in the type of operand 0 unless the row says otherwise */
    dp_operand operand[4]; /* [0] is the destination */
    union {
        dp_copy_params copy;
        dp_nd2nz_params nd2nz;
        dp_nz2nd_params nz2nd;
        dp_sync_params sync;
        dp_vec_params vec;
    } u;
    uint64_t result; /* written by instructions that return a value (GetReduceMaxMinCount, GatherMask's count, ...) */
    dp_loc loc;
} dp_insn;

/* All bytes zero. Written out in vectors: compilers make a slow string instruction of a zero initialiser of this size. */
static inline void dp_insn_clear(dp_insn *insn) {
    typedef long long words __attribute__((vector_size(16), aligned(8), may_alias));
    words *w = (words *)(void *)insn, zero = {0, 0};
    w[0] = zero, w[1] = zero, w[2] = zero, w[3] = zero, w[4] = zero, w[5] = zero;
    w[6] = zero, w[7] = zero, w[8] = zero, w[9] = zero, w[10] = zero, w[11] = zero;
}
#ifdef __cplusplus
static_assert(sizeof(dp_insn) == 192, "dp_insn_clear covers 12 x 16 bytes");
#else
_Static_assert(sizeof(dp_insn) == 192, "dp_insn_clear covers 12 x 16 bytes");
#endif

DP_BEGIN_DECLS

/*
 * Runs one instruction on the core that executes the calling block. Does not return to the kernel if the instruction
 * is illegal (misaligned, out of range, repeat over 255, ...): the block ends, the launch reports the fault with
 * insn->loc, and the stream carries the error. Calling it outside a kernel prints what was called and aborts the process
 * only after the sentence is on stderr.
 */
DP_API void dp_issue(dp_insn *insn);

DP_END_DECLS

#endif
