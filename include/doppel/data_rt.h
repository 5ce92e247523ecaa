/*
 * data_rt.h - calls of the kernel face that are several instructions: slice copies, full sorts, filling of device
 * memory.
 *
 * Like everything of the face they work on the core whose block runs on the calling thread, fault at `loc` on misuse,
 * and consist of dp_issue() calls that observers see one by one.
 */
#ifndef DOPPEL_DATA_RT_H
#define DOPPEL_DATA_RT_H

#include "doppel/insn.h"

/* One dimension of a slice, SliceInfo of the face. Dimension 0 is the fastest. */
typedef struct dp_slice {
    uint32_t start, end; /* elements, end inclusive */
    uint32_t stride;     /* elements left out between two bursts (dimension 0) or two indices */
    uint32_t burst;      /* 32-byte blocks of one burst; dimension 0 only */
    uint32_t shape;      /* elements of the whole dimension */
} dp_slice;

DP_BEGIN_DECLS

/*
 * Copies a slice of a tensor of `dims` (1..8) dimensions to a slice of another. Both must have as many bursts in every
 * dimension and bursts of one length.
 */
DP_API void dp_copy_slices(dp_operand dst, dp_operand src, const dp_slice *dst_slices, const dp_slice *src_slices,
                           uint32_t dims, dp_loc loc);

/*
 * DataCopyPad UB -> L1 with ND to NZ: the runs of `copy` (pad form, UB side in 32-byte rows) become the source matrix
 * of `nd2nz`. Its rows must be the runs.
 */
DP_API void dp_copy_pad_nd2nz(dp_operand dst, dp_operand src, const dp_copy_params *copy, const dp_nd2nz_params *nd2nz,
                              dp_loc loc);

/*
 * Sort: groups of 32 scores with their indices become entries in dst, each group in descending order; with full they
 * are then merged to one list. tmp is as large as dst. repeat: groups, 0..255.
 */
DP_API void dp_sort_entries(dp_operand dst, dp_operand scores, dp_operand indices, dp_operand tmp, uint32_t repeat,
                            bool full, dp_loc loc);

/* Extract: scores and indices of repeat groups of 32 entries. */
DP_API void dp_extract_entries(dp_operand scores, dp_operand indices, dp_operand entries, uint32_t repeat, dp_loc loc);

/* InitOutput: count elements of 2 or 4 bytes of device memory become value_bits, through the library's own part of UB.
 */
DP_API void dp_init_output(dp_operand gm, uint64_t count, uint64_t value_bits, dp_loc loc);

DP_END_DECLS

#endif
