/* Passes: a graph before and after, and the same results from both. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "graph/onnx/lower.h"
#include "graph/onnx/onnx.h"
#include "graph/onnx_make.h"
#include "graph/passes/passes.h"
#include "graph/program.h"

enum { ROOM = 1 << 16 };

static float numbers[ROOM]; /* weights and inputs of all tests, in [-1, 1) */

static int make_numbers(void **state) {
    (void)state;
    uint32_t random = 1;
    for (int i = 0; i < ROOM; i++) {
        random = random * 1664525u + 1013904223u;
        numbers[i] = (float)(int32_t)random * 0x1p-31f;
    }
    return 0;
}

static dp_model *lowered(const void *bytes, size_t size) {
    dp_model *model;
    dp_onnx_cut cut;
    int opset;
    assert_int_equal(dp_onnx_read(bytes, size, NULL, &opset, &model), DP_OK);
    assert_int_equal(dp_onnx_lower(model->graph, opset, &cut), DP_OK);
    assert_null(cut.node);
    return model;
}

/* The functions of a chain, in brackets. */
static void add_chain(const dp_node *node, char *text) {
    strcat(text, "(");
    for (const char *at = dp_node_text(node, "program", ""); at; at = strchr(at, ',')) {
        at += strspn(at, ", ");
        strcat(text, at == dp_node_text(node, "program", "") ? "" : " ");
        strncat(text, at, strcspn(at, " "));
    }
    strcat(text, ")");
}

/* Types of the nodes in order, with blanks between them, but for nodes that only rename elements. */
static const char *types_of(const dp_graph *graph, char *text) {
    text[0] = '\0';
    for (const dp_node *node = graph->first; node; node = node->next) {
        if (strcmp(node->type, "Reshape") == 0)
            continue;
        strcat(text, text[0] ? " " : "");
        if (strcmp(node->type, "ElementwiseChain") == 0)
            add_chain(node, text);
        else
            strcat(text, node->type);
    }
    return text;
}

static float *run(dp_model *model, size_t *out_count) {
    dp_program *program;
    dp_status status = dp_program_new(model->graph, &program);
    if (status != DP_OK)
        print_error("%s\n", dp_fail_message());
    assert_int_equal(status, DP_OK);
    void *work = aligned_alloc(64, (dp_program_work_bytes(program) + 127) / 64 * 64);
    *out_count = dp_value_bytes(model->graph->outputs[0]) / sizeof(float);
    float *y = malloc(*out_count * sizeof *y);
    for (int again = 0; again < 2; again++) {
        memset(work, again ? 0xff : 0, dp_program_work_bytes(program));
        assert_int_equal(dp_program_run(program, (void *[]){numbers + 100, numbers + 5000}, (void *[]){y}, work),
                         DP_OK);
    }
    free(work);
    dp_program_free(program);
    return y;
}

/* The made model without passes and with them: the types of both, and equal results. */
static void compare(maker *m, const char *before, const char *after) {
    size_t size, count, same;
    char types[4096];
    void *bytes = make_end(m, &size);
    dp_model *plain = lowered(bytes, size), *passed = lowered(bytes, size);
    int changes;
    assert_int_equal(dp_pass_outputs(plain->graph, &changes), DP_OK);
    if (before)
        assert_string_equal(types_of(plain->graph, types), before);
    assert_int_equal(dp_passes_run(passed->graph, NULL), DP_OK);
    assert_string_equal(types_of(passed->graph, types), after);
    float *a = run(plain, &count), *b = run(passed, &same);
    assert_int_equal(count, same);
    for (size_t i = 0; i < count; i++) {
        if (!(fabsf(a[i] - b[i]) <= 2e-5f * (1 + fabsf(a[i]))))
            print_error("element %zu of %zu: %g and %g\n", i, count, (double)a[i], (double)b[i]);
        assert_true(fabsf(a[i] - b[i]) <= 2e-5f * (1 + fabsf(a[i])));
    }
    free(a);
    free(b);
    free(bytes);
    dp_model_free(plain);
    dp_model_free(passed);
}

static maker *begin(const char *input, int rank, const int64_t *dims) {
    maker *m = make_begin(17);
    make_input(m, input, 1, rank, dims);
    make_output(m, "y");
    return m;
}
#define DIMS(...)                                                                                                      \
    (sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[]) {                                          \
        __VA_ARGS__                                                                                                    \
    }

static void number(maker *m, const char *name, float value) {
    make_constant(m, name, 1, 0, NULL, &value, sizeof value);
}
static void weight(maker *m, const char *name, int rank, const int64_t *dims) {
    size_t count = 1;
    for (int d = 0; d < rank; d++)
        count *= (size_t)dims[d];
    make_constant(m, name, 1, rank, dims, numbers + 10000, count * sizeof(float));
}
static void convolution(maker *m, const char *ends, const char *y, int64_t pad, int64_t stride, int64_t groups) {
    make_node(m, "Conv", ends, y);
    make_integers(m, "pads", 4, (const int64_t[]){pad, pad, pad, pad});
    make_integers(m, "strides", 2, (const int64_t[]){stride, stride});
    make_integer(m, "group", groups);
}

/* x * clip(x + 3, 0, 6) / 6 as PaddleOCR writes it, a factor and a summand behind a depthwise convolution. */
static void hard_swish_with_its_factor(void **state) {
    (void)state;
    maker *m = begin("x", DIMS(1, 5, 7, 6));
    weight(m, "w", DIMS(5, 1, 3, 3));
    number(m, "three", 3), number(m, "zero", 0), number(m, "six", 6), number(m, "scale", 1.5f),
        number(m, "shift", -.25f);
    convolution(m, "x w", "c", 1, 2, 5);
    make_node(m, "Add", "c three", "c3");
    make_node(m, "Clip", "c3 zero six", "bounded");
    make_node(m, "Mul", "c bounded", "six_times");
    make_node(m, "Div", "six_times six", "h");
    make_node(m, "Mul", "scale h", "hs");
    make_node(m, "Add", "hs shift", "y");
    compare(m, "Conv2D Add ClipByValue Mul Div Mul Add", "TransposeD PanelConv2D TransposeD");
}

static void activations_spelled_out(void **state) {
    (void)state;
    maker *m = begin("x", DIMS(3, 40));
    number(m, "half", .5f), number(m, "one", 1), number(m, "root", 1.41421356f);
    make_node(m, "Sigmoid", "x", "s");
    make_node(m, "Mul", "x s", "silu");
    make_node(m, "Div", "silu root", "d");
    make_node(m, "Erf", "d", "e");
    make_node(m, "Add", "e one", "e1");
    make_node(m, "Mul", "silu e1", "g");
    make_node(m, "Mul", "g half", "gelu");
    make_node(m, "HardSigmoid", "gelu", "y");
    compare(m, "Sigmoid Mul Div Erf Add Mul Mul Muls Adds ClipByValue", "(silu gelu hardsigmoid_linear)");
}

/* Two users of what lies inside: the pattern is taken, and what is wanted stays. */
static void inner_values_that_are_used_stay(void **state) {
    (void)state;
    maker *m = begin("x", DIMS(3, 40));
    make_node(m, "Sigmoid", "x", "s");
    make_node(m, "Mul", "x s", "silu");
    make_node(m, "Sub", "silu s", "y");
    compare(m, "Sigmoid Mul Sub", "(sigmoid silu sub)");
}

static void layer_norm(void **state) {
    (void)state;
    maker *m = begin("x", DIMS(2, 5, 48));
    weight(m, "gamma", DIMS(48)), weight(m, "beta", DIMS(48));
    number(m, "two", 2), number(m, "epsilon", 1e-5f);
    make_node(m, "ReduceMean", "x", "mean");
    make_integers(m, "axes", 1, (const int64_t[]){-1});
    make_node(m, "Sub", "x mean", "d");
    make_node(m, "Pow", "d two", "d2");
    make_node(m, "ReduceMean", "d2", "variance");
    make_integers(m, "axes", 1, (const int64_t[]){2});
    make_node(m, "Add", "variance epsilon", "v");
    make_node(m, "Sqrt", "v", "deviation");
    make_node(m, "Div", "d deviation", "n");
    make_node(m, "Mul", "n gamma", "g");
    make_node(m, "Add", "g beta", "y");
    compare(m, NULL, "LayerNormV3");
}

/* x [rows, heads * depth] to [heads, rows, depth], as `to`. */
static void heads_of(maker *m, const char *x, const char *to, const int64_t *perm) {
    char inputs[64], split[32];
    snprintf(split, sizeof split, "%s_split", to);
    snprintf(inputs, sizeof inputs, "%s by_heads", x);
    make_node(m, "Reshape", inputs, split);
    make_node(m, "Transpose", split, to);
    make_integers(m, "perm", 3, perm);
}

/* As torch exports it: rows before heads, the factor on the query; all of it in one node. */
static void attention_of_heads(void **state) {
    (void)state;
    maker *m = begin("x", DIMS(9, 12));
    static const char *const weights[] = {"wq", "wk", "wv"};
    for (int i = 0; i < 3; i++)
        make_constant(m, weights[i], 1, 2, (const int64_t[]){12, 12}, numbers + 10000 + 144 * i, 144 * sizeof(float));
    make_constant(m, "by_heads", 7, 1, (const int64_t[]){3}, (const int64_t[]){9, 3, 4}, 3 * sizeof(int64_t));
    make_constant(m, "flat", 7, 1, (const int64_t[]){2}, (const int64_t[]){9, 12}, 2 * sizeof(int64_t));
    number(m, "root", 2);
    make_node(m, "MatMul", "x wq", "q");
    make_node(m, "MatMul", "x wk", "k");
    make_node(m, "MatMul", "x wv", "v");
    heads_of(m, "q", "qh", (const int64_t[]){1, 0, 2});
    heads_of(m, "k", "kh", (const int64_t[]){1, 2, 0});
    heads_of(m, "v", "vh", (const int64_t[]){1, 0, 2});
    make_node(m, "Div", "qh root", "qs");
    make_node(m, "MatMul", "qs kh", "scores");
    make_node(m, "Softmax", "scores", "weights");
    make_integer(m, "axis", -1);
    make_node(m, "MatMul", "weights vh", "mixed");
    make_node(m, "Transpose", "mixed", "rows");
    make_integers(m, "perm", 3, (const int64_t[]){1, 0, 2});
    make_node(m, "Reshape", "rows flat", "y");
    compare(m, NULL, "PanelMatMul PanelMatMul PanelMatMul Attention");
}

/* Heads first, a batch, and keys that have no such order: they are turned. */
static void attention_of_a_batch(void **state) {
    (void)state;
    maker *m = begin("x", DIMS(2, 3, 7, 5));
    number(m, "factor", 0.3f);
    make_node(m, "Transpose", "x", "k");
    make_integers(m, "perm", 4, (const int64_t[]){0, 1, 3, 2});
    make_node(m, "MatMul", "x k", "scores");
    make_node(m, "Mul", "scores factor", "scaled");
    make_node(m, "Softmax", "scaled", "weights");
    make_integer(m, "axis", 3);
    make_node(m, "MatMul", "weights x", "y");
    compare(m, "TransposeD BatchMatMulV2 Mul SoftmaxV2 BatchMatMulV2", "Attention");
}

/* The softmax goes over queries: no attention. */
static void no_attention(void **state) {
    (void)state;
    maker *m = begin("x", DIMS(3, 7, 7));
    make_node(m, "Transpose", "x", "k");
    make_integers(m, "perm", 3, (const int64_t[]){0, 2, 1});
    make_node(m, "MatMul", "x k", "scores");
    make_node(m, "Softmax", "scores", "weights");
    make_integer(m, "axis", 1);
    make_node(m, "MatMul", "weights x", "y");
    compare(m, NULL, "TransposeD BatchMatMulV2 SoftmaxV2 BatchMatMulV2");
}

/* A chain with a branch, a factor per column and numbers; what is read from outside stays a node. */
static void elementwise_chain(void **state) {
    (void)state;
    maker *m = begin("x", DIMS(3, 50, 12));
    weight(m, "columns", DIMS(12)), weight(m, "lines", DIMS(50, 1));
    number(m, "half", .5f);
    make_node(m, "Exp", "x", "e");
    make_node(m, "Mul", "e columns", "scaled");
    make_node(m, "Abs", "scaled", "size");
    make_node(m, "Add", "size half", "more");
    make_node(m, "Div", "scaled more", "share");
    make_node(m, "Sub", "share lines", "y");
    compare(m, "Exp Mul Abs Add Div Sub", "(exp mul abs add quotient sub)");
}
static void chains_end_at_other_readers(void **state) {
    (void)state;
    maker *m = begin("x", DIMS(4, 9));
    make_node(m, "Neg", "x", "n");
    make_node(m, "Exp", "n", "e");
    make_node(m, "Softmax", "e", "s");
    make_integer(m, "axis", -1);
    make_node(m, "Abs", "e", "a");
    make_node(m, "Mul", "a s", "y");
    compare(m, "Neg Exp SoftmaxV2 Abs Mul", "(neg exp) SoftmaxV2 (abs mul)");
}

static void leaky_relu_with_a_least_value(void **state) {
    (void)state;
    maker *m = begin("x", DIMS(1, 5, 7, 6));
    weight(m, "w", DIMS(5, 5, 1, 3));
    number(m, "least", -.05f);
    convolution(m, "x w", "c", 0, 1, 1);
    make_node(m, "LeakyRelu", "c", "l");
    make_real(m, "alpha", .25f);
    make_node(m, "Max", "l least", "y");
    compare(m, "Conv2D LeakyRelu Maximum", "TransposeD PanelConv2D TransposeD");
}

/* conv(relu(conv(x))) + x: two convolutions, the residual in the second. */
static void residual_and_activation(void **state) {
    (void)state;
    maker *m = begin("x", DIMS(2, 8, 6, 5));
    weight(m, "w", DIMS(8, 8, 3, 3)), weight(m, "b", DIMS(8));
    convolution(m, "x w b", "a", 1, 1, 1);
    make_node(m, "Relu", "a", "r");
    convolution(m, "r w", "c", 1, 1, 1);
    make_node(m, "Add", "x c", "s");
    make_node(m, "LeakyRelu", "s", "y");
    compare(m, "Conv2D Relu Conv2D Add LeakyRelu", "TransposeD PanelConv2D PanelConv2D TransposeD");
}

/* The activation comes first: the residual is added behind it. */
static void residual_behind_the_activation(void **state) {
    (void)state;
    maker *m = begin("x", DIMS(1, 8, 6, 5));
    weight(m, "w", DIMS(8, 8, 1, 1));
    convolution(m, "x w", "a", 0, 1, 1);
    make_node(m, "Sigmoid", "a", "r");
    make_node(m, "Add", "r x", "y");
    compare(m, "Conv2D Sigmoid Add", "TransposeD PanelConv2D TransposeD");
}

/* A squeeze and excitation gate with x + x * s, pooling, and a concatenation whose parts lie in their places. */
static void pools_and_concatenations(void **state) {
    (void)state;
    maker *m = begin("x", DIMS(1, 3, 16, 12));
    weight(m, "w", DIMS(8, 3, 3, 3)), weight(m, "v", DIMS(8, 8, 1, 1)), weight(m, "u", DIMS(4, 24, 3, 3));
    convolution(m, "x w", "a", 1, 1, 1);
    make_node(m, "GlobalAveragePool", "a", "mean");
    convolution(m, "mean v", "k", 0, 1, 1);
    make_node(m, "HardSigmoid", "k", "s");
    make_node(m, "Mul", "a s", "as");
    make_node(m, "Add", "a as", "gated");
    make_node(m, "MaxPool", "gated", "p");
    make_integers(m, "kernel_shape", 2, (const int64_t[]){3, 3});
    make_integers(m, "strides", 2, (const int64_t[]){2, 2});
    make_integers(m, "pads", 4, (const int64_t[]){1, 1, 1, 1});
    convolution(m, "gated v", "q", 0, 2, 1);
    make_node(m, "AveragePool", "p", "r");
    make_integers(m, "kernel_shape", 2, (const int64_t[]){3, 3});
    make_integers(m, "pads", 4, (const int64_t[]){1, 1, 1, 1});
    make_node(m, "Concat", "p q r", "all");
    make_integer(m, "axis", 1);
    convolution(m, "all u", "y", 1, 1, 1);
    compare(
        m, NULL,
        "TransposeD PanelConv2D LastMean PanelConv2D Adds LastScale LastMaxPool PanelConv2D LastAveragePool ConcatD "
        "PanelConv2D TransposeD");
}

/* Windows that tile the image: a product, and a sigmoid that goes into it across the moves. */
static void transposed_convolution_as_product(void **state) {
    (void)state;
    maker *m = begin("x", DIMS(2, 6, 4, 5));
    weight(m, "w", DIMS(6, 3, 2, 3)), weight(m, "b", DIMS(3)), weight(m, "f", DIMS(3, 1, 1));
    make_node(m, "ConvTranspose", "x w b", "c");
    make_integers(m, "strides", 2, (const int64_t[]){2, 3});
    make_node(m, "Mul", "c f", "cf");
    make_node(m, "Sigmoid", "cf", "y");
    compare(m, "Conv2DTransposeD Mul Sigmoid", "TransposeD PanelMatMul TransposeD TransposeD");
}
static void transposed_convolution(void **state) {
    (void)state;
    maker *m = begin("x", DIMS(1, 6, 4, 5));
    weight(m, "w", DIMS(6, 3, 3, 3));
    make_node(m, "ConvTranspose", "x w", "c");
    make_integers(m, "strides", 2, (const int64_t[]){2, 2});
    make_integers(m, "pads", 4, (const int64_t[]){1, 1, 1, 1});
    make_node(m, "Relu", "c", "y");
    compare(m, "Conv2DTransposeD Relu", "TransposeD PanelConv2DTranspose TransposeD");
}

/* Images that come with channels last, as TensorFlow's do, and go so: no transpose is left. */
static void images_with_channels_last(void **state) {
    (void)state;
    maker *m = begin("x", DIMS(1, 6, 5, 3));
    weight(m, "w", DIMS(8, 3, 3, 3));
    make_node(m, "Transpose", "x", "first");
    make_integers(m, "perm", 4, (const int64_t[]){0, 3, 1, 2});
    convolution(m, "first w", "c", 1, 1, 1);
    make_node(m, "Relu", "c", "r");
    make_node(m, "Transpose", "r", "last");
    make_integers(m, "perm", 4, (const int64_t[]){0, 2, 3, 1});
    make_constant(m, "shape", 7, DIMS(2), (const int64_t[]){30, 8}, 16);
    make_node(m, "Reshape", "last shape", "y");
    compare(m, "TransposeD Conv2D Relu TransposeD", "PanelConv2D");
}

/* A product with bias and residual; weights that do not stay constant are left alone. */
static void products(void **state) {
    (void)state;
    maker *m = begin("x", DIMS(2, 9, 12));
    weight(m, "w", DIMS(12, 20)), weight(m, "b", DIMS(20)), weight(m, "v", DIMS(20, 12));
    make_node(m, "MatMul", "x w", "a");
    make_node(m, "Add", "b a", "ab");
    make_node(m, "Tanh", "ab", "t");
    make_node(m, "MatMul", "t v", "c");
    make_node(m, "Add", "c x", "y");
    compare(m, "BatchMatMulV2 Add Tanh BatchMatMulV2 Add", "PanelMatMul PanelMatMul");
}
static void products_of_two_inputs(void **state) {
    (void)state;
    maker *m = begin("x", DIMS(9, 12));
    make_input(m, "z", 1, DIMS(12, 4));
    make_node(m, "MatMul", "x z", "a");
    make_node(m, "Relu", "a", "y");
    compare(m, NULL, "MatMulV2 Relu");
}

/* A result that is also an output, or read twice, keeps its node. */
static void results_read_twice_stay(void **state) {
    (void)state;
    maker *m = begin("x", DIMS(1, 8, 6, 5));
    weight(m, "w", DIMS(8, 8, 1, 1));
    convolution(m, "x w", "a", 0, 1, 1);
    make_node(m, "Relu", "a", "r");
    make_node(m, "Sub", "r a", "y");
    compare(m, "Conv2D Relu Sub", "TransposeD PanelConv2D (relu sub) TransposeD");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hard_swish_with_its_factor),
        cmocka_unit_test(activations_spelled_out),
        cmocka_unit_test(inner_values_that_are_used_stay),
        cmocka_unit_test(layer_norm),
        cmocka_unit_test(attention_of_heads),
        cmocka_unit_test(attention_of_a_batch),
        cmocka_unit_test(no_attention),
        cmocka_unit_test(elementwise_chain),
        cmocka_unit_test(chains_end_at_other_readers),
        cmocka_unit_test(leaky_relu_with_a_least_value),
        cmocka_unit_test(residual_and_activation),
        cmocka_unit_test(residual_behind_the_activation),
        cmocka_unit_test(pools_and_concatenations),
        cmocka_unit_test(transposed_convolution_as_product),
        cmocka_unit_test(transposed_convolution),
        cmocka_unit_test(images_with_channels_last),
        cmocka_unit_test(products),
        cmocka_unit_test(products_of_two_inputs),
        cmocka_unit_test(results_read_twice_stay),
    };
    return cmocka_run_group_tests(tests, make_numbers, NULL);
}
