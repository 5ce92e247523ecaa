#include <pthread.h>
#include <string.h>
#include <sys/stat.h>

#include "api/acl_op.h"
#include "base/memory.h"
#include "runtime/fork.h"

enum { OPTIONS = ACL_OP_DEBUG_OPTION + 1, OPTION_BYTES_MAX = 4096 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static dp_fork_part fork_part = {.floor = DP_FORK_API, .lock = &lock};
static char *options[OPTIONS]; /* texts set, NULL: none */
static bool model_dir_set;

static bool is_option(aclCompileOpt opt) {
    return (unsigned)opt < OPTIONS;
}

aclError aclSetCompileopt(aclCompileOpt opt, const char *value) {
    dp_api_call call = DP_API_CALL();
    if (!is_option(opt))
        return dp_api_bad_value(&call, "opt", opt, "an aclCompileOpt (0 to 16)");
    if (!value)
        return dp_api_null(&call, "value", "a string");
    size_t bytes = strnlen(value, OPTION_BYTES_MAX) + 1;
    if (bytes > OPTION_BYTES_MAX)
        return dp_api_fail(&call, ACL_ERROR_INVALID_PARAM, "value is longer than %d bytes", OPTION_BYTES_MAX - 1);
    char *copy = dp_alloc(DP_MEM_RUNTIME, bytes);
    if (!copy)
        return dp_api_fail(&call, ACL_ERROR_BAD_ALLOC, "no host memory for a value of %zu bytes: free some", bytes);
    memcpy(copy, value, bytes);
    dp_fork_lock(&fork_part);
    char *old = options[opt];
    options[opt] = copy;
    pthread_mutex_unlock(&lock);
    dp_free(old);
    return dp_api_end(&call, DP_OK);
}

size_t aclGetCompileoptSize(aclCompileOpt opt) {
    dp_api_call call = DP_API_CALL();
    if (!is_option(opt)) {
        dp_api_bad_value(&call, "opt", opt, "an aclCompileOpt (0 to 16)");
        return 0;
    }
    dp_fork_lock(&fork_part);
    size_t bytes = options[opt] ? strlen(options[opt]) + 1 : 1;
    pthread_mutex_unlock(&lock);
    dp_api_end(&call, DP_OK);
    return bytes;
}

aclError aclGetCompileopt(aclCompileOpt opt, char *value, size_t length) {
    dp_api_call call = DP_API_CALL();
    if (!is_option(opt))
        return dp_api_bad_value(&call, "opt", opt, "an aclCompileOpt (0 to 16)");
    if (!value)
        return dp_api_null(&call, "value", "memory for the text");
    dp_fork_lock(&fork_part);
    const char *text = options[opt] ? options[opt] : "";
    size_t bytes = strlen(text) + 1;
    if (bytes <= length)
        memcpy(value, text, bytes);
    pthread_mutex_unlock(&lock);
    if (bytes > length)
        return dp_api_fail(&call, ACL_ERROR_INVALID_PARAM, "length is %zu, but the text takes %zu bytes", length,
                           bytes);
    return dp_api_end(&call, DP_OK);
}

aclError aclopSetCompileFlag(aclOpCompileFlag flag) {
    dp_api_call call = DP_API_CALL();
    if (flag != ACL_OP_COMPILE_DEFAULT && flag != ACL_OP_COMPILE_FUZZ)
        return dp_api_bad_value(&call, "flag", flag, "an aclOpCompileFlag (0 or 1)");
    return dp_api_end(&call, DP_OK);
}

aclError aclopSetMaxOpQueueNum(uint64_t maxOpNum) {
    dp_api_call call = DP_API_CALL();
    if (!maxOpNum)
        return dp_api_fail(&call, ACL_ERROR_INVALID_PARAM, "maxOpNum is 0, but must be at least 1");
    return dp_api_end(&call, DP_OK);
}

aclError aclopSetModelDir(const char *modelDir) {
    dp_api_call call = DP_API_CALL();
    struct stat info;
    if (!modelDir)
        return dp_api_null(&call, "modelDir", "the path of a folder");
    if (stat(modelDir, &info) != 0 || !S_ISDIR(info.st_mode))
        return dp_api_fail(&call, ACL_ERROR_INVALID_FILE, "modelDir is \"%.200s\", which is no folder", modelDir);
    dp_fork_lock(&fork_part);
    bool again = model_dir_set;
    model_dir_set = true;
    pthread_mutex_unlock(&lock);
    if (again)
        return dp_api_fail(&call, ACL_ERROR_REPEAT_INITIALIZE,
                           "modelDir was set before, which is enough: once per process");
    return dp_api_end(&call, DP_OK);
}
