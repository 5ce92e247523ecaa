/*
 * queue.h - TPipe, queues, buffers and event ids of the running block, as the kernel face calls them.
 *
 * Handles are numbers valid until the TPipe is reset or destroyed, or the block ends; 0 is "not initialised". A stale or
 * zero handle, like every other misuse, is a kernel fault at `loc` that names the queue by the place of its InitBuffer.
 * Positions are the numbers of TPosition.
 */
#ifndef DOPPEL_QUEUE_H
#define DOPPEL_QUEUE_H

#include "doppel/types.h"

typedef uint32_t dp_queue_handle;
typedef uint32_t dp_pool_handle;

/* Buffer states; numbers of TBufState. */
typedef enum dp_buffer_state { DP_BUFFER_FREE, DP_BUFFER_OCCUPIED, DP_BUFFER_ENQUE, DP_BUFFER_DEQUE } dp_buffer_state;

/* Producer and consumer pipe of an event. src = DP_PAIR_OWN: the pair that follows from the queue's positions. */
typedef struct dp_pipe_pair {
    uint8_t src, dst;
} dp_pipe_pair;
enum { DP_PAIR_OWN = 255 };

typedef struct dp_queue_shape {
    uint8_t src_position, dst_position; /* TPosition */
    uint8_t space;                      /* dp_space the buffers live in */
    int32_t depth;                      /* open entries allowed; below 1 counts as 1 */
} dp_queue_shape;

typedef struct dp_buffer_view {
    void *addr;
    uint32_t size_bytes;
    uint32_t buffer_id; /* 0 only for memory that no InitBuffer gave */
} dp_buffer_view;

DP_BEGIN_DECLS

/*
 * Event raised by EnQue from one position to another (kernel-semantics section 12); FreeTensor raises the same pair the
 * other way round. Positions inside UB: what VECIN receives is read by V, what VECOUT receives was written by V.
 */
DP_API dp_pipe_pair dp_queue_enque_pair(unsigned src_position, unsigned dst_position);

/* ---- TPipe ---- */

/* Start of the manager: core state reset, allocator and event ids cleared. `object` is what dp_pipe_object() returns. */
DP_API void dp_pipe_init(void *object, dp_loc loc);
/* Waits for open free events, forgets all buffers; a barrier on all pipes. Nothing when `object` is not the current one. */
DP_API void dp_pipe_destroy(void *object, dp_loc loc);
/* Waits for open free events and forgets all buffers, so that they can be laid out anew. */
DP_API void dp_pipe_reset(void *object, dp_loc loc);
DP_API void *dp_pipe_object(void);

/* ---- event ids ---- */

DP_API int8_t dp_event_alloc(dp_pipe_pair pair, dp_loc loc);
/* Lowest free id, not reserved. */
DP_API int8_t dp_event_fetch(dp_pipe_pair pair, dp_loc loc);
DP_API void dp_event_release(dp_pipe_pair pair, int8_t id, dp_loc loc);

/* ---- laying out memory ---- */

/* num buffers of size_bytes (rounded up to 32) for a queue, from the pool (0: the TPipe itself). */
DP_API dp_queue_handle dp_queue_init(dp_queue_shape shape, dp_pool_handle pool, uint32_t num, uint32_t size_bytes,
                                     dp_loc loc);
/* One buffer without states and events (TBuf). */
DP_API dp_buffer_view dp_tbuf_init(uint8_t position, uint8_t space, dp_pool_handle pool, uint32_t size_bytes, dp_loc loc);
/* Reserves a pool for at most max_buffers buffers; share != 0: on the memory of that pool. */
DP_API dp_pool_handle dp_pool_init(uint8_t space, dp_pool_handle parent, dp_pool_handle share, uint32_t size_bytes,
                                   uint32_t max_buffers, dp_loc loc);
DP_API void dp_pool_reset(dp_pool_handle pool, dp_loc loc);
/*
 * For pools that the user divides himself (EXTERN_IMPL_BUFPOOL): a queue that will get num buffers, which are placed in order,
 * each at `offset` of the pool. Buffers may overlap, as the user likes.
 */
DP_API dp_queue_handle dp_queue_announce(dp_queue_shape shape, uint32_t num, uint32_t size_bytes, dp_loc loc);
DP_API void dp_queue_place(dp_queue_handle queue, dp_pool_handle pool, uint32_t index, uint32_t offset, uint32_t size_bytes,
                           dp_loc loc);
DP_API dp_buffer_view dp_tbuf_place(uint8_t position, uint8_t space, dp_pool_handle pool, uint32_t offset, uint32_t size_bytes,
                                    dp_loc loc);
/* Fault of such a pool: "<sentence> (<value>, against <limit>)". */
DP_API void dp_pool_fault(const char *sentence, uint32_t value, uint32_t limit, dp_loc loc);
/* Fault: a TBuf is used that InitBuffer never saw, or more of it than there is. */
DP_API void dp_tbuf_fault(uint32_t wanted_bytes, uint32_t offset_bytes, uint32_t size_bytes, dp_loc loc);

/* What neither buffers nor variables have taken of a memory; it stays free for them. */
DP_API dp_buffer_view dp_pipe_rest(unsigned space, dp_loc loc);
/* The buffer behind an id; a fault when it is not known (any longer). */
DP_API dp_buffer_view dp_buffer_view_of(uint32_t buffer_id, dp_loc loc);

/* ---- queues ---- */

DP_API dp_buffer_view dp_queue_alloc(dp_queue_handle queue, dp_loc loc);
/* pair: the event raised, DP_PAIR_OWN or that of positions the user gave. */
DP_API void dp_queue_enque(dp_queue_handle queue, uint32_t buffer_id, dp_pipe_pair pair, dp_loc loc);
DP_API dp_buffer_view dp_queue_deque(dp_queue_handle queue, dp_pipe_pair pair, dp_loc loc);
DP_API void dp_queue_free(dp_queue_handle queue, uint32_t buffer_id, dp_loc loc);
/* Waits for and releases all open free events of the queue. */
DP_API void dp_queue_free_all_events(dp_queue_handle queue, dp_loc loc);

DP_API uint32_t dp_queue_open_entries(dp_queue_handle queue, dp_loc loc);
DP_API bool dp_queue_has_idle(dp_queue_handle queue, dp_loc loc);
DP_API dp_buffer_state dp_queue_buffer_state(dp_queue_handle queue, uint32_t buffer_id, dp_loc loc);

/* A number the user may attach to a buffer. 0 for buffers without tag and ids that are not (any longer) known. */
DP_API void dp_buffer_tag_set(uint32_t buffer_id, int32_t tag);
DP_API int32_t dp_buffer_tag(uint32_t buffer_id);

DP_END_DECLS

#endif
