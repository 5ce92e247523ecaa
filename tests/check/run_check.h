/*
 * run_check.h - runs a program under `doppel check` and reads what it reported.
 */
#ifndef DOPPEL_TESTS_CHECK_RUN_CHECK_H
#define DOPPEL_TESTS_CHECK_RUN_CHECK_H

#include <stdbool.h>

#include <cjson/cJSON.h>

typedef struct check_result {
    int status;   /* exit status, 128 + n after signal n */
    char *text;   /* stderr */
    char *output; /* stdout */
    cJSON *json;  /* the report; NULL: no file, or not JSON */
} check_result;

/* command: shell words after `doppel check --json <file>`. */
check_result check_run(const char *command);
/* Any shell command; json is NULL. */
check_result check_shell(const char *command);
void check_free(check_result *result);

/* Findings of all processes, and the i-th of them. */
int check_count(const check_result *result);
const cJSON *check_finding(const check_result *result, int index);
/* Member of a finding; "" or 0 when it is not there. path: "place.line". */
const char *check_string(const cJSON *finding, const char *path);
int check_number(const cJSON *finding, const char *path);

#endif
