/*
 * The house keeps its floors: a source file includes only its own floor and the ones below, tools and examples include only
 * what is installed, and installed headers include nothing of src/. Also the budgets: lines per file.
 */
#define _GNU_SOURCE
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

/* Folder under src/ and its floor; folders of one floor may use each other only where listed as the same name. */
static const struct {
    const char *folder;
    int floor;
} floors[] = {{"base", 1}, {"math", 2}, {"device", 3}, {"runtime", 4}, {"ops", 5},
              {"media", 5}, {"comm", 5}, {"graph", 6}, {"api", 7}};

#define MAX_LINES 800

static int problems, files;

static int floor_of(const char *name, size_t length) {
    for (size_t i = 0; i < sizeof floors / sizeof floors[0]; i++)
        if (strlen(floors[i].folder) == length && strncmp(floors[i].folder, name, length) == 0)
            return floors[i].floor;
    return 0;
}

static const char *file_ending(const char *path) {
    const char *dot = strrchr(path, '.');
    return dot ? dot : "";
}

static bool is_source(const char *path) {
    static const char *const endings[] = {".c", ".h", ".hpp", ".cpp", ".asc", ".def", ".inc"};
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++)
        if (strcmp(file_ending(path), endings[i]) == 0)
            return true;
    return false;
}

static void complain(const char *path, int line, const char *what, const char *detail) {
    fprintf(stderr, "%s:%d: %s%s\n", path, line, what, detail);
    problems++;
}

/* path is relative to the root; included is the text between the quotes of an #include. */
/* graph/ is a folder of src/ and one of include/, as the vendor has it. */
static bool is_installed(const char *included) {
    char name[300];
    snprintf(name, sizeof name, "include/%s", included);
    return access(name, R_OK) == 0;
}

static void check_include(const char *path, int line, const char *included) {
    const char *slash = strchr(included, '/');
    int target = slash ? floor_of(included, (size_t)(slash - included)) : 0;
    if (strncmp(path, "src/", 4) == 0) {
        const char *own = path + 4, *own_slash = strchr(own, '/');
        int mine = own_slash ? floor_of(own, (size_t)(own_slash - own)) : 0;
        if (mine == 0)
            complain(path, line, "file in a folder of src/ that is no floor", "");
        else if (target > mine)
            complain(path, line, "includes a floor above its own: ", included);
        else if (target == mine && strncmp(included, own, (size_t)(slash - included) + 1) != 0)
            complain(path, line, "includes a neighbour of its floor: ", included);
    } else if (target && !is_installed(included) && (strncmp(path, "include/", 8) == 0 || strncmp(path, "tools/", 6) == 0 ||
                          strncmp(path, "examples/", 9) == 0)) {
        complain(path, line, "includes a private header of src/: ", included);
    }
}

static int check_file(const char *path, const struct stat *info, int kind, struct FTW *where) {
    (void)info;
    (void)where;
    if (kind != FTW_F || !is_source(path))
        return 0;
    FILE *in = fopen(path, "r");
    if (!in)
        return 0;
    files++;
    char *text = NULL;
    size_t room = 0;
    int line = 0;
    while (getline(&text, &room, in) >= 0) {
        line++;
        char included[256];
        if (sscanf(text, " # include \"%255[^\"]\"", included) == 1)
            check_include(path, line, included);
    }
    if (line > MAX_LINES)
        complain(path, line, "longer than 800 lines", "");
    free(text);
    fclose(in);
    return 0;
}

static void no_file_looks_up(void **state) {
    (void)state;
    static const char *const roots[] = {"src", "include", "tools", "examples", "tests", "bench"};
    for (size_t i = 0; i < sizeof roots / sizeof roots[0]; i++)
        nftw(roots[i], check_file, 16, FTW_PHYS);
    assert_true(files > 10);
    assert_int_equal(problems, 0);
}

/* The checker itself must notice: one violation of each kind. */
static void violations_are_noticed(void **state) {
    (void)state;
    int before = problems;
    fprintf(stderr, "(the next four complaints are the test's own)\n");
    check_include("src/base/x.c", 1, "device/core.h");
    check_include("src/media/x.c", 1, "ops/y.h");
    check_include("tools/ascc/x.c", 1, "base/status.h");
    check_include("include/acl/acl.h", 1, "runtime/stream.h");
    assert_int_equal(problems - before, 4);
    check_include("src/device/x.c", 1, "math/math.h");
    check_include("src/device/x.c", 1, "device/core.h");
    check_include("tests/device/x.c", 1, "device/core.h");
    assert_int_equal(problems - before, 4);
    problems = before;
}

int main(int argc, char **argv) {
    if (argc > 1 && chdir(argv[1]) != 0) {
        perror(argv[1]);
        return 2;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(violations_are_noticed),
        cmocka_unit_test(no_file_looks_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
