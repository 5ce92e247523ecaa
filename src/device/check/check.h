/*
 * check.h - the checker: an observer that finds mistakes of kernels and of the host code around them.
 *
 * The runtime calls dp_check_install() once, before the first allocation of device memory, when DOPPEL_MODE=check.
 */
#ifndef DOPPEL_DEVICE_CHECK_CHECK_H
#define DOPPEL_DEVICE_CHECK_CHECK_H

#include "doppel/abi.h"

/*
 * Installs the checker with the options of the environment; a second call does nothing.
 *   DOPPEL_CHECK_STRICT=1     do not assume the synchronisation that the vendor's compiler inserts by default
 *   DOPPEL_CHECK_NAN=1        report where NaN or infinity is born
 *   DOPPEL_CHECK_OVERFLOW=1   report half results that overflow
 *   DOPPEL_CHECK_JSON=path    also write the findings as JSON
 *   DOPPEL_CHECK_LIMIT=n      different findings kept (default 200)
 *   DOPPEL_CHECK_DIR=dir      write <dir>/<pid>.txt instead of printing on stderr at exit (set by `doppel check`)
 */
void dp_check_install(void);

/* Writes the report as it stands (text, and JSON if asked for). Called at exit by itself; thread-safe. */
void dp_check_flush(void);

/* Around fork(), between the locks of the streams and those of device memory. */
void dp_check_fork_prepare(void);
void dp_check_fork_parent(void);
void dp_check_fork_child(void);

/* Different findings so far. */
unsigned dp_check_finding_count(void);

#endif
