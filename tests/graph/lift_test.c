/* Models stored in half: what computes in float, what stays, and that results are as near to exact ones as before. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/half.h"
#include "graph/compile.h"
#include "graph/onnx_make.h"
#include "graph/passes/passes.h"
#include "graph/program.h"

enum { FLOAT = 1, INT64 = 7, HALF = 10, BFLOAT = 16, ROOM = 1 << 14 };

static float numbers[ROOM]; /* in [-1, 1); all are half's, the first half of them bfloat16's, too */
static uint16_t halves[ROOM], bfloats[ROOM];

static int make_numbers(void **state) {
    (void)state;
    uint32_t random = 1;
    for (int i = 0; i < ROOM; i++) {
        random = random * 1664525u + 1013904223u;
        bfloats[i] = dp_bf16_from_f32((float)(int32_t)random * 0x1p-31f);
        halves[i] = dp_f16_from_f32(dp_f32_from_bf16(bfloats[i]));
        numbers[i] = dp_f32_from_f16(halves[i]);
    }
    return 0;
}

static const void *numbers_of(int type) {
    return type == FLOAT ? (const void *)numbers : type == HALF ? halves : bfloats;
}
#define DIMS(...)                                                                                                      \
    (sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[]) {                                          \
        __VA_ARGS__                                                                                                    \
    }
static void weight(maker *m, const char *name, int type, int rank, const int64_t *dims) {
    size_t count = 1, bytes = type == FLOAT ? 4 : 2;
    for (int d = 0; d < rank; d++)
        count *= (size_t)dims[d];
    make_constant(m, name, type, rank, dims, (const char *)numbers_of(type) + 3000 * bytes, count * bytes);
}
static void convolution(maker *m, const char *ends, const char *y) {
    make_node(m, "Conv", ends, y);
    make_integers(m, "pads", 4, (const int64_t[]){1, 1, 1, 1});
}
static void cast(maker *m, const char *x, const char *y, int type) {
    make_node(m, "Cast", x, y);
    make_integer(m, "to", type);
}

/* Two convolutions with what usually lies between them. */
static maker *net(int type) {
    maker *m = make_begin(21);
    make_input(m, "x", type, DIMS(1, 3, 9, 7));
    weight(m, "w1", type, DIMS(8, 3, 3, 3));
    weight(m, "b1", type, DIMS(8));
    weight(m, "w2", type, DIMS(5, 8, 3, 3));
    convolution(m, "x w1 b1", "c1");
    make_node(m, "Relu", "c1", "r1");
    convolution(m, "r1 w2", "c2");
    make_node(m, "Sigmoid", "c2", "y");
    make_output(m, "y");
    return m;
}

static dp_model *compile_from(const void *bytes, size_t size, const char *mode) {
    dp_precision precision = {.mode = DP_PRECISION_ORIGIN};
    dp_model *model = NULL;
    assert_int_equal(dp_precision_parse(mode, NULL, &precision), DP_OK);
    dp_status status = dp_compile_onnx_as(bytes, size, NULL, NULL, 0, &precision, NULL, &model);
    if (status != DP_OK)
        print_error("%s\n", dp_fail_message());
    assert_int_equal(status, DP_OK);
    return model;
}
static dp_model *compile(maker *m, const char *mode) {
    size_t size;
    void *bytes = make_end(m, &size);
    dp_model *model = compile_from(bytes, size, mode);
    free(bytes);
    return model;
}
/* Without passes, but for those that a program needs. */
static dp_model *lowered(const void *bytes, size_t size) {
    dp_onnx_source source = {.bytes = bytes, .size_bytes = size};
    dp_model *model;
    bool stopped;
    int changes;
    assert_int_equal(dp_compile_lowered(&source, &model, &stopped), DP_OK);
    assert_int_equal(dp_pass_outputs(model->graph, &changes), DP_OK);
    return model;
}

/* Type:element of every node, with blanks between them. */
static void assert_nodes(const dp_model *model, const char *expected) {
    char text[2048] = "";
    for (const dp_node *node = model->graph->first; node; node = node->next)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s:%s", text[0] ? " " : "", node->type,
                 dp_element_name(node->outputs[0]->tensor.element));
    assert_string_equal(text, expected);
}

/* Output 0 as floats, of the input's type from `numbers`. */
static float *run(const dp_model *model, int64_t *out_count) {
    dp_program *program;
    dp_graph *graph = model->graph;
    assert_int_equal(dp_program_new(graph, &program), DP_OK);
    void *work = aligned_alloc(64, (dp_program_work_bytes(program) + 127) / 64 * 64), *results[4];
    int element = graph->inputs[0]->tensor.element, made = graph->outputs[0]->tensor.element;
    for (int i = 0; i < graph->n_outputs; i++)
        results[i] = malloc(dp_value_bytes(graph->outputs[i]) + 64);
    const void *x = numbers_of(element == DP_F32 ? FLOAT : element == DP_F16 ? HALF : BFLOAT);
    static const int64_t ids[] = {3, 0, 5, 5};
    if (!dp_element_is_float(element))
        x = ids;
    assert_int_equal(dp_program_run(program, (void *[]){(void *)(uintptr_t)x}, results, work), DP_OK);
    *out_count = dp_tensor_count(&graph->outputs[0]->tensor);
    float *y = malloc((size_t)*out_count * sizeof *y);
    for (int64_t i = 0; i < *out_count; i++) {
        const uint16_t *bits = results[0];
        y[i] = made == DP_F32   ? ((float *)results[0])[i]
               : made == DP_F16 ? dp_f32_from_f16(bits[i])
                                : dp_f32_from_bf16(bits[i]);
    }
    for (int i = 0; i < graph->n_outputs; i++)
        free(results[i]);
    free(work);
    dp_program_free(program);
    return y;
}

static double largest_difference(const float *a, const float *b, int64_t n) {
    double most = 0;
    for (int64_t i = 0; i < n; i++)
        most = fmax(most, fabs((double)a[i] - (double)b[i]));
    return most;
}

/* step: of one rounding, relative. */
static void check_net(int type, int element, const char *nodes, double step) {
    size_t size, float_size;
    void *bytes = make_end(net(type), &size), *float_bytes = make_end(net(FLOAT), &float_size);
    dp_model *plain = lowered(bytes, size), *lifted = compile_from(bytes, size, NULL),
             *exact = lowered(float_bytes, float_size);
    int64_t n;
    float *a = run(plain, &n), *b = run(lifted, &n), *c = run(exact, &n);
    assert_nodes(lifted, nodes);
    assert_int_equal(lifted->graph->inputs[0]->tensor.element, element);
    assert_int_equal(lifted->graph->outputs[0]->tensor.element, element);
    assert_string_equal(lifted->graph->outputs[0]->name, "y");
    double before = largest_difference(a, c, n), after = largest_difference(b, c, n);
    if (after > before || after > step || largest_difference(a, b, n) > 16 * step)
        print_error("from float: %g before, %g after; between them %g\n", before, after, largest_difference(a, b, n));
    assert_true(before > 0 && after <= before); /* values are in (0, 1) */
    assert_true(after <= step);
    assert_true(largest_difference(a, b, n) <= 16 * step);
    free(a), free(b), free(c);
    free(bytes), free(float_bytes);
    dp_model_free(plain), dp_model_free(lifted), dp_model_free(exact);
}

static void half_is_lifted(void **state) {
    (void)state;
    check_net(HALF, DP_F16, "Cast:f32 TransposeD:f32 PanelConv2D:f32 PanelConv2D:f32 TransposeD:f32 Cast:f16", 0x1p-11);
}
static void bfloat_is_lifted(void **state) {
    (void)state;
    check_net(BFLOAT, DP_BF16, "Cast:f32 TransposeD:f32 PanelConv2D:f32 PanelConv2D:f32 TransposeD:f32 Cast:bf16",
              0x1p-8);
}

/* Who asks for half gets it. */
static void modes_that_want_half_keep_it(void **state) {
    (void)state;
    static const char *const modes[] = {"force_fp16", "allow_mix_precision", "allow_fp32_to_fp16"};
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        dp_model *model = compile(net(HALF), modes[i]);
        assert_nodes(model, "TransposeD:f16 PanelConv2D:f16 PanelConv2D:f16 TransposeD:f16");
        dp_model_free(model);
    }
    dp_model *model = compile(net(HALF), "must_keep_origin_dtype");
    assert_int_equal(model->graph->first->outputs[0]->tensor.element, DP_F32);
    dp_model_free(model);
}

/* A float model with a half inside: both Casts vanish, and whoever read the float still reads it. */
static void casts_cancel(void **state) {
    (void)state;
    maker *m = make_begin(17);
    make_input(m, "x", FLOAT, DIMS(1, 3, 9, 7));
    weight(m, "w", HALF, DIMS(3, 3, 3, 3));
    cast(m, "x", "xh", HALF);
    convolution(m, "xh w", "ch");
    cast(m, "ch", "c", FLOAT);
    make_node(m, "Mul", "c x", "p");
    make_node(m, "Tanh", "p", "y");
    make_output(m, "y");
    dp_model *model = compile(m, NULL);
    assert_nodes(model, "TransposeD:f32 PanelConv2D:f32 ElementwiseChain:f32 TransposeD:f32");
    dp_model_free(model);
}

/* Weights kept in half behind a Cast become floats at compile time. */
static void casts_of_weights_fold(void **state) {
    (void)state;
    maker *m = make_begin(17);
    make_input(m, "x", FLOAT, DIMS(1, 3, 9, 7));
    weight(m, "wh", HALF, DIMS(5, 3, 3, 3));
    cast(m, "wh", "w", FLOAT);
    convolution(m, "x w", "y");
    make_output(m, "y");
    dp_model *model = compile(m, NULL);
    assert_nodes(model, "TransposeD:f32 PanelConv2D:f32 TransposeD:f32");
    dp_model_free(model);
}

/* Without a product nothing is gained. */
static void others_stay(void **state) {
    (void)state;
    maker *m = make_begin(17);
    make_input(m, "x", HALF, DIMS(4, 9));
    make_node(m, "Sigmoid", "x", "s");
    make_node(m, "Add", "x s", "y");
    make_output(m, "y");
    dp_model *model = compile(m, NULL);
    assert_nodes(model, "Sigmoid:f16 Add:f16");
    dp_model_free(model);
}

/* A table of embeddings stays in half, the rows that are read become floats. A middle value may be an output, too. */
static void tables_stay(void **state) {
    (void)state;
    maker *m = make_begin(17);
    make_input(m, "ids", INT64, DIMS(4));
    weight(m, "table", HALF, DIMS(40, 8));
    weight(m, "w", HALF, DIMS(8, 6));
    make_node(m, "Gather", "table ids", "rows");
    make_node(m, "MatMul", "rows w", "product");
    make_node(m, "Softmax", "product", "y");
    make_output(m, "y");
    make_output(m, "product");
    size_t size;
    void *bytes = make_end(m, &size);
    dp_model *plain = lowered(bytes, size), *lifted = compile_from(bytes, size, NULL);
    const dp_node *gather = lifted->graph->first;
    assert_string_equal(gather->type, "GatherV2D");
    assert_int_equal(gather->inputs[0]->tensor.element, DP_F16);
    for (int i = 0; i < 2; i++)
        assert_int_equal(lifted->graph->outputs[i]->tensor.element, DP_F16);
    for (const dp_node *node = gather->next; node; node = node->next)
        assert_true(strcmp(node->type, "Cast") == 0 || node->outputs[0]->tensor.element == DP_F32);
    int64_t n;
    float *a = run(plain, &n), *b = run(lifted, &n);
    assert_true(largest_difference(a, b, n) <= 0x1p-9);
    free(a), free(b), free(bytes);
    dp_model_free(plain), dp_model_free(lifted);
}

/* Integers that become half become floats at once, and the other way round no half lies between. */
static void integers_go_straight(void **state) {
    (void)state;
    maker *m = make_begin(17);
    make_input(m, "ids", INT64, DIMS(1, 4));
    weight(m, "w", HALF, DIMS(4, 6));
    cast(m, "ids", "x", HALF);
    make_node(m, "MatMul", "x w", "product");
    cast(m, "product", "y", INT64);
    make_output(m, "y");
    dp_model *model = compile(m, NULL);
    for (const dp_node *node = model->graph->first; node; node = node->next)
        assert_int_not_equal(node->outputs[0]->tensor.element, DP_F16);
    assert_int_equal(model->graph->outputs[0]->tensor.element, DP_I64);
    dp_model_free(model);
}

/* A node with more ends than are tried keeps its type, between Casts, and one that reads the same values as floats does
 * not mind. */
static void what_does_not_fit_stays(void **state) {
    (void)state;
    maker *m = make_begin(17);
    make_input(m, "x", HALF, DIMS(1, 3, 9, 7));
    weight(m, "w", HALF, DIMS(1, 3, 3, 3));
    convolution(m, "x w", "c");
    char names[256] = "c";
    for (int i = 1; i < 70; i++)
        strcat(names, " c");
    make_node(m, "Concat", names, "all");
    make_integer(m, "axis", 1);
    make_node(m, "Mul", "all c", "y");
    make_output(m, "y");
    size_t size;
    void *bytes = make_end(m, &size);
    dp_model *plain = lowered(bytes, size), *lifted = compile_from(bytes, size, NULL);
    int concatenations = 0;
    for (const dp_node *node = lifted->graph->first; node; node = node->next)
        if (strcmp(node->type, "ConcatD") == 0) {
            concatenations++;
            assert_int_equal(node->outputs[0]->tensor.element, DP_F16);
        } else if (strcmp(node->type, "PanelConv2D") == 0 || strcmp(node->type, "Mul") == 0) {
            assert_int_equal(node->outputs[0]->tensor.element, DP_F32);
        }
    assert_int_equal(concatenations, 1);
    int64_t n;
    float *a = run(plain, &n), *b = run(lifted, &n);
    for (int64_t i = 0; i < n; i++)
        assert_true(fabsf(a[i] - b[i]) <= 0x1p-9f * (1 + fabsf(a[i])));
    free(a), free(b), free(bytes);
    dp_model_free(plain), dp_model_free(lifted);
}

/* Asked for as float, the result is not rounded on its way out. */
static void output_type_is_exact(void **state) {
    (void)state;
    size_t size, float_size;
    void *bytes = make_end(net(HALF), &size), *float_bytes = make_end(net(FLOAT), &float_size);
    dp_precision precision = {.mode = DP_PRECISION_ORIGIN, .output_type = "FP32"};
    dp_model *model, *exact = lowered(float_bytes, float_size);
    assert_int_equal(dp_compile_onnx_as(bytes, size, NULL, NULL, 0, &precision, NULL, &model), DP_OK);
    assert_nodes(model, "Cast:f32 TransposeD:f32 PanelConv2D:f32 PanelConv2D:f32 TransposeD:f32 Identity:f32");
    int64_t n;
    float *a = run(model, &n), *b = run(exact, &n);
    assert_true(largest_difference(a, b, n) <= 2e-6);
    free(a), free(b), free(bytes), free(float_bytes);
    dp_model_free(model), dp_model_free(exact);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(half_is_lifted),
        cmocka_unit_test(bfloat_is_lifted),
        cmocka_unit_test(modes_that_want_half_keep_it),
        cmocka_unit_test(casts_cancel),
        cmocka_unit_test(casts_of_weights_fold),
        cmocka_unit_test(others_stay),
        cmocka_unit_test(tables_stay),
        cmocka_unit_test(integers_go_straight),
        cmocka_unit_test(what_does_not_fit_stays),
        cmocka_unit_test(output_type_is_exact),
    };
    return cmocka_run_group_tests_name("lift", tests, make_numbers, NULL);
}
