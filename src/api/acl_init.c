#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#ifdef DP_HAVE_CJSON
#include <cJSON.h>

#include "api/acl_mdl_dump.h"
#endif

#include "api/api.h"
#include "base/memory.h"
#include "runtime/device.h"
#include "runtime/fork.h"

#define CONFIG_BYTES_MAX ((size_t)10 << 20)

/* The interface follows this release of the vendor's stack. */
#define STACK_MAJOR "8"
#define STACK_MINOR "2"
#define STACK_RELEASE "RC1"
#define STACK_VERSION STACK_MAJOR "." STACK_MINOR "." STACK_RELEASE

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static dp_fork_part fork_part = {.floor = DP_FORK_API, .lock = &lock};
static uint64_t references;
static bool was_finalised;

static aclError bad_file(const char *path, aclError code, const char *expected) {
    dp_fail(DP_ERR_IO, "configPath is \"%s\", but must be %s", path, expected);
    return code;
}

/* Whole file as a string; NULL with *out_code and a sentence when it cannot be. */
static char *read_config(const char *path, size_t *out_bytes, aclError *out_code) {
    FILE *in = fopen(path, "rb");
    struct stat info;
    char *text = NULL;
    if (!in) {
        *out_code =
            bad_file(path, ACL_ERROR_INVALID_FILE, "a JSON file that can be read, or NULL for no configuration");
        return NULL;
    }
    if (fstat(fileno(in), &info) || !S_ISREG(info.st_mode)) {
        *out_code = bad_file(path, ACL_ERROR_INVALID_FILE, "a regular file, or NULL for no configuration");
        goto done;
    }
    if ((size_t)info.st_size > CONFIG_BYTES_MAX) {
        *out_code = bad_file(path, ACL_ERROR_INVALID_FILE_SIZE, "a file of at most 10 MiB");
        goto done;
    }
    text = dp_alloc(DP_MEM_RUNTIME, (size_t)info.st_size + 1);
    if (!text) {
        dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory to read configPath \"%s\": free some", path);
        *out_code = ACL_ERROR_BAD_ALLOC;
        goto done;
    }
    *out_bytes = fread(text, 1, (size_t)info.st_size, in);
    text[*out_bytes] = '\0';
done:
    fclose(in);
    return text;
}

#ifdef DP_HAVE_CJSON
/* "defaultDevice": {"default_device": "0"} selects the device of the calling thread. */
static aclError apply_config(const char *path, const cJSON *root) {
    if (!cJSON_IsObject(root))
        return bad_file(path, ACL_ERROR_PARSE_FILE, "a JSON file whose outermost value is an object");
    const cJSON *dump = cJSON_GetObjectItemCaseSensitive(root, "dump");
    if (cJSON_IsObject(dump) && cJSON_GetObjectItemCaseSensitive(dump, "dump_path") && dp_mdl_dump_configure(dump) != DP_OK)
        return ACL_ERROR_PARSE_FILE;
    const cJSON *section = cJSON_GetObjectItemCaseSensitive(root, "defaultDevice");
    if (!section)
        return ACL_SUCCESS;
    const cJSON *device = cJSON_GetObjectItemCaseSensitive(section, "default_device");
    char *end = NULL;
    long id = cJSON_IsString(device) ? strtol(device->valuestring, &end, 10) : -1;
    if (!cJSON_IsString(device) || end == device->valuestring || *end || id < 0 || id > INT32_MAX)
        return bad_file(path, ACL_ERROR_PARSE_FILE,
                        "a JSON file whose defaultDevice.default_device is a device number as a string");
    return dp_api_code(dp_device_set((int32_t)id), ACL_ERROR_RT_CONTEXT_NULL, ACL_ERROR_RT_WAIT_TIMEOUT);
}

static aclError load_config(const char *path) {
    size_t bytes = 0;
    aclError code = ACL_SUCCESS;
    char *text = read_config(path, &bytes, &code);
    if (!text)
        return code;
    cJSON *root = strlen(text) == bytes ? cJSON_ParseWithOpts(text, NULL, 1) : NULL;
    code =
        root ? apply_config(path, root) : bad_file(path, ACL_ERROR_PARSE_FILE, "a file that contains one JSON object");
    cJSON_Delete(root);
    dp_free(text);
    return code;
}
#else
static aclError load_config(const char *path) {
    size_t bytes = 0;
    aclError code = ACL_SUCCESS;
    char *text = read_config(path, &bytes, &code);
    if (!text)
        return code;
    dp_free(text);
    return bad_file(path, ACL_ERROR_API_NOT_SUPPORT, "NULL: this library was built without cJSON");
}
#endif

aclError aclInit(const char *configPath) {
    dp_api_call call = DP_API_CALL();
    dp_fork_lock(&fork_part);
    uint64_t before = references;
    aclError code = before == 0 && configPath ? load_config(configPath) : ACL_SUCCESS;
    if (code == ACL_SUCCESS) {
        references++;
        was_finalised = false;
    }
    pthread_mutex_unlock(&lock);
    if (code) {
        char sentence[768];
        snprintf(sentence, sizeof sentence, "%s", dp_fail_message());
        return dp_api_fail(&call, code, "%s", sentence);
    }
    dp_runtime_start();
    if (before)
        return dp_api_fail(
            &call, ACL_ERROR_REPEAT_INITIALIZE,
            "aclInit was called %llu times before without aclFinalize; the call is counted and may be ignored",
            (unsigned long long)before);
    return dp_api_end(&call, DP_OK);
}

static aclError finalise(dp_api_call *call, bool all, uint64_t *remaining) {
    dp_fork_lock(&fork_part);
    uint64_t before = references;
    bool repeated = was_finalised;
    references = all || !before ? 0 : before - 1;
    was_finalised |= references == 0 && before > 0;
    *remaining = references;
    pthread_mutex_unlock(&lock);
    if (before)
        return dp_api_end(call, DP_OK);
    if (repeated)
        return dp_api_fail(call, ACL_ERROR_REPEAT_FINALIZE, "%s was called again without aclInit in between",
                           call->name);
    return dp_api_fail(call, ACL_ERROR_UNINITIALIZE, "%s was called before aclInit", call->name);
}

aclError aclFinalize(void) {
    dp_api_call call = DP_API_CALL();
    uint64_t remaining = 0;
    return finalise(&call, true, &remaining);
}

aclError aclFinalizeReference(uint64_t *refCount) {
    dp_api_call call = DP_API_CALL();
    uint64_t remaining = 0;
    aclError code = finalise(&call, false, &remaining);
    if (refCount)
        *refCount = remaining;
    return code;
}

aclError aclrtGetVersion(int32_t *majorVersion, int32_t *minorVersion, int32_t *patchVersion) {
    dp_api_call call = DP_API_CALL();
    if (!majorVersion)
        return dp_api_null(&call, "majorVersion", "the address of an int32_t");
    if (!minorVersion)
        return dp_api_null(&call, "minorVersion", "the address of an int32_t");
    if (!patchVersion)
        return dp_api_null(&call, "patchVersion", "the address of an int32_t");
    *majorVersion = ACL_MAJOR_VERSION;
    *minorVersion = ACL_MINOR_VERSION;
    *patchVersion = ACL_PATCH_VERSION;
    return dp_api_end(&call, DP_OK);
}

aclError aclsysGetCANNVersion(aclCANNPackageName name, aclCANNPackageVersion *version) {
    dp_api_call call = DP_API_CALL();
    if (!version)
        return dp_api_null(&call, "version", "the address of an aclCANNPackageVersion");
    if (name < ACL_PKG_NAME_CANN || name > ACL_PKG_NAME_DRIVER)
        return dp_api_bad_value(&call, "name", name, "an aclCANNPackageName (0 to 7)");
    if (name == ACL_PKG_NAME_DRIVER)
        return dp_api_refuse(&call, "name is ACL_PKG_NAME_DRIVER, but a simulated device has no driver");
    *version = (aclCANNPackageVersion){.version = STACK_VERSION,
                                       .majorVersion = STACK_MAJOR,
                                       .minorVersion = STACK_MINOR,
                                       .releaseVersion = STACK_RELEASE};
    return dp_api_end(&call, DP_OK);
}

aclError aclsysGetVersionStr(char *pkgName, char *versionStr) {
    static const char *const packages[] = {"cann", "runtime", "compiler", "hccl", "toolkit", "opp", "opp_kernel"};
    dp_api_call call = DP_API_CALL();
    if (!pkgName)
        return dp_api_null(&call, "pkgName", "the name of a package");
    if (!versionStr)
        return dp_api_null(&call, "versionStr", "room for ACL_PKG_VERSION_MAX_SIZE characters");
    for (size_t i = 0; i < sizeof packages / sizeof packages[0]; i++) {
        if (strcasecmp(pkgName, packages[i]) == 0) {
            memcpy(versionStr, STACK_VERSION, sizeof STACK_VERSION);
            return dp_api_end(&call, DP_OK);
        }
    }
    return dp_api_fail(&call, ACL_ERROR_INVALID_PARAM,
                       "pkgName is \"%.64s\", but must be cann, runtime, compiler, hccl, toolkit, opp or opp_kernel",
                       pkgName);
}
