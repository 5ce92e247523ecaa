/*
 * token.h - preprocessed C or C++ text as tokens, with the user's file and line of each.
 *
 * Whitespace, comments, line markers and pragmas are not tokens; the text between tokens is found through the offsets.
 * Malformed text (an unterminated literal, an unmatched bracket) never fails here: the compiler reports it.
 */
#ifndef ASCC_TOKEN_H
#define ASCC_TOKEN_H

#include "text.h"

typedef enum token_kind { TOK_WORD, TOK_NUMBER, TOK_STRING, TOK_CHAR, TOK_PUNCT, TOK_END } token_kind;

/* Punctuators are their own first character, except these. Every '>' is a token of its own. */
enum { PUNCT_SCOPE = 128 /* :: */, PUNCT_ARROW /* -> */, PUNCT_ANDAND, PUNCT_OROR, PUNCT_SHIFT_LEFT, PUNCT_LESS_EQUAL, PUNCT_OTHER };

/* What a '{' opens. */
typedef enum brace_kind { BRACE_BLOCK, BRACE_CLASS, BRACE_NAMESPACE, BRACE_LINKAGE, BRACE_INIT } brace_kind;

typedef struct token {
    uint32_t start, length; /* bytes in the text */
    uint32_t line, file;    /* file: index into tokens.files */
    int32_t match;          /* the other bracket of () [] {}, -1 if there is none */
    int32_t parent;         /* innermost open bracket around the token, -1 at file scope */
    uint8_t kind;           /* token_kind */
    uint8_t punct;          /* of TOK_PUNCT; digraphs are mapped to what they mean */
    uint8_t brace;          /* brace_kind of a '{' */
} token;

typedef struct tokens {
    const char *text;
    size_t text_size;
    token *at; /* at[count] is TOK_END */
    int32_t count, capacity;
    char **files; /* as written in the line markers */
    uint32_t file_count;
} tokens;

/* `name` stands for the file until the first line marker. `input` must stay valid, and be smaller than 1 GiB. */
void tokens_read(tokens *out, const char *input, size_t size, const char *name);
void tokens_free(tokens *t);

bool token_is(const tokens *t, int32_t i, unsigned punct);
bool token_is_word(const tokens *t, int32_t i, const char *word);
const char *token_text(const tokens *t, int32_t i);
const char *token_file(const tokens *t, int32_t i);

/* First token of the statement or declaration that i belongs to, inside the innermost bracket. */
int32_t statement_begin(const tokens *t, int32_t i);
/* Index of the '>' that closes the '<' at i, -1 if it does not look like template arguments. */
int32_t angle_close(const tokens *t, int32_t i, int32_t limit);
/* Index of the '<' that the '>' at i closes, -1 if none. */
int32_t angle_open(const tokens *t, int32_t i);

/* Tokens [begin, end) on one line, separated by spaces where the text had any. */
void tokens_join(const tokens *t, int32_t begin, int32_t end, text *out);

#endif
