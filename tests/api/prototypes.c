#define _GNU_SOURCE
#include "prototypes.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *text; /* all headers, one after the other, comments and line ends replaced by spaces */
static size_t text_bytes;

static void die(const char *what, const char *where) {
    fprintf(stderr, "prototypes: %s: %.80s\n", what, where);
    exit(2);
}

static void append_file(const char *path) {
    FILE *in = fopen(path, "rb");
    if (!in)
        die("cannot read", path);
    int c;
    size_t capacity = text_bytes;
    while ((c = fgetc(in)) != EOF) {
        if (text_bytes + 2 > capacity) {
            capacity = 2 * capacity + 4096;
            text = realloc(text, capacity);
            if (!text)
                die("no memory for", path);
        }
        text[text_bytes++] = isspace(c) ? ' ' : (char)c;
    }
    if (text)
        text[text_bytes] = '\0';
    fclose(in);
}

static void blank_comments(void) {
    for (char *open = text; (open = strstr(open, "/*"));) {
        char *close = strstr(open, "*/");
        if (!close)
            die("open comment", open);
        memset(open, ' ', (size_t)(close + 2 - open));
    }
}

/* Whether the headers say `before` NAME `after`, e.g. "typedef void *" NAME ";". */
static bool declared(const char *before, const char *name, const char *after) {
    char pattern[128];
    snprintf(pattern, sizeof pattern, "%s%s%s", before, name, after);
    return strstr(text, pattern) != NULL;
}

static parameter classify(const char *begin, size_t length) {
    parameter p = {.kind = PARAMETER_INTEGER};
    char copy[128], *end;
    if (length >= sizeof copy)
        die("long parameter", begin);
    memcpy(copy, begin, length);
    copy[length] = '\0';
    if (strchr(copy, '(')) { /* an array pointer or a function pointer spelled out */
        p.kind = strstr(copy, ")(") ? PARAMETER_FUNCTION : PARAMETER_POINTER;
        snprintf(p.type, sizeof p.type, "array*");
        return p;
    }
    if (strchr(copy, '[')) {
        p.kind = PARAMETER_POINTER;
        snprintf(p.type, sizeof p.type, "array*");
        return p;
    }
    for (char *word; (word = strstr(copy, "const "));)
        memset(word, ' ', 6);
    for (end = copy + strlen(copy); end > copy && (isspace((unsigned char)end[-1]));)
        end--;
    while (end > copy && (isalnum((unsigned char)end[-1]) || end[-1] == '_')) /* the parameter's name */
        end--;
    *end = '\0';
    size_t used = 0;
    for (const char *from = copy; *from && used + 1 < sizeof p.type; from++)
        if (!isspace((unsigned char)*from))
            p.type[used++] = *from;
    if (strchr(p.type, '*'))
        p.kind = PARAMETER_POINTER;
    else if (strcmp(p.type, "float") == 0)
        p.kind = PARAMETER_FLOAT;
    else if (declared("typedef void *", p.type, ";"))
        p.kind = PARAMETER_HANDLE;
    else if (declared("(*", p.type, ")("))
        p.kind = PARAMETER_FUNCTION;
    else if (declared("typedef struct ", p.type, " {"))
        p.kind = PARAMETER_STRUCT;
    return p;
}

static prototype parse(const char *begin, const char *end) {
    prototype p = {.parameters = 0};
    const char *open = memchr(begin, '(', (size_t)(end - begin)), *name = open;
    if (!open)
        die("no parameter list", begin);
    while (name > begin && (isalnum((unsigned char)name[-1]) || name[-1] == '_'))
        name--;
    snprintf(p.name, sizeof p.name, "%.*s", (int)(open - name), name);
    while (isspace((unsigned char)*begin))
        begin++;
    const char *type_end = name;
    while (type_end > begin && isspace((unsigned char)type_end[-1]))
        type_end--;
    snprintf(p.returns, sizeof p.returns, "%.*s", (int)(type_end - begin), begin);
    int depth = 0;
    const char *start = open + 1;
    for (const char *at = start; at < end; at++) {
        depth += (*at == '(') - (*at == ')');
        if ((*at != ',' || depth) && depth >= 0)
            continue;
        while (isspace((unsigned char)*start))
            start++;
        size_t length = (size_t)(at - start);
        if (length >= 3 && strncmp(start, "...", 3) == 0)
            p.variadic = true;
        else if (length && !(length == 4 && strncmp(start, "void", 4) == 0)) {
            if (p.parameters == PARAMETERS_MAX)
                die("too many parameters", begin);
            p.parameter[p.parameters++] = classify(start, length);
        }
        start = at + 1;
        if (depth < 0)
            break;
    }
    return p;
}

size_t prototypes_read(const char *include_dir, prototype *out, size_t capacity) {
    static const char marker[] = "ACL_FUNC_VISIBILITY ";
    char path[512];
    size_t count = 0;
    static const char *const folders[] = {"acl", "acl/ops", "acl/dvpp"};
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", include_dir, folders[i]);
        DIR *dir = opendir(path);
        if (!dir)
            die("cannot open", path);
        for (struct dirent *entry; (entry = readdir(dir));) {
            const char *dot = strrchr(entry->d_name, '.');
            if (!dot || strcmp(dot, ".h") != 0)
                continue;
            snprintf(path, sizeof path, "%s/%s/%s", include_dir, folders[i], entry->d_name);
            append_file(path);
        }
        closedir(dir);
    }
    if (!text)
        die("no headers in", include_dir);
    blank_comments();
    for (char *at = text; (at = strstr(at, marker)); at++) {
        const char *end = strchr(at, ';');
        const char *define = at - 8;
        if (define >= text && strncmp(define, "#define ", 8) == 0)
            continue;
        if (!end || count == capacity)
            die("cannot take", at);
        out[count++] = parse(at + sizeof marker - 1, end);
    }
    return count;
}
