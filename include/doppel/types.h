/*
 * types.h - element types, memory spaces, pipes and core kinds shared by the kernel face and the device.
 */
#ifndef DOPPEL_TYPES_H
#define DOPPEL_TYPES_H

#include "doppel/abi.h"

/* Element type of an operand. */
typedef enum dp_dtype {
    DP_I8,
    DP_U8,
    DP_I16,
    DP_U16,
    DP_I32,
    DP_U32,
    DP_I64,
    DP_U64,
    DP_F16,
    DP_BF16,
    DP_F32,
    DP_F64,
    DP_I4, /* two per byte, low nibble first */
    DP_DTYPE_COUNT
} dp_dtype;

/* Bits of one element. */
static inline unsigned dp_dtype_bits(unsigned dtype) {
    static const uint8_t bits[DP_DTYPE_COUNT] = {8, 8, 16, 16, 32, 32, 64, 64, 16, 16, 32, 64, 4};
    return dtype < DP_DTYPE_COUNT ? bits[dtype] : 0;
}

/* Memory spaces of one AI core, and the global memory. */
typedef enum dp_space {
    DP_SPACE_NONE,
    DP_SPACE_GM,
    DP_SPACE_UB,
    DP_SPACE_L1,
    DP_SPACE_L0A,
    DP_SPACE_L0B,
    DP_SPACE_L0C,
    DP_SPACE_BT, /* bias table */
    DP_SPACE_FB, /* fixpipe buffer */
    DP_SPACE_COUNT
} dp_space;

/* Instruction queues of a core. Values are ours: the vendor's numbers are undocumented. */
typedef enum dp_pipe {
    DP_PIPE_S,
    DP_PIPE_V,
    DP_PIPE_M,
    DP_PIPE_MTE1,
    DP_PIPE_MTE2,
    DP_PIPE_MTE3,
    DP_PIPE_FIX,
    DP_PIPE_ALL, /* only as operand of a barrier */
    DP_PIPE_COUNT = DP_PIPE_ALL
} dp_pipe;

/* Which cores one logical block of a launch occupies. */
typedef enum dp_core_mix {
    DP_MIX_AIV,     /* one vector core (default) */
    DP_MIX_AIC,     /* one cube core */
    DP_MIX_AIC_1_1, /* one cube core and one vector core */
    DP_MIX_AIC_1_2  /* one cube core and two vector cores */
} dp_core_mix;

/* What the running code is: value of core->kind. */
typedef enum dp_core_kind { DP_CORE_AIV, DP_CORE_AIC } dp_core_kind;

#define DP_BLOCK_BYTES 32u   /* one lane block */
#define DP_REPEAT_BYTES 256u /* eight blocks: one repeat of a vector instruction */
#define DP_EVENT_IDS 8u      /* flags of one pipe pair */

#endif
