/*
 * Laying out core memory: TPipe, InitBuffer, pools; and what observers ask about buffers.
 *
 * Queues and pools are handed out from the bottom of a memory up, address-space variables from the top down.
 */
#include "device/queue_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "doppel/kernel_rt.h"

enum { BUFFER_ALIGN = 32 };

dp_core *dp_kernel_core(const char *what, dp_loc loc) {
    dp_core *core = dp_core_current();
    if (DP_UNLIKELY(!core)) {
        fprintf(stderr,
                "%s:%u: error: %s: called outside a kernel; kernel functions run on a device core only: launch the kernel with "
                "<<<blocks, dynamic, stream>>>\n",
                loc.file ? loc.file : "?", loc.line, what);
        fflush(stderr);
        abort();
    }
    return core;
}

dp_queue_state *dp_queue_state_of(dp_core *core, dp_loc loc) {
    if (DP_UNLIKELY(!core->queues)) {
        core->queues = dp_alloc(DP_MEM_DEVICE, sizeof *core->queues);
        if (!core->queues)
            dp_fault(core, NULL, loc, "the host has no memory for the queues of a core (%zu bytes)", sizeof *core->queues);
    }
    return core->queues;
}

static void clear_layout(dp_core *core) {
    dp_queue_state *state = core->queues;
    memset(state->events, 0, sizeof state->events);
    memset(state->used_bytes, 0, sizeof state->used_bytes);
    memset(core->local_low, 0, sizeof core->local_low);
    for (unsigned i = 0; i < MAX_BUFFERS; i++)
        state->buffer[i].id = 0;
    for (unsigned i = 0; i < MAX_QUEUES; i++)
        state->queue[i].id = 0;
    for (unsigned i = 0; i < MAX_POOLS; i++)
        state->pool[i].id = 0;
    state->buffers = 0;
}

static void free_arena(dp_queue_state *state) {
    while (state->arena) {
        void *next;
        memcpy(&next, state->arena, sizeof next);
        dp_free(state->arena);
        state->arena = next;
    }
}

void dp_queue_block_begin(dp_core *core) {
    dp_queue_state *state = core->queues;
    if (!state)
        return;
    free_arena(state);
    state->sys_workspace = state->dump_workspace = NULL;
    state->hccl_context[0] = state->hccl_context[1] = NULL;
    if (!state->serial) /* the last block had no TPipe: nothing to clear */
        return;
    clear_layout(core);
    state->object = NULL;
    state->serial = 0;
    state->leaks = 0;
}

/* Observers look at the leaks after this: buffers stay known until the next block begins. */
void dp_queue_block_end(dp_core *core, bool faulted) {
    (void)faulted;
    if (core->queues)
        free_arena(core->queues);
}

void dp_queue_destroy(dp_core *core) {
    if (core->queues)
        free_arena(core->queues);
    dp_free(core->queues);
    core->queues = NULL;
}

void *dp_block_alloc(size_t size_bytes, dp_loc loc) {
    enum { HEAD = 64 }; /* the link to the next block, in front of 64-byte aligned memory */
    dp_core *core = dp_kernel_core("block memory", loc);
    dp_queue_state *state = dp_queue_state_of(core, loc);
    uint8_t *block = dp_alloc(DP_MEM_DEVICE, size_bytes + HEAD);
    if (!block)
        dp_fault(core, NULL, loc, "the host has no memory for %zu bytes of block data", size_bytes);
    memcpy(block, &state->arena, sizeof state->arena);
    state->arena = block;
    return block + HEAD;
}

/* ---- TPipe ---- */

static void issue_plain(dp_op op, dp_loc loc) {
    dp_insn insn = {.op = (uint16_t)op, .loc = loc};
    dp_issue(&insn);
}

static void remember_leak(dp_queue_state *state, const dp_buffer *buffer) {
    if (state->leaks < MAX_BUFFERS)
        state->leak[state->leaks++] = dp_buffer_info_of(state, buffer);
}

/* Takes back one buffer: waits for its open events. A tensor nobody freed is kept as a leak; its flag is lowered too, so
 * that the id can be used again. */
static void retire(dp_core *core, dp_queue_state *state, dp_buffer *buffer, dp_loc loc) {
    if (!buffer->id)
        return;
    if (buffer->queue != NO_SLOT) {
        dp_queue *queue = &state->queue[buffer->queue];
        if (buffer->state != DP_BUFFER_FREE)
            remember_leak(state, buffer);
        if (buffer->free_id >= 0)
            dp_queue_await(core, state, queue->free_pair, buffer->free_id, loc);
        if (buffer->state == DP_BUFFER_ENQUE && buffer->enque_id >= 0)
            dp_queue_await(core, state, buffer->pair, buffer->enque_id, loc);
        queue->id = 0;
    }
    buffer->id = 0;
    buffer->free_id = buffer->enque_id = -1;
    state->buffers--;
}

static void retire_all(dp_core *core, dp_queue_state *state, dp_loc loc) {
    for (unsigned i = 0; i < MAX_BUFFERS; i++)
        retire(core, state, &state->buffer[i], loc);
}

void dp_pipe_init(void *object, dp_loc loc) {
    dp_core *core = dp_kernel_core("TPipe", loc);
    dp_queue_state *state = dp_queue_state_of(core, loc);
    if (state->object && state->object != object && state->buffers)
        dp_fault(core, NULL, loc,
                 "TPipe: the TPipe of %s:%u still owns %u buffers, and a core has one at a time; call its Destroy first, or "
                 "pass a pointer to it",
                 state->object_loc.file ? state->object_loc.file : "?", state->object_loc.line, state->buffers);
    clear_layout(core);
    if (!state->serial)
        state->serial = 1;
    state->object = object;
    state->object_loc = loc;
    issue_plain(DP_OP_PIPE_INIT, loc);
}

void dp_pipe_reset(void *object, dp_loc loc) {
    dp_core *core = dp_kernel_core("TPipe::Reset", loc);
    dp_queue_state *state = dp_queue_state_of(core, loc);
    if (state->object != object)
        return;
    retire_all(core, state, loc);
    uint8_t events[DP_PIPE_COUNT][DP_PIPE_COUNT];
    memcpy(events, state->events, sizeof events);
    clear_layout(core);
    memcpy(state->events, events, sizeof events); /* ids the user reserved stay reserved */
}

void dp_pipe_destroy(void *object, dp_loc loc) {
    dp_core *core = dp_core_current();
    if (!core || !core->queues || core->queues->object != object)
        return; /* a destructor after Destroy, or of a TPipe another one has replaced */
    retire_all(core, core->queues, loc);
    issue_plain(DP_OP_PIPE_DESTROY, loc);
    clear_layout(core);
    core->queues->object = NULL;
    dp_insn barrier = {.op = DP_OP_BARRIER, .loc = loc};
    barrier.u.sync.src_pipe = DP_PIPE_ALL;
    barrier.u.sync.implied = 1;
    dp_issue(&barrier);
}

void *dp_pipe_object(void) {
    dp_core *core = dp_core_current();
    return core && core->queues ? core->queues->object : NULL;
}

/* kernel-semantics section 12: what the TPipe constructor resets. */
void dp_exec_queue(dp_core *core, dp_insn *insn) {
    if (insn->op != DP_OP_PIPE_INIT)
        return; /* the other steps are taken by the queue machine; the door only shows them */
    core->atomic_op = 0;
    core->counter_mode = 0;
    if (core->kind == DP_CORE_AIV)
        core->mask[0] = core->mask[1] = ~0ull;
    else
        core->pad_value = 0;
}

void dp_visit_queue(const dp_core *core, const dp_insn *insn, dp_access_fn visit, void *context) {
    (void)core, (void)insn, (void)visit, (void)context; /* a step names a buffer, it does not touch its bytes */
}

/* ---- InitBuffer ---- */

static dp_pool *pool_of(dp_core *core, dp_queue_state *state, dp_pool_handle handle, dp_loc loc) {
    if (!handle)
        return NULL;
    dp_pool *pool = &state->pool[(handle & SLOT_MASK) % MAX_POOLS];
    if (pool->id != handle)
        dp_fault(core, NULL, loc, "the buffer pool is gone since TPipe::Reset or Destroy; call InitBufPool for it again");
    return pool;
}

static __attribute__((noinline, cold, noreturn)) void fault_full(dp_core *core, const dp_pool *pool, unsigned space,
                                                                 uint32_t num, uint64_t each, uint64_t left, dp_loc loc) {
    uint64_t wanted = num * each;
    if (pool)
        dp_fault(core, NULL, loc,
                 "InitBuffer: %u buffer%s of %llu bytes need %llu bytes, but %llu of %u bytes are left in the pool of %s:%u; "
                 "make the tiles or the pool fit",
                 num, num == 1 ? "" : "s", (unsigned long long)each, (unsigned long long)wanted, (unsigned long long)left,
                 pool->size_bytes, pool->init.file ? pool->init.file : "?", pool->init.line);
    uint32_t usable = space == DP_SPACE_UB ? core->chip->ub_reserved_offset : core->chip->space_bytes[space];
    dp_fault(core, NULL, loc,
             "InitBuffer: %u buffer%s of %llu bytes need %llu bytes of %s, but %llu of %u bytes are left (%u taken by other "
             "buffers, %u by variables and dynamic UB); use smaller tiles or fewer buffers",
             num, num == 1 ? "" : "s", (unsigned long long)each, (unsigned long long)wanted, dp_space_name(space),
             (unsigned long long)left, usable, core->queues->used_bytes[space], usable - core->local_top[space]);
}

/* Reserves num * each bytes; the caller has rounded `each`. */
static uint32_t reserve(dp_core *core, dp_queue_state *state, dp_pool *pool, unsigned space, uint32_t num, uint64_t each,
                        dp_loc loc) {
    uint32_t *used = pool ? &pool->used_bytes : &state->used_bytes[space];
    uint64_t size = pool ? pool->size_bytes : core->local_top[space];
    uint64_t left = size > *used ? size - *used : 0;
    if (num * each > left)
        fault_full(core, pool, space, num, each, left, loc);
    uint32_t offset = (pool ? pool->begin : 0) + *used;
    *used += (uint32_t)(num * each);
    if (!pool) /* address-space variables grow towards it */
        core->local_low[space] = *used;
    return offset;
}

static dp_buffer *take_slot(dp_core *core, dp_queue_state *state, dp_pool *pool, dp_loc loc) {
    if (pool && pool->buffers >= pool->max_buffers)
        dp_fault(core, NULL, loc,
                 "InitBuffer: the pool of %s:%u already has its %u buffers; give TBufPool a larger second template argument",
                 pool->init.file ? pool->init.file : "?", pool->init.line, pool->max_buffers);
    for (unsigned i = 0; i < MAX_BUFFERS; i++) {
        dp_buffer *buffer = &state->buffer[i];
        if (buffer->id)
            continue;
        *buffer = (dp_buffer){.id = ++state->serial << SLOT_BITS | i, .queue = NO_SLOT, .enque_id = -1, .free_id = -1};
        state->buffers++;
        if (pool) {
            pool->buffers++;
            buffer->pool = (uint8_t)(pool - state->pool + 1);
        }
        return buffer;
    }
    dp_fault(core, NULL, loc,
             "InitBuffer: the TPipe already has %u buffers, which is its limit; use fewer buffers, or one TBuf cut into parts",
             MAX_BUFFERS);
}

static void check_space(dp_core *core, unsigned space, dp_loc loc) {
    if (space <= DP_SPACE_GM || space >= DP_SPACE_COUNT || !core->memory[space].base)
        dp_fault(core, NULL, loc, "InitBuffer: %s has no memory a TPipe could hand out on this chip; use a position on the core, "
                 "such as VECIN, VECOUT or VECCALC", dp_space_name(space));
}

static void need_pipe(dp_core *core, const dp_queue_state *state, dp_loc loc) {
    if (!state->object)
        dp_fault(core, NULL, loc, "InitBuffer: there is no TPipe, or it was destroyed; make one before laying out memory");
}

static void show_buffer(dp_core *core, const dp_queue_state *state, const dp_buffer *buffer) {
    if (!core->observer)
        return;
    dp_buffer_info info = dp_buffer_info_of(state, buffer);
    dp_insn insn = {.op = DP_OP_QUE_INIT, .n_operands = 1, .loc = buffer->init};
    insn.operand[0] = (dp_operand){.addr = buffer->addr,
                                   .size_bytes = buffer->size_bytes,
                                   .buffer_id = buffer->id,
                                   .block_stride = 1,
                                   .repeat_stride = 8,
                                   .dtype = DP_U8,
                                   .space = buffer->space};
    insn.u.vec.flag0 = info.is_tbuf;
    insn.u.vec.aux[0] = info.index;
    insn.u.vec.aux[1] = info.count;
    insn.u.vec.aux[2] = (uint32_t)info.depth;
    insn.u.vec.aux[3] = info.src_position;
    insn.u.vec.aux[4] = info.dst_position;
    dp_issue(&insn);
}

static uint64_t round_up(uint32_t size_bytes) {
    return ((uint64_t)size_bytes + BUFFER_ALIGN - 1) / BUFFER_ALIGN * BUFFER_ALIGN;
}

static void check_layout(dp_core *core, const dp_queue_state *state, dp_queue_shape shape, uint32_t num, uint32_t size_bytes,
                         dp_loc loc) {
    need_pipe(core, state, loc);
    check_space(core, shape.space, loc);
    if (num == 0 || size_bytes == 0)
        dp_fault(core, NULL, loc, "InitBuffer: %u buffers of %u bytes are no memory; number and length must be at least 1", num,
                 size_bytes);
    if (num > MAX_BUFFERS)
        dp_fault(core, NULL, loc, "InitBuffer: %u buffers for one queue, but a TPipe has at most %u in all", num, MAX_BUFFERS);
}

/* A queue without buffers yet. */
static dp_queue *take_queue(dp_core *core, dp_queue_state *state, dp_queue_shape shape, uint32_t num, dp_loc loc) {
    dp_queue *queue = NULL;
    for (unsigned q = 0; q < MAX_QUEUES && !queue; q++)
        queue = state->queue[q].id ? NULL : &state->queue[q];
    if (!queue)
        dp_fault(core, NULL, loc, "InitBuffer: the TPipe already has %u queues, which is its limit", MAX_QUEUES);
    unsigned slot = (unsigned)(queue - state->queue);
    if (shape.depth < 1)
        shape.depth = 1;
    queue->shape = shape;
    queue->announced = (uint8_t)num;
    queue->num = 0;
    queue->next = queue->head = queue->open = 0;
    queue->init = loc;
    queue->id = ++state->serial << SLOT_BITS | slot;
    queue->pair = dp_queue_enque_pair(shape.src_position, shape.dst_position);
    queue->free_pair = dp_queue_free_pair(queue->pair);
    return queue;
}

static void add_buffer(dp_core *core, dp_queue_state *state, dp_queue *queue, dp_pool *pool, uint32_t offset, uint64_t each,
                       dp_loc loc) {
    dp_buffer *buffer = take_slot(core, state, pool, loc);
    buffer->addr = core->memory[queue->shape.space].base + offset;
    buffer->size_bytes = (uint32_t)each;
    buffer->space = queue->shape.space;
    buffer->position = queue->shape.src_position;
    buffer->queue = (uint8_t)(queue - state->queue);
    buffer->index = queue->num;
    buffer->init = loc;
    queue->buffer[queue->num++] = (uint8_t)(buffer->id & SLOT_MASK);
}

/* Observers are told of a queue's buffers once it has all of them. */
static void show_queue(dp_core *core, const dp_queue_state *state, const dp_queue *queue) {
    for (unsigned i = 0; i < queue->num && core->observer; i++)
        show_buffer(core, state, &state->buffer[queue->buffer[i]]);
}

dp_queue_handle dp_queue_init(dp_queue_shape shape, dp_pool_handle pool_handle, uint32_t num, uint32_t size_bytes, dp_loc loc) {
    dp_core *core = dp_kernel_core("InitBuffer", loc);
    dp_queue_state *state = dp_queue_state_of(core, loc);
    check_layout(core, state, shape, num, size_bytes, loc);
    dp_pool *pool = pool_of(core, state, pool_handle, loc);
    uint64_t each = round_up(size_bytes);
    uint32_t offset = reserve(core, state, pool, shape.space, num, each, loc);
    dp_queue *queue = take_queue(core, state, shape, num, loc);
    for (unsigned i = 0; i < num; i++)
        add_buffer(core, state, queue, pool, offset + (uint32_t)(i * each), each, loc);
    show_queue(core, state, queue);
    return queue->id;
}

/* ---- pools of the user's own ---- */

/* Where [offset, offset + size) of the pool lies in its memory. */
static uint32_t place_in_pool(dp_core *core, const dp_pool *pool, unsigned space, uint32_t offset, uint32_t size_bytes, dp_loc loc) {
    if (!pool)
        dp_fault(core, NULL, loc, "InitBufHandle: the pool has no memory; call TPipe::InitBufPool for it first");
    if (pool->space != space)
        dp_fault(core, NULL, loc, "InitBufHandle: the buffer's position is in %s, but the pool of %s:%u is %s", dp_space_name(space),
                 pool->init.file ? pool->init.file : "?", pool->init.line, dp_space_name(pool->space));
    uint64_t each = round_up(size_bytes);
    if (size_bytes == 0 || offset % BUFFER_ALIGN || each > pool->size_bytes || offset > pool->size_bytes - each)
        dp_fault(core, NULL, loc,
                 "InitBufHandle: a buffer of %u bytes at address %u does not lie in the pool of %s:%u, which has %u bytes; "
                 "addresses count from the pool's begin in steps of %d",
                 size_bytes, offset, pool->init.file ? pool->init.file : "?", pool->init.line, pool->size_bytes, BUFFER_ALIGN);
    return pool->begin + offset;
}

dp_queue_handle dp_queue_announce(dp_queue_shape shape, uint32_t num, uint32_t size_bytes, dp_loc loc) {
    dp_core *core = dp_kernel_core("InitStartBufHandle", loc);
    dp_queue_state *state = dp_queue_state_of(core, loc);
    check_layout(core, state, shape, num, size_bytes, loc);
    return take_queue(core, state, shape, num, loc)->id;
}

void dp_queue_place(dp_queue_handle handle, dp_pool_handle pool_handle, uint32_t index, uint32_t offset, uint32_t size_bytes,
                    dp_loc loc) {
    dp_core *core = dp_kernel_core("InitBufHandle", loc);
    dp_queue_state *state = dp_queue_state_of(core, loc);
    dp_queue *queue = &state->queue[(handle & SLOT_MASK) % MAX_QUEUES];
    if (!handle || queue->id != handle)
        dp_fault(core, NULL, loc, "InitBufHandle: the queue is not begun; call its InitStartBufHandle first");
    if (index != queue->num || index >= queue->announced)
        dp_fault(core, NULL, loc, "InitBufHandle: index is %u, but the next buffer of the queue is %u of %u", index, queue->num,
                 queue->announced);
    dp_pool *pool = pool_of(core, state, pool_handle, loc);
    uint32_t at = place_in_pool(core, pool, queue->shape.space, offset, size_bytes, loc);
    add_buffer(core, state, queue, pool, at, round_up(size_bytes), loc);
    if (queue->num == queue->announced)
        show_queue(core, state, queue);
}

static dp_buffer_view add_tbuf(dp_core *core, dp_queue_state *state, dp_pool *pool, uint8_t position, uint8_t space, uint32_t offset,
                               uint64_t each, dp_loc loc) {
    dp_buffer *buffer = take_slot(core, state, pool, loc);
    buffer->addr = core->memory[space].base + offset;
    buffer->size_bytes = (uint32_t)each;
    buffer->space = space;
    buffer->position = position;
    buffer->init = loc;
    show_buffer(core, state, buffer);
    return (dp_buffer_view){buffer->addr, buffer->size_bytes, buffer->id};
}

dp_buffer_view dp_tbuf_place(uint8_t position, uint8_t space, dp_pool_handle pool_handle, uint32_t offset, uint32_t size_bytes,
                             dp_loc loc) {
    dp_core *core = dp_kernel_core("InitBufHandle", loc);
    dp_queue_state *state = dp_queue_state_of(core, loc);
    need_pipe(core, state, loc);
    check_space(core, space, loc);
    dp_pool *pool = pool_of(core, state, pool_handle, loc);
    uint32_t at = place_in_pool(core, pool, space, offset, size_bytes, loc);
    return add_tbuf(core, state, pool, position, space, at, round_up(size_bytes), loc);
}

void dp_pool_fault(const char *sentence, uint32_t value, uint32_t limit, dp_loc loc) {
    dp_fault(dp_kernel_core("TBufPool", loc), NULL, loc, "%s (%u, against %u)", sentence, value, limit);
}

dp_buffer_view dp_tbuf_init(uint8_t position, uint8_t space, dp_pool_handle pool_handle, uint32_t size_bytes, dp_loc loc) {
    dp_core *core = dp_kernel_core("InitBuffer", loc);
    dp_queue_state *state = dp_queue_state_of(core, loc);
    need_pipe(core, state, loc);
    check_space(core, space, loc);
    if (size_bytes == 0)
        dp_fault(core, NULL, loc, "InitBuffer: a TBuf of 0 bytes; the length must be at least 1");
    dp_pool *pool = pool_of(core, state, pool_handle, loc);
    uint64_t each = round_up(size_bytes);
    uint32_t offset = reserve(core, state, pool, space, 1, each, loc);
    return add_tbuf(core, state, pool, position, space, offset, each, loc);
}

dp_pool_handle dp_pool_init(uint8_t space, dp_pool_handle parent, dp_pool_handle share, uint32_t size_bytes,
                            uint32_t max_buffers, dp_loc loc) {
    dp_core *core = dp_kernel_core("InitBufPool", loc);
    dp_queue_state *state = dp_queue_state_of(core, loc);
    need_pipe(core, state, loc);
    check_space(core, space, loc);
    dp_pool *outer = pool_of(core, state, parent, loc), *shared = pool_of(core, state, share, loc);
    uint64_t each = round_up(size_bytes);
    if (shared && (each > shared->size_bytes || shared->space != space))
        dp_fault(core, NULL, loc,
                 "InitBufPool: %llu bytes of %s do not fit on the shared pool of %s:%u, which has %u bytes of %s",
                 (unsigned long long)each, dp_space_name(space), shared->init.file ? shared->init.file : "?",
                 shared->init.line, shared->size_bytes, dp_space_name(shared->space));
    dp_pool *pool = NULL;
    for (unsigned p = 0; p < MAX_POOLS && !pool; p++)
        pool = state->pool[p].id ? NULL : &state->pool[p];
    if (!pool)
        dp_fault(core, NULL, loc, "InitBufPool: there are already %u pools, which is the limit", MAX_POOLS);
    uint32_t begin = shared ? shared->begin : reserve(core, state, outer, space, 1, each, loc);
    *pool = (dp_pool){.id = ++state->serial << SLOT_BITS | (uint32_t)(pool - state->pool),
                      .space = space,
                      .parent = outer ? (uint8_t)(outer - state->pool + 1) : 0,
                      .begin = begin,
                      .size_bytes = (uint32_t)each,
                      .max_buffers = max_buffers,
                      .init = loc};
    return pool->id;
}

void dp_pool_reset(dp_pool_handle handle, dp_loc loc) {
    dp_core *core = dp_kernel_core("TBufPool::Reset", loc);
    dp_queue_state *state = dp_queue_state_of(core, loc);
    dp_pool *pool = pool_of(core, state, handle, loc);
    if (!pool)
        dp_fault(core, NULL, loc, "TBufPool::Reset: the pool has no memory; call InitBufPool for it first");
    uint8_t mark = (uint8_t)(pool - state->pool + 1);
    for (unsigned i = 0; i < MAX_BUFFERS; i++) {
        if (state->buffer[i].pool == mark)
            retire(core, state, &state->buffer[i], loc);
    }
    pool->used_bytes = pool->buffers = 0;
}

dp_buffer_view dp_pipe_rest(unsigned space, dp_loc loc) {
    dp_core *core = dp_kernel_core("PopStackBuffer", loc);
    check_space(core, space, loc);
    uint32_t low = core->local_low[space], top = core->local_top[space];
    return (dp_buffer_view){core->memory[space].base + low, top > low ? top - low : 0, 0};
}

dp_buffer_view dp_buffer_view_of(uint32_t buffer_id, dp_loc loc) {
    dp_core *core = dp_kernel_core("GetBufferAddr", loc);
    dp_buffer_info info;
    if (!dp_buffer_find(core, buffer_id, &info))
        dp_fault(core, NULL, loc, "GetBufferAddr: handle %u is not a buffer of this TPipe; use what DeQue() or GetBufferHandle() "
                 "returned", buffer_id);
    return (dp_buffer_view){info.addr, info.size_bytes, info.buffer_id};
}

void dp_tbuf_fault(uint32_t wanted_bytes, uint32_t offset_bytes, uint32_t size_bytes, dp_loc loc) {
    dp_core *core = dp_kernel_core("TBuf::Get", loc);
    if (size_bytes == 0)
        dp_fault(core, NULL, loc, "TBuf::Get: the TBuf has no memory; call TPipe::InitBuffer(buf, bytes) first");
    dp_fault(core, NULL, loc, "TBuf::Get: %u bytes from offset %u are wanted, but the TBuf has %u bytes", wanted_bytes,
             offset_bytes, size_bytes);
}

/* ---- what observers ask ---- */

dp_buffer_info dp_buffer_info_of(const dp_queue_state *state, const dp_buffer *buffer) {
    dp_buffer_info info = {.buffer_id = buffer->id,
                           .addr = buffer->addr,
                           .size_bytes = buffer->size_bytes,
                           .space = buffer->space,
                           .src_position = buffer->position,
                           .dst_position = buffer->position,
                           .state = buffer->state,
                           .is_tbuf = buffer->queue == NO_SLOT,
                           .index = buffer->index,
                           .count = 1,
                           .init = buffer->init,
                           .last = buffer->last};
    if (!info.is_tbuf) {
        const dp_queue *queue = &state->queue[buffer->queue];
        info.dst_position = queue->shape.dst_position;
        info.count = queue->num;
        info.depth = queue->shape.depth;
    }
    return info;
}

bool dp_buffer_find(const dp_core *core, uint32_t buffer_id, dp_buffer_info *out_info) {
    const dp_queue_state *state = core->queues;
    if (!state || !buffer_id || state->buffer[buffer_id & SLOT_MASK].id != buffer_id)
        return false;
    *out_info = dp_buffer_info_of(state, &state->buffer[buffer_id & SLOT_MASK]);
    return true;
}

bool dp_buffer_find_at(const dp_core *core, unsigned space, const void *addr, dp_buffer_info *out_info) {
    const dp_queue_state *state = core->queues;
    for (unsigned i = 0; state && i < MAX_BUFFERS; i++) {
        const dp_buffer *buffer = &state->buffer[i];
        if (buffer->id && buffer->space == space && (const uint8_t *)addr >= buffer->addr &&
            (const uint8_t *)addr < buffer->addr + buffer->size_bytes) {
            *out_info = dp_buffer_info_of(state, buffer);
            return true;
        }
    }
    return false;
}

void dp_buffer_describe(const dp_buffer_info *info, char *text, size_t text_bytes) {
    unsigned position = info->src_position == 0 ? info->dst_position : info->src_position; /* 0 = GM */
    if (info->is_tbuf)
        snprintf(text, text_bytes, "%s TBuf (InitBuffer at %s:%u)", dp_position_name(position),
                 info->init.file ? info->init.file : "?", info->init.line);
    else
        snprintf(text, text_bytes, "%s buffer %u of %u (InitBuffer at %s:%u)", dp_position_name(position), info->index + 1,
                 info->count, info->init.file ? info->init.file : "?", info->init.line);
}

void dp_queue_leaks(const dp_core *core, dp_buffer_fn fn, void *context) {
    const dp_queue_state *state = core->queues;
    if (!state || !state->serial)
        return;
    for (uint32_t i = 0; i < state->leaks; i++)
        fn(context, &state->leak[i]);
    for (unsigned i = 0; i < MAX_BUFFERS; i++) {
        const dp_buffer *buffer = &state->buffer[i];
        if (buffer->id && buffer->queue != NO_SLOT && buffer->state != DP_BUFFER_FREE) {
            dp_buffer_info info = dp_buffer_info_of(state, buffer);
            fn(context, &info);
        }
    }
}

void dp_buffer_tag_set(uint32_t buffer_id, int32_t tag) {
    dp_core *core = dp_core_current();
    if (core && core->queues && buffer_id && core->queues->buffer[buffer_id & SLOT_MASK].id == buffer_id)
        core->queues->buffer[buffer_id & SLOT_MASK].tag = tag;
}

int32_t dp_buffer_tag(uint32_t buffer_id) {
    dp_core *core = dp_core_current();
    bool known = core && core->queues && buffer_id && core->queues->buffer[buffer_id & SLOT_MASK].id == buffer_id;
    return known ? core->queues->buffer[buffer_id & SLOT_MASK].tag : 0;
}

const char *dp_position_name(unsigned position) {
    static const char *const names[] = {"GM",    "A1",     "A2",      "B1",  "B2",   "C1",        "C2",          "CO1",
                                        "CO2",   "VECIN",  "VECOUT",  "VECCALC", "SHM", "TSCM", "C2PIPE2GM", "C2PIPE2LOCAL"};
    return position < sizeof names / sizeof *names ? names[position] : "unknown position";
}
