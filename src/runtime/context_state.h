/*
 * context_state.h - inside of a context and of the thread's current one. For the files of this folder only.
 */
#ifndef DOPPEL_RUNTIME_CONTEXT_STATE_H
#define DOPPEL_RUNTIME_CONTEXT_STATE_H

#include "base/status.h"

typedef struct dp_context dp_context;
struct dp_stream;

struct dp_context {
    void *self; /* handle */
    uint32_t device_id;
    bool is_primary;                  /* made by dp_device_set */
    struct dp_stream *default_stream; /* one reference */
};

dp_status dp_context_new(uint32_t device_id, bool is_primary, dp_context **out_context);
/* Retires the default stream and closes the handle. */
void dp_context_retire(dp_context *context, bool force);

/* The thread's current context with one reference (dp_handle_release(context->self)); NULL and DP_ERR_STATE when it has
 * none. */
dp_context *dp_context_acquire_current(void);
/* The handle as it stands, valid or not; NULL when none. Setting it does not check it. */
void *dp_context_thread_handle(void);
void dp_context_set_thread_handle(void *context);
/* Device of the current context. */
dp_status dp_context_current_device(uint32_t *out_device_id);
/* Waits for what the current context's default stream has queued, if there is one and this is not its own task. */
void dp_context_settle_default_stream(void);

#endif
