#include "command.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

void command_add(command *c, const char *argument) {
    c->argv = ascc_alloc(c->argv, (c->count + 2) * sizeof *c->argv);
    const size_t size = strlen(argument) + 1;
    c->argv[c->count] = memcpy(ascc_alloc(NULL, size), argument, size);
    c->argv[++c->count] = NULL;
}

void command_addf(command *c, const char *format, ...) {
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    const int size = vsnprintf(NULL, 0, format, args);
    char *buffer = ascc_alloc(NULL, (size_t)(size < 0 ? 0 : size) + 1);
    vsnprintf(buffer, (size_t)(size < 0 ? 0 : size) + 1, format, again);
    va_end(again);
    va_end(args);
    command_add(c, buffer);
    free(buffer);
}

void command_add_words(command *c, const char *words) {
    while (*words) {
        words += strspn(words, " \t");
        const size_t size = strcspn(words, " \t");
        if (size)
            command_addf(c, "%.*s", (int)size, words);
        words += size;
    }
}

void command_add_all(command *c, const command *other) {
    for (size_t i = 0; i < other->count; i++)
        command_add(c, other->argv[i]);
}

void command_free(command *c) {
    for (size_t i = 0; i < c->count; i++)
        free(c->argv[i]);
    free(c->argv);
    memset(c, 0, sizeof *c);
}

void command_print(const command *c) {
    text line = {0};
    for (size_t i = 0; i < c->count; i++) {
        const char *arg = c->argv[i];
        const bool plain = *arg && strspn(arg, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=/.,:@%") ==
                                       strlen(arg);
        text_puts(&line, plain ? " " : " '");
        for (; *arg; arg++)
            if (*arg == '\'')
                text_puts(&line, "'\\''");
            else
                text_add(&line, arg, 1);
        text_puts(&line, plain ? "" : "'");
    }
    fprintf(stderr, "%s\n", line.data ? line.data : "");
    text_free(&line);
}

int command_run(const command *c, const char *output) {
    fflush(NULL);
    const pid_t child = fork();
    if (child < 0) {
        fprintf(stderr, "ascc: error: cannot start %s: %s\n", c->argv[0], strerror(errno));
        return 127;
    }
    if (child == 0) {
        if (output) {
            const int file = open(output, O_WRONLY | O_CREAT | O_TRUNC, 0666);
            if (file < 0 || dup2(file, STDOUT_FILENO) < 0) {
                fprintf(stderr, "ascc: error: cannot write %s: %s\n", output, strerror(errno));
                _exit(127);
            }
            close(file);
        }
        execvp(c->argv[0], c->argv);
        fprintf(stderr, "ascc: error: cannot start %s: %s; set CXX (for C: CC) to a C++17 compiler, gcc >= 12 or clang >= 14\n",
                c->argv[0], strerror(errno));
        _exit(127);
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return 127;
    if (WIFSIGNALED(status)) {
        fprintf(stderr, "ascc: error: %s was ended by signal %d (%s)\n", c->argv[0], WTERMSIG(status),
                strsignal(WTERMSIG(status)));
        return 128 + WTERMSIG(status);
    }
    return WEXITSTATUS(status);
}
