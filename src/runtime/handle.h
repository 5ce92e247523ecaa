/*
 * handle.h - opaque handles that can be checked without trusting them.
 *
 * A handle is the address of a 64-byte slot in a reserved range that is never unmapped. A slot has a magic word, the
 * kind of its object and a reference count; it is used again only after 1,024 other handles were destroyed, so that a
 * stale handle is recognised as destroyed in practice, and is never followed to freed memory in any case.
 */
#ifndef DOPPEL_RUNTIME_HANDLE_H
#define DOPPEL_RUNTIME_HANDLE_H

#include "base/status.h"

typedef enum dp_handle_kind {
    DP_HANDLE_CONTEXT = 1,
    DP_HANDLE_STREAM,
    DP_HANDLE_EVENT,
    DP_HANDLE_PHYSICAL_MEMORY,
    DP_HANDLE_RECORDING,
    DP_HANDLE_TASK_GROUP,
    DP_HANDLE_KIND_COUNT
} dp_handle_kind;

/*
 * A live handle for `object` with one reference, the owner's. destroy(object) runs when the last reference goes. NULL
 * with a sentence when there are too many handles (about a million).
 */
void *dp_handle_create(dp_handle_kind kind, void *object, void (*destroy)(void *object));
/*
 * Object of a live handle of that kind, with one more reference; NULL and a recorded DP_ERR_HANDLE otherwise.
 * `argument` is the vendor's name of the argument, for the sentence.
 */
void *dp_handle_acquire(void *handle, dp_handle_kind kind, const char *argument);
/* One more reference to a handle of which the caller already holds one. */
void dp_handle_retain(void *handle);
/* The same for a handle that another thread may be giving its last reference back of: false if so. */
bool dp_handle_try_retain(void *handle);
void dp_handle_release(void *handle);
/*
 * Ends the handle: from now on it is refused as destroyed. The object lives until the last reference goes; the owner's
 * is given back here. False if another thread was faster.
 */
bool dp_handle_close(void *handle);

/* Around fork(). */
void dp_handle_fork_prepare(void);
void dp_handle_fork_done(void);

#endif
