/* The report of this process: printed on stderr at exit, or kept up to date in a file for `doppel check`. */
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "device/check/check.h"
#include "device/check/leaks.h"
#include "device/check/order.h"
#include "device/check/state.h"

enum { EAGER_FINDINGS = 64, PAUSE_MS = 200 };

static struct {
    pthread_mutex_t lock;
    char dir[PATH_MAX], json[PATH_MAX], cwd[PATH_MAX];
    _Atomic bool started;
    bool dirty;
    uint64_t written_ms;
    unsigned written_findings;
} report = {.lock = PTHREAD_MUTEX_INITIALIZER};

const char *dp_check_report_path(const char *file) {
    size_t length = strlen(report.cwd);
    if (!file)
        return "?";
    if (length && strncmp(file, report.cwd, length) == 0 && file[length] == '/')
        return file + length + 1;
    return strncmp(file, "./", 2) == 0 ? file + 2 : file;
}

const char *dp_check_report_text(const char *sentence, char *text, size_t text_bytes) {
    size_t length = strlen(report.cwd), used = 0;
    while (*sentence && used + 1 < text_bytes) {
        if (length && strncmp(sentence, report.cwd, length) == 0 && sentence[length] == '/')
            sentence += length + 1;
        else
            text[used++] = *sentence++;
    }
    text[used] = '\0';
    return text;
}

static void print_place(FILE *out, const dp_check_place *place) {
    if (place->loc.line)
        fprintf(out, "  %s:%" PRIu32 ": %s\n", dp_check_report_path(place->loc.file), place->loc.line, place->what);
    else
        fprintf(out, "  (place unknown): %s\n", place->what);
}

static unsigned blocks_of(const dp_finding *f) { return (unsigned)__builtin_popcountll(f->block_bits) + f->other_blocks; }

static void print_context(FILE *out, const dp_finding *f) {
    if (!f->kernel[0])
        return;
    fprintf(out, "  %-7s kernel %s, block %" PRIu32 " (%s core %" PRIu32 "), launch %" PRIu64, "where", f->kernel, f->block,
            f->on_cube ? "cube" : "vector", f->core, f->launch);
    if (f->launch_loc.line)
        fprintf(out, " at %s:%" PRIu32, dp_check_report_path(f->launch_loc.file), f->launch_loc.line);
    fputc('\n', out);
}

static void print_finding(FILE *out, const dp_finding *f) {
    char count[32], text[sizeof f->sentence];
    if (f->place.loc.line)
        fprintf(out, "%s:%" PRIu32 ": ", dp_check_report_path(f->place.loc.file), f->place.loc.line);
    fprintf(out, "%s: %s\n", dp_check_kind_name(f->kind),
            dp_check_report_text(f->sentence, text, sizeof text));
    if (f->has_other || !f->place.loc.line)
        print_place(out, &f->place);
    if (f->has_other)
        print_place(out, &f->other);
    if (f->memory[0])
        fprintf(out, "  %-7s %s\n", "memory", dp_check_report_text(f->memory, text, sizeof text));
    print_context(out, f);
    if (f->cure[0])
        fprintf(out, "  %-7s %s\n", "cure", dp_check_report_text(f->cure, text, sizeof text));
    if (f->count > 1) {
        fprintf(out, "  %-7s %s times", "seen", dp_describe_count(f->count, count));
        if (f->kernel[0] && blocks_of(f) > 1)
            fprintf(out, ", in %u blocks", blocks_of(f));
        fputc('\n', out);
    }
    fputc('\n', out);
}

static void print_notes(FILE *out, const dp_check_totals *totals) {
    char count[32];
    if (dp_finding_dropped())
        fprintf(out, "doppel check: %s more findings are not shown (DOPPEL_CHECK_LIMIT)\n",
                dp_describe_count(dp_finding_dropped(), count));
    if (totals->lost_spans)
        fprintf(out, "doppel check: %s scattered accesses of device memory were not compared between blocks\n",
                dp_describe_count(totals->lost_spans, count));
    if (dp_order_gave_up())
        fprintf(out, "doppel check: more than 64 streams at a time, the order between them and the host was not checked\n");
    if (totals->no_memory)
        fprintf(out, "doppel check: host memory ran out, part of the run was not checked\n");
}

static void print_findings(FILE *out, const dp_check_totals *totals) {
    dp_finding f;
    for (unsigned i = 0; dp_finding_at(i, &f); i++)
        print_finding(out, &f);
    print_notes(out, totals);
}

static void print_summary(FILE *out, const dp_check_totals *totals) {
    char launches[32], instructions[32];
    unsigned findings = dp_finding_count();
    fprintf(out, "doppel check: %u finding%s in %s launch%s, %s instruction%s\n", findings, findings == 1 ? "" : "s",
            dp_describe_count(totals->launches, launches), totals->launches == 1 ? "" : "es",
            dp_describe_count(totals->instructions, instructions), totals->instructions == 1 ? "" : "s");
}

/* Whole or not at all: readers and crashes never see half a report. */
static bool replace_file(const char *path, void (*print)(FILE *out, const dp_check_totals *totals)) {
    char temporary[PATH_MAX + 16];
    dp_check_totals totals = dp_check_total();
    snprintf(temporary, sizeof temporary, "%s.new", path);
    FILE *out = fopen(temporary, "w");
    if (!out)
        return false;
    print(out, &totals);
    bool good = !ferror(out);
    good = fclose(out) == 0 && good && rename(temporary, path) == 0;
    return good;
}

/* First line: numbers for `doppel check`. */
static void print_for_parent(FILE *out, const dp_check_totals *totals) {
    fprintf(out, "%u %" PRIu64 " %" PRIu64 "\n", dp_finding_count(), totals->launches, totals->instructions);
    print_findings(out, totals);
}

static void print_json_object(FILE *out, const dp_check_totals *totals) {
    (void)totals;
    dp_check_report_json(out);
}

static void print_json_file(FILE *out, const dp_check_totals *totals) {
    (void)totals;
    fprintf(out, "{\"version\": 1, \"processes\": [\n");
    dp_check_report_json(out);
    fprintf(out, "]}\n");
}

static void write_for_parent(void) {
    char path[PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/%ld.txt", report.dir, (long)getpid());
    replace_file(path, print_for_parent);
    snprintf(path, sizeof path, "%s/%ld.json", report.dir, (long)getpid());
    replace_file(path, print_json_object);
}

static uint64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

void dp_check_report_touch(void) {
    if (!atomic_load(&report.started) || !report.dir[0])
        return;
    pthread_mutex_lock(&report.lock);
    unsigned findings = dp_finding_count();
    uint64_t now = now_ms();
    bool urgent = findings != report.written_findings && findings <= EAGER_FINDINGS;
    if (urgent || now - report.written_ms >= PAUSE_MS) {
        write_for_parent();
        report.written_ms = now;
        report.written_findings = findings;
    }
    pthread_mutex_unlock(&report.lock);
}

static void copy_path(char *into, const char *value) {
    if (value && strlen(value) < PATH_MAX)
        memcpy(into, value, strlen(value) + 1);
    else if (value)
        fprintf(stderr, "doppel check: a path of %zu characters is too long\n", strlen(value));
}

void dp_check_report_start(void) {
    copy_path(report.dir, getenv("DOPPEL_CHECK_DIR"));
    copy_path(report.json, getenv("DOPPEL_CHECK_JSON"));
    if (!getcwd(report.cwd, sizeof report.cwd))
        report.cwd[0] = '\0';
    atomic_store(&report.started, true);
    dp_check_report_touch();
}

void dp_check_flush(void) {
    if (!atomic_load(&report.started))
        return;
    pthread_mutex_lock(&report.lock);
    dp_check_totals totals = dp_check_total();
    if (report.dir[0]) {
        write_for_parent();
    } else {
        print_findings(stderr, &totals);
        print_summary(stderr, &totals);
    }
    if (report.json[0] && !replace_file(report.json, print_json_file))
        fprintf(stderr, "doppel check: cannot write %s\n", report.json);
    pthread_mutex_unlock(&report.lock);
}

/* After the program's own exit handlers, so that what they do is counted. */
static __attribute__((destructor)) void at_exit(void) {
    if (!atomic_load(&report.started))
        return;
    dp_order_flush();
    dp_leaks_report();
    dp_check_flush();
}
