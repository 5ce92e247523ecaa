/* `doppel trace` on examples/pipeline: the files it writes, what is in them, and its exit statuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include <cjson/cJSON.h>

static const char *doppel, *program;
static char folder[] = "/tmp/doppel-trace-test-XXXXXX";

/* Exit status of a shell command, its output in `out`. */
static int run(char *out, size_t out_bytes, const char *format, ...) {
    char command[4096];
    va_list args;
    va_start(args, format);
    vsnprintf(command, sizeof command, format, args);
    va_end(args);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    size_t got = fread(out, 1, out_bytes - 1, pipe);
    out[got] = '\0';
    char rest[4096];
    while (fread(rest, 1, sizeof rest, pipe) > 0) {
    }
    int status = pclose(pipe);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static char *read_file(const char *name) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *in = fopen(path, "rb");
    if (!in)
        return NULL;
    fseek(in, 0, SEEK_END);
    long size = ftell(in);
    rewind(in);
    char *text = malloc((size_t)size + 1);
    assert_non_null(text);
    assert_int_equal(fread(text, 1, (size_t)size, in), size);
    text[size] = '\0';
    fclose(in);
    return text;
}

static double estimate(int depth, const char *kind) {
    static char out[65536];
    assert_int_equal(run(out, sizeof out, "%s trace -o %s %s %d %s 2>&1", doppel, folder, program, depth, kind), 0);
    assert_non_null(strstr(out, "not cycle-accurate"));
    const char *at = strstr(out, "estimated ");
    assert_non_null(at);
    return strtod(at + strlen("estimated "), NULL);
}

static void depth_two_overlaps_and_four_smooths_peaks(void **state) {
    (void)state;
    double one = estimate(1, "balanced"), two = estimate(2, "balanced"), two_varying = estimate(2, "varying"),
           four_varying = estimate(4, "varying");
    assert_true(two < 0.7 * one);
    assert_true(four_varying < 0.9 * two_varying);
}

static void the_table_names_pipes_waits_and_advice(void **state) {
    (void)state;
    estimate(1, "balanced");
    char *text = read_file("summary.txt");
    assert_non_null(text);
    assert_non_null(strstr(text, "pipeline<1><<<8>>>, launched 1 time from pipeline.asc:"));
    assert_non_null(strstr(text, "MTE2 "));
    assert_non_null(strstr(text, "waiting for V, flag set at pipeline.asc:"));
    assert_non_null(strstr(text, "second buffer per queue"));
    free(text);
}

static void the_json_has_numbers_where_viewers_want_them(void **state) {
    (void)state;
    estimate(2, "balanced");
    char *text = read_file("trace.json");
    assert_non_null(text);
    cJSON *json = cJSON_Parse(text);
    assert_non_null(json);
    const cJSON *events = cJSON_GetObjectItem(json, "traceEvents"), *e;
    int spans = 0, host = 0, kernels = 0, cores = 0;
    cJSON_ArrayForEach(e, events) {
        const cJSON *pid = cJSON_GetObjectItem(e, "pid"), *tid = cJSON_GetObjectItem(e, "tid");
        assert_true(cJSON_IsNumber(pid) && cJSON_IsNumber(tid));
        assert_true(pid->valuedouble >= 0 && pid->valuedouble < 2147483648.0);
        assert_true(tid->valuedouble >= 0 && tid->valuedouble < 2147483648.0);
        if (strcmp(cJSON_GetObjectItem(e, "ph")->valuestring, "X") != 0)
            continue;
        assert_true(cJSON_IsNumber(cJSON_GetObjectItem(e, "ts")) && cJSON_IsNumber(cJSON_GetObjectItem(e, "dur")));
        assert_true(cJSON_GetObjectItem(e, "dur")->valuedouble >= 0);
        const char *name = cJSON_GetObjectItem(e, "name")->valuestring;
        spans++;
        host += pid->valueint == 1 && strncmp(name, "acl", 3) == 0;
        kernels += pid->valueint == 2 && strcmp(name, "pipeline<2>") == 0;
        cores += pid->valueint >= 100 && strcmp(name, "DataCopy") == 0;
    }
    assert_true(host >= 5);
    assert_int_equal(kernels, 1);
    assert_int_equal(cores, 8 * 32 * 2);
    assert_true(spans > 1000);
    cJSON_Delete(json);
    free(text);
}

static void the_picture_is_complete(void **state) {
    (void)state;
    estimate(2, "balanced");
    char *svg = read_file("timeline.svg");
    assert_non_null(svg);
    assert_memory_equal(svg, "<svg ", 5);
    assert_non_null(strstr(svg, "</svg>"));
    assert_non_null(strstr(svg, "block 1"));
    free(svg);
}

static void statuses_are_the_programs_or_say_why(void **state) {
    (void)state;
    static char out[65536];
    assert_int_equal(run(out, sizeof out, "%s trace -o %s sh -c 'exit 7' 2>&1", doppel, folder), 7);
    assert_non_null(strstr(out, "never used the Ascend runtime"));
    assert_int_equal(run(out, sizeof out, "%s trace -o %s /no/such/program 2>&1", doppel, folder), 127);
    assert_int_equal(run(out, sizeof out, "%s trace 2>&1", doppel), 2);
    assert_int_equal(run(out, sizeof out, "%s trace --frobnicate x 2>&1", doppel), 2);
    assert_non_null(strstr(out, "--frobnicate"));
    assert_int_equal(run(out, sizeof out, "%s trace --costs /no/such x 2>&1", doppel), 2);
    assert_int_equal(run(out, sizeof out, "%s trace -o /proc/no x 2>&1", doppel), 2);
    assert_int_equal(run(out, sizeof out, "%s trace --help", doppel), 0);
}

int main(int argc, char **argv) {
    if (argc != 3 || !mkdtemp(folder)) {
        fprintf(stderr, "usage: %s DOPPEL PROGRAM\n", argv[0]);
        return 2;
    }
    doppel = argv[1];
    program = argv[2];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(depth_two_overlaps_and_four_smooths_peaks),
        cmocka_unit_test(the_table_names_pipes_waits_and_advice),
        cmocka_unit_test(the_json_has_numbers_where_viewers_want_them),
        cmocka_unit_test(the_picture_is_complete),
        cmocka_unit_test(statuses_are_the_programs_or_say_why),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    char out[64];
    run(out, sizeof out, "rm -r %s", folder);
    return failed;
}
