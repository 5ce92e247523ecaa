/*
 * compile_file.h - files that are compiled.
 */
#ifndef DOPPEL_API_COMPILE_FILE_H
#define DOPPEL_API_COMPILE_FILE_H

#include <stddef.h>

#include "base/status.h"

enum { DP_PATH_BYTES = 4096 };

/* The whole file; dp_free gives it back. what: the option that names the file. */
dp_status dp_file_read(const char *what, const char *path, void **out_bytes, size_t *out_size);
/* The folder that it is in, DP_PATH_BYTES long. */
void dp_folder_of(const char *path, char *out_folder);

/* soc_version: a chip that is simulated, or one of the first generation, for which samples are compiled. NULL is fine. */
dp_status dp_soc_check(const char *soc_version);

#endif
