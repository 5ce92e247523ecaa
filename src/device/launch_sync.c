#include "device/launch_sync.h"
#include "base/memory.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

/* Of one core: how often it may pass each flag, and its own sets that still wait for the others'. */
typedef struct sync_core {
    _Atomic uint8_t passes[DP_CROSS_FLAGS];
    uint8_t sent[DP_CROSS_MODES][DP_CROSS_FLAGS];
    bool ended;
} sync_core;

struct dp_launch_sync {
    pthread_mutex_t lock; /* sent, ended, and every increment of passes */
    uint32_t blocks, aic_per_block, aiv_per_block;
    sync_core *cores; /* all cube cores by block, then all vector cores by block and sub-block */
};

/* A range of cores, counted in sync->cores. */
typedef struct core_group {
    uint32_t first, count;
} core_group;

uint32_t dp_launch_sync_aiv_count(const dp_launch_sync *sync) {
    return sync->blocks * sync->aiv_per_block;
}
uint32_t dp_launch_sync_aic_count(const dp_launch_sync *sync) {
    return sync->blocks * sync->aic_per_block;
}

dp_launch_sync *dp_launch_sync_create(uint32_t blocks, unsigned core_mix) {
    static const uint8_t aic[] = {[DP_MIX_AIV] = 0, [DP_MIX_AIC] = 1, [DP_MIX_AIC_1_1] = 1, [DP_MIX_AIC_1_2] = 1};
    static const uint8_t aiv[] = {[DP_MIX_AIV] = 1, [DP_MIX_AIC] = 0, [DP_MIX_AIC_1_1] = 1, [DP_MIX_AIC_1_2] = 2};
    dp_launch_sync *sync = dp_alloc(DP_MEM_DEVICE, sizeof *sync);
    if (!sync)
        goto fail;
    sync->blocks = blocks;
    sync->aic_per_block = aic[core_mix];
    sync->aiv_per_block = aiv[core_mix];
    pthread_mutex_init(&sync->lock, NULL);
    sync->cores =
        dp_alloc(DP_MEM_DEVICE, (size_t)blocks * (sync->aic_per_block + sync->aiv_per_block) * sizeof *sync->cores);
    if (!sync->cores)
        goto fail;
    return sync;
fail:
    dp_launch_sync_destroy(sync);
    dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for the cross-core flags of a launch of %u blocks", blocks);
    return NULL;
}

void dp_launch_sync_destroy(dp_launch_sync *sync) {
    if (!sync)
        return;
    pthread_mutex_destroy(&sync->lock);
    dp_free(sync->cores);
    dp_free(sync);
}

static core_group all_of_kind(const dp_launch_sync *sync, unsigned kind) {
    uint32_t aics = dp_launch_sync_aic_count(sync);
    return kind == DP_CORE_AIC ? (core_group){0, aics} : (core_group){aics, dp_launch_sync_aiv_count(sync)};
}

static core_group in_block(const dp_launch_sync *sync, unsigned kind, uint32_t block) {
    uint32_t aics = dp_launch_sync_aic_count(sync);
    return kind == DP_CORE_AIC ? (core_group){block * sync->aic_per_block, sync->aic_per_block}
                               : (core_group){aics + block * sync->aiv_per_block, sync->aiv_per_block};
}

static uint32_t index_of(const dp_launch_sync *sync, const dp_core *core) {
    return in_block(sync, core->kind, core->block_idx).first + (core->kind == DP_CORE_AIC ? 0 : core->sub_block_idx);
}

static unsigned other_kind(unsigned kind) {
    return kind == DP_CORE_AIC ? DP_CORE_AIV : DP_CORE_AIC;
}

/* Cores whose sets together make one pass, and cores that then may pass, for a set by `core`. */
static void groups_of(const dp_launch_sync *sync, const dp_core *core, unsigned mode, core_group *out_from,
                      core_group *out_to) {
    if (mode == 0) {
        *out_from = *out_to = all_of_kind(sync, core->kind);
    } else if (mode == 1) {
        *out_from = *out_to = in_block(sync, core->kind, core->block_idx);
    } else {
        *out_from = in_block(sync, core->kind, core->block_idx);
        *out_to = in_block(sync, other_kind(core->kind), core->block_idx);
    }
}

static bool all_sent(const dp_launch_sync *sync, core_group from, unsigned mode, unsigned flag) {
    for (uint32_t i = 0; i < from.count; i++)
        if (!sync->cores[from.first + i].sent[mode][flag])
            return false;
    return true;
}

bool dp_launch_sync_raise(dp_launch_sync *sync, const dp_core *core, unsigned mode, unsigned flag) {
    core_group from, to;
    groups_of(sync, core, mode, &from, &to);
    pthread_mutex_lock(&sync->lock);
    sync_core *self = &sync->cores[index_of(sync, core)];
    bool fits = self->sent[mode][flag] < DP_CROSS_MAX_PENDING;
    for (uint32_t i = 0; fits && i < to.count; i++)
        fits = atomic_load(&sync->cores[to.first + i].passes[flag]) < DP_CROSS_MAX_PENDING;
    if (fits) {
        self->sent[mode][flag]++;
        if (all_sent(sync, from, mode, flag)) {
            for (uint32_t i = 0; i < from.count; i++)
                sync->cores[from.first + i].sent[mode][flag]--;
            for (uint32_t i = 0; i < to.count; i++)
                atomic_fetch_add(&sync->cores[to.first + i].passes[flag], 1);
        }
    }
    pthread_mutex_unlock(&sync->lock);
    return fits;
}

bool dp_launch_sync_ready(const dp_launch_sync *sync, const dp_core *core, unsigned flag) {
    return atomic_load(&sync->cores[index_of(sync, core)].passes[flag]) != 0;
}

void dp_launch_sync_take(dp_launch_sync *sync, const dp_core *core, unsigned flag) {
    atomic_fetch_sub(&sync->cores[index_of(sync, core)].passes[flag], 1);
}

void dp_launch_sync_core_ended(dp_launch_sync *sync, const dp_core *core) {
    pthread_mutex_lock(&sync->lock);
    sync->cores[index_of(sync, core)].ended = true;
    pthread_mutex_unlock(&sync->lock);
}

static int name_core(const dp_launch_sync *sync, uint32_t index, char *text, size_t text_bytes) {
    uint32_t aics = dp_launch_sync_aic_count(sync);
    const char *ended = sync->cores[index].ended ? " (has ended)" : "";
    if (index < aics)
        return snprintf(text, text_bytes, "the cube core of block %u%s", index, ended);
    index -= aics;
    if (sync->aiv_per_block == 1)
        return snprintf(text, text_bytes, "block %u%s", index, ended);
    return snprintf(text, text_bytes, "vector core %u of block %u%s", index % sync->aiv_per_block,
                    index / sync->aiv_per_block, ended);
}

void dp_launch_sync_missing(dp_launch_sync *sync, const dp_core *core, unsigned mode, unsigned flag, char *text,
                            size_t text_bytes) {
    enum { NAMED = 4 };
    core_group from, to;
    groups_of(sync, core, mode, &from, &to);
    if (mode == 2) /* the others raise it */
        from = to;
    size_t used = 0;
    uint32_t missing = 0;
    text[0] = '\0';
    pthread_mutex_lock(&sync->lock);
    for (uint32_t i = 0; i < from.count; i++) {
        if (sync->cores[from.first + i].sent[mode][flag])
            continue;
        if (missing++ >= NAMED || used + 1 >= text_bytes)
            continue;
        used += (size_t)snprintf(text + used, text_bytes - used, "%s", missing > 1 ? ", " : "");
        if (used < text_bytes)
            used += (size_t)name_core(sync, from.first + i, text + used, text_bytes - used);
    }
    pthread_mutex_unlock(&sync->lock);
    if (missing > NAMED && used < text_bytes)
        snprintf(text + used, text_bytes - used, " and %u more", missing - NAMED);
    if (!from.count)
        snprintf(text, text_bytes, "a %s core, which this launch does not have",
                 other_kind(core->kind) == DP_CORE_AIC ? "cube" : "vector");
}
