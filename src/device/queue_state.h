/* queue_state.h - private to queue*.c: the state behind doppel/queue.h, one per core. */
#ifndef DOPPEL_DEVICE_QUEUE_STATE_H
#define DOPPEL_DEVICE_QUEUE_STATE_H

#include "device/exec.h"
#include "device/queue.h"

/* Facts: kernel-semantics section 12 and the limits of kernel-enums-structs. */
enum { MAX_BUFFERS = 64, MAX_QUEUES = 64, MAX_POOLS = 16, SLOT_BITS = 6, SLOT_MASK = 63, NO_SLOT = 255 };

typedef struct dp_buffer {
    uint32_t id; /* serial << SLOT_BITS | slot; 0: slot unused */
    uint32_t size_bytes;
    uint8_t *addr;
    uint8_t state;
    uint8_t queue; /* slot of its queue, NO_SLOT for a TBuf */
    uint8_t pool;  /* 0: the TPipe, else slot of the pool + 1 */
    uint8_t space, position;
    uint8_t index;     /* number in its queue */
    int8_t enque_id;   /* event id while ENQUE */
    int8_t free_id;    /* event id of the free event that is still open, -1: none */
    dp_pipe_pair pair; /* of the event raised by EnQue */
    int32_t tag;
    dp_loc init, last;
} dp_buffer;

typedef struct dp_queue {
    uint32_t id; /* as dp_buffer.id */
    dp_queue_shape shape;
    dp_pipe_pair pair, free_pair;
    uint8_t announced;        /* buffers it is to have; num of them are there */
    uint8_t num, next;        /* buffers, and where the round-robin search starts */
    uint8_t head, open;       /* ring of enqueued buffers */
    uint8_t buffer[MAX_BUFFERS]; /* slots of its buffers */
    uint8_t ring[MAX_BUFFERS];   /* slots, oldest at head */
    dp_loc init;
} dp_queue;

typedef struct dp_pool {
    uint32_t id;
    uint8_t space;
    uint8_t parent; /* as dp_buffer.pool */
    uint32_t begin, size_bytes, used_bytes; /* offsets in the memory */
    uint32_t max_buffers, buffers;
    dp_loc init;
} dp_pool;

typedef struct dp_queue_state {
    void *object; /* the TPipe, NULL: none yet */
    dp_loc object_loc;
    uint32_t serial;
    uint32_t buffers;                                   /* used slots */
    uint8_t events[DP_PIPE_COUNT][DP_PIPE_COUNT];       /* one bit per reserved event id */
    uint32_t used_bytes[DP_SPACE_COUNT];                /* allocated from the bottom of each memory */
    dp_buffer buffer[MAX_BUFFERS];
    dp_queue queue[MAX_QUEUES];
    dp_pool pool[MAX_POOLS];
    dp_buffer_info leak[MAX_BUFFERS];
    uint32_t leaks;
    void *sys_workspace, *dump_workspace, *hccl_context[2]; /* as the kernel announced them */
    void *arena; /* list of dp_block_alloc memory */
} dp_queue_state;

/* State of the running block's core; outside a kernel `what` is reported and the process aborted. */
dp_core *dp_kernel_core(const char *what, dp_loc loc);
/* State of the core; made when first needed, a fault if there is no host memory. */
dp_queue_state *dp_queue_state_of(dp_core *core, dp_loc loc);
dp_buffer_info dp_buffer_info_of(const dp_queue_state *state, const dp_buffer *buffer);
/* The event of giving a buffer back: the one of EnQue the other way round. */
dp_pipe_pair dp_queue_free_pair(dp_pipe_pair enque);
/* Raises or waits for an implied flag, and reserves or returns its id. */
int8_t dp_queue_raise(dp_core *core, dp_queue_state *state, dp_pipe_pair pair, dp_loc loc);
void dp_queue_await(dp_core *core, dp_queue_state *state, dp_pipe_pair pair, int8_t id, dp_loc loc);

#endif
