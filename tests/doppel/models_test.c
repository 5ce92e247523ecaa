/* `doppel run`, `bench`, `profile` and `compare` on small models: what they print, their files, wrong usage. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "doppel/compare.h"
#include "doppel/compile.h"
#include "graph/onnx_make.h"

static char folder[64], said[1 << 16];

static const char *in_folder(const char *file) {
    static char paths[4][128];
    static int turn;
    char *path = paths[turn++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, file);
    return path;
}

/* Runs a program in the folder; both streams are in `said`. */
static int run(const char *program, const char *arguments) {
    char command[4000];
    snprintf(command, sizeof command, "cd %s && %s %s 2>&1", folder, program, arguments);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    size_t n = fread(said, 1, sizeof said - 1, pipe);
    said[n] = '\0';
    int status = pclose(pipe);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

__attribute__((format(printf, 1, 2))) static int doppel(const char *format, ...) {
    char arguments[2000];
    va_list args;
    va_start(args, format);
    vsnprintf(arguments, sizeof arguments, format, args);
    va_end(args);
    return run(DOPPEL, arguments);
}

static void assert_said(const char *sentence) {
    if (!strstr(said, sentence))
        fail_msg("expected \"%s\" in\n%s", sentence, said);
}

static void assert_narrow(void) {
    for (const char *line = said; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strcspn(line, "\n") > 100)
            fail_msg("wider than 100 columns: %.*s", (int)strcspn(line, "\n"), line);
    }
}

static void save(const char *file, const void *bytes, size_t n) {
    FILE *out = fopen(in_folder(file), "wb");
    assert_non_null(out);
    assert_int_equal(fwrite(bytes, 1, n, out), n);
    fclose(out);
}

static void compile_with(const char *file, const char *precision, const char *shape) {
    char message[512];
    dp_compile_options o = {
        .model = in_folder(file), .output = in_folder(file), .precision_mode_v2 = precision, .input_shape = shape};
    if (!dp_compile_model(&o, message, sizeof message))
        fail_msg("%s: %s", file, message);
}

static void compile_gears(const char *file, const char *shape, const char *gears) {
    char message[512];
    dp_compile_options o = {
        .model = in_folder(file), .output = in_folder(file), .input_shape = shape, .dynamic_dims = gears};
    if (!dp_compile_model(&o, message, sizeof message))
        fail_msg("%s: %s", file, message);
}

static void compile(const char *file, const char *precision) {
    compile_with(file, precision, NULL);
}

static float number(uint32_t *seed) {
    *seed = *seed * 1664525u + 1013904223u;
    return (float)(*seed >> 8) * 0x1p-23f - 1;
}

static void constant(maker *m, const char *name, uint32_t *seed, int rank, const int64_t *dims, float spoil) {
    static float contents[4096];
    int64_t n = 1;
    for (int d = 0; d < rank; d++)
        n *= dims[d];
    assert_true(n <= 4096);
    for (int64_t i = 0; i < n; i++)
        contents[i] = number(seed) * .4f;
    contents[n / 2] += spoil;
    make_constant(m, name, 1, rank, dims, contents, (size_t)n * sizeof(float));
}

/* A picture model with every type that the reference computes by plain loops; `spoil` changes one weight of "second".
 */
static void make_net(const char *file, float spoil) {
    static const int64_t x[] = {1, 3, 12, 12}, w1[] = {8, 3, 3, 3}, w2[] = {8, 2, 3, 3}, w3[] = {8, 6, 2, 2}, b[] = {8},
                         f[] = {24, 5}, scale[] = {5}, shape[] = {1, 6, 24, 24}, rows[] = {144, 24}, two[] = {2, 2},
                         one[] = {1, 1, 1, 1}, three[] = {3, 3}, apart[] = {2, 2};
    uint32_t seed = 7;
    size_t bytes;
    maker *m = make_begin(17);
    make_input(m, "x", 1, 4, x);
    constant(m, "w1", &seed, 4, w1, 0);
    constant(m, "b1", &seed, 1, b, 0);
    make_node(m, "Conv", "x w1 b1", "first");
    make_integers(m, "pads", 4, one);
    constant(m, "w2", &seed, 4, w2, spoil);
    make_node(m, "Conv", "first w2", "second"); /* four groups, dilated, the same size again */
    make_integer(m, "group", 4);
    make_integers(m, "dilations", 2, apart);
    make_integers(m, "pads", 4, (const int64_t[]){2, 2, 2, 2});
    make_node(m, "Relu", "second", "positive");
    make_node(m, "MaxPool", "positive", "most");
    make_integers(m, "kernel_shape", 2, three);
    make_integers(m, "pads", 4, one);
    make_node(m, "AveragePool", "most", "mean");
    make_integers(m, "kernel_shape", 2, three);
    make_integers(m, "pads", 4, one);
    constant(m, "w3", &seed, 4, w3, 0);
    make_node(m, "ConvTranspose", "mean w3", "large");
    make_integers(m, "strides", 2, two);
    make_constant(m, "rows", 7, 1, (const int64_t[]){2}, rows, sizeof rows);
    make_node(m, "Reshape", "large rows", "lines");
    constant(m, "f", &seed, 2, f, 0);
    make_node(m, "MatMul", "lines f", "product");
    constant(m, "scale", &seed, 1, scale, 0);
    constant(m, "shift", &seed, 1, scale, 0);
    make_node(m, "LayerNormalization", "product scale shift", "even");
    make_node(m, "Softmax", "even", "soft");
    make_node(m, "LogSoftmax", "even", "log");
    make_output(m, "soft");
    make_output(m, "log");
    make_output(m, "large");
    (void)shape;
    void *all = make_end(m, &bytes);
    save(file, all, bytes);
    free(all);
}

/* y = 2 x for a picture of 1x3x8x10. */
static void make_twice(void) {
    static const int64_t x[] = {1, 3, 8, 10}, none[] = {1};
    const float two = 2;
    size_t bytes;
    maker *m = make_begin(17);
    make_input(m, "x", 1, 4, x);
    make_constant(m, "two", 1, 1, none, &two, sizeof two);
    make_node(m, "Mul", "x two", "y");
    make_output(m, "y");
    void *all = make_end(m, &bytes);
    save("twice.onnx", all, bytes);
    free(all);
}

#define LONG_NAME "/a/name/that/is/longer/than/what/is/left/of/a/terminal/of/eighty/columns/Add"

/* y = a + b. */
static void make_sum(const char *file, int64_t n, const char *node) {
    size_t bytes;
    maker *m = make_begin(17);
    make_input(m, "a", 1, 1, &n);
    make_input(m, "b", 1, 1, &n);
    make_node(m, "Add", "a b", "y");
    make_name(m, node);
    make_output(m, "y");
    void *all = make_end(m, &bytes);
    save(file, all, bytes);
    free(all);
}

/* Scores of three classes: the mean of each colour. */
static void make_scores(void) {
    static const int64_t x[] = {1, 3, 8, 8}, axes[] = {2, 3};
    size_t bytes;
    maker *m = make_begin(13);
    make_input(m, "x", 1, 4, x);
    make_node(m, "ReduceMean", "x", "y");
    make_integers(m, "axes", 2, axes);
    make_integer(m, "keepdims", 0);
    make_output(m, "y");
    void *all = make_end(m, &bytes);
    save("scores.onnx", all, bytes);
    free(all);
}

/* Where x, of an open length, is not 0: as many columns as there are. */
static void make_open(void) {
    static const int64_t x[] = {2, -1};
    size_t bytes;
    maker *m = make_begin(13);
    make_input(m, "x", 1, 2, x);
    make_node(m, "NonZero", "x", "places");
    make_node(m, "Relu", "x", "positive");
    make_output(m, "places");
    make_output(m, "positive");
    void *all = make_end(m, &bytes);
    save("open.onnx", all, bytes);
    free(all);
}

static int setup(void **state) {
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/doppel_models_XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    make_net("net.onnx", 0);
    make_net("other.onnx", .05f);
    make_twice();
    make_sum("sum.onnx", 4, "sum");
    make_sum("long.onnx", 4, LONG_NAME);
    make_sum("none.onnx", -1, "sum");
    make_scores();
    make_open();
    compile_with("open.onnx", NULL, "x:2,-1");
    compile("scores.onnx", NULL);
    compile("net.onnx", NULL);
    compile("other.onnx", NULL);
    compile("twice.onnx", NULL);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}

static void test_run(void **state) {
    (void)state;
    float x[240], y[240 + 64];
    for (int i = 0; i < 240; i++)
        x[i] = (float)i - 100;
    save("x.bin", x, sizeof x);
    assert_int_equal(doppel("run twice.onnx.om --input x=x.bin --output out --top 2"), 0);
    assert_said("float32    1x3x8x10                    -200         278          39");
    assert_said("[239] 278");
    assert_narrow();
    FILE *file = fopen(in_folder("out/y.npy"), "rb");
    assert_non_null(file);
    size_t n = fread(y, 1, sizeof y, file);
    fclose(file);
    assert_int_equal(n % 64, (240 * 4) % 64);
    for (int i = 0; i < 240; i++)
        assert_float_equal(y[(int)(n / 4) - 240 + i], 2 * x[i], 0);
    /* What was written is read again. */
    assert_int_equal(doppel("run twice.onnx.om --input out/y.npy"), 0);
    assert_said("-400         556          78");
    assert_int_equal(doppel("run twice.onnx.om --input ones --threads 1"), 0);
    assert_said("2           2           2");
    assert_int_equal(doppel("run twice.onnx.om --input %s --mean 255 --scale 1/510 --layout nchw", PICTURE), 0);
    assert_said("0 ");
    assert_int_equal(doppel("run twice.onnx.om --input random:5"), 0);
}

/* A word without a name is for the inputs that nothing else is said of. */
static void test_words(void **state) {
    (void)state;
    compile("sum.onnx", NULL);
    assert_int_equal(doppel("run sum.onnx.om --input ones"), 0);
    assert_said("2           2           2");
    assert_int_equal(doppel("run sum.onnx.om --input zeros --input b=ones"), 0);
    assert_said("1           1           1");
    assert_int_equal(doppel("run sum.onnx.om --input a=2.5 --input b=-1,0,1,2 --top 4"), 0); /* numbers */
    assert_said("1.5         4.5           3");
    assert_int_equal(doppel("run twice.onnx.om --input 1e2"), 0);
    assert_said("200         200         200");
    assert_int_equal(doppel("run sum.onnx.om --input a=1,2 --input b=ones"), 1);
    assert_said("2 numbers are given, the model takes 4: one for all elements, or 4");
    assert_int_equal(doppel("run sum.onnx.om --input=a=ones --input=zeros --threads=1"), 0);
    assert_said("1           1           1");
    assert_int_equal(doppel("run sum.onnx.om --what=ones"), 2);
    assert_said("no option --what;");
    assert_int_equal(doppel("run sum.onnx.om --input random"), 0);
    compile_with("none.onnx", NULL, "a:0;b:0"); /* nothing in, nothing out */
    assert_int_equal(doppel("run none.onnx.om --input ones --top 3 --output none"), 0);
    assert_said("float32    0 ");
    assert_int_equal(doppel("run sum.onnx.om --input ones --input zeros"), 1);
    assert_said("begins with the name of no input");
    assert_int_equal(doppel("run sum.onnx.om --input a=ones"), 1);
    assert_said("--input is missing for \"b\"");
    assert_said("--input b=random");
}

static void test_run_refuses(void **state) {
    (void)state;
    save("short.bin", "1234", 4);
    save("long.bin", said, 241 * 4);
    static const struct {
        const char *arguments, *says;
        int status;
    } cases[] = {
        {"run", "which model?", 2},
        {"run twice.onnx.om", "--input is missing for \"x\"", 1},
        {"run twice.onnx.om --input y=x.bin", "begins with the name of no input", 1},
        {"run twice.onnx.om --input x=x.bin --input x=x.bin", "given twice", 1},
        {"run twice.onnx.om --input short.bin", "short.bin has 4 bytes, the model takes 960", 1},
        {"run twice.onnx.om --input long.bin", "more than 960 bytes", 1},
        {"run twice.onnx.om --input nothing.npy", "No such file", 1},
        {"run twice.onnx.om --input random:x", "a number must follow", 1},
        {"run twice.onnx.om --input", "needs a value", 2},
        {"run twice.onnx.om --input random --shape x:1,2", "the model was compiled for", 1},
        {"run twice.onnx.om --resize big", "expected stretch, pad, crop or exact", 2},
        {"run twice.onnx.om --mean 1,2", "one number or three", 2},
        {"run twice.onnx.om --scale 1/0", "one number or three", 2},
        {"run twice.onnx.om --what", "no option --what", 2},
        {"run twice.onnx.om another.om", "one argument too many", 2},
        {"run twice.onnx", "compile it first", 1},
        {"run nothing.om", "No such file", 1},
        {"run x.bin", "run: x.bin:", 1},
        {"bench twice.onnx.om --runs 0", "expected 1 to", 2},
        {"compare net.onnx", "two files are needed", 2},
        {"compare net.onnx twice.onnx.om", "was that made from another file? ", 2},
        {"compare net.onnx twice.onnx.om", "dimension", 2},
        {"compare twice.onnx net.onnx.om", "dimension", 2},
        {"compare x.bin net.onnx.om", "", 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int status = doppel("%s", cases[i].arguments);
        if (status != cases[i].status)
            fail_msg("doppel %s: status %d\n%s", cases[i].arguments, status, said);
        assert_said(cases[i].says);
    }
}

static void test_open(void **state) {
    (void)state;
    const float x[] = {0, 3, 0, -1, 0, 2};
    int64_t places[16];
    save("x6.bin", x, sizeof x);
    assert_int_equal(doppel("run open.onnx.om --input x6.bin"), 1);
    assert_said("input \"x\" has open dimensions, 2x-1: give its shape");
    assert_int_equal(doppel("run open.onnx.om --input x6.bin --shape x:2,3 --shape y:3"), 1);
    assert_said("--shape y:3 begins with the name of no input");
    assert_int_equal(doppel("run open.onnx.om --input x6.bin --shape x:2,3 --output open"), 0);
    assert_said("places                         int64      2x3 ");
    assert_said("positive                       float32    2x3 ");
    assert_narrow();
    FILE *file = fopen(in_folder("open/places.npy"), "rb");
    assert_non_null(file);
    char bytes[512];
    size_t n = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    assert_true(n > sizeof places / 2);
    memcpy(places, bytes + n - 6 * sizeof places[0], 6 * sizeof places[0]);
    static const int64_t expected[] = {0, 1, 1, 1, 0, 2};
    assert_memory_equal(places, expected, sizeof expected);
    assert_int_equal(doppel("run open.onnx.om --input x6.bin --shape x:2,a"), 1);
    assert_said("must be numbers with commas");
    assert_int_equal(doppel("run open.onnx.om --input x6.bin --shape 2,3"), 2);
    assert_int_equal(doppel("run open.onnx.om --input x6.bin --shape x:3,2"), 1);
    assert_int_equal(doppel("run open.onnx.om --input zeros --shape x:2,4611686018427387904"), 1);
    assert_said("larger than memory");
    assert_int_equal(doppel("bench open.onnx.om --shape x:2,1000 --runs 3"), 0);
    assert_int_equal(doppel("compare open.onnx open.onnx.om --shape x:2,3"), 2); /* NonZero: dims that depend on data */
    assert_said("not compared");
    compile_with("none.onnx", NULL, "a:-1;b:-1"); /* lowered while it runs, for the shapes that are given */
    assert_int_equal(doppel("compare none.onnx none.onnx.om --shape a:5 --shape b:5"), 0);
    assert_said("1 values compared");
    assert_int_equal(doppel("compare net.onnx none.onnx.om --shape a:5 --shape b:5"), 2);
    assert_said("was that made from another file?");
    assert_int_equal(doppel("compare none.onnx none.onnx.om --shape a:5 --shape b:6"), 2);
    compile_gears("none.onnx", "a:-1;b:-1", "2,2;7,7"); /* the size that is asked for */
    assert_int_equal(doppel("compare none.onnx none.onnx.om --shape a:7 --shape b:7"), 0);
    assert_said("1 values compared");
}

static void compile_aipp(const char *om, const char *settings) {
    char message[512];
    save("net.aipp", settings, strlen(settings));
    dp_compile_options o = {
        .model = in_folder("twice.onnx"), .output = in_folder(om), .insert_op_conf = in_folder("net.aipp")};
    if (!dp_compile_model(&o, message, sizeof message))
        fail_msg("%s", message);
}

/* The three numbers behind the output's shape. */
static void read_numbers(double *out) {
    const char *line = strstr(said, "1x3x8x10");
    assert_non_null(line);
    assert_int_equal(sscanf(line + 8, "%lf %lf %lf", &out[0], &out[1], &out[2]), 3);
}

static void test_aipp(void **state) {
    (void)state;
    double plain[3], rgb[3], yuv[3];
    assert_int_equal(doppel("run twice.onnx.om --input %s --scale 1", PICTURE), 0);
    read_numbers(plain);
    compile_aipp("rgb.om", "aipp_op { input_format: RGB888_U8 src_image_size_w: 10 src_image_size_h: 8 }");
    assert_int_equal(doppel("run rgb.om --input %s", PICTURE), 0);
    read_numbers(rgb);
    assert_memory_equal(plain, rgb, sizeof plain);
    compile_aipp(
        "yuv.om",
        "aipp_op { input_format: YUV420SP_U8 src_image_size_w: 10 src_image_size_h: 8 csc_switch: true\n"
        "matrix_r0c0: 256 matrix_r0c1: 0 matrix_r0c2: 359 matrix_r1c0: 256 matrix_r1c1: -88 matrix_r1c2: -183\n"
        "matrix_r2c0: 256 matrix_r2c1: 454 matrix_r2c2: 0\n"
        "input_bias_0: 0 input_bias_1: 128 input_bias_2: 128 }");
    assert_int_equal(doppel("run yuv.om --input %s", PICTURE), 0);
    read_numbers(yuv);
    assert_float_equal(plain[2], yuv[2], 6); /* of at most 510 */
    assert_int_equal(doppel("run yuv.om --input %s --mean 1", PICTURE), 1);
    assert_said("leave them out");
    assert_int_equal(doppel("compare twice.onnx yuv.om --tolerance 1e-6 --input %s", PICTURE), 0);
    assert_said("1 values compared");
    compile_aipp("free.om", "aipp_op { aipp_mode: dynamic max_src_image_size: 1000 }");
    assert_int_equal(doppel("run free.om --input random"), 1);
    assert_said("compile it with aipp_mode: static");
}

static void test_help(void **state) {
    (void)state;
    static const char *const commands[] = {"run", "bench", "profile", "compare"};
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(doppel("%s --help", commands[i]), 0);
        assert_said("usage: doppel");
        assert_said("--mean");
        assert_narrow();
    }
}

static void test_bench_and_profile(void **state) {
    (void)state;
    assert_int_equal(doppel("bench net.onnx.om --runs 5"), 0);
    assert_said("5 runs");
    assert_said("median");
    assert_narrow();
    assert_int_equal(doppel("profile net.onnx.om --runs 4 --rows 3 -o t.json"), 0);
    assert_said("Conv2D");
    assert_said("4 runs");
    assert_said("more: --rows");
    compile("long.onnx", NULL);
    assert_int_equal(doppel("profile long.onnx.om --runs 2"), 0); /* names are whole where no terminal is too narrow */
    assert_said(LONG_NAME);
    assert_int_equal(doppel("profile net.onnx.om --runs 4 --rows 3 -o t.json"), 0);
    assert_said("t.json");
    assert_narrow();
    FILE *file = fopen(in_folder("t.json"), "rb");
    assert_non_null(file);
    said[fread(said, 1, sizeof said - 1, file)] = '\0';
    fclose(file);
    assert_said("traceEvents");
    assert_said("\"node\":\"");
}

static void test_compare(void **state) {
    (void)state;
    assert_int_equal(doppel("compare net.onnx net.onnx.om --tolerance 1e-5 --input random:3"), 0);
    assert_said("no value drifts");
    assert_narrow();
    assert_int_equal(doppel("compare net.onnx other.onnx.om --tolerance 1e-5 --input random:3"), 1);
    if (!strstr(said, "value \"second\"")) /* which may be fused with what follows */
        assert_said("value \"positive\"");
    assert_narrow();
}

/* The plain loops and floor 5 agree; a lower precision shows. */

typedef struct found {
    char type[32][24];
    int n, in_float;
    double worst;
} found;

static void note(const dp_compare_row *row, void *data) {
    found *f = data;
    f->worst = fmax(f->worst, row->relative);
    f->in_float += !row->is_double;
    if (f->n < 32)
        snprintf(f->type[f->n++], sizeof f->type[0], "%s", row->type);
}

static found compare(const char *onnx, const char *om) {
    float x[3 * 12 * 12];
    uint32_t seed = 99;
    char message[512];
    found f = {.n = 0};
    dp_compare_totals totals;
    for (size_t i = 0; i < sizeof x / sizeof x[0]; i++)
        x[i] = number(&seed);
    const dp_compare_options o = {
        .onnx = in_folder(onnx), .model = in_folder(om), .inputs = (const void *const[]){x}, .row = note, .data = &f};
    if (!dp_compare_models(&o, &totals, message, sizeof message))
        fail_msg("%s", message);
    assert_int_equal(totals.compared, f.n);
    return f;
}

static void test_reference(void **state) {
    (void)state;
    found f = compare("net.onnx", "net.onnx.om");
    assert_true(f.worst > 0 && f.worst < 5e-6);
    assert_int_equal(f.in_float, 0);
    assert_true(f.n >= 3); /* the outputs at least */
    compile("net.onnx", "fp16");
    f = compare("net.onnx", "net.onnx.om");
    assert_true(f.worst > 1e-4 && f.worst < .1);
    compile("net.onnx", NULL);
}

#ifdef CLASSIFY
static void test_classify(void **state) {
    (void)state;
    assert_int_equal(run(CLASSIFY, ""), 2);
    assert_said("usage: classify");
    save("names", "red\ngreen\nblue\n", 15);
    assert_int_equal(run(CLASSIFY, "scores.onnx.om --labels names " PICTURE), 0);
    assert_said("top 1: class ");
    assert_said("top 3: class ");
    assert_said("green");
    assert_int_equal(run(CLASSIFY, "net.onnx.om " PICTURE), 1);
    assert_said("1 inputs and 3 outputs; 1 and 1 are expected");
    assert_int_equal(run(CLASSIFY, "nothing.om " PICTURE), 1);
    assert_int_equal(run(CLASSIFY, "scores.onnx.om names"), 1);
    assert_said("neither a JPEG nor a PNG");
}
#endif

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_run),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_run_refuses),
        cmocka_unit_test(test_open),
        cmocka_unit_test(test_aipp),
        cmocka_unit_test(test_help),
        cmocka_unit_test(test_bench_and_profile),
        cmocka_unit_test(test_compare),
        cmocka_unit_test(test_reference),
#ifdef CLASSIFY
        cmocka_unit_test(test_classify),
#endif
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
