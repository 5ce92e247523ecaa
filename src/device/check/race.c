/* Read and write order between the pipes of one block, on-chip and in device memory. */
#include <stdio.h>

#include "device/check/state.h"
#include "device/exec.h"

/* Pairs the vendor's compiler orders by itself where it sees a dependence (kernel-semantics section 13). */
static bool is_automatic(unsigned p, unsigned q) {
    if (p == DP_PIPE_S || q == DP_PIPE_S) {
        unsigned other = p == DP_PIPE_S ? q : p;
        return other == DP_PIPE_V || other == DP_PIPE_MTE2 || other == DP_PIPE_MTE3;
    }
    return p == DP_PIPE_V && q == DP_PIPE_V;
}

static void cure_of(unsigned first, unsigned second, char *text, size_t text_bytes) {
    const char *a = dp_pipe_name(first), *b = dp_pipe_name(second);
    if (first == second)
        snprintf(text, text_bytes, "call PipeBarrier<PIPE_%s>() between the two", a);
    else if (first == DP_PIPE_MTE2 && second == DP_PIPE_V)
        snprintf(text, text_bytes,
                 "EnQue the tensor after the copy and DeQue it before its use, or call SetFlag and WaitFlag<HardEvent::%s_%s>", a, b);
    else if (first == DP_PIPE_V && second == DP_PIPE_MTE3)
        snprintf(text, text_bytes,
                 "EnQue the result and DeQue it before it is copied out, or call SetFlag and WaitFlag<HardEvent::%s_%s>", a, b);
    else if ((first == DP_PIPE_V && second == DP_PIPE_MTE2) || (first == DP_PIPE_MTE3 && second == DP_PIPE_V))
        snprintf(text, text_bytes,
                 "FreeTensor and AllocTensor before the buffer is used again, or call SetFlag and WaitFlag<HardEvent::%s_%s>", a, b);
    else
        snprintf(text, text_bytes, "call SetFlag<HardEvent::%s_%s> after the first and WaitFlag before the second", a, b);
}

static void report(dp_check_core *state, dp_hazard hazard, dp_stamp earlier, const char *memory) {
    static const dp_check_kind kinds[] = {DP_CHECK_RACE_RAW, DP_CHECK_RACE_WAR, DP_CHECK_RACE_WAW};
    static const char *const names[] = {"read after write", "write after read", "write after write"};
    unsigned p = state->pipe, q = dp_stamp_pipe(earlier);
    dp_finding f = {.kind = kinds[hazard], .has_other = true};
    dp_finding_context(&f, state->core);
    f.place = dp_place_of_insn(state->insn, (int)p, hazard == DP_HAZARD_RAW ? "reads these bytes" : "writes these bytes");
    f.other = dp_place_of_site(dp_stamp_site(earlier), (int)q, hazard == DP_HAZARD_WAR ? "reads them" : "writes them");
    if (p == q)
        snprintf(f.sentence, sizeof f.sentence, "%s on pipe %s without a barrier: %s may start before %s has finished",
                 names[hazard], dp_pipe_name(p), dp_insn_name(state->insn->op),
                 f.other.op >= 0 ? dp_insn_name((unsigned)f.other.op) : "the earlier instruction");
    else
        snprintf(f.sentence, sizeof f.sentence, "%s without synchronisation: nothing makes %s on %s wait for %s on %s",
                 names[hazard], dp_insn_name(state->insn->op), dp_pipe_name(p),
                 f.other.op >= 0 ? dp_insn_name((unsigned)f.other.op) : "the earlier instruction", dp_pipe_name(q));
    snprintf(f.memory, sizeof f.memory, "%s", memory);
    cure_of(q, p, f.cure, sizeof f.cure);
    dp_finding_add(&f);
}

/*
 * True when the pair is a finding. Either way the later pipe is taken to be ordered from here on: the compiler has
 * ordered it, or one report per missing synchronisation is enough.
 */
static bool is_unordered(dp_check_core *state, dp_hazard hazard, dp_stamp earlier) {
    unsigned p = state->pipe, q = dp_stamp_pipe(earlier);
    bool loaded = hazard == DP_HAZARD_WAR && q == DP_PIPE_S; /* a load has its value before the next instruction is issued */
    bool found = !loaded && (dp_check_option.strict || !is_automatic(p, q));
    dp_check_learn(state, p, q, dp_stamp_time(earlier));
    return found;
}

static void local_hazard(void *context, dp_hazard hazard, dp_stamp earlier, uint32_t offset, uint32_t bytes) {
    dp_check_core *state = context;
    if (!is_unordered(state, hazard, earlier) || state->reported == earlier)
        return;
    state->reported = earlier;
    char memory[224];
    dp_describe_local(state->core, state->space, state->core->memory[state->space].base + offset, bytes, memory,
                      sizeof memory);
    report(state, hazard, earlier, memory);
}

/* Lanes of one 32-byte block of one operand that were not looked at yet. */
typedef struct lanes {
    dp_shadow *shadow;
    uint32_t cell, bits;
} lanes;

static void look_at_lanes(const dp_shadow_access *access, lanes *l, bool write) {
    if (l->bits && write)
        dp_shadow_write_lanes(l->shadow, access, l->cell, l->cell + 1, l->bits);
    else if (l->bits)
        dp_shadow_read_lanes(l->shadow, access, l->cell, l->cell + 1, l->bits);
    l->bits = 0;
}

void dp_check_local_accesses(dp_check_core *state, bool write) {
    dp_shadow_access access = {
        .stamp = dp_stamp_make(state->clocks.now, state->site, state->pipe),
        .done = &state->clocks.pipe[state->pipe],
        .whole_cells = state->pipe == DP_PIPE_S && !dp_check_option.strict,
        .hazard = local_hazard,
        .context = state,
    };
    lanes pending = {0};
    dp_shadow *shadow = NULL;
    unsigned shadow_space = DP_SPACE_NONE;
    for (uint32_t i = 0; i < state->run_count; i++) {
        const dp_check_run *run = &state->runs[i];
        if (run->space <= DP_SPACE_GM || run->space >= DP_SPACE_COUNT || !(run->mode & (write ? 2 : 1)))
            continue;
        const dp_core_memory *memory = &state->core->memory[run->space];
        if (run->space != shadow_space)
            shadow = dp_check_shadow(state, shadow_space = run->space);
        size_t offset = (size_t)(run->addr - memory->base);
        if (!shadow || run->addr < memory->base || offset > memory->size_bytes || run->bytes > memory->size_bytes - offset)
            continue; /* outside: the executor faults */
        uint32_t cell = (uint32_t)(offset / DP_CELL_BYTES), at = (uint32_t)(offset % DP_CELL_BYTES);
        if (pending.bits && (pending.shadow != shadow || pending.cell != cell))
            look_at_lanes(&access, &pending, write);
        state->space = run->space;
        if (at + run->bytes < DP_CELL_BYTES || (at && at + run->bytes == DP_CELL_BYTES)) {
            uint32_t bits = (uint32_t)((((uint64_t)1 << run->bytes) - 1) << at);
            pending = (lanes){shadow, cell, pending.bits | bits};
            continue;
        }
        look_at_lanes(&access, &pending, write);
        uint32_t cells = (uint32_t)run->bytes / DP_CELL_BYTES;
        if (run->bits && write)
            dp_shadow_write_lanes(shadow, &access, cell, cell + cells, run->bits);
        else if (run->bits)
            dp_shadow_read_lanes(shadow, &access, cell, cell + cells, run->bits);
        else if (write)
            dp_shadow_write(shadow, &access, (uint32_t)offset, (uint32_t)run->bytes);
        else
            dp_shadow_read(shadow, &access, (uint32_t)offset, (uint32_t)run->bytes);
    }
    look_at_lanes(&access, &pending, write);
}

static bool row_meets(const dp_gm_access *rows, uintptr_t begin, uintptr_t end) {
    if (begin >= rows->end || end <= rows->begin)
        return false;
    if (!rows->pitch)
        return true;
    size_t from = begin > rows->begin ? begin - rows->begin : 0, to = end - rows->begin;
    /* the row that holds `from`, or starts next after it */
    size_t row = from / rows->pitch;
    return from % rows->pitch < rows->row_bytes || (row + 1) * rows->pitch < to;
}

static bool accesses_meet(const dp_gm_access *a, const dp_gm_access *b) {
    if (a->begin >= b->end || b->begin >= a->end)
        return false;
    if (!b->pitch)
        return row_meets(a, b->begin, b->end);
    for (uintptr_t at = b->begin; at < b->end; at += b->pitch) {
        if (row_meets(a, at, at + b->row_bytes))
            return true;
    }
    return false;
}

static void against(dp_check_core *state, dp_gm_recent *recent, const dp_gm_access *access, dp_hazard hazard) {
    const dp_check_clock *done = &state->clocks.pipe[state->pipe];
    for (unsigned i = 0; i < recent->count; i++) {
        const dp_gm_access *earlier = &recent->list[i];
        unsigned q = dp_stamp_pipe(earlier->stamp);
        if (dp_stamp_time(earlier->stamp) <= done->done[q] || earlier->stamp == access->stamp ||
            (earlier->atomic && access->atomic) || (hazard == DP_HAZARD_WAR && q == state->pipe) ||
            !accesses_meet(earlier, access))
            continue;
        if (!is_unordered(state, hazard, earlier->stamp))
            continue;
        uintptr_t begin = earlier->begin > access->begin ? earlier->begin : access->begin;
        uintptr_t end = earlier->end < access->end ? earlier->end : access->end;
        char memory[224];
        dp_describe_gm((const void *)begin, end - begin, memory, sizeof memory);
        report(state, hazard, earlier->stamp, memory);
    }
}

/* Drops what every mover already knows to be finished; if nothing is, the oldest goes. */
static void remember(dp_check_core *state, dp_gm_recent *recent, const dp_gm_access *access) {
    const dp_check_clock *in = &state->clocks.pipe[DP_PIPE_MTE2], *out = &state->clocks.pipe[DP_PIPE_MTE3];
    if (recent->count == DP_GM_RECENT) {
        unsigned kept = 0;
        for (unsigned i = 0; i < recent->count; i++) {
            uint32_t time = dp_stamp_time(recent->list[i].stamp);
            unsigned q = dp_stamp_pipe(recent->list[i].stamp);
            bool known = time <= out->done[q] && (q == DP_PIPE_MTE2 || time <= in->done[q]);
            if (!known)
                recent->list[kept++] = recent->list[i];
        }
        recent->count = kept;
    }
    if (recent->count == DP_GM_RECENT) {
        recent->list[recent->oldest] = *access;
        recent->oldest = (recent->oldest + 1) % DP_GM_RECENT;
    } else {
        recent->oldest = 0;
        recent->list[recent->count++] = *access;
    }
}

/* The instruction's runs of device memory in one mode as rows. False: none, or no regular rows. */
static bool rows_of(const dp_check_core *state, bool write, dp_gm_access *out) {
    unsigned count = 0;
    bool regular = true;
    for (uint32_t i = 0; i < state->run_count; i++) {
        const dp_check_run *run = &state->runs[i];
        uintptr_t begin = (uintptr_t)run->addr;
        if (run->space != DP_SPACE_GM || !(run->mode & (write ? 2 : 1)) || !run->bytes)
            continue;
        if (count == 0) {
            *out = (dp_gm_access){.begin = begin, .end = begin + run->bytes, .row_bytes = run->bytes};
        } else {
            size_t pitch = count == 1 ? begin - out->begin : out->pitch;
            regular = regular && begin > out->begin && begin == out->begin + count * pitch && run->bytes == out->row_bytes;
            out->pitch = pitch;
            out->end = begin + run->bytes > out->end ? begin + run->bytes : out->end;
        }
        count++;
    }
    return count && regular;
}

/* Its writes to device memory are combined there. */
static bool is_atomic(const dp_check_core *state) {
    return state->pipe == DP_PIPE_S ? dp_is_atomic_store(state->core, state->insn) : state->core->atomic_op != 0;
}

static void gm_mode(dp_check_core *state, bool write) {
    dp_gm_access access;
    if (!rows_of(state, write, &access))
        return;
    access.stamp = dp_stamp_make(state->clocks.now, state->site, state->pipe);
    access.atomic = write && is_atomic(state);
    if (write)
        against(state, &state->gm_reads, &access, DP_HAZARD_WAR);
    against(state, &state->gm_writes, &access, write ? DP_HAZARD_WAW : DP_HAZARD_RAW);
    remember(state, write ? &state->gm_writes : &state->gm_reads, &access);
}

void dp_check_gm_accesses(dp_check_core *state) {
    bool any = false;
    for (uint32_t i = 0; i < state->run_count; i++) {
        const dp_check_run *run = &state->runs[i];
        if (run->space != DP_SPACE_GM || !run->bytes)
            continue;
        any = true;
        uint32_t mode = (run->mode & 2 ? DP_SPAN_WRITE : 0u) | (run->mode == 1 ? DP_SPAN_READ : 0u);
        if ((run->mode & 2) && is_atomic(state))
            mode |= DP_SPAN_ATOMIC;
        dp_spans_add(&state->spans, (uintptr_t)run->addr, run->bytes, state->epoch, state->site, mode);
    }
    if (!any)
        return;
    gm_mode(state, false);
    gm_mode(state, true);
}
