#include "device/trace/trace.h"

#include "base/log.h"
#include "base/memory.h"
#include "device/core.h"

#include <stdlib.h>
#include <string.h>

enum { QUEUE_DEPTH = 32 }; /* entries of a pipe's instruction queue: chip-table, dav-2201 queue_depth_all */
#define GM_BYTES_PER_SECOND 1.6e12 /* 910B, lower end of the public range */

/* One core being replayed. Times are cycles since the launch began. */
typedef struct replay {
    dp_trace_core *core;
    uint32_t next;
    double scalar;                    /* the scalar unit's clock */
    double free_at[DP_PIPE_COUNT];    /* end of the last instruction of each pipe */
    double gate[DP_PIPE_COUNT];       /* a flag holds the pipe back until then */
    uint32_t gate_cause[DP_PIPE_COUNT];
    bool drained[DP_PIPE_COUNT];      /* a barrier came: the next instruction pays its head */
    double raised[DP_PIPE_COUNT][DP_PIPE_COUNT][DP_EVENT_IDS];
    uint32_t raised_by[DP_PIPE_COUNT][DP_PIPE_COUNT][DP_EVENT_IDS];
    double ring[DP_PIPE_COUNT][QUEUE_DEPTH]; /* ends of the last 32 instructions of each pipe */
    uint32_t issued[DP_PIPE_COUNT];
    uint32_t meets;                   /* SyncAll calls passed */
    bool waiting;                     /* stands at a SyncAll */
} replay;

typedef struct rates {
    double share_read, share_write; /* bytes per cycle one core gets from GM when all are at work */
    const dp_chip *chip;
    double dispatch, flag;
} rates;

double dp_trace_us(const dp_trace_launch *launch, uint64_t cycles) {
    return (double)cycles / launch->chip->clock_mhz;
}

static bool reads_gm(const dp_trace_event *e) { return e->src_space == DP_SPACE_GM && e->dst_space != DP_SPACE_GM; }
static bool writes_gm(const dp_trace_event *e) { return e->dst_space == DP_SPACE_GM && e->src_space != DP_SPACE_NONE; }

/* The cores at work divide the memory's bandwidth; reads and writes get it in proportion to the launch's bytes. */
static rates find_rates(const dp_trace_launch *launch) {
    double read = 0, write = 0;
    for (uint32_t c = 0; c < launch->core_count; c++) {
        for (uint32_t i = 0; i < launch->cores[c]->count; i++) {
            const dp_trace_event *e = &launch->cores[c]->events[i];
            read += reads_gm(e) ? e->bytes : 0;
            write += writes_gm(e) ? e->bytes : 0;
        }
    }
    uint32_t at_work = launch->core_count < launch->chip->vector_cores ? launch->core_count : launch->chip->vector_cores;
    double all = GM_BYTES_PER_SECOND / (launch->chip->clock_mhz * 1e6) / (at_work ? at_work : 1);
    double sum = read + write > 0 ? read + write : 1;
    return (rates){.share_read = all * (read / sum), .share_write = all * (write / sum), .chip = launch->chip,
                   .dispatch = dp_cost_find("dispatch", 0).fixed, .flag = dp_cost_find("flag", 0).fixed};
}

static void work_of(const dp_trace_event *e, const rates *rate, double *out_head, double *out_body) {
    if (e->pipe == DP_PIPE_MTE1 || e->pipe == DP_PIPE_MTE2 || e->pipe == DP_PIPE_MTE3) {
        double bytes_per_cycle, latency;
        dp_cost_copy(rate->chip, e->dst_space, e->src_space, &bytes_per_cycle, &latency);
        if (reads_gm(e) && rate->share_read < bytes_per_cycle)
            bytes_per_cycle = rate->share_read;
        if (writes_gm(e) && rate->share_write < bytes_per_cycle)
            bytes_per_cycle = rate->share_write;
        *out_head = latency;
        *out_body = e->bytes / bytes_per_cycle;
        return;
    }
    dp_cost cost = dp_cost_find(dp_insn_cost_row(e->op), e->dtype);
    *out_head = cost.fixed;
    *out_body = cost.per_repeat * e->repeats;
}

/* A wait has a length in the picture, but its pipe does no work meanwhile. */
static bool is_wait(const dp_trace_event *e) {
    return e->op == DP_OP_WAIT_FLAG || e->op == DP_OP_BARRIER || e->op == DP_OP_SYNC_ALL;
}

static void finish(replay *r, dp_trace_event *e, double start, double end) {
    e->start = (uint64_t)start;
    e->end = (uint64_t)end;
    if (e->pipe < DP_PIPE_COUNT && !is_wait(e))
        r->core->busy[e->pipe] += e->end - e->start;
    if (end > (double)r->core->end)
        r->core->end = (uint64_t)end;
}

/* An instruction of a pipe: in order behind its predecessor, behind its gate, and behind the scalar unit. */
static void run_on_pipe(replay *r, dp_trace_event *e, const rates *rate) {
    unsigned p = e->pipe;
    double oldest = r->ring[p][r->issued[p] % QUEUE_DEPTH];
    if (oldest > r->scalar)
        r->scalar = oldest; /* the queue is full: the scalar unit stands still */
    r->scalar += rate->dispatch;
    double head, body, previous = r->free_at[p], start = r->scalar;
    work_of(e, rate, &head, &body);
    if (r->gate[p] > start)
        start = r->gate[p];
    if (previous > start)
        start = previous;
    e->head = start > previous || r->drained[p] || r->issued[p] == 0;
    e->waited = start > previous && r->issued[p] ? (uint64_t)(start - previous) : 0;
    e->cause = r->gate[p] >= start && r->gate[p] > previous ? r->gate_cause[p] : 0;
    double end = start + (e->head ? head : 0) + body;
    r->drained[p] = false;
    r->free_at[p] = end;
    r->ring[p][r->issued[p]++ % QUEUE_DEPTH] = end;
    finish(r, e, start, end);
}

static double last_of(const replay *r, unsigned pipe) {
    return r->free_at[pipe] > r->scalar ? r->free_at[pipe] : r->scalar;
}

static void run_flag(replay *r, dp_trace_event *e, uint32_t index, const rates *rate) {
    unsigned src = e->sync_src, dst = e->sync_dst, id = e->sync_id % DP_EVENT_IDS;
    r->scalar += rate->flag;
    if (src >= DP_PIPE_COUNT || dst >= DP_PIPE_COUNT)
        return;
    if (e->op == DP_OP_SET_FLAG) {
        double at = src == DP_PIPE_S ? r->scalar : last_of(r, src);
        /* a pipe that is itself held back raises nothing before it may go on */
        if (src != DP_PIPE_S && r->gate[src] > at)
            at = r->gate[src];
        r->raised[src][dst][id] = at;
        r->raised_by[src][dst][id] = index + 1;
        finish(r, e, at, at);
        return;
    }
    double at = r->raised[src][dst][id];
    if (dst == DP_PIPE_S) {
        double begin = r->scalar;
        r->scalar = at > begin ? at : begin;
        e->waited = (uint64_t)(r->scalar - begin);
        e->cause = r->raised_by[src][dst][id];
        finish(r, e, begin, r->scalar);
    } else {
        if (at > r->gate[dst]) {
            r->gate[dst] = at;
            r->gate_cause[dst] = r->raised_by[src][dst][id];
        }
        finish(r, e, r->scalar, r->scalar);
    }
}

static void run_barrier(replay *r, dp_trace_event *e, const rates *rate) {
    r->scalar += rate->flag;
    double begin = r->scalar;
    for (unsigned p = 0; p < DP_PIPE_COUNT; p++) {
        if (e->sync_src != DP_PIPE_ALL && e->sync_src != p)
            continue;
        r->drained[p] = true;
        if (e->sync_src == DP_PIPE_ALL && r->free_at[p] > r->scalar)
            r->scalar = r->free_at[p];
    }
    finish(r, e, begin, r->scalar);
}

/* Scalar loads from UB wait for what writes it: the vendor's compiler inserts that flag by default. */
static void run_scalar(replay *r, dp_trace_event *e) {
    if (e->op == DP_OP_SCALAR_LOAD && e->src_space == DP_SPACE_UB) {
        double vector = r->free_at[DP_PIPE_V], copy = r->free_at[DP_PIPE_MTE2];
        double latest = vector > copy ? vector : copy;
        if (latest > r->scalar) {
            e->waited = (uint64_t)(latest - r->scalar);
            r->scalar = latest;
        }
    }
    double begin = r->scalar;
    r->scalar += dp_cost_find(dp_insn_cost_row(e->op), 0).fixed;
    finish(r, e, begin, r->scalar);
}

/* Replays one core up to its end or its next SyncAll. */
static void advance(replay *r, const rates *rate) {
    dp_trace_core *core = r->core;
    while (!r->waiting && r->next < core->count) {
        uint32_t index = r->next++;
        dp_trace_event *e = &core->events[index];
        if (e->op == DP_OP_SET_FLAG || e->op == DP_OP_WAIT_FLAG)
            run_flag(r, e, index, rate);
        else if (e->op == DP_OP_BARRIER)
            run_barrier(r, e, rate);
        else if (e->op == DP_OP_SYNC_ALL)
            r->waiting = true;
        else if (e->pipe == DP_PIPE_S)
            run_scalar(r, e);
        else if (e->pipe < DP_PIPE_COUNT)
            run_on_pipe(r, e, rate);
    }
}

static double everything_done(const replay *r) {
    double t = r->scalar;
    for (unsigned p = 0; p < DP_PIPE_COUNT; p++)
        t = r->free_at[p] > t ? r->free_at[p] : t;
    return t;
}

/* All cores that stand at a SyncAll leave it when the last has arrived. Returns false when nobody stands there. */
static bool meet(replay *replays, uint32_t n) {
    double latest = 0;
    bool any = false;
    for (uint32_t i = 0; i < n; i++) {
        if (replays[i].waiting) {
            any = true;
            double t = everything_done(&replays[i]);
            latest = t > latest ? t : latest;
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        replay *r = &replays[i];
        if (!r->waiting)
            continue;
        dp_trace_event *e = &r->core->events[r->next - 1];
        double begin = everything_done(r);
        e->waited = (uint64_t)(latest - begin);
        finish(r, e, begin, latest);
        r->scalar = latest;
        r->waiting = false;
    }
    return any;
}

/* Blocks beyond the chip's cores run after the block that had their core before. */
static void place_waves(dp_trace_launch *launch, replay *replays) {
    uint32_t physical = launch->chip->vector_cores ? launch->chip->vector_cores : 1;
    for (uint32_t i = physical; i < launch->core_count; i++) {
        uint64_t base = replays[i - physical].core->end;
        dp_trace_core *core = replays[i].core;
        for (uint32_t k = 0; k < core->count; k++) {
            core->events[k].start += base;
            core->events[k].end += base;
        }
        core->end += base;
    }
}

void dp_trace_model(dp_trace_launch *launch) {
    replay *replays = dp_alloc(DP_MEM_TRACE, launch->core_count * sizeof *replays);
    if (!replays) {
        dp_log("trace", DP_LOG_ERROR, "no memory to replay %u cores of %s", launch->core_count, launch->name);
        return;
    }
    rates rate = find_rates(launch);
    for (uint32_t c = 0; c < launch->core_count; c++)
        replays[c].core = launch->cores[c];
    do {
        for (uint32_t c = 0; c < launch->core_count; c++)
            advance(&replays[c], &rate);
    } while (meet(replays, launch->core_count));
    place_waves(launch, replays);
    for (uint32_t c = 0; c < launch->core_count; c++)
        if (launch->cores[c]->end > launch->cycles)
            launch->cycles = launch->cores[c]->end;
    dp_free(replays);
}
