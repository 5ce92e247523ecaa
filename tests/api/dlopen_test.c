/* The library arrives through dlopen, as in interpreters and plug-ins: it loads, works, is closed and opened again. */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

typedef int (*take_nothing)(void);
typedef int (*take_number)(int32_t);
typedef int (*take_pointer)(void *);
typedef int (*take_function)(void *, void (*)(void *), void *);

static void count(void *number) {
    ++*(int *)number;
}

/* dlsym gives an object pointer, which ISO C does not turn into one of a function. */
static void *find(void *library, const char *name) {
    void *function = dlsym(library, name);
    assert_non_null(function);
    return function;
}
#define CALL(type, name) ((type)(uintptr_t)find(library, name))

static void test_open_use_close(void **state) {
    (void)state;
    for (int round = 0; round < 3; round++) {
        void *library = dlopen(DP_LIBRARY, RTLD_NOW | RTLD_LOCAL);
        if (!library)
            print_error("%s\n", dlerror());
        assert_non_null(library);
        void *stream = NULL;
        int counted = 0;
        assert_int_equal(CALL(take_pointer, "aclInit")(NULL), 0);
        assert_int_equal(CALL(take_number, "aclrtSetDevice")(0), 0);
        assert_int_equal(CALL(take_pointer, "aclrtCreateStream")(&stream), 0);
        for (int i = 0; i < 100; i++)
            assert_int_equal(CALL(take_function, "aclrtLaunchHostFunc")(stream, count, &counted), 0);
        assert_int_equal(CALL(take_pointer, "aclrtSynchronizeStream")(stream), 0);
        assert_int_equal(counted, 100);
        assert_int_equal(CALL(take_pointer, "aclrtDestroyStream")(stream), 0);
        assert_int_equal(CALL(take_number, "aclrtResetDevice")(0), 0);
        assert_int_equal(CALL(take_nothing, "aclFinalize")(), 0);
        assert_int_equal(dlclose(library), 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_open_use_close)};
    return cmocka_run_group_tests_name("api_dlopen", tests, NULL, NULL);
}
