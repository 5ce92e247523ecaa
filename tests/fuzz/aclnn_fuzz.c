/*
 * Any call of any operator must end in a result or an error: no crash, hang, leak or write outside its tensors. An
 * input is the operator's name, a line end, and bytes that choose the arguments: shapes, strides, types, formats,
 * lists, numbers, NULL, destroyed handles, host and misaligned addresses. What the first phase accepts is executed.
 *
 * With DP_LIBFUZZER this is a target of libFuzzer; else the program runs the files it is given (regressions), and with
 * -seconds=N random inputs for as long; the input at work is in the file fuzz-input.
 */
#include "ops/ops_test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "aclnn_callers.inc"

enum { CALLERS = sizeof callers / sizeof callers[0], MOST_PARAMS = 64, MOST_OBJECTS = 512, BUFFER_BYTES = 1 << 14 };

/* The rest of the input; 0 when it is used up, so that short inputs are calls too. */
static const uint8_t *input;
static size_t left;

static unsigned byte(void) {
    if (!left)
        return 0;
    left--;
    return *input++;
}
static unsigned below(unsigned n) {
    return byte() % n;
}
static int64_t wide(void) {
    uint64_t v = 0;
    for (int i = 0; i < 8; i++)
        v = v << 8 | byte();
    return (int64_t)v;
}

/* What one call made, to be destroyed after it. Tensors in a list belong to the list. */
typedef enum kind { TENSOR, SCALAR, INTS, FLOATS, BOOLS, TENSORS, SCALARS } kind;
static struct {
    kind kind;
    const void *object;
} made[MOST_OBJECTS];
static int made_count;

static const void *keep(kind k, const void *object) {
    if (object) {
        made[made_count].kind = k;
        made[made_count++].object = object;
    }
    return object;
}

static void destroy_all(void) {
    for (int i = 0; i < made_count; i++) {
        const void *o = made[i].object;
        switch (made[i].kind) {
        case TENSOR:
            aclDestroyTensor(o);
            break;
        case SCALAR:
            aclDestroyScalar(o);
            break;
        case INTS:
            aclDestroyIntArray(o);
            break;
        case FLOATS:
            aclDestroyFloatArray(o);
            break;
        case BOOLS:
            aclDestroyBoolArray(o);
            break;
        case TENSORS:
            aclDestroyTensorList(o);
            break;
        case SCALARS:
            aclDestroyScalarList(o);
        }
    }
    made_count = 0;
}

/* Memory of tensors: a buffer for each, as tensors that overlap in part may hold anything. Some lie near the end of
 * theirs. */
enum { BUFFERS = 64, GUARD = 64 };
static uint8_t *buffers[BUFFERS];
static unsigned buffers_used;
static const void *dead_tensor;
static aclrtStream stream;

static void begin(void) {
    if (stream)
        return;
    aclInit(NULL);
    if (aclrtSetDevice(0) || aclrtCreateStream(&stream))
        abort();
    for (int i = 0; i < BUFFERS; i++)
        if (aclrtMalloc((void **)&buffers[i], BUFFER_BYTES, ACL_MEM_MALLOC_HUGE_FIRST))
            abort();
    int64_t one = 1;
    aclTensor *t = aclCreateTensor(&one, 1, ACL_FLOAT, &one, 0, ACL_FORMAT_ND, &one, 1, buffers[0]);
    dead_tensor = t;
    aclDestroyTensor(t);
}

/* The next buffer, its first bytes filled with noise, small integers, small floats or zeros. */
enum { FILLED_BYTES = 2048 };
static uint8_t *next_buffer(void) {
    uint8_t *buffer = buffers[buffers_used++ % BUFFERS];
    unsigned how = byte();
    uint32_t state = how * 2654435761u + 1;
    for (int i = 0; i < FILLED_BYTES; i += 4) {
        state = state * 1664525u + 1013904223u;
        float small = (float)(state >> 24) / 64 - 2;
        uint32_t word = how % 4 == 0 ? state : how % 4 == 1 ? state >> 30 : 0;
        if (how % 4 == 2)
            memcpy(&word, &small, 4);
        memcpy(buffer + i, &word, 4);
    }
    return buffer;
}

static const aclDataType types[] = {ACL_FLOAT,  ACL_FLOAT16,   ACL_BF16,       ACL_INT32, ACL_INT64,  ACL_BOOL,
                                    ACL_INT8,   ACL_UINT8,     ACL_DOUBLE,     ACL_INT16, ACL_UINT16, ACL_UINT32,
                                    ACL_UINT64, ACL_COMPLEX64, ACL_COMPLEX128, ACL_INT4,  ACL_STRING, ACL_DT_UNDEFINED};
enum { TYPES = sizeof types / sizeof types[0] };
static const aclFormat formats[] = {ACL_FORMAT_ND,    ACL_FORMAT_NCHW,       ACL_FORMAT_NHWC, ACL_FORMAT_NCDHW,
                                    ACL_FORMAT_NDHWC, ACL_FORMAT_FRACTAL_NZ, ACL_FORMAT_NCL};

/* The shape and type that most tensors of the call have. */
static struct {
    int rank;
    int64_t dims[8];
    aclDataType type;
} usual;

static void choose_usual(void) {
    usual.rank = (int)below(6);
    for (int d = 0; d < usual.rank; d++)
        usual.dims[d] = (int64_t)below(5) + (below(8) != 0);
    usual.type = types[below(4) ? below(6) : below(TYPES)];
}

static int choose_dims(int64_t *dims) {
    int rank = usual.rank;
    memcpy(dims, usual.dims, sizeof usual.dims);
    unsigned change = below(16);
    if (change == 1 && rank < 8)
        dims[rank++] = (int64_t)below(5);
    else if (change == 2 && rank)
        rank--;
    else if (change == 3 && rank)
        dims[below((unsigned)rank)] = 1;
    else if (change == 4 && rank)
        dims[below((unsigned)rank)] = (int64_t)below(9);
    else if (change == 5 && rank >= 2) {
        int64_t t = dims[0];
        dims[0] = dims[rank - 1];
        dims[rank - 1] = t;
    } else if (change == 6) {
        rank = (int)below(4);
        for (int d = 0; d < rank; d++)
            dims[d] = (int64_t)below(7);
    } else if (change == 7 && rank)
        dims[0] = wide();
    else if (change == 8) {
        rank = 1;
        dims[0] = usual.rank ? usual.dims[below((unsigned)usual.rank)] : 1;
    } else if (change == 9)
        rank = 0;
    return rank;
}

static void choose_strides(const int64_t *dims, int rank, int64_t *strides) {
    unsigned how = below(8);
    int64_t step = how == 2 ? 2 : 1;
    bool bounded = true;
    for (int d = 0; d < rank; d++)
        bounded = bounded && dims[d] >= 0 && dims[d] < 1000;
    for (int i = 0; i < rank; i++) {
        int d = how == 1 ? i : rank - 1 - i;
        strides[d] = step;
        if (bounded)
            step *= dims[d] ? dims[d] : 1;
    }
    if (how == 3 && rank && bounded) /* what is read again and again stays small: that is a long call, not a hang */
        strides[below((unsigned)rank)] = 0;
    if (how == 4 && rank)
        strides[below((unsigned)rank)] = wide();
}

static aclTensor *new_tensor(void) {
    int64_t dims[8], strides[8], storage = BUFFER_BYTES;
    int rank = choose_dims(dims);
    choose_strides(dims, rank, strides);
    aclDataType type = below(4) ? usual.type : types[below(TYPES)];
    aclFormat format = below(8) ? ACL_FORMAT_ND : formats[below(sizeof formats / sizeof formats[0])];
    int64_t offset = below(8) ? 0 : below(4) ? (int64_t)below(9) : wide();
    static char on_host[64];
    uint8_t *data = next_buffer() + GUARD;
    switch (below(32)) {
    case 0:
        data += 1;
        break;
    case 1:
        data = NULL;
        break;
    case 2:
        data = (uint8_t *)on_host;
        break;
    case 3:
        data += BUFFER_BYTES - GUARD - (int)below(64);
        break;
    default:
        break;
    }
    return aclCreateTensor(dims, (uint64_t)rank, type, strides, offset, format, &storage, 1, data);
}

static const void *choose_tensor(void) {
    static const void *last;
    if (!made_count)
        last = NULL;
    switch (below(32)) {
    case 1:
        return NULL;
    case 2:
        return dead_tensor;
    case 3:
        return buffers[0];
    case 4:
        return last;
    default:
        return last = keep(TENSOR, new_tensor());
    }
}

static const void *choose_scalar(void) {
    static const double reals[] = {0, 1, 2, -1, 0.5, 1e30, -1e30, 3, 1e-8, 255};
    aclDataType type = types[below(4) ? below(6) : below(TYPES)];
    union {
        float f;
        double d;
        int64_t i;
        uint16_t h;
        uint8_t room[16];
    } value = {.room = {0}};
    unsigned pick = below(12);
    double real = pick < 10 ? reals[pick] : pick == 10 ? NAN : INFINITY;
    if (type == ACL_FLOAT)
        value.f = (float)real;
    else if (type == ACL_DOUBLE)
        value.d = real;
    else if (type == ACL_FLOAT16)
        value.h = (uint16_t)wide();
    else
        value.i = below(4) ? (int64_t)below(6) - 1 : wide();
    if (below(32) == 1)
        return NULL;
    return aclCreateScalar(&value, type);
}

static int64_t choose_integer(void) {
    unsigned how = below(16);
    return how == 0 ? wide() : how < 8 ? (int64_t)below(4) : (int64_t)below(12) - 4;
}

static double choose_real(void) {
    static const double reals[] = {0, 1, 1e-5, 0.5, 2, -1, 1e300, 1e-300};
    unsigned pick = below(10);
    return pick < 8 ? reals[pick] : pick == 8 ? NAN : -INFINITY;
}

static const char *choose_text(void) {
    static const char *const texts[] = {"BSND", "BNSD", "BSH", "SBH",  "TND", "NTD",
                                        "none", "mean", "sum", "half", "",    "x"};
    return below(16) == 1 ? NULL : texts[below(sizeof texts / sizeof texts[0])];
}

static const void *choose_ints(void) {
    int64_t list[12];
    unsigned n = below(16) ? below(7) : below(12);
    if (below(16) == 1)
        return NULL;
    for (unsigned i = 0; i < n; i++)
        list[i] = choose_integer();
    if (below(4) == 1) { /* the usual shape: what sizes of outputs are */
        n = (unsigned)usual.rank;
        memcpy(list, usual.dims, sizeof usual.dims);
    }
    return keep(INTS, aclCreateIntArray(list, n));
}

static const void *choose_list(char letter) {
    unsigned n = below(5);
    if (below(16) == 1)
        return NULL;
    if (letter == 'I')
        return choose_ints();
    if (letter == 'F') {
        float list[4];
        for (unsigned i = 0; i < n; i++)
            list[i] = (float)choose_real();
        return keep(FLOATS, aclCreateFloatArray(list, n));
    }
    if (letter == 'B') {
        bool list[4];
        for (unsigned i = 0; i < n; i++)
            list[i] = below(2);
        return keep(BOOLS, aclCreateBoolArray(list, n));
    }
    if (letter == 'S') {
        const aclScalar *list[4];
        unsigned filled = 0;
        for (unsigned i = 0; i < n; i++)
            if ((list[filled] = choose_scalar()))
                filled++;
        return keep(SCALARS, aclCreateScalarList(list, filled));
    }
    const aclTensor *list[4];
    unsigned filled = 0;
    for (unsigned i = 0; i < n; i++)
        if ((list[filled] = new_tensor()))
            filled++;
    return keep(TENSORS, aclCreateTensorList(list, filled));
}

static void choose_arguments(const caller *op, caller_value *values) {
    const char *p = op->params;
    for (int i = 0; *p; i++) {
        bool list = p[1] == 'l';
        if (list)
            values[i].pointer = choose_list(p[0]);
        else if (p[0] == 'T')
            values[i].pointer = choose_tensor();
        else if (p[0] == 'S')
            values[i].pointer = keep(SCALAR, choose_scalar());
        else if (p[0] == 'I')
            values[i].integer = choose_integer();
        else if (p[0] == 'D')
            values[i].integer = below(4) ? usual.type : types[below(TYPES)];
        else if (p[0] == 'R')
            values[i].real = choose_real();
        else
            values[i].pointer = choose_text();
        p = strchr(p, ',') + 1;
    }
}

/*
 * Repairs: a refusal's sentence says which parameter is wrong and what it must be. Doing as it says leads from random
 * arguments to accepted ones in a few steps.
 */

static const char *const type_names[] = {"f32", "f16", "bf16", "i32", "i64", "bool", "i8",   "u8",
                                         "f64", "i16", "u16",  "u32", "u64", "c64",  "c128", "i4"};

static aclTensor *contiguous(const int64_t *dims, int rank, aclDataType type) {
    int64_t storage = BUFFER_BYTES;
    return aclCreateTensor(dims, (uint64_t)rank, type, NULL, 0, ACL_FORMAT_ND, &storage, 1, next_buffer() + GUARD);
}

/* The tensor's shape and type as they are; those of `usual` when there is none. */
static int shape_of(const void *object, int64_t *dims, aclDataType *type) {
    int64_t *found = NULL;
    uint64_t rank = 0;
    *type = usual.type;
    if (!object || aclGetViewShape(object, &found, &rank)) {
        memcpy(dims, usual.dims, sizeof usual.dims);
        return usual.rank;
    }
    memcpy(dims, found, rank * sizeof *dims);
    free(found);
    aclGetDataType(object, type);
    return (int)rank;
}

static bool last_list(const char *text, int64_t *dims, int *rank) {
    const char *open = strrchr(text, '[');
    int n = 0;
    if (!open)
        return false;
    for (const char *at = open + 1; *at && *at != ']'; n++) {
        char *end;
        long long value = strtoll(at, &end, 10);
        if (end == at || n == 8)
            return false;
        dims[n] = value;
        at = end + (*end == ',');
    }
    *rank = n;
    return true;
}

static bool number_after(const char *text, const char *words, int64_t *out) {
    const char *at = strstr(text, words);
    char *end;
    if (!at)
        return false;
    at += strlen(words);
    while (strncmp(at, "at least ", 9) == 0 || strncmp(at, "at most ", 8) == 0)
        at = strchr(at + 3, ' ') + 1;
    *out = strtoll(at, &end, 10);
    return end != at;
}

static bool type_after(const char *text, const char *words, aclDataType *type) {
    const char *at = strstr(text, words);
    if (!at)
        return false;
    at += strlen(words);
    unsigned skip = below(4); /* of a list */
    for (unsigned i = 0; i < skip && strchr(at, ','); i++)
        at = strchr(at, ',') + 1;
    for (bool found = false; *at && !found;) {
        at += strspn(at, " ,:");
        size_t length = strcspn(at, " ,:");
        for (int t = 0; t < (int)(sizeof type_names / sizeof type_names[0]); t++) {
            if (strlen(type_names[t]) == length && strncmp(type_names[t], at, length) == 0) {
                *type = types[t];
                return true;
            }
        }
        at += length;
    }
    return false;
}

static const void *repaired_tensor(const void *old, const char *text) {
    int64_t dims[8], number;
    aclDataType type;
    int rank = shape_of(old, dims, &type), listed_rank;
    int64_t listed[8];
    const char *must = strstr(text, "must");
    if (!must)
        must = text;
    if (strstr(text, "elements of type")) {
        if (!type_after(must, "one of", &type))
            type_after(must, "must have", &type);
    } else if (last_list(must, listed, &listed_rank)) {
        rank = listed_rank;
        memcpy(dims, listed, sizeof dims);
    } else if (strstr(text, "its ") && number_after(text, "must be ", &number)) {
        int from_end = strstr(text, "its width") ? 1 : strstr(text, "its height") ? 2 : 3;
        if (rank >= from_end)
            dims[rank - from_end] = number;
    } else if (strstr(text, "channels, but") && rank >= 2) {
        number_after(text, "must have ", &dims[0]);
        const char *and = strstr(must, " and ");
        if (and)
            dims[1] = strtoll(and+5, NULL, 10);
    } else if (strstr(text, " dimensions") && number_after(text, "must have ", &number)) {
        for (; rank < number && rank < 8; rank++)
            dims[rank] = 1 + (int64_t)below(3);
        rank = number < rank ? (int)number : rank;
    } else if (number_after(text, "dimension ", &number) && number >= 0 && number < rank) {
        number_after(text, "must be ", &dims[number]);
    }
    return keep(TENSOR, contiguous(dims, rank < 0 ? 0 : rank, type));
}

static const void *repaired_ints(const char *text) {
    int64_t list[12], count = (int64_t)below(3) + 1;
    number_after(text, "must have ", &count);
    for (int i = 0; i < 12; i++)
        list[i] = below(4) ? 1 : (int64_t)below(4);
    if (!last_list(text, list, (int[]){0}) && count >= 0 && count <= 12)
        return keep(INTS, aclCreateIntArray(list, (uint64_t)count));
    return choose_ints();
}

/* False when the sentence names no parameter. */
static bool repair(const caller *op, caller_value *values, const char *text) {
    text = strstr(text, ": ");
    text = text ? strstr(text + 2, ": ") : NULL;
    if (!text)
        return false;
    text += 2;
    size_t length = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
    const char *p = op->params;
    for (int i = 0; *p; i++) {
        const char *name = strchr(p, ':') + 1, *comma = strchr(name, ',');
        if ((size_t)(comma - name) == length && strncmp(name, text, length) == 0) {
            if (p[1] == 'l')
                values[i].pointer = p[0] == 'I' ? repaired_ints(text) : choose_list(p[0]);
            else if (p[0] == 'T')
                values[i].pointer = repaired_tensor(values[i].pointer, text);
            else if (p[0] == 'S')
                values[i].pointer = keep(SCALAR, choose_scalar());
            else if (p[0] == 'I' && !number_after(text, "must be ", &values[i].integer))
                values[i].integer = (int64_t)below(4);
            else if (p[0] == 'R')
                values[i].real = choose_real();
            else if (p[0] == 'X')
                values[i].pointer = choose_text();
            return true;
        }
        p = comma + 1;
    }
    return false;
}

static const caller *choose_operator(void) {
    char name[64] = "";
    size_t length = 0;
    uint32_t hash = 2166136261u;
    for (unsigned c; left && (c = byte()) != '\n';) {
        hash = (hash ^ c) * 16777619u;
        if (length + 1 < sizeof name)
            name[length++] = (char)c;
    }
    for (size_t i = 0; i < CALLERS; i++)
        if (strcmp(callers[i].name, name) == 0)
            return &callers[i];
    return &callers[hash % CALLERS];
}

static unsigned accepted[CALLERS];

static void execute(const caller *op, uint64_t workspace_bytes, aclOpExecutor *executor) {
    void *workspace = NULL;
    if (workspace_bytes > (uint64_t)1 << 28) {
        aclDestroyAclOpExecutor(executor);
        return;
    }
    if (workspace_bytes && aclrtMalloc(&workspace, workspace_bytes, ACL_MEM_MALLOC_HUGE_FIRST))
        abort();
    bool twice = below(8) == 1;
    if (twice)
        aclSetAclOpExecutorRepeatable(executor);
    int failed = op->run(workspace, workspace_bytes, executor, stream);
    if (!failed && twice)
        op->run(workspace, workspace_bytes, executor, stream);
    if (twice)
        aclDestroyAclOpExecutor(executor);
    else if (failed) /* used up, whatever came of it */
        aclDestroyAclOpExecutor(executor);
    if (aclrtSynchronizeStream(stream))
        aclrtStreamAbort(stream);
    if (workspace)
        aclrtFree(workspace);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    caller_value values[MOST_PARAMS] = {{NULL}};
    begin();
    input = data;
    left = size;
    const caller *op = choose_operator();
    buffers_used = 0;
    choose_usual();
    choose_arguments(op, values);
    uint64_t workspace_bytes = 0;
    aclOpExecutor *executor = NULL;
    int status = op->prepare(values, &workspace_bytes, &executor);
    for (unsigned steps = below(16); status; steps--) {
        char text[1024];
        const char *now = aclGetRecentErrMsg();
        if (!now) {
            fprintf(stderr, "%s: code %d without a sentence\n", op->name, status);
            abort();
        }
        snprintf(text, sizeof text, "%s", now);
        if (!steps || made_count + 8 > MOST_OBJECTS || !repair(op, values, text))
            break;
        status = op->prepare(values, &workspace_bytes, &executor);
    }
    if ((status == 0) != (executor != NULL)) {
        fprintf(stderr, "%s: code %d with executor %p\n", op->name, status, (void *)executor);
        abort();
    }
    if (!status) {
        accepted[op - callers]++;
        execute(op, workspace_bytes, executor);
    }
    destroy_all();
    return 0;
}

#ifndef DP_LIBFUZZER

#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>

enum { INPUT_BYTES = 512, CALL_SECONDS = 20 };

static double seconds_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int run_file(const char *path) {
    uint8_t bytes[4096];
    FILE *in = fopen(path, "rb");
    if (!in) {
        perror(path);
        return 1;
    }
    size_t n = fread(bytes, 1, sizeof bytes, in);
    fclose(in);
    LLVMFuzzerTestOneInput(bytes, n);
    return 0;
}

/* Where the input at work is kept, so that it is there after a crash. */
static char *open_record(void) {
    int file = open("fuzz-input", O_RDWR | O_CREAT | O_TRUNC, 0666);
    if (file < 0 || ftruncate(file, INPUT_BYTES))
        return NULL;
    void *map = mmap(NULL, INPUT_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    return map == MAP_FAILED ? NULL : map;
}

static unsigned run_random(double seconds, uint64_t state) {
    char *record = open_record();
    unsigned runs = 0;
    for (double end = seconds_now() + seconds; seconds_now() < end; runs++) {
        uint8_t bytes[INPUT_BYTES] = {0};
        state = state * 6364136223846793005u + 1442695040888963407u;
        int at = snprintf((char *)bytes, sizeof bytes, "%s\n", callers[(state >> 33) % CALLERS].name);
        for (int i = at; i < INPUT_BYTES; i++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            bytes[i] = (uint8_t)(state >> 56);
        }
        if (record)
            memcpy(record, bytes, INPUT_BYTES);
        alarm(CALL_SECONDS);
        LLVMFuzzerTestOneInput(bytes, sizeof bytes);
    }
    alarm(0);
    if (record)
        munmap(record, INPUT_BYTES);
    return runs;
}

int main(int argc, char **argv) {
    double seconds = 0;
    uint64_t seed = 1;
    int failed = 0, files = 0;
    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], "-seconds=", 9) == 0)
            seconds = atof(argv[i] + 9);
        else if (strncmp(argv[i], "-seed=", 6) == 0)
            seed = strtoull(argv[i] + 6, NULL, 10);
        else {
            failed |= run_file(argv[i]);
            files++;
        }
    }
    unsigned runs = seconds > 0 ? run_random(seconds, seed) : 0;
    unsigned total = 0, operators = 0;
    for (size_t i = 0; i < CALLERS; i++) {
        total += accepted[i];
        operators += accepted[i] != 0;
        if (getenv("DP_VERBOSE") && !accepted[i])
            printf("never accepted: %s\n", callers[i].name);
    }
    printf("%d files, %u random calls; %u accepted, of %u of %u operators\n", files, runs, total, operators,
           (unsigned)CALLERS);
    if (stream) {
        for (int i = 0; i < BUFFERS; i++)
            aclrtFree(buffers[i]);
        aclrtDestroyStream(stream);
        aclrtResetDevice(0);
        aclFinalize();
    }
    return failed;
}
#endif
