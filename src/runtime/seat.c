/*
 * seat.c - running the units of a launch on one thread.
 *
 * A seat is a fiber with a core. One seat runs unit after unit without a switch; only when a unit parks, the thread
 * takes another seat for the next unit and comes back when the parked one can go on. A seat never leaves its thread.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/fiber.h"
#include "base/memory.h"
#include "runtime/crash.h"
#include "runtime/futex.h"
#include "runtime/launch_state.h"

enum {
    FREE_SEATS_MAX = 64, /* kept by a thread between launches */
    SCAN_MAX = 32,       /* parked seats looked at before another unit is begun */
    SPINS_BEFORE_YIELD = 200,
    SPINS_BEFORE_SLEEP = 2000
};

struct dp_seat {
    dp_fiber *fiber;
    dp_core *core;
    _Atomic(dp_launch *) launch; /* written by the seat's thread */
    const dp_wait *wait;                 /* while parked */
    bool has_unit;                       /* between block begin and block end */
    bool deadlocked;                     /* what park() returns, negated */
    bool ended_last;                     /* ended the last unit of the launch */
    dp_seat *next;                       /* in the thread's free or parked list */
    dp_seat *launch_next, **launch_link; /* in the launch's parked list */
    dp_seat *all_next, **all_link;       /* in all_seats */
};

/* Every seat, so that those of threads a forked child does not have are still known to it (and to leak checkers). */
static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static dp_seat *all_seats;

static _Thread_local dp_seat *free_seats;
static _Thread_local unsigned free_seat_count;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static pthread_key_t key;

static void destroy_seat(dp_seat *seat) {
    if (!seat)
        return;
    pthread_mutex_lock(&all_lock);
    if (seat->all_link) {
        *seat->all_link = seat->all_next;
        if (seat->all_next)
            seat->all_next->all_link = seat->all_link;
    }
    pthread_mutex_unlock(&all_lock);
    dp_fiber_destroy(seat->fiber);
    dp_core_destroy(seat->core);
    dp_free(seat);
}

static void thread_ends(void *unused) {
    (void)unused;
    while (free_seats) {
        dp_seat *seat = free_seats;
        free_seats = seat->next;
        destroy_seat(seat);
    }
    free_seat_count = 0;
    dp_crash_thread_ends();
}

static void make_key(void) {
    pthread_key_create(&key, thread_ends);
}

static dp_seat *new_seat(void) {
    dp_seat *seat = dp_alloc(DP_MEM_DEVICE, sizeof *seat);
    if (!seat)
        return NULL;
    seat->fiber = dp_fiber_create(DP_KERNEL_STACK_BYTES);
    if (!seat->fiber)
        goto fail;
    seat->core = dp_core_create(dp_chip_current());
    if (!seat->core)
        goto fail;
    pthread_mutex_lock(&all_lock);
    seat->all_next = all_seats;
    seat->all_link = &all_seats;
    if (all_seats)
        all_seats->all_link = &seat->all_next;
    all_seats = seat;
    pthread_mutex_unlock(&all_lock);
    pthread_once(&key_once, make_key);
    pthread_setspecific(key, seat); /* any value: only that thread_ends is called */
    dp_crash_thread_begins();
    return seat;
fail:
    destroy_seat(seat);
    return NULL;
}

static dp_seat *take_seat(void) {
    dp_seat *seat = free_seats;
    if (!seat)
        return new_seat();
    free_seats = seat->next;
    free_seat_count--;
    return seat;
}

static void give_seat(dp_seat *seat) {
    if (free_seat_count >= FREE_SEATS_MAX) {
        destroy_seat(seat);
        return;
    }
    seat->next = free_seats;
    free_seats = seat;
    free_seat_count++;
}

/* Begins no unit once the launch failed: those that are left end at once. */
static bool claim(dp_launch *launch, uint32_t *out_unit) {
    if (atomic_load_explicit(&launch->next, memory_order_relaxed) >= launch->units)
        return false;
    *out_unit = atomic_fetch_add(&launch->next, 1);
    return *out_unit < launch->units;
}

static void name_unit(dp_core *core, dp_launch *launch, uint32_t unit) {
    uint32_t k = unit % launch->cores_per_block;
    unsigned mix = launch->info.kernel.core_mix;
    core->kind = mix != DP_MIX_AIV && k == 0 ? DP_CORE_AIC : DP_CORE_AIV;
    core->block_idx = unit / launch->cores_per_block;
    core->block_num = launch->info.blocks;
    core->sub_block_idx = core->kind == DP_CORE_AIV && mix != DP_MIX_AIV ? k - 1 : 0;
    core->sub_block_num = mix == DP_MIX_AIC_1_2 ? 2 : 1;
    core->core_index = unit;
    core->task_ration = core->kind == DP_CORE_AIV && mix == DP_MIX_AIC_1_2 ? 2 : 1;
    core->launch = &launch->info;
    core->sync = launch->sync;
}

/* Every wait of every parked block, as one write on stderr; the first ones also become the launch's error. */
static void report_deadlock(dp_launch *launch) {
    char report[4096];
    uint32_t parked = atomic_load(&launch->parked), told = 0;
    const char *name = launch->info.kernel.name;
    int used = snprintf(report, sizeof report, "deadlock in kernel %s: all %u block%s that have not ended wait%s\n",
                        name ? name : "?", parked, parked == 1 ? "" : "s", parked == 1 ? "s" : "");
    for (dp_seat *seat = launch->parked_seats; seat; seat = seat->launch_next) {
        char text[256] = "";
        if (seat->wait->describe)
            seat->wait->describe(seat->wait->context, text, sizeof text);
        int more = snprintf(report + used, sizeof report - (size_t)used, "  %s:%u: core %u: %s\n",
                            seat->wait->loc.file ? seat->wait->loc.file : "?", seat->wait->loc.line,
                            seat->core->core_index, text[0] ? text : "waits");
        if (more < 0 || (size_t)(used + more) > sizeof report - 64)
            break;
        used += more;
        told++;
    }
    if (told < parked)
        used += snprintf(report + used, sizeof report - (size_t)used, "  ... and %u more\n", parked - told);
    ssize_t ignored = write(STDERR_FILENO, report, (size_t)used);
    (void)ignored;
}

/*
 * Called by whoever parked or ended a unit when no unit runs and none is left to begin. The lock keeps parked blocks
 * from being resumed, so nothing can change what they wait for while they are asked.
 */
static void look_for_deadlock(dp_launch *launch) {
    pthread_mutex_lock(&launch->lock);
    uint32_t parked = atomic_load(&launch->parked);
    bool stuck = parked > 0 && parked == atomic_load(&launch->remaining) && !atomic_load(&launch->victim) &&
                 !atomic_load(&launch->failed);
    for (dp_seat *seat = launch->parked_seats; seat && stuck; seat = seat->launch_next)
        stuck = !seat->wait->ready(seat->wait->context);
    if (stuck) {
        report_deadlock(launch);
        dp_seat *victim = launch->parked_seats;
        for (dp_seat *seat = victim; seat; seat = seat->launch_next) {
            if (seat->core->core_index < victim->core->core_index)
                victim = seat;
        }
        atomic_store(&launch->victim, victim);
    }
    pthread_mutex_unlock(&launch->lock);
}

static void end_unit(dp_seat *seat, bool faulted) {
    dp_launch *launch = seat->launch;
    seat->has_unit = false;
    dp_core_block_end(seat->core, faulted);
    dp_launch_sync_core_ended(launch->sync, seat->core);
    uint32_t left = atomic_fetch_sub(&launch->remaining, 1) - 1;
    if (left == 0)
        seat->ended_last = true;
    else if (DP_UNLIKELY(left == atomic_load(&launch->parked)))
        look_for_deadlock(launch);
}

static void run_units(void *argument) {
    dp_seat *seat = argument;
    dp_launch *launch = seat->launch;
    dp_core *core = seat->core;
    uint32_t unit;
    while (claim(launch, &unit)) {
        name_unit(core, launch, unit);
        if (DP_UNLIKELY(atomic_load_explicit(&launch->failed, memory_order_relaxed))) {
            if (atomic_fetch_sub(&launch->remaining, 1) == 1)
                seat->ended_last = true;
            continue;
        }
        seat->has_unit = true;
        dp_core_set_current(core);
        dp_core_block_begin(core);
        launch->entry(launch->args);
        end_unit(seat, false);
    }
}

static bool park(dp_core *core, const dp_wait *wait) {
    dp_seat *seat = core->host_state;
    dp_launch *launch = seat->launch;
    if (atomic_load(&launch->failed))
        dp_fiber_exit(seat->fiber);
    seat->wait = wait;
    seat->deadlocked = false;
    dp_fiber_yield(seat->fiber);
    dp_core_set_current(core);
    return !seat->deadlocked;
}

static __attribute__((noreturn)) void abandon(dp_core *core) {
    dp_seat *seat = core->host_state;
    dp_fiber_exit(seat->fiber);
}

static void fault(dp_core *core, dp_loc loc, const char *sentence) {
    dp_seat *seat = core->host_state;
    char text[DP_STREAM_ERROR_BYTES];
    if (loc.line)
        snprintf(text, sizeof text, "%s:%u: %s (block %u of %u)", loc.file ? loc.file : "?", loc.line, sentence,
                 core->block_idx, core->block_num);
    else
        snprintf(text, sizeof text, "%s (block %u of %u)", sentence, core->block_idx, core->block_num);
    dp_launch_fail(seat->launch, text);
}

static const dp_core_host core_host = {.park = park, .abandon = abandon, .fault = fault};

bool dp_seat_overflowed(const dp_core *core, const void *address) {
    const dp_seat *seat = core->host == &core_host ? core->host_state : NULL;
    return seat && dp_fiber_is_guard(seat->fiber, address);
}

/* The thread's part in one launch. */
typedef struct part {
    dp_launch *launch;
    dp_seat *parked;  /* of this thread */
    dp_seat **cursor; /* where the next scan begins */
    bool ended_last;
} part;

static void list_parked(part *p, dp_seat *seat) {
    dp_launch *launch = p->launch;
    seat->next = p->parked;
    p->parked = seat;
    pthread_mutex_lock(&launch->lock);
    seat->launch_next = launch->parked_seats;
    seat->launch_link = &launch->parked_seats;
    if (seat->launch_next)
        seat->launch_next->launch_link = &seat->launch_next;
    launch->parked_seats = seat;
    uint32_t parked = atomic_fetch_add(&launch->parked, 1) + 1;
    pthread_mutex_unlock(&launch->lock);
    if (parked == atomic_load(&launch->remaining))
        look_for_deadlock(launch);
}

static void unlist_parked(dp_launch *launch, dp_seat *seat) {
    pthread_mutex_lock(&launch->lock);
    *seat->launch_link = seat->launch_next;
    if (seat->launch_next)
        seat->launch_next->launch_link = seat->launch_link;
    atomic_fetch_sub(&launch->parked, 1);
    if (atomic_load(&launch->victim) == seat) {
        atomic_store(&launch->victim, NULL);
        seat->deadlocked = true;
    }
    pthread_mutex_unlock(&launch->lock);
}

/* Runs the seat until it parks or has no more units. */
static void resume(part *p, dp_seat *seat) {
    for (;;) {
        bool suspended = dp_fiber_resume(seat->fiber);
        dp_core_set_current(NULL);
        if (suspended) {
            list_parked(p, seat);
            return;
        }
        if (!seat->has_unit)
            break;
        end_unit(seat, true); /* left through dp_fiber_exit */
        dp_fiber_start(seat->fiber, run_units, seat);
    }
    p->ended_last |= seat->ended_last;
    seat->launch = NULL;
    give_seat(seat);
}

/* A unit of a failed launch that sits in a wait: it is not gone back to. */
static void drop_parked(part *p, dp_seat *seat) {
    p->cursor = NULL;
    unlist_parked(p->launch, seat);
    dp_fiber_abandon(seat->fiber);
    end_unit(seat, true);
    p->ended_last |= seat->ended_last;
    give_seat(seat);
}

/* Takes the first of a few parked seats that can go on out of the thread's list. */
static dp_seat *next_ready(part *p) {
    if (!p->parked)
        return NULL;
    if (!p->cursor || !*p->cursor)
        p->cursor = &p->parked;
    for (int i = 0; i < SCAN_MAX && *p->cursor; i++) {
        dp_seat *seat = *p->cursor;
        if (seat->wait->ready(seat->wait->context)) {
            *p->cursor = seat->next;
            return seat;
        }
        p->cursor = &seat->next;
    }
    return NULL;
}

/* The victim of a deadlock, if it sits on this thread. */
static dp_seat *take_victim(part *p) {
    dp_seat *victim = atomic_load(&p->launch->victim);
    for (dp_seat **at = &p->parked; *at && victim; at = &(*at)->next) {
        if (*at == victim) {
            *at = victim->next;
            p->cursor = NULL;
            return victim;
        }
    }
    return NULL;
}

static bool begin_seat(part *p) {
    dp_launch *launch = p->launch;
    if (atomic_load_explicit(&launch->next, memory_order_relaxed) >= launch->units)
        return false;
    dp_seat *seat = take_seat();
    if (!seat) {
        if (p->parked)
            return false; /* those that wait may end and give their seats */
        dp_launch_fail(launch, "no host memory for a core and its stack");
        uint32_t unit;
        while (claim(launch, &unit))
            p->ended_last |= atomic_fetch_sub(&launch->remaining, 1) == 1;
        return false;
    }
    seat->launch = launch;
    seat->has_unit = false;
    seat->ended_last = false;
    seat->core->host = &core_host;
    seat->core->host_state = seat;
    dp_fiber_start(seat->fiber, run_units, seat);
    resume(p, seat);
    return true;
}

/* Others must move first. They may compute for long, so this ends up sleeping. */
static void back_off(unsigned *spins) {
    if (++*spins < SPINS_BEFORE_YIELD)
        dp_cpu_relax();
    else if (*spins < SPINS_BEFORE_SLEEP)
        sched_yield();
    else
        nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
}

bool dp_launch_take_part(dp_launch *launch) {
    part p = {.launch = launch};
    unsigned spins = 0;
    dp_core *outer = dp_core_current();
    for (;;) {
        while (p.parked && atomic_load(&launch->failed)) {
            dp_seat *seat = p.parked;
            p.parked = seat->next;
            drop_parked(&p, seat);
        }
        dp_seat *seat = next_ready(&p);
        if (!seat && p.parked)
            seat = take_victim(&p);
        if (seat) {
            unlist_parked(launch, seat);
            resume(&p, seat);
            spins = 0;
        } else if (begin_seat(&p)) {
            spins = 0;
        } else if (!p.parked) {
            break;
        } else {
            back_off(&spins);
        }
    }
    dp_core_set_current(outer);
    if (launch->units > 1)
        dp_pool_withdraw(&launch->job);
    return p.ended_last;
}

static bool stop_here(dp_core *core, dp_insn *insn) {
    dp_seat *seat = core->host_state;
    dp_launch *launch = seat->launch;
    char limit[32];
    if (!atomic_load(&launch->overdue)) { /* meant for the launch that this core ran before */
        const dp_observer *current = dp_observer_current();
        atomic_store(&core->observer, current);
        return !current || !current->before || current->before(core, insn);
    }
    core->over_time = true;
    dp_fault(core, insn, insn->loc, "stopped, because kernel %s ran longer than the %s that aclrtSetOpExecuteTimeOut allows",
             launch->info.kernel.name ? launch->info.kernel.name : "?", dp_launch_limit_text(launch, limit));
}

/* As whoever looks on, but no instruction passes. */
static const dp_observer *stopper(void) {
    static pthread_mutex_t made_lock = PTHREAD_MUTEX_INITIALIZER;
    static dp_observer made;
    pthread_mutex_lock(&made_lock);
    if (!made.before) {
        const dp_observer *current = dp_observer_current();
        made = current ? *current : (dp_observer){.name = "stop"};
        made.before = stop_here;
    }
    pthread_mutex_unlock(&made_lock);
    return &made;
}

void dp_seat_stop(const dp_launch *launch) {
    pthread_mutex_lock(&all_lock);
    for (dp_seat *seat = all_seats; seat; seat = seat->all_next) {
        if (atomic_load(&seat->launch) == launch)
            atomic_store(&seat->core->observer, stopper());
    }
    pthread_mutex_unlock(&all_lock);
}

void dp_seat_fork_prepare(void) {
    pthread_mutex_lock(&all_lock);
}
void dp_seat_fork_done(void) {
    pthread_mutex_unlock(&all_lock);
}
