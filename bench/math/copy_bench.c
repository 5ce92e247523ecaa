/*
 * copy_bench [floats] - out = a + b over so many floats (default 16 M): a plain loop on all processors against tiles that go through a buffer of
 * 192 KiB a thread (copy in, add, copy out), once with cached and once with streaming stores on the way out.
 */
#define _GNU_SOURCE
#include "math/math.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { THREADS_MAX = 64, BUFFER_BYTES = 192 << 10 };
static float *a, *b, *out;
static unsigned n_threads;
static size_t count = 1 << 24;
static size_t tile_bytes;
static void (*store)(void *dst, const void *src, size_t size_bytes);

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void *plain(void *arg) {
    size_t t = (size_t)arg, first = count / n_threads * t, last = t + 1 == n_threads ? count : first + count / n_threads;
    for (size_t i = first; i < last; i++)
        out[i] = a[i] + b[i];
    return NULL;
}

static void *tiled(void *arg) {
    const dp_math *m = dp_math_current();
    size_t t = (size_t)arg, first = count / n_threads * t, last = t + 1 == n_threads ? count : first + count / n_threads;
    size_t tile = tile_bytes / 4, slots = BUFFER_BYTES / tile_bytes / 3;
    float *buffer = aligned_alloc(64, BUFFER_BYTES);
    for (size_t i = first, k = 0; buffer && i < last; i += tile, k++) {
        float *x = buffer + (k % slots) * 3 * tile, *y = x + tile, *z = y + tile;
        size_t n = last - i < tile ? last - i : tile;
        m->copy(x, a + i, 4 * n);
        m->copy(y, b + i, 4 * n);
        m->binary[DP_MATH_ADD][DP_F32](z, x, y, n);
        store(out + i, z, 4 * n);
    }
    free(buffer);
    return NULL;
}

static double seconds(void *(*work)(void *)) {
    pthread_t thread[THREADS_MAX];
    double start = now_s();
    for (size_t t = 0; t < n_threads; t++)
        if (pthread_create(&thread[t], NULL, work, (void *)t) != 0)
            exit(1);
    for (size_t t = 0; t < n_threads; t++)
        pthread_join(thread[t], NULL);
    return now_s() - start;
}

static void keep_best(double *best, double s) { *best = s < *best ? s : *best; }

int main(int argc, char **argv) {
    if (argc > 1)
        count = strtoul(argv[1], NULL, 10);
    if (count < 1024) {
        fprintf(stderr, "copy_bench: %zu floats are too few, give at least 1024\n", count);
        return 2;
    }
    n_threads = dp_cpu_count() < THREADS_MAX ? dp_cpu_count() : THREADS_MAX;
    a = aligned_alloc(64, (count * 4 + 63) / 64 * 64);
    b = aligned_alloc(64, (count * 4 + 63) / 64 * 64);
    out = aligned_alloc(64, (count * 4 + 63) / 64 * 64);
    if (!a || !b || !out)
        return 1;
    for (size_t i = 0; i < count; i++)
        a[i] = (float)i, b[i] = 1, out[i] = 0;
    printf("out = a + b, %zu floats, %u threads, GB/s\n%12s %8s %16s %16s\n", count, n_threads, "tile bytes", "loop", "cached",
           "streaming");
    for (tile_bytes = 1 << 10; tile_bytes <= 1 << 14; tile_bytes *= 2) {
        double loop = 1e9, cached = 1e9, streaming = 1e9;
        for (int round = 0; round < 12; round++) { /* in turn, so that other load meets all three alike */
            keep_best(&loop, seconds(plain));
            store = dp_math_current()->copy;
            keep_best(&cached, seconds(tiled));
            store = dp_math_current()->copy_stream;
            keep_best(&streaming, seconds(tiled));
        }
        double bytes = (double)count * 12e-9;
        printf("%12zu %8.2f %8.2f %6.2fx %8.2f %6.2fx\n", tile_bytes, bytes / loop, bytes / cached, loop / cached, bytes / streaming,
               loop / streaming);
    }
    return 0;
}
