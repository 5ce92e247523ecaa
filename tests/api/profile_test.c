/* DOPPEL_PROFILE: the timeline and the table of a program, however it ends, and places that cannot be written. */
#define _GNU_SOURCE
#include "child.h"

#include <fcntl.h>
#include <signal.h>
#include <cjson/cJSON.h>

#include "aclnnop/aclnn_add.h"
#include "aclnnop/aclnn_exp.h"
#include "aclnnop/aclnn_neg.h"

enum { ADDS = 20, N = 64 };
typedef enum ending { EXITS, KILLED } ending;

static char folder[] = "/tmp/doppel-profile-test-XXXXXX";
static char shown[1 << 16]; /* what the program wrote to stderr */

static const char *in_folder(const char *name) {
    static char path[4][128];
    static unsigned next;
    char *p = path[next++ % 4];
    snprintf(p, sizeof path[0], "%s/%s", folder, name);
    return p;
}

/* ADDS additions and one exponential in a stream, a copy and a host function. */
static void work(void) {
    int64_t dims[] = {4, N / 4};
    float one = 1;
    void *data[2], *host = calloc(N, sizeof(float));
    aclTensor *t[2];
    aclrtStream stream;
    aclInit(NULL); /* the second time it says that it was done */
    CHECK_OK(aclrtSetDevice(0));
    CHECK_OK(aclrtCreateStream(&stream));
    for (int i = 0; i < 2; i++) {
        CHECK_OK(aclrtMalloc(&data[i], N * sizeof(float), ACL_MEM_MALLOC_HUGE_FIRST));
        CHECK_OK(
            aclrtMemcpyAsync(data[i], N * sizeof(float), host, N * sizeof(float), ACL_MEMCPY_HOST_TO_DEVICE, stream));
        t[i] = aclCreateTensor(dims, 2, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, dims, 2, data[i]);
    }
    aclScalar *alpha = aclCreateScalar(&one, ACL_FLOAT);
    uint64_t size;
    aclOpExecutor *executor;
    for (int i = 0; i < ADDS; i++) {
        CHECK_OK(aclnnInplaceAddGetWorkspaceSize(t[0], t[1], alpha, &size, &executor));
        CHECK_OK(aclnnInplaceAdd(NULL, 0, executor, stream));
    }
    CHECK_OK(aclnnExpGetWorkspaceSize(t[0], t[1], &size, &executor));
    CHECK_OK(aclnnExp(NULL, 0, executor, stream));
    int64_t turned[] = {N / 4, 4}, strides[] = {1, N / 4};
    aclTensor *view = aclCreateTensor(turned, 2, ACL_FLOAT, strides, 0, ACL_FORMAT_ND, dims, 2, data[0]),
              *whole = aclCreateTensor(turned, 2, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, turned, 2, data[1]);
    CHECK_OK(aclrtSynchronizeStream(stream));
    CHECK(((float *)data[1])[N - 1] == 1);
    CHECK_OK(aclnnNegGetWorkspaceSize(view, whole, &size, &executor));
    CHECK_OK(aclnnNeg(NULL, 0, executor, stream));
    CHECK_OK(aclrtSynchronizeStream(stream));
    free(host);
}

/* Runs work() in a process with this DOPPEL_PROFILE; its stderr is in `shown` afterwards. */
static void run(const char *places, ending how) {
    int pipe_ends[2];
    assert_int_equal(pipe(pipe_ends), 0);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        alarm(CHILD_SECONDS);
        dup2(pipe_ends[1], STDERR_FILENO);
        setenv("DOPPEL_PROFILE", places, 1);
        work();
        if (how == KILLED) {
            usleep(600000); /* what is older than half a second is in the file */
            work();
            kill(getpid(), SIGKILL);
        }
        exit(0);
    }
    close(pipe_ends[1]);
    size_t used = 0;
    for (ssize_t n; (n = read(pipe_ends[0], shown + used, sizeof shown - 1 - used)) > 0;)
        used += (size_t)n;
    shown[used] = '\0';
    close(pipe_ends[0]);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(how == KILLED ? WIFSIGNALED(status) : WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static char *read_file(const char *path) {
    FILE *in = fopen(path, "rb");
    assert_non_null(in);
    fseek(in, 0, SEEK_END);
    long size = ftell(in);
    rewind(in);
    char *text = malloc((size_t)size + 1);
    assert_int_equal(fread(text, 1, (size_t)size, in), size);
    text[size] = '\0';
    fclose(in);
    return text;
}

/* Parses a timeline, checks every event, and counts the spans of this name. */
static int spans_of(const char *path, const char *name) {
    char *text = read_file(path);
    cJSON *json = cJSON_Parse(text);
    assert_non_null(json);
    const cJSON *e;
    int found = 0;
    double last = -1;
    cJSON_ArrayForEach(e, cJSON_GetObjectItem(json, "traceEvents")) {
        const cJSON *pid = cJSON_GetObjectItem(e, "pid"), *tid = cJSON_GetObjectItem(e, "tid");
        assert_true(cJSON_IsNumber(pid) && pid->valuedouble > 0 && pid->valuedouble < 2147483648.0);
        assert_true(cJSON_IsNumber(tid) && tid->valuedouble >= 0 && tid->valuedouble < 2147483648.0);
        if (strcmp(cJSON_GetObjectItem(e, "ph")->valuestring, "X") != 0)
            continue;
        const cJSON *ts = cJSON_GetObjectItem(e, "ts"), *dur = cJSON_GetObjectItem(e, "dur");
        assert_true(cJSON_IsNumber(ts) && cJSON_IsNumber(dur) && dur->valuedouble >= 0);
        if (strcmp(cJSON_GetObjectItem(e, "name")->valuestring, name) != 0)
            continue;
        assert_true(ts->valuedouble >= last); /* one stream: one after the other */
        last = ts->valuedouble + dur->valuedouble - 0.002;
        found++;
        const cJSON *args = cJSON_GetObjectItem(e, "args");
        if (strcmp(name, "Exp") == 0) {
            assert_string_equal(cJSON_GetObjectItem(args, "tensors")->valuestring, "self f32[4,16], out => f32[4,16]");
            assert_string_equal(cJSON_GetObjectItem(args, "by")->valuestring, "f32 in place");
        }
    }
    cJSON_Delete(json);
    free(text);
    return found;
}

static void the_timeline_has_every_task(void **state) {
    (void)state;
    const char *path = in_folder("a.json");
    run(path, EXITS);
    assert_int_equal(spans_of(path, "InplaceAdd"), ADDS);
    assert_int_equal(spans_of(path, "Exp"), 1);
    assert_int_equal(spans_of(path, "copy"), 2);
    assert_non_null(strstr(shown, "InplaceAdd "));
}

static void the_table_adds_up(void **state) {
    (void)state;
    const char *path = in_folder("b.txt");
    run(path, EXITS);
    assert_string_equal(shown, "");
    char *text = read_file(path);
    unsigned long long calls;
    double total, share, sum = 0;
    const char *row = strstr(text, "\nInplaceAdd ");
    assert_non_null(row);
    assert_int_equal(sscanf(row, " InplaceAdd %llu %lf %lf%%", &calls, &total, &share), 3);
    assert_int_equal(calls, ADDS);
    assert_non_null(strstr(row, "selfRef => f32[4,16], other f32[4,16]"));
    for (const char *p = strchr(text, '%'); p; p = strchr(p + 1, '%')) {
        const char *begin = p;
        while (begin[-1] != ' ')
            begin--;
        sum += strtod(begin, NULL);
    }
    assert_true(sum > 99 && sum < 101);
    free(text);
}

static void what_a_killed_program_left_is_whole(void **state) {
    (void)state;
    const char *path = in_folder("c.json");
    run(path, KILLED);
    assert_true(spans_of(path, "InplaceAdd") >= ADDS);
}

static void several_places_and_the_process_number(void **state) {
    (void)state;
    char places[300];
    snprintf(places, sizeof places, "%s,%s,stderr", in_folder("d%p.json"), in_folder("d.txt"));
    run(places, EXITS);
    assert_non_null(strstr(shown, "InplaceAdd "));
    char command[160];
    snprintf(command, sizeof command, "ls %s/d[0-9]*.json >/dev/null", folder);
    assert_int_equal(system(command), 0);
}

static unsigned lines_of(const char *text, const char *with) {
    unsigned n = 0;
    for (const char *p = text; (p = strstr(p, with)); p++)
        n++;
    return n;
}

static void hostile_places_get_one_sentence(void **state) {
    (void)state;
    static const struct {
        const char *places, *sentence;
    } rows[] = {{"/no/such/folder/a.json", "/no/such/folder/a.json cannot be written: No such file or directory"},
                {"/proc/a.txt", "/proc/a.txt cannot be written"},
                {"profile", "must name FILE.json, FILE.txt or stderr"},
                {".json", "must name FILE.json"},
                {"/dev/full/x.json", "cannot be written: Not a directory"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        run(rows[i].places, EXITS);
        assert_non_null(strstr(shown, rows[i].sentence));
        assert_int_equal(lines_of(shown, "DOPPEL_PROFILE"), 1);
    }
    char longer[2000];
    memset(longer, 'a', sizeof longer);
    memcpy(longer + sizeof longer - 6, ".json", 6);
    run(longer, EXITS);
    assert_int_equal(lines_of(shown, "DOPPEL_PROFILE"), 1);
    run(",,,", EXITS);
    assert_int_equal(lines_of(shown, "DOPPEL_PROFILE"), 0);
}

static void a_full_disk_ends_the_timeline_only(void **state) {
    (void)state;
    const char *path = in_folder("full.json");
    assert_int_equal(symlink("/dev/full", path), 0);
    run(path, EXITS);
    assert_int_equal(lines_of(shown, "No space left on device: the timeline ends here"), 1);
    assert_non_null(strstr(shown, "InplaceAdd "));
}

static void the_log_says_which_way_and_why(void **state) {
    (void)state;
    setenv("DOPPEL_LOG", "ops", 1);
    run("", EXITS);
    unsetenv("DOPPEL_LOG");
    assert_int_equal(
        lines_of(shown, "doppel: ops: InplaceAdd(selfRef => f32[4,16], other f32[4,16]) by f32 in place: "), ADDS);
    assert_int_equal(lines_of(shown,
                              "doppel: ops: Neg(self f32[16,4]*[1,16], out => f32[16,4]) by f32 tiles (not in place: a "
                              "tensor is broadcast or not contiguous): "),
                     1);
}

static void off_means_silent(void **state) {
    (void)state;
    run("", EXITS);
    assert_string_equal(shown, "");
}

int main(void) {
    if (!mkdtemp(folder))
        return 2;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_timeline_has_every_task),         cmocka_unit_test(the_table_adds_up),
        cmocka_unit_test(what_a_killed_program_left_is_whole), cmocka_unit_test(several_places_and_the_process_number),
        cmocka_unit_test(hostile_places_get_one_sentence),     cmocka_unit_test(a_full_disk_ends_the_timeline_only),
        cmocka_unit_test(the_log_says_which_way_and_why),      cmocka_unit_test(off_means_silent),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command) ? 2 : failed;
}
