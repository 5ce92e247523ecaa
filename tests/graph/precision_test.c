/* Models in half and bfloat16: which nodes take the type, where Casts are, how far results are from float. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/half.h"
#include "graph/compile.h"
#include "graph/onnx_make.h"
#include "graph/program.h"

enum { ROWS = 3, IN = 8, OUT = 5 };
static float w[IN * OUT], b[OUT], x[ROWS * IN];

/* y = softmax(relu(x w + b)), z = relu(x w + b) */
static void *make_model(size_t *out_bytes) {
    static const int64_t x_dims[] = {ROWS, IN}, w_dims[] = {IN, OUT}, b_dims[] = {OUT};
    for (int i = 0; i < IN * OUT; i++)
        w[i] = (float)((i * 37) % 23 - 11) * .0717f;
    for (int i = 0; i < OUT; i++)
        b[i] = (float)(i - 2) * .1313f;
    for (int i = 0; i < ROWS * IN; i++)
        x[i] = (float)((i * 29) % 17 - 8) * .1919f;
    maker *m = make_begin(17);
    make_input(m, "x", 1, 2, x_dims);
    make_constant(m, "w", 1, 2, w_dims, w, sizeof w);
    make_constant(m, "b", 1, 1, b_dims, b, sizeof b);
    make_node(m, "MatMul", "x w", "product");
    make_node(m, "Add", "product b", "sum");
    make_node(m, "Relu", "sum", "z");
    make_node(m, "Softmax", "z", "y");
    make_output(m, "y");
    make_output(m, "z");
    return make_end(m, out_bytes);
}

static dp_model *compile(const char *mode, const char *mode_v2, const char *half_inputs, const char *output_type) {
    dp_precision precision = {.half_inputs = half_inputs, .output_type = output_type};
    size_t bytes;
    void *file = make_model(&bytes);
    dp_model *model = NULL;
    dp_status status = dp_precision_parse(mode, mode_v2, &precision);
    if (status == DP_OK)
        status = dp_compile_onnx_as(file, bytes, NULL, NULL, 0, &precision, NULL, &model);
    free(file);
    return status == DP_OK ? model : NULL;
}

static void run(dp_model *model, const void *in, void *y, void *z) {
    dp_program *program;
    assert_int_equal(dp_program_new(model->graph, &program), DP_OK);
    void *work = aligned_alloc(64, dp_program_work_bytes(program) + 64);
    assert_int_equal(dp_program_run(program, (void *[]){(void *)(uintptr_t)in}, (void *[]){y, z}, work), DP_OK);
    free(work);
    dp_program_free(program);
}

/* What the mode must make of a float. */
typedef float (*rounding)(float);
static float to_half(float v) {
    return dp_f32_from_f16(dp_f16_from_f32(v));
}
static float to_bfloat(float v) {
    return dp_f32_from_bf16(dp_bf16_from_f32(v));
}
static float as_is(float v) {
    return v;
}

/* factors: of the product's operands; between: of every result up to z. */
static void expect(rounding factors, rounding between, double *y, double *z) {
    for (int i = 0; i < ROWS; i++) {
        double total = 0;
        for (int j = 0; j < OUT; j++) {
            double sum = 0;
            for (int k = 0; k < IN; k++)
                sum += (double)factors(x[i * IN + k]) * (double)factors(w[k * OUT + j]);
            sum = (double)between((float)((double)between((float)sum) + (double)between(b[j])));
            z[i * OUT + j] = sum > 0 ? sum : 0;
            total += exp(z[i * OUT + j]);
        }
        for (int j = 0; j < OUT; j++)
            y[i * OUT + j] = exp(z[i * OUT + j]) / total;
    }
}

static int element_of(const dp_model *model, const char *type) {
    for (const dp_node *node = model->graph->first; node; node = node->next)
        if (strcmp(node->type, type) == 0)
            return node->outputs[0]->tensor.element;
    return DP_EL_NONE;
}
static int count(const dp_model *model, const char *type) {
    int n = 0;
    for (const dp_node *node = model->graph->first; node; node = node->next)
        n += strcmp(node->type, type) == 0;
    return n;
}

typedef struct mode_case {
    const char *mode, *v2;
    int softmax; /* type of its result */
    int most_casts;
    rounding factors, between;
    double step; /* relative rounding error of one number in z */
} mode_case;

static void modes(void **state) {
    (void)state;
    static const mode_case cases[] = {
        {NULL, NULL, DP_F32, 0, as_is, as_is, 1e-6},
        {"must_keep_origin_dtype", NULL, DP_F32, 0, as_is, as_is, 1e-6},
        {NULL, "origin", DP_F32, 0, as_is, as_is, 1e-6},
        {"force_fp16", NULL, DP_F16, 3, to_half, to_half, 0x1p-10},
        {NULL, "fp16", DP_F16, 3, to_half, to_half, 0x1p-10},
        {NULL, "bf16", DP_BF16, 3, to_bfloat, to_bfloat, 0x1p-7},
        {NULL, "mixed_float16", DP_F32, 2, to_half, to_half, 0x1p-10},
        {NULL, "mixed_bfloat16", DP_F32, 2, to_bfloat, to_bfloat, 0x1p-7},
        {"allow_fp32_to_fp16", NULL, DP_F32, 2, to_half, as_is, 0x1p-10},
        {"allow_fp32_to_bf16", NULL, DP_F32, 2, to_bfloat, as_is, 0x1p-7},
        {"allow_mix_precision", NULL, DP_F32, 2, to_half, to_half, 0x1p-10},
        {"force_fp32", NULL, DP_F32, 2, to_half, as_is, 1e-6},
        {NULL, "cube_fp16in_fp32out", DP_F32, 2, to_half, as_is, 1e-6},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const mode_case *c = &cases[i];
        dp_model *model = compile(c->mode, c->v2, NULL, NULL);
        assert_non_null(model);
        float y[ROWS * OUT], z[ROWS * OUT];
        double wanted_y[ROWS * OUT], wanted_z[ROWS * OUT];
        assert_int_equal(element_of(model, "SoftmaxV2"), c->softmax);
        assert_true(count(model, "Cast") <= c->most_casts);
        for (int k = 0; k < 2; k++)
            assert_int_equal(model->graph->outputs[k]->tensor.element, DP_F32);
        run(model, x, y, z);
        expect(c->factors, c->between, wanted_y, wanted_z);
        for (int k = 0; k < ROWS * OUT; k++) {
            double y_step = 4e-6 + 2 * c->step;
            if (fabs((double)z[k] - wanted_z[k]) > c->step * (2 + wanted_z[k]) ||
                fabs((double)y[k] - wanted_y[k]) > y_step)
                print_error("mode %s%s, element %d: z %g, expected %g; y %g, expected %g\n", c->mode ? c->mode : "",
                            c->v2 ? c->v2 : "", k, (double)z[k], wanted_z[k], (double)y[k], wanted_y[k]);
            assert_true(fabs((double)z[k] - wanted_z[k]) <= c->step * (2 + wanted_z[k]));
            assert_true(fabs((double)y[k] - wanted_y[k]) <= y_step);
        }
        dp_model_free(model);
    }
}

/* A result of half has half's values only. */
static void half_is_half(void **state) {
    (void)state;
    float y[ROWS * OUT], z[ROWS * OUT], exact[ROWS * OUT];
    dp_model *model = compile("force_fp16", NULL, NULL, NULL), *origin = compile(NULL, NULL, NULL, NULL);
    run(model, x, y, z);
    run(origin, x, y, exact);
    int differ = 0;
    for (int i = 0; i < ROWS * OUT; i++) {
        assert_true(z[i] == to_half(z[i]));
        differ += z[i] != exact[i];
    }
    assert_true(differ > 0);
    dp_model_free(model);
    dp_model_free(origin);
}

static void ends_change_type(void **state) {
    (void)state;
    float y[ROWS * OUT], z[ROWS * OUT];
    uint16_t half[ROWS * IN], y_half[ROWS * OUT];
    for (int i = 0; i < ROWS * IN; i++)
        half[i] = dp_f16_from_f32(x[i]);
    dp_model *wide = compile(NULL, NULL, NULL, NULL), *narrow = compile(NULL, NULL, "x", "y:0:FP16;z:0:UINT8");
    assert_non_null(narrow);
    assert_int_equal(narrow->graph->inputs[0]->tensor.element, DP_F16);
    assert_string_equal(narrow->graph->inputs[0]->name, "x");
    assert_int_equal(narrow->graph->outputs[0]->tensor.element, DP_F16);
    assert_string_equal(narrow->graph->outputs[0]->name, "y");
    uint8_t z_bytes[ROWS * OUT];
    run(narrow, half, y_half, z_bytes);
    run(wide, x, y, z);
    for (int i = 0; i < ROWS * OUT; i++) {
        assert_float_equal(dp_f32_from_f16(y_half[i]), y[i], 0x1p-9f);
        assert_true(fabsf((float)z_bytes[i] - z[i]) <= 1);
    }
    dp_model_free(narrow);
    /* all the way in half: nothing is cast */
    narrow = compile(NULL, "fp16", "x;", "FP16");
    assert_non_null(narrow);
    assert_int_equal(count(narrow, "Cast"), 0);
    uint16_t z_half[ROWS * OUT];
    run(narrow, half, y_half, z_half);
    for (int i = 0; i < ROWS * OUT; i++)
        assert_float_equal(dp_f32_from_f16(z_half[i]), z[i], 0x1p-8f);
    dp_model_free(narrow);
    dp_model_free(wide);
}

static void refused(const char *mode, const char *mode_v2, const char *half_inputs, const char *output_type,
                    const char *word) {
    assert_null(compile(mode, mode_v2, half_inputs, output_type));
    if (!strstr(dp_fail_message(), word))
        print_error("message: %s; missing: %s\n", dp_fail_message(), word);
    assert_non_null(strstr(dp_fail_message(), word));
}

static void wrong_settings_say_why(void **state) {
    (void)state;
    refused("force_fp16", "fp16", NULL, NULL, "give one of them");
    refused("fp16", NULL, NULL, NULL, "force_fp16");
    refused(NULL, "force_fp16", NULL, NULL, "mixed_float16");
    refused(NULL, "", NULL, NULL, "must be one of");
    refused(NULL, "mixed_hif8", NULL, NULL, "HiFloat8");
    refused(NULL, NULL, "nobody", NULL, "\"nobody\", which is no input");
    refused(NULL, NULL, NULL, "FP8", "output_type");
    refused(NULL, NULL, NULL, "y:0", "node:index:type");
    refused(NULL, NULL, NULL, "y::FP16", "node:index:type");
    refused(NULL, NULL, NULL, ":0:FP16", "node:index:type");
    refused(NULL, NULL, NULL, "nobody:0:FP16", "no output comes from there");
    refused(NULL, NULL, NULL, ":", "node:index:type");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(modes),
        cmocka_unit_test(half_is_half),
        cmocka_unit_test(ends_change_type),
        cmocka_unit_test(wrong_settings_say_why),
    };
    return cmocka_run_group_tests_name("precision", tests, NULL, NULL);
}
