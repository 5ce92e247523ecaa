/*
 * context.h - a context belongs to one device and has a default stream; each thread has at most one current context.
 *
 * Handles of this floor (context, stream, event, ...) are opaque pointers the user keeps as void *. Each names a slot
 * that is never given back to the system, so a destroyed, foreign or invented handle is recognised without touching
 * foreign memory: DP_ERR_HANDLE and a sentence.
 */
#ifndef DOPPEL_RUNTIME_CONTEXT_H
#define DOPPEL_RUNTIME_CONTEXT_H

#include "base/status.h"

/* Makes a context and makes it current for this thread. */
dp_status dp_context_create(int32_t device_id, void **out_context);
/* Waits for the default stream. Contexts made by dp_device_set are refused (DP_ERR_STATE): dp_device_reset ends them.
 */
dp_status dp_context_destroy(void *context);
dp_status dp_context_set_current(void *context);
/* DP_ERR_STATE when the thread has none. */
dp_status dp_context_current(void **out_context);
dp_status dp_context_device(void *context, int32_t *out_device_id);

#endif
