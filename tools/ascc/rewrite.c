#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"

#define MAX_ERRORS 20u
#define LONG_LINE_BYTES 160u

void unit_error(unit *u, int32_t at, const char *format, ...) {
    if (u->error_count++ >= MAX_ERRORS)
        return;
    char reason[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    text_printf(u->messages, "%s:%u: error: %s\n", token_file(&u->tokens, at), u->tokens.at[at].line, reason);
}

text *edit_replace(unit *u, uint32_t start, uint32_t end) {
    if (u->edit_count == u->edit_capacity) {
        u->edit_capacity = u->edit_capacity ? u->edit_capacity * 2 : 64;
        u->edits = ascc_alloc(u->edits, u->edit_capacity * sizeof *u->edits);
    }
    edit *e = &u->edits[u->edit_count];
    *e = (edit){.start = start, .end = end, .order = (uint32_t)u->edit_count};
    u->edit_count++;
    u->changed = true;
    return &e->with;
}

text *edit_before(unit *u, int32_t at) { return edit_replace(u, u->tokens.at[at].start, u->tokens.at[at].start); }

text *edit_after(unit *u, int32_t at) {
    const uint32_t end = u->tokens.at[at].start + u->tokens.at[at].length;
    return edit_replace(u, end, end);
}

void edit_blank(unit *u, int32_t begin, int32_t end) {
    const bool changed = u->changed;
    const token *last = &u->tokens.at[end - 1];
    edit_replace(u, u->tokens.at[begin].start, last->start + last->length);
    u->edits[u->edit_count - 1].blank = true;
    u->changed = changed;
}

void put_loc(const unit *u, int32_t at, text *out) {
    const char *file = token_file(&u->tokens, at);
    text_puts(out, u->options->is_c ? "((dp_loc){\"" : "::dp_loc{\"");
    text_escaped(out, file, strlen(file));
    text_printf(out, "\", %u}%s", u->tokens.at[at].line, u->options->is_c ? ")" : "");
}

static int compare_edits(const void *a, const void *b) {
    const edit *x = a, *y = b;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    /* Pure insertions come before what they precede. */
    if ((x->end == x->start) != (y->end == y->start))
        return x->end == x->start ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

/* The newlines and line markers of a replaced range: without them everything below would move. */
static void keep_lines(const unit *u, uint32_t start, uint32_t end, text *out) {
    const char *s = u->tokens.text;
    for (uint32_t i = start; i < end; i++) {
        if (s[i] != '\n')
            continue;
        text_add(out, "\n", 1);
        if (i + 1 < end && s[i + 1] == '#') {
            const char *eol = memchr(s + i + 1, '\n', end - i - 1);
            text_add(out, s + i + 1, eol ? (size_t)(eol - (s + i + 1)) : end - i - 1);
        }
    }
}

static void write_out(unit *u, text *out) {
    const char *s = u->tokens.text;
    uint32_t at = 0;
    if (u->edit_count)
        qsort(u->edits, u->edit_count, sizeof *u->edits, compare_edits);
    for (size_t i = 0; i < u->edit_count; i++) {
        const edit *e = &u->edits[i];
        if (e->start < at)
            continue; /* inside a range already replaced */
        text_add(out, s + at, e->start - at);
        text_add(out, e->with.data, e->with.size);
        for (uint32_t k = e->start; e->blank && k < e->end; k++)
            text_add(out, s[k] == '\n' ? "\n" : " ", 1);
        if (!e->blank)
            keep_lines(u, e->start, e->end, out);
        at = e->end;
    }
    text_add(out, s + at, u->tokens.text_size - at);
}

/* Words that mean something to the kernel compiler only. */
static void blank_words(unit *u) {
    const tokens *t = &u->tokens;
    for (int32_t i = 0; i < t->count; i++) {
        if (t->at[i].kind == TOK_WORD) {
            if (t->text[t->at[i].start] != '_' && t->text[t->at[i].start] != 'K')
                continue;
            if (is_attribute_word(t, i)) {
                edit_blank(u, i, attribute_has_arguments(t, i) ? t->at[i + 1].match + 1 : i + 1);
            } else if (token_is_word(t, i, "__dp_ascc_prelude__")) {
                u->prelude = i;
            }
        } else if (token_is(t, i, '[') && token_is_word(t, i + 1, "aicore") && t->at[i].match == i + 2) {
            edit_blank(u, i, i + 3);
        }
    }
}

/* What stays of a line marker's flags in a copy of it: system header (3), extern "C" (4); not entering and leaving. */
static const char *lasting_flags(const char *s, uint32_t at, uint32_t end, const char *before) {
    if (at + 2 >= end || s[at + 1] != ' ' || s[at + 2] < '0' || s[at + 2] > '9')
        return before; /* another directive */
    uint32_t eol = at;
    while (eol < end && s[eol] != '\n')
        eol++;
    bool is_system = false, is_c = false;
    for (uint32_t k = eol; k > at && s[k - 1] != '"'; k--) {
        is_system |= s[k - 1] == '3';
        is_c |= s[k - 1] == '4';
    }
    return !is_system ? "" : is_c ? " 3 4" : " 3";
}

/*
 * A header's macro may expand to thousands of characters on one line. The compiler puts its caret under the column it
 * sees, so a message about such a line would bring as many blanks: break the line, and name its number again.
 */
static void break_long_lines(unit *u) {
    const tokens *t = &u->tokens;
    const bool changed = u->changed;
    uint32_t line_start = 0, scanned = 0;
    const char *flags = "";
    for (int32_t i = 0; i < t->count; i++) {
        const token *now = &t->at[i];
        const uint32_t begin = scanned;
        scanned = now->start + now->length;
        for (uint32_t k = begin; k < scanned; k++) {
            if (t->text[k] == '#' && k == line_start && k < now->start)
                flags = lasting_flags(t->text, k, now->start, flags);
            if (t->text[k] == '\n')
                line_start = k + 1;
        }
        const bool ends_something = token_is(t, i, ';') || token_is(t, i, '{') || token_is(t, i, '}');
        if (!ends_something || scanned - line_start < LONG_LINE_BYTES)
            continue;
        const char *file = token_file(t, i);
        text *marker = edit_after(u, i);
        text_printf(marker, "\n# %u \"", now->line);
        text_escaped(marker, file, strlen(file));
        text_printf(marker, "\"%s\n", flags);
        line_start = scanned;
    }
    u->changed = changed;
}

static void unit_free(unit *u) {
    for (size_t i = 0; i < u->edit_count; i++)
        text_free(&u->edits[i].with);
    for (size_t i = 0; i < u->kernel_count; i++) {
        free(u->kernels[i].path);
        free(u->kernels[i].signature);
    }
    free(u->edits);
    free(u->kernels);
    tokens_free(&u->tokens);
}

rewrite_result rewrite(const rewrite_options *options, const char *input, size_t size, text *out, text *messages) {
    if (size >= 1u << 30) {
        text_printf(messages, "%s:1: error: the preprocessed source has %zu bytes; at most 1 GiB can be translated\n",
                    options->name, size);
        return REWRITE_FAILED;
    }
    unit u = {.options = options, .messages = messages, .prelude = -1};
    tokens_read(&u.tokens, input, size, options->name);
    kernels_collect(&u);
    kernels_check_cores(&u);
    blank_words(&u);
    break_long_lines(&u);
    variables_rewrite(&u);
    launches_rewrite(&u);
    if (options->is_c)
        kernels_write_c_launchers(&u);
    rewrite_result result = REWRITE_DONE;
    if (u.error_count > MAX_ERRORS)
        text_printf(messages, "%s: error: %u more errors are not shown\n", options->name, u.error_count - MAX_ERRORS);
    if (u.error_count > 0) {
        result = REWRITE_FAILED;
    } else if ((u.changed || u.kernel_count > 0) && (!options->has_launcher || u.prelude < 0)) {
        result = options->has_launcher ? REWRITE_FAILED : REWRITE_NEEDS_LAUNCHER;
        if (options->has_launcher)
            text_printf(messages, "%s:1: error: the launcher header of the SDK was not included; is there another "
                                  "\"doppel\" folder before it on the include path?\n", options->name);
    } else {
        text tail = {0};
        if (u.prelude >= 0) {
            const token *marker = &u.tokens.at[u.prelude];
            kernels_write_prelude(&u, edit_replace(&u, marker->start, marker->start + marker->length));
        }
        if (options->header_dir)
            kernels_write_host_entries(&u, &tail);
        else if (u.prelude >= 0)
            kernels_write_known(&u, &tail);
        if (u.error_count > 0) {
            result = REWRITE_FAILED;
        } else {
            write_out(&u, out);
            text_add(out, tail.data, tail.size);
        }
        text_free(&tail);
    }
    unit_free(&u);
    return result;
}
