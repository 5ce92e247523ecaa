/* doppel run: runs a compiled model once and shows what comes out. */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "doppel.h"
#include "input.h"
#include "npy.h"

static const char *const name = "doppel run";
static const char *const usage =
    "usage: doppel run [options] MODEL.om\n"
    "\n"
    "Runs a model that atc has compiled, once, and prints what comes out: type, shape, smallest,\n"
    "largest and mean value.\n"
    "\n"
    "  --output FOLDER    write every output there as a NumPy array (bfloat16 as float32)\n"
    "  --top N            also print the places of the N largest values of every output\n";

typedef struct options {
    const char *model, *folder;
    long top;
    model_choice choice;
    input_options input;
} options;

/* 1: run, 0: help was printed, -1: wrong usage. */
static int read_options(int argc, char **argv, options *o) {
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
        if (strcmp(argv[i], "--output") == 0) {
            if (!(o->folder = doppel_value(name, argc, argv, &i)))
                return -1;
        } else if (strcmp(argv[i], "--top") == 0) {
            if (!doppel_number(name, argc, argv, &i, 1, 1000, &o->top))
                return -1;
        } else if (!doppel_model_argument(name, argv[i], &o->model)) {
            return -1;
        }
    }
    return doppel_model_needed(name, o->model) ? 1 : -1;
}

static void print_output(const model_end *e) {
    char shape[128];
    double least = INFINITY, most = -INFINITY, sum = 0;
    size_t finite = 0;
    for (size_t i = 0; i < e->count; i++) {
        double value = model_number(e->type, e->host, i);
        if (!isfinite(value))
            continue;
        finite++;
        least = fmin(least, value);
        most = fmax(most, value);
        sum += value;
    }
    printf("%-30.30s %-10s %-20s", e->name, model_type_name(e->type),
           model_shape_text(e->dims, e->rank, shape, sizeof shape));
    if (finite)
        printf(" %11.5g %11.5g %11.5g", least, most, sum / (double)finite);
    if (finite < e->count)
        printf("  %zu of %zu values are NaN or infinite", e->count - finite, e->count);
    putchar('\n');
}

/* The largest values by their place, largest first; of equal ones the first. */
static void print_top(const model_end *e, long top) {
    bool *shown = calloc(e->count + 1, 1);
    for (long k = 0; shown && k < top && (size_t)k < e->count; k++) {
        size_t best = e->count;
        for (size_t i = 0; i < e->count; i++)
            if (!shown[i] &&
                (best == e->count || model_number(e->type, e->host, i) > model_number(e->type, e->host, best)))
                best = i;
        shown[best] = true;
        printf("    [%zu] %.6g\n", best, model_number(e->type, e->host, best));
    }
    free(shown);
}

static bool write_output(const model_end *e, const char *folder) {
    char file[200], path[PATH_MAX], message[NPY_MESSAGE];
    snprintf(file, sizeof file, "%.190s", e->name);
    for (char *c = file; *c; c++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-", *c) ||
            (c == file && *c == '.'))
            *c = '_';
    if (snprintf(path, sizeof path, "%s/%s.npy", folder, file) >= (int)sizeof path) {
        fprintf(stderr, "%s: --output: the path is too long\n", name);
        return false;
    }
    const char *descr = model_type_descr(e->type);
    const void *data = e->host;
    size_t bytes = e->bytes;
    float *wide = NULL;
    if (!descr) { /* bfloat16 */
        wide = malloc(e->count * sizeof *wide + 1);
        for (size_t i = 0; wide && i < e->count; i++)
            wide[i] = (float)model_number(e->type, e->host, i);
        descr = "<f4";
        data = wide;
        bytes = e->count * sizeof *wide;
    }
    bool good = data && npy_write(path, descr, e->dims, e->rank, data, bytes, message);
    if (!good)
        fprintf(stderr, "%s: %s\n", name, data ? message : "no memory to convert an output");
    else
        printf("    written to %s\n", path);
    free(wide);
    return good;
}

static bool show(const model *m, const options *o) {
    printf("%-30s %-10s %-20s %11s %11s %11s\n", "output", "type", "shape", "least", "most", "mean");
    bool good = true;
    for (int i = 0; i < m->n_outputs && good; i++) {
        print_output(&m->outputs[i]);
        if (o->top)
            print_top(&m->outputs[i], o->top);
        if (o->folder)
            good = write_output(&m->outputs[i], o->folder);
    }
    return good;
}

int doppel_run(int argc, char **argv) {
    options o = {0};
    model m;
    int what = read_options(argc, argv, &o);
    if (what <= 0)
        return what ? DOPPEL_USAGE : 0;
    if (o.folder && mkdir(o.folder, 0777) != 0 && errno != EEXIST) {
        fprintf(stderr, "%s: cannot make %s: %s\n", name, o.folder, strerror(errno));
        return 1;
    }
    bool good = model_open(name, o.model, &o.choice, &m) && input_fill(&m, &o.input, false);
    double start = model_clock_ms();
    good = good && model_run(&m);
    if (good) {
        printf("%s: loaded in %.2f ms, ran in %.2f ms\n", o.model, m.load_ms, model_clock_ms() - start);
        good = show(&m, &o);
    }
    model_close(&m);
    return good ? 0 : 1;
}
