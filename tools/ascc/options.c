#include "options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_RESPONSE_DEPTH 8

static char *copy(const char *s) {
    const size_t size = strlen(s) + 1;
    return memcpy(ascc_alloc(NULL, size), s, size);
}

static bool starts(const char *s, const char *prefix) { return strncmp(s, prefix, strlen(prefix)) == 0; }

static void add_input(options *o, input_kind kind, const char *path) {
    o->inputs = ascc_alloc(o->inputs, (o->input_count + 1) * sizeof *o->inputs);
    o->inputs[o->input_count++] = (input){kind, copy(path)};
}

static input_kind kind_of(const char *path) {
    static const struct {
        const char *ending;
        input_kind kind;
    } endings[] = {{".asc", INPUT_ASC}, {".cce", INPUT_ASC}, {".cpp", INPUT_CPP}, {".cc", INPUT_CPP}, {".cxx", INPUT_CPP},
                   {".c++", INPUT_CPP}, {".cp", INPUT_CPP}, {".C", INPUT_CPP}, {".CPP", INPUT_CPP}, {".c", INPUT_C}};
    const char *dot = strrchr(path, '.');
    for (size_t i = 0; dot && i < sizeof endings / sizeof endings[0]; i++)
        if (strcmp(dot, endings[i].ending) == 0)
            return endings[i].kind;
    return INPUT_LINK;
}

/* Splits a response file: blanks separate, quotes and backslashes protect. */
static bool read_response(const char *path, command *out, int depth) {
    text content = {0};
    if (depth > MAX_RESPONSE_DEPTH || !text_read(&content, path)) {
        fprintf(stderr, "ascc: error: cannot read the argument file %s: %s\n", path,
                depth > MAX_RESPONSE_DEPTH ? "files name each other too deeply" : strerror(errno));
        text_free(&content);
        return false;
    }
    text word = {0};
    bool in_word = false, good = true;
    char quote = 0;
    for (size_t i = 0; i <= content.size && good; i++) {
        const char c = i < content.size ? content.data[i] : '\n';
        if (!quote && (c == ' ' || c == '\t' || c == '\n' || c == '\r')) {
            if (in_word && word.data && word.data[0] == '@')
                good = read_response(word.data + 1, out, depth + 1);
            else if (in_word)
                command_add(out, word.data ? word.data : "");
            text_free(&word);
            in_word = false;
        } else if (c == quote && quote) {
            quote = 0;
        } else if (!quote && (c == '"' || c == '\'')) {
            quote = c;
            in_word = true;
        } else if (c == '\\' && i + 1 < content.size) {
            text_add(&word, content.data + ++i, 1);
            in_word = true;
        } else {
            text_add(&word, &c, 1);
            in_word = true;
        }
    }
    text_free(&word);
    text_free(&content);
    return good;
}

/* How a flag is treated; `separate`: its value is the next argument when nothing follows directly. */
typedef enum flag_use { USE_PREPROCESSOR, USE_LINKER, USE_COMMON, USE_IGNORED } flag_use;

static const struct {
    const char *flag;
    bool separate, prefix; /* prefix: a value may be joined */
    flag_use use;
} flags[] = {
    {"-I", true, true, USE_PREPROCESSOR},
    {"-D", true, true, USE_PREPROCESSOR},
    {"-U", true, true, USE_PREPROCESSOR},
    {"-include", true, false, USE_PREPROCESSOR},
    {"-imacros", true, false, USE_PREPROCESSOR},
    {"-isystem", true, true, USE_PREPROCESSOR},
    {"-iquote", true, true, USE_PREPROCESSOR},
    {"-idirafter", true, true, USE_PREPROCESSOR},
    {"-iprefix", true, true, USE_PREPROCESSOR},
    {"-isysroot", true, false, USE_COMMON},
    {"-MF", true, true, USE_PREPROCESSOR},
    {"-MT", true, true, USE_PREPROCESSOR},
    {"-MQ", true, true, USE_PREPROCESSOR},
    {"-MP", false, false, USE_PREPROCESSOR},
    {"-MG", false, false, USE_PREPROCESSOR},
    {"-MD", false, false, USE_PREPROCESSOR},
    {"-MMD", false, false, USE_PREPROCESSOR},
    {"-M", false, false, USE_PREPROCESSOR},
    {"-MM", false, false, USE_PREPROCESSOR},
    {"-Wp,", false, true, USE_PREPROCESSOR},
    {"-Xpreprocessor", true, false, USE_PREPROCESSOR},
    {"-nostdinc", false, true, USE_PREPROCESSOR},
    {"-l", true, true, USE_LINKER},
    {"-L", true, true, USE_LINKER},
    {"-Wl,", false, true, USE_LINKER},
    {"-Xlinker", true, false, USE_LINKER},
    {"-T", true, true, USE_LINKER},
    {"-z", true, false, USE_LINKER},
    {"-u", true, false, USE_LINKER},
    {"-shared", false, false, USE_LINKER},
    {"-rdynamic", false, false, USE_LINKER},
    {"-static", false, true, USE_LINKER},
    {"-pie", false, false, USE_LINKER},
    {"-no-pie", false, false, USE_LINKER},
    {"-s", false, false, USE_LINKER},
    {"-r", false, false, USE_LINKER},
    {"--param", true, true, USE_COMMON},
    {"-target", true, false, USE_COMMON},
    {"-Xclang", true, false, USE_COMMON},
    {"-Xassembler", true, false, USE_COMMON},
    {"-mllvm", true, false, USE_IGNORED},
    {"--cce-", false, true, USE_IGNORED},
    {"-cce-", false, true, USE_IGNORED},
    {"--npu-arch=", false, true, USE_IGNORED},
    {"--npu-soc=", false, true, USE_IGNORED},
};

static bool check_architecture(const char *flag) {
    static const char *const known[] = {"dav-2201", "dav-c220", "dav-c220-vec", "dav-c220-cube", "dav-2002", "dav-m200",
                                        "dav-m200-vec"};
    const char *value = strchr(flag, '=') + 1;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(value, known[i]) == 0)
            return true;
    fprintf(stderr, "ascc: error: %s: the architecture must be dav-2201 (Ascend 910B) or dav-2002 (Ascend 310P)\n", flag);
    return false;
}

static void use_flag(options *o, flag_use use, const char *argument) {
    if (use == USE_PREPROCESSOR)
        command_add(&o->preprocessor, argument);
    else if (use == USE_LINKER)
        add_input(o, INPUT_LINK, argument);
    else if (use == USE_COMMON)
        command_add(&o->common, argument);
}

/* A flag of the table at arguments[*i]. False if it is none; *out_good is cleared when it is wrong. */
static bool read_table_flag(options *o, const command *arguments, size_t *i, bool *out_good) {
    const char *argument = arguments->argv[*i];
    for (size_t f = 0; f < sizeof flags / sizeof flags[0]; f++) {
        const bool exact = strcmp(argument, flags[f].flag) == 0;
        if (!exact && !(flags[f].prefix && starts(argument, flags[f].flag)))
            continue;
        if (starts(argument, "--npu-arch="))
            *out_good = check_architecture(argument);
        o->writes_dependencies |= exact && (strcmp(argument, "-MD") == 0 || strcmp(argument, "-MMD") == 0);
        o->dependencies_only |= exact && (strcmp(argument, "-M") == 0 || strcmp(argument, "-MM") == 0);
        o->has_dependency_file |= starts(argument, "-MF");
        o->has_dependency_target |= starts(argument, "-MT") || starts(argument, "-MQ");
        use_flag(o, flags[f].use, argument);
        if (exact && flags[f].separate) {
            if (*i + 1 == arguments->count) {
                fprintf(stderr, "ascc: error: %s needs a value after it\n", argument);
                *out_good = false;
                return true;
            }
            use_flag(o, flags[f].use, arguments->argv[++*i]);
        }
        return true;
    }
    return false;
}

static bool set_language(const char *language, int *forced) {
    static const struct {
        const char *name;
        int kind;
    } languages[] = {{"asc", INPUT_ASC}, {"cce", INPUT_ASC}, {"c++", INPUT_CPP}, {"c", INPUT_C}, {"none", -1}};
    for (size_t i = 0; i < sizeof languages / sizeof languages[0]; i++)
        if (strcmp(language, languages[i].name) == 0) {
            *forced = languages[i].kind;
            return true;
        }
    fprintf(stderr, "ascc: error: -x %s: the language must be asc, c++, c or none\n", language);
    return false;
}

/* Flags that set a field of `o`. False if it is none of them. */
static bool read_own_flag(options *o, const char *argument) {
    static const struct {
        const char *flag;
        driver_mode mode;
    } modes[] = {{"-c", MODE_OBJECT}, {"-S", MODE_ASSEMBLY}, {"-E", MODE_PREPROCESS}, {"--rewrite", MODE_REWRITE},
                 {"-fsyntax-only", MODE_SYNTAX}};
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++)
        if (strcmp(argument, modes[i].flag) == 0) {
            o->mode = modes[i].mode > o->mode ? modes[i].mode : o->mode;
            return true;
        }
    if (starts(argument, "-std=")) {
        free(o->standard);
        o->standard = copy(argument + 5);
    } else if (starts(argument, "--launch-headers=")) {
        free(o->header_dir);
        o->header_dir = copy(strchr(argument, '=') + 1);
    } else if (strcmp(argument, "-v") == 0 || strcmp(argument, "--verbose") == 0) {
        o->verbose = true;
    } else if (strcmp(argument, "-###") == 0) {
        o->verbose = o->dry_run = true;
    } else if (strcmp(argument, "--help") == 0) {
        o->help = true;
    } else if (strcmp(argument, "--version") == 0) {
        o->version = true;
    } else {
        return false;
    }
    return true;
}

static bool read_arguments(options *o, const command *arguments) {
    int forced = -1;
    for (size_t i = 0; i < arguments->count; i++) {
        const char *argument = arguments->argv[i];
        bool good = true;
        if (starts(argument, "-o")) {
            const bool joined = argument[2] != 0;
            if (!joined && i + 1 == arguments->count) {
                fprintf(stderr, "ascc: error: -o needs a file name after it\n");
                return false;
            }
            free(o->output);
            o->output = copy(joined ? argument + 2 : arguments->argv[++i]);
        } else if (starts(argument, "-x")) {
            if (!argument[2] && i + 1 == arguments->count) {
                fprintf(stderr, "ascc: error: -x needs a language after it: asc, c++, c or none\n");
                return false;
            }
            if (!set_language(argument[2] ? argument + 2 : arguments->argv[++i], &forced))
                return false;
        } else if (argument[0] != '-' || !argument[1]) {
            add_input(o, forced >= 0 ? (input_kind)forced : kind_of(argument), argument);
        } else if (!read_own_flag(o, argument) && !read_table_flag(o, arguments, &i, &good)) {
            command_add(&o->common, argument);
        }
        if (!good)
            return false;
    }
    return true;
}

bool options_read(options *o, int argc, char **argv) {
    command arguments = {0};
    bool good = true;
    for (int i = 1; i < argc && good; i++)
        if (argv[i][0] == '@')
            good = read_response(argv[i] + 1, &arguments, 0);
        else
            command_add(&arguments, argv[i]);
    good = good && read_arguments(o, &arguments);
    command_free(&arguments);
    if (good && o->dependencies_only)
        o->mode = MODE_PREPROCESS;
    size_t sources = 0;
    for (size_t i = 0; i < o->input_count; i++)
        sources += o->inputs[i].kind != INPUT_LINK;
    if (good && o->output && sources > 1 && o->mode != MODE_LINK && o->mode != MODE_SYNTAX) {
        fprintf(stderr, "ascc: error: -o names one file, but there are %zu sources and no linking (-c, -S or -E)\n", sources);
        good = false;
    }
    return good;
}

void options_free(options *o) {
    for (size_t i = 0; i < o->input_count; i++)
        free(o->inputs[i].path);
    free(o->inputs);
    free(o->output);
    free(o->standard);
    free(o->header_dir);
    command_free(&o->common);
    command_free(&o->preprocessor);
    memset(o, 0, sizeof *o);
}
