/*
 * Every public function is called with hostile arguments: NULL, zero, negative and huge numbers, destroyed and foreign
 * handles, host pointers for device pointers, next to good ones. None may crash or hang; every error has a sentence
 * that names the function. What no C function can survive is not asked: output pointers are memory that can be written.
 */
#include "child.h"

#include <dlfcn.h>
#include <limits.h>

#include "prototypes.h"
#include "sanitizers.h"

#define BUFFER_BYTES 65536
#define ROUNDS (SANITIZED ? 30 : 150)

static prototype functions[1000];
static size_t function_count;

/* Functions that read or write host memory of the size they are told: numbers stay within the buffers below. Nested:
 * they also follow pointers inside what they are given, so that contents must be NULL pointers. Slow: they wait by
 * contract. */
static const struct {
    const char *prefix;
    long largest;
    bool nested, slow;
} special[] = {
    {"aclrtMemcpy2d", 64, false, false},
    {"aclrtMemcpyBatch", 64, true, false},
    {"aclrtMemcpy", 4096, false, false},
    {"aclrtMemset", 4096, false, false},
    {"aclSetTensorConst", 4096, false, false},
    {"aclSetTensorValueRange", 64, false, false},
    {"aclrtMallocHostWithCfg", 64, true, false},
    {"aclopSetAttrListListInt", 8, true, false},
    {"aclopSetAttrListString", 64, true, false},
    {"aclopSetAttrList", 64, false, false},
    {"acldvppJpegGetImageInfo", 4096, false, false},
    {"acldvppJpegPredictDecSize", 4096, false, false},
    {"acldvppPngGetImageInfo", 4096, false, false},
    {"acldvppPngPredictDecSize", 4096, false, false},
    {"hi_mpi_vpc_batch", 64, true, false},
    {"aclrtProcessReport", LONG_MAX, false, true},
    {"aclrtProcessHostFunc", LONG_MAX, false, true},
};
#define SPECIAL (sizeof special / sizeof special[0])

static char zeros[BUFFER_BYTES], ones[BUFFER_BYTES], noise[BUFFER_BYTES];
static void *device_live, *device_freed;
static aclrtStream stream_live, stream_dead;
static aclrtEvent event_live, event_dead;
static aclrtContext context_live, context_dead;
static aclTensorDesc *desc_live, *desc_dead;
static aclDataBuffer *buffer_live, *buffer_dead;

static void make_objects(void) {
    const int64_t dims[] = {2, 3};
    CHECK_OK(aclrtCreateContext(&context_dead, 0));
    CHECK_OK(aclrtDestroyContext(context_dead));
    CHECK_OK(aclrtSetDevice(0));
    CHECK_OK(aclrtGetCurrentContext(&context_live));
    CHECK_OK(aclrtCreateStream(&stream_live));
    CHECK_OK(aclrtCreateStream(&stream_dead));
    CHECK_OK(aclrtDestroyStream(stream_dead));
    CHECK_OK(aclrtCreateEvent(&event_live));
    CHECK_OK(aclrtCreateEvent(&event_dead));
    CHECK_OK(aclrtDestroyEvent(event_dead));
    CHECK_OK(aclrtMalloc(&device_live, 4096, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK_OK(aclrtMalloc(&device_freed, 4096, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK_OK(aclrtFree(device_freed));
    desc_live = aclCreateTensorDesc(ACL_FLOAT, 2, dims, ACL_FORMAT_ND);
    desc_dead = aclCreateTensorDesc(ACL_FLOAT, 2, dims, ACL_FORMAT_ND);
    aclDestroyTensorDesc(desc_dead);
    buffer_live = aclCreateDataBuffer(zeros, 16);
    buffer_dead = aclCreateDataBuffer(zeros, 16);
    CHECK_OK(aclDestroyDataBuffer(buffer_dead));
    memset(ones, 0xff, sizeof ones - 1);
    for (size_t i = 0; i + 1 < sizeof noise; i++)
        noise[i] = (char)rand();
    aclGetRecentErrMsg();
}

static void nothing(void *unused) {
    (void)unused;
}

static long pick_number(long largest) {
    static const long numbers[] = {0,       1,          2,        7,        -1,       -2,         31,
                                   32,      64,         100,      4096,     65535,    1000000007, INT_MAX,
                                   INT_MIN, UINT32_MAX, 1L << 40, LONG_MAX, LONG_MIN, -4096};
    for (;;) {
        long number = numbers[(size_t)rand() % (sizeof numbers / sizeof numbers[0])];
        if (number == -1 || number == -2 || number <= largest)
            if (largest == LONG_MAX || number >= 0)
                return number;
    }
}

static void *pick_pointer(const char *type, bool nested) {
    void *choices[8];
    size_t count = 0;
    choices[count++] = NULL;
    choices[count++] = zeros;
    if (!nested) {
        choices[count++] = ones;
        choices[count++] = noise + 8 * (rand() % 64);
    }
    if (strcmp(type, "void*") == 0) {
        choices[count++] = device_live;
        choices[count++] = device_freed;
    } else if (strcmp(type, "aclTensorDesc*") == 0) {
        choices[count++] = desc_live;
        choices[count++] = desc_live;
        choices[count++] = desc_dead;
    } else if (strcmp(type, "aclDataBuffer*") == 0) {
        choices[count++] = buffer_live;
        choices[count++] = buffer_dead;
    }
    return choices[(size_t)rand() % count];
}

static void *pick_handle(void) {
    void *const choices[] = {NULL,         stream_live, stream_dead, event_live,  event_dead, context_live,
                             context_dead, device_live, zeros,       (void *)1,   (void *)-1, noise + 64,
                             desc_live,    stream_live, event_live,  buffer_dead, ones};
    return choices[(size_t)rand() % (sizeof choices / sizeof choices[0])];
}

typedef long (*any_function)(long, long, long, long, long, long, long, long, long, long, long, long, long, long, long,
                             long, long, long, long, long);

static const prototype *current;

static void torment(void) {
    long largest = LONG_MAX;
    bool nested = false, slow = false;
    for (size_t i = 0; i < SPECIAL; i++) {
        if (strncmp(current->name, special[i].prefix, strlen(special[i].prefix)) == 0) {
            largest = special[i].largest;
            nested = special[i].nested;
            slow = special[i].slow;
            break;
        }
    }
    any_function function = (any_function)dlsym(RTLD_DEFAULT, current->name);
    CHECK(function);
    bool returns_code = strcmp(current->returns, "aclError") == 0 && !strstr(current->name, "LastError");
    for (int round = 0; round < (slow ? 5 : ROUNDS); round++) {
        long a[PARAMETERS_MAX] = {0};
        for (size_t i = 0; i < current->parameters; i++) {
            const parameter *p = &current->parameter[i];
            if (p->kind == PARAMETER_POINTER)
                a[i] = (long)pick_pointer(p->type, nested);
            else if (p->kind == PARAMETER_HANDLE)
                a[i] = (long)pick_handle();
            else if (p->kind == PARAMETER_FUNCTION)
                a[i] = rand() % 2 ? (long)nothing : 0;
            else
                a[i] = pick_number(largest);
        }
        long result = function(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11], a[12], a[13],
                               a[14], a[15], a[16], a[17], a[18], a[19]);
        if (returns_code && (int)result != ACL_SUCCESS) {
            const char *message = aclGetRecentErrMsg();
            CHECK(message && strstr(message, current->name));
        }
    }
}

static void torment_with_objects(void) {
    srand(5);
    make_objects();
    torment();
    aclrtSynchronizeDevice();
}

static void torment_without_context(void) {
    srand(6);
    torment();
}

static void call_all(void (*body)(void)) {
    size_t called = 0;
    for (size_t i = 0; i < function_count; i++) {
        current = &functions[i];
        bool by_value = false;
        for (size_t k = 0; k < current->parameters; k++)
            by_value |= current->parameter[k].kind == PARAMETER_STRUCT;
        if (current->variadic || by_value)
            continue;
        called++;
        fflush(stdout);
        if (getenv("DP_VERBOSE"))
            fprintf(stderr, "%s\n", current->name);
        pid_t child = fork();
        if (child == 0) {
            alarm(CHILD_SECONDS);
            body();
            _exit(0);
        }
        int status = 0;
        waitpid(child, &status, 0);
        if (!WIFEXITED(status) || WEXITSTATUS(status))
            fail_msg("%s: %s %d", current->name, WIFSIGNALED(status) ? "ended by signal" : "exit status",
                     WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    }
    assert_true(called > 250);
}

static void hostile_arguments_with_objects(void **state) {
    (void)state;
    call_all(torment_with_objects);
}

static void hostile_arguments_without_context(void **state) {
    (void)state;
    call_all(torment_without_context);
}

int main(void) {
    function_count = prototypes_read(DP_INCLUDE_DIR, functions, sizeof functions / sizeof functions[0]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hostile_arguments_with_objects),
        cmocka_unit_test(hostile_arguments_without_context),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
