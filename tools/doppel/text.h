/* text.h - names in narrow columns. */
#ifndef DOPPEL_TOOLS_TEXT_H
#define DOPPEL_TOOLS_TEXT_H

#include <stddef.h>

/* The last `room` characters, the telling ones of a node's name, behind ".." when some are left out. Returns out (room
 * + 1 bytes). */
const char *text_tail(const char *text, size_t room, char *out);

/*
 * Ends a line of stdout, of which `before` columns are written, with a name: whole in a file, its end where a terminal
 * has no room for all.
 */
void text_print_last(const char *text, size_t before);

#endif
