/*
 * variables.c - address-space words.
 *
 * On pointers, references, parameters and template arguments they mean nothing here and are blanked. On a variable of a
 * function they say where it lives: it becomes storage taken from that memory of the core for the length of its scope.
 */
#include <stdlib.h>
#include <string.h>

#include "unit.h"

static const struct {
    const char *word, *space;
} spaces[] = {{"__gm__", NULL},
              {"__ubuf__", "DP_SPACE_UB"},
              {"__cbuf__", "DP_SPACE_L1"},
              {"__ca__", "DP_SPACE_L0A"},
              {"__cb__", "DP_SPACE_L0B"},
              {"__cc__", "DP_SPACE_L0C"},
              {"__fbuf__", "DP_SPACE_FB"},
              {"__biasbuf__", "DP_SPACE_BT"},
              {"__ssbuf__", NULL}};

#define MAX_LOOKBACK 1024
#define SPACE_COUNT (sizeof spaces / sizeof spaces[0])

static size_t space_index(const tokens *t, int32_t i) {
    size_t s = 0;
    if (t->at[i].kind != TOK_WORD || t->text[t->at[i].start] != '_')
        return SPACE_COUNT;
    while (s < SPACE_COUNT && !token_is_word(t, i, spaces[s].word))
        s++;
    return s;
}

bool is_space_word(const tokens *t, int32_t i) { return space_index(t, i) < SPACE_COUNT; }

/* A declaration with an address-space word, as far as it concerns us. */
typedef struct declaration {
    int32_t begin, word; /* first token; the address-space word */
    int32_t stop;        /* last token looked at */
    int32_t name, end;   /* first declared name; the ';' */
    bool is_variable;    /* false: a pointer, reference, function or type name, which only loses the word */
    bool is_extern, is_static, is_constexpr;
    text type;           /* of the elements, without storage words */
} declaration;

/* An address-space word only stands in types, so an open '<' before it in its statement holds template arguments. */
static bool is_inside_angles(const tokens *t, int32_t i) {
    int32_t depth = 0, steps = 0;
    for (int32_t j = i - 1; j > t->at[i].parent && steps < MAX_LOOKBACK; j--, steps++) {
        if (token_is(t, j, ';') || token_is(t, j, '{') || token_is(t, j, '}'))
            return false;
        if (t->at[j].match >= 0 && t->at[j].match < j)
            j = t->at[j].match;
        else if (token_is(t, j, '>'))
            depth++;
        else if (token_is(t, j, '<') && depth-- == 0)
            return true;
    }
    return false;
}

static bool is_any(const tokens *t, int32_t i, const char *const *words) {
    for (; *words; words++)
        if (token_is_word(t, i, *words))
            return true;
    return false;
}

static bool ends_name(const tokens *t, int32_t i) {
    return token_is(t, i, ';') || token_is(t, i, '[') || token_is(t, i, '=') || token_is(t, i, ',') || token_is(t, i, '{');
}

static void add_type(const tokens *t, int32_t begin, int32_t end, text *type) {
    for (int32_t i = begin; i < end; i++) {
        if (is_space_word(t, i))
            continue;
        const bool apart = i == begin || t->at[i - 1].start + t->at[i - 1].length != t->at[i].start;
        text_puts(type, apart && type->size && !token_is(t, i, PUNCT_SCOPE) ? " " : "");
        tokens_join(t, i, i + 1, type);
    }
}

/* `alignas(32)`, `__attribute__((aligned(32)))`: what the memory gives anyway is dropped, more is refused. */
static void check_alignment(unit *u, int32_t begin, int32_t end) {
    for (int32_t i = begin; i < end; i++)
        if (u->tokens.at[i].kind == TOK_NUMBER && strtoul(token_text(&u->tokens, i), NULL, 0) > 32)
            unit_error(u, i, "a variable in core memory is aligned to 32 bytes (512 in L0A, L0B and L0C); a larger alignment "
                             "is not supported");
}

/* Reads storage words and type up to the first name; leaves is_variable false at the first sign of anything else. */
static void read_declaration(unit *u, declaration *d) {
    static const char *const not_variables[] = {"using", "typedef", "return", "friend", "operator", "template", NULL};
    static const char *const storage[] = {"extern", "static", "constexpr", "register", "thread_local", "inline", "__inline__",
                                          NULL};
    static const char *const aligns[] = {"alignas", "_Alignas", "__attribute__", NULL};
    const tokens *t = &u->tokens;
    for (int32_t i = d->begin; i < t->count; i++) {
        d->stop = i;
        if (token_is(t, i, PUNCT_SCOPE)) {
            add_type(t, i, i + 1, &d->type);
            continue;
        }
        if (t->at[i].kind != TOK_WORD || is_any(t, i, not_variables))
            return;
        if (i > d->word && d->type.size && ends_name(t, i + 1)) {
            d->name = i;
            d->is_variable = true;
            break;
        }
        d->is_extern |= token_is_word(t, i, "extern");
        d->is_static |= token_is_word(t, i, "static") || token_is_word(t, i, "thread_local");
        d->is_constexpr |= token_is_word(t, i, "constexpr");
        if (is_space_word(t, i) || is_attribute_word(t, i) || is_any(t, i, storage))
            continue;
        if (is_any(t, i, aligns) && token_is(t, i + 1, '(') && t->at[i + 1].match > i) {
            check_alignment(u, i, t->at[i + 1].match);
            i = t->at[i + 1].match;
            continue;
        }
        const int32_t close = token_is(t, i + 1, '<') ? angle_close(t, i + 1, t->count) : -1;
        add_type(t, i, close > 0 ? close + 1 : i + 1, &d->type);
        i = close > 0 ? close : i;
    }
    for (d->end = d->name; d->end < t->count && !token_is(t, d->end, ';');)
        d->end = t->at[d->end].match > d->end ? t->at[d->end].match + 1 : d->end + 1;
}

static void put_dynamic(unit *u, const declaration *d, bool in_function, text *out) {
    const tokens *t = &u->tokens;
    text name = {0};
    tokens_join(t, d->name, d->name + 1, &name);
    const char *type = d->type.data;
    if (!in_function && u->options->is_c)
        unit_error(u, d->word, "in C the dynamic UB must be declared inside the function that uses it");
    else if (!in_function)
        text_printf(out, "static const ::dp::dynamic_ub_array<%s> %s __attribute__((unused)){};", type, name.data);
    else {
        text_printf(out, "%s *const %s __attribute__((unused)) = %s%s%s", type, name.data,
                    u->options->is_c ? "" : "static_cast<", u->options->is_c ? "" : type, u->options->is_c ? "" : " *>(");
        text_puts(out, u->options->is_c ? "dp_dynamic_ub(" : "::dp_dynamic_ub(");
        put_loc(u, d->word, out);
        text_puts(out, u->options->is_c ? ");" : "));");
    }
    text_free(&name);
}

/* One declared name in C++: storage with a destructor, and a reference that behaves like the variable. */
static void put_in_cpp(unit *u, const declaration *d, const char *space, const char *name, const char *dims, text *out) {
    text_printf(out, "::dp::local_array<%s%s, ::%s> dp_local_%s{", d->type.data, dims, space, name);
    put_loc(u, d->word, out);
    text_printf(out, "}; %s (&%s)%s __attribute__((unused)) = dp_local_%s.value; ", d->type.data, name, dims, name);
}

/* In C a pointer to the first element stands for the array; uses that would see the difference are refused. */
static void put_in_c(unit *u, const declaration *d, const char *space, int32_t name_token, const char *name, text *dims,
                     text *out) {
    const tokens *t = &u->tokens;
    if (!token_is(t, name_token + 1, '[')) {
        unit_error(u, name_token, "in C a variable in core memory must be an array: write %s[1]", name);
        return;
    }
    const int32_t scope_end = t->at[name_token].parent >= 0 ? t->at[t->at[name_token].parent].match : t->count;
    for (int32_t i = d->end; i < scope_end; i++) {
        if (!token_is_word(t, i, name) || token_is(t, i - 1, '.') || token_is(t, i - 1, PUNCT_ARROW))
            continue;
        const int32_t before = token_is(t, i - 1, '(') ? i - 2 : i - 1;
        if ((token_is_word(t, before, "sizeof") || token_is(t, i - 1, '&')) && !token_is(t, i + 1, '['))
            unit_error(u, i, "in C sizeof and & of a whole array in core memory are not supported: use the element count and "
                             "%s itself", name);
    }
    text rest = {0};
    int32_t dim = t->at[name_token + 1].match + 1;
    while (token_is(t, dim, '[') && t->at[dim].match > dim) {
        tokens_join(t, dim, t->at[dim].match + 1, &rest);
        dim = t->at[dim].match + 1;
    }
    text_printf(out, "dp_local_slot dp_local_%s __attribute__((cleanup(dp_local_slot_end))) = dp_local_slot_begin(%s, "
                     "sizeof(%s%s), ", name, space, d->type.data, dims->data);
    put_loc(u, d->word, out);
    text_printf(out, "); %s (*const %s)%s __attribute__((unused)) = dp_local_%s.addr; ", d->type.data, name,
                rest.data ? rest.data : "", name);
    text_free(&rest);
}

/* Name, dimensions and initialiser at token i; returns the token after it, or -1 with an error. */
static int32_t put_declarator(unit *u, const declaration *d, const char *space, int32_t i, text *out) {
    const tokens *t = &u->tokens;
    if (t->at[i].kind != TOK_WORD) {
        unit_error(u, i, "declare each variable in core memory in a statement of its own, as in \"__ubuf__ float row[256];\"");
        return -1;
    }
    text name = {0}, dims = {0};
    tokens_join(t, i, i + 1, &name);
    text_puts(&dims, "");
    int32_t after = i + 1;
    while (token_is(t, after, '[') && t->at[after].match > after + 1) {
        tokens_join(t, after, t->at[after].match + 1, &dims);
        after = t->at[after].match + 1;
    }
    const bool has_init = token_is(t, after, '=') && dims.size == 0 && !u->options->is_c && !token_is(t, after + 1, '{');
    int32_t end = after;
    while (has_init && end < d->end && !token_is(t, end, ','))
        end = t->at[end].match > end ? t->at[end].match + 1 : end + 1;
    if (!has_init && !token_is(t, after, ',') && !token_is(t, after, ';')) {
        unit_error(u, i, token_is(t, after, '[') ? "%s needs a size: only \"extern\" dynamic UB is declared with []"
                                                 : "%s is in core memory, which cannot be initialised here: assign after the "
                                                   "declaration", name.data);
        end = -1;
    } else {
        if (u->options->is_c)
            put_in_c(u, d, space, i, name.data, &dims, out);
        else
            put_in_cpp(u, d, space, name.data, dims.data, out);
        if (has_init) {
            text_printf(out, "%s ", name.data);
            tokens_join(t, after, end, out);
            text_puts(out, "; ");
        }
    }
    text_free(&name);
    text_free(&dims);
    return end;
}

static void rewrite_variable(unit *u, const declaration *d, const char *space, bool in_function) {
    const tokens *t = &u->tokens;
    const char *word = spaces[space_index(t, d->word)].word;
    text out = {0};
    if (!space) {
        unit_error(u, d->word, "a variable cannot live in %s memory: only pointers and references to it can be declared", word);
    } else if (d->is_extern && token_is(t, d->name + 1, '[') && t->at[d->name + 1].match == d->name + 2 &&
               strcmp(space, "DP_SPACE_UB") == 0 && token_is(t, d->name + 3, ';')) {
        put_dynamic(u, d, in_function, &out);
    } else if (d->is_extern || d->is_static || d->is_constexpr || !in_function) {
        unit_error(u, d->word, "a variable in %s memory must be an ordinary local variable of a function (or \"extern __ubuf__ "
                               "T name[];\", the dynamic UB): it lives as long as the block", word);
    } else {
        for (int32_t i = d->name; i >= 0 && i < d->end; i = i >= 0 && token_is(t, i, ',') ? i + 1 : i)
            i = put_declarator(u, d, space, i, &out);
    }
    *edit_replace(u, t->at[d->begin].start, t->at[d->end].start + 1) = out;
}

void variables_rewrite(unit *u) {
    const tokens *t = &u->tokens;
    int32_t done = -1;    /* last token of the declaration rewritten last: may hold further words */
    int32_t nothing = -1; /* no variable is declared up to here: the last statement looked at is something else */
    for (int32_t i = 0; i < t->count; i++) {
        const size_t s = space_index(t, i);
        if (s == SPACE_COUNT || i <= done)
            continue;
        const int32_t around = t->at[i].parent;
        const bool in_braces = around >= 0 && token_is(t, around, '{');
        declaration d = {.word = i, .stop = i};
        if (i > nothing && (around < 0 || in_braces) && !(in_braces && t->at[around].brace == BRACE_INIT) &&
            !is_inside_angles(t, i)) {
            d.begin = statement_begin(t, i);
            read_declaration(u, &d);
        }
        if (!d.is_variable || d.end >= t->count) {
            edit_blank(u, i, i + 1);
            nothing = d.stop > nothing ? d.stop : nothing;
        } else if (in_braces && t->at[around].brace == BRACE_CLASS) {
            unit_error(u, i, "a member cannot live in another memory than its object: only pointers to %s can be members",
                       spaces[s].word);
        } else {
            rewrite_variable(u, &d, spaces[s].space, in_braces && t->at[around].brace == BRACE_BLOCK);
            done = d.end;
        }
        text_free(&d.type);
    }
}
