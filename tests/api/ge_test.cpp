/*
 * Graphs put together from operators, and parsed ones, the way OpenCV and onnxruntime do it: built (also in a child of
 * fork), loaded and run. Compiled once with each form of std::string.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

extern "C" {
#include <cmocka.h>

#include "graph/onnx_make.h"
}

#include "acl/acl.h"
#include "ge/ge_api_types.h"
#include "ge/ge_ir_build.h"
#include "graph/graph.h"
#include "graph/tensor.h"
#include "op_proto/built-in/inc/all_ops.h"
#include "parser/onnx_parser.h"

using Options = std::map<ge::AscendString, ge::AscendString>;
using List = std::vector<int64_t>;
using Floats = std::vector<float>;

static ge::TensorDesc describe(const List &dims, ge::DataType type = ge::DT_FLOAT) {
    return ge::TensorDesc(ge::Shape(dims), ge::FORMAT_NCHW, type);
}

static ge::op::Data data(const char *name, const List &dims) {
    ge::op::Data op(name);
    op.update_input_desc_x(describe(dims));
    op.update_output_desc_y(describe(dims));
    return op;
}

template <class T>
static ge::op::Const constant(const char *name, const List &dims, const std::vector<T> &numbers) {
    ge::Tensor tensor;
    tensor.SetTensorDesc(describe(dims, sizeof(T) == 8                  ? ge::DT_INT64
                                        : std::is_same<T, float>::value ? ge::DT_FLOAT
                                                                        : ge::DT_INT32));
    tensor.SetData(reinterpret_cast<const uint8_t *>(numbers.data()), numbers.size() * sizeof(T));
    ge::op::Const op(name);
    op.set_attr_value(tensor);
    return op;
}

static int begin(void **) {
    Options options = {{ge::AscendString(ge::ir_option::SOC_VERSION), ge::AscendString("Ascend910B3")}};
    return aclrtSetDevice(0) == ACL_SUCCESS && aclInit(nullptr) == ACL_SUCCESS &&
                   ge::aclgrphBuildInitialize(options) == ge::GRAPH_SUCCESS
               ? 0
               : 1;
}
static int end(void **) {
    ge::aclgrphBuildFinalize();
    aclFinalize();
    return 0;
}

/* Runs a compiled model; inputs as bytes. */
static std::vector<Floats> run(const void *bytes, size_t size, const std::vector<Floats> &inputs) {
    uint32_t id;
    std::vector<Floats> results;
    assert_int_equal(aclmdlLoadFromMem(bytes, size, &id), ACL_SUCCESS);
    aclmdlDesc *desc = aclmdlCreateDesc();
    assert_int_equal(aclmdlGetDesc(desc, id), ACL_SUCCESS);
    assert_int_equal(aclmdlGetNumInputs(desc), inputs.size());
    aclmdlDataset *sets[2] = {aclmdlCreateDataset(), aclmdlCreateDataset()};
    size_t counts[2] = {inputs.size(), aclmdlGetNumOutputs(desc)};
    for (int side = 0; side < 2; side++)
        for (size_t i = 0; i < counts[side]; i++) {
            void *memory;
            size_t length = side ? aclmdlGetOutputSizeByIndex(desc, i) : aclmdlGetInputSizeByIndex(desc, i);
            assert_int_equal(aclrtMalloc(&memory, length, ACL_MEM_MALLOC_NORMAL_ONLY), ACL_SUCCESS);
            if (!side) {
                assert_int_equal(length, inputs[i].size() * sizeof(float));
                memcpy(memory, inputs[i].data(), length);
            }
            assert_int_equal(aclmdlAddDatasetBuffer(sets[side], aclCreateDataBuffer(memory, length)), ACL_SUCCESS);
        }
    assert_int_equal(aclmdlExecute(id, sets[0], sets[1]), ACL_SUCCESS);
    for (int side = 0; side < 2; side++) {
        for (size_t i = 0; i < counts[side]; i++) {
            aclDataBuffer *buffer = aclmdlGetDatasetBuffer(sets[side], i);
            float *numbers = static_cast<float *>(aclGetDataBufferAddr(buffer));
            if (side)
                results.emplace_back(numbers, numbers + aclGetDataBufferSizeV2(buffer) / sizeof(float));
            aclrtFree(numbers);
            aclDestroyDataBuffer(buffer);
        }
        aclmdlDestroyDataset(sets[side]);
    }
    aclmdlDestroyDesc(desc);
    assert_int_equal(aclmdlUnload(id), ACL_SUCCESS);
    return results;
}

static ge::ModelBufferData build(const std::vector<ge::Operator> &inputs, const std::vector<ge::Operator> &outputs) {
    ge::Graph graph("graph_1");
    graph.SetInputs(inputs).SetOutputs(outputs);
    ge::ModelBufferData model;
    ge::graphStatus status = ge::aclgrphBuildModel(graph, Options(), model);
    if (status != ge::GRAPH_SUCCESS)
        print_error("%s\n", aclGetRecentErrMsg());
    assert_int_equal(status, ge::GRAPH_SUCCESS);
    return model;
}

static void expect(const Floats &found, const Floats &wanted) {
    assert_int_equal(found.size(), wanted.size());
    for (size_t i = 0; i < wanted.size(); i++)
        if (!(std::fabs(found[i] - wanted[i]) <= 1e-4f))
            fail_msg("element %zu is %g, expected %g", i, static_cast<double>(found[i]),
                     static_cast<double>(wanted[i]));
}

/* One operator with one input x. */
static void expect_of(const ge::Operator &x, const ge::Operator &op, const Floats &in, const Floats &wanted) {
    ge::ModelBufferData model = build({x}, {op});
    expect(run(model.data.get(), model.length, {in})[0], wanted);
}

/* A convolution, a Relu and a pool, as OpenCV puts them together. */
static std::pair<ge::Operator, ge::Operator> small_net() {
    auto x = std::make_shared<ge::op::Data>(std::string("x"));
    x->update_input_desc_x(describe({1, 1, 4, 4}));
    x->update_output_desc_y(describe({1, 1, 4, 4}));
    auto conv = std::make_shared<ge::op::Conv2D>(std::string("conv"));
    conv->set_attr_strides(ge::Operator::OpListInt({1, 1, 1, 1}));
    conv->set_attr_pads(ge::Operator::OpListInt({1, 1, 1, 1}));
    conv->set_attr_dilations(ge::Operator::OpListInt({1, 1, 1, 1}));
    conv->set_attr_groups(1);
    conv->set_attr_data_format("NCHW");
    conv->set_input_x_by_name(*x, "y");
    conv->update_input_desc_x(describe({1, 1, 4, 4}));
    conv->set_input_filter(constant<float>("w", {1, 1, 3, 3}, Floats(9, 1)));
    conv->set_input_bias(constant<float>("b", {1}, {-50}));
    conv->update_output_desc_y(describe({}));
    auto relu = std::make_shared<ge::op::Relu>("relu");
    relu->set_input_x_by_name(*conv, "y");
    auto pool = std::make_shared<ge::op::MaxPoolV3>("pool");
    pool->set_input_x_by_name(*relu, "y");
    pool->set_attr_ksize({1, 1, 2, 2}).set_attr_strides({1, 1, 2, 2}).set_attr_padding_mode("CALCULATED");
    pool->set_attr_pads({0, 0, 0, 0})
        .set_attr_data_format("NCHW")
        .set_attr_global_pooling(false)
        .set_attr_ceil_mode(false);
    return {*x, *pool}; /* the classes are gone then, the operators live */
}
static Floats count_up(int n) {
    Floats numbers;
    for (int i = 0; i < n; i++)
        numbers.push_back(static_cast<float>(i));
    return numbers;
}

static void a_net_runs(void **) {
    auto ends = small_net();
    expect_of(ends.first, ends.second, count_up(16), {0, 4, 31, 40});
}

/* The model is made in a child and comes back through shared memory. */
static void a_child_builds(void **) {
    const size_t room = 1 << 20;
    for (int again = 0; again < 2; again++) {
        size_t *shared =
            static_cast<size_t *>(mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
        assert_true(shared != MAP_FAILED);
        auto ends = small_net();
        ge::Graph graph("in a child");
        graph.SetInputs(std::vector<ge::Operator>{ends.first}).SetOutputs(std::vector<ge::Operator>{ends.second});
        pid_t child = fork();
        if (child == 0) {
            Options options = {{ge::AscendString(ge::ir_option::SOC_VERSION), ge::AscendString(aclrtGetSocName())}};
            ge::ModelBufferData model;
            if (ge::aclgrphBuildInitialize(options) != ge::GRAPH_SUCCESS ||
                ge::aclgrphBuildModel(graph, Options(), model) != ge::GRAPH_SUCCESS ||
                model.length > room - sizeof *shared)
                _exit(1);
            ge::aclgrphBuildFinalize();
            *shared = model.length;
            memcpy(shared + 1, model.data.get(), model.length);
            _exit(0);
        }
        int state;
        assert_true(child > 0 && waitpid(child, &state, 0) == child && WIFEXITED(state) && WEXITSTATUS(state) == 0);
        expect(run(shared + 1, *shared, {count_up(16)})[0], {0, 4, 31, 40});
        munmap(shared, room);
    }
}

static void types_of_graphs(void **) {
    auto x = data("x", {2, 3});
    expect_of(x, ge::op::Permute("op").set_input_x(x).set_attr_order({1, 0}), count_up(6), {0, 3, 1, 4, 2, 5});
    expect_of(x, ge::op::BNLL("op").set_input_x(x), {0, 1, -1, 2, -2, 3},
              {.693147f, 1.313262f, .313262f, 2.126928f, .126928f, 3.048587f});
    expect_of(x, ge::op::Xdivy("op").set_input_x1(x).set_input_x2(constant<float>("d", {3}, {2, 0, 4})),
              {1, 0, 3, 4, 0, 6}, {.5f, 0, .75f, 2, 0, 1.5f});
    expect_of(x,
              ge::op::LayerNorm("op")
                  .set_input_x(x)
                  .set_input_gamma(constant<float>("g", {3}, {1, 2, 1}))
                  .set_input_beta(constant<float>("b", {3}, {0, 1, 0}))
                  .set_attr_begin_norm_axis(1)
                  .set_attr_begin_params_axis(1)
                  .set_attr_epsilon(1e-7f),
              count_up(6), {-1.2247449f, 1, 1.2247449f, -1.2247449f, 1, 1.2247449f});
    expect_of(x,
              ge::op::StridedSliceV2("op")
                  .set_input_x(x)
                  .set_input_begin(constant<int32_t>("b", {1}, {0}))
                  .set_input_end(constant<int32_t>("e", {1}, {3}))
                  .set_input_axes(constant<int32_t>("a", {1}, {1}))
                  .set_input_strides(constant<int32_t>("s", {1}, {2})),
              count_up(6), {0, 2, 3, 5});
    auto image = data("image", {1, 2, 1, 2});
    expect_of(image, ge::op::PRelu("op").set_input_x(image).set_input_weight(constant<float>("w", {2}, {.5f, 2})),
              {-2, 2, -3, 3}, {-1, 2, -6, 3});
    expect_of(image,
              ge::op::InstanceNorm("op")
                  .set_input_x(image)
                  .set_input_gamma(constant<float>("g", {2}, {1, 2}))
                  .set_input_beta(constant<float>("b", {2}, {0, 5}))
                  .set_attr_data_format("NCHW")
                  .set_attr_epsilon(0),
              {1, 3, 4, 10}, {-1, 1, 3, 7});
    expect_of(image,
              ge::op::ResizeBilinearV2D("op")
                  .set_input_x(image)
                  .set_attr_size({1, 4})
                  .set_attr_align_corners(false)
                  .set_attr_half_pixel_centers(true),
              {0, 4, 8, 0}, {0, 1, 3, 4, 8, 6, 2, 0});
}

static void types_of_the_register(void **) {
    auto x = data("x", {2, 4});
    auto split = ge::op::SplitV("split");
    split.create_dynamic_output_y(2);
    split.set_input_x(x)
        .set_input_size_splits(constant<int32_t>("sizes", {2}, {1, 3}))
        .set_input_split_dim(constant<int32_t>("dim", {1}, {1}));
    split.set_attr_num_split(2);
    auto concat = ge::op::ConcatD("concat");
    concat.create_dynamic_input_x(2);
    concat.set_dynamic_input_x(0, split, "y1").set_dynamic_input_x(1, split, "y0").set_attr_concat_dim(1).set_attr_N(2);
    expect_of(x, concat, count_up(8), {1, 2, 3, 0, 5, 6, 7, 4});
    expect_of(x, ge::op::SoftmaxV2("op").set_input_x(x).set_attr_axes({1}), {0, 0, 0, 0, 0, 0, 100, 0},
              {.25f, .25f, .25f, .25f, 0, 0, 1, 0});
    expect_of(x, ge::op::Reshape("op").set_input_x(x).set_input_shape(constant<int64_t>("s", {2}, {4, 2})), count_up(8),
              count_up(8));
    expect_of(x,
              ge::op::MatMulV2("op")
                  .set_input_x1(x)
                  .set_input_x2(constant<float>("w", {1, 4}, {1, 0, 2, 0}))
                  .set_attr_transpose_x2(true),
              count_up(8), {4, 16});
    expect_of(x,
              ge::op::ClipByValue("op")
                  .set_input_x(x)
                  .set_input_clip_value_min(constant<float>("l", {}, {2}))
                  .set_input_clip_value_max(constant<float>("h", {}, {5})),
              count_up(8), {2, 2, 2, 3, 4, 5, 5, 5});
    expect_of(x,
              ge::op::ReduceMean("op")
                  .set_input_x(x)
                  .set_input_axes(constant<int32_t>("a", {1}, {1}))
                  .set_attr_keep_dims(true),
              count_up(8), {1.5f, 5.5f});
    /* the same operator goes out twice, and one result of several */
    ge::Graph graph("outputs");
    graph.SetInputs(std::vector<ge::Operator>{x});
    graph.SetOutputs(std::vector<std::pair<ge::Operator, std::vector<size_t>>>{{split, {1}}, {split, {0}}});
    ge::ModelBufferData model;
    assert_int_equal(ge::aclgrphBuildModel(graph, Options(), model), ge::GRAPH_SUCCESS);
    auto results = run(model.data.get(), model.length, {count_up(8)});
    expect(results[0], {1, 2, 3, 5, 6, 7});
    expect(results[1], {0, 4});
}

static void refused(const std::vector<ge::Operator> &inputs, const ge::Operator &output, const char *word) {
    ge::Graph graph("wrong");
    ge::ModelBufferData model;
    graph.SetInputs(inputs).SetOutputs(std::vector<ge::Operator>{output});
    assert_int_equal(ge::aclgrphBuildModel(graph, Options(), model), ge::GRAPH_FAILED);
    const char *message = aclGetRecentErrMsg();
    if (!message || !strstr(message, word))
        fail_msg("\"%s\" does not say %s", message ? message : "", word);
}

static void wrong_graphs_say_why(void **) {
    auto x = data("x", {2, 3});
    refused({x}, ge::Operator("op", "Fancy"), "Fancy");
    refused({}, ge::op::Relu("op").set_input_x(x), "none of the graph's inputs");
    refused({x, x}, ge::op::Relu("op").set_input_x(x), "twice");
    refused({x}, ge::op::Relu("op"), "x is missing");
    refused({ge::op::Data("bare")}, x, "update_output_desc_y");
    refused({data("open", {-1, 3})}, x, "must be known");
    refused({x}, ge::op::Add("op").set_input_x1(x).set_input_x2(ge::op::Const("empty")), "set_attr_value");
    refused({x}, ge::op::Relu("op").set_input_x(x, "z"), "\"z\"");
    refused({x}, ge::op::Relu("op").set_input_x(ge::Operator()), "no operator");
    refused({x}, ge::op::Permute("op").set_input_x(x), "order");
    auto a = ge::op::Relu("a"), b = ge::op::Relu("b");
    a.set_input_x(b);
    b.set_input_x(a);
    refused({x}, a, "depends on itself");
    a.set_input_x(x); /* no circle is left behind */
    ge::Tensor tensor(describe({4}));
    tensor.SetData(std::vector<uint8_t>(3));
    refused({x}, ge::op::Add("op").set_input_x1(x).set_input_x2(ge::op::Const("short").set_attr_value(tensor)), "16");
    ge::Graph empty("empty");
    ge::ModelBufferData model;
    assert_int_equal(ge::aclgrphBuildModel(empty, Options(), model), ge::GRAPH_FAILED);
    assert_non_null(strstr(aclGetRecentErrMsg(), "SetOutputs"));
    Options unknown = {{ge::AscendString("no_such_option"), ge::AscendString("1")}};
    assert_int_equal(ge::aclgrphBuildModel(empty, unknown, model), ge::GRAPH_FAILED);
    assert_non_null(strstr(aclGetRecentErrMsg(), "no_such_option"));
    unknown = {{ge::AscendString(ge::ir_option::SOC_VERSION), ge::AscendString("Abacus1")}};
    assert_int_equal(ge::aclgrphBuildInitialize(unknown), ge::GRAPH_FAILED);
    assert_non_null(strstr(aclGetRecentErrMsg(), "Abacus1"));
    ge::aclgrphBuildFinalize();
    auto ends = small_net();
    refused({ends.first}, ends.second, "aclgrphBuildInitialize");
    assert_int_equal(begin(nullptr), 1); /* aclInit again */
    std::map<std::string, std::string> texts = {{ge::ir_option::SOC_VERSION, "Ascend310P3"}};
    assert_int_equal(ge::aclgrphBuildInitialize(texts), ge::GRAPH_SUCCESS);
}

static std::vector<char> onnx_model() {
    static const int64_t open_rows[] = {-1, 3}, three[] = {3};
    static const float b[] = {1, 10, 100};
    maker *m = make_begin(17);
    size_t bytes;
    make_input(m, "x", 1, 2, open_rows);
    make_constant(m, "b", 1, 1, three, b, sizeof b);
    make_node(m, "Mul", "x b", "y");
    make_output(m, "y");
    char *file = static_cast<char *>(make_end(m, &bytes));
    std::vector<char> result(file, file + bytes);
    free(file);
    return result;
}

static void onnx_models(void **) {
    std::vector<char> bytes = onnx_model();
    char name[64], saved[80];
    snprintf(name, sizeof name, "/tmp/doppel_ge_%d.onnx", static_cast<int>(getpid()));
    FILE *file = fopen(name, "wb");
    assert_true(file && fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size() && fclose(file) == 0);
    for (int from_file = 0; from_file < 2; from_file++) {
        ge::Graph graph;
        ge::ModelBufferData model;
        assert_int_equal(from_file ? ge::aclgrphParseONNX(name, Options(), graph)
                                   : ge::aclgrphParseONNXFromMem(bytes.data(), bytes.size(), Options(), graph),
                         ge::GRAPH_SUCCESS);
        Options options;
        options.emplace(ge::ir_option::INPUT_SHAPE, "x:2,3");
        options.emplace(ge::ir_option::PRECISION_MODE, "force_fp16");
        assert_int_equal(ge::aclgrphBuildModel(graph, options, model), ge::GRAPH_SUCCESS);
        expect(run(model.data.get(), model.length, {count_up(6)})[0], {0, 10, 200, 3, 40, 500});
        snprintf(saved, sizeof saved, "/tmp/doppel_ge_%d", static_cast<int>(getpid()));
        assert_int_equal(ge::aclgrphSaveModel(saved, model), ge::GRAPH_SUCCESS);
        assert_int_equal(ge::aclgrphDumpGraph(graph, name, strlen(name)), ge::GRAPH_SUCCESS);
        strcat(saved, ".om");
        uint32_t id;
        assert_int_equal(aclmdlLoadFromFile(saved, &id), ACL_SUCCESS);
        assert_int_equal(aclmdlUnload(id), ACL_SUCCESS);
        unlink(saved);
        file = fopen(name, "wb");
        assert_true(file && fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size() && fclose(file) == 0);
    }
    ge::Graph graph;
    assert_int_equal(ge::aclgrphParseONNXFromMem(bytes.data(), bytes.size() / 2, Options(), graph), ge::GRAPH_FAILED);
    assert_int_equal(ge::aclgrphParseONNXFromMem(nullptr, 4, Options(), graph), ge::GRAPH_FAILED);
    assert_int_equal(ge::aclgrphParseONNX("/nowhere.onnx", Options(), graph), ge::GRAPH_FAILED);
    unlink(name);
}

/* Thousands of operators in a row: neither building nor releasing them takes a deep stack. */
static void long_chains(void **) {
    auto x = data("x", {2});
    ge::Operator last = x;
    for (int i = 0; i < 3000; i++)
        last = ge::op::Neg("n").set_input_x(last);
    expect_of(x, last, {1, 2}, {1, 2});
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_net_runs),           cmocka_unit_test(a_child_builds),
        cmocka_unit_test(types_of_graphs),      cmocka_unit_test(types_of_the_register),
        cmocka_unit_test(onnx_models),          cmocka_unit_test(long_chains),
        cmocka_unit_test(wrong_graphs_say_why),
    };
    return cmocka_run_group_tests_name("graph engine", tests, begin, end);
}
