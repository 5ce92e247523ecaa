#include "text.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

const char *text_tail(const char *text, size_t room, char *out) {
    size_t n = strlen(text);
    snprintf(out, room + 1, "%s%s", n > room ? ".." : "", text + (n > room ? n - room + 2 : 0));
    return out;
}

static size_t columns_left(size_t before) {
    enum { LEAST = 25 };
    struct winsize size;
    if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0)
        return SIZE_MAX;
    return size.ws_col > before + LEAST ? size.ws_col - before : LEAST;
}

void text_print_last(const char *text, size_t before) {
    size_t n = strlen(text), room = columns_left(before);
    printf("%s%s\n", n > room ? ".." : "", text + (n > room ? n - room + 2 : 0));
}
