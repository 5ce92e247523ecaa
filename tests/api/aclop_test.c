/* Single operators: every type by each way of calling it, and every fault. */
#include "aclop_text.h"

static const struct {
    const char *type, *inputs, *attributes, *outputs;
} cases[] = {
#include "aclop_cases.inc"
};
#define CASES (sizeof cases / sizeof cases[0])

static const char *const known[] = {
#include "aclop_types.inc"
};
#define KNOWN (sizeof known / sizeof known[0])

static void begin_case(aclop_call *call, size_t i) {
    aclop_begin(call, cases[i].type, cases[i].inputs, cases[i].attributes, cases[i].outputs);
}

TEST(every_type_has_a_case) {
    for (size_t i = 0; i < KNOWN; i++) {
        size_t k = 0;
        while (k < CASES && strcmp(cases[k].type, known[i]))
            k++;
        if (k == CASES)
            fprintf(stderr, "%s has no case\n", known[i]);
        CHECK(k < CASES);
    }
}

TEST(compile_and_execute) {
    CHECK_OK(aclrtSetDevice(0));
    for (size_t i = 0; i < CASES; i++) {
        aclop_call call;
        begin_case(&call, i);
        CHECK_OK(aclop_run(&call));
        aclop_check(&call);
        CHECK_OK(aclopCompile(call.type, call.n_in, (const aclTensorDesc *const *)call.in_desc, call.n_out,
                              (const aclTensorDesc *const *)call.out_desc, call.attr, ACL_ENGINE_SYS, ACL_COMPILE_SYS,
                              NULL));
        CHECK_OK(aclopExecute(call.type, call.n_in, (const aclTensorDesc *const *)call.in_desc,
                              (const aclDataBuffer *const *)call.in_buffer, call.n_out,
                              (const aclTensorDesc *const *)call.out_desc, call.out_buffer, call.attr, NULL));
        CHECK_OK(aclrtSynchronizeStream(NULL));
        aclop_check(&call);
        aclop_end(&call);
    }
}

/* Descriptions and attributes are gone before the handle runs, twice. */
TEST(handles) {
    CHECK_OK(aclrtSetDevice(0));
    aclrtStream stream;
    CHECK_OK(aclrtCreateStream(&stream));
    for (size_t i = 0; i < CASES; i++) {
        aclop_call call;
        aclopHandle *handle = NULL;
        begin_case(&call, i);
        CHECK_OK(aclopCreateHandle(call.type, call.n_in, (const aclTensorDesc *const *)call.in_desc, call.n_out,
                                   (const aclTensorDesc *const *)call.out_desc, call.attr, &handle));
        for (int k = 0; k < call.n_in; k++) {
            aclDestroyTensorDesc(call.in[k].desc);
            call.in[k].desc = NULL;
        }
        aclopDestroyAttr(call.attr);
        call.attr = NULL;
        for (int round = 0; round < 2; round++) {
            CHECK_OK(aclopExecWithHandle(handle, call.n_in, (const aclDataBuffer *const *)call.in_buffer, call.n_out,
                                         call.out_buffer, stream));
            CHECK_OK(aclrtSynchronizeStream(stream));
            aclop_check(&call);
        }
        aclopDestroyHandle(handle);
        CHECK_FAILS(ACL_ERROR_INVALID_PARAM,
                    aclopExecWithHandle(handle, call.n_in, (const aclDataBuffer *const *)call.in_buffer, call.n_out,
                                        call.out_buffer, stream),
                    "handle", "destroyed");
        aclop_end(&call);
    }
    CHECK_OK(aclrtDestroyStream(stream));
}

static bool same_dims(const aclTensorDesc *desc, const aclop_tensor *t) {
    bool same = aclGetTensorDescNumDims(desc) == (size_t)t->rank;
    for (int d = 0; d < t->rank && same; d++)
        same = aclGetTensorDescDim(desc, (size_t)d) == t->dims[d];
    return same;
}

/* Types with an output whose shape is for the caller to say. */
static bool any_shape(const char *type) {
    return strcmp(type, "Pack") == 0 || strcmp(type, "LayerNormV3") == 0;
}

TEST(shapes_are_found) {
    CHECK_OK(aclrtSetDevice(0));
    const int64_t rank[] = {-2};
    for (size_t i = 0; i < CASES; i++) {
        if (any_shape(cases[i].type))
            continue;
        aclop_call call;
        begin_case(&call, i);
        for (int k = 0; k < call.n_out; k++)
            CHECK_OK(aclSetTensorShape(call.out_desc[k], 1, rank));
        CHECK_OK(
            aclopInferShape(call.type, call.n_in, call.in_desc, call.in_buffer, call.n_out, call.out_desc, call.attr));
        for (int k = 0; k < call.n_out; k++)
            CHECK(same_dims(call.out_desc[k], &call.out[k]) || !fprintf(stderr, "%s\n", call.type));
        for (int k = 0; k < call.n_out; k++)
            CHECK_OK(aclSetTensorShape(call.out_desc[k], 1, rank));
        CHECK_OK(aclopCompileAndExecuteV2(call.type, call.n_in, call.in_desc, call.in_buffer, call.n_out, call.out_desc,
                                          call.out_buffer, call.attr, ACL_ENGINE_SYS, ACL_COMPILE_SYS, NULL, NULL));
        CHECK_OK(aclrtSynchronizeStream(NULL));
        for (int k = 0; k < call.n_out; k++)
            CHECK(same_dims(call.out_desc[k], &call.out[k]));
        aclop_check(&call);
        aclop_end(&call);
    }
}

/* Dims that depend on data are those that were found, not the room that was given. */
TEST(found_dims_are_told) {
    static const struct {
        const char *type, *inputs, *attributes, *outputs, *room;
    } found[] = {
        {"NonZero", "f32[2,3]=0 1 0 2 3 0", "", "i64[3,2]=0 1 1 0 1 1", "i64[6,2]=0 1 1 0 1 1 0 0 0 0 0 0"},
        {"NonZero", "i32[4]=0 0 0 0", "transpose:b=1", "i64[1,0]=", "i64[1,4]=0 0 0 0"},
        {"UniquePlaces", "f32[4]=3 1 3 1", "", "f32[2]=1 3;i64[2]=1 0;i64[4]=1 0 1 0;i64[2]=2 2",
         "f32[4]=1 3 0 0;i64[4]=1 0 0 0;i64[4]=1 0 1 0;i64[4]=2 2 0 0"},
        {"CompressSlices", "f32[2,2]=1 2 3 4;bool[2]=0 1", "axis:i=0", "f32[1,2]=3 4", "f32[2,2]=3 4 0 0"},
    };
    const int64_t rank[] = {-2};
    CHECK_OK(aclrtSetDevice(0));
    for (size_t i = 0; i < sizeof found / sizeof found[0]; i++) {
        aclop_call call, told;
        aclop_begin(&call, found[i].type, found[i].inputs, found[i].attributes, found[i].room);
        aclop_begin(&told, found[i].type, found[i].inputs, found[i].attributes, found[i].outputs);
        for (int k = 0; k < call.n_out; k++)
            CHECK_OK(aclSetTensorShape(call.out_desc[k], 1, rank));
        CHECK_OK(aclopCompileAndExecuteV2(call.type, call.n_in, call.in_desc, call.in_buffer, call.n_out, call.out_desc,
                                          call.out_buffer, call.attr, ACL_ENGINE_SYS, ACL_COMPILE_SYS, NULL, NULL));
        for (int k = 0; k < call.n_out; k++) {
            CHECK(same_dims(call.out_desc[k], &told.out[k]) || !fprintf(stderr, "%s, output %d\n", call.type, k));
            for (size_t e = 0; e < told.out[k].count; e++)
                CHECK(told.out[k].type == ACL_INT64 ? (double)((int64_t *)call.out[k].data)[e] == told.out[k].values[e]
                                                    : ((float *)call.out[k].data)[e] == (float)told.out[k].values[e]);
        }
        aclop_end(&call);
        aclop_end(&told);
    }
}

/* One call that must give this code, with words of its sentence. */
static void fails(aclError code, const char *type, const char *inputs, const char *attributes, const char *outputs,
                  const char *word, const char *word2) {
    aclop_call call;
    aclop_begin(&call, type, inputs, attributes, outputs);
    if (code)
        CHECK_FAILS(code, aclop_run(&call), word, word2);
    else
        CHECK_OK(aclop_run(&call));
    aclop_end(&call);
}

TEST(faults_of_a_call) {
    CHECK_OK(aclrtSetDevice(0));
    const aclError bad = ACL_ERROR_INVALID_PARAM, refused = ACL_ERROR_API_NOT_SUPPORT;
    fails(ACL_ERROR_OP_NOT_FOUND, "TransposD", "f32[1]=1", "", "f32[1]=1", "TransposD", "TransposeD");
    fails(ACL_ERROR_OP_NOT_FOUND, "", "f32[1]=1", "", "f32[1]=1", "opType", "none of");
    fails(bad, "Add", "f32[1]=1", "", "f32[1]=1", "numInputs", "Add has 2");
    fails(bad, "Add", "f32[1]=1;f32[1]=1;f32[1]=1", "", "f32[1]=1", "numInputs", "3");
    fails(bad, "Add", "f32[1]=1;f32[1]=1", "", "f32[1]=1;f32[1]=1", "numOutputs", "2");
    fails(bad, "Add", "f32[1]=1;-", "", "f32[1]=1", "x2 is missing", "input 1");
    fails(bad, "Add", "f32[2]=1 2;f32[3]=1 2 3", "", "f32[3]=0 0 0", "x2", "3");
    fails(bad, "Add", "f32[2]=1 2;f32[2]=1 2", "", "f32[3]=0 0 0", "y", "dimension 0 is 3");
    fails(bad, "Add", "f32[2]=1 2;f32[2]=1 2", "alpha:f=1", "f32[2]=0 0", "alpha", "none");
    fails(ACL_SUCCESS, "Add", "f32[2]=1 2;f32[2]=1 2", "_note:s=x", "f32[2]=2 4", "", "");
    fails(bad, "Adds", "f32[2]=1 2", "", "f32[2]=0 0", "value is not set", "a float");
    fails(bad, "Adds", "f32[2]=1 2", "value:s=1", "f32[2]=0 0", "value is a string", "a float");
    fails(bad, "Adds", "f32[2]=1 2", "valu:f=1", "f32[2]=0 0", "valu is none of Adds", "value");
    fails(refused, "Exp", "f32[1]=1", "base:f=2", "f32[1]=1", "base", "-1");
    fails(refused, "PadV3", "f32[1]=1;#i32[2]=1 1", "paddings_contiguous:b=0", "f32[3]=0 0 0", "paddings_contiguous", "other than 1");
    fails(bad, "TransposeD", "f32[2,1]=1 2", "perm:I=0 0", "f32[2,1]=0 0", "perm", "twice");
    fails(bad, "TransposeD", "f32[2,1]=1 2", "perm:f=0", "f32[2,1]=0 0", "perm is a float", "list of integers");
    fails(bad, "Transpose", "f32[2,1]=1 2;f32[2]=1 0", "", "f32[1,2]=0 0", "perm", "i64");
    fails(bad, "Transpose", "f32[2,1]=1 2;-", "", "f32[1,2]=0 0", "perm is missing", "");
    fails(bad, "Fill", "#i64[1]=2;f32[2]=1 2", "", "f32[2]=0 0", "value has 2 elements", "1");
    fails(bad, "Cast", "f32[1]=1", "dst_type:i=3", "f32[1]=1", "dst_type", "f32");
    fails(bad, "Cast", "f32[1]=1", "dst_type:i=99", "f32[1]=1", "dst_type is 99", "element type");
    fails(bad, "Identity", "f32[1]=1", "", "i32[1]=1", "y has elements", "f32");
    fails(bad, "SplitD", "f32[3]=1 2 3", "split_dim:i=0;num_split:i=2", "f32[1]=1;f32[2]=2 3", "num_split", "divide");
    fails(bad, "SplitD", "f32[2]=1 2", "split_dim:i=0;num_split:i=2", "f32[2]=1 2", "num_split is 2", "outputs");
    fails(bad, "Crop", "f32[2,2]=1 2 3 4;f32[2,1]=0 0", "axis:i=1;offsets:I=2", "f32[2,1]=0 0", "offsets", "2");
    fails(bad, "Crop", "f32[2,2]=1 2 3 4;f32[2,1]=0 0", "axis:i=1;offsets:I=0 0", "f32[2,1]=0 0", "offsets has 2", "1");
    fails(bad, "Slice", "f32[2]=1 2;#i64[1]=1;#i64[1]=2", "", "f32[2]=0 0", "size", "has 2");
    fails(refused, "StridedSliceD", "f32[2]=1 2", "begin:I=1;end:I=0;strides:I=-1", "f32[1]=0", "strides[0]", "-1");
    fails(bad, "Reshape", "f32[2]=1 2;#i64[2]=-1 -1", "", "f32[2]=0 0", "shape[1]", "-1");
    fails(bad, "Reshape", "f32[2]=1 2;#i64[1]=3", "", "f32[3]=0 0 0", "shape", "2 elements");
    fails(bad, "Squeeze", "f32[2]=1 2", "axis:I=0", "f32[]=0", "axis", "not 1");
    fails(bad, "Unsqueeze", "f32[2]=1 2", "axes:I=0 0", "f32[1,1,2]=0 0", "axes", "once");
    fails(bad, "Flatten", "f32[2]=1 2", "axis:i=5", "f32[2,1]=0 0", "axis is 5", "");
    fails(bad, "PadD", "f32[2]=1 2", "paddings:I=1", "f32[3]=0 0 0", "paddings has 1", "2");
    fails(refused, "TransData", "f32[1,1,1,1]=1", "src_format:s=NCHW;dst_format:s=FRACTAL_NZ", "f32[1,1,1,1]=1",
          "dst_format", "FRACTAL_NZ");
    fails(refused, "SoftmaxV2", "f32[1,1]=1", "axes:I=0 1", "f32[1,1]=1", "axes has 2", "1");
    fails(bad, "AddN", "f32[1]=1;f32[2]=1 2", "", "f32[1]=1", "x", "");
    fails(bad, "AddN", "f32[1]=1;i32[1]=1", "", "f32[1]=1", "tensor 1", "i32");
    fails(bad, "ConcatD", "f32[1]=1;-", "concat_dim:i=0", "f32[1]=1", "tensor 1 of the list is missing", "x");
    fails(bad, "GEMM", "f32[2]=1 2;f32[2,1]=1 2;f32[1]=0;#f32[1]=1;#f32[1]=1", "transpose_a:b=1", "f32[1,1]=0",
          "transpose_a", "a has 1");
    fails(refused, "GEMM", "i8[1,1]=1;i8[1,1]=1;i32[1,1]=1;#i32[1]=1;#i32[1]=1", "", "i32[1,1]=0", "beta 1", "8-bit");
    fails(refused, "MatMul", "f32[1,1,1,1]=1;f32[1,1,1,1]=1;f32[1]=1", "", "f32[1,1,1,1]=0", "bias", "4");
    fails(bad, "Conv2D", "f32[1,1,1]=1;f32[1,1,1]=1", "strides:I=1;pads:I=0 0", "f32[1,1,1]=0", "x has 3", "4");
    fails(bad, "Conv2D", "f32[1,1,1,1]=1;f32[1,1,1,1]=1", "strides:I=1 1;pads:I=0 0", "f32[1,1,1,1]=0", "pads has 2",
          "4");
    fails(refused, "Conv2D", "f32[1,1,1,1]=1;f32[1,1,1,1]=1", "strides:I=2 1 1 1;pads:I=0 0 0 0", "f32[1,1,1,1]=0",
          "strides", "batch");
    fails(bad, "Conv2D", "f32[1,1,1,1]=1;f32[1,1,1,1]=1", "strides:I=1 1;pads:I=0 0 0 0;data_format:s=CHW",
          "f32[1,1,1,1]=0", "data_format", "CHW");
    fails(bad, "MaxPoolV3", "f32[1,1,1,1]=1", "ksize:I=1 1;strides:I=1 1;padding_mode:s=HALF", "f32[1,1,1,1]=0",
          "padding_mode", "HALF");
    fails(bad, "MaxPoolV3", "f32[1,1,2,2]=1 2 3 4", "ksize:I=2 2;strides:I=0 1", "f32[1,1,1,1]=0", "strides", "0");
    fails(bad, "ResizeBilinearV2", "f32[1,1,1,1]=1;#i32[1]=1", "", "f32[1,1,1,1]=0", "size has 1", "2");
    fails(bad, "ResizeBilinearV2", "f32[1,1,1,1]=1;#i32[2]=1 1", "align_corners:b=1;half_pixel_centers:b=1",
          "f32[1,1,1,1]=0", "align_corners", "both");
    fails(refused, "ResizeArea", "f32[1,1,1,1]=1;#i32[2]=1 1", "align_corners:b=1", "f32[1,1,1,1]=0", "align_corners",
          "1");
    fails(refused, "BatchNorm", "f32[1,1]=1;f32[1]=1;f32[1]=1;f32[1]=1;f32[1]=1", "", "f32[1,1]=1", "is_training", "0");
    fails(bad, "Range", "f32[1]=0;f32[1]=4;f32[1]=-1", "", "f32[1]=1", "delta", "-1");
}

TEST(faults_of_descriptions_and_buffers) {
    CHECK_OK(aclrtSetDevice(0));
    const int64_t dims[] = {2}, partly[] = {-1}, many[] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    float host[2] = {1, 2};
    void *device;
    CHECK_OK(aclrtMalloc(&device, 64, ACL_MEM_MALLOC_HUGE_FIRST));
    aclTensorDesc *good = aclCreateTensorDesc(ACL_FLOAT, 1, dims, ACL_FORMAT_ND);
    aclTensorDesc *unknown = aclCreateTensorDesc(ACL_FLOAT, 1, partly, ACL_FORMAT_ND);
    aclTensorDesc *deep = aclCreateTensorDesc(ACL_FLOAT, 9, many, ACL_FORMAT_ND);
    aclTensorDesc *blocked = aclCreateTensorDesc(ACL_FLOAT, 1, dims, ACL_FORMAT_FRACTAL_NZ);
    aclTensorDesc *words = aclCreateTensorDesc(ACL_STRING, 1, dims, ACL_FORMAT_ND);
    aclDataBuffer *buffer = aclCreateDataBuffer(device, 8), *small = aclCreateDataBuffer(device, 4),
                  *on_host = aclCreateDataBuffer(host, 8), *past = aclCreateDataBuffer((char *)device + 120, 8);
    const struct {
        aclTensorDesc *in, *out;
        aclDataBuffer *from, *to;
        aclError code;
        const char *word, *word2;
    } faults[] = {
        {NULL, good, buffer, buffer, ACL_ERROR_INVALID_PARAM, "inputDesc", "NULL"},
        {good, NULL, buffer, buffer, ACL_ERROR_INVALID_PARAM, "outputDesc", "NULL"},
        {unknown, good, buffer, buffer, ACL_ERROR_INVALID_PARAM, "inputDesc[0]", "unknown"},
        {good, unknown, buffer, buffer, ACL_ERROR_INVALID_PARAM, "outputDesc[0]", "V2"},
        {deep, good, buffer, buffer, ACL_ERROR_INVALID_PARAM, "9 dimensions", "8"},
        {blocked, good, buffer, buffer, ACL_ERROR_API_NOT_SUPPORT, "format 29", "ND"},
        {words, good, buffer, buffer, ACL_ERROR_INVALID_PARAM, "element type 13", "inputDesc[0]"},
        {good, good, small, buffer, ACL_ERROR_INVALID_PARAM, "inputs[0] has 4 bytes", "8"},
        {good, good, buffer, small, ACL_ERROR_INVALID_PARAM, "outputs[0] has 4 bytes", "8"},
        {good, good, NULL, buffer, ACL_ERROR_INVALID_PARAM, "x is missing", "Relu"},
        {good, good, buffer, NULL, ACL_ERROR_INVALID_PARAM, "y is missing", "Relu"},
        {good, good, on_host, buffer, ACL_ERROR_RT_PARAM_INVALID, "x", "device memory"},
        {good, good, buffer, past, ACL_ERROR_RT_PARAM_INVALID, "y", ""},
        {good, good, (aclDataBuffer *)good, buffer, ACL_ERROR_INVALID_PARAM, "inputs", "data buffer"},
    };
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        const aclTensorDesc *in = faults[i].in, *out = faults[i].out;
        const aclDataBuffer *from = faults[i].from;
        aclDataBuffer *to = faults[i].to;
        CHECK_FAILS(faults[i].code, aclopExecute("Relu", 1, &in, &from, 1, &out, &to, NULL, NULL), faults[i].word,
                    faults[i].word2);
    }
    const aclTensorDesc *in = good;
    const aclDataBuffer *from = buffer;
    aclDataBuffer *to = buffer;
    CHECK_OK(aclopExecute("Relu", 1, &in, &from, 1, &in, &to, NULL, NULL));
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclopExecute(NULL, 1, &in, &from, 1, &in, &to, NULL, NULL), "opType", "NULL");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclopExecute("Relu", -1, &in, &from, 1, &in, &to, NULL, NULL), "numInputs");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclopExecute("Relu", 1, NULL, &from, 1, &in, &to, NULL, NULL), "inputDesc");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclopExecute("Relu", 1, &in, NULL, 1, &in, &to, NULL, NULL), "inputs");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclopExecute("Relu", 1, &in, &from, 1 << 30, &in, &to, NULL, NULL),
                "numOutputs");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM,
                aclopExecute("Relu", 1, &in, &from, 1, &in, &to, (const aclopAttr *)good, NULL), "attr");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM,
                aclopCompile("Relu", 1, &in, 1, &in, NULL, (aclopEngineType)7, ACL_COMPILE_SYS, NULL), "engineType");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM,
                aclopCompile("Relu", 1, &in, 1, &in, NULL, ACL_ENGINE_SYS, (aclopCompileType)7, NULL), "compileFlag");
    CHECK_FAILS(ACL_ERROR_OP_NOT_FOUND,
                aclopCompile("Rely", 1, &in, 1, &in, NULL, ACL_ENGINE_SYS, ACL_COMPILE_SYS, NULL), "Rely", "Relu");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclopCreateHandle("Relu", 1, &in, 1, &in, NULL, NULL), "handle", "NULL");
    aclopHandle *handle;
    CHECK_FAILS(ACL_ERROR_OP_NOT_FOUND, aclopCreateHandle("Rely", 1, &in, 1, &in, NULL, &handle), "Relu");
    CHECK(handle == NULL);
    CHECK_OK(aclopCreateHandle("Relu", 1, &in, 1, &in, NULL, &handle));
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclopExecWithHandle(handle, 2, &from, 1, &to, NULL), "numInputs", "1");
    aclopDestroyHandle(handle);
    aclopDestroyHandle(NULL);
}

TEST(faults_of_found_shapes) {
    CHECK_OK(aclrtSetDevice(0));
    static const struct {
        const char *type, *inputs, *attributes, *output, *word;
        aclError code;
    } faults[] = {
        {"BroadcastToD", "f32[1]=1", "shape:I=4611686018427387904 8", "f32[1]=1", "larger", ACL_ERROR_INVALID_PARAM},
        {"BroadcastToD", "f32[1]=1", "shape:I=-3", "f32[1]=1", "-3", ACL_ERROR_INVALID_PARAM},
        {"BroadcastToD", "f32[1]=1", "shape:I=1 1 1 1 1 1 1 1 1", "f32[1]=1", "9 dimensions",
         ACL_ERROR_API_NOT_SUPPORT},
        {"Pack", "f32[2]=1 1", "", "f32[2]=1 1", "must be the number", ACL_ERROR_INVALID_PARAM},
        {"TransposeD", "f32[1,2]=1 2", "perm:I=0", "f32[2,1]=1 2", "perm", ACL_ERROR_INVALID_PARAM},
    };
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        aclop_call call;
        aclop_begin(&call, faults[i].type, faults[i].inputs, faults[i].attributes, faults[i].output);
        CHECK_FAILS(
            faults[i].code,
            aclopInferShape(call.type, call.n_in, call.in_desc, call.in_buffer, call.n_out, call.out_desc, call.attr),
            faults[i].word);
        aclop_end(&call);
    }
}

TEST(attributes) {
    const int64_t ints[] = {1, 2};
    const float floats[] = {1, 2};
    const uint8_t bools[] = {0, 1};
    const char *texts[] = {"a", "bc"}, *holes[] = {"a", NULL};
    const aclDataType element_types[] = {ACL_FLOAT, ACL_INT8};
    const int64_t *lists[] = {ints, ints};
    const int lengths[] = {2, 1};
    aclopAttr *attr = aclopCreateAttr();
    CHECK(attr);
    for (int round = 0; round < 3; round++) { /* set again: replaced */
        CHECK_OK(aclopSetAttrBool(attr, "b", 1));
        CHECK_OK(aclopSetAttrInt(attr, "i", -5));
        CHECK_OK(aclopSetAttrFloat(attr, "f", 0.5f));
        CHECK_OK(aclopSetAttrString(attr, "s", "text"));
        CHECK_OK(aclopSetAttrDataType(attr, "t", ACL_FLOAT));
        CHECK_OK(aclopSetAttrListBool(attr, "lb", 2, bools));
        CHECK_OK(aclopSetAttrListInt(attr, "li", 2, ints));
        CHECK_OK(aclopSetAttrListFloat(attr, "lf", 2, floats));
        CHECK_OK(aclopSetAttrListString(attr, "ls", 2, texts));
        CHECK_OK(aclopSetAttrListDataType(attr, "lt", 2, element_types));
        CHECK_OK(aclopSetAttrListListInt(attr, "ll", 2, lengths, lists));
        CHECK_OK(aclopSetAttrListInt(attr, "empty", 0, NULL));
    }
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclopSetAttrInt(NULL, "i", 1), "attr", "NULL");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclopSetAttrInt(attr, NULL, 1), "attrName", "NULL");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclopSetAttrInt(attr, "", 1), "attrName", "empty");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclopSetAttrString(attr, "s", NULL), "attrValue", "NULL");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclopSetAttrListInt(attr, "li", -1, ints), "numValues", "-1");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclopSetAttrListInt(attr, "li", 2, NULL), "values", "NULL");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclopSetAttrListBool(attr, "lb", 1 << 30, bools), "numValues");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclopSetAttrListString(attr, "ls", 2, holes), "values", "NULL");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclopSetAttrListListInt(attr, "ll", 2, NULL, lists), "numValues", "NULL");
    for (int i = 0; i < 3; i++) {
        char name[16];
        snprintf(name, sizeof name, "more%d", i);
        CHECK_OK(aclopSetAttrInt(attr, name, i));
    }
    aclopDestroyAttr(attr);
    aclopDestroyAttr(NULL);
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclopSetAttrInt(attr, "i", 1), "attr", "destroyed");
}

TEST(casts) {
    CHECK_OK(aclrtSetDevice(0));
    aclop_call call;
    aclop_begin(&call, "Cast", "f32[3]=-1.5 0 2.9", "", "i32[3]=-1 0 2");
    CHECK_OK(aclopCast(call.in_desc[0], call.in_buffer[0], call.out_desc[0], call.out_buffer[0], 0, NULL));
    CHECK_OK(aclrtSynchronizeStream(NULL));
    aclop_check(&call);
    aclopHandle *handle;
    CHECK_OK(aclopCreateHandleForCast(call.in_desc[0], call.out_desc[0], 0, &handle));
    CHECK_OK(aclopExecWithHandle(handle, 1, (const aclDataBuffer *const *)call.in_buffer, 1, call.out_buffer, NULL));
    CHECK_OK(aclrtSynchronizeStream(NULL));
    aclop_check(&call);
    aclopDestroyHandle(handle);
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM,
                aclopCast(NULL, call.in_buffer[0], call.out_desc[0], call.out_buffer[0], 0, NULL), "inputDesc", "NULL");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM,
                aclopCast(call.in_desc[0], call.in_buffer[0], NULL, call.out_buffer[0], 0, NULL), "dstDesc", "NULL");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclopCreateHandleForCast(call.in_desc[0], call.out_desc[0], 0, NULL),
                "handle");
    aclop_end(&call);
}

TEST(settings) {
    char value[8] = "";
    CHECK(aclGetCompileoptSize(ACL_PRECISION_MODE) == 1);
    CHECK_OK(aclSetCompileopt(ACL_PRECISION_MODE, "force"));
    CHECK_OK(aclSetCompileopt(ACL_PRECISION_MODE, "allow"));
    CHECK(aclGetCompileoptSize(ACL_PRECISION_MODE) == 6);
    CHECK_OK(aclGetCompileopt(ACL_PRECISION_MODE, value, sizeof value));
    CHECK(strcmp(value, "allow") == 0);
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclGetCompileopt(ACL_PRECISION_MODE, value, 3), "length", "6");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclSetCompileopt((aclCompileOpt)99, "x"), "opt", "99");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclSetCompileopt(ACL_ALLOW_HF32, NULL), "value", "NULL");
    CHECK_OK(aclopSetCompileFlag(ACL_OP_COMPILE_FUZZ));
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclopSetCompileFlag((aclOpCompileFlag)9), "flag", "9");
    CHECK_OK(aclopSetMaxOpQueueNum(100));
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclopSetMaxOpQueueNum(0), "maxOpNum");
    CHECK_FAILS(ACL_ERROR_INVALID_FILE, aclopSetModelDir("/no/such/folder"), "modelDir", "/no/such/folder");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclopSetModelDir(NULL), "modelDir", "NULL");
    CHECK_OK(aclopSetModelDir("/"));
    CHECK_FAILS(ACL_ERROR_REPEAT_INITIALIZE, aclopSetModelDir("/"), "modelDir", "once");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_has_a_case),
        cmocka_unit_test(compile_and_execute),
        cmocka_unit_test(handles),
        cmocka_unit_test(shapes_are_found), cmocka_unit_test(found_dims_are_told),
        cmocka_unit_test(faults_of_a_call),
        cmocka_unit_test(faults_of_descriptions_and_buffers),
        cmocka_unit_test(faults_of_found_shapes),
        cmocka_unit_test(attributes),
        cmocka_unit_test(casts),
        cmocka_unit_test(settings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
