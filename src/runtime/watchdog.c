#define _GNU_SOURCE
#include "runtime/watchdog.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>

#include "runtime/report.h"
#include "runtime/time_limit.h"

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed; /* on CLOCK_MONOTONIC, made with the thread */
    dp_watch *list;
    bool started;
    _Atomic uint64_t execute_ns, wait_ns;
} watchdog = {.lock = PTHREAD_MUTEX_INITIALIZER};

void dp_time_limit_set_execute(uint64_t limit_ns) {
    atomic_store(&watchdog.execute_ns, limit_ns);
}
void dp_time_limit_set_wait(uint64_t limit_ns) {
    atomic_store(&watchdog.wait_ns, limit_ns);
}
uint64_t dp_watch_execute_limit_ns(void) {
    return atomic_load_explicit(&watchdog.execute_ns, memory_order_relaxed);
}
uint64_t dp_watch_wait_limit_ns(void) {
    return atomic_load_explicit(&watchdog.wait_ns, memory_order_relaxed);
}

static void unlink_watch(dp_watch *watch) {
    *watch->link = watch->next;
    if (watch->next)
        watch->next->link = watch->link;
    watch->link = NULL;
}

/* Called with the lock held; returns when the next one is due. */
static uint64_t look_at_all(dp_watch **out_done) {
    uint64_t now = dp_clock_ns(), next = UINT64_MAX;
    for (dp_watch *watch = watchdog.list, *after; watch; watch = after) {
        after = watch->next;
        if (watch->due_ns <= now)
            watch->due_ns = watch->due(watch, now);
        if (watch->due_ns == 0) {
            unlink_watch(watch);
            if (!watch->finish)
                continue;
            watch->next = *out_done;
            *out_done = watch;
        } else if (watch->due_ns < next) {
            next = watch->due_ns;
        }
    }
    return next;
}

static void *watch_over(void *unused) {
    (void)unused;
    pthread_mutex_lock(&watchdog.lock);
    for (;;) {
        dp_watch *done = NULL;
        uint64_t next = look_at_all(&done);
        if (done) {
            pthread_mutex_unlock(&watchdog.lock);
            for (dp_watch *after; done; done = after) {
                after = done->next;
                done->finish(done);
            }
            pthread_mutex_lock(&watchdog.lock);
            continue;
        }
        struct timespec at = {(time_t)(next / 1000000000u), (long)(next % 1000000000u)};
        if (next == UINT64_MAX)
            pthread_cond_wait(&watchdog.changed, &watchdog.lock);
        else
            pthread_cond_timedwait(&watchdog.changed, &watchdog.lock, &at);
    }
    return NULL;
}

/* Called with the lock held. Signals are for the program's threads. */
static bool start(void) {
    if (watchdog.started)
        return true;
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&watchdog.changed, &clock);
    pthread_condattr_destroy(&clock);
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    pthread_t thread;
    watchdog.started = pthread_create(&thread, NULL, watch_over, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (watchdog.started) {
        pthread_setname_np(thread, "doppel-limits");
        pthread_detach(thread);
    }
    return watchdog.started;
}

bool dp_watch_begin(dp_watch *watch, uint64_t due_ns) {
    pthread_mutex_lock(&watchdog.lock);
    bool started = start();
    if (started) {
        watch->due_ns = due_ns;
        watch->next = watchdog.list;
        watch->link = &watchdog.list;
        if (watch->next)
            watch->next->link = &watch->next;
        watchdog.list = watch;
        pthread_cond_signal(&watchdog.changed);
    }
    pthread_mutex_unlock(&watchdog.lock);
    return started;
}

void dp_watch_end(dp_watch *watch) {
    pthread_mutex_lock(&watchdog.lock);
    if (watch->link)
        unlink_watch(watch);
    pthread_mutex_unlock(&watchdog.lock);
}

void dp_watch_fork_prepare(void) {
    pthread_mutex_lock(&watchdog.lock);
}
void dp_watch_fork_parent(void) {
    pthread_mutex_unlock(&watchdog.lock);
}

/* The child has neither the thread nor the work. */
void dp_watch_fork_child(void) {
    watchdog.list = NULL;
    watchdog.started = false;
    pthread_mutex_unlock(&watchdog.lock);
}
