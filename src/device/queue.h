/*
 * queue.h - what observers may ask about queues and buffers of a core, beside the instructions they see.
 *
 * Queue steps reach observers as instructions of the QUEUE family (the kernel face calls doppel/queue.h, which issues them
 * only when somebody looks):
 *   PIPE_INIT, PIPE_DESTROY   -
 *   QUE_INIT                  [0] one buffer; u.vec.aux: 0 number of the buffer in its queue, 1 buffers of the queue,
 *                             2 depth, 3 source position, 4 destination position; u.vec.flag0: 1 = TBuf
 *   QUE_ALLOC, QUE_ENQUE, QUE_DEQUE, QUE_FREE   [0] the buffer
 * The flags a step raises or waits for follow it (alloc, deque: wait; enque, free: set) as SET_FLAG and WAIT_FLAG with
 * u.sync.implied = 1.
 */
#ifndef DOPPEL_DEVICE_QUEUE_H
#define DOPPEL_DEVICE_QUEUE_H

#include "device/core.h"
#include "doppel/queue.h"

typedef struct dp_buffer_info {
    uint32_t buffer_id;
    uint8_t *addr;
    uint32_t size_bytes;
    uint8_t space;
    uint8_t src_position, dst_position; /* TPosition; equal for a TBuf */
    uint8_t state;                      /* dp_buffer_state; FREE for a TBuf */
    bool is_tbuf;
    uint32_t index, count; /* number of the buffer in its queue, and how many it has */
    int32_t depth;
    dp_loc init; /* its InitBuffer */
    dp_loc last; /* the last Alloc, EnQue, DeQue or Free, line 0 if none */
} dp_buffer_info;

typedef void (*dp_buffer_fn)(void *context, const dp_buffer_info *info);

/* Buffer by id; false if the id is 0 or no longer known. */
bool dp_buffer_find(const dp_core *core, uint32_t buffer_id, dp_buffer_info *out_info);
/* The buffer that contains an address of `space`, false if none does. */
bool dp_buffer_find_at(const dp_core *core, unsigned space, const void *addr, dp_buffer_info *out_info);
/* "VECIN buffer 1 of 2 (InitBuffer at add.asc:31)". */
void dp_buffer_describe(const dp_buffer_info *info, char *text, size_t text_bytes);
/*
 * Every tensor the block left without FreeTensor, also those of a TPipe that was reset or destroyed. To be asked in an
 * observer's block_end.
 */
void dp_queue_leaks(const dp_core *core, dp_buffer_fn fn, void *context);
const char *dp_position_name(unsigned position); /* "VECIN" */

#endif
