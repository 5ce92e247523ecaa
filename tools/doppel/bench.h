/*
 * bench.h - running a model again and again: what `doppel bench` prints and `doppel profile` has recorded.
 */
#ifndef DOPPEL_TOOLS_BENCH_H
#define DOPPEL_TOOLS_BENCH_H

#include "input.h"

typedef struct bench_options {
    const char *model;
    long runs; /* 0: as many as take about three seconds */
    model_choice choice;
    input_options input;
} bench_options;

typedef struct bench_times {
    long runs;
    double least_ms, median_ms, mean_ms, most_ms, slow_ms; /* slow: nine of ten runs are faster */
} bench_times;

/*
 * Runs a model that is open and filled: once or more to warm up, then `runs` times (0: for about three seconds), with a
 * line of progress on a terminal.
 */
bool bench_measure(model *m, long runs, bench_times *out);

#endif
