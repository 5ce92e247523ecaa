#include "text.h"

#include <stdio.h>
#include <string.h>

const char *text_tail(const char *text, size_t room, char *out) {
    size_t n = strlen(text);
    snprintf(out, room + 1, "%s%s", n > room ? ".." : "", text + (n > room ? n - room + 2 : 0));
    return out;
}
