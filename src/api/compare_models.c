/* doppel/compare.h: files and texts around the comparison of models. */
#include "doppel/compare.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "graph/compare/compare.h"

enum { PATH_BYTES = 4096 };

static dp_status map_file(const char *path, void **out_bytes, size_t *out_size) {
    struct stat info;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0 || fstat(file, &info) != 0) {
        int error = errno;
        if (file >= 0)
            close(file);
        return dp_fail(DP_ERR_IO, "%s: %s", path, strerror(error));
    }
    *out_size = (size_t)info.st_size;
    *out_bytes = info.st_size > 0 ? mmap(NULL, *out_size, PROT_READ, MAP_PRIVATE, file, 0) : MAP_FAILED;
    int error = errno;
    close(file);
    if (*out_bytes != MAP_FAILED)
        return DP_OK;
    return dp_fail(DP_ERR_IO, "%s: %s", path, info.st_size > 0 ? strerror(error) : "the file is empty");
}

static dp_status compare(const dp_compare_options *o, dp_compare_totals *totals) {
    char folder[PATH_BYTES];
    void *onnx;
    size_t onnx_bytes = 0;
    dp_model_file *file = NULL;
    if (!o->onnx || !o->model || !o->row)
        return dp_fail(DP_ERR_ARGUMENT, "onnx, model and row must not be NULL");
    if (!o->dims != !o->ranks)
        return dp_fail(DP_ERR_ARGUMENT, "dims and ranks must be given together");
    dp_status status = map_file(o->onnx, &onnx, &onnx_bytes);
    if (status != DP_OK)
        return status;
    const char *slash = strrchr(o->onnx, '/');
    if ((size_t)snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - o->onnx) : 1, slash ? o->onnx : ".") >=
        sizeof folder)
        status = dp_fail(DP_ERR_ARGUMENT, "the name of the ONNX file is longer than %d bytes", PATH_BYTES - 1);
    if (status == DP_OK)
        status = dp_model_file_open(o->model, &file);
    if (status == DP_OK)
        status = dp_compare(onnx, onnx_bytes, folder, file, o->inputs, o, totals);
    dp_model_file_close(file);
    munmap(onnx, onnx_bytes);
    return status;
}

bool dp_compare_models(const dp_compare_options *options, dp_compare_totals *totals, char *message,
                       size_t message_bytes) {
    dp_status status =
        options && totals ? compare(options, totals) : dp_fail(DP_ERR_ARGUMENT, "options and totals must not be NULL");
    if (message_bytes)
        snprintf(message, message_bytes, "%s", status == DP_OK ? "" : dp_fail_message());
    return status == DP_OK;
}
