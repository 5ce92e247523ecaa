/* Models that are lowered while they run: branches, loops, shapes that depend on data, and what can go wrong. */
#define XXH_INLINE_ALL
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>
#include <cmocka.h>

#include "base/memory.h"
#include "graph/compile_shapes.h"
#include "graph/model_file.h"
#include "graph/model_format.h"
#include "graph/onnx_make.h"
#include "graph/staged.h"

enum { FLOAT = 1, INT64 = 7, BOOL = 9, ENDS = 4 };

/* Results, in memory of their own. */
static dp_tensor got[ENDS];

static dp_status give_room(void *data, int index, dp_tensor *tensor) {
    size_t bytes = (size_t)dp_tensor_count(tensor) * dp_element_bytes(tensor->element);
    (void)data;
    if (bytes > 1 << 24)
        return dp_fail(DP_ERR_ARGUMENT, "%zu bytes are more than this test expects", bytes);
    tensor->base = calloc(1, bytes + 64);
    got[index] = *tensor;
    return DP_OK;
}
static void drop_results(void) {
    for (int i = 0; i < ENDS; i++) {
        free(got[i].base);
        got[i] = (dp_tensor){.rank = 0};
    }
}
static float *floats(int i) {
    return got[i].base;
}

static dp_tensor tensor_of(int element, int rank, const int64_t *dims, void *base) {
    dp_tensor t = {.element = element, .rank = rank, .base = base};
    int64_t stride = 1;
    for (int d = rank - 1; d >= 0; d--) {
        t.dims[d] = dims[d];
        t.strides[d] = stride;
        stride *= dims[d];
    }
    return t;
}
static dp_tensor vector(int64_t n, float *base) {
    return tensor_of(DP_F32, 1, &n, base);
}

typedef struct loaded {
    dp_model *model;
    dp_staged *staged;
} loaded;

static loaded load(maker *m) {
    size_t size;
    loaded l;
    int opset;
    void *bytes = make_end(m, &size);
    dp_onnx_source source = {.bytes = bytes, .size_bytes = size};
    if (dp_compile_open(&source, &l.model, &opset) != DP_OK || dp_staged_new(l.model->graph, opset, &l.staged) != DP_OK)
        fail_msg("%s", dp_fail_message());
    free(bytes);
    return l;
}
static void unload(loaded l) {
    drop_results();
    dp_staged_free(l.staged);
    dp_model_free(l.model);
}
static void run_fine(loaded l, const dp_tensor *inputs) {
    drop_results();
    if (dp_staged_run(l.staged, inputs, give_room, NULL) != DP_OK)
        fail_msg("%s", dp_fail_message());
}
static void run_fails(loaded l, const dp_tensor *inputs, const char *word) {
    drop_results();
    assert_int_not_equal(dp_staged_run(l.staged, inputs, give_room, NULL), DP_OK);
    if (!strstr(dp_fail_message(), word))
        fail_msg("\"%s\" is not in: %s", word, dp_fail_message());
}

static const int64_t any[] = {-1}, one[] = {1}, none[] = {0};

/* if sum(x) > 0: (if 3 elements: 2 x, else x + 1), else: x * k with k from outside */
static maker *branches(void) {
    static const float two = 2, half = .5f, zero = 0;
    static const int64_t three = 3;
    maker *m = make_begin(17), *then = make_begin(17), *other = make_begin(17),
          *inner[2] = {make_begin(17), make_begin(17)};
    make_input(m, "x", FLOAT, 1, any);
    make_constant(m, "zero", FLOAT, 0, none, &zero, 4);
    make_constant(m, "k", FLOAT, 0, none, &half, 4);
    make_constant(m, "axis", INT64, 1, one, &(int64_t){0}, 8);
    make_node(m, "ReduceSum", "x axis", "sum");
    make_integer(m, "keepdims", 0);
    make_node(m, "Greater", "sum zero", "above");
    make_node(m, "If", "above", "y");
    make_constant(inner[0], "two", FLOAT, 0, none, &two, 4);
    make_node(inner[0], "Mul", "x two", "a");
    make_output(inner[0], "a");
    make_constant(inner[1], "one", FLOAT, 0, none, &(float){1}, 4);
    make_node(inner[1], "Add", "x one", "b");
    make_output(inner[1], "b");
    make_constant(then, "three", INT64, 0, none, &three, 8);
    make_node(then, "Size", "x", "n");
    make_node(then, "Equal", "n three", "is_three");
    make_node(then, "If", "is_three", "c");
    make_body(then, "then_branch", inner[0]);
    make_body(then, "else_branch", inner[1]);
    make_output(then, "c");
    make_node(other, "Mul", "x k", "d");
    make_output(other, "d");
    /* the branches are those of the outer node, which is the last of m */
    make_body(m, "then_branch", then);
    make_body(m, "else_branch", other);
    make_output_of(m, "y", FLOAT, 1, any);
    return m;
}

static void branches_are_chosen(void **state) {
    (void)state;
    loaded l = load(branches());
    float three[] = {1, 2, 3}, four[] = {1, 2, 3, 4}, below[] = {-1, -2, -3};
    for (int again = 0; again < 3; again++) {
        run_fine(l, (dp_tensor[]){vector(3, three)});
        assert_true(got[0].rank == 1 && got[0].dims[0] == 3 && floats(0)[2] == 6);
        run_fine(l, (dp_tensor[]){vector(4, four)});
        assert_true(got[0].dims[0] == 4 && floats(0)[3] == 5);
        run_fine(l, (dp_tensor[]){vector(3, below)});
        assert_true(floats(0)[0] == -.5f);
    }
    assert_int_equal(dp_staged_count(l.staged), 2 + 3); /* two lengths, three outcomes */
    unload(l);
}

/* for (i = 0; i < n && s < 100; i++) s = s * 2 + w[0]; y = all s; the state may grow: t = concat(t, s) */
static maker *loop(void) {
    static const float hundred = 100, two = 2;
    maker *m = make_begin(17), *body = make_begin(17);
    make_input(m, "n", INT64, 0, none);
    make_input(m, "s0", FLOAT, 1, one);
    make_input(m, "w", FLOAT, 1, one);
    make_node(m, "Identity", "s0", "t0");
    make_node(m, "Loop", "n - s0 t0", "s t all");
    make_input(body, "i", INT64, 0, none);
    make_input(body, "go", BOOL, 0, none);
    make_input(body, "s_in", FLOAT, 1, one);
    make_input(body, "t_in", FLOAT, 1, any);
    make_constant(body, "hundred", FLOAT, 1, one, &hundred, 4);
    make_constant(body, "two", FLOAT, 1, one, &two, 4);
    make_node(body, "Mul", "s_in two", "doubled");
    make_node(body, "Add", "doubled w", "s_out");
    make_node(body, "Concat", "t_in s_out", "t_out");
    make_integer(body, "axis", 0);
    make_node(body, "Less", "s_out hundred", "small");
    make_node(body, "Squeeze", "small", "go_on");
    make_output(body, "go_on");
    make_output(body, "s_out");
    make_output(body, "t_out");
    make_output_of(body, "s_out", FLOAT, 1, one);
    make_body(m, "body", body);
    make_output(m, "s");
    make_output(m, "t");
    make_output(m, "all");
    return m;
}

static void loops_run(void **state) {
    (void)state;
    loaded l = load(loop());
    float s = 1, w = 1;
    int64_t n = 3;
    dp_tensor inputs[] = {tensor_of(DP_I64, 0, none, &n), vector(1, &s), vector(1, &w)};
    run_fine(l, inputs);
    assert_true(floats(0)[0] == 15 && got[1].dims[0] == 4 && floats(1)[3] == 15);
    assert_true(got[2].rank == 2 && got[2].dims[0] == 3 && got[2].dims[1] == 1 && floats(2)[0] == 3 &&
                floats(2)[2] == 15);
    n = INT64_MAX; /* ended by the condition */
    run_fine(l, inputs);
    assert_true(floats(0)[0] == 127 && got[2].dims[0] == 6);
    n = 0; /* no round: initial values, and nothing stacked */
    run_fine(l, inputs);
    assert_true(floats(0)[0] == 1 && got[1].dims[0] == 1 && got[2].rank == 2 && got[2].dims[0] == 0);
    n = -5;
    run_fine(l, inputs);
    assert_true(floats(0)[0] == 1 && got[2].dims[0] == 0);
    unload(l);
}

/* sums from the last column to the first; every partial sum is a column of y, the first round's last */
static void scans_run(void **state) {
    (void)state;
    enum { ROWS = 3, COLUMNS = 5 };
    static const int64_t open[] = {-1, -1};
    float x[ROWS * COLUMNS], start[ROWS] = {100, 200, 300}, sum[ROWS];
    maker *m = make_begin(17), *body = make_begin(17);
    make_input(m, "s0", FLOAT, 1, any);
    make_input(m, "x", FLOAT, 2, open);
    make_node(m, "Scan", "s0 x", "s y");
    make_integer(m, "num_scan_inputs", 1);
    make_integers(m, "scan_input_axes", 1, (int64_t[]){-1});
    make_integers(m, "scan_input_directions", 1, one);
    make_integers(m, "scan_output_axes", 1, one);
    make_integers(m, "scan_output_directions", 1, one);
    make_input(body, "s_in", FLOAT, 1, any);
    make_input(body, "column", FLOAT, 1, any);
    make_node(body, "Add", "s_in column", "s_out");
    make_node(body, "Neg", "s_out", "minus");
    make_output(body, "s_out");
    make_output_of(body, "minus", FLOAT, 1, any);
    make_body(m, "body", body);
    make_output(m, "s");
    make_output(m, "y");
    loaded l = load(m);
    for (int i = 0; i < ROWS * COLUMNS; i++)
        x[i] = (float)(i * i % 13);
    int64_t dims[] = {ROWS, COLUMNS};
    run_fine(l, (dp_tensor[]){vector(ROWS, start), tensor_of(DP_F32, 2, dims, x)});
    assert_true(got[1].rank == 2 && got[1].dims[0] == ROWS && got[1].dims[1] == COLUMNS);
    memcpy(sum, start, sizeof sum);
    for (int c = COLUMNS - 1, round = 0; c >= 0; c--, round++) {
        for (int r = 0; r < ROWS; r++) {
            sum[r] += x[r * COLUMNS + c];
            assert_true(floats(1)[r * COLUMNS + COLUMNS - 1 - round] == -sum[r]);
        }
    }
    assert_memory_equal(floats(0), sum, sizeof sum);
    dims[1] = 0; /* nothing to scan */
    run_fine(l, (dp_tensor[]){vector(ROWS, start), tensor_of(DP_F32, 2, dims, x)});
    assert_true(floats(0)[1] == 200 && got[1].dims[1] == 0);
    unload(l);
}

/* Operator set 8: a batch of scans, each as long as it says; running sums, 0 behind the end. */
static void batches_of_scans_run(void **state) {
    (void)state;
    enum { BATCH = 3, LENGTH = 4 };
    static const int64_t open[] = {-1, -1}, ends[] = {4, 0, 2};
    int64_t lengths[BATCH];
    float x[BATCH * LENGTH], start[BATCH] = {10, 20, 30};
    maker *m = make_begin(8), *body = make_begin(8);
    make_input(m, "lengths", INT64, 1, any);
    make_input(m, "s0", FLOAT, 1, any);
    make_input(m, "x", FLOAT, 2, open);
    make_node(m, "Scan", "lengths s0 x", "s y");
    make_integer(m, "num_scan_inputs", 1);
    make_integers(m, "directions", 1, one);
    make_input(body, "s_in", FLOAT, 0, none);
    make_input(body, "x_in", FLOAT, 0, none);
    make_node(body, "Add", "s_in x_in", "s_out");
    make_node(body, "Neg", "s_out", "minus");
    make_output(body, "s_out");
    make_output_of(body, "minus", FLOAT, 0, none);
    make_body(m, "body", body);
    make_output(m, "s");
    make_output(m, "y");
    loaded l = load(m);
    for (int i = 0; i < BATCH * LENGTH; i++)
        x[i] = (float)(i * i % 13);
    memcpy(lengths, ends, sizeof ends);
    int64_t dims[] = {BATCH, LENGTH}, batch = BATCH;
    const dp_tensor inputs[] = {tensor_of(DP_I64, 1, &batch, lengths), vector(BATCH, start),
                                tensor_of(DP_F32, 2, dims, x)};
    run_fine(l, inputs);
    assert_true(got[0].rank == 1 && got[1].rank == 2 && got[1].dims[0] == BATCH && got[1].dims[1] == LENGTH);
    for (int b = 0; b < BATCH; b++) {
        float sum = start[b];
        for (int i = 0; i < LENGTH; i++) {
            sum += i < ends[b] ? x[b * LENGTH + ends[b] - 1 - i] : 0; /* read from its end */
            assert_true(floats(1)[b * LENGTH + i] == (i < ends[b] ? -sum : 0));
        }
        assert_true(floats(0)[b] == sum);
    }
    lengths[1] = 5;
    run_fails(l, inputs, "more than the sequences have");
    unload(l);
}

/* for i < n: for j < i: s += k, unless s is above 10: then s *= 2; k and n come from outside of both loops */
static void loops_nest(void **state) {
    (void)state;
    maker *m = make_begin(17), *outer = make_begin(17), *inner = make_begin(17), *big = make_begin(17),
          *small = make_begin(17);
    make_input(m, "n", INT64, 0, none);
    make_input(m, "k", FLOAT, 0, none);
    make_input(m, "s0", FLOAT, 0, none);
    make_node(m, "Loop", "n - s0", "s");
    make_input(outer, "i", INT64, 0, none);
    make_input(outer, "go", BOOL, 0, none);
    make_input(outer, "a", FLOAT, 0, none);
    make_node(outer, "Loop", "i - a", "b");
    make_input(inner, "j", INT64, 0, none);
    make_input(inner, "go2", BOOL, 0, none);
    make_input(inner, "c", FLOAT, 0, none);
    make_constant(inner, "ten", FLOAT, 0, none, &(float){10}, 4);
    make_node(inner, "Greater", "c ten", "is_big");
    make_node(inner, "If", "is_big", "d");
    make_node(big, "Add", "c c", "twice");
    make_output(big, "twice");
    make_node(small, "Add", "c k", "more");
    make_output(small, "more");
    make_body(inner, "then_branch", big);
    make_body(inner, "else_branch", small);
    make_node(inner, "Identity", "go2", "go2_out");
    make_output(inner, "go2_out");
    make_output(inner, "d");
    make_body(outer, "body", inner);
    make_node(outer, "Identity", "go", "go_out");
    make_output(outer, "go_out");
    make_output(outer, "b");
    make_body(m, "body", outer);
    make_output(m, "s");
    loaded l = load(m);
    for (int64_t n = 0; n < 8; n++) {
        float k = 3, s0 = 1, want = s0;
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < i; j++)
                want = want > 10 ? 2 * want : want + k;
        run_fine(l, (dp_tensor[]){tensor_of(DP_I64, 0, none, &n), tensor_of(DP_F32, 0, none, &k),
                                  tensor_of(DP_F32, 0, none, &s0)});
        assert_true(floats(0)[0] == want);
    }
    unload(l);
}

static void stages_are_bounded(void **state) {
    (void)state;
    loaded l = load(branches());
    static float x[1000];
    for (int i = 0; i < 1000; i++)
        x[i] = (float)(i % 7) - 2;
    for (int64_t n = 1; n <= 1000; n++) {
        run_fine(l, (dp_tensor[]){vector(n, x)});
        assert_int_equal(got[0].dims[0], n);
        assert_true(dp_staged_count(l.staged) <= DP_STAGES_MAX + 2);
    }
    unload(l);
    /* a loop whose every round has another shape */
    l = load(loop());
    float s = 0, w = 0;
    int64_t rounds = 700;
    run_fine(l, (dp_tensor[]){tensor_of(DP_I64, 0, none, &rounds), vector(1, &s), vector(1, &w)});
    assert_true(got[1].dims[0] == 701 && dp_staged_count(l.staged) <= 2 * DP_STAGES_MAX + 3);
    unload(l);
}

/* Hundreds of places where a shape is found: neither running nor freeing recurses. */
static void long_chains(void **state) {
    (void)state;
    enum { LINKS = 200 };
    maker *m = make_begin(17);
    char ends[64], names[64] = "x";
    make_input(m, "x", FLOAT, 1, any);
    make_constant(m, "axis", INT64, 1, one, &(int64_t){0}, 8);
    for (int i = 0; i < LINKS; i++) { /* the places of what is not 0; the first is 0, and the next link drops it */
        snprintf(ends, sizeof ends, "p%d", i);
        make_node(m, "NonZero", names, ends);
        snprintf(names, sizeof names, "p%d axis", i);
        snprintf(ends, sizeof ends, "q%d", i);
        make_node(m, "Squeeze", names, ends);
        snprintf(names, sizeof names, "q%d", i);
    }
    make_node(m, "Shape", names, "y");
    make_output(m, "y");
    loaded l = load(m);
    float x[200];
    for (int i = 0; i < 200; i++)
        x[i] = 1;
    run_fine(l, (dp_tensor[]){vector(200, x)});
    assert_true(got[0].element == DP_I64 && got[0].dims[0] == 1 && ((int64_t *)got[0].base)[0] == 200 - LINKS / 2);
    assert_true(dp_staged_count(l.staged) > LINKS);
    run_fine(l, (dp_tensor[]){vector(2, x)}); /* nothing is left long before the end */
    assert_true(((int64_t *)got[0].base)[0] == 0);
    unload(l);
}

static void wrong_values_say_why(void **state) {
    (void)state;
    maker *m = make_begin(17);
    static const int64_t two[] = {2};
    make_input(m, "x", FLOAT, 1, any);
    make_input(m, "shape", INT64, 1, two);
    make_node(m, "Reshape", "x shape", "y");
    make_output(m, "y");
    loaded l = load(m);
    float x[6] = {1, 2, 3, 4, 5, 6};
    int64_t dims[2] = {2, -1};
    dp_tensor inputs[] = {vector(6, x), tensor_of(DP_I64, 1, two, dims)};
    run_fine(l, inputs);
    assert_true(got[0].rank == 2 && got[0].dims[1] == 3);
    static const int64_t wrong[][2] = {{4, -1}, {-1, -1}, {INT64_MAX, INT64_MAX}, {-7, 2}, {0, 5}, {INT64_MIN, 1}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        memcpy(dims, wrong[i], sizeof dims);
        run_fails(l, inputs, "Reshape");
    }
    dims[0] = 3, dims[1] = 2;
    run_fine(l, inputs);
    assert_true(got[0].dims[0] == 3);
    unload(l);
    float s = 1, w[2] = {1, 2};
    int64_t n = 2;
    l = load(loop());
    run_fails(l, (dp_tensor[]){tensor_of(DP_I64, 0, none, &n), vector(1, &s), vector(2, w)}, "Loop");
    unload(l);
}

/* Every allocation of compiling, loading and running fails once. */
static void exhausted_memory(void **state) {
    (void)state;
    size_t size;
    for (int which = 0; which < 2; which++) {
        void *bytes = make_end(which ? loop() : branches(), &size);
        dp_onnx_source source = {.bytes = bytes, .size_bytes = size};
        size_t live = dp_mem_stats_of(DP_MEM_GRAPH).live_bytes;
        bool done = false;
        for (long k = 1; k < 20000 && !done; k++) {
            dp_model *model = NULL;
            dp_staged *staged = NULL;
            float x[3] = {1, 2, 3};
            int64_t n = 3;
            int opset;
            dp_tensor for_loop[] = {tensor_of(DP_I64, 0, none, &n), vector(1, x), vector(1, x)},
                      for_branches[] = {vector(3, x)};
            dp_mem_fail_after(k);
            if (dp_compile_open(&source, &model, &opset) == DP_OK &&
                dp_staged_new(model->graph, opset, &staged) == DP_OK &&
                dp_staged_run(staged, which ? for_loop : for_branches, give_room, NULL) == DP_OK)
                done = dp_mem_fail_after_left() > 0;
            dp_mem_fail_after(0);
            drop_results();
            if (staged && !done) { /* whatever failed, the model still works */
                assert_int_equal(dp_staged_run(staged, which ? for_loop : for_branches, give_room, NULL), DP_OK);
                drop_results();
            }
            dp_staged_free(staged);
            dp_model_free(model);
            assert_int_equal(dp_mem_stats_of(DP_MEM_GRAPH).live_bytes, live);
        }
        assert_true(done);
        free(bytes);
    }
}

/* The file of a model, with its shapes. */
static void *pack(maker *m, const char *gears, size_t *out_size) {
    size_t size;
    void *bytes = make_end(m, &size), *packed = NULL;
    dp_onnx_source source = {.bytes = bytes, .size_bytes = size};
    dp_shape_request request = {.kind = gears ? DP_SHAPES_BATCH : DP_SHAPES_FIXED, .option = "sizes", .gears = gears};
    dp_named_shape named = {"x", {1, {0}, {DP_SHAPES_ANY}}};
    dp_compiled compiled;
    request.named = &named;
    request.n_named = 1;
    if (dp_compile_shapes(&source, &request, &compiled) != DP_OK ||
        dp_model_file_pack(&compiled.shapes, compiled.variants, compiled.n_variants, &packed, out_size) != DP_OK)
        fail_msg("%s", dp_fail_message());
    dp_compiled_free(&compiled);
    free(bytes);
    return packed;
}

static void files_keep_sources(void **state) {
    (void)state;
    size_t size;
    dp_model_file *file;
    void *bytes = pack(branches(), "3,4", &size);
    assert_int_equal(dp_model_file_read(bytes, size, &file), DP_OK);
    const dp_shapes *shapes = dp_model_file_shapes(file);
    assert_true(shapes->kind == DP_SHAPES_BATCH && shapes->is_source && shapes->n_gears == 2 &&
                shapes->numbers[1] == 4);
    loaded l = {.staged = NULL};
    assert_int_equal(dp_staged_new(dp_model_file_variant(file, 0)->graph, shapes->opset, &l.staged), DP_OK);
    float three[] = {1, 2, 3};
    run_fine(l, (dp_tensor[]){vector(3, three)});
    assert_true(floats(0)[2] == 6);
    drop_results();
    dp_staged_free(l.staged);
    dp_model_file_close(file);
    dp_free(bytes);
}

static void correct_hashes(char *bytes) {
    dp_model_header h;
    memcpy(&h, bytes, sizeof h);
    h.graphs_hash = XXH3_64bits(bytes + h.graphs_offset, h.graphs_bytes);
    memcpy(bytes, &h, sizeof h);
    h.header_hash = XXH3_64bits(bytes, offsetof(dp_model_header, header_hash));
    memcpy(bytes, &h, sizeof h);
}

/* Somebody who can make checksums changes every byte of the graphs: refused, or run without harm. */
static void hostile_files(void **state) {
    (void)state;
    static const unsigned char changes[] = {0x01, 0x80, 0xff};
    size_t size;
    char *bytes = pack(branches(), NULL, &size);
    dp_model_header h;
    memcpy(&h, bytes, sizeof h);
    int refused = 0;
    for (size_t i = h.graphs_offset; i < h.graphs_offset + h.graphs_bytes; i++) {
        for (size_t k = 0; k < sizeof changes; k++) {
            dp_model_file *file;
            dp_staged *staged = NULL;
            float x[4] = {1, 2, 3, 4};
            dp_tensor inputs[ENDS] = {vector(3, x), vector(3, x), vector(3, x), vector(3, x)};
            bytes[i] = (char)(bytes[i] ^ changes[k]);
            correct_hashes(bytes);
            if (dp_model_file_read(bytes, size, &file) != DP_OK) {
                refused++;
            } else {
                const dp_shapes *shapes = dp_model_file_shapes(file);
                dp_graph *graph = dp_model_file_variant(file, 0)->graph;
                if (shapes->is_source && graph->n_inputs <= ENDS && graph->n_outputs <= ENDS &&
                    dp_staged_new(graph, shapes->opset, &staged) == DP_OK)
                    dp_staged_run(staged, inputs, give_room, NULL);
                drop_results();
                dp_staged_free(staged);
                dp_model_file_close(file);
            }
            bytes[i] = (char)(bytes[i] ^ changes[k]);
        }
    }
    assert_true(refused > 100);
    dp_free(bytes);
}

static void texts_of_shapes(void **state) {
    (void)state;
    dp_declared d;
    assert_true(dp_declared_parse("1,-1,3~5, 7~-1", &d) && d.rank == 4);
    assert_true(!dp_declared_is_open(&d, 0) && dp_declared_is_open(&d, 1) && d.most[1] == DP_SHAPES_ANY &&
                d.most[2] == 5 && d.least[3] == 7 && d.most[3] == DP_SHAPES_ANY);
    assert_true(dp_declared_parse("", &d) && d.rank == 0);
    static const char *const wrong[] = {
        "a", "1,", ",1", "-2", "5~3", "1~", "1,,2", "99999999999999999999", "1,1,1,1,1,1,1,1,1,1,1"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_false(dp_declared_parse(wrong[i], &d));
    dp_declared inputs[2];
    dp_shapes shapes = {.n_inputs = 2, .inputs = inputs};
    assert_true(dp_declared_parse("-1,3", &inputs[0]) && dp_declared_parse("2,-1", &inputs[1]));
    assert_int_equal(dp_shapes_parse_gears(&shapes, DP_SHAPES_DIMS, "d", "1,16;8,64"), DP_OK);
    dp_tensor t;
    dp_shapes_gear(&shapes, 1, 1, &t);
    assert_true(shapes.n_gears == 2 && t.rank == 2 && t.dims[0] == 2 && t.dims[1] == 64);
    dp_free(shapes.numbers);
    static const char *const bad[] = {"",    "1",     "1,2,3", "0,1",          "1,2;", "1,2;1,2",
                                      "1,x", "1,2;3", "-1,2",  "9999999999,1", "1;2"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        shapes.numbers = NULL;
        if (strcmp(bad[i], "1,2;") == 0)
            continue; /* a list may end so */
        assert_int_equal(dp_shapes_parse_gears(&shapes, DP_SHAPES_DIMS, "d", bad[i]), DP_ERR_ARGUMENT);
        dp_free(shapes.numbers);
    }
    shapes.numbers = NULL;
    assert_int_equal(dp_shapes_parse_gears(&shapes, DP_SHAPES_IMAGE, "d", "1,2"), DP_ERR_ARGUMENT);
    assert_non_null(strstr(dp_fail_message(), "height and width"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(branches_are_chosen),  cmocka_unit_test(loops_run),
        cmocka_unit_test(stages_are_bounded),   cmocka_unit_test(scans_run),
        cmocka_unit_test(batches_of_scans_run), cmocka_unit_test(loops_nest),
        cmocka_unit_test(long_chains),          cmocka_unit_test(wrong_values_say_why),
        cmocka_unit_test(exhausted_memory),     cmocka_unit_test(files_keep_sources),
        cmocka_unit_test(hostile_files),        cmocka_unit_test(texts_of_shapes),
    };
    return cmocka_run_group_tests_name("graph_staged", tests, NULL, NULL);
}
