/*
 * classify - a network that names what is on a picture, in the shape of the vendor's resnet50 sample: load a model
 * compiled by atc, make data sets, execute, print the five best.
 *
 *   atc --model=resnet50.onnx --framework=5 --output=resnet50 --soc_version=Ascend910B3
 *   classify resnet50.om [--labels FILE] PHOTO...
 *
 * Any network will do that takes one 1x3xHxW input of float32 and gives one row of numbers. Pictures are prepared as
 * torchvision does for its networks: the shorter side becomes 256/224 of the input's, the middle is cut out, and every
 * channel is (value / 255 - mean) / deviation.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../edges/picture.h"
#include "acl/acl.h"
#include "acl/acl_mdl.h"

enum { BEST = 5, LABEL_BYTES = 128 };

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        if ((call) != ACL_SUCCESS) {                                                                                   \
            fprintf(stderr, "%s: %s\n", #call, aclGetRecentErrMsg());                                                  \
            return false;                                                                                              \
        }                                                                                                              \
    } while (0)

typedef struct Model {
    uint32_t id;
    bool loaded;
    void *work, *weights; /* device memory that the model runs in */
    aclmdlDesc *desc;
    aclmdlDataset *inputs, *outputs;
    void *input, *output; /* device memory */
    size_t inputBytes, outputBytes;
    int height, width;
} Model;

static bool LoadModel(const char *path, Model *m) {
    size_t workBytes, weightBytes;
    CHECK(aclmdlQuerySize(path, &workBytes, &weightBytes));
    CHECK(aclrtMalloc(&m->work, workBytes, ACL_MEM_MALLOC_HUGE_FIRST));
    if (weightBytes)
        CHECK(aclrtMalloc(&m->weights, weightBytes, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK(aclmdlLoadFromFileWithMem(path, &m->id, m->work, workBytes, m->weights, weightBytes));
    m->loaded = true;
    m->desc = aclmdlCreateDesc();
    CHECK(aclmdlGetDesc(m->desc, m->id));
    return true;
}

/* The input must be one picture of float32 with its channels first. */
static bool DescribeModel(Model *m) {
    aclmdlIODims dims;
    if (aclmdlGetNumInputs(m->desc) != 1 || aclmdlGetNumOutputs(m->desc) != 1) {
        fprintf(stderr, "the model has %zu inputs and %zu outputs; 1 and 1 are expected\n", aclmdlGetNumInputs(m->desc),
                aclmdlGetNumOutputs(m->desc));
        return false;
    }
    CHECK(aclmdlGetInputDims(m->desc, 0, &dims));
    if (dims.dimCount != 4 || dims.dims[0] != 1 || dims.dims[1] != 3 ||
        aclmdlGetInputDataType(m->desc, 0) != ACL_FLOAT || aclmdlGetOutputDataType(m->desc, 0) != ACL_FLOAT) {
        fprintf(stderr, "the model must take 1x3xHxW of float32 and give float32\n");
        return false;
    }
    m->height = (int)dims.dims[2];
    m->width = (int)dims.dims[3];
    m->inputBytes = aclmdlGetInputSizeByIndex(m->desc, 0);
    m->outputBytes = aclmdlGetOutputSizeByIndex(m->desc, 0);
    return true;
}

static bool AddBuffer(aclmdlDataset *set, void **memory, size_t bytes) {
    CHECK(aclrtMalloc(memory, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
    aclDataBuffer *buffer = aclCreateDataBuffer(*memory, bytes);
    CHECK(aclmdlAddDatasetBuffer(set, buffer));
    return true;
}

static bool MakeDatasets(Model *m) {
    m->inputs = aclmdlCreateDataset();
    m->outputs = aclmdlCreateDataset();
    return AddBuffer(m->inputs, &m->input, m->inputBytes) && AddBuffer(m->outputs, &m->output, m->outputBytes);
}

static void FreeDataset(aclmdlDataset *set) {
    for (size_t i = 0; set && i < aclmdlGetDatasetNumBuffers(set); i++)
        aclDestroyDataBuffer(aclmdlGetDatasetBuffer(set, i));
    if (set)
        aclmdlDestroyDataset(set);
}

static void FreeModel(Model *m) {
    void *const blocks[] = {m->input, m->output, m->work, m->weights};
    FreeDataset(m->inputs);
    FreeDataset(m->outputs);
    if (m->desc)
        aclmdlDestroyDesc(m->desc);
    if (m->loaded)
        aclmdlUnload(m->id);
    for (int i = 0; i < 4; i++)
        if (blocks[i])
            aclrtFree(blocks[i]);
}

/* One channel of the picture at a place between its pixels. */
static float At(const Picture *p, float y, float x, int channel) {
    int y0 = (int)y, x0 = (int)x;
    int y1 = y0 + 1 < (int)p->height ? y0 + 1 : y0, x1 = x0 + 1 < (int)p->width ? x0 + 1 : x0;
    float v = y - (float)y0, u = x - (float)x0;
    const uint8_t *above = p->pixels + 3 * (size_t)p->width * (size_t)y0 + channel;
    const uint8_t *below = p->pixels + 3 * (size_t)p->width * (size_t)y1 + channel;
    float top = (float)above[3 * x0] + u * (float)(above[3 * x1] - above[3 * x0]);
    float bottom = (float)below[3 * x0] + u * (float)(below[3 * x1] - below[3 * x0]);
    return top + v * (bottom - top);
}

static float Clamp(float x, float most) {
    return x < 0 ? 0 : x > most ? most : x;
}

static void Prepare(const Picture *p, const Model *m, float *out) {
    static const float mean[] = {0.485f, 0.456f, 0.406f}, deviation[] = {0.229f, 0.224f, 0.225f};
    float byHeight = (float)p->height / (float)m->height, byWidth = (float)p->width / (float)m->width;
    float step =
        (byHeight < byWidth ? byHeight : byWidth) * 224 / 256; /* pixels of the picture per pixel of the input */
    float top = ((float)p->height - (float)m->height * step) / 2, left = ((float)p->width - (float)m->width * step) / 2;
    for (int c = 0; c < 3; c++)
        for (int y = 0; y < m->height; y++)
            for (int x = 0; x < m->width; x++) {
                float py = Clamp(top + ((float)y + 0.5f) * step - 0.5f, (float)p->height - 1);
                float px = Clamp(left + ((float)x + 0.5f) * step - 0.5f, (float)p->width - 1);
                *out++ = (At(p, py, px, c) / 255 - mean[c]) / deviation[c];
            }
}

static bool Execute(Model *m, const float *input, float *output) {
    CHECK(aclrtMemcpy(m->input, m->inputBytes, input, m->inputBytes, ACL_MEMCPY_HOST_TO_DEVICE));
    CHECK(aclmdlExecute(m->id, m->inputs, m->outputs));
    CHECK(aclrtMemcpy(output, m->outputBytes, m->output, m->outputBytes, ACL_MEMCPY_DEVICE_TO_HOST));
    return true;
}

/* Line `index` of a file; "" when there is none. */
static void ReadLabel(const char *path, size_t index, char *out) {
    FILE *file = path ? fopen(path, "r") : NULL;
    *out = '\0';
    for (size_t i = 0; file && i <= index; i++)
        if (!fgets(out, LABEL_BYTES, file))
            *out = '\0';
    out[strcspn(out, "\r\n")] = '\0';
    if (file)
        fclose(file);
}

/* Numbers that are no probabilities yet become some: softmax. */
static void PrintBest(float *scores, size_t count, const char *labels) {
    double sum = 0, most = -INFINITY;
    bool probabilities = true;
    for (size_t i = 0; i < count; i++) {
        most = fmax(most, (double)scores[i]);
        sum += (double)scores[i];
        probabilities &= scores[i] >= 0;
    }
    if (!probabilities || fabs(sum - 1) > 1e-3) {
        sum = 0;
        for (size_t i = 0; i < count; i++)
            sum += scores[i] = (float)exp((double)scores[i] - most);
        for (size_t i = 0; i < count; i++)
            scores[i] = (float)((double)scores[i] / sum);
    }
    for (size_t k = 0; k < BEST && k < count; k++) {
        char label[LABEL_BYTES];
        size_t best = 0;
        for (size_t i = 1; i < count; i++)
            if (scores[i] > scores[best])
                best = i;
        ReadLabel(labels, best, label);
        printf("  top %zu: class %zu, %.4f  %s\n", k + 1, best, (double)scores[best], label);
        scores[best] = -1;
    }
}

static bool Classify(Model *m, const char *path, const char *labels) {
    Picture picture;
    if (!PictureRead(path, &picture))
        return false;
    float *input = malloc(m->inputBytes), *output = malloc(m->outputBytes);
    bool good = input && output;
    if (good) {
        Prepare(&picture, m, input);
        good = Execute(m, input, output);
    }
    if (good) {
        printf("%s\n", path);
        PrintBest(output, m->outputBytes / sizeof(float), labels);
    }
    free(input);
    free(output);
    PictureFree(&picture);
    return good;
}

static bool Run(const char *path, const char *labels, char *const *pictures, int count) {
    Model model = {0};
    aclrtContext context = NULL;
    CHECK(aclInit(NULL));
    CHECK(aclrtSetDevice(0));
    CHECK(aclrtCreateContext(&context, 0));
    bool good = LoadModel(path, &model) && DescribeModel(&model) && MakeDatasets(&model);
    for (int i = 0; i < count && good; i++)
        good = Classify(&model, pictures[i], labels);
    FreeModel(&model);
    aclrtDestroyContext(context);
    aclrtResetDevice(0);
    aclFinalize();
    return good;
}

int main(int argc, char **argv) {
    const char *labels = NULL;
    int first = 2;
    if (argc > 4 && strcmp(argv[2], "--labels") == 0) {
        labels = argv[3];
        first = 4;
    }
    if (argc <= first || argv[1][0] == '-') {
        fprintf(stderr,
                "usage: classify MODEL.om [--labels FILE] PHOTO...\n"
                "Prints the five best classes of every photo (JPEG or PNG). FILE has the name of one class a line.\n");
        return 2;
    }
    return Run(argv[1], labels, argv + first, argc - first) ? 0 : 1;
}
