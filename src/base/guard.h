/*
 * guard.h - calls of a user's function that an exception must not leave.
 *
 * A C++ exception that meets only C frames ends the process. The callers of callbacks are C, so they call through here.
 */
#ifndef DOPPEL_BASE_GUARD_H
#define DOPPEL_BASE_GUARD_H

#include <stddef.h>

#include "doppel/abi.h"

/*
 * Calls fn(argument). False if it was left by an exception, which is over then; `type`[0..type_bytes) gets the name of
 * its C++ type, or "" where that cannot be known. On processors without a guard (other than x86-64 and arm64) it is a
 * plain call. Threads may call at once.
 */
bool dp_call_guarded(void (*fn)(void *argument), void *argument, char *type, size_t type_bytes);

#endif
