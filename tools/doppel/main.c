#include <stdio.h>
#include <string.h>

#include "doppel.h"

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *what;
} commands[] = {
    {"check", doppel_check, "run a program and report the mistakes of its kernels"},
    {"trace", doppel_trace, "run a program and estimate the chip's timeline"},
    {"run", doppel_run, "run a compiled model on pictures or arrays"},
    {"bench", doppel_bench, "time a compiled model"},
    {"profile", doppel_profile, "show which nodes of a compiled model take the time"},
    {"compare", doppel_compare, "show which nodes of a compiled model lose accuracy"},
};

enum { COMMANDS = sizeof commands / sizeof commands[0] };

static void print_usage(FILE *out) {
    fputs("usage: doppel COMMAND [options] PROGRAM or MODEL [arguments]\n\ncommands:\n", out);
    for (unsigned i = 0; i < COMMANDS; i++)
        fprintf(out, "  %-8s %s\n", commands[i].name, commands[i].what);
    fputs("\n`doppel COMMAND --help` tells the options.\n", out);
}

int main(int argc, char **argv) {
    if (argc < 2) {
        print_usage(stderr);
        return DOPPEL_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        print_usage(stdout);
        return 0;
    }
    if (strcmp(argv[1], "--version") == 0) {
        puts("doppel " DOPPEL_VERSION);
        return 0;
    }
    for (unsigned i = 0; i < COMMANDS; i++) {
        if (strcmp(argv[1], commands[i].name) == 0)
            return commands[i].run(argc - 1, argv + 1);
    }
    fprintf(stderr, "doppel: there is no command \"%s\"\n", argv[1]);
    print_usage(stderr);
    return DOPPEL_USAGE;
}
