#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doppel.h"

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *what;
    bool is_model; /* of models, whose options may be written --NAME=VALUE, too, as those of atc */
} commands[] = {
    {"check", doppel_check, "run a program and report the mistakes of its kernels", false},
    {"trace", doppel_trace, "run a program and estimate the chip's timeline", false},
    {"run", doppel_run, "run a compiled model on pictures or arrays", true},
    {"bench", doppel_bench, "time a compiled model", true},
    {"profile", doppel_profile, "show which nodes of a compiled model take the time", true},
    {"compare", doppel_compare, "show which nodes of a compiled model lose accuracy", true},
};

enum { COMMANDS = sizeof commands / sizeof commands[0] };

static void print_usage(FILE *out) {
    fputs("usage: doppel COMMAND [options] PROGRAM or MODEL [arguments]\n\ncommands:\n", out);
    for (unsigned i = 0; i < COMMANDS; i++)
        fprintf(out, "  %-8s %s\n", commands[i].name, commands[i].what);
    fputs("\n`doppel COMMAND --help` tells the options.\n", out);
}

/* Runs a command with every --NAME=VALUE as two arguments. */
static int run_split(int (*run)(int, char **), int argc, char **argv) {
    char **all = calloc(2 * (size_t)argc + 1, sizeof *all);
    int n = 0;
    if (!all) {
        fputs("doppel: no memory for the arguments\n", stderr);
        return 1;
    }
    for (int i = 0; i < argc; i++) {
        char *equals = strncmp(argv[i], "--", 2) == 0 ? strchr(argv[i], '=') : NULL;
        all[n++] = argv[i];
        if (equals) {
            *equals = '\0';
            all[n++] = equals + 1;
        }
    }
    int status = run(n, all);
    free(all);
    return status;
}

int main(int argc, char **argv) {
    if (argc < 2) {
        print_usage(stderr);
        return DOPPEL_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
        print_usage(stdout);
        return 0;
    }
    if (strcmp(argv[1], "--version") == 0) {
        puts("doppel " DOPPEL_VERSION);
        return 0;
    }
    for (unsigned i = 0; i < COMMANDS; i++) {
        if (strcmp(argv[1], commands[i].name) == 0)
            return commands[i].is_model ? run_split(commands[i].run, argc - 1, argv + 1)
                                        : commands[i].run(argc - 1, argv + 1);
    }
    fprintf(stderr, "doppel: there is no command \"%s\"\n", argv[1]);
    print_usage(stderr);
    return DOPPEL_USAGE;
}
