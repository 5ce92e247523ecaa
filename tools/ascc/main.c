/*
 * ascc - compiles Ascend C programs (kernels, host code and launches in one source) with the system's C++ compiler.
 */
#include <stdio.h>

#include "driver.h"

#ifndef ASCC_VERSION
#define ASCC_VERSION "unknown"
#endif

static void print_help(void) {
    puts("usage: ascc [options] file...\n"
         "\n"
         "Compiles Ascend C sources for this machine. Sources: .asc, .cpp, .cc, .cxx, .c; objects, archives and libraries are\n"
         "passed to the linker. A kernel launch, kernel<<<blocks, dynamic_ub, stream>>>(args), may stand in any source.\n"
         "\n"
         "  -o FILE                 write the output to FILE (default a.out, or <source>.o with -c)\n"
         "  -c, -S, -E              stop after compiling, before assembling, after preprocessing\n"
         "  --rewrite               write the plain C++ that the compiler would get\n"
         "  -fsyntax-only           check the sources, write nothing\n"
         "  -shared                 make a shared library\n"
         "  -x LANGUAGE             language of the following sources: asc, c++, c, none (by ending)\n"
         "  -I -D -U -include -std= -O -g -W -f -m -M...    as the C++ compiler has them\n"
         "  -l -L -Wl,... -Xlinker                          for the linker\n"
         "  --npu-arch=dav-2201     the chip family: dav-2201 (Ascend 910B) or dav-2002 (310P); may be left out\n"
         "  --launch-headers=DIR    also write DIR/aclrtlaunch_<kernel>.h and the functions it declares\n"
         "  -v, -###                show the commands that are run; show them without running\n"
         "  --version, --help\n"
         "\n"
         "Defaults: -O2 -fPIC; -std=c++20 for sources with kernels (older is raised), c++17 for others, gnu11 for .c.\n"
         "The compiler is $CXX (for .c: $CC), else the one the SDK was built with.\n"
         "Options of the vendor's driver that choose cores or chips (--cce-..., -xcce) are accepted and have no effect.");
}

static int print_version(void) {
    command c = {0};
    driver_add_compiler(&c, false);
    printf("ascc (Doppel) " ASCC_VERSION "\ncompiler: ");
    command_add(&c, "--version");
    const int status = command_run(&c, NULL);
    command_free(&c);
    return status;
}

/* `ascc -dumpmachine` and alike: questions to the compiler itself. */
static int ask_compiler(const options *o) {
    command c = {0};
    driver_add_compiler(&c, false);
    command_add_all(&c, &o->common);
    const int status = command_run(&c, NULL);
    command_free(&c);
    return status;
}

static bool is_question(const options *o) {
    for (size_t i = 0; i < o->common.count; i++)
        if (__builtin_strncmp(o->common.argv[i], "-dump", 5) == 0 || __builtin_strncmp(o->common.argv[i], "-print-", 7) == 0 ||
            __builtin_strncmp(o->common.argv[i], "--print-", 8) == 0)
            return true;
    return false;
}

int main(int argc, char **argv) {
    options o = {0};
    driver d = {0};
    int status = 1;
    if (!options_read(&o, argc, argv))
        goto done;
    if (o.help) {
        print_help();
        status = 0;
    } else if (o.version) {
        status = print_version();
    } else if (is_question(&o)) {
        status = ask_compiler(&o);
    } else if (o.input_count == 0) {
        fprintf(stderr, "ascc: error: no input files; \"ascc --help\" shows the usage\n");
    } else if (driver_open(&d, &o)) {
        status = driver_run(&d);
    }
done:
    driver_close(&d);
    options_free(&o);
    return status;
}
