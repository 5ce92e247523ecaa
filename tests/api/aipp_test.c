/* AIPP through atc's compiler and aclmdl: a model whose input is a picture; settings in the file, and settings for a
 * run. */
#include "child.h"

#include "doppel/compile.h"
#include "graph/onnx_make.h"

enum { H = 16, W = 32, VALUES = 3 * H * W, NV12 = H * W * 3 / 2 };
static char onnx[64], om[64], conf[64];

/* y = x + x */
static void write_model(void) {
    static const int64_t dims[] = {-1, 3, H, W};
    size_t bytes;
    maker *m = make_begin(17);
    make_input(m, "x", 1, 4, dims);
    make_node(m, "Add", "x x", "y");
    make_output(m, "y");
    void *file = make_end(m, &bytes);
    snprintf(onnx, sizeof onnx, "/tmp/doppel_aipp_%d.onnx", (int)getpid());
    snprintf(om, sizeof om, "/tmp/doppel_aipp_%d.om", (int)getpid());
    snprintf(conf, sizeof conf, "/tmp/doppel_aipp_%d.cfg", (int)getpid());
    FILE *out = fopen(onnx, "wb");
    CHECK(out && fwrite(file, 1, bytes, out) == bytes && fclose(out) == 0);
    free(file);
}

static bool compile(const char *settings, const char *shape, const char *batches, char *message, size_t bytes) {
    FILE *out = fopen(conf, "w");
    CHECK(out && fputs(settings, out) >= 0 && fclose(out) == 0);
    return dp_compile_model(&(dp_compile_options){.model = onnx,
                                                  .output = om,
                                                  .input_shape = shape,
                                                  .dynamic_batch_size = batches,
                                                  .soc_version = "Ascend310P3",
                                                  .insert_op_conf = conf},
                            message, bytes);
}

static void compile_well(const char *settings, const char *shape, const char *batches) {
    char message[1024];
    if (!compile(settings, shape, batches, message, sizeof message)) {
        fprintf(stderr, "%s\n", message);
        _exit(1);
    }
}

static void begin(void) {
    CHECK_OK(aclInit(NULL));
    CHECK_OK(aclrtSetDevice(0));
    write_model();
}

static void end(void) {
    unlink(onnx);
    unlink(om);
    unlink(conf);
    CHECK_OK(aclrtResetDevice(0));
    CHECK_OK(aclFinalize());
}

static aclmdlDataset *set_of(int n, void *const *data, const size_t *bytes) {
    aclmdlDataset *set = aclmdlCreateDataset();
    CHECK(set);
    for (int i = 0; i < n; i++)
        CHECK_OK(aclmdlAddDatasetBuffer(set, aclCreateDataBuffer(data[i], bytes[i])));
    return set;
}

static void destroy_set(aclmdlDataset *set) {
    for (size_t i = 0; i < aclmdlGetDatasetNumBuffers(set); i++)
        CHECK_OK(aclDestroyDataBuffer(aclmdlGetDatasetBuffer(set, i)));
    CHECK_OK(aclmdlDestroyDataset(set));
}

static void *device(size_t bytes) {
    void *memory = NULL;
    CHECK_OK(aclrtMalloc(&memory, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK_OK(aclrtMemset(memory, bytes, 0, bytes));
    return memory;
}

/* BT.601, wide, in eighths of bits as the settings below say, then halved and moved. */
static float expected(const uint8_t *nv12, int c, int x, int y) {
    static const int m[3][3] = {{256, 0, 359}, {256, -88, -183}, {256, 454, 0}};
    const uint8_t *uv = nv12 + H * W + y / 2 * W + x / 2 * 2;
    int v[3] = {nv12[y * W + x], uv[0] - 128, uv[1] - 128}, sum = 0;
    for (int k = 0; k < 3; k++)
        sum += m[c][k] * v[k];
    sum = sum >= 0 ? sum / 256 : -((255 - sum) / 256);
    return 2 * ((float)(sum < 0 ? 0 : sum > 255 ? 255 : sum) - 100) * .5f;
}

static const char static_settings[] =
    "aipp_op { aipp_mode: static input_format: YUV420SP_U8 csc_switch: true\n"
    "matrix_r0c0: 256 matrix_r0c1: 0 matrix_r0c2: 359 matrix_r1c0: 256 matrix_r1c1: -88 matrix_r1c2: -183\n"
    "matrix_r2c0: 256 matrix_r2c1: 454 matrix_r2c2: 0 input_bias_0: 0 input_bias_1: 128 input_bias_2: 128\n"
    "mean_chn_0: 100 mean_chn_1: 100 mean_chn_2: 100 var_reci_chn_0: 0.5 var_reci_chn_1: 0.5 var_reci_chn_2: 0.5 }\n";

static void fill(uint8_t *picture, unsigned seed) {
    for (int i = 0; i < NV12; i++)
        picture[i] = (uint8_t)((seed = seed * 1664525u + 1013904223u) >> 24);
}

static void check(const uint8_t *picture, const float *y) {
    for (int i = 0; i < VALUES; i++)
        CHECK(y[i] == expected(picture, i / (H * W), i % W, i / W % H));
}

TEST(settings_in_the_file) {
    begin();
    compile_well(static_settings, "x:1,3,16,32", NULL);
    uint32_t id;
    CHECK_OK(aclmdlLoadFromFile(om, &id));
    aclmdlDesc *desc = aclmdlCreateDesc();
    aclmdlIODims dims;
    CHECK_OK(aclmdlGetDesc(desc, id));
    CHECK(aclmdlGetNumInputs(desc) == 1 && aclmdlGetInputSizeByIndex(desc, 0) == NV12);
    CHECK(strcmp(aclmdlGetInputNameByIndex(desc, 0), "x") == 0 && aclmdlGetInputDataType(desc, 0) == ACL_UINT8);
    CHECK_OK(aclmdlGetInputDims(desc, 0, &dims));
    CHECK(dims.dimCount == 4 && dims.dims[0] == 1 && dims.dims[1] == H * 3 / 2 && dims.dims[2] == W &&
          dims.dims[3] == 1);
    aclmdlInputAippType type;
    size_t attached;
    CHECK_OK(aclmdlGetAippType(id, 0, &type, &attached));
    CHECK(type == ACL_DATA_WITH_STATIC_AIPP && attached == ACL_INVALID_NODE_INDEX);
    static aclAippInfo info;
    CHECK_OK(aclmdlGetFirstAippInfo(id, 0, &info));
    CHECK(info.srcImageSizeW == W && info.matrixR2C1 == 454 && info.varReciChn2 == .5f &&
          info.outDims[0].srcSize == NV12 && info.outDims[0].aippOutSize == VALUES * 4 &&
          info.outDims[0].aippOutdims.dims[1] == 3);
    uint8_t *picture = device(NV12);
    float *y = device(VALUES * 4);
    aclmdlDataset *in = set_of(1, (void *[]){picture}, (size_t[]){NV12}),
                  *out = set_of(1, (void *[]){y}, (size_t[]){VALUES * 4});
    for (unsigned seed = 0; seed < 3; seed++) {
        fill(picture, seed);
        CHECK_OK(aclmdlExecute(id, in, out));
        check(picture, y);
    }
    destroy_set(in);
    destroy_set(out);
    CHECK_OK(aclrtFree(picture));
    CHECK_OK(aclrtFree(y));
    CHECK_OK(aclmdlDestroyDesc(desc));
    CHECK_OK(aclmdlUnload(id));
    end();
}

TEST(several_batch_sizes) {
    begin();
    compile_well(static_settings, "x:-1,3,16,32", "1,3");
    uint32_t id;
    CHECK_OK(aclmdlLoadFromFile(om, &id));
    aclmdlDesc *desc = aclmdlCreateDesc();
    size_t index;
    CHECK_OK(aclmdlGetDesc(desc, id));
    CHECK(aclmdlGetInputSizeByIndex(desc, 0) == 3 * NV12);
    CHECK_OK(aclmdlGetInputIndexByName(desc, ACL_DYNAMIC_TENSOR_NAME, &index));
    CHECK(index == 1);
    uint8_t *pictures = device(3 * NV12);
    float *y = device(3 * VALUES * 4);
    void *gear = device(aclmdlGetInputSizeByIndex(desc, 1));
    aclmdlDataset *in = set_of(2, (void *[]){pictures, gear}, (size_t[]){3 * NV12, aclmdlGetInputSizeByIndex(desc, 1)});
    aclmdlDataset *out = set_of(1, (void *[]){y}, (size_t[]){3 * VALUES * 4});
    for (unsigned i = 0; i < 3; i++)
        fill(pictures + i * NV12, i);
    for (unsigned batch = 1; batch <= 3; batch += 2) {
        CHECK_OK(aclmdlSetDynamicBatchSize(id, in, index, batch));
        CHECK_OK(aclmdlExecute(id, in, out));
        for (unsigned i = 0; i < batch; i++)
            check(pictures + i * NV12, y + i * VALUES);
    }
    destroy_set(in);
    destroy_set(out);
    CHECK_OK(aclrtFree(pictures));
    CHECK_OK(aclrtFree(gear));
    CHECK_OK(aclrtFree(y));
    CHECK_OK(aclmdlDestroyDesc(desc));
    CHECK_OK(aclmdlUnload(id));
    end();
}

/* Two pictures of 40 x 24 RGB, cut at different places. */
TEST(settings_for_a_run) {
    enum { SW = 40, SH = 24, PICTURE = SW * SH * 3, ROOM = 8000 };
    begin();
    compile_well("aipp_op { aipp_mode: dynamic related_input_rank: 0 max_src_image_size: 8000 }", "x:2,3,16,32", NULL);
    uint32_t id;
    CHECK_OK(aclmdlLoadFromFile(om, &id));
    aclmdlDesc *desc = aclmdlCreateDesc();
    size_t index, bytes, attached;
    CHECK_OK(aclmdlGetDesc(desc, id));
    CHECK(aclmdlGetNumInputs(desc) == 2 && aclmdlGetInputSizeByIndex(desc, 0) == ROOM);
    CHECK_OK(aclmdlGetInputIndexByName(desc, ACL_DYNAMIC_AIPP_NAME, &index));
    CHECK_OK(aclmdlGetAippDataSize(2, &bytes));
    CHECK(index == 1 && aclmdlGetInputSizeByIndex(desc, 1) == bytes);
    aclmdlInputAippType type;
    CHECK_OK(aclmdlGetAippType(id, 0, &type, &attached));
    CHECK(type == ACL_DATA_WITH_DYNAMIC_AIPP && attached == 1);
    CHECK_OK(aclmdlGetAippType(id, 1, &type, &attached));
    CHECK(type == ACL_DYNAMIC_AIPP_NODE);
    static aclAippInfo info;
    CHECK(aclmdlGetFirstAippInfo(id, 0, &info) == ACL_ERROR_NOT_STATIC_AIPP);

    uint8_t *pictures = device(ROOM);
    void *data = device(bytes);
    float *y = device(2 * VALUES * 4);
    aclmdlDataset *in = set_of(2, (void *[]){pictures, data}, (size_t[]){ROOM, bytes});
    aclmdlDataset *out = set_of(1, (void *[]){y}, (size_t[]){2 * VALUES * 4});
    CHECK(aclmdlExecute(id, in, out) != ACL_SUCCESS && strstr(aclGetRecentErrMsg(), "aclmdlSetInputAIPP"));
    aclmdlAIPP *aipp = aclmdlCreateAIPP(2);
    CHECK_OK(aclmdlSetAIPPInputFormat(aipp, ACL_RGB888_U8));
    CHECK_OK(aclmdlSetAIPPSrcImageSize(aipp, SW, SH));
    CHECK_OK(aclmdlSetAIPPRbuvSwapSwitch(aipp, 1));
    for (uint64_t i = 0; i < 2; i++) {
        CHECK_OK(aclmdlSetAIPPCropParams(aipp, 1, (int32_t)i * 5, (int32_t)i * 3, W, H, i));
        CHECK_OK(aclmdlSetAIPPPixelVarReci(aipp, 1, 2, 3, 1, i));
        CHECK_OK(aclmdlSetAIPPDtcPixelMean(aipp, (int16_t)(10 + i), 20, 30, 0, i));
    }
    CHECK(aclmdlSetAIPPCropParams(aipp, 1, 0, 0, W, H, 2) == ACL_ERROR_INVALID_PARAM);
    CHECK(aclmdlSetInputAIPP(id, in, 0, aipp) == ACL_ERROR_INVALID_PARAM);
    CHECK_OK(aclmdlSetInputAIPP(id, in, index, aipp));
    CHECK_OK(aclmdlSetAIPPByInputIndex(id, in, 0, aipp));
    for (int i = 0; i < 2 * PICTURE; i++)
        pictures[i] = (uint8_t)(i * 7 + i / 100);
    CHECK_OK(aclmdlExecute(id, in, out));
    for (int n = 0; n < 2; n++)
        for (int c = 0; c < 3; c++)
            for (int i = 0; i < H * W; i++) {
                uint8_t value = pictures[n * PICTURE + ((i / W + n * 3) * SW + i % W + n * 5) * 3 + 2 - c];
                float mean = (float)(c == 0 ? 10 + n : 10 + 10 * c);
                CHECK(y[n * VALUES + c * H * W + i] == 2 * ((float)value - mean) * (float)(c + 1));
            }
    CHECK_OK(aclmdlSetAIPPSrcImageSize(aipp, 2000, 2000)); /* more than the input holds: found when it runs */
    CHECK_OK(aclmdlSetInputAIPP(id, in, index, aipp));
    CHECK(aclmdlExecute(id, in, out) != ACL_SUCCESS && strstr(aclGetRecentErrMsg(), "max_src_image_size"));
    CHECK_OK(aclmdlDestroyAIPP(aipp));
    CHECK(aclmdlSetInputAIPP(id, in, index, aipp) == ACL_ERROR_INVALID_PARAM);
    CHECK(aclmdlCreateAIPP(0) == NULL);
    destroy_set(in);
    destroy_set(out);
    CHECK_OK(aclrtFree(pictures));
    CHECK_OK(aclrtFree(data));
    CHECK_OK(aclrtFree(y));
    CHECK_OK(aclmdlDestroyDesc(desc));
    CHECK_OK(aclmdlUnload(id));
    end();
}

TEST(settings_that_do_not_fit_the_model) {
    static const char *const cases[][3] = {
        {"aipp_op { input_format: RGB888_U8 src_image_size_w: 31 src_image_size_h: 16 }", "x:1,3,16,32",
         "the model's input is 32 x 16"},
        {"aipp_op { input_format: RGB888_U8 related_input_rank: 3 }", "x:1,3,16,32", "related_input_rank is 3"},
        {"aipp_op { input_format: RGB888_U8 related_input_name: \"z\" }", "x:1,3,16,32", "no such input"},
        {"aipp_op { input_format: RGB888_U8 } aipp_op { input_format: RGB888_U8 }", "x:1,3,16,32",
         "4 dimensions of float"},
        {"aipp_op { input_format: YUV400_U8 }", "x:1,3,16,32", "gives 1 channels"},
        {"aipp_op { input_format: RGB888_U8 }", "x:-1,3,16,32", "batch"},
        {"hello", "x:1,3,16,32", "line 1"},
    };
    begin();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char message[1024];
        CHECK(!compile(cases[i][0], cases[i][1], NULL, message, sizeof message));
        if (!strstr(message, cases[i][2])) {
            fprintf(stderr, "said: %s\n", message);
            _exit(1);
        }
    }
    end();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(settings_in_the_file),
        cmocka_unit_test(several_batch_sizes),
        cmocka_unit_test(settings_for_a_run),
        cmocka_unit_test(settings_that_do_not_fit_the_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
