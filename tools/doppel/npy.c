#include "npy.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEADER_MAX = 1 << 20 };

static bool fail(char *message, const char *path, const char *sentence) {
    snprintf(message, NPY_MESSAGE, "%.180s: %s", path, sentence);
    return false;
}

/* The text behind 'key': in the header's dictionary; NULL: there is no such key. */
static const char *value_of(const char *header, const char *key) {
    char quoted[32];
    snprintf(quoted, sizeof quoted, "'%s'", key);
    const char *at = strstr(header, quoted);
    if (!at)
        return NULL;
    at += strlen(quoted);
    while (isspace((unsigned char)*at))
        at++;
    if (*at++ != ':')
        return NULL;
    while (isspace((unsigned char)*at))
        at++;
    return at;
}

/* "'<f4'": byte order, kind, size. */
static bool parse_type(const char *text, npy_array *out, bool *out_swapped) {
    char order = 0, kind = 0, close = 0;
    int size = 0;
    if (!text || sscanf(text, "'%c%c%2d%c", &order, &kind, &size, &close) != 4 || close != '\'')
        return false;
    bool plain = (kind == 'b' && size == 1) ||
                 (strchr("iu", kind) && (size == 1 || size == 2 || size == 4 || size == 8)) ||
                 (kind == 'f' && (size == 2 || size == 4 || size == 8)) || (kind == 'c' && (size == 8 || size == 16));
    if (!plain || !strchr("<>|=", order))
        return false;
    out->kind = kind;
    out->item_bytes = size;
    *out_swapped = order == '>' && size > 1;
    return true;
}

/* "(2, 3)", "(5,)", "()". Multiplies the size up, too. */
static bool parse_shape(const char *text, npy_array *out) {
    if (!text || *text++ != '(')
        return false;
    out->bytes = (size_t)out->item_bytes;
    for (;;) {
        while (*text == ' ' || *text == ',')
            text++;
        if (*text == ')')
            return true;
        char *end;
        errno = 0;
        long long dim = strtoll(text, &end, 10);
        if (end == text || errno || dim < 0 || out->rank == NPY_DIMS || !strchr(",) L", *end))
            return false;
        out->dims[out->rank++] = dim;
        if (__builtin_mul_overflow(out->bytes, (size_t)dim, &out->bytes))
            return false;
        text = *end == 'L' ? end + 1 : end;
    }
}

static bool read_header(FILE *file, const char *path, char **out_header, char *message) {
    unsigned char start[12];
    if (fread(start, 1, 10, file) != 10 || memcmp(start, "\x93NUMPY", 6) != 0)
        return fail(message, path, "not a .npy file: it does not begin with the word NUMPY");
    if (start[6] < 1 || start[6] > 3)
        return fail(message, path, "its .npy version is none of 1, 2 and 3");
    size_t bytes = start[8] | (size_t)start[9] << 8;
    if (start[6] > 1) {
        if (fread(start + 10, 1, 2, file) != 2)
            return fail(message, path, "the file is cut off in its header");
        bytes |= (size_t)start[10] << 16 | (size_t)start[11] << 24;
    }
    if (bytes > HEADER_MAX)
        return fail(message, path, "its header is longer than 1 MiB");
    char *header = malloc(bytes + 1);
    if (!header)
        return fail(message, path, "no memory for its header");
    if (fread(header, 1, bytes, file) != bytes) {
        free(header);
        return fail(message, path, "the file is cut off in its header");
    }
    header[bytes] = '\0';
    *out_header = header;
    return true;
}

static void swap_bytes(npy_array *a) {
    size_t size = (size_t)a->item_bytes / (a->kind == 'c' ? 2 : 1);
    unsigned char *data = a->data;
    for (size_t i = 0; i + size <= a->bytes; i += size)
        for (size_t k = 0; k < size / 2; k++) {
            unsigned char byte = data[i + k];
            data[i + k] = data[i + size - 1 - k];
            data[i + size - 1 - k] = byte;
        }
}

/* From Fortran order (first index fastest) to C order. */
static bool transpose(npy_array *a) {
    size_t item = (size_t)a->item_bytes, strides[NPY_DIMS], stride = item;
    int64_t index[NPY_DIMS] = {0};
    if (a->bytes == 0 || a->rank < 2)
        return true;
    unsigned char *turned = malloc(a->bytes), *to = turned;
    const unsigned char *from = a->data;
    if (!turned)
        return false;
    for (int d = 0; d < a->rank; d++) {
        strides[d] = stride;
        stride *= (size_t)a->dims[d];
    }
    for (size_t n = a->bytes / item, at = 0; n > 0; n--, to += item) {
        memcpy(to, from + at, item);
        for (int d = a->rank - 1; d >= 0; d--) {
            at += strides[d];
            if (++index[d] < a->dims[d])
                break;
            at -= strides[d] * (size_t)a->dims[d];
            index[d] = 0;
        }
    }
    free(a->data);
    a->data = turned;
    return true;
}

static bool read_data(FILE *file, const char *path, npy_array *out, bool swapped, bool fortran, char *message) {
    long here = ftell(file), end = here >= 0 && fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
    if (end < 0 || fseek(file, here, SEEK_SET) != 0)
        return fail(message, path, strerror(errno));
    if ((size_t)(end - here) < out->bytes) {
        char sentence[120];
        snprintf(sentence, sizeof sentence, "the file is cut off: its shape asks for %zu bytes of data, %ld are there",
                 out->bytes, end - here);
        return fail(message, path, sentence);
    }
    out->data = malloc(out->bytes + 1);
    if (!out->data)
        return fail(message, path, "no memory for its data");
    if (fread(out->data, 1, out->bytes, file) != out->bytes)
        return fail(message, path, "it could not be read to its end");
    if (swapped)
        swap_bytes(out);
    return !fortran || transpose(out) || fail(message, path, "no memory to transpose it");
}

bool npy_read(const char *path, npy_array *out, char *message) {
    memset(out, 0, sizeof *out);
    FILE *file = fopen(path, "rb");
    if (!file)
        return fail(message, path, strerror(errno));
    char *header = NULL;
    bool swapped = false, good = read_header(file, path, &header, message);
    if (good && !parse_type(value_of(header, "descr"), out, &swapped))
        good = fail(message, path, "its element type is no plain number (b1, i1 to i8, u1 to u8, f2, f4, f8, c8, c16)");
    if (good && !parse_shape(value_of(header, "shape"), out))
        good = fail(message, path, "its header has no shape that can be understood");
    const char *order = good ? value_of(header, "fortran_order") : NULL;
    if (good && (!order || (strncmp(order, "True", 4) != 0 && strncmp(order, "False", 5) != 0)))
        good = fail(message, path, "its header does not say whether it is in Fortran order");
    if (good)
        good = read_data(file, path, out, swapped, order[0] == 'T', message);
    free(header);
    fclose(file);
    if (!good)
        npy_free(out);
    return good;
}

void npy_free(npy_array *array) {
    free(array->data);
    memset(array, 0, sizeof *array);
}

bool npy_write(const char *path, const char *descr, const int64_t *dims, int rank, const void *data, size_t bytes,
               char *message) {
    char header[1024];
    int n = snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
    for (int d = 0; d < rank; d++)
        n += snprintf(header + n, sizeof header - (size_t)n, "%lld,%s", (long long)dims[d], d + 1 < rank ? " " : "");
    n += snprintf(header + n, sizeof header - (size_t)n, "), }");
    while ((10 + n + 1) % 64)
        header[n++] = ' ';
    header[n++] = '\n';
    const unsigned char start[10] = {
        0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (unsigned char)(n & 255), (unsigned char)(n >> 8)};
    FILE *file = fopen(path, "wb");
    if (!file)
        return fail(message, path, strerror(errno));
    bool good = fwrite(start, 1, sizeof start, file) == sizeof start &&
                fwrite(header, 1, (size_t)n, file) == (size_t)n && fwrite(data, 1, bytes, file) == bytes;
    if (fclose(file) != 0 || !good)
        return fail(message, path, strerror(errno));
    return true;
}
