/*
 * rewrite.h - turns preprocessed kernel-language text into plain C++17 or C11.
 *
 * Only what a plain compiler cannot read changes: launches, the words of the kernel language, variables in core memory.
 * Everything else stays byte for byte, words are replaced by blanks and no line is added or removed, so that messages and
 * debug information keep the user's file, line and mostly column.
 */
#ifndef ASCC_REWRITE_H
#define ASCC_REWRITE_H

#include "text.h"

typedef struct rewrite_options {
    const char *name;       /* of the source, for messages before the first line marker */
    bool is_c;              /* C11 instead of C++17 */
    bool has_launcher;      /* the text contains doppel/launcher.hpp or .h, so anything may be translated */
    const char *core_condition; /* NULL, or "file:line" where the source decides by a core macro what is compiled */
    const char *header_dir; /* NULL, or where to write aclrtlaunch_<kernel>.h for every kernel defined here */
} rewrite_options;

typedef enum rewrite_result {
    REWRITE_DONE,
    REWRITE_NEEDS_LAUNCHER, /* preprocess again with the launcher included, then rewrite with has_launcher */
    REWRITE_FAILED          /* `messages` says why: lines "file:line: error: reason" */
} rewrite_result;

rewrite_result rewrite(const rewrite_options *options, const char *input, size_t size, text *out, text *messages);

#endif
