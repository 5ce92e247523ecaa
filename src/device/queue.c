/* The queue machine: alloc, enque, deque, free, and the event ids and flags they imply. */
#include "device/queue_state.h"

#include <stdio.h>

/* ---- event ids and implied flags ---- */

static __attribute__((noinline, cold, noreturn)) void fault_no_event(dp_core *core, dp_pipe_pair pair, dp_loc loc) {
    dp_fault(core, NULL, loc,
             "all %u event ids of %s->%s are in use: every buffer that is enqueued or freed but not yet taken again holds one, "
             "and so does every AllocEventID; use fewer buffers on this pair, or give ids back with ReleaseEventID",
             DP_EVENT_IDS, dp_pipe_name(pair.src), dp_pipe_name(pair.dst));
}

static __attribute__((noinline, cold, noreturn)) void fault_pair(dp_core *core, dp_pipe_pair pair, dp_loc loc) {
    dp_fault(core, NULL, loc, "pipes %u and %u are not a pipe pair of this chip", pair.src, pair.dst);
}

static inline int8_t lowest_free_event(dp_core *core, const dp_queue_state *state, dp_pipe_pair pair, dp_loc loc) {
    if (DP_UNLIKELY(pair.src >= DP_PIPE_COUNT || pair.dst >= DP_PIPE_COUNT))
        fault_pair(core, pair, loc);
    unsigned used = state->events[pair.src][pair.dst];
    if (DP_UNLIKELY(used == 0xff))
        fault_no_event(core, pair, loc);
    return (int8_t)__builtin_ctz(~used);
}

static __attribute__((noinline)) void issue_flag(dp_op op, dp_pipe_pair pair, int8_t id, dp_loc loc) {
    dp_insn insn = {.op = (uint16_t)op, .loc = loc};
    insn.u.sync.src_pipe = pair.src;
    insn.u.sync.dst_pipe = pair.dst;
    insn.u.sync.event_id = (uint8_t)id;
    insn.u.sync.implied = 1;
    dp_issue(&insn);
}

/* On the quiet path the flag bit is flipped here; anything unusual takes the door, which reports it. */
static inline bool flag_is_plain(const dp_core *core, dp_pipe_pair pair) {
    return !core->observer && core->kind == DP_CORE_AIV && pair.src != pair.dst;
}

int8_t dp_queue_raise(dp_core *core, dp_queue_state *state, dp_pipe_pair pair, dp_loc loc) {
    int8_t id = lowest_free_event(core, state, pair, loc);
    uint8_t bit = (uint8_t)(1u << id);
    state->events[pair.src][pair.dst] |= bit;
    uint8_t *raised = &core->flags[pair.src][pair.dst];
    if (DP_LIKELY(flag_is_plain(core, pair) && !(*raised & bit)))
        *raised |= bit;
    else
        issue_flag(DP_OP_SET_FLAG, pair, id, loc);
    return id;
}

void dp_queue_await(dp_core *core, dp_queue_state *state, dp_pipe_pair pair, int8_t id, dp_loc loc) {
    uint8_t bit = (uint8_t)(1u << id);
    uint8_t *raised = &core->flags[pair.src][pair.dst];
    if (DP_LIKELY(flag_is_plain(core, pair) && (*raised & bit)))
        *raised &= (uint8_t)~bit;
    else
        issue_flag(DP_OP_WAIT_FLAG, pair, id, loc);
    state->events[pair.src][pair.dst] &= (uint8_t)~bit;
}

int8_t dp_event_fetch(dp_pipe_pair pair, dp_loc loc) {
    dp_core *core = dp_kernel_core("FetchEventID", loc);
    return lowest_free_event(core, dp_queue_state_of(core, loc), pair, loc);
}

int8_t dp_event_alloc(dp_pipe_pair pair, dp_loc loc) {
    dp_core *core = dp_kernel_core("AllocEventID", loc);
    dp_queue_state *state = dp_queue_state_of(core, loc);
    int8_t id = lowest_free_event(core, state, pair, loc);
    state->events[pair.src][pair.dst] |= (uint8_t)(1u << id);
    return id;
}

void dp_event_release(dp_pipe_pair pair, int8_t id, dp_loc loc) {
    dp_core *core = dp_kernel_core("ReleaseEventID", loc);
    dp_queue_state *state = dp_queue_state_of(core, loc);
    if (pair.src >= DP_PIPE_COUNT || pair.dst >= DP_PIPE_COUNT)
        fault_pair(core, pair, loc);
    if (id < 0 || id >= (int)DP_EVENT_IDS)
        dp_fault(core, NULL, loc, "ReleaseEventID: event id %d does not exist; a pipe pair has the ids 0 to %u", id,
                 DP_EVENT_IDS - 1);
    if (!(state->events[pair.src][pair.dst] >> id & 1))
        dp_fault(core, NULL, loc,
                 "ReleaseEventID: id %d of %s->%s is not reserved; release only what AllocEventID returned, and once", id,
                 dp_pipe_name(pair.src), dp_pipe_name(pair.dst));
    state->events[pair.src][pair.dst] &= (uint8_t)~(1u << id);
}

/* Memory of each TPosition; facts: kernel-semantics section 12. */
static unsigned memory_of(unsigned position) {
    static const uint8_t memory[] = {DP_SPACE_GM,  DP_SPACE_L1, DP_SPACE_L0A, DP_SPACE_L1, DP_SPACE_L0B, DP_SPACE_L1,
                                     DP_SPACE_BT,  DP_SPACE_L0C, DP_SPACE_GM, DP_SPACE_UB, DP_SPACE_UB,  DP_SPACE_UB,
                                     DP_SPACE_L1,  DP_SPACE_L1, DP_SPACE_FB,  DP_SPACE_FB};
    return position < sizeof memory ? memory[position] : DP_SPACE_NONE;
}

enum { POSITION_VECIN = 9, POSITION_VECOUT = 10, POSITION_VECCALC = 11 };

dp_pipe_pair dp_queue_enque_pair(unsigned src_position, unsigned dst_position) {
    unsigned src = memory_of(src_position), dst = memory_of(dst_position);
    if (src == DP_SPACE_GM)
        return dst == DP_SPACE_UB   ? (dp_pipe_pair){DP_PIPE_MTE2, DP_PIPE_V}
               : dst == DP_SPACE_L1 ? (dp_pipe_pair){DP_PIPE_MTE2, DP_PIPE_MTE1}
                                    : (dp_pipe_pair){DP_PIPE_MTE2, DP_PIPE_M};
    if (src == DP_SPACE_L0C)
        return (dp_pipe_pair){DP_PIPE_M, DP_PIPE_FIX};
    if (src == DP_SPACE_L1)
        return (dp_pipe_pair){DP_PIPE_MTE1, dst == DP_SPACE_FB ? DP_PIPE_FIX : DP_PIPE_M};
    if (src == DP_SPACE_UB && dst == DP_SPACE_GM)
        return (dp_pipe_pair){DP_PIPE_V, DP_PIPE_MTE3};
    if (src == DP_SPACE_UB && dst == DP_SPACE_L1)
        return (dp_pipe_pair){DP_PIPE_MTE3, DP_PIPE_MTE1};
    if (src_position == POSITION_VECIN && dst_position == POSITION_VECOUT)
        return (dp_pipe_pair){DP_PIPE_MTE2, DP_PIPE_MTE3};
    if (src_position == POSITION_VECIN && dst_position == POSITION_VECCALC)
        return (dp_pipe_pair){DP_PIPE_MTE2, DP_PIPE_V};
    if (src_position == POSITION_VECCALC && dst_position == POSITION_VECOUT)
        return (dp_pipe_pair){DP_PIPE_V, DP_PIPE_MTE3};
    return (dp_pipe_pair){DP_PIPE_V, DP_PIPE_V};
}

/* The event of giving a buffer back runs the other way. */
dp_pipe_pair dp_queue_free_pair(dp_pipe_pair enque) { return (dp_pipe_pair){enque.dst, enque.src}; }

/* ---- handles ---- */

static __attribute__((noinline, cold, noreturn)) void fault_handle(dp_core *core, dp_queue_handle handle, const char *what,
                                                                   dp_loc loc) {
    if (handle == 0)
        dp_fault(core, NULL, loc,
                 "%s: the queue has no buffers; give it some with TPipe::InitBuffer(queue, number, bytes) before its first use",
                 what);
    dp_fault(core, NULL, loc,
             "%s: the queue's buffers are gone since TPipe::Reset or Destroy; call InitBuffer for it again", what);
}

typedef struct dp_queue_use {
    dp_core *core;
    dp_queue_state *state;
    dp_queue *queue;
} dp_queue_use;

static inline dp_queue_use use_queue(dp_queue_handle handle, const char *what, dp_loc loc) {
    dp_queue_use use;
    use.core = dp_core_current();
    if (DP_UNLIKELY(!use.core))
        dp_kernel_core(what, loc);
    use.state = use.core->queues;
    use.queue = use.state ? &use.state->queue[handle & SLOT_MASK] : NULL;
    if (DP_UNLIKELY(handle == 0 || !use.queue || use.queue->id != handle))
        fault_handle(use.core, handle, what, loc);
    return use;
}

static void describe_queue(const dp_queue *queue, char *text, size_t text_bytes) {
    snprintf(text, text_bytes, "the %s queue of InitBuffer at %s:%u (%u buffer%s, depth %d)",
             dp_position_name(queue->shape.src_position == 0 ? queue->shape.dst_position : queue->shape.src_position),
             queue->init.file ? queue->init.file : "?", queue->init.line, queue->num, queue->num == 1 ? "" : "s",
             queue->shape.depth);
}

/* The buffer of `queue` behind an id; a fault that says whose tensor it is otherwise. */
static __attribute__((noinline, cold, noreturn)) void fault_foreign(dp_queue_use use, uint32_t buffer_id, const char *what,
                                                                    dp_loc loc) {
    char own[200];
    describe_queue(use.queue, own, sizeof own);
    dp_buffer_info info;
    if (buffer_id == 0)
        dp_fault(use.core, NULL, loc,
                 "%s: the tensor does not come from a queue, but %s expects one of its own; pass the tensor its AllocTensor or "
                 "DeQue returned", what, own);
    if (!dp_buffer_find(use.core, buffer_id, &info))
        dp_fault(use.core, NULL, loc, "%s: the tensor's buffer is gone since TPipe::Reset or Destroy; it cannot go to %s", what,
                 own);
    char other[200];
    dp_buffer_describe(&info, other, sizeof other);
    use.core->fault_other = info.last.line ? info.last : info.init;
    dp_fault(use.core, NULL, loc, "%s: the tensor is %s and does not belong to %s; return it to its own queue", what, other, own);
}

static inline dp_buffer *own_buffer(dp_queue_use use, uint32_t buffer_id, const char *what, dp_loc loc) {
    dp_buffer *buffer = &use.state->buffer[buffer_id & SLOT_MASK];
    if (DP_UNLIKELY(buffer_id == 0 || buffer->id != buffer_id || buffer->queue != (use.queue->id & SLOT_MASK)))
        fault_foreign(use, buffer_id, what, loc);
    return buffer;
}

static const char *state_word(unsigned state) {
    static const char *const words[] = {"free", "allocated", "in the queue", "taken out of the queue"};
    return state < 4 ? words[state] : "in an unknown state";
}

static __attribute__((noinline, cold, noreturn)) void fault_state(dp_queue_use use, const dp_buffer *buffer, const char *what,
                                                                  const char *cure, dp_loc loc) {
    char own[200];
    describe_queue(use.queue, own, sizeof own);
    use.core->fault_other = buffer->last;
    if (buffer->last.line)
        dp_fault(use.core, NULL, loc, "%s: buffer %u of %s is %s since %s:%u; %s", what, buffer->index + 1, own,
                 state_word(buffer->state), buffer->last.file ? buffer->last.file : "?", buffer->last.line, cure);
    dp_fault(use.core, NULL, loc, "%s: buffer %u of %s is %s; %s", what, buffer->index + 1, own, state_word(buffer->state), cure);
}

/* ---- steps ---- */

static __attribute__((noinline)) void show(dp_op op, const dp_buffer *buffer, dp_loc loc) {
    dp_insn insn = {.op = (uint16_t)op, .n_operands = 1, .loc = loc};
    insn.operand[0] = (dp_operand){.addr = buffer->addr,
                                   .size_bytes = buffer->size_bytes,
                                   .buffer_id = buffer->id,
                                   .block_stride = 1,
                                   .repeat_stride = 8,
                                   .dtype = DP_U8,
                                   .space = buffer->space};
    dp_issue(&insn);
}

static inline void step(dp_core *core, dp_op op, dp_buffer *buffer, dp_buffer_state state, dp_loc loc) {
    buffer->state = (uint8_t)state;
    buffer->last = loc;
    if (DP_UNLIKELY(core->observer != NULL))
        show(op, buffer, loc);
}

static __attribute__((noinline, cold, noreturn)) void fault_nothing_free(dp_queue_use use, dp_loc loc) {
    unsigned in_state[4] = {0};
    const dp_buffer *oldest = NULL;
    for (unsigned i = 0; i < use.queue->num; i++) {
        const dp_buffer *buffer = &use.state->buffer[use.queue->buffer[i]];
        in_state[buffer->state & 3]++;
        if (buffer->state != DP_BUFFER_FREE && !oldest)
            oldest = buffer;
    }
    char own[200], where[160] = "";
    describe_queue(use.queue, own, sizeof own);
    if (oldest && oldest->last.line)
        snprintf(where, sizeof where, " (buffer %u since %s:%u)", oldest->index + 1,
                 oldest->last.file ? oldest->last.file : "?", oldest->last.line);
    use.core->fault_other = oldest && oldest->last.line ? oldest->last : use.queue->init;
    dp_fault(use.core, NULL, loc,
             "AllocTensor: no free buffer in %s: %u allocated, %u in the queue, %u taken out and not freed%s; call FreeTensor "
             "after the last use of each tensor, or give InitBuffer more buffers",
             own, in_state[DP_BUFFER_OCCUPIED], in_state[DP_BUFFER_ENQUE], in_state[DP_BUFFER_DEQUE], where);
}

dp_buffer_view dp_queue_alloc(dp_queue_handle handle, dp_loc loc) {
    dp_queue_use use = use_queue(handle, "AllocTensor", loc);
    dp_queue *queue = use.queue;
    dp_buffer *buffer = NULL;
    unsigned at = queue->next;
    for (unsigned tried = 0; tried < queue->num; tried++) {
        dp_buffer *candidate = &use.state->buffer[queue->buffer[at]];
        if (++at == queue->num)
            at = 0;
        if (candidate->state == DP_BUFFER_FREE) {
            buffer = candidate;
            break;
        }
    }
    if (DP_UNLIKELY(!buffer))
        fault_nothing_free(use, loc);
    queue->next = (uint8_t)at;
    step(use.core, DP_OP_QUE_ALLOC, buffer, DP_BUFFER_OCCUPIED, loc);
    if (buffer->free_id >= 0) {
        int8_t id = buffer->free_id;
        buffer->free_id = -1;
        dp_queue_await(use.core, use.state, queue->free_pair, id, loc);
    }
    return (dp_buffer_view){buffer->addr, buffer->size_bytes, buffer->id};
}

void dp_queue_enque(dp_queue_handle handle, uint32_t buffer_id, dp_pipe_pair pair, dp_loc loc) {
    dp_queue_use use = use_queue(handle, "EnQue", loc);
    dp_queue *queue = use.queue;
    dp_buffer *buffer = own_buffer(use, buffer_id, "EnQue", loc);
    if (pair.src == DP_PAIR_OWN)
        pair = queue->pair;
    if (DP_UNLIKELY(buffer->state != DP_BUFFER_OCCUPIED && buffer->state != DP_BUFFER_DEQUE))
        fault_state(use, buffer, "EnQue",
                    buffer->state == DP_BUFFER_FREE ? "get a tensor with AllocTensor and enqueue it before FreeTensor"
                                                    : "enqueue a tensor once, then DeQue it", loc);
    if (DP_UNLIKELY(queue->open >= queue->shape.depth)) {
        char own[200];
        describe_queue(queue, own, sizeof own);
        use.core->fault_other = use.state->buffer[queue->ring[queue->head]].last;
        dp_fault(use.core, NULL, loc,
                 "EnQue: %s already holds %u tensor%s; DeQue before the next EnQue, or give the queue a larger depth "
                 "(second template argument, %d)",
                 own, queue->open, queue->open == 1 ? "" : "s", queue->shape.depth);
    }
    step(use.core, DP_OP_QUE_ENQUE, buffer, DP_BUFFER_ENQUE, loc);
    buffer->pair = pair;
    buffer->enque_id = dp_queue_raise(use.core, use.state, pair, loc);
    queue->ring[(queue->head + queue->open) & SLOT_MASK] = (uint8_t)(buffer->id & SLOT_MASK);
    queue->open++;
}

static __attribute__((noinline, cold, noreturn)) void fault_empty(dp_queue_use use, dp_loc loc) {
    char own[200];
    describe_queue(use.queue, own, sizeof own);
    use.core->fault_other = use.queue->init;
    dp_fault(use.core, NULL, loc,
             "DeQue: %s is empty, this would hang on the chip; every DeQue needs an EnQue before it on the same queue", own);
}

dp_buffer_view dp_queue_deque(dp_queue_handle handle, dp_pipe_pair pair, dp_loc loc) {
    dp_queue_use use = use_queue(handle, "DeQue", loc);
    dp_queue *queue = use.queue;
    if (DP_UNLIKELY(queue->open == 0))
        fault_empty(use, loc);
    dp_buffer *buffer = &use.state->buffer[queue->ring[queue->head]];
    if (pair.src == DP_PAIR_OWN)
        pair = queue->pair;
    if (DP_UNLIKELY(buffer->pair.src != pair.src || buffer->pair.dst != pair.dst)) {
        char own[200];
        describe_queue(queue, own, sizeof own);
        use.core->fault_other = buffer->last;
        dp_fault(use.core, NULL, loc,
                 "DeQue: the oldest tensor of %s was enqueued for %s->%s (at %s:%u), but is taken out for %s->%s; give DeQue and "
                 "EnQue the same positions",
                 own, dp_pipe_name(buffer->pair.src), dp_pipe_name(buffer->pair.dst),
                 buffer->last.file ? buffer->last.file : "?", buffer->last.line, dp_pipe_name(pair.src),
                 dp_pipe_name(pair.dst));
    }
    queue->head = (queue->head + 1) & SLOT_MASK;
    queue->open--;
    step(use.core, DP_OP_QUE_DEQUE, buffer, DP_BUFFER_DEQUE, loc);
    int8_t id = buffer->enque_id;
    buffer->enque_id = -1;
    dp_queue_await(use.core, use.state, pair, id, loc);
    return (dp_buffer_view){buffer->addr, buffer->size_bytes, buffer->id};
}

void dp_queue_free(dp_queue_handle handle, uint32_t buffer_id, dp_loc loc) {
    dp_queue_use use = use_queue(handle, "FreeTensor", loc);
    dp_buffer *buffer = own_buffer(use, buffer_id, "FreeTensor", loc);
    if (DP_UNLIKELY(buffer->state == DP_BUFFER_FREE))
        fault_state(use, buffer, "FreeTensor", "free each tensor once", loc);
    if (DP_UNLIKELY(buffer->state == DP_BUFFER_ENQUE))
        fault_state(use, buffer, "FreeTensor", "DeQue it before freeing it", loc);
    step(use.core, DP_OP_QUE_FREE, buffer, DP_BUFFER_FREE, loc);
    buffer->free_id = dp_queue_raise(use.core, use.state, use.queue->free_pair, loc);
}

void dp_queue_free_all_events(dp_queue_handle handle, dp_loc loc) {
    dp_queue_use use = use_queue(handle, "FreeAllEvent", loc);
    for (unsigned i = 0; i < use.queue->num; i++) {
        dp_buffer *buffer = &use.state->buffer[use.queue->buffer[i]];
        if (buffer->free_id >= 0) {
            int8_t id = buffer->free_id;
            buffer->free_id = -1;
            dp_queue_await(use.core, use.state, use.queue->free_pair, id, loc);
        }
    }
}

uint32_t dp_queue_open_entries(dp_queue_handle handle, dp_loc loc) {
    return use_queue(handle, "GetTensorCountInQue", loc).queue->open;
}

bool dp_queue_has_idle(dp_queue_handle handle, dp_loc loc) {
    dp_queue_use use = use_queue(handle, "HasIdleBuffer", loc);
    for (unsigned i = 0; i < use.queue->num; i++) {
        if (use.state->buffer[use.queue->buffer[i]].state == DP_BUFFER_FREE)
            return true;
    }
    return false;
}

dp_buffer_state dp_queue_buffer_state(dp_queue_handle handle, uint32_t buffer_id, dp_loc loc) {
    return (dp_buffer_state)own_buffer(use_queue(handle, "GetState", loc), buffer_id, "GetState", loc)->state;
}
