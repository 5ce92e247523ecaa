/* Every refused function says so: the code, its own name, a reason, and nothing happens to its arguments. */
#include "child.h"

#include <dlfcn.h>

typedef struct refused {
    const char *name;
    int returns_code;
} refused;

#define DP_REFUSED_CODE(name, parameters, reason) {#name, 1},
#define DP_REFUSED_VALUE(type, name, parameters, value, reason) {#name, 0},
static const refused functions[] = {
#include "api/refused.def"
};
#define FUNCTIONS (sizeof functions / sizeof functions[0])

/* The functions look at none of their arguments, so their number does not matter to the callers of the ABIs we run on.
 */
typedef long (*any_function)(long, long, long, long, long, long);

TEST(refusals_are_said) {
    for (size_t i = 0; i < FUNCTIONS; i++) {
        any_function function = (any_function)dlsym(RTLD_DEFAULT, functions[i].name);
        if (!function)
            fprintf(stderr, "%s is not exported\n", functions[i].name);
        CHECK(function);
        long result = function(0, 0, 0, 0, 0, 0);
        CHECK(!functions[i].returns_code || (int)result == ACL_ERROR_API_NOT_SUPPORT);
        CHECK(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL) == ACL_ERROR_API_NOT_SUPPORT);
        const char *message = aclGetRecentErrMsg();
        CHECK(message && strstr(message, functions[i].name) && strstr(message, "not supported"));
    }
}

TEST(refusals_that_return_values) {
    CHECK(aclmdlGetOpAttr(NULL, "", "") == NULL);
    CHECK(aclrtCreateBinary(NULL, 0) == NULL && aclrtAllocatorCreateDesc() == NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refusals_are_said),
        cmocka_unit_test(refusals_that_return_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
