/* doppel/compile.h: single operators from a description in JSON, as atc --singleop takes it. */
#include "doppel/compile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "api/aclnn.h"
#include "api/compile_file.h"
#include "graph/model_file.h"
#include "ops/typed/typed.h"

static bool end(dp_status status, char *message, size_t message_bytes) {
    if (message_bytes)
        snprintf(message, message_bytes, "%s", status == DP_OK ? "" : dp_fail_message());
    return status == DP_OK;
}

#ifdef DP_HAVE_CJSON

#include <cJSON.h>

enum { OPERATORS_MAX = 1000, ENDS_MAX = 1024, LIST_MAX = 1 << 16 };

/* "float16", as in the vendor's files; DP_EL_NONE: no such type. */
static int element_named(const char *name) {
    static const struct {
        const char *name;
        int element;
    } all[] = {{"float16", DP_F16},       {"float", DP_F32},    {"float32", DP_F32}, {"double", DP_F64},
               {"bfloat16", DP_BF16},     {"int8", DP_I8},      {"uint8", DP_U8},    {"int16", DP_I16},
               {"uint16", DP_U16},        {"int32", DP_I32},    {"uint32", DP_U32},  {"int64", DP_I64},
               {"uint64", DP_U64},        {"bool", DP_EL_BOOL}, {"bf16", DP_BF16},   {"complex64", DP_EL_C64},
               {"complex128", DP_EL_C128}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (strcmp(all[i].name, name) == 0)
            return all[i].element;
    return DP_EL_NONE;
}

static const char *text_of(const cJSON *object, const char *key) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    return cJSON_IsString(item) ? item->valuestring : NULL;
}

/* Numbers in a constant's memory. */
static dp_status read_contents(const cJSON *list, dp_value *value) {
    int64_t n = dp_tensor_count(&value->tensor), i = 0;
    const cJSON *item;
    if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) != n)
        return dp_fail(DP_ERR_ARGUMENT, "const_value must be a list of %lld numbers, as the shape says", (long long)n);
    cJSON_ArrayForEach(item, list) {
        char *to = (char *)value->tensor.base + (size_t)i++ * dp_element_bytes(value->tensor.element);
        double number = item->valuedouble;
        if (!cJSON_IsNumber(item))
            return dp_fail(DP_ERR_ARGUMENT, "const_value must be a list of numbers");
        if (value->tensor.element == DP_F32)
            *(float *)to = (float)number;
        else if (value->tensor.element == DP_I32 && number >= INT32_MIN && number <= INT32_MAX)
            *(int32_t *)to = (int32_t)number;
        else if (value->tensor.element == DP_I64 && number >= -0x1p53 && number <= 0x1p53)
            *(int64_t *)to = (int64_t)number;
        else
            return dp_fail(DP_ERR_ARGUMENT, "const_value must be numbers of type float, int32 or int64");
    }
    return DP_OK;
}

static dp_status read_dims(const cJSON *desc, int64_t *dims, int *out_rank) {
    const cJSON *shape = cJSON_GetObjectItemCaseSensitive(desc, "shape"), *item;
    *out_rank = 0;
    if (!cJSON_IsArray(shape) || cJSON_GetArraySize(shape) > DP_TENSOR_DIMS)
        return dp_fail(DP_ERR_ARGUMENT, "shape must be a list of at most %d numbers", DP_TENSOR_DIMS);
    cJSON_ArrayForEach(item, shape) {
        double dim = cJSON_IsNumber(item) ? item->valuedouble : -2;
        if (dim < 0 && dim >= -2 && cJSON_IsNumber(item))
            return dp_fail(DP_ERR_UNSUPPORTED,
                           "an open dimension needs no compiling: call aclopExecuteV2 with the shape of the moment");
        if (!(dim >= 0 && dim <= 0x1p53) || dim != (double)(int64_t)dim)
            return dp_fail(DP_ERR_ARGUMENT, "a dimension is no whole number from 0");
        dims[(*out_rank)++] = (int64_t)dim;
    }
    return DP_OK;
}

/* *out_value stays NULL for an optional input that is absent: its type is UNDEFINED. */
static dp_status read_desc(dp_model *model, const cJSON *desc, const char *name, dp_value **out_value) {
    const char *type = text_of(desc, "type");
    int64_t dims[DP_TENSOR_DIMS];
    int rank;
    *out_value = NULL;
    if (type && strcmp(type, "UNDEFINED") == 0)
        return DP_OK;
    int element = type ? element_named(type) : DP_EL_NONE;
    if (element == DP_EL_NONE)
        return dp_fail(DP_ERR_ARGUMENT, "type is \"%.40s\", but must be one like float16, float, int32",
                       type ? type : "");
    dp_status status = read_dims(desc, dims, &rank);
    if (status != DP_OK)
        return status;
    dp_tensor probe = {.element = element, .rank = rank};
    memcpy(probe.dims, dims, (size_t)rank * sizeof *dims);
    status = dp_tensor_check(&probe, name);
    if (status != DP_OK)
        return status;
    const cJSON *contents = cJSON_GetObjectItemCaseSensitive(desc, "const_value");
    if (contents && dp_tensor_count(&probe) > LIST_MAX)
        return dp_fail(DP_ERR_ARGUMENT, "const_value may have %d numbers", LIST_MAX);
    dp_value *value = contents ? dp_value_constant(model, name, element, dims, rank, NULL) : dp_value_new(model, name);
    if (!value)
        return DP_ERR_OUT_OF_MEMORY;
    if (contents)
        status = read_contents(contents, value);
    else
        dp_value_shape(value, element, dims, rank);
    *out_value = value;
    return status;
}

static dp_status read_list(dp_node *node, const char *name, const cJSON *list, bool real) {
    int n = cJSON_GetArraySize(list), i = 0;
    if (!cJSON_IsArray(list) || n > LIST_MAX)
        return dp_fail(DP_ERR_ARGUMENT, "attribute %.60s: value must be a list of at most %d numbers", name, LIST_MAX);
    int64_t *integers = dp_model_alloc(node->graph->model, (size_t)n * sizeof *integers + 1);
    float *floats = dp_model_alloc(node->graph->model, (size_t)n * sizeof *floats + 1);
    const cJSON *item;
    if (!integers || !floats)
        return DP_ERR_OUT_OF_MEMORY;
    cJSON_ArrayForEach(item, list) {
        double number = cJSON_IsNumber(item) ? item->valuedouble : cJSON_IsBool(item) ? cJSON_IsTrue(item) : 0x1p60;
        if (!real && !(number >= -0x1p53 && number <= 0x1p53))
            return dp_fail(DP_ERR_ARGUMENT, "attribute %.60s: value must be a list of numbers", name);
        floats[i] = (float)number;
        integers[i++] = real ? 0 : (int64_t)number;
    }
    dp_arg arg = {.name = name, .kind = real ? DP_ARG_FLOAT_LIST : DP_ARG_INT_LIST, .count = n};
    if (real)
        arg.as.floats = floats;
    else
        arg.as.integers = integers;
    return dp_node_set(node, &arg);
}

/* Whether the register says that the attribute is an element type; numbers of the vendor's then. */
static bool is_type(const dp_typed *type, const char *name) {
    for (int p = 0; p < type->op.n_params; p++)
        if (strcmp(type->op.params[p].name, name) == 0)
            return type->op.params[p].kind == DP_ARG_TYPE;
    return false;
}

static dp_status read_attribute(dp_node *node, const dp_typed *type, const cJSON *attribute) {
    const char *name = text_of(attribute, "name"), *kind = text_of(attribute, "type");
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(attribute, "value");
    if (!name || !kind || !value)
        return dp_fail(DP_ERR_ARGUMENT, "an attribute must have name, type and value");
    if (strcmp(kind, "string") == 0 && cJSON_IsString(value))
        return dp_node_set_text(node, name, value->valuestring);
    if (strcmp(kind, "bool") == 0 && cJSON_IsBool(value))
        return dp_node_set_integer(node, name, cJSON_IsTrue(value));
    if (strcmp(kind, "float") == 0 && cJSON_IsNumber(value))
        return dp_node_set_real(node, name, value->valuedouble);
    if (strcmp(kind, "data_type") == 0 && cJSON_IsString(value))
        return dp_node_set_integer(node, name, element_named(value->valuestring));
    bool whole = cJSON_IsNumber(value) && value->valuedouble >= -0x1p53 && value->valuedouble <= 0x1p53;
    if ((strcmp(kind, "int") == 0 || strcmp(kind, "data_type") == 0) && whole) {
        int64_t number = (int64_t)value->valuedouble;
        return dp_node_set_integer(node, name, is_type(type, name) ? dp_aclnn_element((aclDataType)number) : number);
    }
    if (strcmp(kind, "list_int") == 0 || strcmp(kind, "list_bool") == 0)
        return read_list(node, name, value, false);
    if (strcmp(kind, "list_float") == 0)
        return read_list(node, name, value, true);
    return dp_fail(
        DP_ERR_ARGUMENT,
        "attribute %.60s: type is \"%.40s\", which does not fit the value, or is none of int, float, bool, string, "
        "data_type, list_int, list_float, list_bool",
        name, kind);
}

/* Inputs or outputs; constants are no inputs of the model. */
static dp_status read_ends(dp_graph *graph, dp_node *node, const cJSON *list, bool outputs) {
    const cJSON *desc;
    int i = 0;
    cJSON_ArrayForEach(desc, list) {
        char name[32];
        dp_value *value;
        snprintf(name, sizeof name, outputs ? "y%d" : "x%d", i);
        dp_status status = read_desc(graph->model, desc, name, &value);
        if (status != DP_OK)
            return status;
        if (outputs && !value)
            return dp_fail(DP_ERR_ARGUMENT, "output_desc %d has no type", i);
        if (outputs) {
            dp_node_output(node, i, value);
            graph->outputs[graph->n_outputs++] = value;
        } else {
            node->inputs[i] = value;
            if (value && !value->is_constant)
                graph->inputs[graph->n_inputs++] = value;
        }
        i++;
    }
    return DP_OK;
}

static dp_status build(dp_model *model, const cJSON *operator, const char * type) {
    const cJSON *inputs = cJSON_GetObjectItemCaseSensitive(operator, "input_desc"), *attribute;
    const cJSON *outputs = cJSON_GetObjectItemCaseSensitive(operator, "output_desc");
    const cJSON *attributes = cJSON_GetObjectItemCaseSensitive(operator, "attr");
    int n_inputs = cJSON_GetArraySize(inputs), n_outputs = cJSON_GetArraySize(outputs);
    const dp_typed *typed;
    if (n_inputs > ENDS_MAX || n_outputs > ENDS_MAX)
        return dp_fail(DP_ERR_ARGUMENT, "there are more than %d inputs or outputs", ENDS_MAX);
    dp_status status = dp_typed_find(type, &typed);
    if (status != DP_OK)
        return status;
    dp_node *node = dp_node_new(model->graph, NULL, type, type, n_inputs, n_outputs);
    model->graph->inputs = dp_model_alloc(model, (size_t)n_inputs * sizeof(dp_value *) + 1);
    model->graph->outputs = dp_model_alloc(model, (size_t)n_outputs * sizeof(dp_value *) + 1);
    if (!node || !model->graph->inputs || !model->graph->outputs)
        return DP_ERR_OUT_OF_MEMORY;
    status = read_ends(model->graph, node, inputs, false);
    if (status == DP_OK)
        status = read_ends(model->graph, node, outputs, true);
    cJSON_ArrayForEach(attribute, attributes) {
        if (status != DP_OK)
            break;
        status = read_attribute(node, typed, attribute);
    }
    return status;
}

static dp_status compile_one(const cJSON *operator, int index, const char *folder) {
    const char *type = text_of(operator, "op");
    char path[DP_PATH_BYTES], reason[512];
    if (!type || strchr(type, '/'))
        return dp_fail(DP_ERR_ARGUMENT, "operator %d of the list has no \"op\", the name of its type", index);
    dp_model *model = dp_model_new(type);
    if (!model)
        return DP_ERR_OUT_OF_MEMORY;
    dp_status status = build(model, operator, type);
    if (status == DP_OK && (size_t)snprintf(path, sizeof path, "%s/%d_%s.om", folder, index, type) >= sizeof path)
        status = dp_fail(DP_ERR_ARGUMENT, "the name of the file is longer than %d bytes", DP_PATH_BYTES - 1);
    if (status == DP_OK)
        status = dp_model_file_write(path, NULL, &model, 1);
    dp_model_free(model);
    if (status == DP_OK)
        return DP_OK;
    snprintf(reason, sizeof reason, "%s", dp_fail_message());
    return dp_fail(status, "operator %d (%.60s): %s", index, type, reason);
}

static dp_status compile_all(const char *json, const char *folder) {
    void *text;
    size_t bytes;
    int index = 0;
    dp_status status = dp_file_read("singleop", json, &text, &bytes);
    if (status != DP_OK)
        return status;
    cJSON *list = cJSON_ParseWithLength(text, bytes);
    const cJSON *operator;
    dp_free(text);
    if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) < 1 || cJSON_GetArraySize(list) > OPERATORS_MAX)
        status =
            dp_fail(DP_ERR_ARGUMENT, "singleop %s must hold a list of 1 to %d operators in JSON", json, OPERATORS_MAX);
    else if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        status = dp_fail(DP_ERR_IO, "output %s: %s", folder, strerror(errno));
    cJSON_ArrayForEach(operator, list) {
        if (status != DP_OK)
            break;
        status = compile_one(operator, index++, folder);
    }
    cJSON_Delete(list);
    return status;
}

#else

static dp_status compile_all(const char *json, const char *folder) {
    (void)json, (void)folder;
    return dp_fail(DP_ERR_UNSUPPORTED,
                   "this Doppel was built without cJSON, so that it reads no descriptions of operators");
}

#endif

bool dp_compile_operators(const char *json, const char *output, const char *soc_version, char *message,
                          size_t message_bytes) {
    if (!json || !output)
        return end(dp_fail(DP_ERR_ARGUMENT, "singleop and output must be given"), message, message_bytes);
    dp_status status = dp_soc_check(soc_version);
    return end(status == DP_OK ? compile_all(json, output) : status, message, message_bytes);
}
