/*
 * npy.h - arrays in files of the NumPy format, versions 1 to 3.
 */
#ifndef DOPPEL_TOOLS_NPY_H
#define DOPPEL_TOOLS_NPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NPY_DIMS = 32, NPY_MESSAGE = 400 };

typedef struct npy_array {
    char kind;      /* as NumPy names it: b (bool), i, u, f, c (complex) */
    int item_bytes; /* 1, 2, 4, 8, 16 */
    int rank;
    int64_t dims[NPY_DIMS];
    void *data; /* C order, this machine's byte order; npy_free frees it */
    size_t bytes;
} npy_array;

/*
 * Reads a file. Arrays in Fortran order are transposed, those of the other byte order swapped. False with a sentence in
 * `message` (NPY_MESSAGE bytes): not such a file, cut off, or of a type that is no plain number.
 */
bool npy_read(const char *path, npy_array *out, char *message);
void npy_free(npy_array *array);

/* Writes (or replaces) a file; descr is the type as NumPy spells it: "<f4". False with a sentence. */
bool npy_write(const char *path, const char *descr, const int64_t *dims, int rank, const void *data, size_t bytes,
               char *message);

#endif
