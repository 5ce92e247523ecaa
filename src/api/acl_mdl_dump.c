/* acl_mdl.h: dumps of the values of models that run, set by a JSON file. */
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "api/acl_mdl_dump.h"
#include "api/compile_file.h"
#include "base/memory.h"
#include "graph/dump.h"

static _Atomic bool is_ready;

#ifdef DP_HAVE_CJSON

enum { NAMES_MAX = 256 };

/* Texts of the lists in dump_list: the names of models and of layers. */
static dp_status read_names(const cJSON *list, const char **models, const char **layers, dp_dump_settings *s) {
    const cJSON *item, *layer;
    cJSON_ArrayForEach(item, list) {
        const cJSON *model = cJSON_GetObjectItemCaseSensitive(item, "model_name");
        if (s->n_models == NAMES_MAX)
            return dp_fail(DP_ERR_ARGUMENT, "dump_list names more than %d models", NAMES_MAX);
        if (cJSON_IsString(model) && *model->valuestring)
            models[s->n_models++] = model->valuestring;
        cJSON_ArrayForEach(layer, cJSON_GetObjectItemCaseSensitive(item, "layer")) {
            if (s->n_layers == NAMES_MAX || !cJSON_IsString(layer))
                return dp_fail(DP_ERR_ARGUMENT, "layer must be a list of at most %d names", NAMES_MAX);
            layers[s->n_layers++] = layer->valuestring;
        }
    }
    return DP_OK;
}

dp_status dp_mdl_dump_configure(const cJSON *dump) {
    const char *models[NAMES_MAX], *layers[NAMES_MAX];
    const cJSON *path = cJSON_GetObjectItemCaseSensitive(dump, "dump_path");
    const cJSON *mode = cJSON_GetObjectItemCaseSensitive(dump, "dump_mode");
    const char *which = cJSON_IsString(mode) ? mode->valuestring : "output";
    bool all = strcmp(which, "all") == 0;
    dp_dump_settings s = {.inputs = all || strcmp(which, "input") == 0,
                          .outputs = all || strcmp(which, "output") == 0,
                          .models = models,
                          .layers = layers};
    if (!cJSON_IsObject(dump))
        return dp_fail(DP_ERR_ARGUMENT, "the file has no object \"dump\"");
    if (!cJSON_IsString(path) || !*path->valuestring)
        return dp_fail(DP_ERR_ARGUMENT, "dump.dump_path must be the name of a folder");
    if (!s.inputs && !s.outputs)
        return dp_fail(DP_ERR_ARGUMENT, "dump.dump_mode is \"%.40s\", but must be input, output or all", which);
    dp_status status = read_names(cJSON_GetObjectItemCaseSensitive(dump, "dump_list"), models, layers, &s);
    s.folder = path->valuestring;
    return status == DP_OK ? dp_dump_start(&s) : status;
}

static dp_status configure(const char *path) {
    void *text;
    size_t bytes;
    dp_status status = dp_file_read("dumpCfgPath", path, &text, &bytes);
    if (status != DP_OK)
        return status;
    cJSON *root = cJSON_ParseWithLength(text, bytes);
    status = cJSON_IsObject(root) ? dp_mdl_dump_configure(cJSON_GetObjectItemCaseSensitive(root, "dump"))
                                  : dp_fail(DP_ERR_ARGUMENT, "dumpCfgPath %.200s holds no JSON object", path);
    cJSON_Delete(root);
    dp_free(text);
    return status;
}

#else

static dp_status configure(const char *path) {
    (void)path;
    return dp_fail(DP_ERR_UNSUPPORTED, "this library was built without cJSON, so that it reads no settings of dumps");
}

#endif

aclError aclmdlInitDump(void) {
    dp_api_call call = DP_API_CALL();
    if (is_ready)
        return dp_api_fail(&call, ACL_ERROR_REPEAT_INITIALIZE, "dumps are ready already: aclmdlFinalizeDump ends them");
    is_ready = true;
    return dp_api_end(&call, DP_OK);
}

aclError aclmdlSetDump(const char *dumpCfgPath) {
    dp_api_call call = DP_API_CALL();
    if (!dumpCfgPath)
        return dp_api_null(&call, "dumpCfgPath", "the name of a JSON file with an object \"dump\"");
    if (!is_ready)
        return dp_api_fail(&call, ACL_ERROR_UNINITIALIZE,
                           "dumps are not ready: call aclmdlInitDump before aclmdlSetDump");
    dp_status status = configure(dumpCfgPath);
    return status == DP_ERR_IO ? dp_api_end_code(&call, ACL_ERROR_INVALID_FILE) : dp_api_end(&call, status);
}

aclError aclmdlFinalizeDump(void) {
    dp_api_call call = DP_API_CALL();
    if (!is_ready)
        return dp_api_fail(&call, ACL_ERROR_UNINITIALIZE, "dumps are not ready: there is nothing to end");
    is_ready = false;
    dp_dump_stop();
    return dp_api_end(&call, DP_OK);
}
