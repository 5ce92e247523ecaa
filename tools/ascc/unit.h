/*
 * unit.h - one translation unit while it is rewritten: its tokens, kernels, edits and messages. Internal to the rewriter.
 */
#ifndef ASCC_UNIT_H
#define ASCC_UNIT_H

#include "doppel/types.h"
#include "rewrite.h"
#include "token.h"

/* Replaces text[start, end); a text of size 0 deletes. Lines inside the range are kept by the writer. */
typedef struct edit {
    uint32_t start, end;
    uint32_t order; /* of insertion: keeps edits at one place in sequence */
    bool blank;     /* overwrite with spaces instead */
    text with;
} edit;

/* One __global__ function; declarations and definition of it share an entry. */
typedef struct kernel {
    char *path;       /* qualified name without leading "::" */
    const char *name; /* last component, inside path */
    char *signature;  /* parameter types, normalised: tells overloads apart */
    bool is_template, is_overloaded, is_defined, is_internal, is_global_scope, is_launched, has_default_args;
    int32_t required_template_args; /* without defaults; -1 if the last is a pack */
    int core_mix;                   /* dp_core_mix, -1 = nothing said */
    int sched_mode;
    int32_t name_token;             /* definition if seen, else declaration */
    int32_t params;                 /* its '(' */
    int32_t end;                    /* last token of the first declaration (';' or '}') */
} kernel;

typedef struct unit {
    const rewrite_options *options;
    tokens tokens;
    edit *edits;
    size_t edit_count, edit_capacity;
    kernel *kernels;
    size_t kernel_count, kernel_capacity;
    text *messages;
    unsigned error_count;
    int32_t prelude; /* token of the launcher's marker, -1 if absent */
    bool changed;    /* something needs the launcher */
} unit;

void unit_error(unit *u, int32_t at, const char *format, ...) DP_PRINTF(3, 4);

/* The returned text is to be filled by the caller before the next edit. */
text *edit_replace(unit *u, uint32_t start, uint32_t end);
text *edit_before(unit *u, int32_t at);
text *edit_after(unit *u, int32_t at);
void edit_blank(unit *u, int32_t begin, int32_t end);
/* dp_loc{"file", line} of a token, in the language at hand. */
void put_loc(const unit *u, int32_t at, text *out);

/* kernels.c */
void kernels_collect(unit *u);
/* Refuses kernels that also run on cube cores if the source decides by a core macro what is compiled. */
void kernels_check_cores(unit *u);
/*
 * The kernel that tokens [callee_begin, name] name, marked as launched. NULL if there is none: *out_is_pointer when it is the name of
 * something else of the source, which may be a pointer, otherwise with an error reported.
 */
const kernel *kernel_find(unit *u, int32_t callee_begin, int32_t name, bool *out_is_pointer);
void kernels_write_prelude(unit *u, text *out);
/* Announces the kernels whose names the unit uses as pointers. */
void kernels_write_known(unit *u, text *out);
bool is_attribute_word(const tokens *t, int32_t i);
/* `__mix__(1, 2)` and alike: the word at i is followed by arguments that belong to it. */
bool attribute_has_arguments(const tokens *t, int32_t i);
bool is_builtin_type_word(const tokens *t, int32_t i);

/* c_kernels.c: what kernels and launches become in C, and the host entry points of ascendc_library. */
void kernels_write_c_launchers(unit *u);
void kernels_write_host_entries(unit *u, text *out);

/* launches.c */
void launches_rewrite(unit *u);

/* variables.c */
bool is_space_word(const tokens *t, int32_t i);
void variables_rewrite(unit *u);

#endif
