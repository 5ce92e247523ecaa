/* Weights in files of their own: read from the model's folder, and from nowhere else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "graph/compile.h"
#include "graph/onnx_make.h"

static char outside[] = "/tmp/doppel_external_XXXXXX", folder[64];
static const float weights[8] = {1, 2, 3, 4, 5, 6, 7, 8};

static void write_weights(const char *path) {
    FILE *file = fopen(path, "wb");
    assert_true(file && fwrite(weights, 1, sizeof weights, file) == sizeof weights && fclose(file) == 0);
}

static int set_up(void **state) {
    char path[128];
    (void)state;
    assert_non_null(mkdtemp(outside));
    snprintf(folder, sizeof folder, "%s/model", outside);
    assert_int_equal(mkdir(folder, 0777), 0);
    snprintf(path, sizeof path, "%s/secret.bin", outside);
    write_weights(path);
    snprintf(path, sizeof path, "%s/modelish", outside); /* a name that begins like the folder's */
    write_weights(path);
    snprintf(path, sizeof path, "%s/w.bin", folder);
    write_weights(path);
    snprintf(path, sizeof path, "%s/below", folder);
    assert_int_equal(mkdir(path, 0777), 0);
    snprintf(path, sizeof path, "%s/below/a..b", folder);
    write_weights(path);
    snprintf(path, sizeof path, "%s/inside.lnk", folder);
    assert_int_equal(symlink("w.bin", path), 0);
    snprintf(path, sizeof path, "%s/outside.lnk", folder);
    assert_int_equal(symlink("../secret.bin", path), 0);
    snprintf(path, sizeof path, "%s/sibling.lnk", folder);
    assert_int_equal(symlink("../modelish", path), 0);
    snprintf(path, sizeof path, "%s/pipe", folder);
    assert_int_equal(mkfifo(path, 0666), 0);
    return 0;
}
static int tear_down(void **state) {
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", outside);
    return system(command);
}

/* y = x + w, w of 4 floats in that file; the first element of w, or -1 with a sentence. */
static float read_first(const char *location, const char *offset, const char *length) {
    static const int64_t four[] = {4};
    size_t bytes;
    maker *m = make_begin(17);
    make_input(m, "x", 1, 1, four);
    make_constant(m, "w", 1, 1, four, weights, 16);
    make_external(m, location, offset, length);
    make_node(m, "Add", "x w", "y");
    make_output(m, "y");
    void *file = make_end(m, &bytes);
    dp_model *model = NULL;
    dp_status status = dp_compile_onnx(file, bytes, folder, NULL, 0, NULL, &model);
    float first = -1;
    if (status == DP_OK) {
        const dp_node *node = model->graph->first;
        for (int i = 0; i < node->n_inputs; i++)
            if (node->inputs[i]->is_constant)
                first = *(const float *)node->inputs[i]->tensor.base;
    }
    dp_model_free(model);
    free(file);
    return first;
}

static void refused(const char *location, const char *offset, const char *length, const char *word) {
    assert_true(read_first(location, offset, length) == -1);
    if (!strstr(dp_fail_message(), word))
        fail_msg("\"%s\" is not in: %s", word, dp_fail_message());
}

static void files_beside_the_model(void **state) {
    (void)state;
    assert_true(read_first("w.bin", NULL, NULL) == 1);
    assert_true(read_first("w.bin", "16", "16") == 5);
    assert_true(read_first("./w.bin", "8", NULL) == 3);
    assert_true(read_first("below/a..b", NULL, "16") == 1);
    assert_true(read_first("inside.lnk", NULL, NULL) == 1);
}

static void files_elsewhere_are_refused(void **state) {
    char path[128];
    (void)state;
    snprintf(path, sizeof path, "%s/secret.bin", outside);
    refused(path, NULL, NULL, "below the model's folder");
    refused("../secret.bin", NULL, NULL, "below the model's folder");
    refused("below/../../secret.bin", NULL, NULL, "below the model's folder");
    refused("below/..", NULL, NULL, "leads out");
    refused("..", NULL, NULL, "below the model's folder");
    refused("outside.lnk", NULL, NULL, "leads out");
    refused("sibling.lnk", NULL, NULL, "leads out");
    refused("pipe", NULL, NULL, "no file");
    refused("below", NULL, NULL, "no file");
    refused("", NULL, NULL, "without a name");
    refused(NULL, NULL, NULL, "without a name");
    refused("nothing.bin", NULL, NULL, "nothing.bin");
}

static void wrong_places_are_refused(void **state) {
    (void)state;
    refused("w.bin", "20", NULL, "32 bytes");
    refused("w.bin", "9223372036854775807", NULL, "32 bytes");
    refused("w.bin", "-4", NULL, "no number");
    refused("w.bin", "99999999999999999999", NULL, "no number");
    refused("w.bin", "x", NULL, "no number");
    refused("w.bin", NULL, "15", "15");
    refused("w.bin", NULL, "-1", "no number");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(files_beside_the_model),
                                       cmocka_unit_test(files_elsewhere_are_refused),
                                       cmocka_unit_test(wrong_places_are_refused)};
    return cmocka_run_group_tests_name("graph_external", tests, set_up, tear_down);
}
