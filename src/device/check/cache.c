/*
 * The scalar unit's data cache: what it stores to device memory stays there until the line is cleaned, and neither the
 * movers nor other cores look into it (kernel-semantics section 13).
 */
#include <stdio.h>

#include "device/check/state.h"
#include "device/exec.h"

enum { LINE_BYTES = 64 };

static void forget(dp_check_core *state, unsigned index) {
    state->dirty[index] = state->dirty[--state->dirty_count];
}

static void store(dp_check_core *state, uintptr_t begin, uintptr_t end) {
    for (unsigned i = 0; i < state->dirty_count; i++) {
        dp_dirty *d = &state->dirty[i];
        if (begin > d->end || end < d->begin || d->site != state->site)
            continue;
        d->begin = begin < d->begin ? begin : d->begin;
        d->end = end > d->end ? end : d->end;
        d->epoch = state->epoch;
        return;
    }
    if (state->dirty_count == DP_DIRTY_MAX)
        forget(state, 0);
    state->dirty[state->dirty_count++] = (dp_dirty){begin, end, state->site, state->epoch};
}

static void clean_line(dp_check_core *state, uintptr_t address) {
    uintptr_t line = address / LINE_BYTES * LINE_BYTES, end = line + LINE_BYTES;
    for (unsigned i = 0; i < state->dirty_count;) {
        dp_dirty *d = &state->dirty[i], rest = *d;
        if (d->end <= line || d->begin >= end) {
            i++;
            continue;
        }
        rest.begin = end;
        bool left = d->begin<line, right = d->end> end;
        d->end = line;
        if (!left)
            forget(state, i);
        else
            i++;
        if (right && state->dirty_count < DP_DIRTY_MAX)
            state->dirty[state->dirty_count++] = rest;
    }
}

static void report(dp_check_core *state, const dp_dirty *d, const dp_check_run *run) {
    dp_finding f = {.kind = DP_CHECK_STALE_CACHE, .has_other = true};
    uintptr_t at = (uintptr_t)run->addr > d->begin ? (uintptr_t)run->addr : d->begin;
    uintptr_t end = (uintptr_t)run->addr + run->bytes < d->end ? (uintptr_t)run->addr + run->bytes : d->end;
    dp_finding_context(&f, state->core);
    f.place = dp_place_of_insn(state->insn, (int)state->pipe, "reads these bytes");
    f.other = dp_place_of_site(d->site, DP_PIPE_S, "writes them");
    snprintf(f.sentence, sizeof f.sentence,
             "%s on %s reads device memory that the scalar unit wrote before; what it wrote may still be in its data "
             "cache only",
             dp_insn_name(state->insn->op), dp_pipe_name(state->pipe));
    dp_describe_gm((const void *)at, end - at, f.memory, sizeof f.memory);
    snprintf(f.cure, sizeof f.cure,
             "call DataCacheCleanAndInvalid on the tensor after SetValue and before the bytes are read");
    dp_finding_add(&f);
}

void dp_check_cache(dp_check_core *state) {
    const dp_insn *insn = state->insn;
    if (insn->op == DP_OP_DCCI) {
        if (insn->u.vec.flag0)
            state->dirty_count = 0;
        else
            clean_line(state, (uintptr_t)insn->operand[0].addr);
        return;
    }
    bool stores = insn->op == DP_OP_SCALAR_STORE && !dp_is_atomic_store(state->core, insn); /* those add in memory itself */
    for (uint32_t i = 0; (stores || state->dirty_count) && i < state->run_count; i++) {
        const dp_check_run *run = &state->runs[i];
        uintptr_t begin = (uintptr_t)run->addr, end = begin + run->bytes;
        if (run->space != DP_SPACE_GM)
            continue;
        if (stores && run->mode & DP_WRITE)
            store(state, begin, end);
        for (unsigned k = state->dirty_count; state->pipe != DP_PIPE_S && (run->mode & DP_READ) && k-- > 0;) {
            if (state->dirty[k].begin >= end || state->dirty[k].end <= begin)
                continue;
            report(state, &state->dirty[k], run);
            forget(state, k); /* told once */
        }
    }
}

void dp_check_cache_end(dp_check_core *state) {
    for (unsigned i = 0; i < state->dirty_count; i++) {
        const dp_dirty *d = &state->dirty[i];
        dp_spans_add(&state->spans, d->begin, d->end - d->begin, d->epoch, d->site, DP_SPAN_CACHED);
    }
    state->dirty_count = 0;
}
