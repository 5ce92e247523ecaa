/* doppel compare: which nodes of a compiled model lose accuracy. */
#include "doppel/compare.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "doppel.h"
#include "input.h"
#include "text.h"

static const char *const name = "doppel compare";
static const char *const usage =
    "usage: doppel compare [options] MODEL.onnx MODEL.om\n"
    "\n"
    "Runs a compiled model, computes the ONNX file it was made from node by node in double precision,\n"
    "and sets the values of both side by side: the first that drifts, and the worst. Inputs that are\n"
    "not given are random numbers. The exit status is 1 when a value drifts.\n"
    "\n"
    "  --tolerance X      a value drifts when its largest error is more than X times its largest\n"
    "                     magnitude (default 0.001)\n"
    "  --rows N           print at most so many nodes, those with the largest errors, in the order in\n"
    "                     which they run (default 20)\n";

typedef struct options {
    const char *onnx, *model;
    long rows;
    model_choice choice;
    double tolerance;
    input_options input;
} options;

typedef struct line {
    dp_compare_row row; /* its texts are copies */
    bool shown;
} line;

typedef struct lines {
    line *all;
    size_t n, room;
    bool failed; /* memory */
    double began_ms;
    bool on_terminal, has_progress;
} lines;

static int read_tolerance(const char *text, double *out) {
    char *end;
    *out = text ? strtod(text, &end) : -1;
    if (text && end != text && !*end && *out >= 0)
        return 1;
    if (text)
        fprintf(stderr, "%s: --tolerance is \"%s\", expected a number from 0\n", name, text);
    return -1;
}

static int take_file(options *o, const char *argument) {
    if (argument[0] == '-' && argument[1]) {
        fprintf(stderr, "%s: there is no option %s; see %s --help\n", name, argument, name);
        return -1;
    }
    if (o->onnx && o->model) {
        fprintf(stderr, "%s: \"%s\" is one argument too many\n", name, argument);
        return -1;
    }
    *(o->onnx ? &o->model : &o->onnx) = argument;
    return 1;
}

/* 1: run, 0: help was printed, -1: wrong usage. */
static int read_options(int argc, char **argv, options *o) {
    o->rows = 20;
    o->tolerance = 1e-3;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            printf("%s%s%s", usage, model_usage, input_usage);
            return 0;
        }
        int taken = input_option(name, argc, argv, &i, &o->input);
        taken = taken ? taken : model_option(name, argc, argv, &i, &o->choice);
        if (!taken && strcmp(argv[i], "--tolerance") == 0)
            taken = read_tolerance(doppel_value(name, argc, argv, &i), &o->tolerance);
        else if (!taken && strcmp(argv[i], "--rows") == 0)
            taken = doppel_number(name, argc, argv, &i, 1, 1000000, &o->rows) ? 1 : -1;
        else if (!taken)
            taken = take_file(o, argv[i]);
        if (taken < 0)
            return -1;
    }
    if (o->model)
        return 1;
    fprintf(stderr, "%s: two files are needed, MODEL.onnx and MODEL.om; see %s --help\n", name, name);
    return -1;
}

static void keep_row(const dp_compare_row *row, void *data) {
    lines *l = data;
    if (l->n == l->room) {
        size_t room = l->room ? 2 * l->room : 256;
        line *more = realloc(l->all, room * sizeof *more);
        if (!more) {
            l->failed = true;
            return;
        }
        l->all = more;
        l->room = room;
    }
    line *to = &l->all[l->n++];
    *to = (line){.row = *row};
    to->row.node = strdup(row->node ? row->node : "");
    to->row.type = strdup(row->type);
    to->row.value = strdup(row->value);
    l->failed |= !to->row.node || !to->row.type || !to->row.value;
}

static void show_progress(unsigned done, unsigned of, void *data) {
    lines *l = data;
    if (!l->on_terminal || model_clock_ms() - l->began_ms < 2000)
        return;
    l->has_progress = true;
    fprintf(stderr, done < of ? "\r%s: %u of %u nodes" : "\r\033[K", name, done, of);
}

static int by_error(const void *a, const void *b) {
    const line *x = *(line *const *)a, *y = *(line *const *)b;
    if (x->row.relative != y->row.relative)
        return x->row.relative < y->row.relative ? 1 : -1;
    return x < y ? -1 : x > y;
}

/* Marks the worst rows, the outputs among them. */
static void choose(lines *l, long rows) {
    line **order = malloc((l->n + 1) * sizeof *order);
    if (!order)
        return;
    for (size_t i = 0; i < l->n; i++)
        order[i] = &l->all[i];
    qsort(order, l->n, sizeof *order, by_error);
    for (size_t i = 0; i < l->n && i < (size_t)rows; i++)
        order[i]->shown = true;
    free(order);
}

static void print_row(const dp_compare_row *r, const char *mark) {
    char type[20];
    printf("%-2s%10.2e %10.2e %10.2e %12.9f  %-6s %-18s ", mark, r->relative, r->input_relative, r->max_error,
           r->cosine, r->is_double ? "double" : "float", text_tail(r->type, 18, type));
    text_print_last(*r->node ? r->node : r->value, 75);
}

static bool print_all(const options *o, lines *l, const dp_compare_totals *t) {
    const line *first = NULL;
    for (size_t i = 0; i < l->n && !first; i++)
        if (!(l->all[i].row.relative <= o->tolerance))
            first = &l->all[i];
    printf("%s: %llu values compared; %llu have no counterpart\n(fused, renamed or rearranged in the compiled model)\n",
           o->model, (unsigned long long)t->compared, (unsigned long long)t->absent);
    if (t->in_float)
        printf("the reference of %llu nodes is float: their types have no double form\n",
               (unsigned long long)t->in_float);
    if (first)
        printf("first drift: node \"%s\" (%s), value \"%s\":\n    error %.2e of the largest magnitude, that of its "
               "inputs %.2e\n",
               first->row.node, first->row.type, first->row.value, first->row.relative, first->row.input_relative);
    else
        printf("no value drifts: every largest error is at most %g of the largest magnitude\n", o->tolerance);
    choose(l, o->rows);
    printf("\n  %10s %10s %10s %12s  %-6s %-18s %s\n", "error", "of inputs", "absolute", "cosine", "ref.", "type",
           "node");
    for (size_t i = 0; i < l->n; i++)
        if (l->all[i].shown)
            print_row(&l->all[i].row, &l->all[i] == first ? ">" : "");
    printf("\noutputs:\n");
    for (size_t i = 0; i < l->n; i++)
        if (l->all[i].row.is_output)
            printf("  %10.2e %10.2e %12.9f  %s\n", l->all[i].row.relative, l->all[i].row.max_error,
                   l->all[i].row.cosine, l->all[i].row.value);
    return !first;
}

static void free_lines(lines *l) {
    for (size_t i = 0; i < l->n; i++) {
        free((char *)l->all[i].row.node);
        free((char *)l->all[i].row.type);
        free((char *)l->all[i].row.value);
    }
    free(l->all);
}

static int compare(const options *o, model *m) {
    const void *inputs[MODEL_ENDS];
    const int64_t *dims[MODEL_ENDS];
    int ranks[MODEL_ENDS];
    char message[2048];
    lines l = {.began_ms = model_clock_ms(), .on_terminal = isatty(STDERR_FILENO)};
    dp_compare_totals totals;
    for (int i = 0; i < m->n_inputs; i++) {
        inputs[i] = m->inputs[i].host;
        dims[i] = m->inputs[i].dims;
        ranks[i] = m->inputs[i].rank;
    }
    const dp_compare_options c = {o->onnx, o->model, inputs, keep_row, show_progress, &l, dims, ranks};
    bool good = dp_compare_models(&c, &totals, message, sizeof message), drifts = false;
    if (l.has_progress)
        fputs("\r\033[K", stderr);
    if (!good || l.failed)
        fprintf(stderr, "%s: %s\n", name, good ? "no memory for the table" : message);
    else
        drifts = !print_all(o, &l, &totals);
    free_lines(&l);
    return good && !l.failed ? drifts : DOPPEL_USAGE;
}

int doppel_compare(int argc, char **argv) {
    options o = {0};
    model m;
    int what = read_options(argc, argv, &o), status = DOPPEL_USAGE;
    if (what <= 0)
        return what ? DOPPEL_USAGE : 0;
    if (model_open(name, o.model, &o.choice, &m) && input_fill(&m, &o.input, true))
        status = compare(&o, &m);
    model_close(&m);
    return status;
}
