/*
 * runs.h - gathers neighbouring byte runs of one operand before they are shown to a visitor.
 */
#ifndef DOPPEL_DEVICE_RUNS_H
#define DOPPEL_DEVICE_RUNS_H

#include "device/exec.h"

typedef struct dp_runs {
    dp_access_fn visit;
    void *context;
    unsigned operand, mode;
    const uint8_t *start;
    size_t bytes;
} dp_runs;

static inline void dp_runs_end(dp_runs *runs) {
    if (runs->bytes)
        runs->visit(runs->context, runs->operand, runs->mode, runs->start, runs->bytes);
    runs->bytes = 0;
}

/* Adds a run that may continue the one before it; shows the previous one otherwise. */
static inline void dp_runs_add(dp_runs *runs, const void *addr, size_t bytes) {
    if (!bytes)
        return;
    if (runs->bytes && runs->start + runs->bytes == (const uint8_t *)addr) {
        runs->bytes += bytes;
        return;
    }
    dp_runs_end(runs);
    runs->start = addr;
    runs->bytes = bytes;
}

/*
 * Are extent_bytes from operand k on inside this core's memory? For visitors that must read an operand (offsets,
 * patterns) of an instruction that has not been checked yet.
 */
static inline bool dp_operand_readable(const dp_core *core, const dp_insn *insn, unsigned k, size_t extent_bytes) {
    const dp_operand *o = &insn->operand[k];
    if (o->space >= DP_SPACE_COUNT || !core->memory[o->space].base)
        return false;
    const dp_core_memory *memory = &core->memory[o->space];
    uintptr_t offset = (uintptr_t)o->addr - (uintptr_t)memory->base;
    return offset <= memory->size_bytes && extent_bytes <= memory->size_bytes - offset;
}

#endif
