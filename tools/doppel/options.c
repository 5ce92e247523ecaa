#include "doppel.h"

#include <stdio.h>
#include <stdlib.h>

const char *doppel_value(const char *command, int argc, char **argv, int *at) {
    if (*at + 1 < argc)
        return argv[++*at];
    fprintf(stderr, "%s: %s needs a value\n", command, argv[*at]);
    return NULL;
}

bool doppel_number(const char *command, int argc, char **argv, int *at, long least, long most, long *out) {
    const char *option = argv[*at], *text = doppel_value(command, argc, argv, at);
    char *end;
    if (!text)
        return false;
    *out = strtol(text, &end, 10);
    if (end != text && !*end && *out >= least && *out <= most)
        return true;
    fprintf(stderr, "%s: %s is \"%s\", expected %ld to %ld\n", command, option, text, least, most);
    return false;
}

bool doppel_model_argument(const char *command, const char *argument, const char **model) {
    if (argument[0] == '-' && argument[1]) {
        fprintf(stderr, "%s: there is no option %s; see %s --help\n", command, argument, command);
        return false;
    }
    if (*model) {
        fprintf(stderr, "%s: \"%s\" is one argument too many: the model is %s\n", command, argument, *model);
        return false;
    }
    *model = argument;
    return true;
}

bool doppel_model_needed(const char *command, const char *model) {
    if (!model)
        fprintf(stderr, "%s: which model? A file that atc has written; see %s --help\n", command, command);
    return model != NULL;
}
