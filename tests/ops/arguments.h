/* arguments.h - calls of operators with their parameters by name. */
#ifndef DOPPEL_TESTS_OPS_ARGUMENTS_H
#define DOPPEL_TESTS_OPS_ARGUMENTS_H

#include "ops_test.h"

enum { ARGUMENTS_MAX = 48 };

/* What is not set is NULL or 0. */
typedef struct arguments {
    const caller *op;
    caller_value values[ARGUMENTS_MAX];
} arguments;

arguments begin_call(const char *name);
/* The place of a parameter; a name may end in "Optional" though the operator does not spell it so. NULL: none. */
caller_value *find_argument(arguments *a, const char *name);
/* These fail the test when there is no such parameter. */
void put(arguments *a, const char *name, const void *pointer);
void put_integer(arguments *a, const char *name, int64_t value);
void put_real(arguments *a, const char *name, double value);

/* Both calls succeed; or the first refuses its arguments with a sentence that has `word`; or the run fails, with
 * `word`. */
void must(arguments *a);
void refused(arguments *a, const char *word);
void fails_when_run(arguments *a, const char *word);

#endif
