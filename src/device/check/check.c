#include "device/check/check.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "device/check/leaks.h"
#include "device/check/order.h"
#include "device/check/state.h"
#include "device/exec.h"
#include "device/gm.h"
#include "device/queue.h"

enum { RUN_ROOM = 64, RUNS_MAX = 1 << 18 };
#define TIME_LIMIT 0xe0000000u /* of a core's clock at block begin: start anew */

dp_check_options dp_check_option;

static struct {
    pthread_mutex_t lock;
    dp_check_core *idle; /* states between blocks */
    _Atomic uint64_t launches, instructions, lost_spans;
    _Atomic bool no_memory;
} check = {.lock = PTHREAD_MUTEX_INITIALIZER};

dp_shadow *dp_check_shadow(dp_check_core *state, unsigned space) {
    dp_shadow *shadow = &state->shadow[space];
    uint32_t size = state->core->memory[space].size_bytes;
    if (DP_LIKELY(shadow->writer && shadow->size_bytes == size))
        return shadow;
    dp_shadow_destroy(shadow);
    if (!size || !dp_shadow_create(shadow, size)) {
        dp_shadow_destroy(shadow);
        if (size)
            atomic_store(&check.no_memory, true);
        return NULL;
    }
    return shadow;
}

/* ---- a block ---- */

static dp_check_core *take_state(void) {
    pthread_mutex_lock(&check.lock);
    dp_check_core *state = check.idle;
    if (state)
        check.idle = state->next;
    pthread_mutex_unlock(&check.lock);
    return state ? state : dp_alloc(DP_MEM_CHECK, sizeof *state);
}

static void start_time_anew(dp_check_core *state) {
    for (unsigned s = 0; s < DP_SPACE_COUNT; s++) {
        if (state->shadow[s].writer)
            dp_shadow_forget_stamps(&state->shadow[s]);
    }
    state->clocks = (dp_check_clocks){0};
}

static void block_begin(dp_core *core) {
    dp_check_core *state = take_state();
    core->observer_state = state;
    if (!state) {
        atomic_store(&check.no_memory, true);
        return;
    }
    state->core = core;
    if (state->clocks.now > TIME_LIMIT)
        start_time_anew(state);
    dp_clock_barrier_all(&state->clocks);
    for (unsigned s = 0; s < DP_SPACE_COUNT; s++) {
        if (state->shadow[s].writer)
            dp_shadow_forget_data(&state->shadow[s]);
    }
    memset(state->flag, 0, sizeof state->flag);
    state->gm_reads.count = state->gm_writes.count = 0;
    state->epoch = 1;
    state->mask_site = state->mode_site = state->atomic_site = state->store_atomic_site = 0;
    state->instructions = 0;
}

static void block_end(dp_core *core, bool faulted) {
    dp_check_core *state = core->observer_state;
    if (!state)
        return;
    if (!faulted)
        dp_check_block_end(state);
    dp_check_cache_end(state);
    dp_check_launch *launch = dp_check_launch_of(core);
    if (launch && launch->blocks)
        dp_blocks_take(launch->blocks, core->core_index, &state->spans);
    atomic_fetch_add_explicit(&check.instructions, state->instructions, memory_order_relaxed);
    core->observer_state = NULL;
    pthread_mutex_lock(&check.lock);
    state->next = check.idle;
    check.idle = state;
    pthread_mutex_unlock(&check.lock);
}

/* ---- an instruction ---- */

static bool in_device_memory(dp_gm_cache *cache, const uint8_t *addr, size_t bytes) {
    uintptr_t at = (uintptr_t)addr;
    uint64_t epoch = dp_gm_epoch();
    if (cache->epoch != epoch)
        *cache = (dp_gm_cache){.epoch = epoch};
    for (unsigned i = 0; i < DP_GM_CACHE; i++) {
        if (at >= cache->begin[i] && at < cache->end[i])
            return bytes <= cache->end[i] - at;
    }
    dp_gm_range range;
    if (!dp_gm_find(addr, &range))
        return false;
    cache->begin[cache->next] = (uintptr_t)range.base;
    cache->end[cache->next] = (uintptr_t)range.base + range.size_bytes;
    cache->next = (cache->next + 1) % DP_GM_CACHE;
    return bytes <= (uintptr_t)range.base + range.size_bytes - at;
}

static bool in_its_memory(dp_check_core *state, unsigned space, const uint8_t *addr, size_t bytes) {
    if (space == DP_SPACE_GM)
        return in_device_memory(&state->ranges, addr, bytes);
    if (space == DP_SPACE_NONE || space >= DP_SPACE_COUNT)
        return false;
    const dp_core_memory *memory = &state->core->memory[space];
    size_t offset = (size_t)(addr - memory->base);
    return memory->base && addr >= memory->base && offset <= memory->size_bytes && bytes <= memory->size_bytes - offset;
}

static void add_run(dp_check_core *state, dp_check_run run) {
    if (state->run_count == state->run_room) {
        uint32_t room = state->run_room ? state->run_room * 2 : RUN_ROOM;
        dp_check_run *runs = dp_realloc(DP_MEM_CHECK, state->runs, room * sizeof *runs);
        if (!runs) {
            atomic_store(&check.no_memory, true);
            return;
        }
        state->runs = runs;
        state->run_room = room;
    }
    const uint8_t *begin = run.addr, *end = run.addr + run.bytes;
    if (!state->box[run.operand].begin || begin < state->box[run.operand].begin)
        state->box[run.operand].begin = begin;
    if (end > state->box[run.operand].end)
        state->box[run.operand].end = end;
    state->box[run.operand].mode |= run.mode;
    state->runs[state->run_count++] = run;
}

static void collect(void *context, unsigned operand, unsigned mode, const void *addr, size_t bytes) {
    dp_check_core *state = context;
    if (!bytes || operand >= 4)
        return;
    uint8_t space = state->insn->operand[operand].space;
    if (!in_its_memory(state, space, addr, bytes) || state->run_count == RUNS_MAX)
        longjmp(state->enough, 1); /* counts nobody has checked yet may be huge; visitors hold nothing */
    add_run(state, (dp_check_run){addr, bytes, (uint8_t)operand, (uint8_t)mode, space, 0});
}

/* Up to 255 repeats of 32 blocks: there is room. */
static void collect_lanes(void *context, unsigned operand, unsigned mode, const uint8_t *addr, uint32_t blocks, uint32_t bits) {
    add_run(context, (dp_check_run){addr, (size_t)blocks * DP_BLOCK_BYTES, (uint8_t)operand, (uint8_t)mode, DP_SPACE_UB, bits});
}

/* Buffers of a TPipe that has ended or was reset: their bytes may belong to others now. */
static void report_gone(dp_check_core *state, unsigned k) {
    dp_finding f = {.kind = DP_CHECK_USE_AFTER_FREE};
    dp_finding_context(&f, state->core);
    f.place = dp_place_of_insn(state->insn, (int)state->pipe, "uses the tensor");
    snprintf(f.sentence, sizeof f.sentence, "the %s of %s is a tensor whose buffer went with its TPipe (its end, Reset or Destroy)",
             dp_operand_role(state->insn, k), dp_insn_name(state->insn->op));
    snprintf(f.cure, sizeof f.cure, "keep the TPipe as long as its tensors, and take them again after a Reset");
    dp_finding_add(&f);
}

static void check_freed(dp_check_core *state) {
    const dp_insn *insn = state->insn;
    for (unsigned k = 0; k < insn->n_operands && k < 4; k++) {
        dp_buffer_info info;
        if (!insn->operand[k].buffer_id)
            continue;
        if (!dp_buffer_find(state->core, insn->operand[k].buffer_id, &info)) {
            report_gone(state, k);
            return;
        }
        if (info.is_tbuf || info.state != DP_BUFFER_FREE)
            continue;
        dp_finding f = {.kind = DP_CHECK_USE_AFTER_FREE, .has_other = true};
        dp_finding_context(&f, state->core);
        f.place = dp_place_of_insn(insn, (int)state->pipe, "uses the tensor");
        f.other = dp_place_of_loc(info.last, "FreeTensor gave it back");
        snprintf(f.sentence, sizeof f.sentence, "the %s of %s is a tensor that was freed; its buffer may hold the next tile already",
                 dp_operand_role(insn, k), dp_insn_name(insn->op));
        dp_describe_local(state->core, info.space, info.addr, info.size_bytes, f.memory, sizeof f.memory);
        snprintf(f.cure, sizeof f.cure, "call FreeTensor after the last use of the tensor");
        dp_finding_add(&f);
        return;
    }
}

/* A chip knows no sizes of global tensors: leaving one is no fault, as long as there is memory. */
static void check_global_tensors(dp_check_core *state) {
    const dp_insn *insn = state->insn;
    for (unsigned k = 0; k < insn->n_operands && k < 4; k++) {
        const dp_operand *operand = &insn->operand[k];
        const uint8_t *begin = operand->addr;
        if (operand->space != DP_SPACE_GM || !operand->size_bytes || !state->box[k].begin ||
            state->box[k].end <= begin + operand->size_bytes)
            continue;
        char spans[32], has[32];
        const uint8_t *end = begin + operand->size_bytes;
        dp_finding f = {.kind = DP_CHECK_OUTSIDE_TENSOR};
        dp_finding_context(&f, state->core);
        f.place = dp_place_of_insn(insn, (int)state->pipe, "leaves the tensor");
        snprintf(f.sentence, sizeof f.sentence, "the %s of %s spans %s bytes, but its GlobalTensor has only %s from there",
                 dp_operand_role(insn, k), dp_insn_name(insn->op), dp_describe_count((uint64_t)(state->box[k].end - begin), spans),
                 dp_describe_count(operand->size_bytes, has));
        dp_describe_gm(end, (size_t)(state->box[k].end - end), f.memory, sizeof f.memory);
        snprintf(f.cure, sizeof f.cure, "check the length of the last tile, and the number of elements given to SetGlobalBuffer");
        dp_finding_add(&f);
    }
}

static void check_accesses(dp_check_core *state) {
    state->run_count = 0;
    memset(state->box, 0, sizeof state->box);
    if (_setjmp(state->enough)) {
        state->run_count = 0;
        return;
    }
    if (!dp_insn_visit_lanes(state->core, state->insn, collect_lanes, state))
        dp_insn_visit(state->core, state->insn, collect, state);
    check_global_tensors(state);
    dp_check_local_accesses(state, false);
    dp_check_local_accesses(state, true);
    dp_check_gm_accesses(state);
    dp_check_cache(state);
    dp_check_data(state);
}

/* Same-pipe order that needs no barrier: the pipe keeps it, or the vendor's compiler inserts it. */
static void keep_pipe_order(dp_check_core *state) {
    unsigned p = state->pipe;
    bool cube = p == DP_PIPE_M || p == DP_PIPE_MTE1 || p == DP_PIPE_FIX;
    if (cube || (p == DP_PIPE_V && !dp_check_option.strict))
        dp_clock_barrier(&state->clocks, p);
}

static bool before(dp_core *core, dp_insn *insn) {
    dp_check_core *state = core->observer_state;
    if (DP_UNLIKELY(!state))
        return true;
    unsigned pipe = dp_insn_pipe(insn);
    state->instructions++;
    if (pipe > DP_PIPE_ALL)
        return true; /* the executor refuses it */
    state->insn = insn;
    state->pipe = pipe == DP_PIPE_ALL ? DP_PIPE_S : pipe;
    state->site = dp_site_of(&state->sites, insn->loc, insn->op);
    state->reported = 0;
    dp_clock_issue(&state->clocks, state->pipe);
    keep_pipe_order(state);
    dp_check_rules(state);
    if (dp_check_flow(state))
        return true;
    if (insn->n_operands)
        check_freed(state);
    check_accesses(state);
    if (state->pipe == DP_PIPE_V)
        dp_check_overlap(state);
    if (DP_UNLIKELY(dp_check_option.nan || dp_check_option.overflow))
        dp_check_number_before(state);
    return true;
}

static void after(dp_core *core, dp_insn *insn) {
    dp_check_core *state = core->observer_state;
    if (DP_UNLIKELY(!state))
        return;
    state->insn = insn;
    dp_check_flow_after(state);
    if (DP_UNLIKELY(dp_check_option.nan || dp_check_option.overflow))
        dp_check_number_after(state);
}

static void fault(dp_core *core, const dp_insn *insn, const char *sentence) {
    dp_check_core *state = core->observer_state;
    if (state)
        dp_check_fault(state, insn, sentence);
}

/* ---- a launch ---- */

static void launch_begin(dp_launch_info *info) {
    static const uint8_t cores[] = {[DP_MIX_AIV] = 1, [DP_MIX_AIC] = 1, [DP_MIX_AIC_1_1] = 2, [DP_MIX_AIC_1_2] = 3};
    dp_gm_shadow_enter();
    dp_check_launch *launch = dp_alloc(DP_MEM_CHECK, sizeof *launch);
    info->observer_state = launch;
    if (!launch) {
        atomic_store(&check.no_memory, true);
        return;
    }
    launch->info = info;
    launch->blocks = dp_blocks_create(info->blocks * (info->kernel.core_mix <= DP_MIX_AIC_1_2 ? cores[info->kernel.core_mix] : 1u));
    if (!launch->blocks)
        atomic_store(&check.no_memory, true);
}

static void conflict(void *context, const dp_span *a, const dp_span *b, uintptr_t begin, uintptr_t end) {
    const dp_check_launch *launch = context;
    const dp_kernel_info *kernel = &launch->info->kernel;
    bool cached = ((a->mode | b->mode) & DP_SPAN_CACHED) != 0;
    bool both = a->mode & b->mode & DP_SPAN_WRITE;
    const dp_span *writer = both ? (a->core < b->core ? a : b) : a->mode & (DP_SPAN_WRITE | DP_SPAN_CACHED) ? a : b;
    const dp_span *other = writer == a ? b : a;
    const char *core = kernel->core_mix <= DP_MIX_AIC ? "block" : "core"; /* one core per block: people count blocks */
    dp_finding f = {.kind = cached ? DP_CHECK_STALE_CACHE : both ? DP_CHECK_BLOCK_WAW : DP_CHECK_BLOCK_RAW, .has_other = true};
    f.launch = launch->info->id;
    f.launch_loc = kernel->launch;
    f.block = f.core = other->core;
    f.on_cube = kernel->core_mix == DP_MIX_AIC;
    snprintf(f.kernel, sizeof f.kernel, "%s", kernel->name ? kernel->name : "?");
    char verb[64];
    snprintf(verb, sizeof verb, "of %s %" PRIu32 " %s", core, other->core, both ? "writes these bytes" : "reads these bytes");
    f.place = dp_place_of_site(other->site, -1, verb);
    snprintf(verb, sizeof verb, "of %s %" PRIu32 " writes them", core, writer->core);
    f.other = dp_place_of_site(writer->site, -1, verb);
    if (cached)
        snprintf(f.sentence, sizeof f.sentence,
                 "%s %" PRIu32 " reads bytes of device memory that %s %" PRIu32 " wrote before with its scalar unit and never cleaned: "
                 "they may still be in its data cache only", core, other->core, core, writer->core);
    else if (both)
        snprintf(f.sentence, sizeof f.sentence,
                 "%ss %" PRIu32 " and %" PRIu32 " write the same bytes of device memory; which one stays is chance", core,
                 writer->core, other->core);
    else
        snprintf(f.sentence, sizeof f.sentence,
                 "%s %" PRIu32 " reads bytes of device memory that %s %" PRIu32 " writes in the same launch", core, other->core,
                 core, writer->core);
    dp_describe_gm((const void *)begin, end - begin, f.memory, sizeof f.memory);
    snprintf(f.cure, sizeof f.cure, "%s",
             cached ? "call DataCacheCleanAndInvalid on the tensor after SetValue and before the cores meet"
             : both ? "give every block its own bytes (DataCopyPad writes exactly as many as it is told), or use SetAtomicAdd"
                  : "put SyncAll between the write and the read, or split the kernel in two launches");
    dp_finding_add(&f);
}

static void launch_end(dp_launch_info *info) {
    dp_check_launch *launch = info->observer_state;
    atomic_fetch_add(&check.launches, 1);
    if (launch && launch->blocks) {
        dp_blocks_sweep(launch->blocks, conflict, launch);
        size_t count;
        const dp_span *spans = dp_blocks_spans(launch->blocks, &count);
        dp_order_launch(info, spans, count);
        atomic_fetch_add(&check.lost_spans, dp_blocks_lost(launch->blocks));
        dp_blocks_destroy(launch->blocks);
    }
    dp_free(launch);
    info->observer_state = NULL;
    dp_gm_shadow_leave();
    dp_check_report_touch();
}

/* ---- the host ---- */

/* Operators read with dst NULL: what they make of bytes without data is not followed. */
static void host_read(const dp_host_event *event) {
    dp_gm_shadow_cache cache = {0};
    const void *first = NULL;
    dp_gm_range range;
    dp_gm_shadow *shadow = dp_gm_shadow_find(&cache, event->src);
    size_t missing = shadow && event->dst ? dp_gm_shadow_missing(shadow, event->src, event->size_bytes, &first) : 0;
    if (!missing || (event->dst && dp_gm_find(event->dst, &range)))
        return; /* between device buffers padding travels along */
    char count[32];
    dp_finding f = {.kind = DP_CHECK_UNINITIALIZED};
    f.place = dp_place_of_caller(event->caller, "the host copies them");
    snprintf(f.sentence, sizeof f.sentence, "%s copies %s bytes to the host that nothing has written, or that come from such bytes",
             event->name ? event->name : "a copy", dp_describe_count(missing, count));
    dp_describe_gm(first, missing, f.memory, sizeof f.memory);
    snprintf(f.cure, sizeof f.cure, "check that the inputs are filled to their ends, and that the kernel writes the whole result (last tile, all blocks)");
    if (event->queue)
        dp_finding_add(&f);
    else
        dp_order_suspect(&f);
}

/* Misuse only: what a program may try and live without (support, time, memory), and what a kernel did, is none. */
static void host_fault(const dp_host_event *event) {
    if (event->reason != DP_ERR_ARGUMENT && event->reason != DP_ERR_HANDLE && event->reason != DP_ERR_ADDRESS &&
        event->reason != DP_ERR_STATE)
        return;
    dp_finding f = {.kind = DP_CHECK_HOST};
    char what[64];
    snprintf(what, sizeof what, "%s is refused", event->name ? event->name : "the call");
    f.place = event->loc.line ? dp_place_of_loc(event->loc, what) : dp_place_of_caller(event->caller, what);
    snprintf(f.sentence, sizeof f.sentence, "%s: %s", event->name ? event->name : "host call",
             event->message && event->message[0] ? event->message : "wrong use");
    dp_check_split_advice(&f);
    dp_finding_add(&f);
}

static void host(const dp_host_event *event) {
    dp_gm_shadow_cache cache = {0};
    dp_gm_shadow *shadow;
    dp_gm_range range;
    switch (event->kind) {
    case DP_HOST_ALLOC:
        dp_gm_shadow_add(event->dst, event->size_bytes, dp_gm_find(event->dst, &range) ? range.id : 0, event->caller);
        break;
    case DP_HOST_FREE:
        dp_order_access(event);
        dp_gm_shadow_remove(event->dst, event->caller);
        break;
    case DP_HOST_WRITE:
        dp_order_access(event);
        dp_gm_shadow_enter(); /* it may be freed meanwhile */
        shadow = dp_gm_shadow_find(&cache, event->dst);
        if (shadow)
            dp_gm_shadow_set(shadow, event->dst, event->size_bytes);
        dp_gm_shadow_leave();
        break;
    case DP_HOST_READ:
        dp_order_access(event);
        dp_gm_shadow_enter();
        host_read(event);
        dp_gm_shadow_leave();
        break;
    case DP_HOST_FAULT:
        host_fault(event);
        break;
    case DP_HOST_QUEUED:
    case DP_HOST_ENDED:
    case DP_HOST_WAITED:
    case DP_HOST_ORDERED:
    case DP_HOST_CLOSED:
        dp_order_event(event);
        break;
    case DP_HOST_MADE:
    case DP_HOST_DESTROYED:
    case DP_HOST_RESET:
        dp_leaks_event(event);
        break;
    case DP_HOST_CALL:
        break;
    }
}

/* ---- the process ---- */

dp_check_totals dp_check_total(void) {
    return (dp_check_totals){
        .launches = atomic_load(&check.launches),
        .instructions = atomic_load(&check.instructions),
        .lost_spans = atomic_load(&check.lost_spans),
        .no_memory = atomic_load(&check.no_memory),
    };
}

static bool option(const char *name) {
    const char *value = getenv(name);
    return value && *value && strcmp(value, "0") != 0;
}

static void install(void) {
    static const dp_observer observer = {
        .exact_bounds = true,
        .settles = true,
        .name = "check",
        .launch_begin = launch_begin,
        .launch_end = launch_end,
        .block_begin = block_begin,
        .block_end = block_end,
        .before = before,
        .after = after,
        .fault = fault,
        .prints_faults = true,
        .host = host,
    };
    dp_check_option = (dp_check_options){.strict = option("DOPPEL_CHECK_STRICT"),
                                         .nan = option("DOPPEL_CHECK_NAN"),
                                         .overflow = option("DOPPEL_CHECK_OVERFLOW")};
    const char *limit = getenv("DOPPEL_CHECK_LIMIT");
    char *end = NULL;
    unsigned long value = limit ? strtoul(limit, &end, 10) : 0;
    if (limit && (*end || !value || value > 100000))
        fprintf(stderr, "doppel check: DOPPEL_CHECK_LIMIT is \"%s\", expected 1 to 100000; using 200\n", limit);
    else if (value)
        dp_finding_set_limit((unsigned)value);
    dp_observer_install(&observer);
    dp_leaks_install();
    dp_check_report_start();
}

void dp_check_install(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, install);
}

void dp_check_fork_prepare(void) { dp_order_fork_prepare(); }
void dp_check_fork_parent(void) { dp_order_fork_parent(); }

void dp_check_fork_child(void) {
    dp_order_fork_child();
    dp_leaks_fork_child();
}

unsigned dp_check_finding_count(void) { return dp_finding_count(); }
