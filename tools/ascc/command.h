/*
 * command.h - argument vectors and child processes.
 */
#ifndef ASCC_COMMAND_H
#define ASCC_COMMAND_H

#include "text.h"

typedef struct command {
    char **argv; /* NULL-terminated, owned copies */
    size_t count;
} command;

void command_add(command *c, const char *argument);
void command_addf(command *c, const char *format, ...) DP_PRINTF(2, 3);
/* Words of a compiler setting such as "ccache g++ -m64". */
void command_add_words(command *c, const char *words);
void command_add_all(command *c, const command *other);
void command_free(command *c);

/* As one line a shell would understand, on stderr. */
void command_print(const command *c);

/*
 * Runs the command and waits; standard output goes to the file `output` if it is not NULL. Returns its exit status;
 * 127 with a sentence if it cannot be started, 128 + n with a sentence if signal n ended it.
 */
int command_run(const command *c, const char *output);

#endif
