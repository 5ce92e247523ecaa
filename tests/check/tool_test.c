/* `doppel check` itself: exit statuses, reports, options, crashes, processes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "run_check.h"

#define MANY PROGRAMS "/many"

static void assert_says(const check_result *result, const char *sentence) {
    if (!strstr(result->text, sentence))
        print_message("expected \"%s\" in\n%s", sentence, result->text);
    assert_non_null(strstr(result->text, sentence));
}

static void assert_clean(const char *command, int status) {
    check_result result = check_run(command);
    if (result.status != status)
        print_message("%s\n%s", command, result.text);
    assert_int_equal(result.status, status);
    assert_non_null(result.json);
    assert_int_equal(check_count(&result), 0);
    check_free(&result);
}

static void test_own_status(void **state) {
    (void)state;
    assert_clean(MANY " clean 2", 0);
    assert_clean(MANY " exit 7", 7);
    assert_clean(MANY " crash", 128 + 11);
}

static void test_findings_win(void **state) {
    (void)state;
    static const char *const commands[] = {MANY " racy_exit 0", MANY " racy_exit 7", MANY " racy_crash"};
    for (unsigned i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        check_result result = check_run(commands[i]);
        assert_int_equal(result.status, 1);
        assert_int_equal(check_count(&result), 1);
        assert_string_equal(check_string(check_finding(&result, 0), "kind"), "race-raw");
        if (i == 2)
            assert_says(&result, "was ended by signal 11 (Segmentation fault)");
        check_free(&result);
    }
}

static void test_no_runtime(void **state) {
    (void)state;
    check_result result = check_run(MANY " exit_early 5");
    assert_int_equal(result.status, 5);
    assert_says(&result, "never used the Ascend runtime");
    check_free(&result);
    result = check_run("/nonexistent/program");
    assert_int_equal(result.status, 127);
    assert_says(&result, "cannot run /nonexistent/program: No such file or directory");
    check_free(&result);
    result = check_run("/etc/passwd");
    assert_int_equal(result.status, 126);
    check_free(&result);
    result = check_run(SOURCES "/many.asc");
    assert_int_equal(result.status, 126);
    assert_says(&result, "this is a source file: build it with ascc");
    check_free(&result);
}

static void test_usage(void **state) {
    (void)state;
    static const struct {
        const char *command, *sentence;
        int status;
    } cases[] = {
        {DOPPEL, "usage: doppel COMMAND", 2},
        {DOPPEL " chekc", "there is no command \"chekc\"", 2},
        {DOPPEL " check", "which program?", 2},
        {DOPPEL " check --stric " MANY, "there is no option --stric", 2},
        {DOPPEL " check --json", "--json needs a value", 2},
        {DOPPEL " check --limit many " MANY, "--limit is \"many\", expected 1 to 100000", 2},
        {DOPPEL " check --json /nonexistent/x " MANY " clean 1", "cannot write /nonexistent/x", 2},
    };
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        check_result result = check_shell(cases[i].command);
        assert_int_equal(result.status, cases[i].status);
        assert_says(&result, cases[i].sentence);
        check_free(&result);
    }
    check_result help = check_shell(DOPPEL " check --help");
    assert_int_equal(help.status, 0);
    assert_non_null(strstr(help.output, "--strict"));
    check_free(&help);
}

/* 8 blocks x 3 tiles: one finding, 24 times. */
static void test_counts(void **state) {
    (void)state;
    check_result result = check_run(MANY " racy 8");
    assert_int_equal(result.status, 1);
    assert_int_equal(check_count(&result), 1);
    const cJSON *finding = check_finding(&result, 0);
    assert_int_equal(check_number(finding, "count"), 24);
    assert_string_equal(check_string(finding, "kernel"), "Tiles<true>");
    assert_string_equal(check_string(finding, "place.pipe"), "MTE3");
    assert_string_equal(check_string(finding, "other.pipe"), "V");
    assert_string_equal(check_string(finding, "other.instruction"), "Adds");
    assert_says(&result, "seen    24 times, in 8 blocks");
    assert_says(&result, "doppel check: 1 finding in 1 launch, ");
    check_free(&result);
}

static void test_many_blocks_and_threads(void **state) {
    (void)state;
    assert_clean(MANY " clean 300", 0);
    assert_clean(MANY " threads 6", 0);
    check_result result = check_run(MANY " racy 300");
    assert_int_equal(check_count(&result), 1);
    assert_int_equal(check_number(check_finding(&result, 0), "count"), 900);
    check_free(&result);
}

static void test_every_way_to_wait(void **state) {
    (void)state;
    for (int i = 0; i < 3; i++)
        assert_clean(PROGRAMS "/waits", 0);
}

/* What the compiler inserts by default is asked for by --strict only. */
static void test_strict(void **state) {
    (void)state;
    assert_clean(PROGRAMS "/race strict_v_to_v", 0);
    assert_clean(PROGRAMS "/race strict_s_to_v", 0);
    check_result result = check_run("--strict " PROGRAMS "/race strict_v_to_v");
    assert_int_equal(result.status, 1);
    check_free(&result);
    assert_clean("--strict " MANY " clean 2", 0);
}

static void test_limit(void **state) {
    (void)state;
    check_result all = check_run("--strict " PROGRAMS "/race strided");
    check_result one = check_run("--strict --limit 1 " PROGRAMS "/race strided");
    assert_true(check_count(&all) > 1);
    assert_int_equal(check_count(&one), 1);
    assert_says(&one, "more findings are not shown");
    check_free(&all);
    check_free(&one);
}

static void test_several_processes(void **state) {
    (void)state;
    check_result result = check_run(MANY " fork 2");
    assert_int_equal(result.status, 1);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(result.json, "processes")), 2);
    assert_int_equal(check_count(&result), 1);
    assert_says(&result, "1 finding in 2 launches");
    check_free(&result);
}

/* Without the tool: DOPPEL_MODE=check prints at exit and leaves the status alone. */
static void test_environment(void **state) {
    (void)state;
    check_result result = check_shell("DOPPEL_MODE=check DOPPEL_CHECK_JSON=/tmp/doppel_tool_test.json " MANY " racy 2");
    assert_int_equal(result.status, 0);
    assert_says(&result, "race-raw");
    assert_says(&result, "1 finding in 1 launch");
    check_free(&result);
    result = check_shell("cat /tmp/doppel_tool_test.json; rm /tmp/doppel_tool_test.json");
    cJSON *json = cJSON_ParseWithOpts(result.output, NULL, true);
    assert_non_null(json);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(json, "processes")), 1);
    cJSON_Delete(json);
    check_free(&result);
    result = check_shell("DOPPEL_MODE=check DOPPEL_CHECK_LIMIT=x " MANY " clean 1");
    assert_int_equal(result.status, 0);
    assert_says(&result, "DOPPEL_CHECK_LIMIT is \"x\", expected 1 to 100000");
    check_free(&result);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own_status),      cmocka_unit_test(test_findings_win),
        cmocka_unit_test(test_no_runtime),      cmocka_unit_test(test_usage),
        cmocka_unit_test(test_counts),          cmocka_unit_test(test_many_blocks_and_threads),
        cmocka_unit_test(test_strict),          cmocka_unit_test(test_limit),
        cmocka_unit_test(test_several_processes), cmocka_unit_test(test_environment),
        cmocka_unit_test(test_every_way_to_wait),
    };
    return cmocka_run_group_tests_name("check_tool", tests, NULL, NULL);
}
