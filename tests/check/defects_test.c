/* Every seeded defect is found, once, with its kind and both lines; its corrected twin is passed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run_check.h"

typedef struct defect {
    const char *program, *name, *kind, *options;
} defect;

static const defect defects[] = {
    {"memory", "gm_past_the_end", "out-of-bounds", ""},
    {"memory", "gm_one_byte_more", "out-of-bounds", ""},
    {"memory", "ub_strided", "outside-tensor", ""},
    {"memory", "operators", "outside-tensor", ""},
    {"memory", "mask_too_wide", "illegal-instruction", ""},
    {"memory", "mask_of_nothing", "illegal-instruction", ""},
    {"memory", "copy_of_nothing", "illegal-instruction", ""},
    {"memory", "outside_global_tensor", "outside-tensor", ""},
    {"memory", "misaligned", "misaligned", ""},
    {"memory", "ub_never_loaded", "uninitialized-read", ""},
    {"memory", "gm_never_filled", "uninitialized-read", ""},
    {"memory", "scalar_reads_nothing", "uninitialized-read", ""},
    {"memory", "reduce_unused_lanes", "uninitialized-read", ""},
    {"memory", "overlap", "overlap", ""},
    {"memory", "atomic_onto_nothing", "uninitialized-read", ""},
    {"memory", "freed_memory", "use-after-free", ""},
    {"memory", "result_not_written", "uninitialized-read", ""},
    {"race", "mte2_to_v", "race-raw", ""},
    {"race", "v_to_mte3", "race-raw", ""},
    {"race", "war_v_mte2", "race-war", ""},
    {"race", "war_mte3_v", "race-war", ""},
    {"race", "waw_mte2", "race-waw", ""},
    {"race", "raw_through_gm", "race-raw", ""},
    {"race", "waw_mte3", "race-waw", ""},
    {"race", "strided", "race-waw", ""},
    {"race", "masked", "race-war", ""},
    {"race", "strict_s_to_v", "race-raw", "--strict"},
    {"race", "strict_v_to_v", "race-raw", "--strict"},
    {"sync", "flag_set_twice", "flag-set-twice", ""},
    {"sync", "flag_never_waited", "flag-never-waited", ""},
    {"sync", "flag_never_set", "flag-never-set", ""},
    {"sync", "flag_waited_twice", "flag-never-set", ""},
    {"sync", "mask_left", "leaked-state", ""},
    {"sync", "counter_mode_left", "leaked-state", ""},
    {"sync", "atomic_left", "leaked-state", ""},
    {"sync", "deadlock", "deadlock", ""},
    {"sync", "half_overflow", "half-overflow", "--overflow"},
    {"sync", "nan_born", "nan", "--nan"},
    {"queue", "free_twice", "queue-misuse", ""},
    {"queue", "deque_empty", "queue-misuse", ""},
    {"queue", "alloc_too_many", "queue-misuse", ""},
    {"queue", "foreign_free", "queue-misuse", ""},
    {"queue", "enque_twice", "queue-misuse", ""},
    {"queue", "use_after_free", "use-after-free", ""},
    {"queue", "over_allocation", "over-allocation", ""},
    {"queue", "leaked_tensor", "leaked-tensor", ""},
    {"queue", "skipped_deque", "race-raw", ""},
    {"queue", "tensor_outlives", "use-after-free", ""},
    {"queue", "endless", "time-limit", ""},
    {"blocks", "blocks_write_same", "blocks-write-same", ""},
    {"blocks", "sum_without_atomics", "blocks-write-same", ""},
    {"blocks", "neighbour_without_syncall", "blocks-read-write", ""},
    {"blocks", "host_past_the_end", "host-fault", ""},
    {"blocks", "host_freed", "host-fault", ""},
    {"blocks", "host_double_free", "host-fault", ""},
    {"blocks", "host_dead_stream", "host-fault", ""},
    {"blocks", "copy_tail", "illegal-instruction", ""},
    {"blocks", "sync_of_too_many", "deadlock", ""},
    {"blocks", "null_pointer", "out-of-bounds", ""},
    {"blocks", "host_pointer", "out-of-bounds", ""},
    {"blocks", "refused_launch", "host-fault", ""},
    {"blocks", "scalar_then_copy", "stale-cache", ""},
    {"blocks", "scalar_then_others", "stale-cache", ""},
    {"order", "result_too_early", "host-race", ""},
    {"order", "input_too_early", "host-race", ""},
    {"order", "copy_behind_copy", "host-race", ""},
    {"order", "operator_too_early", "host-race", ""},
    {"order", "freed_too_early", "host-race", ""},
    {"order", "wrong_stream", "host-race", ""},
    {"order", "event_too_early", "host-race", ""},
    {"order", "two_streams", "stream-race", ""},
    {"order", "leaked_memory", "leaked-memory", ""},
    {"order", "leaked_stream", "leaked-handle", ""},
    {"order", "leaked_event", "leaked-handle", ""},
};
enum { DEFECTS = sizeof defects / sizeof defects[0] };

/* Line of the program's source that carries "@<name><suffix>" and nothing more of a word; 0 if none does. */
static int marked_line(const defect *d, const char *suffix) {
    char path[512], mark[128], line[512];
    snprintf(path, sizeof path, "%s/%s.asc", SOURCES, d->program);
    snprintf(mark, sizeof mark, "@%s%s", d->name, suffix);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    int number = 0, found = 0;
    while (!found && fgets(line, sizeof line, file)) {
        number++;
        const char *at = strstr(line, mark);
        if (at && (at[strlen(mark)] == '\n' || at[strlen(mark)] == ' '))
            found = number;
    }
    fclose(file);
    return found;
}

static void assert_place(const defect *d, const cJSON *finding, const char *key, int line) {
    char member[32], file[64];
    snprintf(member, sizeof member, "%s.line", key);
    assert_int_equal(check_number(finding, member), line);
    snprintf(member, sizeof member, "%s.file", key);
    snprintf(file, sizeof file, "%s.asc", d->program);
    assert_non_null(strstr(check_string(finding, member), file));
}

static void test_defect(void **state) {
    const defect *d = *state;
    char command[1024];
    int line = marked_line(d, ""), other = marked_line(d, ":other");
    assert_int_not_equal(line, 0);

    snprintf(command, sizeof command, "%s %s/%s %s", d->options, PROGRAMS, d->program, d->name);
    check_result bad = check_run(command);
    if (bad.status != 1 || check_count(&bad) != 1)
        print_message("%s\n%s", command, bad.text);
    assert_non_null(bad.json);
    assert_int_equal(bad.status, 1);
    assert_int_equal(check_count(&bad), 1);
    const cJSON *finding = check_finding(&bad, 0);
    assert_string_equal(check_string(finding, "kind"), d->kind);
    assert_place(d, finding, "place", line);
    if (other)
        assert_place(d, finding, "other", other);
    assert_string_not_equal(check_string(finding, "sentence"), "");
    if (strcmp(d->kind, "host-fault") != 0)
        assert_string_not_equal(check_string(finding, "cure"), "");
    check_free(&bad);

    snprintf(command, sizeof command, "%s %s/%s %s fixed", d->options, PROGRAMS, d->program, d->name);
    check_result good = check_run(command);
    if (good.status != 0 || check_count(&good) != 0)
        print_message("%s\n%s", command, good.text);
    assert_non_null(good.json);
    assert_int_equal(good.status, 0);
    assert_int_equal(check_count(&good), 0);
    assert_non_null(strstr(good.text, "doppel check: 0 findings in "));
    check_free(&good);
}

/* A program nobody lists here would go untested. */
static void test_all_listed(void **state) {
    static const char *const programs[] = {"memory", "race", "sync", "queue", "blocks", "order"};
    (void)state;
    int listed = 0;
    for (unsigned p = 0; p < sizeof programs / sizeof programs[0]; p++) {
        char command[512];
        snprintf(command, sizeof command, "%s/%s", PROGRAMS, programs[p]);
        check_result names = check_shell(command);
        for (char *name = strtok(names.output, "\n"); name; name = strtok(NULL, "\n")) {
            int found = 0;
            for (unsigned i = 0; i < DEFECTS; i++)
                found += strcmp(defects[i].name, name) == 0 && strcmp(defects[i].program, programs[p]) == 0;
            assert_int_equal(found, 1);
            listed++;
        }
        check_free(&names);
    }
    assert_int_equal(listed, DEFECTS);
}

int main(void) {
    static struct CMUnitTest tests[DEFECTS + 1];
    for (unsigned i = 0; i < DEFECTS; i++)
        tests[i] = (struct CMUnitTest){defects[i].name, test_defect, NULL, NULL, (void *)&defects[i]};
    tests[DEFECTS] = (struct CMUnitTest){"all_listed", test_all_listed, NULL, NULL, NULL};
    return cmocka_run_group_tests_name("check_defects", tests, NULL, NULL);
}
