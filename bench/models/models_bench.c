/*
 * bench_models [--threads N] [--rounds N] [--only doppel|peer] MODEL.onnx MODEL.om - a compiled model against
 * onnxruntime on the file it was compiled from: both in one process, taking turns, with the same inputs and threads.
 * ONNXRUNTIME_LIBRARY names the peer's shared library; without it only our own times are printed.
 *
 * With one thread times are those of the processor, otherwise those on the wall.
 * Prints minimum and median of both, their ratios (above 1: Doppel is the faster one), the largest difference of the
 * results, and, each in a process of its own, the time to load and the most memory that was resident.
 */
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "acl/acl.h"
#include "peer.h"

enum { ENDS = 32, ROUNDS = 4096 };

typedef struct end {
    void *data;
    size_t bytes;
    aclDataType type;
    aclmdlIODims dims;
} end;

typedef struct ours {
    uint32_t id;
    size_t n_inputs, n_outputs;
    end inputs[ENDS], outputs[ENDS];
    aclmdlDataset *in, *out;
} ours;

typedef struct settings {
    const char *library, *onnx, *om, *only;
    int threads, rounds;
} settings;

static void need(int code, const char *what) {
    if (!code)
        return;
    fprintf(stderr, "%s: %d %s\n", what, code, aclGetRecentErrMsg());
    exit(1);
}

/* With one thread, time of this process: other programs on the machine then disturb less. With more, time on the wall.
 */
static clockid_t watch = CLOCK_MONOTONIC;

static double now_ms(void) {
    struct timespec t;
    clock_gettime(watch, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* The most memory that this process had resident. */
static double peak_mb(void) {
    char line[256];
    long kb = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "VmHWM: %ld", &kb) == 1)
            break;
    if (file)
        fclose(file);
    return (double)kb / 1024;
}

/* Random numbers in [0, 1); integers are a sampling rate, the only ones that the models of the bench take. */
static void fill(end *e) {
    uint32_t state = 12345;
    if (e->type == ACL_FLOAT) {
        for (size_t i = 0; i < e->bytes / sizeof(float); i++) {
            state = state * 1664525u + 1013904223u;
            ((float *)e->data)[i] = (float)(state >> 8) * 0x1p-24f;
        }
    } else if (e->type == ACL_INT64) {
        for (size_t i = 0; i < e->bytes / sizeof(int64_t); i++)
            ((int64_t *)e->data)[i] = 16000;
    }
}

/* An end of no bytes is an output whose size a run finds: it gets its memory then. */
static aclmdlDataset *data_set(end *ends, size_t n) {
    aclmdlDataset *set = aclmdlCreateDataset();
    for (size_t i = 0; i < n; i++) {
        if (ends[i].bytes)
            need(aclrtMalloc(&ends[i].data, ends[i].bytes, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
        need(aclmdlAddDatasetBuffer(set, aclCreateDataBuffer(ends[i].data, ends[i].bytes)), "aclmdlAddDatasetBuffer");
    }
    return set;
}

/* Inputs and outputs as the file describes them, with memory; without loading the model. */
static void make_ends(ours *o, const char *om) {
    aclmdlDesc *desc = aclmdlCreateDesc();
    need(aclmdlGetDescFromFile(desc, om), "aclmdlGetDescFromFile");
    o->n_inputs = aclmdlGetNumInputs(desc);
    o->n_outputs = aclmdlGetNumOutputs(desc);
    for (size_t i = 0; i < o->n_inputs; i++) {
        end *e = &o->inputs[i];
        e->bytes = aclmdlGetInputSizeByIndex(desc, i);
        e->type = aclmdlGetInputDataType(desc, i);
        need(aclmdlGetInputDims(desc, i, &e->dims), "aclmdlGetInputDims");
    }
    for (size_t i = 0; i < o->n_outputs; i++)
        o->outputs[i].bytes = aclmdlGetOutputSizeByIndex(desc, i);
    o->in = data_set(o->inputs, o->n_inputs);
    o->out = data_set(o->outputs, o->n_outputs);
    for (size_t i = 0; i < o->n_inputs; i++)
        fill(&o->inputs[i]);
    aclmdlDestroyDesc(desc);
}

/* Loads; returns the time of aclmdlLoadFromFile. */
static double ours_open(ours *o, const char *om) {
    double begin = now_ms();
    need(aclmdlLoadFromFile(om, &o->id), "aclmdlLoadFromFile");
    double load = now_ms() - begin;
    make_ends(o, om);
    return load;
}

static void ours_run(ours *o) {
    need(aclmdlExecute(o->id, o->in, o->out), "aclmdlExecute");
}

static void give_inputs(peer *p, const ours *o) {
    if (peer_inputs(p) != o->n_inputs) {
        fprintf(stderr, "%zu inputs, but the peer has %zu\n", o->n_inputs, peer_inputs(p));
        exit(1);
    }
    for (size_t i = 0; i < o->n_inputs; i++) {
        const end *e = &o->inputs[i];
        peer_set_input(p, i, e->type == ACL_INT64 ? PEER_INT64 : PEER_FLOAT, e->data, e->bytes, e->dims.dims,
                       e->dims.dimCount);
    }
}

/* The largest difference of all results, and the largest value of the peer's. */
static double difference(const ours *o, const peer *p, double *out_largest) {
    double most = *out_largest = 0;
    for (size_t k = 0; k < o->n_outputs && k < peer_outputs(p); k++) {
        size_t count;
        const aclDataBuffer *buffer = aclmdlGetDatasetBuffer(o->out, k);
        const float *a = aclGetDataBufferAddr(buffer), *b = peer_output(p, k, &count);
        if (count * sizeof(float) != aclGetDataBufferSizeV2(buffer)) {
            fprintf(stderr, "output %zu has %zu bytes, but the peer's %zu\n", k, aclGetDataBufferSizeV2(buffer),
                    count * 4);
            exit(1);
        }
        for (size_t i = 0; i < count; i++) {
            double apart = fabs((double)a[i] - (double)b[i]);
            most = apart <= most ? most : apart;
            *out_largest = fmax(*out_largest, fabs((double)b[i]));
        }
    }
    return most;
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}
static double median(double *times, int n) {
    qsort(times, (size_t)n, sizeof *times, by_size);
    return times[n / 2];
}

/* One side alone: time to load and, after some runs, the most memory. */
static int run_alone(const settings *s) {
    ours o = {0};
    double load;
    need(aclInit(NULL), "aclInit");
    need(aclrtSetDevice(0), "aclrtSetDevice");
    if (strcmp(s->only, "doppel") == 0) {
        load = ours_open(&o, s->om);
        for (int i = 0; i < 3; i++)
            ours_run(&o);
    } else {
        make_ends(&o, s->om);
        double begin = now_ms();
        peer *p = peer_open(s->library, s->onnx, s->threads);
        load = now_ms() - begin;
        give_inputs(p, &o);
        for (int i = 0; i < 3; i++)
            peer_run(p);
        peer_close(p);
    }
    printf("%.3f %.2f\n", load, peak_mb());
    return 0;
}

/* This program again with --only; the best of three loads. */
static void measure_alone(const settings *s, const char *only, double *out_load, double *out_mb) {
    char command[4096], self[1024];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    self[length < 0 ? 0 : length] = 0;
    snprintf(command, sizeof command, "'%s' --threads %d --only %s '%s' '%s'", self, s->threads, only, s->onnx, s->om);
    *out_load = *out_mb = 0;
    for (int i = 0; i < 3; i++) {
        double load = 0, mb = 0;
        FILE *pipe = popen(command, "r");
        if (!pipe || fscanf(pipe, "%lf %lf", &load, &mb) != 2) {
            fprintf(stderr, "%s: no result\n", command);
            exit(1);
        }
        pclose(pipe);
        *out_load = i == 0 || load < *out_load ? load : *out_load;
        *out_mb = mb > *out_mb ? mb : *out_mb;
    }
}

/*
 * A turn with several threads: the other side's idle threads are given time to stop spinning, and the first run, which
 * wakes our own, is not counted.
 */
enum { REST_NS = 40000000 };
static double take_turn(int threads, void (*run)(void *), void *who) {
    if (threads > 1) {
        nanosleep(&(struct timespec){.tv_nsec = REST_NS}, NULL);
        run(who);
    }
    double begin = now_ms();
    run(who);
    return now_ms() - begin;
}
static void run_ours(void *o) {
    ours_run(o);
}
static void run_peer(void *p) {
    peer_run(p);
}

static int compare(const settings *s) {
    static double a[ROUNDS], b[ROUNDS];
    ours o = {0};
    double load[2] = {0}, mb[2] = {0}, largest = 0, apart = 0;
    need(aclInit(NULL), "aclInit");
    need(aclrtSetDevice(0), "aclrtSetDevice");
    ours_open(&o, s->om);
    peer *p = s->library ? peer_open(s->library, s->onnx, s->threads) : NULL;
    if (p)
        give_inputs(p, &o);
    int rounds = 0;
    watch = s->threads == 1 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC;
    for (double begin = now_ms(); rounds < s->rounds && (rounds < 5 || now_ms() - begin < 10e3); rounds++) {
        a[rounds] = take_turn(s->threads, run_ours, &o);
        b[rounds] = p ? take_turn(s->threads, run_peer, p) : 0;
    }
    watch = CLOCK_MONOTONIC;
    if (p)
        apart = difference(&o, p, &largest);
    measure_alone(s, "doppel", &load[0], &mb[0]);
    if (p)
        measure_alone(s, "peer", &load[1], &mb[1]);
    const char *name = strrchr(s->om, '/') ? strrchr(s->om, '/') + 1 : s->om;
    double a_median = median(a, rounds), b_median = median(b, rounds);
    printf("%-18s %8.3f %8.3f  %8.3f %8.3f  %5.2f %5.2f  %6.1f %6.1f %5.2f  %7.2f %7.2f %5.2f  %8.1e of %.3g\n", name,
           a[0], a_median, b[0], b_median, b[0] / a[0], b_median / a_median, mb[0], mb[1],
           mb[1] > 0 ? mb[0] / mb[1] : 0, load[0], load[1], load[1] > 0 ? load[0] / load[1] : 0, apart, largest);
    return 0;
}

static void print_head(int threads) {
    printf("threads: %d; times in ms; ratio: the peer's time / ours; memory in MB and load in ms: ours, the peer's, "
           "ours / the peer's\n",
           threads);
    printf("%-18s %17s  %17s  %11s  %19s  %21s  %s\n", "model", "Doppel min median", "peer min median", "ratio",
           "peak memory", "load", "largest difference");
}

int main(int argc, char **argv) {
    settings s = {.library = getenv("ONNXRUNTIME_LIBRARY"), .threads = 1, .rounds = 200};
    bool head = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--threads") == 0 && i + 1 < argc)
            s.threads = atoi(argv[++i]);
        else if (strcmp(argv[i], "--rounds") == 0 && i + 1 < argc)
            s.rounds = atoi(argv[++i]);
        else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc)
            s.only = argv[++i];
        else if (strcmp(argv[i], "--head") == 0)
            head = true;
        else if (!s.onnx)
            s.onnx = argv[i];
        else
            s.om = argv[i];
    }
    if (s.threads < 1 || s.rounds < 1 || s.rounds > ROUNDS || (!s.om && !head)) {
        fprintf(
            stderr,
            "usage: bench_models [--head] [--threads N] [--rounds 1..%d] [--only doppel|peer] MODEL.onnx MODEL.om\n",
            ROUNDS);
        return 2;
    }
    if (head)
        print_head(s.threads);
    if (!s.om)
        return 0;
    char number[16];
    snprintf(number, sizeof number, "%d", s.threads);
    setenv("DOPPEL_WORKERS", number, 1);
    return s.only ? run_alone(&s) : compare(&s);
}
