#include "model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "doppel.h"

static const struct {
    aclDataType type;
    const char *name, *descr;
} types[] = {
    {ACL_FLOAT, "float32", "<f4"}, {ACL_FLOAT16, "float16", "<f2"},     {ACL_DOUBLE, "float64", "<f8"},
    {ACL_INT8, "int8", "|i1"},     {ACL_UINT8, "uint8", "|u1"},         {ACL_INT16, "int16", "<i2"},
    {ACL_UINT16, "uint16", "<u2"}, {ACL_INT32, "int32", "<i4"},         {ACL_UINT32, "uint32", "<u4"},
    {ACL_INT64, "int64", "<i8"},   {ACL_UINT64, "uint64", "<u8"},       {ACL_BOOL, "bool", "|b1"},
    {ACL_BF16, "bfloat16", NULL},  {ACL_COMPLEX64, "complex64", "<c8"}, {ACL_COMPLEX128, "complex128", "<c16"},
};
enum { TYPES = sizeof types / sizeof types[0] };

const char *model_type_name(aclDataType type) {
    for (unsigned i = 0; i < TYPES; i++)
        if (types[i].type == type)
            return types[i].name;
    return "of another type";
}
const char *model_type_descr(aclDataType type) {
    for (unsigned i = 0; i < TYPES; i++)
        if (types[i].type == type)
            return types[i].descr;
    return NULL;
}

const char *model_shape_text(const int64_t *dims, int rank, char *text, size_t text_bytes) {
    size_t used = 0;
    snprintf(text, text_bytes, "scalar");
    for (int d = 0; d < rank && used < text_bytes; d++)
        used += (size_t)snprintf(text + used, text_bytes - used, "%s%lld", d ? "x" : "", (long long)dims[d]);
    return text;
}

static float from_bf16(uint16_t bits) {
    uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return value;
}
static uint16_t to_bf16(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (value != value)
        return 0x7fc0;
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

double model_number(aclDataType type, const void *data, size_t i) {
    switch (type) {
    case ACL_FLOAT:
        return (double)((const float *)data)[i];
    case ACL_FLOAT16:
        return (double)aclFloat16ToFloat(((const aclFloat16 *)data)[i]);
    case ACL_BF16:
        return (double)from_bf16(((const uint16_t *)data)[i]);
    case ACL_DOUBLE:
        return ((const double *)data)[i];
    case ACL_INT8:
        return ((const int8_t *)data)[i];
    case ACL_UINT8:
        return ((const uint8_t *)data)[i];
    case ACL_BOOL:
        return ((const uint8_t *)data)[i] != 0;
    case ACL_INT16:
        return ((const int16_t *)data)[i];
    case ACL_UINT16:
        return ((const uint16_t *)data)[i];
    case ACL_INT32:
        return ((const int32_t *)data)[i];
    case ACL_UINT32:
        return ((const uint32_t *)data)[i];
    case ACL_INT64:
        return (double)((const int64_t *)data)[i];
    case ACL_UINT64:
        return (double)((const uint64_t *)data)[i];
    case ACL_COMPLEX64:
        return (double)((const float *)data)[2 * i];
    case ACL_COMPLEX128:
        return ((const double *)data)[2 * i];
    default:
        return NAN;
    }
}

#define SET_INTEGER(c_type, low, high)                                                                                 \
    if (!(value >= (low) && value <= (high)))                                                                          \
        return false;                                                                                                  \
    ((c_type *)data)[i] = (c_type)rint(value);                                                                         \
    return true

bool model_set_number(aclDataType type, void *data, size_t i, double value) {
    switch (type) {
    case ACL_FLOAT:
        ((float *)data)[i] = (float)value;
        return true;
    case ACL_FLOAT16:
        ((aclFloat16 *)data)[i] = aclFloatToFloat16((float)value);
        return true;
    case ACL_BF16:
        ((uint16_t *)data)[i] = to_bf16((float)value);
        return true;
    case ACL_DOUBLE:
        ((double *)data)[i] = value;
        return true;
    case ACL_BOOL:
        ((uint8_t *)data)[i] = value != 0;
        return true;
    case ACL_INT8:
        SET_INTEGER(int8_t, -128, 127);
    case ACL_UINT8:
        SET_INTEGER(uint8_t, 0, 255);
    case ACL_INT16:
        SET_INTEGER(int16_t, -32768, 32767);
    case ACL_UINT16:
        SET_INTEGER(uint16_t, 0, 65535);
    case ACL_INT32:
        SET_INTEGER(int32_t, -2147483648.0, 2147483647.0);
    case ACL_UINT32:
        SET_INTEGER(uint32_t, 0, 4294967295.0);
    case ACL_INT64:
        SET_INTEGER(int64_t, -0x1p63, 0x1.fffffffffffffp62);
    case ACL_UINT64:
        SET_INTEGER(uint64_t, 0, 0x1.fffffffffffffp63);
    default:
        return false;
    }
}

double model_clock_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

static bool fail(const model *m, const char *what) {
    fprintf(stderr, "%s: %s: %s\n", m->command, what, aclGetRecentErrMsg());
    return false;
}

const char model_usage[] = "  --threads N        workers, this thread included (default: one per processor)\n"
                           "  --shape NAME:DIMS  the shape of an input that the model leaves open, as x:1,3,640,640\n";

int model_option(const char *command, int argc, char **argv, int *at, model_choice *choice) {
    long workers;
    if (strcmp(argv[*at], "--threads") == 0) {
        if (!doppel_number(command, argc, argv, at, 1, 1024, &workers))
            return -1;
        choice->workers = (int)workers;
        return 1;
    }
    if (strcmp(argv[*at], "--shape") != 0)
        return 0;
    const char *value = doppel_value(command, argc, argv, at);
    if (!value)
        return -1;
    if (choice->n_shapes == MODEL_ENDS || !strrchr(value, ':')) {
        fprintf(stderr, "%s: --shape is \"%s\", expected NAME:DIMS, at most %d times\n", command, value, MODEL_ENDS);
        return -1;
    }
    choice->shapes[choice->n_shapes++] = value;
    return 1;
}

static size_t bytes_of(aclDataType type) {
    return aclDataTypeSize(type);
}

static bool is_open(const aclmdlIODims *dims) {
    for (size_t d = 0; d < dims->dimCount; d++)
        if (dims->dims[d] < 0)
            return true;
    return false;
}

static bool is_empty(const aclmdlIODims *dims) {
    for (size_t d = 0; d < dims->dimCount; d++)
        if (dims->dims[d] == 0)
            return true;
    return false;
}

/* "1,3,640,640" */
static bool parse_dims(const char *text, aclmdlIODims *out) {
    for (out->dimCount = 0; out->dimCount < 8; text++) {
        char *end;
        long long dim = strtoll(text, &end, 10);
        if (end == text || dim < 0 || (*end && *end != ','))
            return false;
        out->dims[out->dimCount++] = dim;
        if (!*end)
            return true;
        text = end;
    }
    return false;
}

/* The shape of an open input, as the user chose it. */
static bool choose_shape(const model *m, model_end *e, const model_choice *choice) {
    char text[128];
    size_t length = strlen(e->name);
    for (int i = 0; i < choice->n_shapes; i++) {
        const char *shape = choice->shapes[i];
        if (strncmp(shape, e->name, length) != 0 || strrchr(shape, ':') != shape + length)
            continue;
        if (parse_dims(shape + length + 1, &e->shape))
            return true;
        fprintf(stderr, "%s: --shape %s: the dimensions must be numbers with commas between them\n", m->command, shape);
        return false;
    }
    fprintf(stderr, "%s: input \"%s\" has open dimensions, %s: give its shape, as --shape %s:...\n", m->command,
            e->name, model_shape_text(e->dims, e->rank, text, sizeof text), e->name);
    return false;
}

/* Size and number of elements from the shape. */
static bool measure(const model *m, model_end *e) {
    size_t count = 1;
    for (size_t d = 0; d < e->shape.dimCount; d++)
        if (__builtin_mul_overflow(count, (size_t)e->shape.dims[d], &count) || count > SIZE_MAX / 64) {
            fprintf(stderr, "%s: \"%s\" would be larger than memory\n", m->command, e->name);
            return false;
        }
    e->rank = (int)e->shape.dimCount;
    e->count = count;
    e->bytes = count * bytes_of(e->type);
    return true;
}

/* Tells the data set of the shape of input `index`. */
static bool announce(const model *m, const model_end *e, int index) {
    aclTensorDesc *desc = aclCreateTensorDesc(e->type, e->rank, e->dims, ACL_FORMAT_ND);
    aclError code = desc ? aclmdlSetDatasetTensorDesc(m->in, desc, (size_t)index) : ACL_ERROR_BAD_ALLOC;
    if (desc)
        aclDestroyTensorDesc(desc);
    return code == ACL_SUCCESS || fail(m, e->name);
}

/* Whether AIPP stands in front of input `index`, and what it takes. */
static void ask_aipp(const model *m, model_end *e, size_t index) {
    aclmdlInputAippType type;
    size_t settings;
    aclAippInfo info;
    if (aclmdlGetAippType(m->id, index, &type, &settings) != ACL_SUCCESS || type != ACL_DATA_WITH_STATIC_AIPP ||
        aclmdlGetFirstAippInfo(m->id, index, &info) != ACL_SUCCESS)
        return;
    e->has_aipp = true;
    e->aipp = info.inputFormat;
    e->aipp_width = info.srcImageSizeW;
    e->aipp_height = info.srcImageSizeH;
}

static bool describe(model *m, bool is_input, int index, const model_choice *choice) {
    model_end *e = is_input ? &m->inputs[index] : &m->outputs[index];
    size_t i = (size_t)index;
    aclError code =
        is_input ? aclmdlGetInputDims(m->desc, i, &e->shape) : aclmdlGetCurOutputDims(m->desc, i, &e->shape);
    if (code != ACL_SUCCESS)
        return fail(m, "the model cannot be described");
    e->name = is_input ? aclmdlGetInputNameByIndex(m->desc, i) : aclmdlGetOutputNameByIndex(m->desc, i);
    e->type = is_input ? aclmdlGetInputDataType(m->desc, i) : aclmdlGetOutputDataType(m->desc, i);
    e->bytes = is_input ? aclmdlGetInputSizeByIndex(m->desc, i) : aclmdlGetOutputSizeByIndex(m->desc, i);
    e->rank = (int)e->shape.dimCount;
    e->dims = e->shape.dims;
    e->count = bytes_of(e->type) ? e->bytes / bytes_of(e->type) : 0;
    bool open = is_open(&e->shape);
    if (is_input)
        ask_aipp(m, e, i);
    if (is_input && open && (!choose_shape(m, e, choice) || !measure(m, e)))
        return false;
    e->is_open = !is_input && (open || (e->bytes == 0 && !is_empty(&e->shape)));
    if (!is_input && !e->is_open && m->has_gears && !measure(m, e)) /* of the size that was chosen, not the largest */
        return false;
    if (e->is_open)
        e->bytes = e->count = 0;
    e->host = calloc(e->bytes + 1, 1);
    if (!e->host) {
        fprintf(stderr, "%s: no memory for \"%s\" (%zu bytes)\n", m->command, e->name, e->bytes);
        return false;
    }
    if (!e->is_open && aclrtMalloc(&e->device, e->bytes ? e->bytes : 1, ACL_MEM_MALLOC_HUGE_FIRST) != ACL_SUCCESS)
        return fail(m, e->name);
    aclDataBuffer *buffer = aclCreateDataBuffer(e->device, e->is_open ? 0 : e->bytes ? e->bytes : 1);
    if (!buffer)
        return fail(m, e->name);
    if (aclmdlAddDatasetBuffer(is_input ? m->in : m->out, buffer) != ACL_SUCCESS) {
        aclDestroyDataBuffer(buffer);
        return fail(m, e->name);
    }
    return !is_input || !open || announce(m, e, index);
}

/* The numbers that stand for the -1 of inputs, first those of the first input; how many. */
static size_t chosen_numbers(const model *m, int64_t *out, size_t room) {
    size_t n = 0;
    for (int i = 0; i < m->n_inputs; i++) {
        aclmdlIODims declared;
        if (aclmdlGetInputDims(m->desc, (size_t)i, &declared) != ACL_SUCCESS)
            continue;
        for (size_t d = 0; d < declared.dimCount; d++)
            if (declared.dims[d] < 0 && n < room)
                out[n++] = m->inputs[i].dims[d];
    }
    return n;
}

/* The model was compiled for a list of sizes: that of the inputs' shapes, by the input that takes the choice. */
static bool choose_gear(model *m, size_t index) {
    model_end *e = &m->inputs[index]; /* its memory is freed with the others' */
    aclmdlBatch batch;
    aclmdlHW hw;
    aclmdlIODims all = {.dimCount = 0};
    int64_t numbers[128];
    size_t bytes = aclmdlGetInputSizeByIndex(m->desc, index), n = chosen_numbers(m, numbers, 128);
    if (aclrtMalloc(&e->device, bytes, ACL_MEM_MALLOC_HUGE_FIRST) != ACL_SUCCESS)
        return fail(m, ACL_DYNAMIC_TENSOR_NAME);
    aclDataBuffer *buffer = aclCreateDataBuffer(e->device, bytes);
    if (!buffer || aclmdlAddDatasetBuffer(m->in, buffer) != ACL_SUCCESS)
        return fail(m, ACL_DYNAMIC_TENSOR_NAME);
    for (int i = 0; i < m->n_inputs; i++)
        for (int d = 0; d < m->inputs[i].rank && all.dimCount < 128; d++)
            all.dims[all.dimCount++] = m->inputs[i].dims[d];
    aclError code = aclmdlGetDynamicBatch(m->desc, &batch);
    if (code == ACL_SUCCESS)
        code = aclmdlGetDynamicHW(m->desc, index, &hw);
    if (code == ACL_SUCCESS && batch.batchCount)
        code = aclmdlSetDynamicBatchSize(m->id, m->in, index, n ? (uint64_t)numbers[0] : 0);
    else if (code == ACL_SUCCESS && hw.hwCount)
        code = aclmdlSetDynamicHWSize(m->id, m->in, index, n > 1 ? (uint64_t)numbers[0] : 0,
                                      n > 1 ? (uint64_t)numbers[1] : 0);
    else if (code == ACL_SUCCESS)
        code = aclmdlSetInputDynamicDims(m->id, m->in, index, &all);
    m->has_gears = true;
    return code == ACL_SUCCESS || fail(m, "no such size");
}

/* A --shape must be meant for an input: one that is open, or one that has this shape anyway. */
static bool check_shape(const model *m, const char *shape) {
    size_t length = (size_t)(strrchr(shape, ':') - shape);
    char text[128];
    aclmdlIODims dims;
    for (int i = 0; i < m->n_inputs; i++) {
        const model_end *e = &m->inputs[i];
        if (!e->name || strlen(e->name) != length || strncmp(e->name, shape, length) != 0)
            continue;
        if (parse_dims(shape + length + 1, &dims) && (int)dims.dimCount == e->rank &&
            memcmp(dims.dims, e->dims, dims.dimCount * sizeof *e->dims) == 0)
            return true;
        fprintf(stderr,
                "%s: --shape %s: the model was compiled for %s; another shape needs another --input_shape of atc\n",
                m->command, shape, model_shape_text(e->dims, e->rank, text, sizeof text));
        return false;
    }
    fprintf(stderr, "%s: --shape %s begins with the name of no input; the first input is \"%s\"\n", m->command, shape,
            m->n_inputs ? m->inputs[0].name : "");
    return false;
}

static bool describe_all(model *m, const model_choice *choice) {
    m->desc = aclmdlCreateDesc();
    m->in = aclmdlCreateDataset();
    m->out = aclmdlCreateDataset();
    if (!m->desc || !m->in || !m->out || aclmdlGetDesc(m->desc, m->id) != ACL_SUCCESS)
        return fail(m, "the model cannot be described");
    size_t n_inputs = aclmdlGetNumInputs(m->desc), n_outputs = aclmdlGetNumOutputs(m->desc);
    if (n_inputs > MODEL_ENDS || n_outputs > MODEL_ENDS) {
        fprintf(stderr, "%s: the model has %zu inputs and %zu outputs; at most %d are supported\n", m->command,
                n_inputs, n_outputs, MODEL_ENDS);
        return false;
    }
    for (; m->n_inputs < (int)n_inputs; m->n_inputs++) {
        if (strcmp(aclmdlGetInputNameByIndex(m->desc, (size_t)m->n_inputs), ACL_DYNAMIC_TENSOR_NAME) == 0) {
            if (!choose_gear(m, (size_t)m->n_inputs))
                return false;
            break; /* it is the last, and none of the user's */
        }
        if (strcmp(aclmdlGetInputNameByIndex(m->desc, (size_t)m->n_inputs), ACL_DYNAMIC_AIPP_NAME) == 0) {
            fprintf(stderr,
                    "%s: the model's AIPP takes its settings from the program (aclmdlSetInputAIPP), which this command "
                    "does "
                    "not make: compile it with aipp_mode: static\n",
                    m->command);
            return false;
        }
        if (!describe(m, true, m->n_inputs, choice))
            return false;
    }
    for (int i = 0; i < choice->n_shapes; i++)
        if (!check_shape(m, choice->shapes[i]))
            return false;
    for (; m->n_outputs < (int)n_outputs; m->n_outputs++)
        if (!describe(m, false, m->n_outputs, choice))
            return false;
    return true;
}

static bool ends_in(const char *text, const char *end) {
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

bool model_open(const char *command, const char *path, const model_choice *choice, model *out) {
    memset(out, 0, sizeof *out);
    out->command = command;
    if (ends_in(path, ".onnx")) {
        fprintf(stderr,
                "%s: %s is an ONNX file: compile it first, with\n"
                "    atc --model=%s --framework=5 --soc_version=Ascend910B3 --output=%.*s\n",
                command, path, path, (int)(strlen(path) - 5), path);
        return false;
    }
    if (choice->workers > 0) {
        char text[16];
        snprintf(text, sizeof text, "%d", choice->workers);
        setenv("DOPPEL_WORKERS", text, 1);
    }
    if (access(path, R_OK) != 0) {
        fprintf(stderr, "%s: ", command);
        perror(path);
        return false;
    }
    if (aclInit(NULL) != ACL_SUCCESS)
        return fail(out, "the runtime does not start");
    out->started = true;
    if (aclrtSetDevice(0) != ACL_SUCCESS)
        return fail(out, "device 0");
    double start = model_clock_ms();
    if (aclmdlLoadFromFile(path, &out->id) != ACL_SUCCESS)
        return fail(out, path);
    out->load_ms = model_clock_ms() - start;
    out->loaded = true;
    return describe_all(out, choice);
}

static void close_ends(aclmdlDataset *set, model_end *ends) {
    for (size_t i = 0; set && i < aclmdlGetDatasetNumBuffers(set); i++) {
        aclDataBuffer *buffer = aclmdlGetDatasetBuffer(set, i);
        if (ends[i].is_open)
            ends[i].device = aclGetDataBufferAddr(buffer);
        aclDestroyDataBuffer(buffer);
    }
    if (set)
        aclmdlDestroyDataset(set);
    for (int i = 0; i < MODEL_ENDS; i++) {
        if (ends[i].device)
            aclrtFree(ends[i].device);
        free(ends[i].host);
    }
}

void model_close(model *m) {
    close_ends(m->in, m->inputs);
    close_ends(m->out, m->outputs);
    if (m->desc)
        aclmdlDestroyDesc(m->desc);
    if (m->loaded)
        aclmdlUnload(m->id);
    if (m->started) {
        aclrtResetDevice(0);
        aclFinalize();
    }
    memset(m, 0, sizeof *m);
}

bool model_fill(model *m) {
    for (int i = 0; i < m->n_inputs; i++) {
        const model_end *e = &m->inputs[i];
        if (e->bytes && aclrtMemcpy(e->device, e->bytes, e->host, e->bytes, ACL_MEMCPY_HOST_TO_DEVICE) != ACL_SUCCESS)
            return fail(m, e->name);
    }
    return true;
}

bool model_execute(model *m) {
    return aclmdlExecute(m->id, m->in, m->out) == ACL_SUCCESS || fail(m, "the model does not run");
}

/* Shape, size and memory of an output that the run has found. */
static bool find_output(model *m, int index) {
    model_end *e = &m->outputs[index];
    const aclDataBuffer *buffer = aclmdlGetDatasetBuffer(m->out, (size_t)index);
    const aclTensorDesc *desc = aclmdlGetDatasetTensorDesc(m->out, (size_t)index);
    if (!buffer || !desc)
        return fail(m, e->name);
    e->device = aclGetDataBufferAddr(buffer);
    e->type = aclGetTensorDescType(desc);
    e->shape.dimCount = aclGetTensorDescNumDims(desc);
    for (size_t d = 0; d < e->shape.dimCount; d++)
        aclGetTensorDescDimV2(desc, d, &e->shape.dims[d]);
    if (!measure(m, e))
        return false;
    free(e->host);
    e->host = malloc(e->bytes + 1);
    if (!e->host)
        fprintf(stderr, "%s: no memory for \"%s\" (%zu bytes)\n", m->command, e->name, e->bytes);
    return e->host != NULL;
}

bool model_run(model *m) {
    if (!model_fill(m) || !model_execute(m))
        return false;
    for (int i = 0; i < m->n_outputs; i++) {
        const model_end *e = &m->outputs[i];
        if (e->is_open && !find_output(m, i))
            return false;
        if (e->bytes && aclrtMemcpy(e->host, e->bytes, e->device, e->bytes, ACL_MEMCPY_DEVICE_TO_HOST) != ACL_SUCCESS)
            return fail(m, e->name);
    }
    return true;
}
