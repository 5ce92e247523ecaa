/*
 * options.h - the command line of ascc.
 */
#ifndef ASCC_OPTIONS_H
#define ASCC_OPTIONS_H

#include "command.h"

typedef enum input_kind {
    INPUT_ASC,   /* kernel language, C++ */
    INPUT_CPP,
    INPUT_C,
    INPUT_LINK   /* object, archive, library or linker flag */
} input_kind;

typedef struct input {
    input_kind kind;
    char *path; /* for INPUT_LINK: the argument as the linker gets it */
} input;

typedef enum driver_mode { MODE_LINK, MODE_OBJECT, MODE_ASSEMBLY, MODE_PREPROCESS, MODE_REWRITE, MODE_SYNTAX } driver_mode;

typedef struct options {
    driver_mode mode;
    input *inputs;
    size_t input_count;
    char *output;     /* -o */
    char *standard;   /* -std= */
    char *header_dir; /* --launch-headers= */
    command common;       /* flags for every step */
    command preprocessor; /* flags for the first step only */
    bool verbose, dry_run, help, version;
    bool writes_dependencies, has_dependency_file, has_dependency_target, dependencies_only;
} options;

/* False with a sentence on stderr for a command line that makes no sense. */
bool options_read(options *o, int argc, char **argv);
void options_free(options *o);

#endif
