/* Callbacks that throw: the process lives, the stream (or the call) carries a sentence that names the exception's type. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <exception>
#include <stdexcept>
#include <thread>

extern "C" {
#include <cmocka.h>
}

#include "acl/acl.h"

static int setup(void **) {
    return aclInit(nullptr) == ACL_SUCCESS && aclrtSetDevice(0) == ACL_SUCCESS ? 0 : -1;
}

static int destroyed;
struct counted {
    ~counted() { destroyed++; }
};

static void throws_error(void *) {
    counted c;
    throw std::runtime_error("no room");
}
static void throws_number(void *) { throw 7; }
static void counts(void *n) { ++*static_cast<int *>(n); }

static void expect_sentence(const char *a, const char *b) {
    const char *text = aclGetRecentErrMsg();
    assert_non_null(text);
    if (!strstr(text, a) || !strstr(text, b))
        fail_msg("%s", text);
}

static void host_functions(void **) {
    aclrtStream stream;
    int ran = 0;
    assert_int_equal(aclrtCreateStream(&stream), ACL_SUCCESS);
    assert_int_equal(aclrtLaunchHostFunc(stream, throws_error, nullptr), ACL_SUCCESS);
    assert_int_equal(aclrtLaunchHostFunc(stream, counts, &ran), ACL_SUCCESS);
    assert_int_not_equal(aclrtSynchronizeStream(stream), ACL_SUCCESS);
    expect_sentence("a host function threw a C++ exception", "std::runtime_error");
    assert_int_equal(destroyed, 1); /* its frames were unwound */
    assert_int_equal(ran, 1);       /* and the stream went on */
    assert_int_equal(std::uncaught_exceptions(), 0);
    assert_int_equal(aclrtDestroyStream(stream), ACL_SUCCESS);

    assert_int_equal(aclrtCreateStream(&stream), ACL_SUCCESS);
    assert_int_equal(aclrtLaunchHostFunc(stream, throws_number, nullptr), ACL_SUCCESS);
    assert_int_not_equal(aclrtSynchronizeStreamWithTimeout(stream, 5000), ACL_SUCCESS); /* a worker runs it */
    expect_sentence("a host function threw", "(int)");
    assert_int_equal(aclrtDestroyStream(stream), ACL_SUCCESS);
}

static void callback_of(aclrtCallbackBlockType type, bool stream_fails) {
    aclrtStream stream;
    aclError processed = ACL_SUCCESS;
    assert_int_equal(aclrtCreateStream(&stream), ACL_SUCCESS);
    std::thread reporter([&] {
        while ((processed = aclrtProcessReport(5000)) == ACL_SUCCESS) {
        }
        if (!strstr(aclGetRecentErrMsg(), "a callback threw a C++ exception (std::runtime_error)"))
            processed = ACL_SUCCESS;
    });
    uint64_t id = (uint64_t)reporter.native_handle();
    assert_int_equal(aclrtSubscribeReport(id, stream), ACL_SUCCESS);
    assert_int_equal(aclrtLaunchCallback(throws_error, nullptr, type, stream), ACL_SUCCESS);
    aclError waited = aclrtSynchronizeStream(stream);
    assert_int_equal(waited != ACL_SUCCESS, stream_fails);
    reporter.join();
    assert_int_not_equal(processed, ACL_SUCCESS);
    assert_int_equal(aclrtUnSubscribeReport(id, stream), ACL_SUCCESS);
    assert_int_equal(aclrtDestroyStream(stream), ACL_SUCCESS);
}

static void callbacks(void **) {
    callback_of(ACL_CALLBACK_BLOCK, true);
    callback_of(ACL_CALLBACK_NO_BLOCK, false);
}

int main() {
    const struct CMUnitTest tests[] = {cmocka_unit_test(host_functions), cmocka_unit_test(callbacks)};
    return cmocka_run_group_tests(tests, setup, nullptr);
}
