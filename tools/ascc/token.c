#include "token.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* No real statement has more (bracketed groups count as one); keeps hostile input from taking quadratic time. */
#define MAX_STATEMENT_TOKENS 1024
#define MAX_ANGLE_DEPTH 128

typedef struct reader {
    tokens *t;
    size_t at;
    uint32_t line, file;
} reader;

static bool is_word_start(unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' || c >= 128;
}
static bool is_digit(unsigned char c) { return c >= '0' && c <= '9'; }

static char peek(const reader *r, size_t ahead) {
    return r->at + ahead < r->t->text_size ? r->t->text[r->at + ahead] : 0;
}

static void add(reader *r, token_kind kind, unsigned punct, size_t length) {
    tokens *t = r->t;
    if (t->count == t->capacity) {
        t->capacity = t->capacity ? t->capacity * 2 : 4096;
        t->at = ascc_alloc(t->at, (size_t)t->capacity * sizeof *t->at);
    }
    t->at[t->count++] = (token){.start = (uint32_t)r->at, .length = (uint32_t)length, .line = r->line, .file = r->file,
                                .match = -1, .parent = -1, .kind = (uint8_t)kind, .punct = (uint8_t)punct};
    for (size_t i = 0; i < length; i++)
        r->line += r->t->text[r->at + i] == '\n';
    r->at += length;
}

static uint32_t file_index(tokens *t, const char *name, size_t size) {
    for (uint32_t i = t->file_count; i-- > 0;)
        if (strlen(t->files[i]) == size && memcmp(t->files[i], name, size) == 0)
            return i;
    t->files = ascc_alloc(t->files, (t->file_count + 1) * sizeof *t->files);
    char *copy = ascc_alloc(NULL, size + 1);
    memcpy(copy, name, size);
    copy[size] = 0;
    t->files[t->file_count] = copy;
    return t->file_count++;
}

/* A line that starts with '#': `# 12 "file" 1 3`, `#line 12 "file"`, or a pragma. Consumes its newline. */
static void read_directive(reader *r) {
    const char *s = r->t->text, *end = s + r->t->text_size, *p = s + r->at + 1;
    const char *eol = memchr(p, '\n', (size_t)(end - p));
    eol = eol ? eol : end;
    while (p < eol && (*p == ' ' || *p == '\t'))
        p++;
    if (eol - p > 4 && memcmp(p, "line", 4) == 0)
        for (p += 4; p < eol && (*p == ' ' || *p == '\t');)
            p++;
    uint32_t line = 0;
    const bool numbered = p < eol && is_digit((unsigned char)*p);
    for (; p < eol && is_digit((unsigned char)*p); p++)
        line = line * 10 + (uint32_t)(*p - '0');
    r->line++;
    if (numbered) {
        r->line = line;
        const char *open = memchr(p, '"', (size_t)(eol - p));
        if (open) {
            text name = {0};
            for (p = open + 1; p < eol && *p != '"'; p++) {
                if (*p == '\\' && p + 1 < eol)
                    p++;
                text_add(&name, p, 1);
            }
            r->file = file_index(r->t, name.data ? name.data : "", name.size);
            text_free(&name);
        }
    }
    r->at = (size_t)(eol - s) + (eol < end);
}

/* Length of a quoted literal whose quote is at `from` bytes ahead. An unterminated one ends at its line's end. */
static size_t quoted_length(const reader *r, size_t from) {
    const char quote = peek(r, from);
    size_t n = from + 1;
    for (; r->at + n < r->t->text_size; n++) {
        const char c = peek(r, n);
        if (c == '\\' && r->at + n + 1 < r->t->text_size)
            n++;
        else if (c == quote)
            return n + 1;
        else if (c == '\n')
            return n;
    }
    return n;
}

/* R"tag( ... )tag": from is the offset of the quote. */
static size_t raw_length(const reader *r, size_t from) {
    const char *s = r->t->text;
    const size_t size = r->t->text_size, tag = r->at + from + 1;
    size_t open = tag;
    while (open < size && open - tag < 17 && s[open] != '(' && s[open] != '"' && s[open] != '\n')
        open++;
    if (open >= size || s[open] != '(')
        return quoted_length(r, from);
    for (size_t i = open + 1; i + (open - tag) + 1 < size; i++)
        if (s[i] == ')' && memcmp(s + i + 1, s + tag, open - tag) == 0 && s[i + 1 + (open - tag)] == '"')
            return i + 2 + (open - tag) - r->at;
    return size - r->at;
}

/* Length of a \uXXXX or \UXXXXXXXX, which is what preprocessors make of a letter outside ASCII; 0 if it is none. */
static size_t universal_length(const reader *r, size_t from) {
    const char kind = peek(r, from + 1);
    if (peek(r, from) != '\\' || (kind != 'u' && kind != 'U'))
        return 0;
    const size_t length = kind == 'u' ? 6 : 10;
    for (size_t i = 2; i < length; i++)
        if (!isxdigit((unsigned char)peek(r, from + i)))
            return 0;
    return length;
}

/* Length of the letter or digit of a word; 0 if it is none. */
static size_t letter_length(const reader *r, size_t from) {
    const unsigned char c = (unsigned char)peek(r, from);
    return is_word_start(c) || is_digit(c) ? 1 : universal_length(r, from);
}

static void read_word(reader *r) {
    size_t n = 0;
    for (size_t letter; (letter = letter_length(r, n)) > 0;)
        n += letter;
    const char quote = peek(r, n);
    const char *word = r->t->text + r->at;
    if ((quote == '"' || quote == '\'') && n <= 3) {
        const bool raw = quote == '"' && word[n - 1] == 'R';
        const size_t prefix = n - raw;
        const bool encoded = prefix == 0 || (prefix == 1 && strchr("LuU", word[0])) ||
                             (prefix == 2 && word[0] == 'u' && word[1] == '8');
        if (encoded) {
            add(r, quote == '"' ? TOK_STRING : TOK_CHAR, 0, raw ? raw_length(r, n) : quoted_length(r, n));
            return;
        }
    }
    add(r, TOK_WORD, 0, n);
}

static void read_number(reader *r) {
    size_t n = 1;
    for (;; n++) {
        const unsigned char c = (unsigned char)peek(r, n), before = (unsigned char)peek(r, n - 1);
        const bool sign = (c == '+' || c == '-') && (before == 'e' || before == 'E' || before == 'p' || before == 'P');
        const bool separator = c == '\'' && (is_digit((unsigned char)peek(r, n + 1)) ||
                                             is_word_start((unsigned char)peek(r, n + 1)));
        if (!is_digit(c) && !is_word_start(c) && c != '.' && !sign && !separator)
            break;
    }
    add(r, TOK_NUMBER, 0, n);
}

static void read_punct(reader *r) {
    static const struct {
        char spelling[3];
        uint8_t punct;
    } pairs[] = {{"::", PUNCT_SCOPE}, {"->", PUNCT_ARROW}, {"&&", PUNCT_ANDAND}, {"||", PUNCT_OROR},
                 {"<<", PUNCT_SHIFT_LEFT}, {"<=", PUNCT_LESS_EQUAL}, {"<%", '{'}, {"%>", '}'}, {"<:", '['}, {":>", ']'},
                 {"==", PUNCT_OTHER}, {"!=", PUNCT_OTHER}, {"+=", PUNCT_OTHER}, {"-=", PUNCT_OTHER}, {"*=", PUNCT_OTHER},
                 {"/=", PUNCT_OTHER}, {"&=", PUNCT_OTHER}, {"|=", PUNCT_OTHER}, {"^=", PUNCT_OTHER}, {"%=", PUNCT_OTHER},
                 {"++", PUNCT_OTHER}, {"--", PUNCT_OTHER}};
    const char a = peek(r, 0), b = peek(r, 1);
    /* "<::" is '<' and "::" unless ':' or '>' follows. */
    const bool scope_after_less = a == '<' && b == ':' && peek(r, 2) == ':' && peek(r, 3) != ':' && peek(r, 3) != '>';
    for (size_t i = 0; !scope_after_less && i < sizeof pairs / sizeof pairs[0]; i++)
        if (pairs[i].spelling[0] == a && pairs[i].spelling[1] == b) {
            add(r, TOK_PUNCT, pairs[i].punct, 2);
            return;
        }
    add(r, TOK_PUNCT, (unsigned char)a, 1);
}

static void skip_comment(reader *r, bool block) {
    const size_t size = r->t->text_size;
    const char *s = r->t->text;
    r->at += 2;
    for (; r->at < size; r->at++) {
        if (!block && s[r->at] == '\n')
            return;
        if (block && s[r->at] == '*' && peek(r, 1) == '/') {
            r->at += 2;
            return;
        }
        r->line += s[r->at] == '\n';
    }
}

static void read_all(reader *r) {
    bool line_start = true;
    while (r->at < r->t->text_size) {
        const unsigned char c = (unsigned char)r->t->text[r->at];
        if (c == '\n') {
            r->line++;
            r->at++;
            line_start = true;
            continue;
        }
        if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v' || c == 0 || (c == '\\' && peek(r, 1) == '\n')) {
            r->at++;
            continue;
        }
        if (c == '#' && line_start) {
            read_directive(r);
            continue;
        }
        line_start = false;
        if (c == '/' && (peek(r, 1) == '*' || peek(r, 1) == '/'))
            skip_comment(r, peek(r, 1) == '*');
        else if (is_word_start(c) || universal_length(r, 0) > 0)
            read_word(r);
        else if (is_digit(c) || (c == '.' && is_digit((unsigned char)peek(r, 1))))
            read_number(r);
        else if (c == '"' || c == '\'')
            add(r, c == '"' ? TOK_STRING : TOK_CHAR, 0, quoted_length(r, 0));
        else
            read_punct(r);
    }
}

static bool is_one_of(const tokens *t, int32_t i, const char *const *words, size_t count) {
    for (size_t w = 0; w < count; w++)
        if (token_is_word(t, i, words[w]))
            return true;
    return false;
}

/* What the '{' at i opens, from the tokens of its statement so far. */
static brace_kind classify_brace(const tokens *t, int32_t i) {
    static const char *const before_block[] = {"const", "noexcept", "override", "final", "try", "else", "do", "mutable"};
    const int32_t begin = statement_begin(t, i);
    if (begin == i)
        return BRACE_BLOCK;
    const int32_t last = i - 1;
    bool is_class = false, is_arrow = false;
    for (int32_t j = begin; j < i; j++) {
        if (token_is_word(t, j, "template") && token_is(t, j + 1, '<')) {
            const int32_t close = angle_close(t, j + 1, i);
            j = close > 0 ? close : j;
        } else if (token_is_word(t, j, "namespace")) {
            return BRACE_NAMESPACE;
        } else if (token_is_word(t, j, "class") || token_is_word(t, j, "struct") || token_is_word(t, j, "union") ||
                   token_is_word(t, j, "enum")) {
            is_class = true;
        } else if (token_is(t, j, PUNCT_ARROW)) {
            is_arrow = true;
        } else if (t->at[j].match > j) {
            j = t->at[j].match;
        }
    }
    if (t->at[last].kind == TOK_STRING && token_is_word(t, last - 1, "extern"))
        return BRACE_LINKAGE;
    if (token_is(t, last, ')') && t->at[last].match > begin && is_class) {
        const int32_t before = t->at[last].match - 1;
        return token_is_word(t, before, "__attribute__") || token_is_word(t, before, "alignas") ? BRACE_CLASS : BRACE_BLOCK;
    }
    if (token_is(t, last, ')') || token_is(t, last, ']') || token_is(t, last, '}') || is_arrow ||
        is_one_of(t, last, before_block, sizeof before_block / sizeof before_block[0]))
        return BRACE_BLOCK;
    return is_class && !token_is(t, last, '=') ? BRACE_CLASS : BRACE_INIT;
}

static void match_brackets(tokens *t) {
    int32_t top = -1;
    for (int32_t i = 0; i < t->count; i++) {
        token *tok = &t->at[i];
        tok->parent = top;
        if (tok->kind != TOK_PUNCT)
            continue;
        if (tok->punct == '(' || tok->punct == '[' || tok->punct == '{') {
            if (tok->punct == '{')
                tok->brace = (uint8_t)classify_brace(t, i);
            top = i;
        } else if (tok->punct == ')' || tok->punct == ']' || tok->punct == '}') {
            const unsigned want = tok->punct == ')' ? '(' : tok->punct == ']' ? '[' : '{';
            if (top >= 0 && t->at[top].punct == want) {
                tok->match = top;
                t->at[top].match = i;
                top = t->at[top].parent;
                tok->parent = top;
            }
        }
    }
}

void tokens_read(tokens *out, const char *input, size_t size, const char *name) {
    memset(out, 0, sizeof *out);
    out->text = input;
    out->text_size = size;
    reader r = {.t = out, .line = 1};
    r.file = file_index(out, name, strlen(name));
    read_all(&r);
    add(&r, TOK_END, 0, 0);
    out->count--;
    match_brackets(out);
}

void tokens_free(tokens *t) {
    for (uint32_t i = 0; i < t->file_count; i++)
        free(t->files[i]);
    free(t->files);
    free(t->at);
    memset(t, 0, sizeof *t);
}

bool token_is(const tokens *t, int32_t i, unsigned punct) {
    return i >= 0 && i < t->count && t->at[i].kind == TOK_PUNCT && t->at[i].punct == punct;
}

bool token_is_word(const tokens *t, int32_t i, const char *word) {
    if (i < 0 || i >= t->count || t->at[i].kind != TOK_WORD)
        return false;
    const size_t length = strlen(word);
    return t->at[i].length == length && memcmp(t->text + t->at[i].start, word, length) == 0;
}

const char *token_text(const tokens *t, int32_t i) { return t->text + t->at[i].start; }
const char *token_file(const tokens *t, int32_t i) { return t->files[t->at[i].file]; }

int32_t statement_begin(const tokens *t, int32_t i) {
    const int32_t floor = t->at[i].parent;
    int32_t j = i;
    for (int steps = 0; j - 1 > floor && steps < MAX_STATEMENT_TOKENS; steps++) {
        const int32_t before = j - 1;
        if (token_is(t, before, ';') || token_is(t, before, '}') || token_is(t, before, '{') || token_is(t, before, ':'))
            break;
        j = t->at[before].match >= 0 && t->at[before].match < before ? t->at[before].match : before;
    }
    return j;
}

int32_t angle_close(const tokens *t, int32_t i, int32_t limit) {
    int32_t depth = 0;
    for (int32_t j = i; j < limit && j < t->count; j++) {
        const token *tok = &t->at[j];
        if (tok->kind != TOK_PUNCT)
            continue;
        if (tok->match > j)
            j = tok->match;
        else if (tok->punct == '<' && ++depth > MAX_ANGLE_DEPTH)
            return -1;
        else if (tok->punct == '>' && --depth == 0)
            return j;
        else if (tok->punct == ';' || tok->punct == '?' || tok->punct == ')' || tok->punct == ']' || tok->punct == '}' ||
                 tok->punct == '{' || tok->punct == '(' || tok->punct == '[')
            return -1;
    }
    return -1;
}

int32_t angle_open(const tokens *t, int32_t i) {
    const int32_t floor = t->at[i].parent;
    int32_t depth = 0;
    for (int32_t j = i; j > floor; j--) {
        const token *tok = &t->at[j];
        if (tok->kind != TOK_PUNCT)
            continue;
        if (tok->match >= 0 && tok->match < j)
            j = tok->match;
        else if (tok->punct == '>')
            depth++;
        else if (tok->punct == '<' && --depth == 0)
            return j;
        else if (tok->punct == ';' || tok->punct == '{' || tok->punct == '}')
            return -1;
    }
    return -1;
}

void tokens_join(const tokens *t, int32_t begin, int32_t end, text *out) {
    for (int32_t i = begin; i < end; i++) {
        const token *tok = &t->at[i];
        if (i > begin && t->at[i - 1].start + t->at[i - 1].length != tok->start)
            text_add(out, " ", 1);
        text_add(out, t->text + tok->start, tok->length);
    }
}
