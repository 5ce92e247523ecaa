/*
 * driver.h - the steps between a command line and its outputs.
 */
#ifndef ASCC_DRIVER_H
#define ASCC_DRIVER_H

#include "options.h"

typedef struct driver {
    const options *options;
    char *include_dir, *library_dir; /* of the SDK this program belongs to */
    char *temporary_dir;
    unsigned temporary_count;
} driver;

/* Finds the SDK from the program's own place. False with a sentence. */
bool driver_open(driver *d, const options *o);
void driver_close(driver *d); /* removes temporary files; half-open drivers allowed */

/* Compiles every source and links if asked to. Returns the exit status. */
int driver_run(driver *d);

/* Compiler for C++ or C: ASCC_CXX, CXX (ASCC_CC, CC), or the one found when the SDK was built. */
void driver_add_compiler(command *c, bool is_c);

#endif
