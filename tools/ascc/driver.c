#include "core_macros.h"
#include "driver.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rewrite.h"

#ifndef ASCC_DEFAULT_CXX
#define ASCC_DEFAULT_CXX "c++"
#endif
#ifndef ASCC_DEFAULT_CC
#define ASCC_DEFAULT_CC "cc"
#endif

static volatile sig_atomic_t interrupted;
static void on_signal(int number) { interrupted = number; }

static char *printed(const char *format, const char *a, const char *b, const char *c) {
    text out = {0};
    for (; *format; format++) {
        if (*format != '%')
            text_add(&out, format, 1);
        else if (*++format == 'a')
            text_puts(&out, a);
        else
            text_puts(&out, *format == 'b' ? b : c);
    }
    text_add(&out, "", 0);
    return out.data;
}

static bool is_usable_compiler(const char *words) {
    if (!words || !*words)
        return false;
    const size_t first = strcspn(words, " \t");
    const char *base = words + first;
    while (base > words && base[-1] != '/')
        base--;
    const size_t size = (size_t)(words + first - base);
    /* CXX=ascc would make the driver call itself for ever. */
    return !(size == 4 && memcmp(base, "ascc", 4) == 0) && !(size == 7 && memcmp(base, "bisheng", 7) == 0);
}

void driver_add_compiler(command *c, bool is_c) {
    const char *candidates[] = {getenv(is_c ? "ASCC_CC" : "ASCC_CXX"), getenv(is_c ? "CC" : "CXX")};
    for (size_t i = 0; i < 2; i++)
        if (is_usable_compiler(candidates[i])) {
            command_add_words(c, candidates[i]);
            return;
        }
    const char *found = is_c ? ASCC_DEFAULT_CC : ASCC_DEFAULT_CXX;
    command_add(c, found[0] == '/' && access(found, X_OK) != 0 ? (is_c ? "cc" : "c++") : found);
}

bool driver_open(driver *d, const options *o) {
    *d = (driver){.options = o};
    char path[PATH_MAX];
    const ssize_t size = readlink("/proc/self/exe", path, sizeof path - 1);
    if (size < 0) {
        fprintf(stderr, "ascc: error: cannot find out where ascc itself is (/proc/self/exe: %s)\n", strerror(errno));
        return false;
    }
    path[size] = 0;
    for (int up = 0; up < 2; up++) {
        char *slash = strrchr(path, '/');
        if (slash)
            *slash = 0;
    }
    d->include_dir = printed("%a/include", path, "", "");
    d->library_dir = printed("%a/lib64", path, "", "");
    char *header = printed("%a/doppel/launch.h", d->include_dir, "", "");
    const bool found = access(header, R_OK) == 0;
    if (!found)
        fprintf(stderr, "ascc: error: %s is missing: ascc must stay in the bin folder of its SDK; install it again\n", header);
    free(header);
    if (!found)
        return false;
    const char *base = getenv("TMPDIR");
    d->temporary_dir = printed("%a/ascc-XXXXXX", base && *base ? base : "/tmp", "", "");
    if (!mkdtemp(d->temporary_dir)) {
        fprintf(stderr, "ascc: error: cannot make a temporary folder %s: %s; set TMPDIR to a writable folder\n",
                d->temporary_dir, strerror(errno));
        free(d->temporary_dir);
        d->temporary_dir = NULL;
        return false;
    }
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
    return true;
}

static void remove_temporary_dir(const char *path) {
    DIR *dir = opendir(path);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        char *file = printed("%a/%b", path, entry->d_name, "");
        if (entry->d_name[0] != '.')
            unlink(file);
        free(file);
    }
    if (dir)
        closedir(dir);
    rmdir(path);
}

void driver_close(driver *d) {
    if (d->temporary_dir)
        remove_temporary_dir(d->temporary_dir);
    free(d->temporary_dir);
    free(d->include_dir);
    free(d->library_dir);
    memset(d, 0, sizeof *d);
}

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static char *stem_of(const char *path) {
    const char *base = base_name(path), *dot = strrchr(base, '.');
    text out = {0};
    text_add(&out, base, dot && dot != base ? (size_t)(dot - base) : strlen(base));
    return out.data;
}

/* `<temporary folder>/<number>-<stem><ending>` */
static char *temporary(driver *d, const char *source, const char *ending) {
    char number[16];
    snprintf(number, sizeof number, "%u-", d->temporary_count++);
    char *stem = stem_of(source);
    char *head = printed("%a/%b%c", d->temporary_dir, number, stem);
    char *whole = printed("%a%b", head, ending, "");
    free(stem);
    free(head);
    return whole;
}

/* The file a source is compiled to: -o, or `<stem>.o` in the working folder, or a temporary object when linking. */
static char *output_of(driver *d, const char *source) {
    const options *o = d->options;
    if (o->mode == MODE_LINK)
        return temporary(d, source, ".o");
    if (o->output)
        return printed("%a", o->output, "", "");
    char *stem = stem_of(source);
    char *out = o->mode == MODE_OBJECT || o->mode == MODE_ASSEMBLY
                    ? printed("%a%b", stem, o->mode == MODE_OBJECT ? ".o" : ".s", "")
                    : NULL;
    free(stem);
    return out;
}

static int run(driver *d, const command *c, const char *output) {
    if (d->options->verbose)
        command_print(c);
    if (d->options->dry_run)
        return 0;
    const int status = command_run(c, output);
    return interrupted ? 128 + (int)interrupted : status;
}

static bool is_older_than_cpp20(const char *standard) {
    static const char *const older[] = {"98", "03", "0x", "11", "1y", "14", "1z", "17"};
    for (size_t i = 0; i < sizeof older / sizeof older[0]; i++)
        if (strstr(standard, "++") && strcmp(strstr(standard, "++") + 2, older[i]) == 0)
            return true;
    return false;
}

/*
 * The kernel face is C++17, but kernels call its functions with template arguments and let the arguments find the namespace
 * (ReduceSum<float>(dst, ...)), which the vendor's compiler takes in C++17 and g++ only in C++20: kernel sources are raised.
 */
static void add_standard(const options *o, command *c, bool is_c, bool with_launcher) {
    const char *standard = o->standard;
    if (is_c)
        command_addf(c, "-std=%s", standard && !strstr(standard, "++") ? standard : "gnu11");
    else if (with_launcher && (!standard || !strstr(standard, "++") || is_older_than_cpp20(standard)))
        command_addf(c, standard && strstr(standard, "gnu") ? "-std=gnu++20" : "-std=c++20");
    else if (!standard || !strstr(standard, "++"))
        command_add(c, "-std=c++17");
    else
        command_addf(c, "-std=%s", standard);
}

static void add_dependency_flags(const options *o, command *c, const char *object, const char *source) {
    if (!o->writes_dependencies)
        return;
    char *stem = stem_of(o->output && o->mode != MODE_LINK ? object : source);
    const char *slash = o->output && o->mode != MODE_LINK ? strrchr(object, '/') : NULL;
    if (!o->has_dependency_file) {
        command_add(c, "-MF");
        command_addf(c, "%.*s%s.d", slash ? (int)(slash + 1 - object) : 0, slash ? object : "", stem);
    }
    if (!o->has_dependency_target) {
        command_add(c, "-MT");
        if (o->mode == MODE_OBJECT && object)
            command_add(c, object);
        else
            command_addf(c, "%s.o", stem);
    }
    free(stem);
}

static int preprocess(driver *d, const input *in, bool with_launcher, const char *object, const char *out) {
    const options *o = d->options;
    const bool is_c = in->kind == INPUT_C;
    command c = {0};
    driver_add_compiler(&c, is_c);
    command_add(&c, "-E");
    command_add(&c, "-DDOPPEL_ASCC=1");
    command_add(&c, "-D__NPU_ARCH__=2201");
    command_add(&c, "-D__CCE_AICORE__=220");
    command_add(&c, "-O2");
    add_standard(o, &c, is_c, with_launcher);
    if (with_launcher) {
        command_add(&c, "-include");
        command_addf(&c, "%s/doppel/launcher.%s", d->include_dir, is_c ? "h" : "hpp");
    }
    command_add_all(&c, &o->common);
    command_add_all(&c, &o->preprocessor);
    add_dependency_flags(o, &c, object, in->path);
    if (strcmp(d->include_dir, "/usr/include") != 0) {
        command_add(&c, "-isystem");
        command_add(&c, d->include_dir);
    }
    command_add(&c, "-x");
    command_add(&c, is_c ? "c" : "c++");
    command_add(&c, in->path);
    const int status = run(d, &c, out);
    command_free(&c);
    return status;
}

static int compile(driver *d, const input *in, bool with_launcher, const char *preprocessed, const char *object) {
    const options *o = d->options;
    const bool is_c = in->kind == INPUT_C;
    command c = {0};
    driver_add_compiler(&c, is_c);
    command_add(&c, "-O2");
    command_add(&c, "-fPIC");
    add_standard(o, &c, is_c, with_launcher);
    command_add_all(&c, &o->common);
    command_add(&c, o->mode == MODE_ASSEMBLY ? "-S" : o->mode == MODE_SYNTAX ? "-fsyntax-only" : "-c");
    command_add(&c, "-x");
    command_add(&c, is_c ? "cpp-output" : "c++-cpp-output");
    command_add(&c, preprocessed);
    if (o->mode != MODE_SYNTAX) {
        command_add(&c, "-o");
        command_add(&c, object);
    }
    const int status = run(d, &c, NULL);
    command_free(&c);
    return status;
}

/* Translates `preprocessed` into `out`; 1 when it cannot be, with messages on stderr. *out_again asks for the launcher. */
static int translate(driver *d, const input *in, bool with_launcher, const char *preprocessed, const char *out,
                     bool *out_again) {
    text before = {0}, after = {0}, messages = {0};
    int status = 1;
    if (!text_read(&before, preprocessed)) {
        fprintf(stderr, "ascc: error: cannot read %s: %s\n", preprocessed, strerror(errno));
    } else {
        text condition = {0};
        const bool by_core = find_core_condition(before.data ? before.data : "", before.size, &condition);
        const rewrite_options how = {.name = in->path, .is_c = in->kind == INPUT_C, .has_launcher = with_launcher,
                                     .core_condition = by_core ? condition.data : NULL, .header_dir = d->options->header_dir};
        const rewrite_result result = rewrite(&how, before.data ? before.data : "", before.size, &after, &messages);
        text_free(&condition);
        *out_again = result == REWRITE_NEEDS_LAUNCHER;
        status = result == REWRITE_FAILED;
        if (result == REWRITE_DONE && !text_write(&after, out)) {
            fprintf(stderr, "ascc: error: cannot write %s: %s\n", out, strerror(errno));
            status = 1;
        }
    }
    fputs(messages.data ? messages.data : "", stderr);
    text_free(&before);
    text_free(&after);
    text_free(&messages);
    return status;
}

static int build_source(driver *d, const input *in, const char *object) {
    const options *o = d->options;
    if (access(in->path, R_OK) != 0 && strcmp(in->path, "-") != 0) {
        fprintf(stderr, "ascc: error: %s: %s\n", in->path, strerror(errno));
        return 1;
    }
    bool with_launcher = in->kind == INPUT_ASC;
    if (o->mode == MODE_PREPROCESS)
        return preprocess(d, in, with_launcher, object, o->output);
    char *raw = temporary(d, in->path, ".raw"), *plain = temporary(d, in->path, in->kind == INPUT_C ? ".i" : ".ii");
    bool again = false;
    int status = preprocess(d, in, with_launcher, object, raw);
    if (status == 0 && !o->dry_run)
        status = translate(d, in, with_launcher, raw, plain, &again);
    if (status == 0 && again) {
        with_launcher = true;
        status = preprocess(d, in, with_launcher, object, raw);
        if (status == 0)
            status = translate(d, in, with_launcher, raw, plain, &again);
    }
    if (status == 0 && o->mode == MODE_REWRITE) {
        command cat = {0};
        command_add(&cat, "cat");
        command_add(&cat, plain);
        status = run(d, &cat, o->output);
        command_free(&cat);
    } else if (status == 0) {
        status = compile(d, in, with_launcher, plain, object);
    }
    free(raw);
    free(plain);
    return status;
}

static int link_all(driver *d, const command *objects) {
    const options *o = d->options;
    command c = {0};
    driver_add_compiler(&c, false);
    command_add_all(&c, &o->common);
    command_add_all(&c, objects);
    command_addf(&c, "-L%s", d->library_dir);
    command_addf(&c, "-Wl,-rpath,%s", d->library_dir);
    command_add(&c, "-lascendcl");
    command_add(&c, "-o");
    command_add(&c, o->output ? o->output : "a.out");
    const int status = run(d, &c, NULL);
    command_free(&c);
    return status;
}

int driver_run(driver *d) {
    const options *o = d->options;
    command objects = {0};
    int worst = 0;
    for (size_t i = 0; i < o->input_count && !interrupted; i++) {
        const input *in = &o->inputs[i];
        if (in->kind == INPUT_LINK) {
            command_add(&objects, in->path);
            continue;
        }
        char *object = output_of(d, in->path);
        const int status = build_source(d, in, object);
        worst = status > worst ? status : worst;
        command_add(&objects, object ? object : "");
        free(object);
    }
    if (worst == 0 && o->mode == MODE_LINK && !interrupted)
        worst = link_all(d, &objects);
    command_free(&objects);
    return interrupted ? 128 + (int)interrupted : worst;
}
