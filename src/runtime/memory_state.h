/*
 * memory_state.h - what the memory files of this folder share. For them only.
 */
#ifndef DOPPEL_RUNTIME_MEMORY_STATE_H
#define DOPPEL_RUNTIME_MEMORY_STATE_H

#include "base/status.h"
#include "device/gm.h"

/* Counts size_bytes of the device as used. DP_ERR_OUT_OF_MEMORY names `argument` when they are not free. */
dp_status dp_device_memory_charge(uint32_t device_id, const char *argument, size_t size_bytes);
void dp_device_memory_refund(uint32_t device_id, size_t size_bytes);

/* What kind of pointer this is, as the rest of a sentence: "was freed before (...)", "is host memory", ... */
void dp_pointer_sentence(const void *ptr, char *text, size_t text_bytes);

/* Memory of dp_host_memory_alloc or dp_host_memory_register that contains ptr. */
bool dp_host_memory_contains(const void *ptr);
/* A mapping of dp_vmm_map that contains ptr. */
bool dp_vmm_contains(const void *ptr);

void dp_device_memory_fork_prepare(void);
void dp_device_memory_fork_done(void);
void dp_host_memory_fork_prepare(void);
void dp_host_memory_fork_done(void); /* in the parent */
void dp_host_memory_fork_child(void);
void dp_vmm_fork_prepare(void);
void dp_vmm_fork_done(void);

#endif
