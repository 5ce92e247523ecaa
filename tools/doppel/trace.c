/* doppel trace: runs the program with the trace on, prints the table and draws the picture. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "doppel.h"

static const char *const name = "doppel trace";
static const char *const usage =
    "usage: doppel trace [options] PROGRAM [arguments]\n"
    "\n"
    "Runs PROGRAM, writes down every instruction of its kernels, and estimates when the chip would have run them: a table on\n"
    "standard output and, in a folder, summary.txt, trace.json (ui.perfetto.dev, chrome://tracing), timeline.svg and\n"
    "timeline.png. An estimate from public figures, not cycle-accurate. The exit status is the program's own.\n"
    "\n"
    "  -o FOLDER      where the files go (default doppel-trace); made if it does not exist\n"
    "  --costs FILE   another table of instruction costs\n"
    "  --             end of options\n";

/* Index of the program in argv; 0: help was printed; -1: wrong usage. */
static int read_options(int argc, char **argv, const char **out_folder) {
    for (int i = 1; i < argc; i++) {
        const char *option = argv[i];
        if (strcmp(option, "--") == 0)
            return i + 1;
        if (option[0] != '-')
            return i;
        if (strcmp(option, "--help") == 0 || strcmp(option, "-h") == 0) {
            fputs(usage, stdout);
            return 0;
        }
        bool is_folder = strcmp(option, "-o") == 0, is_costs = strcmp(option, "--costs") == 0;
        if (!is_folder && !is_costs) {
            fprintf(stderr, "%s: there is no option %s\n", name, option);
            return -1;
        }
        if (i + 1 >= argc) {
            fprintf(stderr, "%s: %s needs a value\n", name, option);
            return -1;
        }
        const char *value = argv[++i];
        if (is_folder) {
            *out_folder = value;
        } else if (access(value, R_OK) != 0) {
            fprintf(stderr, "%s: --costs %s: %s\n", name, value, strerror(errno));
            return -1;
        } else {
            setenv("DOPPEL_COSTS", value, 1);
        }
    }
    return argc;
}

/* Makes the folder and its parents, and removes what an earlier trace left, so that nothing stale is shown. */
static bool prepare(const char *folder) {
    static const char *const files[] = {"summary.txt", "trace.json", "timeline.svg", "timeline.png"};
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/", folder) >= (int)sizeof path) {
        fprintf(stderr, "%s: -o: the path is too long\n", name);
        return false;
    }
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(path, 0777) != 0 && errno != EEXIST) {
            fprintf(stderr, "%s: cannot make %s: %s\n", name, path, strerror(errno));
            return false;
        }
        *slash = '/';
    }
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char file[PATH_MAX + 16];
        snprintf(file, sizeof file, "%s%s", path, files[i]);
        if (unlink(file) != 0 && errno != ENOENT) {
            fprintf(stderr, "%s: cannot replace %s: %s\n", name, file, strerror(errno));
            return false;
        }
    }
    return true;
}

static bool print_file(const char *path) {
    FILE *in = fopen(path, "r");
    if (!in)
        return false;
    char buffer[4096];
    size_t n;
    while ((n = fread(buffer, 1, sizeof buffer, in)) > 0)
        fwrite(buffer, 1, n, stdout);
    fclose(in);
    return true;
}

int doppel_trace(int argc, char **argv) {
    const char *folder = "doppel-trace";
    int program = read_options(argc, argv, &folder);
    if (program == 0)
        return 0;
    if (program < 0 || program >= argc) {
        if (program >= argc)
            fprintf(stderr, "%s: which program?\n", name);
        fputs(usage, stderr);
        return DOPPEL_USAGE;
    }
    if (!prepare(folder))
        return DOPPEL_USAGE;
    char absolute[PATH_MAX];
    if (!realpath(folder, absolute)) /* the program may change its folder */
        snprintf(absolute, sizeof absolute, "%s", folder);
    setenv("DOPPEL_MODE", "trace", 1);
    setenv("DOPPEL_TRACE_DIR", absolute, 1);
    int signal, status = doppel_start(name, argv + program, &signal);
    if (status == DOPPEL_NOT_FOUND || status == DOPPEL_NOT_EXECUTABLE)
        return status;
    if (signal)
        fprintf(stderr, "%s: %s was ended by signal %d (%s)\n", name, argv[program], signal, strsignal(signal));
    char summary[PATH_MAX + 16], svg[PATH_MAX + 16], png[PATH_MAX + 16];
    snprintf(summary, sizeof summary, "%s/summary.txt", folder);
    snprintf(svg, sizeof svg, "%s/timeline.svg", folder);
    snprintf(png, sizeof png, "%s/timeline.png", folder);
    fflush(stdout);
    if (!print_file(summary)) {
        fprintf(stderr, "%s: %s left no trace: %s\n", name, argv[program],
                signal ? "it did not reach its end" : "it never used the Ascend runtime (is it linked with libascendcl.so, and does it call aclrtSetDevice?)");
        return status ? status : 1;
    }
    bool drawn = access(svg, R_OK) == 0 && doppel_draw_png(name, svg, png);
    printf("\nwritten to %s: summary.txt trace.json timeline.svg%s\n", folder, drawn ? " timeline.png" : "");
    return status;
}
