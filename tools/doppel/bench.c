/* doppel bench: how long a model takes. */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "doppel.h"

enum { RUNS_MOST = 100000, RUNS_LEAST = 5 };
static const double warm_ms = 300, measure_ms = 3000, progress_ms = 2000;

static const char *const name = "doppel bench";
static const char *const usage =
    "usage: doppel bench [options] MODEL.om\n"
    "\n"
    "Runs a model that atc has compiled again and again and prints how long it takes and how much\n"
    "memory it needs. Inputs that are not given are random numbers.\n"
    "\n"
    "  --runs N           count so many runs (default: as many as take about three seconds, at least 5)\n";

/* 1: run, 0: help was printed, -1: wrong usage. */
static int read_options(int argc, char **argv, bench_options *o) {
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            printf("%s%s%s", usage, model_usage, input_usage);
            return 0;
        }
        int taken = input_option(name, argc, argv, &i, &o->input);
        taken = taken ? taken : model_option(name, argc, argv, &i, &o->choice);
        if (taken < 0)
            return -1;
        if (taken)
            continue;
        if (strcmp(argv[i], "--runs") == 0) {
            if (!doppel_number(name, argc, argv, &i, 1, RUNS_MOST, &o->runs))
                return -1;
        } else if (!doppel_model_argument(name, argv[i], &o->model)) {
            return -1;
        }
    }
    return doppel_model_needed(name, o->model) ? 1 : -1;
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void summarise(double *ms, long n, bench_times *out) {
    double sum = 0;
    qsort(ms, (size_t)n, sizeof *ms, by_size);
    for (long i = 0; i < n; i++)
        sum += ms[i];
    *out = (bench_times){n, ms[0], (ms[n / 2] + ms[(n - 1) / 2]) / 2, sum / (double)n, ms[n - 1], ms[(n * 9) / 10]};
}

static void show_progress(const char *command, double since_ms, long done, long of) {
    static double last_ms;
    double now = model_clock_ms();
    if (!isatty(STDERR_FILENO) || now - since_ms < progress_ms || now - last_ms < 250)
        return;
    last_ms = now;
    if (of)
        fprintf(stderr, "\r%s: %ld of %ld runs", command, done, of);
    else
        fprintf(stderr, "\r%s: %ld runs", command, done);
}

static void end_progress(double since_ms) {
    if (isatty(STDERR_FILENO) && model_clock_ms() - since_ms >= progress_ms)
        fputs("\r\033[K", stderr);
}

bool bench_measure(model *m, long runs, bench_times *out) {
    double start = model_clock_ms();
    do { /* caches, pages, the processor's clock */
        if (!model_execute(m))
            return false;
        show_progress(m->command, start, 0, runs);
    } while (runs == 0 && model_clock_ms() - start < warm_ms);
    long room = runs ? runs : RUNS_MOST, done = 0;
    double *ms = malloc((size_t)room * sizeof *ms), began = model_clock_ms();
    if (!ms) {
        fprintf(stderr, "%s: no memory for the times of %ld runs\n", m->command, room);
        return false;
    }
    while (done < room && (runs || done < RUNS_LEAST || model_clock_ms() - began < measure_ms)) {
        double before = model_clock_ms();
        if (!model_execute(m))
            break;
        ms[done++] = model_clock_ms() - before;
        show_progress(m->command, start, done, runs);
    }
    end_progress(start);
    bool good = done > 0 && (!runs || done == runs);
    if (good)
        summarise(ms, done, out);
    free(ms);
    return good;
}

static void print_times(const bench_options *o, const model *m, const bench_times *t) {
    struct rusage use;
    size_t work = 0, weights = 0;
    getrusage(RUSAGE_SELF, &use);
    int workers = o->choice.workers;
    printf("%s: %ld runs, %s%.0d%s\n", o->model, t->runs, workers ? "" : "one worker per processor", workers,
           workers > 1 ? " workers"
           : workers   ? " worker"
                       : "");
    printf("  least    %10.3f ms\n  median   %10.3f ms   %.1f runs a second\n  mean     %10.3f ms\n", t->least_ms,
           t->median_ms, 1e3 / t->median_ms, t->mean_ms);
    printf("  90%%      %10.3f ms   nine of ten runs are faster\n  most     %10.3f ms\n", t->slow_ms, t->most_ms);
    printf("  load     %10.3f ms\n", m->load_ms);
    if (aclmdlQuerySize(o->model, &work, &weights) == ACL_SUCCESS)
        printf("  memory   %10.1f MB    working memory %.1f MB, weights %.1f MB\n", (double)use.ru_maxrss * 1024e-6,
               (double)work * 1e-6, (double)weights * 1e-6);
}

int doppel_bench(int argc, char **argv) {
    bench_options o = {0};
    model m;
    bench_times times;
    int what = read_options(argc, argv, &o);
    if (what <= 0)
        return what ? DOPPEL_USAGE : 0;
    bool good = model_open(name, o.model, &o.choice, &m) && input_fill(&m, &o.input, true) && model_fill(&m) &&
                bench_measure(&m, o.runs, &times);
    if (good)
        print_times(&o, &m, &times);
    model_close(&m);
    return good ? 0 : 1;
}
