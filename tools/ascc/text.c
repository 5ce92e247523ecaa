#include "text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *ascc_alloc(void *block, size_t size_bytes) {
    void *out = realloc(block, size_bytes ? size_bytes : 1);
    if (!out) {
        fprintf(stderr, "ascc: error: out of memory (%zu bytes wanted)\n", size_bytes);
        exit(1);
    }
    return out;
}

static void reserve(text *t, size_t more) {
    if (t->size + more + 1 <= t->capacity)
        return;
    size_t capacity = t->capacity ? t->capacity * 2 : 256;
    while (capacity < t->size + more + 1)
        capacity *= 2;
    t->data = ascc_alloc(t->data, capacity);
    t->capacity = capacity;
}

void text_add(text *t, const char *bytes, size_t size) {
    reserve(t, size);
    if (size)
        memcpy(t->data + t->size, bytes, size);
    t->size += size;
    t->data[t->size] = 0;
}

void text_puts(text *t, const char *string) { text_add(t, string, strlen(string)); }

void text_printf(text *t, const char *format, ...) {
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    const int size = vsnprintf(NULL, 0, format, args);
    if (size > 0) {
        reserve(t, (size_t)size);
        vsnprintf(t->data + t->size, (size_t)size + 1, format, again);
        t->size += (size_t)size;
    }
    va_end(again);
    va_end(args);
}

void text_escaped(text *t, const char *bytes, size_t size) {
    for (size_t i = 0; i < size; i++) {
        const unsigned char c = (unsigned char)bytes[i];
        if (c == '"' || c == '\\')
            text_printf(t, "\\%c", c);
        else if (c < 32 || c == 127)
            text_printf(t, "\\%03o", c);
        else
            text_add(t, bytes + i, 1);
    }
}

void text_free(text *t) {
    free(t->data);
    memset(t, 0, sizeof *t);
}

bool text_read(text *t, const char *path) {
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
    if (!file)
        return false;
    char chunk[1 << 16];
    size_t got;
    while ((got = fread(chunk, 1, sizeof chunk, file)) > 0)
        text_add(t, chunk, got);
    const int error = ferror(file) ? EIO : 0;
    if (file != stdin)
        fclose(file);
    errno = error;
    return error == 0;
}

bool text_write(const text *t, const char *path) {
    FILE *file = fopen(path, "wb");
    if (!file)
        return false;
    const bool whole = fwrite(t->data, 1, t->size, file) == t->size;
    return (fclose(file) == 0) && whole;
}
