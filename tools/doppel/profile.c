/* doppel profile: which nodes of a model take the time. */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "bench.h"
#include "doppel.h"
#include "text.h"

static const char *const name = "doppel profile";
static const char *const usage =
    "usage: doppel profile [options] MODEL.om\n"
    "\n"
    "Runs a model that atc has compiled some times and prints where the time goes, by type of operator\n"
    "and node by node, slowest first; all runs are in the timeline. Measured on this machine. Inputs\n"
    "that are not given are random numbers.\n"
    "\n"
    "  --runs N           count so many runs, after one to warm up (default 10)\n"
    "  --rows N           print at most so many nodes (default 20)\n"
    "  -o FILE.json       where the timeline goes, for ui.perfetto.dev or chrome://tracing (default\n"
    "                     MODEL.profile.json)\n";

typedef struct options {
    bench_options bench;
    long rows;
    const char *timeline;
} options;

/* One node, or one type. Texts belong to the timeline. */
typedef struct row {
    const char *node, *type, *path, *tensors;
    double us;
    long calls;
} row;

typedef struct rows {
    row *all;
    int n;
} rows;

/* 1: run, 0: help was printed, -1: wrong usage. */
static int read_options(int argc, char **argv, options *o) {
    o->bench.runs = 10;
    o->rows = 20;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            printf("%s%s%s", usage, model_usage, input_usage);
            return 0;
        }
        int taken = input_option(name, argc, argv, &i, &o->bench.input);
        taken = taken ? taken : model_option(name, argc, argv, &i, &o->bench.choice);
        if (taken < 0)
            return -1;
        if (taken)
            continue;
        if (strcmp(argv[i], "--runs") == 0) {
            if (!doppel_number(name, argc, argv, &i, 1, 10000, &o->bench.runs))
                return -1;
        } else if (strcmp(argv[i], "--rows") == 0) {
            if (!doppel_number(name, argc, argv, &i, 1, 1000000, &o->rows))
                return -1;
        } else if (strcmp(argv[i], "-o") == 0) {
            if (!(o->timeline = doppel_value(name, argc, argv, &i)))
                return -1;
        } else if (!doppel_model_argument(name, argv[i], &o->bench.model)) {
            return -1;
        }
    }
    return doppel_model_needed(name, o->bench.model) ? 1 : -1;
}

/* In a process of its own, so that the library writes its timeline when that ends. The times come back through a pipe.
 */
static int run_child(const options *o, const char *timeline, int times_to) {
    model m;
    bench_times times;
    setenv("DOPPEL_PROFILE", timeline, 1);
    bool good = model_open(name, o->bench.model, &o->bench.choice, &m) && input_fill(&m, &o->bench.input, true) &&
                model_fill(&m) && bench_measure(&m, o->bench.runs, &times);
    model_close(&m);
    good = good && write(times_to, &times, sizeof times) == (ssize_t)sizeof times;
    return good ? 0 : 1;
}

static bool record(const options *o, const char *folder, bench_times *out_times) {
    char places[2 * PATH_MAX + 64];
    int times[2], status = 1;
    snprintf(places, sizeof places, "%s/timeline.json,%s/table.txt", folder, folder);
    if (pipe(times) != 0) {
        fprintf(stderr, "%s: no pipe: %s\n", name, strerror(errno));
        return false;
    }
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        exit(run_child(o, places, times[1]));
    close(times[1]);
    bool good = child > 0 && read(times[0], out_times, sizeof *out_times) == (ssize_t)sizeof *out_times;
    close(times[0]);
    if (child < 0)
        fprintf(stderr, "%s: cannot start a process: %s\n", name, strerror(errno));
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    if (child > 0 && WIFSIGNALED(status))
        fprintf(stderr, "%s: the run was ended by signal %d (%s)\n", name, WTERMSIG(status),
                strsignal(WTERMSIG(status)));
    return good && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static char *read_file(const char *path, size_t *out_bytes) {
    FILE *file = fopen(path, "rb");
    long bytes = file && fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
    char *text = bytes >= 0 ? malloc((size_t)bytes + 1) : NULL;
    if (text) {
        rewind(file);
        *out_bytes = fread(text, 1, (size_t)bytes, file);
        text[*out_bytes] = '\0';
    }
    if (file)
        fclose(file);
    return text;
}

static bool write_file(const char *path, const char *text, size_t bytes) {
    FILE *file = fopen(path, "wb");
    bool good = file && fwrite(text, 1, bytes, file) == bytes;
    if ((file && fclose(file) != 0) || !good) {
        fprintf(stderr, "%s: cannot write %s: %s\n", name, path, strerror(errno));
        return false;
    }
    return true;
}

static const char *text_of(const cJSON *object, const char *key) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    return cJSON_IsString(item) ? item->valuestring : "";
}

static int by_identity(const void *a, const void *b) {
    const row *x = a, *y = b;
    int order = strcmp(x->node, y->node);
    order = order ? order : strcmp(x->type, y->type);
    order = order ? order : strcmp(x->tensors, y->tensors);
    return order;
}
static int by_type(const void *a, const void *b) {
    return strcmp(((const row *)a)->type, ((const row *)b)->type);
}
static int by_time(const void *a, const void *b) {
    double x = ((const row *)a)->us, y = ((const row *)b)->us;
    return (x < y) - (x > y);
}

/* Rows that are the same become one; then slowest first. */
static void merge(rows *r, int (*same)(const void *, const void *)) {
    int n = 0;
    qsort(r->all, (size_t)r->n, sizeof r->all[0], same);
    for (int i = 0; i < r->n; i++) {
        if (n > 0 && same(&r->all[n - 1], &r->all[i]) == 0) {
            r->all[n - 1].us += r->all[i].us;
            r->all[n - 1].calls += r->all[i].calls;
        } else {
            r->all[n++] = r->all[i];
        }
    }
    r->n = n;
    qsort(r->all, (size_t)r->n, sizeof r->all[0], by_time);
}

/* The operators of all runs but those before the last `runs`: what warmed up is left out. */
static bool gather(const cJSON *events, long runs, rows *out) {
    int n = 0;
    const cJSON *event;
    cJSON_ArrayForEach(event, events) n += strcmp(text_of(event, "cat"), "operator") == 0;
    int skip = (int)(n / (runs + 1)); /* one run to warm up */
    out->all = calloc((size_t)n + 1, sizeof *out->all);
    out->n = 0;
    if (!out->all)
        return false;
    cJSON_ArrayForEach(event, events) {
        if (strcmp(text_of(event, "cat"), "operator") != 0 || skip-- > 0)
            continue;
        const cJSON *args = cJSON_GetObjectItemCaseSensitive(event, "args");
        const cJSON *us = cJSON_GetObjectItemCaseSensitive(event, "dur");
        out->all[out->n++] = (row){text_of(args, "node"),    text_of(event, "name"),   text_of(args, "by"),
                                   text_of(args, "tensors"), us ? us->valuedouble : 0, 1};
    }
    merge(out, by_identity);
    return true;
}

static void print_nodes(const rows *r, double all_us, long runs, long most) {
    char type[24], path[20];
    double sum = 0;
    printf("\n%7s %7s %10s  %-22s %-17s %s\n", "share", "sum", "ms a run", "type", "by", "node");
    for (int i = 0; i < r->n && i < most; i++) {
        const row *x = &r->all[i];
        sum += x->us;
        printf("%6.1f%% %6.1f%% %10.4f  %-22s %-17s ", 100 * x->us / all_us, 100 * sum / all_us,
               x->us / (double)runs * 1e-3, text_tail(x->type, 22, type), text_tail(x->path, 17, path));
        text_print_last(*x->node ? x->node : "-", 69);
    }
    if (r->n > most)
        printf("%6.1f%% %6.1f%% %10.4f  in %d more: --rows %d shows them\n", 100 * (all_us - sum) / all_us, 100.0,
               (all_us - sum) / (double)runs * 1e-3, r->n - (int)most, r->n);
}

static bool print_tables(cJSON *timeline, const options *o, const bench_times *times) {
    rows nodes, types = {0};
    double all_us = 0;
    char type[24];
    if (!gather(cJSON_GetObjectItemCaseSensitive(timeline, "traceEvents"), times->runs, &nodes))
        return false;
    for (int i = 0; i < nodes.n; i++)
        all_us += nodes.all[i].us;
    printf("%s: %ld runs, %.3f ms a run (median), %.3f ms of it in %d operators\n", o->bench.model, times->runs,
           times->median_ms, all_us / (double)times->runs * 1e-3, nodes.n);
    types.all = malloc(((size_t)nodes.n + 1) * sizeof *types.all);
    if (types.all) {
        memcpy(types.all, nodes.all, (size_t)nodes.n * sizeof *types.all);
        types.n = nodes.n;
        merge(&types, by_type);
        printf("\n%7s %10s %7s  %s\n", "share", "ms a run", "calls", "type");
        for (int i = 0; i < types.n && i < 10; i++)
            printf("%6.1f%% %10.4f %7ld  %s\n", 100 * types.all[i].us / all_us,
                   types.all[i].us / (double)times->runs * 1e-3, types.all[i].calls / times->runs,
                   text_tail(types.all[i].type, 22, type));
    }
    print_nodes(&nodes, all_us, times->runs, o->rows);
    free(nodes.all);
    free(types.all);
    return true;
}

/* "net.om" and no -o: "net.profile.json", here. */
static void default_timeline(const char *path, char *out, size_t out_bytes) {
    const char *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path, *dot = strrchr(file, '.');
    snprintf(out, out_bytes, "%.*s.profile.json", dot && dot > file ? (int)(dot - file) : (int)strlen(file), file);
}

int doppel_profile(int argc, char **argv) {
    options o = {0};
    bench_times times;
    char folder[PATH_MAX], timeline[PATH_MAX + 32], path[PATH_MAX + 32];
    int what = read_options(argc, argv, &o);
    if (what <= 0)
        return what ? DOPPEL_USAGE : 0;
    if (!doppel_scratch_create(name, folder, sizeof folder))
        return 1;
    default_timeline(o.bench.model, timeline, sizeof timeline);
    bool good = record(&o, folder, &times);
    size_t bytes = 0;
    snprintf(path, sizeof path, "%s/timeline.json", folder);
    char *text = good ? read_file(path, &bytes) : NULL;
    cJSON *json = text ? cJSON_Parse(text) : NULL;
    if (good && !json) {
        fprintf(stderr, "%s: the run left no timeline that can be read\n", name);
        good = false;
    }
    good = good && print_tables(json, &o, &times) && write_file(o.timeline ? o.timeline : timeline, text, bytes);
    if (good)
        printf("\nwritten to %s: the timeline of all runs, for ui.perfetto.dev\n", o.timeline ? o.timeline : timeline);
    cJSON_Delete(json);
    free(text);
    doppel_scratch_remove(folder);
    return good ? 0 : 1;
}
