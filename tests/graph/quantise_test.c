/* Models in int8 by calibration: which nodes become integers, what the results are worth, which data is refused. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "graph/calibration.h"
#include "graph/compile.h"
#include "graph/onnx_make.h"
#include "graph/program.h"

enum { CHANNELS = 8, SIZE = 12, SAMPLES = 3, ELEMENTS = CHANNELS * SIZE * SIZE };

static unsigned state = 99;
static float draw(void) {
    state = state * 1664525u + 1013904223u;
    return (float)(state >> 8) / (float)(1 << 23) - 1;
}

/* Three convolutions: one with Relu, one with a hard swish written out, one whose result is added to the first's; and a
 * pool. */
static void *make_model(size_t *out_bytes) {
    static const int64_t image[] = {1, CHANNELS, SIZE, SIZE}, filter[] = {CHANNELS, CHANNELS, 3, 3},
                         vector[] = {CHANNELS};
    static const int64_t deep[] = {CHANNELS, 1, 3, 3}, ones[] = {1, 1, 1, 1}, two[] = {2, 2}, one[] = {1};
    static const float three = 3, zero = 0, six = 6;
    static float w[3][CHANNELS * CHANNELS * 9], b[CHANNELS];
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < CHANNELS * CHANNELS * 9; i++)
            w[k][i] = draw() * (k == 1 ? .6f : .2f);
    for (int i = 0; i < CHANNELS; i++)
        b[i] = draw();
    maker *m = make_begin(17);
    make_input(m, "x", 1, 4, image);
    make_constant(m, "w0", 1, 4, filter, w[0], sizeof w[0]);
    make_constant(m, "w1", 1, 4, deep, w[1], CHANNELS * 9 * sizeof(float));
    make_constant(m, "w2", 1, 4, filter, w[2], sizeof w[2]);
    make_constant(m, "b", 1, 1, vector, b, sizeof b);
    make_constant(m, "three", 1, 1, one, &three, sizeof three);
    make_constant(m, "zero", 1, 0, NULL, &zero, sizeof zero);
    make_constant(m, "six", 1, 0, NULL, &six, sizeof six);
    make_node(m, "Conv", "x w0 b", "a");
    make_integers(m, "pads", 4, ones);
    make_node(m, "Relu", "a", "first");
    make_node(m, "Conv", "first w1 b", "c");
    make_integers(m, "pads", 4, ones);
    make_integer(m, "group", CHANNELS);
    make_node(m, "Add", "c three", "d");
    make_node(m, "Clip", "d zero six", "e");
    make_node(m, "Mul", "c e", "f");
    make_node(m, "Div", "f six", "second");
    make_node(m, "Conv", "second w2", "g");
    make_integers(m, "pads", 4, ones);
    make_node(m, "Add", "first g", "h");
    make_node(m, "Relu", "h", "third");
    make_node(m, "MaxPool", "third", "pooled");
    make_integers(m, "kernel_shape", 2, two);
    make_integers(m, "strides", 2, two);
    make_node(m, "Sigmoid", "pooled", "y");
    make_output(m, "y");
    return make_end(m, out_bytes);
}

/* A file that numpy.save could have written; "" as type: cut off. */
static void write_array(const char *path, const char *type, const char *shape, const void *contents, size_t bytes) {
    char header[118];
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    int n = snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", type, shape);
    memset(header + n, ' ', sizeof header - (size_t)n - 1);
    header[sizeof header - 1] = '\n';
    fwrite("\x93NUMPY\x01\x00\x76\x00", 1, 10, file);
    fwrite(header, 1, sizeof header, file);
    fwrite(contents, 1, bytes, file);
    fclose(file);
}

static char folder[] = "/tmp/doppel_quantise_XXXXXX";
static char file_name[64];
static float samples[SAMPLES][ELEMENTS];

static int begin(void **unused) {
    (void)unused;
    for (int k = 0; k < SAMPLES; k++)
        for (int i = 0; i < ELEMENTS; i++)
            samples[k][i] = draw();
    if (!mkdtemp(folder))
        return 1;
    snprintf(file_name, sizeof file_name, "%s/x.npy", folder);
    write_array(file_name, "<f4", "3, 8, 12, 12", samples, sizeof samples);
    return 0;
}
static int end(void **unused) {
    (void)unused;
    unlink(file_name);
    return rmdir(folder);
}

static dp_status compile(dp_calibration *calibration, dp_model **out_model) {
    dp_precision precision = {.low = DP_F16, .calibration = calibration};
    size_t bytes;
    void *file = make_model(&bytes);
    dp_status status = dp_compile_onnx_as(file, bytes, NULL, NULL, 0, &precision, NULL, out_model);
    free(file);
    return status;
}

static int count(const dp_model *model, const char *type) {
    int n = 0;
    for (const dp_node *node = model->graph->first; node; node = node->next)
        n += strcmp(node->type, type) == 0;
    return n;
}

static void convolutions_become_integers(void **unused) {
    (void)unused;
    for (int whole = 0; whole < 2; whole++) {
        dp_calibration calibration = {.path = whole ? file_name : folder, .whole_range = whole};
        dp_model *model;
        char report[1024];
        double cosine = 0;
        state = 99;
        assert_int_equal(compile(&calibration, &model), DP_OK);
        assert_int_equal(calibration.n_samples, SAMPLES);
        assert_int_equal(count(model, "QuantizedConv2D"), 3);
        assert_int_equal(count(model, "QuantizedMaxPool"), 1);
        assert_int_equal(count(model, "QuantizePicture"), 1);
        assert_int_equal(count(model, "DequantizePicture"), 1);
        assert_true(model->graph->n_nodes <= 8); /* and the Sigmoid, on channels last */
        assert_int_equal(dp_calibration_report(&calibration, model->graph, report, sizeof report), DP_OK);
        assert_int_equal(sscanf(report, "output \"y\": cosine %lf", &cosine), 1);
        if (cosine < .999)
            print_error("%s", report);
        assert_true(cosine > .999 && cosine < 1);
        dp_model_free(model);
        dp_calibration_free(&calibration);
    }
    state = 99;
    dp_model *model;
    assert_int_equal(compile(NULL, &model), DP_OK);
    assert_int_equal(count(model, "QuantizedConv2D"), 0);
    dp_model_free(model);
}

/*
 * What lies between convolutions: a gate (mean, convolution of one position, sigmoid, product), repeated pixels, a sum,
 * a concatenation, and a transposed convolution whose result is the output.
 */
static void *make_branches(size_t *out_bytes) {
    static const int64_t image[] = {1, CHANNELS, SIZE, SIZE}, filter[] = {CHANNELS, CHANNELS, 3, 3},
                         gate[] = {CHANNELS, CHANNELS, 1, 1}, tiles[] = {2 * CHANNELS, 3, 2, 2}, ones[] = {1, 1, 1, 1},
                         two[] = {2, 2}, four[] = {4};
    static const float scales[] = {1, 1, 2, 2};
    static float w[4][2 * CHANNELS * CHANNELS * 9];
    for (int k = 0; k < 4; k++)
        for (int i = 0; i < 2 * CHANNELS * CHANNELS * 9; i++)
            w[k][i] = draw() * .3f;
    maker *m = make_begin(17);
    make_input(m, "x", 1, 4, image);
    make_constant(m, "w0", 1, 4, filter, w[0], CHANNELS * CHANNELS * 9 * sizeof(float));
    make_constant(m, "w1", 1, 4, filter, w[1], CHANNELS * CHANNELS * 9 * sizeof(float));
    make_constant(m, "w2", 1, 4, gate, w[2], CHANNELS * CHANNELS * sizeof(float));
    make_constant(m, "w3", 1, 4, tiles, w[3], 2 * CHANNELS * 3 * 4 * sizeof(float));
    make_constant(m, "scales", 1, 1, four, scales, sizeof scales);
    make_node(m, "Conv", "x w0", "a0");
    make_integers(m, "pads", 4, ones);
    make_node(m, "Relu", "a0", "a");
    make_node(m, "GlobalAveragePool", "a", "g0");
    make_node(m, "Conv", "g0 w2", "g1");
    make_node(m, "Sigmoid", "g1", "g");
    make_node(m, "Mul", "a g", "gated");
    make_node(m, "Conv", "a w1", "half");
    make_integers(m, "pads", 4, ones);
    make_integers(m, "strides", 2, two);
    make_node(m, "Resize", "half - scales", "back");
    make_text(m, "mode", "nearest");
    make_text(m, "coordinate_transformation_mode", "asymmetric");
    make_text(m, "nearest_mode", "floor");
    make_node(m, "Add", "gated back", "both");
    make_node(m, "Concat", "both a", "joined");
    make_integer(m, "axis", 1);
    make_node(m, "ConvTranspose", "joined w3", "y");
    make_integers(m, "strides", 2, two);
    make_output(m, "y");
    return make_end(m, out_bytes);
}

static void what_lies_between_follows(void **unused) {
    (void)unused;
    dp_calibration calibration = {.path = file_name};
    dp_precision precision = {.low = DP_F16, .calibration = &calibration};
    dp_model *model;
    char report[1024];
    double cosine = 0;
    size_t bytes;
    void *file = make_branches(&bytes);
    dp_status status = dp_compile_onnx_as(file, bytes, NULL, NULL, 0, &precision, NULL, &model);
    free(file);
    if (status != DP_OK)
        fail_msg("%s", dp_fail_message());
    assert_int_equal(count(model, "QuantizedConv2D"), 3);
    assert_int_equal(count(model, "QuantizedMean"), 1);
    assert_int_equal(count(model, "QuantizedCombine"), 2);
    assert_int_equal(count(model, "LastRepeat"), 1);
    assert_int_equal(count(model, "ConcatD"), 1);
    assert_int_equal(count(model, "QuantizePicture"), 1);
    assert_int_equal(count(model, "DequantizePicture"), 0);
    assert_int_equal(dp_calibration_report(&calibration, model->graph, report, sizeof report), DP_OK);
    assert_int_equal(sscanf(report, "output \"y\": cosine %lf", &cosine), 1);
    if (!(cosine > .9995))
        fail_msg("%s", report);
    dp_model_free(model);
    dp_calibration_free(&calibration);
}

static void refused(const char *type, const char *shape, size_t bytes, const char *word) {
    char path[80];
    dp_model *model;
    snprintf(path, sizeof path, "%s/other.npy", folder);
    write_array(path, type, shape, samples, bytes);
    dp_calibration calibration = {.path = path};
    assert_int_not_equal(compile(&calibration, &model), DP_OK);
    if (!strstr(dp_fail_message(), word))
        print_error("message: %s; missing: %s\n", dp_fail_message(), word);
    assert_non_null(strstr(dp_fail_message(), word));
    dp_calibration_free(&calibration);
    unlink(path);
}

static void wrong_data_is_refused(void **unused) {
    (void)unused;
    refused("<f4", "1, 8, 12, 13", 4 * 8 * 12 * 13, "multiple");
    refused("<f4", "1, 8, 12, 12", 100, "shorter");
    refused("<c8", "1, 8, 12, 12", sizeof samples, "float32");
    refused("<f4", "1, 8, -12, 12", sizeof samples, "shape");
    refused("<f4", "9223372036854775807, 9", sizeof samples, "shape");
    refused("<f4", "1, 1, 1, 1, 1, 1, 1, 1, 1", 4, "dimensions");
    refused("<f4", "0, 8, 12, 12", 0, "multiple");
    dp_calibration calibration = {.path = "/nowhere/at/all"};
    dp_model *model;
    assert_int_equal(compile(&calibration, &model), DP_ERR_IO);
    dp_calibration_free(&calibration);
    calibration = (dp_calibration){.path = __FILE__};
    assert_int_not_equal(compile(&calibration, &model), DP_OK);
    dp_calibration_free(&calibration);
}

/* Every allocation of a compilation fails once; nothing leaks. */
static void exhausted_memory(void **unused) {
    (void)unused;
    size_t live = dp_mem_stats_of(DP_MEM_GRAPH).live_bytes;
    bool done = false;
    for (long n = 1; n < 20000 && !done; n += n < 300 ? 7 : 41) {
        dp_calibration calibration = {.path = file_name};
        dp_model *model = NULL;
        char report[256];
        dp_mem_fail_after(n);
        if (compile(&calibration, &model) == DP_OK)
            done = dp_calibration_report(&calibration, model->graph, report, sizeof report) == DP_OK &&
                   dp_mem_fail_after_left() > 0;
        dp_mem_fail_after(0);
        dp_model_free(model);
        dp_calibration_free(&calibration);
        assert_int_equal(dp_mem_stats_of(DP_MEM_GRAPH).live_bytes, live);
    }
    assert_true(done);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(convolutions_become_integers),
        cmocka_unit_test(what_lies_between_follows),
        cmocka_unit_test(wrong_data_is_refused),
        cmocka_unit_test(exhausted_memory),
    };
    return cmocka_run_group_tests_name("quantise", tests, begin, end);
}
