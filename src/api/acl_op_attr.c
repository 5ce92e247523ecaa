#include <string.h>

#include "api/acl_op.h"
#include "api/object.h"
#include "base/memory.h"

enum { ATTRIBUTES_MAX = 1024, VALUES_MAX = 1 << 20, NAME_BYTES_MAX = 256, TEXT_BYTES_MAX = 1 << 20 };

aclopAttr *aclopCreateAttr(void) {
    dp_api_call call = DP_API_CALL();
    aclopAttr *attr = dp_object_create(DP_OBJECT_OP_ATTR, sizeof *attr);
    dp_api_end(&call, attr ? DP_OK : DP_ERR_OUT_OF_MEMORY);
    return attr;
}

void dp_op_attr_release(struct aclopAttr *attr) {
    for (int i = 0; i < attr->count; i++)
        dp_free((void *)(uintptr_t)attr->args[i].name);
    dp_free(attr->args);
    *attr = (struct aclopAttr){0};
}

void aclopDestroyAttr(const aclopAttr *attr) {
    if (!attr)
        return;
    dp_api_call call = DP_API_CALL();
    aclopAttr *taken = dp_object_take(DP_OBJECT_OP_ATTR, attr, "attr");
    if (taken) {
        dp_op_attr_release(taken);
        dp_free(taken);
    }
    dp_api_end(&call, taken ? DP_OK : DP_ERR_ARGUMENT);
}

static size_t value_bytes(const dp_arg *arg) {
    switch (arg->kind) {
    case DP_ARG_INT_LIST:
        return (size_t)arg->count * sizeof(int64_t);
    case DP_ARG_FLOAT_LIST:
        return (size_t)arg->count * sizeof(float);
    case DP_ARG_BOOL_LIST:
        return (size_t)arg->count * sizeof(bool);
    case DP_ARG_TEXT:
        return strlen(arg->as.text) + 1;
    default:
        return 0;
    }
}

static void no_memory(const char *name) {
    dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for attribute %.64s: free some", name);
}

/* One block: the name, then the value. */
static bool copy_arg(dp_arg *to, const dp_arg *from) {
    size_t name_bytes = (strlen(from->name) + 8) & ~(size_t)7, bytes = value_bytes(from);
    size_t text_bytes = 0;
    if (from->kind == DP_ARG_TEXT_LIST)
        for (int64_t i = 0; i < from->count; i++)
            text_bytes += strlen(from->as.texts[i]) + 1;
    size_t table_bytes = from->kind == DP_ARG_TEXT_LIST ? (size_t)from->count * sizeof(char *) : 0;
    char *block = dp_alloc(DP_MEM_RUNTIME, name_bytes + bytes + table_bytes + text_bytes);
    if (!block) {
        no_memory(from->name);
        return false;
    }
    strcpy(block, from->name);
    *to = *from;
    to->name = block;
    char *value = block + name_bytes;
    if (bytes) {
        memcpy(value, from->as.text, bytes);
        to->as.text = value;
    }
    if (from->kind == DP_ARG_TEXT_LIST) {
        const char **table = (const char **)(void *)value;
        char *text = value + table_bytes;
        for (int64_t i = 0; i < from->count; i++) {
            table[i] = strcpy(text, from->as.texts[i]);
            text += strlen(text) + 1;
        }
        to->as.texts = table;
    }
    return true;
}

static bool reserve(struct aclopAttr *attr, int count) {
    if (count <= attr->room)
        return true;
    int room = attr->room ? 2 * attr->room : 8;
    room = room < count ? count : room;
    dp_arg *args = dp_realloc(DP_MEM_RUNTIME, attr->args, (size_t)room * sizeof *args);
    if (!args)
        return false;
    attr->args = args;
    attr->room = room;
    return true;
}

dp_status dp_op_attr_copy(struct aclopAttr *to, const struct aclopAttr *from) {
    if (!from || !from->count)
        return DP_OK;
    if (!reserve(to, from->count)) {
        no_memory(from->args[0].name);
        return DP_ERR_OUT_OF_MEMORY;
    }
    for (int i = 0; i < from->count; i++, to->count++) {
        if (!copy_arg(&to->args[i], &from->args[i])) {
            dp_op_attr_release(to);
            return DP_ERR_OUT_OF_MEMORY;
        }
    }
    return DP_OK;
}

static dp_status set(aclopAttr *attr, const char *name, dp_arg value) {
    aclopAttr *live = dp_object_get(DP_OBJECT_OP_ATTR, attr, "attr");
    if (!live)
        return DP_ERR_ARGUMENT;
    if (!name || !name[0])
        return dp_fail(DP_ERR_ARGUMENT, "attrName is %s, but must be the name of an attribute",
                       name ? "empty" : "NULL");
    if (strnlen(name, NAME_BYTES_MAX) >= NAME_BYTES_MAX)
        return dp_fail(DP_ERR_ARGUMENT, "attrName is \"%.40s...\", but must be shorter than %d bytes", name,
                       NAME_BYTES_MAX);
    dp_arg copy;
    value.name = name;
    if (!copy_arg(&copy, &value))
        return DP_ERR_OUT_OF_MEMORY;
    for (int i = 0; i < live->count; i++) {
        if (strcmp(live->args[i].name, name) == 0) {
            dp_free((void *)(uintptr_t)live->args[i].name);
            live->args[i] = copy;
            return DP_OK;
        }
    }
    bool full = live->count >= ATTRIBUTES_MAX, room = !full && reserve(live, live->count + 1);
    if (!room) {
        dp_free((void *)(uintptr_t)copy.name);
        if (full)
            return dp_fail(DP_ERR_ARGUMENT, "attr has %d attributes already, which is the most", ATTRIBUTES_MAX);
        no_memory(name);
        return DP_ERR_OUT_OF_MEMORY;
    }
    live->args[live->count++] = copy;
    return DP_OK;
}

aclError aclopSetAttrBool(aclopAttr *attr, const char *attrName, uint8_t attrValue) {
    dp_api_call call = DP_API_CALL();
    return dp_api_end(&call, set(attr, attrName, (dp_arg){.kind = DP_ARG_INTEGER, .as.integer = attrValue != 0}));
}

aclError aclopSetAttrInt(aclopAttr *attr, const char *attrName, int64_t attrValue) {
    dp_api_call call = DP_API_CALL();
    return dp_api_end(&call, set(attr, attrName, (dp_arg){.kind = DP_ARG_INTEGER, .as.integer = attrValue}));
}

aclError aclopSetAttrFloat(aclopAttr *attr, const char *attrName, float attrValue) {
    dp_api_call call = DP_API_CALL();
    return dp_api_end(&call, set(attr, attrName, (dp_arg){.kind = DP_ARG_REAL, .as.real = (double)attrValue}));
}

aclError aclopSetAttrDataType(aclopAttr *attr, const char *attrName, aclDataType attrValue) {
    dp_api_call call = DP_API_CALL();
    return dp_api_end(&call, set(attr, attrName, (dp_arg){.kind = DP_ARG_TYPE, .as.integer = attrValue}));
}

static dp_status check_text(const char *argument, const char *text) {
    if (!text)
        return dp_fail(DP_ERR_ARGUMENT, "%s is NULL, but must be a string", argument);
    return strnlen(text, TEXT_BYTES_MAX) < TEXT_BYTES_MAX
               ? DP_OK
               : dp_fail(DP_ERR_ARGUMENT, "%s is a string of more than %d bytes", argument, TEXT_BYTES_MAX);
}

aclError aclopSetAttrString(aclopAttr *attr, const char *attrName, const char *attrValue) {
    dp_api_call call = DP_API_CALL();
    dp_status status = check_text("attrValue", attrValue);
    if (status == DP_OK)
        status = set(attr, attrName, (dp_arg){.kind = DP_ARG_TEXT, .as.text = attrValue});
    return dp_api_end(&call, status);
}

static dp_status check_list(const char *argument, int count, const void *values) {
    if (count < 0 || count > VALUES_MAX)
        return dp_fail(DP_ERR_ARGUMENT, "%s is %d, but must be 0 to %d", argument, count, VALUES_MAX);
    return values || !count ? DP_OK
                            : dp_fail(DP_ERR_ARGUMENT, "values is NULL, but must be %s = %d values", argument, count);
}

aclError aclopSetAttrListBool(aclopAttr *attr, const char *attrName, int numValues, const uint8_t *values) {
    dp_api_call call = DP_API_CALL();
    dp_status status = check_list("numValues", numValues, values);
    bool *truth = status == DP_OK ? dp_alloc(DP_MEM_RUNTIME, (size_t)numValues + 1) : NULL;
    if (status == DP_OK && !truth)
        status = dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for numValues = %d bools: free some", numValues);
    for (int i = 0; status == DP_OK && i < numValues; i++)
        truth[i] = values[i] != 0;
    if (status == DP_OK)
        status = set(attr, attrName, (dp_arg){.kind = DP_ARG_BOOL_LIST, .count = numValues, .as.bools = truth});
    dp_free(truth);
    return dp_api_end(&call, status);
}

aclError aclopSetAttrListInt(aclopAttr *attr, const char *attrName, int numValues, const int64_t *values) {
    dp_api_call call = DP_API_CALL();
    dp_status status = check_list("numValues", numValues, values);
    if (status == DP_OK)
        status = set(attr, attrName, (dp_arg){.kind = DP_ARG_INT_LIST, .count = numValues, .as.integers = values});
    return dp_api_end(&call, status);
}

aclError aclopSetAttrListFloat(aclopAttr *attr, const char *attrName, int numValues, const float *values) {
    dp_api_call call = DP_API_CALL();
    dp_status status = check_list("numValues", numValues, values);
    if (status == DP_OK)
        status = set(attr, attrName, (dp_arg){.kind = DP_ARG_FLOAT_LIST, .count = numValues, .as.floats = values});
    return dp_api_end(&call, status);
}

aclError aclopSetAttrListString(aclopAttr *attr, const char *attrName, int numValues, const char **values) {
    dp_api_call call = DP_API_CALL();
    dp_status status = check_list("numValues", numValues, values);
    for (int i = 0; i < numValues && status == DP_OK; i++)
        status = check_text("values", values[i]);
    if (status == DP_OK)
        status = set(attr, attrName,
                     (dp_arg){.kind = DP_ARG_TEXT_LIST, .count = numValues, .as.texts = (const char *const *)values});
    return dp_api_end(&call, status);
}

/* A list of integers made of `count` values that are read one by one. */
static dp_status set_gathered(aclopAttr *attr, const char *name, int64_t *list, int64_t count) {
    dp_status status = set(attr, name, (dp_arg){.kind = DP_ARG_INT_LIST, .count = count, .as.integers = list});
    dp_free(list);
    return status;
}

static int64_t *new_list(int64_t count) {
    int64_t *list = dp_alloc(DP_MEM_RUNTIME, ((size_t)count + 1) * sizeof *list);
    if (!list)
        dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for %lld values: free some", (long long)count);
    return list;
}

aclError aclopSetAttrListDataType(aclopAttr *attr, const char *attrName, int numValues, const aclDataType *values) {
    dp_api_call call = DP_API_CALL();
    dp_status status = check_list("numValues", numValues, values);
    if (status != DP_OK)
        return dp_api_end(&call, status);
    int64_t *list = new_list(numValues);
    if (!list)
        return dp_api_end(&call, DP_ERR_OUT_OF_MEMORY);
    for (int i = 0; i < numValues; i++)
        list[i] = values[i];
    return dp_api_end(&call, set_gathered(attr, attrName, list, numValues));
}

aclError aclopSetAttrListListInt(aclopAttr *attr, const char *attrName, int numLists, const int *numValues,
                                 const int64_t *const values[]) {
    dp_api_call call = DP_API_CALL();
    int64_t total = 0;
    dp_status status = check_list("numLists", numLists, values);
    if (status == DP_OK && numLists && !numValues)
        status = dp_fail(DP_ERR_ARGUMENT, "numValues is NULL, but must be numLists = %d lengths", numLists);
    for (int i = 0; i < numLists && status == DP_OK; i++) {
        status = check_list("an entry of numValues", numValues[i], values[i]);
        total += numValues[i];
        if (status == DP_OK && total > VALUES_MAX)
            status = dp_fail(DP_ERR_ARGUMENT, "numValues has a sum of more than %d", VALUES_MAX);
    }
    int64_t *list = status == DP_OK ? new_list(total) : NULL;
    if (!list)
        return dp_api_end(&call, status == DP_OK ? DP_ERR_OUT_OF_MEMORY : status);
    for (int64_t i = 0, at = 0; i < numLists; i++)
        for (int k = 0; k < numValues[i]; k++)
            list[at++] = values[i][k];
    return dp_api_end(&call, set_gathered(attr, attrName, list, total));
}
