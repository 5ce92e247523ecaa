/*
 * text.h - a growing string. A failed allocation ends the program with a sentence: a compiler driver has nothing better to do.
 */
#ifndef ASCC_TEXT_H
#define ASCC_TEXT_H

#include "doppel/abi.h"

typedef struct text {
    char *data; /* NUL-terminated once anything was added */
    size_t size, capacity;
} text;

void *ascc_alloc(void *block, size_t size_bytes); /* realloc that does not fail */

void text_add(text *t, const char *bytes, size_t size);
void text_puts(text *t, const char *string);
void text_printf(text *t, const char *format, ...) DP_PRINTF(2, 3);
/* As the inside of a C string literal. */
void text_escaped(text *t, const char *bytes, size_t size);
void text_free(text *t);

/* Whole file; "-" is standard input. False with errno set. */
bool text_read(text *t, const char *path);
bool text_write(const text *t, const char *path);

#endif
