/* aclInit, aclFinalize, configuration files, versions, errors, facts about the installation, fork. */
#include "child.h"

#include <pthread.h>

static const char *config_file(const char *text, size_t bytes) {
    static char path[64];
    snprintf(path, sizeof path, "/tmp/doppel-init-XXXXXX");
    int fd = mkstemp(path);
    CHECK(fd >= 0 && write(fd, text, bytes) == (ssize_t)bytes);
    close(fd);
    return path;
}

TEST(init_without_configuration) {
    CHECK_OK(aclInit(NULL));
    CHECK(aclGetRecentErrMsg() == NULL);
    CHECK_OK(aclFinalize());
}

TEST(repeated_init_is_reported_and_counted) {
    uint64_t left = 99;
    CHECK_OK(aclInit(NULL));
    CHECK_FAILS(ACL_ERROR_REPEAT_INITIALIZE, aclInit(NULL), "aclInit");
    CHECK_FAILS(ACL_ERROR_REPEAT_INITIALIZE, aclInit(""), "aclInit");
    CHECK_OK(aclFinalizeReference(&left));
    CHECK(left == 2);
    CHECK_OK(aclFinalizeReference(NULL));
    CHECK_OK(aclFinalizeReference(&left));
    CHECK(left == 0);
    CHECK_FAILS(ACL_ERROR_REPEAT_FINALIZE, aclFinalize(), "aclFinalize");
    CHECK_OK(aclInit(NULL));
    CHECK_OK(aclFinalize());
}

TEST(finalize_undoes_all) {
    uint64_t left = 99;
    CHECK_FAILS(ACL_ERROR_UNINITIALIZE, aclFinalize(), "aclFinalize", "aclInit");
    CHECK_OK(aclInit(NULL));
    aclInit(NULL);
    aclInit(NULL);
    CHECK_OK(aclFinalize());
    CHECK_FAILS(ACL_ERROR_REPEAT_FINALIZE, aclFinalizeReference(&left), "aclFinalizeReference");
    CHECK(left == 0);
}

#define FILE_OF(literal) literal, sizeof literal - 1

TEST(configuration_files) {
    static const struct {
        const char *text;
        size_t bytes;
        aclError code;
    } cases[] = {{FILE_OF("{}"), ACL_SUCCESS},
                 {FILE_OF("  {\"profiler\": {\"switch\": \"on\"}, \"dump\": []}\n"), ACL_SUCCESS},
                 {FILE_OF(""), ACL_ERROR_PARSE_FILE},
                 {FILE_OF("{"), ACL_ERROR_PARSE_FILE},
                 {FILE_OF("[1]"), ACL_ERROR_PARSE_FILE},
                 {FILE_OF("{} x"), ACL_ERROR_PARSE_FILE},
                 {FILE_OF("{}\0{"), ACL_ERROR_PARSE_FILE},
                 {FILE_OF("\xff\xfe{"), ACL_ERROR_PARSE_FILE},
                 {FILE_OF("{\"defaultDevice\": {\"default_device\": \"x\"}}"), ACL_ERROR_PARSE_FILE},
                 {FILE_OF("{\"defaultDevice\": {\"default_device\": -1}}"), ACL_ERROR_PARSE_FILE},
                 {FILE_OF("{\"defaultDevice\": 3}"), ACL_ERROR_PARSE_FILE},
                 {FILE_OF("{\"defaultDevice\": {\"default_device\": \"77\"}}"), ACL_ERROR_RT_INVALID_DEVICEID}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *path = config_file(cases[i].text, cases[i].bytes);
        if (cases[i].code == ACL_SUCCESS) {
            CHECK_OK(aclInit(path));
            CHECK_OK(aclFinalize());
        } else if (cases[i].code == ACL_ERROR_PARSE_FILE) {
            CHECK_FAILS(cases[i].code, aclInit(path), "aclInit", "configPath", path);
        } else {
            CHECK_FAILS(cases[i].code, aclInit(path), "aclInit", "77");
        }
        unlink(path);
    }
}

TEST(configuration_selects_the_device) {
    int32_t device = -1;
    const char *text = "{\"defaultDevice\": {\"default_device\": \"0\"}}";
    const char *path = config_file(text, strlen(text));
    CHECK_OK(aclInit(path));
    CHECK_OK(aclrtGetDevice(&device));
    CHECK(device == 0);
    unlink(path);
}

TEST(missing_configuration_file) {
    CHECK_FAILS(ACL_ERROR_INVALID_FILE, aclInit("/no/such/file.json"), "configPath", "/no/such/file.json");
    CHECK_FAILS(ACL_ERROR_INVALID_FILE, aclInit("/tmp"), "configPath", "regular file");
    CHECK_FAILS(ACL_ERROR_INVALID_FILE, aclInit(""), "configPath");
    CHECK_OK(aclInit(NULL)); /* the failures did not count */
    CHECK_OK(aclFinalize());
}

TEST(runtime_works_before_init) {
    aclrtContext context = NULL, current = NULL;
    aclrtStream stream = NULL;
    void *memory = NULL;
    CHECK_OK(aclrtSetDevice(0));
    CHECK_OK(aclrtCreateContext(&context, 0));
    CHECK_OK(aclrtGetCurrentContext(&current));
    CHECK(current == context);
    CHECK_OK(aclrtCreateStream(&stream));
    CHECK_OK(aclrtMalloc(&memory, 100, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK_OK(aclInit(NULL));
    CHECK_OK(aclrtSynchronizeStream(stream));
    CHECK_OK(aclrtFree(memory));
    CHECK_OK(aclrtDestroyStream(stream));
    CHECK_OK(aclrtResetDevice(0)); /* the context is never destroyed, as some programs do */
    CHECK_OK(aclFinalize());
}

TEST(facts_about_the_installation) {
    aclCANNPackageVersion version;
    int32_t major = 0, minor = 0, patch = -1, value = -1;
    char text[ACL_PKG_VERSION_MAX_SIZE], name[] = "CANN", wrong[] = "unheard-of";
    CHECK(aclrtGetSocName() && strcmp(aclrtGetSocName(), "Ascend910B3") == 0);
    CHECK_OK(aclrtGetVersion(&major, &minor, &patch));
    CHECK(major == ACL_MAJOR_VERSION && minor == ACL_MINOR_VERSION && patch == ACL_PATCH_VERSION);
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclrtGetVersion(&major, NULL, &patch), "minorVersion", "NULL");
    CHECK_OK(aclsysGetCANNVersion(ACL_PKG_NAME_CANN, &version));
    CHECK(sscanf(version.version, "%d.%d", &major, &minor) == 2 && major == atoi(version.majorVersion));
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclsysGetCANNVersion((aclCANNPackageName)42, &version), "name", "42");
    CHECK_FAILS(ACL_ERROR_API_NOT_SUPPORT, aclsysGetCANNVersion(ACL_PKG_NAME_DRIVER, &version), "driver");
    CHECK_OK(aclsysGetVersionStr(name, text));
    CHECK(strcmp(text, version.version) == 0);
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclsysGetVersionStr(wrong, text), "pkgName", "unheard-of");

    const aclCannAttr *list = NULL;
    size_t count = 0;
    CHECK_OK(aclGetCannAttributeList(&list, &count));
    CHECK(count > 0);
    for (size_t i = 0; i < count; i++) {
        CHECK_OK(aclGetCannAttribute(list[i], &value));
        CHECK(value == 1);
    }
    CHECK_OK(aclGetCannAttribute(ACL_CANN_ATTR_JIT_COMPILE, &value));
    CHECK(value == 0);
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclGetCannAttribute((aclCannAttr)7, &value), "cannAttr", "7");
    int64_t number = 0;
    CHECK_OK(aclGetDeviceCapability(0, ACL_DEVICE_INFO_VECTOR_CORE_NUM, &number));
    CHECK(number == 40);
    CHECK_FAILS(ACL_ERROR_RT_INVALID_DEVICEID, aclGetDeviceCapability(UINT32_MAX, ACL_DEVICE_INFO_L2_SIZE, &number),
                "deviceId");
}

TEST(errors_are_remembered_until_fetched) {
    int32_t device = 0;
    CHECK(aclGetRecentErrMsg() == NULL);
    CHECK(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL) == ACL_SUCCESS);
    CHECK(aclrtSetDevice(55) == ACL_ERROR_RT_INVALID_DEVICEID);
    CHECK_OK(aclrtSetDevice(0)); /* success does not discard the sentence */
    const char *message = aclGetRecentErrMsg();
    CHECK(message && strstr(message, "aclrtSetDevice") && strstr(message, "deviceId") && strstr(message, "55") &&
          strstr(message, "107001"));
    CHECK(aclGetRecentErrMsg() == NULL);
    CHECK(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL) == ACL_ERROR_RT_INVALID_DEVICEID);
    CHECK(aclrtGetLastError(ACL_RT_THREAD_LEVEL) == ACL_ERROR_RT_INVALID_DEVICEID);
    CHECK(aclrtGetLastError(ACL_RT_THREAD_LEVEL) == ACL_SUCCESS);
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclrtGetLastError((aclrtLastErrLevel)5), "level", "5");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclrtGetDevice(NULL), "aclrtGetDevice", "deviceId", "NULL");
    CHECK_OK(aclrtGetDevice(&device));
    CHECK_OK(aclrtSynchronizeDevice());
}

static void *other_thread(void *unused) {
    (void)unused;
    return (void *)(intptr_t)(aclGetRecentErrMsg() == NULL && aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL) == ACL_SUCCESS);
}

TEST(errors_belong_to_the_thread) {
    pthread_t thread;
    void *good = NULL;
    CHECK(aclrtSetDevice(-1) == ACL_ERROR_RT_INVALID_DEVICEID);
    CHECK(pthread_create(&thread, NULL, other_thread, NULL) == 0 && pthread_join(thread, &good) == 0);
    CHECK(good);
    CHECK(aclGetRecentErrMsg() != NULL);
}

/* A child of a process that has used streams can do so as well, before and after the parent does. */
static void use_device(void) {
    aclrtStream stream = NULL;
    void *memory = NULL;
    uint32_t host = 0;
    CHECK_OK(aclrtSetDevice(0));
    CHECK_OK(aclrtCreateStream(&stream));
    CHECK_OK(aclrtMalloc(&memory, 64, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK_OK(aclrtMemsetAsync(memory, 64, 0x5a, 64, stream));
    CHECK_OK(aclrtMemcpyAsync(&host, 4, memory, 4, ACL_MEMCPY_DEVICE_TO_HOST, stream));
    CHECK_OK(aclrtSynchronizeStream(stream));
    CHECK(host == 0x5a5a5a5a);
    CHECK_OK(aclrtDestroyStream(stream));
    CHECK_OK(aclrtFree(memory));
}

TEST(fork_before_and_after_use) {
    for (int round = 0; round < 3; round++) {
        pid_t child = fork();
        if (child == 0) {
            alarm(10);
            aclInit(NULL);
            use_device();
            aclTensorDesc *desc = aclCreateTensorDesc(ACL_FLOAT, 0, NULL, ACL_FORMAT_ND);
            CHECK(desc);
            aclDestroyTensorDesc(desc);
            aclFinalize();
            _exit(0);
        }
        int status = 0;
        CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
        aclInit(NULL);
        use_device();
        usleep(10000); /* the pool's threads put away what they ran */
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(init_without_configuration),
        cmocka_unit_test(repeated_init_is_reported_and_counted),
        cmocka_unit_test(finalize_undoes_all),
        cmocka_unit_test(configuration_files),
        cmocka_unit_test(configuration_selects_the_device),
        cmocka_unit_test(missing_configuration_file),
        cmocka_unit_test(runtime_works_before_init),
        cmocka_unit_test(facts_about_the_installation),
        cmocka_unit_test(errors_are_remembered_until_fetched),
        cmocka_unit_test(errors_belong_to_the_thread),
        cmocka_unit_test(fork_before_and_after_use),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
