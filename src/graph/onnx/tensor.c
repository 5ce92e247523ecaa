#include "graph/onnx/tensor.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Sizes and type of the tensor into a value without contents. */
static dp_status make_value(dp_model *model, const char *name, const Onnx__TensorProto *t, dp_value **out_value) {
    const char *shown = name ? name : t->name ? t->name : "(no name)";
    int element = dp_onnx_element(t->data_type);
    if (element == DP_EL_NONE)
        return dp_fail(DP_ERR_UNSUPPORTED, "tensor \"%s\" has data type %d, which is not supported%s", shown,
                       t->data_type, t->data_type == 8 ? " (strings)" : "");
    if (t->n_dims > DP_TENSOR_DIMS)
        return dp_fail(DP_ERR_UNSUPPORTED, "tensor \"%s\" has %zu dimensions, but at most %d are supported", shown,
                       t->n_dims, DP_TENSOR_DIMS);
    for (size_t d = 0; d < t->n_dims; d++)
        if (t->dims[d] < 0)
            return dp_fail(DP_ERR_ARGUMENT, "tensor \"%s\": dimension %zu is %lld", shown, d, (long long)t->dims[d]);
    dp_value *value = dp_value_new(model, name);
    if (!value)
        return DP_ERR_OUT_OF_MEMORY;
    dp_tensor probe = {.element = element, .rank = (int)t->n_dims};
    for (int d = 0; d < probe.rank; d++)
        probe.dims[d] = t->dims[d];
    dp_status status = dp_tensor_check(&probe, shown);
    if (status != DP_OK)
        return status;
    if (dp_tensor_count(&probe) > (int64_t)1 << 40)
        return dp_fail(DP_ERR_ARGUMENT, "tensor \"%s\" has %lld elements, more than any memory holds", shown,
                       (long long)dp_tensor_count(&probe));
    dp_value_shape(value, element, t->dims, (int)t->n_dims);
    *out_value = value;
    return DP_OK;
}

static dp_status wrong_count(const dp_value *value, size_t has) {
    return dp_fail(DP_ERR_ARGUMENT, "tensor \"%s\" has %zu bytes of contents, but its shape needs %zu", value->name,
                   has, dp_value_bytes(value));
}

/* Contents in one of the typed fields: small types lie widened in int32_data and uint64_data. */
static dp_status from_fields(dp_value *value, const Onnx__TensorProto *t) {
    size_t n = (size_t)dp_tensor_count(&value->tensor), width = dp_element_bytes(value->tensor.element);
    char *to = value->tensor.base;
    switch (value->tensor.element) {
    case DP_F32:
    case DP_EL_C64:
        if (t->n_float_data * sizeof(float) != n * width)
            return wrong_count(value, t->n_float_data * sizeof(float));
        memcpy(to, t->float_data, n * width);
        return DP_OK;
    case DP_F64:
    case DP_EL_C128:
        if (t->n_double_data * sizeof(double) != n * width)
            return wrong_count(value, t->n_double_data * sizeof(double));
        memcpy(to, t->double_data, n * width);
        return DP_OK;
    case DP_I64:
        if (t->n_int64_data != n)
            return wrong_count(value, t->n_int64_data * width);
        memcpy(to, t->int64_data, n * width);
        return DP_OK;
    case DP_U32:
    case DP_U64:
        if (t->n_uint64_data != n)
            return wrong_count(value, t->n_uint64_data * width);
        for (size_t i = 0; i < n; i++)
            memcpy(to + i * width, &t->uint64_data[i], width); /* little-endian: the low bytes come first */
        return DP_OK;
    default:
        if (t->n_int32_data != n)
            return wrong_count(value, t->n_int32_data * width);
        for (size_t i = 0; i < n; i++)
            memcpy(to + i * width, &t->int32_data[i], width);
        return DP_OK;
    }
}

static const char *entry(const Onnx__TensorProto *t, const char *key) {
    for (size_t i = 0; i < t->n_external_data; i++)
        if (t->external_data[i]->key && strcmp(t->external_data[i]->key, key) == 0)
            return t->external_data[i]->value;
    return NULL;
}

/* A number of an entry; false when it is there but is none. */
static bool entry_number(const Onnx__TensorProto *t, const char *key, long long otherwise, long long *out) {
    const char *text = entry(t, key);
    char *end;
    *out = otherwise;
    if (!text)
        return true;
    errno = 0;
    *out = strtoll(text, &end, 10);
    return end != text && !*end && !errno && *out >= 0;
}

static dp_status read_all(int file, const dp_value *value, const char *path, off_t offset) {
    size_t bytes = dp_value_bytes(value), done = 0;
    while (done < bytes) {
        ssize_t got = pread(file, (char *)value->tensor.base + done, bytes - done, offset + (off_t)done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return dp_fail(DP_ERR_IO, "%s: %s", path, strerror(errno));
        if (got == 0)
            return dp_fail(DP_ERR_ARGUMENT, "%s ends %zu bytes before the end of tensor \"%s\"", path, bytes - done,
                           value->name);
        done += (size_t)got;
    }
    return DP_OK;
}

/*
 * Opens `location` below `folder`: a regular file, no link out of it. A model and what lies beside it may come from anywhere, so
 * that nothing else of the user's is read, and nothing is waited for.
 */
static dp_status open_below(const char *folder, const char *location, const char *path, const char *name, int *out_file) {
    char above[PATH_MAX], real[PATH_MAX];
    struct stat about;
    if (location[0] == '/' || strcmp(location, "..") == 0 || strncmp(location, "../", 3) == 0 || strstr(location, "/../"))
        return dp_fail(DP_ERR_ARGUMENT, "tensor \"%s\": external location \"%s\" must be a path below the model's folder", name, location);
    if (!realpath(folder, above) || !realpath(path, real))
        return dp_fail(DP_ERR_IO, "%s (contents of tensor \"%s\"): %s", path, name, strerror(errno));
    size_t length = strlen(above);
    if (strncmp(real, above, length) != 0 || (real[length] != '/' && length > 1))
        return dp_fail(DP_ERR_ARGUMENT, "tensor \"%s\": external location \"%s\" leads out of the model's folder", name, location);
    int file = open(real, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    if (file < 0)
        return dp_fail(DP_ERR_IO, "%s (contents of tensor \"%s\"): %s", path, name, strerror(errno));
    if (fstat(file, &about) != 0 || !S_ISREG(about.st_mode)) {
        close(file);
        return dp_fail(DP_ERR_ARGUMENT, "tensor \"%s\": external location \"%s\" is no file", name, location);
    }
    *out_file = file;
    return DP_OK;
}

static dp_status from_file(dp_model *model, dp_value *value, const Onnx__TensorProto *t, const char *folder) {
    const char *location = entry(t, "location");
    long long offset, length;
    struct stat about;
    int file;
    if (!folder)
        return dp_fail(DP_ERR_UNSUPPORTED,
                       "tensor \"%s\" lies in a file of its own, which is possible only when the model is read from a "
                       "file",
                       value->name);
    if (!location || !*location)
        return dp_fail(DP_ERR_ARGUMENT, "tensor \"%s\" lies in a file without a name", value->name);
    if (!entry_number(t, "offset", 0, &offset) ||
        !entry_number(t, "length", (long long)dp_value_bytes(value), &length))
        return dp_fail(DP_ERR_ARGUMENT, "tensor \"%s\": offset or length of its external data is no number from 0",
                       value->name);
    if ((size_t)length != dp_value_bytes(value))
        return wrong_count(value, (size_t)length);
    const char *path = dp_arena_format(&model->arena, "%s/%s", folder, location);
    if (!path)
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for the name of a file: free some");
    dp_status status = open_below(folder, location, path, value->name, &file);
    if (status != DP_OK)
        return status;
    if (fstat(file, &about) != 0 || offset > about.st_size || length > about.st_size - offset)
        status = dp_fail(DP_ERR_ARGUMENT, "%s has %lld bytes, but tensor \"%s\" wants %lld from %lld on", path,
                         (long long)about.st_size, value->name, length, offset);
    if (status == DP_OK) {
        value->tensor.base = dp_model_alloc(model, dp_value_bytes(value));
        status = value->tensor.base ? read_all(file, value, path, offset) : DP_ERR_OUT_OF_MEMORY;
    }
    close(file);
    return status;
}

dp_status dp_onnx_constant(dp_model *model, const char *name, const Onnx__TensorProto *t, const char *folder,
                           dp_value **out_value) {
    dp_status status = make_value(model, name, t, out_value);
    if (status != DP_OK)
        return status;
    dp_value *value = *out_value;
    value->is_constant = true;
    if (t->data_location == 1)
        return from_file(model, value, t, folder);
    size_t bytes = dp_value_bytes(value);
    if (t->has_raw_data && t->raw_data.len != bytes)
        return wrong_count(value, t->raw_data.len);
    if (!t->has_raw_data && bytes / 16 > t->n_float_data + t->n_double_data + t->n_int32_data + t->n_int64_data +
                                             t->n_uint64_data)
        return wrong_count(value, 0); /* before memory is asked for that a damaged shape invents */
    value->tensor.base = dp_model_alloc(model, bytes);
    if (!value->tensor.base)
        return DP_ERR_OUT_OF_MEMORY;
    if (bytes == 0)
        return DP_OK;
    if (!t->has_raw_data)
        return from_fields(value, t);
    memcpy(value->tensor.base, t->raw_data.data, bytes);
    return DP_OK;
}
