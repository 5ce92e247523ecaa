/*
 * core_macros.c - finds out whether a source decides by a core macro what is compiled.
 *
 * The preprocessed text does not show it, so the files it names are read again: all but those of system folders, the SDK's among them.
 */
#include <stdlib.h>
#include <string.h>

#include "core_macros.h"

static bool is_core_condition(const char *line, size_t length) {
    static const char *const words[] = {"__DAV_C220_CUBE__", "__DAV_C220_VEC__", "__DAV_CUBE__", "__DAV_VEC__"};
    size_t i = 0;
    while (i < length && (line[i] == ' ' || line[i] == '\t'))
        i++;
    if (i == length || line[i++] != '#')
        return false;
    while (i < length && (line[i] == ' ' || line[i] == '\t'))
        i++;
    if (length - i < 4 || (memcmp(line + i, "if", 2) != 0 && memcmp(line + i, "elif", 4) != 0))
        return false;
    for (size_t w = 0; w < sizeof words / sizeof words[0]; w++)
        if (memmem(line + i, length - i, words[w], strlen(words[w])))
            return true;
    return false;
}

static bool find_in_file(const char *path, text *out_place) {
    text file = {0};
    bool found = false;
    if (text_read(&file, path) && file.data) {
        unsigned number = 1;
        for (const char *at = file.data, *end = file.data + file.size; at < end && !found; number++) {
            const char *newline = memchr(at, '\n', (size_t)(end - at));
            const size_t length = (size_t)((newline ? newline : end) - at);
            found = is_core_condition(at, length);
            if (found)
                text_printf(out_place, "%s:%u", path, number);
            at += length + 1;
        }
    }
    text_free(&file);
    return found;
}

/* `# 12 "file" 1 3` at `line`: the file's name in `out`, false for other lines and for files of system folders. */
static bool read_marker(const char *line, size_t length, text *out) {
    if (length < 5 || line[0] != '#' || line[1] != ' ' || line[2] < '0' || line[2] > '9')
        return false;
    const char *open = memchr(line, '"', length), *close = line + length;
    while (close > line && close[-1] != '"')
        close--;
    if (!open || close - 1 <= open || open[1] == '<')
        return false;
    for (const char *flag = close; flag < line + length; flag++)
        if (*flag == '3')
            return false;
    out->size = 0;
    for (const char *p = open + 1; p < close - 1; p++)
        text_add(out, *p == '\\' && p + 1 < close - 1 ? ++p : p, 1);
    text_add(out, "", 0);
    return true;
}

bool find_core_condition(const char *preprocessed, size_t size, text *out_place) {
    text *seen = NULL, name = {0};
    size_t count = 0;
    bool found = false;
    for (const char *at = preprocessed, *end = preprocessed + size; at < end && !found;) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const size_t length = (size_t)((newline ? newline : end) - at);
        bool is_new = read_marker(at, length, &name);
        for (size_t i = 0; i < count && is_new; i++)
            is_new = strcmp(seen[i].data, name.data) != 0;
        if (is_new) {
            seen = ascc_alloc(seen, (count + 1) * sizeof *seen);
            seen[count] = (text){0};
            text_puts(&seen[count++], name.data);
            found = find_in_file(name.data, out_place);
        }
        at += length + 1;
    }
    for (size_t i = 0; i < count; i++)
        text_free(&seen[i]);
    free(seen);
    text_free(&name);
    return found;
}
