#include "graph/npy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { PREFIX = 10, HEADER_MOST = 4096 };

static dp_status no_array(const char *path, const char *why) {
    return dp_fail(DP_ERR_ARGUMENT, "%s is no array that numpy.save has written: %s", path, why);
}

/* "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 3, 4), }" */
static dp_status parse(const char *path, const char *header, dp_tensor *tensor) {
    const char *descr = strstr(header, "'descr'"), *order = strstr(header, "'fortran_order'"),
               *shape = strstr(header, "'shape'");
    if (!descr || !order || !shape || !(shape = strchr(shape, '(')))
        return no_array(path, "its header is not complete");
    const char *type = strchr(descr + 7, '\'');
    tensor->element = !type                            ? DP_EL_NONE
                      : strncmp(type, "'<f4'", 5) == 0 ? DP_F32
                      : strncmp(type, "'<f8'", 5) == 0 ? DP_F64
                      : strncmp(type, "'|u1'", 5) == 0 ? DP_U8
                                                       : DP_EL_NONE;
    if (tensor->element == DP_EL_NONE)
        return dp_fail(DP_ERR_UNSUPPORTED, "%s: elements must be float32, float64 or uint8", path);
    if (strncmp(order + 15 + strspn(order + 15, ": "), "False", 5) != 0)
        return dp_fail(DP_ERR_UNSUPPORTED, "%s is in Fortran's order: save numpy.ascontiguousarray of it", path);
    int64_t count = 1;
    for (shape++; tensor->rank < DP_TENSOR_DIMS; tensor->rank++) {
        char *end;
        shape += strspn(shape, ", ");
        if (*shape == ')')
            break;
        errno = 0;
        long long dim = strtoll(shape, &end, 10);
        if (end == shape || errno || dim < 0 || __builtin_mul_overflow(count, dim, &count))
            return no_array(path, "its shape cannot be read");
        tensor->dims[tensor->rank] = dim;
        shape = end;
    }
    return *shape == ')' ? DP_OK : no_array(path, "it has too many dimensions");
}

static dp_status read(const char *path, FILE *file, dp_tensor *tensor) {
    unsigned char prefix[PREFIX + 2];
    char header[HEADER_MOST + 1];
    if (fread(prefix, 1, PREFIX, file) != PREFIX || memcmp(prefix, "\x93NUMPY", 6) != 0)
        return no_array(path, "it begins otherwise");
    size_t length = prefix[8] | (size_t)prefix[9] << 8;
    if (prefix[6] > 1) { /* two bytes more */
        if (fread(prefix + PREFIX, 1, 2, file) != 2)
            return no_array(path, "it is cut off");
        length |= (size_t)prefix[10] << 16 | (size_t)prefix[11] << 24;
    }
    if (length > HEADER_MOST || fread(header, 1, length, file) != length)
        return no_array(path, "its header is cut off");
    header[length] = '\0';
    dp_status status = parse(path, header, tensor);
    if (status != DP_OK)
        return status;
    int64_t stride = 1;
    for (int d = tensor->rank - 1; d >= 0; d--) {
        tensor->strides[d] = stride;
        stride *= tensor->dims[d] ? tensor->dims[d] : 1;
    }
    status = dp_tensor_check(tensor, path);
    if (status != DP_OK)
        return status;
    size_t bytes = (size_t)dp_tensor_count(tensor) * dp_element_bytes(tensor->element);
    long at = ftell(file);
    if (at < 0 || fseek(file, 0, SEEK_END) != 0 || ftell(file) < at || (size_t)(ftell(file) - at) < bytes ||
        fseek(file, at, SEEK_SET) != 0)
        return no_array(path, "it is shorter than its shape says");
    tensor->base = dp_alloc(DP_MEM_GRAPH, bytes + 1);
    if (!tensor->base)
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for %s (%zu bytes)", path, bytes);
    if (fread(tensor->base, 1, bytes, file) == bytes)
        return DP_OK;
    dp_free(tensor->base);
    tensor->base = NULL;
    return no_array(path, "it is cut off");
}

dp_status dp_npy_read(const char *path, dp_tensor *tensor) {
    FILE *file = fopen(path, "rb");
    if (!file)
        return dp_fail(DP_ERR_IO, "%s: %s", path, strerror(errno));
    *tensor = (dp_tensor){.element = DP_EL_NONE};
    dp_status status = read(path, file, tensor);
    fclose(file);
    return status;
}
