#define _GNU_SOURCE
#include "device/trace/trace.h"

#include "base/log.h"
#include "base/memory.h"
#include "device/core.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Everything recorded in one process stays in memory until the end: 80 bytes an event. */
enum { MAX_EVENTS = 8 << 20, MAX_CALLS = 1 << 18, FIRST_EVENTS = 256 };

static struct {
    pthread_mutex_t lock; /* guards the lists, not the cores' events */
    dp_trace_launch *first, *last;
    uint32_t launches;
    dp_trace_host_call *calls;
    uint32_t call_count, call_capacity;
    uint64_t start_ns;
    atomic_ulong events, dropped;
    pid_t owner;
} record = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* What a launch needs while it runs: the cores that have begun. */
typedef struct open_launch {
    dp_trace_launch *launch;
    dp_trace_core *cores; /* list */
    pthread_mutex_t lock;
} open_launch;

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void launch_begin(dp_launch_info *info) {
    open_launch *open = dp_alloc(DP_MEM_TRACE, sizeof *open);
    dp_trace_launch *launch = dp_alloc(DP_MEM_TRACE, sizeof *launch);
    if (!open || !launch) {
        dp_free(open);
        dp_free(launch);
        return; /* without state the launch is not recorded */
    }
    pthread_mutex_init(&open->lock, NULL);
    open->launch = launch;
    launch->id = info->id;
    snprintf(launch->name, sizeof launch->name, "%s", info->kernel.name ? info->kernel.name : "kernel");
    launch->definition = info->kernel.definition;
    launch->launch = info->kernel.launch;
    launch->blocks = info->blocks;
    launch->stream_id = info->stream_id;
    launch->device_id = info->device_id;
    launch->chip = dp_chip_current();
    launch->begin_ns = now_ns();
    info->observer_state = open;
}

static int by_core_index(const void *a, const void *b) {
    const dp_trace_core *x = *(dp_trace_core *const *)a, *y = *(dp_trace_core *const *)b;
    return x->core_index < y->core_index ? -1 : x->core_index > y->core_index;
}

static void launch_end(dp_launch_info *info) {
    open_launch *open = info->observer_state;
    if (!open)
        return;
    info->observer_state = NULL;
    dp_trace_launch *launch = open->launch;
    launch->end_ns = now_ns();
    uint32_t n = 0;
    for (dp_trace_core *c = open->cores; c; c = c->next)
        n++;
    launch->cores = dp_alloc(DP_MEM_TRACE, (n ? n : 1) * sizeof *launch->cores);
    for (dp_trace_core *c = open->cores, *next; c; c = next) {
        next = c->next;
        if (launch->cores) {
            launch->cores[launch->core_count++] = c;
        } else {
            dp_free(c->events);
            dp_free(c);
        }
    }
    if (launch->cores)
        qsort(launch->cores, launch->core_count, sizeof *launch->cores, by_core_index);
    pthread_mutex_destroy(&open->lock);
    dp_free(open);
    pthread_mutex_lock(&record.lock);
    if (record.last)
        record.last->next = launch;
    else
        record.first = launch;
    record.last = launch;
    record.launches++;
    pthread_mutex_unlock(&record.lock);
}

static void block_begin(dp_core *core) {
    open_launch *open = core->launch ? core->launch->observer_state : NULL;
    dp_trace_core *mine = open ? dp_alloc(DP_MEM_TRACE, sizeof *mine) : NULL;
    core->observer_state = mine;
    if (!mine)
        return;
    mine->block_idx = core->block_idx;
    mine->core_index = core->core_index;
    mine->kind = core->kind;
    pthread_mutex_lock(&open->lock);
    mine->next = open->cores;
    open->cores = mine;
    pthread_mutex_unlock(&open->lock);
}

static void block_end(dp_core *core, bool faulted) {
    dp_trace_core *mine = core->observer_state;
    if (mine)
        mine->faulted = faulted;
    core->observer_state = NULL;
}

static dp_trace_event *next_event(dp_trace_core *mine) {
    if (mine->count == mine->capacity) {
        uint32_t capacity = mine->capacity ? mine->capacity * 2 : FIRST_EVENTS;
        bool room = atomic_load_explicit(&record.events, memory_order_relaxed) < MAX_EVENTS;
        dp_trace_event *grown = room ? dp_realloc(DP_MEM_TRACE, mine->events, capacity * sizeof *grown) : NULL;
        if (!grown) {
            mine->dropped++;
            atomic_fetch_add(&record.dropped, 1);
            return NULL;
        }
        atomic_fetch_add(&record.events, capacity - mine->capacity);
        mine->events = grown;
        mine->capacity = capacity;
    }
    dp_trace_event *e = &mine->events[mine->count++];
    memset(e, 0, sizeof *e);
    return e;
}

/* 256-byte steps of a vector instruction: what its cost is counted in. */
static uint32_t repeats_of(const dp_core *core, const dp_insn *insn) {
    unsigned widest = 0;
    for (unsigned i = 0; i < insn->n_operands && i < 4; i++) {
        unsigned bits = dp_dtype_bits(insn->operand[i].dtype);
        widest = bits > widest ? bits : widest;
    }
    bool counted = insn->mask_kind == DP_MASK_COUNT || (core->counter_mode && insn->mask_kind == DP_MASK_LEADING);
    if (counted)
        return (uint32_t)((insn->mask[0] * widest / 8 + DP_REPEAT_BYTES - 1) / DP_REPEAT_BYTES);
    return insn->repeat;
}

static uint32_t bytes_of(const dp_insn *insn) {
    switch (insn->op) {
    case DP_OP_DATA_COPY:
    case DP_OP_DATA_COPY_PAD:
        return insn->u.copy.block_count * insn->u.copy.block_bytes;
    case DP_OP_DATA_COPY_ND2NZ:
        return insn->u.nd2nz.nd_num * insn->u.nd2nz.n * insn->u.nd2nz.d * dp_dtype_bits(insn->operand[0].dtype) / 8;
    case DP_OP_DATA_COPY_NZ2ND:
        return insn->u.nz2nd.nd_num * insn->u.nz2nd.n * insn->u.nz2nd.d * dp_dtype_bits(insn->operand[0].dtype) / 8;
    default:
        return 0;
    }
}

/* dav-2201: rows of 32 bytes go round 16 bank groups; two reads of one group in a cycle take turns. */
static bool same_bank_group(const dp_core *core, const dp_insn *insn) {
    const dp_operand *a = &insn->operand[1], *b = &insn->operand[2];
    if (insn->n_operands < 3 || a->space != DP_SPACE_UB || b->space != DP_SPACE_UB || a->addr == b->addr)
        return false;
    const uint8_t *base = core->memory[DP_SPACE_UB].base;
    uintptr_t x = (uintptr_t)((const uint8_t *)a->addr - base), y = (uintptr_t)((const uint8_t *)b->addr - base);
    return ((x >> 5) & 15) == ((y >> 5) & 15);
}

static bool before(dp_core *core, dp_insn *insn) {
    dp_trace_core *mine = core->observer_state;
    dp_trace_event *e = mine ? next_event(mine) : NULL;
    if (!e)
        return true;
    e->op = insn->op;
    e->pipe = (uint8_t)dp_insn_pipe(insn);
    e->file = insn->loc.file;
    e->line = insn->loc.line;
    e->repeats = repeats_of(core, insn);
    e->bytes = bytes_of(insn);
    e->conflict = same_bank_group(core, insn);
    if (insn->n_operands > 0) {
        e->dst_space = insn->operand[0].space;
        e->dtype = insn->operand[0].dtype;
    }
    if (insn->n_operands > 1)
        e->src_space = insn->operand[1].space;
    if (insn->op == DP_OP_SCALAR_LOAD && insn->n_operands == 1)
        e->src_space = insn->operand[0].space;
    if (insn->op == DP_OP_SET_FLAG || insn->op == DP_OP_WAIT_FLAG || insn->op == DP_OP_BARRIER) {
        e->sync_src = insn->u.sync.src_pipe;
        e->sync_dst = insn->u.sync.dst_pipe;
        e->sync_id = insn->u.sync.event_id;
        e->implied = insn->u.sync.implied;
    }
    return true;
}

static void host_call(const dp_host_event *event) {
    if (event->kind != DP_HOST_CALL)
        return;
    pthread_mutex_lock(&record.lock);
    if (record.call_count == record.call_capacity && record.call_capacity < MAX_CALLS) {
        uint32_t capacity = record.call_capacity ? record.call_capacity * 2 : 64;
        dp_trace_host_call *grown = dp_realloc(DP_MEM_TRACE, record.calls, capacity * sizeof *grown);
        if (grown) {
            record.calls = grown;
            record.call_capacity = capacity;
        }
    }
    if (record.call_count < record.call_capacity)
        record.calls[record.call_count++] = (dp_trace_host_call){
            .name = event->name, .begin_ns = event->begin_ns, .end_ns = event->end_ns,
            .thread = (uint64_t)gettid(), .stream_id = event->stream_id, .status = event->status};
    pthread_mutex_unlock(&record.lock);
}

/* Runs when the process ends. Launches still under way are not in the list and are left out. */
static void write_reports(void) {
    if (getpid() != record.owner)
        return; /* a forked child has its parent's record */
    pthread_mutex_lock(&record.lock);
    dp_trace_record all = {.launches = record.first, .launch_count = record.launches, .calls = record.calls,
                           .call_count = record.call_count, .dropped = atomic_load(&record.dropped),
                           .start_ns = record.start_ns};
    for (dp_trace_launch *l = record.first; l; l = l->next)
        dp_trace_model(l);
    const char *folder = getenv("DOPPEL_TRACE_DIR");
    if (!folder || !*folder)
        folder = ".";
    mkdir(folder, 0777);
    char path[4096];
    snprintf(path, sizeof path, "%s/summary.txt", folder);
    dp_trace_write_text(&all, path);
    snprintf(path, sizeof path, "%s/trace.json", folder);
    dp_trace_write_json(&all, path);
    snprintf(path, sizeof path, "%s/timeline.svg", folder);
    dp_trace_write_svg(&all, path);
    pthread_mutex_unlock(&record.lock);
}

void dp_trace_install(void) {
    static const dp_observer observer = {.name = "trace", .launch_begin = launch_begin, .launch_end = launch_end,
                                         .block_begin = block_begin, .block_end = block_end, .before = before,
                                         .host = host_call};
    record.start_ns = now_ns();
    record.owner = getpid();
    dp_observer_install(&observer);
    atexit(write_reports);
}
