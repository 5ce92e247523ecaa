/* Reading, compiling, writing and running graphs, with good and with damaged files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "graph/compile.h"
#include "graph/model_file.h"
#include "graph/onnx/onnx.h"
#include "graph/onnx_make.h"
#include "graph/place.h"
#include "graph/program.h"

static const int64_t open_rows[] = {-1, 4}, four[] = {4}, four_four[] = {4, 4};
static const float weights[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}, bias[4] = {.5f, -1, 0, 2};

/* y = relu(x w + b), s = x + x, t the same, z = the shape of x. */
static void *small_model(size_t *out_bytes) {
    maker *m = make_begin(17);
    make_input(m, "x", 1, 2, open_rows);
    make_constant(m, "w", 1, 2, four_four, weights, sizeof weights);
    make_constant(m, "b", 1, 1, four, bias, sizeof bias);
    make_node(m, "Transpose", "w", "wt");
    make_node(m, "Mul", "x b", "xb");
    make_node(m, "Identity", "xb", "same");
    make_node(m, "Sub", "same b", "difference");
    make_node(m, "Relu", "difference", "y");
    make_node(m, "Add", "x x", "s");
    make_node(m, "Add", "x x", "t");
    make_node(m, "Mul", "wt b", "unused_but_legal");
    make_node(m, "Shape", "x", "z");
    make_output(m, "y");
    make_output(m, "s");
    make_output(m, "t");
    make_output(m, "z");
    return make_end(m, out_bytes);
}

static dp_model *compile(int64_t rows) {
    size_t bytes;
    void *file = small_model(&bytes);
    dp_input_shape shape = {"x", 2, {rows, 4}, NULL};
    dp_model *model = NULL;
    dp_status status = dp_compile_onnx(file, bytes, NULL, &shape, 1, NULL, &model);
    if (status != DP_OK)
        print_error("%s\n", dp_fail_message());
    assert_int_equal(status, DP_OK);
    free(file);
    return model;
}

static void run_and_compare(dp_model *model, int64_t rows) {
    dp_program *program;
    float x[32], y[32], s[32], t[32];
    int64_t z[2];
    assert_int_equal(dp_program_new(model->graph, &program), DP_OK);
    void *work = aligned_alloc(64, dp_program_work_bytes(program) + 64);
    for (int i = 0; i < 32; i++)
        x[i] = (float)(i % 7) - 3;
    for (int again = 0; again < 2; again++) {
        memset(y, 0, sizeof y);
        assert_int_equal(dp_program_run(program, (void *[]){x}, (void *[]){y, s, t, z}, work), DP_OK);
        for (int i = 0; i < rows * 4; i++) {
            float difference = x[i] * bias[i % 4] - bias[i % 4];
            assert_true(y[i] == (difference < 0 ? 0 : difference));
            assert_true(s[i] == 2 * x[i] && t[i] == s[i]);
        }
        assert_true(z[0] == rows && z[1] == 4);
    }
    free(work);
    dp_program_free(program);
}

static void a_model_runs(void **state) {
    (void)state;
    for (int64_t rows = 1; rows < 9; rows += 3) {
        dp_model *model = compile(rows);
        run_and_compare(model, rows);
        dp_model_free(model);
    }
}

static void passes_clean_up(void **state) {
    (void)state;
    dp_model *model = compile(3);
    int adds = 0, others = 0;
    for (const dp_node *node = model->graph->first; node; node = node->next) {
        adds += strcmp(node->type, "Add") == 0;
        others += strcmp(node->type, "Transpose") == 0 || strcmp(node->name, "node 2") == 0;
    }
    assert_int_equal(others, 0); /* the weight was turned at once, and nobody wants it */
    assert_int_equal(adds, 2);   /* both are outputs */
    dp_model_free(model);
}

/* y = batch norm(conv(x)) + c: one convolution is left (between transposes), with the same results. */
static void norms_go_into_convolutions(void **state) {
    (void)state;
    enum { IN = 2, OUT = 3, SIZE = 5 };
    static const int64_t image[] = {1, IN, SIZE, SIZE}, filter[] = {OUT, IN, 3, 3}, vector[] = {OUT}, one[] = {1};
    static const float norm[4][OUT] = {{2, .5f, -1}, {1, 0, 3}, {.25f, -1, 2}, {4, 1, .25f}}, constant = .75f;
    float w[OUT * IN * 9], x[IN * SIZE * SIZE], y[OUT * 9];
    for (int i = 0; i < OUT * IN * 9; i++)
        w[i] = (float)(i % 5) - 2;
    for (int i = 0; i < IN * SIZE * SIZE; i++)
        x[i] = (float)(i % 7) * .5f - 1;
    maker *m = make_begin(13);
    make_input(m, "x", 1, 4, image);
    make_constant(m, "w", 1, 4, filter, w, sizeof w);
    make_constant(m, "c", 1, 1, one, &constant, sizeof constant);
    for (int i = 0; i < 4; i++)
        make_constant(m, ((const char *const[]){"scale", "bias", "mean", "variance"})[i], 1, 1, vector, norm[i],
                      sizeof norm[i]);
    make_node(m, "Conv", "x w", "a");
    make_node(m, "BatchNormalization", "a scale bias mean variance", "b");
    make_real(m, "epsilon", 0);
    make_node(m, "Add", "b c", "y");
    make_output(m, "y");
    size_t size;
    void *bytes = make_end(m, &size);
    dp_model *model;
    dp_program *program;
    assert_int_equal(dp_compile_onnx(bytes, size, NULL, NULL, 0, NULL, &model), DP_OK);
    for (const dp_node *node = model->graph->first; node; node = node->next)
        assert_true(strcmp(node->type, "PanelConv2D") == 0 || strcmp(node->type, "TransposeD") == 0);
    assert_int_equal(dp_program_new(model->graph, &program), DP_OK);
    void *work = aligned_alloc(64, dp_program_work_bytes(program) + 64);
    assert_int_equal(dp_program_run(program, (void *[]){x}, (void *[]){y}, work), DP_OK);
    for (int c = 0; c < OUT; c++) {
        for (int at = 0; at < 9; at++) {
            double sum = 0;
            for (int k = 0; k < IN * 9; k++)
                sum += (double)w[c * IN * 9 + k] *
                       (double)x[k / 9 * SIZE * SIZE + (at / 3 + k % 9 / 3) * SIZE + at % 3 + k % 3];
            double root = c == 0 ? 2 : c == 1 ? 1 : .5;
            double expected = (sum - (double)norm[2][c]) / root * (double)norm[0][c] + (double)norm[1][c] + .75;
            assert_float_equal(y[c * 9 + at], (float)expected, 1e-4f);
        }
    }
    free(work);
    free(bytes);
    dp_program_free(program);
    dp_model_free(model);
}

static void a_file_holds_variants(void **state) {
    (void)state;
    dp_model *variants[] = {compile(2), compile(5)};
    char path[] = "/tmp/doppel_graph_XXXXXX";
    assert_true(mkstemp(path) >= 0);
    assert_int_equal(dp_model_file_write(path, NULL, variants, 2), DP_OK);
    dp_model_file *file;
    assert_int_equal(dp_model_file_open(path, &file), DP_OK);
    assert_int_equal(dp_model_file_variants(file), 2);
    assert_int_equal(dp_model_file_verify(file), DP_OK);
    run_and_compare(dp_model_file_variant(file, 0), 2);
    run_and_compare(dp_model_file_variant(file, 1), 5);
    dp_model_file_close(file);
    for (int i = 0; i < 2; i++)
        dp_model_free(variants[i]);
    unlink(path);
    assert_int_equal(dp_model_file_open(path, &file), DP_ERR_NOT_FOUND);
}

/* Every byte changed, every length: refused, or as good as before when it is one of the weights. */
static void damaged_files_are_refused(void **state) {
    (void)state;
    dp_model *model = compile(2);
    void *bytes;
    size_t size;
    dp_model_file *file = NULL;
    assert_int_equal(dp_model_file_pack(NULL, &model, 1, &bytes, &size), DP_OK);
    dp_model_free(model);
    for (size_t cut = 0; cut < size; cut++)
        assert_int_not_equal(dp_model_file_read(bytes, cut, &file), DP_OK);
    for (size_t i = 0; i < size; i++) {
        ((char *)bytes)[i] ^= 0x41;
        if (dp_model_file_read(bytes, size, &file) == DP_OK) {
            if (dp_model_file_verify(file) == DP_OK) /* padding between the parts */
                run_and_compare(dp_model_file_variant(file, 0), 2);
            dp_model_file_close(file);
        }
        ((char *)bytes)[i] ^= 0x41;
    }
    dp_free(bytes);
    assert_int_equal(dp_model_file_read("IMOD..................................", 30, &file), DP_ERR_UNSUPPORTED);
    assert_non_null(strstr(dp_fail_message(), "vendor"));
}

/* The same without checksums in the way: what the reader itself refuses. */
static void hostile_onnx_files(void **state) {
    (void)state;
    size_t size;
    unsigned char *bytes = small_model(&size);
    dp_input_shape shape = {"x", 2, {2, 4}, NULL};
    unsigned refused = 0;
    for (size_t cut = 0; cut < size; cut++) {
        dp_model *model = NULL;
        if (dp_compile_onnx(bytes, cut, NULL, &shape, 1, NULL, &model) != DP_OK)
            refused++;
        dp_model_free(model);
    }
    assert_true(refused > 0);
    for (size_t i = 0; i < size; i++) {
        for (int bit = 0; bit < 8; bit++) {
            dp_model *model = NULL;
            bytes[i] ^= (unsigned char)(1 << bit);
            dp_compile_onnx(bytes, size, NULL, &shape, 1, NULL, &model);
            dp_model_free(model);
            bytes[i] ^= (unsigned char)(1 << bit);
        }
    }
    free(bytes);
}

/* A graph in an attribute in a node in a graph ...: lengths first, from the inside out. */
static void deep_nesting_is_refused(void **state) {
    (void)state;
    enum { LEVELS = 20000, ROOM = LEVELS * 20 };
    unsigned char *bytes = malloc(ROOM);
    size_t begin = ROOM;
    static const unsigned char keys[] = {6 << 3 | 2, 5 << 3 | 2, 1 << 3 | 2}; /* g, attribute, node */
    for (int i = 0; i <= 3 * LEVELS; i++) {
        size_t length = ROOM - begin;
        unsigned char varint[6];
        int n = 0;
        do {
            varint[n++] = (unsigned char)((length & 0x7f) | (length > 0x7f ? 0x80 : 0));
            length >>= 7;
        } while (length);
        begin -= (size_t)n;
        memcpy(bytes + begin, varint, (size_t)n);
        bytes[--begin] = i == 3 * LEVELS ? 7 << 3 | 2 : keys[i % 3];
    }
    dp_model *model = NULL;
    int opset;
    assert_int_equal(dp_onnx_read(bytes + begin, ROOM - begin, NULL, &opset, &model), DP_ERR_UNSUPPORTED);
    assert_non_null(strstr(dp_fail_message(), "nested"));
    free(bytes);
}

static void fails(maker *m, const char *word) {
    size_t size;
    dp_model *model = NULL;
    void *bytes = make_end(m, &size);
    assert_int_not_equal(dp_compile_onnx(bytes, size, NULL, NULL, 0, NULL, &model), DP_OK);
    if (!strstr(dp_fail_message(), word))
        print_error("message: %s; missing: %s\n", dp_fail_message(), word);
    assert_non_null(strstr(dp_fail_message(), word));
    free(bytes);
}

static maker *begin(void) {
    maker *m = make_begin(17);
    make_input(m, "x", 1, 2, four_four);
    make_output(m, "y");
    return m;
}

static void wrong_models_say_why(void **state) {
    (void)state;
    maker *m = begin();
    make_node(m, "Relu", "nobody", "y");
    fails(m, "nobody");
    m = begin();
    make_node(m, "Fancy", "x", "a");
    make_node(m, "Stuff", "a", "y");
    fails(m, "2 nodes have types that are not supported: Fancy");
    m = begin();
    make_node(m, "Relu", "x", "y");
    make_node(m, "Relu", "x", "y");
    fails(m, "twice");
    m = begin();
    make_node(m, "Relu", "x", "z");
    fails(m, "\"y\"");
    m = begin();
    make_node(m, "LeakyRelu", "x", "y");
    make_real(m, "slope", 2);
    fails(m, "slope");
    m = begin(); /* nodes that go with others are all named, what comes behind them is not */
    make_node(m, "LeakyRelu", "x", "a");
    make_real(m, "slope", 2);
    make_node(m, "Elu", "a", "b");
    make_real(m, "beta", 2);
    make_node(m, "Elu", "x", "c");
    make_real(m, "gamma", 2);
    make_node(m, "Add", "b c", "y");
    fails(m, "2 nodes are not supported: node \"node 0\" (LeakyRelu): attribute slope is not supported; node \"node 2\" "
             "(Elu): attribute gamma is not supported");
    m = begin();
    make_node(m, "Concat", "x x", "y");
    make_integer(m, "axis", 7);
    fails(m, "concat_dim");
    m = make_begin(17);
    make_input(m, "x", 1, 2, open_rows);
    make_output(m, "y");
    make_node(m, "Relu", "x", "y");
    fails(m, "input_shape");
    m = make_begin(99);
    make_input(m, "x", 1, 2, four_four);
    make_output(m, "y");
    make_node(m, "Relu", "x", "y");
    fails(m, "99");
}

/* Files whose nodes stand in another order than they can run in: the order is found; a circle has none. */
static void nodes_are_put_in_order(void **state) {
    (void)state;
    const float x[16] = {-3, 1, 2, -1, 0, 4, 5, -6, 7, 8, -9, 10, 11, 12, -13, 14};
    float y[16];
    size_t size;
    dp_model *model = NULL;
    dp_program *program;
    maker *m = begin();
    make_node(m, "Add", "a c", "y");
    make_node(m, "Neg", "b", "c");
    make_node(m, "Relu", "a", "b");
    make_node(m, "Abs", "x", "a");
    void *bytes = make_end(m, &size);
    assert_int_equal(dp_compile_onnx(bytes, size, NULL, NULL, 0, NULL, &model), DP_OK);
    free(bytes);
    assert_int_equal(dp_program_new(model->graph, &program), DP_OK);
    void *work = aligned_alloc(64, (dp_program_work_bytes(program) + 127) / 64 * 64);
    assert_int_equal(dp_program_run(program, (void *[]){(void *)(uintptr_t)x}, (void *[]){y}, work), DP_OK);
    for (int i = 0; i < 16; i++)
        assert_float_equal(y[i], 0, 0); /* |x| - relu(|x|) */
    free(work);
    dp_program_free(program);
    dp_model_free(model);
    m = begin();
    make_node(m, "Add", "x c", "b");
    make_node(m, "Neg", "b", "c");
    make_node(m, "Relu", "c", "y");
    fails(m, "which nothing before it makes");
}

/* Every allocation of a compilation fails once; nothing leaks, nothing crashes. */
static void exhausted_memory(void **state) {
    (void)state;
    size_t size;
    void *bytes = small_model(&size);
    dp_input_shape shape = {"x", 2, {2, 4}, NULL};
    size_t live = dp_mem_stats_of(DP_MEM_GRAPH).live_bytes;
    bool done = false;
    for (long n = 1; n < 2000 && !done; n++) {
        dp_model *model = NULL;
        dp_model_file *file = NULL;
        dp_program *program = NULL;
        void *packed;
        size_t packed_size;
        dp_mem_fail_after(n);
        if (dp_compile_onnx(bytes, size, NULL, &shape, 1, NULL, &model) == DP_OK &&
            dp_model_file_pack(NULL, &model, 1, &packed, &packed_size) == DP_OK) {
            if (dp_model_file_read(packed, packed_size, &file) == DP_OK &&
                dp_program_new(dp_model_file_variant(file, 0)->graph, &program) == DP_OK)
                done = dp_mem_fail_after_left() > 0;
            dp_program_free(program);
            dp_model_file_close(file);
            dp_free(packed);
        }
        dp_mem_fail_after(0);
        dp_model_free(model);
        assert_int_equal(dp_mem_stats_of(DP_MEM_GRAPH).live_bytes, live);
    }
    assert_true(done);
    free(bytes);
}

/* Spans that are alive together never overlap; disjoint ones share. */
static void places(void **state) {
    (void)state;
    enum { N = 200 };
    dp_span spans[N];
    unsigned random = 5;
    size_t total, sum = 0;
    for (int i = 0; i < N; i++) {
        random = random * 1664525u + 1013904223u;
        uint32_t first = random >> 24;
        spans[i] = (dp_span){first, first + (random >> 16) % 9, (random >> 8) % 5000, 0};
        sum += spans[i].bytes;
    }
    assert_int_equal(dp_spans_place(spans, N, &total), DP_OK);
    for (int i = 0; i < N; i++) {
        assert_true(spans[i].offset % 64 == 0 && (!spans[i].bytes || spans[i].offset + spans[i].bytes <= total));
        for (int k = 0; k < i; k++) {
            bool together = spans[i].first <= spans[k].last && spans[k].first <= spans[i].last;
            bool apart = spans[i].offset + spans[i].bytes <= spans[k].offset ||
                         spans[k].offset + spans[k].bytes <= spans[i].offset;
            assert_true(!together || apart || !spans[i].bytes || !spans[k].bytes);
        }
    }
    assert_true(total < sum / 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_runs),          cmocka_unit_test(passes_clean_up),
        cmocka_unit_test(norms_go_into_convolutions),
        cmocka_unit_test(a_file_holds_variants), cmocka_unit_test(damaged_files_are_refused),
        cmocka_unit_test(hostile_onnx_files),    cmocka_unit_test(deep_nesting_is_refused),
        cmocka_unit_test(wrong_models_say_why),  cmocka_unit_test(nodes_are_put_in_order),
        cmocka_unit_test(exhausted_memory),
        cmocka_unit_test(places),
    };
    return cmocka_run_group_tests_name("graph", tests, NULL, NULL);
}
