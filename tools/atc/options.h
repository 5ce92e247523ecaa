/*
 * options.h - the flags of atc, as the vendor names them.
 */
#ifndef TOOLS_ATC_OPTIONS_H
#define TOOLS_ATC_OPTIONS_H

#include <stdbool.h>

typedef enum option_kind {
    OPTION_USED,
    OPTION_ACCEPTED, /* says something about the NPU that changes nothing here */
    OPTION_REFUSED
} option_kind;

typedef struct option_row {
    const char *name;
    option_kind kind;
    const char *help; /* or why it is refused */
    const char *value;
} option_row;

/* All flags; `value` is set by options_read. */
extern option_row options[];

typedef enum options_result { OPTIONS_RUN, OPTIONS_DONE, OPTIONS_WRONG } options_result;

/* Reads "--name=value" and "--name value"; prints what is wrong, help and version. */
options_result options_read(int argc, char **argv);

/* The value of a flag that exists; NULL: not given. */
const char *option(const char *name);

#endif
