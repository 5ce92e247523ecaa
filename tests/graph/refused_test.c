/* Models that are refused, and what the sentences say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "graph/onnx/lower.h"
#include "graph/onnx/onnx.h"
#include "graph/onnx_make.h"
#include "graph/staged.h"

static maker *begin(int rank, const int64_t *dims) {
    maker *m = make_begin(17);
    make_input(m, "x", 1, rank, dims);
    make_output(m, "y");
    return m;
}

static void says(const char *word) {
    if (!strstr(dp_fail_message(), word))
        fail_msg("\"%s\" is not in: %s", word, dp_fail_message());
}

/* What lowering says of the model. */
static void refused(maker *m, const char *word) {
    size_t size;
    int opset;
    dp_model *model;
    dp_onnx_cut cut;
    void *bytes = make_end(m, &size);
    assert_int_equal(dp_onnx_read(bytes, size, NULL, &opset, &model), DP_OK);
    assert_int_not_equal(dp_onnx_lower(model->graph, opset, &cut), DP_OK);
    says(word);
    dp_model_free(model);
    free(bytes);
}

static void resizes_that_lead_nowhere(void **state) {
    (void)state;
    const int64_t four = 4, some[] = {1, 3, 4, 7}, none[] = {1, 3, 0, 7};
    const float huge[] = {1, 1, 1e30f, 1};
    maker *m = begin(4, some);
    make_constant(m, "s", 1, 1, &four, huge, sizeof huge);
    make_node(m, "Resize", "x - s", "y");
    refused(m, "dimension 2 would become 4e+30, but must become 0 to 2147483647");
    m = begin(4, none);
    make_constant(m, "s", 7, 1, &four, some, sizeof some);
    make_node(m, "Resize", "x - - s", "y");
    refused(m, "dimension 2 would become 4, but the input has no elements there");
}

static void windows_of_nothing(void **state) {
    (void)state;
    maker *m = begin(4, (const int64_t[]){1, 3, 8, 8});
    make_node(m, "MaxPool", "x", "y");
    make_integers(m, "kernel_shape", 2, (const int64_t[]){2, 0});
    refused(m, "kernel_shape has the number 0, but must have numbers from 1");
}

static dp_status no_room(void *data, int index, dp_tensor *tensor) {
    (void)data;
    (void)index;
    (void)tensor;
    return DP_ERR_OUT_OF_MEMORY;
}

/* What a run says of a model that is lowered while it runs. */
static void refused_by_run(maker *m, const char *word) {
    size_t size;
    int opset;
    dp_model *model;
    dp_staged *staged;
    float x[2] = {1, 2};
    const dp_tensor input = {.element = DP_F32, .rank = 1, .dims = {2}, .strides = {1}, .base = x};
    void *bytes = make_end(m, &size);
    assert_int_equal(dp_onnx_read(bytes, size, NULL, &opset, &model), DP_OK);
    assert_int_equal(dp_staged_new(model->graph, opset, &staged), DP_OK);
    assert_int_equal(dp_staged_run(staged, &input, no_room, NULL), DP_ERR_ARGUMENT);
    says(word);
    dp_staged_free(staged);
    dp_model_free(model);
    free(bytes);
}

static void loops_that_do_not_fit_their_bodies(void **state) {
    (void)state;
    const int64_t three = 3, two = 2;
    maker *m = begin(1, &two), *body = make_begin(17);
    make_input(body, "round", 7, 0, NULL);
    make_input(body, "go_on", 9, 0, NULL);
    make_output(body, "still");
    make_node(body, "Identity", "go_on", "still");
    make_constant(m, "n", 7, 0, NULL, &three, sizeof three);
    make_node(m, "Loop", "n - x", "y");
    make_body(m, "body", body);
    refused_by_run(m, "the body has 2 inputs and 1 outputs, but must have 3 inputs and at least 2 outputs");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resizes_that_lead_nowhere),
        cmocka_unit_test(windows_of_nothing),
        cmocka_unit_test(loops_that_do_not_fit_their_bodies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
