/* doppel check: runs the program with the checker on and prints what it found. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doppel.h"

static const char *const name = "doppel check";
static const char *const usage =
    "usage: doppel check [options] PROGRAM [arguments]\n"
    "\n"
    "Runs PROGRAM with the checker on. The exit status is 1 when something was found, else the program's own.\n"
    "\n"
    "  --strict       do not assume the synchronisation the vendor's compiler inserts (MTE2<->S, MTE3<->S, V<->S, V->V)\n"
    "  --nan          report where NaN or infinity is born\n"
    "  --overflow     report results that exceed the range of half\n"
    "  --json FILE    write the findings as JSON, too\n"
    "  --limit N      keep at most N different findings (default 200)\n"
    "  --             end of options\n";

typedef struct totals {
    unsigned long long findings, launches, instructions;
    unsigned reports;
} totals;

/* argv[*at] is an option with a value; NULL (said on stderr) when the value is missing. */
static const char *value_of(int argc, char **argv, int *at) {
    if (*at + 1 < argc)
        return argv[++*at];
    fprintf(stderr, "%s: %s needs a value\n", name, argv[*at]);
    return NULL;
}

/* Sets the environment. Index of the program in argv; 0: help was printed; -1: wrong usage. */
static int read_options(int argc, char **argv, const char **out_json) {
    for (int i = 1; i < argc; i++) {
        const char *option = argv[i], *value;
        if (strcmp(option, "--") == 0)
            return i + 1;
        if (option[0] != '-')
            return i;
        if (strcmp(option, "--help") == 0 || strcmp(option, "-h") == 0) {
            fputs(usage, stdout);
            return 0;
        }
        if (strcmp(option, "--strict") == 0) {
            setenv("DOPPEL_CHECK_STRICT", "1", 1);
        } else if (strcmp(option, "--nan") == 0) {
            setenv("DOPPEL_CHECK_NAN", "1", 1);
        } else if (strcmp(option, "--overflow") == 0) {
            setenv("DOPPEL_CHECK_OVERFLOW", "1", 1);
        } else if (strcmp(option, "--json") == 0) {
            if (!(*out_json = value_of(argc, argv, &i)))
                return -1;
        } else if (strcmp(option, "--limit") == 0) {
            char *end;
            if (!(value = value_of(argc, argv, &i)))
                return -1;
            unsigned long limit = strtoul(value, &end, 10);
            if (*end || !limit || limit > 100000) {
                fprintf(stderr, "%s: --limit is \"%s\", expected 1 to 100000\n", name, value);
                return -1;
            }
            setenv("DOPPEL_CHECK_LIMIT", value, 1);
        } else {
            fprintf(stderr, "%s: there is no option %s\n", name, option);
            return -1;
        }
    }
    return argc;
}

static void copy_rest(FILE *from, FILE *to) {
    char buffer[8192];
    size_t n;
    while ((n = fread(buffer, 1, sizeof buffer, from)) > 0)
        fwrite(buffer, 1, n, to);
}

static bool ends_in(const char *text, const char *end) {
    size_t n = strlen(text), m = strlen(end);
    return n > m && strcmp(text + n - m, end) == 0;
}

/* The text reports of all processes of the program. */
static void print_reports(const char *dir, totals *sum) {
    struct dirent **entries = NULL;
    int count = scandir(dir, &entries, NULL, versionsort);
    for (int i = 0; i < count; i++) {
        char path[PATH_MAX + 300];
        snprintf(path, sizeof path, "%s/%s", dir, entries[i]->d_name);
        FILE *file = ends_in(path, ".txt") ? fopen(path, "r") : NULL;
        char line[128];
        totals t = {0};
        if (file && fgets(line, sizeof line, file) &&
            sscanf(line, "%llu %llu %llu", &t.findings, &t.launches, &t.instructions) == 3) {
            sum->findings += t.findings;
            sum->launches += t.launches;
            sum->instructions += t.instructions;
            sum->reports++;
            copy_rest(file, stderr);
        }
        if (file)
            fclose(file);
        free(entries[i]);
    }
    free(entries);
}

static bool write_json(const char *dir, const char *path) {
    FILE *out = fopen(path, "w");
    if (!out) {
        fprintf(stderr, "%s: cannot write %s: %s\n", name, path, strerror(errno));
        return false;
    }
    struct dirent **entries = NULL;
    int count = scandir(dir, &entries, NULL, versionsort), written = 0;
    fputs("{\"version\": 1, \"processes\": [\n", out);
    for (int i = 0; i < count; i++) {
        char file_path[PATH_MAX + 300];
        snprintf(file_path, sizeof file_path, "%s/%s", dir, entries[i]->d_name);
        FILE *file = ends_in(file_path, ".json") ? fopen(file_path, "r") : NULL;
        if (file) {
            fputs(written++ ? ",\n" : "", out);
            copy_rest(file, out);
            fclose(file);
        }
        free(entries[i]);
    }
    free(entries);
    fputs("]}\n", out);
    bool good = !ferror(out);
    if (fclose(out) != 0 || !good) {
        fprintf(stderr, "%s: cannot write %s: %s\n", name, path, strerror(errno));
        return false;
    }
    return true;
}

static const char *with_commas(unsigned long long value, char text[32]) {
    char digits[24];
    int n = snprintf(digits, sizeof digits, "%llu", value), out = 0;
    for (int i = 0; i < n; i++) {
        if (i && (n - i) % 3 == 0)
            text[out++] = ',';
        text[out++] = digits[i];
    }
    text[out] = '\0';
    return text;
}

static void print_summary(const totals *sum, const char *program, int signal) {
    char launches[32], instructions[32];
    if (signal)
        fprintf(stderr, "%s: %s was ended by signal %d (%s)\n", name, program, signal, strsignal(signal));
    if (!sum->reports) {
        fprintf(stderr, "%s: %s never used the Ascend runtime: nothing was checked (is it linked with "
                        "libascendcl.so, and does it call aclrtSetDevice?)\n", name,
                program);
        return;
    }
    fprintf(stderr, "%s: %llu finding%s in %s launch%s, %s instruction%s\n", name, sum->findings, sum->findings == 1 ? "" : "s",
            with_commas(sum->launches, launches), sum->launches == 1 ? "" : "es", with_commas(sum->instructions, instructions),
            sum->instructions == 1 ? "" : "s");
}

int doppel_check(int argc, char **argv) {
    const char *json = NULL;
    char dir[PATH_MAX];
    int program = read_options(argc, argv, &json);
    if (program == 0)
        return 0;
    if (program < 0 || program >= argc) {
        if (program >= argc)
            fprintf(stderr, "%s: which program?\n", name);
        fputs(usage, stderr);
        return DOPPEL_USAGE;
    }
    if (!doppel_scratch_create(name, dir, sizeof dir))
        return DOPPEL_USAGE;
    setenv("DOPPEL_MODE", "check", 1);
    setenv("DOPPEL_CHECK_DIR", dir, 1);
    unsetenv("DOPPEL_CHECK_JSON"); /* this program gathers all processes' */
    int signal, status = doppel_start(name, argv + program, &signal);
    totals sum = {0};
    fflush(stdout);
    print_reports(dir, &sum);
    bool written = !json || write_json(dir, json);
    bool started = signal || (status != DOPPEL_NOT_FOUND && status != DOPPEL_NOT_EXECUTABLE) || sum.reports;
    if (started)
        print_summary(&sum, argv[program], signal);
    doppel_scratch_remove(dir);
    if (sum.findings)
        return 1;
    return written ? status : DOPPEL_USAGE;
}
